//! Plans for tests of their output.

use autopilot::plan::{Item, ItemState, Operation, Plan, Source};
use change::{Difference, Digest, Edit, Impact, Key, Kind, Shown};
use serde_json::json;

pub(super) fn item(asset: &str, kind: &str, namespace: &str, name: &str, operation: Operation) -> Item {
    let digest = Digest::of(&json!(asset));
    Item {
        asset: asset.into(),
        object: Some(Key { kind: Kind::new("v1", kind), namespace: namespace.into(), name: name.into() }),
        operation: Some(operation),
        state: ItemState::Ready,
        why: String::new(),
        needs_approval: false,
        approval: None,
        impact: Some(Impact::Low),
        restarts: None,
        disruption: String::new(),
        cost: String::new(),
        digest: Some(digest),
        diff: Vec::new(),
        source: Source::Server,
    }
}

fn added(path: &str, summary: &str) -> Difference {
    Difference { path: path.into(), edit: Edit::Added { after: Shown::Summary(summary.into()) } }
}

fn changed(path: &str, before: &str, after: &str) -> Difference {
    let value = |text: &str| Shown::Value(json!(text));
    Difference { path: path.into(), edit: Edit::Changed { before: value(before), after: value(after) } }
}

/// One of each.
pub(super) fn sample() -> Plan {
    let mut swap = item("swap", "MachineConfig", "", "90-worker-swap-online", Operation::Create);
    (swap.state, swap.needs_approval, swap.approval) = (ItemState::Waiting, true, swap.digest);
    swap.impact = Some(Impact::High);
    swap.disruption = "restarts 3 nodes of pool worker: worker-0, worker-1, worker-2".into();
    swap.diff = vec![
        added("file /etc/openshift/kubelet.conf.d/90-swap.conf", "0644, 9 lines"),
        added("unit swap-file.swap", "enabled, 5 lines"),
    ];
    let mut service = item("metrics", "Service", "openshift-cnv", "virt-platform-autopilot-metrics", Operation::Adopt);
    service.diff = vec![
        changed(".spec.selector.app", "handmade", "virt-platform-autopilot"),
        changed(".spec.note", "a long value that does not fit into the width of a terminal", "short\u{1b}[31m"),
        Difference {
            path: ".data.text".into(),
            edit: Edit::Lines { lines: vec!["-old".into(), "+new".into(), "...".into(), "+more".into()] },
        },
        Difference { path: ".spec.gone".into(), edit: Edit::Removed { before: Shown::Redacted } },
    ];
    service.source = Source::Local { why: "you may not patch Service".into() };
    let mut window = item("psi", "MachineConfig", "", "99-worker-psi", Operation::Change);
    (window.state, window.impact) = (ItemState::Waiting, Some(Impact::High));
    window.why = "it restarts nodes and waits for the next maintenance window, which opens Sat 01:00 UTC".into();
    window.diff = vec![changed(".spec.kernelArguments[0]", "psi=0", "psi=1")];
    let old = item("tombstones/old.yaml", "ConfigMap", "openshift-cnv", "old-settings", Operation::Delete);
    let record = item("recorded", "ConfigMap", "openshift-cnv", "recorded", Operation::Record);
    let mut held = item("held", "ConfigMap", "openshift-cnv", "held", Operation::Change);
    (held.state, held.operation) = (ItemState::Held, None);
    held.why = "mode is unmanaged: the object is left alone".into();
    let mut failed = item("failed", "ConfigMap", "openshift-cnv", "failed", Operation::Create);
    failed.state = ItemState::Failed;
    failed.why = "the API server refused it: data.color: Invalid value".into();
    Plan { items: vec![swap, window, service, old, record, held, failed], in_sync: 3 }
}

/// A plan of so many objects with long differences, of which the first needs an approval.
pub(super) fn large(count: usize) -> Plan {
    let mut items: Vec<Item> = (0..count)
        .map(|number| {
            let mut item = item(&format!("a{number}"), "ConfigMap", "n", &format!("map-{number}"), Operation::Change);
            item.diff = (0..20).map(|line| changed(&format!(".data.key-{line}"), "before", "after")).collect();
            item
        })
        .collect();
    items[0].needs_approval = true;
    items[0].state = ItemState::Waiting;
    items[0].approval = items[0].digest;
    Plan { items, in_sync: 0 }
}
