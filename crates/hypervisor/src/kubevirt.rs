//! Virtual machines of KubeVirt as machines: objects in one namespace of the cluster that the operator runs in.

mod object;
mod requests;
mod seed;
#[cfg(test)]
mod tests;

use crate::exchange::Report;
use crate::gate::Gate;
use crate::provider::Provider;
use crate::settings::Limits;
use fleet::hypervisor::{
    Blueprint, Checked, Delivery, Failure, GuestNetwork, Inspected, Listed, MachineId, Owner, Power, SeedImage,
    SeedSearch, SeedsFound, Target, Template, TemplateRef,
};
use kube::Client;
use kube::api::DynamicObject;
use requests::Requests;
use serde_json::json;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::{Instant, sleep};

/// KubeVirt chooses nodes itself, so that all of them are one.
const NODE: &str = "kubevirt";
/// KubeVirt takes notice of a change within this time.
const SEEN_WITHIN: Duration = Duration::from_secs(60);
/// Between two looks at a machine that is being stopped or deleted.
const PAUSE: Duration = Duration::from_millis(500);

/// Where machines are made.
#[derive(Clone)]
pub struct Settings {
    /// A client for the API server.
    pub client: Client,
    /// Which client it is: another text means another connection.
    pub identity: String,
    /// The namespace of the machines and of their templates.
    pub namespace: String,
    /// How long things may take, and how many at once.
    pub limits: Limits,
}

impl Settings {
    pub(crate) fn is_same(&self, other: &Settings) -> bool {
        (&self.identity, &self.namespace, self.limits) == (&other.identity, &other.namespace, other.limits)
    }
}

/// Virtual machines of KubeVirt in one namespace.
pub struct KubeVirt {
    requests: Requests,
    limits: Limits,
}

impl KubeVirt {
    /// A client that sends at most as many requests at once as the gate lets through.
    pub fn new(settings: &Settings, gate: Arc<Gate>, report: Report) -> KubeVirt {
        KubeVirt { requests: Requests::new(settings, gate, report), limits: settings.limits }
    }

    /// The machine if it is of this owner, read anew.
    async fn owned(&self, id: &MachineId, owner: &Owner) -> Result<DynamicObject, Failure> {
        let Some(machine) = self.requests.read(&id.0).await? else { return Err(Failure::Absent(id.clone())) };
        match object::record(&machine) {
            Some(record) if record.owner == *owner => Ok(machine),
            other => Err(Failure::NotOurs { id: id.clone(), found: other.map(|record| record.owner) }),
        }
    }

    /// Sets how the machine runs, of exactly the object that was read; false if that was set before.
    async fn run(&self, target: &Target, strategy: &str) -> Result<bool, Failure> {
        let machine = self.owned(&target.id, &target.owner).await?;
        if machine.data["spec"]["runStrategy"] == strategy {
            return Ok(false);
        }
        let metadata = json!({"uid": machine.metadata.uid, "resourceVersion": machine.metadata.resource_version});
        // `running` is the older spelling, and only one of both is allowed.
        let patch = json!({"metadata": metadata, "spec": {"runStrategy": strategy, "running": null}});
        self.requests.patch(&target.id.0, &patch).await.map(|()| true)
    }

    /// Waits until the machine is so.
    async fn wait(
        &self,
        target: &Target,
        (limit, otherwise): (Duration, &str),
        is_so: impl Fn(Option<&DynamicObject>) -> bool,
    ) -> Result<(), Failure> {
        let start = Instant::now();
        loop {
            let machine = self.requests.read(&target.id.0).await?;
            // An object with another owner is another machine.
            let machine = machine.filter(|machine| object::owner(machine).as_ref() == Some(&target.owner));
            if is_so(machine.as_ref()) {
                return Ok(());
            }
            if start.elapsed() >= limit {
                let state = machine.map(|machine| machine.data["status"]["printableStatus"].to_string());
                let state = state.unwrap_or_default();
                return Err(Failure::Transient(format!("machine {} {otherwise} in time: {state}", target.id.0)));
            }
            sleep(PAUSE).await;
        }
    }
}

impl Provider for KubeVirt {
    async fn check(&self) -> Result<Checked, Failure> {
        let version = self.requests.version().await?;
        self.requests.list().await?;
        let missing = self.requests.missing_rights().await?;
        Ok(Checked { version, missing, unknown: Vec::new(), is_quorate: true, clock_ahead: 0 })
    }

    async fn list(&self) -> Result<Listed, Failure> {
        let machines = self.requests.list().await?;
        let nodes = self.requests.nodes().await?;
        let machines = machines.iter().map(|machine| (object::id(machine), object::seen(machine))).collect();
        let state = object::capacity(&nodes, &machines);
        Ok(Listed { machines, nodes: [(NODE.to_owned(), state)].into(), storages: Default::default() })
    }

    async fn find_template(&self, wanted: &TemplateRef) -> Result<Vec<Template>, Failure> {
        object::choose_template(&self.requests.list().await?, wanted).map(|template| vec![template])
    }

    async fn inspect(&self, id: &MachineId) -> Result<Option<Inspected>, Failure> {
        let Some(machine) = self.requests.read(&id.0).await? else { return Ok(None) };
        let record = object::record(&machine);
        let is_configured = record.as_ref().is_some_and(|record| record.is_configured);
        let owner = record.map(|record| record.owner);
        Ok(Some(Inspected { seen: object::seen(&machine), owner, is_configured }))
    }

    async fn create(&self, blueprint: &Blueprint) -> Result<(), Failure> {
        let Some(template) = self.requests.read(&blueprint.template.id.0).await? else {
            return Err(Failure::Configuration {
                message: format!("there is no VirtualMachine {} to copy", blueprint.template.id.0),
                remedy: "name a template that exists in the namespace of the machines".into(),
            });
        };
        let machine = object::copy(&template, blueprint)?;
        self.requests.create(&machine).await
    }

    async fn configure(&self, blueprint: &Blueprint) -> Result<(), Failure> {
        let machine = self.owned(&blueprint.id, &blueprint.owner).await?;
        let mut wanted = machine.clone();
        let secret = object::configure(&mut wanted, blueprint)?;
        if wanted == machine {
            return Ok(());
        }
        if let Some(secret) = secret {
            self.requests.create_seed(&secret).await?;
        }
        self.requests.replace(&wanted).await
    }

    async fn start(&self, target: &Target) -> Result<(), Failure> {
        // A machine that powers itself off stays off.
        if !self.run(target, "Once").await? {
            // It was started before: whether it runs is what its state says.
            return Ok(());
        }
        // Until KubeVirt has seen the change it still says that the machine is stopped.
        let is_seen = |machine: &DynamicObject| object::seen(machine).power != Power::Stopped;
        self.wait(target, (SEEN_WITHIN, "is not started"), |machine| machine.is_none_or(is_seen)).await
    }

    async fn stop(&self, target: &Target) -> Result<(), Failure> {
        self.run(target, "Halted").await?;
        let is_stopped = |machine: &DynamicObject| object::seen(machine).power == Power::Stopped;
        self.wait(target, (self.limits.task, "has not stopped"), |machine| machine.is_none_or(is_stopped)).await
    }

    async fn destroy(&self, target: &Target) -> Result<(), Failure> {
        let machine = self.owned(&target.id, &target.owner).await?;
        self.requests.delete(&machine).await?;
        self.wait(target, (self.limits.task, "is not gone"), |machine| machine.is_none()).await
    }

    async fn look(&self, target: &Target) -> Result<Option<String>, Failure> {
        self.owned(&target.id, &target.owner).await.map(|machine| object::halted(&machine))
    }

    async fn addresses(&self, target: &Target) -> Result<Option<GuestNetwork>, Failure> {
        self.owned(&target.id, &target.owner).await?;
        self.requests.addresses(&target.id.0).await
    }

    /// The seed is a Secret that the object owns, and goes with it.
    async fn remove_seed(&self, target: &Target) -> Result<(), Failure> {
        self.owned(&target.id, &target.owner).await.map(|_| ())
    }

    async fn deliver(&self, _delivery: &Delivery) -> Result<bool, Failure> {
        Err(Failure::Permanent(
            "KubeVirt keeps cloud-init in a Secret of the VirtualMachine; remove cloudInit.delivery".into(),
        ))
    }

    async fn list_seeds(&self, _search: &SeedSearch) -> Result<SeedsFound, Failure> {
        Ok(SeedsFound::default())
    }

    async fn delete_seed(&self, image: &SeedImage) -> Result<(), Failure> {
        Err(Failure::Permanent(format!("KubeVirt has no image {}", image.volume)))
    }
}
