//! Another writer keeps changing or deleting an object.

use crate::operator::{Running, SERVICE, annotate, edit, eventually, eventually_within};
use futures::StreamExt;
use kube::api::{Api, DynamicObject, WatchEvent, WatchParams};
use serde_json::json;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

const US: &str = "virt-platform-autopilot";
const PAUSED: &str = "platform.kubevirt.io/reconcile-paused";

/// A second writer that changes the Service every 200 ms until it is stopped.
struct Rogue {
    stop: Arc<AtomicBool>,
    task: JoinHandle<()>,
}

impl Rogue {
    fn start(services: Api<DynamicObject>) -> Rogue {
        let stop = Arc::new(AtomicBool::new(false));
        let stopped = stop.clone();
        let task = tokio::spawn(async move {
            let mut round = 0;
            while !stopped.load(Ordering::SeqCst) {
                round += 1;
                edit(&services, SERVICE, json!({"spec": {"selector": {"app": format!("fight-{round}")}}})).await;
                tokio::time::sleep(Duration::from_millis(200)).await;
            }
        });
        Rogue { stop, task }
    }

    async fn end(self) {
        self.stop.store(true, Ordering::SeqCst);
        self.task.await.unwrap();
    }
}

/// Counts the corrections of the Service.
async fn count_corrections(services: Api<DynamicObject>) -> Arc<AtomicUsize> {
    let corrections = Arc::new(AtomicUsize::new(0));
    let counter = corrections.clone();
    let version = services.list_metadata(&Default::default()).await.unwrap().metadata.resource_version.unwrap();
    tokio::spawn(async move {
        let mut was_ours = true;
        let stream = services.watch(&WatchParams::default(), &version).await.unwrap();
        let mut stream = std::pin::pin!(stream);
        while let Some(Ok(event)) = stream.next().await {
            let (WatchEvent::Added(service) | WatchEvent::Modified(service)) = event else { continue };
            let is_ours = service.data["spec"]["selector"]["app"] == US;
            if is_ours && !was_ours {
                counter.fetch_add(1, Ordering::SeqCst);
            }
            was_ours = is_ours;
        }
    });
    corrections
}

async fn is_paused(running: &Running) -> Option<()> {
    let annotations = running.services().get(SERVICE).await.unwrap().metadata.annotations.unwrap_or_default();
    annotations.contains_key(PAUSED).then_some(())
}

async fn is_ours(running: &Running) -> Option<()> {
    (running.services().get(SERVICE).await.unwrap().data["spec"]["selector"]["app"] == US).then_some(())
}

#[tokio::test(flavor = "multi_thread")]
async fn a_fight_is_paused_after_ten_corrections_reported_with_its_author_and_resumed_at_once() {
    let running = Running::start(Some("metrics-service")).await;
    eventually("the Service exists", async || running.services().get_opt(SERVICE).await.unwrap()).await;
    let corrections = count_corrections(running.services()).await;
    let rogue = Rogue::start(running.services());
    eventually_within(Duration::from_secs(15), "the object is paused", async || is_paused(&running).await).await;
    let count = corrections.load(Ordering::SeqCst);
    assert!((9..=10).contains(&count), "{count} corrections");
    let note = eventually("the fight is reported", async || running.events("ThrashingDetected").await.pop()).await;
    assert!(note.contains("rogue keeps changing .spec.selector"), "{note}");
    rogue.end().await;
    assert!(is_ours(&running).await.is_none(), "a paused object is not corrected");
    annotate(&running.services(), SERVICE, "reconcile-paused", None).await;
    eventually_within(Duration::from_secs(1), "the object is corrected after the pause", async || {
        is_ours(&running).await
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn killing_the_operator_does_not_refill_the_budget() {
    let mut running = Running::start(Some("metrics-service")).await;
    eventually("the Service exists", async || running.services().get_opt(SERVICE).await.unwrap()).await;
    let corrections = count_corrections(running.services()).await;
    let rogue = Rogue::start(running.services());
    let begun = Instant::now();
    // The operator is killed often, so that it happens in the middle of the fight.
    while is_paused(&running).await.is_none() {
        assert!(begun.elapsed() < Duration::from_secs(60), "the object is never paused");
        tokio::time::sleep(Duration::from_millis(700)).await;
        running.restart();
    }
    rogue.end().await;
    let count = corrections.load(Ordering::SeqCst);
    let refilled = usize::try_from(begun.elapsed().as_secs() / 6).unwrap();
    assert!(
        (10..=10 + refilled + 1).contains(&count),
        "{count} corrections, {refilled} tokens were refilled meanwhile"
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn repeated_deletions_are_slowed_down_reported_and_counted_across_a_kill() {
    let mut running = Running::start(Some("metrics-service")).await;
    let services = running.services();
    let uid = async || services.get_opt(SERVICE).await.unwrap().and_then(|service| service.metadata.uid);
    eventually("the Service exists", async || uid().await).await;
    annotate(&services, SERVICE, "ignore-fields", Some("/metadata/labels/app")).await;
    let begun = Instant::now();
    let mut creations = 0;
    // The object is deleted as soon as it is recreated.
    while running.events("ThrashingDetected").await.is_empty() {
        assert!(begun.elapsed() < Duration::from_secs(60), "the fight is not reported after {creations} recreations");
        if uid().await.is_some() && services.delete(SERVICE, &Default::default()).await.is_ok() {
            creations += 1;
            // A kill in the middle does not refill the budget.
            if creations == 6 {
                running.restart();
            }
        }
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    let refilled = usize::try_from(begun.elapsed().as_secs() / 6).unwrap();
    // A kill loses at most the first recorded recreation.
    assert!(
        (9..=12 + refilled).contains(&creations),
        "{creations} creations, {refilled} tokens were refilled meanwhile"
    );
    let dropped = running.events("DriftCorrected").await;
    assert!(dropped.iter().any(|note| note.contains("ignore-fields: /metadata/labels/app")), "{dropped:?}");
    eventually("the object is recreated later", async || uid().await).await;
}
