//! Which repositories there are.

use crate::access::Caller;
use crate::call::Call;
use crate::event::repository_json;
use crate::names::RepositoryName;
use crate::response::{Answer, Refusal};
use crate::stand_in::StandIn;
use serde_json::Value;

fn all(state: &StandIn, is_wanted: impl Fn(&RepositoryName) -> bool) -> Vec<Value> {
    state.repositories.keys().filter(|name| is_wanted(name)).map(|name| repository_json(state, name)).collect()
}

pub(crate) fn of_organization(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    let scope = call.scope()?;
    Ok(call.page(None, &all(state, |name| scope.covers(name))))
}

/// Those that the installation of the App can see.
pub(crate) fn of_installation(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    match call.caller {
        Caller::Installation => {
            Ok(call.page(Some("repositories"), &all(state, |name| state.installed_in.covers(name))))
        }
        _ => Err(Refusal::new(
            403,
            "You must authenticate with an installation access token in order to list repositories for an installation.",
        )),
    }
}

pub(crate) fn read(state: &mut StandIn, call: &Call<'_>) -> Result<Answer, Refusal> {
    Ok(repository_json(state, call.repository()?).into())
}
