//! `version`, `access/ticket` and `access/permissions`.

use crate::access::Caller;
use crate::response::{Answer, Refusal};
use crate::route::Call;
use crate::stand_in::StandIn;
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// Paths that are always listed.
const PATHS: [&str; 8] = ["/", "/access", "/access/groups", "/nodes", "/pool", "/sdn", "/storage", "/vms"];

pub(crate) fn version(_: &mut StandIn, _: &Call<'_>) -> Result<Answer, Refusal> {
    Ok(json!({"version": "9.2.2", "release": "9.2", "repoid": "b6a6c3ec5b3cc5e1"}).into())
}

pub(crate) fn ticket(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let name = call.text("username").unwrap_or_default();
    let user = match (name.contains('@'), call.text("realm")) {
        (false, Some(realm)) => format!("{name}@{realm}"),
        _ => name.to_owned(),
    };
    let ticket = state.log_in(&user, call.text("password").unwrap_or_default(), call.now);
    let ticket = ticket.ok_or_else(|| Refusal::with_status(401, "authentication failure"))?;
    let caller = Caller { user: user.clone(), token: None };
    let mut cap = Map::new();
    for (area, path) in [
        ("vms", "/vms"),
        ("storage", "/storage"),
        ("nodes", "/nodes"),
        ("dc", "/"),
        ("access", "/access"),
        ("sdn", "/sdn"),
    ] {
        cap.insert(area.to_owned(), flags(&state.privileges(&caller, path)));
    }
    let csrf = state.csrf(&user, call.now);
    Ok(json!({"username": user, "ticket": ticket, "CSRFPreventionToken": csrf, "clustername": state.name, "cap": cap})
        .into())
}

/// Renews nothing: the real server needs this path for the form of the login page.
pub(crate) fn ticket_form(_: &mut StandIn, _: &Call<'_>) -> Result<Answer, Refusal> {
    Ok(Value::Null.into())
}

pub(crate) fn permissions(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let caller = match call.text("userid") {
        Some(subject) if subject != call.caller.subject() => {
            state.require(&call.caller, "/access", &["Sys.Audit"])?;
            let (user, token) = subject.split_once('!').map_or((subject, None), |(user, token)| (user, Some(token)));
            Caller { user: user.to_owned(), token: token.map(str::to_owned) }
        }
        _ => call.caller.clone(),
    };
    let paths: BTreeSet<String> = match call.text("path") {
        Some(path) => [path.to_owned()].into(),
        None => {
            let pools = state.pools.keys().map(|pool| format!("/pool/{pool}"));
            let listed = PATHS.into_iter().chain(state.acl.paths()).map(str::to_owned);
            listed.chain(pools).collect()
        }
    };
    let mut found = Map::new();
    for path in paths {
        let privileges = state.privileges(&caller, &path);
        if !privileges.is_empty() {
            found.insert(path, flags(&privileges));
        }
    }
    Ok(Value::Object(found).into())
}

fn flags(privileges: &BTreeSet<&str>) -> Value {
    privileges.iter().map(|&privilege| (privilege.to_owned(), Value::from(1))).collect()
}
