//! Why a job waits and what happened to it, in sentences.

use super::demand::Wait;
use super::job::State;
use super::story::{Note, What};
use crate::forge::Platform;
use jiff::Timestamp;

/// Why a job waits, and what would change that.
pub fn wait(wait: &Wait, platform: Platform, now: Timestamp) -> String {
    let forge = platform.name();
    match wait {
        Wait::OnGitHub if !platform.is_github() => {
            "it waits on GitLab: for a person to start it, an earlier stage, or another job of its resource group"
                .into()
        }
        Wait::OnGitHub => {
            "it waits on GitHub: for an approval of its environment, or for another job of its concurrency group".into()
        }
        Wait::NoPool { missing } if missing.is_empty() => {
            "no RunnerPool serves its repository; create one, or add the repository to one".into()
        }
        Wait::NoPool { missing } if !platform.is_github() => format!(
            "no RunnerPool of its project has the tag {}; correct the tags of the job, or add the tag to a pool",
            missing.join(", ")
        ),
        Wait::NoPool { missing } => format!(
            "no RunnerPool of its repository has the label {}; correct runs-on of the job, or add the label to a pool",
            missing.join(", ")
        ),
        Wait::Paused { pool } => format!("pool {pool} is paused; resume it"),
        Wait::NotReady { pool, why } => {
            format!("no machine can be made for pool {pool} now: {why}; its conditions say what helps")
        }
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
            "runner {runner} has been online for {} and {forge} has not given it a job yet{}",
            span(*since, now),
            match (seconds(*since, now) < 120, platform) {
                (true, _) => "",
                (false, Platform::GitHub) => "; check that its runner group serves the repository, and its version",
                (false, Platform::GitLab) => {
                    "; check that its project has group runners enabled, and that its tags have the case of those of the pool"
                }
            }
        ),
        Wait::RateLimited { until } => {
            format!("the limit of requests to {forge} is used up until {until}, so that no runner can be registered")
        }
        Wait::NotAssigned { pool, capacity } => {
            format!(
                "GitHub has not assigned it to the scale set of pool {pool}, which reports room for {capacity} jobs"
            )
        }
        Wait::NotListening { pool, is_taken: false } => {
            format!("GitHub's service of scale sets does not answer, which has given it to the one of pool {pool}")
        }
        Wait::NotListening { pool, is_taken: true } => format!(
            "another listener has the session of the scale set of pool {pool}; stop it, or give the pool another scale set"
        ),
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
pub fn note(note: &Note, platform: Platform) -> String {
    let forge = platform.name();
    match &note.what {
        What::Became { state: State::InProgress, source, runner: Some(runner) } => {
            format!("runner {runner} has started it, as {} says", source.name())
        }
        What::Became { state, source, .. } => format!("it is {}, as {} says", state.name(), source.name()),
        What::Waits(found) => wait(found, platform, note.at),
        What::NotListed => format!("{forge} did not list it among the open jobs; it is looked up"),
        What::Absent => format!("{forge} says that it does not exist any more"),
        What::ListedAgain => format!("{forge} lists it again"),
        What::MachineFailed(why) => format!("{why}; the job needs another machine"),
        What::On { claim, pool } => format!("its runner is on machine {claim} of pool {pool}"),
        What::MachineEnded(why) => format!("its machine is ended: {why}"),
    }
}

#[cfg(test)]
mod tests;
