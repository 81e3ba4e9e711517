//! The fleet in the chart: its own Deployment and account, and the rights on the Secrets that the values name.

use super::{HEADER, Setting, in_release, kept, metrics, replace, unquoted, with_additions};
use anyhow::Context;
use install::Installation;
use serde_json::{Value, json};

/// The values that the fleet shares with the other products.
const SHARED: [&str; 8] = [
    "image",
    "imagePullPolicy",
    "imagePullSecrets",
    "replicas",
    "resources",
    "nodeSelector",
    "tolerations",
    "apiServerPorts",
];

/// The rights on one Secret.
const SECRETS: &str = "{{- range .Values.fleet.secrets }}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: Role
metadata:
  name: virtpilot-fleet-secret-{{ .name }}
  namespace: {{ .namespace }}
rules:
- apiGroups:
  - ''
  resourceNames:
  - {{ .name }}
  resources:
  - secrets
  verbs:
  - get
  - list
  - watch
---
apiVersion: rbac.authorization.k8s.io/v1
kind: RoleBinding
metadata:
  name: virtpilot-fleet-secret-{{ .name }}
  namespace: {{ .namespace }}
roleRef:
  apiGroup: rbac.authorization.k8s.io
  kind: Role
  name: virtpilot-fleet-secret-{{ .name }}
subjects:
- kind: ServiceAccount
  name: virtpilot-fleet
  namespace: {{ $.Release.Namespace }}
{{- end }}
";

/// The template, and the default of the ports of hypervisors.
pub(super) struct Fleet {
    pub(super) text: String,
    pub(super) ports: Value,
}

/// The template of an installation of the fleet alone, which has more with secure metrics.
pub(super) fn template(plain: &Installation, secure: &Installation, settings: &[Setting]) -> anyhow::Result<Fleet> {
    let (text, ports) = objects(plain, settings)?;
    let (with_more, _) = objects(secure, settings)?;
    let (roles, _) = metrics(&secure.metrics)?;
    let roles: Vec<String> = roles.iter().map(catalog::yaml_text).collect();
    let roles = format!(
        "{{{{- if .Values.metrics.secure }}}}\n---\n{}{{{{- end }}}}\n",
        in_release(&unquoted(&roles.join("---\n")))
    );
    let objects = with_additions(&text, &with_more, "metrics.secure")?;
    let text = format!("{HEADER}{{{{- if .Values.fleet.enabled }}}}\n{objects}{roles}{SECRETS}{{{{- end }}}}\n");
    Ok(Fleet { text, ports })
}

/// A Deployment that says where its bootstrap endpoint is, if the values do.
fn with_address(text: &str) -> anyhow::Result<String> {
    let last = text.lines().find(|line| line.trim_start().starts_with("- --webhook-bind-address="));
    let last = last.context("the Deployment of the fleet has no argument --webhook-bind-address")?;
    let indent = &last[..last.len() - last.trim_start().len()];
    let flag = format!(
        "{{{{- with .Values.fleet.bootstrapAddress }}}}\n{indent}- --bootstrap-address={{{{ . }}}}\n{{{{- end }}}}"
    );
    Ok(text.replace(last, &format!("{last}\n{flag}")))
}

/// Everything but the rights of secure metrics, and the default of the ports of hypervisors.
fn objects(installation: &Installation, settings: &[Setting]) -> anyhow::Result<(String, Value)> {
    let mut workload = installation.workload.clone();
    for setting in settings.iter().filter(|setting| SHARED.contains(&setting.name)) {
        replace(&mut workload, setting)?;
    }
    let policy = workload.iter_mut().find(|object| object["kind"] == "NetworkPolicy");
    let ports = policy.and_then(|policy| policy.pointer_mut("/spec/egress/1/ports"));
    let ports = ports.context("the NetworkPolicy of the fleet has no ports of hypervisors")?;
    let ports = std::mem::replace(ports, json!("{{ toJson .Values.fleet.hypervisorPorts }}"));
    let service = workload.iter_mut().find(|object| object["kind"] == "Service");
    let service = service.context("the fleet has no Service")?;
    service["spec"]["type"] = json!("{{ toJson .Values.fleet.serviceType }}");
    let crds: Vec<Value> = installation.crds.iter().map(kept).collect();
    let objects = [crds, installation.fleet.clone(), installation.people.clone(), workload].concat();
    let objects: Vec<String> = objects.iter().map(catalog::yaml_text).collect();
    let objects = unquoted(&in_release(&objects.join("---\n")));
    // The release's namespace is the only one that the fleet may read.
    let objects = with_address(&objects)?;
    Ok((objects.replace(&format!("- {}\n", api::hco::NAMESPACE), "- {{ .Release.Namespace }}\n"), ports))
}
