//! Whether the API server answers, its version and its clock, and the operator that leads.

use super::{Row, Verdict};
use crate::command::leader::{self, Leader};
use crate::command::skew;
use catalog::Catalog;
use change::{Key, Kind};
use cluster::{Server, about, live};
use jiff::{SignedDuration, Timestamp};
use protocol::Kinds;
use serde_json::Value;

/// The name of the check without which there are no others.
pub(super) const CHECK: &str = "api server";
const OPERATOR: &str = "operator";
/// The oldest version that is tested.
const OLDEST: u32 = 30;
/// The server writes whole seconds, and an answer takes a moment.
const TOLERATED: SignedDuration = SignedDuration::from_secs(10);

pub(super) fn unreachable(why: &str) -> Row {
    Row::new(CHECK, Verdict::Fail, "not reachable", format!("{why}; check the kubeconfig and the network"))
}

pub(super) async fn rows(server: &Server) -> Vec<Row> {
    let about = match about::about(server).await {
        Ok(about) => about,
        Err(failure) => return vec![unreachable(&format!("{} does not answer: {failure}", server.address))],
    };
    let found = format!("{}, reachable", about.version);
    let version = match minor(&about.version) {
        Some(minor) if minor < OLDEST => {
            Row::new(CHECK, Verdict::Fail, found, format!("Kubernetes 1.{OLDEST} or newer is needed"))
        }
        _ => Row::ok(CHECK, found),
    };
    vec![version, clock(about.clock, Timestamp::now())]
}

/// The minor version in `v1.36.3`.
fn minor(version: &str) -> Option<u32> {
    version.split('.').nth(1)?.parse().ok()
}

fn clock(server: Option<Timestamp>, ours: Timestamp) -> Row {
    let Some(server) = server else {
        return Row::new("clock", Verdict::Info, "the API server does not tell its time", "");
    };
    let skew = ours.duration_since(server);
    if skew.abs() <= TOLERATED {
        return Row::ok("clock", format!("within {} s of the API server", TOLERATED.as_secs()));
    }
    let direction = if skew.is_negative() { "behind" } else { "ahead of" };
    let found = format!("{} s {direction} the API server", skew.abs().as_secs());
    Row::new("clock", Verdict::Warn, found, "maintenance windows and leases depend on it; synchronise the clocks")
}

/// The operator that leads.
pub(super) async fn operator(server: &Server, kinds: &Kinds, namespace: &str, catalog: &Catalog) -> Row {
    match leader::find(server, namespace).await {
        Ok(Leader::None(_)) => none_leads(deployment(server, kinds, namespace).await.as_ref(), namespace),
        Ok(found) => leads(&found, catalog),
        Err(failure) => {
            Row::new(OPERATOR, Verdict::Info, "its lease cannot be read", format!("grant get on leases: {failure}"))
        }
    }
}

fn leads(found: &Leader, catalog: &Catalog) -> Row {
    let Leader::Renewing(replica) = found else {
        return Row::new(OPERATOR, Verdict::Warn, found.to_string(), "nothing is reconciled meanwhile; check its pod");
    };
    match skew::difference(replica, &skew::Release::of(catalog)) {
        Some(warning) => Row::new(OPERATOR, Verdict::Warn, found.to_string(), warning),
        None => Row::ok(OPERATOR, found.to_string()),
    }
}

/// Nothing if it does not exist or cannot be read.
async fn deployment(server: &Server, kinds: &Kinds, namespace: &str) -> Option<Value> {
    let kind = Kind::new("apps/v1", "Deployment");
    let key = Key { kind, namespace: namespace.to_owned(), name: install::NAME.to_owned() };
    live::whole(server, &kinds.find(&key.kind)?, &key).await.ok()?
}

/// An operator that is installed and does not lead has to be repaired; one without leader election cannot be seen.
fn none_leads(deployment: Option<&Value>, namespace: &str) -> Row {
    let containers = deployment.and_then(|found| found["spec"]["template"]["spec"]["containers"].as_array());
    let arguments = containers.into_iter().flatten().filter_map(|container| container["args"].as_array()).flatten();
    let elects = |argument: &Value| {
        let argument = argument.as_str().unwrap_or_default().trim_start_matches('-');
        argument == "leader-elect" || argument == "leader-elect=true"
    };
    let (verdict, why) = match arguments.into_iter().any(elects) {
        true => (Verdict::Fail, format!("nothing is reconciled; see why no pod of Deployment {} runs", install::NAME)),
        false => (Verdict::Warn, "nothing is reconciled, unless one runs without --leader-elect".to_owned()),
    };
    Row::new(OPERATOR, verdict, "no operator leads", format!("{why}, in namespace {namespace}"))
}

#[cfg(test)]
mod tests {
    use super::{Leader, Verdict, clock, leads, minor, none_leads};
    use jiff::Timestamp;
    use serde_json::json;

    #[test]
    fn an_installed_operator_that_does_not_lead_has_to_be_repaired() {
        let deployment = |argument: &str| {
            let containers = json!([{"args": ["run", argument]}]);
            json!({"spec": {"template": {"spec": {"containers": containers}}}})
        };
        let verdict = |argument: &str| none_leads(Some(&deployment(argument)), "n").verdict;
        assert_eq!((verdict("--leader-elect"), verdict("-leader-elect=true")), (Verdict::Fail, Verdict::Fail));
        assert_eq!((verdict("--prune"), none_leads(None, "n").verdict), (Verdict::Warn, Verdict::Warn));
    }

    #[test]
    fn a_leader_that_does_not_renew_its_lease_is_not_fine() {
        let silent = Leader::Silent { pod: "p".into(), seconds: 60, until: Timestamp::UNIX_EPOCH };
        let row = leads(&silent, &crate::pack::embedded().unwrap());
        assert_eq!(row.verdict, Verdict::Warn);
        assert!(row.found.starts_with("pod p has not renewed its lease for 60 s "), "{}", row.found);
    }

    #[test]
    fn clocks_that_differ_are_reported_with_the_direction() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        assert_eq!(clock(Some(at(100)), at(105)).verdict, Verdict::Ok);
        let ahead = clock(Some(at(100)), at(160));
        assert_eq!((ahead.verdict, ahead.found.as_str()), (Verdict::Warn, "60 s ahead of the API server"));
        assert_eq!(clock(Some(at(100)), at(40)).found, "60 s behind the API server");
        assert_eq!(clock(None, at(0)).verdict, Verdict::Info);
    }

    #[test]
    fn the_minor_version_is_read() {
        assert_eq!((minor("v1.36.3"), minor("v1.29.0+k3s1"), minor("main")), (Some(36), Some(29), None));
    }
}
