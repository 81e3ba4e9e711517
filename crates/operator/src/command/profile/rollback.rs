//! `rollback NAME`: has a plan made that restores what was there before a profile was applied.

use super::write::explained;
use super::{Profile, Profiles, meant};
use crate::command::print;
use crate::command::target::{Target, on_runtime};
use api::advisor::Action;
use catalog::Catalog;
use serde_json::{Value, json};

/// Asks for the plan; returns false if no profile is meant.
pub(in crate::command) fn run(word: &str, target: &Target, catalog: &Catalog) -> anyhow::Result<bool> {
    on_runtime(async {
        // Features have no rollback of their own, so that a name can only mean a profile.
        let is_profile = catalog.profiles.iter().any(|profile| profile.name == word);
        let name = match is_profile {
            true => Some(word.to_owned()),
            false => meant(word, catalog, target).await?,
        };
        let Some(name) = name else { return Ok(false) };
        let profiles = Profiles::connect(target).await?;
        let written = profiles.change(&name, catalog, |profile| Ok(fields(profile))).await;
        let written = written.map_err(|error| explained(error, "change the profile", "editor"))?;
        print(&match written {
            Some(_) => format!(
                "{name}: the rollback is being planned; nothing is written before an approval\nNext: virtpilot plan show {name}\n"
            ),
            None => format!("{name}: the rollback is planned already\nNext: virtpilot plan show {name}\n"),
        })?;
        Ok(true)
    })
}

/// What the spec lacks. A rollback that is approved already goes on.
fn fields(profile: &Profile) -> Option<Vec<(&'static str, Value)>> {
    let is_asked = profile.spec.rollback == Some(true) && profile.spec.action != Action::Ignore;
    (!is_asked).then(|| vec![("rollback", json!(true)), ("action", json!("DryRun")), ("approvedPlan", Value::Null)])
}

#[cfg(test)]
mod tests {
    use super::super::samples::profile;
    use super::fields;
    use serde_json::json;

    #[test]
    fn a_rollback_is_planned_once() {
        assert!(fields(&profile(&json!({}), json!({}))).is_some());
        assert!(fields(&profile(&json!({"action": "Apply"}), json!({}))).is_some());
        assert!(fields(&profile(&json!({"rollback": true, "action": "Ignore"}), json!({}))).is_some());
        assert!(fields(&profile(&json!({"rollback": true}), json!({}))).is_none());
        assert!(fields(&profile(&json!({"rollback": true, "action": "Apply"}), json!({}))).is_none());
    }
}
