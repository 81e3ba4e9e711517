//! From the HyperConverged and the cluster's facts to the objects we want, asset by asset.

use autopilot::{Consent, Exclusions, Scope};
use catalog::{Applicability, Asset, Catalog, Facts, Query, Rendered};
use change::{Impact, Key};
use cluster::Kinds;
use kube::Client;
use serde_json::Value;
use std::collections::BTreeSet;

/// Templates that ask on and on are stopped.
const ROUNDS: usize = 8;

/// What is wanted now.
pub(crate) struct Wanted {
    pub(crate) consent: Consent,
    /// One per asset, in the catalogue's order.
    pub(crate) outcomes: Vec<Outcome>,
    /// Why nothing at all is wanted, in words.
    pub(crate) held: Option<String>,
}

/// What became of one asset.
pub(crate) struct Outcome {
    pub(crate) asset: String,
    pub(crate) path: String,
    pub(crate) component: String,
    pub(crate) order: i64,
    pub(crate) result: Result,
}

/// What an asset comes to.
pub(crate) enum Result {
    /// An object that is wanted.
    Included(Object),
    /// An object the user wants left alone.
    Filtered(Object),
    /// Nothing, for this reason.
    Excluded(String),
    /// It cannot be told, for this reason; what was known still holds.
    Error(String),
}

/// One object.
#[derive(Clone)]
pub(crate) struct Object {
    pub(crate) key: Key,
    pub(crate) object: Value,
    pub(crate) impact: Impact,
}

/// Whom to ask what a template wants to know.
pub(crate) struct Source<'a> {
    pub(crate) client: &'a Client,
    pub(crate) kinds: &'a Kinds,
}

/// Renders everything in scope. Without a source only what the facts answer is known.
pub(crate) async fn want(source: Option<&Source<'_>>, catalog: &Catalog, facts: &mut Facts, opt_in: bool) -> Wanted {
    let annotation = |facts: &Facts, name: &str| facts.hco["metadata"]["annotations"][name].as_str().map(str::to_owned);
    let mut known: BTreeSet<&str> = catalog.assets.iter().map(|asset| asset.name.as_str()).collect();
    known.extend(catalog.assets.iter().filter_map(|asset| asset.group.as_deref()));
    let scope = Scope::read(annotation(facts, api::annotation::AUTOPILOT).as_deref(), &known, opt_in);
    let approval = annotation(facts, api::annotation::APPROVAL);
    let approved = annotation(facts, api::annotation::APPROVED);
    let consent = Consent::read(&scope, approval.as_deref(), approved.as_deref());
    let exclusions = exclusions(annotation(facts, api::annotation::DISABLED_RESOURCES).as_deref());
    let held = why_held(&scope, &exclusions);
    let mut outcomes = Vec::new();
    for asset in &catalog.assets {
        let result = if let Some(why) = &held {
            Result::Excluded(why.clone())
        } else if !scope.includes(&asset.name, asset.group.as_deref()) {
            Result::Excluded("the annotation autopilot does not name it".into())
        } else {
            one(source, catalog, asset, facts, &exclusions).await
        };
        outcomes.push(Outcome {
            asset: asset.name.clone(),
            path: asset.path.clone(),
            component: asset.component.clone(),
            order: asset.reconcile_order,
            result,
        });
    }
    Wanted { consent, outcomes, held }
}

fn why_held(scope: &Scope, exclusions: &Exclusions) -> Option<String> {
    if let Exclusions::Broken(why) = exclusions {
        return Some(format!("disabled-resources cannot be read: {why}; nothing is done until it is corrected"));
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
        "the annotation autopilot names {}, which is no asset and no group; nothing is done until it is corrected",
        entries.join(" and ")
    ))
}

async fn one(
    source: Option<&Source<'_>>,
    catalog: &Catalog,
    asset: &Asset,
    facts: &mut Facts,
    exclusions: &Exclusions,
) -> Result {
    for _ in 0..ROUNDS {
        let needs = match catalog::applies(asset, facts) {
            Applicability::Applies => match catalog::render(catalog, asset, facts) {
                Rendered::Object(object) => return named(asset, object, exclusions),
                Rendered::Empty => return Result::Excluded("its template renders to nothing here".into()),
                Rendered::Needs(queries) => queries,
                Rendered::Held(query) => return Result::Error(format!("{query:?} cannot be read now")),
                Rendered::Broken(why) => return Result::Error(why),
            },
            Applicability::Not(unmet) => return Result::Excluded(unmet.to_string()),
            Applicability::Needs(queries) => queries,
            Applicability::Held(query) => return Result::Error(format!("{query:?} cannot be read now")),
            Applicability::Broken(why) => return Result::Error(why),
        };
        let Some(source) = source else {
            let asked: Vec<String> = needs.iter().map(|query: &Query| format!("{query:?}")).collect();
            return Result::Error(format!("it needs to know {}: give --kubeconfig or --facts", asked.join(", ")));
        };
        for query in needs {
            let answer = cluster::answer::answer(source.client, source.kinds, &query).await;
            facts.answers.insert(query, answer);
        }
    }
    Result::Error(format!("its template asks on and on, after {ROUNDS} rounds"))
}

fn named(asset: &Asset, object: Value, exclusions: &Exclusions) -> Result {
    let Some(key) = Key::of(&object) else { return Result::Error("it renders to something without a name".into()) };
    let impact = Impact::at_least(asset.impact, &key.kind.group, &key.kind.kind);
    let excluded = exclusions.excludes(&key);
    let object = Object { key, object, impact };
    if excluded { Result::Filtered(object) } else { Result::Included(object) }
}

fn exclusions(text: Option<&str>) -> Exclusions {
    let Some(text) = text.map(str::trim).filter(|text| !text.is_empty()) else { return Exclusions::none() };
    match serde_saphyr::from_str::<Value>(text) {
        Ok(Value::String(_)) => Exclusions::read_pairs(text),
        Ok(value) => Exclusions::read_list(&value),
        Err(error) => Exclusions::Broken(error.to_string()),
    }
}

/// The nodes that restart when this object is written, in words.
pub(crate) fn restarts(nodes: &[cluster::facts::Named], object: &Value) -> String {
    let role = object["metadata"]["labels"]["machineconfiguration.openshift.io/role"].as_str().unwrap_or("worker");
    let of_role = nodes.iter().filter(|node| node.roles.iter().any(|one| one == role));
    let names: Vec<&str> = of_role.map(|node| node.name.as_str()).collect();
    match names.len() {
        0 => format!("the nodes of pool {role} (there are none now)"),
        1 => format!("one node of pool {role}: {}", names[0]),
        count if count > 5 => format!("{count} nodes of pool {role}: {} and {} more", names[..5].join(", "), count - 5),
        count => format!("{count} nodes of pool {role}: {}", names.join(", ")),
    }
}
