//! The values of fields that are corrected, for one line: as far as they are known, are short and may be shown.

use crate::content::{Change, Changes, is_at_or_below};
use crate::fields::pointer::Pointer;
use crate::fields::redact::{Place, REDACTED};
use crate::object::key::Kind;
use serde_json::Value;
use std::fmt;

/// A longer value says little in a line.
const LONGEST: usize = 40;
/// The server cuts the note of an event after 1,024 characters, and the names of the fields come first.
const MOST: usize = 5;

/// The values of corrected fields, each as text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Corrections(Vec<String>);

impl Corrections {
    /// What these fields become in an object of this kind. Only whoever has read the content knows `changes`, and so what they were.
    pub fn of(kind: &Kind, fields: &[Pointer], wanted: &Value, changes: Option<&Changes>) -> Corrections {
        let texts = fields.iter().flat_map(|field| {
            let path = format!(".{}", field.steps().join("."));
            match changes {
                Some(changes) => {
                    let below = changes.0.iter().filter(|change| is_at_or_below(&change.path, &path));
                    below.filter_map(of_change).collect()
                }
                None => shown(kind, field, wanted)
                    .map(|value| format!("{path} is {value} again"))
                    .into_iter()
                    .collect::<Vec<_>>(),
            }
        });
        Corrections(texts.collect())
    }

    /// What these changes are.
    pub fn of_changes(changes: &Changes) -> Corrections {
        Corrections(changes.0.iter().filter_map(of_change).collect())
    }
}

fn of_change(change: &Change) -> Option<String> {
    let values = change.values.as_ref()?;
    let before = values.before.as_ref().map_or_else(|| Some("nothing".to_owned()), short)?;
    Some(format!("{} {before} -> {}", change.path, short(&values.after)?))
}

/// The wanted value of a field.
fn shown(kind: &Kind, field: &Pointer, wanted: &Value) -> Option<String> {
    let (mut place, mut value) = (Place::top(kind), wanted);
    for step in field.steps() {
        place = place.of(value).field(step);
        value = value.get(step)?;
    }
    short(&place.shown(value)?)
}

/// A value with a part that may not be shown says nothing.
fn short(value: &Value) -> Option<String> {
    Some(value.to_string()).filter(|text| text.chars().count() <= LONGEST && !text.contains(REDACTED))
}

/// Nothing, or the values after a colon.
impl fmt::Display for Corrections {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, text) in self.0.iter().take(MOST).enumerate() {
            write!(f, "{}{text}", if index == 0 { ": " } else { ", " })?;
        }
        if self.0.len() > MOST { write!(f, ", and {} more", self.0.len() - MOST) } else { Ok(()) }
    }
}

#[cfg(test)]
mod tests {
    use super::Corrections;
    use crate::content::changes;
    use crate::fields::pointer::Pointer;
    use crate::object::key::Kind;
    use serde_json::{Value, json};

    fn object(kind: &str, replicas: u32, password: &str) -> Value {
        json!({"apiVersion": "v1", "kind": kind, "spec": {"replicas": replicas, "password": password, "long": format!("{replicas}").repeat(60),
            "selector": {"app": format!("a{replicas}")}, "env": [{"name": "A", "value": password}]}})
    }

    fn fields() -> Vec<Pointer> {
        ["replicas", "password", "long", "selector", "env", "gone"].map(|field| Pointer::of(["spec", field])).into()
    }

    #[test]
    fn values_that_are_short_and_no_secrets_are_shown() {
        let (wanted, live) = (object("X", 1, "hush-one"), object("X", 5, "hush-five"));
        let kind = Kind::new("v1", "X");
        let unread = Corrections::of(&kind, &fields(), &wanted, None).to_string();
        assert_eq!(unread, ": .spec.replicas is 1 again, .spec.selector is {\"app\":\"a1\"} again");
        let read = Corrections::of(&kind, &fields(), &wanted, Some(&changes(&wanted, &live, false))).to_string();
        assert_eq!(read, ": .spec.replicas 5 -> 1, .spec.selector.app \"a5\" -> \"a1\"");
    }

    #[test]
    fn nothing_of_a_secret_is_shown_and_many_values_are_counted() {
        let (wanted, live) = (object("Secret", 1, "hush"), object("Secret", 5, "hush"));
        let kind = Kind::new("v1", "Secret");
        assert_eq!(Corrections::of(&kind, &fields(), &wanted, None).to_string(), "");
        assert_eq!(Corrections::of_changes(&changes(&wanted, &live, false)).to_string(), "");
        let many: Value =
            (0..7).map(|number| (format!("k{number}"), json!(number))).collect::<serde_json::Map<_, _>>().into();
        let found = Corrections::of_changes(&changes(&json!({"data": many}), &json!({"data": {}}), false)).to_string();
        assert!(found.starts_with(": .data.k0 nothing -> 0, ") && found.ends_with(", and 2 more"), "{found}");
    }
}
