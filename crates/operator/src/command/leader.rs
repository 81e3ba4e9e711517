//! Whether an operator leads: one rule for `status`, `check` and `approve`.

use cluster::lease::{Holder, Replica, holder};
use cluster::{Failure, Server};
use jiff::Timestamp;
use std::fmt;

/// The operator of a namespace, as its lease shows it.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Leader {
    /// It leads and renews its lease.
    Renewing(Replica),
    /// It holds the lease and does not renew it.
    Silent {
        pod: String,
        seconds: i64,
        /// When another replica may lead.
        until: Timestamp,
    },
    /// None leads in this namespace.
    None(String),
}

/// Finds the operator that leads.
pub(super) async fn find(server: &Server, namespace: &str) -> Result<Leader, Failure> {
    Ok(of(holder(server, namespace).await?, namespace))
}

fn of(holder: Option<Holder>, namespace: &str) -> Leader {
    match holder {
        Some(holder) if holder.is_renewing() => Leader::Renewing(holder.replica),
        Some(holder) => {
            Leader::Silent { pod: holder.replica.name, seconds: holder.silent_for.as_secs(), until: holder.until }
        }
        None => Leader::None(namespace.to_owned()),
    }
}

/// When the process of a leader started, if it says so.
pub(super) fn started(leader: &Replica) -> Option<Timestamp> {
    let (pod, started) = leader.annotations.get(api::annotation::LEADER_STARTED)?.split_once(' ')?;
    // A leader that publishes nothing, such as the predecessor, keeps the annotation of the last one.
    started.parse().ok().filter(|_| pod == leader.name)
}

/// When a change that waits for nothing is made.
pub(super) fn when_made(leader: &Result<Leader, Failure>) -> String {
    match leader {
        Ok(Leader::Renewing(_)) => "the operator makes the change at once".to_owned(),
        Ok(silent @ Leader::Silent { .. }) => format!("{silent}; the change is made when an operator leads"),
        Ok(Leader::None(namespace)) => {
            format!("no operator leads in namespace {namespace}; the change is made when one runs")
        }
        Err(failure) => format!("the operator makes the change when it runs (its lease cannot be read: {failure})"),
    }
}

impl fmt::Display for Leader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Leader::Renewing(replica) => write!(f, "{} leads", replica.name),
            Leader::Silent { pod, seconds, until } => write!(
                f,
                "pod {pod} has not renewed its lease for {seconds} s (it may have stopped; another takes over at {})",
                until.strftime("%H:%M:%S UTC")
            ),
            Leader::None(namespace) => write!(f, "none leads in namespace {namespace}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Leader, of, started, when_made};
    use cluster::Failure;
    use cluster::lease::{Holder, Replica};
    use jiff::SignedDuration;
    use std::collections::BTreeMap;

    fn holder(silent_for: i64) -> Holder {
        let replica = Replica { name: "p".into(), annotations: BTreeMap::new() };
        let until = "2026-01-01T10:00:00Z".parse().unwrap();
        Holder { replica, silent_for: SignedDuration::from_secs(silent_for), until }
    }

    #[test]
    fn only_a_leader_that_renews_its_lease_makes_changes_at_once() {
        let says = |holder: Option<Holder>| {
            let leader = of(holder, "n");
            (leader.to_string(), when_made(&Ok(leader)))
        };
        let (is, made) = says(Some(holder(20)));
        assert_eq!((is.as_str(), made.as_str()), ("p leads", "the operator makes the change at once"));
        let (is, made) = says(Some(holder(58)));
        let silent =
            "pod p has not renewed its lease for 58 s (it may have stopped; another takes over at 10:00:00 UTC)";
        assert_eq!((is, made), (silent.into(), format!("{silent}; the change is made when an operator leads")));
        let (is, made) = says(None);
        assert_eq!(is, "none leads in namespace n");
        assert_eq!(made, "no operator leads in namespace n; the change is made when one runs");
        let unknown = when_made(&Err(Failure::Unanswered("no".into())));
        assert_eq!(unknown, "the operator makes the change when it runs (its lease cannot be read: no)");
    }

    #[test]
    fn the_start_of_a_former_leader_is_not_that_of_this_one() {
        let says = |text: &str| {
            let annotations = BTreeMap::from([(api::annotation::LEADER_STARTED.to_owned(), text.to_owned())]);
            started(&Replica { name: "p".into(), annotations }).map(|time| time.to_string())
        };
        assert_eq!(says("p 2026-01-01T10:00:00.5Z").as_deref(), Some("2026-01-01T10:00:00.5Z"));
        assert_eq!((says("other 2026-01-01T10:00:00Z"), says("p soon"), says("p")), (None, None, None));
        assert_eq!(of(None, "n"), Leader::None("n".into()));
    }
}
