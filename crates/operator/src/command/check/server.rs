//! Whether the API server answers, its version and its clock, and the operator that leads.

use super::{Row, Verdict};
use crate::command::skew;
use catalog::Catalog;
use cluster::{Server, about, lease};
use jiff::{SignedDuration, Timestamp};

/// The name of the check without which there are no others.
pub(super) const CHECK: &str = "api server";
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
pub(super) async fn operator(server: &Server, namespace: &str, catalog: &Catalog) -> Row {
    let holder = match lease::holder(server, namespace).await {
        Ok(holder) => holder,
        Err(failure) => {
            return Row::new(
                "operator",
                Verdict::Info,
                "its lease cannot be read",
                format!("grant get on leases: {failure}"),
            );
        }
    };
    let Some(holder) = holder else {
        let remedy = format!(
            "nothing is reconciled; check the Deployment in namespace {namespace} (without --leader-elect there is no lease)"
        );
        return Row::new("operator", Verdict::Warn, "no operator leads", remedy);
    };
    match skew::with_leader(server, namespace, &skew::Release::of(catalog)).await {
        Some(warning) => Row::new("operator", Verdict::Warn, format!("{} leads", holder.name), warning),
        None => Row::ok("operator", format!("{} leads", holder.name)),
    }
}

#[cfg(test)]
mod tests {
    use super::{Verdict, clock, minor};
    use jiff::Timestamp;

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
