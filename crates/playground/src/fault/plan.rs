//! Fault plans as data: which requests are affected, and how.

use super::request_info::RequestInfo;
use crate::user_error::{self, UserError};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::num::NonZeroU64;
use std::path::Path;

/// A list of rules. For each request, the first rule that matches it is applied.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Plan {
    /// In text form a list, or a single rule.
    pub rules: Vec<Rule>,
}

/// A fault and the requests it applies to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Which requests.
    #[serde(rename = "match", default)]
    pub matching: Match,
    /// The fault to inject.
    pub fault: Fault,
}

/// Which requests; a condition that is left out matches everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Match {
    /// The Kubernetes verb.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verb: Option<Verb>,
    /// A substring of the path or, if it contains `*`, a pattern for the whole path in which `*` matches anything.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Only the n-th matching request since the plan was set, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nth: Option<NonZeroU64>,
}

/// The Kubernetes verbs, and `write` for all requests that change something.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(missing_docs)]
pub enum Verb {
    Get,
    List,
    Watch,
    Create,
    Update,
    Patch,
    Delete,
    DeleteCollection,
    /// Every change except dry runs; Events and Leases only if the path names them.
    Write,
}

/// The faults. One without settings may be written as its name alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Fault {
    /// The program is killed and the request is not forwarded.
    KillBefore {},
    /// The program is killed after the server has responded; the response is discarded.
    KillAfterCommit {},
    /// The server handles the request, and the client receives no response until it times out.
    BlindTimeout {
        /// Close the connection instead of keeping it open.
        #[serde(default)]
        close: bool,
    },
    /// The request is not forwarded, and the client receives no response until it times out.
    Block {},
    /// The request is not forwarded, and the connection is closed.
    Reset {},
    /// The client receives the first half of the response, then the connection is closed.
    Truncate {},
    /// The proxy responds with a Kubernetes Status instead of forwarding the request.
    Status {
        /// The HTTP status.
        code: u16,
        /// The value of Retry-After in seconds; a 429 without it gets 1.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after: Option<u32>,
    },
    /// The request is delayed before it is forwarded.
    Delay {
        /// The delay in milliseconds.
        ms: u64,
    },
    /// From this event of a watch on, or at once, nothing is forwarded; the connection stays open.
    CutSilently {
        /// Which event, counted from 1 without bookmarks.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        event: Option<NonZeroU64>,
    },
    /// The connection is closed instead of forwarding this event of a watch, or at once.
    Cut {
        /// Which event.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        event: Option<NonZeroU64>,
    },
    /// This event of a watch is not forwarded.
    Drop {
        /// Which event.
        event: NonZeroU64,
    },
    /// This event of a watch is forwarded twice.
    Duplicate {
        /// Which event.
        event: NonZeroU64,
    },
    /// The watch ends with an ERROR event (410) instead of this event, or at once.
    Gone {
        /// Which event.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        event: Option<NonZeroU64>,
    },
    /// A list gets the first response to the same list again, including its resourceVersion.
    Stale {},
    /// A list with a continue token gets 410.
    ExpiredContinue {},
}

impl Plan {
    /// Parses a rule or a list of rules, in YAML or JSON.
    pub fn parse(text: &str) -> Result<Plan, UserError> {
        let value: Value = serde_saphyr::from_str(text).map_err(|error| invalid("").with_detail(error.to_string()))?;
        let (values, listed) = match value {
            Value::Array(values) => (values, true),
            value => (vec![value], false),
        };
        let rules = values.into_iter().enumerate().map(|(index, value)| {
            let name = if listed { format!("rule {}", index + 1) } else { String::new() };
            parse_rule(value).map_err(|message| invalid(&name).with_detail(message))
        });
        Ok(Plan { rules: rules.collect::<Result<_, _>>()? })
    }

    /// Reads a plan from a file.
    pub fn read(path: &Path) -> Result<Plan, UserError> {
        Plan::parse(&std::fs::read_to_string(path).map_err(|error| user_error::io("read the plan", path, error))?)
    }
}

impl From<Rule> for Plan {
    fn from(rule: Rule) -> Plan {
        Plan { rules: vec![rule] }
    }
}

fn invalid(rule: &str) -> UserError {
    let rule = if rule.is_empty() { String::new() } else { format!(": {rule}") };
    UserError::new(
        format!("the fault plan is invalid{rule}"),
        "write {match: {verb, path, nth}, fault: ...}; docs/playground.md lists all faults",
    )
}

fn parse_rule(mut value: Value) -> Result<Rule, String> {
    // A name alone is the fault without settings.
    if let Some(fault) = value.get_mut("fault")
        && let Value::String(name) = fault
    {
        *fault = Value::Object([(std::mem::take(name), Value::Object(serde_json::Map::new()))].into_iter().collect());
    }
    let rule: Rule = serde_json::from_value(value).map_err(|error| error.to_string())?;
    let (name, verb) = (rule.fault.name(), rule.matching.verb);
    if let Some(required) = rule.fault.required_verb()
        && verb.is_some_and(|verb| verb != required)
    {
        return Err(format!("{name} applies only to the verb {}", required.name()));
    }
    if rule.fault == (Fault::Truncate {}) && verb == Some(Verb::Watch) {
        return Err(format!("{name} does not apply to a watch; use cut"));
    }
    if let Fault::Status { code, .. } = rule.fault
        && !(400..=599).contains(&code)
    {
        return Err(format!("{name}: code {code} is not an error; use 400 to 599"));
    }
    Ok(rule)
}

impl Rule {
    /// Whether it matches this request, regardless of `nth`.
    pub(super) fn matches(&self, request: &RequestInfo) -> bool {
        let Match { verb, path, .. } = &self.matching;
        let path_applies = path.as_deref().is_none_or(|pattern| path_matches(pattern, &request.path));
        let timed = ["events", "leases", api::STATUS];
        let names_them = path.as_deref().is_some_and(|path| timed.iter().any(|name| path.contains(name)));
        let verb_applies = |verb: Verb| match verb {
            Verb::Write => request.is_write() && (names_them || !request.depends_on_timing()),
            verb => verb.name() == request.verb,
        };
        let fault_applies = match self.fault {
            Fault::ExpiredContinue {} => request.parameter("continue").is_some(),
            Fault::Truncate {} => request.verb != "watch",
            _ => true,
        };
        path_applies
            && verb.is_none_or(verb_applies)
            && self.fault.required_verb().is_none_or(verb_applies)
            && fault_applies
    }
}

impl Verb {
    fn name(self) -> &'static str {
        match self {
            Verb::Get => "get",
            Verb::List => "list",
            Verb::Watch => "watch",
            Verb::Create => "create",
            Verb::Update => "update",
            Verb::Patch => "patch",
            Verb::Delete => "delete",
            Verb::DeleteCollection => "deletecollection",
            Verb::Write => "write",
        }
    }
}

impl Fault {
    /// Its name in a plan.
    pub fn name(&self) -> &'static str {
        match self {
            Fault::KillBefore {} => "kill-before",
            Fault::KillAfterCommit {} => "kill-after-commit",
            Fault::BlindTimeout { .. } => "blind-timeout",
            Fault::Block {} => "block",
            Fault::Reset {} => "reset",
            Fault::Truncate {} => "truncate",
            Fault::Status { .. } => "status",
            Fault::Delay { .. } => "delay",
            Fault::CutSilently { .. } => "cut-silently",
            Fault::Cut { .. } => "cut",
            Fault::Drop { .. } => "drop",
            Fault::Duplicate { .. } => "duplicate",
            Fault::Gone { .. } => "gone",
            Fault::Stale {} => "stale",
            Fault::ExpiredContinue {} => "expired-continue",
        }
    }

    /// The only verb it applies to, if there is one.
    fn required_verb(&self) -> Option<Verb> {
        match self {
            Fault::CutSilently { .. }
            | Fault::Cut { .. }
            | Fault::Drop { .. }
            | Fault::Duplicate { .. }
            | Fault::Gone { .. } => Some(Verb::Watch),
            Fault::Stale {} | Fault::ExpiredContinue {} => Some(Verb::List),
            _ => None,
        }
    }

    /// Whether it changes the server's response.
    pub(super) fn applies_to_response(&self) -> bool {
        matches!(self, Fault::KillAfterCommit {} | Fault::BlindTimeout { .. } | Fault::Truncate {})
    }

    /// Whether it changes the events of a watch and not the request.
    pub(super) fn applies_to_events(&self) -> bool {
        self.required_verb() == Some(Verb::Watch)
    }

    /// The event of a watch at which it is injected; `None` means at once.
    pub(super) fn event(&self) -> Option<u64> {
        match self {
            Fault::CutSilently { event } | Fault::Cut { event } | Fault::Gone { event } => event.map(NonZeroU64::get),
            Fault::Drop { event } | Fault::Duplicate { event } => Some(event.get()),
            _ => None,
        }
    }
}

/// Whether a path contains this substring or, with a `*`, matches this pattern.
fn path_matches(pattern: &str, path: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return path.contains(pattern) };
    let Some(mut left) = path.strip_prefix(first) else { return false };
    let mut pieces: Vec<&str> = rest.split('*').collect();
    let last = pieces.pop().unwrap_or_default();
    for piece in pieces {
        let Some(found) = left.find(piece) else { return false };
        left = &left[found + piece.len()..];
    }
    left.ends_with(last)
}

#[cfg(test)]
mod tests {
    use super::super::request_info::request_info;
    use super::{Fault, Plan, path_matches};

    fn error_of(text: &str) -> String {
        Plan::parse(text).unwrap_err().to_string()
    }

    #[test]
    fn a_plan_is_read_from_yaml_and_from_json() {
        let plan = Plan::parse("match: {verb: patch, path: /configmaps/, nth: 3}\nfault: kill-after-commit\n").unwrap();
        let json = r#"{"match": {"verb": "patch", "path": "/configmaps/", "nth": 3}, "fault": "kill-after-commit"}"#;
        assert_eq!(plan, Plan::parse(json).unwrap());
        let plan = Plan::parse(
            "- {match: {verb: watch}, fault: {cut-silently: {event: 2}}}\n- {fault: {status: {code: 429, retryAfter: 7}}}\n- {fault: cut}\n",
        )
        .unwrap();
        assert_eq!(plan.rules[1].fault, Fault::Status { code: 429, retry_after: Some(7) });
        assert_eq!(plan.rules[2].fault, Fault::Cut { event: None });
        let written = serde_json::to_string(&plan).unwrap();
        assert_eq!(Plan::parse(&written).unwrap(), plan, "{written}");
    }

    #[test]
    fn an_invalid_plan_is_refused_and_the_wrong_key_is_named() {
        for (text, expected) in [
            ("{match: {verbs: patch}, fault: cut}", "unknown field `verbs`"),
            ("{mach: {verb: patch}, fault: cut}", "unknown field `mach`"),
            ("{match: {verb: paint}, fault: cut}", "unknown variant `paint`"),
            ("{match: {}, fault: explode}", "unknown variant `explode`"),
            ("{match: {}, fault: {delay: {seconds: 1}}}", "unknown field `seconds`"),
            ("{match: {}, fault: {delay: {ms: 1, more: 1}}}", "unknown field `more`"),
            ("{match: {}, fault: {kill-before: {now: true}}}", "unknown field `now`"),
            ("{match: {}, fault: delay}", "missing field `ms`"),
            ("{match: {}}", "missing field `fault`"),
            ("{match: {nth: 0}, fault: cut}", "nonzero"),
            ("{match: {verb: patch}, fault: cut}", "cut applies only to the verb watch"),
            ("{match: {verb: get}, fault: stale}", "stale applies only to the verb list"),
            ("{match: {verb: watch}, fault: truncate}", "use cut"),
            ("{fault: {status: {code: 200}}}", "code 200 is not an error"),
            ("[{fault: cut}, {fault: {drop: {}}}]", "rule 2"),
            ("just words", "invalid type"),
            ("{", "the fault plan is invalid"),
        ] {
            let error = error_of(text);
            assert!(error.contains(expected) && error.contains("fix: "), "{text}: {error}");
        }
    }

    #[test]
    fn a_path_is_matched_by_a_substring_or_by_a_pattern() {
        assert!(path_matches("/configmaps", "/api/v1/configmaps/a"));
        assert!(!path_matches("/secrets", "/api/v1/configmaps/a"));
        assert!(path_matches("/api/*/configmaps/*", "/api/v1/namespaces/b/configmaps/a"));
        assert!(path_matches("*configmaps", "/api/v1/configmaps"));
        assert!(!path_matches("*/configmaps", "/api/v1/configmaps/a"));
        assert!(!path_matches("api*", "/api/v1"));
        assert!(!path_matches("/ab*ba", "/aba"));
    }

    #[test]
    fn a_rule_matches_by_its_conditions_and_by_its_fault() {
        let matches = |rule: &str, method: &str, uri: &str| {
            Plan::parse(rule).unwrap().rules[0].matches(&request_info(method, uri))
        };
        let write = "{match: {verb: write}, fault: reset}";
        assert!(matches(write, "DELETE", "/api/v1/nodes/a"));
        assert!(matches(write, "POST", "/api/v1/nodes"));
        assert!(!matches(write, "GET", "/api/v1/nodes"));
        assert!(!matches(write, "PATCH", "/api/v1/nodes/a?dryRun=All"));
        assert!(!matches(write, "POST", "/api/v1/namespaces/a/events"));
        assert!(matches("{match: {verb: write, path: /events}, fault: reset}", "POST", "/api/v1/namespaces/a/events"));
        assert!(matches("{fault: cut}", "GET", "/api/v1/nodes?watch=true"));
        assert!(!matches("{fault: cut}", "GET", "/api/v1/nodes"));
        assert!(!matches("{fault: expired-continue}", "GET", "/api/v1/nodes?limit=1"));
        assert!(matches("{fault: expired-continue}", "GET", "/api/v1/nodes?limit=1&continue=x"));
    }
}
