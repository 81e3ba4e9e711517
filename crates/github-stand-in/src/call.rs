//! One request to a known call: who asks, what for, and which page of a list.

use crate::access::Caller;
use crate::names::{RepositoryName, Scope};
use crate::request::Request;
use crate::response::{Answer, Refusal};
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::time::Duration;

/// Whose runners, workflows or hooks a path is about, as the client writes it.
pub(crate) fn scope_of(in_path: &BTreeMap<&'static str, String>) -> Option<Scope> {
    let part = |name: &str| in_path.get(name).cloned();
    if let Some(enterprise) = part("enterprise") {
        return Some(Scope::Enterprise(enterprise));
    }
    if let Some(organization) = part("org") {
        return Some(Scope::Organization(organization));
    }
    Some(Scope::Repository(RepositoryName { owner: part("owner")?, name: part("repo")? }))
}

/// One request to a known call.
pub(crate) struct Call<'a> {
    pub(crate) request: &'a Request,
    pub(crate) in_path: BTreeMap<&'static str, String>,
    pub(crate) caller: Caller,
    pub(crate) now: Duration,
    /// The address of the API, for links.
    pub(crate) api: String,
    /// Whose runners, workflows or hooks it is about, as it is really written.
    pub(crate) scope: Option<Scope>,
}

impl Call<'_> {
    /// A part of the path.
    pub(crate) fn path(&self, name: &str) -> &str {
        self.in_path.get(name).map_or("", String::as_str)
    }

    /// A part of the path that is an id. An id that is none does not exist.
    pub(crate) fn id(&self, name: &str) -> Result<u64, Refusal> {
        self.path(name).parse().map_err(|_| Refusal::not_found())
    }

    /// Whose runners, workflows or hooks it is about.
    pub(crate) fn scope(&self) -> Result<&Scope, Refusal> {
        self.scope.as_ref().ok_or_else(Refusal::not_found)
    }

    /// The repository that it is about.
    pub(crate) fn repository(&self) -> Result<&RepositoryName, Refusal> {
        match self.scope()? {
            Scope::Repository(name) => Ok(name),
            _ => Err(Refusal::not_found()),
        }
    }

    /// A text in the body that has to be there.
    pub(crate) fn text(&self, name: &str) -> Result<&str, Refusal> {
        match &self.request.body[name] {
            Value::Null => Err(Refusal::invalid(format!("{name:?} wasn't supplied."))),
            Value::String(text) => Ok(text),
            other => Err(Refusal::invalid(format!("For 'properties/{name}', {other} is not a string."))),
        }
    }

    /// A list of texts in the body.
    pub(crate) fn texts(&self, name: &str) -> Result<Vec<String>, Refusal> {
        let Some(items) = self.request.body[name].as_array() else {
            return Err(Refusal::invalid(format!("{name:?} wasn't supplied.")));
        };
        let read = |item: &Value| item.as_str().map(str::to_owned);
        let found: Option<Vec<String>> = items.iter().map(read).collect();
        found.ok_or_else(|| Refusal::invalid(format!("For 'items', not every item of {name:?} is a string.")))
    }

    fn number(&self, name: &str, default: usize) -> usize {
        self.request.query.get(name).and_then(|value| value.parse().ok()).unwrap_or(default)
    }

    /// How many entries a page has.
    pub(crate) fn per_page(&self) -> usize {
        self.number("per_page", 30).clamp(1, 100)
    }

    /// The address of this list with other parameters.
    pub(crate) fn link(&self, changes: &[(&str, String)]) -> String {
        let mut query = self.request.query.clone();
        for (name, value) in changes {
            query.insert((*name).to_owned(), value.clone());
        }
        let pairs: Vec<String> = query.iter().map(|(name, value)| format!("{name}={value}")).collect();
        format!("{}{}?{}", self.api, self.request.path, pairs.join("&"))
    }

    /// One page of a list. `key` names it in an object with the number of all entries; lists without a name are plain.
    pub(crate) fn page(&self, key: Option<&str>, items: &[Value]) -> Answer {
        let (size, page) = (self.per_page(), self.number("page", 1).max(1));
        let last = items.len().div_ceil(size).max(1);
        let shown: Vec<Value> = items.iter().skip((page - 1) * size).take(size).cloned().collect();
        let mut answer = Answer::from(match key {
            Some(key) => json!({"total_count": items.len(), key: shown}),
            None => Value::Array(shown),
        });
        let mut links = Vec::new();
        let mut add = |rel: &str, page: usize| {
            links.push(format!("<{}>; rel=\"{rel}\"", self.link(&[("page", page.to_string())])));
        };
        if page > 1 {
            add("prev", page - 1);
        }
        if page < last {
            add("next", page + 1);
            add("last", last);
        }
        if page > 1 {
            add("first", 1);
        }
        if !links.is_empty() {
            answer.headers.push(("link", links.join(", ")));
        }
        answer
    }
}
