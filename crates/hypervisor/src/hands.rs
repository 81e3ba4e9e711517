//! Keeps one connection for each hypervisor, and carries out requests: one at a time for each machine.

use crate::exchange::Report;
use crate::kubevirt::{self, KubeVirt};
use crate::provider::CarryOut;
use crate::proxmox::Proxmox;
use crate::settings::{Limits, Settings};
use fleet::hypervisor::{Answer, ClusterKey, Failure, MachineId, Request};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use tokio::sync::Semaphore;

/// How a hypervisor is connected.
#[derive(Clone)]
pub enum Link {
    /// Proxmox VE.
    Proxmox(Box<Settings>),
    /// Virtual machines of KubeVirt in one namespace.
    KubeVirt(Box<kubevirt::Settings>),
    /// Any other provider, for tests.
    Other(Arc<dyn CarryOut>),
}

/// All connected hypervisors.
pub struct Hands {
    report: Report,
    clusters: Mutex<BTreeMap<ClusterKey, Connected>>,
    /// The machines that something is being done to.
    busy: Mutex<BTreeMap<(ClusterKey, MachineId), Arc<tokio::sync::Mutex<()>>>>,
}

struct Connected {
    link: Link,
    provider: Arc<dyn CarryOut>,
    /// How many requests it takes at once: also of a former connection, whose operations go on.
    gate: (usize, Arc<Semaphore>),
}

impl Hands {
    /// No hypervisor yet; every request is reported.
    pub fn new(report: Report) -> Hands {
        Hands { report, clusters: Mutex::default(), busy: Mutex::default() }
    }

    /// Connects a hypervisor, or replaces its connection if it has to be another one. Operations in flight end on the former one. Says
    /// what is wrong with the settings; nothing is sent.
    pub fn connect(&self, cluster: &ClusterKey, link: Link) -> Result<(), Failure> {
        let mut clusters = self.clusters.lock().unwrap_or_else(PoisonError::into_inner);
        let known = clusters.get(cluster);
        if known.is_some_and(|known| known.link.is_same(&link)) {
            return Ok(());
        }
        let size = link.limits().requests.max(1);
        let gate = known.filter(|known| known.gate.0 == size).map(|known| known.gate.clone());
        let gate = gate.unwrap_or_else(|| (size, Arc::new(Semaphore::new(size))));
        let provider: Arc<dyn CarryOut> = match &link {
            Link::Proxmox(settings) => Arc::new(Proxmox::new(settings, gate.1.clone(), self.report.clone())?),
            Link::KubeVirt(settings) => Arc::new(KubeVirt::new(settings, gate.1.clone(), self.report.clone())),
            Link::Other(provider) => provider.clone(),
        };
        clusters.insert(cluster.clone(), Connected { link, provider, gate });
        Ok(())
    }

    /// Forgets a hypervisor. Operations in flight end as they would have.
    pub fn disconnect(&self, cluster: &ClusterKey) {
        self.clusters.lock().unwrap_or_else(PoisonError::into_inner).remove(cluster);
    }

    /// The hypervisors that are connected.
    pub fn connected(&self) -> Vec<ClusterKey> {
        self.clusters.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }

    /// Carries out one request. A second one for the same machine waits for the first.
    pub async fn carry_out(&self, request: &Request) -> Result<Answer, Failure> {
        let turn = request.operation.machine().map(|id| Turn::new(self, (request.cluster.clone(), id.clone())));
        let _turn = match &turn {
            Some(turn) => Some(turn.lock.lock().await),
            None => None,
        };
        // Looked up when it is its turn: credentials may have been rotated meanwhile.
        let provider = {
            let clusters = self.clusters.lock().unwrap_or_else(PoisonError::into_inner);
            clusters.get(&request.cluster).map(|connected| connected.provider.clone())
        };
        match provider {
            Some(provider) => provider.carry_out(&request.operation).await,
            None => {
                let ClusterKey { namespace, name } = &request.cluster;
                Err(Failure::Transient(format!("the hypervisor {namespace}/{name} is not connected")))
            }
        }
    }
}

impl Link {
    fn is_same(&self, other: &Link) -> bool {
        match (self, other) {
            (Link::Proxmox(one), Link::Proxmox(other)) => one == other,
            (Link::KubeVirt(one), Link::KubeVirt(other)) => one.is_same(other),
            (Link::Other(one), Link::Other(other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }

    fn limits(&self) -> Limits {
        match self {
            Link::Proxmox(settings) => settings.limits,
            Link::KubeVirt(settings) => settings.limits,
            Link::Other(_) => Limits::default(),
        }
    }
}

/// A place in the queue of one machine. The last one to leave takes the queue away.
struct Turn<'a> {
    hands: &'a Hands,
    key: (ClusterKey, MachineId),
    lock: Arc<tokio::sync::Mutex<()>>,
}

impl<'a> Turn<'a> {
    fn new(hands: &'a Hands, key: (ClusterKey, MachineId)) -> Turn<'a> {
        let mut busy = hands.busy.lock().unwrap_or_else(PoisonError::into_inner);
        let lock = busy.entry(key.clone()).or_default().clone();
        Turn { hands, key, lock }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        let mut busy = self.hands.busy.lock().unwrap_or_else(PoisonError::into_inner);
        // One is in the map, one is this.
        if Arc::strong_count(&self.lock) <= 2 {
            busy.remove(&self.key);
        }
    }
}
