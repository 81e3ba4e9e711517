//! What a role grants, and what it never grants.

use super::manifest::{plural, text};
use super::{Granted, LookedUp, role};
use crate::pack::catalog::Catalog;
use crate::pack::test_pack::files;
use change::{Key, Kind};
use std::collections::BTreeSet;

fn role_of(template: &str, conditions: &str) -> Result<String, Vec<String>> {
    let asset = format!("{{name: a, path: active/a.yaml.tpl, install: opt-in, conditions: [{conditions}]}}");
    let catalogue = format!("assets: [{asset}]\nfeatures: [{{name: f, description: d, assets: [a]}}]\n");
    let files = files(&[("active/metadata.yaml", catalogue.as_str()), ("active/a.yaml.tpl", template)]);
    role(&Catalog::load(files).unwrap(), "home")
}

const IMAGE: &str = "{type: image, key: i}";

#[test]
fn the_name_of_an_object_is_rendered_or_read_literally() {
    let constant = "apiVersion: v1\nkind: Service\nmetadata: {name: {{ .HCO.GetName }}-x}\n";
    assert!(role_of(constant, IMAGE).unwrap().contains("[\"kubevirt-hyperconverged-x\"]"));
    let querying = "{{ if objectExists \"Prometheus\" \"n\" \"p\" }}\napiVersion: v1\nkind: Service\nmetadata:\n  name: plain\n{{ end }}\n";
    let literal = role_of(querying, IMAGE).unwrap();
    assert!(literal.contains("[\"plain\"]") && literal.contains("resources: [prometheuses]"), "{literal}");
    let gate = "{type: kubevirt-feature-gate, value: G}";
    assert!(role_of(constant, gate).unwrap().contains("resources: [kubevirts]"));
    let unclear = "{{ if objectExists \"Prometheus\" \"n\" \"p\" }}\napiVersion: v1\nkind: Service\nmetadata:\n  name: {{ .HCO.GetName }}\n{{ end }}\n";
    let problems = role_of(unclear, IMAGE).unwrap_err().join("\n");
    assert!(problems.contains("the object of asset a is unknown"), "{problems}");
}

#[test]
fn what_is_never_pruned_may_not_be_deleted() {
    let template = "apiVersion: v1\nkind: Service\nmetadata: {name: x}\n";
    let role_with = |more: &str| {
        let catalogue =
            format!("assets: [{{name: a, path: active/a.yaml.tpl, install: always{more}}}]\nexcluded_assets: [a]\n");
        let files = files(&[("active/metadata.yaml", catalogue.as_str()), ("active/a.yaml.tpl", template)]);
        role(&Catalog::load(files).unwrap(), "home").unwrap()
    };
    let verbs = |verbs: &str| format!("resources: [services]\n    resourceNames: [\"x\"]\n    verbs: [{verbs}]\n");
    assert!(role_with("").contains(&verbs("create, get, patch, delete")));
    assert!(role_with(", prune: never").contains(&verbs("create, get, patch")));
}

#[test]
fn an_object_of_the_go_advisor_is_granted_under_the_name_it_has() {
    let catalogue = "assets: [{name: a, path: active/a.yaml, install: always}]\nexcluded_assets: [a]\n";
    let profile = "name: p\ncategory: c\ndescription: d\nimpact_summary: i\nadvertised: true\nitems:\n- {name: one, description: d, asset: a, formerly: old}\n";
    let template = "apiVersion: v1\nkind: Service\nmetadata: {name: x}\n";
    let pack = [("active/metadata.yaml", catalogue), ("active/a.yaml", template), ("profiles/p.yaml", profile)];
    let role = role(&Catalog::load(files(&pack)).unwrap(), "home").unwrap();
    let rule = "resources: [services]\n    resourceNames: [\"old\", \"x\"]\n    verbs: [create, get, patch, delete]\n";
    assert!(role.contains(rule), "{role}");
}

#[test]
fn a_name_that_depends_on_the_cluster_is_refused() {
    for (name, conditions) in [
        ("{{ index .Images \"i\" }}-x", IMAGE),
        ("x{{ .Topology.CloudProvider }}", IMAGE),
        ("x-{{ .Topology.WorkerCount }}", IMAGE),
        ("x-{{ index .HCO.GetAnnotations \"a\" }}", "{type: annotation, key: a}"),
    ] {
        let template = format!("apiVersion: v1\nkind: Service\nmetadata: {{name: {name}}}\n");
        let problems = role_of(&template, conditions).unwrap_err().join("\n");
        assert!(problems.contains("active/a.yaml.tpl computes it from facts about the cluster"), "{name}: {problems}");
    }
}

#[test]
fn what_would_grant_more_than_the_object_is_refused() {
    let secret = "apiVersion: v1\nkind: Secret\nmetadata: {name: x}\n";
    assert!(role_of(secret, IMAGE).unwrap_err()[0].contains("read every Secret"));
    let injecting = "apiVersion: v1\nkind: Service\nmetadata: {name: 'x\"], verbs: [\"*'}\n";
    assert!(role_of(injecting, IMAGE).unwrap_err()[0].contains("is not the name of an object"));
}

#[test]
fn the_operators_own_objects_are_in_its_namespace() {
    let role = role_of("apiVersion: v1\nkind: Service\nmetadata: {name: x}\n", IMAGE).unwrap();
    assert_eq!((role.matches("namespace: home\n").count(), role.matches("openshift-cnv").count()), (5, 0), "{role}");
}

#[test]
fn backups_are_granted_for_the_namespace_of_the_operator_and_for_the_usual_ones() {
    let template = "apiVersion: v1\nkind: Service\nmetadata: {name: x, namespace: {{ .HCO.GetNamespace }}}\n";
    let role = role_of(template, IMAGE).unwrap();
    for namespace in ["home", "openshift-cnv", "kubevirt-hyperconverged"] {
        let key = Key { kind: Kind::new("v1", "Service"), namespace: namespace.into(), name: "x".into() };
        assert!(change::backup::names(&key).iter().all(|name| role.contains(name)), "{namespace}: {role}");
    }
}

fn granted(kind: &str, name: &str, is_tombstone: bool, may_delete: bool) -> Granted {
    let key = Key { kind: Kind::new("v1", kind), namespace: "n".into(), name: name.into() };
    let backups = if is_tombstone { BTreeSet::new() } else { change::backup::names(&key).into() };
    Granted { key, is_tombstone, may_delete, backups }
}

#[test]
fn the_role_grants_writes_by_name_and_nothing_that_escalates() {
    let objects = [
        granted("Service", "metrics", false, true),
        granted("Service", "kept", false, false),
        granted("Service", "former", true, true),
        granted("Namespace", "home", false, true),
        granted("HyperConverged", "hco", false, true),
    ];
    let looked_up = |kind: &str, by_name: bool| LookedUp { kind: Kind::new("v1", kind), by_name };
    let role = text(&objects, &BTreeSet::from([looked_up("ConfigMap", true), looked_up("Pod", false)]), "home");
    assert!(role.contains("    resources: [configmaps]\n    verbs: [get, list, watch]\n"), "{role}");
    let listed = "    resources: [hyperconvergeds, namespaces, nodes, pods, services]\n    verbs: [list, watch]\n";
    assert!(role.contains(listed), "{role}");
    for (resource, name, verbs) in [
        ("services", "metrics", "create, get, patch, delete"),
        ("services", "kept", "create, get, patch"),
        ("services", "former", "get, patch, delete"),
        ("namespaces", "home", "create, get, patch"),
        ("hyperconvergeds", "hco", "get, patch"),
    ] {
        let rule = format!("    resources: [{resource}]\n    resourceNames: [\"{name}\"]\n    verbs: [{verbs}]\n");
        assert!(role.contains(&rule), "{rule} is not in\n{role}");
    }
    for forbidden in ["\"*\"", "bind]", "escalate]", "impersonate"] {
        assert!(!role.contains(forbidden), "{forbidden}");
    }
    // Whoever may write a Secret can make a token of any account in its namespace.
    assert!(!role.to_lowercase().contains("secret"), "{role}");
    // Backups are granted by name, for objects that can be adopted.
    let (cluster_wide, namespaced) = role.split_once("\nkind: Role\n").unwrap();
    let names = |name: &str| change::backup::names(&granted("Service", name, false, true).key);
    assert!(names("metrics").iter().all(|name| namespaced.contains(name) && !cluster_wide.contains(name)));
    assert!(names("former").iter().all(|name| !role.contains(name)), "a tombstone is never adopted");
    assert_eq!(
        (plural("NodeFeatureDiscovery").as_str(), plural("Ingress").as_str()),
        ("nodefeaturediscoveries", "ingresses")
    );
    assert_eq!((plural("Gateway").as_str(), plural("Proxy").as_str()), ("gateways", "proxies"));
    assert_eq!(plural("SecurityContextConstraints"), "securitycontextconstraints");
}
