//! Compares this binary with the operator that runs in the cluster: another version or asset pack may decide differently.

use catalog::Catalog;
use cluster::Server;
use cluster::lease::{Replica, holder};
use jiff::Timestamp;
use std::collections::BTreeMap;

/// What decisions depend on besides the cluster.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Release {
    version: String,
    digest: String,
}

impl Release {
    /// This binary with a catalogue.
    pub(super) fn of(catalog: &Catalog) -> Release {
        Release { version: env!("CARGO_PKG_VERSION").to_owned(), digest: catalog.digest() }
    }
}

/// What the operator says about itself on its lease while it leads.
pub(super) fn leader(pod: &str, catalog: &Catalog, started: Timestamp) -> Replica {
    let Release { version, digest } = Release::of(catalog);
    let annotations = BTreeMap::from([
        (api::annotation::LEADER.to_owned(), format!("{pod} {version} {digest}")),
        (api::annotation::LEADER_STARTED.to_owned(), format!("{pod} {started}")),
    ]);
    Replica { name: pod.to_owned(), annotations }
}

/// A warning, if an operator leads that is another release. Whoever may not read the lease gets none.
pub(super) async fn with_leader(server: &Server, namespace: &str, ours: &Release) -> Option<String> {
    difference(&holder(server, namespace).await.ok()??.replica, ours)
}

pub(super) fn difference(leader: &Replica, ours: &Release) -> Option<String> {
    let published = leader.annotations.get(api::annotation::LEADER)?;
    let [pod, version, digest] = published.split(' ').collect::<Vec<_>>().try_into().ok()?;
    // An operator that publishes nothing, such as the predecessor, keeps the annotation of the last one.
    if pod != leader.name {
        return None;
    }
    let advice = "use its version and its --assets-dir to see what it decides";
    match (version == ours.version, digest == ours.digest) {
        (true, true) => None,
        (false, _) => {
            Some(format!("the operator in pod {pod} is version {version}, this is version {}; {advice}", ours.version))
        }
        (true, false) => Some(format!(
            "the operator in pod {pod} has the asset pack {digest}, this command has {}; {advice}",
            ours.digest
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::{Release, difference};
    use cluster::lease::Replica;
    use std::collections::BTreeMap;

    #[test]
    fn another_version_or_asset_pack_of_the_leader_is_a_warning() {
        let ours = Release { version: "1.0".into(), digest: "sha256:a".into() };
        let warning = |pod: &str, published: &str| {
            let annotations = BTreeMap::from([(api::annotation::LEADER.to_owned(), published.to_owned())]);
            difference(&Replica { name: pod.into(), annotations }, &ours).unwrap_or_default()
        };
        assert_eq!(warning("p", "p 1.0 sha256:a"), "");
        assert!(
            warning("p", "p 2.0 sha256:a").starts_with("the operator in pod p is version 2.0, this is version 1.0; ")
        );
        assert!(warning("p", "p 1.0 sha256:b").contains("has the asset pack sha256:b, this command has sha256:a; "));
        assert_eq!(warning("other", "p 2.0 sha256:a"), "", "it was published by a former leader");
        assert_eq!(warning("p", "strange"), "");
    }
}
