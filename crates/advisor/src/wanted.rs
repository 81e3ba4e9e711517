//! What is wanted of an object, with what is shown of it: made once, because a plan is judged and shown many times.

use change::{Digest, Kind, diff};
use serde_json::{Map, Value};

/// A larger object is not shown.
const LARGEST_OBJECT: usize = 32 * 1024;

/// What is wanted of an object.
#[derive(Debug, Clone)]
pub struct Wanted {
    /// The digest of all of it.
    pub digest: Digest,
    /// The object as far as it may be shown and is not too large.
    pub shown: Option<Map<String, Value>>,
    /// The paths of its fields, as the published API writes them.
    pub paths: Vec<String>,
}

impl Wanted {
    /// Of an object of a kind.
    pub fn new(kind: &Kind, object: &Value) -> Wanted {
        Wanted { digest: Digest::of(object), shown: shown(kind, object), paths: paths(object) }
    }
}

fn shown(kind: &Kind, object: &Value) -> Option<Map<String, Value>> {
    match diff::shown_object(kind, object)? {
        shown if shown.to_string().len() > LARGEST_OBJECT => None,
        Value::Object(shown) => Some(shown),
        _ => None,
    }
}

fn paths(object: &Value) -> Vec<String> {
    fn walk(value: &Value, path: &str, depth: usize, all: &mut Vec<String>) {
        match value.as_object().filter(|map| !map.is_empty() && depth < 3) {
            Some(map) => {
                for (key, value) in map {
                    walk(value, &format!("{path}.{key}"), depth + 1, all);
                }
            }
            None => all.push(path.to_owned()),
        }
    }
    let mut all = Vec::new();
    for key in ["spec", "data"] {
        if let Some(value) = object.get(key) {
            walk(value, key, 0, &mut all);
        }
    }
    all
}
