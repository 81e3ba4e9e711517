//! GitHub, in the cloud or an enterprise server, by its REST API and its service of scale sets.

mod check;
pub(crate) mod client;
mod hooks;
mod jobs;
mod jwt;
mod login;
mod runners;
mod scale_sets;
mod service;
mod sessions;
mod tags;
#[cfg(test)]
mod tests;
pub(crate) mod trouble;
mod wire;

use crate::exchange::Report;
use crate::gate::Gates;
use crate::provider::CarryOut;
use crate::settings::Settings;
use client::Client;
use fleet::forge::{Answer, Ask, Failure, ScaleSetAsk};
use futures::future::BoxFuture;
use runners::Groups;
use service::Service;
use sessions::Sessions;
use std::sync::Arc;
use trouble::{Context, Need};

/// One GitHub, for the runners of one enterprise, organisation or repository.
pub struct Github {
    client: Client,
    groups: Groups,
    service: Service,
    sessions: Sessions,
}

impl Github {
    /// Says what is wrong with the settings; nothing is sent.
    pub fn new(settings: &Settings, report: Report) -> Result<Github, Failure> {
        Github::sharing(settings, Gates::new(settings.limits.budget), report)
    }

    /// The same with budgets that other connections use, too.
    pub(crate) fn sharing(settings: &Settings, gates: Arc<Gates>, report: Report) -> Result<Github, Failure> {
        let client = Client::new(settings, gates, report).map_err(|trouble| {
            let scope = fleet::forge::Scope::Organization(String::new());
            let host = crate::transport::host(&settings.address).rsplit('@').next().unwrap_or_default();
            trouble.failure("connecting", Need::Metadata, &Context { host, scope: &scope, is_app: false })
        })?;
        let service = Service::new(settings.allows_http);
        Ok(Github { client, groups: Groups::default(), service, sessions: Sessions::default() })
    }

    async fn scale_set(&self, ask: &ScaleSetAsk) -> Result<Answer, Failure> {
        let (client, service, sessions) = (&self.client, &self.service, &self.sessions);
        match ask {
            ScaleSetAsk::Find { name, group } => scale_sets::find(client, service, name, group.as_deref()).await,
            ScaleSetAsk::Ensure(wanted) => scale_sets::ensure(client, service, wanted).await,
            ScaleSetAsk::Read(set) => scale_sets::read(client, service, *set).await,
            ScaleSetAsk::Delete(set) => scale_sets::delete(client, service, *set).await,
            ScaleSetAsk::JitConfig { set, name } => scale_sets::jit_config(client, service, *set, name).await,
            ScaleSetAsk::RemoveRunner(runner) => scale_sets::remove_runner(client, service, *runner).await,
            ScaleSetAsk::Open { set, owner } => sessions.open(client, service, *set, owner).await,
            ScaleSetAsk::Poll { session, last, capacity } => {
                sessions.poll(client, service, session, *last, *capacity).await
            }
            ScaleSetAsk::Acknowledge { session, message } => {
                sessions.acknowledge(client, service, session, *message).await
            }
            ScaleSetAsk::Acquire { session, requests } => sessions.acquire(client, service, session, requests).await,
            ScaleSetAsk::Close(session) => sessions.close(client, service, session).await,
        }
    }
}

impl CarryOut for Github {
    fn carry_out<'a>(&'a self, ask: &'a Ask) -> BoxFuture<'a, Result<Answer, Failure>> {
        let client = &self.client;
        Box::pin(async move {
            match ask {
                Ask::Check => check::check(client).await,
                Ask::RunnerVersions => runners::versions(client).await,
                Ask::JitConfig(wanted) => self.groups.jit_config(client, wanted).await,
                Ask::ListRunners { name } => runners::list(client, name.as_deref()).await,
                Ask::RemoveRunner(runner) => runners::remove(client, *runner).await,
                Ask::ListJobs { repositories } => jobs::list(client, repositories.as_ref()).await,
                Ask::Job { repository, id } => jobs::read(client, repository, *id).await,
                Ask::FindHook { address } => hooks::find(client, address.as_deref()).await,
                Ask::Deliveries { hook, since } => hooks::deliveries(client, *hook, *since).await,
                Ask::Redeliver { hook, delivery } => hooks::redeliver(client, *hook, *delivery).await,
                Ask::ScaleSet(ask) => self.scale_set(ask).await,
            }
        })
    }

    fn close(&self) -> BoxFuture<'_, ()> {
        Box::pin(self.sessions.close_all(&self.client, &self.service))
    }
}
