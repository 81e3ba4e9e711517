//! The operator is installed as an administrator does it, runs as its Deployment says, is upgraded and uninstalled without a trace.

use crate::operator::{NAMESPACE, Process, SERVICE, eventually, free_port, playground, readiness};
use crate::packages::{by_name, deploy, overlay, secure_metrics, succeed, virtpilot};
use crate::secure_metrics::{accounts, scrape, write_certificate};
use kube::api::{Api, DynamicObject, Patch, PatchParams, PostParams};
use playground::audit::{Kind, Mark};
use playground::deployment::objects;
use playground::packaging::Packaging;
use playground::service_account::Account;
use playground::{Playground, Progress};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::Path;
use std::process::Command;
use std::time::Duration;

const NAME: &str = "virt-platform-autopilot";

/// A cluster whose namespace of the operator takes only restricted pods.
struct Cluster {
    playground: Playground,
}

impl Cluster {
    async fn start() -> Cluster {
        let playground = playground().await;
        let labels = json!({"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "restricted"}}});
        let params = PatchParams::default();
        objects(&playground, "v1", "Namespace", None).patch(NAMESPACE, &params, &Patch::Merge(&labels)).await.unwrap();
        Cluster { playground }
    }

    fn kubectl(&self, arguments: &[&str]) -> String {
        let mut command = Command::new(self.playground.folder().join("kubectl"));
        let (out, err) = succeed(command.args(arguments));
        assert!(!err.contains("Warning"), "{arguments:?}: {err}");
        out
    }

    fn apply(&self, folder: &Path) -> String {
        self.kubectl(&["apply", "--kustomize", folder.to_str().unwrap()])
    }

    fn helm(&self, packaging: &Packaging, arguments: &[&str]) -> String {
        let mut command = Command::new(&packaging.helm);
        command.args(arguments).args(["--namespace", NAMESPACE, "--kubeconfig"]).arg(self.playground.kubeconfig());
        succeed(command.env("HOME", self.playground.folder())).0
    }

    fn services(&self) -> Api<DynamicObject> {
        objects(&self.playground, "v1", "Service", Some(NAMESPACE))
    }

    async fn deployment(&self) -> Value {
        let found = objects(&self.playground, "apps/v1", "Deployment", Some(NAMESPACE)).get(NAME).await.unwrap();
        serde_json::to_value(found).unwrap()
    }

    /// Creates a pod from the Deployment's template, as its controller would do.
    async fn create_pod(&self, name: &str, change: impl Fn(&mut Value)) -> Result<Value, kube::Error> {
        let mut pod = self.deployment().await["spec"]["template"].clone();
        (pod["apiVersion"], pod["kind"], pod["metadata"]["name"]) = (json!("v1"), json!("Pod"), json!(name));
        change(&mut pod);
        let api = objects(&self.playground, "v1", "Pod", Some(NAMESPACE));
        let pod = api.create(&PostParams::default(), &serde_json::from_value(pod).unwrap()).await?;
        Ok(serde_json::to_value(pod).unwrap())
    }

    /// Runs the container of a pod on this machine: its command line and environment, and its account's token. Returns the port of
    /// its probes; the ports of a pod are its own, those of this machine are not.
    fn run(&self, pod: &Value, account: &Account) -> (Process, u16) {
        self.run_mounted(pod, account, Path::new("/missing"), "0")
    }

    /// The same with a volume in this folder, and with its metrics on an address.
    fn run_mounted(&self, pod: &Value, account: &Account, volume: &Path, metrics: &str) -> (Process, u16) {
        let container = &pod["spec"]["containers"][0];
        let mut variables = BTreeMap::new();
        for variable in container["env"].as_array().unwrap() {
            let path = variable["valueFrom"]["fieldRef"]["fieldPath"]
                .as_str()
                .map(|path| format!("/{}", path.replace('.', "/")));
            let value = path.map_or(&variable["value"], |path| pod.pointer(&path).unwrap());
            let mut mounts = container["volumeMounts"].as_array().into_iter().flatten();
            let is_mounted = mounts.any(|mount| mount["mountPath"] == *value);
            let value = if is_mounted { volume.to_str().unwrap() } else { value.as_str().unwrap_or_default() };
            variables.insert(variable["name"].as_str().unwrap(), value);
        }
        let expand = |argument: &Value| {
            let argument = argument.as_str().unwrap().to_owned();
            variables.iter().fold(argument, |text, (name, value)| text.replace(&format!("$({name})"), value))
        };
        assert_eq!(container["command"], json!(["/virtpilot"]));
        let port = free_port();
        let mut command = Command::new(env!("CARGO_BIN_EXE_virtpilot"));
        command.env_clear().envs(&variables).env("KUBECONFIG", &account.kubeconfig);
        command.args(container["args"].as_array().unwrap().iter().map(expand));
        command.arg(format!("--metrics-bind-address={metrics}"));
        command.arg(format!("--health-probe-bind-address=127.0.0.1:{port}"));
        (Process::of(&mut command), port)
    }

    /// Waits until the operator is ready, its Service exists, and it has not written anything for a while.
    async fn converged(&self, port: u16) {
        let is_ready = || readiness(port).is_some_and(|text| text.contains(" 200 "));
        eventually("the operator has converged", async || {
            let before = self.playground.audit_log().mark().unwrap();
            let started = is_ready() && self.services().get_opt(SERVICE).await.unwrap().is_some();
            tokio::time::sleep(Duration::from_millis(700)).await;
            let requests = self.playground.audit_log().since(before).unwrap().by(&format!("{NAMESPACE}/{NAME}"));
            (started && is_ready() && requests.of(Kind::Write).count() == 0).then_some(())
        })
        .await;
    }

    /// The installed objects that exist, and their versions.
    fn versions(&self, installed: &BTreeMap<String, Value>) -> BTreeMap<String, String> {
        let version = |object: &Value| {
            let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
            let kind = text(&object["kind"]);
            let (name, namespace) = (text(&object["metadata"]["name"]), text(&object["metadata"]["namespace"]));
            let namespace = format!("--namespace={namespace}");
            let output = "--output=jsonpath={.metadata.resourceVersion}";
            self.kubectl(&["get", &kind, &name, &namespace, "--ignore-not-found", output])
        };
        let versions = installed.iter().map(|(name, object)| (name.clone(), version(object)));
        versions.filter(|(_, version)| !version.is_empty()).collect()
    }

    /// The requests that were refused to the operator.
    fn denied(&self) -> Vec<playground::audit::Request> {
        let requests = self.playground.audit_log().since(Mark::BEGINNING).unwrap().by(&format!("{NAMESPACE}/{NAME}"));
        assert!(requests.count() > 20, "{requests:?}");
        requests.filter(|request| request.code == 403 || request.code == 401).0
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_installation_runs_as_its_deployment_says_and_is_upgraded_and_uninstalled() {
    let cluster = Cluster::start().await;
    let installed = by_name(&succeed(&mut virtpilot(&["manifests"])).0);
    let created = cluster.apply(&deploy("kustomize"));
    assert_eq!((created.lines().count(), created.matches(" created").count()), (installed.len(), installed.len()));

    // It is also accepted in the namespace of clusters that are not OpenShift.
    let folder = tempfile::tempdir().unwrap();
    overlay(folder.path(), "namespace: kubevirt-hyperconverged\n");
    cluster.kubectl(&["create", "namespace", "kubevirt-hyperconverged"]);
    cluster.kubectl(&["apply", "--dry-run=server", "--kustomize", folder.path().to_str().unwrap()]);

    // Its pod is accepted where only restricted pods are, and one that may do more is not.
    let pod = cluster.create_pod("first", |_| {}).await.unwrap();
    assert_eq!(pod["spec"]["priorityClassName"], "system-cluster-critical");
    let privileged = cluster
        .create_pod("privileged", |pod| pod["spec"]["containers"][0]["securityContext"] = json!({"privileged": true}))
        .await;
    let refusal = privileged.unwrap_err().to_string();
    assert!(refusal.contains("violates PodSecurity \"restricted"), "{refusal}");

    let account = cluster.playground.account(NAMESPACE, NAME).await.unwrap();
    let (first, port) = cluster.run(&pod, &account);
    cluster.converged(port).await;
    let service = cluster.services().get(SERVICE).await.unwrap();
    let selector = service.data["spec"]["selector"].as_object().unwrap();
    assert!(!selector.is_empty() && selector.iter().all(|(key, value)| pod["metadata"]["labels"][key] == *value));

    // An upgrade changes the image, and nothing else.
    overlay(folder.path(), "images: [{name: localhost/virtpilot, newTag: next}]\n");
    let (before, versions) = (cluster.deployment().await, cluster.versions(&installed));
    cluster.apply(folder.path());
    let mut changed = cluster.versions(&installed);
    changed.retain(|name, version| versions[name] != *version);
    assert_eq!(changed.into_keys().collect::<Vec<_>>(), ["Deployment \"virt-platform-autopilot\""]);
    let mut expected = before["spec"].clone();
    expected["template"]["spec"]["containers"][0]["image"] = json!("localhost/virtpilot:next");
    assert_eq!(cluster.deployment().await["spec"], expected);
    // The new replica waits for the lease, and then finds nothing to do.
    let pod = cluster.create_pod("second", |_| {}).await.unwrap();
    let (second, port) = cluster.run(&pod, &account);
    eventually("the new replica is ready", async || readiness(port).filter(|text| text.contains(" 200 "))).await;
    assert_eq!(first.terminate(), Some(0));
    let lease = objects(&cluster.playground, "coordination.k8s.io/v1", "Lease", Some(NAMESPACE));
    eventually("the new replica leads", async || {
        let lease = lease.get(api::LEASE).await.unwrap();
        (lease.data["spec"]["holderIdentity"] == "second").then_some(())
    })
    .await;
    cluster.converged(port).await;
    let after = cluster.services().get(SERVICE).await.unwrap();
    assert_eq!(after.metadata.resource_version, service.metadata.resource_version);
    assert!(cluster.denied().is_empty(), "{:?}", cluster.denied());

    // An uninstall leaves values, and nothing that is ours.
    let kubeconfig = cluster.playground.kubeconfig();
    let handed_back = succeed(virtpilot(&["handback"]).env("KUBECONFIG", &kubeconfig)).0;
    assert!(handed_back.contains("handed back Service"), "{handed_back}");
    assert_eq!(second.terminate(), Some(0));
    cluster.kubectl(&["delete", "--kustomize", folder.path().to_str().unwrap()]);
    assert_eq!(cluster.versions(&installed), BTreeMap::new());
    let commands: Vec<&str> = handed_back.lines().filter_map(|line| line.strip_prefix("  kubectl ")).collect();
    assert_eq!(commands.len(), 4, "{handed_back}");
    for command in commands {
        cluster.kubectl(&command.split(' ').collect::<Vec<_>>());
    }
    assert!(cluster.services().get_opt(SERVICE).await.unwrap().is_none());
    let left =
        cluster.kubectl(&["get", "configmaps,leases,services,secrets", "--namespace", NAMESPACE, "--output=name"]);
    assert!(!left.contains(NAME), "{left}");
    let hco = objects(&cluster.playground, "hco.kubevirt.io/v1", "HyperConverged", Some(NAMESPACE));
    assert!(hco.get_opt(api::hco::NAME).await.unwrap().is_some(), "the namespace stays");
}

#[tokio::test(flavor = "multi_thread")]
async fn secure_metrics_are_scraped_with_the_token_of_prometheus_alone() {
    let cluster = Cluster::start().await;
    let folder = tempfile::tempdir().unwrap();
    overlay(folder.path(), &secure_metrics(folder.path()));
    cluster.apply(folder.path());
    let pod = cluster.create_pod("secure", |_| {}).await.unwrap();
    let account = cluster.playground.account(NAMESPACE, NAME).await.unwrap();
    let [prometheus, other] = accounts(&cluster.playground).await;
    let (volume, port) = (tempfile::tempdir().unwrap(), free_port());
    let (process, probes) = cluster.run_mounted(&pod, &account, volume.path(), &format!("127.0.0.1:{port}"));
    cluster.converged(probes).await;
    let code = async |token: Option<&str>| scrape(port, token, None).await;
    assert_eq!(code(Some(&prometheus)).await, Ok(200));
    assert_eq!((code(Some(&other)).await, code(None).await), (Ok(403), Ok(401)));

    // OpenShift writes the certificate of the Service into the Secret that the pod mounts.
    let service = cluster.services().get(SERVICE).await.unwrap();
    let secret = &service.metadata.annotations.as_ref().unwrap()["service.beta.openshift.io/serving-cert-secret-name"];
    assert_eq!(
        pod["spec"]["volumes"][0]["secret"],
        json!({"secretName": secret, "optional": true, "defaultMode": 420})
    );
    let authority = write_certificate(volume.path());
    assert_eq!(scrape(port, Some(&prometheus), Some(&authority)).await, Ok(200));

    // Prometheus is told so.
    let monitors = objects(&cluster.playground, "monitoring.coreos.com/v1", "ServiceMonitor", Some(NAMESPACE));
    let endpoint = monitors.get(SERVICE).await.unwrap().data["spec"]["endpoints"][0].clone();
    assert_eq!(
        (&endpoint["scheme"], &endpoint["port"]),
        (&json!("https"), &json!(service.data["spec"]["ports"][0]["name"]))
    );
    assert_eq!(endpoint["tlsConfig"]["serverName"], format!("{SERVICE}.{NAMESPACE}.svc"));
    assert_eq!(endpoint["bearerTokenFile"], "/var/run/secrets/kubernetes.io/serviceaccount/token");
    assert!(cluster.denied().is_empty(), "{:?}", cluster.denied());

    // Whoever switches it off has plain metrics, and the ServiceMonitor follows.
    assert_eq!(process.terminate(), Some(0));
    cluster.apply(&deploy("kustomize"));
    let pod = cluster.create_pod("plain", |_| {}).await.unwrap();
    let (_process, _) = cluster.run(&pod, &account);
    eventually("the ServiceMonitor is for plain metrics", async || {
        let monitor = monitors.get(SERVICE).await.unwrap();
        let endpoint = &monitor.data["spec"]["endpoints"][0];
        (endpoint["scheme"] == "http" && endpoint.get("tlsConfig").is_none()).then_some(())
    })
    .await;
}

#[tokio::test(flavor = "multi_thread")]
async fn helm_installs_upgrades_and_uninstalls_the_same() {
    let cluster = Cluster::start().await;
    let packaging = Packaging::ensure(Progress::Silent).await.unwrap();
    let installed = by_name(&succeed(&mut virtpilot(&["manifests"])).0);
    let chart = deploy("helm/virtpilot");
    let chart = chart.to_str().unwrap();
    let notes = cluster.helm(&packaging, &["install", "virtpilot", chart]);
    assert!(notes.contains("virtpilot handback --namespace openshift-cnv"), "{notes}");
    assert_eq!(cluster.versions(&installed).len(), installed.len());
    let pod = cluster.create_pod("from-helm", |_| {}).await.unwrap();
    let account = cluster.playground.account(NAMESPACE, NAME).await.unwrap();
    let (process, port) = cluster.run(&pod, &account);
    cluster.converged(port).await;
    assert!(cluster.denied().is_empty(), "{:?}", cluster.denied());
    assert_eq!(process.terminate(), Some(0));

    let before = cluster.deployment().await;
    cluster.helm(&packaging, &["upgrade", "virtpilot", chart, "--set", "image=localhost/virtpilot:next"]);
    let mut expected = before["spec"].clone();
    expected["template"]["spec"]["containers"][0]["image"] = json!("localhost/virtpilot:next");
    assert_eq!(cluster.deployment().await["spec"], expected);

    succeed(virtpilot(&["handback"]).env("KUBECONFIG", cluster.playground.kubeconfig()));
    cluster.helm(&packaging, &["uninstall", "virtpilot"]);
    // With the CRD all profiles would be deleted.
    let left = cluster.versions(&installed).into_keys().collect::<Vec<_>>();
    assert_eq!(left, ["CustomResourceDefinition \"virtplatformconfigs.advisor.kubevirt.io\""]);

    // Over the predecessor's Deployment, whoever created it: its container is replaced.
    let labels = json!({"app": NAME, "control-plane": "controller-manager"});
    let container = json!({"name": "manager", "image": "x.example/predecessor", "command": ["/manager"], "args": ["--leader-elect"]});
    let predecessor = json!({
        "apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": NAME},
        "spec": {"selector": {"matchLabels": labels}, "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}}},
    });
    let deployments = objects(&cluster.playground, "apps/v1", "Deployment", Some(NAMESPACE));
    deployments.create(&PostParams::default(), &serde_json::from_value(predecessor).unwrap()).await.unwrap();
    let kubectl = cluster.playground.folder().join("kubectl");
    succeed(Command::new(kubectl).args(["apply", "--kustomize"]).arg(deploy("kustomize")));
    assert_eq!(cluster.deployment().await["spec"], before["spec"]);
}

#[test]
fn the_ports_of_the_deployment_are_those_that_are_served() {
    let help = succeed(&mut virtpilot(&["run", "--help"])).0;
    let installed = by_name(&succeed(&mut virtpilot(&["manifests"])).0);
    let container = &installed["Deployment \"virt-platform-autopilot\""]["spec"]["template"]["spec"]["containers"][0];
    for (index, flag) in [(0, "--metrics-bind-address"), (1, "--health-probe-bind-address")] {
        let port = &container["ports"][index]["containerPort"];
        let about = help.split(flag).nth(1).unwrap();
        let default = about.split("[default: ").nth(1).unwrap().split(']').next().unwrap();
        assert_eq!(default, format!(":{port}"), "{flag}");
    }
}
