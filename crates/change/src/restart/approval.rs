//! What a person approves: one write or deletion of one object, once.

use crate::object::digest::Digest;
use crate::object::key::Key;
use crate::reason::Planned;
use serde_json::{Value, json};

/// What a person is asked to approve. Whatever of it changes makes it another question.
#[derive(Debug, Clone, Copy)]
pub struct Approval<'a> {
    /// The object.
    pub key: &'a Key,
    /// The uid of the object that exists.
    pub uid: Option<&'a str>,
    /// The digest of what is wanted of it; `None` for a deletion.
    pub wanted: Option<&'a Digest>,
    /// What would be done.
    pub planned: &'a Planned,
    /// The uid of the ConfigMap that counts the used approvals of this object, and its count: none can be used twice, also not after the
    /// ConfigMap was lost. `None` for a deletion, because no object has the same uid later.
    pub count: Option<(&'a str, u32)>,
}

impl Approval<'_> {
    /// The digest that the person names.
    pub fn digest(&self) -> Digest {
        let Key { kind, namespace, name } = self.key;
        let (operation, changes) = match self.planned {
            Planned::Create => ("create", Vec::new()),
            Planned::Delete => ("delete", Vec::new()),
            Planned::Change { changes, removed } => {
                let changed = changes.0.iter().map(|change| json!([change.path, change.digest]));
                ("change", changed.chain(removed.iter().map(|path| json!(path))).collect::<Vec<Value>>())
            }
        };
        Digest::of(&json!({
            "object": [kind.group, kind.kind, namespace, name],
            "uid": self.uid,
            "wanted": self.wanted,
            "operation": operation,
            "changes": changes,
            "count": self.count,
        }))
    }
}

#[cfg(test)]
mod tests {
    use super::Approval;
    use crate::content::changes;
    use crate::object::digest::Digest;
    use crate::object::key::{Key, Kind};
    use crate::reason::Planned;
    use serde_json::json;
    use std::collections::BTreeSet;

    #[test]
    fn another_object_incarnation_difference_or_use_is_another_question() {
        let key = |name: &str| Key { kind: Kind::new("v1", "X"), namespace: "n".into(), name: name.into() };
        let (one, two) = (key("one"), key("two"));
        let [wanted, other] = [1, 2].map(|number| Digest::of(&json!(number)));
        let change = |before: i64, removed: &[&str]| Planned::Change {
            changes: changes(&json!({"spec": 1}), &json!({"spec": before}), true),
            removed: removed.iter().map(|path| (*path).to_owned()).collect(),
        };
        let (from_2, from_3, removing) = (change(2, &[]), change(3, &[]), change(2, &[".spec.a"]));
        let base =
            Approval { key: &one, uid: Some("u"), wanted: Some(&wanted), planned: &from_2, count: Some(("s", 0)) };
        let questions = [
            base,
            Approval { key: &two, ..base },
            Approval { uid: Some("v"), ..base },
            Approval { uid: None, ..base },
            Approval { wanted: Some(&other), ..base },
            Approval { wanted: None, ..base },
            Approval { planned: &from_3, ..base },
            Approval { planned: &removing, ..base },
            Approval { planned: &Planned::Create, ..base },
            Approval { planned: &Planned::Delete, ..base },
            Approval { count: Some(("s", 1)), ..base },
            Approval { count: Some(("t", 0)), ..base },
            Approval { count: None, ..base },
        ];
        let digests: BTreeSet<Digest> = questions.iter().map(Approval::digest).collect();
        assert_eq!(digests.len(), questions.len());
        assert_eq!(base.digest(), Approval { key: &key("one"), ..base }.digest());
    }
}
