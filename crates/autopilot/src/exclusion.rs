//! The annotation `disabled-resources`, in its plain forms: objects the user wants left alone.

use change::Key;
use serde_json::Value;

/// More rules are refused.
const MOST_RULES: usize = 200;

/// The objects left alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exclusions {
    /// These.
    Rules(Vec<Rule>),
    /// The annotation cannot be read: nothing is created and everything else is held, until it is corrected.
    Broken(String),
}

/// One rule; name and namespace are patterns with `*` and `?`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Rule {
    /// The kind, exactly.
    pub kind: String,
    /// The name's pattern.
    pub name: String,
    /// The namespace's pattern; none fits all.
    pub namespace: Option<String>,
}

impl Exclusions {
    /// None.
    pub fn none() -> Exclusions {
        Exclusions::Rules(Vec::new())
    }

    /// Reads the older form, `Kind/Name, Kind/Name`.
    pub fn read_pairs(text: &str) -> Exclusions {
        let mut rules = Vec::new();
        for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
            match part.split_once('/') {
                Some((kind, name)) if !kind.is_empty() && !name.is_empty() && !name.contains('/') => {
                    rules.push(Rule { kind: kind.into(), name: name.into(), namespace: None });
                }
                _ => return Exclusions::Broken(format!("{part:?} is not Kind/Name")),
            }
        }
        Exclusions::limited(rules)
    }

    /// Takes the parsed form: a list of `kind`, `name` and perhaps `namespace`.
    pub fn read_list(value: &Value) -> Exclusions {
        let Some(items) = value.as_array() else {
            return Exclusions::Broken("it is not a list of rules".into());
        };
        let mut rules = Vec::new();
        for (index, item) in items.iter().enumerate() {
            let broken = |why: &str| Exclusions::Broken(format!("rule {}: {why}", index + 1));
            let Some(fields) = item.as_object() else { return broken("it is not a map") };
            if let Some(unknown) = fields.keys().find(|key| !["kind", "name", "namespace"].contains(&key.as_str())) {
                return broken(&format!("there is no key {unknown:?}"));
            }
            let text =
                |key: &str| fields.get(key).and_then(Value::as_str).map(str::to_owned).filter(|text| !text.is_empty());
            let (Some(kind), Some(name)) = (text("kind"), text("name")) else {
                return broken("it needs a kind and a name");
            };
            rules.push(Rule { kind, name, namespace: text("namespace") });
        }
        Exclusions::limited(rules)
    }

    fn limited(rules: Vec<Rule>) -> Exclusions {
        match rules.len() {
            count if count > MOST_RULES => {
                Exclusions::Broken(format!("it has {count} rules, {MOST_RULES} are allowed"))
            }
            _ => Exclusions::Rules(rules),
        }
    }

    /// Whether an object is left alone.
    pub fn excludes(&self, key: &Key) -> bool {
        match self {
            Exclusions::Broken(_) => false,
            Exclusions::Rules(rules) => rules.iter().any(|rule| {
                let namespace = rule.namespace.as_ref().is_none_or(|pattern| fits(pattern, &key.namespace));
                rule.kind == key.kind.kind && namespace && fits(&rule.name, &key.name)
            }),
        }
    }
}

/// Whether a text fits a pattern with `*` and `?`; takes time proportional to both, whatever the pattern.
fn fits(pattern: &str, text: &str) -> bool {
    let (pattern, text): (Vec<char>, Vec<char>) = (pattern.chars().collect(), text.chars().collect());
    let (mut at, mut seen) = (0, 0);
    let mut star: Option<(usize, usize)> = None;
    while seen < text.len() {
        match pattern.get(at) {
            Some('*') => {
                star = Some((at, seen));
                at += 1;
            }
            Some(letter) if *letter == '?' || *letter == text[seen] => {
                at += 1;
                seen += 1;
            }
            _ => match star {
                Some((place, taken)) => {
                    star = Some((place, taken + 1));
                    at = place + 1;
                    seen = taken + 1;
                }
                None => return false,
            },
        }
    }
    pattern[at..].iter().all(|letter| *letter == '*')
}

#[cfg(test)]
mod tests {
    use super::{Exclusions, fits};
    use change::{Key, Kind};
    use serde_json::json;

    fn key(kind: &str, namespace: &str, name: &str) -> Key {
        Key { kind: Kind::new("v1", kind), namespace: namespace.into(), name: name.into() }
    }

    #[test]
    fn patterns_fit_as_in_a_shell() {
        for (pattern, text) in [
            ("a", "a"),
            ("*", ""),
            ("*", "abc"),
            ("a*c", "abbc"),
            ("?b*", "abc"),
            ("virt-*", "virt-x"),
            ("*a*a*", "aa"),
        ] {
            assert!(fits(pattern, text), "{pattern} {text}");
        }
        for (pattern, text) in [("a", "b"), ("", "a"), ("a*c", "ab"), ("?", ""), ("virt-*", "x-virt-")] {
            assert!(!fits(pattern, text), "{pattern} {text}");
        }
        assert!(!fits(&"*a".repeat(200), &"a".repeat(150)), "and a hostile one ends");
    }

    #[test]
    fn rules_go_by_kind_name_and_namespace() {
        let rules = Exclusions::read_list(&json!([{"kind": "Service", "name": "virt-*", "namespace": "openshift-*"}]));
        assert!(rules.excludes(&key("Service", "openshift-cnv", "virt-a")));
        assert!(
            !rules.excludes(&key("Service", "other", "virt-a"))
                && !rules.excludes(&key("service", "openshift-cnv", "virt-a"))
        );
        let pairs = Exclusions::read_pairs("MachineConfig/90-worker-swap-online, Service/x");
        assert!(
            pairs.excludes(&key("MachineConfig", "", "90-worker-swap-online"))
                && pairs.excludes(&key("Service", "any", "x"))
        );
    }

    #[test]
    fn a_broken_rule_is_named() {
        for value in
            [json!({}), json!(["x"]), json!([{"kind": "A"}]), json!([{"kind": "A", "name": "b", "nmespace": "c"}])]
        {
            assert!(matches!(Exclusions::read_list(&value), Exclusions::Broken(_)), "{value}");
        }
        assert_eq!(Exclusions::read_pairs("Service"), Exclusions::Broken("\"Service\" is not Kind/Name".into()));
    }
}
