//! What lets a Prometheus of the Prometheus operator scrape the fleet, and the alerts about it.

use crate::FLEET;
use serde_json::{Value, json};

/// An alert: name, expression, for how long, summary and description.
type Alert = (&'static str, &'static str, &'static str, &'static str, &'static str);

/// The alerts. Series are aggregated over pods, so that a new pod of the fleet does not begin a new alert.
const ALERTS: [Alert; 6] = [
    (
        "VirtpilotFleetDown",
        "absent(virtpilot_fleet_build_info)",
        "15m",
        "The fleet is not running.",
        "No metrics of the fleet have been scraped for 15 minutes: machines are neither created nor destroyed. Look at the Deployment \
         virtpilot-fleet.",
    ),
    (
        "VirtpilotFleetNoLeader",
        "max(virtpilot_fleet_leader) == 0",
        "5m",
        "No replica of the fleet leads.",
        "The replicas of the fleet run, and none has led for 5 minutes: machines are neither created nor destroyed. The log says what they \
         wait for.",
    ),
    (
        "VirtpilotFleetHypervisorNotReady",
        "max by (hypervisor) (virtpilot_fleet_hypervisor_ready) == 0",
        "10m",
        "A hypervisor of the fleet cannot be used.",
        "No machine can be created on {{ $labels.hypervisor }} for 10 minutes, and those on it cannot be destroyed. \"virtpilot fleet \
         check\" says why and what to do.",
    ),
    (
        "VirtpilotFleetMachinesFail",
        "sum by (template) (increase(virtpilot_fleet_provisioning_results_total{result!=\"Ready\"}[30m])) > 2",
        "",
        "Machines of the fleet do not become ready.",
        "Several claims of the template {{ $labels.template }} have failed within 30 minutes. \"virtpilot fleet list\" shows them, \
         \"virtpilot fleet explain NAME\" says why.",
    ),
    (
        "VirtpilotFleetPoolShort",
        "max by (pool) (virtpilot_fleet_pool_ready_machines) < max by (pool) (virtpilot_fleet_pool_desired_machines)",
        "30m",
        "A pool of the fleet has fewer machines than it wants.",
        "The pool {{ $labels.pool }} has had fewer machines that are ready than it wants for 30 minutes. \"virtpilot fleet explain pool/NAME\" says why, and names the claim to look at.",
    ),
    (
        "VirtpilotFleetOrphan",
        "max by (hypervisor) (virtpilot_fleet_orphans) > 0",
        "30m",
        "A machine of the fleet has no claim.",
        "{{ $value }} machine(s) of the fleet on {{ $labels.hypervisor }} have had no claim for 30 minutes: they could not be destroyed, or \
         orphans.policy is Report. The status of the HypervisorCluster names them.",
    ),
];

/// The Service, the ServiceMonitor and the PrometheusRule. They are not part of the installation, because not every cluster serves the
/// last two.
pub fn monitoring(namespace: &str) -> Vec<Value> {
    let labels = json!({"app": FLEET, "app.kubernetes.io/name": FLEET});
    let metadata = |name: &str| json!({"name": name, "namespace": namespace, "labels": labels});
    let metrics = format!("{FLEET}-metrics");
    let service = json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(&metrics),
        "spec": {
            "selector": {"app": FLEET, "control-plane": "controller-manager"},
            "ports": [{"name": "metrics", "port": 8080, "targetPort": 8080, "protocol": "TCP"}],
        },
    });
    let monitor = json!({
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "ServiceMonitor",
        "metadata": metadata(&metrics),
        "spec": {
            "selector": {"matchLabels": {"app.kubernetes.io/name": FLEET}},
            "endpoints": [{"port": "metrics", "path": "/metrics", "scheme": "http", "interval": "30s"}],
        },
    });
    let rule = json!({
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": metadata(&format!("{FLEET}-alerts")),
        "spec": {"groups": [{"name": FLEET, "interval": "30s", "rules": ALERTS.map(rule)}]},
    });
    vec![service, monitor, rule]
}

fn rule((alert, expr, wait, summary, description): Alert) -> Value {
    let mut rule = json!({
        "alert": alert,
        "expr": expr,
        "labels": {"severity": "warning", "operator": FLEET},
        "annotations": {"summary": summary, "description": description},
    });
    if !wait.is_empty() {
        rule["for"] = json!(wait);
    }
    rule
}
