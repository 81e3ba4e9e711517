//! Leader election: one replica writes, the others wait. Writes the Lease and nothing else; [`protocol::election`] decides.

use crate::read::pod::{self, PodWatch};
use crate::request::{Failure, Request, WHOLE, send_with_clock};
use crate::server::Server;
use crate::write::permit::{GRACE, Permit, uptime};
use change::Now;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{Api, PostParams};
use protocol::election::{Action, Candidate, Reason, Record, Seen, Timing};
use std::collections::BTreeMap;
use std::time::Duration;

#[cfg(test)]
mod model;

const TIMING: Timing = Timing::OPERATOR;
// The answer to the last request of a leader arrives before another process can lead.
const _: () = assert!(TIMING.deadline.as_secs() + GRACE.as_secs() < TIMING.duration.as_secs());
/// A step may take no longer: the next attempt is soon.
const TIMEOUT: Duration = Duration::from_secs(5);

/// A permit for a process that runs without leader election: it must be the only replica of its deployment.
pub fn without_election() -> Permit {
    Permit::without_election()
}

/// One replica that may hold a lease.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Replica {
    /// The pod's name: a restarted container takes its own lease back at once.
    pub name: String,
    /// What it says about itself on the lease, while it holds it.
    pub annotations: BTreeMap<String, String>,
}

/// The replica that holds the lease, by the clock of the API server: that of this machine may be wrong.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Holder {
    /// The replica.
    pub replica: Replica,
    /// How long ago it renewed the lease.
    pub silent_for: SignedDuration,
    /// When the lease expires.
    pub until: Timestamp,
}

impl Holder {
    /// Whether it renews the lease in time: one that has missed more than one renewal may have stopped.
    pub fn is_renewing(&self) -> bool {
        self.silent_for <= SignedDuration::from_secs(2 * TIMING.renew.as_secs().cast_signed())
    }
}

/// The replica whose lease has not expired; nothing if there is none.
pub async fn holder(server: &Server, namespace: &str) -> Result<Option<Holder>, Failure> {
    let url = format!("/apis/coordination.k8s.io/v1/namespaces/{namespace}/leases/{}", server.identity.lease);
    match send_with_clock(server, Request::get("Lease", &url, WHOLE)).await {
        Ok((lease, clock)) => Ok(current(serde_json::from_str(&lease)?, clock.unwrap_or_else(Timestamp::now))),
        Err(failure) if failure.is_not_found() => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Who holds a lease at this time.
fn current(lease: Lease, now: Timestamp) -> Option<Holder> {
    let spec = lease.spec.unwrap_or_default();
    let lasts = SignedDuration::from_secs(spec.lease_duration_seconds.unwrap_or_default().into());
    let name = spec.holder_identity.filter(|holder| !holder.is_empty())?;
    let renewed = spec.renew_time?.0;
    let until = renewed.checked_add(lasts).ok()?;
    let annotations = lease.metadata.annotations.unwrap_or_default();
    let holder = Holder { replica: Replica { name, annotations }, silent_for: now.duration_since(renewed), until };
    (now < until).then_some(holder)
}

/// What a replica that does not lead yet reports.
#[derive(Debug)]
pub enum Waiting<'a> {
    /// Another replica leads; this one follows when it ends, or at this time if it does not renew.
    For(&'a str, Timestamp),
    /// The lease could not be read or written.
    Failed(&'a Failure),
    /// Pods cannot be read, so that it is not seen when the pod of the leader ends.
    Unseen(&'a Failure),
}

/// The outcome of one step.
enum Step {
    Leads(Reason),
    Waits { holder: String, until: Timestamp },
    SteppedDown,
}

/// One replica's part in the election.
pub struct Election {
    server: Server,
    namespace: String,
    leases: Api<Lease>,
    candidate: Candidate,
    annotations: BTreeMap<String, String>,
    permit: Permit,
    seen: Seen,
    /// Whether it was ever tried to hold the lease: a write without an answer may have succeeded.
    may_hold: bool,
    /// The uid of this replica's pod, once it is known whether there is one.
    own_pod: Option<Option<String>>,
    holder_pod: Option<PodWatch>,
}

impl Election {
    /// A part that does not hold the lease yet.
    pub fn new(server: &Server, namespace: &str, replica: Replica) -> Election {
        Election {
            server: server.clone(),
            namespace: namespace.to_owned(),
            leases: Api::namespaced(server.client.clone(), namespace),
            candidate: Candidate { name: replica.name, timing: TIMING },
            annotations: replica.annotations,
            permit: Permit::not_yet_leader(),
            seen: Seen::default(),
            may_hold: false,
            own_pod: None,
            holder_pod: None,
        }
    }

    /// A permit that is valid while this replica leads.
    pub fn permit(&self) -> Permit {
        self.permit.clone()
    }

    /// Waits until this replica leads, and returns why it may; what it waits for is reported.
    pub async fn acquire(&mut self, mut report: impl FnMut(Waiting<'_>)) -> Reason {
        loop {
            if self.own_pod.is_none() {
                self.find_own_pod(&mut report).await;
            }
            match self.step().await {
                Ok(Step::Leads(reason)) => {
                    self.holder_pod = None;
                    return reason;
                }
                Ok(Step::Waits { holder, until }) => report(Waiting::For(&holder, until)),
                Ok(Step::SteppedDown) => {}
                Err(failure) => report(Waiting::Failed(&failure)),
            }
            if let Some(failure) = self.holder_pod.as_ref().and_then(PodWatch::refusal) {
                report(Waiting::Unseen(&failure));
            }
            let pod_changed = async {
                match &mut self.holder_pod {
                    Some(pod) => pod.changed().await,
                    None => std::future::pending().await,
                }
            };
            let _ = tokio::time::timeout(TIMING.poll, pod_changed).await;
        }
    }

    /// Renews the lease; returns when this replica does not lead any more.
    pub async fn renew(&mut self) {
        let mut pause = TIMING.renew;
        loop {
            tokio::time::sleep(pause).await;
            pause = match self.step().await {
                Ok(Step::Leads(_)) => TIMING.renew,
                Ok(Step::SteppedDown | Step::Waits { .. }) => return,
                Err(_) if self.permit.is_valid() => TIMING.retry,
                Err(_) => return,
            };
        }
    }

    /// Releases the lease, so that another replica can lead at once.
    pub async fn release(&mut self) {
        self.permit.end();
        if !std::mem::take(&mut self.may_hold) {
            return;
        }
        let released = async {
            let Some(mut lease) = self.leases.get_opt(self.server.identity.lease).await? else { return Ok(()) };
            let record = self.record(&lease);
            if let Some(version) = self.candidate.release(&record, &mut self.seen) {
                lease.metadata.resource_version = Some(version);
                let spec = lease.spec.get_or_insert_default();
                spec.holder_identity = None;
                spec.lease_duration_seconds = Some(1);
                self.leases.replace(self.server.identity.lease, &PostParams::default(), &lease).await?;
            }
            Ok::<(), kube::Error>(())
        };
        let _ = tokio::time::timeout(TIMEOUT, released).await;
    }

    /// Reads the lease and does what the election decides.
    async fn step(&mut self) -> Result<Step, Failure> {
        match tokio::time::timeout(TIMEOUT, self.try_step()).await {
            Ok(outcome) => outcome,
            Err(_) => Err(Failure::timeout()),
        }
    }

    async fn try_step(&mut self) -> Result<Step, Failure> {
        let begun = uptime();
        let lease = self.leases.get_opt(self.server.identity.lease).await?;
        let record = lease.as_ref().map(|lease| self.record(lease)).unwrap_or_default();
        self.follow_pod_of(&record);
        let now = uptime();
        let action = self.candidate.step(&record, &mut self.seen, now);
        let step = match action {
            Action::Hold { version, reason } => {
                self.may_hold = true;
                self.hold(lease.unwrap_or_default(), version).await?;
                self.candidate.held(&mut self.seen, begun);
                Step::Leads(reason)
            }
            Action::Wait { holder, until } => {
                let left = until.elapsed().saturating_sub(now.elapsed());
                let until = Now { wall: Timestamp::now(), monotonic: now }.wall_after(left);
                Step::Waits { holder, until }
            }
            Action::StepDown { .. } => Step::SteppedDown,
        };
        match self.seen.leads_until {
            Some(until) => self.permit.extend_to(until),
            None => self.permit.end(),
        }
        Ok(step)
    }

    /// What the election needs to know of a lease.
    fn record(&self, lease: &Lease) -> Record {
        let spec = lease.spec.clone().unwrap_or_default();
        let holder = spec.holder_identity.filter(|holder| !holder.is_empty());
        // The predecessor of a holder that publishes nothing may have left its own.
        let published = lease.metadata.annotations.as_ref().and_then(|all| all.get(&self.pod_annotation()));
        let published = published.and_then(|text| text.split_once(' '));
        let pod_uid = published.filter(|(name, _)| holder.as_deref() == Some(*name)).map(|(_, uid)| uid.to_owned());
        let is_followed = |pod: &&PodWatch| holder.as_deref() == Some(pod.name());
        Record {
            version: lease.metadata.resource_version.clone(),
            lasts: Duration::from_secs(u64::try_from(spec.lease_duration_seconds.unwrap_or_default()).unwrap_or(0)),
            pod: self.holder_pod.as_ref().filter(is_followed).and_then(PodWatch::last),
            pod_uid,
            holder,
        }
    }

    /// Follows the pod of another holder that has published which one it is.
    fn follow_pod_of(&mut self, record: &Record) {
        let other = record.holder.as_ref().filter(|holder| **holder != self.candidate.name && record.pod_uid.is_some());
        match other {
            Some(holder) if self.holder_pod.as_ref().is_none_or(|pod| pod.name() != *holder) => {
                self.holder_pod = Some(PodWatch::start(&self.server, &self.namespace, holder));
            }
            Some(_) => {}
            None => self.holder_pod = None,
        }
    }

    /// Finds out which pod this process runs in; others follow at once when it has ended.
    async fn find_own_pod(&mut self, report: &mut impl FnMut(Waiting<'_>)) {
        let read = pod::read(&self.server, &self.namespace, &self.candidate.name);
        match tokio::time::timeout(TIMEOUT, read).await.unwrap_or_else(|_| Err(Failure::timeout())) {
            Ok(pod) => self.own_pod = Some(pod.map(|(pod, _)| pod.uid)),
            Err(failure) if failure.is_refusal() => {
                self.own_pod = Some(None);
                report(Waiting::Unseen(&failure));
            }
            Err(_) => {}
        }
    }

    /// Writes the lease as this replica holds it: it replaces exactly this version, so of two replicas that try, one succeeds.
    async fn hold(&self, mut lease: Lease, version: Option<String>) -> Result<(), Failure> {
        let (name, params) = (self.server.identity.lease, PostParams::default());
        lease.spec = Some(self.held(lease.spec.as_ref()));
        lease.metadata.name = Some(name.into());
        let annotations = lease.metadata.annotations.get_or_insert_default();
        annotations.extend(self.annotations.clone());
        match self.own_pod.as_ref().and_then(Option::as_ref) {
            Some(uid) => annotations.insert(self.pod_annotation(), format!("{} {uid}", self.candidate.name)),
            None => annotations.remove(&self.pod_annotation()),
        };
        let is_new = version.is_none();
        lease.metadata.resource_version = version;
        match is_new {
            true => self.leases.create(&params, &lease).await?,
            false => self.leases.replace(name, &params, &lease).await?,
        };
        Ok(())
    }

    /// On the lease: the name and the uid of the pod that leads, separated by a space.
    fn pod_annotation(&self) -> String {
        format!("{}leader-pod", self.server.identity.annotation_prefix)
    }

    /// The lease's spec as this replica holds it.
    fn held(&self, before: Option<&LeaseSpec>) -> LeaseSpec {
        let now = MicroTime(Timestamp::now());
        let renewed = before.filter(|spec| spec.holder_identity.as_deref() == Some(&self.candidate.name));
        let transitions = before.and_then(|spec| spec.lease_transitions).unwrap_or_default();
        LeaseSpec {
            holder_identity: Some(self.candidate.name.clone()),
            lease_duration_seconds: i32::try_from(TIMING.duration.as_secs()).ok(),
            acquire_time: renewed.and_then(|spec| spec.acquire_time.clone()).or_else(|| Some(now.clone())),
            renew_time: Some(now),
            lease_transitions: Some(if renewed.is_some() {
                transitions
            } else {
                transitions.saturating_add(i32::from(before.is_some()))
            }),
            ..LeaseSpec::default()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::current;
    use serde_json::json;

    #[test]
    fn a_holder_that_has_missed_renewals_is_not_counted_as_renewing_and_one_whose_lease_expired_is_none() {
        let held = |second: i64| {
            let spec =
                json!({"holderIdentity": "p", "leaseDurationSeconds": 137, "renewTime": "2026-01-01T00:00:00.000000Z"});
            let lease = serde_json::from_value(json!({"metadata": {"annotations": {"a": "b"}}, "spec": spec})).unwrap();
            let start: jiff::Timestamp = "2026-01-01T00:00:00Z".parse().unwrap();
            current(lease, start + jiff::SignedDuration::from_secs(second))
        };
        assert!(held(-600).unwrap().is_renewing(), "the clock of its node is ahead");
        assert!(held(26).unwrap().is_renewing() && held(52).unwrap().is_renewing());
        let silent = held(53).unwrap();
        assert!(!silent.is_renewing());
        assert_eq!((silent.silent_for.as_secs(), silent.until.to_string().as_str()), (53, "2026-01-01T00:02:17Z"));
        assert_eq!(silent.replica.annotations["a"], "b");
        assert!(held(136).is_some() && held(137).is_none());
    }

    #[test]
    fn a_lease_without_holder_or_renewal_is_held_by_nobody() {
        for spec in
            [json!({}), json!({"holderIdentity": ""}), json!({"holderIdentity": "p", "leaseDurationSeconds": 9})]
        {
            let lease = serde_json::from_value(json!({"metadata": {}, "spec": spec})).unwrap();
            assert_eq!(current(lease, jiff::Timestamp::UNIX_EPOCH), None);
        }
    }
}
