//! Which pool may run a job, and why a job waits.

use super::job::{Facts, JobKey, Repository};
use crate::object::Name;
use api::fleet::Scaling;
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::collections::BTreeSet;

/// What the owner of an enterprise begins with, in place of an organisation.
pub const ENTERPRISE: &str = "enterprises/";

/// The label that every runner of somebody's own has, unless they leave it out.
const SELF_HOSTED: &str = "self-hosted";

/// Where runners are registered.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct Scope {
    /// The organisation or the user, in lower case; `enterprises/NAME` for an enterprise.
    pub owner: String,
    /// The repository, if they are of one repository only, in lower case.
    pub repository: Option<String>,
}

impl Scope {
    /// Whether it is an enterprise, whose organisations only events name.
    pub fn is_enterprise(&self) -> bool {
        self.owner.starts_with(ENTERPRISE)
    }

    /// Whether a repository is in it; `organizations` are those of an enterprise, as far as they are known.
    pub fn has(&self, repository: &Repository, organizations: &BTreeSet<String>) -> bool {
        match &self.repository {
            Some(only) => self.owner == repository.owner && *only == repository.name,
            None => repository.is_of(&self.owner) || organizations.contains(&repository.owner),
        }
    }
}

/// How a pool hears of the jobs of its scale set.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Hearing {
    /// By its session, or it has no scale set.
    #[default]
    Open,
    /// The session is about to be opened: by what the scale set itself says.
    Opening,
    /// The session is another listener's, and so are the jobs.
    Taken,
    /// The service of scale sets does not answer: runners of the scale set cannot be registered, but others can.
    Deaf,
    /// The scale set is not found yet: no runner is registered before.
    Unknown,
}

/// Whether a pool takes more jobs than it has machines for.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Readiness {
    /// It does.
    #[default]
    Open,
    /// No machine is made for it now, for this reason. Those that exist take jobs.
    Held(&'static str),
    /// Its login is refused, so that no runner can be registered. Those that are online take jobs.
    Disconnected,
    /// No login has ever shown that its jobs are in these hands: it gets none.
    Unproved,
}

impl Readiness {
    /// Why no machine is to be made for a job, in one word.
    pub fn trouble(self) -> Option<&'static str> {
        match self {
            Readiness::Open => None,
            Readiness::Held(why) => Some(why),
            Readiness::Disconnected | Readiness::Unproved => Some("NotConnected"),
        }
    }
}

/// A pool as far as jobs concern it.
#[derive(Debug, Clone)]
pub struct Pool {
    /// The object.
    pub name: Name,
    /// Where its runners are registered.
    pub scope: Scope,
    /// The organisations of the enterprise that are known; none for other scopes.
    pub organizations: BTreeSet<String>,
    /// The only repositories that its runner group serves; all of the scope if nothing is given.
    pub repositories: Option<BTreeSet<String>>,
    /// The runner group; the default one if nothing is given.
    pub group: Option<String>,
    /// The labels of its runners, in lower case.
    pub labels: BTreeSet<String>,
    /// The scale set that its runners belong to, if it has one. GitHub assigns jobs to it, by the capacity that is reported.
    pub scale_set: Option<u64>,
    /// How it hears of the jobs of that.
    pub hearing: Hearing,
    /// How many machines there may be.
    pub scaling: Scaling,
    /// Of several pools that may run a job, the one with the highest number is taken.
    pub priority: i32,
    /// No machine is made for jobs.
    pub is_paused: bool,
    /// Whether it takes more jobs.
    pub readiness: Readiness,
    /// Whether jobs are listed for it.
    pub polls: bool,
    /// The hypervisor of its machines; pools on the same one share its room.
    pub hypervisor: String,
    /// How many more machines the hypervisor has room for, if that is known.
    pub room: Option<u32>,
}

impl Pool {
    /// Whether its runners may run jobs of a repository.
    pub fn serves(&self, repository: &Repository) -> bool {
        self.scope.has(repository, &self.organizations)
            && self.repositories.as_ref().is_none_or(|only| only.contains(&repository.name))
    }

    /// Whether GitHub may have given a job to runners of this pool that are registered in a scope, whatever their labels are now.
    pub fn can_run(&self, job: &Facts, scope: &Scope) -> bool {
        match job.key {
            JobKey::Request { scale_set, .. } => self.scale_set.is_none_or(|own| own == scale_set),
            // Of an enterprise, not every organisation is known.
            JobKey::Job { .. } => scope.is_enterprise() || scope.has(&job.repository, &self.organizations),
        }
    }

    /// Whether a login has ever shown that its jobs are in these hands.
    pub fn is_proved(&self) -> bool {
        self.readiness != Readiness::Unproved
    }

    /// The scale set that its runners are registered for; nothing if that is not known yet.
    pub fn registers(&self) -> Option<Option<u64>> {
        match self.hearing {
            Hearing::Unknown => None,
            Hearing::Deaf => Some(None),
            Hearing::Open | Hearing::Opening | Hearing::Taken => Some(self.scale_set),
        }
    }

    /// The scale set that GitHub gives its jobs to; nothing if its runners get them without one.
    pub fn listens(&self) -> Option<u64> {
        self.scale_set.filter(|_| self.hearing != Hearing::Deaf)
    }

    /// The repository that it serves, if it is only one.
    pub fn only_repository(&self) -> Option<Repository> {
        let named = self.repositories.as_ref().filter(|named| named.len() == 1).and_then(|named| named.first());
        let only = self.scope.repository.as_ref().or(named)?;
        Some(Repository::new(&self.scope.owner, only))
    }

    /// Whether GitHub would give a job to its runners: they have all labels of the job.
    pub fn may_run(&self, job: &Facts) -> bool {
        if let JobKey::Request { scale_set, .. } = job.key {
            return self.scale_set == Some(scale_set);
        }
        let is_same_group = match (&job.group, &self.group) {
            (Some(wanted), Some(found)) => wanted.eq_ignore_ascii_case(found),
            // A job without labels asks for a group only.
            (_, group) => !job.labels.is_empty() || group.is_some(),
        };
        is_same_group && self.serves(&job.repository) && job.labels.is_subset(&self.labels)
    }
}

/// Whether a job is ours: it asks for a runner of somebody's own or for a label of a pool of its scope, or runs on a runner of ours. Others
/// run on the machines of the CI platform.
pub fn concerns(job: &Facts, pools: &[Pool], prefix: &str) -> bool {
    matches!(job.key, JobKey::Request { .. })
        || job.labels.is_empty()
        || job.labels.contains(SELF_HOSTED)
        || job.runner.as_ref().is_some_and(|runner| runner.starts_with(prefix))
        || pools
            .iter()
            .filter(|pool| pool.is_proved() && pool.can_run(job, &pool.scope))
            .any(|pool| !pool.labels.is_disjoint(&job.labels))
}

/// The pools that may run a job, the preferred one first: by priority, then the one with the fewest labels that the job does not ask for.
pub fn candidates<'a>(job: &Facts, pools: &'a [Pool]) -> Vec<&'a Pool> {
    let mut found: Vec<&Pool> = pools.iter().filter(|pool| pool.is_proved() && pool.may_run(job)).collect();
    found.sort_by_key(|pool| (std::cmp::Reverse(pool.priority), pool.labels.len(), &pool.name));
    found
}

/// Labels of a job that no pool of its repository has, for people who look for a spelling mistake.
pub fn missing_labels(job: &Facts, pools: &[Pool]) -> Vec<String> {
    let near = pools.iter().filter(|pool| pool.is_proved() && pool.serves(&job.repository));
    let missing = near.map(|pool| job.labels.difference(&pool.labels).cloned().collect::<Vec<String>>());
    missing.min_by_key(Vec::len).unwrap_or_default()
}

/// Why a job waits.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "PascalCase", rename_all_fields = "camelCase", tag = "reason")]
pub enum Wait {
    /// It does not need a runner yet.
    OnGitHub,
    /// No pool serves its repository with all its labels.
    NoPool {
        /// Labels that the nearest pool does not have; none if no pool serves the repository.
        missing: Vec<String>,
    },
    /// The pool is paused.
    Paused {
        /// The pool.
        pool: String,
    },
    /// The pool can make no machine for it now.
    NotReady {
        /// The pool.
        pool: String,
        /// Why, in one word: of its condition Connected or Scaling.
        why: String,
    },
    /// Its repository or organisation has as many machines as it may have.
    Quota {
        /// Whose quota: `OWNER/NAME` or `OWNER`.
        of: String,
        /// How many machines.
        allowed: u32,
    },
    /// The pool has as many machines as it may have.
    PoolFull {
        /// The pool.
        pool: String,
        /// How many.
        max: i32,
    },
    /// The hypervisor has no room for another machine.
    NoCapacity {
        /// The pool.
        pool: String,
    },
    /// A machine will be created.
    Creating {
        /// The pool.
        pool: String,
    },
    /// A machine starts.
    Booting {
        /// The claim.
        claim: String,
        /// Since when.
        since: Timestamp,
    },
    /// A runner is online and GitHub has not given it the job yet.
    Idle {
        /// The runner.
        runner: String,
        /// Since when it is online.
        since: Timestamp,
    },
    /// The budget of requests to GitHub is used up, so that no runner can be registered.
    RateLimited {
        /// Until when.
        until: Timestamp,
    },
    /// GitHub has not assigned it to the scale set yet.
    NotAssigned {
        /// The pool.
        pool: String,
        /// The capacity that is reported.
        capacity: u32,
    },
    /// The fleet does not hear of the jobs of the scale set.
    NotListening {
        /// The pool.
        pool: String,
        /// Whether another listener does; otherwise GitHub does not answer.
        is_taken: bool,
    },
}

impl Wait {
    /// Whether it is the same reason, up to numbers and times.
    pub fn is_like(&self, other: &Wait) -> bool {
        match (self, other) {
            (Wait::Quota { of, .. }, Wait::Quota { of: other, .. }) => of == other,
            (Wait::RateLimited { .. }, Wait::RateLimited { .. }) => true,
            (Wait::PoolFull { pool, .. }, Wait::PoolFull { pool: other, .. })
            | (Wait::NotAssigned { pool, .. }, Wait::NotAssigned { pool: other, .. }) => pool == other,
            (Wait::Idle { runner, .. }, Wait::Idle { runner: other, .. }) => runner == other,
            (Wait::Booting { claim, .. }, Wait::Booting { claim: other, .. }) => claim == other,
            _ => self == other,
        }
    }

    /// The pool that it is about, if it is about one.
    pub fn pool(&self) -> Option<&str> {
        match self {
            Wait::Paused { pool }
            | Wait::NotReady { pool, .. }
            | Wait::PoolFull { pool, .. }
            | Wait::NoCapacity { pool }
            | Wait::Creating { pool }
            | Wait::NotListening { pool, .. }
            | Wait::NotAssigned { pool, .. } => Some(pool),
            _ => None,
        }
    }

    /// In one word, for a metric.
    pub fn reason(&self) -> &'static str {
        match self {
            Wait::OnGitHub => "OnGitHub",
            Wait::NoPool { .. } => "NoPool",
            Wait::Paused { .. } => "Paused",
            Wait::NotReady { .. } => "NotReady",
            Wait::Quota { .. } => "Quota",
            Wait::PoolFull { .. } => "PoolFull",
            Wait::NoCapacity { .. } => "NoCapacity",
            Wait::Creating { .. } => "Creating",
            Wait::Booting { .. } => "Booting",
            Wait::Idle { .. } => "Idle",
            Wait::RateLimited { .. } => "RateLimited",
            Wait::NotAssigned { .. } => "NotAssigned",
            Wait::NotListening { .. } => "NotListening",
        }
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::{Pool, Scope, candidates, concerns, missing_labels};
    use crate::jobs::job::{Facts, JobKey, Repository, State};
    use crate::object::Name;
    use api::fleet::Scaling;
    use std::collections::BTreeSet;

    pub(in crate::jobs) fn pool(name: &str, labels: &[&str]) -> Pool {
        Pool {
            name: Name::new("ci", name),
            scope: Scope { owner: "acme".into(), repository: None },
            organizations: BTreeSet::new(),
            repositories: None,
            group: None,
            labels: labels.iter().map(|&label| label.into()).collect(),
            scale_set: None,
            hearing: super::Hearing::Open,
            scaling: Scaling::default(),
            priority: 0,
            is_paused: false,
            readiness: super::Readiness::Open,
            polls: true,
            hypervisor: "pve".into(),
            room: None,
        }
    }

    pub(in crate::jobs) fn job(id: u64, repository: &str, labels: &[&str]) -> Facts {
        Facts {
            key: JobKey::Job { id, attempt: 1 },
            repository: Repository::read(repository).unwrap(),
            run: id,
            name: "build".into(),
            labels: labels.iter().map(|&label| label.into()).collect(),
            group: None,
            state: State::Queued,
            runner: None,
            conclusion: None,
            created: None,
            started: None,
            completed: None,
        }
    }

    fn names(facts: &Facts, pools: &[Pool]) -> Vec<String> {
        candidates(facts, pools).iter().map(|pool| pool.name.name.to_string()).collect()
    }

    /// Theme 19: several labels.
    #[test]
    fn a_job_goes_to_pools_that_have_all_its_labels_the_most_specific_first() {
        let mut pools = vec![
            pool("large", &["self-hosted", "pve", "large", "x64"]),
            pool("small", &["self-hosted", "pve"]),
            pool("gpu", &["gpu"]),
        ];
        assert_eq!(names(&job(1, "acme/shop", &["pve"]), &pools), ["small", "large"]);
        assert_eq!(names(&job(1, "acme/shop", &["pve", "large"]), &pools), ["large"]);
        assert_eq!(names(&job(1, "acme/shop", &["pve", "gpu"]), &pools), [""; 0]);
        assert_eq!(names(&job(1, "other/shop", &["pve"]), &pools), [""; 0]);
        let mut below = job(1, "acme/shop", &["pve"]);
        below.repository = Repository::new("acme/lab", "robot");
        assert_eq!(names(&below, &pools), ["small", "large"], "a group below the one of the pool");
        below.repository = Repository::new("acme-other", "robot");
        assert_eq!(names(&below, &pools), [""; 0]);
        assert_eq!(missing_labels(&job(1, "acme/shop", &["pve", "gpus", "x64"]), &pools), ["gpus"]);
        pools[0].priority = 1;
        assert_eq!(names(&job(1, "acme/shop", &["pve"]), &pools), ["large", "small"]);
    }

    #[test]
    fn a_group_its_repositories_and_a_scale_set_limit_a_pool() {
        let mut pools = vec![pool("a", &["pve"])];
        assert_eq!(names(&job(1, "acme/shop", &[]), &pools), [""; 0], "it asks for a group");
        pools[0].group = Some("Large".into());
        assert_eq!(names(&job(1, "acme/shop", &[]), &pools), ["a"]);
        let mut of_group = job(1, "acme/shop", &["pve"]);
        of_group.group = Some("large".into());
        assert_eq!(names(&of_group, &pools), ["a"]);
        of_group.group = Some("small".into());
        assert_eq!(names(&of_group, &pools), [""; 0]);
        pools[0].repositories = Some(["web".into()].into());
        assert_eq!(names(&job(1, "acme/shop", &["pve"]), &pools), [""; 0]);
        assert_eq!(names(&job(1, "acme/web", &["pve"]), &pools), ["a"]);
        pools[0].scope.repository = Some("shop".into());
        let mut below = job(1, "acme/shop", &["pve"]);
        below.repository = Repository::new("acme/lab", "shop");
        assert_eq!(names(&below, &pools), [""; 0], "another project with that name");
        assert_eq!(names(&job(1, "acme/web", &["pve"]), &pools), [""; 0]);
        pools[0].scale_set = Some(7);
        let mut request = job(1, "acme/web", &["other"]);
        request.key = JobKey::Request { scale_set: 7, id: 1 };
        assert_eq!(names(&request, &pools), ["a"], "GitHub has assigned it");
    }

    #[test]
    fn jobs_for_the_machines_of_github_are_none_of_ours() {
        let pools = [pool("a", &["self-hosted", "pve"])];
        let is_ours = |labels: &[&str]| concerns(&job(1, "acme/shop", labels), &pools, "vp-");
        assert!(!is_ours(&["ubuntu-latest"]) && !is_ours(&["windows-2022"]));
        assert!(is_ours(&["self-hosted", "gpu"]) && is_ours(&["pve"]) && is_ours(&["pve", "gpus"]) && is_ours(&[]));
        let mut running = job(1, "acme/shop", &["ubuntu-latest"]);
        running.runner = Some("vp-1".into());
        assert!(concerns(&running, &pools, "vp-"));
    }

    #[test]
    fn a_pool_of_an_enterprise_serves_the_organisations_that_are_known_to_belong_to_it() {
        let mut pools = vec![pool("corp", &["pve"])];
        pools[0].scope = Scope { owner: "enterprises/corp".into(), repository: None };
        assert_eq!(names(&job(1, "acme/shop", &["pve"]), &pools), [""; 0]);
        pools[0].organizations = ["acme".to_owned()].into();
        assert_eq!(names(&job(1, "acme/shop", &["pve"]), &pools), ["corp"]);
        assert_eq!(names(&job(1, "other/shop", &["pve"]), &pools), [""; 0]);
    }
}
