//! Keeps one connection for each hypervisor, and carries out requests: one at a time for each machine.

use crate::exchange::Report;
use crate::gate::Gate;
use crate::kubevirt::{self, KubeVirt};
use crate::provider::CarryOut;
use crate::proxmox::Proxmox;
use crate::settings::{Limits, Settings};
use fleet::hypervisor::{Answer, ClusterKey, Failure, MachineId, Operation, Request};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

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
    busy: Mutex<BTreeMap<(ClusterKey, MachineId), Queue>>,
}

/// Those who wait for one machine.
type Queue = Arc<tokio::sync::Mutex<()>>;

struct Connected {
    link: Link,
    provider: Arc<dyn CarryOut>,
    /// How many requests it takes at once: also of a former connection, whose operations go on.
    gate: Arc<Gate>,
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
        let gate = known.filter(|known| known.gate.limit() == size).map(|known| known.gate.clone());
        let gate = gate.unwrap_or_else(|| Arc::new(Gate::new(size)));
        let provider: Arc<dyn CarryOut> = match &link {
            Link::Proxmox(settings) => Arc::new(Proxmox::new(settings, gate.clone(), self.report.clone())?),
            Link::KubeVirt(settings) => Arc::new(KubeVirt::new(settings, gate.clone(), self.report.clone())),
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
        if request.operation == Operation::Disconnect {
            self.disconnect(&request.cluster);
            return Ok(Answer::Done);
        }
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
    lock: Queue,
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

#[cfg(test)]
mod tests {
    use super::{Hands, Link};
    use crate::provider::CarryOut;
    use fleet::hypervisor::{Answer, ClusterKey, Failure, MachineId, Operation, Request};
    use futures::future::BoxFuture;
    use std::collections::BTreeMap;
    use std::sync::{Arc, Mutex};
    use tokio::sync::Semaphore;

    /// A provider whose operations end when they are let go.
    struct Slow {
        name: &'static str,
        gate: Semaphore,
        running: Mutex<BTreeMap<String, usize>>,
        log: Arc<Mutex<Vec<String>>>,
    }

    impl CarryOut for Slow {
        fn carry_out<'a>(&'a self, operation: &'a Operation) -> BoxFuture<'a, Result<Answer, Failure>> {
            Box::pin(async move {
                let id = operation.machine().map(|id| id.0.clone()).unwrap_or_default();
                *self.running.lock().unwrap().entry(id.clone()).or_default() += 1;
                self.log.lock().unwrap().push(format!("{} {id}", self.name));
                self.gate.acquire().await.unwrap().forget();
                *self.running.lock().unwrap().entry(id).or_default() -= 1;
                Ok(Answer::Done)
            })
        }
    }

    fn slow(name: &'static str, log: &Arc<Mutex<Vec<String>>>) -> Arc<Slow> {
        Arc::new(Slow { name, gate: Semaphore::new(0), running: Mutex::default(), log: log.clone() })
    }

    fn key() -> ClusterKey {
        ClusterKey { namespace: "ci".into(), name: "pve".into() }
    }

    fn inspect(id: &str) -> Request {
        Request { cluster: key(), endpoint: String::new(), operation: Operation::Inspect(MachineId(id.into())) }
    }

    /// Lets everything run that can.
    async fn settle() {
        for _ in 0..50 {
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn a_machine_has_one_operation_at_a_time_and_others_do_not_wait() {
        let log = Arc::default();
        let (hands, provider) = (Arc::new(Hands::new(Arc::new(|_| {}))), slow("a", &log));
        hands.connect(&key(), Link::Other(provider.clone())).unwrap();
        let mut running = Vec::new();
        for id in ["1", "1", "2"] {
            let hands = hands.clone();
            running.push(tokio::spawn(async move { hands.carry_out(&inspect(id)).await }));
        }
        settle().await;
        let counts = provider.running.lock().unwrap().clone();
        assert_eq!(counts, [("1".to_owned(), 1), ("2".to_owned(), 1)].into());
        provider.gate.add_permits(3);
        for task in running {
            assert_eq!(task.await.unwrap(), Ok(Answer::Done));
        }
        assert_eq!(log.lock().unwrap().len(), 3);
        assert!(hands.busy.lock().unwrap().is_empty(), "no queue is left");
    }

    #[tokio::test]
    async fn a_replaced_connection_ends_what_it_has_begun_and_begins_nothing_more() {
        let log = Arc::default();
        let hands = Arc::new(Hands::new(Arc::new(|_| {})));
        let (old, new) = (slow("old", &log), slow("new", &log));
        hands.connect(&key(), Link::Other(old.clone())).unwrap();
        let spawn = |id: &'static str| {
            let hands = hands.clone();
            tokio::spawn(async move { hands.carry_out(&inspect(id)).await })
        };
        let (first, waiting) = (spawn("1"), spawn("1"));
        settle().await;
        hands.connect(&key(), Link::Other(new.clone())).unwrap();
        new.gate.add_permits(2);
        assert_eq!(spawn("2").await.unwrap(), Ok(Answer::Done));
        old.gate.add_permits(1);
        assert_eq!((first.await.unwrap(), waiting.await.unwrap()), (Ok(Answer::Done), Ok(Answer::Done)));
        assert_eq!(*log.lock().unwrap(), ["old 1", "new 2", "new 1"]);
        let gone = Request { cluster: key(), endpoint: String::new(), operation: Operation::Disconnect };
        assert_eq!(hands.carry_out(&gone).await, Ok(Answer::Done));
        assert!(matches!(hands.carry_out(&inspect("1")).await, Err(Failure::Transient(_))));
        assert!(hands.connected().is_empty());
    }
}
