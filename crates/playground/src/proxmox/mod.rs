//! The stand-in of Proxmox VE as an HTTPS server on this machine, for the demo and tests.

mod serve;

pub use crate::stand_in_server::Line;
pub use pve_stand_in::{
    Credentials as RequestCredentials, Deed, Fault, FaultEffect, Method, Request, Setup, StandIn, Task, TemplateSetup,
    Timing, Vm,
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
    /// The cluster at the start. Its clock is set to that of this machine.
    pub setup: Setup,
    /// The port on 127.0.0.1; a free one if it is not given.
    pub port: Option<u16>,
}

impl Options {
    /// Three nodes with a template, and times for an audience.
    pub fn demo() -> Options {
        Options { setup: Setup::cluster(Timing::demo()), port: None }
    }

    /// The same cluster with times for tests.
    pub fn for_test() -> Options {
        Options { setup: Setup::cluster(Timing::short()), port: None }
    }
}

/// Who can log in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Credentials {
    /// The user with all rights.
    pub user: String,
    /// The password of that user.
    pub password: String,
    /// A token with all rights, `user@realm!id=secret`.
    pub full_token: String,
    /// A token with exactly the rights that a fleet needs.
    pub fleet_token: String,
}

/// A Proxmox VE cluster on 127.0.0.1 that runs until this value is dropped, in a thread of its own so that a test may block.
pub struct ProxmoxStandIn {
    /// `https://127.0.0.1:PORT`; the API is below `/api2/json`.
    pub address: String,
    /// The certificate of the authority that signed the server's.
    pub ca_pem: String,
    /// The SHA-256 of the server's certificate, as Proxmox shows it.
    pub fingerprint: String,
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
}

impl Shared {
    /// Runs with the state of this moment.
    pub(crate) fn with<T>(&self, action: impl FnOnce(&mut StandIn, Duration) -> T) -> T {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        let now = self.started.elapsed();
        state.advance(now);
        action(&mut state, now)
    }
}

impl ProxmoxStandIn {
    /// Starts it.
    pub fn start(options: &Options) -> Result<ProxmoxStandIn, UserError> {
        let failed = |error: std::io::Error| {
            UserError::new("the stand-in of Proxmox VE cannot listen on 127.0.0.1", "run again, or choose another port")
                .with_source(error)
        };
        let mut setup = options.setup.clone();
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        setup.epoch = i64::try_from(since_1970.as_secs()).unwrap_or_default();
        let certificate = Certificate::create("pve1", "Proxmox Virtual Environment (stand-in)")?;
        let acceptor = certificate.acceptor()?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, options.port.unwrap_or(0))).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address: SocketAddr = listener.local_addr().map_err(failed)?;
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
        });
        let (stop, stopped) = oneshot::channel();
        let serving = serve::listen(listener, acceptor, Arc::clone(&shared));
        let thread = std::thread::Builder::new().name("proxmox-stand-in".into()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = serving => {}
                    _ = stopped => {}
                }
            });
        });
        Ok(ProxmoxStandIn {
            address: format!("https://{address}"),
            ca_pem: certificate.authority_pem,
            fingerprint: certificate.fingerprint,
            credentials: Credentials {
                user: Setup::ROOT.to_owned(),
                password: Setup::ROOT_PASSWORD.to_owned(),
                full_token: Setup::ROOT_TOKEN.to_owned(),
                fleet_token: Setup::FLEET_TOKEN.to_owned(),
            },
            shared,
            running: Some((stop, thread.map_err(failed)?)),
        })
    }

    /// Reads or changes the cluster behind its API, as it is at this moment.
    pub fn with<T>(&self, action: impl FnOnce(&mut StandIn) -> T) -> T {
        self.shared.with(|state, _| action(state))
    }

    /// What its connections share, for others that act in its world.
    pub(crate) fn shared(&self) -> Arc<Shared> {
        Arc::clone(&self.shared)
    }

    /// Adds a fault.
    pub fn inject(&self, fault: Fault) {
        self.with(|state| state.inject(fault));
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

impl Drop for ProxmoxStandIn {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.running.take() {
            let _ = stop.send(());
            let _ = thread.join();
        }
    }
}
