//! What a node says of itself: its annotations, and whether it is ready and available.

use serde_json::{Value, json};

/// The annotations by which the operator and its daemon on the node coordinate.
pub mod annotation {
    /// The configuration that the node runs.
    pub const CURRENT: &str = "machineconfiguration.openshift.io/currentConfig";
    /// The configuration that it is to run.
    pub const DESIRED: &str = "machineconfiguration.openshift.io/desiredConfig";
    /// What the daemon is doing: `Done`, `Working`, `Degraded` or `Unreconcilable`.
    pub const STATE: &str = "machineconfiguration.openshift.io/state";
    /// Why it failed.
    pub const REASON: &str = "machineconfiguration.openshift.io/reason";
    /// The drain or uncordon that the daemon asks for.
    pub const DESIRED_DRAIN: &str = "machineconfiguration.openshift.io/desiredDrain";
    /// The last one that was carried out.
    pub const APPLIED_DRAIN: &str = "machineconfiguration.openshift.io/lastAppliedDrain";
}

/// Annotations of the stand-in alone.
pub mod control {
    /// Written by the stand-in: how often it restarted the node.
    pub const RESTARTS: &str = "playground.virtpilot.io/restarts";
    /// Set it, with any value, on a node that does not come back from a restart until the annotation is removed.
    pub const DOES_NOT_COME_BACK: &str = "playground.virtpilot.io/does-not-come-back";
    /// Set it on a node whose update fails until the annotation is removed; the value is the reason.
    pub const UPDATE_FAILS: &str = "playground.virtpilot.io/update-fails";
}

/// A node as the operator sees it.
#[derive(Clone, Copy)]
pub(crate) struct Node<'a>(pub(crate) &'a Value);

impl<'a> Node<'a> {
    pub(crate) fn name(self) -> &'a str {
        self.0["metadata"]["name"].as_str().unwrap_or_default()
    }

    /// The value of an annotation, empty without one.
    pub(crate) fn annotation(self, key: &str) -> &'a str {
        self.0["metadata"]["annotations"][key].as_str().unwrap_or_default()
    }

    pub(crate) fn has_annotation(self, key: &str) -> bool {
        !self.0["metadata"]["annotations"][key].is_null()
    }

    pub(crate) fn current(self) -> &'a str {
        self.annotation(annotation::CURRENT)
    }

    pub(crate) fn desired(self) -> &'a str {
        self.annotation(annotation::DESIRED)
    }

    pub(crate) fn state(self) -> &'a str {
        self.annotation(annotation::STATE)
    }

    /// Whether its conditions say that it works, cordoned or not.
    pub(crate) fn is_up(self) -> bool {
        let conditions = self.0["status"]["conditions"].as_array();
        conditions.into_iter().flatten().all(|condition| {
            let is = |status: &str| condition["status"] == status;
            match condition["type"].as_str() {
                Some("Ready") => is("True"),
                Some("DiskPressure" | "NetworkUnavailable") => is("False"),
                _ => true,
            }
        })
    }

    pub(crate) fn is_ready(self) -> bool {
        self.is_up() && self.0["spec"]["unschedulable"] != true
    }

    /// Whether it runs what it is to run.
    pub(crate) fn is_done(self) -> bool {
        !self.current().is_empty() && self.current() == self.desired() && self.state() == "Done"
    }

    /// Whether it was not possible to apply what it is to run.
    pub(crate) fn is_failing(self) -> bool {
        self.current() != self.desired() && self.is_degraded()
    }

    pub(crate) fn is_degraded(self) -> bool {
        ["Degraded", "Unreconcilable"].contains(&self.state())
    }

    /// Whether it counts against `maxUnavailable`: not ready, or an update has begun or will.
    pub(crate) fn is_unavailable(self) -> bool {
        !self.is_ready() || (!self.is_done() && !self.is_failing())
    }

    /// Its status with another `Ready` condition; the other conditions stay.
    pub(crate) fn status_with_ready(self, is_ready: bool, at: &str) -> Value {
        let (status, reason, message) = if is_ready {
            ("True", "KubeletReady", "kubelet is posting ready status")
        } else {
            ("Unknown", "NodeStatusUnknown", "Kubelet stopped posting node status.")
        };
        let mut conditions = self.0["status"]["conditions"].as_array().cloned().unwrap_or_default();
        let known = conditions.iter_mut().find(|condition| condition["type"] == "Ready");
        let ready = json!({
            "type": "Ready", "status": status, "reason": reason, "message": message,
            "lastHeartbeatTime": at, "lastTransitionTime": at,
        });
        match known {
            Some(condition) if condition["status"] == status => {}
            Some(condition) => *condition = ready,
            None => conditions.push(ready),
        }
        json!(conditions)
    }
}
