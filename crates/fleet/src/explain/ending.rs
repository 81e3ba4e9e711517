//! Who ends a claim, and what its end waits for.

use super::{Facts, ago, condition, time, whole};
use api::fleet::{CLEANUP_FINALIZER, DRAIN, FORCE_DELETE, Span};
use jiff::Timestamp;

/// One sentence each.
pub(super) fn ending(facts: &Facts<'_>) -> Vec<String> {
    match facts.claim.deleting {
        Some(since) => deleting(facts, since),
        None => ends(facts),
    }
}

fn deleting(facts: &Facts<'_>, since: Timestamp) -> Vec<String> {
    let claim = facts.claim;
    let mut lines = vec![format!("it is being deleted since {} ({})", whole(since), ago(since, facts.now))];
    if claim.has_finalizer(CLEANUP_FINALIZER) {
        let why = condition(&claim.status.conditions, "VMCleanedUp").map(|found| format!(": {}", found.message));
        let machine = claim.status.vm_ref.as_ref().map(|vm_ref| vm_ref.vm_id.as_str());
        let what = match machine {
            Some(machine) => format!("the fleet removes it when machine {machine} was seen to be gone"),
            None => "the fleet removes it at once, because no machine was created".to_owned(),
        };
        lines.push(format!("finalizer {CLEANUP_FINALIZER}: {what}{}", why.unwrap_or_default()));
    }
    for other in claim.finalizers.iter().filter(|finalizer| *finalizer != CLEANUP_FINALIZER) {
        lines.push(format!("finalizer {other}: somebody else removes it"));
    }
    if claim.is_switched(FORCE_DELETE) {
        lines.push(format!("the annotation {FORCE_DELETE} lets it go without its machine"));
    }
    lines
}

fn ends(facts: &Facts<'_>) -> Vec<String> {
    let claim = facts.claim;
    let mut lines = Vec::new();
    let limits = [
        ("ttl", claim.spec.ttl.as_ref(), Some(claim.created)),
        ("maxLifetime", claim.spec.max_lifetime.as_ref(), time(claim.status.started_time.as_ref())),
    ];
    for (field, span, since) in limits {
        let Some(span) = span else { continue };
        lines.push(match since.zip(Span::duration(span)) {
            Some((since, lasts)) => {
                let end = change::now::later(since, lasts);
                format!("the fleet deletes it at {} ({}): {field} is {}", whole(end), ago(end, facts.now), span.0)
            }
            None => format!("the fleet deletes it {} after its machine was started: {field}", span.0),
        });
    }
    if claim.is_switched(DRAIN) {
        lines.push(format!("the fleet deletes it when it is not busy: annotation {DRAIN}"));
    }
    if let Some(pool) = &claim.spec.runner_pool_ref {
        lines.push(format!("its pool {} ends it when fewer machines are wanted", pool.name));
    }
    lines.push("the fleet deletes it when its machine stops; until then it stays until somebody deletes it".to_owned());
    lines.push(format!("a deletion waits until its machine is gone: finalizer {CLEANUP_FINALIZER}"));
    lines
}
