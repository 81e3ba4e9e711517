//! Checks that two objects differ only in fields that users may patch.

use crate::fields::pointer::Pointer;
use crate::overrides::allow::{Allowed, Position, RuleWalk};
use serde_json::Value;

/// Checks every leaf that was changed, added or removed. Maps and lists are checked by their leaves, so the granularity of the change does
/// not matter.
pub(crate) fn judge(before: &Value, after: &Value, allowed: &Allowed) -> Result<(), String> {
    let mut comparison = Comparison { walk: RuleWalk::new(allowed), path: Vec::new() };
    comparison.compare(Some(before), Some(after), RuleWalk::TOP).map_err(|why| {
        let path = comparison.path.iter().map(|step| match step {
            PathStep::Key(key) => (*key).to_owned(),
            PathStep::Index(index) => index.to_string(),
        });
        allowed.refusal(&Pointer::from_steps(path.collect()), why)
    })
}

type Judged = Result<(), Option<&'static str>>;

struct Comparison<'a> {
    walk: RuleWalk<'a>,
    /// The path to the current value; after an error, to the refused leaf.
    path: Vec<PathStep<'a>>,
}

enum PathStep<'a> {
    Key(&'a str),
    Index(usize),
}

impl<'a> Comparison<'a> {
    fn compare(&mut self, before: Option<&'a Value>, after: Option<&'a Value>, position: Position) -> Judged {
        match (before, after) {
            (Some(Value::Object(before)), Some(Value::Object(after))) => {
                for (key, value) in before {
                    self.child(Some(value), after.get(key), position, key)?;
                }
                for (key, value) in after.iter().filter(|(key, _)| !before.contains_key(*key)) {
                    self.child(None, Some(value), position, key)?;
                }
                Ok(())
            }
            (Some(Value::Array(before)), Some(Value::Array(after))) => self.list(before, after, position),
            (before, after) => {
                before.map_or(Ok(()), |value| self.leaves(value, position))?;
                after.map_or(Ok(()), |value| self.leaves(value, position))
            }
        }
    }

    fn child(
        &mut self,
        before: Option<&'a Value>,
        after: Option<&'a Value>,
        position: Position,
        key: &'a str,
    ) -> Judged {
        if before == after {
            return Ok(());
        }
        self.path.push(PathStep::Key(key));
        let below = self.walk.step(position, key);
        self.compare(before, after, below)?;
        self.path.pop();
        Ok(())
    }

    /// An item with another name is another item: if it only kept its place, its unchanged fields would count as its own.
    fn list(&mut self, before: &'a [Value], after: &'a [Value], position: Position) -> Judged {
        for index in 0..before.len().max(after.len()) {
            let (before, after) = (before.get(index), after.get(index));
            if before == after {
                continue;
            }
            self.path.push(PathStep::Index(index));
            if before.and_then(name) == after.and_then(name) {
                let item = self.walk.item(position, before.and_then(name));
                self.compare(before, after, item)?;
            } else {
                for value in before.into_iter().chain(after) {
                    let item = self.walk.item(position, name(value));
                    self.leaves(value, item)?;
                }
            }
            self.path.pop();
        }
        Ok(())
    }

    /// Checks every leaf of a value that only one side has; an empty map or list is a leaf.
    fn leaves(&mut self, value: &'a Value, position: Position) -> Judged {
        match value {
            Value::Object(fields) if !fields.is_empty() => {
                for (key, value) in fields {
                    self.path.push(PathStep::Key(key));
                    let below = self.walk.step(position, key);
                    self.leaves(value, below)?;
                    self.path.pop();
                }
                Ok(())
            }
            Value::Array(items) if !items.is_empty() => self.list(&[], items, position),
            Value::String(text) => self.walk.judge_text(position, text),
            _ => self.walk.judge(position),
        }
    }
}

/// The name of a list item.
fn name(item: &Value) -> Option<&str> {
    item.get("name").and_then(Value::as_str)
}

#[cfg(test)]
mod tests {
    use crate::object::key::{Key, Kind};
    use crate::overrides::allow::{Allowed, PatchableKinds};
    use crate::overrides::guards::OverrideGuards;
    use serde_json::{Value, json};

    fn judge(before: &Value, after: &Value) -> Result<(), String> {
        let key = Key { kind: Kind::new("apps/v1", "DaemonSet"), namespace: "n".into(), name: "d".into() };
        let allowed = Allowed::of(&key, &PatchableKinds::none(), OverrideGuards::ALL).unwrap();
        super::judge(before, after, &allowed)
    }

    #[test]
    fn every_changed_leaf_is_checked_whatever_the_granularity() {
        let pod = |pod: Value| json!({"spec": {"template": {"spec": pod}}});
        let before = pod(json!({"containers": [{"name": "a", "image": "i"}]}));
        let wrong = |after: Value| judge(&before, &after).unwrap_err().split(' ').next().unwrap().to_owned();
        let good = pod(json!({"containers": [{"name": "a", "image": "i", "env": [{"name": "x", "value": "y"}]}]}));
        assert_eq!(judge(&before, &before), Ok(()));
        assert_eq!(judge(&before, &good), Ok(()));
        assert_eq!(judge(&good, &before), Ok(()), "in both directions");
        let secret = json!({"name": "x", "valueFrom": {"secretKeyRef": {"name": "s", "key": "k"}}});
        for (after, path) in [
            (json!({}), "/spec/template/spec/containers/0/image"),
            (json!({"containers": [{"name": "a", "image": "other"}]}), "/spec/template/spec/containers/0/image"),
            (json!({"containers": [{"name": "a", "image": "i"}, {}]}), "/spec/template/spec/containers/1"),
            (
                json!({"containers": [{"name": "a", "image": "i", "env": [secret]}]}),
                "/spec/template/spec/containers/0/env/0/valueFrom/secretKeyRef/key",
            ),
            (json!({"containers": "i"}), "/spec/template/spec/containers/0/image"),
            (json!({"containers": [{"name": "a", "image": "i", "args": []}]}), "/spec/template/spec/containers/0/args"),
        ] {
            assert_eq!(wrong(pod(after)), path);
        }
        assert_eq!(wrong(json!({"spec": null})), "/spec/template/spec/containers/0/image");
    }
}
