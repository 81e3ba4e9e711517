//! A proxy between a program and the real API server that lets chosen requests go wrong.

mod answer;
mod asked;
mod in_force;
mod lists;
mod plan;
mod record;
mod serve;
mod stream;
mod upstream;
mod version;

pub use in_force::Fired;
pub use plan::{Fault, Match, Plan, Rule, Verb};
pub use record::Line;

use crate::kubeconfig;
use crate::playground::Playground;
use crate::service_account::Account;
use crate::trouble::Trouble;
use in_force::InForce;
use lists::Lists;
use record::Records;
use std::net::{Ipv4Addr, TcpListener};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread::JoinHandle;
use tokio::sync::oneshot;
use upstream::Server;

/// A proxy on 127.0.0.1 that lives as long as this value, in a thread of its own: a test may block while it works.
pub struct Proxy {
    shared: Arc<Shared>,
    kubeconfig: PathBuf,
    log: PathBuf,
    running: Option<(oneshot::Sender<()>, JoinHandle<()>)>,
}

/// What all its connections know.
struct Shared {
    server: Arc<Server>,
    in_force: InForce,
    records: Arc<Records>,
    lists: Lists,
}

impl Proxy {
    /// Starts one in front of a playground's API server, for whoever has the account's token. It passes everything.
    pub fn start(playground: &Playground, account: &Account) -> Result<Proxy, Trouble> {
        let (server, acceptor) = upstream::tls(playground.address(), playground.certificates())?;
        let failed =
            |error: std::io::Error| Trouble::new("the proxy cannot listen on 127.0.0.1", "run again").from(error);
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
        let shared =
            Shared { server: Arc::new(server), in_force: InForce::nothing(), records, lists: Lists::default() };
        let shared = Arc::new(shared);
        let (stop, stopped) = oneshot::channel();
        let listening = serve::listen(listener, acceptor, Arc::clone(&shared));
        let thread = std::thread::Builder::new().name("fault-proxy".into()).spawn(move || {
            runtime.block_on(async {
                tokio::select! {
                    () = listening => {}
                    _ = stopped => {}
                }
            });
        });
        Ok(Proxy { shared, kubeconfig, log, running: Some((stop, thread.map_err(failed)?)) })
    }

    /// A kubeconfig that is the account, at this proxy.
    pub fn kubeconfig(&self) -> &Path {
        &self.kubeconfig
    }

    /// Where every request is written down as one line of JSON when it is over; see [`Line`].
    pub fn log(&self) -> &Path {
        &self.log
    }

    /// Puts another plan in force, at once and from the beginning: nothing is counted and nothing has fired. A rule about
    /// the events of every watch is also about those that are open; their events count from here.
    pub fn set(&self, plan: Plan) {
        self.shared.in_force.set(plan);
    }

    /// Passes everything from here on.
    pub fn clear(&self) {
        self.set(Plan::default());
    }

    /// How the program under test is killed. It is called in the proxy's thread, before anything else is sent; then all
    /// connections opened before are closed. Without it, they are closed and nobody is killed.
    pub fn on_kill(&self, kill: impl Fn() + Send + Sync + 'static) {
        self.shared.in_force.on_kill(Arc::new(kill));
    }

    /// The faults that came true since the plan was set. A fault is here before its effect can be seen.
    pub fn fired(&self) -> Vec<Fired> {
        self.shared.in_force.fired()
    }

    /// Waits until so many have.
    pub async fn until_fired(&self, times: usize) {
        // It ends with the proxy, which outlives this call.
        let _ = self.shared.in_force.count().wait_for(|count| *count >= times).await;
    }

    /// That every rule of the plan came true at least once; a test whose fault never happened proves nothing.
    pub fn proof(&self) -> Result<(), Trouble> {
        self.shared.in_force.proof()
    }

    /// Every request so far in the order of arrival, those under way included.
    pub fn requests(&self) -> Vec<Line> {
        self.shared.records.all()
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        if let Some((stop, thread)) = self.running.take() {
            let _ = stop.send(());
            let _ = thread.join();
        }
        // It holds a token. The folder may be gone already.
        let _ = std::fs::remove_file(&self.kubeconfig);
    }
}
