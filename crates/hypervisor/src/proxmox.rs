//! Proxmox VE, by its API.

mod addresses;
mod agent;
mod check;
mod class;
mod client;
mod configure;
mod create;
mod destroy;
mod guest_script;
mod images;
mod list;
mod login;
mod machine;
mod power;
mod privileges;
mod resources;
mod roster;
mod task;
mod template;
#[cfg(test)]
mod tests;
mod tls;
mod trouble;
mod unseen;
mod used;
mod wire;

use crate::exchange::Report;
use crate::gate::Gate;
use crate::provider::Provider;
use crate::settings::Settings;
use client::Client;
use fleet::hypervisor::{
    Blueprint, Checked, Delivery, Failure, GuestNetwork, Inspected, Listed, MachineId, SeedImage, SeedSearch,
    SeedsFound, Target, Template, TemplateRef,
};
use std::sync::Arc;

/// One Proxmox VE, a single node or a cluster. Any node answers for all.
pub struct Proxmox {
    client: Client,
}

impl Proxmox {
    /// A client that sends at most as many requests at once as the gate lets through. Says what is wrong with the settings; nothing is
    /// sent.
    pub fn new(settings: &Settings, gate: Arc<Gate>, report: Report) -> Result<Proxmox, Failure> {
        let client = Client::new(settings, gate, report);
        let client = client.map_err(|trouble| trouble.failure("connecting"))?;
        Ok(Proxmox { client })
    }
}

impl Provider for Proxmox {
    async fn check(&self) -> Result<Checked, Failure> {
        check::check(&self.client).await
    }

    async fn list(&self) -> Result<Listed, Failure> {
        list::list(&self.client).await
    }

    async fn find_template(&self, wanted: &TemplateRef) -> Result<Vec<Template>, Failure> {
        template::find(&self.client, wanted).await
    }

    async fn inspect(&self, id: &MachineId) -> Result<Option<Inspected>, Failure> {
        machine::inspect(&self.client, id).await
    }

    async fn create(&self, blueprint: &Blueprint) -> Result<(), Failure> {
        create::create(&self.client, blueprint).await
    }

    async fn configure(&self, blueprint: &Blueprint) -> Result<(), Failure> {
        configure::configure(&self.client, blueprint).await
    }

    async fn start(&self, target: &Target) -> Result<(), Failure> {
        power::start(&self.client, target).await
    }

    async fn stop(&self, target: &Target) -> Result<(), Failure> {
        power::stop(&self.client, target).await
    }

    async fn destroy(&self, target: &Target) -> Result<(), Failure> {
        destroy::destroy(&self.client, target).await
    }

    async fn look(&self, target: &Target) -> Result<Option<String>, Failure> {
        machine::look(&self.client, target).await
    }

    async fn addresses(&self, target: &Target) -> Result<Option<GuestNetwork>, Failure> {
        addresses::addresses(&self.client, target).await
    }

    async fn remove_seed(&self, target: &Target) -> Result<(), Failure> {
        images::detach(&self.client, target).await
    }

    async fn deliver(&self, delivery: &Delivery) -> Result<bool, Failure> {
        agent::deliver(&self.client, delivery).await
    }

    async fn list_seeds(&self, search: &SeedSearch) -> Result<SeedsFound, Failure> {
        images::list(&self.client, search).await
    }

    async fn delete_seed(&self, image: &SeedImage) -> Result<(), Failure> {
        images::delete(&self.client, image).await
    }
}
