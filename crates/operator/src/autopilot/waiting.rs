//! What has to be there before anything can be kept: an API server, the HyperConverged's CRD, the nodes.

use catalog::{Hardware, Topology};
use change::Kind;
use cluster::{Kinds, Server};
use std::time::Duration;

/// A server that does not answer is asked again after this, and then less and less often.
const WAIT_FOR_SERVER: Duration = Duration::from_millis(100);
/// A cluster without our CRD is asked this often whether it has come.
const WAIT_FOR_CRD: Duration = Duration::from_secs(5);

/// Waits for the API server and for the HyperConverged's CRD; a cluster without it is not ready, and not wrong.
pub(super) async fn find_hco(server: &Server) -> (Kinds, Kind) {
    let mut trouble = String::new();
    let mut wait = WAIT_FOR_SERVER;
    loop {
        let now = match Kinds::discover(server).await {
            Ok(kinds) => match kinds.newest(api::hco::GROUP, &api::hco::VERSIONS, api::hco::KIND) {
                Some((kind, _)) => return (kinds, kind),
                None => {
                    wait = WAIT_FOR_CRD;
                    "the API server does not serve HyperConverged yet; waiting until its operator is installed"
                        .to_owned()
                }
            },
            Err(error) => format!(
                "could not ask the API server at {} what it serves: {error}; trying again until it answers",
                server.address
            ),
        };
        complain_once(&mut trouble, now);
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(WAIT_FOR_CRD);
    }
}

/// Waits until nodes and topology can be read.
pub(super) async fn look(server: &Server, kinds: &Kinds) -> (Hardware, Topology, Vec<cluster::facts::Named>) {
    let mut trouble = String::new();
    let mut wait = WAIT_FOR_SERVER;
    loop {
        match cluster::facts::look(server, kinds).await {
            Ok(facts) => return facts,
            Err(error) => complain_once(&mut trouble, format!("could not read the nodes: {error}; trying again")),
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(WAIT_FOR_CRD);
    }
}

fn complain_once(before: &mut String, now: String) {
    if *before != now {
        tracing::warn!("{now}");
        *before = now;
    }
}
