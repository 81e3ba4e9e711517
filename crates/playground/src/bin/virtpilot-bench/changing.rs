//! What kinds and nodes that come and go cost, without a restart.

use super::Arguments;
use super::changing_pack::{self, GPU, GROUP, KINDS};
use super::measure::Measure;
use super::pack::{Bench, OPERATOR, between, give_up_after, refused};
use super::subject::Subject;
use futures::{StreamExt, TryStreamExt, stream};
use jiff::Timestamp;
use k8s_openapi::api::core::v1::Node;
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use playground::audit::Kind;
use playground::deployment::{self, objects};
use playground::{Options, Playground, Progress, Scene, Trouble, crds};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// As many as somebody's operator brings.
const AT_ONCE: usize = 20;
/// So many definitions are created and removed at a time.
const AT_A_TIME: usize = 8;
/// So often a node joins.
const JOINS: usize = 10;
const ADMIN: &str = "playground-admin";

pub(crate) async fn measure(arguments: &Arguments) -> Result<Vec<Measure>, Trouble> {
    let scene = Some(Scene::preset("small")?);
    let options = Options { scene, fsync: true, port: None, keep: false, in_turn: false };
    let playground = Playground::start(&options, Progress::Silent).await?;
    let pack = changing_pack::write(playground.folder())?;
    deployment::grant_for(&playground, &changing_pack::role()).await?;
    let account = deployment::grant(&playground).await?;
    let name = "50 kinds that come and go";
    let bench = Bench { playground, account, pack: Some(&pack), name, objects: Vec::new(), watches: 0 };
    // A server that has just started is still busy with itself.
    tokio::time::sleep(Duration::from_secs(5)).await;
    let mut subject = bench.subject()?;
    bench.quiet().await?;
    let mut measures = Vec::new();
    nodes(&bench, &mut measures).await?;
    come(&bench, &mut measures).await?;
    come_and_go(&bench, arguments.kinds_rounds, &mut subject, &mut measures).await?;
    Ok(measures)
}

/// Definitions that are installed at once.
async fn come(bench: &Bench<'_>, measures: &mut Vec<Measure>) -> Result<(), Trouble> {
    eprintln!("{}: {AT_ONCE} CRDs at once", bench.name);
    let mark = bench.mark()?;
    let established = install(bench).await?;
    bench.until(mark, Kind::Write, AT_ONCE).await?;
    let last = bench.own(mark)?.of(Kind::Write).0.iter().map(|request| request.ended).max().unwrap_or(established);
    bench.quiet().await?;
    let own = bench.own(mark)?;
    let discoveries = own.filter(|request| request.resource == "/apis").count();
    let what = format!("{AT_ONCE} CRDs at once, last established to all applied");
    measures.push(Measure::one(bench.named(&what), "ms", between(established, last).max(0.0)));
    measures.push(Measure::count(bench.named("discoveries for that"), discoveries));
    measures.push(Measure::count(bench.named("applies for that"), own.of(Kind::Write).count()));
    let client = bench.playground.client();
    crds::install(&client, &(AT_ONCE..KINDS).map(changing_pack::definition).collect::<Vec<_>>()).await?;
    everything(bench).await?;
    bench.quiet().await
}

/// Installs the first definitions; returns when the last of them was established, as a watch tells it.
async fn install(bench: &Bench<'_>) -> Result<Timestamp, Trouble> {
    let client = bench.playground.client();
    let api: Api<CustomResourceDefinition> = Api::all(client.clone());
    let params = WatchParams::default();
    let mut events = api.watch(&params, "0").await.map_err(|error| refused(&error))?.boxed();
    let definitions: Vec<Value> = (0..AT_ONCE).map(changing_pack::definition).collect();
    let watched = async {
        let (mut ready, begun) = (BTreeSet::new(), Instant::now());
        while ready.len() < AT_ONCE {
            give_up_after(begun)?;
            let Some(Ok(WatchEvent::Added(crd) | WatchEvent::Modified(crd))) = events.next().await else { continue };
            let conditions = crd.status.iter().flat_map(|status| status.conditions.iter().flatten());
            let is_ready = conditions.into_iter().any(|one| one.type_ == "Established" && one.status == "True");
            if is_ready && crd.spec.group == GROUP {
                ready.insert(crd.metadata.name);
            }
        }
        Ok(Timestamp::now())
    };
    futures::future::try_join(crds::install(&client, &definitions), watched).await.map(|(_, moment)| moment)
}

/// All definitions, each removed and installed again, in an order that nobody has chosen.
async fn come_and_go(
    bench: &Bench<'_>,
    rounds: usize,
    subject: &mut Subject,
    measures: &mut Vec<Measure>,
) -> Result<(), Trouble> {
    let (before, memory) = (everything(bench).await?, subject.pss()?);
    let mut seed = 42;
    for round in 0..rounds {
        eprint!("\r{}: round {} of {rounds}   ", bench.name, round + 1);
        let mut order: Vec<usize> = (0..KINDS).collect();
        for place in (1..KINDS).rev() {
            order.swap(place, chance(&mut seed) % (place + 1));
        }
        let again = async |number: usize| reinstall(bench, number).await;
        stream::iter(order).map(again).buffer_unordered(AT_A_TIME).try_collect::<Vec<()>>().await?;
        everything(bench).await?;
    }
    eprintln!();
    bench.quiet().await?;
    let after = everything(bench).await?;
    let differing = before.iter().zip(&after).filter(|(one, two)| one != two).count();
    measures
        .push(Measure::count(bench.named(&format!("restarts in {rounds} rounds")), usize::from(!subject.is_alive())));
    measures.push(Measure::count(bench.named("objects that differ afterwards"), differing));
    let open = bench.playground.audit_log().open_watches()?.by(OPERATOR);
    let of_them = open.filter(|watch| watch.resource.ends_with(GROUP)).count();
    measures.push(Measure::count(bench.named("open watches of them afterwards"), of_them));
    measures.push(Measure::one(bench.named("memory before (Pss)"), "MB", memory));
    measures.push(Measure::one(bench.named("growth"), "MB", subject.pss()? - memory));
    Ok(())
}

async fn reinstall(bench: &Bench<'_>, number: usize) -> Result<(), Trouble> {
    let api = objects(&bench.playground, "apiextensions.k8s.io/v1", "CustomResourceDefinition", None);
    let definition = changing_pack::definition(number);
    let name = definition["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    api.delete(&name, &DeleteParams::default()).await.map_err(|error| refused(&error))?;
    let object: DynamicObject = serde_json::from_value(definition)
        .map_err(|error| Trouble::new("a CRD of the bench is wrong", "this is a bug, please report it").from(error))?;
    let begun = Instant::now();
    // While the old one is still going the new one is refused.
    while api.create(&PostParams::default(), &object).await.is_err() {
        give_up_after(begun)?;
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    Ok(())
}

/// Waits until every object exists; returns their specs and labels.
async fn everything(bench: &Bench<'_>) -> Result<Vec<Value>, Trouble> {
    let mut all = Vec::new();
    for number in 0..KINDS {
        let api = objects(&bench.playground, &format!("{GROUP}/v1"), &format!("Thing{number}"), None);
        let begun = Instant::now();
        all.push(loop {
            if let Ok(object) = api.get(&changing_pack::name(number)).await {
                break json!({"labels": object.metadata.labels, "spec": object.data["spec"]});
            }
            give_up_after(begun)?;
            tokio::time::sleep(Duration::from_millis(20)).await;
        });
    }
    Ok(all)
}

/// A node with a GPU joins and leaves; then a hundred without join at once.
async fn nodes(bench: &Bench<'_>, measures: &mut Vec<Measure>) -> Result<(), Trouble> {
    let nodes: Api<Node> = Api::all(bench.playground.client());
    let maps = objects(&bench.playground, "v1", "ConfigMap", Some(deployment::NAMESPACE));
    let mut times = Vec::new();
    for round in 0..JOINS {
        eprint!("\r{}: node {} of {JOINS}   ", bench.name, round + 1);
        let mark = bench.mark()?;
        join(&nodes, "bench-gpu", "2").await?;
        bench.until(mark, Kind::Write, 1).await?;
        let status = |requests: &playground::audit::Requests| {
            requests.filter(|request| request.resource == "nodes/status").0.iter().map(|request| request.ended).max()
        };
        let joined = status(&bench.all(mark)?.by(ADMIN)).unwrap_or_default();
        let applied = bench.own(mark)?.of(Kind::Write).0.first().map(|request| request.ended).unwrap_or_default();
        times.push(between(joined, applied));
        nodes.delete("bench-gpu", &DeleteParams::default()).await.map_err(|error| refused(&error))?;
        bench.quiet().await?;
        maps.delete(GPU, &DeleteParams::default()).await.map_err(|error| refused(&error))?;
        bench.quiet().await?;
    }
    eprintln!();
    measures.push(Measure::of(bench.named("a node with a GPU joins, until its object is applied"), "ms", times));
    let mark = bench.mark()?;
    let many = async |number: usize| join(&nodes, &format!("bench-{number}"), "0").await;
    stream::iter(0..100).map(many).buffer_unordered(AT_A_TIME).try_collect::<Vec<()>>().await?;
    bench.quiet().await?;
    let own = bench.own(mark)?;
    let requests = own.count() - own.of(Kind::Watch).count();
    measures.push(Measure::count(bench.named("requests when 100 nodes join, watches apart"), requests));
    Ok(())
}

async fn join(nodes: &Api<Node>, name: &str, gpus: &str) -> Result<(), Trouble> {
    let node = json!({"metadata": {"name": name, "labels": {"node-role.kubernetes.io/worker": ""}}});
    let node: Node = serde_json::from_value(node)
        .map_err(|error| Trouble::new("a node of the bench is wrong", "this is a bug, please report it").from(error))?;
    nodes.create(&PostParams::default(), &node).await.map_err(|error| refused(&error))?;
    let status = json!({"status": {"capacity": {"cpu": "8", "nvidia.com/gpu": gpus}}});
    let patched = nodes.patch_status(name, &PatchParams::default(), &Patch::Merge(&status)).await;
    patched.map(|_| ()).map_err(|error| refused(&error))
}

/// The next of a row of numbers that look like chance and are the same every time.
fn chance(seed: &mut usize) -> usize {
    *seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
    *seed >> 33
}
