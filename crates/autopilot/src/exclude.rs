//! Adds a rule for one object to `disabled-resources`, and keeps what a person wrote there.

use crate::exclusion::{ExclusionRule, Exclusions};
use change::Key;

/// The annotation with one more rule; `None` if the object is excluded already. Whatever cannot be read, or cannot be added to with
/// certainty, is refused with a reason.
pub fn exclude(text: Option<&str>, key: &Key) -> Result<Option<String>, String> {
    let before = Exclusions::read(text);
    let rules = match &before {
        Exclusions::Broken(why) => return Err(format!("disabled-resources cannot be read: {why}")),
        Exclusions::Rules(_) if before.excludes(key) => return Ok(None),
        Exclusions::Rules(rules) => rules,
    };
    let rule = rule(key);
    let text = text.map(str::trim_end).filter(|text| !text.trim().is_empty());
    let Some(text) = text else { return Ok(Some(format!("- {rule}\n"))) };
    let (kind, name) = (&key.kind.kind, &key.name);
    let pairs: Vec<String> = rules.iter().map(|rule| format!("{}/{}", rule.kind, rule.name.as_str())).collect();
    // One of them continues the text in the way it is written; which one, reading it tells.
    let mut ways = vec![format!("{text}, {kind}/{name}"), format!("{}\n{}- {rule}\n", text, indent(text))];
    if let Some((head, tail)) = text.rsplit_once(']') {
        let comma = if head.trim_end().ends_with(['[', ',']) { "" } else { ", " };
        ways.push(format!("{}{comma}{rule}]{tail}", head.trim_end()));
    }
    ways.push(format!("{}, {kind}/{name}", pairs.join(", ")));
    let is_right = |way: &String| match Exclusions::read(Some(way)) {
        Exclusions::Rules(after) => after.split_last().is_some_and(|(last, kept)| kept == rules && is_exact(last, key)),
        Exclusions::Broken(_) => false,
    };
    let found = ways.into_iter().find(is_right);
    found.map(Some).ok_or_else(|| format!("disabled-resources cannot be added to; write this rule into it: - {rule}"))
}

/// In quotes: a name may look like a number.
fn rule(key: &Key) -> String {
    let namespace = if key.namespace.is_empty() { String::new() } else { format!(", namespace: {:?}", key.namespace) };
    format!("{{kind: {}, name: {:?}{namespace}}}", key.kind.kind, key.name)
}

/// The older form knows no namespace.
fn is_exact(rule: &ExclusionRule, key: &Key) -> bool {
    let namespace = rule.namespace.as_ref().is_none_or(|namespace| namespace.as_str() == key.namespace);
    rule.kind.eq_ignore_ascii_case(&key.kind.kind) && rule.name.as_str() == key.name && namespace
}

/// The blanks before the first item.
fn indent(text: &str) -> String {
    let first = text.lines().find(|line| line.trim_start().starts_with("- ")).unwrap_or_default();
    first.chars().take_while(|character| *character == ' ').collect()
}

#[cfg(test)]
mod tests {
    use super::exclude;
    use crate::Exclusions;
    use change::{Key, Kind};
    use expect_test::{Expect, expect};

    fn key(namespace: &str) -> Key {
        Key { kind: Kind::new("v1", "ConfigMap"), namespace: namespace.into(), name: "007".into() }
    }

    fn check(text: Option<&str>, expected: &Expect) {
        let after = exclude(text, &key("n")).unwrap().unwrap();
        let (before, now) = (Exclusions::read(text), Exclusions::read(Some(&after)));
        let (Exclusions::Rules(before), Exclusions::Rules(rules)) = (&before, &now) else { panic!("{after}") };
        assert_eq!(rules[..before.len()], before[..], "what was there is kept");
        assert!(now.excludes(&key("n")));
        assert_eq!(exclude(Some(&after), &key("n")), Ok(None), "once is enough");
        expected.assert_eq(&after);
    }

    #[test]
    fn a_rule_is_added_in_the_way_the_others_are_written() {
        check(
            None,
            &expect![[r#"
            - {kind: ConfigMap, name: "007", namespace: "n"}
        "#]],
        );
        check(
            Some(" \n"),
            &expect![[r#"
            - {kind: ConfigMap, name: "007", namespace: "n"}
        "#]],
        );
        check(Some("Service/a, Service/b"), &expect!["Service/a, Service/b, ConfigMap/007"]);
        check(Some("\"Service/a,Service/b\"  # mine"), &expect!["Service/a, Service/b, ConfigMap/007"]);
        check(
            Some("# mine\n- kind: Service\n  name: a-*   # why\n"),
            &expect![[r#"
                # mine
                - kind: Service
                  name: a-*   # why
                - {kind: ConfigMap, name: "007", namespace: "n"}
            "#]],
        );
        check(
            Some("  - {kind: Service, name: a}\n  - {kind: Service, name: b}\n# mine"),
            &expect![[r#"
                  - {kind: Service, name: a}
                  - {kind: Service, name: b}
                # mine
                  - {kind: ConfigMap, name: "007", namespace: "n"}
            "#]],
        );
        check(
            Some("[{kind: Service, name: a}] # mine"),
            &expect![[r#"[{kind: Service, name: a}, {kind: ConfigMap, name: "007", namespace: "n"}] # mine"#]],
        );
        check(Some("[]"), &expect![[r#"[{kind: ConfigMap, name: "007", namespace: "n"}]"#]]);
    }

    #[test]
    fn what_cannot_be_read_or_added_to_is_refused() {
        assert!(exclude(Some("- {kind: A, nmae: b}"), &key("n")).unwrap_err().contains("line 1"));
        let full = "- {kind: Service, name: a}\n".repeat(200);
        assert!(exclude(Some(&full), &key("n")).unwrap_err().contains("write this rule into it"));
    }

    #[test]
    fn a_name_that_would_be_read_as_another_one_is_refused() {
        let strange = Key { name: "a #b".into(), ..key("") };
        let why = exclude(Some("Service/a"), &strange).unwrap_err();
        assert!(why.contains("write this rule into it: - {kind: ConfigMap, name: \"a #b\"}"), "{why}");
        let listed = exclude(Some("- {kind: Service, name: a}"), &strange);
        assert!(listed.is_err(), "no object has such a name: {listed:?}");
    }

    #[test]
    fn a_pattern_that_fits_already_is_enough() {
        assert_eq!(exclude(Some("ConfigMap/00*"), &key("n")), Ok(None));
        assert!(exclude(Some("- {kind: ConfigMap, name: '007', namespace: other}"), &key("n")).unwrap().is_some());
    }
}
