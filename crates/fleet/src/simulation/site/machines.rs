//! What operations on machines mean for the guests in them.

use super::{BOOT, Guest, Site};
use crate::hypervisor::{self, Operation};
use crate::inbox::Received;
use bootstrap::{End, EndReason, Secret, Step};
use serde_json::Value;

impl Site {
    /// What a job may say in the name of its guest before it switches the machine off.
    pub(super) fn lie(&mut self, claim: bootstrap::Claim, report: &Secret, runner: u64) {
        let (reason, message) = (EndReason::RunnerDeprecated, "this version is refused".to_owned());
        let (step, exit_code, log) = (Step::Start, Some(7), String::new());
        let end = End { claim, reason, step, message, ran_job: false, exit_code, log };
        let answer = self.registry.end(report, &end);
        self.inbox.extend(answer.notices.into_iter().map(Received::Guest));
        self.hub.lose_job(runner);
    }

    pub(super) fn operate(&mut self, operation: &Operation) -> Result<hypervisor::Answer, hypervisor::Failure> {
        let answer = self.hypervisor.carry_out(operation, self.now, &mut self.random)?;
        match operation {
            Operation::Destroy(target) => {
                if let Some(guest) = self.guests.remove(&target.id.0) {
                    self.power_lost(&target.id.0, &guest);
                }
            }
            Operation::Configure(blueprint) => {
                let text = blueprint.seed.as_ref().map(|seed| seed.files["user-data"].clone()).unwrap_or_default();
                let data: Value = serde_saphyr::from_str(&text).unwrap_or_default();
                let files = data["write_files"].as_array().into_iter().flatten();
                let found = files.clone().find(|file| file["path"] == "/etc/virtpilot/guest.json");
                let config = found.and_then(|file| serde_json::from_str(file["content"].as_str()?).ok());
                if let Some(config) = config {
                    self.seeds.insert(blueprint.id.0.clone(), config);
                }
            }
            Operation::Start(target) => {
                if let Some(config) = self.seeds.get(&target.id.0).cloned()
                    && !self.guests.contains_key(&target.id.0)
                {
                    let nonce = format!("{:0>40}", self.now);
                    let guest = Guest { config, nonce, boots_at: self.now + BOOT, report: None, was_busy: false };
                    self.guests.insert(target.id.0.clone(), guest);
                }
            }
            _ => {}
        }
        Ok(answer)
    }

    /// The operator has taken the power away from a guest.
    pub(super) fn power_lost(&mut self, machine: &str, guest: &Guest) {
        if let Some((_, runner)) = guest.report {
            self.hub.lose(runner, machine, self.now + 60_000);
        }
    }
}
