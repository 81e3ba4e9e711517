//! The metrics of the fleet follow its objects and what its core reports.

use super::Fleet;
use api::fleet::{ClaimPhase, FailureClass};
use api::metric::{self, Form};
use change::Live;
use fleet::Notice;
use fleet::hypervisor::{MachineId, Owner, Power};
use fleet::object::{Name, fleet_kind};
use hypervisor::{Exchange, Status};
use protocol::{Body, WatchEvent, WatchTarget};
use serde_json::{Value, json};
use std::time::Duration;

fn target(kind: &str) -> WatchTarget {
    WatchTarget { kind: fleet_kind(kind), namespace: String::new(), name: String::new() }
}

fn seen(fleet: &Fleet, kind: &str, name: &str, object: Value) {
    let (namespace, name) = ("ci".to_owned(), name.to_owned());
    let event =
        WatchEvent::Present { namespace, name, live: Live::default(), generation: 1, body: Body::Whole(object) };
    fleet.observe(&target(kind), &event);
}

fn gone(fleet: &Fleet, kind: &str, name: &str) {
    let event = WatchEvent::Gone { namespace: "ci".into(), name: name.into(), version: "9".into() };
    fleet.observe(&target(kind), &event);
}

fn name(name: &str) -> Name {
    Name::new("ci", name)
}

fn claim(claim: &str, phase: ClaimPhase, reason: &str, ready_after: Option<u64>) -> Notice {
    Notice::Claim {
        name: name(claim),
        uid: "u".into(),
        phase: Some(phase),
        reason: reason.into(),
        message: String::new(),
        machine: None,
        ready_after: ready_after.map(Duration::from_secs),
    }
}

fn operation(failure: Option<FailureClass>) -> Notice {
    let failure = failure.map(|class| (class, "no answer".to_owned()));
    Notice::Operation {
        cluster: name("pve"),
        claim: None,
        machine: None,
        node: None,
        operation: "create",
        took: Duration::from_secs(3),
        failure,
    }
}

fn orphan(is_destroyed: bool) -> Notice {
    let owner = Owner { operator: "o".into(), claim: "ci/old".into(), uid: "x".into() };
    Notice::Orphan { cluster: name("pve"), machine: MachineId("7".into()), owner, is_destroyed }
}

/// A fleet with a hypervisor, a template, a pool and two claims of which one has a machine.
fn filled() -> Fleet {
    let fleet = Fleet::new();
    fleet.requested("webhook", "accepted");
    fleet.requested("exchange", "granted");
    let status =
        json!({"orphans": ["7 (ci/old)"], "availableResources": {"cpu": 12, "memory": "3Gi", "storage": "1Gi"}});
    seen(&fleet, "HypervisorCluster", "pve", json!({"status": status}));
    seen(&fleet, "HypervisorMachineTemplate", "linux", json!({"spec": {"hypervisorClusterRef": {"name": "pve"}}}));
    let counts = json!({"desiredReplicas": 4, "replicas": 3, "readyReplicas": 2, "failedReplicas": 1});
    seen(&fleet, "RunnerPool", "pool", json!({"status": counts}));
    let spec = json!({"templateRef": {"name": "linux"}});
    seen(&fleet, "MachineClaim", "new", json!({"spec": spec}));
    let status = json!({"phase": "Bootstrapping", "vmRef": {"hypervisorCluster": "ci/pve", "vmId": "1"}});
    seen(&fleet, "MachineClaim", "one", json!({"spec": spec, "status": status}));
    let (uid, message) = (String::new(), String::new());
    fleet.record(&Notice::Cluster { name: name("pve"), uid, is_ready: true, reason: "ConnectionSuccessful", message });
    fleet.record(&claim("one", ClaimPhase::Ready, "Ready", Some(42)));
    fleet.record(&operation(Some(FailureClass::Transient)));
    fleet.record(&orphan(false));
    fleet.record(&orphan(true));
    let powers = [(Power::Running, 2), (Power::Stopped, 1), (Power::Unknown, 0)];
    fleet.record(&Notice::Machines { cluster: name("pve"), powers });
    let (path, duration) = ("/nodes/{node}/qemu/{vmid}/clone", Duration::from_millis(30));
    fleet.exchanged(&Exchange { method: "POST", path, status: Status::ServerError, duration });
    fleet
}

fn assert_lines(fleet: &Fleet, lines: &[&str]) {
    let text = fleet.text();
    for line in lines {
        assert!(text.contains(&format!("\nvirtpilot_fleet_{line}\n")), "{line}\n{text}");
    }
}

#[test]
fn every_metric_of_the_table_is_exported_with_its_labels_and_no_claim_is_named() {
    let fleet = filled();
    super::jobs::tests::fill(&fleet);
    let text = fleet.text();
    for metric in metric::FLEET.into_iter().chain(metric::FLEET_JOBS) {
        let full = metric.name_after(metric::FLEET_PREFIX);
        let start = match metric.form {
            Form::Histogram => format!("{full}_count{{"),
            _ if metric.labels.is_empty() => format!("{full} "),
            _ => format!("{full}{{"),
        };
        let line = text.lines().find(|line| line.starts_with(&start)).unwrap_or_else(|| panic!("{full}\n{text}"));
        assert_eq!(line.matches("=\"").count(), metric.labels.len(), "{line}");
        for label in metric.labels {
            assert!(line.contains(&format!("{label}=\"")), "{label}: {line}");
        }
    }
    assert!(!text.contains("ci/one") && !text.contains("ci/new"), "{text}");
}

#[test]
fn machines_pools_and_hypervisors_are_shown_as_they_are_now() {
    let fleet = filled();
    assert_lines(
        &fleet,
        &[
            "machines{hypervisor=\"ci/pve\",phase=\"Pending\"} 1",
            "machines{hypervisor=\"ci/pve\",phase=\"Bootstrapping\"} 1",
            "machines{hypervisor=\"ci/pve\",phase=\"Failed\"} 0",
            "hypervisor_ready{hypervisor=\"ci/pve\"} 1",
            "machines_by_power{hypervisor=\"ci/pve\",power=\"running\"} 2",
            "machines_by_power{hypervisor=\"ci/pve\",power=\"stopped\"} 1",
            "machines_by_power{hypervisor=\"ci/pve\",power=\"unknown\"} 0",
            "hypervisor_available_cpus{hypervisor=\"ci/pve\"} 12",
            "hypervisor_available_memory_bytes{hypervisor=\"ci/pve\"} 3221225472",
            "orphans{hypervisor=\"ci/pve\"} 1",
            "orphans_found_total{hypervisor=\"ci/pve\"} 1",
            "orphans_destroyed_total{hypervisor=\"ci/pve\"} 1",
            "pool_desired_machines{pool=\"ci/pool\"} 4",
            "pool_machines{pool=\"ci/pool\"} 3",
            "pool_ready_machines{pool=\"ci/pool\"} 2",
            "pool_failed_machines{pool=\"ci/pool\"} 1",
            "provisioning_duration_seconds_sum{template=\"ci/linux\"} 42.0",
            "provisioning_results_total{template=\"ci/linux\",result=\"Ready\"} 1",
            "operation_duration_seconds_sum{hypervisor=\"ci/pve\",operation=\"create\"} 3.0",
            "operation_errors_total{hypervisor=\"ci/pve\",operation=\"create\",class=\"Transient\"} 1",
            "leader 0",
        ],
    );
    gone(&fleet, "MachineClaim", "one");
    let (spec, status) = (json!({"templateRef": {"name": "linux"}}), json!({"phase": "Failed"}));
    seen(&fleet, "MachineClaim", "new", json!({"spec": spec, "status": status}));
    fleet.leads();
    let failed = "machines{hypervisor=\"ci/pve\",phase=\"Failed\"} 1";
    assert_lines(&fleet, &[failed, "machines{hypervisor=\"ci/pve\",phase=\"Bootstrapping\"} 0", "leader 1"]);
}

#[test]
fn a_failure_is_counted_once_also_if_a_restart_reports_it_again() {
    let fleet = filled();
    fleet.record(&claim("new", ClaimPhase::Failed, "BootTimeout", None));
    let line = "provisioning_results_total{template=\"ci/linux\",result=\"BootTimeout\"} 1";
    assert_lines(&fleet, &[line]);
    let spec = json!({"templateRef": {"name": "linux"}});
    seen(&fleet, "MachineClaim", "new", json!({"spec": spec, "status": {"phase": "Failed"}}));
    fleet.record(&claim("new", ClaimPhase::Failed, "BootTimeout", None));
    fleet.record(&claim("one", ClaimPhase::Provisioning, "Retrying", None));
    assert_lines(&fleet, &[line]);
    assert!(!fleet.text().contains("Retrying"));
}

#[test]
fn the_series_of_an_object_end_with_it_and_a_late_answer_begins_none() {
    let fleet = filled();
    for (kind, name) in [("MachineClaim", "one"), ("MachineClaim", "new"), ("RunnerPool", "pool")] {
        gone(&fleet, kind, name);
    }
    assert!(!fleet.text().contains("pool=\""), "{}", fleet.text());
    gone(&fleet, "HypervisorMachineTemplate", "linux");
    assert!(!fleet.text().contains("ci/linux"), "{}", fleet.text());
    // A list that does not name it says the same as its deletion.
    let listed = WatchEvent::Listed { all: [].into(), version: "9".into(), verifies: false };
    fleet.observe(&target("HypervisorCluster"), &listed);
    fleet.record(&operation(Some(FailureClass::Resource)));
    fleet.record(&orphan(false));
    fleet.record(&claim("one", ClaimPhase::Ready, "Ready", Some(1)));
    assert!(!fleet.text().contains("ci/"), "{}", fleet.text());
}
