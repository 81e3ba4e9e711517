//! Jobs in sentences: the queue, and what happened to one job.

use super::demand::Wait;
use super::dispatch::Dispatch;
use super::job::{JobKey, State};
use super::story::{Note, What};
use super::table::Job;
use jiff::Timestamp;

/// Why a job waits, and what would change that.
pub fn wait(wait: &Wait, now: Timestamp) -> String {
    match wait {
        Wait::OnGitHub => {
            "it waits on GitHub: for an approval of its environment, or for another job of its concurrency group".into()
        }
        Wait::NoPool { missing } if missing.is_empty() => {
            "no RunnerPool serves its repository; create one, or add the repository to one".into()
        }
        Wait::NoPool { missing } => format!(
            "no RunnerPool of its repository has the label {}; correct runs-on of the job, or add the label to a pool",
            missing.join(", ")
        ),
        Wait::Paused { pool } => format!("pool {pool} is paused; resume it"),
        Wait::Quota { of, allowed } => {
            format!("{of} has as many machines as its quota of {allowed} allows; the next one that ends makes room")
        }
        Wait::PoolFull { pool, max } => {
            format!(
                "pool {pool} has as many machines as its maximum of {max} allows; raise maxReplicas, or wait for one to end"
            )
        }
        Wait::NoCapacity { pool } => format!("the hypervisor of pool {pool} has no room for another machine"),
        Wait::Creating { pool } => format!("a machine of pool {pool} is being created"),
        Wait::Booting { claim, since } => format!("machine {claim} has been booting for {}", span(*since, now)),
        Wait::Idle { runner, since } => format!(
            "runner {runner} has been online for {} and GitHub has not given it a job yet{}",
            span(*since, now),
            if seconds(*since, now) < 120 {
                ""
            } else {
                "; check that its runner group serves the repository, and its version"
            }
        ),
        Wait::RateLimited { until } => {
            format!("the limit of requests to GitHub is used up until {until}, so that no runner can be registered")
        }
        Wait::NotAssigned { pool, capacity } => {
            format!(
                "GitHub has not assigned it to the scale set of pool {pool}, which reports room for {capacity} jobs"
            )
        }
    }
}

fn seconds(since: Timestamp, now: Timestamp) -> i64 {
    now.duration_since(since).as_secs().max(0)
}

/// A time span in its two largest units.
fn span(since: Timestamp, now: Timestamp) -> String {
    let seconds = seconds(since, now);
    match seconds {
        0..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {} s", seconds / 60, seconds % 60),
        _ => format!("{} h {} min", seconds / 3600, seconds % 3600 / 60),
    }
}

/// What happened, in a sentence.
pub fn note(note: &Note) -> String {
    match &note.what {
        What::Became { state: State::InProgress, source, runner: Some(runner) } => {
            format!("runner {runner} has started it, as {} says", source.name())
        }
        What::Became { state, source, .. } => format!("it is {}, as {} says", state.name(), source.name()),
        What::Waits(found) => wait(found, note.at),
        What::NotListed => "GitHub did not list it among the open jobs; it is looked up".into(),
        What::Absent => "GitHub says that it does not exist any more".into(),
        What::ListedAgain => "GitHub lists it again".into(),
        What::MachineFailed(why) => format!("{why}; the job needs another machine"),
    }
}

/// One row of the queue.
#[derive(Debug, Clone, PartialEq, Eq, serde::Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Row {
    /// The job.
    pub job: JobKey,
    /// `OWNER/NAME`.
    pub repository: String,
    /// The name of the job.
    pub name: String,
    /// Its labels.
    pub labels: Vec<String>,
    /// How far it is.
    pub state: &'static str,
    /// How long it waits or runs, in seconds.
    pub seconds: i64,
    /// Why it waits, in one word.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<&'static str>,
    /// Where it runs, or why it waits.
    pub message: String,
}

/// All open jobs: those that wait first, the one that waits longest first.
pub fn queue(dispatch: &Dispatch, now: Timestamp) -> Vec<Row> {
    let mut jobs: Vec<&Job> = dispatch.table().all().filter(|job| job.is_open()).collect();
    jobs.sort_by_key(|job| (job.facts.state, job.since(), job.facts.key));
    let row = |job: &&Job| {
        let facts = &job.facts;
        let why = dispatch.waits().get(&facts.key);
        let since = if facts.state < State::InProgress { job.since() } else { facts.started.unwrap_or(job.changed) };
        let message = match (&facts.runner, why) {
            (Some(runner), _) if facts.state == State::InProgress => format!("runs on {runner}"),
            (_, Some(why)) => wait(why, now),
            (_, None) => facts.state.name().to_owned(),
        };
        Row {
            job: facts.key,
            repository: facts.repository.to_string(),
            name: facts.name.clone(),
            labels: facts.labels.iter().cloned().collect(),
            state: facts.state.name(),
            seconds: seconds(since, now),
            reason: why.map(Wait::reason),
            message,
        }
    };
    jobs.iter().map(row).collect()
}

/// What is known of one job, line by line.
pub fn job(dispatch: &Dispatch, key: &JobKey, now: Timestamp) -> Option<Vec<String>> {
    let job = dispatch.table().get(key)?;
    let facts = &job.facts;
    let labels = facts.labels.iter().cloned().collect::<Vec<String>>().join(", ");
    let mut lines = vec![
        format!("job {} {:?} of {}, run {}", facts.key, facts.name, facts.repository, facts.run),
        format!("runs on: {}", if labels.is_empty() { "a runner group" } else { &labels }),
        state_line(job, dispatch.waits().get(key), now),
        String::new(),
    ];
    for (number, found) in job.story.notes().enumerate() {
        if number == job.story.beginning() && job.story.left_out() > 0 {
            lines.push(format!("({} entries are left out)", job.story.left_out()));
        }
        lines.push(format!("{}  {}", found.at, note(found)));
    }
    Some(lines)
}

fn state_line(job: &Job, why: Option<&Wait>, now: Timestamp) -> String {
    let facts = &job.facts;
    match facts.state {
        _ if job.is_gone() => "gone: GitHub says that it does not exist any more".into(),
        State::Completed => {
            format!("completed: {}", facts.conclusion.as_deref().unwrap_or("its conclusion is not known"))
        }
        State::InProgress => {
            format!("in progress on {}", facts.runner.as_deref().unwrap_or("a runner that is not known"))
        }
        state => {
            let why = why.map_or_else(|| "nothing was decided yet".to_owned(), |why| wait(why, now));
            format!("{} for {}: {why}", state.name(), span(job.since(), now))
        }
    }
}

#[cfg(test)]
mod tests;
