//! The specs of `RunnerPool` and `MachineClaim`, which the predecessor had only designed.

use super::fields::Fields;
use api::fleet::Span;
use serde_json::{Map, Value, json};

pub(super) fn pool(fields: &mut Fields) -> Value {
    let mut spec = Map::new();
    spec.insert("templateRef".into(), json!({"name": template(fields)}));
    if let Some(Value::Number(replicas)) = fields.take("replicas") {
        spec.insert("replicas".into(), json!(replicas));
    }
    let mut scaling = Map::new();
    for field in ["minReplicas", "maxReplicas"] {
        if let Some(value) = fields.take(&format!("scaling.{field}")) {
            scaling.insert(field.into(), value);
        }
    }
    insert_span(fields, &mut scaling, "scaling", "scaleDownDelay");
    let mut lifecycle = Map::new();
    for field in ["maxLifetime", "idleTimeout", "jobTimeout"] {
        insert_span(fields, &mut lifecycle, "lifecycle", field);
    }
    for (field, map) in [("scaling", scaling), ("lifecycle", lifecycle)] {
        if !map.is_empty() {
            spec.insert(field.into(), Value::Object(map));
        }
    }
    workload(fields, &mut spec, "workload");
    Value::Object(spec)
}

pub(super) fn claim(fields: &mut Fields) -> Value {
    let mut spec = Map::new();
    spec.insert("templateRef".into(), json!({"name": template(fields)}));
    if let Some(pool) = fields.text("runnerPoolRef.name") {
        spec.insert("runnerPoolRef".into(), json!({"name": pool}));
    }
    workload(fields, &mut spec, "workloadConfig");
    Value::Object(spec)
}

fn template(fields: &mut Fields) -> String {
    fields.drop_all("foo", "it is an example of the predecessor's framework");
    fields.required("templateRef.name")
}

fn insert_span(fields: &mut Fields, into: &mut Map<String, Value>, parent: &str, field: &str) {
    let path = format!("{parent}.{field}");
    let Some(text) = fields.text(&path) else { return };
    if Span(text.clone()).duration().is_none() {
        fields.error(&format!("spec.{path}"), &format!("{text:?} is not a time such as 90s, 30m or 1h30m"));
    }
    into.insert(field.into(), json!(text));
}

fn workload(fields: &mut Fields, spec: &mut Map<String, Value>, field: &str) {
    let Some(kind) = fields.text(&format!("{field}.type")) else { return };
    if !["github-actions", "gitlab-ci", "buildkite", "generic"].contains(&kind.as_str()) {
        let why = format!("{kind:?} is not github-actions, gitlab-ci, buildkite or generic");
        fields.error(&format!("spec.{field}.type"), &why);
    }
    let mut workload = json!({"type": kind});
    for (old, why) in [
        ("projectId", "set project to its path"),
        ("groupId", "set group to its path"),
        ("description", "runners are named after their machines"),
    ] {
        fields.drop_all(&format!("{field}.config.gitlab.{old}"), why);
    }
    if let Some(config) = fields.take(&format!("{field}.config")) {
        workload["config"] = config;
    }
    fields.remark(&format!("spec.{field}"), "it is stored; runners are registered once its config names credentials");
    spec.insert(field.into(), workload);
}
