//! From the HyperConverged and the cluster's facts to the objects we want, asset by asset.

use autopilot::{Cause, Consent, Exclusions, Scope};
use catalog::{Answer, Applicability, Asset, Catalog, Facts, Need, Node, Prune, Query, Rendered};
use change::{Desired, Impact, Key, Kind};
use cluster::{Kinds, Server};
use serde_json::Value;
use std::collections::BTreeSet;

/// Templates that ask on and on are stopped.
const ROUNDS: usize = 8;

/// What the HyperConverged's annotations say about everything.
#[derive(Clone)]
pub(crate) struct Rules {
    scope: Scope,
    exclusions: Exclusions,
}

impl Rules {
    /// Whether the user wants an object left alone.
    pub(crate) fn excludes(&self, key: &Key) -> bool {
        self.exclusions.excludes(key)
    }
}

/// What is wanted now.
pub(crate) struct Wanted {
    pub(crate) rules: Rules,
    pub(crate) consent: Consent,
    /// One per asset, in the catalogue's order.
    pub(crate) outcomes: Vec<Outcome>,
    /// Why it is unclear what is wanted as a whole, in words: then the last clear rules hold for what exists, and nothing is created.
    pub(crate) held: Option<String>,
    /// Whether the user turned everything off.
    pub(crate) is_off: bool,
}

impl Wanted {
    /// Kinds of objects that templates make and the server does not serve.
    pub(crate) fn unserved(&self, kinds: &Kinds) -> Vec<Kind> {
        let made = self.outcomes.iter().filter_map(|outcome| match &outcome.result {
            Result::Included(object) | Result::Filtered(object) => Some(&object.key.kind),
            _ => None,
        });
        made.filter(|kind| kinds.find(kind).is_none()).cloned().collect()
    }
}

/// What became of one asset.
pub(crate) struct Outcome {
    pub(crate) asset: String,
    pub(crate) path: String,
    pub(crate) component: String,
    pub(crate) order: i64,
    /// What its object is called, as far as that is known.
    pub(crate) key: Option<Key>,
    /// What its object is, where only that is known.
    pub(crate) kind: Option<Kind>,
    pub(crate) result: Result,
}

/// What an asset comes to.
pub(crate) enum Result {
    /// An object that is wanted.
    Included(Object),
    /// An object the user wants left alone.
    Filtered(Object),
    /// An object the user does not want any more, or never wanted; which one is not always clear.
    Unwanted { why: String, cause: Cause, object: Option<Object> },
    /// Nothing, for this reason.
    Excluded(String),
    /// Nothing, because the cluster does not serve what it needs.
    Missing {
        need: Need,
        /// Whether somebody asked for it, and not only nobody against it.
        asked: bool,
    },
    /// Its template wants to know this first.
    Needs(Vec<Query>),
    /// It cannot be told, for this reason; what was known still holds.
    Error(String),
}

/// One object.
#[derive(Clone)]
pub(crate) struct Object {
    pub(crate) key: Key,
    pub(crate) wanted: Desired,
    pub(crate) impact: Impact,
    /// The pool whose nodes restart when it is written, if it is clear which.
    pub(crate) pool: Option<String>,
    /// The fingerprint of the asset.
    pub(crate) source: String,
    /// Whether it stays when it is not wanted any more.
    pub(crate) stays: bool,
}

/// Asks the cluster what templates want to know, until everything in scope is rendered.
pub(crate) async fn want_asking(
    server: &Server,
    kinds: &Kinds,
    catalog: &Catalog,
    facts: &mut Facts,
    opt_in: bool,
) -> Wanted {
    for _ in 0..ROUNDS {
        let wanted = want(catalog, facts, opt_in, None);
        let needs = wanted.outcomes.iter().filter_map(|outcome| match &outcome.result {
            Result::Needs(queries) => Some(queries),
            _ => None,
        });
        let queries: BTreeSet<Query> = needs.flatten().cloned().collect();
        let unserved = wanted.unserved(kinds);
        if queries.is_empty() && unserved.is_empty() {
            return wanted;
        }
        facts.absent.extend(unserved.iter().map(Need::of));
        for query in queries {
            let answer = match kinds.find(&super::questions::place_of(&query).kind) {
                Some(served) => cluster::answer::answer(server, &served, &query).await,
                None => Answer::Absent,
            };
            facts.answers.insert(query, answer);
        }
    }
    want_offline(catalog, facts, opt_in, &format!("its template asks on and on, after {ROUNDS} rounds for"))
}

/// Renders everything in scope from the facts alone; an asset that needs more is in error, in these words.
pub(crate) fn want_offline(catalog: &Catalog, facts: &Facts, opt_in: bool, words: &str) -> Wanted {
    let mut wanted = want(catalog, facts, opt_in, None);
    for outcome in &mut wanted.outcomes {
        if let Result::Needs(queries) = &outcome.result {
            let asked: Vec<String> = queries.iter().map(ToString::to_string).collect();
            outcome.result = Result::Error(format!("{words} {}", asked.join(", ")));
        }
    }
    wanted
}

/// Renders everything in scope from what is known; `last` are the rules that were clear last.
pub(crate) fn want(catalog: &Catalog, facts: &Facts, opt_in: bool, last: Option<&Rules>) -> Wanted {
    let annotation = |name: &str| facts.hco["metadata"]["annotations"][name].as_str();
    let mut known: BTreeSet<&str> = catalog.assets.iter().map(|asset| asset.name.as_str()).collect();
    known.extend(catalog.assets.iter().filter_map(|asset| asset.group.as_deref()));
    let scope = Scope::read(annotation(api::annotation::AUTOPILOT), &known, opt_in);
    let (approval, approved) = (annotation(api::annotation::APPROVAL), annotation(api::annotation::APPROVED));
    let exclusions = Exclusions::read(annotation(api::annotation::DISABLED_RESOURCES));
    let held = why_held(&scope, &exclusions);
    let rules = match last {
        Some(last) if held.is_some() => last.clone(),
        _ => Rules { scope, exclusions },
    };
    // What was not clear is no consent.
    let consent = Consent::read(&rules.scope, approval, approved);
    let nothing_is_clear = held.as_ref().filter(|_| last.is_none());
    let mut outcomes = Vec::new();
    for asset in &catalog.assets {
        let result = if let Some(why) = nothing_is_clear {
            Result::Excluded(why.clone())
        } else if rules.scope == Scope::Off {
            Result::Excluded("the autopilot is off".into())
        } else if !rules.scope.includes(&asset.name, asset.group.as_deref()) {
            unwanted(catalog, asset, facts, Cause::NotNamed, "the annotation autopilot does not name it".into())
        } else {
            one(catalog, asset, facts, &rules.exclusions, consent.said)
        };
        outcomes.push(Outcome {
            asset: asset.name.clone(),
            path: asset.path.clone(),
            component: asset.component.clone(),
            order: asset.reconcile_order,
            key: key(catalog, asset, facts, &result),
            kind: asset.kind.clone(),
            result,
        });
    }
    let is_off = rules.scope == Scope::Off;
    Wanted { rules, consent, outcomes, held, is_off }
}

/// What an asset's object is called; where it is not to be rendered, as its file says it.
fn key(catalog: &Catalog, asset: &Asset, facts: &Facts, result: &Result) -> Option<Key> {
    match result {
        Result::Included(object) | Result::Filtered(object) | Result::Unwanted { object: Some(object), .. } => {
            Some(object.key.clone())
        }
        Result::Excluded(_) | Result::Missing { .. } if !facts.hco.is_null() => {
            match catalog::render(catalog, asset, facts) {
                Rendered::Object(object) => Key::of(&object),
                _ => catalog.plain_key(asset),
            }
        }
        _ => catalog.plain_key(asset),
    }
}

fn why_held(scope: &Scope, exclusions: &Exclusions) -> Option<String> {
    if let Exclusions::Broken(why) = exclusions {
        return Some(format!("disabled-resources cannot be read: {why}; nothing new is done until it is corrected"));
    }
    let Scope::Held { unknown } = scope else { return None };
    let entries: Vec<String> = unknown
        .iter()
        .map(|(entry, nearest)| match nearest.is_empty() {
            true => format!("{entry:?}"),
            false => format!("{entry:?} (did you mean {}?)", nearest.join(" or ")),
        })
        .collect();
    Some(format!(
        "the annotation autopilot names {}, which is no asset and no group; nothing new is done until it is corrected",
        entries.join(" and ")
    ))
}

fn one(catalog: &Catalog, asset: &Asset, facts: &Facts, exclusions: &Exclusions, said: bool) -> Result {
    let missing = |need: Need| Result::Missing { need, asked: said || asset.has_user_condition() };
    let unreadable = |query: &Query| Result::Error(format!("{query} cannot be read now"));
    match catalog::applies(asset, facts) {
        Applicability::Applies => match catalog::render(catalog, asset, facts) {
            Rendered::Object(object) => match named(catalog, asset, &object) {
                Some(Object { key, .. }) if is_never_kept(&key.kind) => {
                    Result::Error(format!("objects of kind {} cannot be kept", key.kind.kind))
                }
                Some(Object { key, .. }) if facts.absent.contains(&Need::of(&key.kind)) => missing(Need::of(&key.kind)),
                Some(object) if exclusions.excludes(&object.key) => Result::Filtered(object),
                Some(object) => Result::Included(object),
                None => Result::Error("it renders to something without a name".into()),
            },
            Rendered::Empty => Result::Excluded("its template renders to nothing here".into()),
            Rendered::Needs(queries) => Result::Needs(queries),
            Rendered::Held(query) => unreadable(&query),
            Rendered::Broken(why) => Result::Error(why),
        },
        Applicability::Not(unmet) => Result::Excluded(unmet.to_string()),
        Applicability::NotAskedFor(unmet) => unwanted(catalog, asset, facts, Cause::OptedOut, unmet.to_string()),
        Applicability::Missing(need) => missing(need),
        Applicability::Needs(queries) => Result::Needs(queries),
        Applicability::Held(query) => unreadable(&query),
        Applicability::Broken(why) => Result::Error(why),
    }
}

/// An asset the user does not want; what it would make is asked of its template alone, and never of the cluster.
fn unwanted(catalog: &Catalog, asset: &Asset, facts: &Facts, cause: Cause, why: String) -> Result {
    let object = match catalog::render(catalog, asset, facts) {
        Rendered::Object(object) => named(catalog, asset, &object),
        _ => catalog.plain_key(asset).map(|key| of(catalog, asset, key, &Value::Null)),
    };
    Result::Unwanted { why, cause, object }
}

/// Kinds of which there are too many, too large ones, for more than their names to be watched.
pub(crate) fn is_never_kept(kind: &Kind) -> bool {
    matches!(
        (kind.group.as_str(), kind.kind.as_str()),
        ("", "Node") | ("apiextensions.k8s.io", "CustomResourceDefinition")
    )
}

fn named(catalog: &Catalog, asset: &Asset, object: &Value) -> Option<Object> {
    Some(of(catalog, asset, Key::of(object)?, object))
}

fn of(catalog: &Catalog, asset: &Asset, key: Key, object: &Value) -> Object {
    let impact = Impact::at_least(asset.impact, &key.kind.group, &key.kind.kind);
    let (wanted, pool) = (Desired::of(object), pool(object).map(str::to_owned));
    let (source, stays) = (catalog::source(catalog, asset), asset.prune == Prune::Never);
    Object { key, wanted, impact, pool, source, stays }
}

/// The nodes that restart when this object is written, in words.
pub(crate) fn restarts(nodes: &[Node], pool: Option<&str>) -> String {
    let Some(role) = pool else {
        return "the nodes of the pools it selects".to_owned();
    };
    let of_role = nodes.iter().filter(|node| node.has_role(role));
    let names: Vec<&str> = of_role.map(|node| node.name.as_str()).collect();
    match names.len() {
        0 => format!("the nodes of pool {role} (there are none now)"),
        1 => format!("one node of pool {role}: {}", names[0]),
        count if count > 5 => format!("{count} nodes of pool {role}: {} and {} more", names[..5].join(", "), count - 5),
        count => format!("{count} nodes of pool {role}: {}", names.join(", ")),
    }
}

/// The pool an object is for: a MachineConfig says so by a label, a KubeletConfig by the label of the pool it selects.
fn pool(object: &Value) -> Option<&str> {
    let label = object["metadata"]["labels"]["machineconfiguration.openshift.io/role"].as_str();
    let selected = object["spec"]["machineConfigPoolSelector"]["matchLabels"].as_object();
    let by_selector =
        || selected?.keys().find_map(|key| key.strip_prefix("pools.operator.machineconfiguration.openshift.io/"));
    label.or_else(by_selector)
}

#[cfg(test)]
mod tests {
    use super::{pool, restarts};
    use catalog::Node;
    use serde_json::json;

    #[test]
    fn the_nodes_named_are_those_of_the_pool_an_object_is_for() {
        let node = |name: &str, role: &str| Node { name: name.into(), roles: vec![role.into()], ..Node::default() };
        let nodes = [node("w0", "worker"), node("m0", "master"), node("m1", "master")];
        let of_role = json!({"metadata": {"labels": {"machineconfiguration.openshift.io/role": "worker"}}});
        assert_eq!(restarts(&nodes, pool(&of_role)), "one node of pool worker: w0");
        let selecting = |key: &str| json!({"spec": {"machineConfigPoolSelector": {"matchLabels": {key: ""}}}});
        let masters = selecting("pools.operator.machineconfiguration.openshift.io/master");
        assert_eq!(restarts(&nodes, pool(&masters)), "2 nodes of pool master: m0, m1");
        assert_eq!(restarts(&nodes, pool(&selecting("custom"))), "the nodes of the pools it selects");
    }
}
