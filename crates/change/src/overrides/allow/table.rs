//! What users may patch, kind by kind, as data: the judge, `virtpilot explain patch` and the guide all read it here.

use super::{Class, PathRule, Sensitive};

const fn rule(path: &'static str, why: &'static str) -> PathRule {
    PathRule { path, why }
}

/// The users' own labels and annotations.
const OWN: &[PathRule] = &[
    rule("/metadata/labels/*", "labels are for whoever sorts objects"),
    rule("/metadata/annotations/*", "annotations are for whoever reads them"),
];

/// Names that programs act on.
const NAMES_WITH_POWER: &[PathRule] = &[
    rule("/metadata/labels/platform.kubevirt.io~1*", "it says that the object is ours"),
    rule("/metadata/annotations/*kubevirt.io~1*", "the platform's own programs act on it, and so do we"),
    rule(
        "/metadata/annotations/*openshift.io~1*",
        "controllers act on it with rights of their own, down to the image that runs",
    ),
    rule("/metadata/annotations/*kubernetes.io~1*", "controllers act on it with rights of their own"),
    rule("/metadata/annotations/*k8s.io~1*", "controllers act on it with rights of their own"),
];

/// Fields that grant power wherever a kind has them, also in a pod or a host's file inside a custom resource.
const FIELDS_WITH_POWER: &[PathRule] = &[
    rule("/spec/**/*image*/**", "it chooses the program that runs"),
    rule("/spec/**/*Image*/**", "it chooses the program that runs"),
    rule("/spec/**/*_fqin/**", "it chooses the program that runs"),
    rule("/spec/**/command/**", "it chooses the program that runs"),
    rule("/spec/**/args/**", "it tells a program with rights of its own what to do"),
    rule("/spec/**/containers/**", "it adds a program of the user's to a pod of ours"),
    rule("/spec/**/initContainers/**", "it adds a program of the user's to a pod of ours"),
    rule("/spec/**/ephemeralContainers/**", "it adds a program of the user's to a pod of ours"),
    rule("/spec/**/lifecycle/**", "it runs a command in a pod of ours"),
    rule("/spec/**/podTemplate/**", "it holds a whole pod"),
    rule("/spec/**/serviceAccount*/**", "it chooses whose rights a pod has"),
    rule("/spec/**/securityContext/**", "it can make a pod root on its node"),
    rule("/spec/**/podSecurityContext/**", "it can make a pod root on its node"),
    rule("/spec/**/privileged/**", "it makes a container root on its node"),
    rule("/spec/**/capabilities/**", "it can make a container root on its node"),
    rule("/spec/**/host*/**", "it opens a node's files, devices, network or processes, or claims a host name"),
    rule("/spec/**/volumes/**", "it can bring a node's files or a Secret into a pod"),
    rule("/spec/**/volumeMounts/**", "it can bring a Secret to where a program shows it"),
    rule("/spec/**/envFrom/**", "it reads a whole Secret of the namespace"),
    rule("/spec/**/valueFrom/**", "it reads a Secret of the namespace"),
    rule("/spec/**/*ecret*/**", "it reads a Secret, or chooses which credentials are used"),
    rule("/spec/**/*redential*/**", "it chooses which credentials are used"),
    rule("/spec/**/*Token*/**", "it sends a token somewhere"),
    rule("/spec/**/kubeconfig*/**", "it chooses which credentials are used"),
    rule("/spec/**/runtimeClassName/**", "it chooses how a pod is kept apart from its node"),
    rule("/spec/**/priorityClassName/**", "it lets a pod push out others"),
    rule("/spec/**/unsupportedConfigOverrides/**", "it overrides anything in an operator, unchecked"),
    rule("/spec/**/jsonpatch*/**", "it is a patch inside a patch"),
    rule("/spec/**/customizeComponents/**", "it patches the platform's own pods"),
];

/// Fields of a Service that lead away from its own pods.
const AWAY: &[PathRule] = &[
    rule("/spec/selector/**", "it sends what is meant for our pods to others"),
    rule("/spec/externalName", "it sends what is meant for our pods to any host"),
    rule("/spec/externalIPs/**", "it takes over traffic to these addresses"),
    rule("/spec/loadBalancer*/**", "it opens the Service to other networks"),
    rule("/spec/template/**", "it holds a whole pod, in kinds of this name elsewhere"),
];

/// What in an opened part of a pod still grants power.
const IN_PODS: &[PathRule] = &[
    rule("/**/env/*/valueFrom/**", "it reads a Secret of the namespace"),
    rule("/**/resources/claims/**", "it takes hold of devices"),
];

/// The default, for every kind that is not named elsewhere.
pub(super) const DEFAULT: Class = Class {
    name: "default",
    kinds: &[],
    why: "A kind without rules of its own: its content, except fields that grant power wherever they stand.",
    open: &[
        &[
            rule("/spec/**", "what the object is for is the user's to tune"),
            rule("/data/**", "plain settings; binaryData stays closed"),
        ],
        OWN,
    ],
    closed: &[NAMES_WITH_POWER, FIELDS_WITH_POWER],
    example: r#"[{"op": "replace", "path": "/spec/logLevel", "value": "Debug"}]"#,
};

/// Kinds with rules of their own.
pub(super) const CLASSES: &[Class] = &[
    Class {
        name: "pod controllers",
        kinds: &["Deployment", "DaemonSet", "StatefulSet", "ReplicaSet", "Job"],
        why: "It starts pods: resources, environment, placement and number, and nothing that changes what runs or as whom.",
        open: &[
            &[
                rule("/spec/replicas", "how many"),
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
        closed: &[NAMES_WITH_POWER, IN_PODS],
        example: r#"[{"op": "add", "path": "/spec/template/spec/containers/0/env", "value": [{"name": "LOG_LEVEL", "value": "debug"}]}]"#,
    },
    Class {
        name: "cron jobs",
        kinds: &["CronJob"],
        why: "It starts pods: resources, environment and placement, and nothing that changes what runs, when or as whom.",
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
        closed: &[NAMES_WITH_POWER, IN_PODS],
        example: r#"[{"op": "add", "path": "/spec/jobTemplate/spec/template/spec/tolerations", "value": [{"operator": "Exists"}]}]"#,
    },
    Class {
        name: "pods",
        kinds: &["Pod"],
        why: "It runs: resources, environment and placement, and nothing that changes what runs or as whom.",
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
        closed: &[NAMES_WITH_POWER, IN_PODS],
        example: r#"[{"op": "add", "path": "/spec/tolerations", "value": [{"operator": "Exists"}]}]"#,
    },
    Class {
        name: "services",
        kinds: &["Service"],
        why: "It leads to pods of ours: how it does so is the user's to tune, but it may not lead elsewhere.",
        open: &[&[rule("/spec/**", "ports, affinity, address families, type")], OWN],
        closed: &[NAMES_WITH_POWER, AWAY, FIELDS_WITH_POWER],
        example: r#"[{"op": "add", "path": "/spec/sessionAffinity", "value": "ClientIP"}]"#,
    },
    Class {
        name: "settings",
        kinds: &["ConfigMap"],
        why: "Plain settings of a program.",
        open: &[&[rule("/data/**", "plain settings; binaryData stays closed")], OWN],
        closed: &[NAMES_WITH_POWER],
        example: r#"[{"op": "add", "path": "/data/level", "value": "debug"}]"#,
    },
    Class {
        name: "alerts and dashboards",
        kinds: &["PrometheusRule", "PersesDashboard"],
        why: "It computes and shows, and its keys are free text, so no name of a field means power in it.",
        open: &[&[rule("/spec/**", "rules, thresholds and panels are the user's to tune")], OWN],
        closed: &[NAMES_WITH_POWER],
        example: r#"[{"op": "replace", "path": "/spec/groups/0/rules/0/for", "value": "30m"}]"#,
    },
    Class {
        name: "monitors",
        kinds: &["ServiceMonitor", "PodMonitor"],
        why: "It tells Prometheus where to send its token. How often and how much is the user's to tune; where and with which credentials is not.",
        open: &[
            &[
                rule("/spec/endpoints/*/interval", "how often"),
                rule("/spec/endpoints/*/scrapeTimeout", "how patiently"),
                rule("/spec/endpoints/*/metricRelabelings/**", "what is kept of it"),
                rule("/spec/podMetricsEndpoints/*/interval", "how often"),
                rule("/spec/podMetricsEndpoints/*/scrapeTimeout", "how patiently"),
                rule("/spec/podMetricsEndpoints/*/metricRelabelings/**", "what is kept of it"),
                rule("/spec/*Limit", "how much"),
                rule("/spec/targetLabels/**", "what is noted with it"),
                rule("/spec/podTargetLabels/**", "what is noted with it"),
            ],
            OWN,
        ],
        closed: &[NAMES_WITH_POWER],
        example: r#"[{"op": "add", "path": "/spec/endpoints/0/interval", "value": "2m"}]"#,
    },
    Class {
        name: "the platform itself",
        kinds: &["HyperConverged"],
        why: "It configures the platform: tuning is the user's, but not which devices of a node a machine gets or from where images come.",
        open: &[
            &[rule("/spec/**", "migration, memory, placement and the like")],
            &[rule("/metadata/labels/*", "labels are for whoever sorts objects")],
        ],
        closed: &[
            NAMES_WITH_POWER,
            FIELDS_WITH_POWER,
            &[
                rule("/spec/**/permitted*/**", "it hands devices of a node to machines"),
                rule("/spec/**/mediatedDevices*/**", "it hands devices of a node to machines"),
                rule("/spec/**/*egistr*/**", "it chooses from where images come, and whether they are checked"),
                rule("/spec/**/commonTemplatesNamespace/**", "it writes into another namespace"),
                rule("/spec/**/commonBootImageNamespace/**", "it writes into another namespace"),
                rule("/spec/**/dataImportCronTemplates/**", "it chooses from where images come"),
            ],
        ],
        example: r#"[{"op": "add", "path": "/spec/liveMigrationConfig", "value": {"parallelMigrationsPerCluster": 10}}]"#,
    },
];

/// Kinds whose content is power: closed, unless whoever runs the operator opens them.
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
        why: "it writes files, units and kernel arguments of nodes",
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
        why: "it decides when nodes are restarted",
    },
    Sensitive { kinds: &["Node", "PersistentVolume", "Machine", "MachineSet"], why: "it is a piece of a machine" },
    Sensitive {
        kinds: &["ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "ServiceAccount"],
        why: "it grants rights",
    },
    Sensitive {
        kinds: &["PodSecurityPolicy", "SecurityContextConstraints", "Namespace", "PriorityClass", "RuntimeClass"],
        why: "it says what pods may do",
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
        why: "it changes what the API server does with everybody's objects",
    },
    Sensitive {
        kinds: &["Secret", "CertificateSigningRequest", "OAuth", "OAuthClient", "APIServer", "Authentication"],
        why: "it holds credentials or says whose are taken",
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
        why: "it installs programs with rights of their own",
    },
    Sensitive {
        kinds: &["KubeVirt", "CDI", "SSP", "NetworkAddonsConfig"],
        why: "it runs the platform's own pods, which are root on nodes; patch the HyperConverged instead",
    },
    Sensitive {
        kinds: &["ClusterLogForwarder", "PersesDatasource", "PersesGlobalDatasource"],
        why: "it sends data of the cluster, or the platform's credentials, to where it says",
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
        why: "it opens pods to networks they are closed to",
    },
    Sensitive { kinds: &["ConsolePlugin"], why: "it runs in the browser of every administrator" },
];

/// What of a sensitive kind may be patched once it is opened.
pub(super) const OPENED: &[PathRule] = &[rule("/spec/**", "whoever runs the operator has opened this kind")];
