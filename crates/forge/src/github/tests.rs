//! Whole operations against the stand-in of GitHub over HTTPS.

mod access;
mod faults;
mod hooks;
mod jobs;
mod limits;
mod runners;
mod scale_sets;

use super::Github;
use crate::exchange::Exchange;
use crate::provider::CarryOut;
use crate::settings::{Credentials, Limits, Settings, Tls};
use fleet::forge::{Answer, Ask, Failure, JitConfig, RepositoryName, RunnerWanted, Runners};
use playground::github::{GithubStandIn, Options};
use std::sync::{Arc, Mutex};
use std::time::Duration;

fn start(change: impl FnOnce(&mut Options)) -> GithubStandIn {
    let mut options = Options::for_test();
    change(&mut options);
    GithubStandIn::start(&options).unwrap_or_else(|error| panic!("{error}"))
}

fn app(stand_in: &GithubStandIn) -> Credentials {
    let found = &stand_in.credentials;
    Credentials::App { id: found.client_id.clone(), installation: None, key: found.private_key.as_str().into() }
}

fn person(stand_in: &GithubStandIn) -> Credentials {
    Credentials::Token(stand_in.credentials.token.as_str().into())
}

fn settings(stand_in: &GithubStandIn, path: &str, credentials: Credentials) -> Settings {
    Settings {
        address: format!("{}/{path}", stand_in.address),
        allows_http: false,
        credentials,
        tls: Tls::Authorities(stand_in.ca_pem.clone()),
        limits: Limits { request: Duration::from_secs(5), poll_margin: Duration::from_secs(3), ..Limits::default() },
    }
}

fn connect(settings: &Settings) -> Github {
    Github::new(settings, Arc::new(|_| {})).unwrap()
}

/// An App in the organisation.
fn organization(stand_in: &GithubStandIn) -> Github {
    connect(&settings(stand_in, "acme", app(stand_in)))
}

async fn ask(github: &Github, ask: Ask) -> Result<Answer, Failure> {
    github.carry_out(&ask).await
}

fn wanted(name: &str) -> RunnerWanted {
    RunnerWanted { name: name.into(), labels: ["pve".to_owned(), "self-hosted".to_owned()].into(), group: None }
}

async fn jit(github: &Github, wanted: RunnerWanted) -> JitConfig {
    match ask(github, Ask::JitConfig(wanted)).await {
        Ok(Answer::JitConfig(found)) => found,
        other => panic!("{other:?}"),
    }
}

async fn runners(github: &Github, name: Option<&str>) -> Runners {
    match ask(github, Ask::ListRunners { name: name.map(str::to_owned) }).await {
        Ok(Answer::Runners(found)) => found,
        other => panic!("{other:?}"),
    }
}

fn repository(text: &str) -> RepositoryName {
    RepositoryName::parse(text).unwrap()
}

/// Message and remedy of a failure that a person has to mend.
fn mended_by(answer: Result<Answer, Failure>) -> String {
    match answer {
        Err(failure @ Failure::Configuration { .. }) => failure.to_string(),
        other => panic!("{other:?}"),
    }
}

/// What is reported of requests.
type Reported = Arc<Mutex<Vec<Exchange>>>;

fn observed(settings: &Settings) -> (Github, Reported) {
    let reported: Reported = Arc::default();
    let report = reported.clone();
    let github = Github::new(settings, Arc::new(move |exchange| report.lock().unwrap().push(*exchange))).unwrap();
    (github, reported)
}

/// Between two looks at something that happens soon: without it, a minute has too few points.
async fn a_moment() {
    tokio::time::sleep(Duration::from_millis(10)).await;
}
