//! Operations on virtual machines, against an API server in a few lines that knows uids, versions and preconditions.

use super::{KubeVirt, Settings};
use crate::gate::Gate;
use crate::provider::Provider;
use crate::settings::Limits;
use fleet::hypervisor::{
    Blueprint, Failure, GuestNetwork, MachineId, Network, Owner, Power, Seed, Target, Template, TemplateRef,
};
use http::{Method, Request, Response};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tower::service_fn;

type Fault = Box<dyn FnMut(&mut BTreeMap<String, Value>) + Send>;

#[derive(Default)]
struct State {
    machines: BTreeMap<String, Value>,
    secrets: BTreeMap<String, Value>,
    writes: Vec<String>,
    count: u64,
    /// Called with every write before it is carried out.
    fault: Option<Fault>,
    is_unserved: bool,
}

fn status(code: u16, reason: &str, name: &str) -> (u16, Value) {
    let details = json!({"name": name, "kind": "virtualmachines"});
    (
        code,
        json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": code, "reason": reason, "message": reason, "details": details}),
    )
}

fn merge(old: &mut Value, patch: &Value) {
    for (name, value) in patch.as_object().unwrap() {
        match value {
            Value::Null => drop(old.as_object_mut().unwrap().remove(name)),
            Value::Object(_) if old[name].is_object() => merge(&mut old[name], value),
            _ => old[name] = value.clone(),
        }
    }
}

/// What the webhook of KubeVirt refuses.
fn is_refused(machine: &Value) -> bool {
    let volumes = machine["spec"]["template"]["spec"]["volumes"].as_array().into_iter().flatten();
    let mut texts = volumes.filter_map(|volume| volume["cloudInitNoCloud"]["userData"].as_str());
    texts.any(|text| text.len() > 2048)
}

fn answer(state: &mut State, method: &Method, path: &str, body: &Value) -> (u16, Value) {
    if state.is_unserved && path.contains("kubevirt.io") {
        return (
            404,
            json!({"kind": "Status", "apiVersion": "v1", "status": "Failure", "code": 404, "reason": "NotFound",
            "message": "the server could not find the requested resource", "details": {}}),
        );
    }
    let name = path.split("/virtualmachines/").nth(1).unwrap_or_default().to_owned();
    if *method != Method::GET {
        state.writes.push(format!("{method} {name}"));
        if let Some(mut fault) = state.fault.take() {
            fault(&mut state.machines);
        }
    }
    state.count += 1;
    let version = state.count.to_string();
    let known = state.machines.get(&name).cloned();
    let kept = |one: &Value, field: &str| one["metadata"][field].clone();
    match (method.as_str(), known) {
        ("GET", _) if path.ends_with("/virtualmachines") => {
            let items: Vec<_> = state.machines.values().cloned().collect();
            (200, json!({"kind": "VirtualMachineList", "apiVersion": "kubevirt.io/v1", "metadata": {}, "items": items}))
        }
        ("GET", _) if path == "/api/v1/nodes" => {
            let node = json!({"metadata": {"name": "a"}, "status": {"allocatable": {"cpu": "3500m", "memory": "8Gi"}}});
            (200, json!({"kind": "NodeList", "apiVersion": "v1", "metadata": {}, "items": [node.clone(), node]}))
        }
        ("GET", _) if path.contains("virtualmachineinstances") => (
            200,
            json!({"kind": "VirtualMachineInstance", "apiVersion": "kubevirt.io/v1", "metadata": {"name": "run-7"},
                "status": {"interfaces": [{"mac": "02:00:00:00:00:04", "ipAddresses": ["10.1.0.4", "fe80::1"]}]}}),
        ),
        ("POST", _) if path.ends_with("/secrets") => {
            let name = body["metadata"]["name"].as_str().unwrap().to_owned();
            if state.secrets.contains_key(&name) {
                return status(409, "AlreadyExists", &name);
            }
            state.secrets.insert(name, body.clone());
            (201, body.clone())
        }
        ("POST" | "PUT", _) if is_refused(body) => status(422, "Invalid", &name),
        ("POST", _) => {
            let name = body["metadata"]["name"].as_str().unwrap().to_owned();
            if state.machines.contains_key(&name) {
                return status(409, "AlreadyExists", &name);
            }
            let mut made = body.clone();
            made["metadata"]["uid"] = json!(format!("uid-{version}"));
            made["metadata"]["resourceVersion"] = json!(version);
            state.machines.insert(name, made.clone());
            (201, made)
        }
        (_, None) => status(404, "NotFound", &name),
        ("GET", Some(one)) => (200, one),
        ("PUT", Some(one)) if kept(&one, "resourceVersion") != kept(body, "resourceVersion") => {
            status(409, "Conflict", &name)
        }
        ("PATCH", Some(one))
            if kept(&one, "uid") != kept(body, "uid")
                || kept(&one, "resourceVersion") != kept(body, "resourceVersion") =>
        {
            status(409, "Conflict", &name)
        }
        ("DELETE", Some(one)) if kept(&one, "uid") != body["preconditions"]["uid"] => status(409, "Conflict", &name),
        ("DELETE", Some(one)) => {
            state.machines.remove(&name);
            (200, one)
        }
        (_, Some(mut one)) => {
            if *method == Method::PUT {
                one = body.clone();
            } else {
                merge(&mut one, body);
                // As virt-controller does.
                let shown = if one["spec"]["runStrategy"] == "Once" { "Running" } else { "Stopped" };
                one["status"]["printableStatus"] = shown.into();
            }
            one["metadata"]["resourceVersion"] = json!(version);
            state.machines.insert(name, one.clone());
            (200, one)
        }
    }
}

fn server() -> (Arc<Mutex<State>>, KubeVirt) {
    let state: Arc<Mutex<State>> = Arc::default();
    let template = json!({"apiVersion": "kubevirt.io/v1", "kind": "VirtualMachine",
        "metadata": {"name": "debian", "namespace": "ci", "labels": {"hyperfleet.io/template": "", "tag.hyperfleet.io/linux": ""}, "creationTimestamp": "2026-01-01T00:00:00Z"},
        "spec": {"running": false, "dataVolumeTemplates": [{"metadata": {"name": "root"}, "spec": {}}], "template": {"spec": {
            "domain": {"devices": {"disks": [{"name": "root", "disk": {"bus": "virtio"}}]}},
            "volumes": [{"name": "root", "dataVolume": {"name": "root"}}]}}}});
    state.lock().unwrap().machines.insert("debian".into(), template);
    let answering = state.clone();
    let service = service_fn(move |request: Request<Body>| {
        let state = answering.clone();
        async move {
            let (parts, body) = request.into_parts();
            let body = body.collect().await.unwrap().to_bytes();
            let body = serde_json::from_slice(&body).unwrap_or(Value::Null);
            let (code, answer) = answer(&mut state.lock().unwrap(), &parts.method, parts.uri.path(), &body);
            let response = Response::builder().status(code).body(Body::from(answer.to_string().into_bytes())).unwrap();
            Ok::<_, std::convert::Infallible>(response)
        }
    });
    let limits = Limits { task: Duration::from_millis(50), ..Limits::default() };
    let settings =
        Settings { client: Client::new(service, "ci"), identity: "a".into(), namespace: "ci".into(), limits };
    (state, KubeVirt::new(&settings, Arc::new(Gate::new(8)), Arc::new(|_| {})))
}

fn owner(uid: &str) -> Owner {
    Owner { operator: "op".into(), claim: "ci/a".into(), uid: uid.into() }
}

fn target(uid: &str) -> Target {
    Target { id: MachineId("run-7".into()), node: None, owner: owner(uid) }
}

fn blueprint(template: Template) -> Blueprint {
    let files = [("user-data".to_owned(), "#cloud-config\n".to_owned())].into();
    Blueprint {
        id: MachineId("run-7".into()),
        name: "run-7".into(),
        owner: owner("u-1"),
        node: "kubevirt".into(),
        template,
        is_linked: true,
        storage: None,
        pool: None,
        cpus: 4,
        memory: 2 << 30,
        disk_bytes: None,
        network: Some(Network { bridge: "ci-net".into(), vlan: None }),
        tags: ["ci".to_owned()].into(),
        seed: Some(Seed { storage: String::new(), bus: String::new(), files }),
    }
}

async fn found(provider: &KubeVirt) -> Blueprint {
    blueprint(provider.find_template(&TemplateRef::Tag("linux".into())).await.unwrap().remove(0))
}

/// The Secret that a machine has its seed from.
fn seed_of(state: &Mutex<State>, machine: &Value) -> Value {
    let volumes = machine["spec"]["template"]["spec"]["volumes"].as_array().unwrap();
    let seeds: Vec<&Value> = volumes.iter().filter(|volume| !volume["cloudInitNoCloud"].is_null()).collect();
    assert_eq!(seeds.len(), 1, "KubeVirt reads the first one only: {volumes:?}");
    let source = &seeds[0]["cloudInitNoCloud"];
    let secret = state.lock().unwrap().secrets[source["secretRef"]["name"].as_str().unwrap()].clone();
    let has_network = secret["stringData"].get("networkdata").is_some();
    assert_eq!(source["networkDataSecretRef"]["name"] == source["secretRef"]["name"], has_network);
    assert_eq!(secret["metadata"]["ownerReferences"][0]["uid"], machine["metadata"]["uid"], "it goes with its machine");
    secret
}

/// P24 for the second provider.
#[tokio::test]
async fn a_machine_is_copied_from_a_template_configured_started_and_deleted() {
    let (state, provider) = server();
    let blueprint = found(&provider).await;
    provider.create(&blueprint).await.unwrap();
    assert_eq!(provider.create(&blueprint).await, Err(Failure::Exists(blueprint.id.clone())));
    let inspected = provider.inspect(&blueprint.id).await.unwrap().unwrap();
    assert_eq!(
        (inspected.owner, inspected.is_configured, inspected.seen.power),
        (Some(owner("u-1")), false, Power::Stopped)
    );
    provider.configure(&blueprint).await.unwrap();
    let machine = state.lock().unwrap().machines["run-7"].clone();
    let inside = &machine["spec"]["template"]["spec"];
    assert_eq!(machine["spec"]["dataVolumeTemplates"][0]["metadata"]["name"], "run-7-root");
    assert_eq!(inside["volumes"][0]["dataVolume"]["name"], "run-7-root");
    assert_eq!(seed_of(&state, &machine)["stringData"], json!({"userdata": "#cloud-config\n"}));
    assert_eq!(inside["networks"][0]["multus"]["networkName"], "ci-net");
    assert!(
        machine["spec"].get("running").is_none() && machine["metadata"]["labels"]["hyperfleet.io/template"].is_null()
    );
    let inspected = provider.inspect(&blueprint.id).await.unwrap().unwrap();
    assert!(inspected.is_configured && inspected.seen.cpus == 4 && inspected.seen.memory == 2 << 30);
    let writes = state.lock().unwrap().writes.len();
    provider.configure(&blueprint).await.unwrap();
    assert_eq!(state.lock().unwrap().writes.len(), writes, "nothing is left to do");
    provider.start(&target("u-1")).await.unwrap();
    assert_eq!(state.lock().unwrap().machines["run-7"]["spec"]["runStrategy"], "Once");
    let guest = GuestNetwork { addresses: vec!["10.1.0.4".to_owned()], mac: Some("02:00:00:00:00:04".into()) };
    assert_eq!(provider.addresses(&target("u-1")).await, Ok(Some(guest)));
    let listed = provider.list().await.unwrap();
    assert_eq!(
        (listed.machines.len(), listed.nodes["kubevirt"].cpus, listed.nodes["kubevirt"].memory),
        (2, 6, 16 << 30)
    );
    provider.stop(&target("u-1")).await.unwrap();
    provider.destroy(&target("u-1")).await.unwrap();
    assert_eq!(provider.inspect(&blueprint.id).await, Ok(None));
    assert_eq!(provider.destroy(&target("u-1")).await, Err(Failure::Absent(blueprint.id)));
    assert!(state.lock().unwrap().machines.contains_key("debian"));
}

#[tokio::test]
async fn a_machine_of_somebody_else_is_never_touched() {
    let (state, provider) = server();
    let mut blueprint = found(&provider).await;
    provider.create(&blueprint).await.unwrap();
    blueprint.owner = owner("u-2");
    let writes = state.lock().unwrap().writes.len();
    let refused = Failure::NotOurs { id: blueprint.id.clone(), found: Some(owner("u-1")) };
    assert_eq!(provider.configure(&blueprint).await, Err(refused.clone()));
    assert_eq!(provider.start(&target("u-2")).await, Err(refused.clone()));
    assert_eq!(provider.stop(&target("u-2")).await, Err(refused.clone()));
    assert_eq!(provider.destroy(&target("u-2")).await, Err(refused));
    assert_eq!(state.lock().unwrap().writes.len(), writes);
    // Between the look and the deletion the machine becomes another one of the same name.
    state.lock().unwrap().fault =
        Some(Box::new(|machines| machines.get_mut("run-7").unwrap()["metadata"]["uid"] = json!("other")));
    assert!(matches!(provider.destroy(&target("u-1")).await, Err(Failure::Transient(_))));
    assert!(state.lock().unwrap().machines.contains_key("run-7"));
}

#[tokio::test]
async fn what_cannot_be_done_is_said_and_a_missing_kind_is_no_missing_machine() {
    let (state, provider) = server();
    let mut blueprint = found(&provider).await;
    provider.create(&blueprint).await.unwrap();
    blueprint.network = Some(Network { bridge: "a".into(), vlan: Some(3) });
    assert!(matches!(provider.configure(&blueprint).await, Err(Failure::Configuration { .. })));
    state.lock().unwrap().machines.get_mut("debian").unwrap()["spec"]["dataVolumeTemplates"] = json!([]);
    blueprint.id = MachineId("run-8".into());
    match provider.create(&blueprint).await {
        Err(Failure::Configuration { message, .. }) => {
            assert!(message.contains("cannot be in two machines"), "{message}");
        }
        other => panic!("{other:?}"),
    }
    let unknown = provider.find_template(&TemplateRef::Name("run-7".into())).await;
    assert!(matches!(unknown, Err(Failure::Configuration { .. })), "{unknown:?}");
    state.lock().unwrap().is_unserved = true;
    for failure in [provider.inspect(&blueprint.id).await.err(), provider.destroy(&target("u-1")).await.err()] {
        assert!(matches!(failure, Some(Failure::Configuration { .. })), "{failure:?}");
    }
}

#[tokio::test]
async fn cloud_init_data_of_any_size_are_a_secret_that_goes_with_the_machine() {
    let (state, provider) = server();
    {
        let mut state = state.lock().unwrap();
        let inside = &mut state.machines.get_mut("debian").unwrap()["spec"]["template"]["spec"];
        inside["volumes"]
            .as_array_mut()
            .unwrap()
            .insert(0, json!({"name": "own", "cloudInitConfigDrive": {"userData": "a"}}));
        inside["domain"]["devices"]["disks"].as_array_mut().unwrap().push(json!({"name": "own", "cdrom": {}}));
    }
    let mut blueprint = found(&provider).await;
    let long = format!("#cloud-config\n{}", "# a certificate\n".repeat(500));
    let files =
        [("user-data", long.clone()), ("network-config", "version: 2\n".into()), ("meta-data", "a: b\n".into())];
    blueprint.seed.as_mut().unwrap().files = files.map(|(name, text)| (name.to_owned(), text)).into();
    provider.create(&blueprint).await.unwrap();
    provider.configure(&blueprint).await.unwrap();
    let machine = || state.lock().unwrap().machines["run-7"].clone();
    assert_eq!(seed_of(&state, &machine())["stringData"], json!({"userdata": long, "networkdata": "version: 2\n"}));
    let disks = &machine()["spec"]["template"]["spec"]["domain"]["devices"]["disks"];
    let disks: Vec<_> = disks.as_array().unwrap().iter().map(|disk| disk["name"].as_str().unwrap()).collect();
    assert_eq!(disks, ["root", "virtpilot-seed"]);
    assert!(!machine().to_string().contains("certificate"), "whoever may read the machine does not read its data");

    // The answer to the next one is lost after the Secret was made.
    blueprint.seed.as_mut().unwrap().files.insert("user-data".into(), "#cloud-config\n# another token\n".into());
    let touch = |machines: &mut BTreeMap<String, Value>| {
        machines.get_mut("run-7").unwrap()["metadata"]["resourceVersion"] = json!("x");
    };
    state.lock().unwrap().fault = Some(Box::new(touch));
    assert!(matches!(provider.configure(&blueprint).await, Err(Failure::Transient(_))));
    provider.configure(&blueprint).await.unwrap();
    assert!(seed_of(&state, &machine())["stringData"]["userdata"].as_str().unwrap().contains("another token"));
    let writes = state.lock().unwrap().writes.clone();
    assert!(!writes.iter().any(|write| write.contains("seed")), "no Secret is changed or deleted: {writes:?}");
}

#[tokio::test]
async fn a_copy_has_an_identity_and_a_size_of_its_own() {
    let (state, provider) = server();
    let domain = json!({
        "cpu": {"cores": 1, "sockets": 8, "maxSockets": 8, "model": "host-passthrough"},
        "memory": {"guest": "1Gi", "maxGuest": "1Gi"},
        "resources": {"requests": {"memory": "1Gi", "cpu": "1"}, "limits": {"memory": "1Gi", "cpu": "1", "example.com/gpu": "1"}},
        "firmware": {"uuid": "5d307ca9", "serial": "e4686d2c", "bootloader": {"efi": {}}},
        "chassis": {"serial": "abc"},
        "devices": {"interfaces": [{"name": "default", "masquerade": {}, "macAddress": "02:00:00:00:00:01"}]},
    });
    {
        let mut state = state.lock().unwrap();
        let spec = &mut state.machines.get_mut("debian").unwrap()["spec"];
        spec.as_object_mut().unwrap().remove("dataVolumeTemplates");
        spec["template"]["spec"] =
            json!({"domain": domain, "volumes": [{"name": "root", "containerDisk": {"image": "disk:1"}}]});
    }
    let mut blueprint = found(&provider).await;
    blueprint.network = None;
    provider.create(&blueprint).await.unwrap();
    let made = state.lock().unwrap().machines["run-7"].to_string();
    assert!(!made.contains("null"), "the API server refuses null in place of a list: {made}");
    let domain = || state.lock().unwrap().machines["run-7"]["spec"]["template"]["spec"]["domain"].clone();
    assert_eq!(
        (&domain()["firmware"], &domain()["chassis"], &domain()["devices"]["interfaces"]),
        (&json!({"bootloader": {"efi": {}}}), &json!({}), &json!([{"name": "default", "masquerade": {}}])),
        "no two machines may have the same address or instance id"
    );
    provider.configure(&blueprint).await.unwrap();
    assert_eq!(
        (&domain()["cpu"], &domain()["memory"], &domain()["resources"]),
        (
            &json!({"cores": 4, "sockets": 1, "threads": 1, "model": "host-passthrough"}),
            &json!({"guest": "2048Mi"}),
            &json!({"requests": {}, "limits": {"example.com/gpu": "1"}})
        )
    );
}

/// P3 for the second provider.
#[tokio::test]
async fn a_template_with_an_instance_type_is_refused_with_a_remedy() {
    let (state, provider) = server();
    state.lock().unwrap().machines.get_mut("debian").unwrap()["spec"]["instancetype"] = json!({"name": "u1.small"});
    match provider.find_template(&TemplateRef::Name("debian".into())).await {
        Err(Failure::Configuration { message, remedy }) => {
            assert!(message.contains("spec.instancetype") && remedy.contains("remove spec.instancetype"), "{message}");
        }
        other => panic!("{other:?}"),
    }
}
