//! `status`, `explain`, `plan`, the debug pages and the operator itself agree on random clusters.

use crate::catalogue::ROLES;
use crate::operator::{IMAGE, NAMESPACE, Running, eventually, http};
use crate::random_clusters::{Acts, Target};
use playground::Scene;
use playground::audit::{Kind, Mark};
use playground::deployment::objects;
use playground::pseudo_random::PseudoRandom;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// `make faults` tries fifty.
const CLUSTERS: usize = 10;
/// The environment variable that sets another first seed, and the number of clusters.
const SEED: &str = "VIRTPILOT_CLUSTER_SEED";
const COUNT: &str = "VIRTPILOT_CLUSTERS";
/// The operator reports at most every five seconds, so that not every report is waited for.
const PUBLISHED_EVERY: usize = 10;
/// By then the operator has settled.
const SETTLED: Duration = Duration::from_secs(15);
/// An operator that has settled is going to do nothing of this.
const UNSETTLED: [&str; 5] = ["Pending", "PendingRemoval", "PendingHandback", "Unknown", "Deleting"];

/// Which gates may decide in a state, and how the debug pages name its asset.
fn expected(word: &str) -> (&'static [&'static str], &'static [&'static str]) {
    match word {
        "InSync" => (&[], &["INCLUDED"]),
        "Gone" => (&[], &["EXCLUDED"]),
        "Excluded" => (&["exclusion"], &["FILTERED", "EXCLUDED"]),
        "Governed" => (&["governed"], &["EXCLUDED"]),
        "Unmanaged" => (&["mode"], &["INCLUDED", "EXCLUDED"]),
        "Paused" => (&["pause", "budget"], &["INCLUDED", "EXCLUDED"]),
        "InvalidOverride" => (&["patch", "ignoreFields", "mode"], &["INCLUDED", "EXCLUDED"]),
        "Conflict" => (&["owners"], &["INCLUDED"]),
        "PendingApproval" => (&["approval"], &["INCLUDED", "EXCLUDED"]),
        "PendingWindow" => (&["window"], &["INCLUDED", "EXCLUDED"]),
        "PendingPool" => (&["pool"], &["INCLUDED", "EXCLUDED"]),
        "Suspended" => (&["settings", "removal"], &["INCLUDED", "EXCLUDED", "FILTERED"]),
        "LeftBehind" => (&["removal"], &["EXCLUDED"]),
        "Disabled" => (&["scope", "switch", "install"], &["EXCLUDED"]),
        "NotApplicable" => (&["fact", "served", "template"], &["EXCLUDED"]),
        "Failed" => (
            &["switch", "fact", "template", "server", "object", "adoption", "owners", "removal"],
            &["ERROR", "INCLUDED", "EXCLUDED"],
        ),
        other => panic!("the state {other} is not one of an operator that has settled"),
    }
}

/// A cluster, the operator on it and what happened so far.
struct Bed {
    running: Running,
    debug: u16,
    seed: usize,
    story: Vec<String>,
}

/// What everybody says about one cluster at the same time.
struct Views {
    operator: Value,
    explained: Value,
    rendered: Value,
    plan: Value,
    /// When the operator had settled.
    settled: Mark,
}

impl Bed {
    fn page(&self, path: &str) -> Option<Value> {
        let response = http(self.debug, "GET", path)?;
        let (head, body) = response.split_once("\r\n\r\n")?;
        head.contains(" 200 ").then(|| serde_json::from_str(body).unwrap())
    }

    /// Starts a command that reads the cluster with an administrator's rights.
    fn command(&self, arguments: &[&str]) -> impl FnOnce() -> Value + use<> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_virtpilot"));
        command.args(arguments).args(["--output", "json"]).env("KUBECONFIG", self.running.playground.kubeconfig());
        command.env(IMAGE.0, IMAGE.1).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let child = command.spawn().unwrap();
        let what = arguments.join(" ");
        move || {
            let output = child.wait_with_output().unwrap();
            let problem = || panic!("{what}: {}", String::from_utf8_lossy(&output.stderr));
            serde_json::from_slice(&output.stdout).unwrap_or_else(|_| problem())
        }
    }

    /// The assets that the operator wants now, with their objects.
    fn targets(&self) -> Vec<Target> {
        let rendered = self.page("/debug/render?format=json").unwrap();
        let objects = rendered.as_array().unwrap().iter().filter_map(|entry| entry.get("object"));
        // The client here does not know the plural of these.
        let is_known = |object: &&Value| !object["kind"].as_str().unwrap().ends_with('s');
        objects.filter(is_known).map(|desired| Target { desired: desired.clone() }).collect()
    }

    /// Waits until the operator has followed, and says the same as a command that evaluates the cluster itself.
    async fn settle(&self) -> Value {
        let begun = Instant::now();
        loop {
            let operator = self.operator().await;
            let lines = operator["assets"].as_array().unwrap();
            let is_unsettled = lines.iter().any(|line| UNSETTLED.contains(&line["state"].as_str().unwrap()));
            let is_late = begun.elapsed() > SETTLED;
            if !is_unsettled || is_late {
                let status = self.command(&["status", "--evaluate"])();
                let is_same = shared(&operator) == shared(&status) && self.operator().await == operator;
                if is_same && !is_unsettled {
                    return operator;
                }
                assert!(!is_late, "{}", self.difference(&operator, &status));
            }
            tokio::time::sleep(Duration::from_millis(20)).await;
        }
    }

    /// What the operator knows, as soon as it has seen the annotations of the HyperConverged.
    async fn operator(&self) -> Value {
        let hco = objects(&self.running.playground, "hco.kubevirt.io/v1", api::hco::KIND, Some(NAMESPACE));
        eventually("the operator has seen the annotations", async || {
            let hco = serde_json::to_value(hco.get(api::hco::NAME).await.unwrap()).unwrap();
            let report = self.page("/debug/status?format=json")?;
            (report["settings"] == json!(autopilot::report::settings(&hco))).then_some(report)
        })
        .await
    }

    /// Where two reports differ, with all other views of it.
    fn difference(&self, operator: &Value, status: &Value) -> String {
        let (one, other) = (operator["assets"].as_array().unwrap(), status["assets"].as_array().unwrap());
        let differing: Vec<usize> =
            (0..one.len().max(other.len())).filter(|at| one.get(*at) != other.get(*at)).collect();
        let Some(first) = differing.first().and_then(|at| one.get(*at).or(other.get(*at))) else {
            let (one, other) = (beside_assets(operator), beside_assets(status));
            let what = "the reports differ beside the assets, or change all the time";
            return self.failure(what, &[("operator", &one), ("status --evaluate", &other)]);
        };
        let asset = first["asset"].as_str().unwrap();
        let rendered = self.page(&format!("/debug/render/{asset}?format=json")).unwrap_or_default();
        let explained = self.command(&["explain", asset])();
        let find = |lines: &[Value]| lines.iter().find(|line| line["asset"] == asset).cloned().unwrap_or_default();
        self.failure(
            &format!("{} assets differ; the first is {asset}", differing.len()),
            &[
                ("operator", &find(one)),
                ("status --evaluate", &find(other)),
                ("explain", &explained),
                ("debug", &rendered),
            ],
        )
    }

    fn failure(&self, what: &str, views: &[(&str, &Value)]) -> String {
        let views: String = views.iter().map(|(name, view)| format!("\n{name}: {view:#}")).collect();
        format!("{what}; {SEED}={}{views}\n{}", self.seed, self.story.join("\n"))
    }

    /// All views of a cluster that has settled.
    async fn views(&self) -> Views {
        let operator = self.settle().await;
        let settled = self.running.audit().mark().unwrap();
        let assets = operator["assets"].as_array().unwrap();
        let names: Vec<&str> = assets.iter().map(|line| line["asset"].as_str().unwrap()).collect();
        let explained = self.command(&[&["explain"], names.as_slice()].concat());
        let plan = self.command(&["plan"]);
        let (explained, plan) = (explained(), plan());
        let rendered = self.page("/debug/render?show-excluded=true&format=json").unwrap();
        Views { operator, explained, rendered, plan, settled }
    }

    /// Compares what everybody says about every asset.
    fn compare(&self, views: &Views) {
        let by_asset = |list: &Value| -> BTreeMap<String, Value> {
            let entries = list.as_array().unwrap().iter();
            entries.map(|entry| (entry["asset"].as_str().unwrap().to_owned(), entry.clone())).collect()
        };
        let (explained, rendered) = (by_asset(&views.explained), by_asset(&views.rendered));
        let planned = by_asset(&views.plan["items"]);
        for line in views.operator["assets"].as_array().unwrap() {
            let asset = line["asset"].as_str().unwrap();
            let word = line["state"].as_str().unwrap();
            let nothing = Value::Null;
            let explanation = explained.get(asset).unwrap_or(&nothing);
            let page = rendered.get(asset).unwrap_or(&nothing);
            let item = planned.get(asset).unwrap_or(&nothing);
            let fail = |what: &str| -> String {
                self.failure(
                    &format!("{asset}: {what}"),
                    &[("operator", line), ("explain", explanation), ("debug", page), ("plan", item)],
                )
            };
            assert_eq!(explanation["state"], line["state"], "{}", fail("explain has another state"));
            assert_eq!(explanation["why"], line["why"], "{}", fail("explain has another reason"));
            let (gates, pages) = expected(word);
            let deciding: Vec<&str> = explanation["gates"]
                .as_array()
                .unwrap()
                .iter()
                .filter(|row| row["decides"] == true)
                .filter_map(|row| row["gate"].as_str())
                .collect();
            let is_decided = match deciding[..] {
                [] => gates.is_empty(),
                [gate] => gates.contains(&gate),
                _ => false,
            };
            assert!(is_decided, "{}", fail("explain names another gate"));
            // A tombstone has no page.
            let is_shown = page.is_null() || pages.contains(&page["status"].as_str().unwrap());
            assert!(is_shown, "{}", fail("the debug page has another result"));
            if word == "Disabled" || word == "NotApplicable" {
                assert_eq!(page["reason"], line["why"], "{}", fail("the debug page has another reason"));
            }
            assert_ne!(item["state"], "ready", "{}", fail("a plan says that something is done now"));
            if word == "InSync" {
                assert!(item.is_null(), "{}", fail("a plan has something to do"));
            }
            if let Some(digest) = line["digest"].as_str() {
                assert_eq!(item["approval"], digest, "{}", fail("the plan asks for another approval"));
            }
        }
    }

    /// What is in sync exists and has what is wanted of it.
    async fn check_reality(&self, views: &Views, random: &mut PseudoRandom) {
        let targets = self.targets();
        let lines = views.operator["assets"].as_array().unwrap();
        let has_overrides = |line: &Value| line["overrides"].as_array().is_some_and(|all| !all.is_empty());
        for _ in 0..8 {
            let Some(target) = targets.get(random.below(targets.len().max(1))) else { return };
            let shown = format!("{} ", target.kind());
            let is_of = |line: &&Value| {
                let object = line["object"].as_str().unwrap();
                object.starts_with(&shown) && object.rsplit([' ', '/']).next() == Some(target.name())
            };
            let Some(line) = lines.iter().find(is_of) else { continue };
            let found = target.api(&self.running).get_opt(target.name()).await.unwrap();
            let found = serde_json::to_value(found).unwrap();
            let fail = |what: &str| self.failure(what, &[("operator", line), ("the object", &found)]);
            match line["state"].as_str().unwrap() {
                "InSync" => {
                    assert!(found.is_object(), "{}", fail("what is in sync does not exist"));
                    let label = &found["metadata"]["labels"][api::MANAGED_BY.0];
                    assert_eq!(label, api::MANAGED_BY.1, "{}", fail("what is in sync is not ours"));
                    if !has_overrides(line) {
                        for pointer in texts(&target.desired) {
                            let (wanted, live) = (target.desired.pointer(&pointer), found.pointer(&pointer));
                            assert_eq!(wanted, live, "{}", fail(&format!("{pointer} differs")));
                        }
                    }
                }
                "Unmanaged" | "Conflict" => assert!(found.is_object(), "{}", fail("it does not exist")),
                _ => {}
            }
        }
    }

    /// The operator has written nothing since it settled.
    fn check_writes(&self, settled: Mark) {
        let writes = self.running.own(&self.running.audit().since(settled).unwrap()).of(Kind::Write);
        let state = |name: &str| name == api::STATE;
        let writes = writes.filter(|request| request.code < 300 && !state(&request.name));
        assert_eq!(writes.count(), 0, "{}", self.failure(&format!("it has settled and writes: {:#?}", writes.0), &[]));
    }
}

/// What both reports say; only one has an operator, which may still wait to be told about its own readiness.
fn shared(report: &Value) -> Value {
    let fields = ["policy", "settings", "assets", "waiting", "warnings", "rollouts"];
    fields.iter().map(|field| ((*field).to_owned(), report[*field].clone())).collect()
}

/// The same without the assets.
fn beside_assets(report: &Value) -> Value {
    let mut shared = shared(report);
    shared["assets"] = Value::Null;
    shared
}

/// The pointers of texts below `spec` and `data`, in maps only.
fn texts(object: &Value) -> Vec<String> {
    fn walk(value: &Value, at: &str, found: &mut Vec<String>) {
        match value {
            Value::String(text) if !text.contains("redacted") => found.push(at.to_owned()),
            Value::Object(map) => {
                for (key, value) in map {
                    walk(value, &format!("{at}/{}", key.replace('~', "~0").replace('/', "~1")), found);
                }
            }
            _ => {}
        }
    }
    let mut found = Vec::new();
    for part in ["data", "spec"] {
        walk(&object[part], &format!("/{part}"), &mut found);
    }
    found
}

fn number(variable: &str, otherwise: usize) -> usize {
    std::env::var(variable).ok().and_then(|text| text.parse().ok()).unwrap_or(otherwise)
}

#[tokio::test(flavor = "multi_thread")]
async fn every_view_of_random_clusters_is_the_same() {
    let begun = Instant::now();
    let (first, clusters) = (number(SEED, 1), number(COUNT, CLUSTERS));
    let role = ROLES.join("\n---\n");
    let mut running = Running::on(Scene::preset("small").unwrap(), &role, &[]).await;
    let kubeconfig = running.kubeconfig().to_owned();
    let debug = running.restart_served(&kubeconfig, &["--leader-elect"]).debug;
    let mut bed = Bed { running, debug, seed: first, story: Vec::new() };
    eventually("something is rendered", async || bed.page("/debug/status?format=json")).await;
    bed.settle().await;
    let (mut states, mut unserved) = (BTreeMap::<String, usize>::new(), BTreeMap::new());
    let random = &mut PseudoRandom::new((first as u64).wrapping_mul(0x9e37_79b9_7f4a_7c15));
    for cluster in 1..=clusters {
        bed.story.push(format!("cluster {cluster}:"));
        let (report, targets) = (bed.operator().await, bed.targets());
        let mut acts =
            Acts { running: &bed.running, random, targets: &targets, report: &report, unserved: &mut unserved };
        let mut done = vec![acts.edit_policy().await];
        for _ in 0..2 + acts.random.below(7) {
            done.push(acts.act().await);
        }
        bed.story.extend(done.into_iter().map(|act| format!("  {act}")));
        let views = bed.views().await;
        bed.compare(&views);
        bed.check_reality(&views, random).await;
        bed.check_writes(views.settled);
        for line in views.operator["assets"].as_array().unwrap() {
            *states.entry(line["state"].as_str().unwrap().to_owned()).or_default() += 1;
        }
        if cluster.is_multiple_of(PUBLISHED_EVERY) {
            let published = eventually("the report is published", async || {
                let published = bed.command(&["status"])();
                (published.get("operator").is_some() && shared(&published) == shared(&views.operator))
                    .then_some(published)
            })
            .await;
            assert!(published["operator"]["pod"].is_string(), "{published:#}");
        }
    }
    println!("{clusters} random clusters ({SEED}={first}) in {:.0} s: {states:?}", begun.elapsed().as_secs_f64());
    assert!(clusters < 50 || states.len() >= 8, "{states:?}");
}
