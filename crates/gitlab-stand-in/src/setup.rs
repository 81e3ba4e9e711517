//! What exists at the start.

use std::collections::BTreeMap;
use std::time::Duration;

/// What exists at the start.
#[derive(Debug, Clone, PartialEq)]
pub struct Setup {
    /// The address of the server, for links.
    pub address: String,
    /// The clock at the start, in seconds since 1970.
    pub epoch: i64,
    /// How far the clock is wrong, in seconds.
    pub skew: i64,
    /// Paths of groups.
    pub groups: Vec<String>,
    /// Projects.
    pub projects: Vec<ProjectSetup>,
    /// Who can log in.
    pub tokens: Vec<TokenSetup>,
    /// What is allowed in a time.
    pub limits: Limits,
    /// Whether lists say which runner has a job, as newer versions do.
    pub says_busy: bool,
}

/// A project.
#[derive(Debug, Clone, PartialEq)]
pub struct ProjectSetup {
    /// Its path, with those of its groups.
    pub path: String,
    /// Whether it is archived.
    pub is_archived: bool,
}

/// An access token, and the user that it belongs to.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenSetup {
    /// The token.
    pub secret: String,
    /// Its name.
    pub name: String,
    /// Its scopes.
    pub scopes: Vec<String>,
    /// The day on which it expires.
    pub expires: Option<String>,
    /// Whether the user administers the server.
    pub is_admin: bool,
    /// The access levels of the user by path: 50 for an owner, 40 for a maintainer, 30 for a developer.
    pub roles: BTreeMap<String, u64>,
}

/// What is allowed in a time.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Limits {
    /// Requests of a user in a window.
    pub requests: u64,
    /// The window.
    pub window: Duration,
}

impl Setup {
    /// A token with the scopes and the role that runners of the group `acme` need, and no others.
    pub const TOKEN: &'static str = "glpat-fleet-11111111111111";
    /// A token of an administrator of the server.
    pub const ADMIN_TOKEN: &'static str = "glpat-admin-22222222222222";
    /// A token that may only read.
    pub const READER_TOKEN: &'static str = "glpat-reader-3333333333333";

    /// The group `acme` with the projects `shop` and `old`, which is archived, and its subgroup `lab` with the project `robot`; the group
    /// `other` with the project `secret`.
    pub fn group() -> Setup {
        let project = |path: &str, is_archived: bool| ProjectSetup { path: path.to_owned(), is_archived };
        let token = |secret: &str, name: &str, scopes: &[&str], roles: &[(&str, u64)]| TokenSetup {
            secret: secret.to_owned(),
            name: name.to_owned(),
            scopes: scopes.iter().map(|&scope| scope.to_owned()).collect(),
            expires: Some("2027-11-18".to_owned()),
            is_admin: false,
            roles: roles.iter().map(|(path, level)| ((*path).to_owned(), *level)).collect(),
        };
        let admin = TokenSetup { is_admin: true, ..token(Setup::ADMIN_TOKEN, "admin", &["api"], &[]) };
        Setup {
            address: "https://gitlab.example".to_owned(),
            epoch: 1_790_000_000,
            skew: 0,
            groups: ["acme", "acme/lab", "other"].map(str::to_owned).to_vec(),
            projects: vec![
                project("acme/shop", false),
                project("acme/old", true),
                project("acme/lab/robot", false),
                project("other/secret", false),
            ],
            tokens: vec![
                token(Setup::TOKEN, "fleet", &["create_runner", "manage_runner", "read_api"], &[("acme", 50)]),
                admin,
                token(Setup::READER_TOKEN, "reader", &["read_api"], &[("acme", 30)]),
            ],
            limits: Limits { requests: 2000, window: Duration::from_secs(60) },
            says_busy: true,
        }
    }
}
