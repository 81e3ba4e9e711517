//! What guests do in their machines, from the exchange of their token to their end.

use super::{JOB, Site, wall};
use crate::bootstrap::Reply;
use crate::hypervisor::Power;
use crate::inbox::Received;
use crate::simulation::releases::Fault;
use bootstrap::{Config, End, EndReason, Exchange, Phase, Report, ReportReply, Secret, Step};
use std::time::Duration;

/// Longer than any token is valid.
const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// After this the guest knows that its runner has a job, in milliseconds.
const LAG: u64 = 1_500;

/// A guest in a machine.
pub(super) struct Guest {
    pub(super) config: Config,
    pub(super) nonce: String,
    pub(super) boots_at: u64,
    pub(super) report: Option<(Secret, u64)>,
    pub(super) was_busy: bool,
}

impl Site {
    /// What guests do.
    pub(super) fn pass_guests(&mut self) {
        let machines: Vec<String> = self.guests.keys().cloned().collect();
        for machine in machines {
            let Some(mut guest) = self.guests.remove(&machine) else { continue };
            let is_on = self.hypervisor.vms.get(&machine).is_some_and(|vm| vm.power == Power::Running);
            if !is_on {
                self.power_lost(&machine, &guest);
                continue;
            }
            if guest.boots_at <= self.now && self.is_open && !self.pass_guest(&machine, &mut guest) {
                if let Some(vm) = self.hypervisor.vms.get_mut(&machine) {
                    vm.switch_off();
                }
                if let Some((_, runner)) = guest.report {
                    self.hub.disconnect(runner);
                }
                continue;
            }
            self.guests.insert(machine, guest);
        }
    }

    /// One guest; false if it ends.
    fn pass_guest(&mut self, machine: &str, guest: &mut Guest) -> bool {
        let claim = guest.config.claim.clone();
        let Some((report, runner)) = guest.report.clone() else {
            // It asks every two seconds.
            if !self.now.is_multiple_of(2_000) {
                return true;
            }
            let mut at = wall(self.now);
            match self.fails_at {
                Some(Step::Configure) => return false,
                // Its token has expired.
                Some(Step::Exchange) => at += DAY,
                _ => {}
            }
            let exchange = Exchange {
                claim,
                attestation: guest.config.attestation.clone(),
                nonce: Secret::new(guest.nonce.clone()),
                version: String::new(),
            };
            let answer = self.registry.exchange(&exchange, at);
            self.inbox.extend(answer.notices.into_iter().map(Received::Guest));
            match answer.reply {
                Reply::Granted(grant) => {
                    let runner: u64 = grant.jit_config.expose().trim_start_matches("jit-").parse().unwrap();
                    let report = grant.report_token;
                    guest.report = Some((report.clone(), runner));
                    let fault = self.hub.releases.start(&grant.runner.source);
                    let starts = self.fails_at.is_none_or(|step| step >= Step::Idle);
                    if let Some(found) = self.hub.runners.get_mut(&runner).filter(|_| starts) {
                        found.is_online = matches!(fault, None | Some(Fault::NoJob));
                        found.gets_no_job = fault.is_some();
                    }
                    let reason = match fault {
                        Some(Fault::NotStarted) => EndReason::StepFailed,
                        Some(Fault::Refused) => EndReason::RunnerDeprecated,
                        None | Some(Fault::NoJob | Fault::NeverOnline) => return true,
                    };
                    let end = End {
                        claim: guest.config.claim.clone(),
                        reason,
                        step: Step::Start,
                        message: "the runner has a fault".into(),
                        ran_job: false,
                        exit_code: Some(7),
                        log: String::new(),
                    };
                    let answer = self.registry.end(&report, &end);
                    self.inbox.extend(answer.notices.into_iter().map(Received::Guest));
                    return false;
                }
                Reply::Refused { refusal, .. } => return refusal.retry_after_seconds.is_some(),
                Reply::Accepted(_) => panic!("an exchange is not a report"),
            }
        };
        if let Some(step) = self.fails_at {
            let message = format!("the disk is full {}", "x".repeat(5_000));
            let (reason, exit_code, log) = (EndReason::StepFailed, None, String::new());
            let end = End { claim, reason, step, message, ran_job: step == Step::Job, exit_code, log };
            let answer = self.registry.end(&report, &end);
            self.inbox.extend(answer.notices.into_iter().map(Received::Guest));
            return false;
        }
        let found = self.hub.runners.get(&runner);
        let given = found.and_then(|runner| runner.job);
        // The output of the runner tells the guest of a job a moment after GitHub has given it.
        let job = given.filter(|job| self.hub.jobs[job].ends_at <= self.now + JOB - LAG);
        let phase = match found.is_some_and(|runner| runner.is_online) {
            true if job.is_some() => Phase::Running,
            true => Phase::Idle,
            false => Phase::Preparing,
        };
        let is_gone = found.is_none();
        if self.has_liars && guest.was_busy && job.is_some() {
            self.lie(claim, &report, runner);
            return false;
        }
        let is_news = (job.is_some() && !guest.was_busy) || self.now.is_multiple_of(30_000);
        guest.was_busy |= job.is_some();
        if is_gone {
            let reason = if guest.was_busy { EndReason::JobCompleted } else { EndReason::RunnerExited };
            let end = End {
                claim,
                reason,
                step: Step::Job,
                message: "the runner has ended".into(),
                ran_job: guest.was_busy,
                exit_code: Some(0),
                log: String::new(),
            };
            let answer = self.registry.end(&report, &end);
            self.inbox.extend(answer.notices.into_iter().map(Received::Guest));
            return false;
        }
        if is_news {
            let uptime_seconds = (self.now - guest.boots_at) / 1_000;
            let answer = self.registry.report(&report, &Report { claim: claim.clone(), phase, uptime_seconds });
            self.inbox.extend(answer.notices.into_iter().map(Received::Guest));
            if matches!(answer.reply, Reply::Refused { .. }) {
                self.hub.broken.push(format!("the guest of machine {machine} of claim {} was refused", claim.name));
            }
            if matches!(answer.reply, Reply::Accepted(ReportReply { stop: true })) && !guest.was_busy {
                if let Some(job) = given {
                    self.hub.broken.push(format!("the guest of claim {} was stopped with job {job}", claim.name));
                }
                return false;
            }
        }
        true
    }
}
