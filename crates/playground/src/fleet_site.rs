//! The fleet on a playground, installed as its guide says, with a stand-in of Proxmox VE as its hypervisor.

use crate::deployment::{self, objects};
use crate::playground::Playground;
use crate::poll;
use crate::proxmox::{ProxmoxStandIn, Setup};
use crate::service_account::Account;
use crate::user_error::{UserError, refused};
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams};
use serde_json::{Value, json};
use std::collections::BTreeSet;
use std::time::Duration;

/// The namespace of the fleet, and its account.
pub const HOME: &str = "virtpilot-fleet";
/// The namespace of its objects.
pub const SPACE: &str = "ci";
/// The API of the fleet.
pub const API_VERSION: &str = "hyperfleet.io/v1alpha1";
/// The Secrets that the fleet may read.
const SECRETS: &str = "ci/pve-token,ci/pve-ca,ci/github,ci/webhook";

/// Makes the namespaces and installs the fleet; its account has exactly the rights of its role.
pub async fn install(playground: &Playground) -> Result<Account, UserError> {
    for namespace in [SPACE, HOME] {
        let object = json!({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}});
        apply(&objects(playground, "v1", "Namespace", None), &object).await?;
    }
    let arguments = ["--products", "fleet", "--create-namespace", "--fleet-secrets", SECRETS];
    deployment::grant_for(playground, &deployment::manifests(&arguments).await?).await?;
    playground.account(HOME, HOME).await
}

/// The arguments that run the fleet with this account, without HTTP servers unless others name them.
pub fn arguments(account: &Account) -> Vec<String> {
    let mut arguments = deployment::arguments(account);
    arguments.extend(["--products=fleet".to_owned(), format!("--namespace={HOME}")]);
    arguments
}

/// A `HypervisorCluster` with this name, whose credentials and CA are in the Secrets NAME-token and NAME-ca.
pub fn cluster_spec(name: &str, endpoint: &str) -> Value {
    let key = |secret: &str, key: &str| json!({"name": format!("{name}-{secret}"), "key": key});
    json!({
        "provider": "proxmox",
        "endpoint": endpoint,
        "credentials": {"tokenId": key("token", "id"), "tokenSecret": key("token", "secret")},
        "tls": {"caCertificate": key("ca", "ca.crt")},
        "resourcePool": Setup::POOL,
        "defaultNetwork": "vmbr0",
    })
}

/// A `HypervisorMachineTemplate` of the stand-in's template.
pub fn template_spec(cluster: &str) -> Value {
    json!({
        "hypervisorClusterRef": {"name": cluster},
        "template": {"proxmox": {"tag": "runner"}},
        "resources": {"cpu": 2, "memory": "2Gi"},
        "cloudInit": {"userData": "#cloud-config\n", "storage": "local"},
    })
}

/// The objects of the fleet, and the hypervisor.
pub struct FleetSite<'a> {
    /// Where the objects are.
    pub playground: &'a Playground,
    /// The hypervisor.
    pub proxmox: ProxmoxStandIn,
}

impl FleetSite<'_> {
    /// The objects of a kind of the fleet.
    pub fn api(&self, kind: &str) -> Api<DynamicObject> {
        objects(self.playground, API_VERSION, kind, Some(SPACE))
    }

    /// Makes an object of the fleet; the server may just have learned its kind.
    pub async fn create(&self, kind: &str, name: &str, spec: Value) -> Result<(), UserError> {
        let object = json!({"apiVersion": API_VERSION, "kind": kind, "metadata": {"name": name}, "spec": spec});
        self.until(&format!("{kind} {name} is accepted"), async || apply(&self.api(kind), &object).await.ok()).await
    }

    /// The `HypervisorCluster` pve, with this secret of its token.
    pub async fn connect(&self, token_secret: &str) -> Result<(), UserError> {
        self.secret("pve-ca", json!({"ca.crt": self.proxmox.ca_pem})).await?;
        self.set_token(token_secret).await?;
        self.create("HypervisorCluster", "pve", cluster_spec("pve", &self.proxmox.address)).await
    }

    /// The `HypervisorMachineTemplate` linux of the hypervisor's template.
    pub async fn add_template(&self) -> Result<(), UserError> {
        self.create("HypervisorMachineTemplate", "linux", template_spec("pve")).await
    }

    /// Makes a claim of that template.
    pub async fn claim(&self, name: &str) -> Result<(), UserError> {
        self.create("MachineClaim", name, json!({"templateRef": {"name": "linux"}})).await
    }

    /// The id and the secret of the token with the rights of a fleet.
    pub fn token(&self) -> (&str, &str) {
        self.proxmox.credentials.fleet_token.split_once('=').unwrap_or_default()
    }

    /// Sets the secret of the token.
    pub async fn set_token(&self, secret: &str) -> Result<(), UserError> {
        self.secret("pve-token", json!({"id": self.token().0, "secret": secret})).await
    }

    /// Makes a Secret.
    pub async fn secret(&self, name: &str, data: Value) -> Result<(), UserError> {
        let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": name}, "stringData": data});
        apply(&objects(self.playground, "v1", "Secret", Some(SPACE)), &secret).await
    }

    /// Deletes an object; it is gone when its finalizers are.
    pub async fn delete(&self, kind: &str, name: &str) -> Result<(), UserError> {
        self.api(kind).delete(name, &DeleteParams::default()).await.map(|_| ()).map_err(|error| refused(&error))
    }

    /// Waits until an object is gone.
    pub async fn gone(&self, kind: &str, name: &str) -> Result<(), UserError> {
        let get = async || matches!(self.api(kind).get_opt(name).await, Ok(None)).then_some(());
        self.until(&format!("{kind} {name} is gone"), get).await
    }

    /// The status of an object, once it fits.
    pub async fn status(
        &self,
        (kind, name): (&str, &str),
        what: &str,
        fits: impl Fn(&Value) -> bool,
    ) -> Result<Value, UserError> {
        self.until(&format!("{kind} {name} has {what}"), async || {
            let status = self.api(kind).get(name).await.ok()?.data["status"].clone();
            fits(&status).then_some(status)
        })
        .await
    }

    /// The message of the Ready condition, once it has this reason.
    pub async fn reason(&self, object: (&str, &str), reason: &str) -> Result<String, UserError> {
        let ready = |status: &Value| {
            let all = status["conditions"].as_array().into_iter().flatten();
            all.into_iter().find(|one| one["type"] == "Ready" && one["reason"] == reason).cloned()
        };
        let status = self.status(object, reason, |status| ready(status).is_some()).await?;
        Ok(ready(&status).map(|ready| text(&ready["message"])).unwrap_or_default())
    }

    /// The ids of all machines but the template.
    pub fn machines(&self) -> BTreeSet<u32> {
        self.proxmox.with(|state| state.vms().keys().copied().filter(|id| *id != Setup::TEMPLATE).collect())
    }

    /// Waits until there is a result.
    pub async fn until<T>(&self, what: &str, attempt: impl AsyncFn() -> Option<T>) -> Result<T, UserError> {
        const TIMEOUT: Duration = Duration::from_secs(120);
        let found = poll::with_timeout(Duration::from_millis(2), TIMEOUT, async || Ok(attempt().await)).await?;
        let why = format!("timed out after {} s waiting until {what}", TIMEOUT.as_secs());
        found.ok_or_else(|| UserError::new(why, "this is a bug, please report it with the log of the fleet"))
    }
}

async fn apply(api: &Api<DynamicObject>, object: &Value) -> Result<(), UserError> {
    let (name, params) = (text(&object["metadata"]["name"]), PatchParams::apply("administrator").force());
    api.patch(&name, &params, &Patch::Apply(object)).await.map(|_| ()).map_err(|error| refused(&error))
}

/// A text in an object; empty if there is none.
pub fn text(value: &Value) -> String {
    value.as_str().unwrap_or_default().to_owned()
}
