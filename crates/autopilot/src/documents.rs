//! Documents that several people edit: only our keys in them are set, in the version that was read, and nothing else changes.

use crate::budget::Budget;
use crate::decide::{Inspected, Observed, pause};
use crate::decision::{Decision, PendingWrite, Verdict};
use crate::gated::{Gated, Passage};
use crate::notice::ObjectNotice;
use api::annotation;
use catalog::Document;
use change::consent::Needed;
use change::entry::owners;
use change::pointer::Pointer;
use change::{Changes, Corrections, Digest, Effect, Live, Now, Planned, Reason, content};
use serde_json::{Value, json};

/// The documents of an object that have to be edited.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct DocumentEdits {
    /// Where each is, and its new text.
    texts: Vec<(Pointer, String)>,
    /// The keys that are set.
    keys: Vec<String>,
    /// What is wanted of these documents: edits of others in them do not change it.
    wanted: Vec<Value>,
    /// What that changes.
    changes: Changes,
}

impl DocumentEdits {
    /// What has to be edited in an object with this content. A document that a user's override sets or ignores is the user's.
    pub(crate) fn of(
        documents: &[Document],
        ignored: &[Pointer],
        wanted: &Value,
        content: &Value,
    ) -> Result<DocumentEdits, Reason> {
        let mut edits = DocumentEdits::default();
        let is_set = |field: &Pointer| wanted.pointer(&field.to_string()).is_some();
        let is_ignored = |field: &Pointer| ignored.iter().any(|ignored| field.steps().starts_with(ignored.steps()));
        for document in documents.iter().filter(|document| !is_set(&document.field) && !is_ignored(&document.field)) {
            let unreadable = |why| Reason::DocumentUnreadable { field: document.field.to_string(), why };
            if let Some(edited) = document.edited(content).map_err(unreadable)? {
                edits.keys.extend(edited.keys.iter().map(|key| format!("{key} in {}", document.field)));
                edits.texts.push((document.field.clone(), edited.text));
                edits.wanted.push(document.wanted());
            }
        }
        let mut edited = json!({"apiVersion": content["apiVersion"], "kind": content["kind"]});
        edits.texts.iter().for_each(|(field, text)| put(&mut edited, field, text));
        edits.changes = content::changes(&edited, content, false);
        let wanted = edits.digest();
        for change in &mut edits.changes.0 {
            // It may say anything, also what must not be shown. An approval is for our keys, whatever others write beside them.
            (change.values, change.digest) = (None, wanted);
        }
        Ok(edits)
    }

    /// The keys that are set, each with the place of its document.
    pub(crate) fn keys(&self) -> &[String] {
        &self.keys
    }

    fn digest(&self) -> Digest {
        Digest::of(&json!(self.wanted))
    }
}

fn put(object: &mut Value, field: &Pointer, text: &str) {
    *field.steps().iter().fold(object, |below, step| &mut below[step.as_str()]) = json!(text);
}

/// What is wanted of an object, with a place for each of its documents.
pub(crate) fn with_places(mut wanted: Value, documents: &[Document]) -> Value {
    documents.iter().for_each(|document| put(&mut wanted, &document.field, ""));
    wanted
}

impl Inspected {
    /// Whether every document has what is wanted of it.
    pub(crate) fn has_documents(&self) -> bool {
        self.documents.as_ref().is_ok_and(|edits| edits.texts.is_empty())
    }
}

/// Decides about the documents of an object that is in sync otherwise.
pub(crate) fn decide(observed: &Observed<'_>, live: &Live, now: Now) -> Decision {
    let inspected = observed.inspected.filter(|inspected| inspected.resource_version == live.resource_version);
    let edits = match inspected.map(|inspected| &inspected.documents) {
        None => return Decision::of(Verdict::Inspect),
        Some(Err(reason)) => return Decision::hold(reason.clone()),
        Some(Ok(edits)) if edits.texts.is_empty() => return Decision::in_sync(),
        Some(Ok(edits)) => edits,
    };
    let fields = edits.texts.iter().map(|(field, _)| field);
    let (appliers, writers) = owners(fields, &live.managed_fields.entries(), api::FIELD_MANAGER);
    if let Some(manager) = appliers.into_iter().next() {
        return Decision::hold(Reason::OwnedByAnother { manager, fields: edits.keys.clone() });
    }
    let wanted = edits.digest();
    let gated = Gated {
        key: observed.key,
        uid: Some(&live.uid),
        wanted: Some(&wanted),
        planned: Some(Planned::Change { changes: edits.changes.clone(), removed: Vec::new() }),
        approvals: Some(observed.approvals),
        impact: observed.impact,
        restarts: observed.restarts,
        needed: Needed::ApprovalOrPolicy,
        // A change we saw is undone before the nodes follow it.
        changes_nothing: observed.had_documents,
        is_free_if_running: false,
        suspended: observed.suspended,
    };
    let approval = match gated.pass(&observed.conditions) {
        Passage::Free { approval } => approval,
        Passage::Held(held) => return *held,
    };
    let written = live.annotations.get(annotation::BUDGET).map(String::as_str);
    let Some(budget) = Budget::read(written, now.wall).at_most(observed.budget, now.wall).spend(now.wall) else {
        return pause(live, Reason::Fighting { actors: writers, fields: edits.keys.clone() }, now);
    };
    let mut patch = vec![json!({"op": "replace", "path": "/metadata/resourceVersion", "value": live.resource_version})];
    patch.extend(
        edits.texts.iter().map(|(field, text)| json!({"op": "replace", "path": field.to_string(), "value": text})),
    );
    // After a restart only the annotation knows how much budget is left. Without any annotation there may be no place for it.
    if !live.annotations.is_empty() {
        let field = Pointer::of(["metadata", "annotations", annotation::BUDGET]);
        patch.push(json!({"op": "add", "path": field.to_string(), "value": budget.to_string()}));
    }
    let notice = match observed.had_documents {
        true => ObjectNotice::Corrected {
            actors: writers,
            fields: edits.keys.clone(),
            // Documents are not shown.
            values: Corrections::default(),
        },
        false => ObjectNotice::Applied,
    };
    let effect = Effect::JsonPatch { patch: Value::Array(patch) };
    let decision = Decision::write(effect, PendingWrite::EditDocuments { budget }, Some(notice));
    Decision { approval, ..decision }
}
