//! The rules for patches by kind, as data; the check itself and `virtpilot explain patch` both read this table.

use super::{Class, PathRule, Sensitive};

const fn rule(path: &'static str, why: &'static str) -> PathRule {
    PathRule { path, why }
}

/// Labels and annotations.
const OWN: &[PathRule] = &[
    rule("/metadata/labels/*", "users may label objects"),
    rule("/metadata/annotations/*", "users may annotate objects"),
];

/// Labels and annotations that controllers act on.
const PRIVILEGED_NAMES: &[PathRule] = &[
    rule("/metadata/labels/platform.kubevirt.io~1*", "it marks the object as managed"),
    rule("/metadata/annotations/*kubevirt.io~1*", "the platform's controllers act on it, and so do we"),
    rule(
        "/metadata/annotations/*openshift.io~1*",
        "controllers act on it with privileges of their own, down to the image that runs",
    ),
    rule("/metadata/annotations/*kubernetes.io~1*", "controllers act on it with privileges of their own"),
    rule("/metadata/annotations/*k8s.io~1*", "controllers act on it with privileges of their own"),
];

/// Fields that grant privileges in any kind, also in a pod or a host file inside a custom resource.
const PRIVILEGED_FIELDS: &[PathRule] = &[
    rule("/spec/**/*image*/**", "it chooses the program that runs"),
    rule("/spec/**/*Image*/**", "it chooses the program that runs"),
    rule("/spec/**/*_fqin/**", "it chooses the program that runs"),
    rule("/spec/**/command/**", "it chooses the program that runs"),
    rule("/spec/**/args/**", "it controls a program that has privileges of its own"),
    rule("/spec/**/containers/**", "it adds a program to a managed pod"),
    rule("/spec/**/initContainers/**", "it adds a program to a managed pod"),
    rule("/spec/**/ephemeralContainers/**", "it adds a program to a managed pod"),
    rule("/spec/**/lifecycle/**", "it runs a command in a managed pod"),
    rule("/spec/**/podTemplate/**", "it contains a whole pod"),
    rule("/spec/**/serviceAccount*/**", "it chooses the service account of a pod"),
    rule("/spec/**/securityContext/**", "it can make a pod root on its node"),
    rule("/spec/**/podSecurityContext/**", "it can make a pod root on its node"),
    rule("/spec/**/privileged/**", "it makes a container root on its node"),
    rule("/spec/**/capabilities/**", "it can make a container root on its node"),
    rule(
        "/spec/**/host*/**",
        "it gives access to a node's files, devices, network or processes, or claims a host name",
    ),
    rule("/spec/**/volumes/**", "it can mount a node's files or a Secret into a pod"),
    rule("/spec/**/volumeMounts/**", "it can mount a Secret where a program exposes it"),
    rule("/spec/**/envFrom/**", "it reads a whole Secret of the namespace"),
    rule("/spec/**/valueFrom/**", "it reads a Secret of the namespace"),
    rule("/spec/**/*ecret*/**", "it reads a Secret, or chooses which credentials are used"),
    rule("/spec/**/*redential*/**", "it chooses which credentials are used"),
    rule("/spec/**/*Token*/**", "it sends a token somewhere"),
    rule("/spec/**/kubeconfig*/**", "it chooses which credentials are used"),
    rule("/spec/**/runtimeClassName/**", "it chooses how a pod is isolated from its node"),
    rule("/spec/**/priorityClassName/**", "it lets a pod preempt others"),
    rule("/spec/**/unsupportedConfigOverrides/**", "it overrides any setting of an operator without validation"),
    rule("/spec/**/jsonpatch*/**", "it is a patch inside a patch"),
    rule("/spec/**/customizeComponents/**", "it patches the platform's own pods"),
];

/// Fields of a Service that redirect traffic away from its own pods.
const TRAFFIC_REDIRECTION: &[PathRule] = &[
    rule("/spec/selector/**", "it redirects traffic of managed pods to other pods"),
    rule("/spec/externalName", "it redirects traffic of managed pods to any host"),
    rule("/spec/externalIPs/**", "it takes over traffic to these addresses"),
    rule("/spec/loadBalancer*/**", "it exposes the Service to other networks"),
    rule("/spec/template/**", "it contains a whole pod, in kinds of this name in other groups"),
];

/// Fields of a pod that grant privileges below an open path.
const PRIVILEGED_POD_FIELDS: &[PathRule] = &[
    rule("/**/env/*/valueFrom/**", "it reads a Secret of the namespace"),
    rule("/**/resources/claims/**", "it claims devices"),
];

/// The default rules, for every kind that is not named elsewhere.
pub(super) const DEFAULT: Class = Class {
    name: "default",
    kinds: &[],
    why: "A kind without rules of its own: its content, except fields that grant privileges in any kind.",
    open: &[
        &[
            rule("/spec/**", "users may tune the content of the object"),
            rule("/data/**", "plain settings; binaryData stays closed"),
        ],
        OWN,
    ],
    closed: &[PRIVILEGED_NAMES, PRIVILEGED_FIELDS],
    example: r#"[{"op": "replace", "path": "/spec/logLevel", "value": "Debug"}]"#,
};

/// Kinds with rules of their own.
pub(super) const CLASSES: &[Class] = &[
    Class {
        name: "pod controllers",
        kinds: &["Deployment", "DaemonSet", "StatefulSet", "ReplicaSet", "Job"],
        why: "It starts pods: resources, environment, placement and number of replicas, but nothing that changes what runs or as whom.",
        open: &[
            &[
                rule("/spec/replicas", "how many pods run"),
                rule("/spec/template/spec/containers/*/resources/**", "how much of a node it may use"),
                rule("/spec/template/spec/initContainers/*/resources/**", "how much of a node it may use"),
                rule("/spec/template/spec/containers/*/env/**", "its settings, as plain values"),
                rule("/spec/template/spec/initContainers/*/env/**", "its settings, as plain values"),
                rule("/spec/template/spec/tolerations/**", "where it may run"),
                rule("/spec/template/spec/nodeSelector/**", "where it may run"),
                rule("/spec/template/spec/affinity/**", "where it may run"),
            ],
            OWN,
        ],
        closed: &[PRIVILEGED_NAMES, PRIVILEGED_POD_FIELDS],
        example: r#"[{"op": "add", "path": "/spec/template/spec/containers/0/env", "value": [{"name": "LOG_LEVEL", "value": "debug"}]}]"#,
    },
    Class {
        name: "cron jobs",
        kinds: &["CronJob"],
        why: "It starts pods: resources, environment and placement, but nothing that changes what runs, when or as whom.",
        open: &[
            &[
                rule("/spec/jobTemplate/spec/template/spec/containers/*/resources/**", "how much of a node it may use"),
                rule(
                    "/spec/jobTemplate/spec/template/spec/initContainers/*/resources/**",
                    "how much of a node it may use",
                ),
                rule("/spec/jobTemplate/spec/template/spec/containers/*/env/**", "its settings, as plain values"),
                rule("/spec/jobTemplate/spec/template/spec/initContainers/*/env/**", "its settings, as plain values"),
                rule("/spec/jobTemplate/spec/template/spec/tolerations/**", "where it may run"),
                rule("/spec/jobTemplate/spec/template/spec/nodeSelector/**", "where it may run"),
                rule("/spec/jobTemplate/spec/template/spec/affinity/**", "where it may run"),
            ],
            OWN,
        ],
        closed: &[PRIVILEGED_NAMES, PRIVILEGED_POD_FIELDS],
        example: r#"[{"op": "add", "path": "/spec/jobTemplate/spec/template/spec/tolerations", "value": [{"operator": "Exists"}]}]"#,
    },
    Class {
        name: "pods",
        kinds: &["Pod"],
        why: "It is a pod: resources, environment and placement, but nothing that changes what runs or as whom.",
        open: &[
            &[
                rule("/spec/containers/*/resources/**", "how much of a node it may use"),
                rule("/spec/initContainers/*/resources/**", "how much of a node it may use"),
                rule("/spec/containers/*/env/**", "its settings, as plain values"),
                rule("/spec/initContainers/*/env/**", "its settings, as plain values"),
                rule("/spec/tolerations/**", "where it may run"),
                rule("/spec/nodeSelector/**", "where it may run"),
                rule("/spec/affinity/**", "where it may run"),
            ],
            OWN,
        ],
        closed: &[PRIVILEGED_NAMES, PRIVILEGED_POD_FIELDS],
        example: r#"[{"op": "add", "path": "/spec/tolerations", "value": [{"operator": "Exists"}]}]"#,
    },
    Class {
        name: "services",
        kinds: &["Service"],
        why: "It routes traffic to managed pods: users may tune how, but it may not route elsewhere.",
        open: &[&[rule("/spec/**", "ports, affinity, address families, type")], OWN],
        closed: &[PRIVILEGED_NAMES, TRAFFIC_REDIRECTION, PRIVILEGED_FIELDS],
        example: r#"[{"op": "add", "path": "/spec/sessionAffinity", "value": "ClientIP"}]"#,
    },
    Class {
        name: "settings",
        kinds: &["ConfigMap"],
        why: "Plain settings of a program.",
        open: &[&[rule("/data/**", "plain settings; binaryData stays closed")], OWN],
        closed: &[PRIVILEGED_NAMES],
        example: r#"[{"op": "add", "path": "/data/level", "value": "debug"}]"#,
    },
    Class {
        name: "alerts and dashboards",
        kinds: &["PrometheusRule", "PersesDashboard"],
        why: "It computes and displays data, and its keys are free text, so no field name grants privileges.",
        open: &[&[rule("/spec/**", "users may tune rules, thresholds and panels")], OWN],
        closed: &[PRIVILEGED_NAMES],
        example: r#"[{"op": "replace", "path": "/spec/groups/0/rules/0/for", "value": "30m"}]"#,
    },
    Class {
        name: "monitors",
        kinds: &["ServiceMonitor", "PodMonitor"],
        why: "It decides where Prometheus sends its token: users may tune how often and how much it scrapes, but not where or with which credentials.",
        open: &[
            &[
                rule("/spec/endpoints/*/interval", "how often it is scraped"),
                rule("/spec/endpoints/*/scrapeTimeout", "how long a scrape may take"),
                rule("/spec/endpoints/*/metricRelabelings/**", "which metrics are stored"),
                rule("/spec/podMetricsEndpoints/*/interval", "how often it is scraped"),
                rule("/spec/podMetricsEndpoints/*/scrapeTimeout", "how long a scrape may take"),
                rule("/spec/podMetricsEndpoints/*/metricRelabelings/**", "which metrics are stored"),
                rule("/spec/*Limit", "how much is scraped"),
                rule("/spec/targetLabels/**", "which labels are added"),
                rule("/spec/podTargetLabels/**", "which labels are added"),
            ],
            OWN,
        ],
        closed: &[PRIVILEGED_NAMES],
        example: r#"[{"op": "add", "path": "/spec/endpoints/0/interval", "value": "2m"}]"#,
    },
    Class {
        name: "the platform itself",
        kinds: &["HyperConverged"],
        why: "It configures the platform: users may tune it, but not which host devices virtual machines get or where images come from.",
        open: &[
            &[rule("/spec/**", "migration, memory, placement and the like")],
            &[rule("/metadata/labels/*", "users may label objects")],
        ],
        closed: &[
            PRIVILEGED_NAMES,
            PRIVILEGED_FIELDS,
            &[
                rule("/spec/**/permitted*/**", "it gives host devices to virtual machines"),
                rule("/spec/**/mediatedDevices*/**", "it gives host devices to virtual machines"),
                rule("/spec/**/*egistr*/**", "it chooses where images come from and whether they are verified"),
                rule("/spec/**/commonTemplatesNamespace/**", "it writes into another namespace"),
                rule("/spec/**/commonBootImageNamespace/**", "it writes into another namespace"),
                rule("/spec/**/dataImportCronTemplates/**", "it chooses where images come from"),
            ],
        ],
        example: r#"[{"op": "add", "path": "/spec/liveMigrationConfig", "value": {"parallelMigrationsPerCluster": 10}}]"#,
    },
];

/// Kinds whose whole content grants privileges: closed, unless the administrator opens them.
pub(super) const SENSITIVE: &[Sensitive] = &[
    Sensitive {
        kinds: &[
            "MachineConfig",
            "KubeletConfig",
            "ContainerRuntimeConfig",
            "MachineConfigPool",
            "Tuned",
            "PerformanceProfile",
        ],
        why: "it configures files, units and kernel arguments of nodes",
    },
    Sensitive {
        kinds: &[
            "NodeNetworkConfigurationPolicy",
            "SriovNetworkNodePolicy",
            "SriovOperatorConfig",
            "NetworkAttachmentDefinition",
        ],
        why: "it configures the network of nodes",
    },
    Sensitive {
        kinds: &["NodeHealthCheck", "MachineHealthCheck", "*Remediation", "*RemediationTemplate", "*RemediationConfig"],
        why: "it decides when nodes are rebooted",
    },
    Sensitive {
        kinds: &["Node", "PersistentVolume", "Machine", "MachineSet"],
        why: "it represents a machine or a part of one",
    },
    Sensitive {
        kinds: &["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "ServiceAccount"],
        why: "it grants permissions",
    },
    Sensitive {
        kinds: &["PodSecurityPolicy", "SecurityContextConstraints", "Namespace", "PriorityClass", "RuntimeClass"],
        why: "it decides what pods may do",
    },
    Sensitive {
        kinds: &[
            "ValidatingWebhookConfiguration",
            "MutatingWebhookConfiguration",
            "ValidatingAdmissionPolicy",
            "ValidatingAdmissionPolicyBinding",
            "MutatingAdmissionPolicy",
            "MutatingAdmissionPolicyBinding",
            "APIService",
            "CustomResourceDefinition",
        ],
        why: "it changes how the API server handles all objects",
    },
    Sensitive {
        kinds: &["Secret", "CertificateSigningRequest", "OAuth", "OAuthClient", "APIServer", "Authentication"],
        why: "it holds credentials or decides which are accepted",
    },
    Sensitive {
        kinds: &[
            "Subscription",
            "CatalogSource",
            "OperatorGroup",
            "InstallPlan",
            "ClusterServiceVersion",
            "ClusterExtension",
        ],
        why: "it installs programs with privileges of their own",
    },
    Sensitive {
        kinds: &["KubeVirt", "CDI", "SSP", "NetworkAddonsConfig"],
        why: "it runs the platform's own pods, which are root on nodes; patch the HyperConverged instead",
    },
    Sensitive {
        kinds: &["ClusterLogForwarder", "PersesDatasource", "PersesGlobalDatasource"],
        why: "it chooses where data of the cluster or credentials of the platform are sent",
    },
    Sensitive {
        kinds: &[
            "NetworkPolicy",
            "AdminNetworkPolicy",
            "BaselineAdminNetworkPolicy",
            "EgressFirewall",
            "Route",
            "Ingress",
        ],
        why: "it exposes pods to networks they are isolated from",
    },
    Sensitive { kinds: &["ConsolePlugin"], why: "it runs in the browser of every administrator" },
];

/// The fields of a sensitive kind that may be patched once it is opened.
pub(super) const OPENED: &[PathRule] = &[rule("/spec/**", "the administrator has opened this kind")];
