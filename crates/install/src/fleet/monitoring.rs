//! What lets a Prometheus of the Prometheus operator scrape the fleet, and the alerts about it.

use crate::FLEET;
use serde_json::{Value, json};

/// An alert: name, expression, for how long, summary and description.
type Alert = (&'static str, &'static str, &'static str, &'static str, &'static str);

/// The alerts. Series are aggregated over pods, so that a new pod of the fleet does not begin a new alert.
const ALERTS: [Alert; 12] = [
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
    (
        "VirtpilotFleetJobWaits",
        "time() - min by (reason) (virtpilot_fleet_jobs_waiting_since_timestamp_seconds{reason!=\"OnGitHub\"}) > 900",
        "5m",
        "A CI job waits for a machine for too long.",
        "A job has waited for more than 15 minutes ({{ $labels.reason }}). \"virtpilot queue\" shows it and why, \"virtpilot explain job ID\" what \
         would make it start.",
    ),
    (
        "VirtpilotFleetWebhookSilent",
        "max(virtpilot_fleet_webhooks_expected) > 0 and sum(increase(virtpilot_fleet_jobs_noticed_total{source=\"poll\"}[1h])) > 2 unless \
         sum(increase(virtpilot_fleet_jobs_noticed_total{source=\"webhook\"}[1h])) > 0",
        "10m",
        "No webhook of GitHub arrives.",
        "A RunnerPool expects webhooks, and all jobs of the last hour were found by polls, so that they start up to minutes late. Look at the \
         deliveries of the webhook on GitHub.",
    ),
    (
        "VirtpilotFleetRunnerVersionAgeing",
        "min by (pool, version) (virtpilot_fleet_runner_version_refused_timestamp_seconds) - time() < 7 * 86400",
        "1h",
        "GitHub refuses the runner version of a pool soon.",
        "GitHub gives runners of version {{ $labels.version }} no jobs any more within a week, and the pool {{ $labels.pool }} uses it. Take a \
         newer one.",
    ),
    (
        "VirtpilotFleetRunnerVersionRolledBack",
        "max by (pool, version) (virtpilot_fleet_runner_version_info{role=\"rolled-back\"}) > 0",
        "",
        "A new runner version has failed in a pool.",
        "Runners of version {{ $labels.version }} failed in the pool {{ $labels.pool }}, which goes on with the version before until GitHub refuses \
         that. The events of the RunnerPool say how they failed.",
    ),
    (
        "VirtpilotFleetOrphanRunners",
        "sum by (owner) (increase(virtpilot_fleet_orphan_runners_found_total[1h])) > 2",
        "",
        "Runners on GitHub have no machine again and again.",
        "Several runners of {{ $labels.owner }} were registered by this fleet and had no claim within an hour. They are removed; somebody deletes \
         claims, or another installation has the same uid.",
    ),
    (
        "VirtpilotFleetRateLimit",
        "min by (owner) (virtpilot_fleet_github_requests_remaining) < 0.1 * max by (owner) (virtpilot_fleet_github_requests_limit)",
        "5m",
        "The limit of requests to GitHub is nearly used up.",
        "Less than a tenth of the requests of {{ $labels.owner }} is left: jobs are listed less often, and soon no runner can be registered until \
         the limit is reset.",
    ),
];

/// Where the runbooks are, in this repository as for the other alerts.
const RUNBOOKS: &str = "docs/runbooks";
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
    let runbook = format!("{RUNBOOKS}/{alert}.md");
    let mut rule = json!({
        "alert": alert,
        "expr": expr,
        "labels": {"severity": "warning", "operator": FLEET},
        "annotations": {"summary": summary, "description": description, "runbook": runbook},
    });
    if !wait.is_empty() {
        rule["for"] = json!(wait);
    }
    rule
}
