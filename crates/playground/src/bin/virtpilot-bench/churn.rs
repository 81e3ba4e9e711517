//! Measures the cost of adding and removing CRDs and nodes while the operator runs.

use super::Arguments;
use super::churn_pack::{self, GPU, GROUP, KINDS};
use super::established::last_established;
use super::measure::Measure;
use super::operator_process::OperatorProcess;
use super::pack::{Bench, OPERATOR, TIMEOUT, between, poll_until};
use futures::{StreamExt, TryStreamExt, stream};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams, WatchParams};
use playground::audit::Kind;
use playground::certificates::ADMIN_USER;
use playground::deployment::{self, objects};
use playground::pseudo_random::PseudoRandom;
use playground::user_error::refused;
use playground::{Options, Playground, Progress, Scene, UserError, crds};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

/// About as many CRDs as one operator installs.
const AT_ONCE: usize = 20;
/// How many CRDs or nodes are created concurrently.
const CONCURRENCY: usize = 8;
/// How often the state of the cluster is polled.
const INTERVAL: Duration = Duration::from_millis(20);
/// How often a node with a GPU joins.
const JOINS: usize = 10;

pub(crate) async fn measure(arguments: &Arguments) -> Result<Vec<Measure>, UserError> {
    let options = Options::for_bench(Some(Scene::preset("small")?));
    let playground = Playground::start(&options, Progress::Silent).await?;
    let pack = churn_pack::write(playground.folder())?;
    deployment::grant_for(&playground, &churn_pack::role()).await?;
    let account = deployment::grant(&playground).await?;
    let name = "50 changing kinds";
    let bench = Bench { playground, account, pack: Some(&pack), name, objects: Vec::new(), watches: 0 };
    // The server is still busy right after its start.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let mut operator = bench.start_operator()?;
    bench.wait_until_idle().await?;
    let mut measures = Vec::new();
    join_nodes(&bench, &mut measures).await?;
    install_at_once(&bench, &mut measures).await?;
    reinstall_repeatedly(&bench, arguments.kinds_rounds, &mut operator, &mut measures).await?;
    Ok(measures)
}

/// Installs many CRDs at once.
async fn install_at_once(bench: &Bench<'_>, measures: &mut Vec<Measure>) -> Result<(), UserError> {
    eprintln!("{}: {AT_ONCE} CRDs at once", bench.name);
    let mark = bench.mark()?;
    let established = install(bench).await?;
    bench
        .wait_until(mark, |own| {
            let is_written = |name: &String| {
                let resource = format!("{name}s.{GROUP}");
                own.of(Kind::Write).filter(|request| request.resource == resource && request.code < 300).count() > 0
            };
            let missing: Vec<String> = (0..AT_ONCE).map(churn_pack::name).filter(|name| !is_written(name)).collect();
            (!missing.is_empty()).then(|| format!("these objects are applied: {}", missing.join(", ")))
        })
        .await?;
    let last = bench.own(mark)?.of(Kind::Write).0.iter().map(|request| request.ended).max().unwrap_or(established);
    bench.wait_until_idle().await?;
    let own = bench.own(mark)?;
    let discoveries = own.filter(|request| request.resource == "/apis").count();
    let what = format!("{AT_ONCE} CRDs at once, from the last established to all objects applied");
    measures.push(Measure::one(bench.named(&what), "ms", between(established, last).max(0.0)));
    measures.push(Measure::count(bench.named("discovery requests for that"), discoveries));
    measures.push(Measure::count(bench.named("applies for that"), own.of(Kind::Write).count()));
    let client = bench.playground.client();
    crds::install(&client, &(AT_ONCE..KINDS).map(churn_pack::crd).collect::<Vec<_>>()).await?;
    all_objects(bench).await?;
    bench.wait_until_idle().await
}

/// Installs the first CRDs; returns when a watch reports the last of them as established.
async fn install(bench: &Bench<'_>) -> Result<Timestamp, UserError> {
    let client = bench.playground.client();
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let definitions: Vec<Value> = (0..AT_ONCE).map(churn_pack::crd).collect();
    let names = definitions.iter().filter_map(|crd| crd["metadata"]["name"].as_str());
    let wanted: BTreeSet<String> = names.map(str::to_owned).collect();
    let open = async || api.watch(&WatchParams::default(), "0").await.map_err(|error| refused(&error));
    let watched = last_established(wanted, TIMEOUT, open);
    futures::future::try_join(crds::install(&client, &definitions), watched).await.map(|(_, established)| established)
}

/// Removes and reinstalls every CRD, in a pseudo-random order.
async fn reinstall_repeatedly(
    bench: &Bench<'_>,
    rounds: usize,
    operator: &mut OperatorProcess,
    measures: &mut Vec<Measure>,
) -> Result<(), UserError> {
    let (before, memory) = (all_objects(bench).await?, operator.pss()?);
    let mut random = PseudoRandom::new(42);
    for round in 0..rounds {
        eprint!("\r{}: round {} of {rounds}   ", bench.name, round + 1);
        let mut order: Vec<usize> = (0..KINDS).collect();
        for index in (1..KINDS).rev() {
            order.swap(index, random.below(index + 1));
        }
        let reinstall_one = async |number: usize| reinstall(bench, number).await;
        stream::iter(order).map(reinstall_one).buffer_unordered(CONCURRENCY).try_collect::<Vec<()>>().await?;
        all_objects(bench).await?;
    }
    eprintln!();
    bench.wait_until_idle().await?;
    let after = all_objects(bench).await?;
    let differing = before.iter().zip(&after).filter(|(old, new)| old != new).count();
    measures
        .push(Measure::count(bench.named(&format!("restarts in {rounds} rounds")), usize::from(!operator.is_alive())));
    measures.push(Measure::count(bench.named("objects that differ afterwards"), differing));
    let open = bench.playground.audit_log().open_watches()?.by(OPERATOR);
    let open = open.filter(|watch| watch.resource.ends_with(GROUP)).count();
    measures.push(Measure::count(bench.named("open watches of them afterwards"), open));
    measures.push(Measure::one(bench.named("memory before (Pss)"), "MB", memory));
    measures.push(Measure::one(bench.named("memory growth"), "MB", operator.pss()? - memory));
    Ok(())
}

async fn reinstall(bench: &Bench<'_>, number: usize) -> Result<(), UserError> {
    let api = objects(&bench.playground, "apiextensions.k8s.io/v1", "CustomResourceDefinition", None);
    let definition = churn_pack::crd(number);
    let name = definition["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    api.delete(&name, &DeleteParams::default()).await.map_err(|error| refused(&error))?;
    let object: DynamicObject = serde_json::from_value(definition).map_err(|error| {
        UserError::new("a CRD of the benchmark is invalid", "this is a bug, please report it").with_source(error)
    })?;
    // The server refuses the new CRD while the old one is being deleted.
    let what = format!("the CRD {name} can be created again");
    poll_until(&what, INTERVAL, async || Ok(api.create(&PostParams::default(), &object).await.ok().map(|_| ()))).await
}

/// Waits until every object exists and returns their specs and labels.
async fn all_objects(bench: &Bench<'_>) -> Result<Vec<Value>, UserError> {
    let mut all = Vec::new();
    for number in 0..KINDS {
        let api = objects(&bench.playground, &format!("{GROUP}/v1"), &format!("Thing{number}"), None);
        let name = churn_pack::name(number);
        let what = format!("Thing{number} {name} exists");
        let object = poll_until(&what, INTERVAL, async || Ok(api.get(&name).await.ok())).await?;
        all.push(json!({"labels": object.metadata.labels, "spec": object.data["spec"]}));
    }
    Ok(all)
}

/// Lets a node with a GPU join and leave several times, then a hundred nodes without a GPU join at once.
async fn join_nodes(bench: &Bench<'_>, measures: &mut Vec<Measure>) -> Result<(), UserError> {
    let nodes: Api<Node> = Api::all(bench.playground.client());
    let maps = objects(&bench.playground, "v1", "ConfigMap", Some(deployment::NAMESPACE));
    let mut times = Vec::new();
    for round in 0..JOINS {
        eprint!("\r{}: node {} of {JOINS}   ", bench.name, round + 1);
        let mark = bench.mark()?;
        join(&nodes, "bench-gpu", "2").await?;
        bench.wait_for(mark, Kind::Write, 1).await?;
        let status = |requests: &playground::audit::Requests| {
            requests.filter(|request| request.resource == "nodes/status").0.iter().map(|request| request.ended).max()
        };
        let joined = status(&bench.all(mark)?.by(ADMIN_USER)).unwrap_or_default();
        let applied = bench.own(mark)?.of(Kind::Write).0.first().map(|request| request.ended).unwrap_or_default();
        times.push(between(joined, applied));
        nodes.delete("bench-gpu", &DeleteParams::default()).await.map_err(|error| refused(&error))?;
        bench.wait_until_idle().await?;
        maps.delete(GPU, &DeleteParams::default()).await.map_err(|error| refused(&error))?;
        bench.wait_until_idle().await?;
    }
    eprintln!();
    measures.push(Measure::of(bench.named("from a node with a GPU joining to its object applied"), "ms", times));
    let mark = bench.mark()?;
    let many = async |number: usize| join(&nodes, &format!("bench-{number}"), "0").await;
    stream::iter(0..100).map(many).buffer_unordered(CONCURRENCY).try_collect::<Vec<()>>().await?;
    bench.wait_until_idle().await?;
    let own = bench.own(mark)?;
    let requests = own.count() - own.of(Kind::Watch).count();
    measures.push(Measure::count(bench.named("requests without watches when 100 nodes join"), requests));
    Ok(())
}

async fn join(nodes: &Api<Node>, name: &str, gpus: &str) -> Result<(), UserError> {
    let node = json!({"metadata": {"name": name, "labels": {"node-role.kubernetes.io/worker": ""}}});
    let node: Node = serde_json::from_value(node).map_err(|error| {
        UserError::new("a node of the benchmark is invalid", "this is a bug, please report it").with_source(error)
    })?;
    nodes.create(&PostParams::default(), &node).await.map_err(|error| refused(&error))?;
    let status = json!({"status": {"capacity": {"cpu": "8", "nvidia.com/gpu": gpus}}});
    let patched = nodes.patch_status(name, &PatchParams::default(), &Patch::Merge(&status)).await;
    patched.map(|_| ()).map_err(|error| refused(&error))
}
