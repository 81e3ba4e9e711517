//! Carrying out what the life of the guest asks for: one thread for each action, so that none holds up the others.

use crate::archive;
use crate::arguments::Arguments;
use crate::clock::Clock;
use crate::config;
use crate::credentials::{self, Placed};
use crate::life::{Action, Event, Outcome};
use crate::operator::{Failure, Operator};
use crate::output::Output;
use crate::runner;
use crate::users::{self, User};
use crate::wipe;
use bootstrap::{Claim, End, EndReason, Exchange, Grant, Phase, Report, Source, Step};
use std::path::{Path, PathBuf};
use std::sync::mpsc::Sender;
use std::sync::{Arc, Mutex, MutexGuard, OnceLock, PoisonError};
use std::thread;
use std::time::Duration;

/// What the guest knows and has.
pub(crate) struct Guest {
    pub(crate) output: Arc<Output>,
    pub(crate) clock: Clock,
    arguments: Arguments,
    events: Sender<Event>,
    operator: OnceLock<Operator>,
    claim: OnceLock<Claim>,
    /// The proof of identity, until it is used.
    exchange: Mutex<Option<Exchange>>,
    grant: Mutex<Option<Grant>>,
    placed: Mutex<Option<Placed>>,
    process: Mutex<Option<u32>>,
}

impl Guest {
    /// A guest that has just started.
    pub(crate) fn new(arguments: Arguments, output: Arc<Output>, clock: Clock, events: Sender<Event>) -> Guest {
        Guest {
            output,
            clock,
            arguments,
            events,
            operator: OnceLock::new(),
            claim: OnceLock::new(),
            exchange: Mutex::new(None),
            grant: Mutex::new(None),
            placed: Mutex::new(None),
            process: Mutex::new(None),
        }
    }

    /// Carries out an action. Its result comes as an event.
    pub(crate) fn carry_out(self: &Arc<Guest>, action: Action) {
        match action {
            Action::Do(step) => self.in_thread(Event::Failed(step, NO_THREAD.to_owned()), move |guest| {
                guest.arguments.fault.happens_at(step);
                guest.step(step).unwrap_or_else(|error| {
                    guest.output.say(&format!("{step:?} failed: {error}"));
                    Event::Failed(step, guest.output.redacted(&error))
                })
            }),
            Action::Report(phase) => self.in_thread(Event::Unheard, move |guest| guest.report(phase)),
            Action::SendEnd(outcome) => self.in_thread(Event::EndUnsent, move |guest| guest.end(&outcome)),
            Action::Wipe => self.in_thread(Event::Wiped, |guest| {
                guest.wipe();
                Event::Wiped
            }),
            Action::StopRunner => self.with_process(runner::stop),
            Action::KillRunner => self.with_process(runner::kill),
            Action::RemoveCredentials => {
                let placed = locked(&self.placed).clone().unwrap_or_default();
                placed.remove_secrets().unwrap_or_else(|error| self.output.say(&error));
            }
            Action::PowerOff => {}
        }
    }

    /// Runs something in a thread of its own; without a thread, this is its result.
    fn in_thread(self: &Arc<Guest>, otherwise: Event, work: impl FnOnce(&Guest) -> Event + Send + 'static) {
        let guest = Arc::clone(self);
        let spawned = thread::Builder::new().spawn(move || {
            let event = work(&guest);
            let _ = guest.events.send(event);
        });
        if spawned.is_err() {
            let _ = self.events.send(otherwise);
        }
    }

    fn with_process(&self, act: impl FnOnce(u32)) {
        if let Some(process) = *locked(&self.process) {
            act(process);
        }
    }

    fn step(&self, step: Step) -> Result<Event, String> {
        match step {
            Step::Configure => {
                let configured = config::read(&self.arguments.config, &self.output)?;
                let _ = self.claim.set(configured.exchange.claim.clone());
                let _ = self.operator.set(configured.operator);
                *locked(&self.exchange) = Some(configured.exchange);
                return Ok(Event::Configured(configured.limits));
            }
            Step::Exchange => return self.exchange(),
            Step::Download => {
                self.new_folder()?;
                if let Source::Download { url, ca, .. } = self.source()? {
                    let operator = self.operator()?;
                    let trust = operator.trust.with(operator.url.refer(&url)?, ca.as_deref())?;
                    archive::download(&trust, &operator.url, &url, &self.archive_path()?)?;
                }
            }
            Step::Verify => {
                if let Source::Download { sha256, .. } | Source::File { sha256, .. } = self.source()? {
                    archive::verify(&self.archive_path()?, &sha256)?;
                }
            }
            Step::Unpack => {
                let owner = self.user()?.map(|user| (user.uid, user.gid));
                archive::unpack(&self.archive_path()?, &self.runner_folder()?, owner)?;
            }
            Step::Credentials => {
                let files = credentials::decode(locked(&self.grant).as_ref().ok_or(NO_GRANT)?.jit_config.expose())?;
                credentials::secrets(&files).iter().for_each(|secret| self.output.hide(secret));
                let user = self.user()?;
                let placed = credentials::place(&files, &self.arguments.memory, &self.runner_folder()?, user.as_ref())?;
                *locked(&self.placed) = Some(placed);
            }
            Step::Start => {
                let mut process = locked(&self.process);
                let started = runner::start(&self.runner_folder()?, self.user()?.as_ref(), &self.output, &self.events)?;
                *process = Some(started);
            }
            Step::Idle | Step::Job => {}
        }
        Ok(Event::Done(step))
    }

    fn exchange(&self) -> Result<Event, String> {
        let exchange = locked(&self.exchange).clone().ok_or("there is no proof of identity left")?;
        match self.operator()?.exchange(&exchange) {
            Err(Failure::Transient(error)) => {
                let error = self.output.redacted(&error);
                self.output.say(&format!("no credentials yet: {error}"));
                Ok(Event::NotYet(error))
            }
            Err(Failure::Permanent(error)) => Err(error),
            Ok(grant) => {
                self.output.hide(grant.jit_config.expose());
                self.output.hide(grant.report_token.expose());
                let event = Event::Granted {
                    expire_in: Duration::from_secs(grant.credentials_expire_seconds),
                    has_archive: !matches!(grant.runner.source, Source::Installed { .. }),
                    remove_at_job_start: grant.runner.remove_credentials_at_job_start,
                };
                *locked(&self.grant) = Some(grant);
                *locked(&self.exchange) = None;
                self.output.say("the operator has granted credentials");
                Ok(event)
            }
        }
    }

    fn report(&self, phase: Phase) -> Event {
        let uptime_seconds = self.clock.now().as_secs();
        let token = locked(&self.grant).as_ref().map(|grant| grant.report_token.clone());
        let (Some(operator), Some(claim), Some(token)) = (self.operator.get(), self.claim.get(), token) else {
            return Event::Unheard;
        };
        match operator.report(&token, &Report { claim: claim.clone(), phase, uptime_seconds }) {
            Ok(reply) => Event::Heard { stop: reply.stop },
            // The operator knows the claim no longer, or it has ended.
            Err(Failure::Permanent(error)) => {
                self.output.say(&format!("the report was refused: {error}"));
                Event::Unheard
            }
            Err(Failure::Transient(error)) => {
                self.output.say(&format!("the report failed: {error}"));
                Event::Unheard
            }
        }
    }

    fn end(&self, outcome: &Outcome) -> Event {
        self.output.say(&format!("ending: {:?} at {:?}: {}", outcome.reason, outcome.step, outcome.message));
        let token = locked(&self.grant).as_ref().map(|grant| grant.report_token.clone());
        let (Some(operator), Some(claim), Some(token)) = (self.operator.get(), self.claim.get(), token) else {
            return Event::EndSent;
        };
        let end = End {
            claim: claim.clone(),
            reason: outcome.reason,
            step: outcome.step,
            message: self.output.redacted(&outcome.message),
            ran_job: outcome.ran_job,
            exit_code: outcome.exit_code,
            log: if outcome.reason.is_expected() { String::new() } else { self.output.tail() },
        };
        match operator.end(&token, &end) {
            Ok(()) => Event::EndSent,
            Err(Failure::Transient(error)) => {
                self.output.say(&format!("the last report failed: {error}"));
                Event::EndUnsent
            }
            Err(Failure::Permanent(error)) => {
                self.output.say(&format!("the last report was refused: {error}"));
                Event::EndSent
            }
        }
    }

    /// What is left to do after a panic, as far as it is possible in a short time: to report it, and to wipe everything.
    pub(crate) fn panicked(self: &Arc<Guest>, message: &str, step: Option<Step>, most: Duration) {
        let (done, wait) = std::sync::mpsc::channel();
        let (guest, message) = (Arc::clone(self), message.to_owned());
        let work = move || {
            guest.with_process(runner::kill);
            let ran_job = step == Some(Step::Job);
            let step = step.unwrap_or(Step::Configure);
            guest.end(&Outcome { reason: EndReason::Panicked, step, message, ran_job, exit_code: None });
            guest.wipe();
            let _ = done.send(());
        };
        if thread::Builder::new().spawn(work).is_ok() {
            let _ = wait.recv_timeout(most);
        }
    }

    /// Overwrites and removes what the guest had. What cannot be wiped is said and does not stop the rest.
    fn wipe(&self) {
        let mut results = vec![wipe::file(&self.arguments.config), wipe::folder(&self.arguments.memory)];
        if let Some(placed) = locked(&self.placed).take() {
            results.push(placed.wipe());
        }
        if self.arguments.folder.exists() {
            let removed = std::fs::remove_dir_all(&self.arguments.folder);
            results.push(
                removed.map_err(|error| format!("could not remove {}: {error}", self.arguments.folder.display())),
            );
        }
        for error in results.into_iter().filter_map(Result::err) {
            self.output.say(&error);
        }
        *locked(&self.exchange) = None;
        *locked(&self.grant) = None;
        self.output.wipe();
    }

    fn operator(&self) -> Result<&Operator, String> {
        self.operator.get().ok_or_else(|| "there is no configuration".to_owned())
    }

    fn source(&self) -> Result<Source, String> {
        Ok(locked(&self.grant).as_ref().ok_or(NO_GRANT)?.runner.source.clone())
    }

    fn user(&self) -> Result<Option<User>, String> {
        let name = locked(&self.grant).as_ref().ok_or(NO_GRANT)?.runner.user.clone();
        name.map(|name| users::find(&name)).transpose()
    }

    fn archive_path(&self) -> Result<PathBuf, String> {
        Ok(match self.source()? {
            Source::File { path, .. } => PathBuf::from(path),
            _ => self.arguments.folder.join("runner.tar.gz"),
        })
    }

    fn runner_folder(&self) -> Result<PathBuf, String> {
        Ok(match self.source()? {
            Source::Installed { folder } => PathBuf::from(folder),
            _ => self.arguments.folder.join("runner"),
        })
    }

    /// An empty folder for the archive and the runner.
    fn new_folder(&self) -> Result<(), String> {
        let folder: &Path = &self.arguments.folder;
        if folder.exists() {
            std::fs::remove_dir_all(folder)
                .map_err(|error| format!("could not empty {}: {error}", folder.display()))?;
        }
        std::fs::create_dir_all(folder).map_err(|error| format!("could not create {}: {error}", folder.display()))
    }
}

const NO_THREAD: &str = "the machine has no memory or processes left for a thread";
const NO_GRANT: &str = "there are no credentials";

fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
