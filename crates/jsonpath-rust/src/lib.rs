//! Field paths such as `$.credential.access_token`, as kubeconfigs of the former GCP auth provider name their token.
//!
//! kube asks for nothing else of the published crate of this name, whose parser and regular expressions would be 0.5 MB of the
//! operator's memory.

use serde_json::Value;

/// Reads values by their path.
pub trait JsonPath {
    /// The value at `path`, or none. An error says why the path cannot be read.
    fn query(&self, path: &str) -> Result<Vec<&Value>, String>;
}

impl JsonPath for Value {
    fn query(&self, path: &str) -> Result<Vec<&Value>, String> {
        let unsupported = || format!("{path:?} is not a path of fields; write one such as $.credential.access_token");
        let fields = path.strip_prefix("$.").ok_or_else(unsupported)?;
        let is_name = |field: &str| {
            !field.is_empty() && field.chars().all(|char| char.is_alphanumeric() || matches!(char, '_' | '-'))
        };
        let mut found = Some(self);
        for field in fields.split('.') {
            if !is_name(field) {
                return Err(unsupported());
            }
            found = found.and_then(|value| value.get(field));
        }
        Ok(found.into_iter().collect())
    }
}

#[cfg(test)]
mod tests {
    use super::JsonPath as _;
    use serde_json::json;

    #[test]
    fn a_path_of_fields_leads_to_its_value() {
        let output = json!({"credential": {"access_token": "t", "token-expiry": "e"}});
        assert_eq!(output.query("$.credential.access_token"), Ok(vec![&json!("t")]));
        assert_eq!(output.query("$.credential.token-expiry"), Ok(vec![&json!("e")]));
        assert_eq!(output.query("$.credential.other"), Ok(vec![]));
        assert_eq!(output.query("$.other.access_token"), Ok(vec![]));
    }

    #[test]
    fn any_other_path_is_refused_with_an_example() {
        for path in ["", "$", "$.", "credential", "$.a..b", "$.a[0]", "$..token", "$.a.*", "$.a[?(@.b=='c')]"] {
            let error = json!({"a": {"b": "c"}}).query(path).unwrap_err();
            assert!(error.contains("$.credential.access_token"), "{path}: {error}");
        }
    }
}
