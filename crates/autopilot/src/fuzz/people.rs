//! What users, nodes and other controllers do at random.

use crate::testing::bed::{CONFIGS, DESCHEDULERS, HCO, HCOS, MACHINE_CONFIGS, TestBed};
use crate::testing::fields::merge;
use api::FIELD_MANAGER;
use change::{Key, Kind};
use serde_json::{Value, json};
use server_model::random::Random;

/// The objects of the standard pack, and the one that a template looks up.
pub(super) const OBJECTS: [&str; 10] = [
    "ConfigMap virt/plain",
    "ConfigMap virt/plain",
    "Service virt/service",
    "ConfigMap virt/opted",
    "ConfigMap virt/lasting",
    "ConfigMap virt/gpu",
    "ConfigMap virt/asking",
    "ConfigMap virt/old",
    "MachineConfig kernel",
    "KubeDescheduler virt/cluster",
];
const MANAGERS: [&str; 3] = ["kubectl-edit", "controller", FIELD_MANAGER];

/// Somebody does something; what fails has no effect.
pub(super) fn act(bed: &mut TestBed, random: &mut Random) {
    match random.below(100) {
        0..=13 => edit(bed, random),
        14..=19 => advisor(bed, random),
        20..=27 => delete(bed, random),
        28..=37 => apply(bed, random),
        38..=54 => steer_object(bed, random),
        55..=74 => steer_platform(bed, random),
        75..=80 => create(bed, random),
        81..=84 => spoil(bed, random),
        85..=88 => nodes(bed, random),
        89..=92 => look_up(bed, random),
        93..=95 => crds(bed, random),
        96 => hco(bed, random),
        97 => fight(bed, random),
        98 => lose_records(bed, random),
        _ => finalizers(bed, random),
    }
}

/// A field of an object that the pack sets, with another value now and then.
fn field(key: &Key, random: &mut Random) -> Value {
    let number = random.below(3).to_string();
    match key.kind.kind.as_str() {
        "Service" if random.chance(50) => {
            json!({"spec": {"ports": [{"name": "metrics", "port": 8080 + random.below(2)}]}})
        }
        "Service" => json!({"spec": {"selector": {"app": random.pick(&["virt", "other"])}}}),
        "MachineConfig" if random.chance(50) => json!({"spec": {"kernelArguments": [random.pick(&["quiet", "loud"])]}}),
        "MachineConfig" => json!({"spec": {"kernelType": if random.chance(50) { "realtime" } else { "default" }}}),
        "KubeDescheduler" => json!({"spec": {"mode": random.pick(&["Automatic", "Predictive"])}}),
        _ => {
            let name = random.pick(&["level", "level", "mode", "size", "driver", "color", "theirs"]);
            let value = random.pick(&["auto", "small", "open", "", &number, &number]);
            json!({"data": {name: value}})
        }
    }
}

fn update(bed: &mut TestBed, manager: &str, key: &Key, change: &Value) {
    bed.line(&format!("{manager} updates {key}: {change}"));
    let _ = bed.server.update(manager, key, |object| merge(object, change));
}

fn edit(bed: &mut TestBed, random: &mut Random) {
    let key = bed.key(random.pick(&OBJECTS));
    let change = match random.below(8) {
        0 => json!({"data": {"level": null}}),
        1 => json!({"spec": null}),
        2 => json!({"metadata": {"labels": {"theirs": random.below(3).to_string()}}}),
        _ => field(&key, random),
    };
    update(bed, random.pick(&MANAGERS), &key, &change);
}

/// Somebody hands objects to the advisor or takes them back, and the advisor writes, now and then just too late.
fn advisor(bed: &mut TestBed, random: &mut Random) {
    let config = bed.key("VirtPlatformConfig density");
    bed.install_crd(&CONFIGS);
    let action = random.pick(&["DryRun", "Apply", "Ignore"]);
    match random.below(6) {
        0 => {
            bed.line(&format!("somebody deletes {config}"));
            let _ = bed.server.delete("person", &config, None);
        }
        1..=3 => {
            bed.line(&format!("somebody sets the action {action}"));
            bed.govern("density", action);
        }
        _ => {
            let key = bed.key(random.pick(&["ConfigMap virt/plain", "ConfigMap virt/opted", "MachineConfig kernel"]));
            let mut object = named(&key);
            merge(&mut object, &field(&key, random));
            bed.line(&format!("the advisor applies {object}"));
            let _ = bed.server.apply(api::advisor::FIELD_MANAGER, &key, &object, true);
        }
    }
}

/// Another controller insists, for longer than any budget lasts.
fn fight(bed: &mut TestBed, random: &mut Random) {
    let (key, deletes) = (bed.key(random.pick(&OBJECTS)), random.chance(50));
    bed.line(&format!("a controller fights over {key}"));
    for _ in 0..if deletes { 12 } else { 30 } {
        if deletes {
            let _ = bed.server.delete("controller", &key, None);
        } else {
            let change = field(&key, random);
            let _ = bed.server.update("controller", &key, |object| merge(object, &change));
        }
        bed.run();
    }
}

fn delete(bed: &mut TestBed, random: &mut Random) {
    let key = bed.key(random.pick(&OBJECTS));
    bed.line(&format!("somebody deletes {key}"));
    let _ = bed.server.delete("person", &key, None);
}

fn named(key: &Key) -> Value {
    let mut object =
        json!({"apiVersion": key.kind.api_version(), "kind": key.kind.kind, "metadata": {"name": key.name}});
    if !key.namespace.is_empty() {
        object["metadata"]["namespace"] = json!(key.namespace);
    }
    object
}

fn apply(bed: &mut TestBed, random: &mut Random) {
    let key = bed.key(random.pick(&OBJECTS));
    let mut object = named(&key);
    if random.chance(70) {
        merge(&mut object, &field(&key, random));
    }
    let force = random.chance(60);
    let manager = random.pick(&["gitops", "helm"]);
    bed.line(&format!("{manager} applies {object}, force: {force}"));
    let _ = bed.server.apply(manager, &key, &object, force);
}

fn annotation(name: &str, value: Option<&str>) -> Value {
    json!({"metadata": {"annotations": {format!("{}{name}", api::annotation::PREFIX): value}}})
}

fn steer_object(bed: &mut TestBed, random: &mut Random) {
    let key = bed.key(random.pick(&OBJECTS));
    let soon = change::now::later(bed.server.now, std::time::Duration::from_secs(90)).to_string();
    let name = random.pick(&["patch", "patch", "ignore-fields", "ignore-fields", "mode", "reconcile-paused"]);
    let value: Option<&str> = match name {
        "patch" => random.pick(&[
            None,
            Some(r#"[{"op": "add", "path": "/data/level", "value": "5"}]"#),
            Some(r#"[{"op": "add", "path": "/data/more", "value": "6"}]"#),
            Some(r#"[{"op": "replace", "path": "/data/level", "value": "invalid"}]"#),
            Some(r#"[{"op": "remove", "path": "/data/none"}]"#),
            Some(r#"[{"op": "add", "path": "/metadata/name", "value": "x"}]"#),
            Some(r#"[{"op": "add", "path": "/spec/selector", "value": {"app": "mine"}}]"#),
            Some("nonsense"),
        ]),
        "ignore-fields" => random.pick(&[
            None,
            Some("/data/level"),
            Some("/data/mode,/data/level"),
            Some("/spec/selector"),
            Some("/spec"),
            Some("x"),
        ]),
        "mode" => random.pick(&[None, None, Some("managed"), Some("Unmanaged"), Some("what")]),
        _ => random.pick(&[None, None, Some("true"), Some(soon.as_str()), Some("soon")]),
    };
    update(bed, "kubectl-annotate", &key, &annotation(name, value));
}

fn steer_platform(bed: &mut TestBed, random: &mut Random) {
    let key = bed.key(HCO);
    let asked = bed.asked_digest("MachineConfig kernel");
    let name = random.pick(&[
        "autopilot",
        "enable-opted",
        "enable-opted",
        "enable-lasting",
        "disabled-resources",
        "approval",
        "approved",
        "approved",
    ]);
    let value: Option<&str> = match name {
        "autopilot" => random.pick(&[
            None,
            None,
            Some("true"),
            Some("false"),
            Some("plain,kernel"),
            Some("plain,service,extras"),
            Some("extras"),
            Some("plian"),
        ]),
        "disabled-resources" => random.pick(&[
            None,
            None,
            Some("ConfigMap/plain"),
            Some("- {kind: ConfigMap, name: 'o*'}"),
            Some("- {kind: MachineConfig, name: kernel}"),
            Some("- {kind: ConfigMap"),
        ]),
        "approval" => random.pick(&[None, None, Some("none"), Some("high-impact")]),
        "approved" => random.pick(&[None, asked.as_deref(), asked.as_deref(), Some("sha256:00")]),
        _ => random.pick(&[None, Some("true"), Some("true"), Some("false"), Some("maybe")]),
    };
    update(bed, "kubectl-annotate", &key, &annotation(name, value));
}

/// Objects that exist before they are wanted: of somebody else, of the predecessor, or of a former release of ours.
pub(super) fn create(bed: &mut TestBed, random: &mut Random) {
    let key = bed.key(random.pick(&OBJECTS));
    let mut object = named(&key);
    merge(&mut object, &field(&key, random));
    let whose = random.below(4);
    if whose >= 2 {
        object["metadata"]["labels"] = json!({api::MANAGED_BY.0: api::MANAGED_BY.1});
    }
    if whose == 3 {
        object["metadata"]["annotations"] =
            json!({api::annotation::ORIGIN: "created", api::annotation::SOURCE: "former"});
    }
    bed.line(&format!("{} creates {object}", ["person", "gitops", "predecessor", "former release"][whose]));
    let _ = match whose {
        _ if bed.server.get(&key).is_some() => return,
        0 => bed.server.create("person", &key, &object),
        1 => bed.server.apply("gitops", &key, &object, false),
        _ => bed.server.apply(FIELD_MANAGER, &key, &object, false),
    };
}

/// Somebody writes what is ours to write.
fn spoil(bed: &mut TestBed, random: &mut Random) {
    let key = bed.key(random.pick(&OBJECTS));
    let change = match random.below(6) {
        0 => json!({"metadata": {"labels": {api::MANAGED_BY.0: null}}}),
        1 => json!({"metadata": {"labels": {api::MANAGED_BY.0: api::MANAGED_BY.1}}}),
        // Where there is none, it is not ours, and a new core cannot know that it was written later.
        2 if bed.server.get(&key).is_some_and(|stored| stored.annotation(api::annotation::ORIGIN).is_some()) => {
            annotation("origin", random.pick(&[None, Some("created"), Some("adopted")]))
        }
        3 => annotation("applied", random.pick(&[None, Some("sha256:00")])),
        4 => annotation("budget", random.pick(&[None, Some("0 0 0")])),
        _ => annotation("last-good-patch", random.pick(&[None, Some("nonsense")])),
    };
    update(bed, random.pick(&MANAGERS), &key, &change);
}

fn nodes(bed: &mut TestBed, random: &mut Random) {
    let name = random.pick(&["w0", "w1", "w2"]);
    let key = bed.key(&format!("Node {name}"));
    if bed.server.get(&key).is_some() {
        bed.line(&format!("{key} leaves"));
        bed.node_leaves(name);
    } else {
        let has_gpu = random.chance(60);
        bed.line(&format!("{key} joins, GPU: {has_gpu}"));
        bed.node_joins(name, has_gpu);
    }
}

fn look_up(bed: &mut TestBed, random: &mut Random) {
    let key = bed.key("ConfigMap virt/source");
    let mut object = named(&key);
    object["data"] = json!({"color": random.pick(&["red", "green", "invalid-not"])});
    if random.chance(30) {
        bed.line(&format!("somebody deletes {key}"));
        let _ = bed.server.delete("person", &key, None);
    } else if bed.server.get(&key).is_some() {
        update(bed, "person", &key, &json!({"data": object["data"]}));
    } else {
        bed.line(&format!("somebody creates {object}"));
        let _ = bed.server.create("person", &key, &object);
    }
}

fn crds(bed: &mut TestBed, random: &mut Random) {
    let crd = random.pick(&[DESCHEDULERS, DESCHEDULERS, MACHINE_CONFIGS, HCOS, CONFIGS]);
    if bed.server.serves(&Kind::new(crd.api_version, crd.kind)) {
        bed.line(&format!("the CRD of {} is removed", crd.kind));
        bed.remove_crd(&crd);
    } else {
        bed.line(&format!("the CRD of {} is installed", crd.kind));
        bed.install_crd(&crd);
    }
}

fn hco(bed: &mut TestBed, random: &mut Random) {
    let key = bed.key(HCO);
    if bed.server.get(&key).is_some() && random.chance(50) {
        bed.line("somebody deletes the HyperConverged");
        let _ = bed.server.delete("person", &key, None);
    } else {
        restore_hco(bed);
    }
}

/// Sees to it that there is a HyperConverged.
pub(super) fn restore_hco(bed: &mut TestBed) {
    bed.line("somebody creates the HyperConverged");
    bed.install_crd(&HCOS);
    if bed.stored(HCO).is_none() {
        bed.create_hco();
    }
}

fn lose_records(bed: &mut TestBed, random: &mut Random) {
    let key = bed.key(&format!("ConfigMap virt/{}", api::STATE));
    if random.pick(&[true, false]) {
        bed.line("somebody deletes the records");
        let _ = bed.server.delete("person", &key, None);
    } else {
        bed.line("somebody empties the records");
        let _ = bed.server.update("person", &key, |object| object["data"] = json!({}));
    }
}

fn finalizers(bed: &mut TestBed, random: &mut Random) {
    let key = bed.key(random.pick(&OBJECTS));
    let finalizers = random.pick(&[None, None, Some(["wait"])]);
    update(bed, "controller", &key, &json!({"metadata": {"finalizers": finalizers}}));
}
