//! Keeps the authority of the bootstrap endpoint in its Secret, and a certificate of it in use.

pub(super) mod certificates;

use super::address::PublicAddress;
use crate::fleet::border::{Border, Endpoint};
use anyhow::{Context, anyhow, bail};
use api::fleet::{BOOTSTRAP_SECRET, FIELD_MANAGER};
use certificates::Leaf;
use change::{Backoff, Effect, Key, Kind, Precondition};
use cluster::act::act;
use cluster::{Attempts, Permit, Server, live};
use fleet::bootstrap::authority::{Authority, choose};
use jiff::Timestamp;
use k8s_openapi::ByteString;
use protocol::Served;
use runtime::bounded::Tls;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, PoisonError, RwLock};
use std::time::Duration;
use tokio::sync::watch;
use tokio_rustls::TlsAcceptor;

/// The keys of the Secret: what the fleet reads, and the certificates for people.
const AUTHORITIES: &str = "authorities.json";
const CA: &str = "ca.crt";
/// How often the Secret is read: another replica may have changed it.
const PERIOD: Duration = Duration::from_secs(15);
/// While there is no certificate.
const AGAIN: Backoff = Backoff { first: Duration::from_secs(1), longest: Duration::from_secs(30) };

/// What accepts the next connection.
#[derive(Clone, Default)]
pub(super) struct Acceptor(Arc<RwLock<Option<TlsAcceptor>>>);

impl Acceptor {
    pub(super) fn current(&self) -> Tls {
        let acceptor = self.0.read().unwrap_or_else(PoisonError::into_inner).clone();
        acceptor.map_or(Tls::NotYet, Tls::With)
    }

    fn set(&self, acceptor: TlsAcceptor) {
        *self.0.write().unwrap_or_else(PoisonError::into_inner) = Some(acceptor);
    }
}

/// Keeps the authority.
pub(super) struct Keeper {
    server: Server,
    key: Key,
    address: PublicAddress,
    border: Arc<Border>,
    /// As they were read or made last: if somebody deletes the Secret, machines that trust them still boot.
    known: Vec<Authority>,
    leaf: Option<Leaf>,
}

impl Keeper {
    pub(super) fn new((server, home): (Server, String), address: PublicAddress, border: Arc<Border>) -> Keeper {
        let key = Key { kind: Kind::new("v1", "Secret"), namespace: home, name: BOOTSTRAP_SECRET.to_owned() };
        Keeper { server, key, address, border, known: Vec::new(), leaf: None }
    }

    /// Keeps it until the process ends.
    pub(super) async fn keep(mut self, mut permit: watch::Receiver<Option<Permit>>, acceptor: Acceptor) {
        let (mut attempts, mut last) = (Attempts::with(AGAIN), String::new());
        loop {
            let held = permit.borrow_and_update().clone();
            match self.refresh(held.as_ref(), &acceptor).await {
                Ok(()) => {
                    (attempts, last) = (Attempts::with(AGAIN), String::new());
                    tokio::select! {
                        () = tokio::time::sleep(PERIOD) => {}
                        Ok(()) = permit.changed() => {}
                    }
                }
                Err(error) => {
                    let why = format!("{error:#}");
                    if why != last && held.is_some() {
                        tracing::warn!("the bootstrap endpoint: {why}; trying again");
                        last = why;
                    }
                    tokio::select! {
                        () = attempts.wait() => {}
                        Ok(()) = permit.changed() => {}
                    }
                }
            }
        }
    }

    /// Brings the Secret, the certificate and what guests trust up to date.
    async fn refresh(&mut self, permit: Option<&Permit>, acceptor: &Acceptor) -> anyhow::Result<()> {
        let now = Timestamp::now();
        let stored = self.read().await?;
        let (version, found) = match stored {
            Some((version, found)) => (version, Some(found)),
            None => (Precondition::Absent, None),
        };
        let mut wanted = found.clone().unwrap_or_else(|| self.known.clone());
        let choice = choose(&wanted, now);
        if choice.is_new_wanted && permit.is_some() {
            let mut kept: Vec<Authority> = choice.trusted.into_iter().cloned().collect();
            kept.push(certificates::authority(now)?);
            wanted = kept;
        }
        if let Some(permit) = permit
            && found.as_ref() != Some(&wanted)
        {
            self.write(permit, version, &wanted).await?;
            tracing::info!("the authority of the bootstrap endpoint is in the Secret {}", self.key);
        }
        self.known = wanted;
        self.serve(now, acceptor)
    }

    /// Uses a certificate of the authority that signs now.
    fn serve(&mut self, now: Timestamp, acceptor: &Acceptor) -> anyhow::Result<()> {
        let choice = choose(&self.known, now);
        let signer =
            choice.signer.ok_or_else(|| anyhow!("there is no authority yet; the replica that leads makes it"))?;
        if !self.leaf.as_ref().is_some_and(|leaf| leaf.is_of(signer, now)) {
            let leaf = certificates::leaf(signer, &self.address.host, now)?;
            acceptor.set(leaf.acceptor.clone());
            self.leaf = Some(leaf);
        }
        let ca = choice.trusted.iter().map(|one| one.certificate.as_str()).collect();
        self.border.serve_at(Endpoint { address: self.address.to_string(), ca });
        Ok(())
    }

    /// The Secret: its version, and the authorities in it.
    async fn read(&self) -> anyhow::Result<Option<(Precondition, Vec<Authority>)>> {
        let found = live::inspect(&self.server, &served(), &self.key).await;
        let found = found.with_context(|| {
            format!("the Secret {} cannot be read; `virtpilot manifests --products fleet` grants the right", self.key)
        })?;
        let Some((live, mut object)) = found else { return Ok(None) };
        let version = Precondition::Present { uid: live.uid, resource_version: live.resource_version };
        let data: Option<BTreeMap<String, ByteString>> =
            serde_json::from_value(object["data"].take()).unwrap_or_default();
        let Some(text) = data.unwrap_or_default().remove(AUTHORITIES) else {
            return Ok(Some((version, Vec::new())));
        };
        // The text of an error could quote a key.
        match serde_json::from_slice(&text.0) {
            Ok(authorities) => Ok(Some((version, authorities))),
            Err(_) => bail!(
                "the key {AUTHORITIES} of the Secret {} cannot be read; restore it, or delete the Secret while no machine boots",
                self.key
            ),
        }
    }

    async fn write(&self, permit: &Permit, version: Precondition, all: &[Authority]) -> anyhow::Result<()> {
        let object = secret(&self.key, all)?;
        let effect = Effect::apply(object, version, true);
        let written = act(&self.server, permit, FIELD_MANAGER, &served(), &self.key, effect, 0).await;
        written.map(|_| ()).with_context(|| format!("the Secret {} cannot be written", self.key))
    }
}

fn served() -> Served {
    Served::at(Kind::new("v1", "Secret"), "secrets", true)
}

fn secret(key: &Key, all: &[Authority]) -> anyhow::Result<Value> {
    let certificates: String = all.iter().map(|one| one.certificate.as_str()).collect();
    let data = BTreeMap::from([
        (AUTHORITIES, ByteString(serde_json::to_vec(all)?)),
        (CA, ByteString(certificates.into_bytes())),
    ]);
    Ok(json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": key.name, "namespace": key.namespace,
            "labels": {"app.kubernetes.io/name": FIELD_MANAGER, "app.kubernetes.io/component": "bootstrap"},
        },
        "type": "Opaque",
        "data": data,
    }))
}
