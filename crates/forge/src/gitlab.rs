//! GitLab, in the cloud or self-managed, by its REST API: runners of a server, a group or a project, and the jobs that wait for them.

mod check;
mod client;
mod jobs;
mod runners;
#[cfg(test)]
mod tests;
mod trouble;
mod wire;

use crate::exchange::Report;
use crate::gate::Gates;
use crate::provider::CarryOut;
use crate::settings::Settings;
use client::Client;
use fleet::forge::{Answer, Ask, Failure};
use futures::future::BoxFuture;
use runners::Registrations;
use std::sync::Arc;

/// One GitLab, for the runners of a server, a group or a project.
pub struct Gitlab {
    client: Client,
    registrations: Registrations,
}

impl Gitlab {
    /// Says what is wrong with the settings; nothing is sent.
    pub fn new(settings: &Settings, report: Report) -> Result<Gitlab, Failure> {
        Gitlab::sharing(settings, Gates::new(settings.limits.budget), report)
    }

    /// The same with a budget that other connections use, too.
    pub(crate) fn sharing(settings: &Settings, gates: Arc<Gates>, report: Report) -> Result<Gitlab, Failure> {
        let client = Client::new(settings, gates, report).map_err(|(message, remedy)| Failure::Configuration {
            message: format!("connecting: {message}"),
            remedy,
        })?;
        Ok(Gitlab { client, registrations: Registrations::default() })
    }
}

/// What GitLab does not have.
fn unknown(what: &str, instead: &str) -> Result<Answer, Failure> {
    Err(Failure::Permanent(format!("GitLab has no {what}: {instead}")))
}

impl CarryOut for Gitlab {
    fn carry_out<'a>(&'a self, ask: &'a Ask) -> BoxFuture<'a, Result<Answer, Failure>> {
        let client = &self.client;
        Box::pin(async move {
            match ask {
                Ask::Check => check::check(client).await,
                Ask::JitConfig(wanted) => self.registrations.register(client, wanted).await,
                Ask::ListRunners { name } => runners::list(client, name.as_deref()).await,
                Ask::RemoveRunner(runner) => runners::remove(client, *runner).await,
                Ask::ListJobs { repositories } => jobs::list(client, repositories.as_ref()).await,
                Ask::Job { repository, id } => jobs::read(client, repository, *id).await,
                Ask::RunnerVersions => unknown("list of versions of its runner", "install the runner in the template"),
                Ask::FindHook { .. } | Ask::Deliveries { .. } | Ask::Redeliver { .. } => unknown(
                    "list of deliveries with their times",
                    "the list of jobs finds those whose webhook was lost",
                ),
                Ask::ScaleSet(_) => unknown("scale sets", "use webhooks and the list of jobs"),
            }
        })
    }
}
