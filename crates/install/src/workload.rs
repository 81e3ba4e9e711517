//! What runs the operator: its Deployment, and what protects it.
//!
//! Its Service, ServiceMonitor and PrometheusRule are not here: they are assets of the catalogue, which the operator creates where their
//! kinds are served and keeps like any other object. Two owners would fight over them.

use crate::{Products, Settings, metrics};
use serde_json::{Value, json};

/// The ports of `/metrics`, and of `/healthz` and `/readyz`, which are the defaults of `virtpilot run`.
const METRICS: u16 = 8080;
const PROBES: u16 = 8082;
/// The ports of the fleet's receiver of webhooks and of its bootstrap endpoint.
const WEBHOOKS: u16 = 8083;
const BOOTSTRAP: u16 = 8443;

/// The name of the container; the predecessor's, so that an apply over its Deployment replaces its container instead of adding one.
pub(crate) const CONTAINER: &str = "manager";

/// The objects.
pub(crate) fn objects(settings: &Settings) -> Vec<Value> {
    let mut objects = vec![network_policy(settings), disruption_budget(settings), deployment(settings)];
    if settings.products == Products::Fleet {
        objects.push(service(settings));
    }
    objects
}

/// The labels of the pods; the predecessor's, because the selector of a Deployment cannot be changed.
fn pod_labels(settings: &Settings) -> Value {
    json!({"app": settings.name(), "control-plane": "controller-manager"})
}

fn metadata(settings: &Settings) -> Value {
    let mut labels = pod_labels(settings);
    labels["app.kubernetes.io/name"] = json!(settings.name());
    labels["app.kubernetes.io/version"] = json!(env!("CARGO_PKG_VERSION"));
    json!({"name": settings.name(), "namespace": settings.namespace, "labels": labels})
}

/// Where GitHub, or an Ingress, delivers webhooks, and where guests get their credentials. Both are for every replica: one that does not
/// lead refuses, and the sender tries again.
fn service(settings: &Settings) -> Value {
    let port = |name: &str, port: u16| json!({"name": name, "port": port, "targetPort": name, "protocol": "TCP"});
    json!({
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": metadata(settings),
        "spec": {
            "type": settings.fleet.service_type,
            "selector": pod_labels(settings),
            "ports": [port("webhooks", WEBHOOKS), port("bootstrap", BOOTSTRAP)],
        },
    })
}

/// Metrics and probes in, the API server out. It is addressed by its IP address, so not even DNS is needed; hypervisors have names.
fn network_policy(settings: &Settings) -> Value {
    let tcp = |port: &u16| json!({"port": port, "protocol": "TCP"});
    let mut ingress = vec![tcp(&METRICS), tcp(&PROBES)];
    let mut egress = vec![json!({"ports": settings.api_server_ports.iter().map(tcp).collect::<Vec<_>>()})];
    if settings.products == Products::Fleet {
        // The pods of DNS listen on 53, those of OpenShift on 5353.
        let dns = [("UDP", 53), ("TCP", 53), ("UDP", 5353), ("TCP", 5353)];
        let dns = dns.map(|(protocol, port)| json!({"port": port, "protocol": protocol}));
        egress.push(json!({"ports": settings.fleet.hypervisor_ports.iter().map(tcp).collect::<Vec<_>>()}));
        egress.push(json!({"ports": dns}));
        ingress.extend([tcp(&WEBHOOKS), tcp(&BOOTSTRAP)]);
        // A replica that does not lead passes on to the one that does.
        egress.push(json!({
            "to": [{"podSelector": {"matchLabels": pod_labels(settings)}}], "ports": [tcp(&WEBHOOKS), tcp(&BOOTSTRAP)],
        }));
    }
    json!({
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": metadata(settings),
        "spec": {
            "podSelector": {"matchLabels": pod_labels(settings)},
            "policyTypes": ["Ingress", "Egress"],
            "ingress": [{"ports": ingress}],
            "egress": egress,
        },
    })
}

/// One replica at a time: a minimum would block the drain of a node if there is only one.
fn disruption_budget(settings: &Settings) -> Value {
    json!({
        "apiVersion": "policy/v1",
        "kind": "PodDisruptionBudget",
        "metadata": metadata(settings),
        "spec": {"maxUnavailable": 1, "selector": {"matchLabels": pod_labels(settings)}},
    })
}

fn deployment(settings: &Settings) -> Value {
    let spread = |key: &str| {
        json!({
            "topologyKey": key, "maxSkew": 1, "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": pod_labels(settings)},
        })
    };
    let mut deployment = json!({
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": metadata(settings),
        "spec": {
            "replicas": settings.replicas,
            "revisionHistoryLimit": 3,
            "selector": {"matchLabels": pod_labels(settings)},
            "template": {
                "metadata": {"labels": pod_labels(settings)},
                "spec": {
                    "serviceAccountName": settings.name(),
                    "automountServiceAccountToken": true,
                    "enableServiceLinks": false,
                    // A write in flight is finished, which takes no longer than a request may.
                    "terminationGracePeriodSeconds": 30,
                    "imagePullSecrets": [],
                    "nodeSelector": {"kubernetes.io/os": "linux"},
                    "tolerations": [],
                    "topologySpreadConstraints": [spread("kubernetes.io/hostname"), spread("topology.kubernetes.io/zone")],
                    "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
                    "containers": [container(settings)],
                },
            },
        },
    });
    if settings.products != Products::Fleet {
        // What keeps the platform running comes before what runs on it.
        deployment["spec"]["template"]["spec"]["priorityClassName"] = json!("system-cluster-critical");
    }
    if settings.metrics_secure {
        deployment["spec"]["template"]["spec"]["volumes"] = json!([metrics::volume(settings.name())]);
    }
    deployment
}

fn container(settings: &Settings) -> Value {
    let field = |name: &str, path: &str| json!({"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}});
    let probe = |path: &str, period: u32| json!({"httpGet": {"path": path, "port": "probes"}, "periodSeconds": period, "timeoutSeconds": 5});
    let mut env = vec![field("POD_NAME", "metadata.name"), field("POD_NAMESPACE", "metadata.namespace")];
    if settings.products == Products::Fleet {
        env.push(field("POD_IP", "status.podIP"));
    } else {
        let image = &settings.metrics_exporter_image;
        env.push(json!({"name": "RELATED_IMAGE_KUBEVIRT_METRICS_EXPORTER", "value": image}));
    }
    if settings.metrics_secure {
        env.extend(metrics::variables());
    }
    let mut arguments = vec!["run".to_owned(), "--leader-elect".to_owned(), "--namespace=$(POD_NAMESPACE)".to_owned()];
    if settings.products != Products::Fleet {
        arguments.extend([format!("--opt-in={}", settings.opt_in), format!("--prune={}", settings.prune)]);
    }
    // Without the flag the autopilot and the advisor run where the kind of the advisor is served.
    arguments.extend(match settings.products {
        Products::Both => None,
        Products::Autopilot => Some("--products=autopilot".to_owned()),
        Products::Advisor => Some("--products=advisor".to_owned()),
        Products::Fleet => Some("--products=fleet".to_owned()),
    });
    if settings.products == Products::Fleet {
        arguments.push(format!("--webhook-bind-address=:{WEBHOOKS}"));
        arguments
            .extend(settings.fleet.bootstrap_address.iter().map(|address| format!("--bootstrap-address={address}")));
    }
    let mut container = json!({
        "name": CONTAINER,
        "image": settings.image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["/virtpilot"],
        "args": arguments,
        "env": env,
        "ports": [
            {"name": "metrics", "containerPort": METRICS, "protocol": "TCP"},
            {"name": "probes", "containerPort": PROBES, "protocol": "TCP"},
        ],
        "livenessProbe": probe("/healthz", 20),
        "readinessProbe": probe("/readyz", 10),
        "resources": {"requests": {"cpu": "20m", "memory": "32Mi"}, "limits": {"cpu": "1", "memory": "256Mi"}},
        "securityContext": {
            "allowPrivilegeEscalation": false,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": true,
        },
        "terminationMessagePolicy": "FallbackToLogsOnError",
    });
    if settings.products == Products::Fleet {
        let name = format!("{}-environment", settings.name());
        let port = |name: &str, port: u16| json!({"name": name, "containerPort": port, "protocol": "TCP"});
        if let Some(ports) = container["ports"].as_array_mut() {
            ports.extend([port("webhooks", WEBHOOKS), port("bootstrap", BOOTSTRAP)]);
        }
        container["envFrom"] = json!([{"configMapRef": {"name": name, "optional": true}}]);
    }
    if settings.metrics_secure {
        container["volumeMounts"] = json!([metrics::mount()]);
    }
    container
}
