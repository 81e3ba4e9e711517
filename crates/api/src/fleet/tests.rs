//! The CRDs are what an API server accepts, as far as that can be said without one.

use super::{HypervisorCluster, HypervisorMachineTemplate, MachineClaim, RunnerPool};
use kube_core::CustomResourceExt;
use serde_json::{Value, json};

fn crds() -> [Value; 4] {
    [HypervisorCluster::crd(), HypervisorMachineTemplate::crd(), RunnerPool::crd(), MachineClaim::crd()]
        .map(|crd| serde_json::to_value(crd).unwrap())
}

fn version(crd: &Value) -> &Value {
    &crd["spec"]["versions"][0]
}

/// Calls `check` with every schema inside and its path.
fn walk(schema: &Value, path: &str, check: &mut impl FnMut(&Value, &str)) {
    check(schema, path);
    for (name, property) in schema["properties"].as_object().into_iter().flatten() {
        walk(property, &format!("{path}.{name}"), check);
    }
    for inner in ["items", "additionalProperties"] {
        if schema[inner].is_object() {
            walk(&schema[inner], &format!("{path}[]"), check);
        }
    }
}

#[test]
fn every_schema_is_structural() {
    for crd in crds() {
        walk(&version(&crd)["schema"]["openAPIV3Schema"], "", &mut |schema, path| {
            assert!(schema["type"].is_string(), "{path} has no type: {schema}");
            for forbidden in ["$ref", "definitions", "oneOf", "anyOf", "allOf"] {
                assert!(schema.get(forbidden).is_none(), "{path} has {forbidden}: {schema}");
            }
            let has_both = schema.get("properties").is_some() && schema.get("additionalProperties").is_some();
            assert!(!has_both, "{path} has fixed and free fields");
        });
    }
}

#[test]
fn every_field_is_described() {
    for crd in crds() {
        let properties = &version(&crd)["schema"]["openAPIV3Schema"]["properties"];
        for part in ["spec", "status"] {
            walk(&properties[part], part, &mut |schema, path| {
                let is_inner = path.ends_with("[]");
                let is_any = schema.get("x-kubernetes-preserve-unknown-fields").is_some();
                assert!(is_inner || is_any || schema["description"].is_string(), "{path} says nothing");
            });
        }
    }
}

#[test]
fn every_rule_has_a_message_that_says_what_to_do() {
    let mut rules = Vec::new();
    for crd in crds() {
        walk(&version(&crd)["schema"]["openAPIV3Schema"], "", &mut |schema, path| {
            for rule in schema["x-kubernetes-validations"].as_array().into_iter().flatten() {
                assert!(rule["message"].as_str().is_some_and(|message| message.len() > 20), "{path}: {rule}");
                rules.push(path.to_owned());
            }
        });
    }
    for path in [".spec", ".spec.credentials", ".spec.tls", ".spec.vmIds", ".spec.template", ".spec.scaling"] {
        assert!(rules.iter().any(|found| found == path), "{path} has no rule");
    }
}

/// What refers to a claim is looked up once, when it is first seen.
#[test]
fn neither_template_nor_pool_of_a_claim_can_be_changed() {
    let [_, _, _, claim] = crds();
    let rules = &version(&claim)["schema"]["openAPIV3Schema"]["properties"]["spec"]["x-kubernetes-validations"];
    for field in ["templateRef", "runnerPoolRef"] {
        let says = |rule: &&Value| {
            rule["message"].as_str().is_some_and(|text| text.starts_with(&format!("{field} cannot be changed")))
        };
        let rule = rules.as_array().into_iter().flatten().find(says).unwrap();
        assert!(rule["rule"].as_str().unwrap().contains(&format!("self.{field} == oldSelf.{field}")), "{rule}");
    }
    let optional = rules.to_string();
    assert!(
        optional.contains("has(self.runnerPoolRef) == has(oldSelf.runnerPoolRef)"),
        "it can be neither added nor removed"
    );
}

/// A machine that was made without an image would never get its data, or one with an image would get them twice.
#[test]
fn the_delivery_of_a_template_can_be_neither_changed_nor_added_nor_removed() {
    let [_, template, ..] = crds();
    let schema = &version(&template)["schema"]["openAPIV3Schema"]["properties"]["spec"];
    let rules = schema["x-kubernetes-validations"].as_array().unwrap();
    let says =
        |rule: &&Value| rule["message"].as_str().is_some_and(|text| text.starts_with("cloudInit.delivery cannot"));
    let rule = rules.iter().find(says).unwrap()["rule"].as_str().unwrap();
    let of = |object: &str| format!("(has({object}.cloudInit) ? {object}.cloudInit.delivery : 'Iso')");
    assert_eq!(rule, format!("{} == {}", of("self"), of("oldSelf")));
    assert_eq!(
        schema["properties"]["cloudInit"]["properties"]["delivery"]["default"], "Iso",
        "so that it is always there"
    );
}

#[test]
fn all_kinds_are_namespaced_with_status_category_and_short_name() {
    for crd in crds() {
        let names = &crd["spec"]["names"];
        assert_eq!((&crd["spec"]["group"], &crd["spec"]["scope"]), (&json!("hyperfleet.io"), &json!("Namespaced")));
        assert_eq!(names["categories"], json!(["hyperfleet"]));
        assert_eq!(names["shortNames"].as_array().map(Vec::len), Some(1));
        assert!(version(&crd)["subresources"]["status"].is_object());
        assert!(version(&crd)["additionalPrinterColumns"].as_array().is_some_and(|columns| columns.len() > 4));
    }
    let pool = &crds()[2];
    assert_eq!(version(pool)["subresources"]["scale"]["specReplicasPath"], ".spec.replicas");
}

#[test]
fn defaults_are_those_of_the_types() {
    let [cluster, template, pool, _] = crds();
    let field = |crd: &Value, path: &str| {
        version(crd)["schema"]["openAPIV3Schema"]["properties"]["spec"].pointer(path).cloned().unwrap_or_default()
    };
    assert_eq!(field(&cluster, "/properties/vmIds/default"), json!({"from": 100_000, "to": 199_999}));
    assert_eq!(field(&cluster, "/properties/limits/default/clonesPerStorage"), json!(2));
    assert_eq!(field(&cluster, "/properties/limits/properties/clonesPerStorage/default"), json!(2));
    assert_eq!(field(&cluster, "/properties/orphans/default/policy"), json!("Delete"));
    assert_eq!(field(&template, "/properties/readiness/default/signal"), json!("AgentAddress"));
    assert_eq!(field(&pool, "/properties/keepFailed/default"), json!(2));
    assert_eq!(field(&pool, "/properties/scaling/default/maxReplicas"), json!(10));
}

#[test]
fn a_small_manifest_is_enough() {
    let cluster: HypervisorCluster = serde_json::from_value(json!({
        "apiVersion": "hyperfleet.io/v1alpha1", "kind": "HypervisorCluster", "metadata": {"name": "pve"},
        "spec": {
            "provider": "proxmox", "endpoint": "https://pve:8006",
            "credentials": {"tokenId": {"name": "pve", "key": "id"}, "tokenSecret": {"name": "pve", "key": "secret"}},
        },
    }))
    .unwrap();
    assert_eq!(cluster.spec.limits.clones_per_storage, 2);
    let template: HypervisorMachineTemplate = serde_json::from_value(json!({
        "apiVersion": "hyperfleet.io/v1alpha1", "kind": "HypervisorMachineTemplate", "metadata": {"name": "t"},
        "spec": {
            "hypervisorClusterRef": {"name": "pve"},
            "template": {"proxmox": {"tag": "runner"}},
            "resources": {"cpu": 2, "memory": "4Gi"},
        },
    }))
    .unwrap();
    assert_eq!(template.spec.resources.memory.bytes(), Some(4 << 30));
}
