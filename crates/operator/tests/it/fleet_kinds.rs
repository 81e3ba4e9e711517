//! The kinds of the fleet are accepted by a real API server, and it refuses what cannot be right with a message that says what to do.

use crate::operator::{eventually, playground};
use crate::packages::{deploy, succeed, virtpilot};
use kube::api::{Api, DynamicObject, Patch, PatchParams, ValidationDirective};
use playground::Playground;
use playground::deployment::objects;
use serde_json::{Value, json};
use std::process::Command;

const SPACE: &str = "ci";

/// A cluster with the kinds of the fleet.
async fn start() -> Playground {
    let playground = playground().await;
    let kubectl = playground.folder().join("kubectl");
    for namespace in [SPACE, "virtpilot-fleet"] {
        succeed(Command::new(&kubectl).args(["create", "namespace", namespace]));
    }
    let all: Vec<Value> =
        serde_saphyr::from_multiple(&succeed(&mut virtpilot(&["manifests", "--products=fleet"])).0).unwrap();
    for crd in all.iter().filter(|object| object["kind"] == "CustomResourceDefinition") {
        let crds = objects(&playground, "apiextensions.k8s.io/v1", "CustomResourceDefinition", None);
        crds.patch(crd["metadata"]["name"].as_str().unwrap(), &PatchParams::apply("admin"), &Patch::Apply(crd))
            .await
            .unwrap();
    }
    for kind in ["HypervisorCluster", "HypervisorMachineTemplate", "RunnerPool", "MachineClaim"] {
        let api = api(&playground, kind);
        eventually(&format!("{kind} is served"), async || api.list(&Default::default()).await.ok()).await;
    }
    playground
}

fn api(playground: &Playground, kind: &str) -> Api<DynamicObject> {
    objects(playground, "hyperfleet.io/v1alpha1", kind, Some(SPACE))
}

/// The stored spec, or why it is refused. Fields that are not known are refused as well.
async fn apply(playground: &Playground, kind: &str, name: &str, spec: &Value) -> Result<Value, String> {
    let object =
        json!({"apiVersion": "hyperfleet.io/v1alpha1", "kind": kind, "metadata": {"name": name}, "spec": spec});
    let params = PatchParams { field_validation: Some(ValidationDirective::Strict), ..PatchParams::apply("admin") };
    let applied = api(playground, kind).patch(name, &params.force(), &Patch::Apply(&object)).await;
    applied.map(|object| object.data["spec"].clone()).map_err(|error| error.to_string())
}

fn cluster(change: &Value) -> Value {
    let key = |key: &str| json!({"name": "pve", "key": key});
    let mut spec = json!({
        "provider": "proxmox", "endpoint": "https://pve:8006",
        "credentials": {"tokenId": key("id"), "tokenSecret": key("secret")},
    });
    for (field, value) in change.as_object().unwrap() {
        spec[field] = value.clone();
    }
    spec
}

fn template(source: &Value, network: &Value) -> Value {
    json!({
        "hypervisorClusterRef": {"name": "pve"}, "template": source, "network": network,
        "resources": {"cpu": 2, "memory": "4Gi"},
    })
}

#[tokio::test(flavor = "multi_thread")]
async fn good_specs_are_accepted_with_their_defaults_and_bad_ones_are_refused_with_the_remedy() {
    let playground = start().await;
    let stored = apply(&playground, "HypervisorCluster", "pve", &cluster(&json!({}))).await.unwrap();
    assert_eq!(stored["vmIds"], json!({"from": 100_000, "to": 199_999}));
    assert_eq!((&stored["limits"]["clonesPerStorage"], &stored["orphans"]["policy"]), (&json!(2), &json!("Delete")));
    let tagged = json!({"proxmox": {"tag": "runner"}});
    apply(&playground, "HypervisorMachineTemplate", "linux", &template(&tagged, &json!({}))).await.unwrap();
    let stored = apply(&playground, "MachineClaim", "one", &json!({"templateRef": {"name": "linux"}})).await.unwrap();
    assert_eq!(stored["power"], "Running");
    apply(&playground, "RunnerPool", "pool", &json!({"templateRef": {"name": "linux"}})).await.unwrap();

    let gitlab = |change: Value| {
        let mut gitlab = json!({"group": "acme", "tags": ["pve"], "credentials": {"token": {"name": "a", "key": "b"}}});
        for (field, value) in change.as_object().unwrap() {
            gitlab[field] = value.clone();
        }
        gitlab.as_object_mut().unwrap().retain(|_, value| !value.is_null());
        let workload = json!({"type": "gitlab-ci", "config": {"gitlab": gitlab}});
        json!({"templateRef": {"name": "linux"}, "workload": workload})
    };
    let stored = apply(&playground, "RunnerPool", "gitlab", &gitlab(json!({}))).await.unwrap();
    let stored = &stored["workload"]["config"]["gitlab"];
    assert_eq!((&stored["url"], &stored["sources"]), (&json!("https://gitlab.com"), &json!(["Webhook", "Poll"])));
    let other_type = |mut spec: Value| {
        spec["workload"]["type"] = "github-actions".into();
        ("RunnerPool", spec)
    };
    let of_gitlab = |change: Value| ("RunnerPool", gitlab(change));

    let with = |change: Value| ("HypervisorCluster", cluster(&change));
    let by = |source: Value, network: Value| ("HypervisorMachineTemplate", template(&source, &network));
    let pool = |scaling: Value| ("RunnerPool", json!({"templateRef": {"name": "linux"}, "scaling": scaling}));
    for ((kind, spec), why) in [
        (with(json!({"endpoint": "http://pve:8006"})), "set allowInsecureHttp to true"),
        (with(json!({"credentials": {"tokenId": {"name": "pve", "key": "id"}}})), "set tokenId and tokenSecret"),
        (with(json!({"credentials": null})), "provider proxmox needs credentials"),
        (with(json!({"vmIds": {"from": 300, "to": 200}})), "vmIds.from must not be greater than vmIds.to"),
        (
            with(json!({"tls": {"insecureSkipVerify": true, "fingerprint": "00".repeat(32)}})),
            "insecureSkipVerify switches verification off",
        ),
        (with(json!({"tls": {"fingerprint": "abc"}})), "spec.tls.fingerprint"),
        (with(json!({"provider": "vmware"})), "Unsupported value: \"vmware\""),
        (with(json!({"endpint": "x"})), "field not declared in schema"),
        (by(json!({"proxmox": {"tag": "a", "name": "b"}}), json!({})), "set exactly one of templateId, name and tag"),
        (by(json!({}), json!({})), "set either template.proxmox or template.kubevirt"),
        (by(tagged.clone(), json!({"mode": "static"})), "mode static needs network.staticConfig"),
        (pool(json!({"minReplicas": 5, "maxReplicas": 2})), "scaling.minReplicas must not be greater"),
        (
            pool(json!({"schedules": [{"from": "25:00", "to": "10:00", "minReplicas": 1}]})),
            "spec.scaling.schedules[0].from",
        ),
        (of_gitlab(json!({"project": "acme/shop"})), "by either group or project: set one of them"),
        (of_gitlab(json!({"group": null})), "by either group or project: set one of them"),
        (of_gitlab(json!({"tags": null})), "set runUntagged to run those without tags"),
        (of_gitlab(json!({"url": "http://gitlab.com"})), "must begin with https://"),
        (of_gitlab(json!({"group": null, "project": "12"})), "spec.workload.config.gitlab.project"),
        (of_gitlab(json!({"sources": ["ScaleSet"]})), "Unsupported value: \"ScaleSet\""),
        (
            of_gitlab(json!({"runner": {"folder": "/a", "download": {"url": "https://a", "sha256": "0".repeat(64)}}})),
            "has one of folder, archive and download",
        ),
        (other_type(gitlab(json!({}))), "which need workload.type gitlab-ci"),
    ] {
        let refused = apply(&playground, kind, "bad", &spec).await;
        let message = refused.expect_err(&format!("{kind} {spec} is accepted"));
        assert!(message.contains(why), "{spec}: {message}");
    }
    // What a machine was made from does not change under it.
    let moved =
        apply(&playground, "MachineClaim", "one", &json!({"templateRef": {"name": "other"}})).await.unwrap_err();
    assert!(moved.contains("templateRef cannot be changed; create another MachineClaim"), "{moved}");
    let kubevirt = json!({"provider": "kubevirt", "endpoint": "https://kubernetes.default"});
    let other = apply(&playground, "HypervisorCluster", "pve", &kubevirt).await.unwrap_err();
    assert!(other.contains("provider cannot be changed; create another HypervisorCluster"), "{other}");

    // kubectl scale sets the size of a pool, and what is listed is what people look for.
    let kubectl = || Command::new(playground.folder().join("kubectl"));
    succeed(kubectl().args(["scale", "runnerpool/pool", "--replicas=3", "--namespace", SPACE]));
    assert_eq!(api(&playground, "RunnerPool").get("pool").await.unwrap().data["spec"]["replicas"], 3);
    let listed = succeed(kubectl().args(["get", "hyperfleet", "--namespace", SPACE])).0;
    for column in ["ENDPOINT", "PHASE", "ADDRESS", "CPU"] {
        assert!(listed.contains(column), "{listed}");
    }

    // The samples are accepted as they are.
    for file in std::fs::read_dir(deploy("samples/fleet")).unwrap() {
        let file = file.unwrap().path();
        succeed(kubectl().args(["apply", "--dry-run=server", "--validate=strict", "--filename"]).arg(&file));
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn converted_manifests_of_the_predecessor_are_accepted() {
    let playground = start().await;
    let sample = concat!(env!("CARGO_MANIFEST_DIR"), "/../fleet/tests-data/predecessor.yaml");
    let (converted, notes) = succeed(&mut virtpilot(&["fleet", "convert", sample]));
    assert!(notes.contains("HypervisorCluster ci/pve: spec.dns.domain is not carried over"), "{notes}");
    let file = playground.folder().join("converted.yaml");
    std::fs::write(&file, converted).unwrap();
    let kubectl = || Command::new(playground.folder().join("kubectl"));
    let applied = succeed(kubectl().args(["apply", "--server-side", "--validate=strict", "--filename"]).arg(&file)).0;
    assert_eq!(applied.lines().filter(|line| line.ends_with("serverside-applied")).count(), 5, "{applied}");
    let disk =
        &api(&playground, "HypervisorMachineTemplate").get("linux").await.unwrap().data["spec"]["resources"]["disk"];
    assert_eq!(disk, "50Gi");
}
