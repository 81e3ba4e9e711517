//! The fleet's chapter of the demo: machines on a stand-in of Proxmox VE, from a claim to nothing left. Every step is checked.

use super::story::{check, print_step};
use super::{print, story_of_jobs};
use kube::api::{DynamicObject, ListParams};
use playground::deployment;
use playground::fleet_site::{self, FleetSite, text};
use playground::job_site::JobSite;
use playground::proxmox::Options;
use playground::user_error::refused;
use playground::{Playground, ProxmoxStandIn, UserError};
use serde_json::json;
use std::time::Instant;

const CLUSTER: (&str, &str) = ("HypervisorCluster", "pve");
const TEMPLATE: (&str, &str) = ("HypervisorMachineTemplate", "linux");
const POOL: (&str, &str) = ("RunnerPool", "pool");
const CLAIM: (&str, &str) = ("MachineClaim", "one");

struct Chapter<'a>(FleetSite<'a>);

/// Installs the fleet in a process of its own, and shows machines from their claims to their ends.
pub(super) async fn run(playground: &mut Playground) -> Result<(), UserError> {
    print("\nThe fleet on this cluster, with a stand-in of Proxmox VE:\n")?;
    let proxmox = ProxmoxStandIn::start(&Options::demo())?;
    let account = fleet_site::install(playground).await?;
    let jobs = story_of_jobs::site(&proxmox)?;
    let mut arguments = fleet_site::arguments(&account);
    arguments.extend(jobs.arguments());
    playground.start_program("fleet", &deployment::binary()?, arguments)?;
    let chapter = Chapter(FleetSite { playground, proxmox });
    chapter.connect().await?;
    let machine = chapter.claim().await?;
    let stopped = chapter.pool().await?;
    chapter.leave_others_alone(machine).await?;
    chapter.replace(stopped).await?;
    chapter.end(machine).await?;
    chapter.jobs(&jobs).await
}

impl Chapter<'_> {
    async fn connect(&self) -> Result<(), UserError> {
        self.0.connect("00000000-0000-4000-8000-000000000000").await?;
        let refused = self.0.reason(CLUSTER, "ConfigurationError").await?;
        print_step("A hypervisor with a wrong token: the condition says what to do.", &refused)?;
        self.0.set_token(self.0.token().1).await?;
        let connected = self.0.reason(CLUSTER, "ConnectionSuccessful").await?;
        print_step("The Secret is corrected, and takes effect without a restart.", &connected)
    }

    async fn claim(&self) -> Result<u32, UserError> {
        self.0.add_template().await?;
        let started = Instant::now();
        self.0.claim(CLAIM.1).await?;
        let status = self.0.status(CLAIM, "a machine", |status| status["phase"] == "Ready").await?;
        let id: u32 = text(&status["vmRef"]["vmId"]).parse().unwrap_or_default();
        check(self.0.machines() == [id].into(), "there is not exactly one machine for one claim")?;
        let (node, address) = (text(&status["vmRef"]["node"]), text(&status["networkInfo"]["ipAddress"]));
        let took = started.elapsed().as_secs_f64();
        print_step(
            "A MachineClaim becomes a machine: cloned, configured, started, and its guest agent answers.",
            &format!("machine {id} on {node} has the address {address} after {took:.1} s"),
        )?;
        Ok(id)
    }

    /// Makes a pool of two, and switches one of its machines off.
    async fn pool(&self) -> Result<u32, UserError> {
        let pool = json!({"templateRef": {"name": "linux"}, "scaling": {"minReplicas": 2, "maxReplicas": 3}});
        self.0.create(POOL.0, POOL.1, pool).await?;
        self.0.status(POOL, "two machines", |status| status["readyReplicas"] == 2).await?;
        check(self.0.machines().len() == 3, "a pool of two does not have two machines")?;
        let claims = self.0.api(CLAIM.0).list(&ListParams::default()).await.map_err(|error| refused(&error))?.items;
        let is_of_pool = |claim: &&DynamicObject| claim.metadata.name.as_ref().is_some_and(|name| name != CLAIM.1);
        let id = claims.iter().find(is_of_pool).map(|claim| text(&claim.data["status"]["vmRef"]["vmId"]));
        let id = id.unwrap_or_default().parse().unwrap_or_default();
        self.0.proxmox.with(|state| state.power_off(id));
        print_step(
            "A RunnerPool keeps a number of machines.",
            &format!("2 of 2 machines are ready; now machine {id} switches itself off"),
        )?;
        Ok(id)
    }

    async fn leave_others_alone(&self, machine: u32) -> Result<(), UserError> {
        self.0.proxmox.with(|state| {
            state.remove_vm(machine);
            state.add_foreign_vm(machine, "pve1", "database");
            state.grant("fleet@pve!virtpilot", &format!("/vms/{machine}"), &["VM.Audit"]);
            state.grant("fleet@pve", &format!("/vms/{machine}"), &["VM.Audit"]);
        });
        self.0.delete(CLAIM.0, CLAIM.1).await?;
        self.0.gone(CLAIM.0, CLAIM.1).await?;
        check(self.0.machines().contains(&machine), "the machine of somebody else was destroyed")?;
        print_step(
            "Somebody destroys the first machine, another one gets its id, and then the claim is deleted.",
            &format!("machine {machine} belongs to somebody else now, and is left alone"),
        )
    }

    async fn replace(&self, stopped: u32) -> Result<(), UserError> {
        let is_replaced = async || {
            let now = self.0.machines();
            (!now.contains(&stopped) && now.len() == 3).then_some(())
        };
        self.0.until("the stopped machine is replaced", is_replaced).await?;
        self.0.status(POOL, "two machines again", |status| status["readyReplicas"] == 2).await?;
        print_step(
            "A machine that has stopped is destroyed with its claim, and the pool replaces it.",
            &format!("machine {stopped} is gone, and 2 of 2 machines are ready"),
        )
    }

    async fn end(&self, theirs: u32) -> Result<(), UserError> {
        self.0.delete(CLUSTER.0, CLUSTER.1).await?;
        let in_use = async || {
            let object = self.0.api(CLUSTER.0).get(CLUSTER.1).await.ok()?;
            let conditions = object.data["status"]["conditions"].as_array()?;
            conditions.iter().find(|one| one["type"] == "InUse").map(|one| text(&one["message"]))
        };
        let in_use = self.0.until("the hypervisor says who uses it", in_use).await?;
        print_step("Whoever deletes a hypervisor in use is told for whom it waits.", &in_use)?;
        for (kind, name) in [POOL, TEMPLATE] {
            self.0.delete(kind, name).await?;
        }
        for (kind, name) in [POOL, TEMPLATE, CLUSTER] {
            self.0.gone(kind, name).await?;
        }
        check(self.0.machines() == [theirs].into(), "a machine is left, or somebody else's is gone")?;
        print_step(
            "The pool is deleted: its machines are destroyed first, then everything that was waiting goes.",
            "no machine of the fleet is left",
        )?;
        self.0.proxmox.with(|state| state.remove_vm(theirs));
        Ok(())
    }

    async fn jobs(&self, jobs: &JobSite) -> Result<(), UserError> {
        self.0.connect(self.0.token().1).await?;
        self.0.add_template().await?;
        story_of_jobs::run(&self.0, jobs).await
    }
}
