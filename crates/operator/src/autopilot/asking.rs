//! Asks the cluster what templates want to know, and takes the answers.

use super::engine::{ASK_AGAIN, Engine};
use super::places::Place;
use super::questions::place_of;
use catalog::{Answer, Query};
use std::time::Duration;

impl Engine {
    /// Takes a template's question: what it is about is watched first, so that no change is missed.
    pub(super) fn ask(&mut self, query: Query) {
        if self.questions.are_too_many() {
            self.facts.answers.insert(query, Answer::Unknown);
            return;
        }
        if !self.questions.take(&query) {
            return;
        }
        let place = place_of(&query);
        if self.kinds.find(&place.kind).is_none() {
            if self.discovery.is_sure_of(&place.kind) {
                self.learn(query, Answer::Absent);
            } else {
                self.discovery.ask_soon(&self.server, &self.kinds);
            }
        } else if self.places.is_listed(&place) {
            self.send_question(query, Duration::ZERO);
        } else if self.places.served(&place).is_none() {
            self.watch(&place);
        }
    }

    pub(super) fn send_question(&mut self, query: Query, wait: Duration) {
        if !self.questions.begin(&query) {
            return;
        }
        let (server, served) = (self.server.clone(), self.kinds.find(&place_of(&query).kind));
        self.questions.asking.spawn(async move {
            tokio::time::sleep(wait).await;
            let answer = match served {
                Some(served) => cluster::answer::answer(&server, &served, &query).await,
                None => Answer::Absent,
            };
            (query, answer)
        });
    }

    /// Takes an answer; what cannot be read now keeps what is known.
    pub(super) fn learn(&mut self, query: Query, mut answer: Answer) {
        if self.kinds.find(&place_of(&query).kind).is_none() {
            answer = Answer::Absent;
        }
        if self.questions.end(&query) {
            // Something has happened meanwhile.
            self.send_question(query.clone(), Duration::ZERO);
        }
        if answer == Answer::Unknown {
            self.send_question(query.clone(), ASK_AGAIN);
            if self.facts.answers.contains_key(&query) {
                return;
            }
        }
        if self.facts.answers.get(&query) != Some(&answer) {
            self.facts.answers.insert(query, answer);
            self.stale = true;
        }
    }

    /// What was asked about this object, or about all of its kind, is asked again.
    pub(super) fn ask_again(&mut self, place: &Place, name: &str) {
        if self.places.is_listed(place) {
            for query in self.questions.about(place, Some(name)) {
                self.send_question(query, Duration::ZERO);
            }
        }
    }
}
