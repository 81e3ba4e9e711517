//! A dashboard of the fleet for Perses, as those of the autopilot are.

use crate::FLEET;
use serde_json::{Map, Value, json};

/// The datasource of the autopilot's dashboards.
const DATASOURCE: &str = "perses-thanos-datasource";

/// How a panel looks.
#[derive(Clone, Copy)]
enum Look {
    /// Curves over time.
    Time,
    /// One number.
    Stat,
}

/// A panel: title, look, unit, width of 24 columns, and its queries with the names of their series.
type Panel = (&'static str, Look, &'static str, i64, &'static [(&'static str, &'static str)]);

/// A row: title and panels.
type Row = (&'static str, &'static [Panel]);

/// The rows about CI jobs.
const JOBS: [Row; 3] = [
    (
        "Jobs",
        &[
            (
                "Jobs that wait, by the reason",
                Look::Time,
                "decimal",
                12,
                &[("max by (reason) (virtpilot_fleet_jobs_waiting)", "{{reason}}")],
            ),
            (
                "The longest wait",
                Look::Time,
                "seconds",
                12,
                &[("time() - min by (reason) (virtpilot_fleet_jobs_waiting_since_timestamp_seconds)", "{{reason}}")],
            ),
            (
                "Queue time",
                Look::Time,
                "seconds",
                12,
                &[
                    (
                        "histogram_quantile(0.5, sum by (le, pool) (rate(virtpilot_fleet_job_queue_seconds_bucket[1h])))",
                        "{{pool}}, median",
                    ),
                    (
                        "histogram_quantile(0.9, sum by (le, pool) (rate(virtpilot_fleet_job_queue_seconds_bucket[1h])))",
                        "{{pool}}, 9 of 10",
                    ),
                ],
            ),
            (
                "Where the queue time goes, on average",
                Look::Time,
                "seconds",
                12,
                &[(
                    "sum by (phase) (rate(virtpilot_fleet_job_start_phase_seconds_sum[1h])) / sum by (phase) (rate(virtpilot_fleet_job_start_phase_seconds_count[1h]))",
                    "{{phase}}",
                )],
            ),
            (
                "Jobs that ended in an hour",
                Look::Time,
                "decimal",
                12,
                &[("sum by (pool, result) (increase(virtpilot_fleet_job_results_total[1h]))", "{{pool}}, {{result}}")],
            ),
            (
                "Who reported jobs first, in an hour",
                Look::Time,
                "decimal",
                12,
                &[("sum by (source) (increase(virtpilot_fleet_jobs_noticed_total[1h]))", "{{source}}")],
            ),
            (
                "Webhooks in an hour, by what became of them",
                Look::Time,
                "decimal",
                12,
                &[
                    ("sum by (result) (increase(virtpilot_fleet_webhooks_total[1h]))", "{{result}}"),
                    ("sum by (result) (increase(virtpilot_fleet_webhook_redeliveries_total[1h]))", "again: {{result}}"),
                ],
            ),
            (
                "Requests of guests in an hour",
                Look::Time,
                "decimal",
                12,
                &[(
                    "sum by (request, result) (increase(virtpilot_fleet_bootstrap_requests_total[1h]))",
                    "{{request}}, {{result}}",
                )],
            ),
        ],
    ),
    (
        "Runners",
        &[
            (
                "Runners by phase",
                Look::Time,
                "decimal",
                12,
                &[("max by (pool, phase) (virtpilot_fleet_runners)", "{{pool}}, {{phase}}")],
            ),
            (
                "Runners without a claim, in a day",
                Look::Stat,
                "decimal",
                12,
                &[("sum(increase(virtpilot_fleet_orphan_runners_found_total[1d]))", "found")],
            ),
            (
                "Runner versions",
                Look::Time,
                "decimal",
                12,
                &[(
                    "count by (version, role) (max by (pool, version, role) (virtpilot_fleet_runner_version_info))",
                    "{{version}}, {{role}}",
                )],
            ),
            (
                "Until GitHub refuses the version",
                Look::Time,
                "seconds",
                12,
                &[(
                    "min by (pool, version) (virtpilot_fleet_runner_version_refused_timestamp_seconds) - time()",
                    "{{pool}}, {{version}}",
                )],
            ),
        ],
    ),
    (
        "GitHub",
        &[(
            "Requests that are left",
            Look::Time,
            "percent-decimal",
            24,
            &[(
                "min by (owner) (virtpilot_fleet_github_requests_remaining) / max by (owner) (virtpilot_fleet_github_requests_limit)",
                "{{owner}}",
            )],
        )],
    ),
];

/// The rows about machines. `$hypervisor` is a choice.
const MACHINES: [Row; 4] = [
    (
        "State",
        &[
            (
                "Machines by phase",
                Look::Time,
                "decimal",
                12,
                &[("sum by (phase) (virtpilot_fleet_machines{hypervisor=~\"$hypervisor\"})", "{{phase}}")],
            ),
            (
                "Machines by power",
                Look::Time,
                "decimal",
                12,
                &[("sum by (power) (virtpilot_fleet_machines_by_power{hypervisor=~\"$hypervisor\"})", "{{power}}")],
            ),
            (
                "Hypervisors that can be used",
                Look::Time,
                "decimal",
                12,
                &[(
                    "max by (hypervisor) (virtpilot_fleet_hypervisor_ready{hypervisor=~\"$hypervisor\"})",
                    "{{hypervisor}}",
                )],
            ),
            ("Leader", Look::Stat, "decimal", 6, &[("max(virtpilot_fleet_leader)", "leads")]),
            (
                "Versions",
                Look::Stat,
                "decimal",
                6,
                &[("count by (version) (virtpilot_fleet_build_info)", "{{version}}")],
            ),
            (
                "Machines without a claim",
                Look::Stat,
                "decimal",
                6,
                &[("sum(max by (hypervisor) (virtpilot_fleet_orphans{hypervisor=~\"$hypervisor\"}))", "orphans")],
            ),
            (
                "Orphans of a day",
                Look::Stat,
                "decimal",
                6,
                &[
                    ("sum(increase(virtpilot_fleet_orphans_found_total{hypervisor=~\"$hypervisor\"}[1d]))", "found"),
                    (
                        "sum(increase(virtpilot_fleet_orphans_destroyed_total{hypervisor=~\"$hypervisor\"}[1d]))",
                        "destroyed",
                    ),
                ],
            ),
        ],
    ),
    (
        "Provisioning",
        &[
            (
                "Time until machines are ready",
                Look::Time,
                "seconds",
                12,
                &[
                    (
                        "histogram_quantile(0.5, sum by (le, template) (rate(virtpilot_fleet_provisioning_duration_seconds_bucket[1h])))",
                        "{{template}}, median",
                    ),
                    (
                        "histogram_quantile(0.9, sum by (le, template) (rate(virtpilot_fleet_provisioning_duration_seconds_bucket[1h])))",
                        "{{template}}, 9 of 10",
                    ),
                ],
            ),
            (
                "Part of claims that become ready",
                Look::Time,
                "percent-decimal",
                12,
                &[(
                    "sum by (template) (rate(virtpilot_fleet_provisioning_results_total{result=\"Ready\"}[1h])) / sum by (template) (rate(virtpilot_fleet_provisioning_results_total[1h]))",
                    "{{template}}",
                )],
            ),
        ],
    ),
    (
        "Pools",
        &[
            (
                "Machines that are wanted, there and ready",
                Look::Time,
                "decimal",
                12,
                &[
                    ("max by (pool) (virtpilot_fleet_pool_desired_machines)", "{{pool}}, wanted"),
                    ("max by (pool) (virtpilot_fleet_pool_machines)", "{{pool}}, there"),
                    ("max by (pool) (virtpilot_fleet_pool_ready_machines)", "{{pool}}, ready"),
                ],
            ),
            (
                "Failed claims that are kept",
                Look::Time,
                "decimal",
                12,
                &[("max by (pool) (virtpilot_fleet_pool_failed_machines)", "{{pool}}")],
            ),
        ],
    ),
    (
        "Hypervisors",
        &[
            (
                "CPUs that are left",
                Look::Time,
                "decimal",
                12,
                &[(
                    "max by (hypervisor) (virtpilot_fleet_hypervisor_available_cpus{hypervisor=~\"$hypervisor\"})",
                    "{{hypervisor}}",
                )],
            ),
            (
                "Memory that is left",
                Look::Time,
                "bytes",
                12,
                &[(
                    "max by (hypervisor) (virtpilot_fleet_hypervisor_available_memory_bytes{hypervisor=~\"$hypervisor\"})",
                    "{{hypervisor}}",
                )],
            ),
            (
                "Median time of operations",
                Look::Time,
                "seconds",
                12,
                &[(
                    "histogram_quantile(0.5, sum by (le, operation) (rate(virtpilot_fleet_operation_duration_seconds_bucket{hypervisor=~\"$hypervisor\"}[15m])))",
                    "{{operation}}",
                )],
            ),
            (
                "Failed operations per second",
                Look::Time,
                "decimal",
                12,
                &[(
                    "sum by (operation, class) (rate(virtpilot_fleet_operation_errors_total{hypervisor=~\"$hypervisor\"}[15m]))",
                    "{{operation}}, {{class}}",
                )],
            ),
            (
                "Time of requests, 9 of 10",
                Look::Time,
                "seconds",
                24,
                &[(
                    "histogram_quantile(0.9, sum by (le, method, path) (rate(virtpilot_fleet_hypervisor_request_duration_seconds_bucket[15m])))",
                    "{{method}} {{path}}",
                )],
            ),
        ],
    ),
];

/// The dashboard of machines. It is not part of the installation, because not every cluster serves its kind.
pub fn dashboard(namespace: &str) -> Value {
    let variables = [variable("hypervisor", "Hypervisor", "virtpilot_fleet_hypervisor_ready")];
    of_rows(namespace, FLEET, "Virtpilot / Fleet", &MACHINES, &variables)
}

/// The dashboard of CI jobs.
pub fn dashboard_of_jobs(namespace: &str) -> Value {
    of_rows(namespace, &format!("{FLEET}-jobs"), "Virtpilot / CI jobs", &JOBS, &[])
}

fn of_rows(namespace: &str, name: &str, display: &str, rows: &[Row], variables: &[Value]) -> Value {
    let (mut panels, mut layouts) = (Map::new(), Vec::new());
    for (row, (title, of_row)) in rows.iter().enumerate() {
        let (mut items, mut x, mut y, mut tallest) = (Vec::new(), 0, 0, 0);
        for (place, (name, look, unit, width, queries)) in of_row.iter().enumerate() {
            let (id, height) = (format!("panel-{row}-{place}"), if matches!(look, Look::Stat) { 4 } else { 8 });
            if x + width > 24 {
                (x, y, tallest) = (0, y + tallest, 0);
            }
            let content = json!({"$ref": format!("#/spec/panels/{id}")});
            items.push(json!({"x": x, "y": y, "width": width, "height": height, "content": content}));
            (x, tallest) = (x + width, tallest.max(height));
            let queries: Vec<Value> = queries.iter().map(|(query, legend)| time_series(query, legend)).collect();
            let spec = json!({"display": {"name": name}, "plugin": plugin(*look, unit), "queries": queries});
            panels.insert(id, json!({"kind": "Panel", "spec": spec}));
        }
        let title = json!({"title": title, "collapse": {"open": true}});
        layouts.push(json!({"kind": "Grid", "spec": {"display": title, "items": items}}));
    }
    let labels = json!({"app.kubernetes.io/name": FLEET, "app.kubernetes.io/component": "dashboard"});
    json!({
        "apiVersion": "perses.dev/v1alpha2",
        "kind": "PersesDashboard",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {"config": {
            "display": {"name": display},
            "duration": "6h",
            "variables": variables,
            "panels": panels,
            "layouts": layouts,
        }},
    })
}

fn datasource() -> Value {
    json!({"kind": "PrometheusDatasource", "name": DATASOURCE})
}

/// A choice of the values of a label.
fn variable(label: &str, title: &str, series: &str) -> Value {
    let values = json!({"datasource": datasource(), "labelName": label, "matchers": [series]});
    json!({"kind": "ListVariable", "spec": {
        "name": label,
        "display": {"name": title},
        "allowAllValue": true,
        "allowMultiple": true,
        "customAllValue": ".*",
        "defaultValue": "$__all",
        "sort": "alphabetical-asc",
        "plugin": {"kind": "PrometheusLabelValuesVariable", "spec": values},
    }})
}

fn plugin(look: Look, unit: &str) -> Value {
    match look {
        Look::Time => json!({"kind": "TimeSeriesChart", "spec": {
            "legend": {"position": "bottom", "mode": "table", "values": ["last"]},
            "yAxis": {"format": {"unit": unit}},
            "visual": {"lineWidth": 1, "areaOpacity": 0.1, "connectNulls": false},
        }}),
        Look::Stat => json!({"kind": "StatChart", "spec": {"calculation": "last", "format": {"unit": unit}}}),
    }
}

fn time_series(query: &str, legend: &str) -> Value {
    let spec = json!({"datasource": datasource(), "query": query, "seriesNameFormat": legend});
    json!({"kind": "TimeSeriesQuery", "spec": {"plugin": {"kind": "PrometheusTimeSeriesQuery", "spec": spec}}})
}
