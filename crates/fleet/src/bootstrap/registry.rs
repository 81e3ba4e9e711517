//! The tokens of all claims, and the answers to the requests that present them.

use super::digest::{Digest, report_token, token};
use super::{
    Answer, LONGEST_TOKEN_LIFE, MAX_RECORDS, NOT_YET_PAUSE, Notice, Offer, REPEATS_LAST, Record, Reply, Used, message,
    status,
};
use bootstrap::{
    Attestation, Claim, End, Exchange, Grant, MAX_LOG, MAX_MESSAGE, NONCE, Refusal, RefusalReason, Report, ReportReply,
    Secret, truncated,
};
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::time::Duration;

/// There are as many records as may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooMany;

/// The tokens of all claims, by uid.
#[derive(Debug, Clone, Default)]
pub struct Registry {
    pub(super) records: BTreeMap<String, Record>,
    pub(super) offers: BTreeMap<String, Offer>,
}

impl Registry {
    /// With what was stored.
    pub fn restore(records: impl IntoIterator<Item = Record>) -> Registry {
        let records = records.into_iter().map(|record| (record.claim.uid.clone(), record)).take(MAX_RECORDS).collect();
        Registry { records, offers: BTreeMap::new() }
    }

    /// Adds what was stored of claims that are not known here.
    pub fn add(&mut self, records: impl IntoIterator<Item = Record>) {
        for record in records {
            if self.records.len() < MAX_RECORDS {
                self.records.entry(record.claim.uid.clone()).or_insert(record);
            }
        }
    }

    /// What is recorded of a claim.
    pub fn record(&self, uid: &str) -> Option<&Record> {
        self.records.get(uid)
    }

    /// A new token for a claim, made of 32 random bytes. An earlier one is no longer valid.
    pub fn mint(&mut self, claim: Claim, random: [u8; 32], life: Duration, now: Timestamp) -> Result<Secret, TooMany> {
        if !self.records.contains_key(&claim.uid) && self.records.len() >= MAX_RECORDS {
            self.prune(now);
            self.records.retain(|_, record| record.used.is_some() || now < record.expires);
            if self.records.len() >= MAX_RECORDS {
                return Err(TooMany);
            }
        }
        let text = token(random);
        let expires = after(now, life.min(LONGEST_TOKEN_LIFE));
        self.offers.remove(&claim.uid);
        let record = Record {
            token: Digest::of("token", &text),
            expires,
            used: None,
            has_ended: false,
            stop: false,
            claim: claim.clone(),
        };
        self.records.insert(claim.uid, record);
        Ok(Secret::new(text))
    }

    /// The claims whose guests wait for credentials, since they have proved who they are.
    pub fn wanted(&self) -> impl Iterator<Item = &Claim> {
        let waiting = self.records.iter().filter(|(uid, record)| {
            let is_attested = record.used.as_ref().is_some_and(|used| used.granted.is_none());
            is_attested && !record.has_ended && !self.offers.contains_key(*uid)
        });
        waiting.map(|(_, record)| &record.claim)
    }

    /// Credentials for the guest of a claim.
    pub fn offer(&mut self, uid: &str, offer: Offer) {
        if self.records.get(uid).is_some_and(|record| !record.has_ended) {
            self.offers.insert(uid.to_owned(), offer);
        }
    }

    /// The guest of a claim shall end unless a job runs; it learns it with its next report.
    pub fn drain(&mut self, uid: &str) {
        if let Some(record) = self.records.get_mut(uid) {
            record.stop = true;
        }
    }

    /// A claim is gone.
    pub fn forget(&mut self, uid: &str) {
        self.records.remove(uid);
        self.offers.remove(uid);
    }

    /// Drops credentials that nobody can ask for any more.
    pub fn prune(&mut self, now: Timestamp) {
        let records = &self.records;
        self.offers.retain(|uid, offer| {
            let record = records.get(uid);
            let is_open = record.is_some_and(|record| !record.has_ended && may_ask(record, now));
            is_open && now < offer.expires
        });
    }

    /// The answer to a proof of identity.
    pub fn exchange(&mut self, request: &Exchange, now: Timestamp) -> Answer {
        self.prune(now);
        let Attestation::Token { token } = &request.attestation;
        let nonce = request.nonce.expose();
        if !NONCE.contains(&nonce.len()) {
            return self.refused(&request.claim, RefusalReason::Malformed);
        }
        let Some(record) = self.records.get_mut(&request.claim.uid).filter(|record| {
            let is_right = record.token == Digest::of("token", token.expose());
            is_right & (record.claim == request.claim)
        }) else {
            return self.refused(&request.claim, RefusalReason::Unknown);
        };
        if record.has_ended {
            return self.refused(&request.claim, RefusalReason::Ended);
        }
        let presented = Digest::of("nonce", nonce);
        let mut notices = Vec::new();
        match &record.used {
            Some(used) if used.nonce != presented => {
                let mut answer = self.refused(&request.claim, RefusalReason::Used);
                answer.notices.push(Notice::TokenReused(request.claim.clone()));
                return answer;
            }
            Some(used) if used.granted.is_some() && !may_ask(record, now) => {
                return self.refused(&request.claim, RefusalReason::Used);
            }
            _ if !may_ask(record, now) => return self.refused(&request.claim, RefusalReason::Expired),
            Some(_) => {}
            None => {
                let report = Digest::of("report", &report_token(token.expose(), nonce));
                record.used = Some(Used { nonce: presented, report, granted: None, has_reported: false });
                notices.push(Notice::Attested(request.claim.clone()));
            }
        }
        let Some(offer) = self.offers.get(&request.claim.uid) else {
            // After a restart the credentials that were granted are gone, and the guest has not got them either.
            if let Some(used) = &mut record.used {
                used.granted = None;
            }
            let mut answer = self.refused(&request.claim, RefusalReason::NotYet);
            // Waiting is no refusal that anybody has to hear of.
            answer.notices = notices;
            return answer;
        };
        if let Some(used) = &mut record.used
            && used.granted.is_none()
        {
            used.granted = Some(now);
            notices.push(Notice::Granted(request.claim.clone()));
        }
        let left = offer.expires.as_second().saturating_sub(now.as_second());
        let grant = Grant {
            report_token: Secret::new(report_token(token.expose(), nonce)),
            jit_config: offer.jit_config.clone(),
            credentials_expire_seconds: u64::try_from(left).unwrap_or_default(),
            runner: offer.runner.clone(),
        };
        Answer { reply: Reply::Granted(Box::new(grant)), notices }
    }

    /// The answer to a report. The first one shows that the credentials have arrived, so they are dropped.
    pub fn report(&mut self, bearer: &Secret, report: &Report) -> Answer {
        let record = match self.reporting(bearer, &report.claim) {
            Ok(record) => record,
            Err(reason) => return self.refused(&report.claim, reason),
        };
        if record.has_ended {
            return self.refused(&report.claim, RefusalReason::Ended);
        }
        let reply = Reply::Accepted(ReportReply { stop: record.stop });
        if let Some(used) = &mut record.used {
            used.has_reported = true;
        }
        self.offers.remove(&report.claim.uid);
        Answer { reply, notices: vec![Notice::Reported(report.claim.clone(), report.phase)] }
    }

    /// The answer to the last message of a guest. It may be repeated; nothing else is answered afterwards.
    pub fn end(&mut self, bearer: &Secret, end: &End) -> Answer {
        let record = match self.reporting(bearer, &end.claim) {
            Ok(record) => record,
            Err(reason) => return self.refused(&end.claim, reason),
        };
        let is_first = !std::mem::replace(&mut record.has_ended, true);
        self.offers.remove(&end.claim.uid);
        let notices = if is_first { vec![Notice::Ended(Box::new(plain(end)))] } else { Vec::new() };
        Answer { reply: Reply::Accepted(ReportReply { stop: true }), notices }
    }

    /// A refusal. Others hear of it only if there is such a claim: anybody can name one that does not exist.
    fn refused(&self, claim: &Claim, reason: RefusalReason) -> Answer {
        let retry_after_seconds = (reason == RefusalReason::NotYet).then_some(NOT_YET_PAUSE.as_secs());
        let refusal = Refusal { reason, message: message(reason).to_owned(), retry_after_seconds };
        let known = self.records.get(&claim.uid);
        Answer {
            reply: Reply::Refused { status: status(reason), refusal },
            notices: known.map(|record| Notice::Refused(record.claim.clone(), reason)).into_iter().collect(),
        }
    }

    /// The record of the claim whose report token this is.
    fn reporting(&mut self, bearer: &Secret, claim: &Claim) -> Result<&mut Record, RefusalReason> {
        let presented = Digest::of("report", bearer.expose());
        let record = self.records.get_mut(&claim.uid).filter(|record| {
            let is_right = record.used.as_ref().is_some_and(|used| used.report == presented);
            is_right & (record.claim == *claim)
        });
        record.ok_or(RefusalReason::Unknown)
    }
}

/// Whether the token may still be presented: until it expires, and once credentials were granted only while their answer may be lost.
fn may_ask(record: &Record, now: Timestamp) -> bool {
    match &record.used {
        Some(Used { granted: Some(granted), has_reported, .. }) => !has_reported && now < after(*granted, REPEATS_LAST),
        _ => now < record.expires,
    }
}

fn after(time: Timestamp, pause: Duration) -> Timestamp {
    time.checked_add(pause).unwrap_or(Timestamp::MAX)
}

/// What a guest says, short and without control characters: a job may have taken the machine over.
fn plain(end: &End) -> End {
    let text = |text: &str, bytes| {
        let is_shown = |character: &char| *character == '\n' || !character.is_control();
        truncated(text, bytes).chars().filter(is_shown).collect()
    };
    End { message: text(&end.message, MAX_MESSAGE), log: text(&end.log, MAX_LOG), ..end.clone() }
}
