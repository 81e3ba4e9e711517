//! Sessions of scale sets: messages, acquired jobs, and tokens that are renewed.

use crate::github::client::{Client, read, with_query};
use crate::github::login::bearer;
use crate::github::scale_sets::failure;
use crate::github::service::{Asked, Service};
use crate::github::trouble::Trouble;
use crate::github::wire::{ServiceList, WireEvent, WireMessage, WireSession};
use crate::transport::Reply;
use fleet::forge::listener::give_up_at;
use fleet::forge::{Answer, Failure, Message, ScaleSetId, Session, SessionId};
use http::Method;
use http::header::{HeaderName, HeaderValue};
use jiff::Timestamp;
use serde_json::json;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

const MAX_CAPACITY: HeaderName = HeaderName::from_static("x-scalesetmaxcapacity");
const SESSION_PATH: &str = "/_apis/runtime/runnerscalesets/{set}/sessions/{session}";
const MESSAGES_PATH: &str = "/_apis/runtime/runnerscalesets/{set}/messages";

/// All sessions that this process opened.
#[derive(Default)]
pub(crate) struct Sessions(Mutex<BTreeMap<SessionId, Arc<Opened>>>);

/// A session with the address and the token of its message queue.
struct Opened {
    set: ScaleSetId,
    queue: String,
    header: HeaderValue,
}

impl Sessions {
    /// Opens the session of a scale set.
    pub(crate) async fn open(
        &self,
        client: &Client,
        service: &Service,
        set: ScaleSetId,
        owner: &str,
    ) -> Result<Answer, Failure> {
        let doing = format!("opening a session of scale set {}", set.0);
        let path = "/_apis/runtime/runnerscalesets/{set}/sessions";
        let target = format!("_apis/runtime/runnerscalesets/{}/sessions", set.0);
        let asked = Asked::new(Method::POST, path, target).json(json!({"ownerName": owner}));
        let found: WireSession = match service.read(client, &asked).await {
            Ok(found) => found,
            Err(Trouble::Answered { code: 409, message, .. }) => {
                return Err(Failure::Taken(format!(
                    "{doing}: {message} It is taken over when the other listener has stopped; stop it, or give it another scale set"
                )));
            }
            Err(trouble) => return Err(failure(client, &trouble, &doing)),
        };
        let statistics = found.statistics.map(Into::into).unwrap_or_default();
        let id = SessionId(found.session_id);
        let opened = opened(service, set, &found.message_queue_url, found.message_queue_access_token);
        let opened = opened.map_err(|trouble| failure(client, &trouble, &doing))?;
        self.with(|sessions| {
            // A scale set has one session at a time: a former one is over.
            sessions.retain(|_, former| former.set != set);
            sessions.insert(id.clone(), Arc::new(opened));
        });
        Ok(Answer::Session(Session { id, statistics }))
    }

    /// Waits for the next message.
    pub(crate) async fn poll(
        &self,
        client: &Client,
        service: &Service,
        id: &SessionId,
        last: u64,
        capacity: u32,
    ) -> Result<Answer, Failure> {
        let now = Timestamp::now();
        let end = give_up_at(now, client.limits.poll, client.limits.poll_margin);
        let limit = Duration::try_from(end.duration_since(now)).unwrap_or(client.limits.poll);
        let doing = "waiting for a message";
        let reply = self
            .with_queue(client, service, id, doing, |opened| {
                let asked = Asked::new(Method::GET, MESSAGES_PATH, String::new());
                let query: &[(&'static str, String)] = &[("lastMessageId", last.to_string())];
                let url = with_query(&opened.queue, if last > 0 { query } else { &[] });
                (asked, url, vec![(MAX_CAPACITY, HeaderValue::from(capacity))], limit)
            })
            .await?;
        if reply.code == 202 || reply.body.is_empty() {
            return Ok(Answer::Message(None));
        }
        let message = read(&reply.body, MESSAGES_PATH).and_then(message);
        let message = message.map_err(|trouble| failure(client, &trouble, doing))?;
        Ok(Answer::Message(Some(Box::new(message))))
    }

    /// Deletes a message.
    pub(crate) async fn acknowledge(
        &self,
        client: &Client,
        service: &Service,
        id: &SessionId,
        message: u64,
    ) -> Result<Answer, Failure> {
        let path = "/_apis/runtime/runnerscalesets/{set}/messages/{message}";
        let doing = format!("deleting message {message}");
        let asked = |opened: &Opened| {
            let asked = Asked::new(Method::DELETE, path, String::new());
            (asked, message_url(&opened.queue, message), Vec::new(), client.limits.request)
        };
        self.with_queue(client, service, id, &doing, asked).await.map(|_| Answer::Done)
    }

    /// Takes jobs that were offered.
    pub(crate) async fn acquire(
        &self,
        client: &Client,
        service: &Service,
        id: &SessionId,
        requests: &[u64],
    ) -> Result<Answer, Failure> {
        if requests.is_empty() {
            return Ok(Answer::Acquired(Vec::new()));
        }
        let doing = "acquiring jobs";
        let path = "/_apis/runtime/runnerscalesets/{set}/acquirejobs";
        let mut is_refused = false;
        loop {
            let opened = self.get(id)?;
            let target = format!("_apis/runtime/runnerscalesets/{}/acquirejobs", opened.set.0);
            let asked = Asked::new(Method::POST, path, target).json(json!(requests));
            match service.send_with(client, &asked, opened.header.clone()).await {
                Ok(reply) => {
                    let found: Result<ServiceList<u64>, _> = read(&reply.body, path);
                    let found = found.map_err(|trouble| failure(client, &trouble, doing))?;
                    return Ok(Answer::Acquired(found.value));
                }
                Err(trouble) if trouble.is(401) && !is_refused => {
                    is_refused = true;
                    self.renew(client, service, id).await?;
                }
                Err(trouble) => return Err(self.ended(client, id, &trouble, doing)),
            }
        }
    }

    /// Ends a session.
    pub(crate) async fn close(&self, client: &Client, service: &Service, id: &SessionId) -> Result<Answer, Failure> {
        let Ok(opened) = self.get(id) else { return Ok(Answer::Done) };
        let asked = Asked::new(Method::DELETE, SESSION_PATH, session_target(opened.set, id));
        match service.send(client, &asked).await {
            Err(trouble) if !trouble.is(404) => Err(failure(client, &trouble, "closing the session")),
            _ => {
                self.with(|sessions| sessions.remove(id));
                Ok(Answer::Done)
            }
        }
    }

    /// Ends all sessions, as far as the service answers.
    pub(crate) async fn close_all(&self, client: &Client, service: &Service) {
        let open: Vec<SessionId> = self.with(|sessions| sessions.keys().cloned().collect());
        futures::future::join_all(open.iter().map(|id| self.close(client, service, id))).await;
    }

    /// Sends a request with the token of the queue, which is renewed once if it is refused.
    async fn with_queue(
        &self,
        client: &Client,
        service: &Service,
        id: &SessionId,
        doing: &str,
        asked: impl Fn(&Opened) -> (Asked, String, Vec<(HeaderName, HeaderValue)>, Duration),
    ) -> Result<Reply, Failure> {
        let mut is_refused = false;
        loop {
            let opened = self.get(id)?;
            let (asked, url, headers, limit) = asked(&opened);
            match service.at(client, &asked, &url, opened.header.clone(), headers, limit).await {
                Ok(reply) => return Ok(reply),
                Err(trouble) if trouble.is(401) && !is_refused => {
                    is_refused = true;
                    self.renew(client, service, id).await?;
                }
                Err(trouble) => return Err(self.ended(client, id, &trouble, doing)),
            }
        }
    }

    /// Gets another token for the queue of a session.
    async fn renew(&self, client: &Client, service: &Service, id: &SessionId) -> Result<(), Failure> {
        let doing = "renewing the session";
        let set = self.get(id)?.set;
        let asked = Asked::new(Method::PATCH, SESSION_PATH, session_target(set, id));
        let found: Result<WireSession, Trouble> = service.read(client, &asked).await;
        let found = found.map_err(|trouble| self.ended(client, id, &trouble, doing))?;
        let opened = opened(service, set, &found.message_queue_url, found.message_queue_access_token);
        let opened = opened.map_err(|trouble| failure(client, &trouble, doing))?;
        self.with(|sessions| sessions.insert(id.clone(), Arc::new(opened)));
        Ok(())
    }

    /// The failure of something in a session: a queue that is not there says that the session is over.
    fn ended(&self, client: &Client, id: &SessionId, trouble: &Trouble, doing: &str) -> Failure {
        match trouble {
            Trouble::Answered { code: 404 | 410, message, .. } => {
                self.with(|sessions| sessions.remove(id));
                Failure::SessionLost(format!("{doing}: {message}"))
            }
            _ => failure(client, trouble, doing),
        }
    }

    fn get(&self, id: &SessionId) -> Result<Arc<Opened>, Failure> {
        let found = self.with(|sessions| sessions.get(id).cloned());
        found.ok_or_else(|| Failure::SessionLost(format!("session {} is not open in this process", id.0)))
    }

    fn with<T>(&self, action: impl FnOnce(&mut BTreeMap<SessionId, Arc<Opened>>) -> T) -> T {
        action(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

fn opened(service: &Service, set: ScaleSetId, queue: &str, token: String) -> Result<Opened, Trouble> {
    Ok(Opened { set, queue: service.checked(queue)?.to_owned(), header: bearer(&token.into())? })
}

fn session_target(set: ScaleSetId, id: &SessionId) -> String {
    format!("_apis/runtime/runnerscalesets/{}/sessions/{}", set.0, id.0)
}

/// The id goes before the parameters of the queue.
fn message_url(queue: &str, message: u64) -> String {
    match queue.split_once('?') {
        Some((path, query)) => format!("{path}/{message}?{query}"),
        None => format!("{queue}/{message}"),
    }
}

/// Reads a message. The list of what happened is a text in it.
fn message(found: WireMessage) -> Result<Message, Trouble> {
    let events: Vec<WireEvent> = match found.body.is_empty() || found.message_type != "RunnerScaleSetJobMessages" {
        true => Vec::new(),
        false => read(found.body.as_bytes(), MESSAGES_PATH)?,
    };
    let events = events.into_iter().filter_map(WireEvent::event).collect();
    let statistics = found.statistics.map(Into::into).unwrap_or_default();
    Ok(Message { id: found.message_id, events, statistics })
}

#[cfg(test)]
mod tests {
    use super::{message, message_url};
    use crate::github::wire::WireMessage;
    use serde_json::json;

    #[test]
    fn a_message_is_deleted_before_the_parameters_of_its_queue() {
        assert_eq!(message_url("https://a/messages?sessionId=x", 7), "https://a/messages/7?sessionId=x");
        assert_eq!(message_url("https://a/messages", 7), "https://a/messages/7");
    }

    #[test]
    fn what_is_not_known_in_a_message_is_skipped_and_the_message_can_be_acknowledged() {
        let read = |kind: &str, body: &str| {
            let found = json!({"messageId": 7, "messageType": kind, "body": body});
            message(serde_json::from_value::<WireMessage>(found).unwrap()).unwrap()
        };
        let body = json!([{"messageType": "JobAvailable", "runnerRequestId": 3}, {"messageType": "New"}]).to_string();
        let found = read("RunnerScaleSetJobMessages", &body);
        assert_eq!((found.id, found.events.len(), found.events[0].request), (7, 1, 3));
        assert!(read("SomethingNew", "not json").events.is_empty());
    }
}
