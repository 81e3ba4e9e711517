//! One operation of a JSON patch (RFC 6902), applied along the same parsed pointers that were checked.

use crate::fields::pointer::Pointer;
use crate::overrides::guards::{OverrideGuard, OverrideGuards};
use serde_json::{Map, Value};

/// One operation.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Operation {
    Add { path: Pointer, value: Value },
    Remove { path: Pointer },
    Replace { path: Pointer, value: Value },
    Move { path: Pointer, from: Pointer },
    Copy { path: Pointer, from: Pointer },
    Test { path: Pointer, value: Value },
}

impl Operation {
    /// Parses an operation strictly: it must have exactly its members.
    pub(crate) fn parse(item: Value, guards: OverrideGuards) -> Result<Operation, String> {
        let Value::Object(mut fields) = item else {
            return Err("it is not an object".into());
        };
        let op = fields.get("op").and_then(Value::as_str).ok_or("it has no \"op\"")?.to_owned();
        let members: &[&str] = match op.as_str() {
            "add" | "replace" | "test" => &["op", "path", "value"],
            "remove" => &["op", "path"],
            "move" | "copy" => &["op", "path", "from"],
            other => return Err(format!("there is no operation {other:?}")),
        };
        let unknown = fields.keys().find(|key| !members.contains(&key.as_str()));
        if let Some(unknown) = unknown.filter(|_| guards.enabled(OverrideGuard::Members)) {
            return Err(format!("{op} has no member {unknown:?}"));
        }
        if let Some(missing) = members.iter().find(|member| !fields.contains_key(**member)) {
            return Err(format!("{op} needs a {missing:?}"));
        }
        let pointer = |fields: &Map<String, Value>, member: &str| {
            let text = fields.get(member).and_then(Value::as_str).ok_or(format!("{member:?} is not text"))?;
            Pointer::parse_with(text, guards)
        };
        let path = pointer(&fields, "path")?;
        let value = fields.remove("value").unwrap_or_default();
        Ok(match op.as_str() {
            "add" => Operation::Add { path, value },
            "replace" => Operation::Replace { path, value },
            "test" => Operation::Test { path, value },
            "move" => Operation::Move { path, from: pointer(&fields, "from")? },
            "copy" => Operation::Copy { path, from: pointer(&fields, "from")? },
            _ => Operation::Remove { path },
        })
    }

    /// The pointers to the fields it changes, without those it only reads.
    pub(crate) fn changes(&self) -> impl Iterator<Item = &Pointer> {
        let (first, second) = match self {
            Operation::Add { path, .. }
            | Operation::Remove { path }
            | Operation::Replace { path, .. }
            | Operation::Copy { path, .. } => (Some(path), None),
            Operation::Move { path, from } => (Some(path), Some(from)),
            Operation::Test { .. } => (None, None),
        };
        first.into_iter().chain(second)
    }

    /// The pointers to the fields it changes or tests.
    pub(crate) fn paths(&self) -> impl Iterator<Item = &Pointer> {
        let tested = match self {
            Operation::Test { path, .. } => Some(path),
            _ => None,
        };
        self.changes().chain(tested)
    }

    /// The value it inserts, and where.
    pub(crate) fn inserts<'a>(&'a self, object: &'a Value, guards: OverrideGuards) -> Option<(&'a Pointer, &'a Value)> {
        match self {
            Operation::Add { path, value } | Operation::Replace { path, value } => Some((path, value)),
            Operation::Move { path, from } | Operation::Copy { path, from } => {
                Some((path, find(object, from.steps(), guards)?))
            }
            Operation::Remove { .. } | Operation::Test { .. } => None,
        }
    }

    /// Applies the operation; after an error the object must be discarded.
    pub(crate) fn run(&self, object: &mut Value, guards: OverrideGuards) -> Result<(), String> {
        match self {
            Operation::Add { path, value } => add(object, path, value.clone(), guards),
            Operation::Remove { path } => remove(object, path, guards).map(drop),
            Operation::Replace { path, value } => {
                *find_mut(object, path.steps(), guards).ok_or_else(|| missing(path))? = value.clone();
                Ok(())
            }
            Operation::Move { path, from } if path.steps().len() > from.steps().len() && path.starts_with(from) => {
                Err(format!("{from} cannot be moved into itself"))
            }
            Operation::Move { path, from } => {
                let value = remove(object, from, guards)?;
                add(object, path, value, guards)
            }
            Operation::Copy { path, from } => {
                let value = find(object, from.steps(), guards).ok_or_else(|| missing(from))?.clone();
                add(object, path, value, guards)
            }
            Operation::Test { path, value } => {
                let found = find(object, path.steps(), guards).ok_or_else(|| missing(path))?;
                if found == value { Ok(()) } else { Err(format!("{path} does not have the tested value")) }
            }
        }
    }
}

fn missing(path: &Pointer) -> String {
    format!("{path} does not exist")
}

fn add(object: &mut Value, path: &Pointer, value: Value, guards: OverrideGuards) -> Result<(), String> {
    let Some((last, parent)) = path.steps().split_last() else {
        *object = value;
        return Ok(());
    };
    match find_mut(object, parent, guards) {
        Some(Value::Object(fields)) => {
            fields.insert(last.clone(), value);
            Ok(())
        }
        Some(Value::Array(items)) => {
            let index = if last == "-" { Some(items.len()) } else { list_index(last, guards) };
            let index = index.filter(|index| *index <= items.len());
            items.insert(index.ok_or_else(|| format!("{path} is not an index of its list"))?, value);
            Ok(())
        }
        Some(_) => Err(format!("{path} leads into a value that has no fields")),
        None => Err(format!("{path} has no parent; add that first")),
    }
}

fn remove(object: &mut Value, path: &Pointer, guards: OverrideGuards) -> Result<Value, String> {
    let (last, parent) = path.steps().split_last().ok_or("the whole object cannot be removed")?;
    let removed = match find_mut(object, parent, guards) {
        Some(Value::Object(fields)) => fields.remove(last),
        Some(Value::Array(items)) => {
            list_index(last, guards).filter(|index| *index < items.len()).map(|index| items.remove(index))
        }
        _ => None,
    };
    removed.ok_or_else(|| missing(path))
}

fn find<'a>(object: &'a Value, steps: &[String], guards: OverrideGuards) -> Option<&'a Value> {
    steps.iter().try_fold(object, |value, step| match value {
        Value::Object(fields) => fields.get(step),
        Value::Array(items) => items.get(list_index(step, guards)?),
        _ => None,
    })
}

fn find_mut<'a>(object: &'a mut Value, steps: &[String], guards: OverrideGuards) -> Option<&'a mut Value> {
    steps.iter().try_fold(object, |value, step| match value {
        Value::Object(fields) => fields.get_mut(step),
        Value::Array(items) => items.get_mut(list_index(step, guards)?),
        _ => None,
    })
}

/// A list index is digits without a leading zero or sign, so that every index has one spelling.
fn list_index(step: &str, guards: OverrideGuards) -> Option<usize> {
    let plain = step.bytes().all(|byte| byte.is_ascii_digit()) && (step == "0" || !step.starts_with('0'));
    if plain || !guards.enabled(OverrideGuard::Indexes) { step.parse().ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::Operation;
    use crate::overrides::guards::OverrideGuards;
    use serde_json::{Value, json};

    fn run(operation: Value, object: &Value) -> Result<Value, String> {
        let mut object = object.clone();
        Operation::parse(operation, OverrideGuards::ALL)?.run(&mut object, OverrideGuards::ALL).map(|()| object)
    }

    #[test]
    fn an_index_equal_to_the_length_of_a_list_is_only_for_adding() {
        let object = json!({"list": [1, 2], "empty": []});
        for path in ["/list/2", "/list/3", "/empty/0", "/list/-"] {
            let missing = Err(format!("{path} does not exist"));
            assert_eq!(run(json!({"op": "remove", "path": path}), &object), missing);
            assert_eq!(run(json!({"op": "replace", "path": path, "value": 3}), &object), missing);
            assert_eq!(run(json!({"op": "test", "path": path, "value": 3}), &object), missing);
            assert_eq!(run(json!({"op": "move", "from": path, "path": "/x"}), &object), missing);
            assert_eq!(run(json!({"op": "copy", "from": path, "path": "/x"}), &object), missing);
        }
        assert_eq!(
            run(json!({"op": "remove", "path": "/list/1"}), &object),
            Ok(json!({"list": [1], "empty": []})),
            "the last item"
        );
        assert_eq!(
            run(json!({"op": "add", "path": "/list/2", "value": 3}), &object),
            Ok(json!({"list": [1, 2, 3], "empty": []}))
        );
        assert!(run(json!({"op": "add", "path": "/list/3", "value": 3}), &object).is_err());
    }

    #[test]
    fn nothing_is_moved_into_itself() {
        let object = json!({"list": [{"a": 1}, {"b": 2}], "map": {"deep": {}}});
        let moved = |from: &str, path: &str| run(json!({"op": "move", "from": from, "path": path}), &object);
        // Without the first item, the path would lead into the second one.
        assert_eq!(moved("/list/0", "/list/0/x"), Err("/list/0 cannot be moved into itself".into()));
        assert_eq!(moved("/list/0", "/list/0"), Ok(object.clone()), "it is there already");
        let below = json!({"list": [{"b": 2}], "map": {"deep": {"x": {"a": 1}}}});
        assert_eq!(moved("/list/0", "/map/deep/x"), Ok(below), "a longer path");
        let above = json!({"list": [{"a": 1}, {"b": 2}], "map": {}, "x": {}});
        assert_eq!(moved("/map/deep", "/x"), Ok(above), "a shorter path");
    }
}
