//! Leader election: one process writes, the others wait. Writes the Lease and nothing else.

use crate::permit::{Permit, running_millis};
use crate::request::Failure;
use api::LEASE;
use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::Client;
use kube::api::{Api, PostParams};
use std::time::Duration;

/// For how long a leader that says nothing is still one.
const DURATION: Duration = Duration::from_secs(137);
/// For how long a leader that cannot renew still writes: well before anybody may take over.
const DEADLINE: Duration = Duration::from_secs(107);
/// How often a leader renews.
const RENEW: Duration = Duration::from_secs(26);
/// How often one that waits looks: it only reads.
const LOOK: Duration = Duration::from_secs(1);
/// How soon a renewal that failed is tried again.
const RETRY: Duration = Duration::from_secs(2);
/// No request is worth more: the next try is soon.
const PATIENCE: Duration = Duration::from_secs(5);

/// A place among those who want to lead.
pub struct Candidate {
    leases: Api<Lease>,
    identity: String,
    permit: Permit,
    /// The last thing seen, and when by a clock of our own: the clocks of two machines need not agree.
    observed: Option<(Option<String>, i64)>,
}

impl Candidate {
    /// `identity` is the pod's name: a pod that comes back retakes its own lease at once.
    pub fn new(client: Client, namespace: &str, identity: &str) -> Candidate {
        let leases = Api::namespaced(client, namespace);
        Candidate { leases, identity: identity.to_owned(), permit: Permit::elected(), observed: None }
    }

    /// The right to write, as long as this one leads.
    pub fn permit(&self) -> Permit {
        self.permit.clone()
    }

    /// Waits until this one leads.
    pub async fn win(&mut self) {
        while !matches!(self.step().await, Ok(None)) {
            tokio::time::sleep(LOOK).await;
        }
    }

    /// Renews for ever; returns when the right to write has ended.
    pub async fn keep(&mut self) {
        loop {
            tokio::time::sleep(if self.permit.holds() { RENEW } else { RETRY }).await;
            while !matches!(self.step().await, Ok(None)) {
                if !self.permit.holds() {
                    return;
                }
                tokio::time::sleep(RETRY).await;
            }
        }
    }

    /// Gives the lease back, so that another leads at once.
    pub async fn release(&mut self) {
        if !self.permit.holds() {
            return;
        }
        self.permit.end();
        let released = async {
            let mut lease = self.leases.get(LEASE).await?;
            let spec = lease.spec.get_or_insert_default();
            if spec.holder_identity.as_deref() == Some(&self.identity) {
                spec.holder_identity = None;
                spec.lease_duration_seconds = Some(1);
                self.leases.replace(LEASE, &PostParams::default(), &lease).await?;
            }
            Ok::<(), kube::Error>(())
        };
        let _ = tokio::time::timeout(PATIENCE, released).await;
    }

    /// Takes or renews the lease if that is possible; returns who holds it if not.
    async fn step(&mut self) -> Result<Option<String>, Failure> {
        match tokio::time::timeout(PATIENCE, self.try_step()).await {
            Ok(outcome) => Ok(outcome?),
            Err(_) => Err(Failure::Unanswered("no answer in time".into())),
        }
    }

    async fn try_step(&mut self) -> kube::Result<Option<String>> {
        // The right begins when the request was made, not when it was answered.
        let begun = running_millis();
        let Some(mut lease) = self.leases.get_opt(LEASE).await? else {
            let metadata = ObjectMeta { name: Some(LEASE.into()), ..ObjectMeta::default() };
            let lease = Lease { metadata, spec: Some(self.taken(None)) };
            self.leases.create(&PostParams::default(), &lease).await?;
            self.permit.extend(begun, DEADLINE);
            return Ok(None);
        };
        let spec = lease.spec.clone().unwrap_or_default();
        let holder = spec.holder_identity.clone().filter(|holder| !holder.is_empty());
        if let Some(holder) = holder.filter(|holder| *holder != self.identity) {
            let version = lease.metadata.resource_version.clone();
            let since = match &self.observed {
                Some((seen, since)) if *seen == version => *since,
                _ => begun,
            };
            self.observed = Some((version, since));
            let lasts =
                Duration::from_secs(u64::try_from(spec.lease_duration_seconds.unwrap_or_default()).unwrap_or(0));
            if begun.saturating_sub(since) < i64::try_from(lasts.as_millis()).unwrap_or(i64::MAX) {
                self.permit.end();
                return Ok(Some(holder));
            }
        }
        lease.spec = Some(self.taken(Some(&spec)));
        // In the version that was read: of two who try, one succeeds.
        self.leases.replace(LEASE, &PostParams::default(), &lease).await?;
        self.permit.extend(begun, DEADLINE);
        Ok(None)
    }

    fn taken(&self, before: Option<&LeaseSpec>) -> LeaseSpec {
        let now = MicroTime(Timestamp::now());
        let held = before.filter(|spec| spec.holder_identity.as_deref() == Some(&self.identity));
        let transitions = before.and_then(|spec| spec.lease_transitions).unwrap_or_default();
        LeaseSpec {
            holder_identity: Some(self.identity.clone()),
            lease_duration_seconds: i32::try_from(DURATION.as_secs()).ok(),
            acquire_time: held.and_then(|spec| spec.acquire_time.clone()).or_else(|| Some(now.clone())),
            renew_time: Some(now),
            lease_transitions: Some(if held.is_some() {
                transitions
            } else {
                transitions.saturating_add(i32::from(before.is_some()))
            }),
            ..LeaseSpec::default()
        }
    }
}
