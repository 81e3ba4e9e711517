//! Prepares a cluster for the embedded catalogue with everything switched on.

use super::operator_process;
use kube::api::{DynamicObject, ObjectMeta, PostParams};
use playground::deployment::{self, edit, objects};
use playground::service_account::Account;
use playground::{Playground, UserError};
use serde_json::{Map, Value, json};
use std::collections::BTreeSet;

/// The roles that are installed together with an opt-in.
const ROLES: [&str; 2] = [
    include_str!("../../../../../deploy/rbac/logging.yaml"),
    include_str!("../../../../../deploy/rbac/kubevirt-metrics-exporter.yaml"),
];
/// A health check has one remediation, and the other one is switched on; and quota is what this cluster's own HyperConverged applies.
const LEFT_OUT: [&str; 2] = ["enable-self-node-remediation", "enable-aaq"];
/// Values that features need on this cluster.
const SETTINGS: [(&str, &str); 3] =
    [("logging-storage-class", "fast"), ("sbr-storage-class", "shared"), ("psi-enabled", "true")];

/// Grants the roles, sets all annotations and creates the namespaces of other operators.
pub(crate) async fn prepare(playground: &Playground) -> Result<Account, UserError> {
    let account = deployment::grant(playground).await?;
    for role in ROLES {
        deployment::grant_for(playground, role).await?;
    }
    let mut annotations = Map::new();
    let features = operator_process::features().await?;
    for feature in features["features"].as_array().into_iter().flatten() {
        let switches = feature["opt_in"].as_str().unwrap_or_default().split([' ', ',', ':', ';']);
        let switches = switches.filter(|word| word.starts_with("enable-") || word.starts_with("disable-"));
        annotations.extend(switches.map(|name| (format!("{}{name}", api::annotation::PREFIX), json!("true"))));
    }
    for name in LEFT_OUT {
        annotations.remove(&format!("{}{name}", api::annotation::PREFIX));
    }
    annotations.extend(SETTINGS.map(|(name, value)| (format!("{}{name}", api::annotation::PREFIX), json!(value))));
    let hco = objects(playground, "hco.kubevirt.io/v1", "HyperConverged", Some(deployment::NAMESPACE));
    edit(&hco, "kubevirt-hyperconverged", &json!({"metadata": {"annotations": annotations}})).await?;
    create_namespaces(playground, &operator_process::render(playground, None).await?).await;
    Ok(account)
}

async fn create_namespaces(playground: &Playground, rendered: &Value) {
    let assets = rendered.as_array().into_iter().flatten();
    let names: BTreeSet<&str> =
        assets.filter_map(|asset| asset.pointer("/object/metadata/namespace")?.as_str()).collect();
    let api = objects(playground, "v1", "Namespace", None);
    for name in names {
        let metadata = ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() };
        // Some exist already.
        let _ = api.create(&PostParams::default(), &DynamicObject { types: None, metadata, data: Value::Null }).await;
    }
}
