//! The story of one claim or pool for people, from what the API server has: where it is, why, and what would change that.

mod ending;
mod gates;
mod next;
mod pool;
#[cfg(test)]
mod tests;
mod text;

pub use gates::{Gate, Outcome};
pub use pool::{PoolFacts, pool};
pub use text::{Line, lines};

use crate::backoff;
use crate::cluster::Cluster;
use crate::conditions::read;
use crate::machine::Claim;
use crate::object::{Name, Object};
use crate::pool::Pool;
use crate::template::Template;
use api::fleet::{ClaimPhase, Condition, FailureClass, Time};
use change::Live;
use jiff::Timestamp;
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// What is known of a claim.
#[derive(Debug)]
pub struct Facts<'a> {
    /// The claim.
    pub claim: &'a Claim,
    /// Its template, if that exists.
    pub template: Option<&'a Template>,
    /// The hypervisor of its machine or of its template, if that exists.
    pub cluster: Option<&'a Cluster>,
    /// Its pool, if it has one and that exists.
    pub pool: Option<&'a Pool>,
    /// How many claims have a machine on the hypervisor.
    pub machines: usize,
    /// The events about the claim.
    pub events: &'a [Happened],
    /// The present time.
    pub now: Timestamp,
}

/// Something that happened at a time.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Happened {
    /// When, in whole seconds.
    pub time: Timestamp,
    /// In one word: the reason of an event, or a field of the status.
    pub what: String,
    /// In a sentence.
    pub note: String,
}

/// The whole story.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// Kind, namespace and name.
    pub subject: String,
    /// The phase of a claim; `Ready` or not of a pool.
    pub state: String,
    /// Since when, as far as that is recorded.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub since: Option<String>,
    /// Why, in one word.
    pub reason: String,
    /// Why, in a sentence.
    pub message: String,
    /// What it consists of: a name and a value each.
    pub about: Vec<(String, String)>,
    /// What has to be true, in the order in which the fleet looks at it.
    pub gates: Vec<Gate>,
    /// What failed last.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub failure: Option<String>,
    /// What would unblock it; nothing if it needs nothing.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub next: String,
    /// Who ends it, and what that waits for.
    pub ending: Vec<String>,
    /// What happened, the oldest first.
    pub timeline: Vec<Happened>,
    /// When it was created, from which times are counted.
    pub created: Timestamp,
}

/// Reads an object as the API server returns it; an error names what cannot be read.
pub fn read_object<S: DeserializeOwned, T: DeserializeOwned + Default>(object: Value) -> Result<Object<S, T>, String> {
    let metadata = object["metadata"].clone();
    let text = |field: &str| metadata[field].as_str().unwrap_or_default().to_owned();
    let time = |field: &str| metadata[field].as_str().and_then(|time| time.parse().ok());
    let live = Live {
        uid: text("uid"),
        resource_version: text("resourceVersion"),
        annotations: serde_json::from_value(metadata["annotations"].clone()).unwrap_or_default(),
        created: time("creationTimestamp"),
        deleting: time("deletionTimestamp"),
        finalizers: serde_json::from_value(metadata["finalizers"].clone()).unwrap_or_default(),
        ..Live::default()
    };
    let generation = metadata["generation"].as_i64().unwrap_or_default();
    Object::read(Name::new(&text("namespace"), &text("name")), &live, generation, object)
}

/// An event of the fleet about an object with this uid.
pub fn happened(event: &Value, uid: &str) -> Option<Happened> {
    if event["regarding"]["uid"] != uid {
        return None;
    }
    let last = event["series"]["lastObservedTime"].as_str().or(event["eventTime"].as_str())?;
    let time: Timestamp = last.parse().ok()?;
    let text = |field: &str| event[field].as_str().unwrap_or_default().to_owned();
    Some(Happened { time: whole(time), what: text("reason"), note: text("note") })
}

fn whole(time: Timestamp) -> Timestamp {
    Timestamp::from_second(time.as_second()).unwrap_or(time)
}

/// The name of the hypervisor of a claim: of its machine, or else of its template.
pub fn cluster_of(claim: &Claim, template: Option<&Template>) -> Option<Name> {
    let placed = claim.status.vm_ref.as_ref().and_then(|vm_ref| Name::read(&vm_ref.hypervisor_cluster));
    placed.or_else(|| {
        let template = template?;
        let reference = &template.spec.hypervisor_cluster_ref;
        Some(template.name.beside(reference.namespace.as_deref(), &reference.name))
    })
}

/// Tells the story of a claim.
pub fn claim(facts: &Facts<'_>) -> Explanation {
    let claim = facts.claim;
    let ready = condition(&claim.status.conditions, "Ready");
    let gates = gates::gates(facts);
    let (reason, message) = match ready {
        Some(ready) => (ready.reason.clone(), ready.message.clone()),
        None => ("NotSeen".to_owned(), "the fleet has not looked at the claim yet".to_owned()),
    };
    let state = claim.status.phase.map_or("Unknown", ClaimPhase::name).to_owned();
    let since = since(facts, &reason).map(|since| {
        let since = whole(since);
        format!("{since} ({})", ago(since, facts.now))
    });
    Explanation {
        subject: format!("MachineClaim {}", claim.name),
        state,
        since,
        next: next::next(facts, &reason, &message, &gates),
        reason,
        message,
        about: about(facts),
        gates,
        failure: failure(facts),
        ending: ending::ending(facts),
        timeline: timeline(facts),
        created: whole(claim.created),
    }
}

/// A condition by its type.
fn condition<'a>(conditions: &'a [Condition], kind: &str) -> Option<&'a Condition> {
    conditions.iter().find(|condition| condition.r#type == kind)
}

/// Since when the claim is in its phase. A condition keeps its time while it is false, so that an event says it better.
fn since(facts: &Facts<'_>, reason: &str) -> Option<Timestamp> {
    let (claim, status) = (facts.claim, &facts.claim.status);
    let of_event = || facts.events.iter().filter(|event| event.what == reason).map(|event| event.time).max();
    match status.phase? {
        ClaimPhase::Pending => Some(claim.created),
        ClaimPhase::Bootstrapping => time(status.started_time.as_ref()),
        ClaimPhase::Ready => time(status.ready_time.as_ref()),
        ClaimPhase::Terminating => claim.deleting.or_else(of_event),
        ClaimPhase::Provisioning | ClaimPhase::Draining | ClaimPhase::Failed => of_event(),
    }
}

fn time(time: Option<&Time>) -> Option<Timestamp> {
    time.and_then(read)
}

fn about(facts: &Facts<'_>) -> Vec<(String, String)> {
    let (claim, status) = (facts.claim, &facts.claim.status);
    let mut about = Vec::new();
    let mut add = |name: &str, value: String| about.push((name.to_owned(), value));
    match &status.vm_ref {
        Some(vm_ref) => {
            let node = vm_ref.node.as_deref().map(|node| format!(" on node {node}")).unwrap_or_default();
            let state = if status.created_time.is_some() { "" } else { " (recorded, not seen yet)" };
            let name = crate::blueprint::host_name(&claim.name.name);
            add("machine", format!("{}{node} of {}, named {name}{state}", vm_ref.vm_id, vm_ref.hypervisor_cluster));
        }
        None => add("machine", "none yet".to_owned()),
    }
    if let Some(network) = status.network_info.as_ref().filter(|network| !network.addresses.is_empty()) {
        add("addresses", network.addresses.join(", "));
    }
    let template = claim.name.beside(None, &claim.spec.template_ref.name);
    add(
        "template",
        match facts.template {
            Some(found) => {
                let resources = &found.spec.resources;
                let source = found.status.resolved_template.as_deref().map(|from| format!(", from {from}"));
                format!(
                    "{template}: {} CPUs, {} of memory{}",
                    resources.cpu,
                    resources.memory.0,
                    source.unwrap_or_default()
                )
            }
            None => format!("{template}, which does not exist"),
        },
    );
    if let Some(cluster) = cluster_of(claim, facts.template) {
        let endpoint = facts.cluster.map(|found| {
            let version = found.status.version.as_deref().map(|version| format!(", version {version}"));
            format!(": {}{}", found.spec.endpoint, version.unwrap_or_default())
        });
        add("hypervisor", format!("{cluster}{}", endpoint.unwrap_or_else(|| ", which does not exist".to_owned())));
    }
    add(
        "pool",
        match (&claim.spec.runner_pool_ref, facts.pool) {
            (None, _) => "none: the claim was made by hand".to_owned(),
            (Some(pool), None) => format!("{}, which does not exist", claim.name.beside(None, &pool.name)),
            (Some(_), Some(pool)) => {
                let desired = pool.status.desired_replicas.unwrap_or_default();
                let ready = pool.status.ready_replicas.unwrap_or_default();
                format!("{}: {ready} of {desired} machines are ready", pool.name)
            }
        },
    );
    about
}

/// What failed last, of which class, how often, and when it is tried again.
fn failure(facts: &Facts<'_>) -> Option<String> {
    let (claim, status) = (facts.claim, &facts.claim.status);
    let last = status.last_failure.as_ref()?;
    let since = read(&last.time).map(|at| format!(" since {} ({})", whole(at), ago(at, facts.now))).unwrap_or_default();
    let (class, cause) = match last.class {
        FailureClass::Transient => ("Transient", "it passes by itself"),
        FailureClass::Permanent => ("Permanent", "trying again does not help"),
        FailureClass::Configuration => ("Configuration", "a person has to change something"),
        FailureClass::Resource => ("Resource", "the hypervisor has no room"),
    };
    let again = match (status.attempts, last.class) {
        (0, _) => "it has succeeded after that".to_owned(),
        (_, FailureClass::Permanent) if claim.deleting.is_none() => format!("it failed{since}, and is not tried again"),
        (attempts, class) => {
            let pause = backoff::pause(class, attempts.saturating_sub(1), &claim.uid).as_secs();
            let times = if attempts == 1 { "once".to_owned() } else { format!("{attempts} times in a row") };
            format!("it failed {times}{since}, and is tried again {pause} s after the last attempt")
        }
    };
    Some(format!("{class} ({cause}): {}; {again}", last.message))
}

fn timeline(facts: &Facts<'_>) -> Vec<Happened> {
    let (claim, status) = (facts.claim, &facts.claim.status);
    let times = [
        (Some(claim.created), "created", "the claim was created"),
        (time(status.created_time.as_ref()), "createdTime", "the machine was seen to exist"),
        (time(status.started_time.as_ref()), "startedTime", "the machine was seen to run"),
        (time(status.ready_time.as_ref()), "readyTime", "the machine was ready"),
        (time(status.seeded_time.as_ref()), "seededTime", "cloud-init had its data, and no image of it is left"),
        (claim.deleting, "deletionTimestamp", "somebody asked to delete the claim"),
    ];
    let of_status = times.into_iter().filter_map(|(time, what, note)| {
        Some(Happened { time: whole(time?), what: what.to_owned(), note: note.to_owned() })
    });
    let mut all: Vec<Happened> = of_status.chain(facts.events.iter().cloned()).collect();
    // Times of a status are whole seconds: what happened in the same one is in the order of the life of a claim.
    all.sort_by_key(|happened| (happened.time, rank(&happened.what)));
    all
}

fn rank(what: &str) -> u8 {
    const LIFE: [&str; 8] =
        ["created", "Cloning", "createdTime", "Starting", "startedTime", "readyTime", "Ready", "seededTime"];
    let place = LIFE.iter().position(|step| *step == what).unwrap_or(LIFE.len());
    u8::try_from(place).unwrap_or(u8::MAX)
}

/// How long ago a time is, in its two largest units.
fn ago(time: Timestamp, now: Timestamp) -> String {
    let seconds = now.duration_since(time).as_secs();
    match seconds {
        ..0 => format!("in {}", span(-seconds)),
        _ => format!("{} ago", span(seconds)),
    }
}

/// A number of seconds in its two largest units.
pub(crate) fn span(seconds: i64) -> String {
    let units = [(86_400, "d"), (3_600, "h"), (60, "m"), (1, "s")];
    let mut rest = seconds;
    let mut parts = Vec::new();
    for (size, unit) in units {
        let count = rest / size;
        rest %= size;
        if count > 0 || (unit == "s" && parts.is_empty()) {
            parts.push(format!("{count}{unit}"));
        }
    }
    parts.truncate(2);
    parts.concat()
}
