//! The profiles node-remediation, host-performance and observability.

use super::cluster::Bed;
use super::{line, object, pack};
use catalog::{ProfileWants, WantedResult};
use serde_json::{Value, json};

/// The names of the items that have an object.
fn written(wants: &ProfileWants) -> Vec<&str> {
    let is_written = |result: &WantedResult| matches!(result, WantedResult::Object { .. });
    wants.items.iter().filter(|item| is_written(&item.result)).map(|item| item.name.as_str()).collect()
}

#[test]
fn a_node_is_remediated_by_itself_or_by_fencing_and_never_by_both() {
    let catalog = pack();
    let of = |options: Value| Bed::default().with(&catalog, "node-remediation", &options);
    let own = of(json!({}));
    assert_eq!(written(&own), ["check-nodes-with-self-remediation"]);
    assert_eq!(line(&own, "check-nodes-with-fencing"), "off: no NodeHealthCheck far");
    let fenced = of(json!({"fencing": true}));
    assert_eq!(written(&fenced), ["check-nodes-with-fencing"]);
    assert_eq!(line(&fenced, "check-nodes-with-self-remediation"), "off: no NodeHealthCheck snr");
    for (options, name) in [
        (json!({"unhealthyAfterSeconds": 600, "minHealthyPercent": 75}), "check-nodes-with-self-remediation"),
        (json!({"fencing": true, "unhealthyAfterSeconds": 600, "minHealthyPercent": 75}), "check-nodes-with-fencing"),
    ] {
        let wants = of(options);
        let spec = &object(&wants, name)["spec"];
        assert_eq!(spec["minHealthy"], "75%");
        assert!(spec["unhealthyConditions"].as_array().unwrap().iter().all(|one| one["duration"] == "600s"), "{spec}");
    }
    let stored = of(json!({"fencing": true, "detectLostStorage": true, "storageClass": "shared"}));
    assert_eq!(object(&stored, "detect-lost-storage")["spec"]["sharedStorageClass"], "shared");
    assert_eq!(written(&stored), ["detect-lost-storage", "check-nodes-with-fencing"]);
    let unnamed = of(json!({"fencing": true, "detectLostStorage": true}));
    assert!(line(&unnamed, "detect-lost-storage").contains("no storage class offers shared file systems"));
    let single = Bed::compact(1).with(&catalog, "node-remediation", &json!({}));
    assert!(line(&single, "check-nodes-with-self-remediation").contains("the cluster has one node"));
}

#[test]
fn the_kubelet_is_configured_as_the_options_say() {
    let catalog = pack();
    let kubelet = |options: Value| {
        let wants = Bed::default().with(&catalog, "host-performance", &options);
        object(&wants, "configure-kubelet")["spec"]["kubeletConfig"].clone()
    };
    let all = kubelet(json!({}));
    assert_eq!(
        (&all["cpuManagerPolicy"], &all["topologyManagerPolicy"], &all["maxPods"]),
        (&json!("static"), &json!("best-effort"), &json!(500))
    );
    assert_eq!(kubelet(json!({"kubeletSettings": false}))["maxPods"], Value::Null);
    assert_eq!(kubelet(json!({"numa": false}))["topologyManagerPolicy"], Value::Null);
    assert_eq!(kubelet(json!({"numa": false, "cpuManager": false}))["cpuManagerPolicy"], Value::Null);
    assert_eq!(kubelet(json!({"numaReservedMemory": "8Gi"}))["systemReserved"], json!({"memory": "8192Mi"}));
    let none = json!({"kubeletSettings": false, "numa": false, "cpuManager": false});
    let wants = Bed::default().with(&catalog, "host-performance", &none);
    assert_eq!(line(&wants, "configure-kubelet"), "off: no KubeletConfig virt-perf-settings");
}

#[test]
fn huge_pages_and_numa_balancing_are_tuned_on_the_nodes_that_run_virtual_machines() {
    let catalog = pack();
    let of = |bed: Bed, options: Value| bed.with(&catalog, "host-performance", &options);
    assert_eq!(written(&of(Bed::default(), json!({}))), ["configure-kubelet", "tune-huge-pages"]);
    assert_eq!(written(&of(Bed::default(), json!({"transparentHugePages": false}))), ["configure-kubelet"]);
    assert_eq!(
        written(&of(Bed::default(), json!({"disableNumaBalancing": true}))),
        ["configure-kubelet", "tune-huge-pages", "disable-numa-balancing"]
    );
    let masters = of(Bed::compact(3), json!({"disableNumaBalancing": true}));
    for name in ["configure-kubelet-master", "tune-huge-pages-master", "disable-numa-balancing-master"] {
        assert!(written(&masters).contains(&name), "{:?}", written(&masters));
    }
}

#[test]
fn the_console_shows_what_the_options_say() {
    let catalog = pack();
    let of = |options: Value| Bed::default().with(&catalog, "observability", &options);
    let plain = of(json!({}));
    assert_eq!(written(&plain), ["show-dashboards", "show-troubleshooting-panel"]);
    assert_eq!(object(&plain, "show-dashboards")["spec"]["monitoring"], json!({"perses": {"enabled": true}}));
    let incidents = of(json!({"incidentDetection": true, "troubleshootingPanel": false, "deschedulerDashboard": true}));
    assert_eq!(written(&incidents), ["show-dashboards", "add-descheduler-dashboard"]);
    assert_eq!(
        object(&incidents, "show-dashboards")["spec"]["monitoring"]["clusterHealthAnalyzer"],
        json!({"enabled": true})
    );
}

#[test]
fn logs_are_stored_where_the_options_say() {
    let catalog = pack();
    let of = |options: Value| Bed::default().with(&catalog, "observability", &options);
    let logs = of(json!({"logging": true, "logStorageClass": "fast", "logSize": "1x.small"}));
    let store = &object(&logs, "store-logs")["spec"];
    assert_eq!((&store["storageClassName"], &store["size"]), (&json!("fast"), &json!("1x.small")));
    assert_eq!(line(&logs, "allow-audit-logs"), "off: no ClusterRoleBinding logging-collector-audit");
    let audited = of(json!({"logging": true, "logStorageClass": "fast", "auditLogs": true}));
    assert_eq!(written(&audited).len(), written(&logs).len() + 1);
    assert!(object(&audited, "forward-logs").to_string().contains("drop-audit-system"));
    let unnamed = of(json!({"logging": true}));
    assert!(line(&unnamed, "store-logs").contains("storage class"), "{}", line(&unnamed, "store-logs"));
}
