//! Connects CI platforms as `RunnerPool`s and their Secrets say, and carries out requests on those connections.

use super::border::Border;
use super::secrets::{Secrets, Unavailable, unread};
use api::fleet::{RunnerPool, Workload};
use change::Key;
use cluster::{Permit, Server, live};
use fleet::forge::{Answer, Ask, Failure, ForgeKey, Hidden, Platform, Request};
use fleet::jobs::settings::Settings as Wanted;
use fleet::object::fleet_kind;
use forge::{Credentials, Hands, Limits, Link, Secret, Settings, Tls};
use protocol::Served;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

/// A pod is killed some 30 seconds after it was told to stop, and writes come first.
const CLOSING: Duration = Duration::from_secs(5);

/// Where the fields of a pool are.
fn field(platform: Platform, name: &str) -> String {
    format!("workload.config.{}.{name}", platform.name().to_lowercase())
}

/// All connections to CI platforms.
pub(super) struct Forges {
    server: Server,
    /// The namespace of the fleet itself.
    home: String,
    permit: Permit,
    hands: Hands,
    border: Arc<Border>,
    /// One lock for each platform: what is asked while its connection is made waits for it.
    turns: Mutex<BTreeMap<ForgeKey, Turn>>,
}

type Turn = Arc<tokio::sync::Mutex<()>>;

impl Forges {
    pub(super) fn new(server: Server, home: String, permit: Permit, border: Arc<Border>) -> Forges {
        let report: forge::Report = Arc::new(move |exchange| {
            let (method, path, status) = (exchange.method, exchange.path, exchange.status.label());
            tracing::debug!("CI platform: {method} {path}: {status} after {} ms", exchange.duration.as_millis());
        });
        Forges { server, home, permit, hands: Hands::new(report), border, turns: Mutex::default() }
    }

    /// Carries out one request. Each check connects anew, so that other settings and credentials are used from then on.
    pub(super) async fn carry_out(&self, request: &Request) -> Result<Answer, Failure> {
        {
            let turn = self.turn(&request.forge);
            let _turn = turn.lock().await;
            let is_connected = self.hands.connected().contains(&request.forge);
            if request.ask == Ask::Check || !is_connected {
                match self.connect(&request.forge).await {
                    // Without an answer of the API server the settings are those of before.
                    Err(Failure::Transient(_)) if is_connected => {}
                    Err(failure) => {
                        self.hands.disconnect(&request.forge);
                        return Err(failure);
                    }
                    Ok(()) => {}
                }
            }
        }
        if !self.permit.is_valid() {
            return Err(Failure::Transient("this replica does not lead any more".into()));
        }
        self.hands.carry_out(request).await
    }

    /// Forgets a platform, with its credentials and the secrets of its webhooks.
    pub(super) fn forget(&self, forge: &ForgeKey) {
        self.hands.disconnect(forge);
        self.border.set_webhook_secrets(Platform::GitHub, &name(forge), Vec::new());
        self.turns.lock().unwrap_or_else(PoisonError::into_inner).remove(forge);
    }

    /// Ends sessions, so that the next process need not wait for their expiry.
    pub(super) async fn close(&self) {
        if tokio::time::timeout(CLOSING, self.hands.close()).await.is_err() {
            tracing::warn!(
                "stopped before GitHub has closed the sessions of scale sets; they end by themselves in two minutes"
            );
        }
    }

    fn turn(&self, forge: &ForgeKey) -> Turn {
        let mut turns = self.turns.lock().unwrap_or_else(PoisonError::into_inner);
        turns.entry(forge.clone()).or_default().clone()
    }

    async fn connect(&self, forge: &ForgeKey) -> Result<(), Failure> {
        let wanted = read_pool(&self.server, forge).await?;
        let of = format!("RunnerPool {}", name(forge));
        let mut secrets = Secrets::new(&self.server, Some(&self.home), &forge.namespace, of);
        let settings = Box::new(settings(&wanted, &mut secrets).await?);
        let webhooks = webhook_secrets(&wanted, &mut secrets).await?;
        self.border.set_webhook_secrets(wanted.platform, &name(forge), webhooks);
        let link = match wanted.platform {
            Platform::GitHub => Link::Github(settings),
            Platform::GitLab => Link::Gitlab(settings),
        };
        self.hands.connect(forge, link)
    }
}

fn name(forge: &ForgeKey) -> String {
    format!("{}/{}", forge.namespace, forge.name)
}

async fn read_pool(server: &Server, forge: &ForgeKey) -> Result<Wanted, Failure> {
    let kind = fleet_kind("RunnerPool");
    let served = Served::at(kind.clone(), "runnerpools", true);
    let key = Key { kind, namespace: forge.namespace.clone(), name: forge.name.clone() };
    let what = format!("the RunnerPool {}", name(forge));
    let found = live::whole(server, &served, &key).await.map_err(|failure| {
        unread(&failure, &what, "grant the fleet the right to get runnerpools of the group hyperfleet.io")
    })?;
    let wrong = |message: String, remedy: &str| Failure::Configuration { message, remedy: remedy.to_owned() };
    let Some(found) = found else { return Err(wrong(format!("there is no {what}"), "create it again")) };
    let pool: RunnerPool = serde_json::from_value(found)
        .map_err(|error| wrong(format!("{what} cannot be read: {error}"), "install the CRDs of this version"))?;
    let Some(runners) = pool.spec.workload.as_ref().and_then(Workload::runners) else {
        let remedy = "set credentials in workload.config.github or workload.config.gitlab";
        return Err(wrong(format!("{what} has no credentials"), remedy));
    };
    Wanted::of(runners).map_err(|(message, remedy)| Failure::Configuration { message, remedy })
}

async fn settings(wanted: &Wanted, secrets: &mut Secrets<'_>) -> Result<Settings, Failure> {
    let (field, github) = (|name: &str| field(wanted.platform, name), &wanted.github);
    let named = github.credentials.clone().unwrap_or_default();
    let credentials = match (named.app, named.token) {
        (Some(app), _) => {
            let key = Secret::from(secrets.value(&field("credentials.app.privateKey"), &app.private_key).await?);
            Credentials::App { id: app.id, installation: app.installation, key }
        }
        (None, Some(token)) => {
            Credentials::Token(Secret::from(secrets.value(&field("credentials.token"), &token).await?))
        }
        (None, None) => {
            return Err(Failure::Configuration {
                message: format!("{} names no credentials", secrets.of()),
                remedy: format!("set {}", field("credentials")),
            });
        }
    };
    let tls = match &github.ca_certificate {
        Some(reference) => Tls::Authorities(secrets.value(&field("caCertificate"), reference).await?),
        None => Tls::System,
    };
    Ok(Settings { address: wanted.link.clone(), allows_http: false, credentials, tls, limits: Limits::default() })
}

async fn webhook_secrets(wanted: &Wanted, secrets: &mut Secrets<'_>) -> Result<Vec<Hidden>, Failure> {
    let mut found = Vec::new();
    for (number, reference) in wanted.github.webhook_secrets.iter().enumerate() {
        let field = field(wanted.platform, &format!("webhookSecrets[{number}]"));
        found.push(secrets.value(&field, reference).await?.into());
    }
    Ok(found)
}

impl From<Unavailable> for Failure {
    fn from(why: Unavailable) -> Failure {
        match why {
            Unavailable::Transient(message) => Failure::Transient(message),
            Unavailable::Configuration(message, remedy) => Failure::Configuration { message, remedy },
        }
    }
}
