//! From the HyperConverged and the facts about the cluster to the objects we want, asset by asset.

pub mod gates;

use crate::advice::{self, Targets};
use crate::exclusion::{ExclusionRule, Exclusions};
use crate::nearest::question;
use crate::removal::Cause;
use crate::scope::Scope;
use catalog::{
    Answer, Applicability, Asset, Catalog, Document, Facts, FormerObject, Need, Prune, Query, Rendered, Renderer, Unmet,
};
use change::{Consent, Desired, Impact, Key, Kind, Maintenance};
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

/// What the HyperConverged's annotations say about all objects.
#[derive(Debug, Clone, PartialEq)]
pub struct Rules {
    scope: Scope,
    exclusions: Exclusions,
    /// The objects that have two names: whoever excludes one excludes the other.
    formers: Vec<FormerObject>,
    written: WrittenRules,
}

/// The annotations that [`Rules`] are read from, as they are written.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct WrittenRules {
    /// `autopilot`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub autopilot: Option<String>,
    /// `disabled-resources`.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub disabled_resources: Option<String>,
}

impl Rules {
    /// Reads the annotations.
    pub(crate) fn read(written: WrittenRules, catalog: &Catalog, opt_in: bool) -> Rules {
        let mut known: BTreeSet<&str> = catalog.assets.iter().flat_map(Asset::names).collect();
        known.extend(catalog.features.iter().map(|feature| feature.name.as_str()));
        let scope = Scope::read(written.autopilot.as_deref(), &known, opt_in).with_features(&catalog.features);
        let exclusions = Exclusions::read(written.disabled_resources.as_deref());
        // Their names are the same in all namespaces.
        let formers = match exclusions.rules().is_empty() {
            true => Vec::new(),
            false => catalog.former_objects(api::hco::NAMESPACES[0]),
        };
        Rules { scope, exclusions, formers, written }
    }

    /// What they were read from.
    pub(crate) fn written(&self) -> &WrittenRules {
        &self.written
    }

    /// Whether the user excluded an object, by its name or by the one that the same object of the Go advisor has.
    pub fn excludes(&self, key: &Key) -> bool {
        self.rule_for(key).is_some()
    }

    /// The first rule that does.
    pub(crate) fn rule_for(&self, key: &Key) -> Option<&ExclusionRule> {
        let mut names = std::iter::once(key.clone()).chain(self.other_names(key));
        names.find_map(|key| self.exclusions.rule_for(&key))
    }

    /// The same object under its other names.
    fn other_names(&self, key: &Key) -> impl Iterator<Item = Key> {
        self.formers.iter().filter_map(|FormerObject { own, former, .. }| {
            let is = |name: &Key| Key { namespace: key.namespace.clone(), ..name.clone() }.is_same_object(key);
            let other = match (is(own), is(former)) {
                (true, _) => former,
                (false, true) => own,
                (false, false) => return None,
            };
            Some(Key { name: other.name.clone(), ..key.clone() })
        })
    }
}

/// What is wanted now.
#[derive(Debug)]
pub struct Evaluation {
    /// The rules in force: while the annotations cannot be read, the last ones that could.
    pub rules: Rules,
    /// What the user agreed to.
    pub consent: Consent,
    /// When nodes may restart.
    pub maintenance: Maintenance,
    /// One outcome per asset, in the catalogue's order.
    pub outcomes: Vec<Outcome>,
    /// Why it is unclear what is wanted as a whole: then the last rules hold for what exists, and nothing is created.
    pub unclear: Option<Unclear>,
    /// Whether the user switched everything off.
    pub is_off: bool,
    /// Settings that have no effect, probably because of a typing error.
    pub advice: Vec<String>,
}

/// An annotation of the HyperConverged that cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Unclear {
    /// `disabled-resources`.
    Exclusions {
        /// Why.
        why: String,
    },
    /// `autopilot` names what does not exist.
    Scope {
        /// The entries, each with the nearest names that exist.
        unknown: Vec<(String, Vec<String>)>,
        /// The features and groups that exist.
        valid: Vec<String>,
    },
}

/// Why an asset has no object here.
#[derive(Debug, Clone, PartialEq)]
pub enum Exclusion {
    /// The autopilot is off.
    Off,
    /// It is unclear what is wanted as a whole, and it was never clear.
    Unclear(Unclear),
    /// A condition is not met.
    Unmet(Unmet),
    /// The annotation `autopilot` does not name the asset.
    NotNamed,
    /// Its template renders nothing.
    RendersNothing,
    /// Its template says why there is nothing here.
    NotApplicable(String),
    /// The cluster does not serve what it needs.
    Missing(Need),
}

impl Evaluation {
    /// The kinds of the objects that templates render.
    pub fn kinds(&self) -> impl Iterator<Item = &Kind> {
        self.outcomes.iter().filter_map(Outcome::rendered).map(|key| &key.kind)
    }
}

/// What one asset comes to.
#[derive(Debug, Clone)]
pub struct Outcome {
    /// Its name.
    pub asset: String,
    /// Its file.
    pub path: String,
    /// Its component.
    pub component: String,
    /// Its place in the order of applies.
    pub order: i64,
    /// Its object, as far as it is known.
    pub key: Option<Key>,
    /// The kind of its object, as far as it is known.
    pub kind: Option<Kind>,
    /// The result.
    pub result: AssetResult,
}

impl Outcome {
    /// The object that its template renders, excluded or not.
    pub(crate) fn rendered(&self) -> Option<&Key> {
        match &self.result {
            AssetResult::Included(object)
            | AssetResult::Filtered(object)
            | AssetResult::Governed { object: Some(object), .. } => Some(&object.key),
            AssetResult::Governed { object: None, .. }
            | AssetResult::Unwanted { .. }
            | AssetResult::Excluded(_)
            | AssetResult::Missing { .. }
            | AssetResult::Needs(_)
            | AssetResult::Error(_) => None,
        }
    }
}

/// The result for one asset.
#[derive(Debug, Clone)]
pub enum AssetResult {
    /// An object that is wanted.
    Included(Arc<DesiredObject>),
    /// An object that the user excluded.
    Filtered(Arc<DesiredObject>),
    /// The advisor governs it, whatever the user wants of the autopilot.
    Governed {
        /// The `VirtPlatformConfig`.
        by: String,
        /// The object that would be wanted else, or is excluded.
        object: Option<Arc<DesiredObject>>,
    },
    /// An object that the user does not want; it is not always known which.
    Unwanted {
        /// Why not.
        why: Exclusion,
        /// By which act of the user.
        cause: Cause,
        /// The object, if it is known.
        object: Option<Arc<DesiredObject>>,
    },
    /// No object.
    Excluded(Exclusion),
    /// No object, because the cluster does not serve what it needs.
    Missing {
        /// What that is.
        need: Need,
        /// Whether somebody asked for the asset.
        asked: bool,
    },
    /// Its template has to know this first.
    Needs(Vec<Query>),
    /// It cannot be rendered; what was known of its object still holds.
    Error(String),
}

/// One object that an asset renders.
#[derive(Debug, Clone)]
pub struct DesiredObject {
    /// The object.
    pub key: Key,
    /// What is wanted of it.
    pub desired: Desired,
    /// What writing it does to the cluster.
    pub impact: Impact,
    /// The digest of the asset.
    pub source: String,
    /// Whether it stays when it is not wanted any more.
    pub never_pruned: bool,
    /// Documents in it of which only some keys are wanted.
    pub documents: Vec<Document>,
    /// If its asset reads it: the version that was read, or nothing if it did not exist.
    pub read: Option<Option<String>>,
}

/// What an evaluation before came to.
#[derive(Debug, Default)]
pub struct Before<'a> {
    /// The last rules that could be read.
    pub rules: Option<&'a Rules>,
    /// One outcome per asset if nothing has changed since except answers to queries; else empty.
    pub outcomes: Vec<Outcome>,
}

/// Renders every asset in scope from what is known. Of the assets that make no query, the outcomes before are kept.
pub fn evaluate(catalog: &Catalog, facts: &Facts, opt_in: bool, before: Before<'_>) -> Evaluation {
    let last = before.rules;
    let annotation = |name: &str| facts.hco["metadata"]["annotations"][name].as_str();
    let owned = |name: &str| annotation(name).map(str::to_owned);
    let written = WrittenRules {
        autopilot: owned(api::annotation::AUTOPILOT),
        disabled_resources: owned(api::annotation::DISABLED_RESOURCES),
    };
    let read = Rules::read(written, catalog, opt_in);
    let unclear = unclear(&read.scope, &read.exclusions, catalog);
    let rules = match last {
        Some(last) if unclear.is_some() => last.clone(),
        _ => read,
    };
    let (approval, approved) = (annotation(api::annotation::APPROVAL), annotation(api::annotation::APPROVED));
    // An annotation that cannot be read is no consent.
    let consent = Consent::read(approval, approved);
    let (maintenance, _) = Maintenance::read(annotation(api::annotation::MAINTENANCE_WINDOW));
    let renderer = Renderer::new(catalog, facts);
    let governed = catalog::governed(catalog, facts);
    let never_clear = unclear.as_ref().filter(|_| last.is_none());
    let mut outcomes = Vec::new();
    let mut kept = before.outcomes.into_iter();
    for asset in &catalog.assets {
        if let Some(outcome) = kept.next().filter(|_| !asset.queries) {
            outcomes.push(outcome);
            continue;
        }
        let governor = governed.get(asset.name.as_str());
        let result = if let Some(unclear) = never_clear {
            AssetResult::Excluded(Exclusion::Unclear(unclear.clone()))
        } else if rules.scope == Scope::Off {
            AssetResult::Excluded(Exclusion::Off)
        } else if !rules.scope.includes(asset.names()) {
            left_to(governor, unwanted(&renderer, asset, Cause::NotNamed, Exclusion::NotNamed))
        } else {
            left_to(governor, evaluate_asset(&renderer, asset, &rules))
        };
        outcomes.push(Outcome {
            asset: asset.name.clone(),
            path: asset.path.clone(),
            component: asset.component.clone(),
            order: asset.order(),
            key: key(&renderer, asset, &result),
            kind: asset.kind.clone(),
            result,
        });
    }
    let is_off = rules.scope == Scope::Off;
    let has_rules = !rules.exclusions.rules().is_empty();
    let mut targets = if has_rules { targets(catalog, &outcomes) } else { Targets::default() };
    targets.keys.extend(targets.keys.iter().flat_map(|key| rules.other_names(key)).collect::<Vec<_>>());
    let advice = advice::about_platform(&facts.hco, catalog, rules.exclusions.rules(), &targets);
    Evaluation { rules, consent, maintenance, outcomes, unclear, is_off, advice }
}

/// The objects that a rule of `disabled-resources` may fit.
pub fn targets(catalog: &Catalog, outcomes: &[Outcome]) -> Targets {
    let mut targets = Targets::default();
    for outcome in outcomes {
        match (&outcome.key, &outcome.kind) {
            (Some(key), _) => targets.keys.push(key.clone()),
            (None, Some(kind)) => {
                targets.nameless.insert(kind.kind.clone());
            }
            (None, None) => {}
        }
    }
    targets.keys.extend(catalog.tombstones.iter().map(|tombstone| Key {
        kind: Kind::new(&tombstone.api_version, &tombstone.kind),
        namespace: tombstone.namespace.clone().unwrap_or_default(),
        name: tombstone.name.clone(),
    }));
    targets
}

/// The object of an asset: as rendered, or as its file names it without a render.
fn key(renderer: &Renderer<'_>, asset: &Asset, result: &AssetResult) -> Option<Key> {
    let plain = || renderer.catalog.plain_key(asset);
    match result {
        AssetResult::Included(object)
        | AssetResult::Filtered(object)
        | AssetResult::Governed { object: Some(object), .. }
        | AssetResult::Unwanted { object: Some(object), .. } => Some(object.key.clone()),
        AssetResult::Governed { .. } | AssetResult::Excluded(_) | AssetResult::Missing { .. }
            if !renderer.facts.hco.is_null() =>
        {
            match renderer.render(asset) {
                Rendered::Object(object) => Key::of(&object),
                _ => plain(),
            }
        }
        _ => plain(),
    }
}

/// What an asset comes to if the advisor governs it. One that still asks the cluster is not known yet, and nothing is written for it.
fn left_to(governor: Option<&&str>, result: AssetResult) -> AssetResult {
    let Some(by) = governor else { return result };
    let object = match result {
        AssetResult::Needs(_) => return result,
        AssetResult::Included(object) | AssetResult::Filtered(object) => Some(object),
        _ => None,
    };
    AssetResult::Governed { by: (*by).to_owned(), object }
}

fn unclear(scope: &Scope, exclusions: &Exclusions, catalog: &Catalog) -> Option<Unclear> {
    if let Exclusions::Broken(why) = exclusions {
        return Some(Unclear::Exclusions { why: why.clone() });
    }
    match scope {
        Scope::Held { unknown } => {
            let groups = catalog.assets.iter().filter_map(|asset| asset.group.clone());
            let valid: BTreeSet<String> =
                catalog.features.iter().map(|feature| feature.name.clone()).chain(groups).collect();
            Some(Unclear::Scope { unknown: unknown.clone(), valid: valid.into_iter().collect() })
        }
        Scope::Off | Scope::All { .. } | Scope::Listed(_) => None,
    }
}

fn evaluate_asset(renderer: &Renderer<'_>, asset: &Asset, rules: &Rules) -> AssetResult {
    let missing = |need: Need| {
        let asked = rules.scope.is_explicit() || asset.has_user_condition();
        AssetResult::Missing { need, asked }
    };
    let unreadable = |query: &Query| AssetResult::Error(format!("{query} cannot be read now"));
    match catalog::applies(asset, renderer.facts) {
        Applicability::Applies => match renderer.render(asset) {
            Rendered::Object(object) if let Some(field) = wrong_metadata(&object) => {
                AssetResult::Error(format!("it renders metadata.{field} that is not a map"))
            }
            Rendered::Object(object) => match Key::of(&object) {
                Some(key) if is_never_managed(&key.kind) => {
                    AssetResult::Error(format!("objects of kind {} cannot be managed", key.kind.kind))
                }
                Some(key) if renderer.facts.absent.contains(&Need::of(&key.kind)) => missing(Need::of(&key.kind)),
                Some(key) => {
                    let is_excluded = rules.excludes(&key);
                    match desired_object(renderer, asset, key, object) {
                        Ok(object) if is_excluded => AssetResult::Filtered(object),
                        Ok(object) => AssetResult::Included(object),
                        Err(why) => AssetResult::Error(why),
                    }
                }
                None => AssetResult::Error("it renders an object without a name".into()),
            },
            Rendered::Empty => AssetResult::Excluded(Exclusion::RendersNothing),
            Rendered::NotApplicable(why) => AssetResult::Excluded(Exclusion::NotApplicable(why)),
            Rendered::Needs(queries) => AssetResult::Needs(queries),
            Rendered::Held(query) => unreadable(&query),
            Rendered::Broken(why) => AssetResult::Error(why),
        },
        Applicability::Not(unmet) => AssetResult::Excluded(Exclusion::Unmet(unmet)),
        Applicability::NotAskedFor(unmet) => unwanted(renderer, asset, Cause::OptedOut, Exclusion::Unmet(unmet)),
        Applicability::Missing(need) => missing(need),
        Applicability::Needs(queries) => AssetResult::Needs(queries),
        Applicability::Held(query) => unreadable(&query),
        Applicability::Broken(why) => AssetResult::Error(why),
    }
}

/// An asset the user does not want. Its template is rendered from what is known, and asks the cluster for nothing.
fn unwanted(renderer: &Renderer<'_>, asset: &Asset, cause: Cause, why: Exclusion) -> AssetResult {
    let (key, object) = match renderer.render(asset) {
        Rendered::Object(object) => (Key::of(&object), object),
        _ => (renderer.catalog.plain_key(asset), Value::Null),
    };
    let object = key.and_then(|key| desired_object(renderer, asset, key, object).ok());
    AssetResult::Unwanted { why, cause, object }
}

/// The labels or annotations of an object, if they are not a map.
fn wrong_metadata(object: &Value) -> Option<&'static str> {
    let is_wrong = |field: &&str| !matches!(object["metadata"][*field], Value::Null | Value::Object(_));
    ["labels", "annotations"].into_iter().find(is_wrong)
}

/// Kinds with too many or too large objects for more than their names to be watched.
pub(crate) fn is_never_managed(kind: &Kind) -> bool {
    matches!(
        (kind.group.as_str(), kind.kind.as_str()),
        ("", "Node") | ("apiextensions.k8s.io", "CustomResourceDefinition")
    )
}

/// Renders an asset as if this were the answer to a query, or as if there were none yet.
fn render_with(renderer: &Renderer<'_>, asset: &Asset, query: &Query, answer: Option<Answer>) -> Rendered {
    let mut facts = renderer.facts.clone();
    match answer {
        Some(answer) => facts.answers.insert(query.clone(), answer),
        None => facts.answers.remove(query),
    };
    catalog::render(renderer.catalog, asset, &facts)
}

/// The version of its own object that an asset read, if it reads it; nothing inside if it did not exist.
type ReadVersion = Option<Option<String>>;

/// Takes the documents out of a rendered object: an asset that reads its own object wants only some keys of them. The error says why it is
/// not known which.
fn take_documents(
    renderer: &Renderer<'_>,
    asset: &Asset,
    key: &Key,
    object: &mut Value,
) -> Result<(Vec<Document>, ReadVersion), String> {
    let query = Query::of(key);
    let Some(answer) = renderer.facts.answers.get(&query) else { return Ok((Vec::new(), None)) };
    let without = render_with(renderer, asset, &query, None);
    if !matches!(without, Rendered::Needs(needed) if needed.contains(&query)) {
        return Ok((Vec::new(), None));
    }
    let live = match answer {
        Answer::Found(live) => live,
        Answer::Absent => return Ok((Vec::new(), Some(None))),
        Answer::Unknown => return Ok((Vec::new(), None)),
    };
    let emptied = Answer::Found(Document::emptied(object, live));
    let alone = match render_with(renderer, asset, &query, Some(emptied)) {
        Rendered::Object(alone) => alone,
        Rendered::Empty | Rendered::NotApplicable(_) => Value::Null,
        Rendered::Broken(why) => return Err(format!("it cannot be rendered with an empty document: {why}")),
        Rendered::Needs(_) | Rendered::Held(_) => {
            return Err("with an empty document it asks for more of the cluster".to_owned());
        }
    };
    let version = live["metadata"]["resourceVersion"].as_str().map(str::to_owned);
    Ok((Document::take(object, live, &alone), Some(version)))
}

fn desired_object(
    renderer: &Renderer<'_>,
    asset: &Asset,
    key: Key,
    mut object: Value,
) -> Result<Arc<DesiredObject>, String> {
    let (documents, read) = take_documents(renderer, asset, &key, &mut object)?;
    let impact = Impact::at_least(asset.impact, &key.kind.group, &key.kind.kind, &object);
    let desired = Desired::of(&object);
    let (source, never_pruned) = (asset.source.clone(), asset.prune == Prune::Never);
    Ok(Arc::new(DesiredObject { key, desired, impact, source, never_pruned, documents, read }))
}

impl Unclear {
    /// For many objects that it holds: without the names that exist.
    pub(crate) fn brief(&self) -> String {
        match self {
            Unclear::Exclusions { .. } => self.to_string(),
            Unclear::Scope { unknown, .. } => {
                let alone = Unclear::Scope { unknown: unknown.clone(), valid: Vec::new() };
                format!("{alone}; write true, false, or names of features, groups or assets")
            }
        }
    }
}

impl fmt::Display for Unclear {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unclear::Exclusions { why } => {
                write!(
                    f,
                    "disabled-resources cannot be read: {why}; nothing is created, changed or removed until it is corrected"
                )
            }
            Unclear::Scope { unknown, valid } => {
                let entry = |(entry, nearest): &(String, Vec<String>)| format!("{entry:?}{}", question(nearest));
                let entries: Vec<String> = unknown.iter().map(entry).collect();
                write!(
                    f,
                    "the annotation autopilot names {}, which is no feature, group or asset; nothing new is done until it is corrected",
                    entries.join(" and ")
                )?;
                if valid.is_empty() {
                    return Ok(());
                }
                write!(
                    f,
                    ". Write true, false, or names such as {}; \"virtpilot status --all\" lists the assets",
                    valid.join(", ")
                )
            }
        }
    }
}

impl fmt::Display for Exclusion {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Exclusion::Off => write!(f, "the autopilot is off"),
            Exclusion::Unclear(unclear) => f.write_str(&unclear.brief()),
            Exclusion::Unmet(unmet) => unmet.fmt(f),
            Exclusion::NotNamed => write!(f, "the annotation autopilot does not name it"),
            Exclusion::NotApplicable(why) => f.write_str(why),
            Exclusion::RendersNothing => write!(f, "its template renders nothing here"),
            Exclusion::Missing(need) => write!(f, "{}", need.why()),
        }
    }
}

#[cfg(test)]
mod tests;
