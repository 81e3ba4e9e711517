//! Works while this replica leads.

use crate::stop::Stop;
use cluster::lease::{Election, Replica};
use cluster::{Failure, Permit, Server};
use tokio::sync::watch;

/// Waits for the lease, works with its permit until `stop` resolves, and releases it.
///
/// A standby replica is ready; while it leads, it is ready when the work says so.
pub async fn lead<W>(
    server: &Server,
    namespace: &str,
    replica: Replica,
    readiness: &watch::Sender<Vec<String>>,
    mut stop: Stop,
    work: impl FnOnce(Permit, Stop) -> W,
) -> anyhow::Result<()>
where
    W: Future<Output = anyhow::Result<()>>,
{
    let mut election = Election::new(server, namespace, replica);
    let missing = readiness.send_replace(Vec::new());
    let lease = server.identity.lease;
    tracing::info!("waiting for the lease {namespace}/{lease}");
    let mut last = String::new();
    let warn = |failure: &Failure| {
        let message = failure.to_string();
        if message != last {
            tracing::warn!("could not acquire the lease {namespace}/{lease}: {message}; trying again");
            last = message;
        }
    };
    tokio::select! {
        () = election.acquire(warn) => {}
        () = &mut stop => return Ok(()),
    }
    tracing::info!("this replica leads: it holds the lease {namespace}/{lease}");
    readiness.send_replace(missing);
    let permit = election.permit();
    let outcome = tokio::select! {
        outcome = work(permit, stop) => outcome,
        () = election.renew() => {
            Err(anyhow::anyhow!("lost the lease {namespace}/{lease}; start again to become a standby replica"))
        }
    };
    election.release().await;
    outcome
}

#[cfg(test)]
mod tests {
    use super::lead;
    use crate::test_server::{self, Answer};
    use cluster::lease::{Replica, holder as current_holder};
    use futures::FutureExt;
    use std::collections::BTreeMap;
    use std::sync::{Arc, Mutex};
    use tokio::sync::watch;

    fn pod() -> Replica {
        Replica { name: "pod".into(), annotations: BTreeMap::from([("example.io/leader".into(), "pod 1.0".into())]) }
    }

    const NOT_FOUND: &str =
        r#"{"kind":"Status","status":"Failure","message":"no such lease","reason":"NotFound","code":404}"#;

    #[tokio::test]
    async fn the_lease_is_acquired_before_the_work_and_released_after_it() {
        let lease = Arc::new(Mutex::new(None::<String>));
        let stored = lease.clone();
        let server = test_server::answering(move |method, _, body| {
            let mut stored = stored.lock().unwrap();
            if *method != http::Method::GET {
                *stored = Some(body.to_owned());
            }
            stored.as_deref().map_or_else(|| Answer::now(404, NOT_FOUND), |lease| Answer::now(200, lease))
        });
        let (readiness, missing) = watch::channel(vec!["something".to_owned()]);
        let holder = |lease: &Mutex<Option<String>>| {
            let lease = lease.lock().unwrap().clone().unwrap();
            serde_json::from_str::<serde_json::Value>(&lease).unwrap()["spec"]["holderIdentity"].clone()
        };
        let work = async |permit: cluster::Permit, _| {
            assert!(permit.is_valid());
            assert_eq!(holder(&lease), "pod");
            assert_eq!(current_holder(&server, "n").await.unwrap(), Some(pod()), "what it says about itself is known");
            assert_eq!(*missing.borrow(), ["something"], "the work has not said yet that it is ready");
            anyhow::Ok(())
        };
        let stop = std::future::pending().boxed();
        lead(&server, "n", pod(), &readiness, stop, work).await.unwrap();
        assert_eq!(holder(&lease), serde_json::Value::Null);
        assert_eq!(current_holder(&server, "n").await.unwrap(), None, "nobody leads any more");
    }

    #[tokio::test]
    async fn a_standby_replica_is_ready_and_stops_at_once() {
        let (readiness, missing) = watch::channel(vec!["something".to_owned()]);
        let stop = async move { assert!(missing.borrow().is_empty()) }.boxed();
        let work = async |_, _| anyhow::bail!("it must not lead");
        lead(&test_server::silent(), "n", pod(), &readiness, stop, work).await.unwrap();
    }
}
