//! What a refusal of GitLab means, and what a person has to change.

use crate::github::trouble::Trouble;
use fleet::forge::Failure;
use fleet::forge::gitlab::Owner;

/// What a request needs to be allowed to do.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// Register runners.
    Create,
    /// See, pause and remove runners.
    Manage,
    /// See projects and jobs.
    Read,
}

impl Need {
    /// The scope of an access token.
    pub(crate) fn scope(self) -> &'static str {
        match self {
            Need::Create => "create_runner",
            Need::Manage => "manage_runner",
            Need::Read => "read_api",
        }
    }
}

/// The role that is needed to have runners.
pub(crate) fn role(owner: &Owner) -> String {
    match owner {
        Owner::Instance => "the rights of an administrator of the server".to_owned(),
        Owner::Group(path) => format!("the role Owner in the group {path}"),
        Owner::Project(path) => format!("the role Maintainer in the project {path}"),
        Owner::Unclear(path) => format!("the role Maintainer in the project {path}, or Owner if it is a group"),
    }
}

/// The failure of what was being done.
pub(crate) fn failure(trouble: &Trouble, doing: &str, need: Need, host: &str, owner: &Owner) -> Failure {
    let said = |what: &str| format!("{doing} at {host}: {what}");
    let (code, message, accepted) = match trouble {
        Trouble::Unanswered(message) => return Failure::Transient(said(message)),
        Trouble::Limited { message, until } => {
            return Failure::RateLimited { message: said(message), until: *until };
        }
        Trouble::Misread { path, why } => {
            return Failure::Transient(said(&format!(
                "the answer to {path} is not that of GitLab: {why}; check the address, and that no proxy changes answers"
            )));
        }
        Trouble::Settings { message, remedy } => {
            return Failure::Configuration { message: said(message), remedy: remedy.clone() };
        }
        Trouble::Answered { code, message, accepted, .. } => (*code, message, accepted),
    };
    let message = said(&format!("{message} ({code})"));
    let remedy = match (code, accepted) {
        (401, _) => "renew the access token: it is wrong, expired or revoked".to_owned(),
        (403, Some(_)) => format!("use an access token with the scope {} (or api)", need.scope()),
        (403, None) => format!("use an access token of somebody with {}", role(owner)),
        (404, _) => format!("check the name of the {owner}, and that the access token sees it ({})", role(owner)),
        (300..=399, _) => format!("check whether the {owner} was renamed, and use its address of today"),
        (408 | 425 | 429 | 500.., _) => return Failure::Transient(message),
        _ => return Failure::Permanent(message),
    };
    Failure::Configuration { message, remedy }
}

#[cfg(test)]
mod tests {
    use super::{Need, failure};
    use crate::github::trouble::Trouble;
    use fleet::forge::gitlab::Owner;
    use fleet::forge::{Class, Failure};

    #[test]
    fn refusals_are_classed_and_say_what_where_and_how_to_fix() {
        let answered = |code: u16, accepted: Option<&str>| Trouble::Answered {
            code,
            message: "no".into(),
            exception: String::new(),
            accepted: accepted.map(str::to_owned),
        };
        let group = Owner::Group("acme".into());
        for (code, accepted, expected) in [
            (401, None, "renew the access token"),
            (403, Some("api create_runner"), "use an access token with the scope create_runner"),
            (403, None, "use an access token of somebody with the role Owner in the group acme"),
            (404, None, "check the name of the group acme"),
            (302, None, "check whether the group acme was renamed"),
        ] {
            match failure(&answered(code, accepted), "registering runner a", Need::Create, "gitlab.com", &group) {
                Failure::Configuration { message, remedy } => {
                    assert!(remedy.starts_with(expected), "{code}: {remedy}");
                    assert_eq!(message, format!("registering runner a at gitlab.com: no ({code})"));
                }
                other => panic!("{code}: {other:?}"),
            }
        }
        for (code, class) in [(500, Class::Transient), (503, Class::Transient), (400, Class::Permanent)] {
            let found = failure(&answered(code, None), "x", Need::Read, "h", &Owner::Instance);
            assert_eq!(found.class(), class, "{code}");
        }
    }
}
