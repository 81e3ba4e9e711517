//! `qemu/VMID/status`: start, stop, shutdown and what it is now.

use super::config::check_lock;
use crate::effects::Work;
use crate::response::{Answer, Refusal};
use crate::route::Call;
use crate::stand_in::StandIn;
use serde_json::json;
use std::time::Duration;

/// How long a shutdown may take if nobody says it, in seconds.
const SHUTDOWN_SECONDS: u64 = 180;

fn check(state: &StandIn, call: &Call<'_>) -> Result<(), Refusal> {
    state.require(&call.caller, &call.vm_path(), &["VM.PowerMgmt"])?;
    check_lock(call, state.vm_on(call.vmid(), call.node())?)
}

pub(crate) fn start(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    check(state, call)?;
    state.need_quorum()?;
    if state.vm_on(call.vmid(), call.node())?.is_template {
        return Err(Refusal::failed("you can't start a vm if it's a template"));
    }
    let takes = state.timing.start;
    Ok(state.start_task(call, "qmstart", call.path("vmid"), Work::Start(call.vmid()), takes).into())
}

pub(crate) fn stop(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    check(state, call)?;
    if call.flag("overrule-shutdown") {
        let id = call.path("vmid");
        let is_shutdown = |task: &&crate::Task| task.kind == "qmshutdown" && task.id == id;
        let running: Vec<String> = state.running_tasks().filter(is_shutdown).map(|task| task.upid.clone()).collect();
        for upid in running {
            state.interrupt(&upid, call.now);
        }
    }
    let takes = state.timing.stop;
    Ok(state.start_task(call, "qmstop", call.path("vmid"), Work::Stop(call.vmid()), takes).into())
}

pub(crate) fn shutdown(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    check(state, call)?;
    let vm = state.vm_on(call.vmid(), call.node())?;
    let limit = Duration::from_secs(call.number("timeout").unwrap_or(SHUTDOWN_SECONDS));
    // A guest that is still booting does not react either.
    let is_up = vm.run.is_none_or(|run| call.now >= run.since + vm.guest.boot);
    let reacts = is_up && !vm.guest.ignores_shutdown && state.timing.shutdown <= limit;
    let (succeeds, takes) = match reacts {
        true => (true, state.timing.shutdown),
        false => (call.flag("forceStop"), limit),
    };
    let work = Work::Shutdown { vmid: call.vmid(), succeeds };
    Ok(state.start_task(call, "qmshutdown", call.path("vmid"), work, takes).into())
}

pub(crate) fn current(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    state.require(&call.caller, &call.vm_path(), &["VM.Audit"])?;
    let vm = state.vm_on(call.vmid(), call.node())?;
    let mut found = super::qemu::summary(call.vmid(), vm, call.now);
    let halted = vm.run.and_then(|run| run.halted);
    found["qmpstatus"] = halted.map_or_else(|| found["status"].clone(), Into::into);
    found["ha"] = json!({"managed": 0});
    if vm.run.is_some() {
        found["running-machine"] = "pc-i440fx-10.0+pve0".into();
        found["running-qemu"] = "10.0.2".into();
    }
    if vm.has_agent_enabled() {
        found["agent"] = 1.into();
    }
    Ok(found.into())
}
