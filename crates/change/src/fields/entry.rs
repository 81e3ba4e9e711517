//! Who owns which field of an object: the entries of its `managedFields`.

use crate::fields::field_set::FieldSet;
use crate::fields::pointer::Pointer;
use serde::{Deserialize, Deserializer};
use serde_json::Value;
use std::borrow::Cow;

/// One entry of `managedFields`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// The field manager.
    pub manager: String,
    /// Whether the operation was an apply; otherwise it was an update.
    pub applied: bool,
    /// The subresource; empty for the object itself.
    pub subresource: String,
    /// When the entry last changed, as the server writes it.
    pub time: String,
    /// The owned fields.
    pub fields: FieldSet,
}

/// A field manager that applies fields, and which.
pub type Applied = (String, FieldSet);

impl Entry {
    /// Reads all entries of an object's `managedFields`.
    pub fn all(managed_fields: &Value) -> Vec<Entry> {
        Vec::deserialize(managed_fields).unwrap_or_default()
    }

    /// The entry of our applies to the object itself, given our field manager.
    pub fn ours<'a>(entries: &'a [Entry], manager: &str) -> Option<&'a Entry> {
        entries.iter().find(|entry| entry.is_apply_of(manager))
    }

    fn is_apply_of(&self, manager: &str) -> bool {
        self.applied && self.manager == manager && self.subresource.is_empty()
    }
}

impl<'de> Deserialize<'de> for Entry {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Entry, D::Error> {
        #[derive(Default, Deserialize)]
        #[serde(default, rename_all = "camelCase")]
        struct Written {
            manager: String,
            operation: String,
            subresource: String,
            time: String,
            fields_v1: Option<FieldSet>,
        }
        let Written { manager, operation, subresource, time, fields_v1 } = Written::deserialize(deserializer)?;
        let fields = fields_v1.map(FieldSet::at_top).unwrap_or_default();
        Ok(Entry { manager, applied: operation == "Apply", subresource, time, fields })
    }
}

/// The fields that we own.
pub fn owned<'a>(entries: &'a [Entry], manager: &str) -> Cow<'a, FieldSet> {
    let Some(ours) = Entry::ours(entries, manager) else { return Cow::default() };
    let others = entries.iter().filter(|entry| !entry.is_apply_of(manager));
    others.fold(Cow::Borrowed(&ours.fields), |ours, other| match ours.shares_map(&other.fields) {
        true => Cow::Owned(ours.without_shared_maps(&other.fields)),
        false => ours,
    })
}

/// The fields of this object that we do not own.
pub fn missing(object: &Value, entries: &[Entry], manager: &str) -> FieldSet {
    let ours = owned(entries, manager);
    if ours.covers(object) {
        return FieldSet::default();
    }
    ours.missing_of(object, &all(entries))
}

/// The field managers, other than ours, that now own one of the lost fields; the latest writer comes first.
pub fn takers<'a>(lost: &FieldSet, entries: &'a [Entry], manager: &str) -> Vec<&'a str> {
    let mut takers: Vec<&Entry> = entries
        .iter()
        .filter(|entry| entry.manager != manager || !entry.applied)
        .filter(|entry| !lost.held_by(&entry.fields).is_empty())
        .collect();
    takers.sort_by(|one, other| other.time.cmp(&one.time));
    let mut names: Vec<&str> = takers.into_iter().map(|entry| entry.manager.as_str()).collect();
    names.dedup();
    names
}

/// The field manager that applied fields of this object which we do not own, or no longer. An apply by another manager claims ownership, so
/// it is not drift.
pub fn applied_by_another(object: &Value, entries: &[Entry], manager: &str) -> Option<Applied> {
    // Usually there is no other manager that applies.
    first_with_fields(entries, manager, FieldSet::clone)?;
    let ours = owned(entries, manager);
    let missing = ours.missing_or_empty_of(object, &all(entries));
    first_with_fields(entries, manager, |theirs| missing.held_by(theirs))
}

/// The fields that anybody of these owns.
fn all<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> FieldSet {
    entries.into_iter().fold(FieldSet::default(), |all, entry| all.with(&entry.fields))
}

/// The other field managers that apply, and those that wrote, one of these fields; the latest comes first.
pub fn owners<'a>(
    fields: impl Iterator<Item = &'a Pointer>,
    entries: &[Entry],
    manager: &str,
) -> (Vec<String>, Vec<String>) {
    let fields: Vec<&Pointer> = fields.collect();
    let has = |entry: &&Entry, field: &Pointer| entry.fields.at(field.steps().iter().map(String::as_str)).is_some();
    let mut found: Vec<&Entry> = entries
        .iter()
        .filter(|entry| entry.manager != manager && fields.iter().any(|field| has(entry, field)))
        .collect();
    found.sort_by(|one, other| other.time.cmp(&one.time));
    let names = |applied: bool| {
        found.iter().filter(|entry| entry.applied == applied).map(|entry| entry.manager.clone()).collect()
    };
    (names(true), names(false))
}

/// Whether another manager applies a field that we own, too: then only the content tells whether an apply would take it away.
pub fn is_shared(entries: &[Entry], manager: &str) -> bool {
    let Some(ours) = Entry::ours(entries, manager) else { return false };
    first_with_fields(entries, manager, |theirs| ours.fields.common(theirs)).is_some()
}

/// The field manager that applied fields which an apply of ours would change, given the object as it is.
pub fn changed_for_another(wanted: &Value, live: &Value, entries: &[Entry], manager: &str) -> Option<Applied> {
    first_with_fields(entries, manager, |theirs| theirs.differing(wanted, Some(live)))
}

/// A field manager that loses fields to an apply of ours.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Loser {
    /// Its name.
    pub manager: String,
    /// Whether it applies these fields, so that it wants to keep them as they are.
    pub applies: bool,
}

/// All other field managers that own a field which an apply of ours would change, given the object as it is; the latest comes first.
pub fn losers(wanted: &Value, live: &Value, entries: &[Entry], manager: &str) -> Vec<Loser> {
    let loses = |entry: &&Entry| entry.manager != manager && !entry.fields.differing(wanted, Some(live)).is_empty();
    by_manager(entries.iter().filter(loses).collect())
}

/// All other field managers that own anything of an object but its status; the latest comes first.
pub fn others(entries: &[Entry], manager: &str) -> Vec<Loser> {
    let owns = |entry: &&Entry| entry.manager != manager && entry.subresource.is_empty() && !entry.fields.is_empty();
    by_manager(entries.iter().filter(owns).collect())
}

fn by_manager(mut found: Vec<&Entry>) -> Vec<Loser> {
    found.sort_by(|one, other| other.time.cmp(&one.time));
    let mut losers: Vec<Loser> = Vec::new();
    for entry in found {
        match losers.iter_mut().find(|loser| loser.manager == entry.manager) {
            Some(loser) => loser.applies |= entry.applied,
            None => losers.push(Loser { manager: entry.manager.clone(), applies: entry.applied }),
        }
    }
    losers
}

fn first_with_fields(entries: &[Entry], manager: &str, of: impl Fn(&FieldSet) -> FieldSet) -> Option<Applied> {
    let others =
        entries.iter().filter(|entry| entry.applied && entry.manager != manager && entry.subresource.is_empty());
    let mut found = others.map(|entry| (entry, of(&entry.fields)));
    found.find(|(_, fields)| !fields.is_empty()).map(|(entry, fields)| (entry.manager.clone(), fields))
}

#[cfg(test)]
mod tests {
    use super::{Entry, applied_by_another, changed_for_another, is_shared, missing, owners, takers};
    use crate::fields::field_set::FieldSet;
    use crate::fields::pointer::Pointer;
    use serde_json::{Value, json};

    fn entry(manager: &str, operation: &str, spec: &Value) -> Value {
        json!({"manager": manager, "operation": operation, "fieldsV1": {"f:spec": spec}})
    }

    fn paths(found: Option<(String, FieldSet)>) -> Vec<String> {
        found.map(|(_, fields)| fields.paths().collect()).unwrap_or_default()
    }

    #[test]
    fn our_entry_is_the_applied_one_on_the_object_itself() {
        let status =
            json!({"manager": "us", "operation": "Apply", "subresource": "status", "fieldsV1": {"f:status": {}}});
        let entries = Entry::all(&json!([
            status,
            entry("us", "Update", &json!({})),
            entry("us", "Apply", &json!({"f:type": {}}))
        ]));
        let ours = Entry::ours(&entries, "us").unwrap();
        assert_eq!(ours.fields.paths().collect::<Vec<_>>(), [".spec.type"]);
        assert!(Entry::ours(&entries[..2], "us").is_none(), "an update is not an apply");
    }

    #[test]
    fn fields_applied_by_another_manager_are_theirs_and_fields_applied_by_both_are_shared() {
        let wanted = json!({"spec": {"type": "A", "selector": {"app": "x"}}});
        let by = |ours: Value, manager: &str, operation: &str| {
            let entries = json!([entry("us", "Apply", &ours), entry(manager, operation, &json!({"f:type": {}}))]);
            applied_by_another(&wanted, &Entry::all(&entries), "us").map(|(manager, _)| manager)
        };
        let (all, left) = (json!({"f:type": {}, "f:selector": {"f:app": {}}}), json!({"f:selector": {"f:app": {}}}));
        assert_eq!(by(all, "gitops", "Apply"), None, "shared");
        assert_eq!(by(left.clone(), "gitops", "Apply"), Some("gitops".into()));
        assert_eq!(by(left, "editor", "Update"), None, "an update is drift");
        let nothing = json!([{"manager": "gitops", "operation": "Apply", "fieldsV1": {}}]);
        assert_eq!(applied_by_another(&wanted, &Entry::all(&nothing), "us"), None, "an apply of a name owns nothing");
    }

    #[test]
    fn a_map_of_which_somebody_took_all_parts_is_not_ours_as_a_whole() {
        let wanted = json!({"spec": {"ignition": {"version": "1"}, "selector": {"app": "x"}}});
        let ours = json!({"f:ignition": {}, "f:selector": {}});
        let theirs = json!({"f:ignition": {"f:version": {}}});
        let entries = Entry::all(&json!([entry("us", "Apply", &ours), entry("rogue", "Update", &theirs)]));
        assert_eq!(missing(&wanted, &entries, "us").paths().collect::<Vec<_>>(), [".spec.ignition.version"]);
        assert!(missing(&wanted, &entries[..1], "us").is_empty(), "nobody else has a part");
    }

    #[test]
    fn what_another_manager_applies_in_an_item_of_our_list_is_theirs() {
        let wanted = json!({"spec": {"selector": {"app": "x"}, "rules": [{"a": 1}],
            "ports": [{"port": 1, "name": "a", "targetPort": 8}, {"port": 2, "name": "b"}]}});
        let (one, two) = (r#"k:{"port":1,"protocol":"TCP"}"#, r#"k:{"port":2,"protocol":"TCP"}"#);
        let ours = json!({"f:ports": {one: {".": {}, "f:port": {}, "f:name": {}}, two: {".": {}, "f:port": {}, "f:name": {}}}});
        let by = |theirs: Value| {
            let entries = Entry::all(&json!([entry("us", "Apply", &ours), entry("gitops", "Apply", &theirs)]));
            paths(applied_by_another(&wanted, &entries, "us"))
        };
        let theirs = json!({"f:ports": {one: {".": {}, "f:port": {}, "f:targetPort": {}}}});
        assert_eq!(by(theirs), [".spec.ports[port=1,protocol=\"TCP\"].targetPort"]);
        assert_eq!(
            by(json!({"f:ports": {two: {".": {}, "f:port": {}, "f:targetPort": {}}}})),
            [""; 0],
            "not wanted by us"
        );
        assert_eq!(by(json!({"f:ports": {r#"k:{"port":3}"#: {"f:port": {}}}})), [""; 0], "an item of their own");
        // An atomic map or list has one owner.
        assert_eq!(by(json!({"f:selector": {}})), [".spec.selector.app"]);
        assert_eq!(by(json!({"f:rules": {}})), [".spec.rules"]);
    }

    #[test]
    fn of_a_field_that_two_managers_apply_the_content_tells_whether_an_apply_changes_it() {
        let key = |port: i64| format!(r#"k:{{"port":{port},"protocol":"TCP"}}"#);
        let item = json!({".": {}, "f:port": {}, "f:name": {}});
        let both = json!({"f:type": {}, "f:list": {}, "f:ports": {key(1): item}});
        let entries = Entry::all(&json!([entry("us", "Apply", &both), entry("gitops", "Apply", &both)]));
        assert!(is_shared(&entries, "us") && !is_shared(&entries[..1], "us") && !is_shared(&entries[1..], "us"));
        let live = json!({"spec": {"type": "A", "mine": 1, "list": [1], "ports": [
            {"port": 2, "protocol": "TCP", "name": "two"}, {"port": 1, "protocol": "TCP", "name": "one"}]}});
        let changed = |spec: Value| paths(changed_for_another(&json!({"spec": spec}), &live, &entries, "us"));
        let ports = |name: &str| json!([{"port": 1, "name": name}, {"port": 2, "name": "other"}]);
        assert_eq!(changed(json!({"type": "A", "mine": 2, "list": [1], "ports": ports("one")})), [""; 0]);
        let expected = [".spec.list", ".spec.ports[port=1,protocol=\"TCP\"].name", ".spec.type"];
        assert_eq!(changed(json!({"type": "B", "list": [2], "ports": ports("new")})), expected);
        let update = Entry::all(&json!([entry("editor", "Update", &both)]));
        assert!(changed_for_another(&json!({"spec": {"type": "B"}}), &live, &update, "us").is_none(), "drift");
    }

    #[test]
    fn the_manager_that_took_a_lost_field_is_named_and_the_latest_first() {
        let lost = FieldSet::read(&json!({"f:spec": {"f:selector": {}}}));
        let by = |manager: &str, time: &str, field: &str| json!({"manager": manager, "operation": "Update", "time": time, "fieldsV1": {"f:spec": {field: {}}}});
        let entries = json!([by("old", "1", "f:selector"), by("new", "2", "f:selector"), by("other", "3", "f:type")]);
        assert_eq!(takers(&lost, &Entry::all(&entries), "us"), ["new", "old"]);
    }

    #[test]
    fn an_item_that_we_miss_is_named_as_its_owner_names_it() {
        let wanted = json!({"spec": {"ports": [{"port": 1}]}});
        let theirs = json!({"f:ports": {r#"k:{"port":1,"protocol":"TCP"}"#: {".": {}}}});
        let entries = Entry::all(&json!([entry("us", "Apply", &json!({})), entry("them", "Update", &theirs)]));
        let item = ".spec.ports[port=1,protocol=\"TCP\"]";
        assert_eq!(missing(&wanted, &entries, "us").paths().collect::<Vec<_>>(), [item, &format!("{item}.port")]);
    }

    #[test]
    fn owners_of_fields_are_those_who_apply_and_those_who_wrote_and_not_we() {
        let by = |manager: &str, operation: &str, time: &str, field: &str| json!({"manager": manager, "operation": operation, "time": time, "fieldsV1": {"f:spec": {field: {}}}});
        let entries = Entry::all(&json!([
            by("us", "Apply", "9", "f:a"),
            by("gitops", "Apply", "1", "f:a"),
            by("helm", "Apply", "2", "f:b"),
            by("kubectl", "Update", "1", "f:a"),
            by("editor", "Update", "2", "f:a"),
            by("other", "Update", "3", "f:c"),
        ]));
        let fields = ["a", "b"].map(|field| Pointer::of(["spec", field]));
        let (appliers, writers) = owners(fields.iter(), &entries, "us");
        assert_eq!(
            (appliers, writers),
            (vec!["helm".into(), "gitops".into()], vec!["editor".into(), "kubectl".into()])
        );
    }

    // Findings of a hostile review.

    #[test]
    fn a_part_of_a_shared_field_with_one_owner_that_we_drop_is_theirs() {
        let both = json!({"f:selector": {}, "f:rules": {}});
        let entries = Entry::all(&json!([entry("us", "Apply", &both), entry("gitops", "Apply", &both)]));
        let live = json!({"spec": {"selector": {"a": 1, "b": 2}, "rules": [{"a": 1, "b": 2}]}});
        let changed = |spec: Value| paths(changed_for_another(&json!({"spec": spec}), &live, &entries, "us"));
        assert_eq!(changed(json!({"selector": {"a": 1}})), [".spec.selector"]);
        assert_eq!(changed(json!({"rules": [{"a": 1}]})), [".spec.rules"]);
    }

    #[test]
    fn an_empty_value_that_we_want_is_missing_where_another_applies_a_field_with_one_owner() {
        for empty in [json!([]), json!({})] {
            let wanted = json!({"spec": {"list": empty}});
            let entries = Entry::all(&json!([
                entry("us", "Apply", &json!({"f:type": {}})),
                entry("gitops", "Apply", &json!({"f:list": {}}))
            ]));
            assert_eq!(paths(applied_by_another(&wanted, &entries, "us")), [".spec.list"], "{wanted}");
        }
    }
}
