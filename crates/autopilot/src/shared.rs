//! Fields that we and another manager both apply: as long as both want the same value, both own them.

use change::{Changes, Entry, FieldSet};

/// Whether another manager applies a field that we own, too: then an apply of another value would take it away.
pub(crate) fn is_shared(entries: &[Entry]) -> bool {
    let ours = Entry::ours(entries, api::FIELD_MANAGER).map(|entry| entry.fields.clone()).unwrap_or_default();
    others(entries).any(|entry| !entry.fields.common(&ours).is_empty())
}

/// The manager that applies fields which would change, and those fields.
pub(crate) fn contested(changes: &Changes, entries: &[Entry]) -> Option<(String, Vec<String>)> {
    let contested = |fields: &FieldSet| {
        let paths: Vec<String> = fields.paths().collect();
        let overlaps = |changed: &str| paths.iter().any(|path| is_within(path, changed) || is_within(changed, path));
        let changed = changes.0.iter().map(|change| change.path.as_str());
        changed.filter(|changed| overlaps(changed)).map(str::to_owned).collect::<Vec<_>>()
    };
    let mut found = others(entries).map(|entry| (entry.manager.clone(), contested(&entry.fields)));
    found.find(|(_, fields)| !fields.is_empty())
}

fn others(entries: &[Entry]) -> impl Iterator<Item = &Entry> {
    let is_other =
        |entry: &&Entry| entry.applied && entry.subresource.is_empty() && entry.manager != api::FIELD_MANAGER;
    entries.iter().filter(is_other)
}

/// Whether a path equals another or lies below it. Items of one list cannot be told apart: one path names them by key, the other by index.
fn is_within(inner: &str, outer: &str) -> bool {
    let list = |path: &str| path.split('[').next().unwrap_or_default().to_owned();
    let (inner, outer) = (list(inner), list(outer));
    inner.strip_prefix(&outer).is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
}

#[cfg(test)]
mod tests {
    use super::contested;
    use change::{Change, Changes, Digest, Entry};
    use serde_json::json;

    #[test]
    fn only_what_another_manager_applies_is_contested() {
        let entry = |manager: &str, operation: &str| {
            json!({"manager": manager, "operation": operation, "fieldsV1": {"f:data": {"f:a": {}},
                "f:spec": {"f:ports": {"k:{\"port\":1}": {"f:port": {}}}}}})
        };
        let found = |manager: &str, operation: &str, path: &str| {
            let changes = Changes(vec![Change { path: path.into(), values: None, digest: Digest::of(&json!(null)) }]);
            contested(&changes, &Entry::all(&json!([entry(manager, operation)]))).map(|(_, fields)| fields.join(" "))
        };
        assert_eq!(found("gitops", "Apply", ".data.a").as_deref(), Some(".data.a"));
        assert_eq!(found("gitops", "Apply", ".spec.ports[0].name").as_deref(), Some(".spec.ports[0].name"));
        assert_eq!(found("gitops", "Apply", ".data").as_deref(), Some(".data"));
        assert_eq!(found("gitops", "Apply", ".data.ab"), None);
        assert_eq!(found("editor", "Update", ".data.a"), None, "an update is drift");
        assert_eq!(found(api::FIELD_MANAGER, "Apply", ".data.a"), None);
    }
}
