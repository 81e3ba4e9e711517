//! Which phase may follow which, and what makes it so.

use super::events::Cause;
use api::advisor::Phase::{
    self, Completed, CompletedWithErrors, CompletedWithUpgrade, Drafting, Drifted, Failed, Ignored, InProgress,
    Pending, PrerequisiteFailed, ReviewRequired,
};
use std::collections::{BTreeMap, BTreeSet};

/// The published phases.
pub(super) const PHASES: [Phase; 11] = [
    Pending,
    Drafting,
    PrerequisiteFailed,
    ReviewRequired,
    InProgress,
    Completed,
    CompletedWithErrors,
    CompletedWithUpgrade,
    Failed,
    Drifted,
    Ignored,
];

/// The phases that may follow one, by what makes it so.
const LAWFUL: &[(Cause, Phase, &[Phase])] = &[
    // Somebody edits the spec.
    (Cause::Spec, Pending, &[Ignored]),
    (Cause::Spec, Drafting, &[Ignored]),
    (Cause::Spec, PrerequisiteFailed, &[Ignored]),
    (Cause::Spec, ReviewRequired, &[InProgress, Completed, CompletedWithUpgrade, Failed, Drifted, Ignored]),
    (Cause::Spec, InProgress, &[ReviewRequired, Completed, Drifted, Ignored]),
    (Cause::Spec, Completed, &[ReviewRequired, InProgress, Drifted, Ignored]),
    (Cause::Spec, CompletedWithErrors, &[ReviewRequired, Drifted, Ignored]),
    (Cause::Spec, CompletedWithUpgrade, &[ReviewRequired, InProgress, Drifted, Ignored]),
    (Cause::Spec, Failed, &[ReviewRequired, InProgress, Completed, Drifted, Ignored]),
    (Cause::Spec, Drifted, &[ReviewRequired, InProgress, Completed, Ignored]),
    (
        Cause::Spec,
        Ignored,
        &[
            Pending,
            Drafting,
            PrerequisiteFailed,
            ReviewRequired,
            InProgress,
            Completed,
            CompletedWithUpgrade,
            Failed,
            Drifted,
        ],
    ),
    // Somebody edits objects, an input changes, or another release of the operator wants something else.
    (Cause::World, ReviewRequired, &[InProgress, Completed, CompletedWithUpgrade, Drifted]),
    (Cause::World, InProgress, &[ReviewRequired, CompletedWithUpgrade, Drifted]),
    (Cause::World, Completed, &[ReviewRequired, InProgress, CompletedWithUpgrade, Drifted]),
    (Cause::World, CompletedWithErrors, &[ReviewRequired, Drifted]),
    (Cause::World, CompletedWithUpgrade, &[ReviewRequired, Drifted]),
    (Cause::World, Failed, &[ReviewRequired, InProgress, Drifted]),
    (Cause::World, Drifted, &[ReviewRequired, InProgress, Completed, CompletedWithUpgrade]),
    // A pool changes, somebody pauses an object, or the server begins or ceases to refuse a write.
    (Cause::Waiting, InProgress, &[Completed, CompletedWithErrors, Failed]),
    (Cause::Waiting, CompletedWithErrors, &[InProgress, Completed]),
    (Cause::Waiting, Failed, &[InProgress]),
    // What is known of the cluster changes.
    (
        Cause::Facts,
        Pending,
        &[Drafting, PrerequisiteFailed, ReviewRequired, InProgress, Completed, CompletedWithUpgrade, Failed, Drifted],
    ),
    (
        Cause::Facts,
        Drafting,
        &[Pending, PrerequisiteFailed, ReviewRequired, InProgress, Completed, CompletedWithUpgrade, Failed, Drifted],
    ),
    (
        Cause::Facts,
        PrerequisiteFailed,
        &[Pending, Drafting, ReviewRequired, InProgress, Completed, CompletedWithUpgrade, Failed, Drifted],
    ),
    (Cause::Facts, ReviewRequired, &[Pending, Drafting, PrerequisiteFailed, Failed]),
    (Cause::Facts, InProgress, &[Pending, Drafting, PrerequisiteFailed, Failed]),
    (Cause::Facts, Completed, &[Pending, Drafting, PrerequisiteFailed, Failed]),
    (Cause::Facts, CompletedWithErrors, &[Pending, Drafting, PrerequisiteFailed, Failed]),
    (Cause::Facts, CompletedWithUpgrade, &[Pending, Drafting, PrerequisiteFailed, Failed]),
    (
        Cause::Facts,
        Failed,
        &[Pending, Drafting, PrerequisiteFailed, ReviewRequired, InProgress, Completed, CompletedWithUpgrade, Drifted],
    ),
    (Cause::Facts, Drifted, &[Pending, Drafting, PrerequisiteFailed, Failed]),
    // Time passes: something takes too long, or is tried again.
    (Cause::Time, InProgress, &[CompletedWithErrors, Failed]),
    (Cause::Time, CompletedWithErrors, &[InProgress]),
    (Cause::Time, Failed, &[InProgress]),
    (Cause::Time, Drifted, &[InProgress]),
    // The advisor has written something.
    (Cause::Write, InProgress, &[Completed, CompletedWithErrors, Failed]),
    (Cause::Write, CompletedWithErrors, &[InProgress, Failed]),
    (Cause::Write, Failed, &[InProgress, Completed, CompletedWithErrors]),
];

/// A published phase that follows another one.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Transition {
    pub cause: Cause,
    pub from: Phase,
    pub to: Phase,
}

/// Everything that was seen is lawful, and everything that is lawful was seen.
pub(super) fn check(seen: &BTreeSet<Transition>) {
    let mut lawful = BTreeSet::new();
    for (cause, from, phases) in LAWFUL {
        for to in *phases {
            let is_new = lawful.insert(Transition { cause: *cause, from: *from, to: *to });
            assert!(is_new, "twice in the table: {cause:?}, from {from:?} to {to:?}");
        }
    }
    let unlawful: BTreeSet<Transition> = seen.difference(&lawful).copied().collect();
    let missed: BTreeSet<Transition> = lawful.difference(seen).copied().collect();
    assert!(unlawful.is_empty(), "not in the table of lawful transitions:\n{}", text(&unlawful));
    assert!(missed.is_empty(), "in the table of lawful transitions, and never seen:\n{}", text(&missed));
}

/// Transitions as lines of the table.
pub(super) fn text(transitions: &BTreeSet<Transition>) -> String {
    let mut lines = BTreeMap::<(Cause, Phase), Vec<Phase>>::new();
    for Transition { cause, from, to } in transitions {
        lines.entry((*cause, *from)).or_default().push(*to);
    }
    lines.into_iter().map(|((cause, from), to)| format!("    (Cause::{cause:?}, {from:?}, &{to:?}),\n")).collect()
}
