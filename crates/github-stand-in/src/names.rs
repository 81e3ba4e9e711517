//! Where runners, jobs and hooks belong: an enterprise, an organisation or a repository.

use std::fmt;

/// A repository.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct RepositoryName {
    /// The organisation.
    pub owner: String,
    /// Its name in the organisation.
    pub name: String,
}

impl RepositoryName {
    /// `OWNER/NAME`.
    pub fn parse(text: &str) -> Option<RepositoryName> {
        let (owner, name) = text.split_once('/')?;
        Some(RepositoryName { owner: owner.to_owned(), name: name.to_owned() })
    }
}

impl fmt::Display for RepositoryName {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}/{}", self.owner, self.name)
    }
}

/// Who owns a runner, a runner group, a hook or a scale set.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub enum Scope {
    /// All organisations of an enterprise.
    Enterprise(String),
    /// All repositories of an organisation.
    Organization(String),
    /// One repository.
    Repository(RepositoryName),
}

impl Scope {
    /// Whether jobs of a repository, in the only enterprise, can come here.
    pub(crate) fn covers(&self, repository: &RepositoryName) -> bool {
        match self {
            Scope::Enterprise(_) => true,
            Scope::Organization(name) => name.eq_ignore_ascii_case(&repository.owner),
            Scope::Repository(name) => is_same(name, repository),
        }
    }

    /// The path of its pages, below the address of the server.
    pub fn path(&self) -> String {
        match self {
            Scope::Enterprise(name) => format!("enterprises/{name}"),
            Scope::Organization(name) => name.clone(),
            Scope::Repository(name) => name.to_string(),
        }
    }

    /// The path of its part of the REST API.
    pub(crate) fn api_path(&self) -> String {
        match self {
            Scope::Enterprise(name) => format!("enterprises/{name}"),
            Scope::Organization(name) => format!("orgs/{name}"),
            Scope::Repository(name) => format!("repos/{name}"),
        }
    }
}

/// Names of GitHub are the same whatever their case is.
fn is_same(one: &RepositoryName, other: &RepositoryName) -> bool {
    one.owner.eq_ignore_ascii_case(&other.owner) && one.name.eq_ignore_ascii_case(&other.name)
}
