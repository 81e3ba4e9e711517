//! Waits until CRDs are established, by a watch that is opened again when it ends.

use super::pack::timed_out;
use futures::{Stream, StreamExt};
use jiff::Timestamp;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::WatchEvent;
use playground::UserError;
use std::collections::BTreeSet;
use std::pin::pin;
use std::time::Duration;

/// Between two watches.
const PAUSE: Duration = Duration::from_millis(20);

/// Waits until all these CRDs are established; returns when the last of them was reported.
///
/// The server ends the watch of a client that does not read fast enough, so the end of a watch says nothing: another one is opened, which
/// first reports everything that exists.
pub(crate) async fn last_established<S>(
    wanted: BTreeSet<String>,
    timeout: Duration,
    mut open: impl AsyncFnMut() -> Result<S, UserError>,
) -> Result<Timestamp, UserError>
where
    S: Stream<Item = kube::Result<WatchEvent<CustomResourceDefinition>>>,
{
    let (mut waiting, mut watches) = (wanted, 0);
    let watched = async {
        loop {
            watches += 1;
            let mut events = pin!(open().await?);
            let why = loop {
                match events.next().await {
                    Some(Ok(WatchEvent::Added(crd) | WatchEvent::Modified(crd))) if is_established(&crd) => {
                        waiting.remove(&crd.metadata.name.unwrap_or_default());
                    }
                    Some(Ok(WatchEvent::Error(status))) => break status.message.clone(),
                    Some(Ok(_)) => {}
                    Some(Err(error)) => break error.to_string(),
                    None => break "the server ended it".to_owned(),
                }
                if waiting.is_empty() {
                    return Ok(Timestamp::now());
                }
            };
            eprintln!("the watch of CRDs ended early and is opened again: {why}");
            tokio::time::sleep(PAUSE).await;
        }
    };
    let established = tokio::time::timeout(timeout, watched).await;
    established.unwrap_or_else(|_| {
        let names: Vec<&str> = waiting.iter().map(String::as_str).collect();
        let what = format!("these CRDs are established: {} (watches opened: {watches})", names.join(", "));
        Err(timed_out(&what, timeout))
    })
}

fn is_established(crd: &CustomResourceDefinition) -> bool {
    let conditions = crd.status.iter().flat_map(|status| status.conditions.iter().flatten());
    conditions.into_iter().any(|condition| condition.type_ == "Established" && condition.status == "True")
}

#[cfg(test)]
mod tests {
    use super::last_established;
    use futures::{Stream, StreamExt, stream};
    use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
    use kube::api::WatchEvent;
    use playground::UserError;
    use serde_json::json;
    use std::collections::BTreeSet;
    use std::time::Duration;

    type Event = kube::Result<WatchEvent<CustomResourceDefinition>>;

    fn crd(name: &str, established: &str) -> Event {
        let names = json!({"plural": "things", "kind": "Thing"});
        let spec = json!({"group": "g", "scope": "Cluster", "names": names, "versions": []});
        let status = json!({"conditions": [{"type": "Established", "status": established}]});
        let crd = json!({"metadata": {"name": name}, "spec": spec, "status": status});
        Ok(WatchEvent::Modified(serde_json::from_value(crd).unwrap()))
    }

    /// Opens watches that report this, one after the other; the last one stays open.
    async fn wait(mut watches: Vec<Vec<Event>>, timeout: Duration) -> Result<(), UserError> {
        watches.reverse();
        let open = async || {
            let events = watches.pop().unwrap_or_default();
            let is_last = watches.is_empty();
            let rest: std::pin::Pin<Box<dyn Stream<Item = Event>>> =
                if is_last { stream::pending().boxed_local() } else { stream::empty().boxed_local() };
            Ok(stream::iter(events).chain(rest))
        };
        let wanted = BTreeSet::from(["a.g".to_owned(), "b.g".to_owned()]);
        last_established(wanted, timeout, open).await.map(|_| ())
    }

    #[tokio::test]
    async fn a_watch_that_ends_early_is_opened_again() {
        let first = vec![crd("a.g", "True"), crd("b.g", "False")];
        let second = vec![crd("a.g", "True"), crd("b.g", "True")];
        wait(vec![first, second], Duration::from_secs(60)).await.unwrap();
    }

    #[tokio::test]
    async fn the_error_names_the_crds_that_are_missing() {
        let watches = vec![vec![crd("a.g", "True"), crd("c.g", "True")], vec![crd("b.g", "False")]];
        let error = wait(watches, Duration::from_millis(200)).await.unwrap_err().to_string();
        assert!(error.contains("these CRDs are established: b.g (watches opened: 2)"), "{error}");
    }
}
