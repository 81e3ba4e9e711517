//! What exists at the start.

use crate::limit::Limits;
use crate::names::RepositoryName;
use crate::timing::Timing;
use std::collections::BTreeMap;

/// Whose addresses the stand-in has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Style {
    /// An enterprise server: the API is below `/api/v3`.
    Enterprise,
    /// github.com: the API has a host of its own.
    Cloud,
}

/// How jobs come to a scale set.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Assignment {
    /// A job is offered, and assigned when the client acquires it, as by an enterprise server.
    Acquire,
    /// A job is assigned as long as the capacity that the client reports is not used up, as by github.com.
    Automatic,
}

/// A repository.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RepositorySetup {
    /// Its name.
    pub name: RepositoryName,
    /// Whether everybody can see it; runner groups do not serve such repositories unless they are told to.
    pub is_public: bool,
}

/// What exists at the start.
#[derive(Debug, Clone, PartialEq)]
pub struct Setup {
    /// For everything that looks random.
    pub seed: u64,
    /// What the clock shows at the start, in seconds since 1970.
    pub epoch: i64,
    /// The address of the server, such as `https://github.example`.
    pub address: String,
    /// Whose addresses it has.
    pub style: Style,
    /// How jobs come to a scale set.
    pub assignment: Assignment,
    /// How long everything takes.
    pub timing: Timing,
    /// How much a client may ask.
    pub limits: Limits,
    /// The oldest runner that gets jobs, such as `2.329.0`.
    pub minimum_runner: String,
    /// Whether repositories and people in payloads have only the keys that matter to runners, for simulations of many events.
    pub has_short_payloads: bool,
    /// The only enterprise.
    pub enterprise: String,
    /// The repositories; their owners are the organisations. The App is installed in that of the first one only.
    pub repositories: Vec<RepositorySetup>,
    /// What the installation of the App may do, such as `("actions", "read")`.
    pub permissions: BTreeMap<String, String>,
    /// Personal access tokens and their scopes.
    pub personal_tokens: BTreeMap<String, Vec<String>>,
}

impl Setup {
    /// The id of the App.
    pub const APP_ID: u64 = 424_242;
    /// The client id of the App.
    pub const CLIENT_ID: &'static str = "Iv23liStandInOfGitHub";
    /// The id of the installation of the App in the organisation `acme`.
    pub const INSTALLATION: u64 = 51_000_001;
    /// A personal access token with all scopes that runners need.
    pub const TOKEN: &'static str = "ghp_standInTokenWithAllScopes00000000000";
    /// A personal access token without scopes.
    pub const WEAK_TOKEN: &'static str = "ghp_standInTokenWithoutScopes00000000000";

    /// An enterprise with the organisation `acme`, which has the repositories `shop`, `site` and the public `docs`.
    pub fn organization(timing: Timing) -> Setup {
        let repository = |name: &str, is_public: bool| RepositorySetup {
            name: RepositoryName { owner: "acme".to_owned(), name: name.to_owned() },
            is_public,
        };
        let permissions = [
            ("actions", "write"),
            ("administration", "write"),
            ("metadata", "read"),
            ("organization_hooks", "write"),
            ("organization_self_hosted_runners", "write"),
            ("repository_hooks", "write"),
        ];
        let scopes = ["repo", "admin:org", "admin:org_hook", "manage_runners:enterprise"];
        Setup {
            seed: 1,
            epoch: 1_790_000_000,
            address: "https://github.example".to_owned(),
            style: Style::Enterprise,
            assignment: Assignment::Acquire,
            timing,
            limits: Limits::default(),
            minimum_runner: "2.329.0".to_owned(),
            has_short_payloads: false,
            enterprise: "acme-corp".to_owned(),
            repositories: vec![repository("shop", false), repository("site", false), repository("docs", true)],
            permissions: permissions.map(|(name, level)| (name.to_owned(), level.to_owned())).into(),
            personal_tokens: BTreeMap::from([
                (Setup::TOKEN.to_owned(), scopes.map(str::to_owned).to_vec()),
                (Setup::WEAK_TOKEN.to_owned(), Vec::new()),
            ]),
        }
    }
}
