//! The CRD of VirtPlatformConfig accepts what the published one accepts, and refuses what it refuses.

use crate::crds::install;
use crate::operator::{Running, eventually};
use crate::profile_commands::digest;
use catalog::profile;
use kube::api::{Api, DeleteParams, DynamicObject, ObjectMeta, Patch, PatchParams, PostParams, ValidationDirective};
use playground::deployment;
use serde_json::{Value, json};

fn object(name: &str, spec: &Value) -> DynamicObject {
    let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
    let types =
        kube::api::TypeMeta { api_version: "advisor.kubevirt.io/v1alpha1".into(), kind: "VirtPlatformConfig".into() };
    DynamicObject { types: Some(types), metadata, data: json!({"spec": spec}) }
}

/// The stored spec, or why it is refused.
async fn create(objects: &Api<DynamicObject>, name: &str, spec: &Value) -> Result<Value, String> {
    let strict = Some(ValidationDirective::Strict);
    let params = PatchParams { field_validation: strict, ..PatchParams::apply("admin") };
    let created = objects.patch(name, &params, &Patch::Apply(object(name, spec))).await;
    let created = created.map_err(|error| error.to_string())?;
    objects.delete(name, &DeleteParams::default()).await.unwrap();
    Ok(created.data["spec"].clone())
}

const LOAD_AWARE: &str = "load-aware-rebalancing";
const DENSITY: &str = "virt-higher-density";

/// A server that has the CRD.
async fn served() -> (Running, Api<DynamicObject>) {
    let running = Running::without_operator().await;
    let catalog = crate::catalogue::catalogue();
    install(&running.playground, &profile::crd(&catalog.profiles)).await;
    let objects = deployment::objects(&running.playground, "advisor.kubevirt.io/v1alpha1", "VirtPlatformConfig", None);
    eventually("the kind is served", async || objects.list(&Default::default()).await.ok()).await;
    (running, objects)
}

// N7: to switch swap off alone was refused, because of a ratio that nobody had written.
#[tokio::test(flavor = "multi_thread")]
async fn swap_is_switched_off_without_naming_a_ratio() {
    let (_running, objects) = served().await;
    let options = json!({"virtHigherDensity": {"enableSwap": false}});
    let stored = create(&objects, DENSITY, &json!({"profile": DENSITY, "options": options})).await.unwrap();
    let stored = &stored["options"]["virtHigherDensity"];
    assert_eq!((&stored["enableSwap"], &stored["memoryToRequestRatio"]), (&json!(false), &Value::Null));
}

#[tokio::test(flavor = "multi_thread")]
async fn the_published_rules_and_defaults_hold() {
    let (_running, objects) = served().await;
    let spec =
        create(&objects, LOAD_AWARE, &json!({"profile": LOAD_AWARE, "options": {"loadAware": {}}})).await.unwrap();
    let options = json!({"deschedulingIntervalSeconds": 60, "mode": "Automatic", "enablePSIMetrics": true,
        "devDeviationThresholds": "AsymmetricLow"});
    let defaults = json!({"profile": LOAD_AWARE, "action": "DryRun", "failurePolicy": "Abort",
        "bypassOptimisticLock": false, "options": {"loadAware": options}});
    assert_eq!(spec, defaults);

    let load_aware = |options: Value| (LOAD_AWARE, json!({"profile": LOAD_AWARE, "options": {"loadAware": options}}));
    let density = |options: Value| (DENSITY, json!({"profile": DENSITY, "options": {"virtHigherDensity": options}}));
    for (name, spec) in [
        ("example-profile", json!({"profile": "example-profile", "options": {}})),
        (
            LOAD_AWARE,
            json!({"profile": LOAD_AWARE, "action": "Ignore", "waitTimeout": "30m", "failurePolicy": "Continue"}),
        ),
        (
            LOAD_AWARE,
            json!({"profile": LOAD_AWARE, "action": "Apply", "approvedPlan": digest('0'), "remediation": "Automatic", "rollback": true}),
        ),
        (LOAD_AWARE, json!({"profile": LOAD_AWARE, "approvedPlan": "", "waitTimeout": "1h2m3.5s"})),
        (LOAD_AWARE, json!({"profile": LOAD_AWARE, "waitTimeout": "0"})),
        load_aware(
            json!({"deschedulingIntervalSeconds": 86400, "mode": "Predictive", "evictionLimitTotal": 1000, "evictionLimitNode": 100}),
        ),
        density(
            json!({"memoryToRequestRatio": 300, "ksmConfiguration": {"nodeLabelSelector": {"matchLabels": {"a": "b"}}}}),
        ),
        density(json!({"memoryToRequestRatio": 120, "enableSwap": false})),
    ] {
        create(&objects, name, &spec).await.unwrap_or_else(|why| panic!("{spec} is refused: {why}"));
    }
    let both = json!({"loadAware": {}, "virtHigherDensity": {}});
    for ((name, spec), why) in [
        (("other", json!({"profile": LOAD_AWARE})), "metadata.name must be the name of the profile"),
        (("mine", json!({"profile": "mine"})), "Unsupported value: \"mine\""),
        ((LOAD_AWARE, json!({"profile": LOAD_AWARE, "action": "Go"})), "Unsupported value: \"Go\""),
        (
            (LOAD_AWARE, json!({"profile": LOAD_AWARE, "waitTimeout": "30 minutes"})),
            "waitTimeout is a duration such as 30m",
        ),
        (
            (LOAD_AWARE, json!({"profile": LOAD_AWARE, "approvedPlan": "sha256:00"})),
            "approvedPlan is the digest that status.planDigest shows",
        ),
        (
            (LOAD_AWARE, json!({"profile": LOAD_AWARE, "options": {}})),
            "the options of load-aware-rebalancing are below options.loadAware",
        ),
        (
            (LOAD_AWARE, json!({"profile": LOAD_AWARE, "options": both})),
            "options.virtHigherDensity is only for the profile virt-higher-density",
        ),
        ((DENSITY, json!({"profile": DENSITY, "options": {"loadAware": {}}})), "options.loadAware is only for"),
        (load_aware(json!({"deschedulingIntervalSeconds": 59})), "greater than or equal to 60"),
        (load_aware(json!({"evictionLimitNode": 101})), "less than or equal to 100"),
        (load_aware(json!({"interval": 60})), ".spec.options.loadAware.interval: field not declared in schema"),
        (
            density(json!({"memoryToRequestRatio": 121, "enableSwap": false})),
            "memoryToRequestRatio above 120 needs swap",
        ),
        (density(json!({"memoryToRequestRatio": 99})), "greater than or equal to 100"),
    ] {
        let refused = create(&objects, name, &spec).await.expect_err(&spec.to_string());
        assert!(refused.contains(why), "{spec}: {refused}");
    }

    objects.create(&PostParams::default(), &object(DENSITY, &json!({"profile": DENSITY}))).await.unwrap();
    let other = Patch::Merge(json!({"spec": {"profile": LOAD_AWARE}}));
    let refused = objects.patch(DENSITY, &PatchParams::default(), &other).await.unwrap_err().to_string();
    assert!(refused.contains("spec.profile cannot be changed"), "{refused}");

    // The status is a subresource, and its items are found by their names.
    let target = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "a"});
    let item = json!({"name": "one", "targetRef": target, "desiredState": {"data": {"any": "field"}}});
    let status = json!({"status": {"phase": "ReviewRequired", "impactSeverity": "High", "items": [item]}});
    objects.patch_status(DENSITY, &PatchParams::default(), &Patch::Merge(status)).await.unwrap();
    let stored = objects.get(DENSITY).await.unwrap().data["status"].clone();
    assert_eq!(
        (&stored["items"][0]["state"], &stored["items"][0]["desiredState"]["data"]["any"]),
        (&json!("Pending"), &json!("field"))
    );
    let wrong = Patch::Merge(json!({"status": {"phase": "Somewhere"}}));
    let refused = objects.patch_status(DENSITY, &PatchParams::default(), &wrong).await.unwrap_err().to_string();
    assert!(refused.contains("Unsupported value: \"Somewhere\""), "{refused}");
}

/// A status with every field of the published kind, as the Go operator stores it.
fn stored_status() -> Value {
    let condition = |kind: &str, status: &str, reason: &str| {
        json!({"type": kind, "status": status, "observedGeneration": 2, "lastTransitionTime": "2026-11-15T10:00:00Z",
            "reason": reason, "message": "Configuration successfully applied"})
    };
    let kinds = [
        "Pending",
        "Drafting",
        "InProgress",
        "Drifted",
        "Failed",
        "ReviewRequired",
        "PrerequisiteFailed",
        "CompletedWithErrors",
        "CompletedWithUpgrade",
        "Ignored",
    ];
    let mut conditions: Vec<Value> = kinds.map(|kind| condition(kind, "False", "AllItemsApplied")).into();
    conditions.push(condition("Completed", "True", "AllItemsApplied"));
    conditions.push(condition("UpgradeAvailable", "False", "NoLogicChange"));
    conditions.push(condition("InputDependencyDrift", "False", "DriftResolved"));
    let config = json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig",
        "metadata": {"name": "99-worker-psi-karg", "labels": {"machineconfiguration.openshift.io/role": "worker"}},
        "spec": {"kernelArguments": ["psi=1"]}});
    json!({
        "phase": "Completed",
        "impactSeverity": "High",
        "observedGeneration": 2,
        "sourceSnapshotHash": "9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08",
        "operatorVersion": "v0.1.31",
        "appliedOptions": {"loadAware": {"deschedulingIntervalSeconds": 60, "mode": "Automatic", "enablePSIMetrics": true,
            "devDeviationThresholds": "AsymmetricLow", "evictionLimitTotal": 5, "evictionLimitNode": 2}},
        "items": [
            {
                "name": "enable-psi-metrics",
                "targetRef": {"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig", "name": "99-worker-psi-karg"},
                "impactSeverity": "High",
                "diff": "--- /dev/null\n+++ 99-worker-psi-karg (MachineConfig)\n@@ -0,0 +1 @@\n+spec:\n",
                "desiredState": config,
                "state": "Completed",
                "message": "Updated: 3/3, Ready: 3/3",
                "lastTransitionTime": "2026-11-15T10:00:00Z",
                "managedFields": ["spec.kernelArguments"],
            },
            {
                "name": "enable-load-aware-descheduling",
                "targetRef": {"apiVersion": "operator.openshift.io/v1", "kind": "KubeDescheduler", "name": "cluster",
                    "namespace": "openshift-kube-descheduler-operator"},
                "impactSeverity": "Low",
                "diff": "(no changes)",
                "desiredState": {"spec": {"deschedulingIntervalSeconds": 60}},
                "state": "Failed",
                "managedFields": ["spec.deschedulingIntervalSeconds"],
            },
        ],
        "conditions": conditions,
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn a_complete_status_of_the_go_operator_is_accepted_and_kept() {
    let running = Running::without_operator().await;
    let catalog = crate::catalogue::catalogue();
    install(&running.playground, &profile::crd(&catalog.profiles)).await;
    let objects = deployment::objects(&running.playground, "advisor.kubevirt.io/v1alpha1", "VirtPlatformConfig", None);
    eventually("the kind is served", async || objects.list(&Default::default()).await.ok()).await;
    objects.create(&PostParams::default(), &object(LOAD_AWARE, &json!({"profile": LOAD_AWARE}))).await.unwrap();
    let phases = [
        "Pending",
        "Drafting",
        "PrerequisiteFailed",
        "ReviewRequired",
        "InProgress",
        "Completed",
        "CompletedWithErrors",
        "CompletedWithUpgrade",
        "Failed",
        "Drifted",
        "Ignored",
    ];
    for phase in phases {
        let mut status = stored_status();
        status["phase"] = json!(phase);
        // Strict: a field that we do not know would be dropped.
        let strict = Some(ValidationDirective::Strict);
        let params = PatchParams { field_validation: strict, ..PatchParams::default() };
        let stored = objects.patch_status(LOAD_AWARE, &params, &Patch::Merge(json!({"status": status}))).await;
        let stored = stored.unwrap_or_else(|error| panic!("{phase}: {error}"));
        assert_eq!(stored.data["status"], status);
        serde_json::from_value::<api::advisor::VirtPlatformConfigStatus>(status).unwrap();
    }
}
