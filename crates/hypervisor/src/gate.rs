//! How many requests a hypervisor takes at once. Nodes that do not answer leave room for the requests about others.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::timeout;

/// The gate of one hypervisor: also of a former connection, whose operations go on.
pub struct Gate {
    limit: usize,
    all: Arc<Semaphore>,
    /// For requests about nodes that have left one without an answer.
    silent: Arc<Semaphore>,
    nodes: Mutex<BTreeMap<String, Arc<Lane>>>,
}

/// What is asked about one node.
struct Lane {
    free: Arc<Semaphore>,
    /// While it is silent it is asked one thing at a time.
    alone: Arc<Semaphore>,
    is_silent: AtomicBool,
}

/// A request in its turn; dropped, it makes room for the next one.
pub(crate) struct Permit {
    lane: Option<Arc<Lane>>,
    _held: Vec<OwnedSemaphorePermit>,
}

/// The node has left an earlier request without an answer, and others wait for it already.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct Silent;

impl Gate {
    /// For so many requests at once; half of them may be about one node, and a quarter about nodes that do not answer.
    pub fn new(limit: usize) -> Gate {
        let limit = limit.max(1);
        let semaphore = |permits: usize| Arc::new(Semaphore::new(permits.max(1)));
        Gate { limit, all: semaphore(limit), silent: semaphore(limit / 4), nodes: Mutex::default() }
    }

    /// How many requests it lets through at once.
    pub(crate) fn limit(&self) -> usize {
        self.limit
    }

    /// Waits for the turn of a request about a node, or about none; not longer than `patience` for a node that is silent.
    pub(crate) async fn enter(&self, node: Option<&str>, patience: Duration) -> Result<Permit, Silent> {
        let lane = node.map(|node| self.lane(node));
        let mut held = match &lane {
            Some(lane) => self.turn(lane, patience).await?,
            None => Vec::new(),
        };
        held.extend(acquire(&self.all).await);
        Ok(Permit { lane, _held: held })
    }

    /// Waits for the turn of a request among those about its node.
    async fn turn(&self, lane: &Lane, patience: Duration) -> Result<Vec<OwnedSemaphorePermit>, Silent> {
        loop {
            if lane.is_silent() {
                let turn = async { [acquire(&lane.alone).await, acquire(&self.silent).await] };
                let held = timeout(patience, turn).await.map_err(|_| Silent)?;
                if lane.is_silent() {
                    return Ok(held.into_iter().flatten().collect());
                }
            }
            let held = acquire(&lane.free).await;
            if !lane.is_silent() {
                return Ok(held.into_iter().collect());
            }
        }
    }

    fn lane(&self, node: &str) -> Arc<Lane> {
        let mut nodes = self.nodes.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(lane) = nodes.get(node) {
            return lane.clone();
        }
        let lane = Arc::new(Lane {
            free: Arc::new(Semaphore::new(self.limit.div_ceil(2))),
            alone: Arc::new(Semaphore::new(1)),
            is_silent: AtomicBool::new(false),
        });
        nodes.insert(node.to_owned(), lane.clone());
        lane
    }
}

impl Lane {
    fn is_silent(&self) -> bool {
        self.is_silent.load(Ordering::Relaxed)
    }
}

/// A permit; none of these semaphores is ever closed.
async fn acquire(semaphore: &Arc<Semaphore>) -> Option<OwnedSemaphorePermit> {
    semaphore.clone().acquire_owned().await.ok()
}

impl Permit {
    /// Takes whether the node has answered.
    pub(crate) fn ended(&self, has_answered: bool) {
        if let Some(lane) = &self.lane {
            lane.is_silent.store(!has_answered, Ordering::Relaxed);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Gate, Permit, Silent};
    use futures::FutureExt;
    use std::time::Duration;
    use std::time::Instant;

    const PATIENCE: Duration = Duration::from_millis(20);

    /// A permit if there is one now.
    fn now(gate: &Gate, node: Option<&str>) -> Option<Permit> {
        gate.enter(node, PATIENCE).now_or_never().map(Result::unwrap)
    }

    fn all(gate: &Gate, node: Option<&str>) -> Vec<Permit> {
        let mut permits = Vec::new();
        while let Some(permit) = now(gate, node) {
            permits.push(permit);
        }
        permits
    }

    #[test]
    fn one_node_takes_half_and_what_is_about_no_node_takes_all() {
        let gate = Gate::new(8);
        let first = all(&gate, Some("a"));
        let second = all(&gate, Some("b"));
        assert_eq!((first.len(), second.len(), all(&gate, Some("c")).len()), (4, 4, 0));
        drop((first, second));
        assert_eq!(all(&gate, None).len(), 8);
        assert_eq!(all(&Gate::new(1), Some("a")).len(), 1);
    }

    #[tokio::test]
    async fn nodes_that_do_not_answer_are_asked_one_thing_at_a_time_until_they_answer() {
        let gate = Gate::new(8);
        for node in ["a", "b", "c"] {
            now(&gate, Some(node)).unwrap().ended(false);
        }
        let silent: Vec<Permit> = [all(&gate, Some("a")), all(&gate, Some("b"))].into_iter().flatten().collect();
        assert_eq!((silent.len(), all(&gate, Some("c")).len()), (2, 0));
        assert_eq!(all(&gate, Some("d")).len(), 4, "others are asked as ever");
        let began = Instant::now();
        assert_eq!(gate.enter(Some("a"), PATIENCE).await.err(), Some(Silent));
        assert!(began.elapsed() >= PATIENCE, "it has waited, and nobody waits for ever");
        silent[0].ended(true);
        drop(silent);
        assert_eq!(all(&gate, Some("a")).len(), 4, "it has answered");
    }
}
