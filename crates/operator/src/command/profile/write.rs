//! Changes fields of the spec of a profile, guarded by the version that was read.

use super::{Profile, Profiles, key};
use catalog::Catalog;
use change::Effect;
use cluster::Permit;
use cluster::act::act;
use protocol::WriteError;
use serde_json::{Value, json};

/// How often a conflicting write is tried: the advisor writes the status at the same time.
const ATTEMPTS: u32 = 5;

/// The field manager of what people change with commands.
const MANAGER: &str = "virtpilot";

/// The name that the advisor's roles begin with.
pub(super) const ROLES: &str = catalog::role::ADVISOR;

impl Profiles {
    /// Sets the fields of the spec that `change` returns, and removes those that are null. If somebody else writes the object at the same
    /// time, `change` is asked again about what is there then. Returns what was read before the write, or nothing if there was none.
    pub(super) async fn change(
        &self,
        name: &str,
        catalog: &Catalog,
        change: impl Fn(&Profile) -> anyhow::Result<Option<Vec<(&'static str, Value)>>>,
    ) -> anyhow::Result<Option<Profile>> {
        let mut attempts = 0;
        loop {
            let profile = self.existing(name, catalog).await?;
            let Some(fields) = change(&profile)? else { return Ok(None) };
            attempts += 1;
            let effect = Effect::JsonPatch { patch: patch(&profile, fields) };
            match act(&self.server, &Permit::typed_command(), MANAGER, &self.served, &key(name), effect, 0).await {
                Ok(_) => return Ok(Some(profile)),
                Err(WriteError::Stale(_)) if attempts < ATTEMPTS => {}
                Err(error) => return Err(error.into()),
            }
        }
    }
}

fn patch(profile: &Profile, fields: Vec<(&'static str, Value)>) -> Value {
    let spec = serde_json::to_value(&profile.spec).unwrap_or_default();
    let version = json!({"op": "replace", "path": "/metadata/resourceVersion", "value": profile.resource_version});
    let field = |(field, value): (&'static str, Value)| {
        let path = format!("/spec/{field}");
        match value.is_null() {
            true => spec.get(field).map(|_| json!({"op": "remove", "path": path})),
            false => Some(json!({"op": "add", "path": path, "value": value})),
        }
    };
    std::iter::once(version).chain(fields.into_iter().filter_map(field)).collect()
}

/// What to do about a refusal; `role` is the one that allows it.
pub(super) fn explained(error: anyhow::Error, what: &str, role: &str) -> anyhow::Error {
    match error.downcast_ref::<WriteError>() {
        Some(WriteError::Refused { code: 403, message, .. }) => {
            anyhow::anyhow!(
                "you may not {what}, and nothing was changed; ask for the ClusterRole {ROLES}-{role}: {message}"
            )
        }
        _ => error,
    }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{profile, sample};
    use super::patch;
    use serde_json::{Value, json};

    #[test]
    fn only_fields_that_exist_are_removed() {
        let version = json!({"op": "replace", "path": "/metadata/resourceVersion", "value": "7"});
        let action = json!({"op": "add", "path": "/spec/action", "value": "DryRun"});
        let fields = || vec![("action", json!("DryRun")), ("approvedPlan", Value::Null)];
        assert_eq!(patch(&sample(), fields()), json!([version, action]));
        let approved = profile(&json!({"approvedPlan": "sha256:1"}), json!({}));
        let removed = json!({"op": "remove", "path": "/spec/approvedPlan"});
        assert_eq!(patch(&approved, fields()), json!([version, action, removed]));
    }
}
