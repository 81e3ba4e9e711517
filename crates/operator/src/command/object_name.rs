//! Objects as people name them.

use change::Key;

/// Whether a word names this object: `Kind/name` or `Kind/namespace/name`, with or without the group of the kind; the kind in any case.
pub(super) fn is_object(word: &str, key: &Key) -> bool {
    let is_kind = |kind: &str| {
        let full = format!("{}.{}", key.kind.kind, key.kind.group);
        kind.eq_ignore_ascii_case(&key.kind.kind) || kind.eq_ignore_ascii_case(&full)
    };
    // `status` prints a blank after the kind.
    let parts: Vec<&str> = word.split(['/', ' ']).collect();
    match parts.as_slice() {
        [kind, name] => is_kind(kind) && *name == key.name,
        [kind, namespace, name] => is_kind(kind) && *namespace == key.namespace && *name == key.name,
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use super::is_object;
    use change::{Key, Kind};

    #[test]
    fn an_object_has_several_names() {
        let key = Key { kind: Kind::new("apps/v1", "DaemonSet"), namespace: "n".into(), name: "x".into() };
        for word in ["DaemonSet/x", "daemonset/n/x", "DaemonSet.apps/x", "DaemonSet n/x"] {
            assert!(is_object(word, &key), "{word}");
        }
        for word in ["DaemonSet/X", "DaemonSet/m/x", "DaemonSet.batch/x", "Deployment/x", "x", "DaemonSet/n/x/y"] {
            assert!(!is_object(word, &key), "{word}");
        }
    }
}
