//! What would be done to each object, and the difference that it makes: a dry run where the server allows it, else a comparison here.

use super::managed::{Managed, Policy};
use super::previews::is_about_the_dry_run;
use super::writes::Preview;
use super::{Core, Previews};
use crate::decide::{Observed, Remembered, decide, is_stamp};
use crate::decision::{Decision, PendingWrite, Verdict};
use crate::documents::DocumentEdits;
use crate::gated::Approvals;
use crate::notice::ObjectNotice;
use crate::plan::{Operation, Source};
use crate::removal::{Removal, decide_removal};
use crate::status::ObjectState;
use api::annotation;
use change::gate::{Conditions, PoolState};
use change::now::later;
use change::{
    Approval, Consent, Difference, Digest, Edit, Effect, Entry, Impact, Key, Live, Maintenance, ManagedFields,
    Manifest, Planned, Precondition, Reason, Restarts, Shown, Window, content, diff,
};
use jiff::Timestamp;
use protocol::{Command, WatchTarget, WriteError};
use serde_json::{Value, json};
use std::time::Duration;

/// An object that has changed so often during one evaluation is compared here.
const MOST_STALE: u32 = 3;

/// Times in managedFields are in seconds, and clocks differ a little.
const JUST_NOW: Duration = Duration::from_secs(3);

/// What would be done to one object.
#[derive(Debug)]
pub(crate) struct Intent {
    pub(crate) operation: Operation,
    /// Whether it goes ahead because a person approved it.
    pub(crate) is_approved: bool,
    pub(crate) stage: Stage,
    wanted: Option<Digest>,
    /// The version that it was decided for.
    version: Option<String>,
    /// The object that would be applied.
    applied: Option<Manifest>,
    /// Who owns which field after we have given up ignored ones, whose values stay.
    released: Option<ManagedFields>,
    /// Whether nothing is known to differ: one apply after a start usually changes nothing.
    is_quiet: bool,
    /// Whether it waits, so that it does not count as done.
    pub(crate) is_held: bool,
    stale: u32,
}

/// How far the difference is known.
#[derive(Debug)]
pub(crate) enum Stage {
    /// A dry run is on its way.
    Sent,
    /// The server's answer, which waits for the content of the object as it is.
    Answered(Box<Value>),
    /// There was none, for this reason; the content of the object as it is decides.
    Unanswered(String),
    /// The server refuses it.
    Refused(String),
    /// Nothing would change.
    Unchanged,
    /// It is known.
    Done(Findings),
}

/// The difference that a write makes.
#[derive(Debug)]
pub(crate) struct Findings {
    pub(crate) diff: Vec<Difference>,
    pub(crate) source: Source,
    pub(crate) digest: Digest,
}

/// A write, and what is given up before it.
struct Intended {
    effect: Effect,
    write: PendingWrite,
    notice: Option<ObjectNotice>,
    approval: Option<u32>,
    released: Option<ManagedFields>,
    /// What has to be known before it can be told what is written after that.
    missing: Option<Verdict>,
}

impl Core {
    /// Takes what was decided about an object, and finds out what difference it makes.
    pub(super) fn intend(&mut self, key: &Key, decision: &Decision) {
        let mut intended = self.intended(key, decision);
        match intended.as_mut().and_then(|intended| intended.missing.take()) {
            Some(Verdict::Inspect) => self.inspect(key),
            Some(Verdict::Estimate) => self.request_estimate(key),
            _ => {}
        }
        let served = self.watches.served(&WatchTarget::of(key));
        let Some(object) = self.objects.get_mut(key) else { return };
        let Some(Intended { effect, write, notice, approval, released, .. }) = intended else {
            // An apply that only records something is made, although nothing follows it.
            let is_recorded = decision.verdict == Verdict::InSync && object.remembered.is_some();
            object.intent = object.intent.take().filter(|_| is_recorded);
            return;
        };
        let operation = operation_of(&effect, &write, notice.as_ref());
        let wanted = match &write {
            PendingWrite::Apply { digest, .. } => Some(*digest),
            _ => None,
        };
        let version = object.live().map(|live| live.resource_version.clone());
        let is_held = matches!(decision.verdict, Verdict::Hold(_));
        let before = object.intent.as_ref();
        if before
            .is_some_and(|intent| (intent.operation, intent.wanted) == (operation, wanted) && intent.version == version)
        {
            return;
        }
        let stale = before.map_or(0, |intent| intent.stale);
        let applied = match &effect {
            Effect::Apply { object, .. } => Some(object.clone()),
            _ => None,
        };
        let stage = match (&applied, served.is_some()) {
            (Some(_), true) => Stage::Sent,
            (Some(_), false) => Stage::Unanswered("its kind is not watched".to_owned()),
            (None, _) => Stage::Done(Findings {
                diff: edits_of_documents(object, &write),
                source: Source::None { why: None },
                digest: Digest::of(&json!({
                    "object": key,
                    "uid": object.live().map(|live| live.uid.as_str()),
                    "operation": operation,
                })),
            }),
        };
        let (is_quiet, is_approved) = (object.state == ObjectState::InSync, approval.is_some());
        let intent =
            Intent { operation, is_approved, stage, wanted, version, applied, released, is_quiet, is_held, stale };
        object.intent = Some(Box::new(intent));
        if let (Some(digest), Some(served)) = (wanted, served) {
            object.writes.preview = Some(Preview { digest, refused: None });
            self.objects.write_started(key, self.now.monotonic);
            self.commands.push(Command::Preview { key: key.clone(), served, effect });
        }
        self.compare(key, None);
    }

    /// The write that was decided on, or would be if nobody had to be waited for.
    fn intended(&self, key: &Key, decision: &Decision) -> Option<Intended> {
        let allowed;
        let decision = match &decision.verdict {
            Verdict::Hold(
                Reason::NeedsApproval { .. }
                | Reason::ManyDeletions { .. }
                | Reason::PoolNotReady { .. }
                | Reason::WindowClosed { .. },
            ) => {
                allowed = self.once_allowed(key)?;
                &allowed
            }
            _ => decision,
        };
        let Verdict::Write(effect, write) = &decision.verdict else { return None };
        let mut intended = Intended {
            effect: effect.clone(),
            write: *write,
            notice: decision.notice.clone(),
            approval: decision.approval,
            released: None,
            missing: None,
        };
        if let (PendingWrite::Release, Effect::JsonPatch { patch }) = (write, effect)
            && let Some((after, released)) = self.after_release(key, patch)
        {
            match after.verdict {
                Verdict::Write(effect, write) => {
                    let (notice, approval) = (after.notice, after.approval);
                    intended = Intended { effect, write, notice, approval, released: Some(released), missing: None };
                }
                verdict => intended.missing = Some(verdict),
            }
        }
        Some(intended)
    }

    /// What is decided once a person has approved it, the pool is healthy and a window is open.
    fn once_allowed(&self, key: &Key) -> Option<Decision> {
        let object = self.objects.get(key)?;
        let policy = self.policy(key);
        // The digest does not matter here, so it can be made of anything.
        let state = policy.approvals.state.or(Some("none"));
        let policy = Policy { approvals: Approvals { state, ..policy.approvals }, ..policy };
        // They are shown elsewhere.
        let restarts = Restarts::default();
        let mut consent: Consent = policy.consent.clone();
        for _ in 0..2 {
            let (pool, window, maintenance) = (PoolState::Ready, Window::Open, &Maintenance::Always);
            let conditions = Conditions { consent: &consent, pool, window, maintenance };
            let decision = match object.removal {
                None => decide(&Observed { conditions, ..object.observed(policy, &restarts) }, self.now),
                Some(cause) => {
                    let removal = object.removal_of(cause, policy, &restarts, None);
                    decide_removal(&Removal { conditions, ..removal }, self.now)
                }
            };
            match &decision.verdict {
                Verdict::Hold(reason) => {
                    consent.approved.insert(*reason.asked()?);
                }
                _ => return Some(decision),
            }
        }
        None
    }

    /// What is decided once ignored fields are given up, and who owns which field then.
    fn after_release(&self, key: &Key, patch: &Value) -> Option<(Decision, ManagedFields)> {
        let object = self.objects.get(key)?;
        let live = object.live()?;
        let step = patch
            .as_array()?
            .iter()
            .find(|step| step["path"].as_str().is_some_and(|path| path.contains("managedFields")))?;
        let mut entries = live.managed_fields.value();
        let at = step["path"].as_str()?.strip_prefix("/metadata/managedFields")?;
        *entries.pointer_mut(at)? = step["value"].clone();
        let after = Live { managed_fields: ManagedFields::new(&entries.to_string()), ..live.clone() };
        let outlook = self.outlook(key);
        let policy = Policy { outlook: outlook.as_ref(), ..self.policy(key) };
        let restarts = Restarts::default();
        let decision = decide(&Observed { live: Some(&after), ..object.observed(policy, &restarts) }, self.now);
        Some((decision, after.managed_fields))
    }

    /// Takes the answer to a dry run; returns it if the server refuses the write.
    pub(super) fn planned(&mut self, key: &Key, result: Result<Value, WriteError>) -> Option<WriteError> {
        let object = self.objects.get_mut(key)?;
        let is_ours = object.live().is_some_and(|live| live.labelled);
        let intent = object.intent.as_mut().filter(|intent| matches!(intent.stage, Stage::Sent))?;
        intent.stage = match result {
            Ok(answer) => Stage::Answered(Box::new(answer)),
            Err(WriteError::Stale(_)) if intent.stale < MOST_STALE => {
                // It is decided about again, and so is the difference.
                (intent.stale, intent.version) = (intent.stale + 1, None);
                self.refetch(key);
                return None;
            }
            Err(WriteError::Refused { code, message, .. }) if is_about_the_dry_run(code, &message) => {
                Stage::Unanswered(match code {
                    401 | 403 => format!("you may not patch {}", key.kind.kind),
                    _ => message,
                })
            }
            Err(WriteError::KeyChanged { .. }) if is_ours => Stage::Unanswered(
                "the API server refuses it until a list in it is repaired, which comes first".to_owned(),
            ),
            Err(WriteError::Refused { ref message, .. } | WriteError::KeyChanged { ref message, .. }) => {
                intent.stage = Stage::Refused(message.clone());
                return result.err();
            }
            Err(error) => Stage::Unanswered(error.to_string()),
        };
        self.compare(key, None);
        None
    }

    /// Takes the content of an object as it is, or why it could not be read.
    pub(super) fn show_content(&mut self, key: &Key, content: Result<&Value, &str>) {
        if self.config.previews != Previews::Diff {
            return;
        }
        if let (Some(object), Ok(content)) = (self.objects.get_mut(key), content) {
            object.content = Some(Box::new(content.clone()));
        }
        self.compare(key, content.err());
    }

    /// Finds out the difference, as soon as everything for it is known.
    fn compare(&mut self, key: &Key, unreadable: Option<&str>) {
        let Some(object) = self.objects.get_mut(key) else { return };
        let Some(intent) = &object.intent else { return };
        let live = object.live();
        let version = live.map(|live| live.resource_version.as_str());
        let content = object.content.as_deref();
        let content = content.filter(|content| content["metadata"]["resourceVersion"].as_str() == version);
        let stage = match &intent.stage {
            Stage::Answered(answer) if live.is_some_and(|live| is_unchanged(live, answer, self.now.wall)) => {
                Stage::Unchanged
            }
            Stage::Answered(answer) if content.is_some_and(|content| *content == **answer) => Stage::Unchanged,
            Stage::Unanswered(_) if intent.is_quiet => Stage::Unchanged,
            Stage::Answered(_) | Stage::Unanswered(_)
                if live.is_some() && content.is_none() && unreadable.is_none() =>
            {
                return self.inspect(key);
            }
            Stage::Answered(_) | Stage::Unanswered(_) => Stage::Done(findings(object, intent, content, unreadable)),
            Stage::Sent | Stage::Refused(_) | Stage::Unchanged | Stage::Done(_) => return,
        };
        // What follows an apply that changes nothing is decided as if it had been made.
        let changes_nothing = match &stage {
            Stage::Unchanged => true,
            Stage::Done(found) => {
                intent.operation == Operation::Change && found.diff.is_empty() && unreadable.is_none()
            }
            _ => false,
        };
        let follows = changes_nothing && !intent.is_held && !object.object.documents.is_empty();
        let remembered = follows.then(|| remembered(object, intent)).flatten();
        if let Some(intent) = &mut object.intent {
            intent.stage = stage;
        }
        if remembered.is_some() {
            object.remembered = remembered;
            self.enqueue(key);
        }
    }
}

fn operation_of(effect: &Effect, write: &PendingWrite, notice: Option<&ObjectNotice>) -> Operation {
    match (write, notice) {
        (PendingWrite::Apply { .. }, Some(ObjectNotice::Adopted { .. })) => Operation::Adopt,
        (PendingWrite::Apply { .. }, Some(ObjectNotice::TakenOver { .. } | ObjectNotice::TakenBack { .. })) => {
            Operation::TakeOver
        }
        (PendingWrite::Apply { .. }, _) => match effect {
            Effect::Apply { precondition: Precondition::Absent, .. } => Operation::Create,
            _ => Operation::Change,
        },
        (PendingWrite::Delete, _) => Operation::Delete,
        (PendingWrite::HandBack, _) => Operation::HandBack,
        (PendingWrite::Annotate { .. }, _) => Operation::Pause,
        (PendingWrite::EditDocuments { .. } | PendingWrite::Repair { .. }, _) => Operation::Change,
        (PendingWrite::Release, _) => Operation::Record,
    }
}

/// Whether the server's answer is known to be the object as it is, without its content: any change shows in managedFields, at least as
/// another time, unless the last one was made in the same second.
fn is_unchanged(live: &Live, answer: &Value, now: Timestamp) -> bool {
    let metadata = &answer["metadata"];
    let is_same = |key: &&str| metadata["annotations"][*key].as_str() == live.annotations.get(*key).map(String::as_str);
    let claim = live.managed_fields.entries();
    let written: Option<Timestamp> = Entry::ours(&claim, api::FIELD_MANAGER).and_then(|entry| entry.time.parse().ok());
    written.is_some_and(|written| later(written, JUST_NOW) < now)
        && annotation::OURS.iter().all(is_same)
        && live.managed_fields.value() == metadata["managedFields"]
}

/// The keys that are set in documents. What they are may be secret.
fn edits_of_documents(object: &Managed, write: &PendingWrite) -> Vec<Difference> {
    let edits = object.inspected.as_ref().and_then(|inspected| inspected.documents.as_ref().ok());
    let keys = edits.filter(|_| matches!(write, PendingWrite::EditDocuments { .. })).map(DocumentEdits::keys);
    let edit = || Edit::Changed { before: Shown::Redacted, after: Shown::Redacted };
    keys.into_iter().flatten().map(|key| Difference { path: key.clone(), edit: edit() }).collect()
}

fn remembered(object: &Managed, intent: &Intent) -> Option<Remembered> {
    let live = object.live()?;
    let claim = live.managed_fields.claim(api::FIELD_MANAGER).unwrap_or_default();
    Some(Remembered { digest: intent.wanted?, claim, beside: None, uid: live.uid.clone(), origin: None })
}

fn findings(object: &Managed, intent: &Intent, content: Option<&Value>, unreadable: Option<&str>) -> Findings {
    let key = &object.object.key;
    let applied = intent.applied.as_ref().map(Manifest::value).unwrap_or_default();
    let live = object.live();
    let owners = intent.released.as_ref().or(live.map(|live| &live.managed_fields));
    let claim = owners.and_then(|owners| owners.claim(api::FIELD_MANAGER)).unwrap_or_default();
    let removed: Vec<String> = claim.fields().beyond(&applied).paths().filter(|path| !is_stamp(path)).collect();
    let content = content.map(|content| {
        let mut content = content.clone();
        if let Some(released) = &intent.released {
            content["metadata"]["managedFields"] = released.value();
        }
        content
    });
    let content = content.as_ref();
    // An object that exists is compared with its content.
    let is_known = live.is_none() || content.is_some();
    let (diff, source) = match &intent.stage {
        Stage::Answered(answer) if is_known => (diff::of_answer(content, answer, api::FIELD_MANAGER), Source::Server),
        Stage::Unanswered(why) if is_known => {
            (diff::of_wanted(content, &applied, &removed), Source::Local { why: why.clone() })
        }
        _ => (Vec::new(), Source::None { why: unreadable.map(|why| format!("it could not be read: {why}")) }),
    };
    let planned = match (live, content) {
        (None, _) => Planned::Create,
        (Some(_), content) => {
            let mut changes = content
                .map(|content| content::changes(&applied, content, object.object.impact == Impact::High))
                .unwrap_or_default();
            changes.0.retain(|change| !is_stamp(&change.path));
            Planned::Change { changes, removed }
        }
    };
    let uid = live.map(|live| live.uid.as_str());
    let digest = Approval { key, uid, wanted: intent.wanted.as_ref(), planned: &planned, count: None }.digest();
    Findings { diff, source, digest }
}
