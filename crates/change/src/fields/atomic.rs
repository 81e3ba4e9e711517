//! Fields that have one owner as a whole, such as a Service's selector: nothing below them can be left to somebody else.

use crate::fields::entry::Entry;
use crate::fields::field_set::FieldSet;
use crate::fields::pointer::Pointer;
use serde_json::Value;

/// Why a field below another cannot be left to somebody else.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Atomic {
    /// The field around it has one owner.
    Whole(Pointer),
    /// Nobody tells whether the field around it has one owner: we do not own it, and nobody owns a part of it.
    Unknown(Pointer),
}

/// The field around a pointer that has, or may have, one owner. `wanted` is the object that would be applied: a field around the pointer
/// that it does not have is not touched.
pub fn around(pointer: &Pointer, wanted: &Value, entries: &[Entry], manager: &str) -> Option<Atomic> {
    let nothing = FieldSet::default();
    let ours = Entry::ours(entries, manager).map_or(&nothing, |entry| &entry.fields);
    let at = |set: &FieldSet, length: usize| set.at(pointer.steps()[..length].iter().map(String::as_str)).cloned();
    let mut around = (1..pointer.steps().len()).map(|length| (length, at(ours, length)));
    around.find_map(|(length, owned)| {
        let field = || Pointer::from_steps(pointer.steps()[..length].to_vec());
        let has_parts = |entry: &Entry| at(&entry.fields, length).is_some_and(|set| !set.fields.is_empty());
        let can_be_shared = has_labels(&pointer.steps()[..length]) || entries.iter().any(has_parts);
        match owned {
            _ if can_be_shared => None,
            // Or it is a map that we wanted empty: then somebody else who has a part of it would tell.
            Some(owned) if owned.is_whole() => Some(Atomic::Whole(field())),
            Some(_) => None,
            None => wanted.pointer(&field().to_string()).is_some().then(|| Atomic::Unknown(field())),
        }
    })
}

/// The same in every kind.
fn has_labels(steps: &[String]) -> bool {
    match steps {
        [metadata] => metadata == "metadata",
        [metadata, labels] => metadata == "metadata" && (labels == "labels" || labels == "annotations"),
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::{Atomic, around};
    use crate::fields::entry::Entry;
    use crate::fields::pointer::Pointer;
    use serde_json::{Value, json};

    fn told(ours: &Value, theirs: &Value, pointer: &str) -> String {
        let entry = |manager: &str, operation: &str, spec: &Value| json!({"manager": manager, "operation": operation, "fieldsV1": {"f:spec": spec}});
        let entries = Entry::all(&json!([entry("us", "Apply", ours), entry("kubectl", "Update", theirs)]));
        let wanted = json!({"metadata": {"labels": {"a": "b"}, "annotations": {"a": "b"}},
            "spec": {"type": "A", "selector": {"app": "x"}, "labels": {"app": "x"}, "more": {"a/b": 1, "c": 2}}});
        match around(&Pointer::parse(pointer).unwrap(), &wanted, &entries, "us") {
            None => "parts".to_owned(),
            Some(Atomic::Whole(field)) => format!("whole {field}"),
            Some(Atomic::Unknown(field)) => format!("unknown {field}"),
        }
    }

    #[test]
    fn a_field_that_we_own_as_a_whole_has_one_owner() {
        let ours = json!({"f:selector": {}, "f:more": {"f:a/b": {}}});
        assert_eq!(told(&ours, &json!({}), "/spec/selector/app"), "whole /spec/selector");
        assert_eq!(told(&ours, &json!({}), "/spec/selector"), "parts");
        assert_eq!(told(&ours, &json!({}), "/spec/more/a~1b"), "parts");
        let items = json!({"f:more": {"k:{\"name\":\"a\"}": {}}});
        assert_eq!(told(&items, &json!({}), "/spec/more/c"), "parts", "a list has items");
    }

    #[test]
    fn of_a_field_that_we_do_not_own_another_owner_tells() {
        let ours = json!({"f:type": {}});
        assert_eq!(told(&ours, &json!({"f:more": {"f:a/b": {}}}), "/spec/more/c"), "parts");
        assert_eq!(told(&ours, &json!({"f:selector": {}}), "/spec/selector/mine"), "unknown /spec/selector");
        assert_eq!(told(&ours, &json!({}), "/spec/selector/mine"), "unknown /spec/selector", "nobody owns it");
        assert_eq!(told(&ours, &json!({}), "/spec/none/x"), "parts", "it is not written");
        assert_eq!(told(&json!({}), &json!({"f:more": {}}), "/metadata/labels/x"), "parts", "as in every kind");
        assert_eq!(told(&json!({}), &json!({"f:more": {}}), "/metadata/annotations/x"), "parts", "as in every kind");
        assert_eq!(told(&ours, &json!({}), "/spec/labels/x"), "unknown /spec/labels", "other labels");
    }
}
