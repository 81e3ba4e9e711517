//! The border between the core of the fleet and its two servers, the webhook receiver and the bootstrap endpoint.
//!
//! A server answers from what is here and passes on what it means; the core takes it when it is ready. While this replica does not lead,
//! the border is closed: what arrives is refused, so that the sender asks again or asks another replica.

use bootstrap::{Claim, End, Exchange, Report, Secret};
use fleet::bootstrap::{Answer, Offer, Record, Registry, Reply, TooMany};
use fleet::forge::{Hidden, Platform};
use fleet::inbox::{Received, Signed};
use fleet::object::Name;
use jiff::Timestamp;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;
use tokio::sync::mpsc;

/// So much may wait for the core. It takes all of it at once, so that only a core that hangs fills it.
const MOST_WAITING: usize = 10_000;

/// What the core and the servers share.
pub(crate) struct Border {
    is_open: AtomicBool,
    registry: Mutex<Registry>,
    /// Where guests reach the bootstrap endpoint.
    endpoint: Mutex<Option<Endpoint>>,
    /// The secrets of webhooks by the pool that names them; a pool may have two while one is replaced.
    secrets: Mutex<BTreeMap<String, (Platform, Vec<Hidden>)>>,
    sender: mpsc::Sender<Received>,
    receiver: tokio::sync::Mutex<mpsc::Receiver<Received>>,
}

/// Where guests reach the bootstrap endpoint.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Endpoint {
    /// `https://HOST:PORT`, as a machine of the hypervisor sees it.
    pub(crate) address: String,
    /// The certificates of the only authority that a guest accepts its certificate from, as PEM.
    pub(crate) ca: String,
}

/// It was not taken: this replica does not lead, or the core is far behind. The sender should try again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct NotTaken;

impl Border {
    pub(crate) fn new() -> Arc<Border> {
        let (sender, receiver) = mpsc::channel(MOST_WAITING);
        Arc::new(Border {
            is_open: AtomicBool::new(false),
            registry: Mutex::default(),
            endpoint: Mutex::default(),
            secrets: Mutex::default(),
            sender,
            receiver: tokio::sync::Mutex::new(receiver),
        })
    }

    /// Whether this replica leads, so that its core takes what is received.
    pub(crate) fn is_open(&self) -> bool {
        self.is_open.load(Ordering::Relaxed)
    }

    /// This replica leads now. The records of tokens follow with [`Border::restore`].
    pub(crate) fn open(&self) {
        self.is_open.store(true, Ordering::Relaxed);
    }

    /// For the bootstrap endpoint: it serves here. Without it no runner is started, since its machine could ask nobody for its credentials.
    pub(crate) fn serve_at(&self, endpoint: Endpoint) {
        *self.endpoint.lock().unwrap_or_else(PoisonError::into_inner) = Some(endpoint);
    }

    /// For the core: where guests reach the bootstrap endpoint.
    pub(crate) fn endpoint(&self) -> Option<Endpoint> {
        self.endpoint.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// For the webhook receiver: the secrets that a platform may prove itself with, and whose they are. Never show them.
    pub(crate) fn webhook_secrets(&self, platform: Platform) -> Vec<(Name, Hidden)> {
        let secrets = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        let of_platform = secrets.iter().filter(|(_, (of, _))| *of == platform);
        let named = of_platform.filter_map(|(pool, (_, secrets))| Some((Name::read(pool)?, secrets)));
        named.flat_map(|(pool, secrets)| secrets.iter().map(move |secret| (pool.clone(), secret.clone()))).collect()
    }

    /// For the webhook receiver: passes on what [`fleet::jobs::webhook::Receiver`] has accepted.
    pub(crate) fn observed(&self, signed: Signed) -> Result<(), NotTaken> {
        self.pass(Received::Job(Box::new(signed)))
    }

    /// For the bootstrap endpoint: the answer to a proof of identity.
    pub(crate) fn exchange(&self, request: &Exchange, now: Timestamp) -> Result<Reply, NotTaken> {
        self.answer(|registry| registry.exchange(request, now))
    }

    /// For the bootstrap endpoint: the answer to a report.
    pub(crate) fn report(&self, bearer: &Secret, report: &Report) -> Result<Reply, NotTaken> {
        self.answer(|registry| registry.report(bearer, report))
    }

    /// For the bootstrap endpoint: the answer to the last message of a guest.
    pub(crate) fn end(&self, bearer: &Secret, end: &End) -> Result<Reply, NotTaken> {
        self.answer(|registry| registry.end(bearer, end))
    }

    /// For the core: waits until something was received, and takes all of it.
    pub(crate) async fn receive(&self) -> Vec<Received> {
        let mut taken = Vec::new();
        self.receiver.lock().await.recv_many(&mut taken, MOST_WAITING).await;
        taken
    }

    /// For the core: the secrets of the webhooks of a pool.
    pub(crate) fn set_webhook_secrets(&self, platform: Platform, pool: &str, secrets: Vec<Hidden>) {
        let mut known = self.secrets.lock().unwrap_or_else(PoisonError::into_inner);
        match secrets.is_empty() {
            true => known.remove(pool),
            false => known.insert(pool.to_owned(), (platform, secrets)),
        };
    }

    /// For the core: a token for the guest of a claim, and what is to be recorded of it.
    pub(crate) fn mint(
        &self,
        claim: Claim,
        random: [u8; 32],
        life: Duration,
        now: Timestamp,
    ) -> Result<(Secret, Option<Record>), TooMany> {
        let (mut registry, uid) = (self.registry(), claim.uid.clone());
        let token = registry.mint(claim, random, life, now)?;
        Ok((token, registry.record(&uid).cloned()))
    }

    /// For the core: what an earlier process has recorded. What this process knows of the claim counts more.
    pub(crate) fn restore(&self, records: Vec<Record>) {
        self.registry().add(records);
    }

    /// For the core: credentials for the guest of a claim.
    pub(crate) fn offer(&self, uid: &str, offer: Offer) {
        self.registry().offer(uid, offer);
    }

    /// For the core: the guest of a claim shall end unless a job runs.
    pub(crate) fn drain(&self, uid: &str) {
        self.registry().drain(uid);
    }

    /// For the core: the claim is gone.
    pub(crate) fn forget(&self, uid: &str) {
        self.registry().forget(uid);
    }

    /// For the core: what is recorded of a claim.
    pub(crate) fn record(&self, uid: &str) -> Option<Record> {
        self.registry().record(uid).cloned()
    }

    fn registry(&self) -> MutexGuard<'_, Registry> {
        self.registry.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn answer(&self, ask: impl FnOnce(&mut Registry) -> Answer) -> Result<Reply, NotTaken> {
        // Nothing is noted in the registry that the core does not hear of.
        if !self.is_open() || self.sender.capacity() < MOST_WAITING / 10 {
            return Err(NotTaken);
        }
        let Answer { reply, notices } = ask(&mut self.registry());
        for notice in notices {
            self.pass(Received::Guest(notice))?;
        }
        Ok(reply)
    }

    fn pass(&self, received: Received) -> Result<(), NotTaken> {
        if !self.is_open() {
            return Err(NotTaken);
        }
        self.sender.try_send(received).map_err(|_| NotTaken)
    }
}

#[cfg(test)]
mod tests {
    use super::{Border, NotTaken};
    use bootstrap::{Attestation, Claim, Exchange, Secret};
    use fleet::bootstrap::{Notice, Reply};
    use fleet::forge::Platform;
    use fleet::inbox::Received;
    use jiff::Timestamp;
    use std::time::Duration;

    #[tokio::test]
    async fn a_border_is_closed_until_this_replica_leads_and_then_passes_on_what_requests_mean() {
        let border = Border::new();
        let (claim, now) = (Claim { namespace: "ci".into(), name: "a".into(), uid: "u".into() }, Timestamp::UNIX_EPOCH);
        let (token, record) = border.mint(claim.clone(), [7; 32], Duration::from_secs(60), now).unwrap();
        assert_eq!(record.map(|record| record.claim), Some(claim.clone()));
        let exchange = Exchange {
            claim: claim.clone(),
            attestation: Attestation::Token { token },
            nonce: Secret::new("n".repeat(32)),
            version: String::new(),
        };
        assert_eq!(border.exchange(&exchange, now), Err(NotTaken));
        border.open();
        assert!(matches!(border.exchange(&exchange, now), Ok(Reply::Refused { status: 503, .. })));
        assert_eq!(border.receive().await, [Received::Guest(Notice::Attested(claim))]);
    }

    #[test]
    fn the_secrets_of_a_pool_are_replaced_and_never_shown() {
        let border = Border::new();
        border.set_webhook_secrets(Platform::GitHub, "ci/a", vec!["one".to_owned().into()]);
        border.set_webhook_secrets(Platform::GitHub, "ci/b", vec!["two".to_owned().into(), "three".to_owned().into()]);
        assert_eq!(border.webhook_secrets(Platform::GitHub).len(), 3);
        assert_eq!(format!("{:?}", border.webhook_secrets(Platform::GitHub)).matches("[redacted]").count(), 3);
        border.set_webhook_secrets(Platform::GitHub, "ci/b", Vec::new());
        let left: Vec<(String, String)> = border
            .webhook_secrets(Platform::GitHub)
            .iter()
            .map(|(pool, secret)| (pool.to_string(), secret.expose().to_owned()))
            .collect();
        assert_eq!(left, [("ci/a".to_owned(), "one".to_owned())]);
        border.set_webhook_secrets(Platform::GitLab, "ci/a", vec!["four".to_owned().into()]);
        assert!(border.webhook_secrets(Platform::GitHub).is_empty(), "GitLab sends its secrets in clear text");
        assert_eq!(border.webhook_secrets(Platform::GitLab).len(), 1);
    }
}
