//! One hypervisor is broken in every way that people meet, one after the other: each is one condition with its remedy, nothing is lost, and
//! the machines of another hypervisor come and go as if nothing had happened.

use crate::fleet::Fleet;
use crate::operator::eventually;
use kube::api::DeleteParams;
use playground::fleet_site;
use playground::proxmox::{Fault, FaultEffect, Method, Options, ProxmoxStandIn, Setup, StandIn, Timing};
use serde_json::json;
use std::time::{Duration, Instant};

const TOKEN: &str = "fleet@pve!virtpilot";

/// What is broken, where that is shown, and how it is repaired.
struct Trouble {
    name: &'static str,
    breaks: fn(&mut StandIn),
    repairs: fn(&mut StandIn),
    /// Kind, name, condition and reason. Without a name it is the claim.
    shown: (&'static str, &'static str, &'static str, &'static str),
    /// A part of the message.
    remedy: &'static str,
}

const fn of_cluster(
    condition: &'static str,
    reason: &'static str,
) -> (&'static str, &'static str, &'static str, &'static str) {
    ("HypervisorCluster", "pve", condition, reason)
}

const TROUBLES: [Trouble; 7] = [
    Trouble {
        name: "wrong-token",
        breaks: |state| state.remove_token("fleet@pve", "virtpilot"),
        repairs: |state| state.set_token("fleet@pve", "virtpilot", Setup::FLEET_TOKEN.split_once('=').unwrap().1, true),
        shown: of_cluster("Ready", "ConfigurationError"),
        remedy: "token",
    },
    Trouble {
        name: "missing-privilege",
        breaks: |state| {
            state.revoke(TOKEN, "VM.Clone");
            state.revoke("fleet@pve", "VM.Clone");
        },
        repairs: |state| {
            for subject in ["fleet@pve", TOKEN] {
                state.grant(subject, "/pool/virtpilot", &["VM.Clone"]);
                state.grant(subject, "/vms/9000", &["VM.Clone"]);
            }
        },
        shown: of_cluster("Ready", "MissingPrivileges"),
        remedy: "VM.Clone on /pool/virtpilot",
    },
    Trouble {
        name: "no-quorum",
        breaks: |state| state.set_quorate(false),
        repairs: |state| state.set_quorate(true),
        shown: of_cluster("Ready", "NoQuorum"),
        remedy: "bring its nodes back",
    },
    Trouble {
        name: "clock-skew",
        breaks: |state| state.set_clock_ahead(3_600),
        repairs: |state| state.set_clock_ahead(0),
        shown: of_cluster("Ready", "ClockSkew"),
        remedy: "NTP",
    },
    Trouble {
        name: "node-down",
        breaks: |state| state.set_online("pve2", false),
        repairs: |state| state.set_online("pve2", true),
        shown: of_cluster("NodesOnline", "NodeOffline"),
        remedy: "pve2",
    },
    Trouble {
        name: "full-storage",
        breaks: |state| state.set_full("shared", true),
        repairs: |state| state.set_full("shared", false),
        shown: ("MachineClaim", "", "Ready", "InsufficientResources"),
        remedy: "free space",
    },
    Trouble {
        name: "unknown-template",
        breaks: |state| state.remove_vm(Setup::TEMPLATE),
        // The rights on a machine go with it.
        repairs: |state| {
            state.add_template(&Setup::cluster(Timing::short()).templates[0]);
            for subject in ["fleet@pve", TOKEN] {
                state.grant(subject, "/vms/9000", &["VM.Audit", "VM.Clone"]);
            }
        },
        shown: ("HypervisorMachineTemplate", "linux", "TemplateValid", "TemplateNotFound"),
        remedy: "runner",
    },
];

/// Starts the fleet with the hypervisor `pve` and another one, `calm`, which has a template of the same name.
async fn with_another_one() -> (Fleet, ProxmoxStandIn) {
    let fleet = Fleet::start_with(Timing::short(), "ci/pve-token,ci/pve-ca,ci/calm-token,ci/calm-ca").await;
    let calm = ProxmoxStandIn::start(&Options { setup: Setup::cluster(Timing::short()), ..Options::for_test() });
    let calm = calm.unwrap_or_else(|error| panic!("{error}"));
    fleet.connect_to("calm", &calm).await;
    fleet.add_template("calm", "calm").await;
    for cluster in ["pve", "calm"] {
        fleet.reason("HypervisorCluster", cluster, "ConnectionSuccessful").await;
    }
    (fleet, calm)
}

/// P2: it takes every connection and request, and answers none.
#[tokio::test(flavor = "multi_thread")]
async fn a_hypervisor_that_never_answers_delays_no_machine_of_another_one() {
    let (fleet, _calm) = with_another_one().await;
    // From a claim to its end.
    let cycle = async |name: &str| {
        let begun = Instant::now();
        fleet.apply("MachineClaim", name, json!({"templateRef": {"name": "calm"}})).await;
        fleet.ready_claim(name).await;
        fleet.delete("MachineClaim", name).await;
        begun.elapsed()
    };
    cycle("first").await;
    let usual = cycle("usual").await;
    fleet.claim("running").await;
    fleet.ready_claim("running").await;
    let (path, effect) = (String::new(), FaultEffect::Delay(Duration::from_secs(3_600)));
    fleet.proxmox.inject(Fault { method: None, path, contains: String::new(), skip: 0, times: u32::MAX, effect });
    for number in 0..20 {
        fleet.claim(&format!("stuck-{number}")).await;
    }
    fleet.api("MachineClaim").delete("running", &DeleteParams::default()).await.unwrap();
    eventually("requests hang", async || (fleet.proxmox.with(|state| state.fired_faults()) > 0).then_some(())).await;
    // The fleet gives up a request that hangs after 30 seconds: nobody here may have waited for one.
    for number in 0..3 {
        let took = cycle(&format!("calm-{number}")).await;
        assert!(took < usual * 2 + Duration::from_secs(15), "{took:?}, and before the trouble {usual:?}");
    }
    assert_eq!(fleet.denied(), Vec::<String>::new());
}

/// Another version of the Secret, which leads to a check.
async fn check(fleet: &Fleet, note: &str) {
    let (id, secret) = fleet.token();
    fleet.secret("pve-token", json!({"id": id, "secret": secret, "note": note})).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_trouble_of_a_hypervisor_is_one_condition_with_its_remedy_and_another_one_goes_on() {
    let (fleet, calm) = with_another_one().await;
    // The other one is used with a password, and no ticket lives long there.
    fleet.secret("calm-token", json!({"user": "fleet@pve", "password": "battery staple"})).await;
    let key = |key: &str| json!({"name": "calm-token", "key": key});
    let mut spec = fleet_site::cluster_spec("calm", &calm.address);
    spec["credentials"] = json!({"username": key("user"), "password": key("password")});
    fleet.apply("HypervisorCluster", "calm", spec).await;
    eventually("it is used with a password", async || (calm.count(Method::Post, "/access/ticket") > 0).then_some(()))
        .await;
    fleet.reason("HypervisorCluster", "calm", "ConnectionSuccessful").await;

    for Trouble { name, breaks, repairs, shown: (kind, of, condition, reason), remedy } in &TROUBLES {
        fleet.proxmox.with(breaks);
        check(&fleet, &format!("{name} breaks")).await;
        fleet.claim(name).await;
        let of = if of.is_empty() { name } else { of };
        let found = fleet.condition(kind, of, condition, reason).await;
        assert!(found.contains(remedy), "{name}: {found}");

        // An expired ticket is renewed before anybody sees that it was refused.
        let (other, logins) = (format!("calm-{name}"), calm.count(Method::Post, "/access/ticket"));
        calm.with(StandIn::expire_tickets);
        fleet.apply("MachineClaim", &other, json!({"templateRef": {"name": "calm"}})).await;
        let status = fleet.ready_claim(&other).await;
        assert!(status["lastFailure"].is_null() && status["attempts"].is_null(), "{status:#}");
        assert!(calm.count(Method::Post, "/access/ticket") > logins);
        fleet.delete("MachineClaim", &other).await;

        fleet.proxmox.with(repairs);
        check(&fleet, &format!("{name} is repaired")).await;
        fleet.ready_claim(name).await;
    }

    // A CA that does not fit, and a bridge that no node has.
    fleet.claim("wrong-ca").await;
    fleet.ready_claim("wrong-ca").await;
    fleet.secret("pve-ca", json!({"ca.crt": calm.ca_pem})).await;
    let found = fleet.reason("HypervisorCluster", "pve", "ConfigurationError").await;
    assert!(found.contains("certificate"), "{found}");
    fleet.secret("pve-ca", json!({"ca.crt": fleet.proxmox.ca_pem})).await;
    fleet.reason("HypervisorCluster", "pve", "ConnectionSuccessful").await;
    fleet.set_bridge("vmbr9").await;
    fleet.claim("missing-bridge").await;
    let found = fleet.reason("MachineClaim", "missing-bridge", "ConfigurationError").await;
    assert!(found.contains("vmbr9"), "{found}");
    fleet.set_bridge("vmbr0").await;
    fleet.ready_claim("missing-bridge").await;

    // Nothing was lost or doubled: each claim has its machine, and there is no other.
    let mut ids = std::collections::BTreeSet::new();
    for name in TROUBLES.iter().map(|trouble| trouble.name).chain(["wrong-ca", "missing-bridge"]) {
        let status = fleet.ready_claim(name).await;
        ids.insert(status["vmRef"]["vmId"].as_str().unwrap().to_owned());
    }
    assert_eq!((ids.len(), &ids), (TROUBLES.len() + 2, &fleet.machines().0));
    assert_eq!(fleet.denied(), Vec::<String>::new());
}
