//! What the operator costs, counted and timed from the API server's own audit log.

use super::{Arguments, Measure};
use jiff::{SignedDuration, Timestamp};
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use playground::audit::{Kind, Request};
use playground::deployment::{self, objects};
use playground::{Options, Playground, Progress, Scene, Trouble, trouble};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const OPERATOR: &str = "openshift-cnv/virt-platform-autopilot";
const DRIFTS: usize = 100;
/// Only a machine in trouble needs longer.
const PATIENCE: Duration = Duration::from_secs(60);

pub(super) async fn measure(arguments: &Arguments) -> Result<Vec<Measure>, Trouble> {
    let options =
        Options { scene: Some(Scene::preset("small")?), fsync: true, port: None, keep: false, in_turn: false };
    let mut playground = Playground::start(&options, Progress::Silent).await?;
    let account = deployment::grant(&playground).await?;
    let here = Some(deployment::NAMESPACE);
    let services = objects(&playground, "v1", "Service", here);
    let machine_configs = objects(&playground, "machineconfiguration.openshift.io/v1", "MachineConfig", None);
    let hco = objects(&playground, "hco.kubevirt.io/v1", "HyperConverged", here);
    edit(
        &hco,
        "kubevirt-hyperconverged",
        &json!({"metadata": {"annotations": {"platform.kubevirt.io/autopilot": "true"}}}),
    )
    .await?;

    let mut measures = Vec::new();
    let (begun, mark) = (Timestamp::now(), playground.audit_log().mark()?);
    deployment::start(&mut playground, &account)?;
    let own = |playground: &Playground, mark| Ok::<_, Trouble>(playground.audit_log().since(mark)?.by(OPERATOR));
    wait(|| Ok(own(&playground, mark)?.of(Kind::Write).count() >= 2)).await?;
    let start = own(&playground, mark)?;
    let writes = start.of(Kind::Write).0;
    let after = |request: &Request| millis(request.at.duration_since(begun));
    measures.push(Measure::of("exec to first write", "ms", writes.iter().take(1).map(after).collect()));
    measures.push(Measure::of("exec to all written", "ms", writes.iter().take(2).skip(1).map(after).collect()));
    measures.push(Measure::of("requests of a start", "count", vec![count(start.count())]));

    for (name, api, object, edited) in [
        ("a core kind", &services, "virt-platform-autopilot-metrics", json!({"spec": {"selector": {"app": "drift"}}})),
        ("a CRD", &machine_configs, "90-worker-swap-online", json!({"spec": {"kernelType": "realtime"}})),
    ] {
        let (mut times, mut requests) = (Vec::new(), Vec::new());
        for round in 0..DRIFTS {
            eprint!("\rdrift of {name}: {} of {DRIFTS}   ", round + 1);
            // With its budget taken away each drift is the first one, and none is paused.
            let mut edited = edited.clone();
            edited["metadata"] = json!({"annotations": {"platform.kubevirt.io/budget": null}});
            let mark = playground.audit_log().mark()?;
            edit(api, object, &edited).await?;
            let done = || {
                Ok(own(&playground, mark)?.of(Kind::Write).count() > 0
                    && own(&playground, mark)?.of(Kind::Event).count() > 0)
            };
            wait(done).await?;
            let all = playground.audit_log().since(mark)?;
            let ended = |request: Option<&Request>| request.map(|request| request.ended).unwrap_or_default();
            let edited_at = ended(all.by("playground-admin").of(Kind::Write).0.first());
            let corrected_at = ended(all.by(OPERATOR).of(Kind::Write).0.first());
            times.push(millis(corrected_at.duration_since(edited_at)));
            requests.push(count(all.by(OPERATOR).count()));
        }
        eprintln!();
        measures.push(Measure::of(&format!("drift of {name}, from the edit to the correction"), "ms", times));
        measures.push(Measure::of(&format!("requests per drift of {name}"), "count", requests));
    }
    measures.push(bare(&playground, &services).await?);

    let mark = playground.audit_log().mark()?;
    eprintln!("idle for {} s", arguments.idle);
    tokio::time::sleep(Duration::from_secs(arguments.idle)).await;
    let idle = own(&playground, mark)?;
    measures.push(Measure::of(
        "requests while idle, watches apart",
        "count",
        vec![count(idle.count() - idle.of(Kind::Watch).count())],
    ));
    measures.push(Measure::of("watch requests while idle", "count", vec![count(idle.of(Kind::Watch).count())]));
    if let Some(pid) = playground.pid("virtpilot") {
        measures.push(Measure::of("memory (Pss)", "MB", vec![kilobytes(pid, "smaps_rollup", "Pss:")? / 1024.0]));
        measures.push(Measure::of(
            "most memory ever (VmHWM)",
            "MB",
            vec![kilobytes(pid, "status", "VmHWM:")? / 1024.0],
        ));
    }
    Ok(measures)
}

/// What one changing apply costs at the least, by the same clock.
async fn bare(playground: &Playground, services: &Api<DynamicObject>) -> Result<Measure, Trouble> {
    let mark = playground.audit_log().mark()?;
    for round in 0..DRIFTS {
        let object = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "bare"},
            "spec": {"selector": {"round": round.to_string()}, "ports": [{"port": 1}]}});
        let applied = services.patch("bare", &PatchParams::apply("bare").force(), &Patch::Apply(&object)).await;
        applied.map_err(|error| refused(&error))?;
    }
    let requests = playground.audit_log().since(mark)?.by("playground-admin").of(Kind::Write).0;
    let times = requests.iter().map(|request| millis(request.ended.duration_since(request.at))).collect();
    Ok(Measure::of("the bare limit: one changing apply", "ms", times))
}

async fn edit(api: &Api<DynamicObject>, name: &str, patch: &Value) -> Result<(), Trouble> {
    let params = PatchParams { field_manager: Some("rogue".into()), ..PatchParams::default() };
    api.patch(name, &params, &Patch::Merge(patch)).await.map(|_| ()).map_err(|error| refused(&error))
}

async fn wait(is_so: impl Fn() -> Result<bool, Trouble>) -> Result<(), Trouble> {
    let begun = Instant::now();
    while !is_so()? {
        if begun.elapsed() > PATIENCE {
            return Err(Trouble::new(
                "the operator did not do what is measured",
                "read virtpilot.log in the playground's folder",
            ));
        }
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    Ok(())
}

fn refused(error: &kube::Error) -> Trouble {
    Trouble::new("the API server refused a step of the bench", "this is a bug, please report it")
        .because(trouble::server_words(error))
}

fn kilobytes(pid: u32, file: &str, field: &str) -> Result<f64, Trouble> {
    let path = std::path::PathBuf::from(format!("/proc/{pid}/{file}"));
    let text = std::fs::read_to_string(&path).map_err(|error| trouble::io("read", &path, error))?;
    let line = text.lines().find_map(|line| line.strip_prefix(field)).unwrap_or_default();
    Ok(line.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or_default())
}

fn millis(time: SignedDuration) -> f64 {
    time.as_secs_f64() * 1000.0
}

fn count(number: usize) -> f64 {
    f64::from(u32::try_from(number).unwrap_or(u32::MAX))
}
