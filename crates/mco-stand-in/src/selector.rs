//! Label selectors.

use serde_json::Value;

/// Whether a selector selects an object with these labels. An empty selector selects nothing, as the operator treats it.
pub(crate) fn selects(selector: &Value, labels: &Value) -> bool {
    let pairs = selector["matchLabels"].as_object();
    let expressions = selector["matchExpressions"].as_array();
    let is_empty = pairs.is_none_or(serde_json::Map::is_empty) && expressions.is_none_or(Vec::is_empty);
    !is_empty
        && pairs.into_iter().flatten().all(|(key, value)| &labels[key.as_str()] == value)
        && expressions.into_iter().flatten().all(|expression| holds(expression, labels))
}

fn holds(expression: &Value, labels: &Value) -> bool {
    let found = &labels[expression["key"].as_str().unwrap_or_default()];
    let is_in = !found.is_null() && expression["values"].as_array().is_some_and(|values| values.contains(found));
    match expression["operator"].as_str() {
        Some("In") => is_in,
        Some("NotIn") => !is_in,
        Some("Exists") => !found.is_null(),
        Some("DoesNotExist") => found.is_null(),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::selects;
    use serde_json::{Value, json};

    #[test]
    fn a_selector_matches_labels_and_expressions_and_an_empty_one_nothing() {
        let expression = |operator: &str, values: &[&str]| json!({"matchExpressions": [{"key": "role", "operator": operator, "values": values}]});
        let cases: [(Value, Value, bool); 11] = [
            (json!({}), json!({"role": "worker"}), false),
            (Value::Null, json!({"role": "worker"}), false),
            (json!({"matchLabels": {"role": "worker"}}), json!({"role": "worker", "a": "b"}), true),
            (json!({"matchLabels": {"role": "worker"}}), json!({"role": "infra"}), false),
            (json!({"matchLabels": {"role": "worker", "a": "b"}}), json!({"role": "worker"}), false),
            (expression("In", &["worker", "infra"]), json!({"role": "infra"}), true),
            (expression("In", &["worker", "infra"]), Value::Null, false),
            (expression("NotIn", &["master"]), json!({"role": "worker"}), true),
            (expression("NotIn", &["master"]), json!({"role": "master"}), false),
            (expression("Exists", &[]), json!({"role": ""}), true),
            (expression("DoesNotExist", &[]), json!({}), true),
        ];
        for (selector, labels, expected) in cases {
            assert_eq!(selects(&selector, &labels), expected, "{selector} {labels}");
        }
    }
}
