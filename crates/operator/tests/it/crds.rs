//! CRDs that tests install, change and remove while the operator runs.

use crate::operator::eventually;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use playground::{Playground, deployment};
use serde_json::{Value, json};

/// A CRD with a field `spec.mode` that may have these values.
pub(crate) fn crd(plural: &str, group: &str, kind: &str, scope: &str, modes: &[&str]) -> Value {
    let mode = json!({"type": "string", "description": "The mode.", "enum": modes});
    let spec = json!({"type": "object", "properties": {"mode": mode}});
    let schema = json!({"type": "object", "properties": {"spec": spec}});
    let version = |name: &str, served: bool| json!({"name": name, "served": served, "storage": name == "v1", "schema": {"openAPIV3Schema": schema}});
    json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("{plural}.{group}")},
        "spec": {"group": group, "scope": scope, "names": {"plural": plural, "kind": kind},
            "versions": [version("v1", true), version("v2", false)]},
    })
}

pub(crate) fn crds(playground: &Playground) -> Api<DynamicObject> {
    deployment::objects(playground, "apiextensions.k8s.io/v1", "CustomResourceDefinition", None)
}

/// Installs a CRD, as soon as none of its name exists.
pub(crate) async fn install(playground: &Playground, crd: &Value) {
    let object: DynamicObject = serde_json::from_value(crd.clone()).unwrap();
    eventually("the CRD is created", async || crds(playground).create(&PostParams::default(), &object).await.ok())
        .await;
}

/// Deletes a CRD and waits until it is gone.
pub(crate) async fn remove(playground: &Playground, name: &str) {
    crds(playground).delete(name, &DeleteParams::default()).await.unwrap();
    eventually("the CRD is gone", async || crds(playground).get_opt(name).await.unwrap().is_none().then_some(())).await;
}

/// Patches a CRD.
pub(crate) async fn change(playground: &Playground, name: &str, patch: &Value) {
    let patch = Patch::Json::<()>(serde_json::from_value(patch.clone()).unwrap());
    crds(playground).patch(name, &PatchParams::default(), &patch).await.unwrap();
}

/// An installed CRD, in a form that can be installed again.
pub(crate) async fn bare(playground: &Playground, name: &str) -> Value {
    let found = crds(playground).get(name).await.unwrap();
    let mut spec = found.data["spec"].clone();
    spec.as_object_mut().unwrap().remove("conversion");
    json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": name}, "spec": spec})
}
