//! `qemu/VMID/config`, `resize` and `cloudinit`.

use crate::control::Deed;
use crate::disks;
use crate::effects::Work;
use crate::property::{self, Properties};
use crate::response::{Answer, Refusal};
use crate::route::Call;
use crate::stand_in::StandIn;
use crate::vm::{Vm, is_cdrom, is_drive, volume_of};
use crate::{config, vm};
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// A change of a configuration.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct Change {
    set: BTreeMap<String, String>,
    delete: Vec<String>,
    force: bool,
    created: i64,
}

pub(crate) fn read(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    state.require(&call.caller, &call.vm_path(), &["VM.Audit"])?;
    let vm = state.vm_on(call.vmid(), call.node())?;
    let mut values = vm.config.clone();
    if !call.flag("current") {
        for (key, value) in &vm.pending {
            match value {
                Some(value) => values.insert(key.clone(), value.clone()),
                None => values.remove(key),
            };
        }
    }
    let mut found = Map::new();
    for (key, value) in values {
        let number = value.parse::<u64>().ok().filter(|_| config::is_number(&key));
        let value = match (key.as_str(), number) {
            ("cipassword", _) => "**********".into(),
            (_, Some(number)) => number.into(),
            (_, None) => Value::from(value),
        };
        found.insert(key, value);
    }
    found.insert("digest".to_owned(), vm.digest().into());
    if vm.is_template {
        found.insert("template".to_owned(), 1.into());
    }
    if let Some(lock) = &vm.lock {
        found.insert("lock".to_owned(), lock.as_str().into());
    }
    Ok(Value::Object(found).into())
}

pub(crate) fn update(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let change = check(state, call)?;
    state.apply(call.vmid(), &change).map_err(Refusal::failed)?;
    Ok(Value::Null.into())
}

pub(crate) fn update_by_task(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let change = check(state, call)?;
    let work = Work::Configure(call.vmid(), Box::new(change));
    let takes = state.timing.change;
    Ok(state.start_task(call, "qmconfig", call.path("vmid"), work, takes).into())
}

fn check(state: &StandIn, call: &Call<'_>) -> Result<Change, Refusal> {
    let set: BTreeMap<String, String> = call
        .request
        .parameters
        .iter()
        .filter(|(name, _)| config::is_config(name))
        .map(|(name, value)| (name.clone(), value.clone()))
        .collect();
    let delete: Vec<String> = call
        .text("delete")
        .unwrap_or_default()
        .split([',', ';', ' '])
        .filter(|key| !key.is_empty())
        .map(str::to_owned)
        .collect();
    if set.is_empty() && delete.is_empty() && call.text("revert").is_none() {
        return Err(Refusal::failed("no options specified"));
    }
    if call.flag("skiplock") && call.caller.user != "root@pam" {
        return Err(Refusal::parameter("skiplock", "Only root may use this option."));
    }
    for (key, value) in &set {
        state.require(&call.caller, &call.vm_path(), &[config::privilege(key, value)])?;
        if config::is_key("net[n]", key) {
            check_bridge(state, call, &Properties::parse(value))?;
        }
        if is_drive(key) {
            check_drive(state, call, key, &Properties::parse(value))?;
        }
    }
    state.need_quorum()?;
    let vm = state.vm_on(call.vmid(), call.node())?;
    for key in &delete {
        let value = vm.config.get(key).map_or("", String::as_str);
        state.require(&call.caller, &call.vm_path(), &[config::privilege(key, value)])?;
        if set.contains_key(key) {
            return Err(Refusal::parameter(
                "delete",
                format!("you can't use '-{key}' and -delete {key}' at the same time"),
            ));
        }
    }
    check_digest_and_lock(call, vm)?;
    Ok(Change { set, delete, force: call.flag("force"), created: state.clock(call.now) })
}

fn check_digest_and_lock(call: &Call<'_>, vm: &Vm) -> Result<(), Refusal> {
    if call.text("digest").is_some_and(|digest| digest != vm.digest()) {
        let text = "detected modified configuration - file changed by other user? Try again.";
        return Err(Refusal::failed(text));
    }
    check_lock(call, vm)
}

/// Refuses while something else is being done to the VM.
pub(crate) fn check_lock(call: &Call<'_>, vm: &Vm) -> Result<(), Refusal> {
    match &vm.lock {
        Some(lock) if !call.flag("skiplock") => Err(Refusal::failed(format!("VM is locked ({lock})"))),
        _ => Ok(()),
    }
}

/// Whether the caller may use the bridge of a network interface; that it exists is only found out at the start.
pub(crate) fn check_bridge(state: &StandIn, call: &Call<'_>, net: &Properties) -> Result<(), Refusal> {
    let Some(bridge) = net.get("bridge") else { return Ok(()) };
    let tag = net.get("tag").map(|tag| format!("/{tag}")).unwrap_or_default();
    let zone = state.vnets.get(bridge).map_or("localnetwork", String::as_str);
    state.require(&call.caller, &format!("/sdn/zones/{zone}/{bridge}{tag}"), &["SDN.Use"])
}

fn check_drive(state: &StandIn, call: &Call<'_>, key: &str, drive: &Properties) -> Result<(), Refusal> {
    let Some(volume) = volume_of(drive) else { return Ok(()) };
    let (name, wanted) = volume.split_once(':').unwrap_or_default();
    let storage = state.storages.get(name);
    let storage = storage.ok_or_else(|| Refusal::failed(format!("storage '{name}' does not exist")))?;
    if !storage.is_on(call.node()) {
        return Err(Refusal::failed(format!("storage '{name}' is not available on node '{}'", call.node())));
    }
    let path = format!("/storage/{name}");
    if is_cdrom(drive) {
        return state.require(&call.caller, &path, &["Datastore.Audit", "Datastore.AllocateSpace"]);
    }
    state.require(&call.caller, &path, &["Datastore.AllocateSpace"])?;
    let creates = wanted == "cloudinit" || wanted.parse::<u64>().is_ok();
    if creates && !storage.content.contains("images") {
        return Err(Refusal::failed(format!("storage '{name}' does not support vm images")));
    }
    match creates || storage.volume(call.node(), volume).is_some() {
        true => Ok(()),
        false => Err(Refusal::parameter(key, format!("volume '{volume}' does not exist"))),
    }
}

impl StandIn {
    /// Changes a configuration; of a running VM, some keys wait for the next start.
    pub(crate) fn apply(&mut self, vmid: u32, change: &Change) -> Result<(), String> {
        let Some(vm) = self.vms.get(&vmid) else { return Err(format!("no such VM ('{vmid}')")) };
        let (node, is_running) = (vm.node.clone(), vm.run.is_some());
        let mut values = BTreeMap::new();
        for (key, value) in &change.set {
            let value = match key.as_str() {
                "tags" => config::normal_tags(value),
                "description" => value.trim_end().to_owned(),
                _ if config::is_key("net[n]", key) => self.with_mac(vmid, key, value),
                _ if is_drive(key) => disks::set(self, vmid, &node, value, change.created)?,
                _ => value.clone(),
            };
            values.insert(key.clone(), value);
        }
        for key in &change.delete {
            self.remove_key(vmid, key, change.force);
        }
        let Some(vm) = self.vms.get_mut(&vmid) else { return Ok(()) };
        for (key, value) in values {
            if value.is_empty() {
                vm.config.remove(&key);
            } else if is_running && config::waits_for_start(&key) {
                vm.pending.insert(key, Some(value));
            } else {
                let old = vm.config.insert(key.clone(), value.clone());
                keep_unused(vm, &key, old, &value);
            }
        }
        self.record(vmid, Deed::Configured);
        Ok(())
    }

    /// A network interface keeps its address, or gets one.
    fn with_mac(&mut self, vmid: u32, key: &str, value: &str) -> String {
        let mut net = Properties::parse(value);
        if let Some(("", model)) = net.first() {
            let model = model.to_owned();
            let old = self.vms.get(&vmid).and_then(|vm| vm.config.get(key)).map(|old| Properties::parse(old));
            let old = old.and_then(|old| old.get(&model).map(str::to_owned));
            let mac = old.unwrap_or_else(|| self.random.mac());
            net.set_first(&model, &mac);
        }
        net.text()
    }

    fn remove_key(&mut self, vmid: u32, key: &str, force: bool) {
        let Some(vm) = self.vms.get_mut(&vmid) else { return };
        if vm.run.is_some() && config::waits_for_start(key) {
            vm.pending.insert(key.to_owned(), None);
            return;
        }
        vm.pending.remove(key);
        let old = vm.config.remove(key);
        let is_unused = key.starts_with("unused");
        let drive = old.as_deref().map(Properties::parse);
        let volume = drive.as_ref().and_then(|drive| volume_of(drive)).map(str::to_owned);
        let is_cloudinit = volume.as_ref().is_some_and(|volume| volume.contains("-cloudinit"));
        if let Some(volume) = volume.filter(|_| is_unused || is_cloudinit || (force && is_drive(key))) {
            for storage in self.storages.values_mut() {
                storage.volumes.retain(|(_, id), found| *id != volume || found.vmid != Some(vmid));
            }
        } else {
            keep_unused(vm, key, old, "");
        }
    }
}

/// A disk that is replaced stays as an unused one.
fn keep_unused(vm: &mut Vm, key: &str, old: Option<String>, new: &str) {
    let Some(old) = old.filter(|_| is_drive(key)) else { return };
    let (old, new) = (Properties::parse(&old), Properties::parse(new));
    let Some(volume) = volume_of(&old).filter(|volume| !is_cdrom(&old) && volume_of(&new) != Some(*volume)) else {
        return;
    };
    if let Some(free) = (0..256).map(|number| format!("unused{number}")).find(|key| !vm.config.contains_key(key)) {
        vm.config.insert(free, volume.to_owned());
    }
}

pub(crate) fn resize(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    state.require(&call.caller, &call.vm_path(), &["VM.Config.Disk"])?;
    state.need_quorum()?;
    let vm = state.vm_on(call.vmid(), call.node())?;
    check_digest_and_lock(call, vm)?;
    let (disk, size) = (call.text("disk").unwrap_or_default(), call.text("size").unwrap_or_default());
    if !vm::is_drive(disk) {
        return Err(Refusal::parameter("disk", format!("value '{disk}' does not have a value in the enumeration")));
    }
    let drive = vm.config.get(disk).map(|drive| Properties::parse(drive)).filter(|drive| !is_cdrom(drive));
    let drive = drive.ok_or_else(|| Refusal::failed(format!("disk '{disk}' does not exist")))?;
    let old = drive.get("size").and_then(property::bytes).unwrap_or_default();
    let wanted = property::bytes(size.trim_start_matches('+')).unwrap_or_default();
    let bytes = if size.starts_with('+') { old + wanted } else { wanted };
    if bytes < old {
        return Err(Refusal::failed("shrinking disks is not supported"));
    }
    let work = Work::Resize { vmid: call.vmid(), disk: disk.to_owned(), bytes };
    let takes = state.timing.change;
    Ok(state.start_task(call, "resize", call.path("vmid"), work, takes).into())
}

pub(crate) fn cloudinit(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    state.require(&call.caller, &call.vm_path(), &["VM.Audit"])?;
    let vm = state.vm_on(call.vmid(), call.node())?;
    let is_about = |key: &str| {
        key.starts_with("ci") || key.starts_with("ipconfig") || ["sshkeys", "nameserver", "searchdomain"].contains(&key)
    };
    let entries = vm.config.iter().filter(|(key, _)| is_about(key));
    Ok(Value::Array(entries.map(|(key, value)| json!({"key": key, "value": value})).collect()).into())
}

pub(crate) fn regenerate_cloudinit(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    state.require(&call.caller, &call.vm_path(), &["VM.Config.Cloudinit"])?;
    let vm = state.vm_on(call.vmid(), call.node())?;
    check_lock(call, vm)?;
    Ok(Value::Null.into())
}
