//! The kind and name of an asset's object, read from its file without rendering it.

use change::Kind;

/// The kind of a file's object, from its top-level `apiVersion:` and `kind:`.
///
/// `None` if the file does not state it literally, or states several kinds.
pub(crate) fn requirement(text: &str) -> Option<Kind> {
    Some(Kind::new(top_level(text, "apiVersion:")?, top_level(text, "kind:")?))
}

/// Namespace and name of a file's object, if the file states the name literally.
pub(crate) fn name(text: &str) -> Option<(String, String)> {
    let mut lines = text.lines().skip_while(|line| line.trim_end() != "metadata:").skip(1);
    let (mut name, mut namespace) = (None, String::new());
    for line in lines.by_ref().take_while(|line| line.starts_with("  ") || line.trim().is_empty()) {
        let line = line.split(" #").next().unwrap_or(line);
        let plain = |key: &str| Some(line.strip_prefix(key)?.trim().trim_matches(['"', '\'']).to_owned());
        name = name.or_else(|| plain("  name:"));
        namespace = plain("  namespace:").unwrap_or(namespace);
    }
    name.filter(|name| !name.is_empty() && !name.contains("{{")).map(|name| (namespace, name))
}

fn top_level<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    let mut values = text.lines().filter_map(|line| line.strip_prefix(key)).map(|value| {
        let value = value.split(" #").next().unwrap_or(value).trim();
        value.trim_matches(['"', '\''])
    });
    let value = values.next()?;
    (!value.is_empty() && !value.contains("{{") && values.all(|other| other == value)).then_some(value)
}
