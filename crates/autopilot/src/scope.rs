//! What the user turned on, and to what they said yes.

use change::Digest;
use std::collections::BTreeSet;

/// Which assets are kept.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// None.
    Off,
    /// All of them.
    All {
        /// Whether somebody wrote so, or nothing was written.
        said: bool,
    },
    /// Those of these names or groups.
    Listed(BTreeSet<String>),
    /// The list names something that does not exist: everything is held until it is corrected.
    Held {
        /// The entries that match nothing, each with the nearest names there are.
        unknown: Vec<(String, Vec<String>)>,
    },
}

impl Scope {
    /// Reads the annotation `autopilot`. `known` are the names and groups of all assets; `opt_in` turns "absent" into off.
    pub fn read(value: Option<&str>, known: &BTreeSet<&str>, opt_in: bool) -> Scope {
        let value = value.map(str::trim).unwrap_or_default();
        if value.is_empty() {
            return if opt_in { Scope::Off } else { Scope::All { said: false } };
        }
        if value.eq_ignore_ascii_case("true") {
            return Scope::All { said: true };
        }
        if value.eq_ignore_ascii_case("false") {
            return Scope::Off;
        }
        let entries: BTreeSet<String> =
            value.split(',').map(str::trim).filter(|entry| !entry.is_empty()).map(str::to_owned).collect();
        if entries.is_empty() {
            // Commas and nothing between them: nothing was named, and nothing is to be taken for unwanted.
            return Scope::Off;
        }
        let unknown: Vec<(String, Vec<String>)> = entries
            .iter()
            .filter(|entry| !known.contains(entry.as_str()))
            .map(|entry| (entry.clone(), nearest(entry, known)))
            .collect();
        if unknown.is_empty() { Scope::Listed(entries) } else { Scope::Held { unknown } }
    }

    /// Whether an asset of this name and group is kept.
    pub fn includes(&self, name: &str, group: Option<&str>) -> bool {
        match self {
            Scope::All { .. } => true,
            Scope::Listed(entries) => entries.contains(name) || group.is_some_and(|group| entries.contains(group)),
            Scope::Off | Scope::Held { .. } => false,
        }
    }
}

/// When a write that restarts nodes needs a person's yes.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Consent {
    /// Somebody wrote `autopilot: "true"` or named the asset.
    pub said: bool,
    /// Somebody wrote `autopilot: "true"`.
    pub to_all: bool,
    /// The annotation `approval`.
    pub rule: Rule,
    /// The digests somebody approved.
    pub approved: BTreeSet<String>,
}

/// The annotation `approval`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Rule {
    /// Not written: a yes is needed unless consent was given by name.
    #[default]
    Normal,
    /// `high-impact`: always.
    Always,
    /// `none`: never.
    Never,
}

impl Consent {
    /// Reads the annotations `approval` and `approved`; a value of `approval` that is neither means always.
    pub fn read(scope: &Scope, approval: Option<&str>, approved: Option<&str>) -> Consent {
        let rule = match approval.map(str::trim).unwrap_or_default() {
            "" => Rule::Normal,
            "none" => Rule::Never,
            _ => Rule::Always,
        };
        let approved = approved.unwrap_or_default();
        let split = approved.split([',', ' ', '\n']).map(str::trim).filter(|entry| !entry.is_empty());
        Consent {
            said: matches!(scope, Scope::All { said: true } | Scope::Listed(_)),
            to_all: matches!(scope, Scope::All { said: true }),
            rule,
            approved: split.map(str::to_owned).collect(),
        }
    }

    /// Whether somebody said yes to exactly this.
    pub fn is_approved(&self, digest: &Digest) -> bool {
        self.approved.contains(digest.as_str())
    }

    /// Whether somebody said yes to exactly this, or never wants to be asked.
    pub fn covers_exactly(&self, digest: &Digest) -> bool {
        self.rule == Rule::Never || self.is_approved(digest)
    }

    /// The same for what no list can name.
    pub fn covers_unnamed(&self, digest: &Digest) -> bool {
        self.covers_exactly(digest) || (self.rule == Rule::Normal && self.to_all)
    }

    /// Whether a write of this digest that restarts nodes may go ahead.
    pub fn covers(&self, digest: &Digest) -> bool {
        let approved = self.is_approved(digest);
        match self.rule {
            Rule::Never => true,
            Rule::Always => approved,
            Rule::Normal => approved || self.said,
        }
    }
}

/// The names most like an entry, at most three.
fn nearest(entry: &str, known: &BTreeSet<&str>) -> Vec<String> {
    let entry = entry.to_lowercase();
    let mut scored: Vec<(usize, &str)> =
        known.iter().map(|name| (distance(&entry, &name.to_lowercase()), *name)).collect();
    scored.sort_unstable();
    let close = entry.chars().count() / 2 + 1;
    scored.into_iter().filter(|(score, _)| *score <= close).take(3).map(|(_, name)| name.to_owned()).collect()
}

/// How many letters have to be changed, added or taken away.
fn distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (index, letter) in one.chars().enumerate() {
        let mut corner = index;
        row[0] = index + 1;
        for (column, wanted) in other.iter().enumerate() {
            let changed = corner + usize::from(letter != *wanted);
            corner = row[column + 1];
            row[column + 1] = changed.min(row[column] + 1).min(corner + 1);
        }
    }
    row[other.len()]
}

#[cfg(test)]
mod tests {
    use super::{Consent, Scope};
    use change::Digest;
    use serde_json::json;
    use std::collections::BTreeSet;

    fn read(value: Option<&str>) -> Scope {
        Scope::read(value, &BTreeSet::from(["swap-enable", "metrics-service", "thp-tuning"]), false)
    }

    #[test]
    fn absent_is_on_true_and_false_are_read_in_any_case() {
        assert_eq!(read(None), Scope::All { said: false });
        assert_eq!(read(Some(" ")), Scope::All { said: false });
        assert_eq!(read(Some("True")), Scope::All { said: true });
        assert_eq!(read(Some("FALSE")), Scope::Off);
        assert_eq!(Scope::read(None, &BTreeSet::new(), true), Scope::Off);
    }

    #[test]
    fn a_list_keeps_names_and_groups_and_an_unknown_entry_holds_everything() {
        let listed = read(Some("swap-enable, thp-tuning,"));
        assert!(listed.includes("swap-enable", None) && listed.includes("thp-tuning-master", Some("thp-tuning")));
        assert!(!listed.includes("metrics-service", None));
        let held = read(Some("swap-enabel, metrics-service"));
        assert_eq!(held, Scope::Held { unknown: vec![("swap-enabel".into(), vec!["swap-enable".into()])] });
        assert!(!held.includes("metrics-service", None));
        assert_eq!(read(Some("yes")), Scope::Held { unknown: vec![("yes".into(), vec![])] });
    }

    #[test]
    fn a_restart_needs_a_yes_unless_it_was_given() {
        let digest = Digest::of(&json!({}));
        let covers = |value: Option<&str>, approval: Option<&str>, approved: Option<&str>| {
            Consent::read(&read(value), approval, approved).covers(&digest)
        };
        let yes = format!("sha256:00, {digest}");
        assert!(!covers(None, None, None), "an install never restarts a node by surprise");
        assert!(covers(Some("true"), None, None) && covers(Some("swap-enable"), None, None));
        assert!(covers(None, None, Some(&yes)) && covers(None, Some("none"), None));
        assert!(!covers(Some("true"), Some("high-impact"), None) && covers(None, Some("high-impact"), Some(&yes)));
        assert!(!covers(Some("true"), Some("hihg-impact"), None), "what is not understood asks");
    }
}
