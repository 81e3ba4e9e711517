//! The life of a guest as a pure state machine: what happened and the time in, what is to be done out. It always ends with the power off.

#[cfg(test)]
mod tests;

use bootstrap::{EndReason, Limits, MAX_MESSAGE, Phase, Step, truncated};
use std::time::Duration;

/// How long reading the configuration may take.
const CONFIGURE: Duration = Duration::from_secs(60);
/// The pause after a request that failed.
const RETRY: Duration = Duration::from_secs(2);
/// How long a runner that was killed may take to be gone.
const KILL: Duration = Duration::from_secs(5);
/// How long wiping may take.
const WIPE: Duration = Duration::from_secs(10);
/// The pause between two attempts to power off.
const POWER_OFF: Duration = Duration::from_secs(20);
/// What GitHub's runner exits with if its version is too old.
const DEPRECATED: i32 = 7;

/// What has happened.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Event {
    /// The configuration was read.
    Configured(Limits),
    /// The operator has answered with credentials.
    Granted {
        /// After which time the runner can no longer get a job with them.
        expire_in: Duration,
        /// Whether there is an archive to get, check and unpack.
        has_archive: bool,
        /// Whether they are to be removed when the job starts.
        remove_at_job_start: bool,
    },
    /// The operator cannot be reached or has no credentials yet.
    NotYet(String),
    /// The current step is done: the archive was downloaded, checked or unpacked, the credentials were placed, the runner was started.
    Done(Step),
    /// A step has failed and is not tried again.
    Failed(Step, String),
    /// The runner has a job.
    JobStarted,
    /// The job has a result.
    JobEnded,
    /// The runner has exited, with this code unless by a signal.
    RunnerExited(Option<i32>),
    /// The operator has taken a report.
    Heard {
        /// Whether it asks the guest to end unless a job runs.
        stop: bool,
    },
    /// A report has failed.
    Unheard,
    /// The last report was sent, or will never be taken.
    EndSent,
    /// The last report has failed.
    EndUnsent,
    /// Everything was wiped.
    Wiped,
    /// Somebody stops the guest.
    Terminate,
    /// Time has passed.
    Tick,
}

/// What is to be done. Each one but the last two answers with an event.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Action {
    /// Do this step.
    Do(Step),
    /// Report this phase.
    Report(Phase),
    /// Ask the runner to stop.
    StopRunner,
    /// Kill the runner and all its processes.
    KillRunner,
    /// Remove the runner's credentials.
    RemoveCredentials,
    /// Send the last report.
    SendEnd(Outcome),
    /// Overwrite and remove what the guest had.
    Wipe,
    /// Power off.
    PowerOff,
}

/// Why a guest ends.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Outcome {
    /// Why, in one word.
    pub reason: EndReason,
    /// At which step.
    pub step: Step,
    /// Why, in a sentence.
    pub message: String,
    /// Whether a job was started.
    pub ran_job: bool,
    /// What the runner exited with.
    pub exit_code: Option<i32>,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
enum State {
    /// On the way to the end of a job.
    At(Step),
    /// The runner was asked to stop.
    Stopping(Outcome),
    /// The runner was killed.
    Killing(Outcome),
    /// The last report is on its way.
    Ending {
        outcome: Outcome,
        /// When it failed.
        failed: Option<Duration>,
        /// When it was first tried.
        began: Duration,
    },
    /// What the guest had is being wiped.
    Wiping,
    /// The power is being switched off.
    Off,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
enum Process {
    None,
    /// It was or will be started.
    Asked,
    Exited(Option<i32>),
}

/// The life of a guest. All times count from its start.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Life {
    limits: Limits,
    state: State,
    /// When the state, or the preparation as a whole, began.
    since: Duration,
    /// Whether the operator has granted anything, so that it can be reported to.
    is_granted: bool,
    has_archive: bool,
    remove_at_job_start: bool,
    expires: Option<Duration>,
    /// When the exchange is repeated, and why it was not successful so far.
    retry: Option<(Duration, String)>,
    process: Process,
    job_ended: Option<Duration>,
    heard: Duration,
    beat: Duration,
    is_reporting: bool,
    reported: Option<Phase>,
}

impl Life {
    /// A guest that has just started, and what it does first.
    pub fn start() -> (Life, Vec<Action>) {
        let life = Life {
            limits: Limits::default(),
            state: State::At(Step::Configure),
            since: Duration::ZERO,
            is_granted: false,
            has_archive: false,
            remove_at_job_start: false,
            expires: None,
            retry: None,
            process: Process::None,
            job_ended: None,
            heard: Duration::ZERO,
            beat: Duration::ZERO,
            is_reporting: false,
            reported: None,
        };
        (life, vec![Action::Do(Step::Configure)])
    }

    /// What is to be done after this.
    pub fn step(&mut self, event: Event, now: Duration) -> Vec<Action> {
        let mut actions = self.after(event, now);
        // A limit may lead to a state whose own limit is over, too: the clock may have jumped.
        while let Some(outcome) = self.overdue(now) {
            actions.extend(outcome);
        }
        actions.extend(self.heartbeat(now));
        actions
    }

    /// When a tick is needed at the latest.
    pub fn deadline(&self) -> Duration {
        let beat = (self.is_granted && !self.is_reporting && self.phase().is_some()).then_some(self.beat);
        self.limits_now().into_iter().map(|(at, _)| at).chain(beat).min().unwrap_or(Duration::ZERO)
    }

    /// Whether nothing is left but to power off.
    #[cfg(test)]
    fn is_over(&self) -> bool {
        self.state == State::Off
    }

    /// The step it is at, or nothing if it ends.
    pub fn at(&self) -> Option<Step> {
        match self.state {
            State::At(step) => Some(step),
            _ => None,
        }
    }

    fn after(&mut self, event: Event, now: Duration) -> Vec<Action> {
        match (event, self.state.clone()) {
            (Event::Configured(limits), State::At(Step::Configure)) => {
                self.limits = limits;
                self.enter(Step::Exchange, now)
            }
            (Event::Granted { expire_in, has_archive, remove_at_job_start }, State::At(Step::Exchange)) => {
                self.is_granted = true;
                self.heard = now;
                self.beat = now;
                self.expires = Some(now.saturating_add(expire_in));
                self.has_archive = has_archive;
                self.remove_at_job_start = remove_at_job_start;
                self.since = now;
                self.enter(if has_archive { Step::Download } else { Step::Credentials }, now)
            }
            (Event::NotYet(message), State::At(Step::Exchange)) => {
                self.retry = Some((now + RETRY, message));
                Vec::new()
            }
            (Event::Done(done), State::At(step)) if done == step => match step {
                Step::Download => self.enter(Step::Verify, now),
                Step::Verify => self.enter(Step::Unpack, now),
                Step::Unpack => self.enter(Step::Credentials, now),
                Step::Credentials => {
                    self.process = Process::Asked;
                    self.enter(Step::Start, now)
                }
                Step::Start => self.enter(Step::Idle, now),
                Step::Configure | Step::Exchange | Step::Idle | Step::Job => Vec::new(),
            },
            (Event::Failed(failed, message), State::At(step)) if failed == step => {
                if step == Step::Start {
                    self.process = Process::None;
                }
                self.finish(EndReason::StepFailed, &message, now)
            }
            (Event::JobStarted, State::At(Step::Start | Step::Idle)) => {
                self.enter(Step::Job, now);
                if self.remove_at_job_start { vec![Action::RemoveCredentials] } else { Vec::new() }
            }
            (Event::JobEnded, State::At(Step::Job)) => {
                self.job_ended = Some(now);
                Vec::new()
            }
            (Event::RunnerExited(code), state) if self.process == Process::Asked => self.exited(code, state, now),
            (Event::Failed(Step::Start, _), State::Stopping(outcome) | State::Killing(outcome)) => {
                self.process = Process::None;
                self.end(outcome, now)
            }
            // The runner was being started when the guest began to end.
            (Event::Done(Step::Start), State::Stopping(_)) => vec![Action::StopRunner],
            (Event::Done(Step::Start), State::Killing(_)) => vec![Action::KillRunner],
            (Event::Heard { stop }, state) => {
                self.is_reporting = false;
                self.heard = now;
                match state {
                    State::At(step) if stop && step != Step::Job => {
                        self.finish(EndReason::Drained, "the operator asked the guest to end", now)
                    }
                    _ => Vec::new(),
                }
            }
            (Event::Unheard, _) => {
                self.is_reporting = false;
                Vec::new()
            }
            (Event::EndSent, State::Ending { .. }) => self.wipe(now),
            (Event::EndUnsent, State::Ending { outcome, began, .. }) => {
                self.state = State::Ending { outcome, failed: Some(now), began };
                Vec::new()
            }
            (Event::Wiped, State::Wiping) => self.off(now),
            (Event::Terminate, State::At(_)) => {
                self.finish(EndReason::Terminated, "the guest was stopped from outside", now)
            }
            _ => Vec::new(),
        }
    }

    fn exited(&mut self, code: Option<i32>, state: State, now: Duration) -> Vec<Action> {
        self.process = Process::Exited(code);
        match state {
            State::Stopping(outcome) | State::Killing(outcome) => self.end(Outcome { exit_code: code, ..outcome }, now),
            State::At(_) if self.job_ended.is_some() => {
                self.finish(EndReason::JobCompleted, "the runner has completed its job", now)
            }
            State::At(_) if code == Some(DEPRECATED) => {
                let message = "GitHub refuses the version of the runner: use an archive of a newer release";
                self.finish(EndReason::RunnerDeprecated, message, now)
            }
            State::At(step) => {
                let when = if step == Step::Job { "during its job" } else { "before it had a job" };
                let how = code.map_or_else(|| "by a signal".to_owned(), |code| format!("with code {code}"));
                self.finish(EndReason::RunnerExited, &format!("the runner exited {how} {when}"), now)
            }
            State::Ending { .. } | State::Wiping | State::Off => Vec::new(),
        }
    }

    /// Goes on with the next step.
    fn enter(&mut self, step: Step, now: Duration) -> Vec<Action> {
        self.state = State::At(step);
        // The preparation has one limit for all its steps.
        if matches!(step, Step::Exchange | Step::Idle | Step::Job) {
            self.since = now;
        }
        if matches!(step, Step::Idle | Step::Job) { Vec::new() } else { vec![Action::Do(step)] }
    }

    /// Begins to end: first the runner, then the last report.
    fn finish(&mut self, reason: EndReason, message: &str, now: Duration) -> Vec<Action> {
        let State::At(step) = self.state else { return Vec::new() };
        let exit_code = if let Process::Exited(code) = self.process { code } else { None };
        let message = truncated(message, MAX_MESSAGE).to_owned();
        let outcome = Outcome { reason, step, message, ran_job: step == Step::Job, exit_code };
        if self.process == Process::Asked {
            self.state = State::Stopping(outcome);
            self.since = now;
            return vec![Action::StopRunner];
        }
        self.end(outcome, now)
    }

    /// Sends the last report, if there is somebody to send it to.
    fn end(&mut self, outcome: Outcome, now: Duration) -> Vec<Action> {
        if !self.is_granted {
            return self.wipe(now);
        }
        self.state = State::Ending { outcome: outcome.clone(), failed: None, began: now };
        vec![Action::SendEnd(outcome)]
    }

    fn wipe(&mut self, now: Duration) -> Vec<Action> {
        self.state = State::Wiping;
        self.since = now;
        vec![Action::Wipe]
    }

    fn off(&mut self, now: Duration) -> Vec<Action> {
        self.state = State::Off;
        self.since = now;
        vec![Action::PowerOff]
    }

    /// The limits that apply now: when they are over, and what that means.
    fn limits_now(&self) -> Vec<(Duration, Over)> {
        let seconds = Duration::from_secs;
        let limits = &self.limits;
        match &self.state {
            State::At(step) => {
                let mut all = vec![(seconds(limits.lifetime_seconds), Over::Ends(EndReason::LifetimeLimit))];
                match step {
                    Step::Configure => all.push((self.since + CONFIGURE, Over::Step)),
                    Step::Exchange => {
                        all.push((self.since + seconds(limits.exchange_seconds), Over::Step));
                        all.extend(self.retry.as_ref().map(|(at, _)| (*at, Over::RepeatExchange)));
                    }
                    Step::Download | Step::Verify | Step::Unpack | Step::Credentials | Step::Start => {
                        all.push((self.since + seconds(limits.prepare_seconds), Over::Step));
                    }
                    Step::Idle => {
                        all.push((self.since + seconds(limits.idle_seconds), Over::Ends(EndReason::IdleLimit)));
                    }
                    Step::Job => {
                        all.push((self.since + seconds(limits.job_seconds), Over::Ends(EndReason::JobLimit)));
                        let ended = self.job_ended.map(|at| at + seconds(limits.stop_seconds));
                        all.extend(ended.map(|at| (at, Over::Ends(EndReason::JobCompleted))));
                    }
                }
                if self.is_granted && *step != Step::Job {
                    let silent = self.heard + seconds(limits.silence_seconds);
                    all.push((silent, Over::Ends(EndReason::OperatorSilent)));
                    all.extend(self.expires.map(|at| (at, Over::Ends(EndReason::CredentialsExpired))));
                }
                all
            }
            State::Stopping(_) => vec![(self.since + seconds(limits.stop_seconds), Over::Stopping)],
            State::Killing(_) => vec![(self.since + KILL, Over::Killing)],
            State::Ending { failed, began, .. } => {
                let mut all = vec![(*began + seconds(limits.end_seconds), Over::Ending)];
                all.extend(failed.map(|at| (at + RETRY, Over::RepeatEnd)));
                all
            }
            State::Wiping => vec![(self.since + WIPE, Over::Wiping)],
            State::Off => vec![(self.since + POWER_OFF, Over::Off)],
        }
    }

    /// What is to be done about the first limit that is over, if there is one.
    fn overdue(&mut self, now: Duration) -> Option<Vec<Action>> {
        let over = self.limits_now().into_iter().filter(|(at, _)| *at <= now).min_by_key(|(at, _)| *at)?.1;
        let actions = match (over, self.state.clone()) {
            (Over::Ends(reason), _) => self.finish(reason, &limit_message(reason, &self.limits), now),
            (Over::Step, State::At(step)) => {
                let message = match (step, self.retry.take()) {
                    (Step::Exchange, Some((_, why))) => {
                        format!("no credentials after {} seconds: {why}", self.limits.exchange_seconds)
                    }
                    _ => format!("{step:?} was not done in time; raise limits.prepareSeconds if the network is slow"),
                };
                self.finish(EndReason::StepFailed, &message, now)
            }
            (Over::RepeatExchange, _) => {
                self.retry = None;
                vec![Action::Do(Step::Exchange)]
            }
            (Over::Stopping, State::Stopping(outcome)) => {
                self.state = State::Killing(outcome);
                self.since = now;
                vec![Action::KillRunner]
            }
            (Over::Killing, State::Killing(outcome)) => self.end(outcome, now),
            (Over::RepeatEnd, State::Ending { outcome, began, .. }) => {
                self.state = State::Ending { outcome: outcome.clone(), failed: None, began };
                vec![Action::SendEnd(outcome)]
            }
            (Over::Ending, _) => self.wipe(now),
            (Over::Wiping, _) => self.off(now),
            (Over::Off, _) => self.off(now),
            (Over::Step | Over::Stopping | Over::Killing | Over::RepeatEnd, _) => Vec::new(),
        };
        Some(actions)
    }

    /// What is reported of the present state.
    fn phase(&self) -> Option<Phase> {
        match self.state {
            State::At(Step::Idle) => Some(Phase::Idle),
            State::At(Step::Job) => Some(Phase::Running),
            State::At(_) => Some(Phase::Preparing),
            _ => None,
        }
    }

    /// A report, if one is due: at once for a new phase, and again and again.
    fn heartbeat(&mut self, now: Duration) -> Option<Action> {
        let phase = self.phase().filter(|_| self.is_granted && !self.is_reporting)?;
        if now < self.beat && self.reported == Some(phase) {
            return None;
        }
        self.beat = now + Duration::from_secs(self.limits.heartbeat_seconds);
        self.is_reporting = true;
        self.reported = Some(phase);
        Some(Action::Report(phase))
    }
}

/// What it means that a limit is over.
#[derive(Debug, Clone, Copy)]
enum Over {
    Ends(EndReason),
    Step,
    RepeatExchange,
    Stopping,
    Killing,
    RepeatEnd,
    Ending,
    Wiping,
    Off,
}

fn limit_message(reason: EndReason, limits: &Limits) -> String {
    match reason {
        EndReason::IdleLimit => format!("there was no job for {} seconds (limits.idleSeconds)", limits.idle_seconds),
        EndReason::JobLimit => format!("the job took longer than {} seconds (limits.jobSeconds)", limits.job_seconds),
        EndReason::LifetimeLimit => {
            format!("the machine is older than {} seconds (limits.lifetimeSeconds)", limits.lifetime_seconds)
        }
        EndReason::CredentialsExpired => "the credentials of the runner have expired before it had a job".to_owned(),
        EndReason::OperatorSilent => {
            format!("the operator did not answer for {} seconds (limits.silenceSeconds)", limits.silence_seconds)
        }
        _ => "the runner has completed its job".to_owned(),
    }
}
