//! The queue in lines: each job, and why it waits.

use super::{Line, PoolLine, Report};
use crate::forge::Platform;
use crate::jobs::demand::Wait;
use crate::jobs::job::{State, is_below};
use jiff::Timestamp;
use serde::Serialize;

/// Which jobs are shown.
#[derive(Debug, Clone, Default)]
pub struct Filter {
    /// Also those that run, and those that have ended.
    pub is_all: bool,
    /// Only those of this pool, by its name with or without its namespace.
    pub pool: Option<String>,
    /// Only those of this repository or this owner.
    pub repository: Option<String>,
}

/// One row.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// The id that `explain job` takes.
    pub id: String,
    /// The attempt of its run.
    pub attempt: u32,
    /// `OWNER/NAME`.
    pub repository: String,
    /// The id of its run.
    pub run: u64,
    /// The name of the job.
    pub name: String,
    /// Its labels.
    pub labels: Vec<String>,
    /// How far it is.
    pub state: &'static str,
    /// How long it waits or runs, or since when it has ended, in seconds.
    pub seconds: i64,
    /// Why it waits, in one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    /// The pool that runs it, or that it waits for.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub pool: Option<String>,
    /// The claim of its machine.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub claim: Option<String>,
    /// The runner that has started it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub runner: Option<String>,
    /// How it ended.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conclusion: Option<String>,
    /// Why it waits, where it runs, or how it ended.
    pub why: String,
}

impl Row {
    /// The job as people know it: `acme/web #812 test (2nd try)`.
    pub fn job(&self) -> String {
        let again = if self.attempt > 1 { format!(" ({} try)", ordinal(self.attempt)) } else { String::new() };
        format!("{} #{} {}{again}", self.repository, self.id, self.name)
    }
}

fn ordinal(number: u32) -> String {
    let ending = match (number % 10, number % 100) {
        (_, 11..=13) => "th",
        (1, _) => "st",
        (2, _) => "nd",
        (3, _) => "rd",
        _ => "th",
    };
    format!("{number}{ending}")
}

/// The rows that are shown. `nearest` finds the label that one was perhaps meant to be.
pub fn rows(
    report: &Report,
    filter: &Filter,
    now: Timestamp,
    nearest: impl Fn(&str, &[&str]) -> Option<String>,
) -> Vec<Row> {
    report.jobs.iter().filter(|line| filter.takes(line)).map(|line| row(line, report, now, &nearest)).collect()
}

impl Filter {
    fn takes(&self, line: &Line) -> bool {
        let is_pool = |wanted: &String| {
            line.pool.as_ref().is_some_and(|pool| pool == wanted || pool.split('/').next_back() == Some(wanted))
        };
        let is_repository = |wanted: &String| {
            let wanted = wanted.to_lowercase();
            line.repository == wanted || is_below(&line.repository, &wanted)
        };
        (self.is_all || is_waiting(line))
            && self.pool.as_ref().is_none_or(is_pool)
            && self.repository.as_ref().is_none_or(is_repository)
    }
}

fn is_waiting(line: &Line) -> bool {
    line.state < State::InProgress && line.conclusion.is_none()
}

fn row(line: &Line, report: &Report, now: Timestamp, nearest: &impl Fn(&str, &[&str]) -> Option<String>) -> Row {
    let Line { key, repository, run, name, labels, state, wait, pool, claim, runner, conclusion, platform, .. } = line;
    let is_shown = |wait: &&Wait| is_waiting(line) || matches!(wait, Wait::OnGitHub);
    let wait = wait.as_ref().filter(is_shown);
    let why = match (wait, conclusion) {
        (_, Some(conclusion)) if conclusion == "gone" => {
            format!("{} says that it does not exist any more", platform.name())
        }
        (_, Some(conclusion)) => conclusion.clone(),
        (Some(wait), None) => why(wait, *platform, pool.as_deref(), &report.pools, now, nearest),
        (None, None) => match (claim, runner) {
            (Some(claim), _) => format!("runs on machine {}", name_of(claim)),
            (None, Some(runner)) => format!("runs on {runner}"),
            (None, None) => state.name().to_owned(),
        },
    };
    Row {
        id: key.short(),
        attempt: key.attempt(),
        repository: repository.clone(),
        run: *run,
        name: name.clone(),
        labels: labels.clone(),
        state: state.name(),
        seconds: now.duration_since(line.since).as_secs().max(0),
        reason: wait.map(Wait::reason),
        pool: pool.clone(),
        claim: claim.clone(),
        runner: runner.clone(),
        conclusion: conclusion.clone(),
        why,
    }
}

/// Why a job waits, in a few words; `explain job` has the sentence.
pub fn why(
    wait: &Wait,
    platform: Platform,
    pool: Option<&str>,
    pools: &[PoolLine],
    now: Timestamp,
    nearest: impl Fn(&str, &[&str]) -> Option<String>,
) -> String {
    let found = pool.and_then(|name| pools.iter().find(|pool| pool.name == name));
    let usual = match found.and_then(|pool| pool.usual_start_seconds) {
        Some(seconds) => format!(" of about {}", span(i64::try_from(seconds).unwrap_or(i64::MAX))),
        None => String::new(),
    };
    let since = |since: &Timestamp| now.duration_since(*since).as_secs().max(0);
    let (forge, label) = (platform.name(), if platform.is_github() { "label" } else { "tag" });
    match wait {
        Wait::OnGitHub if !platform.is_github() => "waits on GitLab: a person, a stage or a resource group".into(),
        Wait::OnGitHub => "waits on GitHub: an approval or a concurrency group".into(),
        Wait::NoPool { missing } if missing.is_empty() => "no pool serves its repository".into(),
        Wait::NoPool { missing } => {
            let all: Vec<&str> = pools.iter().flat_map(|pool| &pool.labels).map(String::as_str).collect();
            let near = missing.first().and_then(|label| nearest(label, &all));
            let near = near.map(|near| format!("; nearest: {near}")).unwrap_or_default();
            let many = if missing.len() == 1 { "" } else { "s" };
            format!("no pool has {label}{many} {}{near}", missing.join(", "))
        }
        Wait::Paused { pool } => format!("pool {} is paused", name_of(pool)),
        Wait::NotReady { pool, why } => match found.and_then(|pool| pool.trouble.as_ref()) {
            Some(trouble) => format!("pool {}: {trouble}", name_of(pool)),
            None => format!("pool {} can have no machine now: {why}", name_of(pool)),
        },
        Wait::Quota { of, allowed } => format!("quota of {of} is {allowed}, all busy"),
        Wait::PoolFull { pool, max } => format!("pool {} is full: all {max} machines are in use", name_of(pool)),
        Wait::NoCapacity { pool } => format!("no room on the hypervisor of pool {}", name_of(pool)),
        Wait::Creating { pool } => match found.and_then(|pool| pool.trouble.as_ref()) {
            Some(trouble) => format!("pool {}: {trouble}", name_of(pool)),
            None => format!("a machine of pool {} is being created", name_of(pool)),
        },
        Wait::Booting { claim, since: begun } => {
            format!("machine {} is booting ({}{})", name_of(claim), span(since(begun)), usual)
        }
        Wait::Idle { runner, since: begun } => {
            format!("runner {runner} is ready for {}; {forge} has not given it the job", span(since(begun)))
        }
        Wait::RateLimited { until } => {
            format!("{forge}'s limit of requests is used up for {}", span(until.duration_since(now).as_secs().max(0)))
        }
        Wait::NotAssigned { pool, capacity } => {
            format!("GitHub has not assigned it to pool {}, which has room for {capacity}", name_of(pool))
        }
        Wait::NotListening { pool, is_taken: false } => {
            format!("GitHub's service does not answer for the scale set of pool {}", name_of(pool))
        }
        Wait::NotListening { pool, is_taken: true } => {
            format!("another listener has the session of the scale set of pool {}", name_of(pool))
        }
    }
}

/// A name without its namespace.
fn name_of(name: &str) -> &str {
    name.split_once('/').map_or(name, |(_, name)| name)
}

/// A time span in its two largest units.
pub fn span(seconds: i64) -> String {
    match seconds {
        0..60 => format!("{seconds}s"),
        60..3600 => format!("{}m{:02}s", seconds / 60, seconds % 60),
        3600..86400 => format!("{}h{:02}m", seconds / 3600, seconds % 3600 / 60),
        _ => format!("{}d{:02}h", seconds / 86400, seconds % 86400 / 3600),
    }
}

#[cfg(test)]
mod tests {
    use super::{ordinal, span};

    #[test]
    fn times_and_attempts_are_short() {
        assert_eq!([0, 59, 61, 3_599, 3_661, 90_000].map(span), ["0s", "59s", "1m01s", "59m59s", "1h01m", "1d01h"]);
        assert_eq!(
            [1, 2, 3, 4, 11, 12, 13, 21, 102].map(ordinal),
            ["1st", "2nd", "3rd", "4th", "11th", "12th", "13th", "21st", "102nd"]
        );
    }
}
