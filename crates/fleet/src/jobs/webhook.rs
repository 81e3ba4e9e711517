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

/// A webhook that was checked, but for whether it is new.
#[derive(Debug, Clone)]
pub struct Checked {
    verdict: Verdict,
    codes: [[u8; 32]; 2],
    /// Which of the secrets have signed it, by their place: what it says is taken for their pools only.
    pub signers: Vec<usize>,
}

impl Checked {
    fn new(judged: Result<(Verdict, Vec<usize>), Refusal>, id: Option<&str>, body: &[u8]) -> Checked {
        match judged {
            Ok((verdict @ Verdict::Accepted(_), signers)) => {
                Checked { verdict, codes: codes(id.unwrap_or_default(), body), signers }
            }
            Ok((verdict, signers)) => Checked { verdict, codes: [[0; 32]; 2], signers },
            Err(refusal) => Checked { verdict: Verdict::Refused(refusal), codes: [[0; 32]; 2], signers: Vec::new() },
        }
    }
}

/// Checks a webhook against the accepted secrets; there are several while one is replaced. That takes a while: the body is read once for each.
pub fn check(delivery: &Delivery<'_>, secrets: &[&[u8]], now: Timestamp) -> Checked {
    let judged = verify(delivery, secrets).and_then(|signers| Ok((judge(delivery, now)?, signers)));
    Checked::new(judged, delivery.id, delivery.body)
}

/// What a genuine webhook says.
fn judge(delivery: &Delivery<'_>, now: Timestamp) -> Result<Verdict, Refusal> {
    let event = delivery.event.ok_or(Refusal::NoEvent)?;
    delivery.id.filter(|id| !id.is_empty() && id.len() <= 128).ok_or(Refusal::NoDelivery)?;
    if event == "ping" {
        return Ok(Verdict::Ignored("ping"));
    }
    if event != "workflow_job" {
        return Ok(Verdict::Ignored("other_event"));
    }
    let (facts, happened) = payload::read(delivery.body).map_err(Refusal::Unreadable)?;
    // Events of old enterprise servers have no time; a job without one is looked up before it is believed.
    let at = happened.unwrap_or(Timestamp::UNIX_EPOCH);
    in_time(happened, now)?;
    Ok(Verdict::Accepted(Box::new(Observation { source: Source::Webhook, at, facts })))
}

/// Whether an event is of a time at which it is believed.
fn in_time(happened: Option<Timestamp>, now: Timestamp) -> Result<(), Refusal> {
    match happened {
        Some(at) if change::now::later(at, MAX_AGE) < now => Err(Refusal::TooOld),
        Some(at) if at > change::now::later(now, CLOCKS_DIFFER) => Err(Refusal::InFuture),
        _ => Ok(()),
    }
}

impl Receiver {
    /// Takes a webhook that was checked. One that was received before says nothing.
    pub fn take(&mut self, checked: &Checked) -> Verdict {
        if !matches!(checked.verdict, Verdict::Accepted(_)) {
            return checked.verdict.clone();
        }
        if checked.codes.iter().any(|code| self.known.contains(code)) {
            return Verdict::Ignored("repeated");
        }
        checked.codes.into_iter().for_each(|code| self.remember(code));
        checked.verdict.clone()
    }

    /// What was accepted could not be passed on: when it is delivered again, it is new.
    pub fn forget(&mut self, checked: &Checked) {
        self.known.retain(|code| !checked.codes.contains(code));
        self.order.retain(|code| !checked.codes.contains(code));
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

/// Which of the secrets give the signature, by their place.
fn verify(delivery: &Delivery<'_>, secrets: &[&[u8]]) -> Result<Vec<usize>, Refusal> {
    acceptable(delivery.body, secrets)?;
    let claimed = claimed(delivery).ok_or(Refusal::NoSignature)?;
    places(secrets, |secret| is_same(&hmac(secret, delivery.body), &claimed))
}

/// Whether there is anything to compare with.
fn acceptable(body: &[u8], secrets: &[&[u8]]) -> Result<(), Refusal> {
    if body.len() > LARGEST {
        return Err(Refusal::TooLarge);
    }
    if secrets.iter().all(|secret| secret.is_empty()) { Err(Refusal::NoSecret) } else { Ok(()) }
}

/// The places of the right secrets. All are tried, so that the time does not tell which is right.
fn places(secrets: &[&[u8]], is_right: impl Fn(&[u8]) -> bool) -> Result<Vec<usize>, Refusal> {
    let right = secrets.iter().enumerate().filter(|(_, secret)| is_right(secret) & !secret.is_empty());
    let places: Vec<usize> = right.map(|(place, _)| place).collect();
    if places.is_empty() { Err(Refusal::WrongSignature) } else { Ok(places) }
}

fn claimed(delivery: &Delivery<'_>) -> Option<[u8; 32]> {
    unhex(delivery.signature?.strip_prefix("sha256=")?)
}

pub mod gitlab;
#[cfg(test)]
mod tests;
