//! What a `RunnerPool` says about its runners, as the fleet uses it.

use super::demand::{ENTERPRISE, Scope};
use super::fair::{Rules, Share};
use super::job::Repository;
use crate::forge::gitlab::{Place, UNTAGGED, project};
use crate::forge::{self, Platform, address::Address};
use api::fleet::{Github, GithubCredentials, Gitlab, GitlabSource, JobSource, Lifecycle, RunnerProgram, Runners, Span};
use bootstrap::{Limits, Runner, Source};
use std::collections::{BTreeMap, BTreeSet};

/// Where a runner of GitLab is, unless the pool says something else.
const GITLAB_FOLDER: &str = "/opt/gitlab-runner";
/// The same of GitHub.
const FOLDER: &str = "/opt/actions-runner";

/// The settings of the runners of a pool.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The CI platform.
    pub platform: Platform,
    /// The address that the client of the platform is connected to.
    pub link: String,
    /// Whose runners they are, and where.
    pub address: Address,
    /// The same as jobs name it.
    pub scope: Scope,
    /// Their labels, as they are written.
    pub labels: BTreeSet<String>,
    /// Where the fleet hears of jobs.
    pub sources: BTreeSet<JobSource>,
    /// Everything else, as a pool of GitHub says it; of GitLab what both have.
    pub github: Github,
}

impl Settings {
    /// Reads them; what is wrong and what helps otherwise.
    pub fn of(runners: Runners<'_>) -> Result<Settings, (String, String)> {
        match runners {
            Runners::Github(github) => Settings::read(github),
            Runners::Gitlab(gitlab) => Settings::gitlab(gitlab),
        }
    }

    /// Reads those of GitHub.
    pub fn read(github: &Github) -> Result<Settings, (String, String)> {
        let link = page(github);
        let address = Address::github(&link, false)?;
        let scope = match &address.scope {
            forge::Scope::Enterprise(name) => {
                Scope { owner: format!("{ENTERPRISE}{}", name.to_lowercase()), repository: None }
            }
            forge::Scope::Organization(name) => Scope { owner: name.to_lowercase(), repository: None },
            forge::Scope::Repository(name) => {
                Scope { owner: name.owner.to_lowercase(), repository: Some(name.name.to_lowercase()) }
            }
        };
        Ok(Settings {
            platform: Platform::GitHub,
            link,
            address,
            scope,
            labels: github.labels.iter().cloned().collect(),
            sources: github.sources.iter().copied().collect(),
            github: github.clone(),
        })
    }

    /// Reads those of GitLab. Paths of groups have parts: what is below a group is of it, too.
    fn gitlab(gitlab: &Gitlab) -> Result<Settings, (String, String)> {
        let server = gitlab.url.trim_end_matches('/');
        let wrong = |what: &str| (what.to_owned(), "set either group or project of workload.config.gitlab".to_owned());
        let (link, page, of, scope) = match (&gitlab.group, &gitlab.project) {
            (Some(group), None) => {
                let page = format!("{server}/groups/{group}");
                let scope = Scope { owner: group.to_lowercase(), repository: None };
                (page.clone(), page, forge::Scope::Organization(group.clone()), scope)
            }
            (None, Some(path)) => {
                let name = project(path).ok_or_else(|| wrong("the project is no path such as acme/shop"))?;
                let scope = Scope { owner: name.owner.to_lowercase(), repository: Some(name.name.to_lowercase()) };
                let (link, page) = (format!("{server}/projects/{path}"), format!("{server}/{path}"));
                (link, page, forge::Scope::Repository(name), scope)
            }
            _ => return Err(wrong("it is not said whose jobs are run")),
        };
        if scope.is_enterprise() {
            return Err(wrong("groups below one that is called enterprises are not supported"));
        }
        let api = Place::read(&link, false)?.api;
        let mut labels: BTreeSet<String> = gitlab.tags.iter().cloned().collect();
        if gitlab.run_untagged {
            labels.insert(UNTAGGED.to_owned());
        }
        Ok(Settings {
            platform: Platform::GitLab,
            link,
            address: Address { page, api, scope: of },
            scope,
            labels,
            sources: gitlab.sources.iter().map(|source| job_source(*source)).collect(),
            github: common(gitlab),
        })
    }

    /// Whether jobs of a repository can come to its runners.
    pub fn covers(&self, repository: &Repository) -> bool {
        // Of an enterprise, not every organisation is known.
        self.scope.is_enterprise() || self.scope.has(repository, &BTreeSet::new())
    }

    /// Whether the fleet lists jobs.
    pub fn polls(&self) -> bool {
        // Nobody can list the jobs of an enterprise.
        self.sources.contains(&JobSource::Poll) && !self.scope.is_enterprise()
    }

    /// The repositories that its runners serve; all of the scope if nothing is given.
    pub fn repositories(&self) -> Option<BTreeSet<String>> {
        let names = &self.github.repositories;
        (!names.is_empty()).then(|| names.iter().map(|name| name.to_lowercase()).collect())
    }

    /// The runner that a guest starts.
    pub fn runner(&self) -> Runner {
        let program = &self.github.runner;
        let source = match (&program.archive, &program.download) {
            (Some(archive), _) => Source::File { path: archive.path.clone(), sha256: archive.sha256.clone() },
            (None, Some(download)) => {
                let version = download.version.as_deref().unwrap_or_default();
                Source::Download {
                    url: download.url.replace("{version}", version),
                    sha256: download.sha256.clone(),
                    ca: None,
                }
            }
            (None, None) => {
                let usual = if self.platform.is_github() { FOLDER } else { GITLAB_FOLDER };
                Source::Installed { folder: program.folder.clone().unwrap_or_else(|| usual.to_owned()) }
            }
        };
        let remove_credentials_at_job_start = program.remove_credentials_at_job_start;
        Runner { source, user: program.user.clone(), remove_credentials_at_job_start }
    }
}

/// What a pool of GitLab says, as one of GitHub would.
fn common(gitlab: &Gitlab) -> Github {
    let Gitlab { runner, .. } = gitlab;
    Github {
        server: gitlab.url.clone(),
        labels: gitlab.tags.clone(),
        credentials: gitlab
            .credentials
            .as_ref()
            .map(|found| GithubCredentials { token: Some(found.token.clone()), app: None }),
        ca_certificate: gitlab.ca_certificate.clone(),
        webhook_secrets: gitlab.webhook_secrets.clone(),
        sources: gitlab.sources.iter().map(|source| job_source(*source)).collect(),
        priority: gitlab.priority,
        paused: gitlab.paused,
        runner: RunnerProgram {
            folder: runner.folder.clone(),
            archive: runner.archive.clone(),
            download: runner.download.clone(),
            user: runner.user.clone(),
            remove_credentials_at_job_start: runner.remove_credentials_at_job_start,
            ..RunnerProgram::default()
        },
        limits: gitlab.limits.clone(),
        quotas: gitlab.quotas.clone(),
        ..Github::default()
    }
}

fn job_source(source: GitlabSource) -> JobSource {
    match source {
        GitlabSource::Webhook => JobSource::Webhook,
        GitlabSource::Poll => JobSource::Poll,
    }
}

/// The address of a scope, as GitHub shows it to people.
pub fn page(github: &Github) -> String {
    let server = github.server.trim_end_matches('/');
    let path = match (&github.enterprise, &github.organization, &github.repository) {
        (Some(enterprise), _, _) => format!("{ENTERPRISE}{enterprise}"),
        (None, Some(owner), Some(name)) if !name.contains('/') => format!("{owner}/{name}"),
        (None, _, Some(name)) => name.clone(),
        (None, owner, None) => owner.clone().unwrap_or_default(),
    };
    format!("{server}/{path}")
}

/// The time limits of guests.
pub fn limits(github: &Github, lifecycle: &Lifecycle) -> Limits {
    let seconds = |span: &Option<Span>, or: u64| {
        span.as_ref().and_then(Span::duration).map_or(or, |span| span.as_secs().clamp(1, 6 * 24 * 60 * 60))
    };
    let usual = Limits::default();
    let wanted = &github.limits;
    Limits {
        idle_seconds: seconds(&wanted.idle, usual.idle_seconds),
        job_seconds: seconds(&wanted.job, usual.job_seconds),
        lifetime_seconds: seconds(&wanted.lifetime, seconds(&lifecycle.max_lifetime, usual.lifetime_seconds)),
        prepare_seconds: seconds(&wanted.prepare, usual.prepare_seconds),
        ..usual
    }
}

/// The shares and quotas that several pools name together: of each number the smallest. Those of a pool hold in its own scope only;
/// `organizations` are those of enterprises.
pub fn rules<'a>(
    pools: impl Iterator<Item = &'a Settings>,
    organizations: BTreeMap<String, BTreeSet<String>>,
) -> Rules {
    let mut rules = Rules { organizations, ..Rules::default() };
    let (none, mut named) = (BTreeSet::new(), Vec::new());
    for settings in pools {
        let (scope, quotas) = (&settings.scope, &settings.github.quotas);
        // All repositories of one repository are this one.
        let (owner, each) = match scope.repository {
            Some(_) => (None, least(quotas.owner, quotas.each_repository)),
            None => (quotas.owner, quotas.each_repository),
        };
        if let Some(quota) = owner {
            let known = rules.owners.entry(scope.owner.clone()).or_insert(quota);
            *known = quota.min(*known);
        }
        if let Some(quota) = each {
            let known = rules.each.entry(scope.clone()).or_insert(quota);
            *known = quota.min(*known);
        }
        let organizations = rules.organizations.get(&scope.owner).unwrap_or(&none);
        for share in &quotas.repositories {
            // Groups of GitLab have parts.
            let repository = match project(&share.repository) {
                Some(name) => Repository::new(&name.owner, &name.name),
                None => Repository::new(&scope.owner, &share.repository),
            };
            if scope.has(&repository, organizations) {
                named.push((repository, Share { priority: share.priority, weight: share.weight, quota: share.quota }));
            }
        }
    }
    for (repository, share) in named {
        let known = rules.repositories.entry(repository).or_insert(share);
        known.quota = least(known.quota, share.quota);
    }
    rules
}

fn least(one: Option<u32>, other: Option<u32>) -> Option<u32> {
    one.into_iter().chain(other).min()
}

#[cfg(test)]
mod tests {
    use super::{Settings, limits, page, rules};
    use crate::forge::Platform;
    use crate::jobs::Repository;
    use api::fleet::{Github, JobSource, Lifecycle, Span};
    use bootstrap::Source;
    use serde_json::{Value, json};
    use std::collections::BTreeMap;

    fn github(fields: Value) -> Github {
        serde_json::from_value(fields).unwrap()
    }

    fn settings(fields: Value) -> Settings {
        Settings::read(&github(fields)).unwrap()
    }

    #[test]
    fn a_scope_is_an_organisation_a_repository_or_an_enterprise() {
        for (fields, expected, owner, repository) in [
            (json!({"organization": "Acme"}), "https://github.com/Acme", "acme", None),
            (
                json!({"organization": "Acme", "repository": "Shop"}),
                "https://github.com/Acme/Shop",
                "acme",
                Some("shop"),
            ),
            (json!({"repository": "acme/shop"}), "https://github.com/acme/shop", "acme", Some("shop")),
            (
                json!({"enterprise": "corp", "server": "https://git.example/"}),
                "https://git.example/enterprises/corp",
                "enterprises/corp",
                None,
            ),
        ] {
            assert_eq!(page(&github(fields.clone())), expected);
            let read = settings(fields);
            assert_eq!((read.scope.owner.as_str(), read.scope.repository.as_deref()), (owner, repository));
            assert_eq!(read.polls(), !owner.contains('/'));
        }
        let (message, remedy) = Settings::read(&github(json!({"organization": "a b"}))).unwrap_err();
        assert!(message.contains("is not the address") && !remedy.is_empty(), "{message}");
    }

    #[test]
    fn a_runner_is_installed_unless_an_archive_or_a_download_is_named() {
        let source = |runner: Value| settings(json!({"organization": "acme", "runner": runner})).runner().source;
        assert_eq!(source(json!({})), Source::Installed { folder: "/opt/actions-runner".into() });
        let url = "https://example.com/runner-{version}.tar.gz";
        let download = json!({"download": {"url": url, "version": "2.329.0", "sha256": "ab"}});
        let expected =
            Source::Download { url: "https://example.com/runner-2.329.0.tar.gz".into(), sha256: "ab".into(), ca: None };
        assert_eq!(source(download), expected);
    }

    fn gitlab(fields: Value) -> Result<Settings, (String, String)> {
        let gitlab: api::fleet::Gitlab = serde_json::from_value(fields).unwrap();
        Settings::of(api::fleet::Runners::Gitlab(&gitlab))
    }

    #[test]
    fn a_pool_of_gitlab_serves_a_group_and_all_below_it_or_one_project() {
        let group = gitlab(json!({"group": "Acme/Lab", "tags": ["pve"], "runUntagged": true})).unwrap();
        assert_eq!((group.link.as_str(), &group.address.page), ("https://gitlab.com/groups/Acme/Lab", &group.link));
        assert_eq!((group.address.api.as_str(), group.platform), ("https://gitlab.com/api/v4", Platform::GitLab));
        assert_eq!(group.labels, ["pve".to_owned(), "untagged".to_owned()].into());
        assert!(group.polls() && group.sources.contains(&JobSource::Webhook));
        assert_eq!(group.runner().source, Source::Installed { folder: "/opt/gitlab-runner".into() });
        let only = gitlab(json!({"project": "acme/lab/Robot", "url": "https://git.example/"})).unwrap();
        assert_eq!(
            (only.link.as_str(), only.address.page.as_str()),
            ("https://git.example/projects/acme/lab/Robot", "https://git.example/acme/lab/Robot")
        );
        for (owner, name, of_group, of_project) in [
            ("acme/lab", "robot", true, true),
            ("acme/lab/deep", "robot", true, false),
            ("acme", "lab", false, false),
            ("acme/labs", "robot", false, false),
        ] {
            let repository = Repository::new(owner, name);
            assert_eq!((group.covers(&repository), only.covers(&repository)), (of_group, of_project), "{repository}");
        }
    }

    #[test]
    fn what_a_pool_of_gitlab_cannot_mean_is_refused_with_a_remedy() {
        for (fields, expected) in [
            (json!({}), "it is not said whose jobs are run"),
            (json!({"group": "acme", "project": "acme/shop"}), "it is not said whose jobs are run"),
            (json!({"project": "shop"}), "the project is no path"),
            (json!({"group": "acme", "url": "http://gitlab.com"}), "clear text"),
            (json!({"group": "enterprises/a"}), "called enterprises"),
        ] {
            let (message, remedy) = gitlab(fields).unwrap_err();
            assert!(message.contains(expected) && !remedy.is_empty(), "{message}");
        }
    }

    #[test]
    fn quotas_of_gitlab_hold_for_projects_of_groups_below() {
        let pool = gitlab(json!({"group": "acme", "quotas": {"eachRepository": 4, "repositories": [
            {"repository": "acme/lab/robot", "quota": 2}, {"repository": "shop", "quota": 3},
        ]}}));
        let rules = rules([pool.unwrap()].iter(), BTreeMap::new());
        let quota = |owner: &str, name: &str| rules.of(&Repository::new(owner, name)).quota;
        assert_eq!((quota("acme/lab", "robot"), quota("acme", "shop")), (Some(2), Some(3)));
        assert_eq!((quota("acme/lab", "other"), quota("other", "x")), (Some(4), None));
    }

    #[test]
    fn a_guest_lives_no_longer_than_its_machine_may() {
        let lifecycle = Lifecycle { max_lifetime: Some(Span("2h".into())), ..Lifecycle::default() };
        assert_eq!(limits(&github(json!({})), &lifecycle).lifetime_seconds, 7_200);
        let own = limits(&github(json!({"limits": {"lifetime": "1h", "idle": "5m"}})), &lifecycle);
        assert_eq!((own.lifetime_seconds, own.idle_seconds), (3_600, 300));
        assert_eq!(own.check(), Ok(()));
    }

    #[test]
    fn of_several_quotas_the_smallest_counts() {
        let one = json!({"organization": "acme", "quotas": {"owner": 9, "eachRepository": 4, "repositories": [
            {"repository": "shop", "quota": 7, "weight": 2, "priority": 3}, {"repository": "other/app"},
        ]}});
        let other = json!({"organization": "acme", "quotas": {"owner": 5, "repositories": [{"repository": "Shop", "quota": 6}]}});
        let all = [settings(one), settings(other)];
        let rules = rules(all.iter(), BTreeMap::new());
        assert_eq!((rules.owners["acme"], rules.of(&Repository::new("acme", "web")).quota), (5, Some(4)));
        let shop = rules.of(&Repository::new("acme", "shop"));
        assert_eq!((shop.quota, shop.weight, shop.priority), (Some(6), 2, 3));
        assert_eq!(rules.of(&Repository::new("other", "app")).quota, None, "it is of another owner");
    }

    #[test]
    fn quotas_of_a_pool_hold_in_its_own_scope_only() {
        let one = json!({"organization": "acme", "quotas": {"eachRepository": 4, "repositories": [
            {"repository": "other/app", "quota": 0}, {"repository": "acme/web", "quota": 3},
        ]}});
        let other = json!({"organization": "other"});
        let single = json!({"repository": "third/shop", "quotas": {"owner": 1, "eachRepository": 2}});
        let corp = json!({"enterprise": "corp", "quotas": {"repositories": [
            {"repository": "third/web", "quota": 5}, {"repository": "fourth/web", "quota": 6},
        ]}});
        let organizations = BTreeMap::from([("enterprises/corp".to_owned(), ["fourth".to_owned()].into())]);
        let all = [settings(one), settings(other), settings(single), settings(corp)];
        let rules = rules(all.iter(), organizations);
        assert_eq!(rules.owners, BTreeMap::new(), "of one repository it is no quota of its owner");
        for (repository, expected) in [
            ("acme/shop", Some(4)),
            ("acme/web", Some(3)),
            ("other/app", None),
            ("third/shop", Some(1)),
            ("third/web", None),
            ("fourth/web", Some(6)),
        ] {
            assert_eq!(rules.of(&Repository::read(repository).unwrap()).quota, expected, "{repository}");
        }
    }
}
