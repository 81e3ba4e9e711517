//! A model of the election that stateright explores: replicas, their clocks, pods and processes, and an API server. Our replicas run the
//! function that production runs.
//!
//! Other pod names are other replicas, which start at any time. A write that arrives twice is the second time one of a former version.
//!
//! A write either names the lease's version or a former one, and an observation is of the version or of a former one: nothing else about
//! versions matters, so a state has no numbers that grow. Times are kept relative to the present for the same reason, so that the number of
//! states is finite and all of them are explored. Times are in units of about a tenth of a tick; only their order matters.

mod checks;
mod rules;

use rules::{GO_TIMEOUT, Rules};
use stateright::{Model, Property};

/// How long nobody but a replica may lead after its own deadline: its last request may still be answered.
const GRACE: i16 = 20;
/// A replica that is not paused waits no longer for an answer.
const TIMEOUT: i16 = 20;
/// Older is as good as this.
const OLDEST: i16 = 80;

/// Which program a replica is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Program {
    Ours,
    /// The Go operator, with the rules of client-go.
    Go,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Process {
    NotStarted,
    Runs,
    /// Stopped by a signal, or starved; its clock goes on.
    Paused,
    Dead,
}

/// What the API server reports of a pod.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum PodReport {
    /// It is not over; the states of its containers may be old.
    Open,
    /// The kubelet has seen it end.
    Ended,
    /// Deleted by force: it may still run.
    Absent,
    /// Ended by the garbage collector without the kubelet: it may still run.
    Abandoned,
    /// The kubelet has lost its containers: they may still run.
    Lost,
}

/// A write on its way: the replica that sent it, whether it frees the lease, and whether the version it names is still the present one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
struct Put {
    by: usize,
    frees: bool,
    is_current: bool,
}

/// A request of the election, with its age by the replica's clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Call {
    None,
    Reading(i16),
    Writing(i16, Put),
    /// The server has done it; the replica does not know yet.
    Written(i16),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Replica {
    program: Program,
    /// How much of its own time passes in a tick.
    rate: i16,
    process: Process,
    pod: PodReport,
    call: Call,
    /// How long ago it first read the present version.
    seen: Option<i16>,
    /// How long it still leads.
    leads: Option<i16>,
}

impl Replica {
    /// Whether a write that it sent as the leader may still arrive.
    fn acts(&self) -> bool {
        let grace = if self.program == Program::Ours { GRACE } else { 0 };
        matches!(self.process, Process::Runs | Process::Paused) && self.leads.is_some_and(|left| left > -grace)
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Lease {
    Missing,
    Free,
    Held(usize),
}

/// How many faults of a kind may still happen.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
struct Faults {
    crashes: u8,
    pauses: u8,
    /// Wrong reports about pods.
    pods: u8,
    /// Writes that arrive after nobody waits for them any more.
    late: u8,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash)]
struct State {
    lease: Lease,
    replicas: Vec<Replica>,
    /// Writes that nobody waits for any more; they arrive at any time, or never.
    late: Vec<Put>,
    faults: Faults,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
enum Event {
    /// Time passes for everybody.
    Tick,
    Start(usize),
    /// It begins to read the lease.
    Read(usize),
    /// It gets the lease, and decides.
    Decide(usize),
    /// Its write arrives at the server.
    Arrive(usize),
    /// It gets the answer to its write.
    Learn(usize),
    /// It does not wait for an answer any longer.
    GiveUp(usize),
    ArriveLate(usize),
    /// It gets SIGTERM: it releases the lease and ends.
    Stop(usize),
    Crash(usize),
    /// The container is started again in the same pod.
    Restart(usize),
    Pause(usize),
    Resume(usize),
    Report(usize, PodReport),
}

struct Election {
    programs: Vec<(Program, i16)>,
    faults: Faults,
    rules: Rules,
}

impl Election {
    /// The server's part of a write; whether it was accepted.
    fn arrive(&self, state: &mut State, put: Put) -> bool {
        if self.rules.checks_version && !put.is_current {
            return false;
        }
        state.lease = if put.frees { Lease::Free } else { Lease::Held(put.by) };
        // The version is a new one.
        for replica in &mut state.replicas {
            replica.seen = None;
            if let Call::Writing(_, put) = &mut replica.call {
                put.is_current = false;
            }
        }
        for put in &mut state.late {
            put.is_current = false;
        }
        if self.rules.checks_version {
            state.late.clear();
        }
        true
    }

    /// A replica does not wait for its write any longer; the write may still arrive.
    fn abandon(&self, state: &mut State, index: usize) {
        let call = std::mem::replace(&mut state.replicas[index].call, Call::None);
        if let Call::Writing(_, put) = call
            && (put.is_current || !self.rules.checks_version)
            && state.faults.late > 0
        {
            state.faults.late -= 1;
            state.late.push(put);
            state.late.sort_unstable();
        }
    }

    fn end(&self, state: &mut State, index: usize) {
        self.abandon(state, index);
        let replica = &mut state.replicas[index];
        (replica.process, replica.seen, replica.leads) = (Process::Dead, None, None);
    }

    fn tick(&self, state: &mut State) {
        for index in 0..state.replicas.len() {
            let replica = &mut state.replicas[index];
            let rate = replica.rate;
            let grow = |age: &mut i16| *age = (*age + rate).min(OLDEST);
            replica.seen.iter_mut().for_each(grow);
            replica.leads = replica.leads.map(|left| (left - rate).max(-GRACE));
            match &mut replica.call {
                Call::None => {}
                Call::Reading(age) | Call::Writing(age, _) | Call::Written(age) => {
                    grow(age);
                    let limit = if replica.program == Program::Go { GO_TIMEOUT + rate } else { TIMEOUT };
                    if *age >= limit && replica.process != Process::Paused {
                        self.abandon(state, index);
                    }
                }
            }
            let replica = &state.replicas[index];
            if replica.program == Program::Go && replica.leads.is_some_and(|left| left <= 0) {
                self.end(state, index);
            }
        }
    }

    fn decide(&self, state: &mut State, index: usize, begun: i16) {
        state.replicas[index].call = Call::None;
        if self.rules.decide(state, index, begun) {
            let is_current = true;
            state.replicas[index].call = Call::Writing(begun, Put { by: index, frees: false, is_current });
        }
    }

    fn stop(&self, state: &mut State, index: usize) {
        self.end(state, index);
        if state.lease == Lease::Held(index) && state.faults.late > 0 {
            state.faults.late -= 1;
            state.late.push(Put { by: index, frees: true, is_current: true });
        }
    }

    /// What may happen to one replica.
    fn events_of(state: &State, index: usize, events: &mut Vec<Event>) {
        let Replica { program, process, pod, call, leads, .. } = state.replicas[index];
        let (is_ours, faults) = (program == Program::Ours, state.faults);
        match (process, call) {
            (Process::NotStarted, _) => events.push(Event::Start(index)),
            (Process::Runs, Call::None) => events.push(Event::Read(index)),
            (Process::Runs, Call::Reading(_)) => events.extend([Event::Decide(index), Event::GiveUp(index)]),
            (Process::Runs | Process::Paused, Call::Writing(..)) => events.push(Event::Arrive(index)),
            (Process::Runs, Call::Written(_)) => events.extend([Event::Learn(index), Event::GiveUp(index)]),
            _ => {}
        }
        if process == Process::Runs && matches!(call, Call::Writing(..)) {
            events.push(Event::GiveUp(index));
        }
        if matches!(process, Process::Runs | Process::Paused) && faults.crashes > 0 {
            events.push(Event::Crash(index));
        }
        if !is_ours {
            return;
        }
        match process {
            Process::Runs if leads.is_some() && call == Call::None => events.push(Event::Stop(index)),
            Process::Dead if pod != PodReport::Ended => events.push(Event::Restart(index)),
            Process::Paused => events.push(Event::Resume(index)),
            _ => {}
        }
        if process == Process::Runs && faults.pauses > 0 {
            events.push(Event::Pause(index));
        }
        if pod == PodReport::Open && process == Process::Dead {
            events.push(Event::Report(index, PodReport::Ended));
        }
        if pod == PodReport::Open && faults.pods > 0 && process != Process::NotStarted {
            let wrong = [PodReport::Absent, PodReport::Abandoned, PodReport::Lost];
            events.extend(wrong.map(|report| Event::Report(index, report)));
        }
    }

    fn happen(&self, state: &mut State, event: Event) {
        match event {
            Event::Tick => self.tick(state),
            Event::Start(index) | Event::Restart(index) | Event::Resume(index) => {
                state.replicas[index].process = Process::Runs;
            }
            Event::Read(index) => state.replicas[index].call = Call::Reading(0),
            Event::Decide(index) => {
                if let Call::Reading(begun) = state.replicas[index].call {
                    self.decide(state, index, begun);
                }
            }
            Event::Arrive(index) => {
                if let Call::Writing(begun, put) = state.replicas[index].call {
                    let is_accepted = self.arrive(state, put);
                    state.replicas[index].call = if is_accepted { Call::Written(begun) } else { Call::None };
                }
            }
            Event::Learn(index) => {
                let replica = &mut state.replicas[index];
                if let Call::Written(begun) = std::mem::replace(&mut replica.call, Call::None) {
                    replica.leads = Some(Rules::held(replica.program, begun));
                }
            }
            Event::GiveUp(index) => self.abandon(state, index),
            Event::ArriveLate(number) => {
                let put = state.late.remove(number);
                self.arrive(state, put);
            }
            Event::Stop(index) => self.stop(state, index),
            Event::Crash(index) => {
                state.faults.crashes -= 1;
                self.end(state, index);
            }
            Event::Pause(index) => {
                state.faults.pauses -= 1;
                state.replicas[index].process = Process::Paused;
            }
            Event::Report(index, report) => {
                state.faults.pods -= u8::from(report != PodReport::Ended);
                state.replicas[index].pod = report;
            }
        }
    }

    /// Whether somebody leads soon, if some replica runs and nothing goes wrong any more.
    fn recovers(&self, state: &State) -> bool {
        let mut state = State { late: Vec::new(), ..state.clone() };
        for replica in &mut state.replicas {
            replica.call = Call::None;
            if replica.process == Process::Paused {
                replica.process = Process::Runs;
            }
        }
        for _ in 0..=10 {
            let running = (0..state.replicas.len()).filter(|index| state.replicas[*index].process == Process::Runs);
            let running: Vec<usize> = running.collect();
            for index in &running {
                for event in [Event::Read(*index), Event::Decide(*index), Event::Arrive(*index), Event::Learn(*index)] {
                    self.happen(&mut state, event);
                }
            }
            if running.is_empty()
                || running.iter().any(|index| state.replicas[*index].leads.is_some_and(|left| left > 0))
            {
                return true;
            }
            self.tick(&mut state);
        }
        false
    }
}

impl Model for Election {
    type State = State;
    type Action = Event;

    fn init_states(&self) -> Vec<State> {
        let replica = |(program, rate): &(Program, i16)| Replica {
            program: *program,
            rate: *rate,
            process: Process::NotStarted,
            pod: PodReport::Open,
            call: Call::None,
            seen: None,
            leads: None,
        };
        let replicas = self.programs.iter().map(replica).collect();
        vec![State { lease: Lease::Missing, replicas, late: Vec::new(), faults: self.faults }]
    }

    fn actions(&self, state: &State, events: &mut Vec<Event>) {
        events.push(Event::Tick);
        (0..state.replicas.len()).for_each(|index| Election::events_of(state, index, events));
        events.extend((0..state.late.len()).map(Event::ArriveLate));
    }

    fn next_state(&self, state: &State, event: Event) -> Option<State> {
        let mut next = state.clone();
        self.happen(&mut next, event);
        (next != *state).then_some(next)
    }

    fn properties(&self) -> Vec<Property<Election>> {
        vec![
            Property::always(checks::ONE, |_, state: &State| {
                state.replicas.iter().filter(|one| one.acts()).count() <= 1
            }),
            Property::always(checks::RECOVERS, Election::recovers),
            Property::sometimes(checks::LAST_LEADS, |_, state: &State| {
                state.replicas.last().is_some_and(Replica::acts)
            }),
            Property::sometimes(checks::FOLLOWED, |_, state: &State| {
                // Somebody decided that the holder's pod has ended while its lease still lasts.
                let Lease::Held(holder) = state.lease else { return false };
                let is_ended = state.replicas[holder].pod == PodReport::Ended;
                let writes =
                    |one: &Replica| matches!(one.call, Call::Writing(..)) && one.seen.is_some_and(|age| age < 20);
                is_ended && state.replicas.iter().any(writes)
            }),
        ]
    }
}
