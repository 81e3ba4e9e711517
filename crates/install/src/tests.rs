//! An installation for a small pack is as recorded.

use crate::{Account, Installation, Settings, namespace};
use catalog::{Catalog, Files};
use expect_test::expect_file;
use serde_json::json;
use std::collections::BTreeMap;

/// Two assets: the HyperConverged, and a Service whose template looks up a ConfigMap.
fn pack() -> Catalog {
    let catalogue = "assets:
  - {name: hco, path: active/hco.yaml.tpl, install: always, prune: never}
  - name: service
    path: active/service.yaml.tpl
    install: always
    reads: [{apiVersion: v1, kind: ConfigMap}]
excluded_assets: [hco, service]
";
    let hco = "apiVersion: hco.kubevirt.io/v1\nkind: HyperConverged\nmetadata: {name: kubevirt-hyperconverged, namespace: {{ .HCO.GetNamespace }}}\n";
    let service = "apiVersion: v1\nkind: Service\nmetadata: {name: x, namespace: {{ .HCO.GetNamespace }}}\n";
    let files =
        [("active/metadata.yaml", catalogue), ("active/hco.yaml.tpl", hco), ("active/service.yaml.tpl", service)];
    let files = files.map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec()));
    Catalog::load(Files::new(BTreeMap::from(files))).unwrap()
}

#[test]
fn an_installation_is_as_recorded() {
    let settings = Settings {
        namespace: "home".into(),
        image: "registry.example/virtpilot:1".into(),
        replicas: 3,
        opt_in: true,
        prune: false,
        metrics_exporter_image: "registry.example/exporter:1".into(),
        api_server_ports: vec![8443],
        metrics_secure: true,
        prometheus: Account { namespace: "monitoring".into(), name: "prometheus".into() },
    };
    let installation = Installation::new(&pack(), &settings).unwrap();
    let objects: Vec<String> = installation.objects().map(|object| catalog::yaml_text(&object)).collect();
    // The version changes with every release.
    let text = objects.join("---\n").replace(env!("CARGO_PKG_VERSION"), "VERSION");
    expect_file!["../tests-data/installation.yaml"].assert_eq(&text);
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
