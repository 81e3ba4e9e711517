//! The annotation `disabled-resources`: objects the user wants left alone.

use crate::glob::Glob;
use crate::guards::{ExclusionGuard, ExclusionGuards};
use change::Key;
use serde_json::Value;
use serde_saphyr::Spanned;
use std::fmt;

/// More rules are refused.
const MOST_RULES: usize = 200;
/// No name is longer, so no pattern needs to be.
const LONGEST_PATTERN: usize = 253;

/// The objects left alone.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Exclusions {
    /// These.
    Rules(Vec<ExclusionRule>),
    /// The annotation cannot be read: nothing is created and everything else is held, until it is corrected.
    Broken(String),
}

/// One rule.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ExclusionRule {
    /// The kind, in any case.
    pub kind: String,
    /// The name's pattern.
    pub name: Glob,
    /// The namespace's pattern; none fits all.
    pub namespace: Option<Glob>,
}

impl Exclusions {
    /// None.
    pub fn none() -> Exclusions {
        Exclusions::Rules(Vec::new())
    }

    /// Reads the annotation: a YAML list of `kind`, `name` and perhaps `namespace`, or the older `Kind/Name, Kind/Name`. Whatever cannot
    /// be read as one of these is broken: a rule that is overlooked would let an object be written that a person wanted left alone.
    pub fn read(text: Option<&str>) -> Exclusions {
        Exclusions::read_with(text, ExclusionGuards::ALL)
    }

    pub(crate) fn read_with(text: Option<&str>, guards: ExclusionGuards) -> Exclusions {
        // Blanks before the first line belong to it: a list may be indented as a whole.
        let Some(text) = text.filter(|text| !text.trim().is_empty()) else { return Exclusions::none() };
        let rules = match serde_saphyr::from_str_with_options::<Value>(text, options()) {
            Ok(Value::String(pairs)) => read_pairs(&pairs, guards),
            Ok(Value::Array(_)) => read_list(text, guards),
            Ok(_) if !guards.enabled(ExclusionGuard::Shape) => Ok(Vec::new()),
            Ok(_) => Err("it is neither a list of rules nor Kind/Name, Kind/Name".into()),
            Err(error) => Err(describe(&error)),
        };
        match rules {
            Ok(rules) if rules.len() > MOST_RULES && guards.enabled(ExclusionGuard::RuleCount) => {
                Exclusions::Broken(format!("it has {} rules, {MOST_RULES} are allowed", rules.len()))
            }
            Ok(rules) => Exclusions::Rules(rules),
            Err(why) => Exclusions::Broken(why),
        }
    }

    /// The rules; none if they cannot be read.
    pub fn rules(&self) -> &[ExclusionRule] {
        match self {
            Exclusions::Broken(_) => &[],
            Exclusions::Rules(rules) => rules,
        }
    }

    /// The first rule that leaves an object alone.
    pub fn rule_for(&self, key: &Key) -> Option<&ExclusionRule> {
        self.rules().iter().find(|rule| rule.fits(key))
    }

    /// Whether an object is left alone.
    pub fn excludes(&self, key: &Key) -> bool {
        self.rule_for(key).is_some()
    }
}

impl ExclusionRule {
    /// Whether it leaves an object alone. Kinds are written in any case.
    pub fn fits(&self, key: &Key) -> bool {
        let namespace = self.namespace.as_ref().is_none_or(|pattern| pattern.fits(&key.namespace));
        self.kind.eq_ignore_ascii_case(&key.kind.kind) && namespace && self.name.fits(&key.name)
    }
}

impl fmt::Display for ExclusionRule {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match &self.namespace {
            Some(namespace) => write!(f, "{}/{}/{}", self.kind, namespace.as_str(), self.name.as_str()),
            None => write!(f, "{}/{}", self.kind, self.name.as_str()),
        }
    }
}

/// An alias stands for what it names, so a short text can be a large document.
fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        budget: serde_saphyr::budget! { max_depth: 16 },
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 2_000 },
        with_snippet: false,
    }
}

fn describe(error: &serde_saphyr::Error) -> String {
    let words = error.without_snippet().to_string();
    let words = words.split(", set DuplicateKeyPolicy").next().unwrap_or(&words);
    match error.location().map(|place| place.line()) {
        Some(line) => format!("line {line}: {}", words.split(" at line ").next().unwrap_or(words)),
        None => words.to_owned(),
    }
}

fn read_pairs(text: &str, guards: ExclusionGuards) -> Result<Vec<ExclusionRule>, String> {
    let mut rules = Vec::new();
    for part in text.split(',').map(str::trim).filter(|part| !part.is_empty()) {
        let Some((kind, name)) = part.split_once('/') else {
            if guards.enabled(ExclusionGuard::Shape) {
                return Err(format!("{part:?} is not Kind/Name"));
            }
            continue;
        };
        rules.push(checked(kind, name, None, guards)?);
    }
    Ok(rules)
}

fn read_list(text: &str, guards: ExclusionGuards) -> Result<Vec<ExclusionRule>, String> {
    let items: Vec<Spanned<Value>> =
        serde_saphyr::from_str_with_options(text, options()).map_err(|error| describe(&error))?;
    let mut rules = Vec::new();
    for item in items {
        let line = item.referenced.line();
        match read_rule(&item.value, guards) {
            Ok(rule) => rules.push(rule),
            Err(why) if guards.enabled(ExclusionGuard::Shape) => return Err(format!("line {line}: {why}")),
            Err(_) => {}
        }
    }
    Ok(rules)
}

fn read_rule(item: &Value, guards: ExclusionGuards) -> Result<ExclusionRule, String> {
    let fields = item.as_object().ok_or("it is not a rule with kind and name")?;
    let unknown = fields.keys().find(|key| !["kind", "name", "namespace"].contains(&key.as_str()));
    if let Some(unknown) = unknown.filter(|_| guards.enabled(ExclusionGuard::RuleMembers)) {
        return Err(format!("there is no key {unknown:?}; write kind, name and namespace"));
    }
    let text = |key: &str| match fields.get(key) {
        None => Ok(None),
        Some(Value::String(text)) => Ok(Some(text.as_str())),
        Some(_) if guards.enabled(ExclusionGuard::RuleTexts) => Err(format!("{key} is not text; put it in quotes")),
        Some(_) => Ok(None),
    };
    let (Some(kind), Some(name)) = (text("kind")?, text("name")?) else {
        return Err("it needs a kind and a name".into());
    };
    checked(kind, name, text("namespace")?, guards)
}

/// A rule that can never fit anything is a mistake, and its author believes that something is left alone.
fn checked(kind: &str, name: &str, namespace: Option<&str>, guards: ExclusionGuards) -> Result<ExclusionRule, String> {
    let is_kind = !kind.is_empty() && kind.chars().all(|character| character.is_ascii_alphanumeric());
    if !is_kind && guards.enabled(ExclusionGuard::RuleCharacters) {
        return Err(format!("{:?} is no kind; write one such as Service, without a pattern", short(kind)));
    }
    let namespace = namespace.map(|text| pattern(text, guards)).transpose()?;
    Ok(ExclusionRule { kind: kind.to_owned(), name: pattern(name, guards)?, namespace })
}

fn pattern(text: &str, guards: ExclusionGuards) -> Result<Glob, String> {
    if !guards.enabled(ExclusionGuard::RuleCharacters) {
        return Ok(Glob::parse(text).unwrap_or_else(|_| Glob::literal(text)));
    }
    let glob = Glob::parse(text).map_err(|why| format!("{:?} is not a pattern: {why}", short(text)))?;
    let strange =
        |character: char| character.is_whitespace() || character.is_control() || "[]{}\\/%,\"'".contains(character);
    if text.is_empty() || text.len() > LONGEST_PATTERN || glob.literals().any(strange) {
        return Err(format!(
            "{:?} fits no name; write a name, with *, ? and [a-z] for its unknown characters",
            short(text)
        ));
    }
    Ok(glob)
}

/// As much of it as is worth repeating.
fn short(text: &str) -> String {
    text.chars().take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::Exclusions;
    use change::{Key, Kind};
    use expect_test::{Expect, expect};

    fn key(kind: &str, namespace: &str, name: &str) -> Key {
        Key { kind: Kind::new("v1", kind), namespace: namespace.into(), name: name.into() }
    }

    #[test]
    fn rules_go_by_kind_name_and_namespace() {
        let rules = Exclusions::read(Some("- {kind: Service, name: virt-*, namespace: openshift-*}"));
        assert!(rules.excludes(&key("Service", "openshift-cnv", "virt-a")));
        assert!(!rules.excludes(&key("Service", "other", "virt-a")));
        let in_any_case = Exclusions::read(Some("- {kind: service, name: virt-*}\n- {kind: MACHINECONFIG, name: x}"));
        assert!(
            in_any_case.excludes(&key("Service", "n", "virt-a"))
                && in_any_case.excludes(&key("MachineConfig", "", "x"))
        );
        for text in [
            "MachineConfig/90-worker-swap-online, Service/x",
            "\"MachineConfig/90-worker-swap-online,Service/x\"  # mine",
        ] {
            let pairs = Exclusions::read(Some(text));
            assert!(
                pairs.excludes(&key("MachineConfig", "", "90-worker-swap-online"))
                    && pairs.excludes(&key("Service", "any", "x"))
            );
        }
        assert_eq!(Exclusions::read(None), Exclusions::none());
        assert_eq!(Exclusions::read(Some(" \n")), Exclusions::none());
    }

    #[test]
    fn classes_of_characters_are_honoured_as_by_the_predecessor() {
        let excluded = |text: &str, name: &str| Exclusions::read(Some(text)).excludes(&key("Service", "n", name));
        for text in ["- {kind: Service, name: 'virt-[ab]'}", "- kind: Service\n  name: virt-[ab]", "Service/virt-[ab]"]
        {
            assert!(excluded(text, "virt-a") && excluded(text, "virt-b") && !excluded(text, "virt-c"), "{text}");
        }
        for text in ["Service/virt-[^ab]", "- {kind: Service, name: 'virt-[c-f]', namespace: '[n]'}"] {
            assert!(!excluded(text, "virt-a") && excluded(text, "virt-c"), "{text}");
        }
    }

    fn broken(text: &str, expected: &Expect) {
        let Exclusions::Broken(why) = Exclusions::read(Some(text)) else { panic!("{text} is taken") };
        expected.assert_eq(&why);
    }

    #[test]
    fn what_is_broken_is_named_with_its_line() {
        broken("{}", &expect!["it is neither a list of rules nor Kind/Name, Kind/Name"]);
        broken("# nothing", &expect!["it is neither a list of rules nor Kind/Name, Kind/Name"]);
        broken("Service", &expect![[r#""Service" is not Kind/Name"#]]);
        broken("- x", &expect!["line 1: it is not a rule with kind and name"]);
        broken("- {kind: A, name: b}\n- {kind: A}", &expect!["line 2: it needs a kind and a name"]);
        broken(
            "- {kind: A, name: b, nmespace: c}",
            &expect![[r#"line 1: there is no key "nmespace"; write kind, name and namespace"#]],
        );
        broken("- {kind: A, name: b, namespace: 7}", &expect!["line 1: namespace is not text; put it in quotes"]);
        broken("- kind: A\n  name: virt-[ab", &expect![[r#"line 1: "virt-[ab" is not a pattern: a [ has no ]"#]]);
        broken("A/virt-[a,b]", &expect![[r#""virt-[a" is not a pattern: a [ has no ]"#]]);
        broken(
            "- {kind: A, name: b, namespace: a/b}",
            &expect![[r#"line 1: "a/b" fits no name; write a name, with *, ? and [a-z] for its unknown characters"#]],
        );
        let named = |length: usize| Exclusions::read(Some(&format!("- {{kind: A, name: {}}}", "b".repeat(length))));
        assert!(matches!(named(253), Exclusions::Rules(_)) && matches!(named(254), Exclusions::Broken(_)));
        broken("- {kind: A, name: b, name: c}", &expect!["line 1: duplicate mapping key: name"]);
        broken("- {kind: A, name: b", &expect!["line 1: unclosed bracket '{'"]);
    }
}
