//! Every fault of the proxy has the effect it promises, and what has no fault passes as it is.

use crate::start;
use futures::{Stream, StreamExt};
use http_body_util::BodyExt;
use k8s_openapi::api::core::v1::{ConfigMap, Event, Node};
use k8s_openapi::api::rbac::v1::ClusterRoleBinding;
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
/// Long enough that a word which is on its way would have arrived.
const A_WHILE: Duration = Duration::from_millis(150);
/// What must come has come long before, on however busy a machine.
const PATIENCE: Duration = Duration::from_secs(60);

/// A cluster, and a proxy for an account that may do everything.
struct World {
    proxy: Proxy,
    account: Account,
    playground: Playground,
}

impl World {
    async fn new() -> World {
        let playground = start("single-node").await;
        let account = playground.account(NAMESPACE, "tried").await.unwrap();
        let binding: ClusterRoleBinding = serde_json::from_value(json!({
            "metadata": {"name": "tried"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"},
            "subjects": [{"kind": "ServiceAccount", "name": "tried", "namespace": NAMESPACE}],
        }))
        .unwrap();
        Api::all(playground.client()).create(&PostParams::default(), &binding).await.unwrap();
        let nodes: Api<Node> = Api::all(account.client.clone());
        // Rights reach the authorizer a moment after they are granted.
        while nodes.list(&ListParams::default()).await.is_err() {}
        let proxy = Proxy::start(&playground, &account).unwrap();
        World { proxy, account, playground }
    }

    /// A new program: its own connections, and it asks once.
    async fn client(&self) -> Client {
        let file = Kubeconfig::read_from(self.proxy.kubeconfig()).unwrap();
        let mut config = Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.unwrap();
        (config.default_retry, config.proxy_url) = (false, None);
        Client::try_from(config).unwrap()
    }

    async fn maps(&self) -> Api<ConfigMap> {
        Api::namespaced(self.client().await, NAMESPACE)
    }

    /// Past the proxy.
    fn truth(&self) -> Api<ConfigMap> {
        Api::namespaced(self.playground.client(), NAMESPACE)
    }

    async fn exists(&self, name: &str) -> bool {
        self.truth().get_opt(name).await.unwrap().is_some()
    }

    fn plan(&self, plan: &str) {
        self.proxy.set(Plan::parse(plan).unwrap_or_else(|trouble| panic!("{trouble}")));
    }

    /// The faults that came true.
    fn fired(&self) -> Vec<&'static str> {
        self.proxy.fired().iter().map(|fired| fired.fault).collect()
    }

    /// Waits until the fault has come true.
    async fn until_fired(&self) {
        tokio::time::timeout(PATIENCE, self.proxy.until_fired(1)).await.unwrap();
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

/// The HTTP status that an error carries; 0 where there was no answer at all.
fn code<T: std::fmt::Debug>(result: kube::Result<T>) -> u16 {
    match result.unwrap_err() {
        kube::Error::Api(status) => status.code,
        _ => 0,
    }
}

async fn is_silent(future: impl Future) -> bool {
    tokio::time::timeout(A_WHILE, future).await.is_err()
}

#[tokio::test(flavor = "multi_thread")]
async fn every_fault_shows_its_effect_and_is_counted() {
    // One after the other on one cluster: starting another takes longer than all of this.
    let world = World::new().await;
    an_answer_in_place_of_the_servers(&world).await;
    a_delay(&world).await;
    a_kill_before_the_server_hears_of_it(&world).await;
    a_kill_when_the_server_has_done_it(&world).await;
    an_answer_that_nobody_hears(&world).await;
    a_request_that_nobody_hears(&world).await;
    half_an_answer(&world).await;
    the_nth_write(&world).await;
    a_match_that_never_occurs(&world).await;
    an_old_list(&world).await;
    a_token_that_is_too_old(&world).await;
    faults_at_events(&world).await;
    faults_of_open_watches(&world).await;
    a_client_that_leaves_takes_its_watch_along(&world).await;
}

async fn an_answer_in_place_of_the_servers(world: &World) {
    let maps = world.maps().await;
    let before = world.playground.audit_log().mark().unwrap();
    for wanted in [409, 410, 429, 500, 503, 504] {
        world.plan(&format!("{{match: {{verb: create}}, fault: {{status: {{code: {wanted}}}}}}}"));
        assert_eq!(code(create(&maps, "refused").await), wanted);
        assert_eq!(world.fired(), ["status"]);
        let line = world.proxy.requests().pop().unwrap();
        assert_eq!((line.verb, line.status, line.fault), ("create", Some(wanted), Some("status")));
    }
    assert_eq!(world.playground.audit_log().since(before).unwrap().by(&world.account.user).count(), 0);
    world.plan("{match: {path: /version}, fault: {status: {code: 429, retryAfter: 7}}}");
    let request = http::Request::get("/version").body(kube::client::Body::empty()).unwrap();
    let answer = world.client().await.send(request).await.unwrap();
    assert_eq!((answer.status().as_u16(), answer.headers()["retry-after"].to_str().unwrap()), (429, "7"));
}

async fn a_delay(world: &World) {
    world.plan("{match: {verb: create}, fault: {delay: {ms: 120}}}");
    let begun = Instant::now();
    create(&world.maps().await, "delayed").await.unwrap();
    assert!(begun.elapsed() >= Duration::from_millis(120));
    assert_eq!(world.fired(), ["delay"]);
    assert!(world.proxy.requests().pop().unwrap().latency_ms.unwrap() >= 120.0);
}

/// A real program that creates a config map through the proxy, and what kills it.
fn kubectl(world: &World, name: &str) -> std::process::ExitStatus {
    let child: Arc<Mutex<Option<Child>>> = Arc::default();
    // Whoever kills waits until there is somebody to kill.
    let mut place = child.lock().unwrap();
    let victim = Arc::clone(&child);
    world.proxy.on_kill(move || victim.lock().unwrap().as_mut().unwrap().kill().unwrap());
    let mut command = Command::new(world.playground.folder().join("kubectl"));
    command.arg("--kubeconfig").arg(world.proxy.kubeconfig()).args(["-n", NAMESPACE, "create", "configmap", name]);
    *place = Some(command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap());
    drop(place);
    loop {
        // Not under the lock for long: the proxy needs it to kill.
        if let Some(status) = child.lock().unwrap().as_mut().unwrap().try_wait().unwrap() {
            return status;
        }
        std::thread::sleep(Duration::from_millis(5));
    }
}

async fn a_kill_before_the_server_hears_of_it(world: &World) {
    let before = world.playground.audit_log().mark().unwrap();
    world.plan("{match: {verb: create, path: /configmaps}, fault: kill-before}");
    assert_eq!(kubectl(world, "unborn").signal(), Some(9));
    assert_eq!(world.fired(), ["kill-before"]);
    assert!(!world.exists("unborn").await);
    let writes = world.playground.audit_log().since(before).unwrap().by(&world.account.user);
    assert_eq!(writes.filter(|request| request.verb == "create").count(), 0);
}

async fn a_kill_when_the_server_has_done_it(world: &World) {
    world.plan("{match: {verb: create, path: /configmaps}, fault: kill-after-commit}");
    assert_eq!(kubectl(world, "born").signal(), Some(9));
    assert_eq!(world.fired(), ["kill-after-commit"]);
    assert!(world.exists("born").await);
    let line = world.proxy.requests().pop().unwrap();
    assert_eq!((line.status, line.bytes_out, line.fault), (Some(201), 0, Some("kill-after-commit")));
    assert!(line.resource_version_out.is_some());

    // One that was not killed sees its connections go, each of them, and comes back with others.
    let killed = Arc::new(AtomicUsize::new(0));
    let count = Arc::clone(&killed);
    world.proxy.on_kill(move || {
        count.fetch_add(1, Ordering::SeqCst);
    });
    let maps = world.maps().await;
    let mut watch = events(&maps, "nobody").await;
    world.plan("{match: {verb: create, nth: 1}, fault: kill-after-commit}");
    assert_eq!(code(create(&maps, "reborn").await), 0);
    assert_eq!(killed.load(Ordering::SeqCst), 1);
    assert!(!matches!(next(&mut watch).await, Some(Ok(_))));
    assert_eq!(code(create(&world.maps().await, "reborn").await), 409);
}

async fn an_answer_that_nobody_hears(world: &World) {
    let maps = world.maps().await;
    world.plan("{match: {verb: create}, fault: blind-timeout}");
    let mut waiting = Box::pin(create(&maps, "silent"));
    tokio::select! {
        result = &mut waiting => panic!("{result:?}"),
        () = world.until_fired() => {}
    }
    assert!(world.exists("silent").await);
    assert!(is_silent(&mut waiting).await);
    drop(waiting);
    assert_eq!(world.fired(), ["blind-timeout"]);
    world.plan("{match: {verb: create}, fault: {blind-timeout: {close: true}}}");
    assert_eq!(code(create(&maps, "closed").await), 0);
    assert_eq!(world.fired(), ["blind-timeout"]);
    assert!(world.exists("closed").await);
}

async fn a_request_that_nobody_hears(world: &World) {
    let maps = world.maps().await;
    world.plan("{match: {verb: create}, fault: block}");
    let mut waiting = Box::pin(create(&maps, "blocked"));
    tokio::select! {
        result = &mut waiting => panic!("{result:?}"),
        () = world.until_fired() => {}
    }
    assert!(is_silent(&mut waiting).await);
    world.plan("{match: {verb: create}, fault: reset}");
    assert_eq!(code(create(&maps, "reset").await), 0);
    assert_eq!(world.fired(), ["reset"]);
    assert!(!world.exists("blocked").await && !world.exists("reset").await);
}

async fn half_an_answer(world: &World) {
    let maps = world.maps().await;
    world.plan("{match: {verb: patch}, fault: truncate}");
    let labels = json!({"metadata": {"labels": {"half": "yes"}}});
    assert_eq!(code(maps.patch("born", &PatchParams::default(), &Patch::Merge(&labels)).await), 0);
    assert_eq!(world.fired(), ["truncate"]);
    assert_eq!(world.truth().get("born").await.unwrap().metadata.labels.unwrap()["half"], "yes");
}

async fn the_nth_write(world: &World) {
    let client = world.client().await;
    let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
    let events: Api<Event> = Api::namespaced(client, NAMESPACE);
    world.plan("{match: {verb: write, nth: 3}, fault: {status: {code: 500}}}");
    let told = |name: &str| -> Event {
        serde_json::from_value(json!({"metadata": {"name": name, "namespace": NAMESPACE},
            "involvedObject": {"kind": "Node", "name": "a", "namespace": NAMESPACE}, "reason": "Tried", "message": "x"}))
        .unwrap()
    };
    let dry = PostParams { dry_run: true, ..PostParams::default() };
    let apply = PatchParams::apply("tried");
    let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "nth"}, "data": {"a": "b"}});
    let mut outcomes = Vec::new();
    outcomes.push(create(&maps, "nth").await.is_ok());
    // Neither what is told, nor what would happen, nor a look is a write.
    events.create(&PostParams::default(), &told("first")).await.unwrap();
    maps.create(&dry, &map("would", "none")).await.unwrap();
    maps.get("nth").await.unwrap();
    outcomes.push(maps.patch("nth", &apply, &Patch::Apply(&body)).await.is_ok());
    outcomes.push(maps.delete("nth", &DeleteParams::default()).await.is_ok());
    outcomes.push(maps.delete("nth", &DeleteParams::default()).await.is_ok());
    assert_eq!(outcomes, [true, true, false, true]);
    let fired = world.proxy.fired();
    let lines = world.proxy.requests();
    assert_eq!(fired.len(), 1);
    let line = &lines[usize::try_from(fired[0].seq).unwrap() - 1];
    assert_eq!((line.seq, line.verb, line.status), (fired[0].seq, "delete", Some(500)));
    let applied = lines.iter().rev().find(|line| line.verb == "patch").unwrap();
    assert_eq!(applied.field_manager.as_deref(), Some("tried"));
    world.plan("{match: {verb: write, path: /events, nth: 1}, fault: {status: {code: 500}}}");
    assert_eq!(code(events.create(&PostParams::default(), &told("second")).await), 500);
}

async fn a_match_that_never_occurs(world: &World) {
    world.plan("[{match: {verb: get}, fault: {delay: {ms: 1}}}, {match: {path: /unheard-of}, fault: kill-before}]");
    world.maps().await.get("born").await.unwrap();
    let trouble = world.proxy.proof().unwrap_err().to_string();
    assert!(trouble.contains(r#""path":"/unheard-of""#) && !trouble.contains("delay"), "{trouble}");
    assert_eq!(world.fired(), ["delay"]);
}

async fn an_old_list(world: &World) {
    let maps = world.maps().await;
    let params = ListParams::default().labels("check=old");
    world.proxy.clear();
    let first = maps.list(&params).await.unwrap();
    world.truth().create(&PostParams::default(), &map("younger", "old")).await.unwrap();
    assert_eq!(maps.list(&params).await.unwrap().items.len(), 1);
    world.plan("{match: {verb: list}, fault: stale}");
    for params in [params.clone(), params.clone().match_any()] {
        let stale = maps.list(&params).await.unwrap();
        assert_eq!((stale.items.len(), &stale.metadata), (0, &first.metadata));
    }
    assert_eq!(world.fired(), ["stale", "stale"]);
    // Nobody has asked for these before, so there is nothing old to tell.
    assert_eq!(maps.list(&ListParams::default().labels("check in (old)")).await.unwrap().items.len(), 1);
    assert_eq!(world.fired().len(), 2);
    world.proxy.clear();
    assert_eq!(maps.list(&params).await.unwrap().items.len(), 1);
}

async fn a_token_that_is_too_old(world: &World) {
    let maps = world.maps().await;
    world.plan("{match: {verb: list, path: /configmaps}, fault: expired-continue}");
    let page = maps.list(&ListParams::default().limit(1)).await.unwrap();
    let token = page.metadata.continue_.unwrap();
    let rest = ListParams::default().limit(1).continue_token(&token);
    assert_eq!(code(maps.list(&rest).await), 410);
    assert_eq!(world.fired(), ["expired-continue"]);
    world.proxy.clear();
    assert_eq!(maps.list(&rest).await.unwrap().items.len(), 1);
}

type Events = Pin<Box<dyn Stream<Item = kube::Result<WatchEvent<ConfigMap>>> + Send>>;

/// A watch on the config maps of one check, from now on.
async fn events(maps: &Api<ConfigMap>, check: &str) -> Events {
    let now = maps.list(&ListParams::default().limit(1)).await.unwrap().metadata.resource_version.unwrap();
    let params = WatchParams::default().labels(&format!("check={check}"));
    Box::pin(maps.watch(&params, &now).await.unwrap())
}

async fn next(events: &mut Events) -> Option<kube::Result<WatchEvent<ConfigMap>>> {
    tokio::time::timeout(PATIENCE, events.next()).await.unwrap()
}

/// The name in the next event.
async fn name(events: &mut Events) -> String {
    match next(events).await {
        Some(Ok(WatchEvent::Added(map))) => map.metadata.name.unwrap(),
        other => panic!("no new object: {other:?}"),
    }
}

impl World {
    /// A watch under a plan, while three objects are created.
    async fn three(&self, check: &str, plan: &str) -> Events {
        self.plan(plan);
        let events = events(&self.maps().await, check).await;
        self.create(check, &["1", "2", "3"]).await;
        events
    }

    /// Waits until no request is under way: a plan for open watches must not meet those of the check before.
    async fn alone(&self) {
        let begun = Instant::now();
        while self.proxy.requests().iter().any(|line| line.latency_ms.is_none()) {
            assert!(begun.elapsed() < PATIENCE, "these do not end: {:?}", self.proxy.requests());
            tokio::time::sleep(Duration::from_millis(5)).await;
        }
    }

    async fn create(&self, check: &str, names: &[&str]) {
        for name in names {
            self.truth().create(&PostParams::default(), &map(&format!("{check}-{name}"), check)).await.unwrap();
        }
    }
}

async fn faults_at_events(world: &World) {
    let mut watch = world.three("whole", "{match: {verb: watch}, fault: {drop: {event: 9}}}").await;
    assert_eq!((name(&mut watch).await, name(&mut watch).await), ("whole-1".into(), "whole-2".into()));
    assert_eq!(name(&mut watch).await, "whole-3");
    let trouble = world.proxy.proof().unwrap_err().to_string();
    assert!(trouble.contains("matched 1 requests"), "{trouble}");
    let line = world.proxy.requests().into_iter().rfind(|line| line.verb == "watch").unwrap();
    assert_eq!((line.status, line.events, line.latency_ms), (Some(200), 3, None));
    let number = |version: Option<String>| version.unwrap().parse::<u64>().unwrap();
    assert!(number(line.resource_version_in) < number(line.resource_version_out));

    let mut watch = world.three("drop", "{match: {verb: watch}, fault: {drop: {event: 2}}}").await;
    assert_eq!((name(&mut watch).await, name(&mut watch).await), ("drop-1".into(), "drop-3".into()));
    assert_eq!(world.fired(), ["drop"]);

    let mut watch = world.three("twice", "{match: {verb: watch}, fault: {duplicate: {event: 2}}}").await;
    let mut names = Vec::new();
    for _ in 0..4 {
        names.push(name(&mut watch).await);
    }
    assert_eq!(names, ["twice-1", "twice-2", "twice-2", "twice-3"]);
    assert_eq!(world.fired(), ["duplicate"]);

    let mut watch = world.three("cut", "{match: {verb: watch}, fault: {cut: {event: 2}}}").await;
    assert_eq!(name(&mut watch).await, "cut-1");
    assert!(!matches!(next(&mut watch).await, Some(Ok(_))));
    assert_eq!(world.fired(), ["cut"]);
    // kube takes a broken watch for one that ended: the bytes tell the difference.
    world.plan("{match: {verb: watch, path: /nodes}, fault: cut}");
    let request = http::Request::get("/api/v1/nodes?watch=true").body(kube::client::Body::empty()).unwrap();
    let answer = world.client().await.send(request).await.unwrap();
    assert!(answer.status().is_success() && answer.into_body().collect().await.is_err());

    let mut watch = world.three("mute", "{match: {verb: watch}, fault: {cut-silently: {event: 2}}}").await;
    assert_eq!(name(&mut watch).await, "mute-1");
    world.until_fired().await;
    world.maps().await.get("mute-3").await.unwrap();
    assert!(is_silent(watch.next()).await);
    assert_eq!(world.fired(), ["cut-silently"]);

    let mut watch = world.three("gone", "{match: {verb: watch}, fault: {gone: {event: 2}}}").await;
    assert_eq!(name(&mut watch).await, "gone-1");
    assert!(matches!(next(&mut watch).await, Some(Ok(WatchEvent::Error(status))) if status.code == 410));
    assert!(next(&mut watch).await.is_none());
    assert_eq!(world.fired(), ["gone"]);

    let maps = world.maps().await;
    world.plan("{match: {verb: watch, nth: 2}, fault: {status: {code: 410}}}");
    let params = WatchParams::default();
    assert!(maps.watch(&params, "0").await.is_ok());
    assert_eq!(code(maps.watch(&params, "0").await.map(drop)), 410);
    assert!(maps.watch(&params, "0").await.is_ok());
    assert_eq!(world.fired(), ["status"]);
}

async fn faults_of_open_watches(world: &World) {
    world.alone().await;
    let maps = world.maps().await;
    world.proxy.clear();

    // Its events count from the new plan on, and another kind's watch is left alone.
    let mut watch = events(&maps, "late").await;
    world.create("late", &["1"]).await;
    assert_eq!(name(&mut watch).await, "late-1");
    world.plan("{match: {verb: watch, path: /configmaps}, fault: {drop: {event: 2}}}");
    world.create("late", &["2", "3", "4"]).await;
    assert_eq!((name(&mut watch).await, name(&mut watch).await), ("late-2".into(), "late-4".into()));
    world.plan("{match: {verb: watch, path: /secrets}, fault: cut}");
    world.plan("{match: {verb: watch, nth: 1}, fault: cut}");
    world.create("late", &["5"]).await;
    assert_eq!(name(&mut watch).await, "late-5");
    assert!(world.fired().is_empty());

    // At once, without any event.
    world.plan("{match: {verb: watch}, fault: cut}");
    assert!(!matches!(next(&mut watch).await, Some(Ok(_))));
    assert_eq!(world.fired(), ["cut"]);
    world.proxy.clear();
    let mut watch = events(&maps, "later").await;
    world.plan("{match: {verb: watch}, fault: gone}");
    assert!(matches!(next(&mut watch).await, Some(Ok(WatchEvent::Error(status))) if status.code == 410));
    world.proxy.clear();
    let mut watch = events(&maps, "latest").await;
    world.plan("{match: {verb: watch}, fault: cut-silently}");
    world.until_fired().await;
    world.create("latest", &["1"]).await;
    // Whoever is cut off stays so, also under another plan.
    world.proxy.clear();
    assert!(is_silent(watch.next()).await);
}

/// The server's side of a watch ends with the client's.
async fn a_client_that_leaves_takes_its_watch_along(world: &World) {
    let maps = world.maps().await;
    world.plan("{match: {verb: watch, nth: 1}, fault: cut-silently}");
    let mute = events(&maps, "muted").await;
    world.until_fired().await;
    let left = events(&maps, "left").await;
    let ended = |check: &str| {
        let log = std::fs::read_to_string(world.playground.folder().join("audit.log")).unwrap();
        log.lines().any(|line| {
            let entry: Value = serde_json::from_str(line).unwrap_or_default();
            let uri = entry["requestURI"].as_str().unwrap_or_default();
            entry["stage"] == "ResponseComplete" && uri.contains(&format!("check%3D{check}&"))
        })
    };
    assert!(!ended("left") && !ended("muted"));
    drop((left, mute));
    let begun = Instant::now();
    while !ended("left") || !ended("muted") {
        assert!(begun.elapsed() < PATIENCE, "the server still serves a watch that nobody reads");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    world.alone().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn what_passes_the_proxy_is_what_the_audit_log_has_and_nothing_of_it_stays() {
    let world = World::new().await;
    let before = world.playground.audit_log().mark().unwrap();
    let ask = |client: Client, who: usize| async move {
        let maps: Api<ConfigMap> = Api::namespaced(client.clone(), NAMESPACE);
        let nodes: Api<Node> = Api::all(client.clone());
        let apply = PatchParams::apply("tried").force();
        for round in 0..50 {
            let name = format!("mixed-{who}-{}", round % 4);
            let mut body = map(&name, "mixed");
            // One body is larger than a frame of TLS or a buffer of HTTP.
            let size = if round == 10 { 300_000 } else { round };
            body.data = Some([("text".to_owned(), "x".repeat(size))].into());
            // Some of them fail: that is an answer like any other.
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
    let (a, b, c, d) = (world.client().await, world.client().await, world.client().await, world.client().await);
    tokio::join!(ask(a, 0), ask(b, 1), ask(c, 2), ask(d, 3));
    let mut audited: BTreeMap<(String, u16), usize> = BTreeMap::new();
    for request in world.playground.audit_log().since(before).unwrap().by(&world.account.user).0 {
        *audited.entry((request.verb, request.code)).or_default() += 1;
    }
    let lines = world.proxy.requests();
    let mut passed: BTreeMap<(String, u16), usize> = BTreeMap::new();
    for line in &lines {
        *passed.entry((line.verb.to_owned(), line.status.unwrap())).or_default() += 1;
    }
    assert_eq!(lines.len(), 200);
    assert_eq!(passed, audited);
    assert!(passed.len() > 8, "all verbs, and some failures: {passed:?}");
    assert!(lines.iter().enumerate().all(|(index, line)| line.seq == index as u64 + 1));
    assert!(lines.iter().any(|line| line.bytes_in > 300_000 && line.bytes_out > 300_000));

    let World { proxy, account, playground } = world;
    let (kubeconfig, log) = (proxy.kubeconfig().to_owned(), proxy.log().to_owned());
    let config: Value = serde_json::from_slice(&std::fs::read(&kubeconfig).unwrap()).unwrap();
    let address =
        config["clusters"][0]["cluster"]["server"].as_str().unwrap().trim_start_matches("https://").to_owned();
    let token = config["users"][0]["user"]["token"].as_str().unwrap().to_owned();
    assert_ne!(format!("https://{address}"), playground.address());
    drop(proxy);
    assert!(std::net::TcpStream::connect(&address).is_err(), "it still listens");
    assert!(!kubeconfig.exists());
    let log = std::fs::read_to_string(log).unwrap();
    let written: Vec<Value> = log.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    assert_eq!(written.len(), 200);
    assert!(written.iter().all(|line| line["latencyMs"].is_number() && line["fault"].is_null()));
    assert!(!log.contains(&token) && !log.contains("earer"));
    drop(account);
}
