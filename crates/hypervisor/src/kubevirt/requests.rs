//! The requests for `VirtualMachine` objects, and what their errors mean.

use crate::exchange::{self, Exchange, Report, Status};
use crate::gate::Gate;
use crate::kubevirt::{Settings, object};
use crate::settings::Limits;
use fleet::hypervisor::{Failure, GuestNetwork, MachineId};
use k8s_openapi::api::authorization::v1::SelfSubjectAccessReview;
use k8s_openapi::api::core::v1::{Node, Secret};
use kube::api::{ApiResource, DeleteParams, DynamicObject, ListParams, Patch, PatchParams, PostParams, Preconditions};
use kube::{Api, Client};
use serde_json::{Value, json};
use std::net::IpAddr;
use std::sync::Arc;
use tokio::time::{Instant, timeout};

const LIST: &str = "/apis/kubevirt.io/v1/namespaces/{namespace}/virtualmachines";
const ONE: &str = "/apis/kubevirt.io/v1/namespaces/{namespace}/virtualmachines/{name}";
const INSTANCE: &str = "/apis/kubevirt.io/v1/namespaces/{namespace}/virtualmachineinstances/{name}";
const SECRETS: &str = "/api/v1/namespaces/{namespace}/secrets";
const REVIEW: &str = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
/// Nodes that can run machines.
const SCHEDULABLE: &str = "kubevirt.io/schedulable=true";

pub(crate) struct Requests {
    client: Client,
    namespace: String,
    machines: Api<DynamicObject>,
    instances: Api<DynamicObject>,
    secrets: Api<Secret>,
    gate: Arc<Gate>,
    report: Report,
    limits: Limits,
}

impl Requests {
    pub(crate) fn new(settings: &Settings, gate: Arc<Gate>, report: Report) -> Requests {
        let (client, namespace) = (settings.client.clone(), settings.namespace.clone());
        let machines = Api::namespaced_with(client.clone(), &namespace, &object::kind());
        let instance = ApiResource {
            kind: "VirtualMachineInstance".into(),
            plural: "virtualmachineinstances".into(),
            ..object::kind()
        };
        let instances = Api::namespaced_with(client.clone(), &namespace, &instance);
        let secrets = Api::namespaced(client.clone(), &namespace);
        Requests { client, namespace, machines, instances, secrets, gate, report, limits: settings.limits }
    }

    /// Nothing if there is surely no such machine.
    pub(crate) async fn read(&self, name: &str) -> Result<Option<DynamicObject>, Failure> {
        match self.send("GET", ONE, self.machines.get(name)).await {
            Ok(machine) => Ok(Some(machine)),
            Err(error) => match failure(error, Some(name), &format!("reading VirtualMachine {name}")) {
                Failure::Absent(_) => Ok(None),
                other => Err(other),
            },
        }
    }

    pub(crate) async fn list(&self) -> Result<Vec<DynamicObject>, Failure> {
        let listed = self.send("GET", LIST, self.machines.list(&ListParams::default())).await;
        let doing = format!("listing the VirtualMachines of namespace {}", self.namespace);
        listed.map(|list| list.items).map_err(|error| failure(error, None, &doing))
    }

    pub(crate) async fn nodes(&self) -> Result<Vec<Node>, Failure> {
        let nodes: Api<Node> = Api::all(self.client.clone());
        let listed = self.send("GET", "/api/v1/nodes", nodes.list(&ListParams::default().labels(SCHEDULABLE))).await;
        listed.map(|list| list.items).map_err(|error| failure(error, None, "listing nodes"))
    }

    pub(crate) async fn create(&self, machine: &DynamicObject) -> Result<(), Failure> {
        let name = machine.metadata.name.clone().unwrap_or_default();
        let made = self.send("POST", LIST, self.machines.create(&PostParams::default(), machine)).await;
        made.map(|_| ()).map_err(|error| failure(error, Some(&name), &format!("creating VirtualMachine {name}")))
    }

    /// The Secret of a seed; one that exists has the same content.
    pub(crate) async fn create_seed(&self, secret: &Secret) -> Result<(), Failure> {
        let name = secret.metadata.name.clone().unwrap_or_default();
        let Err(error) = self.send("POST", SECRETS, self.secrets.create(&PostParams::default(), secret)).await else {
            return Ok(());
        };
        match failure(error, Some(&name), &format!("creating Secret {name}")) {
            Failure::Exists(_) => Ok(()),
            other => Err(other),
        }
    }

    /// The object has its resourceVersion: nobody else's change is lost.
    pub(crate) async fn replace(&self, machine: &DynamicObject) -> Result<(), Failure> {
        let name = machine.metadata.name.clone().unwrap_or_default();
        let put = self.send("PUT", ONE, self.machines.replace(&name, &PostParams::default(), machine)).await;
        put.map(|_| ()).map_err(|error| failure(error, Some(&name), &format!("configuring VirtualMachine {name}")))
    }

    pub(crate) async fn patch(&self, name: &str, patch: &Value) -> Result<(), Failure> {
        let (parameters, patch) = (PatchParams::default(), Patch::Merge(patch));
        let patched = self.send("PATCH", ONE, self.machines.patch(name, &parameters, &patch)).await;
        patched.map(|_| ()).map_err(|error| failure(error, Some(name), &format!("switching VirtualMachine {name}")))
    }

    /// Deletes exactly the object that was read.
    pub(crate) async fn delete(&self, machine: &DynamicObject) -> Result<(), Failure> {
        let name = machine.metadata.name.clone().unwrap_or_default();
        let preconditions = Preconditions { uid: machine.metadata.uid.clone(), resource_version: None };
        let parameters = DeleteParams::foreground().preconditions(preconditions);
        let deleted = self.send("DELETE", ONE, self.machines.delete(&name, &parameters)).await;
        deleted.map(|_| ()).map_err(|error| failure(error, Some(&name), &format!("deleting VirtualMachine {name}")))
    }

    /// The addresses of the guest; nothing while it has none.
    pub(crate) async fn addresses(&self, name: &str) -> Result<Option<GuestNetwork>, Failure> {
        let instance = match self.send("GET", INSTANCE, self.instances.get(name)).await {
            Ok(instance) => instance,
            Err(error) => match failure(error, Some(name), &format!("reading VirtualMachineInstance {name}")) {
                Failure::Absent(_) => return Ok(None),
                other => return Err(other),
            },
        };
        let mut found = GuestNetwork::default();
        for interface in instance.data["status"]["interfaces"].as_array().into_iter().flatten() {
            for address in interface["ipAddresses"].as_array().into_iter().flatten().filter_map(Value::as_str) {
                let is_local = match address.parse() {
                    Ok(IpAddr::V4(v4)) => v4.is_loopback() || v4.is_link_local(),
                    Ok(IpAddr::V6(v6)) => v6.is_loopback() || v6.is_unicast_link_local(),
                    Err(_) => true,
                };
                if !is_local {
                    found.add(address, interface["mac"].as_str());
                }
            }
        }
        Ok(Some(found).filter(|found| !found.addresses.is_empty()))
    }

    pub(crate) async fn version(&self) -> Result<String, Failure> {
        let version = self.send("GET", "/version", self.client.apiserver_version()).await;
        version.map(|info| info.git_version).map_err(|error| failure(error, None, "reading the version"))
    }

    /// The rights that are missing.
    pub(crate) async fn missing_rights(&self) -> Result<Vec<String>, Failure> {
        let reviews: Api<SelfSubjectAccessReview> = Api::all(self.client.clone());
        let machines = ["get", "list", "create", "update", "patch", "delete"];
        let machines = machines.map(|verb| (verb, "kubevirt.io", "virtualmachines"));
        let others = [("get", "kubevirt.io", "virtualmachineinstances"), ("create", "", "secrets")];
        let mut missing = Vec::new();
        for (verb, group, resource) in machines.into_iter().chain(others) {
            let attributes = json!({"group": group, "resource": resource, "verb": verb, "namespace": self.namespace});
            let review = json!({"metadata": {}, "spec": {"resourceAttributes": attributes}});
            let review: SelfSubjectAccessReview = serde_json::from_value(review)
                .map_err(|error| Failure::Permanent(format!("a review cannot be made: {error}")))?;
            let answer = self.send("POST", REVIEW, reviews.create(&PostParams::default(), &review)).await;
            let answer = answer.map_err(|error| failure(error, None, "reading own rights"))?;
            if !answer.status.is_some_and(|status| status.allowed) {
                missing.push(format!("{verb} on {resource} in namespace {}", self.namespace));
            }
        }
        Ok(missing)
    }

    /// One request, in its turn and in time.
    async fn send<T>(
        &self,
        method: &'static str,
        path: &'static str,
        request: impl Future<Output = kube::Result<T>>,
    ) -> Result<T, Option<kube::Error>> {
        let _permit = self.gate.enter(None, self.limits.request).await.ok();
        let start = Instant::now();
        let span = exchange::span(method, path, "kubernetes");
        let answer = timeout(self.limits.request, request).await;
        let status = match &answer {
            Ok(Ok(_)) => Status::Success,
            Ok(Err(kube::Error::Api(status))) => Status::of(status.code),
            _ => Status::Unanswered,
        };
        let code = match &answer {
            Ok(Ok(_)) => Some(200),
            Ok(Err(kube::Error::Api(status))) => Some(status.code),
            _ => None,
        };
        exchange::record(&span, code);
        (self.report)(&Exchange { method, path, status, duration: start.elapsed() });
        match answer {
            Ok(answer) => answer.map_err(Some),
            Err(_) => Err(None),
        }
    }
}

/// What an error means; nothing is an answer that did not come in time. Only an answer about this very object says that it is absent:
/// without KubeVirt every path is unknown.
fn failure(error: Option<kube::Error>, name: Option<&str>, doing: &str) -> Failure {
    let status = match error {
        None => return Failure::Transient(format!("{doing}: no answer in time")),
        Some(kube::Error::Api(status)) => status,
        Some(other) => return Failure::Transient(format!("{doing}: {other}")),
    };
    let message = format!("{doing}: {} ({})", status.message, status.code);
    let about = status.details.as_ref().map(|details| details.name.as_str()).filter(|name| !name.is_empty());
    let id = name.map(|name| MachineId(name.to_owned()));
    match (status.code, status.reason.as_str(), id) {
        (404, "NotFound", Some(id)) if about == Some(&id.0) => Failure::Absent(id),
        (404, _, _) => {
            Failure::Configuration { message, remedy: "install KubeVirt, and name a namespace that exists".into() }
        }
        (401 | 403, _, _) => {
            Failure::Configuration { message, remedy: "grant the rights of the documented role".into() }
        }
        (409, "AlreadyExists", Some(id)) => Failure::Exists(id),
        (409 | 429 | 500.., _, _) => Failure::Transient(message),
        _ => Failure::Permanent(message),
    }
}
