//! Whether a write that restarts nodes goes ahead.

use crate::decide::{Inspected, Observed};
use crate::decision::{Decision, Verdict};
use crate::standing::Standing;
use api::annotation;
use change::{Digest, Live, Reason};

/// A write to an object that exists.
pub(crate) struct Write<'a> {
    pub(crate) observed: &'a Observed<'a>,
    pub(crate) live: &'a Live,
    /// The fingerprint of what is written.
    pub(crate) digest: &'a Digest,
    pub(crate) standing: Standing,
    /// Whether the nodes run what is written already.
    pub(crate) runs_so: bool,
    /// What a look at its content said, if that is what there is now.
    pub(crate) looked_at: Option<&'a Inspected>,
}

/// What is done instead of the write; nothing if it goes ahead.
pub(crate) fn instead(write: &Write<'_>) -> Option<Decision> {
    let Write { observed, live, digest, standing, runs_so, looked_at } = write;
    if *runs_so {
        return None;
    }
    if observed.frozen {
        return Some(Decision::hold(Reason::Frozen));
    }
    let applied = live.annotations.get(annotation::APPLIED);
    let is_same_source = live.annotations.get(annotation::SOURCE).is_none_or(|source| source == observed.source);
    // Moving over restarts nothing, from our predecessor and from one version of ours to the next.
    let moves_over = (*standing == Standing::Inherited && applied.is_none()) || !is_same_source;
    let consent = observed.consent;
    if if moves_over { consent.covers_exactly(digest) } else { consent.covers(digest) } {
        return None;
    }
    // Whoever is asked is told what would change.
    let Some(inspected) = looked_at else { return Some(Decision::of(Verdict::Look)) };
    let (restarts, changes) = (observed.restarts.to_owned(), inspected.changes.clone());
    Some(Decision::hold(Reason::NeedsApproval { digest: (*digest).clone(), restarts, changes }))
}
