//! The facts about a MachineConfigPool.

use crate::cluster::selector::{Labels, Selector};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// The label by which a MachineConfig names the role of the nodes that it is for.
pub const ROLE: &str = "machineconfiguration.openshift.io/role";

/// A `MachineConfigPool`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default, deny_unknown_fields)]
pub struct Pool {
    /// The name.
    pub name: String,
    /// Its labels.
    #[serde(skip_serializing_if = "Labels::is_empty")]
    pub labels: Labels,
    /// Whether changes are paused.
    pub paused: bool,
    /// Whether machines are being updated.
    pub updating: bool,
    /// Whether the update of a machine, or rendering a new configuration, failed.
    pub degraded: bool,
    /// Why, as its condition says.
    #[serde(skip_serializing_if = "String::is_empty")]
    pub degraded_because: String,
    /// The number of machines.
    pub machine_count: i64,
    /// The number of machines that run the configuration and are ready.
    pub updated_machine_count: i64,
    /// How many machines may be unavailable at a time: a number or a percentage.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub max_unavailable: Option<String>,
    /// The MachineConfigs that are rendered into its configuration.
    #[serde(skip_serializing_if = "Selector::is_empty")]
    pub machine_config_selector: Selector,
    /// The name of the rendered configuration that its machines are to run.
    pub wanted_configuration: String,
    /// The name of the rendered configuration that all of them run.
    pub running_configuration: String,
    /// The names of the MachineConfigs that the wanted configuration was rendered from.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub sources: Vec<String>,
    /// Since when all machines run it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub updated_at: Option<Timestamp>,
    /// Whether its status is about its present spec.
    pub is_observed: bool,
}

impl Pool {
    /// Whether a MachineConfig with these labels is rendered into its configuration.
    pub fn takes(&self, labels: &Labels) -> bool {
        self.machine_config_selector.matches(labels)
    }

    /// The names of the MachineConfigs that all its machines run, if they run what they should.
    pub fn running(&self) -> Option<&[String]> {
        (self.wanted_configuration == self.running_configuration).then_some(self.sources.as_slice())
    }

    /// How many of this number of machines are unavailable at a time, at most: a percentage is rounded down, and it is at least one.
    pub fn at_a_time(&self, machines: usize) -> usize {
        let text = self.max_unavailable.as_deref().unwrap_or("1");
        let most = match text.strip_suffix('%').map(str::parse::<usize>) {
            Some(Ok(percentage)) => machines.saturating_mul(percentage) / 100,
            Some(Err(_)) => 1,
            None => text.parse().unwrap_or(1),
        };
        most.max(1)
    }

    /// All that a restart of its nodes depends on. It stays the same while one node after the other is updated.
    pub fn condition(&self) -> Pool {
        Pool {
            updated_machine_count: 0,
            updating: self.why_not_ready().is_some(),
            running_configuration: String::new(),
            updated_at: None,
            is_observed: true,
            ..self.clone()
        }
    }

    /// Why its nodes should not get another change now. A change of a paused pool waits for the end of the pause.
    pub fn why_not_ready(&self) -> Option<String> {
        let Pool { name, machine_count: all, updated_machine_count: updated, .. } = self;
        let is_behind = self.wanted_configuration != self.running_configuration || updated < all || !self.is_observed;
        if self.degraded {
            Some(match self.degraded_because.as_str() {
                "" => format!("pool {name} is degraded"),
                why => format!("pool {name} is degraded ({why})"),
            })
        } else if self.paused {
            None
        } else if self.updating || is_behind {
            Some(format!("pool {name} is updating"))
        } else {
            None
        }
    }
}

#[cfg(test)]
mod tests {
    use super::Pool;

    fn healthy() -> Pool {
        Pool { name: "worker".into(), machine_count: 3, updated_machine_count: 3, is_observed: true, ..Pool::default() }
    }

    #[test]
    fn a_pool_is_ready_when_all_its_machines_run_what_they_should() {
        let updating = Some("pool worker is updating".to_owned());
        let degraded = Some("pool worker is degraded".to_owned());
        for (pool, expected) in [
            (healthy(), None),
            (Pool { machine_count: 0, updated_machine_count: 0, ..healthy() }, None),
            (Pool { updating: true, ..healthy() }, updating.clone()),
            (Pool { updated_machine_count: 2, ..healthy() }, updating.clone()),
            (Pool { is_observed: false, ..healthy() }, updating.clone()),
            // The status lags behind the configuration that was rendered.
            (Pool { wanted_configuration: "rendered-worker-2".into(), ..healthy() }, updating),
            (Pool { degraded: true, ..healthy() }, degraded.clone()),
            (Pool { degraded: true, paused: true, ..healthy() }, degraded),
            (
                Pool { degraded: true, degraded_because: "disk full".into(), ..healthy() },
                Some("pool worker is degraded (disk full)".to_owned()),
            ),
            (Pool { paused: true, wanted_configuration: "rendered-worker-2".into(), ..healthy() }, None),
        ] {
            assert_eq!(pool.why_not_ready(), expected, "{pool:?}");
        }
    }

    #[test]
    fn a_condition_stays_the_same_while_nodes_are_updated() {
        let begun = Pool {
            wanted_configuration: "rendered-2".into(),
            running_configuration: "rendered-1".into(),
            updating: true,
            updated_machine_count: 0,
            ..healthy()
        };
        let later = Pool { updated_machine_count: 2, updating: false, is_observed: false, ..begun.clone() };
        assert_eq!(begun.condition(), later.condition());
        let ended = Pool {
            running_configuration: "rendered-2".into(),
            updated_machine_count: 3,
            updating: false,
            updated_at: Some(jiff::Timestamp::UNIX_EPOCH),
            ..begun.clone()
        };
        let condition = ended.condition();
        assert_ne!(condition, begun.condition());
        assert_eq!((condition.updated_at, condition.running_configuration.as_str()), (None, ""));
        assert_eq!((condition.name.as_str(), condition.updating, condition.is_observed), ("worker", false, true));
    }

    #[test]
    fn a_percentage_of_machines_is_rounded_down_and_at_least_one() {
        for (text, machines, expected) in [
            (None, 5, 1),
            (Some("3"), 5, 3),
            (Some("0"), 5, 1),
            (Some("20%"), 5, 1),
            (Some("20%"), 14, 2),
            (Some("20%"), 3, 1),
            (Some("100%"), 3, 3),
            (Some("x%"), 9, 1),
            (Some("x"), 9, 1),
        ] {
            let pool = Pool { max_unavailable: text.map(str::to_owned), ..healthy() };
            assert_eq!(pool.at_a_time(machines), expected, "{text:?} of {machines}");
        }
    }
}
