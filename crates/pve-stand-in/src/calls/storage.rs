//! `storage` of a node: list, content, upload and deletion.

use crate::effects::Work;
use crate::response::{Answer, Refusal};
use crate::route::Call;
use crate::stand_in::StandIn;
use crate::storage::Storage;
use serde_json::{Value, json};

const READERS: [&str; 2] = ["Datastore.Audit", "Datastore.AllocateSpace"];

fn entry(storage: &Storage, node: &str) -> Value {
    let (used, content) = (storage.used(node), storage.content.iter().cloned().collect::<Vec<_>>().join(","));
    #[allow(clippy::cast_precision_loss)]
    let fraction = used as f64 / (storage.bytes.max(1)) as f64;
    json!({
        "type": storage.kind.as_str(), "content": content, "shared": u8::from(storage.is_shared), "active": 1, "enabled": 1,
        "total": storage.bytes, "used": used, "avail": storage.bytes - used, "used_fraction": fraction,
    })
}

/// The storage of a call, if its node has it.
fn find<'a>(state: &'a StandIn, call: &Call<'_>) -> Result<&'a Storage, Refusal> {
    let name = call.path("storage");
    let storage =
        state.storages.get(name).ok_or_else(|| Refusal::failed(format!("storage '{name}' does not exist")))?;
    match storage.is_on(call.node()) {
        true => Ok(storage),
        false => Err(Refusal::failed(format!("storage '{name}' is not available on node '{}'", call.node()))),
    }
}

pub(crate) fn list(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let mut found = Vec::new();
    for (name, storage) in state.storages.iter().filter(|(_, storage)| storage.is_on(call.node())) {
        let has_content = |wanted: &str| wanted.split(',').any(|content| storage.content.contains(content));
        let is_wanted =
            call.text("content").is_none_or(has_content) && call.text("storage").is_none_or(|wanted| wanted == name);
        if is_wanted && state.may(&call.caller, &format!("/storage/{name}"), &READERS) {
            let mut entry = entry(storage, call.node());
            entry["storage"] = name.as_str().into();
            found.push(entry);
        }
    }
    Ok(Value::Array(found).into())
}

pub(crate) fn status(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    state.require(&call.caller, &format!("/storage/{}", call.path("storage")), &READERS)?;
    let mut entry = entry(find(state, call)?, call.node());
    if let Value::Object(fields) = &mut entry {
        fields.remove("used_fraction");
    }
    Ok(entry.into())
}

pub(crate) fn content(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    state.require(&call.caller, &format!("/storage/{}", call.path("storage")), &READERS)?;
    let storage = find(state, call)?;
    let mut found = Vec::new();
    for (id, volume) in storage.volumes_on(call.node()) {
        let is_wanted = call.text("content").is_none_or(|wanted| wanted == volume.content)
            && call.text("vmid").is_none_or(|wanted| volume.vmid.is_some_and(|vmid| vmid.to_string() == wanted));
        // Disks are only for those who may see their VM, unless they may see everything on the storage.
        let may_see = match volume.vmid {
            Some(vmid) => {
                state.may(&call.caller, &format!("/vms/{vmid}"), &["VM.Audit"])
                    || state.may(&call.caller, &format!("/storage/{}", call.path("storage")), &["Datastore.Allocate"])
            }
            None => true,
        };
        if !is_wanted || !may_see {
            continue;
        }
        let mut entry = json!({
            "volid": id, "content": volume.content, "format": volume.format, "size": volume.bytes, "ctime": volume.created,
        });
        if let Some(vmid) = volume.vmid {
            entry["vmid"] = vmid.into();
        }
        if let Some(parent) = &volume.parent {
            entry["parent"] = parent.as_str().into();
        }
        found.push(entry);
    }
    Ok(Value::Array(found).into())
}

pub(crate) fn upload(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let name = call.path("storage");
    state.require(&call.caller, &format!("/storage/{name}"), &["Datastore.AllocateTemplate"])?;
    let storage = find(state, call)?;
    let (content, file) = (call.text("content").unwrap_or_default(), call.text("filename").unwrap_or_default());
    if !storage.content.contains(content) {
        return Err(Refusal::failed(format!("storage '{name}' does not support '{content}' content")));
    }
    let is_named_well = match content {
        "iso" => file.to_lowercase().ends_with(".iso") || file.to_lowercase().ends_with(".img"),
        _ => true,
    };
    if !is_named_well || file.contains('/') {
        return Err(Refusal::parameter("filename", "wrong file extension"));
    }
    let Some(uploaded) = &call.request.file else {
        return Err(Refusal::failed("no file was uploaded"));
    };
    let volume = format!("{name}:{content}/{file}");
    let work =
        Work::Upload { storage: name.to_owned(), node: call.node().to_owned(), volume, data: uploaded.content.clone() };
    let takes = state.timing.upload;
    Ok(state.start_task(call, "imgcopy", "", work, takes).into())
}

/// The volume of a call, with or without its storage.
fn volume_id(call: &Call<'_>) -> String {
    match call.path("volume") {
        whole if whole.contains(':') => whole.to_owned(),
        short => format!("{}:{short}", call.path("storage")),
    }
}

pub(crate) fn volume(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let (name, id) = (call.path("storage"), volume_id(call));
    state.require(&call.caller, &format!("/storage/{name}"), &READERS)?;
    let found = find(state, call)?.volume(call.node(), &id);
    let found = found.ok_or_else(|| Refusal::failed(format!("volume_size_info on '{id}' failed")))?;
    let path = format!("/mnt/pve/{}", id.replace(':', "/"));
    Ok(json!({"path": path, "size": found.bytes, "used": found.allocated, "format": found.format}).into())
}

pub(crate) fn delete(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let (name, volume) = (call.path("storage"), volume_id(call));
    state.require(&call.caller, &format!("/storage/{name}"), &["Datastore.Allocate"])?;
    let owner = find(state, call)?.volume(call.node(), &volume).and_then(|volume| volume.vmid);
    let id = owner.map_or_else(|| name.to_owned(), |owner| format!("{owner}@{name}"));
    let work = Work::DeleteVolume { storage: name.to_owned(), node: call.node().to_owned(), volume };
    let takes = state.timing.change;
    Ok(state.start_task(call, "imgdel", &id, work, takes).into())
}
