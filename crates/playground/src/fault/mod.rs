//! A proxy between a program and the real API server that injects faults into chosen requests.

mod active_plan;
mod list_cache;
mod plan;
mod record;
mod request_info;
mod resource_version;
mod response;
mod serve;
mod upstream;
mod watch_stream;

pub use active_plan::Fired;
pub use plan::{Fault, Match, Plan, Rule, Verb};
pub use record::Line;

use crate::kubeconfig;
use crate::playground::Playground;
use crate::service_account::Account;
use crate::user_error::UserError;
use active_plan::ActivePlan;
use list_cache::ListCache;
use record::Records;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread::JoinHandle;
use tokio::sync::oneshot;
use upstream::Server;

/// A proxy on 127.0.0.1 that runs until this value is dropped, in a thread of its own so that a test may block.
pub struct Proxy {
    shared: Arc<Shared>,
    kubeconfig: PathBuf,
    log: PathBuf,
    running: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

/// State shared by all connections.
struct Shared {
    server: Arc<Server>,
    active_plan: ActivePlan,
    records: Arc<Records>,
    list_cache: ListCache,
}

impl Proxy {
    /// Starts a proxy in front of a playground's API server for the given account; without a plan it forwards everything.
    pub fn start(playground: &Playground, account: &Account) -> Result<Proxy, UserError> {
        let (server, acceptor) = upstream::tls(playground.address(), playground.certificates())?;
        let failed = |error: std::io::Error| {
            UserError::new("the fault proxy cannot listen on 127.0.0.1", "run again").with_source(error)
        };
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).map_err(failed)?;
        listener.set_nonblocking(true).map_err(failed)?;
        let port = listener.local_addr().map_err(failed)?.port();
        let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().map_err(failed)?;
        let listener = {
            let _entered = runtime.enter();
            tokio::net::TcpListener::from_std(listener).map_err(failed)?
        };
        let log = playground.folder().join(format!("proxy-{port}.requests.jsonl"));
        let kubeconfig = playground.folder().join(format!("proxy-{port}.kubeconfig"));
        let records = Records::create(&log)?;
        kubeconfig::redirect(&account.kubeconfig, &kubeconfig, &format!("https://127.0.0.1:{port}"))?;
        let shared = Shared {
            server: Arc::new(server),
            active_plan: ActivePlan::empty(),
            records,
            list_cache: ListCache::default(),
        };
        let shared = Arc::new(shared);
        let (stop, stopped) = oneshot::channel();
        let serving = serve::listen(listener, acceptor, Arc::clone(&shared));
        let thread = std::thread::Builder::new().name("fault-proxy".into()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = serving => {}
                    _ = stopped => {}
                }
            });
        });
        Ok(Proxy { shared, kubeconfig, log, running: Some((stop, thread.map_err(failed)?)) })
    }

    /// A kubeconfig with the account's credentials and the proxy's address.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// The log file: one line of JSON for every finished request; see [`Line`].
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Replaces the plan at once and resets all counters and fired faults. A rule that matches every watch also applies to the
    /// watches that are already open; their events are counted from here.
    pub fn set(&self, plan: Plan) {
        self.shared.active_plan.set(plan);
    }

    /// Removes the plan: from here on everything is forwarded.
    pub fn clear(&self) {
        self.set(Plan::default());
    }

    /// Sets how the program under test is killed. The callback runs in the proxy's thread before anything else is sent; then
    /// all open connections are closed. Without a callback they are only closed.
    pub fn on_kill(&self, kill: impl Fn() + Send + Sync + 'static) {
        self.shared.active_plan.on_kill(Arc::new(kill));
    }

    /// The faults injected since the plan was set. A fault is listed here before its effect can be observed.
    pub fn fired(&self) -> Vec<Fired> {
        self.shared.active_plan.fired()
    }

    /// Waits until this many faults have been injected.
    pub async fn until_fired(&self, times: usize) {
        // The sender lives as long as the proxy, which outlives this call.
        let _ = self.shared.active_plan.count().wait_for(|count| *count >= times).await;
    }

    /// Fails if a rule of the plan was never applied: a test whose fault never happened proves nothing.
    pub fn check_all_fired(&self) -> Result<(), UserError> {
        self.shared.active_plan.check_all_fired()
    }

    /// Every request so far in the order of arrival, including unfinished ones.
    pub fn requests(&self) -> Vec<Line> {
        self.shared.records.all()
    }
}

/// Locks a mutex even if another thread has panicked while holding it.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.running.take() {
            let _ = stop.send(());
            let _ = thread.join();
        }
        // It holds a token. The folder may have been removed already.
        let _ = std::fs::remove_file(&self.kubeconfig);
    }
}
