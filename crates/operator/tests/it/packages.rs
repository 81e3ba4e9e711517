//! Kustomization, chart, bundle and `virtpilot manifests` have the same objects, and the tools that read them accept them.

use playground::packaging::Packaging;
use playground::{Playground, Progress};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

pub(crate) fn deploy(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../deploy").join(path).canonicalize().unwrap()
}

/// Runs a program, which must succeed; returns what it prints to both streams.
pub(crate) fn succeed(command: &mut Command) -> (String, String) {
    let output = command.stdin(Stdio::null()).output().unwrap();
    let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
    let (out, err) = (text(&output.stdout), text(&output.stderr));
    assert!(output.status.success(), "{command:?}:\n{out}\n{err}");
    (out, err)
}

pub(crate) fn virtpilot(arguments: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_virtpilot"));
    command.args(arguments).env_remove("KUBECONFIG").env("HOME", "/missing");
    command
}

/// The component that makes metrics secure, for an overlay in this folder.
pub(crate) fn secure_metrics(folder: &Path) -> String {
    format!("components: [{}]\n", relative(folder, "kustomize/secure-metrics"))
}

/// Kustomize takes only relative paths.
fn relative(folder: &Path, path: &str) -> String {
    let up = "../".repeat(folder.canonicalize().unwrap().components().count());
    format!("{up}{}", deploy(path).strip_prefix("/").unwrap().display())
}

/// A kustomization that changes ours, as administrators write one.
pub(crate) fn overlay(folder: &Path, changes: &str) {
    let base = relative(folder, "kustomize");
    std::fs::write(folder.join("kustomization.yaml"), format!("resources: [{base}]\n{changes}")).unwrap();
}

/// The documents of a text by kind and name.
pub(crate) fn by_name(text: &str) -> BTreeMap<String, Value> {
    let documents: Vec<Value> = serde_saphyr::from_multiple(text).unwrap();
    let count = documents.len();
    let name = |object: &Value| format!("{} {}", object["kind"].as_str().unwrap(), object["metadata"]["name"]);
    let found: BTreeMap<String, Value> = documents.into_iter().map(|object| (name(&object), object)).collect();
    assert!(count == found.len() && count > 0, "{count} documents, {} names", found.len());
    found
}

fn manifests(arguments: &[&str]) -> BTreeMap<String, Value> {
    by_name(&succeed(virtpilot(&["manifests"]).args(arguments)).0)
}

fn assert_same(one: &BTreeMap<String, Value>, other: &BTreeMap<String, Value>) {
    assert_eq!(one.keys().collect::<Vec<_>>(), other.keys().collect::<Vec<_>>());
    for (name, object) in one {
        assert_eq!(object, &other[name], "{name}");
    }
}

/// The CRD of the advisor.
const CRD: &str = "CustomResourceDefinition \"virtplatformconfigs.advisor.kubevirt.io\"";

struct Tools {
    kubectl: PathBuf,
    packaging: Packaging,
}

impl Tools {
    async fn ensure() -> Tools {
        let (_, binaries, _) = Playground::prepare(None, Progress::Silent).await.unwrap();
        let packaging = Packaging::ensure(Progress::Silent).await.unwrap();
        Tools { kubectl: binaries.kubectl, packaging }
    }

    fn kustomize(&self, folder: &Path) -> BTreeMap<String, Value> {
        by_name(&succeed(Command::new(&self.kubectl).arg("kustomize").arg(folder)).0)
    }

    fn helm(&self, arguments: &[&str]) -> Command {
        let mut command = Command::new(&self.packaging.helm);
        command.args(arguments).arg(deploy("helm/virtpilot")).env("HOME", "/missing");
        command
    }

    fn template(&self, arguments: &[&str]) -> BTreeMap<String, Value> {
        let mut found = by_name(&succeed(self.helm(&["template", "virtpilot"]).args(arguments)).0);
        for (_, crd) in found.iter_mut().filter(|(name, _)| name.starts_with("CustomResourceDefinition")) {
            // Only Helm would delete it, and with it all its objects, when it is switched off.
            let annotations = crd["metadata"].as_object_mut().unwrap().remove("annotations");
            assert_eq!(annotations, Some(json!({"helm.sh/resource-policy": "keep"})));
        }
        found
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn the_kustomization_the_chart_and_the_command_have_the_same_objects() {
    let tools = Tools::ensure().await;
    let printed = manifests(&[]);
    assert_same(&tools.kustomize(&deploy("kustomize")), &printed);
    assert_same(&tools.template(&["--namespace", "openshift-cnv"]), &printed);
    assert!(printed.contains_key(CRD));
    let alone = manifests(&["--products", "autopilot"]);
    assert!(!alone.keys().any(|name| name.contains("advisor")), "{:?}", alone.keys());
    assert_same(&tools.template(&["--namespace", "openshift-cnv", "--set", "advisor.enabled=false"]), &alone);
    let advisor = manifests(&["--products", "advisor"]);
    assert_same(&tools.kustomize(&deploy("kustomize/advisor-alone")), &advisor);
    let alone = "autopilot.enabled=false,advisor.alone=true";
    assert_same(&tools.template(&["--namespace", "openshift-cnv", "--set", alone]), &advisor);
    let values = format!("{alone},logging=true,image=r.example/v:2,replicas=3,metrics.secure=true");
    let flags = ["--products", "advisor", "--image=r.example/v:2", "--replicas=3", "--metrics-secure"];
    assert_same(&tools.template(&["--namespace", "openshift-cnv", "--set", &values]), &manifests(&flags));
    let mut with_namespace = manifests(&["--create-namespace"]);
    assert!(with_namespace.remove("Namespace \"openshift-cnv\"").is_some());
    assert_same(&with_namespace, &printed);

    // The namespace of clusters that are not OpenShift.
    let elsewhere = "kubevirt-hyperconverged";
    let printed = manifests(&["--namespace", elsewhere]);
    let folder = tempfile::tempdir().unwrap();
    overlay(folder.path(), &format!("namespace: {elsewhere}\n"));
    let mut kustomized = tools.kustomize(folder.path());
    // Kustomize does not know that a policy has no namespace; the API server drops it.
    for (_, policy) in kustomized.iter_mut().filter(|(name, _)| name.starts_with("ValidatingAdmissionPolicy")) {
        policy["metadata"].as_object_mut().unwrap().remove("namespace");
    }
    assert_same(&kustomized, &printed);
    assert_same(&tools.template(&["--namespace", elsewhere]), &printed);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_fleet_is_added_by_one_switch_of_every_package_and_by_default_it_is_absent() {
    let tools = Tools::ensure().await;
    let default = tools.template(&["--namespace", "openshift-cnv"]);
    assert!(!default.keys().any(|name| name.contains("fleet")), "{:?}", default.keys());
    let printed = manifests(&["--products=fleet", "--create-namespace"]);
    assert!(
        printed.contains_key("Namespace \"virtpilot-fleet\"") && printed.contains_key("Deployment \"virtpilot-fleet\"")
    );
    assert_same(&tools.kustomize(&deploy("kustomize/fleet")), &printed);
    let flags = "--products=fleet --namespace=openshift-cnv --fleet-secrets=ci/pve-token,ci/pve-ca --fleet-hypervisor-ports=443 \
                 --fleet-bootstrap-address=fleet.example.com:8443 --fleet-service-type=LoadBalancer \
                 --image=r.example/v:2 --replicas=3";
    let values = "fleet.enabled=true,fleet.secrets[0].namespace=ci,fleet.secrets[0].name=pve-token,fleet.secrets[1].namespace=ci,\
                  fleet.secrets[1].name=pve-ca,fleet.hypervisorPorts[0].port=443,fleet.hypervisorPorts[0].protocol=TCP,\
                  fleet.bootstrapAddress=fleet.example.com:8443,fleet.serviceType=LoadBalancer,\
                  image=r.example/v:2,replicas=3";
    let mut templated = tools.template(&["--namespace", "openshift-cnv", "--set", values]);
    templated.retain(|name, _| !default.contains_key(name));
    let printed = manifests(&flags.split_whitespace().collect::<Vec<_>>());
    assert_same(&templated, &printed);
    // On a Kubernetes without HyperConverged, whatever else is switched on.
    let alone = format!("{values},autopilot.enabled=false,logging=true,metricsExporter=true");
    assert_same(&tools.template(&["--namespace", "openshift-cnv", "--set", &alone]), &printed);
    let secure = manifests(&flags.split_whitespace().chain(["--metrics-secure"]).collect::<Vec<_>>());
    assert!(secure.len() > printed.len());
    let values = format!("{alone},metrics.secure=true");
    assert_same(&tools.template(&["--namespace", "openshift-cnv", "--set", &values]), &secure);

    // What cannot be is refused with what to do.
    let refused = |arguments: &[&str]| {
        let output = tools.helm(&["template", "virtpilot"]).args(arguments).output().unwrap();
        assert!(!output.status.success(), "{output:?}");
        String::from_utf8_lossy(&output.stderr).into_owned()
    };
    let nothing = refused(&["--set", "autopilot.enabled=false"]);
    assert!(nothing.contains("set autopilot.enabled or fleet.enabled to true"), "{nothing}");
    let twice = refused(&["--set", "advisor.alone=true"]);
    assert!(twice.contains("set autopilot.enabled to false"), "one Deployment runs both: {twice}");
    let old = ["--set", "autopilot.enabled=false,advisor.alone=true", "--kube-version", "1.29.3"];
    assert!(refused(&old).contains("the advisor needs Kubernetes 1.30 or newer"));
    let old = refused(&["--kube-version", "1.29.3"]);
    assert!(old.contains("the autopilot needs Kubernetes 1.30 or newer") && old.contains("v1.29.3"), "{old}");
    let fleet = ["--set", "autopilot.enabled=false,fleet.enabled=true", "--kube-version", "1.29.3"];
    assert!(tools.template(&fleet).contains_key("Deployment \"virtpilot-fleet\""));
    assert!(refused(&["--kube-version", "1.28.0"]).contains("1.29.0"), "CRDs have rules");
}

#[tokio::test(flavor = "multi_thread")]
async fn metrics_are_made_secure_by_one_switch_of_every_package() {
    let tools = Tools::ensure().await;
    let (default, printed) = (manifests(&[]), manifests(&["--metrics-secure"]));
    let mut added = printed.clone();
    added.retain(|name, object| default.get(name) != Some(object));
    let names = ["-metrics-reader", "-secure-metrics"].map(|name| format!(" \"virt-platform-autopilot{name}\""));
    let roles = |kind: &str| names.iter().map(|name| format!("{kind}{name}")).collect::<Vec<_>>();
    let deployment = "Deployment \"virt-platform-autopilot\"".to_owned();
    assert_eq!(
        added.into_keys().collect::<Vec<_>>(),
        [roles("ClusterRole"), roles("ClusterRoleBinding"), vec![deployment.clone()]].concat()
    );
    let folder = tempfile::tempdir().unwrap();
    overlay(folder.path(), &secure_metrics(folder.path()));
    let mut kustomized = tools.kustomize(folder.path());
    // Kustomize puts the variables of a patch first.
    let deployment = kustomized.get_mut(&deployment).unwrap();
    let variables = deployment.pointer_mut("/spec/template/spec/containers/0/env").and_then(Value::as_array_mut);
    variables.unwrap().rotate_left(2);
    assert_same(&kustomized, &printed);
    assert_same(&tools.template(&["--namespace", "openshift-cnv", "--set", "metrics.secure=true"]), &printed);

    // Another Prometheus, and the namespace of clusters that are not OpenShift.
    let elsewhere = "kubevirt-hyperconverged";
    let printed = manifests(&["--metrics-secure", "--prometheus=monitoring/prometheus", "--namespace", elsewhere]);
    let values =
        "metrics.secure=true,metrics.prometheus.namespace=monitoring,metrics.prometheus.serviceAccount=prometheus";
    assert_same(&tools.template(&["--namespace", elsewhere, "--set", values]), &printed);
    overlay(folder.path(), &format!("namespace: {elsewhere}\n{}", secure_metrics(folder.path())));
    let kustomized = tools.kustomize(folder.path());
    let of_operator = "ClusterRoleBinding \"virt-platform-autopilot-secure-metrics\"";
    assert_eq!(kustomized[of_operator]["subjects"][0]["namespace"], elsewhere);
    let of_prometheus = "ClusterRoleBinding \"virt-platform-autopilot-metrics-reader\"";
    assert_eq!(kustomized[of_prometheus]["subjects"][0]["namespace"], "openshift-monitoring");
    let unknown = tools.helm(&["template", "virtpilot", "--set", "metrics.secured=true"]).output().unwrap();
    assert!(!unknown.status.success(), "a value that is not known is refused");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_value_of_the_chart_is_what_the_flag_of_the_command_is() {
    let tools = Tools::ensure().await;
    let (_, warnings) = succeed(&mut tools.helm(&["lint", "--strict"]));
    assert!(!warnings.contains("[WARNING]") && !warnings.contains("[ERROR]"), "{warnings}");
    let flags = "--image=r.example/v:2 --replicas=3 --opt-in --prune=false --metrics-exporter-image=r.example/e:1 --api-server-ports=8443";
    let flags: Vec<&str> = flags.split(' ').collect();
    let values = "image=r.example/v:2,replicas=3,optIn=true,prune=false,metricsExporterImage=r.example/e:1,apiServerPorts[0].port=8443,\
                  apiServerPorts[0].protocol=TCP";
    let templated = tools.template(&["--namespace", "openshift-cnv", "--set", values]);
    assert_same(&templated, &manifests(&flags));

    // Roles that are installed on request are those of deploy/rbac.
    let default = tools.template(&["--namespace", "openshift-cnv"]);
    for (value, file) in [("logging", "logging"), ("metricsExporter", "kubevirt-metrics-exporter")] {
        let mut more = tools.template(&["--namespace", "openshift-cnv", "--set", &format!("{value}=true")]);
        more.retain(|name, _| !default.contains_key(name));
        assert_same(&more, &by_name(&std::fs::read_to_string(deploy(&format!("rbac/{file}.yaml"))).unwrap()));
    }
    let unknown = tools.helm(&["template", "virtpilot", "--set", "replicaCount=3"]).output().unwrap();
    let message = String::from_utf8_lossy(&unknown.stderr).into_owned();
    assert!(!unknown.status.success() && message.contains("replicaCount"), "{message}");
}

/// The objects of a bundle.
fn bundled(folder: &str) -> BTreeMap<String, Value> {
    let mut found = BTreeMap::new();
    for file in std::fs::read_dir(deploy(folder)).unwrap() {
        found.extend(by_name(&std::fs::read_to_string(file.unwrap().path()).unwrap()));
    }
    found
}

/// The bundle of the fleet has the objects of its kustomization; the manager makes its account and its bindings.
fn check_bundle_of_fleet() {
    let (mut printed, mut bundled) = (manifests(&["--products=fleet"]), bundled("olm/fleet/manifests"));
    let version = concat!("ClusterServiceVersion \"virtpilot-fleet.v", env!("CARGO_PKG_VERSION"), "\"");
    let version = bundled.remove(version).unwrap();
    let install = &version["spec"]["install"]["spec"];
    let mut take = |kind: &str| printed.remove(&format!("{kind} \"virtpilot-fleet\"")).unwrap();
    assert_eq!(install["deployments"][0]["spec"], take("Deployment")["spec"]);
    assert_eq!(install["clusterPermissions"][0]["rules"], take("ClusterRole")["rules"]);
    assert_eq!(install["permissions"][0]["rules"], take("Role")["rules"]);
    assert_eq!(install["permissions"][0]["serviceAccountName"], take("ServiceAccount")["metadata"]["name"]);
    for kind in ["ClusterRoleBinding", "RoleBinding"] {
        take(kind);
    }
    assert_eq!(version["spec"]["customresourcedefinitions"]["owned"].as_array().unwrap().len(), 4);
    for object in printed.values_mut() {
        object["metadata"].as_object_mut().unwrap().remove("namespace");
    }
    assert_same(&bundled, &printed);
}

#[tokio::test(flavor = "multi_thread")]
async fn the_bundle_is_valid_and_has_the_same_objects() {
    let tools = Tools::ensure().await;
    // It ends successfully also after an error, which it only prints.
    let verify = |folder: &Path| {
        let (out, err) = succeed(Command::new(&tools.packaging.operator_verify).arg("manifests").arg(folder));
        format!("{out}{err}")
    };
    assert_eq!(verify(&deploy("olm/fleet")), "");
    check_bundle_of_fleet();
    assert_eq!(verify(&deploy("olm/bundle")), "");
    let version = "virtpilot.clusterserviceversion.yaml";
    let text = std::fs::read_to_string(deploy("olm/bundle/manifests").join(version)).unwrap();
    let mut without_modes: Value = serde_saphyr::from_str(&text).unwrap();
    without_modes["spec"].as_object_mut().unwrap().remove("installModes");
    // A hidden folder is skipped.
    let broken = tempfile::Builder::new().prefix("bundle").tempdir().unwrap();
    std::fs::write(broken.path().join(version), without_modes.to_string()).unwrap();
    assert!(verify(broken.path()).contains("install modes not found"));

    let (mut printed, mut bundled) = (manifests(&[]), bundled("olm/bundle/manifests"));
    let version =
        bundled.remove(concat!("ClusterServiceVersion \"virtpilot.v", env!("CARGO_PKG_VERSION"), "\"")).unwrap();
    let install = &version["spec"]["install"]["spec"];
    let own = &version["spec"]["customresourcedefinitions"]["owned"][0];
    assert_eq!(
        (&own["name"], &own["kind"]),
        (&json!("virtplatformconfigs.advisor.kubevirt.io"), &json!("VirtPlatformConfig"))
    );
    for (kind, permissions) in [("ClusterRole", "clusterPermissions"), ("Role", "permissions")] {
        let role = printed.remove(&format!("{kind} \"virt-advisor-operator\"")).unwrap();
        assert_eq!(install[permissions][1]["rules"], role["rules"]);
        assert_eq!(install[permissions][1]["serviceAccountName"], "virt-platform-autopilot");
        assert!(printed.remove(&format!("{kind}Binding \"virt-advisor-operator\"")).is_some());
    }
    let mut take = |kind: &str| printed.remove(&format!("{kind} \"virt-platform-autopilot\"")).unwrap();
    assert_eq!(install["deployments"][0]["spec"], take("Deployment")["spec"]);
    assert_eq!(install["clusterPermissions"][0]["rules"], take("ClusterRole")["rules"]);
    assert_eq!(install["permissions"][0]["rules"], take("Role")["rules"]);
    let account = json!("virt-platform-autopilot");
    assert_eq!(install["permissions"][0]["serviceAccountName"], account);
    assert_eq!(install["clusterPermissions"][0]["serviceAccountName"], account);
    // The manager makes the account and its bindings, and cannot make a policy, which the roles of editors and approvers need.
    for kind in ["ServiceAccount", "ClusterRoleBinding", "RoleBinding"] {
        take(kind);
    }
    let needs_policy = |name: &str| name.ends_with("-editor\"") || name.ends_with("-approver\"");
    printed.retain(|name, _| !name.starts_with("ValidatingAdmissionPolicy") && !needs_policy(name));
    for object in printed.values_mut() {
        object["metadata"].as_object_mut().unwrap().remove("namespace");
    }
    assert_same(&bundled, &printed);
}
