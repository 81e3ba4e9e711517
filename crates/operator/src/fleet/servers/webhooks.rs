//! Receives webhooks. What is surely none of ours is refused before its body is read.

use super::leader::{Leader, Which};
use super::reply::{self, Reply, again, discard, text, unread};
use super::{Count, WEBHOOK};
use crate::fleet::border::Border;
use axum::http::{HeaderMap, Method, Request, StatusCode, header};
use fleet::forge::{GITLAB_WEBHOOK_PATH, Hidden, Platform, WEBHOOK_PATH};
use fleet::inbox::Signed;
use fleet::jobs::Observation;
use fleet::jobs::webhook::{Delivery, LARGEST, Receiver, Refusal, Verdict, gitlab, signers};
use fleet::object::Name;
use hyper::body::Incoming;
use jiff::Timestamp;
use runtime::bounded::{Ended, Memory, Service, read};
use std::net::{IpAddr, SocketAddr};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// GitHub and GitLab give up after ten seconds.
const BODY: Duration = Duration::from_secs(8);
/// The bodies of all webhooks that are being received. One has about 20 kB.
const MEMORY: usize = 16 << 20;
/// The pause that a proxy or a script is asked for.
const PAUSE: u64 = 5;

/// The receiver of webhooks.
pub(super) struct Webhooks {
    border: Arc<Border>,
    leader: Option<Arc<Leader>>,
    receiver: Mutex<Receiver>,
    memory: Memory,
    /// How long a body may take.
    pub(super) within: Duration,
    count: Count,
}

impl Webhooks {
    pub(super) fn new(border: Arc<Border>, leader: Option<Arc<Leader>>, count: Count) -> Webhooks {
        Webhooks { border, leader, receiver: Mutex::default(), memory: Memory::new(MEMORY), within: BODY, count }
    }

    /// What is refused without its body: why in one word, and the answer.
    fn refused(&self, platform: Option<Platform>, request: &Request<Incoming>) -> Option<(&'static str, Reply)> {
        let Some(platform) = platform else {
            let line = "webhooks are received at /webhooks/github and /webhooks/gitlab";
            return Some(("wrong_path", text(StatusCode::NOT_FOUND, line)));
        };
        if request.method() != Method::POST {
            let mut reply = text(StatusCode::METHOD_NOT_ALLOWED, "webhooks are sent with POST");
            reply.headers_mut().insert(header::ALLOW, header::HeaderValue::from_static("POST"));
            return Some(("wrong_method", reply));
        }
        if !self.border.is_open() {
            return Some(not_taken("not_leading"));
        }
        let proof = if platform.is_github() { "x-hub-signature-256" } else { "x-gitlab-token" };
        if value(request.headers(), proof).is_none() {
            let refused = Verdict::Refused(Refusal::NoSignature);
            return Some((Refusal::NoSignature.name(), verdict(platform, &refused)));
        }
        None
    }

    /// Judges a webhook, and passes on what it says.
    fn take(&self, platform: Platform, headers: &HeaderMap, body: &[u8]) -> (&'static str, Reply) {
        let known = self.border.webhook_secrets(platform);
        let secrets: Vec<&[u8]> = known.iter().map(|(_, secret)| secret.expose().as_bytes()).collect();
        let receive = || self.receiver.lock().unwrap_or_else(PoisonError::into_inner);
        let header = |name: &str| value(headers, name);
        let now = Timestamp::now();
        let (id, found, places) = match platform {
            Platform::GitHub => {
                let (event, id) = (header("x-github-event"), header("x-github-delivery"));
                let delivery = Delivery { event, id, signature: header("x-hub-signature-256"), body };
                (id, receive().receive(&delivery, &secrets, now), signers(&delivery, &secrets))
            }
            Platform::GitLab => {
                let id = header("idempotency-key").or_else(|| header("x-gitlab-event-uuid"));
                let (event, token) = (header("x-gitlab-event"), header("x-gitlab-token"));
                let delivery = gitlab::Delivery { event, id, token, body };
                (id, receive().receive_gitlab(&delivery, &secrets, now), gitlab::senders(&delivery, &secrets))
            }
        };
        if let Verdict::Accepted(observation) = &found
            && self.border.observed(signed(observation, places, &known)).is_err()
        {
            receive().forget(id, body);
            return not_taken("behind");
        }
        (found.reason(), verdict(platform, &found))
    }
}

impl Service for Webhooks {
    async fn answer(&self, _: IpAddr, request: Request<Incoming>) -> Reply {
        let platform = platform_at(request.uri().path());
        let (result, reply) = match self.refused(platform, &request) {
            Some(refused) => {
                discard(request.into_body(), &self.memory).await;
                refused
            }
            None => {
                let (head, body) = request.into_parts();
                match read(body, LARGEST, self.within, &self.memory).await {
                    Ok(held) => self.take(platform.unwrap_or_default(), &head.headers, &held.bytes),
                    Err(why) => {
                        let (result, status, line) = unread(why);
                        (result, text(status, line))
                    }
                }
            }
        };
        (self.count)(WEBHOOK, result);
        reply
    }

    async fn elsewhere(&self, peer: IpAddr) -> Option<SocketAddr> {
        match &self.leader {
            Some(leader) if !self.border.is_open() => leader.address(Which::Webhooks, peer).await,
            _ => None,
        }
    }

    fn passed_on(&self) {
        (self.count)(WEBHOOK, reply::PASSED_ON);
    }

    fn ended(&self, why: Ended) {
        (self.count)(WEBHOOK, reply::ended(why));
    }
}

/// Who delivers at a path.
fn platform_at(path: &str) -> Option<Platform> {
    match path {
        WEBHOOK_PATH => Some(Platform::GitHub),
        GITLAB_WEBHOOK_PATH => Some(Platform::GitLab),
        _ => None,
    }
}

/// What a webhook says, for the pools whose secrets have signed it.
fn signed(observation: &Observation, signers: Vec<usize>, known: &[(Name, Hidden)]) -> Signed {
    let pools = signers.into_iter().filter_map(|place| known.get(place)).map(|(pool, _)| pool.clone()).collect();
    Signed { observation: observation.clone(), pools }
}

fn value<'a>(headers: &'a HeaderMap, name: &str) -> Option<&'a str> {
    headers.get(name).and_then(|value| value.to_str().ok())
}

/// This replica does not lead, or its core is far behind.
fn not_taken(result: &'static str) -> (&'static str, Reply) {
    let line = match result {
        "not_leading" => "this replica does not lead; try again",
        _ => "too much waits to be handled; try again",
    };
    (result, again(text(StatusCode::SERVICE_UNAVAILABLE, line), PAUSE))
}

/// The answer to a webhook that was judged.
fn verdict(platform: Platform, verdict: &Verdict) -> Reply {
    let status = StatusCode::from_u16(verdict.status()).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let of = |github: &'static str, gitlab: &'static str| if platform.is_github() { github } else { gitlab };
    let line = match verdict {
        Verdict::Accepted(_) => "accepted",
        Verdict::Ignored("ping") => "pong",
        Verdict::Ignored("repeated") => "ignored: it was received before",
        Verdict::Ignored(_) => of(
            "ignored: only workflow_job events are needed; choose them in the settings of the webhook",
            "ignored: only job events of jobs that need a runner are needed; choose them in the settings of the webhook",
        ),
        Verdict::Refused(refusal) => match refusal {
            Refusal::TooLarge => {
                of("the body is too large for a workflow_job event", "the body is too large for a job event")
            }
            Refusal::NoSecret => "no pool has a secret for webhooks",
            Refusal::NoSignature => of(
                "there is no signature: set a secret in the settings of the webhook",
                "there is no secret token: set one in the settings of the webhook",
            ),
            Refusal::WrongSignature => of(
                "the signature is wrong: the secret of the webhook is none of those of the pools",
                "the secret token of the webhook is none of those of the pools",
            ),
            Refusal::NoEvent => of("there is no header X-GitHub-Event", "there is no header X-Gitlab-Event"),
            Refusal::NoDelivery => {
                of("there is no valid header X-GitHub-Delivery", "there is no valid header X-Gitlab-Event-UUID")
            }
            Refusal::Unreadable(_) => of(
                "the body is no workflow_job event in JSON: choose the content type application/json in the settings of the webhook",
                "the body is no job event",
            ),
            Refusal::TooOld => "ignored: the event is too old to be believed",
            Refusal::InFuture => "the event is in the future: compare the clocks",
        },
    };
    text(status, line)
}
