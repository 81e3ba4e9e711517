//! What a check has to know of a Proxmox VE to say which privileges are needed: where templates are, what they use, and the zones of networks.

use crate::proxmox::client::Client;
use crate::proxmox::list::of_kinds;
use crate::proxmox::template::{choose, spelled, storages, template};
use crate::proxmox::trouble::Trouble;
use crate::proxmox::wire::{Config, Resource, option};
use crate::settings::Scope;
use fleet::connection::Cloned;
use fleet::hypervisor::{Network, TemplateRef};
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// What is used.
#[derive(Debug, Default)]
pub(crate) struct Used {
    /// Storages where clones allocate space.
    pub(crate) storages: BTreeSet<String>,
    /// Networks, with those of templates.
    pub(crate) networks: BTreeSet<Network>,
    /// The paths where privileges on each template may be granted.
    pub(crate) templates: BTreeSet<Vec<String>>,
    /// The zones of VNets; every other bridge is local.
    pub(crate) zones: BTreeMap<String, String>,
    /// Templates that are not there, or cannot be seen.
    pub(crate) unknown: Vec<String>,
}

impl Used {
    /// Where the privilege to use a network is needed.
    pub(crate) fn path(&self, network: &Network) -> String {
        let zone = self.zones.get(&network.bridge).map_or("localnetwork", String::as_str);
        let vlan = network.vlan.map(|vlan| format!("/{vlan}")).unwrap_or_default();
        format!("/sdn/zones/{zone}/{}{vlan}", network.bridge)
    }
}

#[derive(Deserialize)]
struct Vnet {
    vnet: String,
    #[serde(default)]
    zone: String,
}

/// What the names of a scope mean here.
pub(crate) async fn used(client: &Client, scope: &Scope) -> Result<Used, Trouble> {
    let mut used = Used { networks: scope.networks.clone(), ..Used::default() };
    if scope.templates.is_empty() {
        used.storages.clone_from(&scope.storages);
    } else {
        let resources = of_kinds(client, &["vm", "storage"]).await?;
        for cloned in &scope.templates {
            let wanted = &cloned.template;
            let chosen = choose(&resources, wanted).unwrap_or_default();
            if chosen.is_empty() && cloned.is_full {
                used.storages.extend(cloned.storage.clone());
            }
            match wanted {
                _ if !chosen.is_empty() => {}
                // With this privilege it would be seen, if it is there.
                TemplateRef::Id(id) => {
                    used.templates.insert(vec![format!("/vms/{}", id.0)]);
                    used.unknown.push(format!("template {}, unless it is only not seen", spelled(wanted)));
                }
                TemplateRef::Name(_) | TemplateRef::Tag(_) => {
                    used.unknown.push(format!("template {} that VM.Audit on it lets us see", spelled(wanted)));
                }
            }
            for found in chosen {
                let mut paths = vec![format!("/vms/{}", found.vmid)];
                paths.extend(Some(&found.pool).filter(|pool| !pool.is_empty()).map(|pool| format!("/pool/{pool}")));
                used.templates.insert(paths);
                let parts: [&str; 2] = [&found.node, &found.vmid];
                match client.get::<Config>("/nodes/{node}/qemu/{vmid}/config", &parts).await {
                    Ok(config) => add(&mut used, cloned, found, &config, &resources),
                    // Its node may not answer, or a privilege is missing, which is said.
                    Err(trouble) if trouble.may_be_of_node() || trouble.is_forbidden() => {}
                    Err(trouble) => return Err(trouble),
                }
            }
        }
    }
    if !used.networks.is_empty() {
        let vnets = match client.get::<Vec<Vnet>>("/cluster/sdn/vnets", &[]).await {
            Ok(vnets) => vnets,
            // Without networks that are defined by software there are only bridges of nodes.
            Err(Trouble::Answered { code: 403 | 404 | 500 | 501, .. }) => Vec::new(),
            Err(trouble) => return Err(trouble),
        };
        used.zones = vnets.into_iter().map(|Vnet { vnet, zone }| (vnet, zone)).collect();
    }
    Ok(used)
}

/// A clone has the interfaces of its template before it is configured. A linked one has its volumes where those of the template are, and a full one all on one storage.
fn add(used: &mut Used, cloned: &Cloned, found: &Resource, config: &Config, resources: &[Resource]) {
    match template(found, config, resources) {
        Ok(found) if cloned.is_full || !found.can_link => {
            used.storages.insert(cloned.storage.clone().unwrap_or(found.storage));
        }
        _ => used.storages.extend(storages(config)),
    }
    let interfaces =
        config.iter().filter(|(key, _)| key.strip_prefix("net").is_some_and(|rest| rest.parse::<u8>().is_ok()));
    for value in interfaces.filter_map(|(_, value)| value.as_str()) {
        let vlan = option(value, "tag").and_then(|tag| tag.parse().ok());
        used.networks.extend(option(value, "bridge").map(|bridge| Network { bridge: bridge.to_owned(), vlan }));
    }
}
