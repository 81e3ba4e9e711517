//! `tasks`: the list, status and log of one, and its end.

use crate::response::{Answer, Refusal};
use crate::route::Call;
use crate::stand_in::StandIn;
use crate::task::Task;
use serde_json::{Value, json};

/// A task of the call, which only its owner and auditors may see.
fn find<'a>(state: &'a StandIn, call: &Call<'_>, privilege: &str) -> Result<&'a Task, Refusal> {
    let upid = call.path("upid");
    let fields: Vec<&str> = upid.split(':').collect();
    if fields.len() != 9 || fields[0] != "UPID" {
        return Err(Refusal::parameter("upid", "unable to parse worker upid"));
    }
    let is_owner = fields[7] == call.caller.subject()
        || fields[7].split('!').next() == Some(&call.caller.user) && call.caller.token.is_none();
    if !is_owner {
        state.require(&call.caller, &format!("/nodes/{}", call.node()), &[privilege])?;
    }
    let task = state.tasks.get(upid).filter(|task| task.node == call.node());
    task.ok_or_else(|| Refusal::parameter("upid", "no such task"))
}

pub(crate) fn status(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    Ok(find(state, call, "Sys.Audit")?.status().into())
}

pub(crate) fn log(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let lines = find(state, call, "Sys.Audit")?.lines();
    let (start, limit) = (call.number("start").unwrap_or(0), call.number("limit").unwrap_or(50));
    let limit = if limit == 0 { usize::MAX } else { limit };
    let total = lines.len().max(1);
    let numbered = lines.iter().enumerate().skip(start).take(limit);
    let mut shown: Vec<Value> = numbered.map(|(index, line)| json!({"n": index + 1, "t": line})).collect();
    if lines.is_empty() {
        shown.push(json!({"n": 1, "t": "no content"}));
    }
    Ok(Answer { data: Value::Array(shown), total: Some(total) })
}

pub(crate) fn stop(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let upid = find(state, call, "Sys.Modify")?.upid.clone();
    state.interrupt(&upid, call.now);
    Ok(Value::Null.into())
}

pub(crate) fn list(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let may_see_all = state.may(&call.caller, &format!("/nodes/{}", call.node()), &["Sys.Audit"]);
    let source = call.text("source").unwrap_or("archive");
    let is_wanted = |task: &&Task| {
        task.node == call.node()
            && (may_see_all || task.user == call.caller.subject())
            && call.text("vmid").is_none_or(|vmid| vmid == task.id)
            && call.text("typefilter").is_none_or(|kind| kind == task.kind)
            && (!call.flag("errors") || task.exit.as_ref().is_some_and(|exit| exit != "OK"))
            && match source {
                "active" => task.is_running(),
                "archive" => !task.is_running(),
                _ => true,
            }
    };
    let mut tasks: Vec<&Task> = state.tasks.values().filter(is_wanted).collect();
    tasks.sort_by_key(|task| std::cmp::Reverse((task.started, task.pid)));
    let total = tasks.len();
    let entry = |task: &Task| {
        let mut entry = task.status();
        if let Value::Object(fields) = &mut entry {
            fields.remove("status");
            fields.remove("exitstatus");
            if let (Some(ended), Some(exit)) = (task.ended, &task.exit) {
                fields.insert("endtime".to_owned(), state.clock(ended).into());
                fields.insert("status".to_owned(), exit.as_str().into());
            }
        }
        entry
    };
    let (start, limit) = (call.number("start").unwrap_or(0), call.number("limit").unwrap_or(50));
    let shown = tasks.into_iter().skip(start).take(limit).map(entry).collect();
    Ok(Answer { data: Value::Array(shown), total: Some(total) })
}
