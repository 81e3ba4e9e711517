//! Stories about the whole core: given events, expect commands, feed their outcome back, expect silence.

mod adoption;
mod advice;
mod approval;
mod approval_faults;
mod creation;
mod document_races;
mod documents;
mod drift;
mod empty_values;
mod every_condition;
mod explain;
mod fights;
mod former_names;
mod handback;
mod kinds;
mod lost_watches;
mod many_deletions;
mod nodes;
mod one_owner;
mod overrides;
mod overview;
mod plan;
mod plan_differences;
mod plan_reads;
mod pool_reads;
mod pools;
mod prune;
mod published;
mod reads;
mod redaction;
mod refused_writes;
mod regressions;
mod restarts_by_content;
mod same_views;
mod settings;
mod status;
mod take_over;
mod tombstones;
mod unseen;
mod unserved;
mod windows;

use crate::notice::{Notice, ObjectNotice};
use crate::testing::bed::{HCO, TestBed};
use crate::testing::pack::Pack;
use api::FIELD_MANAGER;
use change::{LeftBehind, Live, Reason};
use protocol::{Body, Event, WatchEvent, WatchTarget};
use serde_json::{Value, json};
use std::time::Duration;

const SECOND: Duration = Duration::from_secs(1);
const MINUTE: Duration = Duration::from_secs(60);
const HOUR: Duration = Duration::from_secs(3_600);

const PLAIN: &str = "ConfigMap virt/plain";
const OPTED: &str = "ConfigMap virt/opted";
const OLD: &str = "ConfigMap virt/old";
const SERVICE: &str = "Service virt/service";
const KERNEL: &str = "MachineConfig kernel";

/// A ConfigMap.
fn config_map(name: &str, data: &Value) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name, "namespace": "virt"}, "data": data})
}

/// The ConfigMap of the asset `plain`, with another level.
fn plain(level: &str) -> Value {
    config_map("plain", &json!({"level": level}))
}

/// The MachineConfig of the asset `kernel`, with another argument.
fn kernel(argument: &str) -> Value {
    let metadata = json!({"name": "kernel", "labels": {"machineconfiguration.openshift.io/role": "worker"}});
    let spec = json!({"kernelArguments": [argument], "kernelType": "default"});
    json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig", "metadata": metadata, "spec": spec})
}

/// The template of the asset `kernel`, with another argument.
fn kernel_template(argument: &str) -> String {
    kernel(argument).to_string()
}

/// The keys of an asset for which somebody has to ask.
fn on_request(name: &str) -> String {
    format!(
        "install: opt-in, reconcile_order: 5, conditions: [{{type: annotation, key: platform.kubevirt.io/enable-{name}, value: \"true\"}}]"
    )
}

/// A ConfigMap with the color that the HyperConverged says.
fn painted() -> Pack {
    let data = "data: {color: '{{ index .HCO.GetAnnotations \"platform.kubevirt.io/color\" | default \"none\" }}'}";
    Pack::default().asset("painted", "install: always", &crate::testing::pack::config_map("painted", data))
}

/// The object with our label.
fn labelled(mut object: Value) -> Value {
    object["metadata"]["labels"][api::MANAGED_BY.0] = json!(api::MANAGED_BY.1);
    object
}

/// What the core has done after a second on a cluster with this pack is not shown.
fn settled(pack: Pack) -> TestBed {
    let mut bed = TestBed::of(pack);
    bed.advance(SECOND);
    bed
}

/// A cluster with these assets of the standard pack, on which the core has not run yet.
fn unstarted(assets: &[&str]) -> TestBed {
    TestBed::of(Pack::standard().only(assets))
}

/// The same after a second.
fn started(assets: &[&str]) -> TestBed {
    settled(Pack::standard().only(assets))
}

/// The same with an approved MachineConfig, of which the approval is taken back afterwards.
fn settled_with_kernel() -> TestBed {
    let mut bed = started(&["plain", "kernel"]);
    bed.approve(KERNEL);
    bed.settle();
    bed.roll_out();
    bed.annotate(HCO, "approved-");
    bed.settle();
    bed
}

impl TestBed {
    /// The predecessor applied an object: it has our label and our field manager, and no annotation of ours.
    fn inherit(&mut self, object: Value) {
        self.apply_by_force(FIELD_MANAGER, &labelled(object));
    }

    /// A former release of ours created an object.
    fn create_as_former_release(&mut self, mut object: Value) {
        object["metadata"]["annotations"][api::annotation::ORIGIN] = json!("created");
        self.inherit(object);
        self.roll_out();
    }

    /// The user says which color the asset `painted` has.
    fn paint(&mut self, color: &str) {
        self.annotate(HCO, &format!("color={color}"));
    }

    /// A watch reports this metadata of an object.
    fn report_live(&mut self, key: &str, live: Live) {
        let key = self.key(key);
        let (namespace, name) = (key.namespace.clone(), key.name.clone());
        let event = WatchEvent::Present { namespace, name, live, generation: 1, body: Body::None };
        self.handle(vec![Event::Watched(WatchTarget::of(&key), event)]);
    }

    /// The digest that a person has to approve for an object of a former release to be deleted.
    fn digest_of_tombstone(&self) -> String {
        let digest = self.notices.iter().rev().find_map(|notice| match notice {
            Notice::Object(
                _,
                ObjectNotice::Held(Reason::LeftBehind { why: LeftBehind::NoOriginUnlessApproved(digest) }),
                _,
            ) => Some(digest.to_string()),
            _ => None,
        });
        digest.expect("it was reported")
    }
}
