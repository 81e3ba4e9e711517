//! A watch that sends nothing although there is something to send.

use crate::operator::{Running, SERVICE, eventually, readiness};
use kube::api::{Patch, PatchParams};
use playground::deployment;
use playground::fault::{Fault, Match, Plan, Rule, Verb};
use serde_json::json;
use std::time::{Duration, Instant};

/// The time after which a silent watch is dead; it is 75 s by default, and `/readyz` answers 503 after two of them.
const SILENCE: Duration = Duration::from_secs(6);

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_whose_watch_is_black_holed_is_named_by_readyz_within_twice_the_silence() {
    let mut running = Running::without_operator().await;
    let proxy = running.proxy();
    running.add_argument(&format!("--watch-silence={}s", SILENCE.as_secs()));
    let (port, _) = running.restart_logged(proxy.kubeconfig());
    eventually("the Service exists", async || running.services().get_opt(SERVICE).await.unwrap()).await;
    eventually("the operator is ready", async || readiness(port).filter(|text| text.contains("200"))).await;
    // A Service that changes every second keeps its watch alive, unless the watch is black-holed.
    let services = deployment::objects(&running.playground, "v1", "Service", Some("openshift-cnv"));
    let changes = tokio::spawn(async move {
        for number in 0.. {
            let patch = json!({"metadata": {"annotations": {"example.io/number": number.to_string()}}});
            let _ = services.patch(SERVICE, &PatchParams::default(), &Patch::Merge(&patch)).await;
            tokio::time::sleep(Duration::from_secs(1)).await;
        }
    });
    let waits_for = || readiness(port).and_then(|text| Some(text.split_once("waiting for ")?.1.to_owned()));
    let names_services = || waits_for().filter(|kinds| kinds.contains("Service"));
    let begun = Instant::now();
    while begun.elapsed() < 3 * SILENCE {
        assert_eq!(names_services(), None, "its watch is alive");
        tokio::time::sleep(Duration::from_millis(200)).await;
    }
    let matching = Match { verb: Some(Verb::Watch), path: Some("*/services".into()), nth: None };
    proxy.set(Plan::from(Rule { matching, fault: Fault::CutSilently { event: None } }));
    let begun = Instant::now();
    eventually("/readyz names the kind", async || names_services()).await;
    let took = begun.elapsed();
    assert!(took < 2 * SILENCE + Duration::from_secs(2), "{took:?}");
    println!("/readyz is 503 after {took:?} with a silence of {SILENCE:?}");
    proxy.clear();
    eventually("the kind is not waited for any more", async || names_services().is_none().then_some(())).await;
    changes.abort();
}
