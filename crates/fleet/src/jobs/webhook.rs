//! Webhooks: who sent them, whether they are new, and what they say. Nothing is parsed before its signature is right.

use super::hmac::{hmac, is_same, unhex};
use super::job::{Observation, Source};
use super::payload;
use jiff::Timestamp;
use std::collections::{BTreeSet, VecDeque};
use std::time::Duration;

/// The largest body that GitHub sends has 25 MB; a `workflow_job` event has about 20 kB.
pub const LARGEST: usize = 1 << 20;
/// An event that is older says nothing that a poll does not know. GitHub delivers again for up to three days.
pub const MAX_AGE: Duration = Duration::from_secs(24 * 3600);
/// Events from further in the future than clocks differ are refused.
const CLOCKS_DIFFER: Duration = Duration::from_secs(600);
/// How many deliveries are remembered.
const REMEMBERED: usize = 4096;

/// A webhook as it was received.
#[derive(Debug, Clone, Copy)]
pub struct Delivery<'a> {
    /// `X-GitHub-Event`.
    pub event: Option<&'a str>,
    /// `X-GitHub-Delivery`.
    pub id: Option<&'a str>,
    /// `X-Hub-Signature-256`.
    pub signature: Option<&'a str>,
    /// The body, byte for byte.
    pub body: &'a [u8],
}

/// What becomes of a webhook.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verdict {
    /// It says something about a job.
    Accepted(Box<Observation>),
    /// It is genuine, and says nothing that matters: another event, or one that was received before.
    Ignored(&'static str),
    /// It is not taken.
    Refused(Refusal),
}

impl Verdict {
    /// The status of the HTTP answer. What GitHub sent is answered with success, so that its log of deliveries shows real faults only.
    pub fn status(&self) -> u16 {
        match self {
            Verdict::Accepted(_) => 202,
            Verdict::Ignored(_) | Verdict::Refused(Refusal::TooOld) => 200,
            Verdict::Refused(Refusal::TooLarge) => 413,
            Verdict::Refused(Refusal::NoSignature | Refusal::WrongSignature | Refusal::NoSecret) => 401,
            Verdict::Refused(Refusal::NoEvent | Refusal::NoDelivery | Refusal::Unreadable(_) | Refusal::InFuture) => {
                400
            }
        }
    }

    /// In one word, for a metric.
    pub fn reason(&self) -> &'static str {
        match self {
            Verdict::Accepted(_) => "accepted",
            Verdict::Ignored(why) => why,
            Verdict::Refused(refusal) => refusal.name(),
        }
    }
}

/// Why a webhook is not taken.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Refusal {
    /// The body is larger than [`LARGEST`].
    TooLarge,
    /// No secret is configured, so that nobody can be told from GitHub.
    NoSecret,
    /// There is no signature, or none of 64 hexadecimal digits.
    NoSignature,
    /// No accepted secret gives this signature.
    WrongSignature,
    /// It has no event type.
    NoEvent,
    /// It has no delivery id.
    NoDelivery,
    /// The body is not a `workflow_job` event: why.
    Unreadable(String),
    /// It happened longer than [`MAX_AGE`] ago.
    TooOld,
    /// It has not happened yet.
    InFuture,
}

impl Refusal {
    /// In one word.
    pub fn name(&self) -> &'static str {
        match self {
            Refusal::TooLarge => "too_large",
            Refusal::NoSecret => "no_secret",
            Refusal::NoSignature => "no_signature",
            Refusal::WrongSignature => "wrong_signature",
            Refusal::NoEvent => "no_event",
            Refusal::NoDelivery => "no_delivery",
            Refusal::Unreadable(_) => "unreadable",
            Refusal::TooOld => "too_old",
            Refusal::InFuture => "in_future",
        }
    }
}

/// Checks webhooks and remembers the last ones.
#[derive(Debug, Default)]
pub struct Receiver {
    /// The codes of bodies and the ids of deliveries, the oldest first. The id is not signed, so that a body that was recorded could be
    /// sent again with another one.
    order: VecDeque<[u8; 32]>,
    known: BTreeSet<[u8; 32]>,
}

impl Receiver {
    /// Checks a webhook against the accepted secrets; there are several while one is replaced.
    pub fn receive(&mut self, delivery: &Delivery<'_>, secrets: &[&[u8]], now: Timestamp) -> Verdict {
        match self.check(delivery, secrets, now) {
            Ok(verdict) => verdict,
            Err(refusal) => Verdict::Refused(refusal),
        }
    }

    /// What was accepted could not be passed on: when it is delivered again, it is new.
    pub fn forget(&mut self, id: Option<&str>, body: &[u8]) {
        let codes = codes(id.unwrap_or_default(), body);
        self.known.retain(|code| !codes.contains(code));
        self.order.retain(|code| !codes.contains(code));
    }

    fn check(&mut self, delivery: &Delivery<'_>, secrets: &[&[u8]], now: Timestamp) -> Result<Verdict, Refusal> {
        if delivery.body.len() > LARGEST {
            return Err(Refusal::TooLarge);
        }
        verify(delivery, secrets)?;
        let event = delivery.event.ok_or(Refusal::NoEvent)?;
        let id = delivery.id.filter(|id| !id.is_empty() && id.len() <= 128).ok_or(Refusal::NoDelivery)?;
        if event == "ping" {
            return Ok(Verdict::Ignored("ping"));
        }
        if event != "workflow_job" {
            return Ok(Verdict::Ignored("other_event"));
        }
        let codes = codes(id, delivery.body);
        if codes.iter().any(|code| self.known.contains(code)) {
            return Ok(Verdict::Ignored("repeated"));
        }
        let (facts, happened) = payload::read(delivery.body).map_err(Refusal::Unreadable)?;
        // Events of old enterprise servers have no time; a job without one is looked up before it is believed.
        let at = happened.unwrap_or(Timestamp::UNIX_EPOCH);
        if happened.is_some() && change::now::later(at, MAX_AGE) < now {
            return Err(Refusal::TooOld);
        }
        if at > change::now::later(now, CLOCKS_DIFFER) {
            return Err(Refusal::InFuture);
        }
        codes.into_iter().for_each(|code| self.remember(code));
        Ok(Verdict::Accepted(Box::new(Observation { source: Source::Webhook, at, facts })))
    }

    fn remember(&mut self, code: [u8; 32]) {
        if self.known.insert(code) {
            self.order.push_back(code);
        }
        if self.order.len() > 2 * REMEMBERED
            && let Some(oldest) = self.order.pop_front()
        {
            self.known.remove(&oldest);
        }
    }
}

/// What is remembered of a delivery.
fn codes(id: &str, body: &[u8]) -> [[u8; 32]; 2] {
    [hmac(b"delivery", id.as_bytes()), hmac(b"body", body)]
}

/// Whether one of the secrets gives the signature. All are tried, so that the time does not tell which.
fn verify(delivery: &Delivery<'_>, secrets: &[&[u8]]) -> Result<(), Refusal> {
    if secrets.iter().all(|secret| secret.is_empty()) {
        return Err(Refusal::NoSecret);
    }
    claimed(delivery).ok_or(Refusal::NoSignature)?;
    if signers(delivery, secrets).is_empty() { Err(Refusal::WrongSignature) } else { Ok(()) }
}

/// Which of the secrets give the signature, by their place: what a webhook says is taken for their pools only.
pub fn signers(delivery: &Delivery<'_>, secrets: &[&[u8]]) -> Vec<usize> {
    let Some(claimed) = claimed(delivery) else { return Vec::new() };
    let is_right = |secret: &[u8]| is_same(&hmac(secret, delivery.body), &claimed) & !secret.is_empty();
    secrets.iter().enumerate().filter(|(_, secret)| is_right(secret)).map(|(place, _)| place).collect()
}

fn claimed(delivery: &Delivery<'_>) -> Option<[u8; 32]> {
    unhex(delivery.signature?.strip_prefix("sha256=")?)
}

pub mod gitlab;
#[cfg(test)]
mod tests;
