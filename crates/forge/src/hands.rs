//! Keeps one connection for each CI platform that is in use, and carries out requests.

use crate::exchange::Report;
use crate::gate::Gates;
use crate::github::Github;
use crate::gitlab::Gitlab;
use crate::provider::CarryOut;
use crate::settings::{Credentials, Settings};
use fleet::forge::address::Address;
use fleet::forge::gitlab::Place;
use fleet::forge::{Answer, Failure, ForgeKey, Request, Scope, budget};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError, Weak};

/// How a CI platform is connected.
#[derive(Clone)]
pub enum Link {
    /// GitHub, in the cloud or an enterprise server.
    Github(Box<Settings>),
    /// GitLab, in the cloud or self-managed.
    Gitlab(Box<Settings>),
    /// Any other, at this address, for tests.
    Other(String, Arc<dyn CarryOut>),
}

type Connected = (Link, Arc<dyn CarryOut>);

/// All connected CI platforms.
pub struct Hands {
    report: Report,
    forges: Mutex<BTreeMap<ForgeKey, Connected>>,
    /// Budgets are those of a login, however many connections use it.
    gates: Mutex<Vec<(Account, Weak<Gates>)>>,
}

/// The owner of what an App of GitHub is installed in.
fn owner(credentials: &Credentials, scope: Scope) -> Option<String> {
    match (credentials, scope) {
        (Credentials::Token(_), _) => None,
        (_, Scope::Enterprise(name) | Scope::Organization(name)) => Some(name.to_lowercase()),
        (_, Scope::Repository(name)) => Some(name.owner.to_lowercase()),
    }
}

/// Whom a platform counts requests for: where, who, and which installation if it is an App.
#[derive(PartialEq)]
struct Account {
    api: String,
    credentials: Credentials,
    owner: Option<String>,
    limits: budget::Limits,
}

impl Hands {
    /// No platform yet; every request is reported.
    pub fn new(report: Report) -> Hands {
        Hands { report, forges: Mutex::default(), gates: Mutex::default() }
    }

    /// Connects a platform, or replaces its connection if it has to be another one. Requests in flight end on the former one. Says what is
    /// wrong with the settings; nothing is sent.
    pub fn connect(&self, forge: &ForgeKey, link: Link) -> Result<(), Failure> {
        let mut forges = self.forges.lock().unwrap_or_else(PoisonError::into_inner);
        if forges.get(forge).is_some_and(|(known, _)| known.is_same(&link)) {
            return Ok(());
        }
        let provider: Arc<dyn CarryOut> = match &link {
            Link::Github(settings) => Arc::new(Github::sharing(settings, self.gates(&link), self.report.clone())?),
            Link::Gitlab(settings) => Arc::new(Gitlab::sharing(settings, self.gates(&link), self.report.clone())?),
            Link::Other(_, provider) => provider.clone(),
        };
        forges.insert(forge.clone(), (link, provider));
        Ok(())
    }

    /// The budgets of a login.
    fn gates(&self, link: &Link) -> Arc<Gates> {
        let settings = match link {
            Link::Github(settings) | Link::Gitlab(settings) => settings,
            Link::Other(..) => return Gates::new(budget::Limits::default()),
        };
        let new = || Gates::new(settings.limits.budget);
        let (api, owner) = match link {
            Link::Gitlab(_) => match Place::read(&settings.address, settings.allows_http) {
                Ok(place) => (place.api, None),
                Err(_) => return new(),
            },
            _ => match Address::github(&settings.address, settings.allows_http) {
                Ok(address) => (address.api, owner(&settings.credentials, address.scope)),
                Err(_) => return new(),
            },
        };
        let credentials = settings.credentials.clone();
        let account = Account { api, credentials, owner, limits: settings.limits.budget };
        let mut known = self.gates.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|(_, gates)| gates.strong_count() > 0);
        let found = known.iter().find(|(other, _)| *other == account).and_then(|(_, gates)| gates.upgrade());
        found.unwrap_or_else(|| {
            let gates = new();
            known.push((account, Arc::downgrade(&gates)));
            gates
        })
    }

    /// Forgets a platform. Requests in flight end as they would have.
    pub fn disconnect(&self, forge: &ForgeKey) {
        self.forges.lock().unwrap_or_else(PoisonError::into_inner).remove(forge);
    }

    /// Ends what is open at all platforms, so that a successor need not wait for its expiry.
    pub async fn close(&self) {
        let providers: Vec<Arc<dyn CarryOut>> = {
            let forges = self.forges.lock().unwrap_or_else(PoisonError::into_inner);
            forges.values().map(|(_, provider)| provider.clone()).collect()
        };
        futures::future::join_all(providers.iter().map(|provider| provider.close())).await;
    }

    /// The platforms that are connected.
    pub fn connected(&self) -> Vec<ForgeKey> {
        self.forges.lock().unwrap_or_else(PoisonError::into_inner).keys().cloned().collect()
    }

    /// Carries out one request, if the platform is connected at the address that was decided for.
    pub async fn carry_out(&self, request: &Request) -> Result<Answer, Failure> {
        let ForgeKey { namespace, name } = &request.forge;
        let found = {
            let forges = self.forges.lock().unwrap_or_else(PoisonError::into_inner);
            forges.get(&request.forge).map(|(link, provider)| (link.address().to_owned(), provider.clone()))
        };
        match found {
            Some((address, provider)) if address == request.address => provider.carry_out(&request.ask).await,
            Some((address, _)) => {
                Err(Failure::Transient(format!("{namespace}/{name} is at {address} now, not at {}", request.address)))
            }
            None => Err(Failure::Transient(format!("{namespace}/{name} is not connected"))),
        }
    }
}

impl Link {
    fn address(&self) -> &str {
        match self {
            Link::Github(settings) | Link::Gitlab(settings) => &settings.address,
            Link::Other(address, _) => address,
        }
    }

    fn is_same(&self, other: &Link) -> bool {
        match (self, other) {
            (Link::Github(one), Link::Github(other)) | (Link::Gitlab(one), Link::Gitlab(other)) => one == other,
            (Link::Other(_, one), Link::Other(_, other)) => Arc::ptr_eq(one, other),
            _ => false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Hands, Link};
    use crate::provider::CarryOut;
    use crate::settings::{Credentials, Limits, Settings, Tls};
    use fleet::forge::{Answer, Ask, Failure, ForgeKey, Request};
    use futures::future::BoxFuture;
    use std::sync::Arc;

    struct Always;

    impl CarryOut for Always {
        fn carry_out<'a>(&'a self, _: &'a Ask) -> BoxFuture<'a, Result<Answer, Failure>> {
            Box::pin(async { Ok(Answer::Done) })
        }
    }

    #[tokio::test]
    async fn a_request_goes_only_to_the_address_that_it_was_decided_for() {
        let hands = Hands::new(Arc::new(|_| {}));
        let forge = ForgeKey { namespace: "ci".into(), name: "acme".into() };
        let ask = |address: &str| Request { forge: forge.clone(), address: address.into(), ask: Ask::Check };
        let failed = |answer: Result<Answer, Failure>| answer.unwrap_err().to_string();
        assert_eq!(failed(hands.carry_out(&ask("a")).await), "ci/acme is not connected");
        hands.connect(&forge, Link::Other("b".into(), Arc::new(Always))).unwrap();
        assert_eq!(failed(hands.carry_out(&ask("a")).await), "ci/acme is at b now, not at a");
        assert_eq!(hands.carry_out(&ask("b")).await, Ok(Answer::Done));
        assert_eq!(hands.connected(), std::slice::from_ref(&forge));
        hands.disconnect(&forge);
        assert!(hands.connected().is_empty());
    }

    #[test]
    fn connections_of_one_login_share_its_budget() {
        let hands = Hands::new(Arc::new(|_| {}));
        let of = |path: &str, token: &str| {
            let address = format!("https://github.com/{path}");
            let (credentials, tls, limits) = (Credentials::Token(token.into()), Tls::System, Limits::default());
            hands.gates(&Link::Github(Box::new(Settings { address, allows_http: false, credentials, tls, limits })))
        };
        let app = |path: &str| {
            let credentials = Credentials::App { id: "42".into(), installation: None, key: "key".into() };
            let (address, tls, limits) = (format!("https://github.com/{path}"), Tls::System, Limits::default());
            hands.gates(&Link::Github(Box::new(Settings { address, allows_http: false, credentials, tls, limits })))
        };
        let first = of("acme", "a");
        assert!(Arc::ptr_eq(&first, &of("acme/shop", "a")) && Arc::ptr_eq(&first, &of("other", "a")));
        assert!(!Arc::ptr_eq(&first, &of("acme", "b")));
        let installation = app("acme");
        assert!(Arc::ptr_eq(&installation, &app("Acme/shop")), "the same installation");
        assert!(!Arc::ptr_eq(&installation, &app("other")), "another installation");
        let gitlab = |path: &str| {
            let address = format!("https://gitlab.com/{path}");
            let (credentials, tls, limits) = (Credentials::Token("a".into()), Tls::System, Limits::default());
            hands.gates(&Link::Gitlab(Box::new(Settings { address, allows_http: false, credentials, tls, limits })))
        };
        let group = gitlab("acme");
        assert!(Arc::ptr_eq(&group, &gitlab("acme/shop")) && !Arc::ptr_eq(&group, &first));
    }

    #[test]
    fn settings_that_cannot_work_are_refused_with_a_remedy_and_without_their_secret() {
        let hands = Hands::new(Arc::new(|_| {}));
        let forge = ForgeKey { namespace: "ci".into(), name: "acme".into() };
        let app = |id: &str, key: &str| Credentials::App { id: id.into(), installation: None, key: key.into() };
        for (address, credentials, tls, expected) in [
            ("http://github.com/acme", Credentials::Token("ghp_hush".into()), Tls::System, "clear text"),
            ("https://github.com/acme", Credentials::Token("ghp_\nhush".into()), Tls::System, "cannot be sent"),
            ("https://github.com/acme", Credentials::Token(" ".into()), Tls::System, "is empty"),
            ("https://github.com/acme", app("42", "hush"), Tls::System, "private key"),
            ("https://github.com/acme", app("", "hush"), Tls::System, "no id"),
            (
                "https://github.com/acme",
                app("42", "-----BEGIN RSA PRIVATE KEY-----\naHVzaA==\n-----END RSA PRIVATE KEY-----\n"),
                Tls::System,
                "private key",
            ),
            ("https://github.com/enterprises/corp", app("42", playground::github::APP_KEY), Tls::System, "enterprise"),
            ("https://github.com/acme", Credentials::Token("ghp_hush".into()), Tls::Authorities("x".into()), "the CA"),
        ] {
            let (address, limits) = (address.to_owned(), Limits::default());
            let settings = Settings { address, allows_http: false, credentials, tls, limits };
            match hands.connect(&forge, Link::Github(Box::new(settings))) {
                Err(Failure::Configuration { message, remedy }) => {
                    assert!(message.contains(expected) && !remedy.is_empty(), "{expected}: {message}; {remedy}");
                    assert!(!message.contains("hush") && !message.contains("aHVzaA"), "{message}");
                }
                other => panic!("{expected}: {other:?}"),
            }
        }
    }
}
