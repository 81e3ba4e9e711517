//! What the user switched on: the annotation `autopilot`.

use crate::nearest::nearest;
use catalog::Feature;
use std::collections::BTreeSet;

/// Which assets are managed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Scope {
    /// None.
    Off,
    /// All of them.
    All {
        /// Whether the annotation says so, or is absent.
        explicit: bool,
    },
    /// Those of these names, groups or features.
    Listed(BTreeSet<String>),
    /// The list names something that does not exist: everything is held until it is corrected.
    Held {
        /// The entries that match nothing, each with the nearest names that exist.
        unknown: Vec<(String, Vec<String>)>,
    },
}

impl Scope {
    /// Reads the annotation `autopilot`. `known` are the names, groups and features of all assets; `opt_in` turns "absent" into off.
    pub fn read(value: Option<&str>, known: &BTreeSet<&str>, opt_in: bool) -> Scope {
        let value = value.map(str::trim).unwrap_or_default();
        if value.is_empty() {
            return if opt_in { Scope::Off } else { Scope::All { explicit: false } };
        }
        if value.eq_ignore_ascii_case("true") {
            return Scope::All { explicit: true };
        }
        if value.eq_ignore_ascii_case("false") {
            return Scope::Off;
        }
        let entries: BTreeSet<String> =
            value.split(',').map(str::trim).filter(|entry| !entry.is_empty()).map(str::to_owned).collect();
        if entries.is_empty() {
            // Only commas: the list names nothing, so nothing counts as unwanted.
            return Scope::Off;
        }
        let unknown: Vec<(String, Vec<String>)> = entries
            .iter()
            .filter(|entry| !known.contains(entry.as_str()))
            .map(|entry| (entry.clone(), meant(entry, entries.len() == 1, known)))
            .collect();
        if unknown.is_empty() { Scope::Listed(entries) } else { Scope::Held { unknown } }
    }

    /// Replaces every feature of the list by what it consists of.
    #[must_use]
    pub fn with_features(self, features: &[Feature]) -> Scope {
        let Scope::Listed(mut entries) = self else { return self };
        for feature in features.iter().filter(|feature| entries.contains(&feature.name)).collect::<Vec<_>>() {
            entries.extend(feature.assets.iter().chain(&feature.groups).cloned());
        }
        Scope::Listed(entries)
    }

    /// Whether the user asked for what it includes.
    pub fn is_explicit(&self) -> bool {
        matches!(self, Scope::All { explicit: true } | Scope::Listed(_))
    }

    /// Whether an asset with these names is managed.
    pub fn includes<'a>(&self, mut names: impl Iterator<Item = &'a str>) -> bool {
        match self {
            Scope::All { .. } => true,
            Scope::Listed(entries) => names.any(|name| entries.contains(name)),
            Scope::Off | Scope::Held { .. } => false,
        }
    }
}

/// What may be meant by an entry that does not exist. Alone it may be true or false: a name instead would switch everything else off.
fn meant(entry: &str, is_alone: bool, known: &BTreeSet<&str>) -> Vec<String> {
    let is_like = |boolean: &&str| is_alone && strsim::levenshtein(&entry.to_lowercase(), boolean) <= 2;
    match ["true", "false"].into_iter().find(is_like) {
        Some(boolean) => vec![boolean.to_owned()],
        None => nearest(entry, known.iter().copied()),
    }
}

#[cfg(test)]
mod tests {
    use super::Scope;
    use std::collections::BTreeSet;

    fn read(value: Option<&str>) -> Scope {
        Scope::read(value, &BTreeSet::from(["swap-enable", "metrics-service", "thp-tuning"]), false)
    }

    #[test]
    fn absent_is_on_true_and_false_are_read_in_any_case() {
        assert_eq!(read(None), Scope::All { explicit: false });
        assert_eq!(read(Some(" ")), Scope::All { explicit: false });
        assert_eq!(read(Some("True")), Scope::All { explicit: true });
        assert_eq!(read(Some("FALSE")), Scope::Off);
        assert_eq!(Scope::read(None, &BTreeSet::new(), true), Scope::Off);
    }

    #[test]
    fn a_list_selects_names_and_groups_and_an_unknown_entry_holds_everything() {
        let listed = read(Some("swap-enable, thp-tuning,"));
        let includes = |scope: &Scope, names: &[&str]| scope.includes(names.iter().copied());
        assert!(includes(&listed, &["swap-enable"]) && includes(&listed, &["thp-tuning-master", "thp-tuning"]));
        assert!(!includes(&listed, &["metrics-service"]));
        let held = read(Some("swap-enabel, metrics-service"));
        assert_eq!(held, Scope::Held { unknown: vec![("swap-enabel".into(), vec!["swap-enable".into()])] });
        assert!(!includes(&held, &["metrics-service"]));
        let near = |value: &str| {
            let known = BTreeSet::from(["numa", "swap"]);
            match Scope::read(Some(value), &known, false) {
                Scope::Held { unknown } => unknown.into_iter().flat_map(|(_, near)| near).collect::<Vec<_>>().join(","),
                _ => panic!("{value} is not held"),
            }
        };
        assert_eq!((near("ture"), near("flase"), near("swpa")), ("true".into(), "false".into(), "swap".into()));
        assert_eq!(near("ture, swap"), "numa", "a list has no booleans");
        assert_eq!(read(Some("yes")), Scope::Held { unknown: vec![("yes".into(), vec![])] });
    }
}
