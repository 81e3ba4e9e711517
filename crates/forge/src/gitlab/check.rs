//! Logs in, and finds out what the access token allows.

use crate::github::trouble::Trouble;
use crate::gitlab::client::{Client, Resolved, Sent};
use crate::gitlab::trouble::{Need, role};
use crate::gitlab::wire::{WireMember, WireToken, WireUser, WireVersion};
use fleet::forge::{Answer, Checked, Failure};

/// The access level of an owner, whom groups need, and of a maintainer, whom projects need.
const OWNER: u64 = 50;
const MAINTAINER: u64 = 40;

pub(crate) async fn check(client: &Client) -> Result<Answer, Failure> {
    let fail = |trouble: Trouble| client.failure(&trouble, "logging in", Need::Read);
    let token = client.send(&Sent::get("/personal_access_tokens/self", &[])).await;
    let token: WireToken = token.and_then(|content| content.read()).map_err(fail)?;
    let has = |need: Need| token.scopes.contains(need.scope()) || token.scopes.contains("api");
    let lacking = [Need::Create, Need::Manage, Need::Read].into_iter().filter(|need| !has(*need));
    let mut missing: Vec<String> = lacking.map(|need| format!("the scope {} (or api)", need.scope())).collect();
    let (mut version, mut user) = (None, None);
    // Without that scope there is nothing else to be learnt.
    if has(Need::Read) {
        let found = client.send(&Sent::get("/user", &[])).await;
        let found: WireUser = found.and_then(|content| content.read()).map_err(fail)?;
        let found_version = client.send(&Sent::get("/version", &[])).await;
        let found_version: WireVersion = found_version.and_then(|content| content.read()).map_err(fail)?;
        version = Some(found_version.version).filter(|version| !version.is_empty());
        if !found.is_admin && !may_have_runners(client, token.user_id).await.map_err(fail)? {
            missing.push(role(&client.place.owner));
        }
        user = Some(found.username);
    }
    let until = token.expires_at.map(|day| format!(", which expires on {day}")).unwrap_or_default();
    let of = user.map(|user| format!(" of {user}")).unwrap_or_default();
    let login = format!("the access token {}{of}{until}", token.name);
    let (clock_ahead, budget, reset) = (client.clock_ahead(), client.budget(), client.reset());
    let authorities = client.authorities.clone();
    Ok(Answer::Checked(Box::new(Checked { version, login, missing, clock_ahead, budget, reset, authorities })))
}

/// Whether somebody who is no administrator may register runners here.
async fn may_have_runners(client: &Client, user: u64) -> Result<bool, Trouble> {
    let user = user.to_string();
    let (sent, least) = match client.resolve().await? {
        Resolved::Instance => return Ok(false),
        Resolved::Group(id) => (Sent::get("/groups/{group}/members/all/{user}", &[&id.to_string(), &user]), OWNER),
        Resolved::Project(id, _) => {
            (Sent::get("/projects/{project}/members/all/{user}", &[&id.to_string(), &user]), MAINTAINER)
        }
    };
    match client.send(&sent).await {
        Ok(content) => content.read().map(|found: WireMember| found.access_level >= least),
        Err(trouble) if trouble.is(404) => Ok(false),
        Err(trouble) => Err(trouble),
    }
}
