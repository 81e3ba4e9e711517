//! Clones a template into a new machine. Whose it is goes into the request that creates it.

use crate::proxmox::class::Class;
use crate::proxmox::client::{Call, Client, Content};
use crate::proxmox::machine::{Found, find, vmid};
use crate::proxmox::task::follow;
use crate::proxmox::trouble::Trouble;
use crate::seed;
use fleet::hypervisor::{Blueprint, Failure};
use fleet::record::{self, Record, SeedVolume};
use http::Method;
use serde_json::Value;

pub(crate) async fn create(client: &Client, blueprint: &Blueprint) -> Result<(), Failure> {
    let id = vmid(&blueprint.id)?;
    let template = &blueprint.template;
    let first = clone(client, blueprint, id, &template.node).await;
    let moved = match &first {
        // Nothing was done: the template is not where it was.
        Err(trouble) if trouble.class() == Class::Absent => match find(client, &template.id).await? {
            Found::Listed(found) => Some(found.seen),
            Found::Unseen | Found::Nothing => None,
        },
        _ => return first.map_err(|trouble| failure(&trouble, blueprint)),
    };
    match moved.filter(|found| found.is_template) {
        Some(found) if *found.node != *template.node => {
            let second = clone(client, blueprint, id, &found.node).await;
            second.map_err(|trouble| failure(&trouble, blueprint))
        }
        Some(found) => {
            Err(Failure::Transient(format!("template {} is being moved from node {}", template.id.0, found.node)))
        }
        None => Err(Failure::Configuration {
            message: format!("template {} does not exist any more", template.id.0),
            remedy: "name a template that exists".into(),
        }),
    }
}

fn failure(trouble: &Trouble, blueprint: &Blueprint) -> Failure {
    let doing = format!("cloning template {} to machine {}", blueprint.template.id.0, blueprint.id.0);
    match trouble.class() {
        // It is the template that is absent, not the machine.
        Class::Absent => Failure::Transient(format!("{doing}: {}", trouble.message())),
        Class::Resource(lack) => {
            let storage = blueprint.storage.as_ref().unwrap_or(&blueprint.template.storage);
            let message = format!("{doing}: {}", trouble.message());
            Failure::Resource { message, remedy: lack.remedy(Some(storage)) }
        }
        _ => trouble.about(&blueprint.id, &doing),
    }
}

async fn clone(client: &Client, blueprint: &Blueprint, id: &str, from: &str) -> Result<(), Trouble> {
    let parts: [&str; 2] = [from, &blueprint.template.id.0];
    let content = Content::Parameters(parameters(blueprint, id, from)?);
    let call = Call { method: Method::POST, path: "/nodes/{node}/qemu/{vmid}/clone", parts: &parts, content };
    let task: Value = match client.send(call).await {
        // It may have been carried out, whoever has changed the answer.
        Err(trouble @ Trouble::Misread { .. }) => return Err(Trouble::Unanswered(trouble.message())),
        other => other?,
    };
    follow(client, &task).await
}

fn parameters(blueprint: &Blueprint, id: &str, from: &str) -> Result<Vec<(&'static str, String)>, Trouble> {
    let record = Record {
        id: blueprint.id.0.clone(),
        owner: blueprint.owner.clone(),
        seed: planned_seed(blueprint)?,
        is_configured: false,
    };
    let mut parameters = vec![
        ("newid", id.to_owned()),
        ("name", blueprint.name.clone()),
        ("description", record::describe(&record)),
        ("full", u8::from(!blueprint.is_linked).to_string()),
    ];
    if let Some(pool) = &blueprint.pool {
        parameters.push(("pool", pool.clone()));
    }
    if blueprint.node != from {
        parameters.push(("target", blueprint.node.clone()));
    }
    // A linked clone stays on the storage of its template.
    if let Some(storage) = blueprint.storage.as_ref().filter(|_| !blueprint.is_linked) {
        parameters.push(("storage", storage.clone()));
    }
    Ok(parameters)
}

/// Where the seed will be: it is written down before it is uploaded, so that it is never lost.
fn planned_seed(blueprint: &Blueprint) -> Result<Option<SeedVolume>, Trouble> {
    let Some(wanted) = &blueprint.seed else { return Ok(None) };
    let image = seed::image(wanted, &blueprint.owner).map_err(|message| Trouble::Answered { code: 400, message })?;
    Ok(Some(SeedVolume { node: blueprint.node.clone(), volume: format!("{}:iso/{}", wanted.storage, image.file) }))
}
