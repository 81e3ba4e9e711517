//! Why a pool has the size that it has.

use super::{Explanation, Gate, Outcome, condition, whole};
use crate::machine::Claim;
use crate::pool::{Pool, scheduled_minimum};
use crate::template::Template;
use api::fleet::{BUSY, ClaimPhase, IN_USE_FINALIZER, Truth};
use change::{Moment, Now};
use jiff::Timestamp;

/// What is known of a pool.
#[derive(Debug)]
pub struct PoolFacts<'a> {
    /// The pool.
    pub pool: &'a Pool,
    /// Its claims.
    pub claims: &'a [Claim],
    /// Its template, if that exists.
    pub template: Option<&'a Template>,
    /// The present time.
    pub now: Timestamp,
}

/// Tells why a pool has the size that it has.
pub fn pool(facts: &PoolFacts<'_>) -> Explanation {
    let PoolFacts { pool, claims, .. } = facts;
    let (spec, status) = (&pool.spec, &pool.status);
    let ready = condition(&status.conditions, "Ready");
    let is_ready = ready.is_some_and(|ready| ready.status == Truth::True);
    let (reason, message) = match ready {
        Some(ready) => (ready.reason.clone(), ready.message.clone()),
        None => ("NotSeen".to_owned(), "the fleet has not looked at the pool yet".to_owned()),
    };
    let mut about = Vec::new();
    let mut add = |name: &str, value: String| about.push((name.to_owned(), value));
    let busy = claims.iter().filter(|claim| claim.is_switched(BUSY) && claim.deleting.is_none()).count();
    let set = spec.replicas.map_or("not set".to_owned(), |replicas| replicas.to_string());
    add("demand", format!("spec.replicas is {set}, and {busy} machines are busy: the larger number counts"));
    add("spares", format!("{} that run, {} that wait", spec.scaling.spares.booted, spec.scaling.spares.stopped));
    let now = Now { wall: facts.now, monotonic: Moment::default() };
    let scheduled = scheduled_minimum(&spec.scaling.schedules, now);
    let schedules = spec.scaling.schedules.len();
    add(
        "minimum",
        match schedules {
            0 => format!("{}", spec.scaling.min_replicas),
            _ => format!(
                "{}; now {scheduled} by {schedules} schedules: the larger number counts",
                spec.scaling.min_replicas
            ),
        },
    );
    add("maximum", maximum(facts));
    let wanted = status.desired_replicas.unwrap_or_default();
    add("wanted", format!("{wanted}: demand and running spares, at least the minimum, at most the maximum"));
    let count = |phase: ClaimPhase| claims.iter().filter(|claim| claim.status.phase == Some(phase)).count();
    let counts = ClaimPhase::ALL.map(|phase| (phase.name(), count(phase))).into_iter().filter(|(_, count)| *count > 0);
    let counts: Vec<String> = counts.map(|(name, count)| format!("{count} {name}")).collect();
    add("claims", if counts.is_empty() { "none".to_owned() } else { counts.join(", ") });
    Explanation {
        subject: format!("RunnerPool {}", pool.name),
        state: if is_ready { "Ready" } else { "NotReady" }.to_owned(),
        since: ready.map(|ready| ready.last_transition_time.0.clone()),
        next: next(facts, wanted),
        reason,
        message,
        about,
        gates: gates(facts),
        failure: None,
        ending: ending(facts),
        timeline: Vec::new(),
        created: whole(pool.created),
    }
}

fn maximum(facts: &PoolFacts<'_>) -> String {
    let spec = &facts.pool.spec;
    let most = spec.scaling.max_replicas;
    let Some(quota) = &spec.quota else { return most.to_string() };
    let cpu = quota.cpu.map(|cpu| format!("{cpu} CPUs"));
    let memory = quota.memory.as_ref().map(|memory| format!("{} of memory", memory.0));
    let quota = [cpu, memory].into_iter().flatten().collect::<Vec<_>>().join(" and ");
    let each = facts.template.map(|template| {
        let resources = &template.spec.resources;
        format!(", of which each machine takes {} CPUs and {}", resources.cpu, resources.memory.0)
    });
    format!("{most}, and as many as the quota allows: {quota}{}", each.unwrap_or_default())
}

fn gates(facts: &PoolFacts<'_>) -> Vec<Gate> {
    let template = facts.pool.name.beside(None, &facts.pool.spec.template_ref.name);
    let valid = facts.template.and_then(|template| condition(&template.status.conditions, "TemplateValid"));
    let (outcome, found) = match (facts.template, valid) {
        (None, _) => (Outcome::No, format!("there is no HypervisorMachineTemplate {template}")),
        (Some(_), None) => (Outcome::No, "not checked yet".to_owned()),
        (Some(_), Some(valid)) => {
            let outcome = if valid.status == Truth::True { Outcome::Yes } else { Outcome::No };
            (outcome, format!("{}: {}", valid.reason, valid.message))
        }
    };
    vec![Gate { name: "template valid", decides: outcome == Outcome::No, outcome, found }]
}

/// The claim that is not ready and was created first tells why the pool is too small.
fn next(facts: &PoolFacts<'_>, wanted: i32) -> String {
    let ready = facts.pool.status.ready_replicas.unwrap_or_default();
    if facts.pool.status.observed_generation.is_none() {
        return "check that the fleet runs: kubectl get deployments --all-namespaces --selector app=virtpilot-fleet"
            .to_owned();
    }
    if ready >= wanted {
        return String::new();
    }
    let is_waiting = |claim: &&Claim| {
        claim.deleting.is_none() && !matches!(claim.status.phase, Some(ClaimPhase::Ready | ClaimPhase::Failed))
    };
    let waiting = facts.claims.iter().filter(is_waiting).min_by_key(|claim| (claim.created, claim.name.clone()));
    let failed = facts.claims.iter().filter(|claim| claim.status.phase == Some(ClaimPhase::Failed));
    match waiting.or_else(|| failed.max_by_key(|claim| claim.created)) {
        Some(claim) => format!("virtpilot fleet explain {} --namespace {}", claim.name.name, claim.name.namespace),
        None => String::new(),
    }
}

fn ending(facts: &PoolFacts<'_>) -> Vec<String> {
    let pool = facts.pool;
    if let Some(since) = pool.deleting {
        let count = facts.claims.len();
        return vec![format!(
            "it is being deleted since {}; finalizer {IN_USE_FINALIZER} waits for its {count} claims",
            whole(since)
        )];
    }
    let lifecycle = &pool.spec.lifecycle;
    let mut lines = Vec::new();
    if let Some(since) = &pool.status.surplus_since {
        let delay = &pool.spec.scaling.scale_down_delay.0;
        lines.push(format!(
            "there are more machines than wanted since {}; they end after scaleDownDelay {delay}",
            since.0
        ));
    }
    for (span, what) in [
        (&lifecycle.max_lifetime, "a machine is replaced after maxLifetime"),
        (&lifecycle.idle_timeout, "a machine beyond the minimum that is idle ends after idleTimeout"),
        (&lifecycle.job_timeout, "a drained machine that is still busy ends after jobTimeout"),
        (&lifecycle.provisioning_timeout, "a claim whose machine cannot be made is given up after provisioningTimeout"),
    ] {
        lines.extend(span.as_ref().map(|span| format!("{what} {}", span.0)));
    }
    lines
}
