//! The CRD of VirtPlatformConfig accepts what the published one accepts, and refuses what it refuses.

use crate::crds::install;
use crate::operator::{Running, eventually};
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

#[tokio::test(flavor = "multi_thread")]
async fn the_published_rules_and_defaults_hold() {
    let running = Running::without_operator().await;
    let catalog = crate::catalogue::catalogue();
    install(&running.playground, &profile::crd(&catalog.profiles)).await;
    let objects = deployment::objects(&running.playground, "advisor.kubevirt.io/v1alpha1", "VirtPlatformConfig", None);
    eventually("the kind is served", async || objects.list(&Default::default()).await.ok()).await;

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
            json!({"profile": LOAD_AWARE, "action": "Apply", "approvedPlan": "sha256:00", "remediation": "Automatic", "rollback": true}),
        ),
        load_aware(
            json!({"deschedulingIntervalSeconds": 86400, "mode": "Predictive", "evictionLimitTotal": 1000, "evictionLimitNode": 100}),
        ),
        density(
            json!({"memoryToRequestRatio": 300, "ksmConfiguration": {"nodeLabelSelector": {"matchLabels": {"a": "b"}}}}),
        ),
        density(json!({"memoryToRequestRatio": 120, "enableSwap": false})),
        density(json!({"enableSwap": false})),
    ] {
        create(&objects, name, &spec).await.unwrap_or_else(|why| panic!("{spec} is refused: {why}"));
    }
    let both = json!({"loadAware": {}, "virtHigherDensity": {}});
    for ((name, spec), why) in [
        (("other", json!({"profile": LOAD_AWARE})), "metadata.name must be the name of the profile"),
        (("mine", json!({"profile": "mine"})), "Unsupported value: \"mine\""),
        ((LOAD_AWARE, json!({"profile": LOAD_AWARE, "action": "Go"})), "Unsupported value: \"Go\""),
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
