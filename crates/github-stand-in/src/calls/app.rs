//! The App and its installation, budgets, and the connection to the actions service.

use crate::access::Caller;
use crate::call::Call;
use crate::event::user_json;
use crate::jwt;
use crate::names::{RepositoryName, Scope};
use crate::response::{Answer, Refusal};
use crate::setup::{Setup, Style};
use crate::stand_in::StandIn;
use serde_json::{Value, json};

/// The organisation that the App is installed in.
fn organization(state: &StandIn) -> String {
    state.installed_in.path()
}

pub(crate) fn app(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let owner = organization(state);
    Ok(json!({
        "id": Setup::APP_ID,
        "slug": "stand-in-runners",
        "client_id": Setup::CLIENT_ID,
        "node_id": "A_kwHOAAAA",
        "owner": user_json(state, &owner, "Organization"),
        "name": "Stand-in runners",
        "description": null,
        "external_url": state.address,
        "html_url": format!("{}/apps/stand-in-runners", state.address),
        "created_at": state.date(std::time::Duration::ZERO),
        "updated_at": state.date(call.now),
        "permissions": state.permissions,
        "events": ["workflow_job"],
        "installations_count": 1,
    })
    .into())
}

fn installation_json(state: &StandIn) -> Value {
    let (id, owner) = (Setup::INSTALLATION, organization(state));
    json!({
        "id": id,
        "account": user_json(state, &owner, "Organization"),
        "access_tokens_url": format!("{}/app/installations/{id}/access_tokens", state.api()),
        "repositories_url": format!("{}/installation/repositories", state.api()),
        "html_url": format!("{}/organizations/{owner}/settings/installations/{id}", state.address),
        "app_id": Setup::APP_ID,
        "client_id": Setup::CLIENT_ID,
        "target_id": 1,
        "target_type": "Organization",
        "permissions": state.permissions,
        "events": ["workflow_job"],
        "repository_selection": "all",
        "created_at": state.date(std::time::Duration::ZERO),
        "updated_at": state.date(std::time::Duration::ZERO),
        "single_file_name": null,
        "app_slug": "stand-in-runners",
        "suspended_at": null,
        "suspended_by": null,
    })
}

pub(crate) fn installations(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    Ok(call.page(None, &[installation_json(state)]))
}

pub(crate) fn installation(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let is_wanted = match &call.scope {
        Some(scope) => state.is_installed_in(scope),
        None => call.id("installation_id")? == Setup::INSTALLATION,
    };
    match is_wanted {
        true => Ok(installation_json(state).into()),
        false => Err(Refusal::not_found()),
    }
}

pub(crate) fn access_token(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    if call.id("installation_id")? != Setup::INSTALLATION {
        return Err(Refusal::not_found());
    }
    let token = state.installation_token();
    Ok(Answer::created(json!({
        "token": token,
        "expires_at": state.date(call.now + state.timing.token),
        "permissions": state.permissions,
        "repository_selection": "all",
    })))
}

pub(crate) fn rate_limit(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let (account, limits) = (call.caller.account(), state.limits);
    let budget = state.budgets.entry(account).or_default();
    budget.roll(&limits, call.now);
    let (used, reset) = (budget.used, budget.reset(&limits));
    let core = json!({
        "limit": limits.core,
        "used": used,
        "remaining": limits.core.saturating_sub(used),
        "reset": state.clock(reset),
        "resource": "core",
    });
    Ok(json!({"resources": {"core": core, "search": core}, "rate": core}).into())
}

pub(crate) fn meta(state: &mut StandIn, _: &Call<'_>) -> Result<Answer, Refusal> {
    let mut found = json!({"verifiable_password_authentication": true});
    if state.style == Style::Enterprise {
        found["installed_version"] = "3.21.0".into();
    }
    Ok(found.into())
}

/// A token for the registration, or the removal, of runners.
pub(crate) fn registration_token(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let scope = call.scope()?.clone();
    let token = format!("A{}", state.random.text(28).to_uppercase());
    let token = state.hand_out(token, Caller::Registration(scope), state.timing.token);
    Ok(Answer::created(json!({"token": token, "expires_at": state.date(call.now + state.timing.token)})))
}

/// Where the actions service is, and a token for it.
pub(crate) fn connect(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let Caller::Registration(scope) = &call.caller else { return Err(Refusal::not_found()) };
    // The address of an owner has to be that of the token.
    let url = call.request.body["url"].as_str().unwrap_or_default();
    let path = url.split_once("://").and_then(|(_, rest)| rest.split_once('/')).map_or("", |(_, path)| path);
    if state.resolve(&scope_of_page(path.trim_matches('/'))).as_ref() != Some(scope) {
        return Err(Refusal::not_found());
    }
    let expires = state.clock(call.now + state.timing.service_token);
    let claims = json!({"exp": expires, "iss": "stand-in", "jti": state.random.uuid(), "scp": "Actions.Runtime"});
    let token = jwt::sign(&claims, &state.secret);
    let token = state.hand_out(token, Caller::Service(scope.clone()), state.timing.service_token);
    Ok(json!({"url": format!("{}/", state.service_of(scope)), "token_schema": "OAuthAccessToken", "token": token})
        .into())
}

/// Whose page a path is.
fn scope_of_page(path: &str) -> Scope {
    match path.split_once('/') {
        None => Scope::Organization(path.to_owned()),
        Some(("enterprises", name)) => Scope::Enterprise(name.to_owned()),
        Some((owner, name)) => Scope::Repository(RepositoryName { owner: owner.to_owned(), name: name.to_owned() }),
    }
}
