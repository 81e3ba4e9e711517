//! Finds out what a Proxmox VE is, what is there, and what the credentials allow.

use crate::proxmox::client::Client;
use crate::proxmox::list::of_kinds;
use crate::proxmox::privileges::{Granted, missing};
use crate::proxmox::trouble::Trouble;
use crate::proxmox::used::{Used, used};
use crate::proxmox::wire::{Resource, as_flag, as_text};
use crate::settings::Scope;
use fleet::hypervisor::{Checked, Failure};
use futures::future::join_all;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};

pub(crate) async fn check(client: &Client) -> Result<Checked, Failure> {
    let scope = &client.scope;
    let said = |trouble: Trouble, doing: &str| with_clock(trouble.failure(doing), client.clock_ahead());
    let version: BTreeMap<String, Value> =
        client.get("/version", &[]).await.map_err(|trouble| said(trouble, "logging in"))?;
    let version = version.get("version").map(as_text).unwrap_or_default();
    let clock_ahead = client.clock_ahead();
    let granted = granted(client).await.map_err(|trouble| said(trouble, "reading own privileges"))?;
    let resources = of_kinds(client, &["node", "storage"]).await;
    let resources = resources.map_err(|trouble| said(trouble, "listing nodes and storages"))?;
    let mut pools: Vec<BTreeMap<String, Value>> = Vec::new();
    if !scope.pools.is_empty() {
        pools = client.get("/pools", &[]).await.map_err(|trouble| said(trouble, "listing resource pools"))?;
    }
    let pools: Vec<String> = pools.iter().filter_map(|pool| pool.get("poolid").map(as_text)).collect();
    let mut unknown = unknown_names(&resources, &pools, scope);
    let used = used(client, scope).await.map_err(|trouble| said(trouble, "reading templates and networks"))?;
    unknown.extend(used.unknown.iter().cloned());
    unknown.extend(unknown_bridges(client, &resources, scope, &used).await?);
    let major = version.split('.').next().and_then(|major| major.parse().ok()).unwrap_or_default();
    let is_quorate = match client.get::<Vec<BTreeMap<String, Value>>>("/cluster/status", &[]).await {
        Ok(status) => is_quorate(&status),
        // Without the privilege it is not known, and a missing privilege is reported as such.
        Err(Trouble::Answered { code: 403, .. }) => true,
        Err(trouble) => return Err(said(trouble, "reading the state of the cluster")),
    };
    Ok(Checked { version, missing: missing(&granted, scope, &used, major), unknown, is_quorate, clock_ahead })
}

/// The own privileges.
pub(crate) async fn granted(client: &Client) -> Result<Granted, Trouble> {
    let granted: BTreeMap<String, BTreeMap<String, Value>> = client.get("/access/permissions", &[]).await?;
    let flags =
        |entry: BTreeMap<String, Value>| entry.into_iter().map(|(name, below)| (name, as_flag(&below))).collect();
    Ok(granted.into_iter().map(|(path, entry)| (path, flags(entry))).collect())
}

/// A refused login with clocks that differ may be refused for that.
fn with_clock(failure: Failure, ahead: i64) -> Failure {
    match failure {
        Failure::Configuration { message, remedy } if ahead.abs() > 60 => {
            let side = if ahead > 0 { "ahead of" } else { "behind" };
            let message = format!("{message}; the clock of Proxmox VE is {} s {side} ours", ahead.abs());
            Failure::Configuration { message, remedy: format!("synchronize the clocks (chrony); {remedy}") }
        }
        other => other,
    }
}

/// A single node is no cluster, and always has its quorum.
fn is_quorate(status: &[BTreeMap<String, Value>]) -> bool {
    let cluster = status.iter().find(|entry| entry.get("type").is_some_and(|kind| kind == "cluster"));
    cluster.is_none_or(|cluster| cluster.get("quorate").is_none_or(as_flag))
}

/// Names of nodes, storages and pools that are not there, each with its kind.
fn unknown_names(resources: &[Resource], pools: &[String], scope: &Scope) -> Vec<String> {
    let is_there = |kind: &str, name: &str| match kind {
        "pool" => pools.iter().any(|pool| pool == name),
        _ => resources.iter().filter(|resource| resource.kind == kind).any(|resource| match kind {
            "node" => resource.node == name,
            _ => resource.storage == name,
        }),
    };
    let named = scope.nodes.iter().map(|name| ("node", name));
    let named = named.chain(scope.storages.union(&scope.seed_storages).map(|name| ("storage", name)));
    let named = named.chain(scope.pools.iter().map(|name| ("pool", name)));
    named.filter(|(kind, name)| !is_there(kind, name)).map(|(kind, name)| format!("{kind} {name}")).collect()
}

/// Bridges that a node does not have.
async fn unknown_bridges(
    client: &Client,
    resources: &[Resource],
    scope: &Scope,
    used: &Used,
) -> Result<Vec<String>, Failure> {
    let mut unknown = Vec::new();
    let bridges: BTreeSet<&String> = scope.networks.iter().map(|network| &network.bridge).collect();
    // A VNet is a bridge of every node of its zone.
    let bridges: Vec<&String> = bridges.into_iter().filter(|bridge| !used.zones.contains_key(*bridge)).collect();
    if bridges.is_empty() {
        return Ok(unknown);
    }
    let online = resources.iter().filter(|resource| resource.kind == "node" && resource.status == "online");
    let used = online.filter(|node| scope.nodes.is_empty() || scope.nodes.contains(&node.node));
    let listings = used.map(|node| async move {
        let listed = client.get::<Vec<BTreeMap<String, Value>>>("/nodes/{node}/network", &[&node.node]).await;
        (node, listed)
    });
    for (node, listed) in join_all(listings).await {
        let interfaces = match listed {
            Ok(interfaces) => interfaces,
            // A node that does not answer keeps no others from being used.
            Err(trouble) if trouble.may_be_of_node() => continue,
            Err(trouble) => return Err(trouble.failure(&format!("listing the bridges of node {}", node.node))),
        };
        for bridge in &bridges {
            let is_bridge = |interface: &BTreeMap<String, Value>| {
                let kind = interface.get("type").map(as_text).unwrap_or_default();
                interface.get("iface").is_some_and(|name| name == bridge.as_str())
                    && kind.to_lowercase().contains("bridge")
            };
            if !interfaces.iter().any(is_bridge) {
                unknown.push(format!("bridge {bridge} on node {}", node.node));
            }
        }
    }
    Ok(unknown)
}
