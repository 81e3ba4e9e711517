//! Jobs that two sources name differently: messages of a scale set carry no id of the REST API.

use super::job::{JobKey, Repository};
use super::table::{Job, Table};
use std::cmp::Reverse;
use std::collections::BTreeMap;

/// The open jobs and the open requests of a name.
type Named<'a> = (Vec<&'a Job>, Vec<&'a Job>);

/// Open jobs of the REST API, each with what a scale set calls it, if it has told about it.
pub fn twins(table: &Table) -> BTreeMap<JobKey, JobKey> {
    let mut found: BTreeMap<(&Repository, u64, &str), Named<'_>> = BTreeMap::new();
    for job in table.all().filter(|job| job.is_open()) {
        let facts = &job.facts;
        let (jobs, requests) = found.entry((&facts.repository, facts.run, &facts.name)).or_default();
        if matches!(facts.key, JobKey::Job { .. }) { jobs } else { requests }.push(job);
    }
    let mut twins = BTreeMap::new();
    for (mut jobs, mut requests) in found.into_values() {
        // A runner runs one job; of others with the same name in a run nobody can tell which is which.
        jobs.retain(|job| {
            let is_same = |request: &&Job| job.facts.runner.is_some() && request.facts.runner == job.facts.runner;
            let Some(at) = requests.iter().position(is_same) else { return true };
            twins.insert(job.facts.key, requests.remove(at).facts.key);
            false
        });
        for jobs in [&mut jobs, &mut requests] {
            jobs.sort_by_key(|job| (Reverse(job.facts.state), job.facts.key));
        }
        let rest = jobs.iter().zip(&requests).filter(|(job, request)| {
            // Two runners run two jobs.
            job.facts.runner.is_none() || request.facts.runner.is_none()
        });
        twins.extend(rest.map(|(job, request)| (job.facts.key, request.facts.key)));
    }
    twins
}

#[cfg(test)]
mod tests {
    use super::twins;
    use crate::jobs::demand::tests::job;
    use crate::jobs::job::{Facts, JobKey, Observation, Source, State};
    use crate::jobs::table::Table;
    use jiff::Timestamp;

    fn see(table: &mut Table, key: JobKey, state: State, runner: Option<&str>) {
        let runner = runner.map(str::to_owned);
        let facts = Facts { key, run: 5, state, runner, ..job(1, "acme/shop", &["pve"]) };
        let at = Timestamp::UNIX_EPOCH;
        table.observe(&Observation { source: Source::Poll, at, facts }, at);
    }

    /// Jobs of a matrix may have the same name.
    #[test]
    fn jobs_of_the_same_name_are_told_apart_by_their_runners_and_each_is_one_job() {
        let (of, request) = (|id| JobKey::Job { id, attempt: 1 }, |id| JobKey::Request { scale_set: 7, id });
        let mut table = Table::default();
        see(&mut table, of(1), State::Queued, None);
        see(&mut table, of(2), State::InProgress, Some("vp-b"));
        see(&mut table, of(3), State::InProgress, Some("vp-c"));
        see(&mut table, request(8), State::InProgress, Some("vp-c"));
        see(&mut table, request(9), State::Queued, None);
        let found = twins(&table);
        assert_eq!(found.get(&of(3)), Some(&request(8)));
        assert_eq!((found.len(), found.get(&of(2)).or(found.get(&of(1)))), (2, Some(&request(9))));
        see(&mut table, request(9), State::InProgress, Some("vp-d"));
        let found = twins(&table);
        assert_eq!(found.get(&of(2)), None, "two runners run two jobs");
        see(&mut table, of(3), State::Completed, Some("vp-c"));
        assert!(!twins(&table).contains_key(&of(3)), "it is over");
    }
}
