//! The stand-in of GitLab as an HTTPS server on this machine, for tests.

mod serve;

pub use crate::stand_in_server::Line;
pub use gitlab_stand_in::{Fault, FaultEffect, Job, Limits, Method, Owner, Runner, Setup, StandIn};

use crate::stand_in_server::{Certificate, Records};
use crate::user_error::UserError;
use std::net::{Ipv4Addr, SocketAddr, TcpListener};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};
use tokio::sync::oneshot;

/// A GitLab on 127.0.0.1 that runs until this value is dropped, in a thread of its own so that a test may block.
pub struct GitlabStandIn {
    /// `https://127.0.0.1:PORT`; the API is below `/api/v4`.
    pub address: String,
    /// The certificate of the authority that signed the server's.
    pub ca_pem: String,
    shared: Arc<Shared>,
    running: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

/// State shared by all connections.
struct Shared {
    state: Mutex<StandIn>,
    started: Instant,
    records: Records,
}

impl Shared {
    /// Runs with the state of this moment.
    fn with<T>(&self, action: impl FnOnce(&mut StandIn, Duration) -> T) -> T {
        let mut state = self.state.lock().unwrap_or_else(PoisonError::into_inner);
        action(&mut state, self.started.elapsed())
    }
}

impl GitlabStandIn {
    /// Starts it. Its clock is set to that of this machine, and its address to that of the server.
    pub fn start(setup: &Setup) -> Result<GitlabStandIn, UserError> {
        let failed = |error: std::io::Error| {
            UserError::new("the stand-in of GitLab cannot listen on 127.0.0.1", "run again").with_source(error)
        };
        let certificate = Certificate::create("gitlab.example", "GitLab (stand-in)")?;
        let acceptor = certificate.acceptor()?;
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let address: SocketAddr = listener.local_addr().map_err(failed)?;
        let mut setup = setup.clone();
        let since_1970 = SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default();
        setup.epoch = i64::try_from(since_1970.as_secs()).unwrap_or_default();
        setup.address = format!("https://{address}");
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let listener = {
            let _entered = runtime.enter();
            tokio::net::TcpListener::from_std(listener).map_err(failed)?
        };
        let state = Mutex::new(StandIn::new(&setup));
        let shared = Arc::new(Shared { state, started: Instant::now(), records: Records::default() });
        let (stop, stopped) = oneshot::channel();
        let serving = serve::listen(listener, acceptor, Arc::clone(&shared));
        let thread = std::thread::Builder::new().name("gitlab-stand-in".into()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = serving => {}
                    _ = stopped => {}
                }
            });
        });
        let running = Some((stop, thread.map_err(failed)?));
        Ok(GitlabStandIn { address: setup.address, ca_pem: certificate.authority_pem, shared, running })
    }

    /// Reads or changes the GitLab behind its API; gets the moment that its methods need.
    pub fn with<T>(&self, action: impl FnOnce(&mut StandIn, Duration) -> T) -> T {
        self.shared.with(action)
    }

    /// Adds a fault.
    pub fn inject(&self, fault: Fault) {
        self.with(|state, _| state.inject(fault));
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
}

impl Drop for GitlabStandIn {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.running.take() {
            let _ = stop.send(());
            let _ = thread.join();
        }
    }
}
