//! Changes that restart nodes although they look harmless, plans that do not show it, and reads that are too old: each was found by review.

use super::{HOUR, KERNEL, MINUTE, SECOND, kernel, started};
use crate::plan::moved;
use crate::testing::bed::{HCO, TestBed};
use crate::testing::pack::{ALWAYS, Pack};
use crate::testing::serving::Crd;
use protocol::Command;
use serde_json::{Value, json};

pub(super) const OURS: &str = "MachineConfig ours";
const WORKER: &str = "MachineConfigPool worker";
const ROLE: &str = "machineconfiguration.openshift.io/role";
const KUBELET_CONFIGS: Crd = Crd {
    api_version: "machineconfiguration.openshift.io/v1",
    kind: "KubeletConfig",
    plural: "kubeletconfigs",
    namespaced: false,
};

pub(super) fn machine_config(name: &str, spec: &Value) -> Value {
    json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
        "metadata": {"name": name, "labels": {ROLE: "worker"}}, "spec": spec})
}

pub(super) fn with_files(files: &Value) -> Value {
    json!({"config": {"ignition": {"version": "3.2.0"}, "storage": {"files": files}}})
}

pub(super) fn with_units(units: &Value) -> Value {
    json!({"config": {"ignition": {"version": "3.2.0"}, "systemd": {"units": units}}})
}

/// A cluster whose nodes run our MachineConfig with this spec, and on which a person has created these.
pub(super) fn running(spec: &Value, theirs: &[Value]) -> TestBed {
    let mut bed = TestBed::of(Pack::default().asset("ours", ALWAYS, &machine_config("ours", spec).to_string()));
    theirs.iter().for_each(|object| bed.create("person", object));
    bed.roll_out();
    bed.advance(SECOND);
    bed.approve(OURS);
    bed.advance(HOUR);
    assert!(bed.stored(OURS).is_some());
    bed.annotate(HCO, "approved-");
    bed.advance(HOUR);
    bed
}

/// Another release wants this spec.
pub(super) fn release_to(bed: &mut TestBed, spec: &Value) {
    bed.upgrade(|pack| pack.with_template("ours", &machine_config("ours", spec).to_string()));
}

/// Another release wants this spec; nobody approves it.
fn release(bed: &mut TestBed, spec: &Value) -> String {
    let before = bed.restarts_of("w0");
    release_to(bed, spec);
    let lines = bed.advance(HOUR);
    assert_eq!(bed.restarts_of("w0"), before, "nodes restart without an approval: {lines}");
    assert!(lines.contains("ApprovalRequired"), "{lines}");
    lines
}

#[test]
fn kernel_arguments_in_another_order_are_another_configuration() {
    let arguments = |one: u8, two: u8| json!({"kernelArguments": ["hugepagesz=1G", format!("hugepages={one}"), "hugepagesz=2M", format!("hugepages={two}")]});
    let mut bed = running(&arguments(4, 8), &[]);
    release(&mut bed, &arguments(8, 4));
}

#[test]
fn a_kernel_argument_that_is_given_twice_is_another_configuration() {
    let mut bed = running(&json!({"kernelArguments": ["console=tty0", "quiet"]}), &[]);
    release(&mut bed, &json!({"kernelArguments": ["console=tty0", "quiet", "console=tty0"]}));
}

#[test]
fn a_file_that_is_merged_with_that_of_another_object_is_missed_when_it_goes() {
    let base = with_files(&json!([{"path": "/etc/a", "mode": 384, "contents": {"source": "data:,theirs"}}]));
    let of = |names: &[&str]| {
        let files = names.iter().map(|name| json!({"path": name, "contents": {"source": "data:,ours"}}));
        with_files(&files.collect())
    };
    let mut bed = running(&of(&["/etc/a", "/etc/b"]), &[machine_config("05-theirs", &base)]);
    release(&mut bed, &of(&["/etc/b"]));
}

#[test]
fn a_unit_without_anything_but_a_name_is_a_unit() {
    let units = |names: &[&str]| with_units(&names.iter().map(|name| json!({"name": name, "contents": ""})).collect());
    let one = with_units(&json!([{"name": "a.service", "contents": "[Unit]"}]));
    let mut bed = running(&one, &[]);
    let mut two = units(&["a.service", "b.service"]);
    two["config"]["systemd"]["units"][0]["contents"] = json!("[Unit]");
    release(&mut bed, &two);
}

#[test]
fn units_in_another_order_are_another_configuration() {
    let units =
        |names: &[&str]| with_units(&names.iter().map(|name| json!({"name": name, "contents": "[Unit]"})).collect());
    let mut bed = running(&units(&["a.service", "b.service"]), &[]);
    release(&mut bed, &units(&["b.service", "a.service"]));
}

fn kubelet_config(name: &str, settings: &Value) -> Value {
    let selector = json!({"matchLabels": {"pools.operator.machineconfiguration.openshift.io/worker": ""}});
    json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "KubeletConfig", "metadata": {"name": name},
        "spec": {"machineConfigPoolSelector": selector, "kubeletConfig": settings}})
}

#[test]
fn a_kubelet_config_replaces_the_whole_configuration_of_another_one() {
    let ours = kubelet_config("ours", &json!({"maxPods": 500}));
    let mut bed = TestBed::of(Pack::default().asset("ours", ALWAYS, &ours.to_string()));
    bed.install_crd(&KUBELET_CONFIGS);
    for template in mco_stand_in::templates("worker") {
        if template["metadata"]["name"] != "00-worker" {
            bed.create("machine-config-operator", &template);
        }
    }
    bed.create("person", &kubelet_config("theirs", &json!({"maxPods": 500, "podPidsLimit": 100_000})));
    bed.roll_out();
    let before = bed.restarts_of("w0");
    let lines = bed.advance(HOUR);
    assert_eq!(bed.restarts_of("w0"), before, "nodes restart without an approval: {lines}");
    assert!(lines.contains("ApprovalRequired"), "{lines}");
}

#[test]
fn a_plan_shows_a_file_that_is_encoded_in_another_way_and_restarts_nodes() {
    let file = |source: &str| with_files(&json!([{"path": "/etc/a", "mode": 420, "contents": {"source": source}}]));
    let mut bed = running(&file("data:,a"), &[]);
    bed.annotate(HCO, "approval=none");
    bed.advance(SECOND);
    bed.upgrade(|pack| pack.with_template("ours", &machine_config("ours", &file("data:;base64,YQ==")).to_string()));
    let plan = bed.plan();
    let before = bed.restarts_of("w0");
    bed.advance(HOUR);
    assert_eq!(bed.restarts_of("w0"), before + 1);
    let item = plan.items.iter().find(|item| item.name() == OURS);
    let item = item.unwrap_or_else(|| panic!("the plan does not have it: {plan}"));
    assert!(item.is_pending() && item.restarts.is_some(), "{plan} {item:?}");
}

#[test]
fn a_plan_shows_a_file_from_elsewhere_whose_hash_changes() {
    let file = |hash: &str| {
        let contents = json!({"source": "https://example.com/a", "verification": {"hash": hash}});
        with_files(&json!([{"path": "/etc/a", "mode": 420, "contents": contents}]))
    };
    let mut bed = running(&file("sha512-1"), &[]);
    bed.upgrade(|pack| pack.with_template("ours", &machine_config("ours", &file("sha512-2")).to_string()));
    bed.advance(SECOND);
    let plan = bed.plan();
    let item = plan.items.iter().find(|item| item.name() == OURS);
    let item = item.unwrap_or_else(|| panic!("the plan does not have it: {plan}"));
    assert!(item.is_pending() && item.restarts.is_some() && !item.diff.is_empty(), "{plan} {item:?}");
}

#[test]
fn a_saved_plan_that_restarts_more_nodes_by_now_has_moved() {
    let mut bed = started(&["kernel"]);
    let saved = bed.plan();
    bed.node_joins("i0", false);
    bed.edit("person", "Node i0", &json!({"metadata": {"labels": {"node-role.kubernetes.io/infra": ""}}}));
    bed.create_pool("infra", &["worker", "infra"]);
    bed.advance(SECOND);
    let now = bed.plan();
    assert_ne!(saved.items[0].disruption, now.items[0].disruption);
    assert_ne!(moved(&saved, &now), [], "{} is approved as {}", now.items[0].disruption, saved.items[0].disruption);
}

#[test]
fn what_the_watch_said_after_a_read_was_sent_counts() {
    let mut bed = started(&["kernel"]);
    bed.advance(MINUTE);
    bed.approve(KERNEL);
    bed.run_until(|command| matches!(command, Command::Inspect { key, .. } if key.kind.kind == "MachineConfigPool"));
    // The server answers the read, and the answer is on its way when the pool degrades.
    let requests = std::mem::take(&mut bed.requests);
    requests.into_iter().for_each(|request| bed.carry_out(request));
    let answers = std::mem::take(&mut bed.answers);
    let mut conditions = bed.value(WORKER, "/status/conditions");
    conditions.as_array_mut().unwrap().iter_mut().filter(|one| one["type"] == "Degraded").for_each(|one| {
        one["status"] = json!("True");
    });
    bed.machine_config_operator = None;
    bed.edit("machine-config-operator", WORKER, &json!({"status": {"conditions": conditions}}));
    let target = protocol::WatchTarget::all("machineconfiguration.openshift.io/v1", "MachineConfigPool");
    while let Some(event) = bed.next_event(&target) {
        bed.handle(vec![event]);
    }
    bed.answers = answers;
    let lines = bed.settle();
    assert!(bed.stored(KERNEL).is_none(), "the core knew that the pool is degraded: {lines}");
}

#[test]
fn a_server_that_answers_slowly_is_reported_or_the_change_is_made() {
    let mut bed = started(&["kernel"]);
    bed.advance(MINUTE);
    bed.approve(KERNEL);
    let mut reads = 0;
    for _ in 0..120 {
        let is_read = |command: &Command<crate::Notice>| matches!(command, Command::Inspect { .. });
        for _ in 0..100 {
            if bed.requests.iter().any(is_read) || bed.stored(KERNEL).is_some() {
                break;
            }
            let events: Vec<_> = std::mem::take(&mut bed.answers);
            let requests = std::mem::take(&mut bed.requests);
            let targets: Vec<_> = bed.watches.keys().cloned().collect();
            let watched = targets.iter().filter_map(|target| bed.next_event(target)).collect::<Vec<_>>();
            bed.handle(events.into_iter().chain(watched).collect());
            requests.into_iter().for_each(|request| bed.carry_out(request));
        }
        reads += bed.requests.iter().filter(|command| is_read(command)).count();
        // Every read takes five seconds; everything else is fast.
        bed.set_clock(bed.now().monotonic.after(SECOND * 5));
        let requests = std::mem::take(&mut bed.requests);
        requests.into_iter().for_each(|request| bed.carry_out(request));
    }
    let lines = bed.lines.concat();
    let is_said = lines.contains("ReadFailed") || lines.contains("could not be read") || lines.contains("slow");
    assert!(bed.stored(KERNEL).is_some() || is_said, "{reads} reads in ten minutes, and nobody is told: {lines}");
}

#[test]
fn a_pool_without_a_configuration_does_not_make_us_read_all_machine_configs() {
    let mut bed = started(&["kernel"]);
    bed.machine_config_operator = None;
    let selector = json!({"matchExpressions": [{"key": ROLE, "operator": "In", "values": ["worker", "gpu"]}]});
    bed.create(
        "person",
        &json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool",
        "metadata": {"name": "gpu"}, "spec": {"machineConfigSelector": selector}}),
    );
    let lines = bed.advance_verbosely(MINUTE);
    let unnamed = lines.lines().filter(|line| line.trim_end() == "inspect MachineConfig");
    assert_eq!(unnamed.count(), 0, "a request without a name is a list: {lines}");
}

#[test]
fn a_new_pool_says_which_nodes_it_takes_from_others() {
    let pool = json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfigPool",
        "metadata": {"name": "infra"},
        "spec": {"machineConfigSelector": {"matchExpressions": [{"key": ROLE, "operator": "In", "values": ["worker", "infra"]}]},
            "nodeSelector": {"matchLabels": {"node-role.kubernetes.io/infra": ""}}}});
    let mut bed = TestBed::of(Pack::default().asset("pool", ALWAYS, &pool.to_string()));
    bed.edit("person", "Node w0", &json!({"metadata": {"labels": {"node-role.kubernetes.io/infra": ""}}}));
    let mut only = machine_config("50-infra", &json!({"kernelArguments": ["infra"]}));
    only["metadata"]["labels"][ROLE] = json!("infra");
    bed.create("person", &only);
    bed.roll_out();
    let before = bed.restarts_of("w0");
    let lines = bed.advance(SECOND);
    bed.approve("MachineConfigPool infra");
    bed.advance(HOUR);
    assert_eq!(bed.restarts_of("w0"), before + 1);
    assert!(!lines.contains("restarts no node"), "{lines}");
}

#[test]
fn a_deletion_that_restarts_nodes_does_not_say_that_it_restarts_none() {
    let base = with_files(&json!([{"path": "/etc/a", "mode": 384, "contents": {"source": "data:,theirs"}}]));
    let ours = with_files(&json!([{"path": "/etc/a", "contents": {"source": "data:,ours"}}]));
    let mut bed = TestBed::of(Pack::default().asset(
        "ours",
        &super::on_request("ours"),
        &machine_config("ours", &ours).to_string(),
    ));
    bed.create("person", &machine_config("05-theirs", &base));
    bed.roll_out();
    bed.annotate(HCO, "enable-ours=true");
    bed.advance(SECOND);
    bed.approve(OURS);
    bed.advance(HOUR);
    bed.annotate(HCO, "enable-ours=false");
    let lines = bed.advance(MINUTE);
    assert!(lines.contains("ApprovalRequired") && !lines.contains("restarts no node"), "{lines}");
}

#[test]
fn an_approval_for_one_pool_does_not_restart_nodes_of_another() {
    let mut bed = started(&["kernel"]);
    bed.node_joins("i0", false);
    bed.edit("person", "Node i0", &json!({"metadata": {"labels": {"node-role.kubernetes.io/infra": ""}}}));
    bed.create_pool("infra", &["worker", "infra"]);
    bed.advance(SECOND);
    let waiting = crate::status::waiting_by_pool(&bed.observe());
    let infra = waiting.iter().find(|waiting| waiting.pool == "infra").map(|waiting| waiting.changes.len());
    assert_eq!(infra, None, "\"approve --pool infra\" restarts the nodes of pool worker, too");
}

#[test]
fn what_was_rendered_for_a_paused_pool_is_not_what_its_nodes_run() {
    let mut bed = super::settled_with_kernel();
    bed.edit("person", WORKER, &json!({"spec": {"paused": true}}));
    bed.advance(MINUTE);
    // Nobody watches while somebody edits it; no node follows, because the pool is paused.
    bed.restart();
    bed.edit("kubectl-edit", KERNEL, &json!({"spec": {"kernelArguments": ["loud"]}}));
    bed.roll_out();
    let lines = bed.advance(MINUTE);
    assert_eq!(bed.value(KERNEL, "/spec/kernelArguments"), kernel("quiet")["spec"]["kernelArguments"], "{lines}");
}

#[test]
fn a_kernel_argument_that_another_object_has_too_is_appended_to_an_object_that_exists() {
    let theirs = machine_config("05-theirs", &json!({"kernelArguments": ["psi=1"]}));
    let mut bed = running(&json!({"kernelArguments": ["quiet"]}), &[theirs]);
    release(&mut bed, &json!({"kernelArguments": ["quiet", "psi=1"]}));
}

#[test]
fn an_extension_that_another_object_has_too_is_appended_to_an_object_that_exists() {
    let theirs = machine_config("05-theirs", &json!({"extensions": ["usbguard"]}));
    let mut bed = running(&json!({"kernelArguments": ["quiet"]}), &[theirs]);
    release(&mut bed, &json!({"kernelArguments": ["quiet"], "extensions": ["usbguard"]}));
}

#[test]
fn the_image_of_extensions_is_compared() {
    let spec = |image: &str| json!({"kernelArguments": ["quiet"], "baseOSExtensionsContainerImage": image});
    let mut bed = running(&spec("registry/a"), &[]);
    release(&mut bed, &spec("registry/b"));
}

#[test]
fn what_is_brought_back_is_all_that_the_object_had() {
    let of = |names: &[&str]| {
        let files = names.iter().map(|name| json!({"path": name, "mode": 420, "contents": {"source": "data:,x"}}));
        with_files(&files.collect())
    };
    let mut bed = running(&of(&["/etc/a", "/etc/b"]), &[]);
    // Somebody deletes it right before another release starts, which wants less: the nodes still run both files.
    bed.delete(OURS);
    bed.upgrade(|pack| pack.with_template("ours", &machine_config("ours", &of(&["/etc/b"])).to_string()));
    let lines = bed.settle();
    assert!(lines.contains("ApprovalRequired") && bed.stored(OURS).is_none(), "{lines}");
}

#[test]
fn a_pool_of_which_the_configuration_is_gone_is_read_again_before_a_write() {
    let mut bed = started(&["kernel"]);
    bed.machine_config_operator = None;
    let configuration = bed.value(WORKER, "/spec/configuration/name");
    bed.delete(&format!("MachineConfig {}", configuration.as_str().unwrap()));
    // So that everything is read once more.
    bed.restart();
    bed.advance(SECOND);
    bed.silent.insert("MachineConfigPool".to_owned());
    let conditions = json!([{"type": "Degraded", "status": "True"}]);
    bed.edit("machine-config-operator", WORKER, &json!({"status": {"conditions": conditions}}));
    bed.advance(MINUTE);
    bed.approve(KERNEL);
    let lines = bed.settle();
    assert!(bed.stored(KERNEL).is_none(), "the pool was read a minute ago, and is degraded: {lines}");
}

#[test]
fn taking_kernel_arguments_away_from_a_tuned_restarts_nodes_too() {
    let crd = Crd { api_version: "tuned.openshift.io/v1", kind: "Tuned", plural: "tuneds", namespaced: true };
    let tuned = |recommend: &Value| {
        json!({"apiVersion": crd.api_version, "kind": crd.kind, "metadata": {"name": "ours", "namespace": "virt"},
            "spec": {"recommend": [recommend]}})
        .to_string()
    };
    let labelled = tuned(&json!({"profile": "a", "priority": 1, "machineConfigLabels": {ROLE: "worker"}}));
    let plain = tuned(&json!({"profile": "a", "priority": 1, "match": [{"label": "x"}]}));
    let mut bed = TestBed::of(Pack::default().asset("ours", ALWAYS, &labelled));
    bed.install_crd(&crd);
    bed.advance(SECOND);
    bed.approve("Tuned virt/ours");
    bed.advance(MINUTE);
    bed.annotate(HCO, "approved-");
    bed.advance(MINUTE);
    assert!(bed.stored("Tuned virt/ours").is_some());
    bed.upgrade(|pack| pack.with_template("ours", &plain));
    let lines = bed.advance(MINUTE);
    assert!(lines.contains("ApprovalRequired"), "its MachineConfig goes, and nodes restart: {lines}");
}

#[test]
fn a_change_that_waits_for_pools_that_cannot_be_listed_says_so() {
    let mut bed = super::unstarted(&["plain", "kernel"]);
    bed.silent.insert("MachineConfigPool".to_owned());
    bed.advance(SECOND);
    bed.silent.clear();
    // Nobody may list pools.
    bed.lose_watch("MachineConfigPool");
    bed.advance(HOUR);
    let key = bed.key(KERNEL);
    let is_told = |notice: &crate::Notice| matches!(notice, crate::Notice::Object(of, ..) if *of == key);
    assert!(bed.notices.iter().any(is_told), "nothing is said about it: {:?}", bed.core.status());
}

#[test]
fn a_pool_that_flaps_is_neither_read_nor_reported_each_time() {
    let mut bed = started(&["kernel"]);
    bed.approve(KERNEL);
    bed.machine_config_operator = None;
    bed.is_verbose = true;
    let mut lines = String::new();
    for number in 0..60 {
        let status = if number % 2 == 0 { "True" } else { "False" };
        let conditions = json!([{"type": "Degraded", "status": status}, {"type": "Updating", "status": "True"}]);
        bed.edit("machine-config-operator", WORKER, &json!({"status": {"conditions": conditions}}));
        lines += &bed.advance(SECOND * 10);
    }
    let count = |text: &str| lines.matches(text).count();
    let events = count("notice RolloutStarted") + count("notice RolloutDegraded");
    let found = (count("inspect"), events, count("notice PoolNotReady"));
    assert!(found.0 <= 10 && found.1 + found.2 <= 20, "{found:?} reads and events in ten minutes");
}
