//! Asks the API server which kinds it serves.

use crate::request::{Failure, Request, send, send_unless};
use crate::server::Server;
use change::Kind;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject};
use protocol::{Groups, Kinds, Served};

/// All groups in one answer; servers before 1.30 know only the older version.
const AGGREGATED: &str = "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,\
    application/json;g=apidiscovery.k8s.io;v=v2beta1;as=APIGroupDiscoveryList";

/// Asks for all kinds: two requests, whatever their number.
pub async fn discover(server: &Server) -> Result<Kinds, Failure> {
    let core = async || send(server, Request::get("", "/api", AGGREGATED)).await;
    let (core, groups) = match futures::future::try_join(core(), discover_groups(server, "")).await {
        // The answer to the other request closed it: one after the other, the server says why.
        Err(failure) if failure.is_closed_connection() => (core().await?, discover_groups(server, "").await?),
        answers => answers?,
    };
    Ok(Kinds::read(&core, groups.unwrap_or_default())?)
}

/// Asks for all groups but the core one; nothing if the answer still has this tag.
pub async fn discover_groups(server: &Server, tag: &str) -> Result<Option<Groups>, Failure> {
    match send_unless(server, Request::get("", "/apis", AGGREGATED), tag).await? {
        Some((text, tag)) => Ok(Some(Groups::read(&text, tag)?)),
        None => Ok(None),
    }
}

/// A kube API of a kind, in a namespace or in all of them.
pub fn api(client: &Client, served: &Served, namespace: &str) -> Api<DynamicObject> {
    let Kind { group, version, kind } = served.kind().clone();
    let (api_version, plural) = (served.kind().api_version(), served.plural.to_string());
    let resource = ApiResource { group, version, api_version, kind, plural };
    if served.namespaced && !namespace.is_empty() {
        Api::namespaced_with(client.clone(), namespace, &resource)
    } else {
        Api::all_with(client.clone(), &resource)
    }
}
