//! An installation for a small pack is as recorded.

use crate::{Account, Installation, Products, Settings, namespace};
use catalog::{Catalog, Files};
use expect_test::expect_file;
use serde_json::json;
use std::collections::{BTreeMap, BTreeSet};

/// Two assets: the HyperConverged, and a Service whose template looks up a ConfigMap.
pub(crate) fn pack() -> Catalog {
    let catalogue = "assets:
  - {name: hco, path: active/hco.yaml.tpl, install: always, prune: never}
  - name: service
    path: active/service.yaml.tpl
    install: always
    reads: [{apiVersion: v1, kind: ConfigMap}]
excluded_assets: [hco, service]
";
    let profile = "name: p\ncategory: c\ndescription: d\nimpact_summary: i\nadvertised: true\nitems:\n- {name: one, description: d, asset: service, formerly: old}\n";
    let hco = "apiVersion: hco.kubevirt.io/v1\nkind: HyperConverged\nmetadata: {name: kubevirt-hyperconverged, namespace: {{ .HCO.GetNamespace }}}\n";
    let service = "apiVersion: v1\nkind: Service\nmetadata: {name: x, namespace: {{ .HCO.GetNamespace }}}\n";
    let files = [
        ("active/metadata.yaml", catalogue),
        ("active/hco.yaml.tpl", hco),
        ("active/service.yaml.tpl", service),
        ("profiles/p.yaml", profile),
    ];
    let files = files.map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec()));
    Catalog::load(Files::new(BTreeMap::from(files))).unwrap()
}

#[test]
fn an_installation_is_as_recorded() {
    let settings = Settings {
        namespace: "home".into(),
        products: Products::Both,
        image: "registry.example/virtpilot:1".into(),
        replicas: 3,
        opt_in: true,
        prune: false,
        metrics_exporter_image: "registry.example/exporter:1".into(),
        api_server_ports: vec![8443],
        metrics_secure: true,
        prometheus: Account { namespace: "monitoring".into(), name: "prometheus".into() },
        fleet: crate::FleetSettings::default(),
    };
    let installation = Installation::new(&pack(), &settings).unwrap();
    let objects: Vec<String> = installation.objects().map(|object| catalog::yaml_text(&object)).collect();
    // The version changes with every release.
    let text = objects.join("---\n").replace(env!("CARGO_PKG_VERSION"), "VERSION");
    expect_file!["../tests-data/installation.yaml"].assert_eq(&text);
}

#[test]
fn each_product_is_installed_by_itself_or_both_in_one_deployment() {
    let installed = |products: Products| {
        let settings = Settings { products, ..Settings::default() };
        let objects: Vec<_> = Installation::new(&pack(), &settings).unwrap().objects().collect();
        let name =
            |object: &serde_json::Value| format!("{} {}", object["kind"], object["metadata"]["name"]).replace('"', "");
        (objects.iter().map(name).collect::<BTreeSet<String>>(), objects)
    };
    let ((both, _), (autopilot, _), (advisor, objects)) =
        (installed(Products::Both), installed(Products::Autopilot), installed(Products::Advisor));
    assert!(autopilot.iter().all(|name| !name.contains("advisor")), "{autopilot:?}");
    assert!(advisor.iter().all(|name| !name.contains("autopilot")), "{advisor:?}");
    // One Deployment runs both, with one account.
    let of_deployment = ["ServiceAccount", "Deployment", "NetworkPolicy", "PodDisruptionBudget"];
    let own: BTreeSet<String> = of_deployment.map(|kind| format!("{kind} virt-advisor-operator")).into();
    assert_eq!(both, &autopilot | &(&advisor - &own));
    assert!(own.is_subset(&advisor), "{advisor:?}");
    let deployment = objects.iter().find(|object| object["kind"] == "Deployment").unwrap();
    let pod = &deployment["spec"]["template"]["spec"];
    assert_eq!(pod["serviceAccountName"], "virt-advisor-operator");
    assert_eq!(pod["containers"][0]["args"].as_array().unwrap().last().unwrap(), "--products=advisor");
    assert_ne!(deployment["spec"]["selector"]["matchLabels"]["app"], "virt-platform-autopilot");
}

#[test]
fn the_defaults_are_those_of_an_openshift_cluster() {
    let settings = Settings::default();
    assert_eq!((settings.namespace.as_str(), settings.replicas), ("openshift-cnv", 2));
    assert!(settings.image.starts_with("localhost/virtpilot:") && settings.metrics_exporter_image.is_empty());
    assert!(settings.prune && !settings.opt_in);
    assert_eq!(settings.api_server_ports, [443, 6443]);
    assert!(!settings.metrics_secure);
    assert_eq!(namespace("home"), json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "home"}}));
}
