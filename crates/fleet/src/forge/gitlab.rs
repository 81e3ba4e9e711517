//! Where a GitLab is and whose runners are meant, and what jobs of GitLab are in the words of the fleet.

use super::{JobStatus, RepositoryName, RunnerWanted};
use std::collections::BTreeSet;

/// The label of jobs without tags. A pool with it runs such jobs; it is no tag of its runners.
pub const UNTAGGED: &str = "untagged";
/// The most tags that GitLab takes for a runner.
pub const MOST_TAGS: usize = 50;

/// The address of a GitLab, and whose runners.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Place {
    /// Where the server is, such as `https://gitlab.com`: runners are told this.
    pub server: String,
    /// Where its API begins, such as `https://gitlab.com/api/v4`.
    pub api: String,
    /// Whose runners.
    pub owner: Owner,
}

/// Whose runners are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Owner {
    /// Those of the whole server.
    Instance,
    /// Those of a group and of all below it.
    Group(String),
    /// Those of a project.
    Project(String),
    /// Those of a project, or of a group: an address with several names may be either.
    Unclear(String),
}

impl Place {
    /// Reads the address of a group, a project or a server. What is wrong with it otherwise, with the remedy.
    pub fn read(text: &str, allows_http: bool) -> Result<Place, (String, String)> {
        let wrong = |what: &str| {
            let remedy = "use an address such as https://gitlab.com/GROUP, https://gitlab.com/GROUP/PROJECT, \
                          https://gitlab.com/groups/GROUP/SUBGROUP, or https://HOST for the runners of a whole server";
            // What has a user may have a password.
            let shown = if text.contains('@') { "the address".to_owned() } else { format!("{text:?}") };
            Err((format!("{shown} {what}"), remedy.to_owned()))
        };
        let plain = text.trim().trim_end_matches('/');
        let Some((scheme, rest)) = plain.split_once("://") else { return wrong("is no address with https://") };
        match scheme {
            "https" => {}
            "http" if allows_http => {}
            "http" => return wrong("would send credentials in clear text"),
            _ => return wrong("is no address with https://"),
        }
        let (host, path) = rest.split_once('/').unwrap_or((rest, ""));
        let is_host = |byte: u8| byte.is_ascii_alphanumeric() || b".-:[]".contains(&byte);
        if host.is_empty() || !host.bytes().all(is_host) {
            return wrong("has no plain host");
        }
        let is_name = |part: &str| {
            let is_allowed = |byte: u8| byte.is_ascii_alphanumeric() || b"._-".contains(&byte);
            !part.is_empty() && part != "-" && part.bytes().all(is_allowed) && !part.starts_with('.')
        };
        let path = path.strip_suffix(".git").unwrap_or(path);
        // Neither can be the name of a group.
        let (group, project) = (path.strip_prefix("groups/"), path.strip_prefix("projects/"));
        let named = group.or(project).unwrap_or(path);
        if !named.is_empty() && !named.split('/').all(is_name) {
            return wrong("is not the address of a group or a project");
        }
        let owner = match (group, named.contains('/')) {
            (None, _) if named.is_empty() => Owner::Instance,
            (None, true) if project.is_some() => Owner::Project(named.to_owned()),
            (None, true) => Owner::Unclear(named.to_owned()),
            // Projects have at least two names.
            _ => Owner::Group(named.to_owned()),
        };
        let server = format!("{scheme}://{host}");
        Ok(Place { api: format!("{server}/api/v4"), server, owner })
    }
}

impl std::fmt::Display for Owner {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Owner::Instance => write!(f, "server"),
            Owner::Group(path) => write!(f, "group {path}"),
            Owner::Project(path) => write!(f, "project {path}"),
            Owner::Unclear(path) => write!(f, "project or group {path}"),
        }
    }
}

/// A project by its path: the name is the last part, and groups are the owner.
pub fn project(path: &str) -> Option<RepositoryName> {
    let (owner, name) = path.rsplit_once('/')?;
    let is_whole = !name.is_empty() && owner.split('/').all(|part| !part.is_empty());
    is_whole.then(|| RepositoryName { owner: owner.to_owned(), name: name.to_owned() })
}

/// The labels of a job with these tags.
pub fn labels(tags: impl IntoIterator<Item = String>) -> BTreeSet<String> {
    let found: BTreeSet<String> = tags.into_iter().filter(|tag| !tag.is_empty()).collect();
    if found.is_empty() { [UNTAGGED.to_owned()].into() } else { found }
}

/// The tags of a runner, and whether it runs jobs without tags.
pub fn tags(wanted: &RunnerWanted) -> (BTreeSet<String>, bool) {
    let tags: BTreeSet<String> = wanted.labels.iter().filter(|label| *label != UNTAGGED).cloned().collect();
    // A runner that runs neither cannot be registered.
    let runs_untagged = wanted.labels.contains(UNTAGGED) || tags.is_empty();
    (tags, runs_untagged)
}

/// How far a job is. A job that is tried again is another job.
pub fn status(text: &str) -> JobStatus {
    match text {
        "pending" => JobStatus::Queued,
        // It is still at its runner, which cleans up.
        "running" | "canceling" => JobStatus::InProgress,
        "success" | "skipped" => JobStatus::Completed(text.to_owned()),
        "failed" => JobStatus::Completed("failure".to_owned()),
        "canceled" => JobStatus::Completed("cancelled".to_owned()),
        // `created`, `manual`, `scheduled`, `preparing`, `waiting_for_resource`, `waiting_for_callback`, and what is new.
        _ => JobStatus::Waiting,
    }
}

#[cfg(test)]
mod tests {
    use super::{Owner, Place, UNTAGGED, labels, project, status, tags};
    use crate::forge::{JobStatus, RunnerWanted};

    #[test]
    fn addresses_of_all_kinds_are_read() {
        let group = |path: &str| Owner::Group(path.into());
        let unclear = |path: &str| Owner::Unclear(path.into());
        for (text, server, owner) in [
            ("https://gitlab.com/acme", "https://gitlab.com", group("acme")),
            ("https://gitlab.com/acme/", "https://gitlab.com", group("acme")),
            ("https://gitlab.com/groups/acme/lab", "https://gitlab.com", group("acme/lab")),
            ("https://gitlab.com/acme/shop", "https://gitlab.com", unclear("acme/shop")),
            ("https://gitlab.com/projects/acme/shop", "https://gitlab.com", Owner::Project("acme/shop".into())),
            ("https://gitlab.com/acme/lab/robot.git", "https://gitlab.com", unclear("acme/lab/robot")),
            ("https://git.example:8443", "https://git.example:8443", Owner::Instance),
        ] {
            let place = Place::read(text, false).unwrap();
            assert_eq!((place.server.as_str(), place.api), (server, format!("{server}/api/v4")), "{text}");
            assert_eq!(place.owner, owner, "{text}");
        }
        assert!(Place::read("http://127.0.0.1:80/acme", true).is_ok());
    }

    #[test]
    fn what_is_no_address_is_refused_with_a_remedy() {
        for (text, expected) in [
            ("http://gitlab.com/acme", "would send credentials in clear text"),
            ("gitlab.com/acme", "is no address with https://"),
            ("https:///acme", "has no plain host"),
            ("https://user:pass@gitlab.com/acme", "has no plain host"),
            ("https://gitlab.com/acme?x=1", "is not the address"),
            ("https://gitlab.com/acme/..", "is not the address"),
            ("https://gitlab.com/groups/acme/-/runners", "is not the address"),
            ("https://gitlab.com//acme", "is not the address"),
        ] {
            let (message, remedy) = Place::read(text, false).unwrap_err();
            assert!(message.contains(expected) && remedy.contains("https://gitlab.com/GROUP"), "{text}: {message}");
            assert!(!message.contains("pass"), "{message}");
        }
    }

    #[test]
    fn jobs_without_tags_have_a_label_of_their_own() {
        let wanted = |labels: &[&str]| RunnerWanted {
            name: "a".into(),
            labels: labels.iter().map(|&label| label.to_owned()).collect(),
            group: None,
        };
        assert_eq!(labels(["pve".to_owned()]), ["pve".to_owned()].into());
        assert_eq!(labels([]), [UNTAGGED.to_owned()].into());
        assert_eq!(tags(&wanted(&["pve"])), (["pve".to_owned()].into(), false));
        assert_eq!(tags(&wanted(&["pve", "untagged"])), (["pve".to_owned()].into(), true));
        assert_eq!(tags(&wanted(&["untagged"])), ([].into(), true));
    }

    #[test]
    fn states_and_paths_are_those_of_gitlab() {
        assert_eq!(
            project("acme/lab/robot").map(|name| (name.owner, name.name)),
            Some(("acme/lab".into(), "robot".into()))
        );
        assert!(project("acme").is_none() && project("acme//x").is_none() && project("/x").is_none());
        for (text, expected) in [
            ("pending", JobStatus::Queued),
            ("created", JobStatus::Waiting),
            ("manual", JobStatus::Waiting),
            ("waiting_for_resource", JobStatus::Waiting),
            ("running", JobStatus::InProgress),
            ("canceling", JobStatus::InProgress),
            ("success", JobStatus::Completed("success".into())),
            ("failed", JobStatus::Completed("failure".into())),
            ("canceled", JobStatus::Completed("cancelled".into())),
        ] {
            assert_eq!(status(text), expected, "{text}");
        }
    }
}
