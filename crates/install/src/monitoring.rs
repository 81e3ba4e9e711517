//! What lets a Prometheus of the Prometheus operator scrape an advisor that is deployed by itself, and the alerts about it. Beside the autopilot
//! these are assets of the catalogue.

use crate::ADVISOR;
use serde_json::{Value, json};

/// What the names of all alerts about the advisor start with.
const ALERTS: &str = "VirtAdvisor";

/// The Service, the ServiceMonitor and the PrometheusRule, with the alerts of `of_catalogue` that are about the advisor. They are not part of
/// the installation, because not every cluster serves the last two.
pub fn advisor_monitoring(namespace: &str, of_catalogue: &Value) -> Vec<Value> {
    let labels = json!({"app": ADVISOR, "app.kubernetes.io/name": ADVISOR});
    let metadata = |name: &str| json!({"name": name, "namespace": namespace, "labels": labels});
    let metrics = format!("{ADVISOR}-metrics");
    let service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(&metrics),
        "spec": {
            "selector": {"app": ADVISOR, "control-plane": "controller-manager"},
            "ports": [{"name": "metrics", "port": 8080, "targetPort": 8080, "protocol": "TCP"}],
        },
    });
    let monitor = json!({
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": metadata(&metrics),
        "spec": {
            "selector": {"matchLabels": {"app.kubernetes.io/name": ADVISOR}},
            "endpoints": [{"port": "metrics", "path": "/metrics", "scheme": "http", "interval": "30s"}],
        },
    });
    let groups = of_catalogue["spec"]["groups"].as_array().into_iter().flatten();
    let all = groups.flat_map(|group| group["rules"].as_array().into_iter().flatten());
    let own = all.filter(|rule| rule["alert"].as_str().is_some_and(|name| name.starts_with(ALERTS)));
    let mut rules: Vec<Value> = own.cloned().chain([down(&metrics)]).collect();
    for rule in &mut rules {
        rule["labels"]["operator"] = json!(ADVISOR);
        rule["labels"]["kubernetes_operator_component"] = json!("advisor");
    }
    let rule = json!({
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": metadata(&format!("{ADVISOR}-alerts")),
        "spec": {"groups": [{"name": ADVISOR, "interval": "30s", "rules": rules}]},
    });
    vec![service, monitor, rule]
}

/// Nobody else says that it does not run. Its metrics are about profiles, and without a profile there is none, so this asks whether it was
/// scraped.
fn down(job: &str) -> Value {
    json!({
        "alert": "VirtAdvisorDown",
        "expr": format!("absent(up{{job=\"{job}\"}} == 1)"),
        "for": "15m",
        "labels": {"severity": "warning", "operator_health_impact": "warning", "kubernetes_operator_part_of": "kubevirt"},
        "annotations": {
            "summary": "The advisor of the virtualization platform is not running.",
            "description": format!(
                "No metrics of the advisor have been scraped for 15 minutes: it does not run, or Prometheus cannot reach it. Profiles are neither planned nor applied. Look at the Deployment {ADVISOR}."
            ),
            "runbook": "docs/runbooks/VirtAdvisorDown.md",
        },
    })
}
