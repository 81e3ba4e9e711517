//! What users, nodes and other controllers do to the cluster of a story, and the faults that a story injects.

use crate::notice::{Notice, ObjectNotice};
use crate::testing::bed::{HCO, TestBed};
use crate::testing::fields::merge;
use crate::testing::requests::Fault;
use crate::testing::serving::Crd;
use change::Key;
use serde_json::{Value, json};

/// For [`TestBed::govern`]: the profile is ignored, and its objects are given to the autopilot.
pub(crate) const HANDED_OVER: &str = "handed over";

impl TestBed {
    /// Somebody creates an object.
    pub(crate) fn create(&mut self, manager: &str, object: &Value) {
        let key = Key::of(object).expect("it has a name");
        self.server.create(manager, &key, object).expect("it can be created");
    }

    /// Somebody changes an object by a plain update; the change is a merge patch.
    pub(crate) fn edit(&mut self, manager: &str, key: &str, change: &Value) {
        let key = self.key(key);
        let stored = self.server.update(manager, &key, |object| merge(object, change)).expect("it can be changed");
        if let Some(stored) = stored.filter(|_| key.kind.kind == "MachineConfigPool") {
            self.promises.pool_changed(&key.name, &stored.object, self.server.now);
        }
    }

    /// Somebody applies an object, without force; false if that conflicts.
    pub(crate) fn apply(&mut self, manager: &str, object: &Value) -> bool {
        let key = Key::of(object).expect("it has a name");
        self.server.apply(manager, &key, object, false).is_ok()
    }

    /// Somebody applies an object by force.
    pub(crate) fn apply_by_force(&mut self, manager: &str, object: &Value) {
        let key = Key::of(object).expect("it has a name");
        self.server.apply(manager, &key, object, true).expect("it can be applied");
    }

    /// Somebody deletes an object.
    pub(crate) fn delete(&mut self, key: &str) {
        let key = self.key(key);
        self.server.delete("person", &key, None).expect("it can be deleted");
    }

    /// Somebody sets or removes one of our annotations, as `kubectl annotate` does: `mode=unmanaged`, `mode-`.
    pub(crate) fn annotate(&mut self, key: &str, annotation: &str) {
        let (name, value) = match annotation.split_once('=') {
            Some((name, value)) => (name, json!(value)),
            None => (annotation.trim_end_matches('-'), Value::Null),
        };
        let name = format!("{}{name}", api::annotation::PREFIX);
        self.edit("kubectl-annotate", key, &json!({"metadata": {"annotations": {name: value}}}));
    }

    /// Somebody approves what the core asks for.
    pub(crate) fn approve(&mut self, key: &str) {
        let digest = self.asked_digest(key).unwrap_or_else(|| panic!("no approval of {key} is asked for"));
        self.annotate(HCO, &format!("approved={digest}"));
    }

    /// The digest that the core asked last to approve, for an object.
    pub(crate) fn asked_digest(&self, key: &str) -> Option<String> {
        let key = self.key(key);
        self.notices.iter().rev().find_map(|notice| match notice {
            Notice::Object(of, ObjectNotice::Held(reason), _) if *of == key => Some(reason.asked()?.to_string()),
            _ => None,
        })
    }

    /// A worker joins.
    pub(crate) fn node_joins(&mut self, name: &str, has_gpu: bool) {
        let capacity = json!({"cpu": "8", "nvidia.com/gpu": if has_gpu { "1" } else { "0" }});
        let labels = json!({"node-role.kubernetes.io/worker": ""});
        self.create("kubelet", &json!({"apiVersion": "v1", "kind": "Node", "metadata": {"name": name, "labels": labels}, "status": {"capacity": capacity}}));
    }

    /// A worker leaves.
    pub(crate) fn node_leaves(&mut self, name: &str) {
        self.delete(&format!("Node {name}"));
    }

    /// Somebody installs a CRD.
    pub(crate) fn install_crd(&mut self, crd: &Crd) {
        self.server.install_crd(crd);
    }

    /// Somebody removes a CRD, and with it all of its objects.
    pub(crate) fn remove_crd(&mut self, crd: &Crd) {
        self.server.remove_crd(crd);
    }

    /// The next write to an object meets this fault.
    pub(crate) fn fail_next(&mut self, key: &str, fault: Fault) {
        let key = self.key(key);
        self.faults.entry(key).or_default().push_back(fault);
    }

    /// Every write to an object meets this fault, until [`TestBed::accept`].
    pub(crate) fn fail_all(&mut self, key: &str, fault: Fault) {
        let key = self.key(key);
        self.refusals.insert(key, fault);
    }

    /// Writes to an object meet no fault any more.
    pub(crate) fn accept(&mut self, key: &str) {
        let key = self.key(key);
        self.refusals.remove(&key);
        self.faults.remove(&key);
    }

    /// The next so many reads fail: discoveries, queries, searches and single objects.
    pub(crate) fn fail_reads(&mut self, count: usize) {
        self.failing_reads = count;
    }

    /// Writes to an object are not carried out until [`TestBed::release`].
    pub(crate) fn hold_writes(&mut self, key: &str) {
        let key = self.key(key);
        self.held_writes.insert(key);
    }

    /// Writes to an object are carried out, but their answers are not delivered until [`TestBed::release`].
    pub(crate) fn hold_answers(&mut self, key: &str) {
        let key = self.key(key);
        self.held_answers.insert(key);
    }

    /// What was held back goes on.
    pub(crate) fn release(&mut self, key: &str) {
        let key = self.key(key);
        self.held_writes.remove(&key);
        self.held_answers.remove(&key);
    }

    /// Somebody creates the VirtPlatformConfig of a profile, or changes its action.
    pub(crate) fn govern(&mut self, profile: &str, action: &str) {
        let key = format!("VirtPlatformConfig {profile}");
        let spec = match action {
            HANDED_OVER => json!({"profile": profile, "action": "Ignore", "handOver": true}),
            action => json!({"profile": profile, "action": action, "handOver": null}),
        };
        match self.stored(&key) {
            Some(_) => self.edit("person", &key, &json!({"spec": spec})),
            None => self.create(
                "person",
                &json!({"apiVersion": "advisor.kubevirt.io/v1alpha1",
                "kind": "VirtPlatformConfig", "metadata": {"name": profile}, "spec": spec}),
            ),
        }
    }

    /// The advisor applies an object by force.
    pub(crate) fn advise(&mut self, mut object: Value) {
        object["metadata"]["annotations"]["advisor.kubevirt.io/profile"] = json!("density");
        self.apply_by_force(api::advisor::FIELD_MANAGER, &object);
    }

    /// One field of an object, by JSON pointer; null if it does not exist.
    pub(crate) fn value(&self, key: &str, pointer: &str) -> Value {
        self.stored(key).and_then(|stored| stored.object.pointer(pointer).cloned()).unwrap_or_default()
    }

    /// How many writes of the core have moved a resourceVersion.
    pub(crate) fn moves(&self) -> usize {
        self.made.iter().filter(|made| made.has_moved()).count()
    }
}
