//! Whether a pod has ended: no process of it runs, and none will.

/// What the API server reports of a pod.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Pod {
    /// Its uid.
    pub uid: String,
    /// Whether its phase is Failed or Succeeded: a kubelet starts no container of it any more.
    pub is_final: bool,
    /// How many containers it has.
    pub expected: usize,
    /// Those whose state is reported.
    pub containers: Vec<Container>,
    /// Whether the garbage collector of pods has ended it, because its node is gone from the API. It asks no kubelet.
    pub is_abandoned: bool,
}

/// The state of a container.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Container {
    /// It runs, or is about to.
    Active,
    /// The kubelet has seen it end.
    Terminated,
    /// The kubelet calls it ended because it cannot find it.
    Lost,
}

impl Pod {
    /// Whether the pod with this uid has ended, as its kubelet has seen it.
    ///
    /// The state of containers alone is not enough: it may be older than a container that was started again. A kubelet reports a final
    /// phase only after the last container has ended. A pod that is absent was perhaps deleted by force, so that says nothing.
    pub fn has_ended(&self, uid: &str) -> bool {
        self.uid == uid
            && self.is_final
            && !self.is_abandoned
            && self.expected > 0
            && self.containers.len() == self.expected
            && self.containers.iter().all(|container| *container == Container::Terminated)
    }
}

#[cfg(test)]
mod tests {
    use super::{Container, Pod};

    #[test]
    fn a_pod_has_ended_only_if_its_kubelet_has_seen_every_container_end() {
        let containers = vec![Container::Terminated, Container::Terminated];
        let pod = Pod { uid: "u".into(), is_final: true, expected: 2, containers, is_abandoned: false };
        assert!(pod.has_ended("u"));
        let of = |change: fn(&mut Pod)| {
            let mut pod = pod.clone();
            change(&mut pod);
            pod.has_ended("u")
        };
        assert!(!of(|pod| pod.uid = "v".into()), "another pod of the same name");
        assert!(!of(|pod| pod.is_final = false), "a container may be started again");
        assert!(!of(|pod| pod.is_abandoned = true), "no kubelet has confirmed it");
        assert!(!of(|pod| pod.containers[1] = Container::Active), "a container runs");
        assert!(!of(|pod| pod.containers[1] = Container::Lost), "a container may run");
        assert!(!of(|pod| pod.containers.truncate(1)), "nothing is known of a container");
        assert!(!Pod { uid: "u".into(), is_final: true, ..Pod::default() }.has_ended("u"));
    }
}
