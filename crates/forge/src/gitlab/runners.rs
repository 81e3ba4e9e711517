//! Runners of a server, a group or a project.

use crate::github::trouble::Trouble;
use crate::gitlab::client::{Client, PAGE, Resolved, Sent};
use crate::gitlab::trouble::Need;
use crate::gitlab::wire::{WireJob, WireNewRunner, WireRunner};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use fleet::forge::budget::Priority;
use fleet::forge::gitlab::{MOST_TAGS, tags};
use fleet::forge::{Answer, Failure, JitConfig, RunnerId, RunnerWanted, Runners};
use http::Method;
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};

/// A list that changes while it is read is read so many times.
const READS: usize = 2;
/// The newest jobs of a runner that are looked at: it has one at a time.
const LAST_JOBS: &str = "order_by=id&sort=desc&per_page=20";

/// Registrations whose answers were lost, by the names of their runners. GitLab accepts any number of runners with one name.
#[derive(Default)]
pub(crate) struct Registrations(Mutex<BTreeSet<String>>);

impl Registrations {
    /// Registers a runner for one job.
    pub(crate) async fn register(&self, client: &Client, wanted: &RunnerWanted) -> Result<Answer, Failure> {
        let doing = format!("registering runner {}", wanted.name);
        let fail = |trouble: &Trouble| client.failure(trouble, &doing, Need::Create);
        if let Some(group) = &wanted.group {
            return Err(Failure::Configuration {
                message: format!("GitLab has no runner groups, and so no {group}"),
                remedy: "leave the runner group out, and use tags".into(),
            });
        }
        let (tags, runs_untagged) = tags(wanted);
        if tags.len() > MOST_TAGS {
            return Err(Failure::Permanent(format!("{doing}: GitLab takes {MOST_TAGS} tags at most")));
        }
        if self.with(|lost| lost.contains(&wanted.name)) {
            let found = find(client, Some(&wanted.name)).await.map_err(|trouble| fail(&trouble))?;
            if !found.runners.is_empty() {
                return Err(Failure::Exists(wanted.name.clone()));
            }
            if found.is_complete {
                self.with(|lost| lost.remove(&wanted.name));
            }
        }
        let resolved = client.resolve().await.map_err(|trouble| fail(&trouble))?;
        let mut body = json!({
            "description": wanted.name, "tag_list": tags, "run_untagged": runs_untagged, "paused": false,
        });
        let (kind, owner) = match resolved {
            Resolved::Instance => ("instance_type", None),
            Resolved::Group(id) => ("group_type", Some(("group_id", id))),
            Resolved::Project(id, _) => ("project_type", Some(("project_id", id))),
        };
        body["runner_type"] = kind.into();
        if let Some((name, id)) = owner {
            body[name] = id.into();
        }
        if kind == "project_type" {
            // No other project may use it.
            body["locked"] = true.into();
        }
        // Dropped requests may have been carried out, too.
        self.with(|lost| lost.insert(wanted.name.clone()));
        let sent = Sent::new(Method::POST, "/user/runners", &[]).json(body).priority(Priority::Urgent);
        let answer = client.send(&sent).await.and_then(|content| content.read::<WireNewRunner>());
        let is_unclear = matches!(
            &answer,
            Err(Trouble::Unanswered(_) | Trouble::Misread { .. } | Trouble::Answered { code: 500.., .. })
        );
        if !is_unclear {
            self.with(|lost| lost.remove(&wanted.name));
        }
        match answer {
            Ok(new) => {
                let config = runner_config(&client.place.server, &wanted.name, &new.token).into();
                Ok(Answer::JitConfig(JitConfig { runner: RunnerId(new.id), config }))
            }
            Err(trouble) => {
                if trouble.is(404) {
                    client.forget();
                }
                Err(fail(&trouble))
            }
        }
    }

    fn with<T>(&self, action: impl FnOnce(&mut BTreeSet<String>) -> T) -> T {
        action(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }
}

/// What the machine of a runner starts it with, in the form that a guest expects: files by name. `.credentials` is a configuration for
/// `gitlab-runner run-single --config .credentials --runner NAME --max-builds 1`, so that the token is in no argument and no environment.
fn runner_config(server: &str, name: &str, token: &str) -> String {
    // Texts of TOML are written as those of JSON.
    let text = |value: &str| Value::from(value).to_string();
    let settings = format!(
        "concurrent = 1\n\n[[runners]]\nname = {}\nurl = {}\ntoken = {}\nexecutor = \"shell\"\n",
        text(name),
        text(server),
        text(token)
    );
    let about = json!({"platform": "gitlab", "name": name}).to_string();
    STANDARD.encode(json!({".credentials": STANDARD.encode(settings), ".runner": STANDARD.encode(about)}).to_string())
}

/// Lists all runners, or the ones with a name.
pub(crate) async fn list(client: &Client, name: Option<&str>) -> Result<Answer, Failure> {
    let found = find(client, name).await;
    found.map(Answer::Runners).map_err(|trouble| client.failure(&trouble, "listing runners", Need::Manage))
}

async fn find(client: &Client, name: Option<&str>) -> Result<Runners, Trouble> {
    let mut runners = Runners::default();
    for _ in 0..READS {
        runners = pages(client, name).await?;
        if runners.is_complete {
            break;
        }
    }
    Ok(runners)
}

/// The first page of the list of runners.
async fn first(client: &Client, size: &str) -> Result<Sent, Trouble> {
    Ok(match client.resolve().await? {
        Resolved::Instance => Sent::get("/runners/all", &[]).query(format!("type=instance_type&{size}")),
        Resolved::Group(id) => {
            Sent::get("/groups/{group}/runners", &[&id.to_string()]).query(format!("type=group_type&{size}"))
        }
        Resolved::Project(id, _) => {
            Sent::get("/projects/{project}/runners", &[&id.to_string()]).query(format!("type=project_type&{size}"))
        }
    })
}

async fn pages(client: &Client, name: Option<&str>) -> Result<Runners, Trouble> {
    let mut found = Runners { is_complete: true, ..Runners::default() };
    let (mut total, mut ids) = (None, BTreeSet::new());
    let mut sent = first(client, PAGE).await?.priority(Priority::Bulk);
    loop {
        let content = client.send(&sent).await?;
        // Pages shift while runners come and go, and very long lists do not say how long they are.
        found.is_complete &= content.total.is_some() && *total.get_or_insert(content.total) == content.total;
        for wire in content.read::<Vec<WireRunner>>()? {
            ids.insert(wire.id);
            if name.is_some_and(|name| name != wire.name()) {
                continue;
            }
            let is_busy = match wire.is_busy() {
                Some(is_busy) => is_busy,
                // One that was never heard of has no job.
                None => wire.is_online() && has_job(client, wire.id, Priority::Bulk).await?,
            };
            found.runners.extend([wire.runner(is_busy)]);
        }
        match content.next {
            Some(next) => sent = sent.query(next),
            None => break,
        }
    }
    found.is_complete &= total == Some(Some(ids.len()));
    Ok(found)
}

/// Whether a runner has a job, as far as the credentials see it.
async fn has_job(client: &Client, runner: u64, priority: Priority) -> Result<bool, Trouble> {
    let sent = Sent::get("/runners/{runner}/jobs", &[&runner.to_string()]).query(LAST_JOBS).priority(priority);
    let jobs: Vec<WireJob> = client.send(&sent).await?.read()?;
    Ok(jobs.iter().any(WireJob::is_at_runner))
}

/// The same with what the runner itself says: its jobs are listed only where the credentials see their projects.
async fn is_busy(client: &Client, runner: u64) -> Result<bool, Trouble> {
    let sent = Sent::get("/runners/{runner}", &[&runner.to_string()]).priority(Priority::Urgent);
    let said: WireRunner = client.send(&sent).await?.read()?;
    Ok(said.is_busy() == Some(true) || has_job(client, runner, Priority::Urgent).await?)
}

/// Removes a runner. GitLab deletes one that has a job, too, so that it is looked at first, and again once it gets no more jobs.
pub(crate) async fn remove(client: &Client, runner: RunnerId) -> Result<Answer, Failure> {
    let doing = format!("removing runner {}", runner.0);
    match removal(client, runner.0).await {
        Ok(true) => Ok(Answer::Done),
        Ok(false) => Err(Failure::StillBusy(runner)),
        // That is also how GitLab says that these credentials do not see it any more: then nothing is known of the runner.
        Err(trouble) if trouble.is(404) => {
            client.forget();
            let seen = match first(client, "per_page=1").await {
                Ok(sent) => client.send(&sent.priority(Priority::Urgent)).await,
                Err(trouble) => Err(trouble),
            };
            let seen = seen.map(|_| Answer::Done);
            seen.map_err(|trouble| client.failure(&trouble, &doing, Need::Manage))
        }
        Err(trouble) => Err(client.failure(&trouble, &doing, Need::Manage)),
    }
}

/// Whether it is removed; it is not if it has a job.
async fn removal(client: &Client, runner: u64) -> Result<bool, Trouble> {
    if is_busy(client, runner).await? {
        return Ok(false);
    }
    let id = runner.to_string();
    let pause = Sent::new(Method::PUT, "/runners/{runner}", &[&id]).json(json!({"paused": true}));
    client.send(&pause.priority(Priority::Urgent)).await?;
    if is_busy(client, runner).await? {
        return Ok(false);
    }
    client.send(&Sent::new(Method::DELETE, "/runners/{runner}", &[&id]).priority(Priority::Urgent)).await?;
    Ok(true)
}

#[cfg(test)]
mod tests {
    use super::runner_config;
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use serde_json::Value;

    #[test]
    fn a_configuration_has_files_and_no_text_leaves_its_place() {
        let config = runner_config("https://gitlab.com", "a\"\ntoken = \"x", "glrt-t1_abc");
        let files: Value = serde_json::from_slice(&STANDARD.decode(config).unwrap()).unwrap();
        let file = |name: &str| String::from_utf8(STANDARD.decode(files[name].as_str().unwrap()).unwrap()).unwrap();
        assert_eq!(
            file(".credentials"),
            "concurrent = 1\n\n[[runners]]\nname = \"a\\\"\\ntoken = \\\"x\"\nurl = \"https://gitlab.com\"\n\
             token = \"glrt-t1_abc\"\nexecutor = \"shell\"\n"
        );
        assert!(!file(".runner").contains("glrt"));
    }
}
