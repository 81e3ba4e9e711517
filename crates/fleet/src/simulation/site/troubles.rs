//! What goes wrong at the hypervisor, at the API server and in machines, and GitHub's limit of requests.

use super::{Answer, Event, Site, wall};
use crate::forge::budget::{CORE, Left, Meter, Priority, Ticket, Verdict};
use crate::forge::{Ask, Failure as ForgeFailure};
use crate::hypervisor::{Failure, Operation, Power};
use jiff::Timestamp;
use protocol::{Write, WriteError, Written};
use serde_json::Value;

/// The window of GitHub's limit, in milliseconds.
const HOUR: u64 = 3_600_000;

impl Site {
    fn goes_wrong(&mut self, percent: u64) -> bool {
        self.is_rough && self.random.chance(percent)
    }

    /// Sends a request to the hypervisor: it may be refused, get lost, arrive when nobody waits any more, or its answer is lost or late.
    pub(super) fn send(&mut self, number: u64, operation: &Operation) -> Vec<Event<Answer>> {
        let answer = |answer| vec![Event::Elsewhere(number, Answer::Hypervisor(answer))];
        let lost = || Err(Failure::Transient("connection reset".into()));
        if self.goes_wrong(6) {
            return answer(lost());
        }
        if self.goes_wrong(5) {
            let at = self.now + self.random.between(5_000, 40_000);
            self.stray.push((at, operation.clone()));
            return answer(lost());
        }
        if let Some(failure) = self.refusal(operation) {
            return answer(Err(failure));
        }
        let result = self.operate(operation);
        if self.goes_wrong(6) {
            return answer(lost());
        }
        if self.goes_wrong(20) {
            return self.later(number, Answer::Hypervisor(result));
        }
        answer(result)
    }

    /// A person has to do something, there is no room, or it is wrong for ever.
    fn refusal(&mut self, operation: &Operation) -> Option<Failure> {
        operation.machine()?;
        let (message, remedy) = ("refused".to_owned(), "do something".to_owned());
        if self.goes_wrong(1) {
            return Some(Failure::Configuration { message, remedy });
        }
        if self.goes_wrong(1) {
            return Some(Failure::Resource { message, remedy });
        }
        self.goes_wrong(1).then_some(Failure::Permanent(message))
    }

    /// Writes an object: the request or its answer may get lost.
    #[expect(clippy::result_large_err, reason = "it is what a core is told")]
    pub(super) fn write(&mut self, write: &Write) -> Result<Written, WriteError> {
        let lost = || Err(WriteError::Transient { key: write.key.clone(), message: "no answer".into() });
        if self.goes_wrong(4) {
            return lost();
        }
        let answer = self.api.write(write, "u", wall(self.now));
        if self.goes_wrong(4) { lost() } else { answer }
    }

    /// Requests of before arrive, machines lose their power, nodes and the hypervisor come and go.
    pub(super) fn pass_troubles(&mut self) {
        let due: Vec<Operation> =
            self.stray.iter().filter(|(at, _)| *at <= self.now).map(|(_, one)| one.clone()).collect();
        self.stray.retain(|(at, _)| *at > self.now);
        for operation in due {
            let _ = self.operate(&operation);
        }
        // Those that have failed are kept for people, and others take their place.
        let is_wanted =
            |claim: &&Value| claim["status"]["phase"] != "Failed" && claim["metadata"]["deletionTimestamp"].is_null();
        let claims = self.api.objects.iter().filter(|(key, _)| key.0 == "MachineClaim").map(|(_, claim)| claim);
        self.most_claims = self.most_claims.max(claims.filter(is_wanted).count());
        if !self.is_rough {
            return;
        }
        if self.random.below(150) == 0 {
            let on = self.hypervisor.vms.iter().filter(|(_, vm)| vm.power == Power::Running);
            let on: Vec<String> = on.map(|(id, _)| id.clone()).collect();
            if let Some(id) = on.get(usize::try_from(self.random.below(on.len() as u64)).unwrap()) {
                self.power_fails(id);
            }
        }
        if self.random.below(600) == 0 {
            self.hypervisor.is_down = true;
        } else if self.random.below(30) == 0 {
            self.hypervisor.is_down = false;
        }
        if self.random.below(600) == 0 {
            self.hypervisor.offline.insert("b".into());
        } else if self.random.below(60) == 0 {
            self.hypervisor.offline.clear();
        }
    }

    /// From now on everything works.
    pub(in crate::simulation) fn calm_down(&mut self) {
        (self.has_faults, self.is_rough, self.hypervisor.is_down) = (false, false, false);
        self.hypervisor.offline.clear();
    }

    /// A machine is switched off by somebody, or its host crashes: GitHub finds out later, and the job on it has failed.
    fn power_fails(&mut self, id: &str) {
        if let Some(vm) = self.hypervisor.vms.get_mut(id) {
            vm.switch_off();
            self.power_failures += 1;
        }
        if let Some((_, runner)) = self.guests.remove(id).and_then(|guest| guest.report) {
            let at = self.now + self.random.between(30_000, 600_000);
            self.hub.crash(runner, at);
        }
    }

    /// Whether a request may be sent; those to the service of scale sets do not count.
    pub(super) fn admit(&mut self, ask: &Ask) -> Result<Option<Ticket>, ForgeFailure> {
        let (priority, is_write) = match ask {
            Ask::ScaleSet(_) => return Ok(None),
            _ if self.hub.limit.is_none() => return Ok(None),
            Ask::JitConfig(_) | Ask::RemoveRunner(_) => (Priority::Urgent, true),
            Ask::Redeliver { .. } => (Priority::Normal, true),
            Ask::Check | Ask::Job { .. } | Ask::FindHook { .. } | Ask::RunnerVersions => (Priority::Normal, false),
            Ask::ListJobs { .. } | Ask::ListRunners { .. } | Ask::Deliveries { .. } => (Priority::Bulk, false),
        };
        let place = self.budget.enter(priority);
        match self.budget.admit(place, is_write, CORE, wall(self.now)) {
            Verdict::Go(ticket) => Ok(Some(ticket)),
            Verdict::Limited { until, why } => {
                self.budget.leave(place);
                Err(ForgeFailure::RateLimited { message: why.to_owned(), until })
            }
            Verdict::Wait => panic!("nothing is in flight"),
        }
    }

    /// It never arrives, but who has sent it does not know that.
    pub(super) fn unmetered(&mut self, ticket: Option<Ticket>) {
        if let Some(ticket) = ticket {
            self.budget.lost(&ticket, wall(self.now));
        }
    }

    /// It arrives and is counted. Only the first request of a process cannot know that nothing is left.
    pub(super) fn meter(&mut self, ticket: Option<Ticket>) -> Result<(), ForgeFailure> {
        let (Some(limit), Some(ticket)) = (self.hub.limit, ticket) else { return Ok(()) };
        let window = self.now / HOUR;
        if self.hub.window.0 != window {
            self.hub.window = (window, 0);
        }
        let is_refused = self.hub.window.1 >= limit;
        self.hub.window.1 += u64::from(!is_refused);
        let reset: Timestamp = wall((window + 1) * HOUR);
        let left = Left { limit, remaining: limit - self.hub.window.1, reset };
        let meter = Meter { status: if is_refused { 403 } else { 200 }, hour: Some(left), ..Meter::default() };
        let until = self.budget.answered(&ticket, &meter, wall(self.now));
        if !is_refused {
            return Ok(());
        }
        self.refused += 1;
        if self.refused > 1 {
            self.hub.broken.push(format!("request {} of a limit of {limit}", limit + u64::from(self.refused)));
        }
        Err(ForgeFailure::RateLimited { message: "none are left".into(), until: until.unwrap_or(reset) })
    }
}
