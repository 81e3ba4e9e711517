//! What is asked of a site after a while.

use super::{Site, wall};
use crate::inbox::Received;
use crate::simulation::api_server::id;
use bootstrap::{Attestation, Exchange, Secret};
use serde_json::Value;
use std::collections::BTreeSet;

impl Site {
    /// What is left, and what was wrong.
    pub(in crate::simulation) fn left(&self) -> Vec<String> {
        let mut left = self.hub.broken.clone();
        left.extend(self.hypervisor.broken.clone());
        let claims = self.api.objects.iter().filter(|(key, _)| key.0 == "MachineClaim");
        left.extend(claims.map(|(key, claim)| format!("claim {} is left: {}", key.2, claim["status"])));
        left.extend(self.hypervisor.vms.keys().map(|vm| format!("machine {vm} is left")));
        left.extend(self.hub.runners.values().map(|runner| format!("runner {} is left", runner.name)));
        for (id, job) in &self.hub.jobs {
            if !job.is_done || job.runs != 1 {
                left.push(format!("job {id} is done: {}, and was started {} times", job.is_done, job.runs));
            }
        }
        left
    }

    /// What the condition Ready of any claim has said: reason and message.
    pub(in crate::simulation) fn reasons(&self) -> BTreeSet<(String, String)> {
        let claims = self.api.log.iter().filter(|(_, key, _)| key.0 == "MachineClaim");
        let conditions = claims.filter_map(|(_, _, object)| object.as_ref()?["status"]["conditions"].as_array());
        let ready = conditions.flatten().filter(|condition| condition["type"] == "Ready");
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        ready.map(|condition| (text(&condition["reason"]), text(&condition["message"]))).collect()
    }

    /// A person deletes the claims that have failed.
    pub(in crate::simulation) fn delete_failed_claims(&mut self) {
        let all = self.api.objects.iter();
        let failed = all.filter(|(key, object)| key.0 == "MachineClaim" && object["status"]["phase"] == "Failed");
        let failed: Vec<String> = failed.map(|(key, _)| key.2.clone()).collect();
        failed.iter().for_each(|name| self.delete("MachineClaim", name));
    }

    /// The ids of the jobs that are known.
    pub(in crate::simulation) fn jobs(&self) -> Vec<u64> {
        let all = self.core.jobs().flat_map(|(_, dispatch)| dispatch.table().all());
        all.filter_map(|job| job.facts.key.short().parse().ok()).collect()
    }

    /// The status of the pool.
    pub(in crate::simulation) fn status(&self) -> Value {
        self.api.objects[&id("RunnerPool", "linux")]["status"].clone()
    }

    /// Whether a guest's token is in any object of the API server.
    pub(in crate::simulation) fn shows_a_token(&self) -> bool {
        let all: String = self.api.log.iter().map(|(_, _, object)| format!("{object:?}")).collect();
        self.tokens.iter().any(|token| all.contains(token)) || all.contains("jit-")
    }

    /// A thief presents the token of a machine's guest.
    pub(in crate::simulation) fn present_token_of(&mut self, machine: &str) {
        let config = &self.seeds[machine];
        let (claim, attestation) = (config.claim.clone(), config.attestation.clone());
        let nonce = Secret::new("a thief's nonce of some length".repeat(2));
        let answer =
            self.registry.exchange(&Exchange { claim, attestation, nonce, version: String::new() }, wall(self.now));
        self.inbox.extend(answer.notices.into_iter().map(Received::Guest));
    }

    /// The token of a machine's guest.
    pub(in crate::simulation) fn token_of(&self, machine: &str) -> String {
        let Attestation::Token { token } = &self.seeds[machine].attestation;
        token.expose().to_owned()
    }
}
