//! What to think of a machine that exists and cannot be seen: with rights on a resource pool only, that is every machine of others, and a
//! clone of our own until it has ended, because it joins the pool last.

use crate::proxmox::check::granted;
use crate::proxmox::client::{Call, Client, Content};
use crate::proxmox::list::of_kinds;
use crate::proxmox::privileges::holds;
use fleet::hypervisor::Failure;
use http::Method;
use serde::Deserialize;

#[derive(Deserialize)]
struct Running {
    #[serde(default)]
    user: String,
}

/// Fails unless the machine with this id is certainly not ours: we could see ours, and none is being made.
pub(crate) async fn prove_foreign(client: &Client, vmid: &str) -> Result<(), Failure> {
    let doing = format!("finding machine {vmid}, which exists and cannot be seen");
    let granted = granted(client).await.map_err(|trouble| trouble.failure(&doing))?;
    let pools = client.scope.pools.iter().map(|pool| format!("/pool/{pool}"));
    if !pools.chain(["/vms".to_owned()]).any(|path| holds(&granted, &path, "VM.Audit")) {
        let remedy = "grant VM.Audit on the resource pool of the machines, or on /vms".to_owned();
        return Err(Failure::Configuration { message: doing, remedy });
    }
    let nodes = of_kinds(client, &["node"]).await.map_err(|trouble| trouble.failure(&doing))?;
    for node in nodes.iter().filter(|node| node.status == "online") {
        let parameters = vec![("source", "active".to_owned()), ("typefilter", "qmclone".to_owned())];
        let (path, content) = ("/nodes/{node}/tasks", Content::Parameters(parameters));
        let call = Call { method: Method::GET, path, parts: &[&node.node], content };
        let running: Vec<Running> = client.send(call).await.map_err(|trouble| trouble.failure(&doing))?;
        if running.iter().any(|task| task.user.split('!').next() == Some(client.user())) {
            return Err(Failure::Transient(format!("{doing}: a clone is running, and it may be this one")));
        }
    }
    Ok(())
}
