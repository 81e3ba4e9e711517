//! The node disruption policy: changes after which nodes go on without a restart.

use serde::Deserialize;

/// The policy in force, from `status.nodeDisruptionPolicyStatus.clusterPolicies` of the MachineConfiguration `cluster`.
#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
pub struct DisruptionPolicy {
    files: Vec<Rule>,
    units: Vec<Rule>,
    sshkey: Actions,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Rule {
    /// Of a file; a folder stands for everything below it.
    path: String,
    /// Of a unit.
    name: String,
    #[serde(flatten)]
    actions: Actions,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Actions {
    actions: Vec<Action>,
}

#[derive(Debug, Clone, Default, PartialEq, Eq, Deserialize)]
#[serde(default)]
struct Action {
    #[serde(rename = "type")]
    kind: String,
}

impl Actions {
    /// Whether nodes need no restart. Without an action nothing is said.
    fn avoid_restart(&self) -> bool {
        !self.actions.is_empty() && self.actions.iter().all(|action| action.kind != "Reboot")
    }
}

impl DisruptionPolicy {
    /// Whether nodes restart for a change of this part of their configuration.
    pub(super) fn restarts_for(&self, entry: &str) -> bool {
        let rule = match entry.split_once(' ') {
            Some(("file", path)) => self.of_file(path),
            Some(("unit", rest)) => self.units.iter().find(|rule| rest.split(' ').next() == Some(rule.name.as_str())),
            _ if entry == "passwd" => return !self.sshkey.avoid_restart(),
            _ => None,
        };
        !rule.is_some_and(|rule| rule.actions.avoid_restart())
    }

    /// The rule with the longest path counts.
    fn of_file(&self, path: &str) -> Option<&Rule> {
        let is_for = |rule: &&Rule| {
            let below = path.strip_prefix(rule.path.trim_end_matches('/'));
            !rule.path.is_empty() && below.is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
        };
        self.files.iter().filter(is_for).max_by_key(|rule| rule.path.len())
    }
}

#[cfg(test)]
mod tests {
    use super::DisruptionPolicy;
    use serde_json::json;

    #[test]
    fn only_what_the_policy_names_goes_without_a_restart() {
        let actions = |kinds: &[&str]| kinds.iter().map(|kind| json!({"type": kind})).collect::<Vec<_>>();
        let policy: DisruptionPolicy = serde_json::from_value(json!({
            "files": [
                {"path": "/etc/a", "actions": actions(&["None"])},
                {"path": "/etc/a/b", "actions": actions(&["Drain", "Reboot"])},
                {"path": "/etc/empty", "actions": []},
            ],
            "units": [{"name": "x.service", "actions": [{"type": "Reload", "reload": {"serviceName": "x.service"}}]}],
            "sshkey": {"actions": actions(&["None"])},
        }))
        .unwrap();
        for (entry, restarts) in [
            ("file /etc/a", false),
            ("file /etc/a/c", false),
            ("file /etc/ab", true),
            ("file /etc/a/b", true),
            ("file /etc/a/b/c", true),
            ("file /etc/empty", true),
            ("file /etc/other", true),
            ("unit x.service contents", false),
            ("unit x.service y.conf", false),
            ("unit other.service contents", true),
            ("kernel argument quiet", true),
            ("kubelet maxPods", true),
            ("passwd", false),
        ] {
            assert_eq!(policy.restarts_for(entry), restarts, "{entry}");
        }
        assert!(DisruptionPolicy::default().restarts_for("passwd"));
    }
}
