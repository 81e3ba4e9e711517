//! Follows one pod by its name, until it is gone.

use crate::request::{Failure, Request, WHOLE, send_opt};
use crate::server::Server;
use futures::{AsyncBufReadExt, StreamExt};
use protocol::election::{Container, Pod};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::pin::pin;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::AbortHandle;

/// Some six watch requests an hour; bookmarks show that the server is still there.
const WATCH_SECONDS: u32 = 590;
/// How soon a pod that could not be read, or whose watch has ended, is read again.
const RETRY: Duration = Duration::from_secs(2);
/// Only a person can grant a right, so it is asked for less often.
const RETRY_REFUSED: Duration = Duration::from_secs(60);
/// What a kubelet or a container runtime calls the end of a container that it cannot find.
const LOST: [&str; 2] = ["ContainerStatusUnknown", "Unknown"];

/// What is known of a pod.
#[derive(Debug, Clone, Default)]
struct Known {
    last: Option<Pod>,
    refusal: Option<Failure>,
}

/// A task that follows a pod; it ends with this value.
pub(crate) struct PodWatch {
    name: String,
    known: watch::Receiver<Known>,
    task: AbortHandle,
}

impl Drop for PodWatch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl PodWatch {
    /// Starts to follow a pod.
    pub(crate) fn start(server: &Server, namespace: &str, name: &str) -> PodWatch {
        let (sender, known) = watch::channel(Known::default());
        let (server, namespace, pod) = (server.clone(), namespace.to_owned(), name.to_owned());
        let task = tokio::spawn(async move { follow(&server, &namespace, &pod, &sender).await });
        PodWatch { name: name.to_owned(), known, task: task.abort_handle() }
    }

    /// The pod's name.
    pub(crate) fn name(&self) -> &str {
        &self.name
    }

    /// Its last known state. Of a pod that was deleted while it was followed it is the state right before.
    pub(crate) fn last(&self) -> Option<Pod> {
        self.known.borrow().last.clone()
    }

    /// Why it may not be read, if so.
    pub(crate) fn refusal(&self) -> Option<Failure> {
        self.known.borrow().refusal.clone()
    }

    /// Waits for news; for ever once it is gone.
    pub(crate) async fn changed(&mut self) {
        if self.known.changed().await.is_err() {
            std::future::pending::<()>().await;
        }
    }
}

/// Reads a pod and its resourceVersion; nothing if it does not exist.
pub(crate) async fn read(server: &Server, namespace: &str, name: &str) -> Result<Option<(Pod, String)>, Failure> {
    if !is_name(name) {
        return Ok(None);
    }
    let url = format!("/api/v1/namespaces/{namespace}/pods/{name}");
    let Some(text) = send_opt(server, Request::get("Pod", &url, WHOLE)).await? else { return Ok(None) };
    Ok(Some(parse(&text)?))
}

/// Whether a pod can have this name, which somebody wrote on a lease.
fn is_name(name: &str) -> bool {
    let is_plain = |character: char| character.is_ascii_lowercase() || character.is_ascii_digit();
    let is_allowed = |character: char| is_plain(character) || "-.".contains(character);
    name.starts_with(is_plain) && name.ends_with(is_plain) && name.chars().all(is_allowed)
}

async fn follow(server: &Server, namespace: &str, name: &str, sender: &watch::Sender<Known>) {
    loop {
        let pause = match read(server, namespace, name).await {
            // Deleted before it was followed: nobody knows whether it has ended.
            Ok(None) => return,
            Ok(Some((pod, version))) => {
                sender.send_replace(Known { last: Some(pod), refusal: None });
                match stream(server, namespace, name, version, sender).await {
                    Ok(IsGone(true)) => return,
                    Ok(IsGone(false)) => RETRY,
                    Err(failure) => refused(failure, sender),
                }
            }
            Err(failure) => refused(failure, sender),
        };
        tokio::time::sleep(pause).await;
    }
}

/// Reports a refusal; returns how long to wait.
fn refused(failure: Failure, sender: &watch::Sender<Known>) -> Duration {
    if !failure.is_refusal() {
        return RETRY;
    }
    sender.send_modify(|known| known.refusal = Some(failure));
    RETRY_REFUSED
}

struct IsGone(bool);

#[derive(Deserialize)]
struct Event<'a> {
    #[serde(rename = "type")]
    what: &'a str,
    #[serde(borrow)]
    object: &'a RawValue,
}

/// Watches it until the watch ends or the pod is gone.
async fn stream(
    server: &Server,
    namespace: &str,
    name: &str,
    version: String,
    sender: &watch::Sender<Known>,
) -> Result<IsGone, Failure> {
    let url = format!(
        "/api/v1/namespaces/{namespace}/pods?watch=true&allowWatchBookmarks=true&timeoutSeconds={WATCH_SECONDS}\
         &fieldSelector=metadata.name%3D{name}&resourceVersion={version}"
    );
    let request = Request::get("Pod", &url, WHOLE).into_http()?;
    let opened = tokio::time::timeout(server.timeouts.request, server.watch_client(0).request_stream(request)).await;
    let mut lines = pin!(opened.map_err(|_| Failure::timeout())??.lines());
    while let Ok(Some(Ok(line))) = tokio::time::timeout(server.timeouts.silence, lines.next()).await {
        let Ok(event) = serde_json::from_str::<Event<'_>>(&line) else { break };
        let is_gone = match event.what {
            "ADDED" | "MODIFIED" => false,
            "DELETED" => true,
            "BOOKMARK" => continue,
            _ => break,
        };
        let (pod, _) = parse(event.object.get())?;
        sender.send_replace(Known { last: Some(pod), refusal: None });
        if is_gone {
            return Ok(IsGone(true));
        }
    }
    Ok(IsGone(false))
}

#[derive(Deserialize)]
struct Object {
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
    #[serde(default)]
    status: Status,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Metadata {
    uid: String,
    #[serde(default)]
    resource_version: String,
}

#[derive(Default, Deserialize)]
struct Spec {
    #[serde(default)]
    containers: Vec<serde::de::IgnoredAny>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Status {
    #[serde(default)]
    phase: String,
    #[serde(default)]
    conditions: Vec<Condition>,
    #[serde(default)]
    container_statuses: Vec<ContainerStatus>,
}

#[derive(Deserialize)]
struct Condition {
    #[serde(default)]
    reason: String,
}

#[derive(Deserialize)]
struct ContainerStatus {
    #[serde(default)]
    state: State,
}

#[derive(Default, Deserialize)]
struct State {
    terminated: Option<Terminated>,
}

#[derive(Deserialize)]
struct Terminated {
    #[serde(default)]
    reason: String,
}

/// A pod and its resourceVersion.
fn parse(text: &str) -> Result<(Pod, String), serde_json::Error> {
    let Object { metadata, spec, status } = serde_json::from_str(text)?;
    let state = |status: &ContainerStatus| match &status.state.terminated {
        None => Container::Active,
        Some(end) if LOST.contains(&end.reason.as_str()) => Container::Lost,
        Some(_) => Container::Terminated,
    };
    let pod = Pod {
        uid: metadata.uid,
        is_final: ["Failed", "Succeeded"].contains(&status.phase.as_str()),
        expected: spec.containers.len(),
        containers: status.container_statuses.iter().map(state).collect(),
        is_abandoned: status.conditions.iter().any(|condition| condition.reason == "DeletionByPodGC"),
    };
    Ok((pod, metadata.resource_version))
}

#[cfg(test)]
mod tests {
    use super::{is_name, parse};
    use protocol::election::{Container, Pod};
    use serde_json::json;

    #[test]
    fn only_names_that_a_pod_can_have_are_asked_for() {
        assert!(is_name("virt-pilot-6d5f-x7k") && is_name("a.b"));
        for wrong in ["", "..", "a/../../secrets", "a?watch=true", "Laptop", "pod_1b2c", "a-"] {
            assert!(!is_name(wrong), "{wrong}");
        }
    }

    #[test]
    fn what_a_kubelet_reports_of_a_pod_is_read() {
        let object = |status: serde_json::Value| {
            let object = json!({"metadata": {"uid": "u", "resourceVersion": "7"}, "status": status,
                "spec": {"containers": [{"name": "a"}, {"name": "b"}]}});
            parse(&object.to_string()).unwrap().0
        };
        let pod = Pod { uid: "u".into(), expected: 2, ..Pod::default() };
        assert_eq!(object(json!({})), pod);
        let states = json!([{"state": {"terminated": {"reason": "OOMKilled", "exitCode": 137}}},
            {"state": {"terminated": {"reason": "ContainerStatusUnknown", "exitCode": 137}}}, {"state": {"running": {}}},
            {"state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": {"reason": "Error"}}}, {}]);
        let containers =
            [Container::Terminated, Container::Lost, Container::Active, Container::Active, Container::Active];
        let failed = object(json!({"phase": "Failed", "containerStatuses": states,
            "conditions": [{"type": "DisruptionTarget", "status": "True", "reason": "TerminationByKubelet"}]}));
        assert_eq!(failed, Pod { is_final: true, containers: containers.into(), ..pod.clone() });
        let abandoned = json!([{"type": "DisruptionTarget", "status": "True", "reason": "DeletionByPodGC"}]);
        let succeeded = object(json!({"phase": "Succeeded", "conditions": abandoned}));
        assert_eq!(succeeded, Pod { is_final: true, is_abandoned: true, ..pod });
    }
}
