//! What many CRDs that are none of ours cost.

use super::measure::Measure;
use super::pack::{Bench, refused};
use super::subject::Subject;
use futures::{StreamExt, TryStreamExt, stream};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, PostParams};
use playground::Trouble;
use playground::audit::Kind;
use serde_json::{Value, json};

pub(crate) async fn measure(
    bench: &Bench<'_>,
    subject: Subject,
    count: usize,
    measures: &mut Vec<Measure>,
) -> Result<(), Trouble> {
    drop(subject);
    let before = restarted(bench).await?;
    let memory = before.pss()?;
    eprintln!("{}: {count} more CRDs", bench.name);
    let api: Api<CustomResourceDefinition> = Api::all(bench.playground.client());
    let create = async |number: usize| {
        let made = api.create(&PostParams::default(), &crd(number)?).await;
        made.map(|_| ()).map_err(|error| refused(&error))
    };
    stream::iter(0..count).map(create).buffer_unordered(4).try_collect::<Vec<()>>().await?;
    bench.quiet().await?;
    measures.push(Measure::one(
        bench.named(&format!("growth with {count} more CRDs (Pss)")),
        "MB",
        before.pss()? - memory,
    ));
    drop(before);
    let after = restarted(bench).await?;
    measures.push(Measure::one(bench.named("the same after a restart"), "MB", after.pss()? - memory));
    Ok(())
}

async fn restarted(bench: &Bench<'_>) -> Result<Subject, Trouble> {
    let mark = bench.mark()?;
    let subject = bench.subject()?;
    bench.until(mark, Kind::Write, bench.objects.len()).await?;
    bench.quiet().await?;
    Ok(subject)
}

/// One with a schema of some size, as operators have them.
fn crd(number: usize) -> Result<CustomResourceDefinition, Trouble> {
    let text = "A field that some operator has and that nobody reads but the API server, with a sentence to say what it is for.";
    let field = |name: usize| (format!("field{name}"), json!({"type": "string", "description": text}));
    let fields: serde_json::Map<String, Value> = (0..100).map(field).collect();
    let schema = json!({"type": "object", "properties": {"spec": {"type": "object", "properties": fields}}});
    let (plural, group) = (format!("things{number}"), "growth.example");
    let crd = json!({
        "apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition", "metadata": {"name": format!("{plural}.{group}")},
        "spec": {"group": group, "scope": "Namespaced", "names": {"plural": plural, "kind": format!("Thing{number}")},
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}]},
    });
    serde_json::from_value(crd)
        .map_err(|error| Trouble::new("a CRD of the bench is wrong", "this is a bug, please report it").from(error))
}
