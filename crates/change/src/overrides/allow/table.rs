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

/// Labels and annotations that no flag opens.
pub(super) const OURS: PathRule =
    rule("/metadata/*/*kubevirt.io~1*", "the platform's controllers act on it, and so do we");

/// Labels and annotations that controllers act on, with privileges of their own.
const PRIVILEGED_NAMES: &[PathRule] = &[
    OURS,
    rule("/metadata/*/*openshift.io~1*", "it chooses images, certificates, nodes and what pods may do"),
    rule("/metadata/annotations/*kubernetes.io~1*", "it configures load balancers, names, volumes and admission"),
    rule(
        "/metadata/labels/*kubernetes.io~1*!(app.kubernetes.io~1*)",
        "it places pods, chooses proxies and decides what pods may do",
    ),
    rule("/metadata/labels/app.kubernetes.io~1managed-by", "deployment tools adopt and delete what it marks"),
    rule("/metadata/labels/app.kubernetes.io~1instance", "Argo CD adopts and deletes what it marks"),
    rule("/metadata/*/*k8s.io~1*", "it aggregates roles, queues workloads and stops remediation"),
    rule("/metadata/*/*k8s.aws~1*", "it configures load balancers of AWS"),
    rule("/metadata/*/*amazonaws.com~1*", "it chooses which cloud credentials a pod gets"),
    rule("/metadata/*/*azure.com~1*", "it configures load balancers and identities of Azure"),
    rule("/metadata/*/*cloud.google.com~1*", "it configures load balancers and identities of Google Cloud"),
    rule("/metadata/*/*gke.io~1*", "it configures load balancers of Google Cloud"),
    rule("/metadata/*/*openstack.org~1*", "it configures load balancers of OpenStack"),
    rule("/metadata/*/*oraclecloud.com~1*", "it configures load balancers of Oracle Cloud"),
    rule("/metadata/*/*digitalocean.com~1*", "it configures load balancers of DigitalOcean"),
    rule("/metadata/*/*hetzner.cloud~1*", "it configures load balancers of Hetzner"),
    rule("/metadata/*/*metallb.io~1*", "it takes an address of the network"),
    rule("/metadata/*/*metallb.universe.tf~1*", "it takes an address of the network"),
    rule("/metadata/*/*kube-vip.io~1*", "it takes an address of the network"),
    rule("/metadata/*/*purelb.io~1*", "it takes an address of the network"),
    rule("/metadata/*/*cilium.io~1*", "it takes an address of the network, or redirects traffic"),
    rule("/metadata/*/io.cilium~1*", "it takes an address of the network, or redirects traffic"),
    rule("/metadata/*/*projectcalico.org~1*", "it takes an address of the network, or redirects traffic"),
    rule("/metadata/*/*ovn.org~1*", "it redirects traffic"),
    rule("/metadata/*/*cncf.io~1*", "it connects pods to other networks"),
    rule("/metadata/*/*istio.io~1*", "it puts a proxy into a pod, or takes it away"),
    rule("/metadata/*/*linkerd.io~1*", "it puts a proxy into a pod, or takes it away"),
    rule("/metadata/*/*opentelemetry.io~1*", "it puts a program into a pod"),
    rule("/metadata/*/*hashicorp.com~1*", "it puts Secrets into a pod"),
    rule("/metadata/*/*cert-manager.io~1*", "it issues certificates and chooses which are trusted"),
    rule("/metadata/*/*velero.io~1*", "it runs commands in pods before a backup"),
    rule("/metadata/*/*argoproj.io~1*", "Argo CD adopts and deletes what it marks"),
    rule("/metadata/*/*fluxcd.io~1*", "Flux adopts and deletes what it marks"),
    rule("/metadata/*/*helm.sh~1*", "Helm adopts and deletes what it marks"),
    rule("/metadata/*/*crossplane.io~1*", "Crossplane adopts and deletes what it marks"),
    rule("/metadata/*/*open-cluster-management.io~1*", "cluster management adopts and deletes what it marks"),
    rule("/metadata/*/*operators.coreos.com~1*", "OLM adopts and deletes what it marks"),
    rule("/metadata/*/*operatorframework.io~1*", "OLM adopts and deletes what it marks"),
    rule("/metadata/*/olm.*", "OLM adopts and deletes what it marks"),
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
    rule("/spec/**/tlsSecurityProfile/**", "it decides which weak ciphers are accepted"),
    rule("/spec/**/*nsecure*/**", "it turns off the verification of certificates"),
    rule("/spec/**/caBundle/**", "it chooses which certificates are trusted"),
    rule("/spec/**/trustedCA/**", "it chooses which certificates are trusted"),
    rule("/spec/**/*roxy/**", "it redirects traffic of a managed program"),
];

/// Fields of a Service that redirect traffic away from its own pods.
const TRAFFIC_REDIRECTION: &[PathRule] = &[
    rule("/spec/selector/**", "it redirects traffic of managed pods to other pods"),
    rule("/spec/type", "it exposes the Service to other networks, or redirects its traffic to any host"),
    rule("/spec/externalName/**", "it redirects traffic of managed pods to any host"),
    rule("/spec/externalIPs/**", "it takes over traffic to these addresses"),
    rule("/spec/loadBalancer*/**", "it exposes the Service to other networks"),
    rule("/spec/template/**", "it contains a whole pod, in kinds of this name in other groups"),
];

/// Fields of a pod that grant privileges below an open path.
const PRIVILEGED_POD_FIELDS: &[PathRule] = &[
    rule("/**/env/*/valueFrom/**", "it reads a Secret of the namespace"),
    rule("/**/env/*/value=*$(*", "it copies another variable, such as one from a Secret"),
    rule("/**/resources/claims/**", "it claims devices"),
    rule("/**/resources/limits/*!(cpu|memory|ephemeral-storage|hugepages-*)", "it claims devices"),
    rule("/**/resources/requests/*!(cpu|memory|ephemeral-storage|hugepages-*)", "it claims devices"),
    rule(
        "/**/env/[name=KUBERNETES_SERVICE_*|KUBERNETES_PORT*|KUBERNETES_MASTER]/**",
        "it sends the token of the pod to another API server",
    ),
    rule("/**/env/[name=KUBECONFIG]/**", "it chooses the API server and which credentials are used"),
    rule("/**/env/[name=*_PROXY]/**", "it redirects traffic of a managed program"),
    rule("/**/env/[name=HOSTALIASES|LOCALDOMAIN|RES_OPTIONS]/**", "it redirects names to other hosts"),
    rule(
        "/**/env/[name=SSL_*|*_CA_BUNDLE|NODE_EXTRA_CA_CERTS|NODE_TLS_REJECT_UNAUTHORIZED]/**",
        "it chooses which certificates are trusted",
    ),
    rule("/**/env/[name=LD_*|GCONV_PATH|GLIBC_TUNABLES]/**", "it loads code into a managed program"),
    rule(
        "/**/env/[name=PYTHONPATH|PYTHONHOME|PYTHONSTARTUP|PERL5LIB|PERL5OPT|RUBYLIB|RUBYOPT|NODE_PATH|NODE_OPTIONS]/**",
        "it loads code into a managed program",
    ),
    rule(
        "/**/env/[name=CLASSPATH|JAVA_TOOL_OPTIONS|JDK_JAVA_OPTIONS|_JAVA_OPTIONS]/**",
        "it loads code into a managed program",
    ),
    rule("/**/env/[name=PATH]/**", "it chooses the program that runs"),
    rule("/**/env/[name=BASH_ENV|BASH_FUNC_*|SHELLOPTS|PROMPT_COMMAND|PS4]/**", "a shell runs it as a command"),
    rule(
        "/**/env/[name=GODEBUG|GOTRACEBACK|GOCOVERDIR]/**",
        "it turns off checks of a managed program, or prints what it has in memory",
    ),
    rule("/**/env/[name=RELATED_IMAGE_*|*_IMAGE]/**", "it chooses the program that an operator runs"),
    rule("/**/env/[name=AWS_*|AZURE_*|GOOGLE_*|VAULT_*]/**", "it chooses which credentials are used"),
];

/// Settings that are programs, or that decide what is trusted.
const PRIVILEGED_SETTINGS: &[PathRule] = &[
    rule("/data/*.sh", "it is a program that a pod may run"),
    rule("/data/*.py", "it is a program that a pod may run"),
    rule("/data/*.lua", "it is a program that a pod may run"),
    rule("/data/*script*", "it is a program that a pod may run"),
    rule("/data/*entrypoint*", "it is a program that a pod may run"),
    rule("/data/*kubeconfig*", "it chooses the API server and which credentials are used"),
    rule("/data/*.crt", "it decides which certificates are trusted"),
    rule("/data/*.pem", "it decides which certificates are trusted"),
    rule("/data/*ca-bundle*", "it decides which certificates are trusted"),
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
    closed: &[PRIVILEGED_NAMES, PRIVILEGED_FIELDS, PRIVILEGED_POD_FIELDS, PRIVILEGED_SETTINGS],
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
        open: &[&[rule("/spec/**", "ports, affinity, address families")], OWN],
        closed: &[PRIVILEGED_NAMES, TRAFFIC_REDIRECTION, PRIVILEGED_FIELDS, PRIVILEGED_POD_FIELDS],
        example: r#"[{"op": "add", "path": "/spec/sessionAffinity", "value": "ClientIP"}]"#,
    },
    Class {
        name: "settings",
        kinds: &["ConfigMap"],
        why: "Plain settings of a program, but no program and nothing that decides what is trusted.",
        open: &[&[rule("/data/**", "plain settings; binaryData stays closed")], OWN],
        closed: &[PRIVILEGED_NAMES, PRIVILEGED_SETTINGS],
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
        why: "It configures the platform: users may tune it, but not what isolates virtual machines from nodes and from each other, which host devices they get or where images come from.",
        open: &[
            &[rule("/spec/**", "migration, memory, placement and the like")],
            &[rule("/metadata/labels/*", "users may label objects")],
        ],
        closed: &[
            PRIVILEGED_NAMES,
            PRIVILEGED_FIELDS,
            PRIVILEGED_POD_FIELDS,
            &[
                rule("/spec/**/featureGates/**", "it switches on functions that are not meant for production"),
                rule("/spec/**/defaultRuntimeClass/**", "it chooses how virtual machines are isolated from their node"),
                rule("/spec/**/hypervisors/**", "it chooses how virtual machines are isolated from their node"),
                rule("/spec/**/networkBinding/**", "it runs a program beside every virtual machine that uses it"),
                rule("/spec/**/certConfig/**", "it decides how long certificates are accepted"),
                rule("/spec/**/roleAggregationStrategy/**", "it grants permissions"),
                rule(
                    "/spec/**/ksmConfiguration/**",
                    "it shares memory between virtual machines, which can read it out",
                ),
                rule("/spec/**/persistentReservation*/**", "it gives host devices to virtual machines"),
                rule("/spec/**/*esourceRequirements/**/limits/*~1*", "it claims devices"),
                rule("/spec/**/uninstallStrategy/**", "it lets an uninstall delete virtual machines"),
                rule("/spec/**/tekton*Namespace/**", "it writes into another namespace"),
                rule("/spec/**/permitted*/**", "it gives host devices to virtual machines"),
                rule("/spec/**/mediatedDevices*/**", "it gives host devices to virtual machines"),
                rule("/spec/**/*egistr*/**", "it chooses where images come from and whether they are verified"),
                rule("/spec/**/commonTemplatesNamespace/**", "it writes into another namespace"),
                rule("/spec/**/dataImportCronTemplates/**", "it chooses where images come from"),
            ],
        ],
        example: r#"[{"op": "add", "path": "/spec/liveMigrationConfig", "value": {"parallelMigrationsPerCluster": 10}}]"#,
    },
    Class {
        name: "log stores",
        kinds: &["LokiStack"],
        why: "It stores the logs of the cluster: users may tune its size and limits, but not who may read them.",
        open: &[&[rule("/spec/**", "size, limits, retention, placement")], OWN],
        closed: &[
            PRIVILEGED_NAMES,
            PRIVILEGED_FIELDS,
            PRIVILEGED_POD_FIELDS,
            &[rule("/spec/tenants/**", "it decides who may read and write all logs")],
        ],
        example: r#"[{"op": "replace", "path": "/spec/size", "value": "1x.small"}]"#,
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
    Sensitive {
        kinds: &[
            "Proxy",
            "Image",
            "ImageContentSourcePolicy",
            "ImageDigestMirrorSet",
            "ImageTagMirrorSet",
            "FeatureGate",
            "ClusterVersion",
        ],
        why: "it decides where programs of all nodes come from, or which are trusted",
    },
    Sensitive {
        kinds: &["ConfigMap/*scripts", "ConfigMap/*-entrypoint", "ConfigMap/coredns"],
        why: "other programs run what it contains",
    },
    Sensitive {
        kinds: &[
            "ConfigMap/*trusted-ca*",
            "ConfigMap/*ca-bundle*",
            "ConfigMap/*root-ca*",
            "ConfigMap/*service-ca*",
            "ConfigMap/extension-apiserver-authentication",
            "ConfigMap/aws-auth",
        ],
        why: "other programs trust what it contains",
    },
    Sensitive {
        kinds: &["ConfigMap/*-monitoring-config"],
        why: "it chooses where metrics of the cluster are sent, and with which credentials",
    },
    Sensitive { kinds: &["ConfigMap/kubevirt-config"], why: "it configures the platform's own pods" },
];

/// The fields of a sensitive kind that may be patched once it is opened.
pub(super) const OPENED: &[PathRule] = &[rule("/spec/**", "the administrator has opened this kind")];
