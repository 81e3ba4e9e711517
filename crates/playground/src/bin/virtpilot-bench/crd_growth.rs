//! Measures the memory cost of many unrelated CRDs.

use super::measure::Measure;
use super::operator_process::OperatorProcess;
use super::pack::Bench;
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, PostParams};
use playground::audit::Kind;
use playground::user_error::refused;
use playground::{Playground, UserError};
use serde_json::{Value, json};

pub(crate) async fn measure(
    bench: &Bench<'_>,
    operator: OperatorProcess,
    count: usize,
    measures: &mut Vec<Measure>,
) -> Result<(), UserError> {
    drop(operator);
    let operator = restart(bench).await?;
    let memory = operator.pss()?;
    eprintln!("{}: {count} more CRDs", bench.name);
    create(&bench.playground, count).await?;
    bench.wait_until_idle().await?;
    measures.push(Measure::one(
        bench.named(&format!("memory growth with {count} more CRDs (Pss)")),
        "MB",
        operator.pss()? - memory,
    ));
    drop(operator);
    let operator = restart(bench).await?;
    measures.push(Measure::one(bench.named("the same after a restart"), "MB", operator.pss()? - memory));
    Ok(())
}

/// Creates so many CRDs of unrelated operators.
pub(crate) async fn create(playground: &Playground, count: usize) -> Result<(), UserError> {
    let api: Api<CustomResourceDefinition> = Api::all(playground.client());
    let create = async |number: usize| {
        let created = api.create(&PostParams::default(), &crd(number)?).await;
        created.map(|_| ()).map_err(|error| refused(&error))
    };
    stream::iter(0..count).map(create).buffer_unordered(4).try_collect::<Vec<()>>().await?;
    Ok(())
}

async fn restart(bench: &Bench<'_>) -> Result<OperatorProcess, UserError> {
    let mark = bench.mark()?;
    let operator = bench.start_operator()?;
    bench.wait_for(mark, Kind::Write, bench.objects.len()).await?;
    bench.wait_until_idle().await?;
    Ok(operator)
}

/// A CRD with a schema of realistic size.
fn crd(number: usize) -> Result<CustomResourceDefinition, UserError> {
    let text = "A field of an unrelated operator, with a description that is about as long as descriptions of real fields usually are.";
    let field = |name: usize| (format!("field{name}"), json!({"type": "string", "description": text}));
    let fields: serde_json::Map<String, Value> = (0..100).map(field).collect();
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}});
    let (plural, group) = (format!("things{number}"), "growth.example");
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": format!("{plural}.{group}")},
        "spec": {"group": group, "scope": "Namespaced", "names": {"plural": plural, "kind": format!("Thing{number}")},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]},
    });
    serde_json::from_value(crd).map_err(|error| {
        UserError::new("a CRD of the benchmark is invalid", "this is a bug, please report it").with_source(error)
    })
}
