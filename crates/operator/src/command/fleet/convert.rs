//! `fleet convert`: manifests of the predecessor's group as those of this one.

use crate::command::print;
use crate::command::wrap::plain;
use anyhow::{anyhow, bail};
use fleet::convert::{Converted, convert, name_of};
use serde_json::Value;
use std::io::Read;
use std::path::{Path, PathBuf};

/// No file of manifests is larger.
const LARGEST: u64 = 32 * 1024 * 1024;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// A file with YAML or JSON, or `-` for the standard input
    #[arg(value_name = "FILE|-")]
    file: PathBuf,
}

/// Prints the objects, each below comments about what is not carried over; the same on the standard error.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let name = arguments.file.display().to_string();
    let (converted, notes) = converted(&name, &read(&arguments.file)?)?;
    notes.iter().for_each(|note| eprintln!("{note}"));
    print(&converted)
}

fn read(path: &Path) -> anyhow::Result<String> {
    let mut text = String::new();
    let found = match path.to_str() {
        Some("-") => std::io::stdin().take(LARGEST).read_to_string(&mut text),
        _ => std::fs::File::open(path).and_then(|file| file.take(LARGEST).read_to_string(&mut text)),
    };
    found.map_err(|error| anyhow!("could not read {}: {error}; give a file with YAML or JSON", path.display()))?;
    Ok(text)
}

/// The manifests, and what is to be said about each; or all errors.
fn converted(file: &str, text: &str) -> anyhow::Result<(String, Vec<String>)> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).map_err(|error| {
        let line = error.location().map(|place| place.line()).filter(|line| *line > 0);
        let words = error.without_snippet().to_string();
        let words = words.split(" at line ").next().unwrap_or(&words).to_owned();
        anyhow!("{file}:{} {words}", line.map(|line| format!("{line}:")).unwrap_or_default())
    })?;
    let documents: Vec<(usize, &Value)> =
        documents.iter().enumerate().filter(|(_, document)| !document.is_null()).collect();
    if documents.is_empty() {
        bail!("{file} has no objects; give a file with manifests of the group {}", fleet::convert::PREDECESSOR);
    }
    let (mut printed, mut notes, mut errors) = (Vec::new(), Vec::new(), Vec::new());
    for (number, document) in documents {
        let place = format!("{file}: document {}", number + 1);
        match convert(document) {
            Err(wrong) => errors.extend(wrong.into_iter().map(|error| format!("{place}: {error}"))),
            Ok(all) => {
                for Converted { object, notes: of_it } in all {
                    // A line break of somebody else would end the comment.
                    let of_it: Vec<String> = of_it.iter().map(|note| plain(note)).collect();
                    let comments: String = of_it.iter().map(|note| format!("# {note}\n")).collect();
                    printed.push(format!("{comments}{}", catalog::yaml_text(&object)));
                    let name = name_of(&object);
                    notes.extend(of_it.into_iter().map(|note| format!("{place}: {name}: {note}")));
                }
            }
        }
    }
    match errors.is_empty() {
        true => Ok((printed.join("---\n"), notes)),
        false => bail!("{}", errors.join("\n")),
    }
}

#[cfg(test)]
mod tests {
    use super::converted;

    #[test]
    fn notes_are_comments_and_lines_and_errors_say_file_document_and_field() {
        let claim = "apiVersion: hypervisor.hyperfleet.io/v1alpha1\nkind: MachineClaim\nmetadata: {name: one}\nspec: {foo: a, templateRef: {name: t}}\n";
        let (text, notes) = converted("f", &format!("# only a comment\n---\n{claim}")).unwrap();
        let note = "spec.foo is not carried over: it is an example of the predecessor's framework";
        assert!(text.starts_with(&format!("# {note}\napiVersion: hyperfleet.io/v1alpha1\n")), "{text}");
        assert!(notes.len() == 1 && notes[0].ends_with(&format!("MachineClaim one: {note}")), "{notes:?}");
        let wrong = claim.replace("templateRef: {name: t}", "bar: b");
        let error = converted("f", &format!("{claim}---\n{wrong}---\nkind: X\n")).unwrap_err().to_string();
        assert_eq!(
            error,
            "f: document 2: MachineClaim one: spec.templateRef.name: it is missing\nf: document 3: X : apiVersion: it is missing; every \
             document has to be an object of Kubernetes"
        );
        let hostile = claim.replace("foo: a", "\"foo\\nkind: Secret\": a");
        let (text, _) = converted("f", &hostile).unwrap();
        assert!(!text.contains("\nkind: Secret"), "{text}");
        assert!(converted("f", "").unwrap_err().to_string().contains("f has no objects"));
        assert!(converted("f", "a: [1\n b: }").unwrap_err().to_string().starts_with("f:2: "));
    }
}
