//! Lets requests of one account through as its budget allows.

use fleet::forge::budget::{Budget, Limits, Meter, Place, Priority, Ticket, Verdict};
use jiff::Timestamp;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;
use tokio::sync::Notify;

/// The budgets of one login: of the App itself, and of whoever manages runners.
pub(crate) struct Gates {
    pub(crate) app: Gate,
    pub(crate) manager: Gate,
}

impl Gates {
    pub(crate) fn new(limits: Limits) -> Arc<Gates> {
        Arc::new(Gates { app: Gate::new(limits), manager: Gate::new(limits) })
    }
}

/// The budget of one account.
pub(crate) struct Gate {
    budget: Mutex<Budget>,
    changed: Notify,
}

impl Gate {
    fn new(limits: Limits) -> Gate {
        Gate { budget: Mutex::new(Budget::new(limits)), changed: Notify::new() }
    }

    /// Waits for the turn of a request, for a limit at most so long; when it may be sent otherwise, and why not now.
    pub(crate) async fn enter(
        &self,
        priority: Priority,
        is_write: bool,
        resource: &str,
        longest: Duration,
    ) -> Result<Pass<'_>, (Timestamp, &'static str)> {
        let waiting = Waiting { gate: self, place: self.with(|budget| budget.enter(priority)) };
        loop {
            let changed = self.changed.notified();
            tokio::pin!(changed);
            // Before the question, so that no change after it is missed.
            changed.as_mut().enable();
            let now = Timestamp::now();
            match self.with(|budget| budget.admit(waiting.place, is_write, resource, now)) {
                Verdict::Go(ticket) => return Ok(Pass { gate: self, ticket, is_over: false }),
                Verdict::Wait => changed.await,
                Verdict::Limited { until, why } => {
                    let left = Duration::try_from(until.duration_since(now)).unwrap_or_default();
                    if left > longest {
                        return Err((until, why));
                    }
                    tokio::time::sleep(left).await;
                }
            }
        }
    }

    /// How many requests an hour has, and how many are left.
    pub(crate) fn left(&self) -> Option<(u64, u64)> {
        self.with(|budget| budget.left())
    }

    /// When the hour of the budget ends, if that is known.
    pub(crate) fn reset(&self) -> Option<jiff::Timestamp> {
        self.with(|budget| budget.reset())
    }

    fn with<T>(&self, action: impl FnOnce(&mut Budget) -> T) -> T {
        action(&mut self.budget.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// A place in the queue, which is left whatever happens.
struct Waiting<'a> {
    gate: &'a Gate,
    place: Place,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.gate.with(|budget| budget.leave(self.place));
        self.gate.changed.notify_waiters();
    }
}

/// A request that may be sent. If it is dropped, it may have been counted.
pub(crate) struct Pass<'a> {
    gate: &'a Gate,
    ticket: Ticket,
    is_over: bool,
}

impl Pass<'_> {
    /// It was not sent after all.
    pub(crate) fn unsent(mut self) {
        self.is_over = true;
        self.gate.with(|budget| budget.unsent(&self.ticket));
        self.gate.changed.notify_waiters();
    }

    /// An answer came; when it may be asked again, if a limit refused it.
    pub(crate) fn answered(mut self, meter: &Meter) -> Option<Timestamp> {
        self.is_over = true;
        let until = self.gate.with(|budget| budget.answered(&self.ticket, meter, Timestamp::now()));
        self.gate.changed.notify_waiters();
        until
    }
}

impl Drop for Pass<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.gate.with(|budget| budget.lost(&self.ticket, Timestamp::now()));
            self.gate.changed.notify_waiters();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Gate;
    use fleet::forge::budget::{CORE, Limits, Meter, Priority};
    use std::sync::Arc;
    use std::time::Duration;

    fn answered() -> Meter {
        Meter { status: 200, ..Meter::default() }
    }

    /// One request at once: whoever waits gets its turn, what cannot wait first, and one that gave up holds up nobody.
    #[tokio::test]
    async fn a_removal_goes_before_lists_that_wait_longer() {
        let gate = Arc::new(Gate::new(Limits { concurrent: 1, points: 100 }));
        let first = gate.enter(Priority::Bulk, false, CORE, Duration::ZERO).await.unwrap();
        let (order, mut tasks) = (Arc::new(std::sync::Mutex::new(Vec::new())), Vec::new());
        for (name, priority) in [
            ("list", Priority::Bulk),
            ("given up", Priority::Urgent),
            ("job", Priority::Normal),
            ("removal", Priority::Urgent),
        ] {
            let (gate, order) = (gate.clone(), order.clone());
            tasks.push(tokio::spawn(async move {
                let pass = gate.enter(priority, false, CORE, Duration::ZERO).await.unwrap();
                order.lock().unwrap().push(name);
                tokio::task::yield_now().await;
                pass.answered(&answered());
            }));
            tokio::task::yield_now().await;
        }
        let given_up = tasks.remove(1);
        given_up.abort();
        assert!(given_up.await.unwrap_err().is_cancelled());
        first.answered(&answered());
        for task in tasks {
            task.await.unwrap();
        }
        assert_eq!(*order.lock().unwrap(), ["removal", "job", "list"]);
    }

    #[tokio::test]
    async fn a_request_that_was_dropped_frees_its_place() {
        let gate = Gate::new(Limits { concurrent: 1, points: 100 });
        drop(gate.enter(Priority::Bulk, false, CORE, Duration::ZERO).await.unwrap());
        gate.enter(Priority::Bulk, false, CORE, Duration::ZERO).await.unwrap().answered(&answered());
    }
}
