//! `approve NAME --digest DIGEST`: approves the plan of a profile, exactly as it is shown.

use super::next::Approval;
use super::text::{Detail, text};
use super::write::explained;
use super::{Profile, Profiles, meant};
use crate::command::colour::{Colour, Palette};
use crate::command::print;
use crate::command::table::terminal_width;
use crate::command::target::{Target, on_runtime};
use anyhow::bail;
use catalog::Catalog;
use serde_json::json;
use std::process::ExitCode;

/// What a person asks for.
pub(in crate::command) struct Request<'a> {
    pub(in crate::command) words: &'a [String],
    pub(in crate::command) digest: Option<&'a str>,
    pub(in crate::command) dry_run: bool,
    pub(in crate::command) yes: bool,
    pub(in crate::command) revoke: bool,
    pub(in crate::command) target: &'a Target,
    pub(in crate::command) catalog: &'a Catalog,
}

/// Approves the plan of a profile; nothing if no profile is meant. `confirm` asks the person.
pub(in crate::command) fn run(
    request: &Request<'_>,
    confirm: impl Fn(&str) -> anyhow::Result<bool>,
) -> anyhow::Result<Option<ExitCode>> {
    let Some(name) = on_runtime(named(request))? else { return Ok(None) };
    if request.revoke {
        return on_runtime(revoke(&name, request)).map(Some);
    }
    let is_shown = request.digest.is_none() || request.dry_run;
    let profile = on_runtime(async {
        let profiles = Profiles::connect(request.target).await?;
        let profile = profiles.existing(&name, request.catalog).await?;
        Ok(if is_shown { profiles.with_costs(profile).await } else { profile })
    })?;
    let digest = match request.digest {
        Some(digest) => digest.to_owned(),
        None => match profile.approval() {
            Approval::Possible(digest) | Approval::Given(digest) => digest.to_owned(),
            Approval::Nothing(why) => bail!("{why}"),
        },
    };
    if let Approval::Given(given) = checked(&profile, &digest)? {
        print(&format!("{name} {given} is already approved; its phase is {}\n", profile.phase()))?;
        return Ok(Some(ExitCode::SUCCESS));
    }
    if is_shown {
        print(&text(&profile, Detail::Differences, terminal_width(), Palette::of_output()))?;
    }
    if request.dry_run {
        print(&format!("would approve {name} {digest}\n"))?;
        return Ok(Some(ExitCode::SUCCESS));
    }
    if request.digest.is_none() {
        if request.yes {
            bail!(
                "nothing is approved: without a question the plan that was read has to be named; add --digest {digest}"
            );
        }
        if !confirm(&format!("Approve the plan of {name}?"))? {
            bail!("not approved; nothing was changed");
        }
    }
    on_runtime(write(&name, &digest, request))?;
    let approved = Palette::of_output().paint(Colour::Green, "approved");
    let when = match profile.changes().any(|item| !item.restarts.is_empty()) {
        true => ", what restarts nodes within the maintenance window if there is one",
        false => "",
    };
    print(&format!(
        "{approved} {name} {digest}; the advisor applies exactly this plan{when}\nNext: kubectl wait virtplatformconfig/{name} --for=condition=Ready --timeout=1h\n"
    ))?;
    Ok(Some(ExitCode::SUCCESS))
}

/// The profile that is meant: with a digest always one, else if the only word is its name.
async fn named(request: &Request<'_>) -> anyhow::Result<Option<String>> {
    match (request.words, request.digest) {
        ([word], Some(_)) => {
            Ok(Some(meant(word, request.catalog, request.target).await?.unwrap_or_else(|| word.clone())))
        }
        ([word], None) => meant(word, request.catalog, request.target).await,
        (_, Some(_)) => bail!("a digest is of the plan of one profile; name that profile alone"),
        (_, None) => Ok(None),
    }
}

/// Whether this digest of a profile can be approved; an error that says why not.
fn checked<'a>(profile: &'a Profile, digest: &str) -> anyhow::Result<Approval<'a>> {
    let name = &profile.name;
    match profile.approval() {
        Approval::Nothing(why) => bail!("{why}"),
        Approval::Possible(shown) | Approval::Given(shown) if shown != digest => bail!(
            "the plan of {name} is not {digest} but {shown} now, and nothing was approved; read it with \"virtpilot plan show {name}\", then approve that \
             digest"
        ),
        approval => Ok(approval),
    }
}

/// Writes the approval. What is there at the time of the write is checked again, so that nothing is approved that was not shown.
async fn write(name: &str, digest: &str, request: &Request<'_>) -> anyhow::Result<()> {
    let profiles = Profiles::connect(request.target).await?;
    let fields = |profile: &Profile| {
        checked(profile, digest)?;
        Ok(Some(vec![("action", json!("Apply")), ("approvedPlan", json!(digest))]))
    };
    let written = profiles.change(name, request.catalog, fields).await;
    written.map_err(|error| explained(error, "approve", "approver"))?;
    Ok(())
}

/// Takes the approval back: the plan is shown again, and nothing more is written.
async fn revoke(name: &str, request: &Request<'_>) -> anyhow::Result<ExitCode> {
    let profiles = Profiles::connect(request.target).await?;
    if request.dry_run {
        print(&format!("would set the action of {name} to DryRun\n"))?;
        return Ok(ExitCode::SUCCESS);
    }
    let fields = |profile: &Profile| match profile.spec.action {
        api::advisor::Action::Apply => Ok(Some(vec![("action", json!("DryRun")), ("approvedPlan", json!(null))])),
        other => bail!("nothing of {name} is approved: its action is {other:?}"),
    };
    let written = profiles.change(name, request.catalog, fields).await;
    written.map_err(|error| explained(error, "take back an approval", "approver"))?;
    print(&format!(
        "revoked the approval of {name}; what was applied stays, and \"virtpilot rollback {name}\" plans its undoing\n"
    ))?;
    Ok(ExitCode::SUCCESS)
}

#[cfg(test)]
mod tests {
    use super::super::next::Approval;
    use super::super::samples::{DIGEST, sample};
    use super::checked;

    #[test]
    fn only_the_plan_that_is_shown_can_be_approved() {
        assert_eq!(checked(&sample(), DIGEST).unwrap(), Approval::Possible(DIGEST));
        let why = checked(&sample(), "sha256:old").unwrap_err().to_string();
        assert!(why.contains(&format!("is not sha256:old but {DIGEST} now, and nothing was approved")), "{why}");
        let mut edited = sample();
        edited.generation = 9;
        assert!(checked(&edited, DIGEST).unwrap_err().to_string().contains("the spec has generation 9"));
    }
}
