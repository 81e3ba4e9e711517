//! Every fault of the proxy has its documented effect, and all other requests are forwarded unchanged.

use crate::{admin_account, eventually, start};
use futures::{Stream, StreamExt};
use http_body_util::BodyExt;
use k8s_openapi::api::core::v1::{ConfigMap, Event, Node};

use kube::api::{Api, DeleteParams, ListParams, ObjectMeta, Patch, PatchParams, PostParams, WatchEvent, WatchParams};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use playground::Playground;
use playground::fault::{Plan, Proxy};
use playground::service_account::Account;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::future::Future;
use std::os::unix::process::ExitStatusExt;
use std::pin::Pin;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

const NAMESPACE: &str = "openshift-cnv";
/// Long enough for a response to arrive if there was one.
const SILENCE: Duration = Duration::from_millis(150);
/// Long enough for a very busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// A cluster and a proxy for an account with administrator rights.
struct Fixture {
    proxy: Proxy,
    account: Account,
    playground: Playground,
}

impl Fixture {
    async fn new() -> Fixture {
        let playground = start("single-node").await;
        let account = admin_account(&playground, "test").await;
        let proxy = Proxy::start(&playground, &account).unwrap();
        Fixture { proxy, account, playground }
    }

    /// A new client with its own connections and without retries.
    async fn client(&self) -> Client {
        let file = Kubeconfig::read_from(self.proxy.kubeconfig()).unwrap();
        let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.unwrap();
        (config.default_retry, config.proxy_url) = (false, None);
        Client::try_from(config).unwrap()
    }

    async fn maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client().await, NAMESPACE)
    }

    /// Direct access, not through the proxy.
    fn direct(&self) -> Api<ConfigMap> {
        Api::namespaced(self.playground.client(), NAMESPACE)
    }

    async fn exists(&self, name: &str) -> bool {
        self.direct().get_opt(name).await.unwrap().is_some()
    }

    fn plan(&self, plan: &str) {
        self.proxy.set(Plan::parse(plan).unwrap_or_else(|error| panic!("{error}")));
    }

    /// The names of the injected faults.
    fn fired(&self) -> Vec<&'static str> {
        self.proxy.fired().iter().map(|fired| fired.fault).collect()
    }

    /// Waits until a fault is injected.
    async fn until_fired(&self) {
        tokio::time::timeout(TIMEOUT, self.proxy.until_fired(1)).await.unwrap();
    }
}

fn map(name: &str, check: &str) -> ConfigMap {
    let labels = [("check".to_owned(), check.to_owned())].into();
    let metadata = ObjectMeta { name: Some(name.into()), labels: Some(labels), ..ObjectMeta::default() };
    ConfigMap { metadata, ..ConfigMap::default() }
}

async fn create(maps: &Api<ConfigMap>, name: &str) -> kube::Result<ConfigMap> {
    maps.create(&PostParams::default(), &map(name, "none")).await
}

/// The HTTP status of an error; 0 if there was no response.
fn code<T: std::fmt::Debug>(result: kube::Result<T>) -> u16 {
    match result.unwrap_err() {
        kube::Error::Api(status) => status.code,
        _ => 0,
    }
}

/// Sends a create request and checks that the fault is injected and no response arrives.
async fn create_without_response(fixture: &Fixture, maps: &Api<ConfigMap>, name: &str) {
    let mut response = Box::pin(create(maps, name));
    tokio::select! {
        result = &mut response => panic!("{result:?}"),
        () = fixture.until_fired() => {}
    }
    assert!(is_silent(&mut response).await);
}

async fn is_silent(future: impl Future) -> bool {
    tokio::time::timeout(SILENCE, future).await.is_err()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_fault_has_its_effect_and_is_counted() {
    // In sequence on one cluster: starting another takes longer than all of these together.
    let fixture = Fixture::new().await;
    check_status(&fixture).await;
    check_delay(&fixture).await;
    check_kill_before(&fixture).await;
    check_kill_after_commit(&fixture).await;
    check_blind_timeout(&fixture).await;
    check_block_and_reset(&fixture).await;
    check_truncate(&fixture).await;
    check_nth_write(&fixture).await;
    check_rule_that_never_matches(&fixture).await;
    check_stale(&fixture).await;
    check_expired_continue(&fixture).await;
    check_event_faults(&fixture).await;
    check_open_watches(&fixture).await;
    check_disconnected_client(&fixture).await;
}

async fn check_status(fixture: &Fixture) {
    let maps = fixture.maps().await;
    let before = fixture.playground.audit_log().mark().unwrap();
    for expected in [409, 410, 429, 500, 503, 504] {
        fixture.plan(&format!("{{match: {{verb: create}}, fault: {{status: {{code: {expected}}}}}}}"));
        assert_eq!(code(create(&maps, "refused").await), expected);
        assert_eq!(fixture.fired(), ["status"]);
        let line = fixture.proxy.requests().pop().unwrap();
        assert_eq!((line.verb, line.status, line.fault), ("create", Some(expected), Some("status")));
    }
    assert_eq!(fixture.playground.audit_log().since(before).unwrap().by(&fixture.account.user).count(), 0);
    fixture.plan("{match: {path: /version}, fault: {status: {code: 429, retryAfter: 7}}}");
    let request = http::Request::get("/version").body(kube::client::Body::empty()).unwrap();
    let response = fixture.client().await.send(request).await.unwrap();
    assert_eq!((response.status().as_u16(), response.headers()["retry-after"].to_str().unwrap()), (429, "7"));
}

async fn check_delay(fixture: &Fixture) {
    fixture.plan("{match: {verb: create}, fault: {delay: {ms: 120}}}");
    let started = Instant::now();
    create(&fixture.maps().await, "delayed").await.unwrap();
    assert!(started.elapsed() >= Duration::from_millis(120));
    assert_eq!(fixture.fired(), ["delay"]);
    assert!(fixture.proxy.requests().pop().unwrap().latency_ms.unwrap() >= 120.0);
}

/// Runs kubectl to create a ConfigMap through the proxy, with a callback that kills it.
fn kubectl(fixture: &Fixture, name: &str) -> std::process::ExitStatus {
    let child: Arc<Mutex<Option<Child>>> = Arc::default();
    // The callback waits for the lock until the child is started.
    let mut guard = child.lock().unwrap();
    let victim = Arc::clone(&child);
    fixture.proxy.on_kill(move || victim.lock().unwrap().as_mut().unwrap().kill().unwrap());
    let mut command = Command::new(fixture.playground.folder().join("kubectl"));
    command.arg("--kubeconfig").arg(fixture.proxy.kubeconfig()).args(["-n", NAMESPACE, "create", "configmap", name]);
    *guard = Some(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    drop(guard);
    loop {
        // The lock is released between polls: the callback needs it.
        if let Some(status) = child.lock().unwrap().as_mut().unwrap().try_wait().unwrap() {
            return status;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

async fn check_kill_before(fixture: &Fixture) {
    let before = fixture.playground.audit_log().mark().unwrap();
    fixture.plan("{match: {verb: create, path: /configmaps}, fault: kill-before}");
    assert_eq!(kubectl(fixture, "uncommitted").signal(), Some(9));
    assert_eq!(fixture.fired(), ["kill-before"]);
    assert!(!fixture.exists("uncommitted").await);
    let writes = fixture.playground.audit_log().since(before).unwrap().by(&fixture.account.user);
    assert_eq!(writes.filter(|request| request.verb == "create").count(), 0);
}

async fn check_kill_after_commit(fixture: &Fixture) {
    fixture.plan("{match: {verb: create, path: /configmaps}, fault: kill-after-commit}");
    assert_eq!(kubectl(fixture, "committed").signal(), Some(9));
    assert_eq!(fixture.fired(), ["kill-after-commit"]);
    assert!(fixture.exists("committed").await);
    let line = fixture.proxy.requests().pop().unwrap();
    assert_eq!((line.status, line.bytes_out, line.fault), (Some(201), 0, Some("kill-after-commit")));
    assert!(line.resource_version_out.is_some());

    // A client that survives loses all its connections and can open new ones.
    let killed = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&killed);
    fixture.proxy.on_kill(move || {
        count.fetch_add(1, Ordering::SeqCst);
    });
    let maps = fixture.maps().await;
    let mut watch = events(&maps, "unused").await;
    fixture.plan("{match: {verb: create, nth: 1}, fault: kill-after-commit}");
    assert_eq!(code(create(&maps, "after-kill").await), 0);
    assert_eq!(killed.load(Ordering::SeqCst), 1);
    assert!(!matches!(next(&mut watch).await, Some(Ok(_))));
    assert_eq!(code(create(&fixture.maps().await, "after-kill").await), 409);
}

async fn check_blind_timeout(fixture: &Fixture) {
    let maps = fixture.maps().await;
    fixture.plan("{match: {verb: create}, fault: blind-timeout}");
    create_without_response(fixture, &maps, "silent").await;
    assert!(fixture.exists("silent").await);
    assert_eq!(fixture.fired(), ["blind-timeout"]);
    fixture.plan("{match: {verb: create}, fault: {blind-timeout: {close: true}}}");
    assert_eq!(code(create(&maps, "closed").await), 0);
    assert_eq!(fixture.fired(), ["blind-timeout"]);
    assert!(fixture.exists("closed").await);
}

async fn check_block_and_reset(fixture: &Fixture) {
    let maps = fixture.maps().await;
    fixture.plan("{match: {verb: create}, fault: block}");
    create_without_response(fixture, &maps, "blocked").await;
    fixture.plan("{match: {verb: create}, fault: reset}");
    assert_eq!(code(create(&maps, "reset").await), 0);
    assert_eq!(fixture.fired(), ["reset"]);
    assert!(!fixture.exists("blocked").await && !fixture.exists("reset").await);
}

async fn check_truncate(fixture: &Fixture) {
    let maps = fixture.maps().await;
    fixture.plan("{match: {verb: patch}, fault: truncate}");
    let labels = json!({"metadata": {"labels": {"half": "yes"}}});
    assert_eq!(code(maps.patch("committed", &PatchParams::default(), &Patch::Merge(&labels)).await), 0);
    assert_eq!(fixture.fired(), ["truncate"]);
    assert_eq!(fixture.direct().get("committed").await.unwrap().metadata.labels.unwrap()["half"], "yes");
}

async fn check_nth_write(fixture: &Fixture) {
    let client = fixture.client().await;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    let events: Api<Event> = Api::namespaced(client, NAMESPACE);
    fixture.plan("{match: {verb: write, nth: 3}, fault: {status: {code: 500}}}");
    let event = |name: &str| -> Event {
        serde_json::from_value(json!({"metadata": {"name": name, "namespace": NAMESPACE},
            "involvedObject": {"kind": "Node", "name": "a", "namespace": NAMESPACE}, "reason": "Test", "message": "x"}))
        .unwrap()
    };
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let apply = PatchParams::apply("test");
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "nth"}, "data": {"a": "b"}});
    let mut outcomes = Vec::new();
    outcomes.push(create(&maps, "nth").await.is_ok());
    // Neither an event nor a dry run nor a read is counted as a write.
    events.create(&PostParams::default(), &event("first")).await.unwrap();
    maps.create(&dry, &map("would", "none")).await.unwrap();
    maps.get("nth").await.unwrap();
    outcomes.push(maps.patch("nth", &apply, &Patch::Apply(&body)).await.is_ok());
    outcomes.push(maps.delete("nth", &DeleteParams::default()).await.is_ok());
    outcomes.push(maps.delete("nth", &DeleteParams::default()).await.is_ok());
    assert_eq!(outcomes, [true, true, false, true]);
    let fired = fixture.proxy.fired();
    let lines = fixture.proxy.requests();
    assert_eq!(fired.len(), 1);
    let line = &lines[usize::try_from(fired[0].seq).unwrap() - 1];
    assert_eq!((line.seq, line.verb, line.status), (fired[0].seq, "delete", Some(500)));
    let applied = lines.iter().rev().find(|line| line.verb == "patch").unwrap();
    assert_eq!(applied.field_manager.as_deref(), Some("test"));
    fixture.plan("{match: {verb: write, path: /events, nth: 1}, fault: {status: {code: 500}}}");
    assert_eq!(code(events.create(&PostParams::default(), &event("second")).await), 500);
}

async fn check_rule_that_never_matches(fixture: &Fixture) {
    fixture
        .plan("[{match: {verb: get}, fault: {delay: {ms: 1}}}, {match: {path: /never-requested}, fault: kill-before}]");
    fixture.maps().await.get("committed").await.unwrap();
    let error = fixture.proxy.check_all_fired().unwrap_err().to_string();
    assert!(error.contains(r#""path":"/never-requested""#) && !error.contains("delay"), "{error}");
    assert_eq!(fixture.fired(), ["delay"]);
}

async fn check_stale(fixture: &Fixture) {
    let maps = fixture.maps().await;
    let params = ListParams::default().labels("check=old");
    fixture.proxy.clear();
    let first = maps.list(&params).await.unwrap();
    fixture.direct().create(&PostParams::default(), &map("younger", "old")).await.unwrap();
    assert_eq!(maps.list(&params).await.unwrap().items.len(), 1);
    fixture.plan("{match: {verb: list}, fault: stale}");
    for params in [params.clone(), params.clone().match_any()] {
        let stale = maps.list(&params).await.unwrap();
        assert_eq!((stale.items.len(), &stale.metadata), (0, &first.metadata));
    }
    assert_eq!(fixture.fired(), ["stale", "stale"]);
    // This list was never requested before, so there is no stale response.
    assert_eq!(maps.list(&ListParams::default().labels("check in (old)")).await.unwrap().items.len(), 1);
    assert_eq!(fixture.fired().len(), 2);
    fixture.proxy.clear();
    assert_eq!(maps.list(&params).await.unwrap().items.len(), 1);
}

async fn check_expired_continue(fixture: &Fixture) {
    let maps = fixture.maps().await;
    fixture.plan("{match: {verb: list, path: /configmaps}, fault: expired-continue}");
    let page = maps.list(&ListParams::default().limit(1)).await.unwrap();
    let token = page.metadata.continue_.unwrap();
    let rest = ListParams::default().limit(1).continue_token(&token);
    assert_eq!(code(maps.list(&rest).await), 410);
    assert_eq!(fixture.fired(), ["expired-continue"]);
    fixture.proxy.clear();
    assert_eq!(maps.list(&rest).await.unwrap().items.len(), 1);
}

type Events = Pin<Box<dyn Stream<Item = kube::Result<WatchEvent<ConfigMap>>> + Send>>;

/// A watch on the ConfigMaps of one check, from now on.
async fn events(maps: &Api<ConfigMap>, check: &str) -> Events {
    let now = maps.list(&ListParams::default().limit(1)).await.unwrap().metadata.resource_version.unwrap();
    let params = WatchParams::default().labels(&format!("check={check}"));
    Box::pin(maps.watch(&params, &now).await.unwrap())
}

async fn next(events: &mut Events) -> Option<kube::Result<WatchEvent<ConfigMap>>> {
    tokio::time::timeout(TIMEOUT, events.next()).await.unwrap()
}

/// The name in the next event.
async fn name(events: &mut Events) -> String {
    match next(events).await {
        Some(Ok(WatchEvent::Added(map))) => map.metadata.name.unwrap(),
        other => panic!("not an ADDED event: {other:?}"),
    }
}

impl Fixture {
    /// Opens a watch under a plan and creates three objects.
    async fn watch_three(&self, check: &str, plan: &str) -> Events {
        self.plan(plan);
        let events = events(&self.maps().await, check).await;
        self.create(check, &["1", "2", "3"]).await;
        events
    }

    /// Waits until no request is unfinished, so that a plan for open watches does not affect those of the previous check.
    async fn wait_until_idle(&self) {
        let is_idle = async || self.proxy.requests().iter().all(|line| line.latency_ms.is_some());
        eventually("no request is unfinished", is_idle).await;
    }

    async fn create(&self, check: &str, names: &[&str]) {
        for name in names {
            self.direct().create(&PostParams::default(), &map(&format!("{check}-{name}"), check)).await.unwrap();
        }
    }
}

async fn check_event_faults(fixture: &Fixture) {
    let mut watch = fixture.watch_three("whole", "{match: {verb: watch}, fault: {drop: {event: 9}}}").await;
    assert_eq!((name(&mut watch).await, name(&mut watch).await), ("whole-1".into(), "whole-2".into()));
    assert_eq!(name(&mut watch).await, "whole-3");
    let error = fixture.proxy.check_all_fired().unwrap_err().to_string();
    assert!(error.contains("matched 1 requests"), "{error}");
    let line = fixture.proxy.requests().into_iter().rfind(|line| line.verb == "watch").unwrap();
    assert_eq!((line.status, line.events, line.latency_ms), (Some(200), 3, None));
    let number = |version: Option<String>| version.unwrap().parse::<u64>().unwrap();
    assert!(number(line.resource_version_in) < number(line.resource_version_out));

    let mut watch = fixture.watch_three("drop", "{match: {verb: watch}, fault: {drop: {event: 2}}}").await;
    assert_eq!((name(&mut watch).await, name(&mut watch).await), ("drop-1".into(), "drop-3".into()));
    assert_eq!(fixture.fired(), ["drop"]);

    let mut watch = fixture.watch_three("twice", "{match: {verb: watch}, fault: {duplicate: {event: 2}}}").await;
    let mut names = Vec::new();
    for _ in 0..4 {
        names.push(name(&mut watch).await);
    }
    assert_eq!(names, ["twice-1", "twice-2", "twice-2", "twice-3"]);
    assert_eq!(fixture.fired(), ["duplicate"]);

    let mut watch = fixture.watch_three("cut", "{match: {verb: watch}, fault: {cut: {event: 2}}}").await;
    assert_eq!(name(&mut watch).await, "cut-1");
    assert!(!matches!(next(&mut watch).await, Some(Ok(_))));
    assert_eq!(fixture.fired(), ["cut"]);
    // kube treats a broken watch like one that ended; the raw body shows the difference.
    fixture.plan("{match: {verb: watch, path: /nodes}, fault: cut}");
    let request = http::Request::get("/api/v1/nodes?watch=true").body(kube::client::Body::empty()).unwrap();
    let response = fixture.client().await.send(request).await.unwrap();
    assert!(response.status().is_success() && response.into_body().collect().await.is_err());

    let mut watch = fixture.watch_three("silent", "{match: {verb: watch}, fault: {cut-silently: {event: 2}}}").await;
    assert_eq!(name(&mut watch).await, "silent-1");
    fixture.until_fired().await;
    fixture.maps().await.get("silent-3").await.unwrap();
    assert!(is_silent(watch.next()).await);
    assert_eq!(fixture.fired(), ["cut-silently"]);

    let mut watch = fixture.watch_three("gone", "{match: {verb: watch}, fault: {gone: {event: 2}}}").await;
    assert_eq!(name(&mut watch).await, "gone-1");
    assert!(matches!(next(&mut watch).await, Some(Ok(WatchEvent::Error(status))) if status.code == 410));
    assert!(next(&mut watch).await.is_none());
    assert_eq!(fixture.fired(), ["gone"]);

    let maps = fixture.maps().await;
    fixture.plan("{match: {verb: watch, nth: 2}, fault: {status: {code: 410}}}");
    let params = WatchParams::default();
    assert!(maps.watch(&params, "0").await.is_ok());
    assert_eq!(code(maps.watch(&params, "0").await.map(drop)), 410);
    assert!(maps.watch(&params, "0").await.is_ok());
    assert_eq!(fixture.fired(), ["status"]);
}

async fn check_open_watches(fixture: &Fixture) {
    fixture.wait_until_idle().await;
    let maps = fixture.maps().await;
    fixture.proxy.clear();

    // Events are counted from the new plan on, and rules for other kinds or with `nth` do not apply.
    let mut watch = events(&maps, "late").await;
    fixture.create("late", &["1"]).await;
    assert_eq!(name(&mut watch).await, "late-1");
    fixture.plan("{match: {verb: watch, path: /configmaps}, fault: {drop: {event: 2}}}");
    fixture.create("late", &["2", "3", "4"]).await;
    assert_eq!((name(&mut watch).await, name(&mut watch).await), ("late-2".into(), "late-4".into()));
    fixture.plan("{match: {verb: watch, path: /secrets}, fault: cut}");
    fixture.plan("{match: {verb: watch, nth: 1}, fault: cut}");
    fixture.create("late", &["5"]).await;
    assert_eq!(name(&mut watch).await, "late-5");
    assert!(fixture.fired().is_empty());

    // Without `event` the fault is injected at once.
    fixture.plan("{match: {verb: watch}, fault: cut}");
    assert!(!matches!(next(&mut watch).await, Some(Ok(_))));
    assert_eq!(fixture.fired(), ["cut"]);
    fixture.proxy.clear();
    let mut watch = events(&maps, "later").await;
    fixture.plan("{match: {verb: watch}, fault: gone}");
    assert!(matches!(next(&mut watch).await, Some(Ok(WatchEvent::Error(status))) if status.code == 410));
    fixture.proxy.clear();
    let mut watch = events(&maps, "latest").await;
    fixture.plan("{match: {verb: watch}, fault: cut-silently}");
    fixture.until_fired().await;
    fixture.create("latest", &["1"]).await;
    // A silent watch stays silent under another plan.
    fixture.proxy.clear();
    assert!(is_silent(watch.next()).await);
}

/// When a client disconnects, the proxy closes its watch on the server, too.
async fn check_disconnected_client(fixture: &Fixture) {
    let maps = fixture.maps().await;
    fixture.plan("{match: {verb: watch, nth: 1}, fault: cut-silently}");
    let silent = events(&maps, "silenced").await;
    fixture.until_fired().await;
    let abandoned = events(&maps, "abandoned").await;
    let ended = |check: &str| {
        let log = std::fs::read_to_string(fixture.playground.folder().join("audit.log")).unwrap();
        log.lines().any(|line| {
            let entry: Value = serde_json::from_str(line).unwrap_or_default();
            let uri = entry["requestURI"].as_str().unwrap_or_default();
            entry["stage"] == "ResponseComplete" && uri.contains(&format!("check%3D{check}&"))
        })
    };
    assert!(!ended("abandoned") && !ended("silenced"));
    drop((abandoned, silent));
    let both_ended = async || ended("abandoned") && ended("silenced");
    eventually("the server ends the watches whose client has disconnected", both_ended).await;
    fixture.wait_until_idle().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn the_proxy_records_what_the_audit_log_has_and_stores_no_token() {
    let fixture = Fixture::new().await;
    let before = fixture.playground.audit_log().mark().unwrap();
    let send = |client: Client, index: usize| async move {
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
        let nodes: Api<Node> = Api::all(client.clone());
        let apply = PatchParams::apply("test").force();
        for round in 0..50 {
            let name = format!("mixed-{index}-{}", round % 4);
            let mut body = map(&name, "mixed");
            // One body is larger than a TLS frame or an HTTP buffer.
            let size = if round == 10 { 300_000 } else { round };
            body.data = Some([("text".to_owned(), "x".repeat(size))].into());
            // Some of these fail, which is fine: errors are forwarded, too.
            match round % 8 {
                0 => drop(maps.create(&PostParams::default(), &body).await),
                1 => drop(maps.get(&name).await),
                2 => drop(maps.patch(&name, &apply, &Patch::Apply(&body)).await),
                3 => drop(maps.list(&ListParams::default()).await),
                4 => drop(maps.patch(&name, &apply.clone().dry_run(), &Patch::Apply(&body)).await),
                5 => drop(maps.delete(&name, &DeleteParams::default()).await),
                6 => drop(Box::pin(nodes.watch(&WatchParams::default(), "0").await.unwrap()).next().await),
                _ => drop(client.list_api_groups().await),
            }
        }
    };
    let (a, b, c, d) = (fixture.client().await, fixture.client().await, fixture.client().await, fixture.client().await);
    tokio::join!(send(a, 0), send(b, 1), send(c, 2), send(d, 3));
    let mut audited: BTreeMap<(String, u16), usize> = BTreeMap::new();
    for request in fixture.playground.audit_log().since(before).unwrap().by(&fixture.account.user).0 {
        *audited.entry((request.verb, request.code)).or_default() += 1;
    }
    let lines = fixture.proxy.requests();
    let mut recorded: BTreeMap<(String, u16), usize> = BTreeMap::new();
    for line in &lines {
        *recorded.entry((line.verb.to_owned(), line.status.unwrap())).or_default() += 1;
    }
    assert_eq!(lines.len(), 200);
    assert_eq!(recorded, audited);
    assert!(recorded.len() > 8, "all verbs and some failures are covered: {recorded:?}");
    assert!(lines.iter().enumerate().all(|(index, line)| line.seq == index as u64 + 1));
    assert!(lines.iter().any(|line| line.bytes_in > 300_000 && line.bytes_out > 300_000));

    let Fixture { proxy, account, playground } = fixture;
    let (kubeconfig, log) = (proxy.kubeconfig().to_owned(), proxy.log().to_owned());
    let config: Value = serde_json::from_slice(&std::fs::read(&kubeconfig).unwrap()).unwrap();
    let address =
        config["clusters"][0]["cluster"]["server"].as_str().unwrap().trim_start_matches("https://").to_owned();
    let token = config["users"][0]["user"]["token"].as_str().unwrap().to_owned();
    assert_ne!(format!("https://{address}"), playground.address());
    drop(proxy);
    assert!(std::net::TcpStream::connect(&address).is_err(), "the proxy still listens");
    assert!(!kubeconfig.exists());
    let log = std::fs::read_to_string(log).unwrap();
    let written: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(written.len(), 200);
    assert!(written.iter().all(|line| line["latencyMs"].is_number() && line["fault"].is_null()));
    assert!(!log.contains(&token) && !log.contains("earer"));
    drop(account);
}
