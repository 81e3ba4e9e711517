//! `deploy/helm/virtpilot`, a Helm chart: the same objects with some of their values taken from the chart's values.

mod fleet;

use super::super::File;
use super::{HEADER, yaml};
use crate::workspace::Workspace;
use anyhow::Context;
use install::Installation;
use serde_json::{Map, Value, json};

const FOLDER: &str = "deploy/helm/virtpilot";
const VERSION: &str = env!("CARGO_PKG_VERSION");
/// The value of secure metrics, whose fields are settings of the chart; others have fields of Kubernetes.
const METRICS: &str = "metrics";
/// The value of the autopilot.
const AUTOPILOT: &str = "autopilot";
/// The value of the advisor.
const ADVISOR: &str = "advisor";
/// The value of the fleet.
const FLEET: &str = "fleet";
/// The container in a Deployment.
const CONTAINER: &str = "/spec/template/spec/containers/0";

/// A value of the chart, and the field that it replaces. Its default is what the field has.
struct Setting {
    name: &'static str,
    what: &'static str,
    kind: &'static str,
    /// A JSON pointer; after a `=`, the value is the part of the text behind it.
    field: String,
}

fn settings() -> Vec<Setting> {
    let setting = |name, what, kind, field: &str| Setting { name, what, kind, field: field.to_owned() };
    let of_pod = |name, what, field: &str| setting(name, what, "Deployment", &format!("/spec/template/spec/{field}"));
    let of_container = |name, what, field: &str| setting(name, what, "Deployment", &format!("{CONTAINER}/{field}"));
    vec![
        of_container("image", "The operator's image", "image"),
        of_container("imagePullPolicy", "When the image is pulled", "imagePullPolicy"),
        of_pod("imagePullSecrets", "The Secrets that are needed to pull it: a list of {name: ...}", "imagePullSecrets"),
        setting("replicas", "The number of replicas, of which one leads", "Deployment", "/spec/replicas"),
        of_container("optIn", "Whether an absent annotation autopilot on the HyperConverged means off", "args/3="),
        of_container("prune", "Whether created objects that are not wanted any more are pruned", "args/4="),
        of_container("metricsExporterImage", "The image for the feature kubevirt-metrics-exporter", "env/2/value"),
        of_container("resources", "What the operator needs and may use", "resources"),
        of_pod("nodeSelector", "The labels of the nodes that it may run on", "nodeSelector"),
        of_pod("tolerations", "The taints of nodes that it may run on", "tolerations"),
        setting(
            "apiServerPorts",
            "What the operator may connect to: the ports of the API server's Service and of the servers behind it",
            "NetworkPolicy",
            "/spec/egress/0/ports",
        ),
    ]
}

/// Roles that are installed on request, with the value that requests them.
const ON_REQUEST: [(&str, &str, &str); 2] = [
    (
        "logging",
        "Whether the operator may set up logging: it may bind four ClusterRoles of the logging operators",
        "logging",
    ),
    (
        "metricsExporter",
        "Whether the operator may set up kubevirt-metrics-exporter: it has the rights that it passes on",
        "kubevirt-metrics-exporter",
    ),
];

/// What a release cannot be, said before anything is changed. `lookup` finds nothing unless there is a cluster.
const CHECKS: &str = r#"{{- if not (or .Values.autopilot.enabled .Values.advisor.alone .Values.fleet.enabled) }}
{{- fail "nothing would be installed: set autopilot.enabled or fleet.enabled to true, or advisor.alone for the advisor without the autopilot" }}
{{- end }}
{{- if and .Values.autopilot.enabled .Values.advisor.alone }}
{{- fail "advisor.alone is for the advisor without the autopilot: set autopilot.enabled to false, or leave advisor.alone out, because the advisor runs beside the autopilot anyway" }}
{{- end }}
{{- if and (or .Values.autopilot.enabled .Values.advisor.alone) (semverCompare "<1.30.0-0" .Capabilities.KubeVersion.Version) }}
{{- fail (printf "the %s needs Kubernetes 1.30 or newer (ValidatingAdmissionPolicy), and this is %s; the fleet alone needs 1.29: --set autopilot.enabled=false,fleet.enabled=true" (ternary "autopilot" "advisor" .Values.autopilot.enabled) .Capabilities.KubeVersion.Version) }}
{{- end }}
{{- if not .Values.autopilot.enabled }}
{{- $deployment := lookup "apps/v1" "Deployment" .Release.Namespace "virt-platform-autopilot" }}
{{- if and $deployment (gt (int (dig "spec" "replicas" 0 $deployment)) 0) (eq (dig "metadata" "annotations" "meta.helm.sh/release-name" "" $deployment) .Release.Name) }}
{{- fail (printf "the autopilot of this release runs, and would be removed without releasing what it manages: run \"virtpilot handback --namespace %s\", then \"kubectl scale deployment virt-platform-autopilot --replicas=0 --namespace %s\", and upgrade again" .Release.Namespace .Release.Namespace) }}
{{- end }}
{{- end }}
"#;

const NOTES: &str = "{{- if .Values.autopilot.enabled }}
The autopilot runs in {{ .Release.Namespace }}. Low-impact objects are applied, what restarts nodes waits for approval:

  virtpilot status --namespace {{ .Release.Namespace }}

Before you uninstall it, let it release what it manages:

  virtpilot handback --namespace {{ .Release.Namespace }}
{{- end }}
{{- if .Values.advisor.alone }}
The advisor runs in {{ .Release.Namespace }}. It writes nothing that nobody has approved:

  kubectl get virtplatformconfigs
  virtpilot plan show NAME
{{- end }}
{{- if .Values.fleet.enabled }}

The fleet runs in {{ .Release.Namespace }}. Make a HypervisorCluster, then:

  virtpilot fleet check
{{- end }}
";

/// What the chart is made from.
pub(super) struct Parts<'a> {
    /// The autopilot and the advisor.
    pub(super) both: &'a Installation,
    /// The same with secure metrics.
    pub(super) secure: &'a Installation,
    /// The autopilot alone.
    pub(super) autopilot: &'a Installation,
    /// The advisor alone.
    pub(super) advisor: &'a Installation,
    /// The same with secure metrics.
    pub(super) secure_advisor: &'a Installation,
    /// The fleet.
    pub(super) fleet: &'a Installation,
    /// The same with secure metrics.
    pub(super) secure_fleet: &'a Installation,
}

/// The files.
pub(super) fn files(workspace: &Workspace, parts: &Parts<'_>, role: &str) -> anyhow::Result<Vec<File>> {
    let Parts { both: installation, secure, autopilot, advisor: alone, secure_advisor, fleet, secure_fleet } = parts;
    let (mut workload, mut secure_workload) = (installation.workload.clone(), secure.workload.clone());
    let (mut values, mut properties) = (HEADER.to_owned(), Map::new());
    let mut add = |name: &str, what: &str, default: &Value| {
        values.push_str(&format!("\n# {what}\n{}", catalog::yaml_text(&json!({name: default}))));
        let mut property = if [METRICS, AUTOPILOT, ADVISOR, FLEET].contains(&name) {
            closed(default)
        } else {
            json!({"type": json_type(default)})
        };
        property["description"] = json!(what);
        properties.insert(name.to_owned(), property);
    };
    for setting in settings() {
        add(setting.name, setting.what, &replace(&mut workload, &setting)?);
        replace(&mut secure_workload, &setting)?;
    }
    let (metrics_roles, prometheus) = metrics(&secure.metrics)?;
    add(
        METRICS,
        "Whether metrics are served over TLS and only to those who may read them, and the Prometheus that may",
        &json!({"secure": false, "prometheus": prometheus}),
    );
    add(
        AUTOPILOT,
        "Whether the autopilot is deployed; without it and without advisor.alone what remains is the fleet, for which any Kubernetes will do",
        &json!({"enabled": true}),
    );
    add(
        ADVISOR,
        "Whether the advisor runs beside the autopilot: it plans profiles, and applies them as they are approved. With alone, and without \
         the autopilot, it is deployed by itself",
        &json!({"enabled": true, "alone": false}),
    );
    let fleet = fleet::template(fleet, secure_fleet, &settings())?;
    add(
        FLEET,
        "Whether the fleet is deployed, too: it creates machines on hypervisors. Its account reads the Secrets that are named here, as a list \
         of {namespace: ..., name: ...}, and no others. bootstrapAddress is HOST:PORT where machines reach its bootstrap endpoint; without it no \
         runner is started. serviceType is the type of the Service for that and for webhooks",
        &json!({
            "enabled": false, "secrets": [], "hypervisorPorts": fleet.ports, "bootstrapAddress": "", "serviceType": "ClusterIP",
        }),
    );
    let mut files = Vec::new();
    let template = |name: &str, text: &str| File { path: format!("{FOLDER}/templates/{name}"), text: text.to_owned() };
    // What belongs to the autopilot, and goes with it.
    let own = |name: &str, text: &str| {
        let text = text.strip_prefix(HEADER).unwrap_or(text);
        template(name, &format!("{HEADER}{{{{- if .Values.autopilot.enabled }}}}\n{text}{{{{- end }}}}\n"))
    };
    for (name, what, file) in ON_REQUEST {
        add(name, what, &json!(false));
        let text = in_release(&workspace.read(&format!("deploy/rbac/{file}.yaml"))?);
        files.push(own(&format!("{file}.yaml"), &format!("{{{{- if .Values.{name} }}}}\n{text}{{{{- end }}}}\n")));
    }
    let schema = json!({
        "$schema": "http://json-schema.org/draft-07/schema#",
        "type": "object",
        "additionalProperties": false,
        "properties": properties,
    });
    let text = |objects: &[Value]| unquoted(&in_release(&yaml("", objects).text));
    let with_advisor = |alone: &[Value], both: &[Value]| with_additions(&text(alone), &text(both), "advisor.enabled");
    let advisor = [installation.crds.iter().map(kept).collect(), installation.advisor.clone()].concat();
    let (workload, secure_workload) = (text(&workload), text(&secure_workload));
    files.extend([
        own("role.yaml", &in_release(role)),
        own("advisor.yaml", &with_additions(HEADER, &text(&advisor), "advisor.enabled")?),
        own("people.yaml", &with_advisor(&autopilot.people, &installation.people)?),
        own("policy.yaml", &with_advisor(&autopilot.policy, &installation.policy)?),
        own("operator.yaml", &unless_advisor(&with_additions(&workload, &secure_workload, "metrics.secure")?)?),
        own("metrics.yaml", &with_additions(HEADER, &text(&metrics_roles), "metrics.secure")?),
        template("advisor-alone.yaml", &advisor_alone(alone, secure_advisor)?),
        template("checks.yaml", &format!("{HEADER}{CHECKS}")),
        template("fleet.yaml", &fleet.text),
        template("NOTES.txt", NOTES),
        yaml(&format!("{FOLDER}/Chart.yaml"), &[chart()]),
        File { path: format!("{FOLDER}/values.yaml"), text: values },
        File { path: format!("{FOLDER}/values.schema.json"), text: format!("{schema:#}\n") },
    ]);
    Ok(files)
}

/// The template of an installation of the advisor alone, which has more with secure metrics.
fn advisor_alone(plain: &Installation, secure: &Installation) -> anyhow::Result<String> {
    let objects = |installation: &Installation| -> anyhow::Result<String> {
        let mut workload = installation.workload.clone();
        for setting in settings() {
            replace(&mut workload, &setting)?;
        }
        let Installation { advisor, people, policy, .. } = installation;
        let crds = installation.crds.iter().map(kept).collect();
        let objects = [crds, advisor.clone(), people.clone(), policy.clone(), workload].concat();
        let objects: Vec<String> = objects.iter().map(catalog::yaml_text).collect();
        Ok(unquoted(&in_release(&objects.join("---\n"))))
    };
    let (roles, _) = metrics(&secure.metrics)?;
    let roles: Vec<String> = roles.iter().map(catalog::yaml_text).collect();
    let roles = in_release(&unquoted(&roles.join("---\n")));
    let objects = with_additions(&objects(plain)?, &objects(secure)?, "metrics.secure")?;
    Ok(format!(
        "{HEADER}{{{{- if .Values.advisor.alone }}}}\n{objects}{{{{- if .Values.metrics.secure }}}}\n---\n{roles}{{{{- end }}}}\n{{{{- end }}}}\n"
    ))
}

/// An object that outlives the release: with a CRD all its objects would be deleted.
fn kept(object: &Value) -> Value {
    let mut object = object.clone();
    object["metadata"]["annotations"] = json!({"helm.sh/resource-policy": "keep"});
    object
}

/// A Deployment that says what it runs if the advisor is switched off: its kind may be served all the same.
fn unless_advisor(deployment: &str) -> anyhow::Result<String> {
    let last = deployment.lines().find(|line| line.trim_start().starts_with("- --prune="));
    let last = last.context("the Deployment has no argument --prune")?;
    let indent = &last[..last.len() - last.trim_start().len()];
    let flag = format!("{{{{- if not .Values.advisor.enabled }}}}\n{indent}- --products=autopilot\n{{{{- end }}}}");
    Ok(deployment.replace(last, &format!("{last}\n{flag}")))
}

fn chart() -> Value {
    json!({
        "apiVersion": "v2",
        "name": "virtpilot",
        "description": "Configures and maintains KubeVirt and OpenShift Virtualization clusters",
        "type": "application",
        "version": VERSION,
        "appVersion": VERSION,
        // Validation rules of CRDs; the autopilot needs a newer one, which a template checks.
        "kubeVersion": ">=1.29.0-0",
    })
}

/// Replaces a field by a value of the chart; returns what the field had.
fn replace(objects: &mut [Value], setting: &Setting) -> anyhow::Result<Value> {
    let Setting { name, kind, field, .. } = setting;
    let (pointer, is_part) = field.strip_suffix('=').map_or((field.as_str(), false), |pointer| (pointer, true));
    let object = objects.iter_mut().find(|object| object["kind"] == *kind);
    let found = object.and_then(|object| object.pointer_mut(pointer));
    let found = found.with_context(|| format!("{name}: {kind} has no field {pointer}"))?;
    if !is_part {
        return Ok(std::mem::replace(found, json!(format!("{{{{ toJson .Values.{name} }}}}"))));
    }
    let text = found.as_str().and_then(|text| text.split_once('='));
    let (flag, default) = text.with_context(|| format!("{name}: {pointer} is not a flag with a value"))?;
    let default = serde_json::from_str(default).with_context(|| format!("{name}: its default is not JSON"))?;
    *found = json!(format!("{flag}={{{{ .Values.{name} }}}}"));
    Ok(default)
}

/// The roles of secure metrics with the account of Prometheus from the chart's values, and its default.
fn metrics(roles: &[Value]) -> anyhow::Result<(Vec<Value>, Value)> {
    let mut roles = roles.to_vec();
    let subject = roles.last_mut().and_then(|binding| binding.pointer_mut("/subjects/0"));
    let subject = subject.context("the last object of secure metrics is not the binding of Prometheus")?;
    let mut prometheus = Map::new();
    for (field, value) in [("namespace", "namespace"), ("name", "serviceAccount")] {
        let reference = json!(format!("{{{{ toJson .Values.metrics.prometheus.{value} }}}}"));
        prometheus.insert(value.to_owned(), std::mem::replace(&mut subject[field], reference));
    }
    Ok((roles, Value::Object(prometheus)))
}

/// A text with the further lines that another one has, if a value of the chart is true.
fn with_additions(base: &str, more: &str, value: &str) -> anyhow::Result<String> {
    let (mut text, mut expected, mut is_open) = (String::new(), base.lines().peekable(), false);
    for line in more.lines() {
        let is_added = expected.next_if(|next| *next == line).is_none();
        match (is_open, is_added) {
            (false, true) => text.push_str(&format!("{{{{- if .Values.{value} }}}}\n")),
            (true, false) => text.push_str("{{- end }}\n"),
            _ => {}
        }
        is_open = is_added;
        text.push_str(&format!("{line}\n"));
    }
    if is_open {
        text.push_str("{{- end }}\n");
    }
    match expected.next() {
        Some(line) => anyhow::bail!("{value} removes the line {line:?}"),
        None => Ok(text),
    }
}

/// The text with the namespace of the release.
fn in_release(text: &str) -> String {
    text.replace(&format!("namespace: {}\n", api::hco::NAMESPACE), "namespace: {{ .Release.Namespace }}\n")
}

/// The text without the quotes around what a template replaces by JSON, which is YAML, too.
fn unquoted(text: &str) -> String {
    text.replace("'{{ toJson", "{{ toJson").replace(" }}'", " }}")
}

/// What a value with fixed fields may be, by its default.
fn closed(default: &Value) -> Value {
    let property = |value: &Value| match value {
        Value::Object(_) => closed(value),
        _ => json!({"type": json_type(value)}),
    };
    let fields = default.as_object().into_iter().flatten();
    let fields: Map<String, Value> = fields.map(|(name, value)| (name.clone(), property(value))).collect();
    json!({"type": "object", "additionalProperties": false, "properties": fields})
}

fn json_type(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "boolean",
        Value::Number(_) => "integer",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}
