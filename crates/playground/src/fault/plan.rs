//! Plans are data: which requests, and what goes wrong with them.

use super::asked::Asked;
use crate::trouble::{self, Trouble};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::num::NonZeroU64;
use std::path::Path;

/// The rules in force together. Of the rules that are due for a request the first is applied.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize)]
#[serde(transparent)]
pub struct Plan {
    /// Written as a list, or as the only rule itself.
    pub rules: Vec<Rule>,
}

/// One fault and the requests it is for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Rule {
    /// Which requests.
    #[serde(rename = "match", default)]
    pub matching: Match,
    /// What happens to them.
    pub fault: Fault,
}

/// Which requests; what is left out does not matter.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Match {
    /// What they do.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub verb: Option<Verb>,
    /// A part of their path; with a `*` in it, the whole path with anything in place of each `*`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub path: Option<String>,
    /// Only the n-th of them since the plan was set, counted from 1.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nth: Option<NonZeroU64>,
}

/// Kubernetes' verbs, and one word for all that write.
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
    /// Whatever changes something: no dry run; Events and Leases only where the path names them.
    Write,
}

/// What can go wrong. A fault without settings may be written as its name alone.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", rename_all_fields = "camelCase", deny_unknown_fields)]
pub enum Fault {
    /// The program is killed, and the request never reaches the server.
    KillBefore {},
    /// The server answers, then the program is killed; the answer reaches nobody.
    KillAfterCommit {},
    /// The server answers, and the client hears nothing until it gives up.
    BlindTimeout {
        /// Close the connection instead of keeping it open in silence.
        #[serde(default)]
        close: bool,
    },
    /// The request never reaches the server, and the client hears nothing until it gives up.
    Block {},
    /// The request never reaches the server, and the connection is closed.
    Reset {},
    /// The first half of the server's answer arrives, then the connection is closed.
    Truncate {},
    /// The proxy answers with a Kubernetes Status in place of the server.
    Status {
        /// The HTTP status.
        code: u16,
        /// How many seconds a client is told to wait; one where a 429 says nothing.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        retry_after: Option<u32>,
    },
    /// The request waits before it is forwarded.
    Delay {
        /// How long.
        ms: u64,
    },
    /// From this event of a watch on, or at once, no byte is forwarded; the connection stays open.
    CutSilently {
        /// Which event, counted from 1; bookmarks do not count.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        event: Option<NonZeroU64>,
    },
    /// In place of this event of a watch, or at once, the connection is closed.
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
    /// In place of this event of a watch, or at once, an ERROR event says 410, and the watch ends.
    Gone {
        /// Which event.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        event: Option<NonZeroU64>,
    },
    /// A list is answered with what the same list gave the first time, old resourceVersion included.
    Stale {},
    /// A list that continues another is told that its token is too old.
    ExpiredContinue {},
}

impl Plan {
    /// Reads one rule or a list of rules, in YAML or JSON.
    pub fn parse(text: &str) -> Result<Plan, Trouble> {
        let value: Value = serde_saphyr::from_str(text).map_err(|error| refused("").because(error.to_string()))?;
        let (values, listed) = match value {
            Value::Array(values) => (values, true),
            value => (vec![value], false),
        };
        let rules = values.into_iter().enumerate().map(|(index, value)| {
            let which = if listed { format!("rule {}", index + 1) } else { String::new() };
            rule(value).map_err(|words| refused(&which).because(words))
        });
        Ok(Plan { rules: rules.collect::<Result<_, _>>()? })
    }

    /// Reads a file.
    pub fn read(path: &Path) -> Result<Plan, Trouble> {
        Plan::parse(&std::fs::read_to_string(path).map_err(|error| trouble::io("read the plan", path, error))?)
    }
}

impl From<Rule> for Plan {
    fn from(rule: Rule) -> Plan {
        Plan { rules: vec![rule] }
    }
}

fn refused(which: &str) -> Trouble {
    let which = if which.is_empty() { String::new() } else { format!(": {which}") };
    Trouble::new(
        format!("the plan cannot be used{which}"),
        "write {match: {verb, path, nth}, fault: ...}; docs/playground.md has all faults",
    )
}

fn rule(mut value: Value) -> Result<Rule, String> {
    // A name alone means the fault without settings.
    if let Some(fault) = value.get_mut("fault")
        && let Value::String(name) = fault
    {
        *fault = Value::Object([(std::mem::take(name), Value::Object(serde_json::Map::new()))].into_iter().collect());
    }
    let rule: Rule = serde_json::from_value(value).map_err(|error| error.to_string())?;
    let (name, verb) = (rule.fault.name(), rule.matching.verb);
    if let Some(only) = rule.fault.only_for()
        && verb.is_some_and(|verb| verb != only)
    {
        return Err(format!("{name} is for the verb {} alone", format!("{only:?}").to_lowercase()));
    }
    if rule.fault == (Fault::Truncate {}) && verb == Some(Verb::Watch) {
        return Err(format!("{name} is for answers that have an end; for a watch use cut"));
    }
    if let Fault::Status { code, .. } = rule.fault
        && !(400..=599).contains(&code)
    {
        return Err(format!("{name}: code {code} is no failure, use 400 to 599"));
    }
    Ok(rule)
}

impl Rule {
    /// Whether it is about such a request, whichever of them.
    pub(super) fn covers(&self, asked: &Asked) -> bool {
        let Match { verb, path, .. } = &self.matching;
        let path_fits = path.as_deref().is_none_or(|pattern| fits(pattern, &asked.path));
        let named = path.as_deref().is_some_and(|path| path.contains("events") || path.contains("leases"));
        let verb_fits = |verb: Verb| match verb {
            Verb::Write => asked.changes() && (named || !asked.is_small_talk()),
            verb => verb.word() == asked.verb,
        };
        let fault_fits = match self.fault {
            Fault::ExpiredContinue {} => asked.parameter("continue").is_some(),
            Fault::Truncate {} => asked.verb != "watch",
            _ => true,
        };
        path_fits && verb.is_none_or(verb_fits) && self.fault.only_for().is_none_or(verb_fits) && fault_fits
    }
}

impl Verb {
    fn word(self) -> &'static str {
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
    /// What a plan calls it.
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

    /// The one verb it makes sense for, if it does not for all.
    fn only_for(&self) -> Option<Verb> {
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

    /// Whether it happens to an answer of the server.
    pub(super) fn spoils_answer(&self) -> bool {
        matches!(self, Fault::KillAfterCommit {} | Fault::BlindTimeout { .. } | Fault::Truncate {})
    }

    /// Whether it happens to the events of a watch and not to its request.
    pub(super) fn is_in_stream(&self) -> bool {
        self.only_for() == Some(Verb::Watch)
    }

    /// The event of a watch at which it happens; none means at once.
    pub(super) fn event(&self) -> Option<u64> {
        match self {
            Fault::CutSilently { event } | Fault::Cut { event } | Fault::Gone { event } => event.map(NonZeroU64::get),
            Fault::Drop { event } | Fault::Duplicate { event } => Some(event.get()),
            _ => None,
        }
    }
}

/// Whether a path has these words in it, or is as this pattern says.
fn fits(pattern: &str, path: &str) -> bool {
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
    use super::super::asked::asked;
    use super::{Fault, Plan, fits};

    fn refusal(text: &str) -> String {
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
    fn a_wrong_plan_is_refused_naming_the_key() {
        for (text, words) in [
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
            ("{match: {verb: patch}, fault: cut}", "cut is for the verb watch alone"),
            ("{match: {verb: get}, fault: stale}", "stale is for the verb list alone"),
            ("{match: {verb: watch}, fault: truncate}", "use cut"),
            ("{fault: {status: {code: 200}}}", "code 200 is no failure"),
            ("[{fault: cut}, {fault: {drop: {}}}]", "rule 2"),
            ("just words", "invalid type"),
            ("{", "the plan cannot be used"),
        ] {
            let said = refusal(text);
            assert!(said.contains(words) && said.contains("fix: "), "{text}: {said}");
        }
    }

    #[test]
    fn a_path_is_matched_by_a_part_or_by_a_pattern() {
        assert!(fits("/configmaps", "/api/v1/configmaps/a"));
        assert!(!fits("/secrets", "/api/v1/configmaps/a"));
        assert!(fits("/api/*/configmaps/*", "/api/v1/namespaces/b/configmaps/a"));
        assert!(fits("*configmaps", "/api/v1/configmaps"));
        assert!(!fits("*/configmaps", "/api/v1/configmaps/a"));
        assert!(!fits("api*", "/api/v1"));
        assert!(!fits("/ab*ba", "/aba"));
    }

    #[test]
    fn a_rule_covers_what_its_match_and_its_fault_are_about() {
        let covers =
            |rule: &str, method: &str, uri: &str| Plan::parse(rule).unwrap().rules[0].covers(&asked(method, uri));
        let write = "{match: {verb: write}, fault: reset}";
        assert!(covers(write, "DELETE", "/api/v1/nodes/a"));
        assert!(covers(write, "POST", "/api/v1/nodes"));
        assert!(!covers(write, "GET", "/api/v1/nodes"));
        assert!(!covers(write, "PATCH", "/api/v1/nodes/a?dryRun=All"));
        assert!(!covers(write, "POST", "/api/v1/namespaces/a/events"));
        assert!(covers("{match: {verb: write, path: /events}, fault: reset}", "POST", "/api/v1/namespaces/a/events"));
        assert!(covers("{fault: cut}", "GET", "/api/v1/nodes?watch=true"));
        assert!(!covers("{fault: cut}", "GET", "/api/v1/nodes"));
        assert!(!covers("{fault: expired-continue}", "GET", "/api/v1/nodes?limit=1"));
        assert!(covers("{fault: expired-continue}", "GET", "/api/v1/nodes?limit=1&continue=x"));
    }
}
