//! What kind of object an asset makes, told without facts.

use change::Kind;

/// The kind of object a file makes, from its top-level `apiVersion:` and `kind:`.
///
/// `None` where the file does not say it in plain words, or says several things.
pub(crate) fn requirement(text: &str) -> Option<Kind> {
    Some(Kind::new(top_level(text, "apiVersion:")?, top_level(text, "kind:")?))
}

fn top_level<'t>(text: &'t str, key: &str) -> Option<&'t str> {
    let mut values = text.lines().filter_map(|line| line.strip_prefix(key)).map(|value| {
        let value = value.split(" #").next().unwrap_or(value).trim();
        value.trim_matches(['"', '\''])
    });
    let value = values.next()?;
    (!value.is_empty() && !value.contains("{{") && values.all(|other| other == value)).then_some(value)
}
