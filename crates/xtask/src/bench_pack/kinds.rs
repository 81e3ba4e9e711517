//! The kinds of the benchmark pack and the parameters of their objects.

/// The number of objects of each kind.
pub(super) const EACH: usize = 4;

/// A kind: a template and parameters for four objects.
pub(super) struct Kind {
    /// The Kubernetes kind; also the component of its assets.
    pub(super) kind: &'static str,
    /// Its folder, its group and the prefix of its assets' names.
    pub(super) slug: &'static str,
    pub(super) feature: &'static str,
    pub(super) order: i64,
    pub(super) template: &'static str,
    /// The objects' names; for a MachineConfig without the role prefix.
    pub(super) names: [&'static str; EACH],
    /// Additional parameters, each with one value per object.
    pub(super) params: &'static [(&'static str, [&'static str; EACH])],
}

/// Kinds of real platforms. None of them grants rights: the operator may not grant permissions that it does not have.
pub(super) const KINDS: [Kind; 20] = [
    Kind {
        kind: "ServiceAccount",
        slug: "service-account",
        feature: "metrics-exporters",
        order: 0,
        template: include_str!("templates/service_account.yaml.tpl"),
        names: EXPORTERS,
        params: &[],
    },
    Kind {
        kind: "MachineConfig",
        slug: "machine-config",
        feature: "nodes",
        order: 1,
        template: include_str!("templates/machine_config.yaml.tpl"),
        names: TUNERS,
        params: &[
            ("role", ["worker", "worker", "master", "master"]),
            (
                "script",
                [
                    "scripts/bench-swap-tuner.sh",
                    "scripts/bench-page-tuner.sh",
                    "scripts/bench-disk-tuner.sh",
                    "scripts/bench-net-tuner.sh",
                ],
            ),
        ],
    },
    Kind {
        kind: "KubeletConfig",
        slug: "kubelet-config",
        feature: "nodes",
        order: 1,
        template: include_str!("templates/kubelet_config.yaml.tpl"),
        names: ["bench-worker-pods", "bench-worker-cpus", "bench-master-pods", "bench-master-cpus"],
        params: &[
            ("pool", ["worker", "worker", "master", "master"]),
            ("cpus", ["shared", "static", "shared", "static"]),
        ],
    },
    Kind {
        kind: "Service",
        slug: "service",
        feature: "metrics-exporters",
        order: 1,
        template: include_str!("templates/service.yaml.tpl"),
        names: EXPORTERS,
        params: &[("ports", ["metrics", "metrics,health", "metrics,health,profile", "metrics,traces"])],
    },
    Kind {
        kind: "ConfigMap",
        slug: "config-map",
        feature: "metrics-exporters",
        order: 1,
        template: include_str!("templates/config_map.yaml.tpl"),
        names: EXPORTERS,
        params: &[(
            "file",
            [
                "config/bench-storage-exporter.yaml",
                "config/bench-network-exporter.yaml",
                "config/bench-memory-exporter.yaml",
                "config/bench-guest-exporter.yaml",
            ],
        )],
    },
    Kind {
        kind: "KubeDescheduler",
        slug: "kube-descheduler",
        feature: "operators",
        order: 1,
        template: include_str!("templates/kube_descheduler.yaml.tpl"),
        names: ["bench-cluster", "bench-workers", "bench-infra", "bench-trial"],
        params: &[("mode", ["Automatic", "Automatic", "Predictive", "Predictive"])],
    },
    Kind {
        kind: "UIPlugin",
        slug: "ui-plugin",
        feature: "observability",
        order: 1,
        template: include_str!("templates/ui_plugin.yaml.tpl"),
        names: ["monitoring", "dashboards", "troubleshooting-panel", "distributed-tracing"],
        params: &[("type", ["Monitoring", "Dashboards", "TroubleshootingPanel", "DistributedTracing"])],
    },
    Kind {
        kind: "MetalLB",
        slug: "metal-lb",
        feature: "operators",
        order: 1,
        template: include_str!("templates/metal_lb.yaml.tpl"),
        names: ["bench-front", "bench-back", "bench-storage", "bench-trial"],
        params: &[("level", ["info", "warn", "error", "debug"])],
    },
    Kind {
        kind: "ForkliftController",
        slug: "forklift-controller",
        feature: "operators",
        order: 1,
        template: include_str!("templates/forklift_controller.yaml.tpl"),
        names: ["bench-vsphere", "bench-ovirt", "bench-openstack", "bench-ova"],
        params: &[("inflight", ["10", "20", "30", "40"])],
    },
    Kind {
        kind: "PrometheusRule",
        slug: "prometheus-rule",
        feature: "observability",
        order: 2,
        template: include_str!("templates/prometheus_rule.yaml.tpl"),
        names: ["bench-storage-alerts", "bench-network-alerts", "bench-memory-alerts", "bench-guest-alerts"],
        params: &[("subject", ["storage", "network", "memory", "guest"])],
    },
    Kind {
        kind: "ServiceMonitor",
        slug: "service-monitor",
        feature: "observability",
        order: 2,
        template: include_str!("templates/service_monitor.yaml.tpl"),
        names: EXPORTERS,
        params: &[
            ("ports", ["metrics", "metrics,health", "metrics,health,profile", "metrics,traces"]),
            ("interval", ["30s", "30s", "1m", "15s"]),
        ],
    },
    Kind {
        kind: "PodMonitor",
        slug: "pod-monitor",
        feature: "observability",
        order: 2,
        template: include_str!("templates/pod_monitor.yaml.tpl"),
        names: EXPORTERS,
        params: &[("interval", ["30s", "30s", "1m", "15s"])],
    },
    Kind {
        kind: "PersesDatasource",
        slug: "perses-datasource",
        feature: "observability",
        order: 2,
        template: include_str!("templates/perses_datasource.yaml.tpl"),
        names: ["bench-thanos", "bench-prometheus", "bench-user-workload", "bench-archive"],
        params: &[
            ("display", ["All metrics", "Platform: metrics", "User workload", "Long-term archive"]),
            ("host", ["thanos-querier", "prometheus-k8s", "prometheus-user-workload", "thanos-archive"]),
        ],
    },
    Kind {
        kind: "NodeHealthCheck",
        slug: "node-health-check",
        feature: "nodes",
        order: 2,
        template: include_str!("templates/node_health_check.yaml.tpl"),
        names: ["bench-workers", "bench-masters", "bench-infra", "bench-gpu"],
        params: &[
            ("role", ["worker", "control-plane", "infra", "gpu"]),
            ("patience", ["300s", "600s", "300s", "900s"]),
        ],
    },
    Kind {
        kind: "SecurityContextConstraints",
        slug: "security-context-constraints",
        feature: "metrics-exporters",
        order: 2,
        template: include_str!("templates/security_context_constraints.yaml.tpl"),
        names: EXPORTERS,
        params: &[("account", EXPORTERS), ("priority", ["10", "11", "12", "13"])],
    },
    Kind {
        kind: "DaemonSet",
        slug: "daemon-set",
        feature: "metrics-exporters",
        order: 3,
        template: include_str!("templates/daemon_set.yaml.tpl"),
        names: EXPORTERS,
        params: &[
            (
                "image",
                [
                    "registry.invalid/bench/storage:1",
                    "registry.invalid/bench/network:1",
                    "registry.invalid/bench/memory:1",
                    "registry.invalid/bench/guest:1",
                ],
            ),
            ("features", ["block,nfs,cgroup", "flows,drops", "pressure,swap,ksm,thp", "agent,monitor,events"]),
        ],
    },
    Kind {
        kind: "NetworkPolicy",
        slug: "network-policy",
        feature: "metrics-exporters",
        order: 3,
        template: include_str!("templates/network_policy.yaml.tpl"),
        names: EXPORTERS,
        params: &[(
            "from",
            ["openshift-monitoring", "openshift-monitoring", "openshift-logging", "openshift-operators"],
        )],
    },
    Kind {
        kind: "PersesDashboard",
        slug: "perses-dashboard",
        feature: "observability",
        order: 3,
        template: include_str!("templates/perses_dashboard.yaml.tpl"),
        names: ["bench-storage", "bench-network", "bench-memory", "bench-guest"],
        params: &[
            ("display", ["Storage: from guest to disk", "Network", "Memory and swap", "Guests"]),
            ("duration", ["1h", "6h", "1h", "30m"]),
            (
                "subjects",
                ["read,write,flush,discard", "send,receive,drop,retry", "fault,reclaim,swap,merge", "boot,agent,clock"],
            ),
            ("datasource", ["bench-thanos", "bench-thanos", "bench-prometheus", "bench-user-workload"]),
        ],
    },
    Kind {
        kind: "ClusterLogForwarder",
        slug: "cluster-log-forwarder",
        feature: "observability",
        order: 3,
        template: include_str!("templates/cluster_log_forwarder.yaml.tpl"),
        names: ["bench-everything", "bench-applications", "bench-platform", "bench-audit"],
        params: &[("inputs", ["application,infrastructure", "application", "infrastructure", "audit"])],
    },
    Kind {
        kind: "OperationRuleSet",
        slug: "operation-rule-set",
        feature: "in-flight-operations",
        order: 20,
        template: include_str!("templates/operation_rule_set.yaml.tpl"),
        names: ["bench-datavolume", "bench-vmi", "bench-migration", "bench-backup"],
        params: &[
            ("role", ["root", "child", "child", "root"]),
            ("component", ["cdi", "kubevirt", "kubevirt", "oadp"]),
            ("group", ["cdi.kubevirt.io", "kubevirt.io", "kubevirt.io", "velero.io"]),
            ("version", ["v1beta1", "v1", "v1", "v1"]),
            ("resource", ["datavolumes", "virtualmachineinstances", "virtualmachineinstancemigrations", "backups"]),
            (
                "phases",
                [
                    "Pending,ImportScheduled,ImportInProgress,CloneScheduled,CloneInProgress,UploadScheduled,UploadReady,\
                     ExpansionInProgress,RebindInProgress,WaitForFirstConsumer,PVCBound,PendingPopulation",
                    "Pending,Scheduling,Scheduled,WaitingForSync",
                    "Pending,Scheduling,Scheduled,PreparingTarget,Running",
                    "InProgress,WaitingForPluginOperations,Finalizing,FinalizingPartiallyFailed",
                ],
            ),
        ],
    },
];

const EXPORTERS: [&str; EACH] =
    ["bench-storage-exporter", "bench-network-exporter", "bench-memory-exporter", "bench-guest-exporter"];
const TUNERS: [&str; EACH] = ["bench-swap-tuner", "bench-page-tuner", "bench-disk-tuner", "bench-net-tuner"];
