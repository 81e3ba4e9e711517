//! Why a request to GitHub failed, and what that means.

use fleet::forge::{Failure, Scope};
use jiff::Timestamp;

/// Why a request failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Trouble {
    /// There was no answer: it may have been carried out.
    Unanswered(String),
    /// The server refused it, or failed.
    Answered {
        /// The HTTP status.
        code: u16,
        /// What it said.
        message: String,
        /// The name of the exception, if it is the service of scale sets.
        exception: String,
        /// What GitHub says would be accepted, if it says it.
        accepted: Option<String>,
    },
    /// A limit forbids it until then.
    Limited {
        /// Which limit.
        message: String,
        /// When it may be asked again.
        until: Timestamp,
    },
    /// The server answered something else than GitHub does.
    Misread {
        /// The path with placeholders.
        path: &'static str,
        /// Why it cannot be read.
        why: String,
    },
    /// A person has to change something.
    Settings {
        /// What is wrong.
        message: String,
        /// What to do.
        remedy: String,
    },
}

/// What a request needs to be allowed to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// Manage the runners of the scope.
    Runners,
    /// See workflows.
    Actions,
    /// Manage the webhooks of the scope.
    Hooks,
    /// Be the App.
    App,
    /// Nothing but to be known.
    Metadata,
}

/// Who asks, about what, and where: for messages.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Context<'a> {
    pub(crate) host: &'a str,
    pub(crate) scope: &'a Scope,
    pub(crate) is_app: bool,
}

impl Trouble {
    pub(crate) fn is(&self, wanted: u16) -> bool {
        matches!(self, Trouble::Answered { code, .. } if *code == wanted)
    }

    /// Whether it is an exception of the service of scale sets with this in its name.
    pub(crate) fn is_exception(&self, name: &str) -> bool {
        matches!(self, Trouble::Answered { exception, .. } if exception.contains(name))
    }

    /// The failure of what was being done.
    pub(crate) fn failure(&self, doing: &str, need: Need, context: &Context<'_>) -> Failure {
        let said = |what: &str| format!("{doing} at {}: {what}", context.host);
        match self {
            Trouble::Unanswered(message) => Failure::Transient(said(message)),
            Trouble::Limited { message, until } => Failure::RateLimited { message: said(message), until: *until },
            Trouble::Misread { path, why } => Failure::Transient(said(&format!(
                "the answer to {path} is not that of GitHub: {why}; check the address, and that no proxy changes answers"
            ))),
            Trouble::Settings { message, remedy } => {
                Failure::Configuration { message: said(message), remedy: remedy.clone() }
            }
            Trouble::Answered { code, message, accepted, .. } => {
                let shown = said(&format!("{message} ({code})"));
                match remedy(*code, message, accepted.as_deref(), need, context) {
                    Verdict::Remedy(remedy) => Failure::Configuration { message: shown, remedy },
                    Verdict::Transient => Failure::Transient(shown),
                    Verdict::Permanent => Failure::Permanent(shown),
                }
            }
        }
    }
}

#[derive(Debug, PartialEq, Eq)]
enum Verdict {
    Transient,
    Permanent,
    Remedy(String),
}

fn remedy(code: u16, message: &str, accepted: Option<&str>, need: Need, context: &Context<'_>) -> Verdict {
    let lower = message.to_lowercase();
    let has = |text: &str| lower.contains(text);
    let fix = |text: String| Verdict::Remedy(text);
    match code {
        401 if has("json web token") => {
            fix("check that the private key belongs to the App with this id, and that it was not revoked".into())
        }
        401 if has("claim") => fix("set the clock of this machine: GitHub accepts a difference of a minute".into()),
        401 if context.is_app => {
            fix("check the id and the private key of the App, and that it was not suspended".into())
        }
        401 => fix("renew the personal access token: it is wrong, expired or revoked".into()),
        403 if has("suspended") => fix(format!("unsuspend the installation of the App in the {}", context.scope)),
        403 if has("ip allow list") => {
            fix(format!("add the address of this cluster to the IP allow list of the {}", context.scope))
        }
        403 if has("saml") || has("sso") => {
            fix(format!("authorize the personal access token for the single sign-on of the {}", context.scope))
        }
        403 => {
            let permission = permission(need, context);
            let accepted = accepted.map(|accepted| format!(" (GitHub accepts {accepted})")).unwrap_or_default();
            match context.is_app {
                true => fix(format!(
                    "grant the App {permission}{accepted}, and accept that in the settings of its installation"
                )),
                false => fix(format!("use a personal access token with {permission}{accepted}")),
            }
        }
        404 if has("integration not found") => fix("check the id of the App: there is none with this id here".into()),
        404 | 410 => match context.is_app {
            true => fix(format!(
                "check the name of the {}, and that the App is installed there and sees what was asked for",
                context.scope
            )),
            false => fix(format!(
                "check the name of the {}, and that the owner of the token can administer it ({})",
                context.scope,
                permission(need, context)
            )),
        },
        300..=399 => fix(format!("check whether the {} was renamed, and use its address of today", context.scope)),
        408 | 425 | 429 | 500.. => Verdict::Transient,
        _ => Verdict::Permanent,
    }
}

/// The permission that is needed, as the pages of GitHub name it.
pub(crate) fn permission(need: Need, context: &Context<'_>) -> &'static str {
    match (need, context.scope, context.is_app) {
        (Need::Runners, Scope::Enterprise(_), _) => "the scope manage_runners:enterprise",
        (Need::Runners, Scope::Organization(_), true) => {
            "the organisation permission \"Self-hosted runners\": read and write"
        }
        (Need::Runners, Scope::Organization(_), false) => {
            "the scope admin:org, or the organisation permission \"Self-hosted runners\": read and write"
        }
        (Need::Runners, Scope::Repository(_), true) => "the repository permission \"Administration\": read and write",
        (Need::Runners, Scope::Repository(_), false) => {
            "the scope repo, or the repository permission \"Administration\": read and write"
        }
        (Need::Actions, _, true) => "the repository permission \"Actions\": read",
        (Need::Actions, _, false) => "the scope repo, or the repository permission \"Actions\": read",
        (Need::Hooks, Scope::Repository(_), true) => "the repository permission \"Webhooks\": read and write",
        (Need::Hooks, Scope::Repository(_), false) => {
            "the scope admin:repo_hook, or the repository permission \"Webhooks\": read and write"
        }
        (Need::Hooks, _, true) => "the organisation permission \"Webhooks\": read and write",
        (Need::Hooks, _, false) => {
            "the scope admin:org_hook, or the organisation permission \"Webhooks\": read and write"
        }
        (Need::App, ..) => "the credentials of the App itself",
        (Need::Metadata, _, true) => "the repository permission \"Metadata\": read",
        (Need::Metadata, _, false) => "the scope repo, or the repository permission \"Metadata\": read",
    }
}

/// The permission of an App as the API names it, and whether writing is needed.
pub(crate) fn app_permission(need: Need, scope: &Scope) -> (&'static str, bool) {
    match (need, scope) {
        (Need::Runners, Scope::Repository(_)) => ("administration", true),
        (Need::Runners, _) => ("organization_self_hosted_runners", true),
        (Need::Hooks, Scope::Repository(_)) => ("repository_hooks", true),
        (Need::Hooks, _) => ("organization_hooks", true),
        (Need::Actions, _) => ("actions", false),
        (Need::App | Need::Metadata, _) => ("metadata", false),
    }
}

/// What tokens of GitHub and GitLab start with.
const TOKENS: [&str; 11] =
    ["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "eyJ", "glpat-", "glrt-", "glrtr-", "gloas-"];

/// A text of a server without anything that looks like a token, in one line and not too long.
pub(crate) fn scrubbed(text: &str) -> String {
    let is_token = |word: &str| {
        let word = word.trim_matches(|character: char| !character.is_ascii_alphanumeric());
        TOKENS.iter().any(|start| word.starts_with(start))
    };
    let words: Vec<&str> =
        text.split_whitespace().map(|word| if is_token(word) { "[redacted]" } else { word }).collect();
    let line = words.join(" ");
    match line.char_indices().nth(300) {
        Some((end, _)) => format!("{} ...", &line[..end]),
        None => line,
    }
}

#[cfg(test)]
mod tests {
    use super::{Context, Need, Trouble, scrubbed};
    use fleet::forge::{Class, Failure, RepositoryName, Scope};

    fn failure(code: u16, message: &str, need: Need, scope: &Scope, is_app: bool) -> Failure {
        let trouble = Trouble::Answered { code, message: message.into(), exception: String::new(), accepted: None };
        trouble.failure("listing runners", need, &Context { host: "api.github.com", scope, is_app })
    }

    #[test]
    fn refusals_are_classed_and_say_what_where_and_how_to_fix() {
        let organization = Scope::Organization("acme".into());
        let repository = Scope::Repository(RepositoryName { owner: "acme".into(), name: "shop".into() });
        let cases = [
            (401, "Bad credentials", Need::Runners, false, "renew the personal access token"),
            (401, "A JSON web token could not be decoded", Need::App, true, "check that the private key belongs"),
            (401, "'Issued at' claim ('iat') must be an Integer", Need::App, true, "set the clock"),
            (
                403,
                "Resource not accessible by integration",
                Need::Runners,
                true,
                "grant the App the organisation permission \"Self-hosted runners\"",
            ),
            (
                403,
                "Resource not accessible by personal access token",
                Need::Runners,
                false,
                "use a personal access token with the scope admin:org",
            ),
            (
                403,
                "This installation has been suspended",
                Need::Runners,
                true,
                "unsuspend the installation of the App in the organisation acme",
            ),
            (403, "the `acme` organization has an IP allow list enabled", Need::Runners, true, "add the address"),
            (
                403,
                "Resource protected by organization SAML enforcement.",
                Need::Runners,
                false,
                "authorize the personal",
            ),
            (
                403,
                "Resource not accessible by integration",
                Need::Actions,
                true,
                "grant the App the repository permission \"Actions\": read",
            ),
            (
                404,
                "Not Found",
                Need::Runners,
                true,
                "check the name of the organisation acme, and that the App is installed",
            ),
            (404, "Integration not found", Need::App, true, "check the id of the App"),
            (301, "Moved Permanently", Need::Runners, true, "check whether the organisation acme was renamed"),
        ];
        for (code, message, need, is_app, expected) in cases {
            match failure(code, message, need, &organization, is_app) {
                Failure::Configuration { message: shown, remedy } => {
                    assert!(remedy.starts_with(expected), "{code} {message}: {remedy}");
                    assert_eq!(shown, format!("listing runners at api.github.com: {message} ({code})"));
                }
                other => panic!("{code} {message}: {other:?}"),
            }
        }
        for (code, class) in [
            (500, Class::Transient),
            (502, Class::Transient),
            (503, Class::Transient),
            (429, Class::Transient),
            (422, Class::Permanent),
            (409, Class::Permanent),
            (400, Class::Permanent),
        ] {
            assert_eq!(failure(code, "Server Error", Need::Runners, &organization, true).class(), class, "{code}");
        }
        let text = failure(403, "no", Need::Runners, &repository, true).to_string();
        assert!(text.contains("\"Administration\""), "{text}");
        let text = failure(403, "no", Need::Runners, &Scope::Enterprise("corp".into()), false).to_string();
        assert!(text.contains("manage_runners:enterprise"), "{text}");
    }

    #[test]
    fn tokens_are_not_shown() {
        let text = scrubbed("token ghp_abc,\n(ghs_x.y.z) and \"eyJhbGciOi.J9.x\" or github_pat_1 \u{e4}");
        assert_eq!(text, "token [redacted] [redacted] and [redacted] or [redacted] \u{e4}");
        assert_eq!(scrubbed("runner glrt-t1_abc of 'glpat-xyz'"), "runner [redacted] of [redacted]");
        assert!(scrubbed(&"\u{e4}".repeat(5000)).chars().count() < 310);
    }
}
