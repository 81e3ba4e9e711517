//! In which order repositories get machines.
//!
//! The rule: a job that has waited for [`OVERDUE`] goes before all others, otherwise jobs of repositories with a higher priority do. Among
//! these, the repository that has the fewest machines for its weight goes first, and of one repository its oldest job. So no repository
//! starves: sooner or later its oldest job is overdue, and then only repositories with fewer machines go before it.

use super::demand::Scope;
use super::job::{JobKey, Repository, is_below};
use super::table::Job;
use change::now::later;
use jiff::Timestamp;
use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::time::Duration;

/// A job that has waited for so long goes before all priorities.
pub const OVERDUE: Duration = Duration::from_secs(30 * 60);

/// What a repository or an owner may use.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Higher ones go first.
    pub priority: i32,
    /// Twice the weight is twice the machines, if there are not enough.
    pub weight: u32,
    /// How many machines at the same time, at most.
    pub quota: Option<u32>,
}

impl Default for Share {
    fn default() -> Share {
        Share { priority: 0, weight: 1, quota: None }
    }
}

/// The shares of all.
#[derive(Debug, Clone, Default)]
pub struct Rules {
    /// Of repositories; others have the default.
    pub repositories: BTreeMap<Repository, Share>,
    /// Quotas of owners over all their repositories.
    pub owners: BTreeMap<String, u32>,
    /// The organisations of enterprises, as far as they are known.
    pub organizations: BTreeMap<String, BTreeSet<String>>,
    /// Quotas of each repository of a scope that is not named.
    pub each: BTreeMap<Scope, u32>,
}

impl Rules {
    /// The share of a repository.
    pub fn of(&self, repository: &Repository) -> Share {
        let none = BTreeSet::new();
        let has = |scope: &Scope| scope.has(repository, self.organizations.get(&scope.owner).unwrap_or(&none));
        let mut share = self.repositories.get(repository).copied().unwrap_or_default();
        let each = || self.each.iter().filter(|(scope, _)| has(scope)).map(|(_, quota)| *quota).min();
        share.quota = share.quota.or_else(each);
        share
    }

    /// Whether an owner is another one, a group below it, or an organisation of it.
    fn belongs(&self, one: &str, owner: &str) -> bool {
        is_below(one, owner) || self.organizations.get(owner).is_some_and(|found| found.contains(one))
    }
}

/// What repositories use: machines that run their jobs, or were granted.
#[derive(Debug, Clone, Default)]
pub struct Usage {
    repositories: BTreeMap<Repository, u32>,
    owners: BTreeMap<String, u32>,
}

impl Usage {
    /// One more machine.
    pub fn add(&mut self, repository: &Repository) {
        *self.repositories.entry(repository.clone()).or_default() += 1;
        *self.owners.entry(repository.owner.clone()).or_default() += 1;
    }

    /// How many a repository has.
    pub fn of(&self, repository: &Repository) -> u32 {
        self.repositories.get(repository).copied().unwrap_or_default()
    }

    /// Whose quota forbids another machine, and how many it allows.
    pub fn exceeded(&self, repository: &Repository, rules: &Rules) -> Option<(String, u32)> {
        if let Some(quota) = rules.of(repository).quota.filter(|quota| self.of(repository) >= *quota) {
            return Some((repository.to_string(), quota));
        }
        let quotas = rules.owners.iter().filter(|(owner, _)| rules.belongs(&repository.owner, owner));
        let mut exceeded = quotas.filter(|(owner, quota)| self.of_owner(owner, rules) >= **quota);
        exceeded.next().map(|(owner, quota)| (owner.clone(), *quota))
    }

    fn of_owner(&self, owner: &str, rules: &Rules) -> u32 {
        let found = self.owners.iter().filter(|(one, _)| rules.belongs(one, owner));
        found.map(|(_, used)| *used).sum()
    }
}

/// A place in the queue of repositories.
type Place = (bool, Reverse<i32>, u64, Timestamp, JobKey);

/// The queue.
#[derive(Debug)]
pub struct Queue<'a> {
    jobs: BTreeMap<&'a Repository, Vec<&'a Job>>,
    places: BTreeSet<(Place, &'a Repository)>,
    rules: &'a Rules,
    now: Timestamp,
}

impl<'a> Queue<'a> {
    /// A queue of jobs.
    pub fn new(jobs: impl Iterator<Item = &'a Job>, usage: &Usage, rules: &'a Rules, now: Timestamp) -> Queue<'a> {
        let mut queue = Queue { jobs: BTreeMap::new(), places: BTreeSet::new(), rules, now };
        for job in jobs {
            queue.jobs.entry(&job.facts.repository).or_default().push(job);
        }
        for jobs in queue.jobs.values_mut() {
            // The oldest is the last one.
            jobs.sort_by_key(|job| Reverse((job.since(), job.facts.key)));
        }
        let repositories: Vec<&Repository> = queue.jobs.keys().copied().collect();
        repositories.into_iter().for_each(|repository| queue.insert(repository, usage));
        queue
    }

    fn insert(&mut self, repository: &'a Repository, usage: &Usage) {
        let Some(oldest) = self.jobs.get(repository).and_then(|jobs| jobs.last()) else { return };
        let (share, since) = (self.rules.of(repository), oldest.since());
        let is_overdue = later(since, OVERDUE) <= self.now;
        let priority = if is_overdue { 0 } else { share.priority };
        let used = u64::from(usage.of(repository)) * 1_000_000 / u64::from(share.weight.max(1));
        self.places.insert(((!is_overdue, Reverse(priority), used, since, oldest.facts.key), repository));
    }

    /// The next job. What was granted before counts.
    pub fn take(&mut self) -> Option<&'a Job> {
        let (_, repository) = self.places.pop_first()?;
        self.jobs.get_mut(repository)?.pop()
    }

    /// The repository of the job that was taken is in the queue again, with what it uses now.
    pub fn again(&mut self, repository: &'a Repository, usage: &Usage) {
        self.insert(repository, usage);
    }
}

#[cfg(test)]
mod tests {
    use super::{OVERDUE, Queue, Rules, Share, Usage};
    use crate::jobs::demand::Scope;
    use crate::jobs::demand::tests::job;
    use crate::jobs::job::{Observation, Repository, Source};
    use crate::jobs::table::Table;
    use jiff::Timestamp;

    fn at(second: u64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + i64::try_from(second).unwrap()).unwrap()
    }

    /// Queues jobs of repositories at seconds, and serves one job every ten seconds; returns when each job was served.
    fn serve(jobs: &[(&str, u64)], rules: &Rules, machines: u32) -> Vec<(String, u64, u64)> {
        let mut table = Table::default();
        let mut served = Vec::new();
        let mut running: Vec<(Repository, u64)> = Vec::new();
        let mut done = std::collections::BTreeSet::new();
        for second in (0..40_000).step_by(10) {
            for (id, (repository, _)) in jobs.iter().enumerate().filter(|(_, (_, since))| *since == second) {
                let facts = job(id as u64, repository, &["pve"]);
                table.observe(&Observation { source: Source::Poll, at: at(second), facts }, at(second));
            }
            running.retain(|(_, until)| *until > second);
            let mut usage = Usage::default();
            running.iter().for_each(|(repository, _)| usage.add(repository));
            let open = table.all().filter(|job| !done.contains(&job.facts.key));
            let mut queue = Queue::new(open, &usage, rules, at(second));
            let mut started = Vec::new();
            while running.len() < machines as usize
                && let Some(job) = queue.take()
            {
                usage.add(&job.facts.repository);
                running.push((job.facts.repository.clone(), second + 60));
                started.push(job.facts.key);
                let waited = second - u64::try_from(job.since().as_second() - 1_800_000_000).unwrap();
                served.push((job.facts.repository.name.clone(), second, waited));
                queue.again(&job.facts.repository, &usage);
            }
            done.extend(started);
        }
        served
    }

    #[test]
    fn a_repository_with_a_thousand_jobs_does_not_delay_one_with_few() {
        let mut jobs: Vec<(&str, u64)> = (0..1_000).map(|_| ("acme/big", 0)).collect();
        jobs.extend([("acme/small", 300), ("acme/small", 300), ("acme/tiny", 600)]);
        let served = serve(&jobs, &Rules::default(), 4);
        for (repository, _, waited) in served.iter().filter(|(repository, ..)| repository != "big") {
            assert!(*waited <= 60, "{repository} waited for {waited} s");
        }
    }

    #[test]
    fn no_repository_starves_whatever_the_priorities_are() {
        let urgent = Share { priority: 100, ..Share::default() };
        let rules = Rules { repositories: [(Repository::new("acme", "urgent"), urgent)].into(), ..Rules::default() };
        // More urgent jobs than two machines can ever run.
        let mut jobs: Vec<(&str, u64)> = (0..2_000).map(|number| ("acme/urgent", number * 10)).collect();
        jobs.extend([("acme/patient", 100), ("acme/patient", 110), ("acme/late", 5_000)]);
        let served = serve(&jobs, &rules, 2);
        let others: Vec<u64> =
            served.iter().filter(|(name, ..)| name != "urgent").map(|(_, _, waited)| *waited).collect();
        assert_eq!(others.len(), 3);
        assert!(others.iter().all(|waited| *waited <= OVERDUE.as_secs() + 180), "{others:?}");
        assert!(others.iter().all(|waited| *waited >= 1_000), "the priority counts before that: {others:?}");
    }

    #[test]
    fn machines_are_shared_by_weight() {
        let double = Share { weight: 2, ..Share::default() };
        let rules = Rules { repositories: [(Repository::new("acme", "a"), double)].into(), ..Rules::default() };
        let jobs: Vec<(&str, u64)> = (0..200).map(|number| (["acme/a", "acme/b"][number % 2], 0)).collect();
        let served = serve(&jobs, &rules, 6);
        let first: Vec<&str> = served[..60].iter().map(|(name, ..)| name.as_str()).collect();
        assert_eq!(first.iter().filter(|name| **name == "a").count(), 40);
    }

    #[test]
    fn quotas_of_repositories_and_owners_hold() {
        let mut rules = Rules { owners: [("acme".into(), 3)].into(), ..Rules::default() };
        rules.each = [(Scope { owner: "acme".into(), repository: None }, 2)].into();
        let (shop, web) = (Repository::new("acme", "shop"), Repository::new("acme", "web"));
        let mut usage = Usage::default();
        usage.add(&shop);
        assert_eq!(usage.exceeded(&shop, &rules), None);
        usage.add(&shop);
        assert_eq!(usage.exceeded(&shop, &rules), Some(("acme/shop".into(), 2)));
        assert_eq!(usage.exceeded(&web, &rules), None);
        usage.add(&web);
        assert_eq!(usage.exceeded(&web, &rules), Some(("acme".into(), 3)));
        let below = Repository::new("acme/lab", "robot");
        assert_eq!(usage.exceeded(&below, &rules), Some(("acme".into(), 3)), "a group counts what is below it");
        assert_eq!(usage.exceeded(&Repository::new("acmes", "robot"), &rules), None);
        rules.owners = [("enterprises/corp".into(), 3)].into();
        assert_eq!(usage.exceeded(&web, &rules), None, "whose organisation it is, nobody has said");
        rules.organizations = [("enterprises/corp".into(), ["acme".to_owned()].into())].into();
        assert_eq!(usage.exceeded(&web, &rules), Some(("enterprises/corp".into(), 3)));
    }
}
