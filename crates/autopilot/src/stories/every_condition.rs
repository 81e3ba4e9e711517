//! Every combination of what a restart of nodes depends on, each tried on the whole core.

use super::{KERNEL, MINUTE, SECOND, kernel_template, on_request, settled, started};
use crate::testing::bed::{HCO, TestBed};
use crate::testing::pack::Pack;
use serde_json::{Value, json};

const WORKER: &str = "MachineConfigPool worker";
const STALE: &str = "sha256:00000000000000000000000000000000000000000000000000000000000000aa";

/// What the annotation `approval` says.
const POLICIES: [Option<&str>; 3] = [None, Some("none"), Some("nnone")];

/// Which digests are approved.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Approved {
    Nothing,
    Another,
    Asked,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Pool {
    Healthy,
    Updating,
    /// Its status does not show the change of its configuration yet.
    Lagging,
    Degraded,
    Paused,
    PausedAndDegraded,
    /// It cannot be read.
    Unreadable,
}

const WINDOWS: [(Option<&str>, bool); 4] = [
    (None, true),
    (Some("daily 00:00-24:00 UTC"), true),
    (Some("Wed 02:00-04:00 UTC"), false),
    (Some("broken"), false),
];

#[derive(Debug, Clone, Copy, PartialEq)]
enum Change {
    Create,
    /// Another release wants something else.
    Release,
    Delete,
    /// Somebody edits it while it is watched.
    SeenDrift,
    /// Somebody edits it while nobody watches, and no node follows yet.
    UnseenDrift,
    /// Somebody edits it while nobody watches, and the nodes run it by now.
    OldDrift,
    /// Somebody deletes it while it is watched.
    SeenDeletion,
    /// Somebody deletes it while nobody watches, and the nodes run without it by now.
    OldDeletion,
}

impl Change {
    /// Whether the nodes run what it brings back.
    fn is_running(self) -> bool {
        matches!(self, Change::SeenDrift | Change::UnseenDrift | Change::SeenDeletion)
    }

    /// A cluster right before it, and nobody but the story changes its pool.
    fn prepare(self) -> TestBed {
        let pack = Pack::default().asset("kernel", &on_request("kernel"), &kernel_template("quiet"));
        let mut bed = if self == Change::Create { started(&["kernel"]) } else { settled(pack) };
        if self != Change::Create {
            bed.annotate(HCO, "enable-kernel=true");
            bed.settle();
            bed.approve(KERNEL);
            bed.settle();
            bed.roll_out();
            bed.annotate(HCO, "approved-");
            bed.settle();
        }
        bed
    }

    fn happen(self, bed: &mut TestBed) {
        let drift = json!({"spec": {"kernelArguments": ["loud"]}});
        match self {
            Change::Create => {}
            Change::Release => bed.upgrade(|pack| pack.with_template("kernel", &kernel_template("debug"))),
            Change::Delete => bed.annotate(HCO, "enable-kernel-"),
            Change::SeenDrift => bed.edit("kubectl-edit", KERNEL, &drift),
            Change::UnseenDrift => {
                bed.edit("kubectl-edit", KERNEL, &drift);
                bed.restart();
            }
            Change::OldDrift => {
                bed.edit("kubectl-edit", KERNEL, &drift);
                bed.roll_out();
                bed.restart();
            }
            Change::SeenDeletion => bed.delete(KERNEL),
            Change::OldDeletion => {
                bed.delete(KERNEL);
                bed.roll_out();
                bed.restart();
            }
        }
    }

    /// Whether what is wanted has been written.
    fn is_done(self, bed: &TestBed) -> bool {
        let arguments = || bed.value(KERNEL, "/spec/kernelArguments");
        match self {
            Change::Release => arguments() == json!(["debug"]),
            Change::Delete => bed.stored(KERNEL).is_none(),
            _ => arguments() == json!(["quiet"]),
        }
    }
}

impl Pool {
    const ALL: [Pool; 7] = [
        Pool::Healthy,
        Pool::Updating,
        Pool::Lagging,
        Pool::Degraded,
        Pool::Paused,
        Pool::PausedAndDegraded,
        Pool::Unreadable,
    ];

    fn takes_changes(self) -> bool {
        matches!(self, Pool::Healthy | Pool::Paused)
    }

    fn set(self, bed: &mut TestBed) {
        // Nobody else changes it.
        bed.machine_config_operator = None;
        let condition = |kind: &str| -> Value { json!({"status": {"conditions": [{"type": kind, "status": "True"}]}}) };
        let paused = json!({"spec": {"paused": true}});
        let changes = match self {
            Pool::Healthy | Pool::Unreadable => vec![],
            Pool::Updating => vec![condition("Updating")],
            Pool::Lagging => vec![json!({"status": {"configuration": {"name": "rendered-worker-older"}}})],
            Pool::Degraded => vec![condition("Degraded")],
            Pool::Paused => vec![paused],
            Pool::PausedAndDegraded => vec![paused, condition("RenderDegraded")],
        };
        for change in &changes {
            bed.edit("person", WORKER, change);
        }
        let generation = bed.value(WORKER, "/metadata/generation");
        bed.edit("person", WORKER, &json!({"status": {"observedGeneration": generation}}));
        bed.unreadable = (self == Pool::Unreadable).then(|| "MachineConfigPool".to_owned());
    }
}

/// Tries every combination of the other conditions.
fn try_all(change: Change) {
    let (mut states, mut went_ahead) = (0, 0);
    let base = change.prepare();
    for pool in Pool::ALL {
        for (window, is_open) in WINDOWS {
            for policy in POLICIES {
                for approved in [Approved::Nothing, Approved::Another, Approved::Asked] {
                    let mut bed = base.fork(base.config.clone());
                    bed.advance(SECOND);
                    let is_old = matches!(change, Change::OldDrift | Change::OldDeletion);
                    if is_old {
                        change.happen(&mut bed);
                    }
                    pool.set(&mut bed);
                    // What was read before is not fresh any more.
                    bed.advance(SECOND * 6);
                    let annotations = [("maintenance-window", window), ("approval", policy)];
                    for (name, value) in annotations.iter().filter_map(|(name, value)| Some((name, (*value)?))) {
                        bed.annotate(HCO, &format!("{name}={value}"));
                    }
                    if !is_old {
                        change.happen(&mut bed);
                    }
                    bed.advance(SECOND * 3);
                    let asked = bed.asked_digest(KERNEL);
                    let digest = match approved {
                        Approved::Nothing => None,
                        Approved::Another => Some(STALE.to_owned()),
                        Approved::Asked => asked.clone(),
                    };
                    if let Some(digest) = &digest {
                        bed.annotate(HCO, &format!("approved={digest}"));
                    }
                    let lines = bed.advance(MINUTE);
                    let is_agreed = policy == Some("none") || (digest.is_some() && digest == asked);
                    let may_restart = is_agreed && pool.takes_changes() && is_open;
                    let is_free = change.is_running() && pool != Pool::Unreadable;
                    let is_done = change.is_done(&bed);
                    assert_eq!(
                        is_done,
                        may_restart || is_free,
                        "{change:?} {pool:?} {window:?} {policy:?} {approved:?}: {lines}"
                    );
                    states += 1;
                    went_ahead += usize::from(is_done);
                }
            }
        }
    }
    println!("{change:?}: {states} states, in {went_ahead} of which it goes ahead");
    assert_eq!(states, 7 * 4 * 3 * 3);
}

#[test]
fn a_creation_goes_ahead_exactly_if_everything_allows_it() {
    try_all(Change::Create);
}

#[test]
fn a_change_goes_ahead_exactly_if_everything_allows_it() {
    try_all(Change::Release);
}

#[test]
fn a_deletion_goes_ahead_exactly_if_everything_allows_it() {
    try_all(Change::Delete);
}

#[test]
fn an_edit_is_undone_at_once_while_nodes_do_not_run_it() {
    try_all(Change::SeenDrift);
}

#[test]
fn an_edit_that_nobody_saw_is_undone_at_once_while_nodes_do_not_run_it() {
    try_all(Change::UnseenDrift);
}

#[test]
fn an_edit_that_nodes_run_is_undone_exactly_if_everything_allows_it() {
    try_all(Change::OldDrift);
}

#[test]
fn a_deleted_object_is_recreated_at_once_while_nodes_run_it() {
    try_all(Change::SeenDeletion);
}

#[test]
fn a_deleted_object_that_nodes_do_not_run_is_recreated_exactly_if_everything_allows_it() {
    try_all(Change::OldDeletion);
}
