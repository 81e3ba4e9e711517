//! Scale sets and their runners.

use crate::github::client::Client;
use crate::github::runners::{DEFAULT_GROUP, jit};
use crate::github::service::{Asked, Service};
use crate::github::trouble::{Need, Trouble};
use crate::github::wire::{Group, ServiceList, WireJit, WireScaleSet};
use fleet::forge::{Answer, Failure, RunnerId, ScaleSet, ScaleSetId, ScaleSetWanted};
use http::Method;
use serde_json::{Value, json};

const SETS: &str = "_apis/runtime/runnerscalesets";
const SETS_PATH: &str = "/_apis/runtime/runnerscalesets";
const SET_PATH: &str = "/_apis/runtime/runnerscalesets/{set}";

/// Finds a scale set.
pub(crate) async fn find(
    client: &Client,
    service: &Service,
    name: &str,
    group: Option<&str>,
) -> Result<Answer, Failure> {
    let doing = format!("finding scale set {name}");
    let group = group_id(client, service, group).await?;
    let found = by_name(client, service, name, group).await;
    found
        .map(|set| Answer::ScaleSet(set.map(Box::new)))
        .map_err(|trouble| client.failure(&trouble, &doing, Need::Runners))
}

/// Finds or creates a scale set.
pub(crate) async fn ensure(client: &Client, service: &Service, wanted: &ScaleSetWanted) -> Result<Answer, Failure> {
    let ScaleSetWanted { name, group, labels } = wanted;
    let doing = format!("creating scale set {name}");
    let fail = |trouble: &Trouble| client.failure(trouble, &doing, Need::Runners);
    let group = group_id(client, service, group.as_deref()).await?;
    let answer = |set: ScaleSet| Ok(Answer::ScaleSet(Some(Box::new(set))));
    if let Some(set) = by_name(client, service, name, group).await.map_err(|trouble| fail(&trouble))? {
        return answer(set);
    }
    let labels: Vec<&String> = if labels.is_empty() { vec![name] } else { labels.iter().collect() };
    let labels: Vec<Value> = labels.into_iter().map(|label| json!({"type": "System", "name": label})).collect();
    let body = json!({
        "name": name, "runnerGroupId": group, "labels": labels, "RunnerSetting": {"disableUpdate": true},
    });
    let asked = Asked::new(Method::POST, SETS_PATH, SETS.to_owned()).json(body);
    match service.read::<WireScaleSet>(client, &asked).await {
        Ok(set) => answer(ScaleSet { is_new: true, ..set.into() }),
        // Somebody else was faster, or the answer to an earlier request was lost.
        Err(trouble) if trouble.is(409) => {
            match by_name(client, service, name, group).await.map_err(|trouble| fail(&trouble))? {
                Some(set) => answer(set),
                None => Err(fail(&trouble)),
            }
        }
        Err(trouble) => Err(fail(&trouble)),
    }
}

async fn by_name(client: &Client, service: &Service, name: &str, group: u64) -> Result<Option<ScaleSet>, Trouble> {
    let asked = Asked::new(Method::GET, SETS_PATH, SETS.to_owned());
    let asked = asked.query("runnerGroupId", group.to_string()).query("name", name);
    let found: ServiceList<WireScaleSet> = service.read(client, &asked).await?;
    let sets = found.value.into_iter().map(ScaleSet::from);
    Ok(sets.into_iter().find(|set| set.name.eq_ignore_ascii_case(name)))
}

async fn group_id(client: &Client, service: &Service, name: Option<&str>) -> Result<u64, Failure> {
    let Some(name) = name else { return Ok(DEFAULT_GROUP) };
    let path = "/_apis/runtime/runnergroups";
    let asked = Asked::new(Method::GET, path, "_apis/runtime/runnergroups/".to_owned()).query("groupName", name);
    let found: ServiceList<Group> = service
        .read(client, &asked)
        .await
        .map_err(|trouble| client.failure(&trouble, &format!("finding runner group {name}"), Need::Runners))?;
    match found.value.iter().find(|group| group.name.eq_ignore_ascii_case(name)) {
        Some(group) => Ok(group.id),
        None => Err(Failure::Configuration {
            message: format!("the {} has no runner group {name}", client.address.scope),
            remedy: "create it, or name one that exists".into(),
        }),
    }
}

/// Reads a scale set.
pub(crate) async fn read(client: &Client, service: &Service, set: ScaleSetId) -> Result<Answer, Failure> {
    let asked = Asked::new(Method::GET, SET_PATH, format!("{SETS}/{}", set.0));
    match service.read::<WireScaleSet>(client, &asked).await {
        Ok(found) => Ok(Answer::ScaleSet(Some(Box::new(found.into())))),
        Err(trouble) if is_absent(&trouble) => Ok(Answer::ScaleSet(None)),
        Err(trouble) => Err(failure(client, &trouble, &format!("reading scale set {}", set.0))),
    }
}

/// Deletes a scale set; fine if there is none.
pub(crate) async fn delete(client: &Client, service: &Service, set: ScaleSetId) -> Result<Answer, Failure> {
    let asked = Asked::new(Method::DELETE, SET_PATH, format!("{SETS}/{}", set.0));
    match service.send(client, &asked).await {
        Ok(_) => Ok(Answer::Done),
        Err(trouble) if is_absent(&trouble) => Ok(Answer::Done),
        Err(trouble) => Err(failure(client, &trouble, &format!("deleting scale set {}", set.0))),
    }
}

/// Registers a runner of a scale set for one job.
pub(crate) async fn jit_config(
    client: &Client,
    service: &Service,
    set: ScaleSetId,
    name: &str,
) -> Result<Answer, Failure> {
    let path = "/_apis/runtime/runnerscalesets/{set}/generatejitconfig";
    let asked = Asked::new(Method::POST, path, format!("{SETS}/{}/generatejitconfig", set.0));
    let asked = asked.json(json!({"name": name, "workFolder": "_work"}));
    match service.read::<WireJit>(client, &asked).await {
        Ok(found) => jit(&found),
        Err(trouble) if trouble.is_exception("AgentExistsException") => Err(Failure::Exists(name.to_owned())),
        Err(trouble) => Err(failure(client, &trouble, &format!("registering runner {name}"))),
    }
}

/// Removes a runner of a scale set.
pub(crate) async fn remove_runner(client: &Client, service: &Service, runner: RunnerId) -> Result<Answer, Failure> {
    let target = format!("_apis/distributedtask/pools/0/agents/{}", runner.0);
    let asked = Asked::new(Method::DELETE, "/_apis/distributedtask/pools/0/agents/{runner}", target);
    match service.send(client, &asked).await {
        Ok(_) => Ok(Answer::Done),
        Err(trouble) if trouble.is_exception("AgentNotFoundException") => Ok(Answer::Done),
        Err(trouble) if trouble.is_exception("JobStillRunningException") => Err(Failure::StillBusy(runner)),
        Err(trouble) => Err(failure(client, &trouble, &format!("removing runner {}", runner.0))),
    }
}

fn is_absent(trouble: &Trouble) -> bool {
    trouble.is(404) && trouble.is_exception("RunnerScaleSetNotFoundException")
}

/// The failure of something with a scale set. One that is gone does not come back: only another request helps.
pub(crate) fn failure(client: &Client, trouble: &Trouble, doing: &str) -> Failure {
    match trouble {
        Trouble::Answered { message, .. } if is_absent(trouble) => Failure::Permanent(format!("{doing}: {message}")),
        _ => client.failure(trouble, doing, Need::Runners),
    }
}
