//! Leader election: one replica writes, the others wait. Writes the Lease and nothing else.

use crate::request::Failure;
use crate::server::Server;
use crate::write::permit::{Permit, uptime_millis};
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::coordination::v1::{Lease, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::{MicroTime, ObjectMeta};
use kube::api::{Api, PostParams};
use std::collections::BTreeMap;
use std::time::Duration;

/// How long others wait for a leader that does not renew.
const DURATION: Duration = Duration::from_secs(137);
/// How long a leader that cannot renew still writes: it stops well before another can take over.
const DEADLINE: Duration = Duration::from_secs(107);
/// How often a leader renews.
const RENEW: Duration = Duration::from_secs(26);
// The answer to the last request of a leader arrives before another process can lead.
const _: () = assert!(DEADLINE.as_secs() + super::permit::GRACE.as_secs() < DURATION.as_secs());
/// How often a waiting replica reads the lease.
const POLL: Duration = Duration::from_secs(1);
/// How soon a failed renewal is tried again.
const RETRY: Duration = Duration::from_secs(2);
/// A request may take no longer: the next attempt is soon.
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

/// The replica that holds the lease now; nothing if there is none.
pub async fn holder(server: &Server, namespace: &str) -> Result<Option<Replica>, Failure> {
    let leases: Api<Lease> = Api::namespaced(server.client.clone(), namespace);
    let read = tokio::time::timeout(TIMEOUT, leases.get_opt(server.identity.lease)).await;
    let Some(lease) = read.map_err(|_| Failure::timeout())?? else { return Ok(None) };
    let spec = lease.spec.unwrap_or_default();
    let lasts = SignedDuration::from_secs(spec.lease_duration_seconds.unwrap_or_default().into());
    let is_current = spec.renew_time.is_some_and(|renewed| Timestamp::now().duration_since(renewed.0) < lasts);
    let name = spec.holder_identity.filter(|holder| is_current && !holder.is_empty());
    Ok(name.map(|name| Replica { name, annotations: lease.metadata.annotations.unwrap_or_default() }))
}

/// One replica's part in the election.
pub struct Election {
    leases: Api<Lease>,
    lease: &'static str,
    replica: Replica,
    permit: Permit,
    /// The last version seen, and when by our own clock: the clocks of two machines need not agree.
    observed: Option<(Option<String>, i64)>,
}

impl Election {
    /// A part that does not hold the lease yet.
    pub fn new(server: &Server, namespace: &str, replica: Replica) -> Election {
        let (leases, lease) = (Api::namespaced(server.client.clone(), namespace), server.identity.lease);
        Election { leases, lease, replica, permit: Permit::not_yet_leader(), observed: None }
    }

    /// A permit that is valid while this replica leads.
    pub fn permit(&self) -> Permit {
        self.permit.clone()
    }

    /// Waits until this replica leads; every failed attempt is reported.
    pub async fn acquire(&mut self, mut report: impl FnMut(&Failure)) {
        loop {
            match self.step().await {
                Ok(None) => return,
                Ok(Some(_)) => {}
                Err(failure) => report(&failure),
            }
            tokio::time::sleep(POLL).await;
        }
    }

    /// Renews the lease; returns when the permit has ended.
    pub async fn renew(&mut self) {
        loop {
            tokio::time::sleep(if self.permit.is_valid() { RENEW } else { RETRY }).await;
            while !matches!(self.step().await, Ok(None)) {
                if !self.permit.is_valid() {
                    return;
                }
                tokio::time::sleep(RETRY).await;
            }
        }
    }

    /// Releases the lease, so that another replica can lead at once.
    pub async fn release(&mut self) {
        if !self.permit.is_valid() {
            return;
        }
        self.permit.end();
        let released = async {
            let mut lease = self.leases.get(self.lease).await?;
            let spec = lease.spec.get_or_insert_default();
            if spec.holder_identity.as_deref() == Some(&self.replica.name) {
                spec.holder_identity = None;
                spec.lease_duration_seconds = Some(1);
                self.leases.replace(self.lease, &PostParams::default(), &lease).await?;
            }
            Ok::<(), kube::Error>(())
        };
        let _ = tokio::time::timeout(TIMEOUT, released).await;
    }

    /// Takes or renews the lease if that is possible; returns its holder if not.
    async fn step(&mut self) -> Result<Option<String>, Failure> {
        match tokio::time::timeout(TIMEOUT, self.try_step()).await {
            Ok(outcome) => Ok(outcome?),
            Err(_) => Err(Failure::timeout()),
        }
    }

    async fn try_step(&mut self) -> kube::Result<Option<String>> {
        // The permit counts from the request, not from its answer.
        let begun = uptime_millis();
        let Some(mut lease) = self.leases.get_opt(self.lease).await? else {
            let annotations = Some(self.replica.annotations.clone());
            let metadata = ObjectMeta { name: Some(self.lease.into()), annotations, ..ObjectMeta::default() };
            let lease = Lease { metadata, spec: Some(self.held(None)) };
            self.leases.create(&PostParams::default(), &lease).await?;
            self.permit.extend(begun, DEADLINE);
            return Ok(None);
        };
        let spec = lease.spec.clone().unwrap_or_default();
        let holder = spec.holder_identity.clone().filter(|holder| !holder.is_empty());
        if let Some(holder) = holder.filter(|holder| *holder != self.replica.name) {
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
        lease.spec = Some(self.held(Some(&spec)));
        lease.metadata.annotations.get_or_insert_default().extend(self.replica.annotations.clone());
        // Guarded by the resourceVersion that was read: of two replicas that try, one succeeds.
        self.leases.replace(self.lease, &PostParams::default(), &lease).await?;
        self.permit.extend(begun, DEADLINE);
        Ok(None)
    }

    /// The lease as this replica holds it.
    fn held(&self, before: Option<&LeaseSpec>) -> LeaseSpec {
        let now = MicroTime(Timestamp::now());
        let renewed = before.filter(|spec| spec.holder_identity.as_deref() == Some(&self.replica.name));
        let transitions = before.and_then(|spec| spec.lease_transitions).unwrap_or_default();
        LeaseSpec {
            holder_identity: Some(self.replica.name.clone()),
            lease_duration_seconds: i32::try_from(DURATION.as_secs()).ok(),
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
