//! The annotations that a pack names.

use crate::pack::files::Files;
use api::annotation::PREFIX;
use std::collections::BTreeSet;

/// Every word in the files that begins with the prefix of our annotations. Profiles set annotations, and read none.
pub(super) fn read(files: &Files) -> BTreeSet<String> {
    let readers = files.iter().filter(|(path, _)| !path.starts_with("profiles/"));
    let texts = readers.filter_map(|(_, content)| std::str::from_utf8(content).ok());
    texts.flat_map(words).map(str::to_owned).collect()
}

fn words(text: &str) -> impl Iterator<Item = &str> {
    let is_end = |letter: char| !(letter.is_ascii_alphanumeric() || "-_./".contains(letter));
    let word = move |(at, _)| {
        let rest: &str = &text[at..];
        // A sentence may end after it.
        rest.split(is_end).next().unwrap_or_default().trim_end_matches(['.', '-', '/'])
    };
    text.match_indices(PREFIX).map(word).filter(|word| word.len() > PREFIX.len())
}

#[cfg(test)]
mod tests {
    use crate::pack::test_pack::of_template_and;

    #[test]
    fn a_pack_names_annotations_in_any_of_its_files() {
        let template = "{{ with index .HCO.Object.metadata.annotations \"platform.kubevirt.io/enable-a\" }}{{ end }}";
        let more = [("active/notes.md", "Set platform.kubevirt.io/b_2. Under platform.kubevirt.io/ there are others.")];
        let catalog = of_template_and(template, "", &more);
        let names: Vec<&str> = catalog.annotations.iter().map(String::as_str).collect();
        assert_eq!(names, ["platform.kubevirt.io/b_2", "platform.kubevirt.io/enable-a"]);
    }
}
