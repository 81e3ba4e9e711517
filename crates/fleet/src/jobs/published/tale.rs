//! The whole story of one job: what it is, where it is, what it waited for and how long, and what would make it start.

use super::queue::span;
use super::{Line, PoolLine, Report};
use crate::jobs::demand::Wait;
use crate::jobs::explain::{note, wait as sentence};
use crate::jobs::job::{State, is_below};
use jiff::Timestamp;
use serde::Serialize;

/// The story.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Tale {
    /// The job as people know it.
    pub job: String,
    /// Where it is, in a sentence.
    pub state: String,
    /// What a person can do, with the command; nothing if nobody has to do anything.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub next: Option<String>,
    /// What is known of it.
    pub facts: Vec<(&'static str, String)>,
    /// What happened, the oldest first.
    pub steps: Vec<Step>,
    /// All fields of the document.
    pub line: Line,
}

/// One step.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Step {
    /// When, on the clock of the fleet.
    pub at: Timestamp,
    /// How long it was like that, in seconds: until the next step, or until now.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub seconds: Option<i64>,
    /// What, in a sentence.
    pub what: String,
}

/// The story of a job.
pub fn tale(line: &Line, report: &Report, now: Timestamp) -> Tale {
    let pool = line.pool.as_ref().and_then(|name| report.pools.iter().find(|pool| pool.name == *name));
    let attempt = match line.key.attempt() {
        1 => String::new(),
        attempt => format!(" (attempt {attempt})"),
    };
    Tale {
        job: format!("{} #{} {}{attempt}", line.repository, line.key.short(), line.name),
        state: state(line, now),
        next: next(line, pool, report, now),
        facts: facts(line, pool),
        steps: steps(line, now),
        line: line.clone(),
    }
}

fn state(line: &Line, now: Timestamp) -> String {
    let since = span(seconds(line.since, now));
    match (&line.conclusion, line.state) {
        (Some(conclusion), _) if conclusion == "gone" => {
            format!("gone: {} says that it does not exist any more", line.platform.name())
        }
        (Some(conclusion), _) => format!("completed: {conclusion}, {since} ago"),
        (None, State::Completed) => format!("completed {since} ago; how it ended is not known"),
        (None, State::InProgress) => {
            let place = line.claim.as_ref().map(|claim| format!(" on machine {claim}"));
            let place = place.or_else(|| line.runner.as_ref().map(|runner| format!(" on runner {runner}")));
            format!("in progress for {since}{}", place.unwrap_or_default())
        }
        (None, state) => {
            let why = line
                .wait
                .as_ref()
                .map_or_else(|| "nothing was decided yet".into(), |wait| sentence(wait, line.platform, now));
            format!("{} for {since}: {why}", state.name())
        }
    }
}

fn seconds(since: Timestamp, now: Timestamp) -> i64 {
    now.duration_since(since).as_secs().max(0)
}

fn facts(line: &Line, pool: Option<&PoolLine>) -> Vec<(&'static str, String)> {
    let mut facts = Vec::new();
    let labels =
        if line.labels.is_empty() { "none: it asks for a runner group".into() } else { line.labels.join(", ") };
    let is_github = line.platform.is_github();
    facts.push((if is_github { "labels" } else { "tags" }, labels));
    facts.push((if is_github { "run" } else { "pipeline" }, format!("{} of {}", line.run, line.repository)));
    if let Some(name) = &line.pool {
        let counts = pool.map(|pool| {
            let PoolLine { busy, idle, starting, max, waiting, .. } = pool;
            let jobs = if *waiting == 1 { "1 job waits".to_owned() } else { format!("{waiting} jobs wait") };
            format!(": {busy} busy, {idle} idle, {starting} starting, at most {max}; {jobs} for it")
        });
        facts.push(("pool", format!("{name}{}", counts.unwrap_or_default())));
    }
    if let Some(claim) = &line.claim {
        facts.push(("machine", claim.clone()));
    }
    if let Some(runner) = &line.runner {
        facts.push(("runner", runner.clone()));
    }
    if let Some(created) = line.created {
        facts.push(("created", format!("{created:.0} on {}", line.platform.name())));
    }
    let late = line.created.map(|created| format!(", {} after its creation", span(seconds(created, line.seen))));
    facts.push(("seen", format!("{:.0} by {}{}", line.seen, line.source.name(), late.unwrap_or_default())));
    if let Some(started) = line.started {
        let waited = line.created.map(|created| format!(", after {}", span(seconds(created, started))));
        facts.push(("started", format!("{started:.0}{}", waited.unwrap_or_default())));
    }
    if let Some(completed) = line.completed {
        let ran = line.started.map(|started| format!(", after {}", span(seconds(started, completed))));
        facts.push(("ended", format!("{completed:.0}{}", ran.unwrap_or_default())));
    }
    if let Some(conclusion) = &line.conclusion {
        facts.push(("result", conclusion.clone()));
    }
    facts
}

fn steps(line: &Line, now: Timestamp) -> Vec<Step> {
    let mut steps = Vec::new();
    for (number, found) in line.story.iter().enumerate() {
        if let Some((count, _)) = line.left_out.filter(|(_, after)| *after == number) {
            steps.push(Step { at: found.at, seconds: None, what: format!("({count} entries are left out)") });
        }
        let until = match line.story.get(number + 1) {
            Some(next) => Some(next.at),
            None => (!line.is_over()).then_some(now),
        };
        steps.push(Step {
            at: found.at,
            seconds: until.map(|until| seconds(found.at, until)),
            what: note(found, line.platform),
        });
    }
    steps
}

/// What would make it start, with the next command.
fn next(line: &Line, pool: Option<&PoolLine>, report: &Report, now: Timestamp) -> Option<String> {
    if line.is_over() || line.state == State::InProgress {
        return None;
    }
    let kubectl = |verb: &str, name: &str, rest: &str| {
        let (namespace, name) = name.split_once('/').unwrap_or(("default", name));
        format!("kubectl {verb} runnerpool {name} --namespace {namespace}{rest}")
    };
    let explain = |what: &str, name: &str| {
        let (namespace, name) = name.split_once('/').unwrap_or(("default", name));
        format!("virtpilot fleet explain {what}{name} --namespace {namespace}")
    };
    if let Some(trouble) = pool.and_then(|pool| pool.trouble.as_ref()) {
        let name = pool.map_or("", |pool| pool.name.as_str());
        return Some(format!("{trouble}; {}", explain("pool/", name)));
    }
    let is_github = line.platform.is_github();
    Some(match line.wait.as_ref()? {
        Wait::OnGitHub if !is_github => {
            format!(
                "start it on GitLab, or wait for the jobs before it: open pipeline {} of {}",
                line.run, line.repository
            )
        }
        Wait::OnGitHub => format!(
            "approve its deployment on GitHub, or wait for the jobs of its concurrency group: open run {} of {}",
            line.run, line.repository
        ),
        Wait::NoPool { missing } => {
            let of = |pool: &&PoolLine| is_below(&line.repository, &pool.scope);
            let (asked, label) = if is_github { ("runs-on", "label") } else { ("the tags", "tag") };
            let guide = if is_github { "github-runners" } else { "gitlab-runners" };
            match report.pools.iter().find(of) {
                Some(pool) if !missing.is_empty() => format!(
                    "correct {asked} of the job, or add the {label} {} to a pool: {}",
                    missing.join(", "),
                    kubectl("edit", &pool.name, "")
                ),
                Some(pool) => format!("add {} to a pool: {}", line.repository, kubectl("edit", &pool.name, "")),
                None => format!("create a RunnerPool for {}: docs/{guide}.md", line.repository),
            }
        }
        Wait::Paused { pool } => format!("resume the pool: {}", kubectl("edit", pool, "")),
        Wait::NotReady { pool, .. } => explain("pool/", pool),
        Wait::Quota { of, .. } => {
            let busy = format!("virtpilot queue --all --repository {of}");
            format!("wait until one of its jobs ends, or raise its quota; {busy} shows what runs")
        }
        Wait::PoolFull { pool, max } => {
            let patch = format!(
                " --type merge --patch '{{\"spec\":{{\"scaling\":{{\"maxReplicas\":{}}}}}}}'",
                max.saturating_mul(2).max(1)
            );
            format!("wait until a job ends, or let the pool have more machines: {}", kubectl("patch", pool, &patch))
        }
        Wait::NoCapacity { pool } => format!("wait until a machine ends, or make room: {}", explain("pool/", pool)),
        Wait::Creating { pool } => explain("pool/", pool),
        Wait::Booting { claim, .. } => explain("", claim),
        Wait::Idle { since, .. } if seconds(*since, now) < 120 => {
            format!("nothing: {} usually gives it the job within seconds", line.platform.name())
        }
        Wait::Idle { .. } if !is_github => format!(
            "check that group runners are enabled in the CI/CD settings of {}, and that its tags have the case of those of the pool",
            line.repository
        ),
        Wait::Idle { .. } => format!(
            "check that the runner group of the pool serves {}, and the version of the runner: {}",
            line.repository,
            line.pool.as_ref().map_or_else(|| "virtpilot fleet list".into(), |pool| explain("pool/", pool))
        ),
        Wait::RateLimited { until } if !is_github => format!("nothing: it goes on by itself at {until}"),
        Wait::RateLimited { until } => {
            format!("nothing: it goes on by itself at {until}; a GitHub App has a limit of its own")
        }
        Wait::NotAssigned { pool, capacity: 0 } => {
            format!("make room for another machine of the pool: {}", explain("pool/", pool))
        }
        Wait::NotAssigned { .. } => format!(
            "check on GitHub that the runner group of the scale set serves {}, and that its labels are those of the job",
            line.repository
        ),
        Wait::NotListening { is_taken: false, .. } => {
            "nothing: it goes on when GitHub answers; see https://www.githubstatus.com".into()
        }
        Wait::NotListening { pool, is_taken: true } => format!(
            "stop the other listener of the scale set, or give the pool another one: {}",
            kubectl("edit", pool, "")
        ),
    })
}
