//! `qemu/VMID/clone`.

use crate::effects::{CloneWork, Stage, Work};
use crate::property::Properties;
use crate::response::{Answer, Refusal};
use crate::route::Call;
use crate::stand_in::StandIn;
use crate::vm::{Vm, is_cdrom, volume_of};

pub(crate) fn clone(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let (source, new) = (call.vmid(), call.number::<u32>("newid").unwrap_or_default());
    state.require(&call.caller, &call.vm_path(), &["VM.Clone"])?;
    let pool = call.text("pool");
    let may_allocate = state.may(&call.caller, &format!("/vms/{new}"), &["VM.Allocate"])
        || pool.is_some_and(|pool| state.may(&call.caller, &format!("/pool/{pool}"), &["VM.Allocate"]));
    if !may_allocate {
        return Err(Refusal::forbidden(""));
    }
    if let Some(pool) = pool.filter(|pool| !state.pools.contains_key(*pool)) {
        return Err(Refusal::failed(format!("pool '{pool}' does not exist")));
    }
    let target = call.text("target").filter(|target| *target != call.node() && *target != "localhost");
    if let Some(target) = target.filter(|target| !state.nodes.contains_key(*target)) {
        return Err(Refusal::failed(format!("no such cluster node '{target}'")));
    }
    let storage = call.text("storage");
    if let Some(name) = storage {
        check_storage(state, name, call.node(), target)?;
    }
    state.need_quorum()?;
    let vm = state.vm_on(source, call.node())?.clone();
    if let Some(lock) = &vm.lock {
        return Err(Refusal::failed(format!("VM is locked ({lock})")));
    }
    let is_full = match call.text("full") {
        Some(_) => call.flag("full"),
        None => !vm.is_template,
    };
    for name in ["storage", "format"] {
        if call.text(name).is_some() && !is_full {
            return Err(Refusal::failed(format!("parameter '{name}' not allowed for linked clones")));
        }
    }
    check_disks(state, call, &vm, is_full, storage, target)?;
    check_bridges(state, call, &vm)?;
    if let Some(found) = state.vms.get(&new) {
        return Err(Refusal::failed(match found.node == call.node() {
            true => format!("unable to create VM {new}: config file already exists"),
            false => format!("VM {new} already exists on node '{}'", found.node),
        }));
    }
    let source_storage = StandIn::storages_of(&vm).into_iter().next().unwrap_or_default();
    let takes = if is_full { state.timing.full_clone } else { state.timing.linked_clone };
    let mut work = CloneWork {
        source,
        node: call.node().to_owned(),
        new,
        target: target.map(str::to_owned),
        name: call.text("name").map(str::to_owned),
        description: call.text("description").map(str::to_owned),
        pool: pool.map(str::to_owned),
        is_full,
        storage: storage.map(str::to_owned),
        source_storage,
        takes,
        stage: Stage::Waiting,
    };
    let first_part = match state.has_free_clone(&work.source_storage) {
        true => {
            state.begin_clone(&mut work).map_err(Refusal::failed)?;
            takes / 2
        }
        false => state.timing.clone_lock,
    };
    let upid = state.start_task(call, "qmclone", &source.to_string(), Work::Clone(Box::new(work)), first_part);
    Ok(upid.into())
}

fn check_storage(state: &StandIn, name: &str, node: &str, target: Option<&str>) -> Result<(), Refusal> {
    let storage = state.storages.get(name);
    let storage = storage.ok_or_else(|| Refusal::failed(format!("storage '{name}' does not exist")))?;
    for node in [Some(node), target].into_iter().flatten() {
        if !storage.is_on(node) {
            return Err(Refusal::failed(format!("storage '{name}' is not available on node '{node}'")));
        }
    }
    match target.is_some() && !storage.is_shared {
        true => Err(Refusal::failed(format!("can't clone to non-shared storage '{name}'"))),
        false => Ok(()),
    }
}

fn check_disks(
    state: &StandIn,
    call: &Call<'_>,
    vm: &Vm,
    is_full: bool,
    storage: Option<&str>,
    target: Option<&str>,
) -> Result<(), Refusal> {
    let mut is_shared = true;
    for (key, drive) in vm.drives().filter(|(_, drive)| !is_cdrom(drive)) {
        let Some(name) = volume_of(&drive).and_then(|volume| volume.split(':').next()) else { continue };
        let used = storage.unwrap_or(name);
        state.require(&call.caller, &format!("/storage/{used}"), &["Datastore.AllocateSpace"])?;
        let Some(found) = state.storages.get(name) else {
            return Err(Refusal::failed(format!("storage '{name}' does not exist")));
        };
        is_shared &= found.is_shared;
        if !is_full && (!vm.is_template || !found.kind.can_link()) {
            return Err(Refusal::failed(format!("Linked clone feature is not supported for drive '{key}'")));
        }
    }
    match target {
        Some(target) if !is_shared => {
            Err(Refusal::failed(format!("can't clone VM to node '{target}' (VM uses local storage)")))
        }
        _ => Ok(()),
    }
}

fn check_bridges(state: &StandIn, call: &Call<'_>, vm: &Vm) -> Result<(), Refusal> {
    for (_, value) in vm.config.iter().filter(|(key, _)| crate::config::is_key("net[n]", key)) {
        super::config::check_bridge(state, call, &Properties::parse(value))?;
    }
    Ok(())
}
