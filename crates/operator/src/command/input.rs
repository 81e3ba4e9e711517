//! Reads the files that a person gives to a command.

use anyhow::{anyhow, bail};
use catalog::Facts;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use std::path::Path;

/// The facts of a file, with a HyperConverged among them.
pub(super) fn facts(path: &Path, namespace: &str) -> anyhow::Result<Facts> {
    let facts: Facts = yaml(path)?;
    let file = path.display();
    match &facts.hco {
        Value::Null => {
            bail!(
                "{file} has no facts about a HyperConverged; write it under hco, or let \"virtpilot facts\" print the facts"
            )
        }
        hco => Ok(Facts { hco: checked(hco.clone(), &format!("hco in {file}"), namespace)?, ..facts }),
    }
}

/// The facts of a cluster of which only the HyperConverged in a file is known.
pub(super) fn hyperconverged(path: &Path, namespace: &str) -> anyhow::Result<Facts> {
    let hco = checked(yaml(path)?, &path.display().to_string(), namespace)?;
    Ok(Facts { hco, ..Facts::default() })
}

/// Checks that this is a HyperConverged; one without a namespace is in the given one.
fn checked(mut hco: Value, place: &str, namespace: &str) -> anyhow::Result<Value> {
    let (group, wanted) = (api::hco::GROUP, api::hco::KIND);
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let (api_version, kind) = (text(&hco["apiVersion"]), text(&hco["kind"]));
    if api_version.split('/').next() != Some(group) || kind != wanted {
        let found = match (&hco, kind.is_empty()) {
            (Value::Null, _) => "nothing".to_owned(),
            (Value::Object(_), false) => {
                format!("a {kind} of {}", if api_version.is_empty() { "no apiVersion" } else { &api_version })
            }
            _ => "no object with apiVersion and kind".to_owned(),
        };
        bail!(
            "{place} is {found}; it must be a {wanted} of {group}, for example from \"kubectl get hyperconverged -o yaml\""
        );
    }
    if text(&hco["metadata"]["name"]).is_empty() {
        bail!("{place} has no metadata.name; write the name of the {wanted} there, such as {}", api::hco::NAME);
    }
    let annotations = hco["metadata"].get("annotations").filter(|annotations| !annotations.is_null());
    let is_map = |value: &Value| value.as_object().is_some_and(|map| map.values().all(Value::is_string));
    if annotations.is_some_and(|annotations| !is_map(annotations)) {
        bail!("{place} has metadata.annotations that are not a map of texts; put numbers, true and false in quotes");
    }
    if text(&hco["metadata"]["namespace"]).is_empty() {
        hco["metadata"]["namespace"] = json!(namespace);
    }
    Ok(hco)
}

/// Reads YAML; an error names the line.
fn yaml<T: DeserializeOwned>(path: &Path) -> anyhow::Result<T> {
    let file = path.display();
    let text = std::fs::read_to_string(path)
        .map_err(|error| anyhow!("could not read {file}: {error}; give the path of a text file in YAML or JSON"))?;
    serde_saphyr::from_str(&text).map_err(|error| {
        let words = error.without_snippet().to_string();
        let words = words.split(" at line ").next().unwrap_or(&words);
        // The library's advice is for programmers.
        let words = words
            .split("; use from_")
            .next()
            .unwrap_or(words)
            .replace("documents detected", "documents, one is expected");
        match error.location().map(|place| place.line()).filter(|line| *line > 0) {
            Some(line) => anyhow!("{file}:{line}: {words}"),
            None => anyhow!("{file}: {words}"),
        }
    })
}

#[cfg(test)]
mod tests {
    use super::{facts, hyperconverged};

    /// The errors of both readers for a file with this content, without its path.
    fn errors(content: &str) -> [String; 2] {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("f");
        std::fs::write(&path, content).unwrap();
        [facts(&path, "n"), hyperconverged(&path, "n")].map(|read| match read {
            Ok(facts) => format!("fine: {}", facts.hco["metadata"]["namespace"]),
            Err(error) => format!("{error:#}").replace(&path.display().to_string(), "f"),
        })
    }

    #[test]
    fn a_file_without_a_hyperconverged_is_refused_with_what_it_has() {
        let wanted =
            "it must be a HyperConverged of hco.kubevirt.io, for example from \"kubectl get hyperconverged -o yaml\"";
        let [of_facts, of_hco] = errors("");
        assert!(of_facts.starts_with("f has no facts about a HyperConverged; write it under hco"), "{of_facts}");
        assert_eq!(of_hco, format!("f is nothing; {wanted}"));
        assert_eq!(errors("hco: 7")[0], format!("hco in f is no object with apiVersion and kind; {wanted}"));
        assert_eq!(errors("apiVersion: v1\nkind: Service")[1], format!("f is a Service of v1; {wanted}"));
        assert_eq!(errors("kind: Service")[1], format!("f is a Service of no apiVersion; {wanted}"));
        assert_eq!(errors("[]")[1], format!("f is no object with apiVersion and kind; {wanted}"));
        let nameless = "apiVersion: hco.kubevirt.io/v1\nkind: HyperConverged";
        assert!(errors(nameless)[1].starts_with("f has no metadata.name; "));
        assert_eq!(errors(&format!("{nameless}\nmetadata: {{name: x}}"))[1], "fine: \"n\"");
        let annotated = errors(&format!("{nameless}\nmetadata: {{name: x, annotations: {{a: true}}}}"));
        assert!(annotated[1].starts_with("f has metadata.annotations that are not a map of texts; "), "{annotated:?}");
    }

    #[test]
    fn an_error_in_yaml_is_reported_once_with_its_line() {
        assert!(errors("hco: {}\ncolour: red")[0].starts_with("f:2: unknown field `colour`, expected one of hco"));
        assert_eq!(errors("a: [1\n b: }")[1], "f:2: illegal placement of ':' indicator");
        assert_eq!(errors("a: 1\n---\nb: 2")[1], "f:3: multiple YAML documents, one is expected");
    }
}
