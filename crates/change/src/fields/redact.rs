//! Decides which values may be shown. Every value that becomes text for a person or a log passes here; keys and paths are always shown.

#[cfg(test)]
mod fuzz;
pub mod message;
mod words;

use crate::fields::pointer::Pointer;
use crate::object::key::Kind;
use serde_json::Value;
use words::{is_secret_key, is_secret_text};

/// What is printed instead of a value.
pub const REDACTED: &str = "(redacted)";

/// Lists whose items have a `key` that is the name of a label, a field or a taint.
const SELECTORS: [&str; 4] = ["tolerations", "taints", "matchExpressions", "matchFields"];
/// Lists in which an item may say what the next one is.
const ARGUMENTS: [&str; 2] = ["args", "command"];
/// Fields that name the map they are in.
const NAMES: [&str; 3] = ["name", "key", "id"];
/// Fields that hold the value of a map with a name.
const VALUES: [&str; 6] = ["value", "values", "default", "content", "data", "text"];

/// A place in an object, as far as it decides whether the values there may be shown.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Place {
    /// Nothing here or below is shown.
    is_hidden: bool,
    /// It is below a list of requirements on labels or taints.
    is_selector: bool,
    /// It is a list of environment variables, or one of them.
    is_env: bool,
    /// It is the name of an environment variable, and not a whole assignment in its place.
    is_variable: bool,
    /// It is a map that is named like a secret.
    is_named_secret: bool,
}

impl Place {
    /// The top of an object of this kind. Besides Secrets there are kinds such as SealedSecret.
    pub fn top(kind: &Kind) -> Place {
        Place { is_hidden: is_secret_key(&kind.kind), ..Place::default() }
    }

    /// The place that a pointer leads to in an object of this kind, of which nothing else is known.
    pub fn at(kind: &Kind, pointer: &Pointer) -> Place {
        pointer.steps().iter().fold(Place::top(kind), |place, step| place.step(step))
    }

    /// One step of a path in an unknown object: the item of a list may be named like a secret, and an argument may follow `--password`.
    fn step(self, step: &str) -> Place {
        let is_index = step == "-" || step.parse::<usize>().is_ok();
        if is_index {
            Place { is_named_secret: true, ..self }
        } else {
            self.field(step).or_hidden(ARGUMENTS.contains(&step))
        }
    }

    fn or_hidden(self, is_hidden: bool) -> Place {
        Place { is_hidden: self.is_hidden || is_hidden, ..self }
    }

    /// A field of the map at this place.
    pub fn field(self, key: &str) -> Place {
        let is_name = (self.is_selector && key == "key") || (self.is_env && key == "name");
        let is_value = self.is_env || is_secret_key(key) || (self.is_named_secret && VALUES.contains(&key));
        Place {
            is_hidden: self.is_hidden || (is_value && !is_name),
            is_selector: self.is_selector || SELECTORS.contains(&key),
            is_env: key == "env",
            is_variable: self.is_env && key == "name",
            is_named_secret: false,
        }
    }

    /// The same place, now that the map or list there is known: a map may be named like a secret, and in a list with a secret text each
    /// item is one, such as `--password` and what follows it.
    pub fn of(self, container: &Value) -> Place {
        match container {
            Value::Object(fields) => {
                let mut names = NAMES.iter().filter_map(|name| fields.get(*name)?.as_str());
                let is_named_secret = self.is_named_secret || (!self.is_selector && names.any(is_secret_key));
                Place { is_named_secret, ..self }
            }
            Value::Array(items) => {
                let has_secret = items.iter().filter_map(Value::as_str).any(is_secret_text);
                self.or_hidden(has_secret)
            }
            Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => self,
        }
    }

    /// The value as far as it may be shown; `None` if nothing of it may. A truth value is no secret.
    pub fn shown(self, value: &Value) -> Option<Value> {
        if self.is_hidden(value) {
            return None;
        }
        let here = self.of(value);
        Some(match value {
            Value::Array(items) => items.iter().map(|item| or_redacted(here.shown(item))).collect(),
            Value::Object(fields) => {
                let field = |(key, value): (&String, &Value)| (key.clone(), or_redacted(here.field(key).shown(value)));
                Value::Object(fields.iter().map(field).collect())
            }
            plain => plain.clone(),
        })
    }

    /// Whether nothing of the value may be shown.
    pub(crate) fn is_hidden(self, value: &Value) -> bool {
        let here = self.of(value);
        match value {
            Value::Null | Value::Bool(_) => false,
            _ if here.is_hidden => true,
            Value::Number(_) => here.is_env,
            Value::String(text) => here.is_env || (here.is_variable && text.contains('=')) || is_secret_text(text),
            Value::Array(_) | Value::Object(_) => false,
        }
    }

    /// How many characters of JSON the value is as far as it may be shown; counting ends once there are more than `enough`.
    pub(crate) fn shown_length(self, value: &Value, enough: usize) -> usize {
        if self.is_hidden(value) {
            return REDACTED.len() + 2;
        }
        let here = self.of(value);
        // Two brackets, and a comma between every two.
        let sum = |parts: &mut dyn Iterator<Item = usize>| {
            let mut length = 1;
            for part in parts {
                length += part + 1;
                if length > enough {
                    break;
                }
            }
            length.max(2)
        };
        match value {
            Value::Array(items) => sum(&mut items.iter().map(|item| here.shown_length(item, enough))),
            Value::Object(fields) => sum(&mut fields.iter().map(|(key, value)| {
                let name = key.chars().count() + 3;
                name + here.field(key).shown_length(value, enough)
            })),
            plain => plain.to_string().chars().count(),
        }
    }

    /// The items in a path, such as `[name="a"]`, or `["a"]` for an item by its value.
    pub(crate) fn shown_items(self, items: &str) -> String {
        let is_shown = items.is_empty() || !(self.is_hidden || is_secret_text(items.trim_matches(['[', ']', '"'])));
        if is_shown { items.to_owned() } else { format!("[{REDACTED}]") }
    }
}

fn or_redacted(shown: Option<Value>) -> Value {
    shown.unwrap_or_else(|| REDACTED.into())
}

/// The value of a user's annotation as it may be shown: the values in a patch are redacted one by one.
pub fn annotation(kind: &Kind, key: &str, value: &str) -> String {
    if key != api::annotation::PATCH {
        return text(value);
    }
    let Ok(Value::Array(mut operations)) = serde_json::from_str(value) else { return REDACTED.to_owned() };
    for operation in &mut operations {
        let Some(fields) = operation.as_object_mut() else { return REDACTED.to_owned() };
        let pointer = fields.get("path").and_then(Value::as_str).and_then(|path| Pointer::parse(path).ok());
        let place = pointer.map(|pointer| Place::at(kind, &pointer));
        for (key, value) in fields.iter_mut().filter(|(key, _)| !["op", "path", "from"].contains(&key.as_str())) {
            let shown = place.filter(|_| key == "value").and_then(|place| place.shown(value));
            *value = or_redacted(shown);
        }
    }
    Value::Array(operations).to_string()
}

/// A text without a place, as it may be shown.
pub fn text(text: &str) -> String {
    if is_secret_text(text) { REDACTED.to_owned() } else { text.to_owned() }
}

#[cfg(test)]
mod tests {
    use super::{Place, annotation};
    use crate::fields::field_set::FieldSet;
    use crate::object::key::Kind;
    use serde_json::{Value, json};

    fn shown(kind: &str, value: &Value) -> Value {
        Place::top(&Kind::new("v1", kind)).shown(value).unwrap_or_else(|| json!("hidden"))
    }

    #[test]
    fn values_of_secrets_variables_and_what_is_named_like_them_are_redacted() {
        let hidden = "(redacted)";
        for kind in ["Secret", "SealedSecret", "CredentialsRequest"] {
            assert_eq!(shown(kind, &json!({"data": {"a": "MQ=="}})), json!("hidden"));
        }
        for (object, expected) in [
            (json!({"env": [{"name": "LEVEL", "value": "3"}]}), json!({"env": [{"name": "LEVEL", "value": hidden}]})),
            (json!({"env": [{"name": "LEVEL=3"}]}), json!({"env": [{"name": hidden}]})),
            (json!({"env": {"LEVEL": "3"}}), json!({"env": {"LEVEL": hidden}})),
            (json!({"dbPassword": "x", "tls.key": "y"}), json!({"dbPassword": hidden, "tls.key": hidden})),
            (
                json!({"params": [{"name": "api-token", "value": "x"}]}),
                json!({"params": [{"name": "api-token", "value": hidden}]}),
            ),
            (json!({"args": ["--password", "x", "-v"]}), json!({"args": hidden})),
            (json!({"exec": ["a", "token=x"]}), json!({"exec": hidden})),
            (
                json!({"files": [{"path": "/a", "contents": {"source": "data:,x"}}]}),
                json!({"files": [{"path": "/a", "contents": hidden}]}),
            ),
            (json!({"url": "https://me:x@host/", "userData": "x"}), json!({"url": hidden, "userData": hidden})),
            (json!({"key": "x"}), json!({"key": hidden})),
            (
                json!({"tolerations": [{"key": "a", "token": "x"}]}),
                json!({"tolerations": [{"key": "a", "token": hidden}]}),
            ),
        ] {
            assert_eq!(shown("X", &object), expected);
        }
    }

    #[test]
    fn benign_values_are_shown() {
        for object in [
            json!({"spec": {"replicas": 5, "paused": true, "image": "quay.io/a/b:v1", "args": ["--level=3", "-v"]}}),
            json!({"kernelArguments": ["psi=1", "quiet"], "data": {"level": "1"}}),
            json!({"tolerations": [{"key": "node-role.kubernetes.io/infra", "operator": "Exists"}]}),
            json!({"rules": [{"resources": ["secrets"], "verbs": ["get"]}], "topologyKey": "zone", "author": "me"}),
            json!({"automountServiceAccountToken": false}),
            json!({"params": [{"name": "level=3"}]}),
            json!({"metadata": {"labels": {"app": "x", "team": "auth"}}}),
        ] {
            assert_eq!(shown("X", &object), object);
        }
    }

    #[test]
    fn a_list_item_is_not_named_by_a_secret_value() {
        let fields = json!({"f:spec": {"f:args": {"v:\"--token=x\"": {}, "v:\"-v\"": {}}, "f:env": {"k:{\"name\":\"PASSWORD\"}": {}}}});
        let shown = FieldSet::read(&fields).paths().collect::<Vec<_>>().join(" ");
        assert_eq!(shown, r#".spec.args[(redacted)] .spec.args["-v"] .spec.env[name="PASSWORD"]"#);
    }

    #[test]
    fn the_values_of_a_dropped_patch_are_redacted_one_by_one() {
        let show = |value: &str| annotation(&Kind::new("apps/v1", "DaemonSet"), api::annotation::PATCH, value);
        let benign = r#"[{"op":"replace","path":"/spec/replicas","value":5}]"#;
        assert_eq!(show(benign), benign);
        let variable = r#"[{"op":"add","path":"/spec/template/spec/containers/0/env/0/value","value":"x"}]"#;
        assert_eq!(show(variable), variable.replace("\"x\"", "\"(redacted)\""));
        let unknown = r#"[{"op":"replace","path":"/spec/params/0/value","value":"x"},{"op":"add","path":"/spec/args/1","value":"x"}]"#;
        assert_eq!(show(unknown), unknown.replace("\"x\"", "\"(redacted)\""), "its name is not part of the patch");
        let whole = r#"[{"op":"add","path":"/spec/containers/-","value":{"env":[{"name":"A","value":"x"}]}}]"#;
        assert_eq!(show(whole), whole.replace("\"x\"", "\"(redacted)\""));
        for broken in ["not JSON", "{}", "[1]"] {
            assert_eq!(show(broken), "(redacted)");
        }
        let strange = r#"[{"op":"add","path":"no pointer","value":"x","other":"y"}]"#;
        assert!(!show(strange).contains("\"x\"") && !show(strange).contains("\"y\""));
        let ignored = "/spec/a, /spec/password";
        assert_eq!(annotation(&Kind::new("v1", "X"), api::annotation::IGNORE_FIELDS, ignored), ignored);
    }
}
