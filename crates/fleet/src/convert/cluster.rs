//! The spec of a `HypervisorCluster`.

use super::fields::Fields;
use serde_json::{Map, Value, json};

pub(super) fn spec(fields: &mut Fields, namespace: Option<&str>) -> Value {
    let mut spec = Map::new();
    let provider = fields.required("provider").to_lowercase();
    if !provider.is_empty() && provider != "proxmox" {
        fields.error("spec.provider", &format!("{provider} is not known; it has to be proxmox"));
    }
    spec.insert("provider".into(), json!(provider));
    let endpoint = fields.required("endpoint");
    if endpoint.starts_with("http://") {
        spec.insert("allowInsecureHttp".into(), json!(true));
        let what = "http:// sends the credentials unencrypted; allowInsecureHttp: true lets it work as before, https:// is better";
        fields.remark("spec.endpoint", what);
    } else if !endpoint.is_empty() && !endpoint.starts_with("https://") {
        fields.error("spec.endpoint", "it has to start with https://");
    }
    spec.insert("endpoint".into(), json!(endpoint));
    spec.insert("credentials".into(), credentials(fields, namespace));
    if let Some(tls) = tls(fields, namespace) {
        spec.insert("tls".into(), tls);
    }
    if let Some(nodes) = fields.take("nodes") {
        fields.remark("spec.nodes", "the predecessor did not use it; now machines are created on these nodes only");
        spec.insert("nodes".into(), nodes);
    }
    for field in ["defaultStorage", "defaultNetwork"] {
        if let Some(value) = fields.text(field) {
            spec.insert(field.into(), json!(value));
        }
    }
    if let Some(Value::Object(tags)) = fields.take("tags") {
        let texts: Map<String, Value> = tags.into_iter().map(|(key, value)| (key, json!(plain(&value)))).collect();
        fields.remark("spec.tags", "each becomes a tag key-value, in the characters that Proxmox VE allows");
        spec.insert("tags".into(), Value::Object(texts));
    }
    fields.drop_all(
        "dns",
        "the fleet sets no DNS; name servers of a machine are network.staticConfig.dns of its template",
    );
    fields.drop_all(
        "network",
        "the fleet does not test networks; readiness of the template says when a machine is ready",
    );
    Value::Object(spec)
}

/// A value as a person would write it.
fn plain(value: &Value) -> String {
    value.as_str().map_or_else(|| value.to_string(), str::to_owned)
}

fn credentials(fields: &mut Fields, namespace: Option<&str>) -> Value {
    let mut credentials = Map::new();
    for field in ["tokenId", "tokenSecret", "username", "password"] {
        if let Some(reference) = secret(fields, &format!("credentials.{field}"), namespace) {
            credentials.insert(field.into(), reference);
        }
    }
    for field in ["clientCert", "clientKey"] {
        let why = "Proxmox VE has no login with a certificate; use an API token";
        fields.drop_all(&format!("credentials.{field}"), why);
    }
    let has = |field: &str| credentials.contains_key(field);
    if !(has("tokenId") && has("tokenSecret") || has("username") && has("password")) {
        fields.error("spec.credentials", "set tokenId and tokenSecret, or username and password");
    }
    Value::Object(credentials)
}

/// A key of a Secret, in both forms that the predecessor wrote of.
fn secret(fields: &mut Fields, path: &str, namespace: Option<&str>) -> Option<Value> {
    let full = format!("spec.{path}");
    if fields.take(&format!("{path}.optional")).is_some() {
        fields.note(&format!("{full}.optional"), "credentials are never optional");
    }
    let mut reference = fields.take(path)?;
    if let Some(inner) = reference.get_mut("secretKeyRef") {
        reference = inner.take();
    }
    if let Some(other) = reference["namespace"].as_str().filter(|other| Some(*other) != namespace) {
        let why = format!("a Secret has to be in the namespace of its HypervisorCluster; copy it from {other}");
        fields.note(&format!("{full}.namespace"), &why);
    }
    match (reference["name"].as_str(), reference["key"].as_str()) {
        (Some(name), Some(key)) => Some(json!({"name": name, "key": key})),
        _ => {
            fields.error(&full, "it needs name and key of a Secret");
            None
        }
    }
}

fn tls(fields: &mut Fields, namespace: Option<&str>) -> Option<Value> {
    let skips = fields.take("tls.insecureSkipVerify") == Some(json!(true));
    let authority = secret(fields, "tls.caCertificate", namespace);
    match (skips, authority) {
        (true, Some(authority)) => {
            let why = "caCertificate, which the predecessor did not read, verifies the certificate now";
            fields.note("spec.tls.insecureSkipVerify", why);
            Some(json!({"caCertificate": authority}))
        }
        (false, Some(authority)) => {
            fields.remark("spec.tls.caCertificate", "the predecessor did not read it; now it verifies the certificate");
            Some(json!({"caCertificate": authority}))
        }
        (true, None) => {
            let what = "whoever is in between learns the credentials; tls.fingerprint or tls.caCertificate is better";
            fields.remark("spec.tls.insecureSkipVerify", what);
            Some(json!({"insecureSkipVerify": true}))
        }
        (false, None) => None,
    }
}
