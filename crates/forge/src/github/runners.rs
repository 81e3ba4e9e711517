//! Runners of an enterprise, an organisation or a repository.

use crate::github::client::{Client, Sent};
use crate::github::trouble::{Need, Trouble};
use crate::github::wire::{GroupPage, RunnerPage, WireDownload, WireJit};
use fleet::forge::budget::Priority;
use fleet::forge::{Answer, Failure, JitConfig, RunnerId, RunnerWanted, Runners, Scope};
use http::Method;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::{Mutex, PoisonError};

/// The default group has this id everywhere, and a repository has no other.
pub(crate) const DEFAULT_GROUP: u64 = 1;
/// A list that changes while it is read is read so many times.
const READS: usize = 2;

/// The ids of runner groups, by name.
#[derive(Default)]
pub(crate) struct Groups(Mutex<BTreeMap<String, u64>>);

impl Groups {
    /// Registers a runner for one job.
    pub(crate) async fn jit_config(&self, client: &Client, wanted: &RunnerWanted) -> Result<Answer, Failure> {
        let doing = format!("registering runner {}", wanted.name);
        let fail = |trouble: &Trouble| client.failure(trouble, &doing, Need::Runners);
        loop {
            let (group, is_cached) = self.id(client, wanted.group.as_deref()).await?;
            let body = json!({
                "name": wanted.name,
                "runner_group_id": group,
                "labels": wanted.labels.iter().collect::<Vec<_>>(),
                "work_folder": "_work",
            });
            let sent = Sent::new(Method::POST, "/{scope}/actions/runners/generate-jitconfig", &[]).json(body);
            match client.send(&sent.priority(Priority::Urgent)).await {
                Ok(content) => return jit(&content.read().map_err(|trouble| fail(&trouble))?),
                // The group may have been made again, with another id.
                Err(trouble) if trouble.is(404) && is_cached => self.forget(wanted.group.as_deref()),
                Err(trouble) if trouble.is(409) => return Err(Failure::Exists(wanted.name.clone())),
                Err(trouble) => return Err(fail(&trouble)),
            }
        }
    }

    /// The id of a group, and whether it was known before.
    async fn id(&self, client: &Client, name: Option<&str>) -> Result<(u64, bool), Failure> {
        let Some(name) = name else { return Ok((DEFAULT_GROUP, false)) };
        if let Some(id) = self.0.lock().unwrap_or_else(PoisonError::into_inner).get(name) {
            return Ok((*id, true));
        }
        if matches!(client.address.scope, Scope::Repository(_)) {
            return Err(Failure::Configuration {
                message: format!("the {} has no runner group {name}", client.address.scope),
                remedy: "leave the group out, or use the address of the organisation: only organisations and enterprises have groups"
                    .into(),
            });
        }
        let doing = "listing runner groups";
        let fail = |trouble: &Trouble| client.failure(trouble, doing, Need::Runners);
        let mut names = BTreeSet::new();
        for page in 1.. {
            let sent = Sent::list("/{scope}/actions/runner-groups", &[]).query("page", page.to_string());
            let content = client.send(&sent.priority(Priority::Urgent)).await.map_err(|trouble| fail(&trouble))?;
            let groups: GroupPage = content.read().map_err(|trouble| fail(&trouble))?;
            for group in groups.runner_groups {
                if group.name.eq_ignore_ascii_case(name) {
                    let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
                    known.insert(name.to_owned(), group.id);
                    return Ok((group.id, false));
                }
                names.insert(group.name);
            }
            if !content.has_next() {
                break;
            }
        }
        let names: Vec<String> = names.into_iter().collect();
        Err(Failure::Configuration {
            message: format!("the {} has no runner group {name}", client.address.scope),
            remedy: format!("create it, or name one of these: {}", names.join(", ")),
        })
    }

    fn forget(&self, name: Option<&str>) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        name.map(|name| known.remove(name));
    }
}

/// The answer with the configuration of a runner.
pub(crate) fn jit(found: &WireJit) -> Result<Answer, Failure> {
    let config = found.encoded_jit_config.clone().into();
    Ok(Answer::JitConfig(JitConfig { runner: RunnerId(found.runner.id), config }))
}

/// Lists all runners, or the one with a name.
pub(crate) async fn list(client: &Client, name: Option<&str>) -> Result<Answer, Failure> {
    let fail = |trouble: &Trouble| client.failure(trouble, "listing runners", Need::Runners);
    let mut runners = Runners::default();
    for _ in 0..READS {
        runners = pages(client, name).await.map_err(|trouble| fail(&trouble))?;
        if runners.is_complete {
            break;
        }
    }
    Ok(Answer::Runners(runners))
}

async fn pages(client: &Client, name: Option<&str>) -> Result<Runners, Trouble> {
    let mut found = Runners { is_complete: true, ..Runners::default() };
    let mut total = None;
    for page in 1.. {
        let mut sent = Sent::list("/{scope}/actions/runners", &[]).query("page", page.to_string());
        if let Some(name) = name {
            sent = sent.query("name", name).priority(Priority::Normal);
        }
        let content = client.send(&sent).await?;
        let RunnerPage { total_count, runners } = content.read()?;
        found.is_complete &= *total.get_or_insert(total_count) == total_count;
        found.runners.extend(runners.into_iter().map(<(RunnerId, _)>::from));
        if !content.has_next() {
            break;
        }
    }
    // A server without the filter lists all.
    if let Some(name) = name {
        found.runners.retain(|_, runner| runner.name.eq_ignore_ascii_case(name));
    } else {
        found.is_complete &= Some(found.runners.len()) == total;
    }
    Ok(found)
}

/// Removes a runner.
pub(crate) async fn remove(client: &Client, runner: RunnerId) -> Result<Answer, Failure> {
    let doing = format!("removing runner {}", runner.0);
    let sent = Sent::new(Method::DELETE, "/{scope}/actions/runners/{runner}", &[&runner.0.to_string()]);
    let trouble = match client.send(&sent.priority(Priority::Urgent)).await {
        Ok(_) => return Ok(Answer::Done),
        Err(trouble) => trouble,
    };
    match &trouble {
        Trouble::Answered { code: 422, message, .. } if is_busy(message) => Err(Failure::StillBusy(runner)),
        // That is also how GitHub says that these credentials do not see the scope any more: then nothing is known of the runner.
        Trouble::Answered { code: 404, .. } => {
            let sent = Sent::get("/{scope}/actions/runners", &[]).query("per_page", "1").priority(Priority::Urgent);
            match client.send(&sent).await {
                Ok(_) => Ok(Answer::Done),
                Err(trouble) => Err(client.failure(&trouble, &doing, Need::Runners)),
            }
        }
        _ => Err(client.failure(&trouble, &doing, Need::Runners)),
    }
}

fn is_busy(message: &str) -> bool {
    let lower = message.to_lowercase();
    lower.contains("running a job") || lower.contains("still running") || lower.contains("is busy")
}

/// Lists the runner programs that are offered.
pub(crate) async fn versions(client: &Client) -> Result<Answer, Failure> {
    let fail = |trouble: &Trouble| client.failure(trouble, "listing versions of the runner", Need::Runners);
    let content = client.send(&Sent::get("/{scope}/actions/runners/downloads", &[])).await;
    let found: Vec<WireDownload> = content.and_then(|content| content.read()).map_err(|trouble| fail(&trouble))?;
    Ok(Answer::RunnerVersions(found.into_iter().filter_map(WireDownload::download).collect()))
}
