//! The stories of claims and pools, as text.

use super::{Explanation, Facts, Happened, PoolFacts, claim, happened, lines, pool, read_object, span};
use crate::cluster::Cluster;
use crate::machine::Claim;
use crate::pool::Pool;
use crate::template::Template;
use expect_test::{Expect, expect};
use jiff::Timestamp;
use serde_json::{Value, json};

const CREATED: &str = "2027-01-01T08:00:00Z";

fn text(explanation: &Explanation) -> String {
    let shown = |line: &super::Line| format!("{}\n", format!("{}{}", line.start, line.text).trim_end());
    lines(explanation).iter().map(shown).collect()
}

fn at(time: &str) -> Timestamp {
    time.parse().unwrap()
}

fn object(name: &str, spec: &Value, status: &Value) -> Value {
    let finalizers = ["hyperfleet.io/vm-cleanup"];
    json!({
        "metadata": {
            "namespace": "ci", "name": name, "uid": "u", "resourceVersion": "1", "generation": 1, "creationTimestamp": CREATED,
            "finalizers": finalizers,
        },
        "spec": spec,
        "status": status,
    })
}

fn condition(kind: &str, is_true: bool, reason: &str, message: &str) -> Value {
    let status = if is_true { "True" } else { "False" };
    json!({"type": kind, "status": status, "reason": reason, "message": message, "lastTransitionTime": CREATED})
}

fn one(status: &Value) -> Claim {
    read_object(object("one", &json!({"templateRef": {"name": "linux"}, "ttl": "2h"}), status)).unwrap()
}

fn template(is_valid: bool, reason: &str, message: &str) -> Template {
    let spec = json!({
        "hypervisorClusterRef": {"name": "pve"}, "template": {"proxmox": {"tag": "runner"}}, "resources": {"cpu": 4, "memory": "8Gi"},
    });
    let valid = condition("TemplateValid", is_valid, reason, message);
    read_object(object("linux", &spec, &json!({"conditions": [valid], "resolvedTemplate": "base (9000)"}))).unwrap()
}

fn good_template() -> Template {
    template(true, "ValidationSucceeded", "template base on pve1")
}

fn cluster(is_ready: bool, reason: &str, message: &str) -> Cluster {
    let spec = json!({"provider": "proxmox", "endpoint": "https://pve:8006", "limits": {"machines": 10}});
    let available = json!({"cpu": 16, "memory": "20Gi", "storage": "100Gi"});
    let ready = condition("Ready", is_ready, reason, message);
    let status = json!({"conditions": [ready], "version": "9.2", "availableResources": available});
    read_object(object("pve", &spec, &status)).unwrap()
}

fn good_cluster() -> Cluster {
    cluster(true, "ConnectionSuccessful", "version 9.2")
}

fn waiting(reason: &str, message: &str) -> Claim {
    one(&json!({"phase": "Pending", "conditions": [condition("Ready", false, reason, message)]}))
}

fn check(
    claim: &Claim,
    template: Option<&Template>,
    cluster: Option<&Cluster>,
    events: &[Happened],
    expected: &Expect,
) {
    let facts = Facts { claim, template, cluster, pool: None, machines: 3, events, now: at("2027-01-01T08:03:20Z") };
    expected.assert_eq(&text(&super::claim(&facts)));
}

#[test]
fn a_hypervisor_that_is_not_ready_decides_and_its_remedy_is_the_next_step() {
    let cluster = cluster(false, "MissingPrivileges", "missing privilege: VM.Clone on /pool/virtpilot; grant it");
    let claim = waiting("ClusterNotReady", "the HypervisorCluster ci/pve is not ready");
    check(
        &claim,
        Some(&good_template()),
        Some(&cluster),
        &[],
        &expect![[r#"
            MachineClaim ci/one
            Pending since 2027-01-01T08:00:00Z (3m20s ago), ClusterNotReady: the HypervisorCluster ci/pve is not ready
            Next: make the HypervisorCluster ci/pve ready: missing privilege: VM.Clone on /pool/virtpilot; grant it; "virtpilot fleet check" tells more

              machine     none yet
              template    ci/linux: 4 CPUs, 8Gi of memory, from base (9000)
              hypervisor  ci/pve: https://pve:8006, version 9.2
              pool        none: the claim was made by hand

              accepted           yes  finalizer hyperfleet.io/vm-cleanup is set
              template exists    yes  ci/linux
              hypervisor exists  yes  ci/pve
              hypervisor ready   no   MissingPrivileges: missing privilege: VM.Clone on /pool/virtpilot; grant it  <- decides
              template valid     -    ValidationSucceeded: template base on pve1
              limit              -    3 of 10 machines (limits.machines)
              capacity           -    4 CPUs and 8Gi of memory are needed, 16 CPUs and 20Gi of memory are left
              id                 -    none recorded of 100000 to 199999
              created            -
              started            -
              ready              -    the guest agent reports an address, within 10m

            End:
              the fleet deletes it at 2027-01-01T10:00:00Z (in 1h56m): ttl is 2h
              the fleet deletes it when its machine stops; until then it stays until somebody deletes it
              a deletion waits until its machine is gone: finalizer hyperfleet.io/vm-cleanup

            Timeline:
              2027-01-01T08:00:00Z  +0s      created             the claim was created
        "#]],
    );
}

#[test]
fn a_machine_that_is_ready_has_its_times_and_what_ends_it() {
    let status = json!({
        "phase": "Ready", "conditions": [condition("Ready", true, "Ready", "the machine is ready")],
        "vmRef": {"hypervisorCluster": "ci/pve", "vmId": "100001", "node": "pve1"},
        "networkInfo": {"ipAddress": "192.0.2.7", "addresses": ["192.0.2.7", "2001:db8::7"]},
        "createdTime": "2027-01-01T08:00:04Z", "startedTime": "2027-01-01T08:00:06Z", "readyTime": "2027-01-01T08:00:21Z",
    });
    let event = json!({
        "regarding": {"uid": "u"}, "reason": "Cloning", "note": "Provisioning: creating machine 100001 (machine 100001)",
        "eventTime": "2027-01-01T08:00:01.123456Z",
    });
    let events = [happened(&event, "u").unwrap()];
    assert_eq!(happened(&event, "other"), None);
    check(
        &one(&status),
        Some(&good_template()),
        Some(&good_cluster()),
        &events,
        &expect![[r#"
        MachineClaim ci/one
        Ready since 2027-01-01T08:00:21Z (2m59s ago): the machine is ready

          machine     100001 on node pve1 of ci/pve, named one
          addresses   192.0.2.7, 2001:db8::7
          template    ci/linux: 4 CPUs, 8Gi of memory, from base (9000)
          hypervisor  ci/pve: https://pve:8006, version 9.2
          pool        none: the claim was made by hand

          accepted           yes  finalizer hyperfleet.io/vm-cleanup is set
          template exists    yes  ci/linux
          hypervisor exists  yes  ci/pve
          hypervisor ready   yes  ConnectionSuccessful: version 9.2
          template valid     yes  ValidationSucceeded: template base on pve1
          limit              yes  3 of 10 machines (limits.machines)
          capacity           yes  the machine has its place
          id                 yes  100001 is recorded
          created            yes  2027-01-01T08:00:04Z
          started            yes  2027-01-01T08:00:06Z
          ready              yes  2027-01-01T08:00:21Z

        End:
          the fleet deletes it at 2027-01-01T10:00:00Z (in 1h56m): ttl is 2h
          the fleet deletes it when its machine stops; until then it stays until somebody deletes it
          a deletion waits until its machine is gone: finalizer hyperfleet.io/vm-cleanup

        Timeline:
          2027-01-01T08:00:00Z  +0s      created             the claim was created
          2027-01-01T08:00:01Z  +1s      Cloning             Provisioning: creating machine 100001 (machine 100001)
          2027-01-01T08:00:04Z  +4s      createdTime         the machine was seen to exist
          2027-01-01T08:00:06Z  +6s      startedTime         the machine was seen to run
          2027-01-01T08:00:21Z  +21s     readyTime           the machine was ready
    "#]],
    );
}

#[test]
fn a_failure_has_its_class_its_attempts_and_when_it_is_tried_again() {
    let message = "could not clone: storage local-lvm is locked";
    let status = json!({
        "phase": "Provisioning", "conditions": [condition("Ready", false, "Retrying", message)],
        "vmRef": {"hypervisorCluster": "ci/pve", "vmId": "100001", "node": "pve1"}, "attempts": 3,
        "lastFailure": {"class": "Transient", "message": message, "time": "2027-01-01T08:00:05Z"},
    });
    check(
        &one(&status),
        Some(&good_template()),
        Some(&good_cluster()),
        &[],
        &expect![[r#"
            MachineClaim ci/one
            Provisioning, Retrying: could not clone: storage local-lvm is locked
            Next: nothing: it is tried again

              machine     100001 on node pve1 of ci/pve, named one (recorded, not seen yet)
              template    ci/linux: 4 CPUs, 8Gi of memory, from base (9000)
              hypervisor  ci/pve: https://pve:8006, version 9.2
              pool        none: the claim was made by hand

              accepted           yes  finalizer hyperfleet.io/vm-cleanup is set
              template exists    yes  ci/linux
              hypervisor exists  yes  ci/pve
              hypervisor ready   yes  ConnectionSuccessful: version 9.2
              template valid     yes  ValidationSucceeded: template base on pve1
              limit              yes  3 of 10 machines (limits.machines)
              capacity           yes  4 CPUs and 8Gi of memory are needed, 16 CPUs and 20Gi of memory are left
              id                 yes  100001 is recorded
              created            no   Retrying: could not clone: storage local-lvm is locked  <- decides
              started            -
              ready              -    the guest agent reports an address, within 10m

            Last failure: Transient (it passes by itself): could not clone: storage local-lvm is locked; it failed 3 times in a row since 2027-01-01T08:00:05Z (3m15s ago), and is tried again 8 s after the last attempt

            End:
              the fleet deletes it at 2027-01-01T10:00:00Z (in 1h56m): ttl is 2h
              the fleet deletes it when its machine stops; until then it stays until somebody deletes it
              a deletion waits until its machine is gone: finalizer hyperfleet.io/vm-cleanup

            Timeline:
              2027-01-01T08:00:00Z  +0s      created             the claim was created
        "#]],
    );
}

#[test]
fn a_claim_that_is_deleted_says_what_its_finalizer_waits_for() {
    let message = "could not destroy machine 100001: no answer";
    let conditions = [
        condition("VMCleanedUp", false, "CleanupFailed", message),
        condition("Ready", false, "CleanupFailed", message),
    ];
    let status = json!({
        "phase": "Terminating", "conditions": conditions, "createdTime": "2027-01-01T08:00:04Z",
        "vmRef": {"hypervisorCluster": "ci/pve", "vmId": "100001", "node": "pve1"},
    });
    let mut deleted = object("one", &json!({"templateRef": {"name": "linux"}}), &status);
    deleted["metadata"]["deletionTimestamp"] = json!("2027-01-01T08:01:00Z");
    let claim: Claim = read_object(deleted).unwrap();
    check(
        &claim,
        None,
        Some(&good_cluster()),
        &[],
        &expect![[r#"
            MachineClaim ci/one
            Terminating since 2027-01-01T08:01:00Z (2m20s ago), CleanupFailed: could not destroy machine 100001: no answer
            Next: let ci/pve answer; or remove the machine by hand, and then: kubectl annotate machineclaim one --namespace ci hyperfleet.io/force-delete=true

              machine     100001 on node pve1 of ci/pve, named one
              template    ci/linux, which does not exist
              hypervisor  ci/pve: https://pve:8006, version 9.2
              pool        none: the claim was made by hand

              hypervisor exists  yes  ci/pve
              hypervisor ready   yes  ConnectionSuccessful: version 9.2
              machine gone       no   100001; CleanupFailed: could not destroy machine 100001: no answer  <- decides

            End:
              it is being deleted since 2027-01-01T08:01:00Z (2m20s ago)
              finalizer hyperfleet.io/vm-cleanup: the fleet removes it when machine 100001 was seen to be gone: could not destroy machine 100001: no answer

            Timeline:
              2027-01-01T08:00:00Z  +0s      created             the claim was created
              2027-01-01T08:00:04Z  +4s      createdTime         the machine was seen to exist
              2027-01-01T08:01:00Z  +1m      deletionTimestamp   somebody asked to delete the claim
        "#]],
    );
}

/// Every reason for which a claim waits is shown at its gate, and has a next step.
#[test]
fn every_reason_to_wait_decides_at_its_gate() {
    let cases = [
        (waiting("LimitReached", "there are 10 machines"), "limit", "raise limits.machines"),
        (waiting("InsufficientResources", "no node has 8 GiB"), "capacity", "raise its overcommit"),
        (waiting("NoFreeId", "no id from 1 to 2 is free"), "id", "widen vmIds"),
    ];
    let (template, cluster) = (good_template(), good_cluster());
    for (claim, gate, step) in &cases {
        let facts = Facts {
            claim,
            template: Some(&template),
            cluster: Some(&cluster),
            pool: None,
            machines: 10,
            events: &[],
            now: at(CREATED),
        };
        let told = super::claim(&facts);
        let decides: Vec<&str> = told.gates.iter().filter(|gate| gate.decides).map(|gate| gate.name).collect();
        assert_eq!(decides, [*gate]);
        assert!(told.next.contains(step), "{}", told.next);
    }
    let not_seen = read_object(object("one", &json!({"templateRef": {"name": "linux"}}), &Value::Null)).unwrap();
    let missing = waiting("TemplateNotFound", "there is no HypervisorMachineTemplate linux");
    let failed = one(&json!({"phase": "Failed", "conditions": [condition("Ready", false, "BootTimeout", "too long")]}));
    let invalid = self::template(false, "TemplateNotFound", "no template has the tag runner");
    for (claim, template, gate, step) in [
        (&not_seen, Some(&template), "accepted", "kubectl get deployments"),
        (&missing, None, "template exists", "create the HypervisorMachineTemplate linux in the namespace ci"),
        (
            &waiting("TemplateInvalid", "not valid"),
            Some(&invalid),
            "template valid",
            "correct the HypervisorMachineTemplate",
        ),
        (&failed, Some(&template), "created", "kubectl delete machineclaim one --namespace ci"),
    ] {
        let (cluster, now) = (Some(&cluster), at(CREATED));
        let told = claim_of(&Facts { claim, template, cluster, pool: None, machines: 0, events: &[], now });
        assert_eq!(told.gates.iter().find(|gate| gate.decides).map(|gate| gate.name), Some(gate));
        assert!(told.next.contains(step), "{}", told.next);
    }
}

fn claim_of(facts: &Facts<'_>) -> Explanation {
    claim(facts)
}

#[test]
fn a_pool_says_why_it_has_its_size_and_which_claim_to_look_at() {
    let spec = json!({
        "templateRef": {"name": "linux"}, "replicas": 1, "quota": {"cpu": 16},
        "scaling": {
            "minReplicas": 2, "maxReplicas": 5, "spares": {"booted": 1, "stopped": 0},
            "schedules": [{"from": "07:00", "to": "18:00", "minReplicas": 3}],
        },
        "lifecycle": {"maxLifetime": "24h"},
    });
    let status = json!({
        "observedGeneration": 1, "desiredReplicas": 3, "replicas": 3, "readyReplicas": 1,
        "conditions": [condition("Ready", false, "Starting", "1 of 3 machines are ready")],
    });
    let pool_object: Pool = read_object(object("pool", &spec, &status)).unwrap();
    let claims = [one(&json!({"phase": "Ready"})), waiting("InsufficientResources", "no room")];
    let template = good_template();
    let facts =
        PoolFacts { pool: &pool_object, claims: &claims, template: Some(&template), now: at("2027-01-01T08:03:20Z") };
    expect![[r#"
        RunnerPool ci/pool
        NotReady since 2027-01-01T08:00:00Z, Starting: 1 of 3 machines are ready
        Next: virtpilot fleet explain one --namespace ci

          demand   spec.replicas is 1, and 0 machines are busy: the larger number counts
          spares   1 that run, 0 that wait
          minimum  2; now 3 by 1 schedules: the larger number counts
          maximum  5, and as many as the quota allows: 16 CPUs, of which each machine takes 4 CPUs and 8Gi
          wanted   3: demand and running spares, at least the minimum, at most the maximum
          claims   1 Pending, 1 Ready

          template valid  yes  ValidationSucceeded: template base on pve1

        End:
          a machine is replaced after maxLifetime 24h
    "#]]
    .assert_eq(&text(&pool(&facts)));
}

#[test]
fn a_span_has_its_two_largest_units() {
    let cases = [(0, "0s"), (59, "59s"), (61, "1m1s"), (3_600, "1h"), (90_061, "1d1h"), (7_260, "2h1m")];
    for (seconds, shown) in cases {
        assert_eq!(span(seconds), shown);
    }
}
