//! The MachineConfigs that the operator makes from its own templates, as far as the stand-in needs them.

use crate::{API_VERSION, GENERATED_BY, IGNITION_VERSION, ROLE_LABEL, VERSION};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

/// The path of the kubelet's configuration.
pub(crate) const KUBELET_CONF: &str = "/etc/kubernetes/kubelet.conf";

/// The MachineConfigs of a role on a new cluster: `00-ROLE` and `01-ROLE-kubelet`.
pub fn templates(role: &str) -> [Value; 2] {
    let base = [file("/etc/tmpfiles.d/nm.conf", b"D /run/nm-system-connections 0755 root root - -\n")];
    let conf = default_kubelet_configuration().to_string();
    let kubelet = [file(KUBELET_CONF, conf.as_bytes())];
    [machine_config(&format!("00-{role}"), role, &base), machine_config(&format!("01-{role}-kubelet"), role, &kubelet)]
}

/// A MachineConfig with these files.
pub(crate) fn machine_config(name: &str, role: &str, files: &[Value]) -> Value {
    json!({
        "apiVersion": API_VERSION,
        "kind": "MachineConfig",
        "metadata": {"name": name, "labels": {ROLE_LABEL: role}, "annotations": {GENERATED_BY: VERSION}},
        "spec": {"config": {"ignition": {"version": IGNITION_VERSION}, "storage": {"files": files}}},
    })
}

/// A file in an Ignition config.
pub(crate) fn file(path: &str, content: &[u8]) -> Value {
    let source = format!("data:text/plain;charset=utf-8;base64,{}", STANDARD.encode(content));
    json!({"path": path, "mode": 0o644, "overwrite": true, "contents": {"compression": "", "source": source}})
}

/// What the kubelet runs with where no KubeletConfig says otherwise.
pub(crate) fn default_kubelet_configuration() -> Value {
    json!({
        "kind": "KubeletConfiguration",
        "apiVersion": "kubelet.config.k8s.io/v1beta1",
        "authentication": {
            "anonymous": {"enabled": false},
            "x509": {"clientCAFile": "/etc/kubernetes/kubelet-ca.crt"},
        },
        "cgroupDriver": "systemd",
        "cgroupRoot": "/",
        "clusterDNS": ["172.30.0.10"],
        "clusterDomain": "cluster.local",
        "containerLogMaxSize": "50Mi",
        "failSwapOn": true,
        "kubeAPIBurst": 100,
        "kubeAPIQPS": 50,
        "maxPods": 250,
        "podPidsLimit": 4096,
        "protectKernelDefaults": true,
        "rotateCertificates": true,
        "serializeImagePulls": false,
        "serverTLSBootstrap": true,
        "staticPodPath": "/etc/kubernetes/manifests",
        "systemCgroups": "/system.slice",
    })
}
