//! Tags in the characters that Proxmox VE allows: lower-case letters, digits and `_`, then also `-`, `+` and `.`.

use std::collections::{BTreeMap, BTreeSet};

/// The tag of every machine of the fleet.
pub const FLEET: &str = "hyperfleet";
/// No tag is longer.
const LONGEST: usize = 64;

/// A text as a tag; nothing if no character of it is allowed.
pub fn tag(text: &str) -> Option<String> {
    let mut tag = String::new();
    for letter in text.to_lowercase().chars().take(LONGEST) {
        let allowed = letter.is_ascii_lowercase() || letter.is_ascii_digit() || letter == '_';
        match letter {
            letter if allowed => tag.push(letter),
            '-' | '+' | '.' if !tag.is_empty() => tag.push(letter),
            _ if !tag.is_empty() => tag.push('-'),
            _ => {}
        }
    }
    let tag = tag.trim_end_matches('-');
    (!tag.is_empty()).then(|| tag.to_owned())
}

/// The tags of a machine: the fleet's, those of its installation and pool, and the user's as `key-value`.
pub fn all(operator: &str, pool: Option<&str>, users: &BTreeMap<String, String>) -> BTreeSet<String> {
    let mut all = BTreeSet::from([FLEET.to_owned()]);
    all.extend(tag(&format!("op-{operator}")));
    all.extend(pool.and_then(|pool| tag(&format!("pool-{pool}"))));
    all.extend(users.iter().filter_map(|(key, value)| tag(&format!("{key}-{value}"))));
    all
}

#[cfg(test)]
mod tests {
    use super::{all, tag};
    use std::collections::BTreeMap;

    #[test]
    fn a_tag_has_only_characters_that_are_allowed() {
        for (text, expected) in [
            ("hyperfleet.io/Team: CI", Some("hyperfleet.io-team--ci")),
            ("-x", Some("x")),
            ("a;b", Some("a-b")),
            ("ÄÖ", None),
            ("", None),
            ("a b ", Some("a-b")),
        ] {
            assert_eq!(tag(text).as_deref(), expected, "{text}");
        }
        assert_eq!(tag(&"x".repeat(500)).unwrap().len(), 64);
    }

    /// P20.
    #[test]
    fn every_machine_is_tagged_with_its_owner() {
        let tags = all("1a2b", Some("linux"), &BTreeMap::from([("team".into(), "CI".into())]));
        assert_eq!(tags.into_iter().collect::<Vec<_>>(), ["hyperfleet", "op-1a2b", "pool-linux", "team-ci"]);
    }
}
