//! Label selectors, as pools use them.

use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;

/// Labels by key.
pub type Labels = BTreeMap<String, String>;

/// A label selector.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Selector {
    match_labels: Labels,
    match_expressions: Vec<Expression>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
struct Expression {
    key: String,
    operator: String,
    values: Vec<String>,
}

impl Selector {
    /// The selector of this label.
    pub fn of(key: &str, value: &str) -> Selector {
        let match_labels = Labels::from([(key.to_owned(), value.to_owned())]);
        Selector { match_labels, match_expressions: Vec::new() }
    }

    /// Whether it selects nothing: for pools an empty selector means that.
    pub fn is_empty(&self) -> bool {
        self.match_labels.is_empty() && self.match_expressions.is_empty()
    }

    /// Whether it selects an object with these labels.
    pub fn matches(&self, labels: &Labels) -> bool {
        !self.is_empty()
            && self.match_labels.iter().all(|(key, value)| labels.get(key) == Some(value))
            && self.match_expressions.iter().all(|expression| expression.matches(labels))
    }
}

impl Expression {
    fn matches(&self, labels: &Labels) -> bool {
        let found = labels.get(&self.key);
        let is_in = found.is_some_and(|value| self.values.contains(value));
        match self.operator.as_str() {
            "In" => is_in,
            "NotIn" => !is_in,
            "Exists" => found.is_some(),
            "DoesNotExist" => found.is_none(),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Labels, Selector};
    use serde_json::{Value, json};

    #[test]
    fn a_selector_matches_labels_and_expressions_and_an_empty_one_nothing() {
        let labels = |text: &str| -> Labels {
            text.split_whitespace()
                .filter_map(|label| label.split_once('='))
                .map(|(k, v)| (k.into(), v.into()))
                .collect()
        };
        let expression = |operator: &str, values: &[&str]| json!({"matchExpressions": [{"key": "role", "operator": operator, "values": values}]});
        let cases: [(Value, &str, bool); 13] = [
            (json!({}), "role=worker", false),
            (json!({"matchLabels": {"role": "worker"}}), "role=worker a=b", true),
            (json!({"matchLabels": {"role": "worker"}}), "role=infra", false),
            (json!({"matchLabels": {"role": "worker", "a": "b"}}), "role=worker", false),
            (expression("In", &["worker", "infra"]), "role=infra", true),
            (expression("In", &["worker", "infra"]), "role=master", false),
            (expression("In", &["worker", "infra"]), "", false),
            (expression("NotIn", &["master"]), "role=worker", true),
            (expression("NotIn", &["master"]), "role=master", false),
            (expression("Exists", &[]), "role=x", true),
            (expression("Exists", &[]), "", false),
            (expression("DoesNotExist", &[]), "", true),
            (expression("Near", &[]), "role=x", false),
        ];
        for (selector, found, expected) in cases {
            let parsed: Selector = serde_json::from_value(selector.clone()).unwrap();
            assert_eq!(parsed.matches(&labels(found)), expected, "{selector} {found}");
        }
        assert!(Selector::of("role", "worker").matches(&labels("role=worker")));
    }
}
