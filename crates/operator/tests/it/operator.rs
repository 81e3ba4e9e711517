//! Starts a playground and the operator on it with its own service account, as it is deployed.

use k8s_openapi::api::core::v1::ObjectReference;
use k8s_openapi::api::events::v1::Event;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams};
use playground::audit::{AuditLog, Kind, Requests};
use playground::deployment::objects;
use playground::fault::Proxy;
use playground::{MachineConfigOperator, Options, Playground, Progress, Scene, Timing, deployment};
use serde_json::{Value, json};
use std::io::{Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

/// A playground with the operator on it.
pub(crate) struct Running {
    pub(crate) playground: Playground,
    account: playground::service_account::Account,
    arguments: Vec<String>,
    operator: Option<Process>,
}

/// A pack of two assets: one that restarts nodes and one that does not.
pub(crate) const SMALL: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/packs/small");
/// Its role.
pub(crate) const SMALL_ROLE: &str = include_str!("../packs/small.role.yaml");

/// The image of the exporter, as the operator's deployment names it.
pub(crate) const IMAGE: (&str, &str) = ("RELATED_IMAGE_KUBEVIRT_METRICS_EXPORTER", "registry.example/exporter:1");

/// Arguments that name a pack: the small one, unless they name another.
pub(crate) fn with_pack<'a>(arguments: &[&'a str]) -> Vec<&'a str> {
    let mut all = arguments.to_vec();
    if !arguments.iter().any(|argument| argument.starts_with("--assets-dir")) {
        all.extend(["--assets-dir", SMALL]);
    }
    all
}

/// The operator's process; it ends with this value.
pub(crate) struct Process(Child);

impl Process {
    /// Sends SIGTERM; returns the exit code.
    pub(crate) fn terminate(mut self) -> Option<i32> {
        let id = self.0.id().to_string();
        assert!(Command::new("kill").args(["-TERM", &id]).status().unwrap().success());
        self.0.wait().unwrap().code()
    }

    /// Starts it with a command.
    pub(crate) fn of(command: &mut Command) -> Process {
        Process(command.stdin(Stdio::null()).spawn().unwrap())
    }

    /// Starts it with further arguments.
    pub(crate) fn start(kubeconfig: &Path, arguments: &[&str]) -> Process {
        let mut command = Command::new(env!("CARGO_BIN_EXE_virtpilot"));
        command
            .args(["run", "--metrics-bind-address=0", "--health-probe-bind-address=0", "--kubeconfig"])
            .arg(kubeconfig);
        command.args(with_pack(arguments)).env("LOG_LEVEL", "info").stdin(Stdio::null());
        Process(command.env("POD_NAME", "virt-platform-autopilot-0").env(IMAGE.0, IMAGE.1).spawn().unwrap())
    }

    /// Its anonymous memory in MB, without its stack, which is much larger in a build without optimisation.
    pub(crate) fn memory(&self) -> f64 {
        let id = self.0.id();
        let text = std::fs::read_to_string(format!("/proc/{id}/smaps")).unwrap();
        let (mut kilobytes, mut is_stack) = (0.0, false);
        for line in text.lines() {
            match line.strip_prefix("Anonymous:") {
                Some(number) if !is_stack => {
                    kilobytes += number.split_whitespace().next().unwrap().parse::<f64>().unwrap();
                }
                Some(_) => {}
                // The first line of a mapping names it.
                None if line.as_bytes()[0].is_ascii_digit() || line.as_bytes()[0].is_ascii_lowercase() => {
                    is_stack = line.ends_with("[stack]");
                }
                None => {}
            }
        }
        kilobytes / 1024.0
    }

    /// Whether it still runs.
    pub(crate) fn is_alive(&mut self) -> bool {
        self.0.try_wait().unwrap().is_none()
    }

    /// Starts it with leader election as the pod of this name.
    pub(crate) fn start_as(pod: &str, kubeconfig: &Path) -> Process {
        Process::start_observed(pod, kubeconfig, "0", Stdio::inherit())
    }

    /// The same with its probes on an address.
    pub(crate) fn start_observed(pod: &str, kubeconfig: &Path, probes: &str, log: Stdio) -> Process {
        let mut command = Command::new(env!("CARGO_BIN_EXE_virtpilot"));
        // The command line of the predecessor's deployment, which names no command in a pod; Go takes one dash or two.
        command.env("KUBERNETES_SERVICE_HOST", "127.0.0.1");
        command.args(["-leader-elect=true", "-metrics-bind-address", "0", "--health-probe-bind-address", probes]);
        command.args(["--debug-bind-address=127.0.0.1:0", "--enable-debug-server=true", "--development=false"]);
        command.args(["--crd-validation-timeout=10s", "--namespace=openshift-cnv"]);
        command.args(with_pack(&[])).arg("--kubeconfig");
        command.arg(kubeconfig).env("HOSTNAME", pod).stdin(Stdio::null());
        Process(command.stderr(log).spawn().unwrap())
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

pub(crate) const ACCOUNT: &str = "openshift-cnv/virt-platform-autopilot";
pub(crate) const NAMESPACE: &str = "openshift-cnv";
pub(crate) const SERVICE: &str = "virt-platform-autopilot-metrics";
pub(crate) const SWAP: &str = "90-worker-swap-online";

impl Running {
    /// Starts the stand-in of the machine-config operator, and waits until all workers run this MachineConfig.
    pub(crate) async fn roll_out(&self, machine_config: &str) -> MachineConfigOperator {
        // As the real one does, it follows a change after five seconds, so that an edit can be undone before.
        let timing = Timing { render_delay: Duration::from_secs(5), ..Timing::short() };
        let operator = self.playground.start_machine_config_operator(timing).await.unwrap();
        let pools = objects(&self.playground, "machineconfiguration.openshift.io/v1", "MachineConfigPool", None);
        eventually("all workers run it", async || {
            let pool = pools.get("worker").await.unwrap();
            let sources = pool.data["status"]["configuration"]["source"].as_array()?;
            sources.iter().any(|source| source["name"] == machine_config).then_some(())
        })
        .await;
        operator
    }

    /// Starts playground and operator; `autopilot` is the annotation on the HyperConverged, if any. With `true` nothing waits for an
    /// approval.
    pub(crate) async fn start(autopilot: Option<&str>) -> Running {
        let mut running = Running::without_operator().await;
        running.restart();
        if autopilot == Some("true") {
            running.annotate_hco("approval", Some("none")).await;
        }
        if let Some(value) = autopilot {
            running.annotate_hco("autopilot", Some(value)).await;
        }
        running
    }

    /// Starts only the playground, with the role of the small pack.
    pub(crate) async fn without_operator() -> Running {
        let playground = playground().await;
        let account = deployment::grant_for(&playground, SMALL_ROLE).await.unwrap_or_else(|error| panic!("{error}"));
        let arguments = with_pack(&[]).into_iter().map(str::to_owned).collect();
        Running { playground, account, arguments, operator: None }
    }

    /// The arguments that say which pack is used.
    pub(crate) fn pack_arguments(&self) -> Vec<String> {
        self.arguments.clone()
    }

    /// Adds an argument of the operator, for the next start.
    pub(crate) fn add_argument(&mut self, argument: &str) {
        self.arguments.push(argument.to_owned());
    }

    /// Starts both with another pack and its role.
    pub(crate) async fn with_pack(role: &str, arguments: &[&str]) -> Running {
        let mut running = Running::on(Scene::preset("small").unwrap(), role, arguments).await;
        running.restart();
        running
    }

    /// Starts only a playground of this scene, for another pack and its role.
    pub(crate) async fn on(scene: Scene, role: &str, arguments: &[&str]) -> Running {
        let playground = playground_of(scene).await;
        let account = deployment::grant_for(&playground, role).await.unwrap_or_else(|error| panic!("{error}"));
        let arguments = arguments.iter().map(|argument| (*argument).to_owned()).collect();
        Running { playground, account, arguments, operator: None }
    }

    /// A proxy between the operator's account and the server.
    pub(crate) fn proxy(&self) -> Proxy {
        Proxy::start(&self.playground, &self.account).unwrap_or_else(|error| panic!("{error}"))
    }

    /// Whether the last started process still runs.
    pub(crate) fn is_alive(&mut self) -> bool {
        self.operator.as_mut().is_some_and(Process::is_alive)
    }

    /// Restarts the operator with its probes on a free port, which is returned.
    pub(crate) fn restart_with_probes(&mut self) -> u16 {
        let kubeconfig = self.account.kubeconfig.clone();
        self.restart_observed(&kubeconfig, Stdio::inherit())
    }

    /// The same with another kubeconfig, and with its log in a file of the playground, which is returned, too.
    pub(crate) fn restart_logged(&mut self, kubeconfig: &Path) -> (u16, PathBuf) {
        let log = self.playground.folder().join("operator.log");
        let port = self.restart_observed(kubeconfig, std::fs::File::create(&log).unwrap().into());
        (port, log)
    }

    fn restart_observed(&mut self, kubeconfig: &Path, log: Stdio) -> u16 {
        self.stop();
        let port = free_port();
        let mut command = Command::new(env!("CARGO_BIN_EXE_virtpilot"));
        command.args(["run", "--metrics-bind-address=0", "--kubeconfig"]).arg(kubeconfig);
        command.arg(format!("--health-probe-bind-address=127.0.0.1:{port}")).args(&self.arguments);
        self.operator = Some(Process(command.stdin(Stdio::null()).stderr(log).spawn().unwrap()));
        port
    }

    /// Restarts the operator with all its servers, and with its log in a file.
    pub(crate) fn restart_served(&mut self, kubeconfig: &Path, arguments: &[&str]) -> Served {
        self.stop();
        let [probes, metrics, debug] = [(); 3].map(|()| free_port());
        let log = self.playground.folder().join("served.log");
        let mut command = Command::new(env!("CARGO_BIN_EXE_virtpilot"));
        command.args(["run", "--enable-debug-server", "--kubeconfig"]).arg(kubeconfig);
        for (flag, port) in [("health-probe", probes), ("metrics", metrics), ("debug", debug)] {
            command.arg(format!("--{flag}-bind-address=127.0.0.1:{port}"));
        }
        command.args(&self.arguments).args(arguments).env("LOG_LEVEL", "trace").env(IMAGE.0, IMAGE.1);
        command.env("POD_NAME", "virt-platform-autopilot-0");
        let output = std::fs::File::create(&log).unwrap();
        self.operator = Some(Process(command.stdin(Stdio::null()).stderr(output).spawn().unwrap()));
        Served { probes, metrics, debug, log }
    }

    /// The operator's memory, as [`Process::memory`].
    pub(crate) fn memory(&self) -> f64 {
        self.operator.as_ref().unwrap().memory()
    }

    pub(crate) fn kubeconfig(&self) -> &Path {
        &self.account.kubeconfig
    }

    pub(crate) fn config_maps(&self) -> Api<DynamicObject> {
        deployment::objects(&self.playground, "v1", "ConfigMap", Some(NAMESPACE))
    }

    /// Kills the operator.
    pub(crate) fn stop(&mut self) {
        drop(self.operator.take());
    }

    /// Kills the operator and starts another.
    pub(crate) fn restart(&mut self) {
        // The running process ends before the next one starts.
        self.stop();
        let arguments: Vec<&str> = self.arguments.iter().map(String::as_str).collect();
        self.operator = Some(Process::start(&self.account.kubeconfig, &arguments));
    }

    pub(crate) fn audit(&self) -> AuditLog {
        self.playground.audit_log()
    }

    /// Only the operator's own requests, without its reports, which depend on timing.
    pub(crate) fn own(&self, requests: &Requests) -> Requests {
        requests.by(ACCOUNT).filter(|request| request.kind != Kind::Report)
    }

    pub(crate) fn services(&self) -> Api<DynamicObject> {
        deployment::objects(&self.playground, "v1", "Service", Some(NAMESPACE))
    }

    pub(crate) fn machine_configs(&self) -> Api<DynamicObject> {
        deployment::objects(&self.playground, "machineconfiguration.openshift.io/v1", "MachineConfig", None)
    }

    /// Sets or removes an annotation with our prefix on the HyperConverged.
    pub(crate) async fn annotate_hco(&self, key: &str, value: Option<&str>) {
        let api = deployment::objects(&self.playground, "hco.kubevirt.io/v1", "HyperConverged", Some(NAMESPACE));
        annotate(&api, "kubevirt-hyperconverged", key, value).await;
    }

    /// The notes of all events with this reason; one about an object and about the HyperConverged is returned once, and one that was
    /// counted as often as it happened.
    pub(crate) async fn events(&self, reason: &str) -> Vec<String> {
        let api: Api<Event> = Api::all(self.playground.client());
        let list = api.list(&ListParams::default()).await.unwrap();
        let is_copy = |event: &Event| {
            let is_of_hco = |regarding: &ObjectReference| regarding.kind.as_deref() == Some(api::hco::KIND);
            let exists = |related: &ObjectReference| related.uid.as_ref().is_some_and(|uid| !uid.is_empty());
            event.regarding.as_ref().is_some_and(is_of_hco) && event.related.as_ref().is_some_and(exists)
        };
        let fits = |event: &&Event| event.reason.as_deref() == Some(reason) && !is_copy(event);
        let times = |event: &Event| event.series.as_ref().map_or(1, |series| series.count);
        let notes = |event: &Event| (0..times(event)).filter_map(|_| event.note.clone()).collect::<Vec<_>>();
        list.items.iter().filter(fits).flat_map(notes).collect()
    }
}

/// Where the servers of the operator listen, and its log.
pub(crate) struct Served {
    pub(crate) probes: u16,
    pub(crate) metrics: u16,
    pub(crate) debug: u16,
    pub(crate) log: PathBuf,
}

pub(crate) fn free_port() -> u16 {
    std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// The response of `/readyz`; `None` while the port is closed.
pub(crate) fn readiness(port: u16) -> Option<String> {
    http(port, "GET", "/readyz")
}

/// The whole response to a request without a body; `None` while the port is closed.
pub(crate) fn http(port: u16, method: &str, path: &str) -> Option<String> {
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).ok()?;
    stream.write_all(format!("{method} {path} HTTP/1.0\r\n\r\n").as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

/// Starts a small cluster.
pub(crate) async fn playground() -> Playground {
    playground_of(Scene::preset("small").unwrap()).await
}

pub(crate) async fn playground_of(scene: Scene) -> Playground {
    let _ = rustls::crypto::ring::default_provider().install_default();
    let options = Options::for_test(scene);
    Playground::start(&options, Progress::Silent).await.unwrap_or_else(|error| panic!("{error}"))
}

/// Sets or removes an annotation with our prefix; the version of the object with it.
pub(crate) async fn annotate(api: &Api<DynamicObject>, name: &str, key: &str, value: Option<&str>) -> Option<String> {
    let patch = json!({"metadata": {"annotations": {format!("platform.kubevirt.io/{key}"): value}}});
    let params = PatchParams { field_manager: Some("person".into()), ..PatchParams::default() };
    api.patch(name, &params, &Patch::Merge(&patch)).await.unwrap().metadata.resource_version
}

/// Changes an object as `kubectl edit` does.
pub(crate) async fn edit(api: &Api<DynamicObject>, name: &str, patch: Value) {
    let params = PatchParams { field_manager: Some("rogue".into()), ..PatchParams::default() };
    api.patch(name, &params, &Patch::Merge(&patch)).await.unwrap();
}

/// Checks until there is a result; the timeout is long enough for a busy machine.
pub(crate) async fn eventually<T>(what: &str, check: impl AsyncFn() -> Option<T>) -> T {
    eventually_within(Duration::from_secs(60), what, check).await
}

/// The same with another timeout.
pub(crate) async fn eventually_within<T>(timeout: Duration, what: &str, check: impl AsyncFn() -> Option<T>) -> T {
    let begun = Instant::now();
    loop {
        if let Some(found) = check().await {
            return found;
        }
        assert!(begun.elapsed() < timeout, "not within {} s: {what}", timeout.as_secs());
        tokio::time::sleep(Duration::from_millis(10)).await;
    }
}

/// The first digest in a message.
pub(crate) fn digest_in(message: &str) -> Option<&str> {
    const LENGTH: usize = "sha256:".len() + 64;
    let at = message.find("sha256:")?;
    message.get(at..at + LENGTH)
}

/// Waits until the operator has not written anything for a while.
pub(crate) async fn quiet(running: &Running) {
    loop {
        let before = running.audit().mark().unwrap();
        tokio::time::sleep(Duration::from_millis(700)).await;
        if running.own(&running.audit().since(before).unwrap()).of(Kind::Write).count() == 0 {
            return;
        }
    }
}
