//! The webhook of the small GitHub: what was delivered, what failed, and what is to be delivered again.

use crate::forge::{Answer, Ask, Delivery, Failure, Hook};
use crate::jobs::job::Facts;
use jiff::Timestamp;
use std::collections::BTreeMap;

#[derive(Debug)]
pub(super) struct Deliveries {
    /// The answer to whoever looks for the webhook.
    pub(super) hook: Result<Option<Hook>, Failure>,
    all: Vec<Delivery>,
    facts: BTreeMap<String, Facts>,
    waiting: Vec<String>,
    /// How often each event was asked for again.
    pub(super) asked: BTreeMap<String, usize>,
    /// How often the webhook was looked for, and deliveries were listed.
    pub(super) requests: usize,
    next: u64,
}

impl Default for Deliveries {
    fn default() -> Deliveries {
        Deliveries {
            hook: Ok(Some(Hook::App)),
            all: Vec::new(),
            facts: BTreeMap::new(),
            waiting: Vec::new(),
            asked: BTreeMap::new(),
            requests: 0,
            next: 0,
        }
    }
}

impl Deliveries {
    /// Something has happened, and the receiver accepts it or not.
    pub(super) fn sent(&mut self, facts: &Facts, at: Timestamp, is_accepted: bool) {
        let guid = format!("g{}", self.facts.len());
        self.facts.insert(guid.clone(), facts.clone());
        self.note(guid, at, is_accepted, false);
    }

    fn note(&mut self, guid: String, at: Timestamp, is_accepted: bool, is_redelivery: bool) {
        self.next += 1;
        let action = format!("{:?}", self.facts[&guid].state).to_lowercase();
        let event = ("workflow_job".to_owned(), Some(action));
        self.all.push(Delivery { id: self.next, guid, at, event, is_accepted, is_redelivery });
    }

    /// What is delivered again now.
    pub(super) fn again(&mut self, at: Timestamp, is_accepted: bool) -> Vec<Facts> {
        let waiting = std::mem::take(&mut self.waiting);
        for guid in &waiting {
            self.note(guid.clone(), at, is_accepted, true);
        }
        waiting.iter().filter(|_| is_accepted).map(|guid| self.facts[guid].clone()).collect()
    }

    /// Carries out a request.
    pub(super) fn carry_out(&mut self, ask: &Ask) -> Result<Answer, Failure> {
        self.requests += 1;
        match ask {
            Ask::FindHook { .. } => self.hook.clone().map(Answer::Hook),
            Ask::Deliveries { since, .. } => {
                let found = self.all.iter().rev().filter(|delivery| delivery.at >= *since);
                Ok(Answer::Deliveries(found.cloned().collect()))
            }
            Ask::Redeliver { delivery, .. } => {
                let found = self.all.iter().find(|found| found.id == *delivery).map(|found| found.guid.clone());
                let guid = found.ok_or_else(|| Failure::Permanent("there is no such delivery".into()))?;
                *self.asked.entry(guid.clone()).or_default() += 1;
                self.waiting.push(guid);
                Ok(Answer::Done)
            }
            other => panic!("{other:?}"),
        }
    }
}
