//! One call of the API: its address, who may use it, and what it does.

use crate::call::Call;
use crate::request::Method;
use crate::response::{Answer, Refusal};
use crate::stand_in::StandIn;
use std::collections::BTreeMap;

/// What a call does.
pub(crate) type Run = fn(&mut StandIn, &Call<'_>) -> Result<Answer, Refusal>;

/// Who may use a call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Need {
    /// Everybody.
    Nothing,
    /// Everybody who is known.
    Metadata,
    /// The App itself, with a token that it signed.
    App,
    /// Who manages the runners of the scope.
    Runners,
    /// Who sees, or for writes manages, the workflows of the repository.
    Actions,
    /// Who manages the hooks of the scope.
    Hooks,
    /// A token for the registration of runners.
    Registration,
    /// The token of the actions service.
    Service,
    /// The token of a message queue.
    Queue,
}

/// A call of the API.
pub struct Route {
    /// What it does.
    pub method: Method,
    /// Its path, in which `{name}` stands for one part.
    pub path: &'static str,
    pub(crate) need: Need,
    pub(crate) documentation: &'static str,
    pub(crate) run: Run,
}

impl std::fmt::Debug for Route {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} {}", self.method.as_str(), self.path)
    }
}

impl Route {
    /// Whether it is part of the published REST API.
    pub fn is_rest(&self) -> bool {
        !matches!(self.need, Need::Registration | Need::Service | Need::Queue) && !self.path.starts_with("/_")
    }

    /// The parts of the path that have names, if it is this call.
    pub(crate) fn matches(&self, method: Method, path: &str) -> Option<BTreeMap<&'static str, String>> {
        if method != self.method {
            return None;
        }
        let mut found = BTreeMap::new();
        let (mut wanted, mut parts) = (self.path.split('/'), path.trim_end_matches('/').split('/'));
        loop {
            match (wanted.next(), parts.next()) {
                (None, None) => return Some(found),
                (Some(wanted), Some(part)) => match wanted.strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
                    Some(name) if !part.is_empty() => {
                        found.insert(name, part.to_owned());
                    }
                    None if wanted == part => {}
                    _ => return None,
                },
                _ => return None,
            }
        }
    }
}
