//! The client against the stand-in of GitLab, over HTTPS.

mod access;
mod faults;
mod jobs;
mod runners;

use super::Gitlab;
use crate::provider::CarryOut;
use crate::settings::{Credentials, Limits, Settings, Tls};
use fleet::forge::{Answer, Ask, Checked, Failure, JitConfig, RepositoryName, RunnerWanted, Runners};
use playground::gitlab::{GitlabStandIn, Setup};
use std::sync::Arc;
use std::time::Duration;

fn start(change: impl FnOnce(&mut Setup)) -> GitlabStandIn {
    let mut setup = Setup::group();
    change(&mut setup);
    GitlabStandIn::start(&setup).unwrap_or_else(|error| panic!("{error}"))
}

fn settings(stand_in: &GitlabStandIn, path: &str, token: &str) -> Settings {
    Settings {
        address: format!("{}/{path}", stand_in.address),
        allows_http: false,
        credentials: Credentials::Token(token.into()),
        tls: Tls::Authorities(stand_in.ca_pem.clone()),
        limits: Limits { request: Duration::from_secs(5), ..Limits::default() },
    }
}

fn connect(settings: &Settings) -> Gitlab {
    Gitlab::new(settings, Arc::new(|_| {})).unwrap()
}

/// The group with the token that has the least rights.
fn group(stand_in: &GitlabStandIn) -> Gitlab {
    connect(&settings(stand_in, "acme", Setup::TOKEN))
}

async fn ask(gitlab: &Gitlab, ask: Ask) -> Result<Answer, Failure> {
    gitlab.carry_out(&ask).await
}

fn wanted(name: &str, labels: &[&str]) -> RunnerWanted {
    RunnerWanted { name: name.into(), labels: labels.iter().map(|&label| label.to_owned()).collect(), group: None }
}

async fn jit(gitlab: &Gitlab, name: &str, labels: &[&str]) -> JitConfig {
    match ask(gitlab, Ask::JitConfig(wanted(name, labels))).await {
        Ok(Answer::JitConfig(found)) => found,
        other => panic!("{other:?}"),
    }
}

async fn runners(gitlab: &Gitlab, name: Option<&str>) -> Runners {
    match ask(gitlab, Ask::ListRunners { name: name.map(str::to_owned) }).await {
        Ok(Answer::Runners(found)) => found,
        other => panic!("{other:?}"),
    }
}

async fn checked(gitlab: &Gitlab) -> Checked {
    match ask(gitlab, Ask::Check).await {
        Ok(Answer::Checked(found)) => *found,
        other => panic!("{other:?}"),
    }
}

fn repository(path: &str) -> RepositoryName {
    fleet::forge::gitlab::project(path).unwrap()
}

/// Message and remedy of a failure that a person has to mend.
fn mended_by(answer: Result<Answer, Failure>) -> String {
    match answer {
        Err(failure @ Failure::Configuration { .. }) => failure.to_string(),
        other => panic!("{other:?}"),
    }
}

/// The token of a runner, as its machine has it.
fn token_of(stand_in: &GitlabStandIn, runner: fleet::forge::RunnerId) -> String {
    stand_in.with(|state, _| state.runners()[&runner.0].token.clone())
}
