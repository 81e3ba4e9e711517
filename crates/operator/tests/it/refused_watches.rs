//! A kind that the operator may list and not watch.

use crate::operator::{Running, SERVICE, edit, eventually, readiness};
use kube::api::{Patch, PatchParams};
use playground::audit::Request;
use playground::deployment;
use playground::fault::{Fault, Match, Plan, Rule, Verb};
use serde_json::json;
use std::path::Path;
use std::time::Duration;

/// How long requests are counted.
const WHILE: Duration = Duration::from_secs(20);

/// Grants these verbs on all Services, instead of list and watch.
async fn grant_on_services(running: &Running, verbs: &[&str]) {
    let roles = deployment::objects(&running.playground, "rbac.authorization.k8s.io/v1", "ClusterRole", None);
    let role = roles.get(deployment::ACCOUNT).await.unwrap();
    let mut rules = role.data["rules"].clone();
    let rules = rules.as_array_mut().unwrap();
    for rule in rules.iter_mut().filter(|rule| rule.get("resourceNames").is_none()) {
        rule["resources"].as_array_mut().unwrap().retain(|resource| resource != "services");
    }
    rules.retain(|rule| rule["resources"] != json!([]));
    rules.push(json!({"apiGroups": [""], "resources": ["services"], "verbs": verbs}));
    let params = PatchParams::default();
    roles.patch(deployment::ACCOUNT, &params, &Patch::Merge(&json!({"rules": rules}))).await.unwrap();
}

async fn waits_for_services(port: u16) {
    eventually("/readyz names the kind", async || {
        readiness(port).filter(|text| text.contains("503") && text.contains("waiting for Service"))
    })
    .await;
}

async fn recovers(running: &Running, port: u16) {
    eventually("the operator is ready", async || readiness(port).filter(|text| text.contains("200"))).await;
    let (key, wanted) = api::MANAGED_BY;
    edit(&running.services(), SERVICE, json!({"metadata": {"labels": {key: "edited"}}})).await;
    eventually("drift is corrected again", async || {
        let labels = running.services().get(SERVICE).await.unwrap().metadata.labels?;
        (labels.get(key)? == wanted).then_some(())
    })
    .await;
}

fn last_line_about_services(log: &Path) -> Option<String> {
    let log = std::fs::read_to_string(log).unwrap();
    log.lines().rev().find(|line| line.contains("cannot watch Service")).map(str::to_owned)
}

/// The seconds between two requests each.
fn pauses(requests: &[Request]) -> Vec<f64> {
    requests.windows(2).map(|pair| pair[1].at.duration_since(pair[0].at).as_secs_f64()).collect()
}

#[tokio::test(flavor = "multi_thread")]
async fn a_kind_that_may_be_listed_and_not_watched_is_named_with_its_rule_and_costs_few_requests() {
    let mut running = Running::without_operator().await;
    grant_on_services(&running, &["list"]).await;
    let mark = running.audit().mark().unwrap();
    let kubeconfig = running.kubeconfig().to_owned();
    let (port, log) = running.restart_logged(&kubeconfig);
    waits_for_services(port).await;
    let rule = r#"add this rule to the role: {apiGroups: [""], resources: ["services"], verbs: ["list", "watch"]}"#;
    let line = eventually("the missing rule is logged", async || last_line_about_services(&log)).await;
    assert!(line.contains(rule), "{line}");
    // What could be listed is managed all the same.
    eventually("the Service exists", async || running.services().get_opt(SERVICE).await.unwrap()).await;
    tokio::time::sleep(WHILE).await;
    let own = running.own(&running.audit().since(mark).unwrap()).filter(|request| request.resource == "services");
    let lists = own.filter(|request| request.verb == "list").count();
    let watches = own.filter(|request| request.verb == "watch").0;
    assert!(watches.iter().all(|watch| watch.code == 403), "{watches:?}");
    let pauses = pauses(&watches);
    assert!(lists == 1 && (3..=5).contains(&watches.len()), "{lists} lists, pauses between watches: {pauses:?}");
    assert!(pauses.windows(2).all(|pair| pair[1] > 1.5 * pair[0]), "the pauses grow: {pauses:?}");
    println!("{lists} list, watches with pauses of {pauses:?} s");
    waits_for_services(port).await;
    grant_on_services(&running, &["list", "watch"]).await;
    recovers(&running, port).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_proxy_that_throttles_every_watch_is_asked_with_growing_pauses() {
    let mut running = Running::without_operator().await;
    let proxy = running.proxy();
    let matching = Match { verb: Some(Verb::Watch), path: Some("*/services".into()), nth: None };
    proxy.set(Plan::from(Rule { matching, fault: Fault::Status { code: 429, retry_after: None } }));
    let (port, log) = running.restart_logged(proxy.kubeconfig());
    eventually("the Service exists", async || running.services().get_opt(SERVICE).await.unwrap()).await;
    eventually("it is logged", async || last_line_about_services(&log)).await;
    waits_for_services(port).await;
    let before = proxy.requests().len();
    tokio::time::sleep(WHILE).await;
    let requests = proxy.requests().split_off(before);
    let count =
        |verb: &str| requests.iter().filter(|line| line.verb == verb && line.path.ends_with("/services")).count();
    let (lists, watches) = (count("list"), count("watch"));
    assert!(lists <= 1 && (2..=5).contains(&watches), "{lists} lists, {watches} watches");
    println!("{lists} lists and {watches} watches in {} s after the report", WHILE.as_secs());
    proxy.clear();
    recovers(&running, port).await;
}
