//! Writes approvals and their records, both annotations in one write, guarded by the version of the HyperConverged.

use super::record::Record;
use super::waiting::{Change, Waiting, digests, word};
use crate::command::evaluation::Evaluation;
use crate::command::target::Reached;
use api::annotation::{APPROVED, APPROVED_BY};
use autopilot::{LineState, ObjectState};
use change::{Consent, Digest};
use cluster::review;
use jiff::Timestamp;
use protocol::WriteError;
use runtime::Clock;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

/// What was written.
pub(super) struct Written {
    /// The user, as the API server knows it.
    pub(super) by: Option<String>,
}

/// Approves these changes. Approvals that were used long ago go with their records; nothing else is lost.
pub(super) fn add(evaluation: &Evaluation, waiting: &Waiting, changes: &[&Change]) -> anyhow::Result<Written> {
    let now = Clock::start().now().wall;
    let finished = finished(waiting, now);
    evaluation.target().with(async |reached| {
        let by = match review::user(&reached.server).await {
            Ok(by) => Some(by),
            Err(why) => {
                eprintln!("warning: could not ask who you are, so it is not recorded who approves: {why}");
                None
            }
        };
        let new: Vec<Record> = changes
            .iter()
            .filter_map(|change| Some((change.digest?, change.word())))
            .map(|(digest, object)| Record::new(digest, now, &object, by.as_deref().unwrap_or_default()))
            .collect();
        let written = reached.change_annotations(|before| Ok(added(before, &new, &finished))).await;
        written.map_err(|error| explain(error, by.as_deref(), &reached))?;
        Ok(Written { by })
    })
}

/// Takes back these approvals, with their records.
pub(super) fn remove(evaluation: &Evaluation, revoked: &BTreeSet<Digest>) -> anyhow::Result<()> {
    evaluation.target().with(async |reached| {
        let written = reached.change_annotations(|before| Ok(without(before, revoked))).await;
        written.map_err(|error| explain(error, None, &reached))?;
        Ok(())
    })
}

fn text<'a>(annotations: &'a Value, name: &str) -> &'a str {
    annotations[name].as_str().unwrap_or_default()
}

/// Recorded approvals that are old, and whose object is as it should be or not wanted. Those without a record are somebody else's.
fn finished(waiting: &Waiting, now: Timestamp) -> BTreeSet<Digest> {
    let is_done = |state: &LineState| match state {
        LineState::Object(state) => matches!(state, ObjectState::InSync | ObjectState::Gone),
        LineState::NotWanted(_) => true,
        LineState::Unclear(_) | LineState::Governed { .. } | LineState::NotApplicable(_) | LineState::Error(_) => false,
    };
    let undone: BTreeSet<String> = waiting
        .core
        .status()
        .iter()
        .filter(|line| !is_done(&line.state))
        .filter_map(|line| line.key.as_ref().map(word))
        .collect();
    let is_asked = |digest: Digest| waiting.changes.iter().any(|change| change.digest == Some(digest));
    let finished = waiting
        .records
        .iter()
        .filter(|record| record.is_old(now) && !is_asked(record.digest) && !undone.contains(&record.object));
    finished.map(|record| record.digest).collect()
}

/// The annotations with new approvals; nothing if they are there already.
fn added(before: &Value, new: &[Record], finished: &BTreeSet<Digest>) -> BTreeMap<String, Option<String>> {
    let approved = digests(text(before, APPROVED));
    let new: Vec<&Record> = new.iter().filter(|record| !approved.contains(&record.digest)).collect();
    if new.is_empty() {
        return BTreeMap::new();
    }
    let mut entries = kept(text(before, APPROVED), finished);
    entries.extend(new.iter().map(|record| record.digest.to_string()));
    let mut lines = kept_records(before, finished);
    lines.extend(new.iter().filter(|record| !record.by.is_empty()).map(ToString::to_string));
    changed(before, &entries, &lines)
}

/// The annotations without these approvals.
fn without(before: &Value, revoked: &BTreeSet<Digest>) -> BTreeMap<String, Option<String>> {
    changed(before, &kept(text(before, APPROVED), revoked), &kept_records(before, revoked))
}

/// The entries of `approved` but these digests, as they are written.
fn kept(approved: &str, gone: &BTreeSet<Digest>) -> Vec<String> {
    let is_gone = |entry: &&str| Digest::parse(entry).is_some_and(|digest| gone.contains(&digest));
    Consent::digests(approved).filter(|entry| !is_gone(entry)).map(str::to_owned).collect()
}

/// The records of approvals that are kept.
fn kept_records(before: &Value, gone: &BTreeSet<Digest>) -> Vec<String> {
    let approved = digests(text(before, APPROVED));
    let records = Record::read(text(before, APPROVED_BY)).into_iter();
    let is_kept = |record: &Record| approved.contains(&record.digest) && !gone.contains(&record.digest);
    records.filter(is_kept).map(|record| record.to_string()).collect()
}

/// What differs; an annotation that becomes empty is removed.
fn changed(before: &Value, entries: &[String], lines: &[String]) -> BTreeMap<String, Option<String>> {
    let after = [(APPROVED, entries.join(",")), (APPROVED_BY, lines.join("\n"))];
    let differs = after.into_iter().filter(|(name, after)| text(before, name) != after);
    differs.map(|(name, after)| (name.to_owned(), Some(after).filter(|after| !after.is_empty()))).collect()
}

/// What to do about a refusal.
fn explain(error: anyhow::Error, by: Option<&str>, reached: &Reached) -> anyhow::Error {
    match error.downcast_ref::<WriteError>() {
        Some(WriteError::Refused { code: 403, message, .. }) => anyhow::anyhow!(
            "{} may not approve, and nothing was changed; ask for the ClusterRole {}-approver, which may patch the annotation {APPROVED} of \
             {}: {message}",
            by.unwrap_or("you"),
            install::NAME,
            reached.key
        ),
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::super::record::Record;
    use super::{added, without};
    use change::Digest;
    use expect_test::expect;
    use serde_json::{Value, json};
    use std::collections::{BTreeMap, BTreeSet};

    fn digest(number: u32) -> Digest {
        Digest::of(&json!(number))
    }

    fn record(number: u32, by: &str) -> Record {
        Record::new(digest(number), "2026-11-21T10:00:00Z".parse().unwrap(), "MachineConfig/x", by)
    }

    /// The annotations, with numbers for the digests.
    fn shown(annotations: &BTreeMap<String, Option<String>>) -> String {
        let mut text = serde_json::to_string_pretty(annotations).unwrap();
        for number in 0..9 {
            text = text.replace(&digest(number).to_string(), &format!("#{number}"));
        }
        text.replace("platform.kubevirt.io/", "").replace(" 2026-11-21T10:00:00Z MachineConfig/x", "")
    }

    fn before() -> Value {
        let records = [record(1, "ada"), record(3, "gone")].map(|record| record.to_string()).join("\n");
        json!({
            "platform.kubevirt.io/approved": format!("{}\n{}, sha256:typo", digest(1), digest(2)),
            "platform.kubevirt.io/approved-by": records,
        })
    }

    #[test]
    fn a_new_approval_is_added_to_all_others_and_a_record_without_one_goes() {
        let none = BTreeSet::new();
        expect![[r##"
            {
              "approved": "#1,#2,sha256:typo,#4,#5",
              "approved-by": "#1 ada\n#4 eve\n#5 eve"
            }"##]]
        .assert_eq(&shown(&added(&before(), &[record(4, "eve"), record(2, "eve"), record(5, "eve")], &none)));
        expect![[r##"
            {
              "approved": "#4"
            }"##]]
        .assert_eq(&shown(&added(&Value::Null, &[record(4, "")], &none)));
        assert!(added(&before(), &[record(1, "eve"), record(2, "eve")], &none).is_empty(), "both are approved");
    }

    #[test]
    fn a_finished_or_revoked_approval_goes_with_its_record() {
        expect![[r##"
            {
              "approved": "#2,sha256:typo,#4",
              "approved-by": "#4 eve"
            }"##]]
        .assert_eq(&shown(&added(&before(), &[record(4, "eve")], &BTreeSet::from([digest(1)]))));
        expect![[r##"
            {
              "approved": "#1,sha256:typo",
              "approved-by": "#1 ada"
            }"##]]
        .assert_eq(&shown(&without(&before(), &BTreeSet::from([digest(2)]))));
        let only = json!({"platform.kubevirt.io/approved": digest(1).to_string(), "platform.kubevirt.io/approved-by": record(1, "ada").to_string()});
        expect![[r#"
            {
              "approved": null,
              "approved-by": null
            }"#]]
        .assert_eq(&shown(&without(&only, &BTreeSet::from([digest(1)]))));
        assert!(without(&only, &BTreeSet::from([digest(2)])).is_empty());
    }
}
