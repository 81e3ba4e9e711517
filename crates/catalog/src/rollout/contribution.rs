//! What one object brings into the configuration of nodes, and of which pools.

use super::contents::Contents;
use crate::cluster::pool::Pool;
use crate::cluster::selector::{Labels, Selector};
use change::{Impact, Kind};
use serde_json::Value;

const GROUP: &str = "machineconfiguration.openshift.io";

/// What one object brings in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Contribution {
    /// The parts; `None` if they cannot be told from its content.
    pub contents: Option<Contents>,
    place: Place,
    /// Whether a new object replaces all of an older one: of the KubeletConfigs of a pool the newest counts alone.
    replaces_others: bool,
}

/// The pools whose configuration an object is a part of.
#[derive(Debug, Clone, PartialEq, Eq)]
enum Place {
    /// Those that select these labels.
    Labels(Labels),
    /// Those that this selects.
    Selected(Selector),
    /// All.
    Everywhere,
    /// It does not say, so it may be all.
    Unknown,
}

impl Contribution {
    /// What an object of this kind brings in.
    pub fn of(kind: &Kind, object: &Value) -> Contribution {
        let place = match (kind.group.as_str(), kind.kind.as_str()) {
            (GROUP, "MachineConfig") => {
                let labels = object["metadata"]["labels"].as_object().into_iter().flatten();
                let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
                Place::Labels(labels.map(|(key, value)| (key.clone(), text(value))).collect())
            }
            (GROUP, "KubeletConfig" | "ContainerRuntimeConfig") => {
                let selector = object["spec"]["machineConfigPoolSelector"].clone();
                Place::Selected(serde_json::from_value(selector).unwrap_or_default())
            }
            (group, kind) if Impact::is_everywhere(group, kind) => Place::Everywhere,
            _ => Place::Unknown,
        };
        let replaces_others = kind.kind == "KubeletConfig";
        Contribution { contents: Contents::of(kind, object), place, replaces_others }
    }

    /// Whether its effect as a new object can be told by content.
    pub(super) fn is_told_by_content(&self, is_new: bool) -> bool {
        self.contents.is_some() && !(is_new && self.replaces_others)
    }

    /// Whether it does not say which pools it is for.
    pub(super) fn is_vague(&self) -> bool {
        self.place == Place::Unknown
    }

    /// Whether it is a part of a pool's configuration, or may be.
    pub(super) fn is_for(&self, pool: &Pool) -> bool {
        match &self.place {
            Place::Labels(labels) => pool.takes(labels),
            Place::Selected(selector) => selector.matches(&pool.labels),
            Place::Everywhere | Place::Unknown => true,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Contribution;
    use crate::cluster::pool::{Pool, ROLE};
    use change::Kind;
    use serde_json::{Value, json};

    #[test]
    fn an_object_is_for_the_pools_that_select_it_or_that_it_selects() {
        let pool = |name: &str, roles: &[&str]| {
            let selector = json!({"matchExpressions": [{"key": ROLE, "operator": "In", "values": roles}]});
            Pool {
                name: name.into(),
                labels: [(format!("pools/{name}"), String::new())].into(),
                machine_config_selector: serde_json::from_value(selector).unwrap(),
                ..Pool::default()
            }
        };
        let pools = [pool("master", &["master"]), pool("worker", &["worker"]), pool("infra", &["worker", "infra"])];
        let of = |api_version: &str, kind: &str, object: &Value| {
            let contribution = Contribution::of(&Kind::new(api_version, kind), object);
            let names = pools.iter().filter(|pool| contribution.is_for(pool)).map(|pool| pool.name.as_str());
            (names.collect::<Vec<_>>().join(" "), contribution.is_vague())
        };
        let machines = "machineconfiguration.openshift.io/v1";
        let labelled = |role: &str| json!({"metadata": {"labels": {ROLE: role}}});
        let selecting = json!({"spec": {"machineConfigPoolSelector": {"matchLabels": {"pools/master": ""}}}});
        for (api_version, kind, object, expected) in [
            (machines, "MachineConfig", labelled("worker"), "worker infra"),
            (machines, "MachineConfig", labelled("infra"), "infra"),
            (machines, "MachineConfig", labelled("gpu"), ""),
            (machines, "MachineConfig", json!({}), ""),
            (machines, "KubeletConfig", selecting.clone(), "master"),
            (machines, "ContainerRuntimeConfig", selecting, "master"),
            (machines, "KubeletConfig", json!({}), ""),
            ("config.openshift.io/v1", "Proxy", json!({}), "master worker infra"),
        ] {
            assert_eq!(of(api_version, kind, &object), (expected.to_owned(), false), "{kind} {object}");
        }
        // It may take nodes from any other pool.
        let pool = of(machines, "MachineConfigPool", &json!({"metadata": {"name": "infra"}}));
        assert_eq!(pool, ("master worker infra".to_owned(), true));
        let profile = of("performance.openshift.io/v2", "PerformanceProfile", &json!({}));
        assert_eq!(profile, ("master worker infra".to_owned(), true));
    }
}
