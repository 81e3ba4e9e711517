//! What there is on the cluster, as far as templates and conditions look at it.

use crate::kinds::{Kinds, Served};
use crate::request::Failure;
use crate::server::Server;
use crate::watch::{Body, Content, Seen, Watch};
use catalog::FACT_SOURCES;
use catalog::{ClusterState, Part};
use change::Kind;
use futures::future::{join, try_join_all};
use tokio::sync::mpsc;

/// The cluster as it is now, one list for each kind. An error is an error and never an empty cluster.
pub async fn look(server: &Server, kinds: &Kinds) -> Result<ClusterState, Failure> {
    let served = FACT_SOURCES.iter().filter_map(|source| kinds.find(&Kind::new(source.api_version, source.kind)));
    let mut world = ClusterState::default();
    for part in try_join_all(served.map(|served| parts(server, served))).await?.into_iter().flatten() {
        world.put(part);
    }
    Ok(world)
}

/// What a watch would tell first.
async fn parts(server: &Server, served: Served) -> Result<Vec<Part>, Failure> {
    let (tell, mut told) = mpsc::channel(16);
    let (server, namespace, content) = (server.clone(), String::new(), Content::Part);
    let list = async move { Watch { server, served, namespace, content, number: 0, place: (), tell }.list().await };
    let take = async {
        let mut parts = Vec::new();
        while let Some(((), seen)) = told.recv().await {
            if let Seen::Present { body: Body::Part(part), .. } = seen {
                parts.push(part);
            }
        }
        parts
    };
    let (listed, parts) = join(list, take).await;
    listed.map(|_| parts)
}
