//! Answers the guests of machines: the exchange of a token for credentials, reports, and the last message.
//!
//! Nothing that a guest sends or gets is logged. What is secret is overwritten when it is dropped, but for the buffers of the connection.

use super::Count;
use super::leader::{Leader, Which};
use super::reply::{self, Reply, again, reply, unread};
use crate::fleet::border::{Border, NotTaken};
use ::bootstrap::{
    Claim, END_PATH, EXCHANGE_PATH, End, Exchange, MAX_REQUEST, REPORT_PATH, Refusal, RefusalReason, Report, Secret,
};
use axum::http::{HeaderMap, Method, Request, StatusCode, header};
use fleet::bootstrap::limits::Limits;
use fleet::bootstrap::{Reply as Answer, message, status};
use hyper::body::Incoming;
use jiff::Timestamp;
use runtime::Clock;
use runtime::bounded::{Ended, Memory, Service, read};
use serde::Serialize;
use serde::de::DeserializeOwned;
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use zeroize::Zeroizing;

/// A guest on a slow network.
const BODY: Duration = Duration::from_secs(10);
/// The requests of all guests that are being received. One has a few hundred bytes, and one with a log 16 KiB.
const MEMORY: usize = 8 << 20;
/// The pause that a guest is asked for while this replica does not lead.
const PAUSE: u64 = 2;

/// What no guest of ours sends.
const NOT_GENUINE: [&str; 7] =
    ["wrong_path", "wrong_method", "malformed", "unknown", "too_large", "slow_body", "broken"];

/// The bootstrap endpoint.
pub(super) struct Endpoint {
    border: Arc<Border>,
    leader: Option<Arc<Leader>>,
    limits: Mutex<Limits>,
    clock: Clock,
    memory: Memory,
    count: Count,
}

/// What became of a request: in one word, and the answer.
type Outcome = (&'static str, Reply);

impl Endpoint {
    pub(super) fn new(border: Arc<Border>, leader: Option<Arc<Leader>>, clock: Clock, count: Count) -> Endpoint {
        Endpoint { border, leader, limits: Mutex::default(), clock, memory: Memory::new(MEMORY), count }
    }

    fn limits(&self) -> MutexGuard<'_, Limits> {
        self.limits.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// What is not genuine counts for its address, behind which many machines may be: these are never kept out.
    async fn limited(&self, peer: IpAddr, kind: Option<Kind>, request: Request<Incoming>) -> Outcome {
        let outcome = self.outcome(peer, kind, request).await;
        if !NOT_GENUINE.contains(&outcome.0) {
            return outcome;
        }
        match self.limits().request(peer, self.clock.now().monotonic) {
            Ok(()) => outcome,
            Err(pause) => too_many(pause),
        }
    }

    async fn outcome(&self, peer: IpAddr, kind: Option<Kind>, request: Request<Incoming>) -> Outcome {
        let Some(kind) = kind else {
            return refuse("wrong_path", StatusCode::NOT_FOUND, RefusalReason::Malformed);
        };
        if request.method() != Method::POST {
            return refuse("wrong_method", StatusCode::METHOD_NOT_ALLOWED, RefusalReason::Malformed);
        }
        let (head, body) = request.into_parts();
        let body = match read(body, MAX_REQUEST, BODY, &self.memory).await {
            Ok(mut held) => Zeroizing::new(std::mem::take(&mut held.bytes)),
            Err(why) => {
                let (result, status, _) = unread(why);
                return refuse(result, status, RefusalReason::Malformed);
            }
        };
        if !self.border.is_open() {
            return not_taken();
        }
        let bearer = bearer(&head.headers);
        match kind {
            Kind::Exchange => {
                let claim = |request: &Exchange| request.claim.clone();
                self.asked(peer, &body, claim, |request| self.border.exchange(request, Timestamp::now()))
            }
            Kind::Report => {
                let claim = |report: &Report| report.claim.clone();
                self.asked(peer, &body, claim, |report| self.border.report(&bearer, report))
            }
            Kind::End => self.asked(peer, &body, |end: &End| end.claim.clone(), |end| self.border.end(&bearer, end)),
        }
    }

    /// Reads a message and answers it. Who guesses has to wait, and whoever does not is answered even so.
    fn asked<M: DeserializeOwned>(
        &self,
        peer: IpAddr,
        body: &[u8],
        claim: impl Fn(&M) -> Claim,
        answer: impl FnOnce(&M) -> Result<Answer, NotTaken>,
    ) -> Outcome {
        // The text of the error would quote the message.
        let Ok(message) = serde_json::from_slice::<M>(body) else {
            return refuse("malformed", StatusCode::BAD_REQUEST, RefusalReason::Malformed);
        };
        let (claim, now) = (claim(&message), self.clock.now().monotonic);
        if let Err(pause) = self.limits().may_report(&claim, now) {
            return too_many(pause);
        }
        let found = answer(&message);
        if matches!(found, Ok(Answer::Granted(_) | Answer::Accepted(_))) {
            self.limits().reported(&claim, now);
        }
        match found {
            Err(NotTaken) => not_taken(),
            Ok(Answer::Granted(grant)) => ("granted", json(StatusCode::OK, &*grant)),
            Ok(Answer::Accepted(accepted)) => ("accepted", json(StatusCode::OK, &accepted)),
            Ok(Answer::Refused { status, refusal }) => {
                if refusal.reason == RefusalReason::Unknown {
                    if let Err(pause) = self.limits().may_ask(peer, &claim, now) {
                        return too_many(pause);
                    }
                    self.limits().refused(peer, &claim, now);
                }
                let result = name(refusal.reason);
                let status = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_REQUEST);
                (result, with_pause(json(status, &refusal), refusal.retry_after_seconds))
            }
        }
    }
}

/// The requests of guests.
#[derive(Clone, Copy)]
enum Kind {
    Exchange,
    Report,
    End,
}

impl Kind {
    fn of(path: &str) -> Option<Kind> {
        match path {
            EXCHANGE_PATH => Some(Kind::Exchange),
            REPORT_PATH => Some(Kind::Report),
            END_PATH => Some(Kind::End),
            _ => None,
        }
    }

    fn name(self) -> &'static str {
        match self {
            Kind::Exchange => "exchange",
            Kind::Report => "report",
            Kind::End => "end",
        }
    }
}

impl Service for Endpoint {
    async fn answer(&self, peer: IpAddr, request: Request<Incoming>) -> Reply {
        let kind = Kind::of(request.uri().path());
        let (result, reply) = self.limited(peer, kind, request).await;
        (self.count)(kind.map_or("other", Kind::name), result);
        reply
    }

    async fn elsewhere(&self, peer: IpAddr) -> Option<SocketAddr> {
        match &self.leader {
            Some(leader) if !self.border.is_open() => leader.address(Which::Bootstrap, peer).await,
            _ => None,
        }
    }

    fn passed_on(&self) {
        (self.count)("connection", reply::PASSED_ON);
    }

    fn ended(&self, why: Ended) {
        (self.count)("connection", reply::ended(why));
    }
}

/// The token of a report; none is one that nobody has.
fn bearer(headers: &HeaderMap) -> Secret {
    let value = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok());
    Secret::new(value.and_then(|value| value.strip_prefix("Bearer ")).unwrap_or_default().to_owned())
}

fn json(status: StatusCode, message: &impl Serialize) -> Reply {
    // A message of ours always serializes.
    reply(status, "application/json", serde_json::to_vec(message).unwrap_or_default())
}

fn with_pause(reply: Reply, seconds: Option<u64>) -> Reply {
    match seconds {
        Some(seconds) => again(reply, seconds),
        None => reply,
    }
}

fn refuse(result: &'static str, status: StatusCode, reason: RefusalReason) -> Outcome {
    let refusal = Refusal { reason, message: message(reason).to_owned(), retry_after_seconds: None };
    (result, json(status, &refusal))
}

fn not_taken() -> Outcome {
    let (reason, message) = (RefusalReason::NotYet, "this replica does not lead; repeat the request".to_owned());
    let refusal = Refusal { reason, message, retry_after_seconds: Some(PAUSE) };
    let status = StatusCode::from_u16(status(reason)).unwrap_or(StatusCode::SERVICE_UNAVAILABLE);
    ("not_leading", again(json(status, &refusal), PAUSE))
}

fn too_many(pause: Duration) -> Outcome {
    let seconds = pause.as_secs() + 1;
    let (reason, message) = (RefusalReason::Other, "too many requests; repeat it later".to_owned());
    let refusal = Refusal { reason, message, retry_after_seconds: Some(seconds) };
    ("too_many", again(json(StatusCode::TOO_MANY_REQUESTS, &refusal), seconds))
}

fn name(reason: RefusalReason) -> &'static str {
    match reason {
        RefusalReason::Malformed => "malformed",
        RefusalReason::Unknown => "unknown",
        RefusalReason::Expired => "expired",
        RefusalReason::Used => "used",
        RefusalReason::NotYet => "not_yet",
        RefusalReason::Ended => "ended",
        RefusalReason::Other => "other",
    }
}
