//! The stand-in of GitHub as an HTTPS server on this machine that also sends webhooks, for the demo and tests.

mod serve;
mod webhooks;

pub use crate::stand_in_server::Line;
pub use github_stand_in::{
    APP_KEY, Assignment, Conclusion, Execution, Fault, FaultEffect, Job, JobSpec, JobState, Limits, Method,
    RepositoryName, RepositorySetup, Rerun, Runner, RunnerGroup, RunnerRefusal, RunnerSpec, Scope, Setup, StandIn,
    Statistics, Style, Timing, WebhookChaos, WebhookEffect, WebhookFault,
};

use crate::stand_in_server::{Certificate, Records};
use crate::user_error::UserError;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::{oneshot, watch};

/// How a stand-in is started.
#[derive(Debug, Clone)]
pub struct Options {
    /// What exists at the start. Its clock is set to that of this machine, and its address to that of the server.
    pub setup: Setup,
    /// The port on 127.0.0.1; a free one if it is not given.
    pub port: Option<u16>,
    /// The certificates of authorities, in PEM, that receivers of webhooks over HTTPS are trusted by.
    pub webhook_authorities: String,
}

impl Options {
    /// An organisation, and times for an audience.
    pub fn demo() -> Options {
        Options { setup: Setup::organization(Timing::demo()), port: None, webhook_authorities: String::new() }
    }

    /// The same organisation with times for tests.
    pub fn for_test() -> Options {
        Options { setup: Setup::organization(Timing::short()), port: None, webhook_authorities: String::new() }
    }
}

/// Who can log in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The id of the App.
    pub app_id: u64,
    /// The client id of the App.
    pub client_id: String,
    /// The private key of the App, in PEM.
    pub private_key: String,
    /// The id of the installation of the App.
    pub installation: u64,
    /// A personal access token with all scopes that runners need.
    pub token: String,
}

/// A GitHub on 127.0.0.1 that runs until this value is dropped, in a thread of its own so that a test may block.
pub struct GithubStandIn {
    /// `https://127.0.0.1:PORT`; the API is below `/api/v3`, and without it as on github.com.
    pub address: String,
    /// The certificate of the authority that signed the server's.
    pub ca_pem: String,
    /// Who can log in.
    pub credentials: Credentials,
    shared: Arc<Shared>,
    running: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

/// State shared by all connections.
pub(crate) struct Shared {
    state: Mutex<StandIn>,
    started: Instant,
    records: Records,
    /// Changes when all connections are to be closed.
    closing: watch::Sender<u64>,
    /// Changes when somebody changed the state, so that what is due may be earlier.
    changed: watch::Sender<u64>,
    /// Changes when polls have to look for messages.
    pulse: watch::Sender<u64>,
}

impl Shared {
    /// Runs with the state of this moment, and lets those who wait see what it did.
    pub(crate) fn with<T>(&self, action: impl FnOnce(&mut StandIn, Duration) -> T) -> T {
        let result = self.look(action);
        self.changed.send_modify(|number| *number += 1);
        result
    }

    /// Runs with the state of this moment, without a change that others wait for.
    fn look<T>(&self, action: impl FnOnce(&mut StandIn, Duration) -> T) -> T {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.started.elapsed();
        action(&mut state, now)
    }
}

impl GithubStandIn {
    /// Starts it.
    pub fn start(options: &Options) -> Result<GithubStandIn, UserError> {
        let failed = |error: std::io::Error| {
            UserError::new("the stand-in of GitHub cannot listen on 127.0.0.1", "run again, or choose another port")
                .with_source(error)
        };
        let certificate = Certificate::create("github.example", "GitHub (stand-in)")?;
        let acceptor = certificate.acceptor()?;
        let sender = webhooks::Sender::new(&options.webhook_authorities)?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port.unwrap_or(0))).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address: SocketAddr = listener.local_addr().map_err(failed)?;
        let mut setup = options.setup.clone();
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        setup.epoch = i64::try_from(since_1970.as_secs()).unwrap_or_default();
        setup.address = format!("https://{address}");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let listener = {
            let _entered = runtime.enter();
            tokio::net::TcpListener::from_std(listener).map_err(failed)?
        };
        let shared = Arc::new(Shared {
            state: Mutex::new(StandIn::new(&setup)),
            started: Instant::now(),
            records: Records::default(),
            closing: watch::Sender::new(0),
            changed: watch::Sender::new(0),
            pulse: watch::Sender::new(0),
        });
        let (stop, stopped) = oneshot::channel();
        let serving = serve::listen(listener, acceptor, Arc::clone(&shared));
        let sending = webhooks::send_all(Arc::clone(&shared), sender);
        let thread = std::thread::Builder::new().name("github-stand-in".into()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = serving => {}
                    () = sending => {}
                    _ = stopped => {}
                }
            });
        });
        Ok(GithubStandIn {
            address: setup.address,
            ca_pem: certificate.authority_pem,
            credentials: Credentials {
                app_id: Setup::APP_ID,
                client_id: Setup::CLIENT_ID.to_owned(),
                private_key: APP_KEY.to_owned(),
                installation: Setup::INSTALLATION,
                token: Setup::TOKEN.to_owned(),
            },
            shared,
            running: Some((stop, thread.map_err(failed)?)),
        })
    }

    /// Reads or changes the GitHub behind its API; gets the moment that its methods need.
    pub fn with<T>(&self, action: impl FnOnce(&mut StandIn, Duration) -> T) -> T {
        self.shared.with(action)
    }

    /// What its connections share, for others that act in its world.
    pub(crate) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    /// Adds a fault.
    pub fn inject(&self, fault: Fault) {
        self.with(|state, _| state.inject(fault));
    }

    /// The time since its start, by which requests are recorded.
    pub fn elapsed(&self) -> Duration {
        self.shared.started.elapsed()
    }

    /// Every request so far, in the order of arrival.
    pub fn requests(&self) -> Vec<Line> {
        self.shared.records.all()
    }

    /// How many requests with this method and this part in their path there were.
    pub fn count(&self, method: Method, part: &str) -> usize {
        self.shared.records.count(|line| line.method == method.as_str() && line.path.contains(part))
    }

    /// Forgets all requests so far.
    pub fn forget_requests(&self) {
        self.shared.records.clear();
    }

    /// Closes all connections that are open now.
    pub fn close_connections(&self) {
        self.shared.closing.send_modify(|number| *number += 1);
    }
}

impl Drop for GithubStandIn {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.running.take() {
            let _ = stop.send(());
            let _ = thread.join();
        }
    }
}
