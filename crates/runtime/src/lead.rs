//! Works while this replica leads.

use crate::stop::Stop;
use cluster::lease::{Election, Replica, Waiting};
use cluster::{Permit, Server};
use protocol::election::Reason;
use tokio::sync::watch;

/// Where `/readyz` takes its answer from.
pub struct Probes {
    /// What the work waits for; nothing means ready.
    pub missing: watch::Sender<Vec<String>>,
    /// What a standby replica says besides; nothing while it leads.
    pub standby: watch::Sender<String>,
}

/// Waits for the lease, works with its permit until `stop` resolves, and releases it.
///
/// A standby replica is ready; while it leads, it is ready when the work says so.
pub async fn lead<W>(
    server: &Server,
    namespace: &str,
    replica: Replica,
    probes: &Probes,
    mut stop: Stop,
    work: impl FnOnce(Permit, Stop) -> W,
) -> anyhow::Result<()>
where
    W: Future<Output = anyhow::Result<()>>,
{
    let mut election = Election::new(server, namespace, replica);
    let missing = probes.missing.send_replace(Vec::new());
    let lease = format!("{namespace}/{}", server.identity.lease);
    let mut log = WaitingLog { lease: &lease, namespace, ..WaitingLog::default() };
    let report = |waiting: Waiting<'_>| {
        if let Some(standby) = log.take(&waiting) {
            probes.standby.send_replace(standby);
        }
    };
    let acquired = tokio::select! {
        reason = election.acquire(report) => Some(reason),
        () = &mut stop => None,
    };
    let Some(reason) = acquired else {
        // Its last request may have been answered too late to know.
        election.release().await;
        return Ok(());
    };
    tracing::info!("this replica leads: it holds the lease {lease}, {}", why(reason));
    probes.standby.send_replace(String::new());
    probes.missing.send_replace(missing);
    let permit = election.permit();
    let outcome = tokio::select! {
        outcome = work(permit, stop) => outcome,
        () = election.renew() => {
            Err(anyhow::anyhow!("lost the lease {lease}; start again to become a standby replica"))
        }
    };
    election.release().await;
    if outcome.is_ok() {
        tracing::info!("stopping: a signal asked for it; the lease {lease} is released");
    }
    outcome
}

fn why(reason: Reason) -> &'static str {
    match reason {
        Reason::Free => "which nobody held",
        Reason::Own => "which this pod already held",
        Reason::Expired => "which its holder had not renewed in time",
        Reason::HolderEnded => "whose holder's pod has ended",
    }
}

/// Logs what a standby replica waits for: each thing once, until another is reported.
#[derive(Default)]
struct WaitingLog<'a> {
    lease: &'a str,
    namespace: &'a str,
    holder: String,
    failure: String,
    is_unseen: bool,
}

impl WaitingLog<'_> {
    /// Logs news; returns what `/readyz` answers from now on.
    fn take(&mut self, waiting: &Waiting<'_>) -> Option<String> {
        let lease = self.lease;
        match waiting {
            Waiting::For(holder, until) => {
                let until = until.strftime("%H:%M:%S UTC");
                if self.holder != *holder {
                    self.holder = (*holder).to_owned();
                    tracing::info!(
                        "standby: {holder} holds the lease {lease}; this replica follows when {holder} stops, \
                         or at {until} if it does not renew the lease until then"
                    );
                }
                self.failure.clear();
                return Some(format!("standby: waiting for {holder}, which holds the lease {lease}, until {until}"));
            }
            Waiting::Failed(failure) => {
                let message = failure.to_string();
                if message != self.failure {
                    tracing::warn!("could not acquire the lease {lease}: {message}; trying again");
                    self.failure = message;
                }
            }
            Waiting::Unseen(failure) => {
                if !std::mem::replace(&mut self.is_unseen, true) {
                    tracing::warn!(
                        "could not read pods of the namespace {}: {failure}; a leader that is killed is followed only when its lease \
                         has expired; grant get and watch on pods, as the role of this version does",
                        self.namespace
                    );
                }
            }
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::{Probes, WaitingLog, lead};
    use crate::test_server::{self, Answer};
    use cluster::Failure;
    use cluster::lease::{Replica, Waiting, holder as current_holder};
    use futures::FutureExt;
    use std::collections::BTreeMap;
    use std::sync::{Arc, Mutex};
    use tokio::sync::watch;

    fn pod() -> Replica {
        Replica { name: "pod".into(), annotations: BTreeMap::from([("example.io/leader".into(), "pod 1.0".into())]) }
    }

    fn probes() -> (Probes, watch::Receiver<Vec<String>>) {
        let (missing, reader) = watch::channel(vec!["something".to_owned()]);
        (Probes { missing, standby: watch::channel(String::new()).0 }, reader)
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
                let mut lease: serde_json::Value = serde_json::from_str(body).unwrap();
                lease["metadata"]["resourceVersion"] = "1".into();
                *stored = Some(lease.to_string());
            }
            stored.as_deref().map_or_else(|| Answer::now(404, NOT_FOUND), |lease| Answer::now(200, lease))
        });
        let (probes, missing) = probes();
        let holder = |lease: &Mutex<Option<String>>| {
            let lease = lease.lock().unwrap().clone().unwrap();
            serde_json::from_str::<serde_json::Value>(&lease).unwrap()["spec"]["holderIdentity"].clone()
        };
        let work = async |permit: cluster::Permit, _| {
            assert!(permit.is_valid());
            assert_eq!(holder(&lease), "pod");
            let found = current_holder(&server, "n").await.unwrap().map(|holder| holder.replica);
            assert_eq!(found, Some(pod()), "what it says about itself is known");
            assert_eq!(*missing.borrow(), ["something"], "the work has not said yet that it is ready");
            anyhow::Ok(())
        };
        let stop = std::future::pending().boxed();
        lead(&server, "n", pod(), &probes, stop, work).await.unwrap();
        assert_eq!(holder(&lease), serde_json::Value::Null);
        assert_eq!(current_holder(&server, "n").await.unwrap(), None, "nobody leads any more");
    }

    #[test]
    fn a_standby_replica_says_for_whom_and_until_when_it_waits() {
        let mut log = WaitingLog { lease: "n/tester", namespace: "n", ..WaitingLog::default() };
        let until = "2026-01-01T10:00:00Z".parse().unwrap();
        let expected = "standby: waiting for other, which holds the lease n/tester, until 10:00:00 UTC";
        assert_eq!(log.take(&Waiting::For("other", until)).as_deref(), Some(expected));
        let failure = Failure::Unanswered("no answer".into());
        assert_eq!(log.take(&Waiting::Failed(&failure)), None, "what it said before still holds");
        assert_eq!(log.take(&Waiting::Unseen(&failure)), None);
    }

    #[tokio::test]
    async fn a_standby_replica_is_ready_and_stops_at_once() {
        let (probes, missing) = probes();
        let stop = async move { assert!(missing.borrow().is_empty()) }.boxed();
        let work = async |_, _| anyhow::bail!("it must not lead");
        lead(&test_server::silent(), "n", pod(), &probes, stop, work).await.unwrap();
    }
}
