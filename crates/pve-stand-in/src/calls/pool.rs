//! `pools`: the list, one of them with its members, and a new one.

use crate::response::{Answer, Refusal};
use crate::route::Call;
use crate::stand_in::{Pool, StandIn};
use serde_json::{Value, json};

pub(crate) fn list(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    if let Some(wanted) = call.text("poolid") {
        state.require(&call.caller, &format!("/pool/{wanted}"), &["Pool.Audit"])?;
        let members = entry(state, wanted, call)?;
        return Ok(json!([members]).into());
    }
    let may_see = |pool: &&String| state.may(&call.caller, &format!("/pool/{pool}"), &["Pool.Audit"]);
    let mut found = Vec::new();
    for name in state.pools.keys().filter(may_see) {
        let mut entry = json!({"poolid": name});
        if let Some(pool) = state.pools.get(name).filter(|pool| !pool.comment.is_empty()) {
            entry["comment"] = pool.comment.as_str().into();
        }
        found.push(entry);
    }
    Ok(Value::Array(found).into())
}

pub(crate) fn read(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let pool = call.path("poolid");
    state.require(&call.caller, &format!("/pool/{pool}"), &["Pool.Audit"])?;
    entry(state, pool, call).map(Answer::from)
}

fn entry(state: &StandIn, name: &str, call: &Call<'_>) -> Result<Value, Refusal> {
    let pool = state.pools.get(name).ok_or_else(|| Refusal::failed(format!("pool '{name}' does not exist")))?;
    let wants = |kind: &str| call.text("type").is_none_or(|wanted| wanted == kind);
    let mut members = Vec::new();
    for vmid in pool.vms.iter().filter(|_| wants("qemu")) {
        let Some(vm) = state.vms.get(vmid) else { continue };
        let status = if vm.run.is_some() { "running" } else { "stopped" };
        members.push(json!({
            "id": format!("qemu/{vmid}"), "type": "qemu", "vmid": vmid, "node": vm.node, "status": status,
            "name": vm.name().map_or_else(|| format!("VM {vmid}"), str::to_owned), "template": u8::from(vm.is_template),
        }));
    }
    for storage in pool.storages.iter().filter(|_| wants("storage")) {
        members.push(json!({"id": format!("storage/{}/{storage}", state.local), "type": "storage", "storage": storage, "node": state.local}));
    }
    Ok(json!({"poolid": name, "comment": pool.comment, "members": members}))
}

pub(crate) fn create(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let name = call.text("poolid").unwrap_or_default();
    state.require(&call.caller, &format!("/pool/{name}"), &["Pool.Allocate"])?;
    state.need_quorum()?;
    if state.pools.contains_key(name) {
        return Err(Refusal::failed(format!("create pool failed: pool '{name}' already exists")));
    }
    let comment = call.text("comment").unwrap_or_default().to_owned();
    state.pools.insert(name.to_owned(), Pool { comment, ..Pool::default() });
    Ok(Value::Null.into())
}
