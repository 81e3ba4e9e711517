//! The profile virt-higher-density.

use super::cluster::Bed;
use super::{item, line, object, pack, profile};
use catalog::profile::rolled_back;
use catalog::{Need, WantedResult};
use change::Impact;
use serde_json::{Value, json};

const NAME: &str = "virt-higher-density";
const SWAP: &str = "enable-kubelet-swap";
const DENSITY: &str = "configure-higher-density";

/// What is wanted of the HyperConverged, without the place that its version has for it.
fn density(bed: &Bed, options: &Value) -> Value {
    let wants = bed.with(&pack(), NAME, options);
    let spec = &object(&wants, DENSITY)["spec"];
    match bed.facts.hco["apiVersion"].as_str() {
        Some("hco.kubevirt.io/v1") => spec["virtualization"].clone(),
        _ => spec.clone(),
    }
}

fn ratio(bed: &Bed, options: &Value) -> Value {
    density(bed, options)["higherWorkloadDensity"]["memoryOvercommitPercentage"].clone()
}

#[test]
fn swap_comes_before_overcommit() {
    let wants = Bed::default().with(&pack(), NAME, &json!({}));
    let names: Vec<&str> = wants.items.iter().map(|item| item.name.as_str()).collect();
    assert_eq!(names, [SWAP, DENSITY]);
    assert_eq!(line(&wants, SWAP), "MachineConfig 90-worker-swap-online");
    assert_eq!([SWAP, DENSITY].map(|name| item(&wants, name).impact), [Impact::High, Impact::Medium]);
    assert!(object(&wants, SWAP).to_string().contains("failSwapOn:%20false"), "the kubelet starts with swap");
    let changed = object(&wants, DENSITY);
    assert_eq!(changed["metadata"], json!({"name": "kubevirt-hyperconverged", "namespace": "openshift-cnv"}));
    let fields: Vec<&String> = changed["spec"]["virtualization"].as_object().unwrap().keys().collect();
    assert_eq!(fields, ["higherWorkloadDensity", "ksmConfiguration"]);
}

#[test]
fn both_versions_of_the_hyperconverged_have_the_same_fields_at_their_place() {
    let expected = json!({"higherWorkloadDensity": {"memoryOvercommitPercentage": 150},
        "ksmConfiguration": {"nodeLabelSelector": {}}});
    let mut bed = Bed::default();
    assert_eq!(density(&bed, &json!({})), expected);
    bed.facts.hco["apiVersion"] = json!("hco.kubevirt.io/v1beta1");
    assert_eq!(density(&bed, &json!({})), expected);
}

#[test]
fn the_ratio_is_as_asked_for_and_lower_without_swap() {
    let (workers, masters) = (Bed::default(), Bed::compact(3));
    assert_eq!(ratio(&workers, &json!({})), 150);
    assert_eq!(ratio(&workers, &json!({"enableSwap": false})), 120);
    assert_eq!(ratio(&workers, &json!({"memoryToRequestRatio": 200})), 200);
    assert_eq!(ratio(&workers, &json!({"enableSwap": false, "memoryToRequestRatio": 110})), 110);
    assert_eq!(ratio(&masters, &json!({})), 120, "control plane nodes get no swap");
    assert_eq!(ratio(&masters, &json!({"memoryToRequestRatio": 110})), 110);
    let mut hosted = Bed::default();
    hosted.facts.topology.is_hcp = true;
    assert_eq!(ratio(&hosted, &json!({})), 120, "swap comes through the NodePool, or not at all");
    let wants = masters.with(&pack(), NAME, &json!({}));
    assert!(line(&wants, SWAP).contains("etcd must not wait for a disk"), "{}", line(&wants, SWAP));
}

#[test]
fn who_asks_for_more_than_is_safe_without_swap_is_told_before_anything_is_applied() {
    let mut hosted = Bed::default();
    hosted.facts.topology.is_hcp = true;
    for (bed, why) in [(Bed::compact(3), "every node is a control plane node"), (hosted, "a hosted control plane")] {
        let wants = bed.with(&pack(), NAME, &json!({"memoryToRequestRatio": 150}));
        let WantedResult::Broken(told) = &item(&wants, DENSITY).result else { panic!("{}", line(&wants, DENSITY)) };
        assert!(told.contains("memoryToRequestRatio 150 needs swap") && told.contains(why), "{told}");
        assert!(told.contains("set memoryToRequestRatio to 120 or less"), "{told}");
        let wants = bed.with(&pack(), NAME, &json!({"memoryToRequestRatio": 120}));
        assert_eq!(line(&wants, DENSITY), "HyperConverged kubevirt-hyperconverged");
        // Whoever has it from an earlier release can still roll it back.
        let (catalog, options) = (pack(), json!({"memoryToRequestRatio": 150}));
        let wants = rolled_back(&catalog, profile(&catalog, NAME), options.as_object(), &bed.facts);
        assert_eq!(line(&wants, DENSITY), "off: no HyperConverged kubevirt-hyperconverged");
    }
}

#[test]
fn pages_are_merged_on_all_nodes_on_the_selected_ones_or_nowhere() {
    let ksm = |options: Value| density(&Bed::default(), &options)["ksmConfiguration"].clone();
    let everywhere = json!({"nodeLabelSelector": {}});
    assert_eq!(ksm(json!({})), everywhere);
    assert_eq!(ksm(json!({"ksmConfiguration": {}})), everywhere);
    assert_eq!(ksm(json!({"ksmConfiguration": {"enabled": true}})), everywhere);
    assert_eq!(ksm(json!({"ksmConfiguration": {"enabled": false}})), Value::Null);
    let selector =
        json!({"matchLabels": {"a": "b"}, "matchExpressions": [{"key": "c", "operator": "In", "values": ["d"]}]});
    assert_eq!(
        ksm(json!({"ksmConfiguration": {"nodeLabelSelector": selector}})),
        json!({"nodeLabelSelector": selector})
    );
    let off = json!({"ksmConfiguration": {"enabled": false, "nodeLabelSelector": selector}});
    assert_eq!(ksm(off), Value::Null);
}

#[test]
fn swap_that_is_switched_off_is_off() {
    let wants = Bed::default().with(&pack(), NAME, &json!({"enableSwap": false}));
    assert_eq!(line(&wants, SWAP), "off: no MachineConfig 90-worker-swap-online");
}

#[test]
fn a_hyperconverged_is_never_created() {
    let mut bed = Bed::default();
    bed.facts.hco = Value::Null;
    let wants = bed.with(&pack(), NAME, &json!({}));
    assert_eq!(line(&wants, DENSITY), "not applicable: there is no HyperConverged; create it, and this is planned");
    let crd = Need::Crd { name: "hyperconvergeds.hco.kubevirt.io".into() };
    bed.facts.absent.insert(crd.clone());
    let wants = bed.with(&pack(), NAME, &json!({}));
    assert_eq!(item(&wants, DENSITY).result, WantedResult::Missing(crd));
}
