//! The HyperConverged and what its annotations say about everything.

use crate::evaluate::{Evaluation, Outcome, Rules, Unclear};
use catalog::{Catalog, Facts, Rendered};
use change::{Consent, Key, Kind, Maintenance};
use jiff::Timestamp;
use std::collections::BTreeMap;

/// Why nothing is created or removed without a HyperConverged.
pub(crate) const HCO_ABSENT: &str =
    "the HyperConverged does not exist or is not read yet; nothing is created or removed until it is";

/// What the user says about the platform as a whole.
#[derive(Debug)]
pub(crate) struct Platform {
    /// The HyperConverged, in the version that is served.
    pub(crate) key: Key,
    pub(crate) uid: String,
    pub(crate) created: Option<Timestamp>,
    /// Whether it is known not to exist.
    pub(crate) is_absent: bool,
    /// Why it is unclear what is wanted, if it is: nothing is created or removed.
    pub(crate) suspended: Option<String>,
    /// Whether it is not known which objects are excluded: none is written.
    pub(crate) exclusions_unclear: bool,
    pub(crate) consent: Consent,
    /// When nodes may restart.
    pub(crate) maintenance: Maintenance,
    /// The last rules that could be read.
    pub(crate) rules: Option<Rules>,
    /// Whether the user has switched everything off.
    pub(crate) is_off: bool,
    /// The assets that the advisor governs, each with the name of its `VirtPlatformConfig`.
    pub(crate) governed: BTreeMap<String, String>,
    /// The objects of these assets.
    pub(crate) governed_objects: Vec<(Key, String)>,
    /// The objects of governed assets that only profiles use: the autopilot may have other fields of them.
    pub(crate) shared_objects: Vec<Key>,
}

impl Platform {
    pub(crate) fn new(namespace: &str) -> Platform {
        let kind =
            Kind { group: api::hco::GROUP.into(), version: api::hco::VERSIONS[0].into(), kind: api::hco::KIND.into() };
        Platform {
            key: Key { kind, namespace: namespace.to_owned(), name: api::hco::NAME.into() },
            uid: String::new(),
            created: None,
            is_absent: false,
            suspended: Some(HCO_ABSENT.to_owned()),
            exclusions_unclear: false,
            consent: Consent::default(),
            maintenance: Maintenance::default(),
            rules: None,
            is_off: false,
            governed: BTreeMap::new(),
            governed_objects: Vec::new(),
            shared_objects: Vec::new(),
        }
    }

    /// Takes what was evaluated; whether everything is switched off that was not before.
    pub(crate) fn take(&mut self, evaluation: &Evaluation) -> bool {
        self.consent = evaluation.consent.clone();
        self.maintenance = evaluation.maintenance.clone();
        self.suspended = evaluation.unclear.as_ref().map(Unclear::brief);
        self.exclusions_unclear = matches!(evaluation.unclear, Some(Unclear::Exclusions { .. }));
        if self.suspended.is_none() {
            self.rules = Some(evaluation.rules.clone());
        }
        let was_off = std::mem::replace(&mut self.is_off, evaluation.is_off);
        evaluation.is_off && !was_off
    }

    /// Takes what the advisor governs; whether that has changed.
    pub(crate) fn govern(&mut self, catalog: &Catalog, facts: &Facts, outcomes: &[Outcome]) -> bool {
        let governed = catalog::governed(catalog, facts).into_iter();
        let governed: BTreeMap<String, String> =
            governed.map(|(asset, by)| (asset.to_owned(), by.to_owned())).collect();
        let objects =
            outcomes.iter().filter_map(|outcome| Some((outcome.key.clone()?, governed.get(&outcome.asset)?.clone())));
        self.governed_objects = objects.collect();
        let shared = catalog.profile_assets.iter().filter(|asset| governed.contains_key(&asset.name));
        let shared = shared.filter_map(|asset| match catalog::render(catalog, asset, facts) {
            Rendered::Object(object) => Key::of(&object),
            _ => catalog.plain_key(asset),
        });
        self.shared_objects = shared.collect();
        let is_changed = self.governed != governed;
        self.governed = governed;
        is_changed
    }

    /// The `VirtPlatformConfig` that governs an object of this asset. An object that two assets may render has one owner, too.
    pub(crate) fn governor(&self, key: &Key, asset: Option<&str>) -> Option<&str> {
        let by_asset = asset.and_then(|asset| self.governed.get(asset));
        let by_key = || self.governed_objects.iter().find(|(governed, _)| governed.is_same_object(key));
        by_asset.or_else(|| by_key().map(|(_, by)| by)).map(String::as_str)
    }

    /// Whether a `VirtPlatformConfig` governs other fields of an object.
    pub(crate) fn is_shared_with_advisor(&self, key: &Key) -> bool {
        self.shared_objects.iter().any(|shared| shared.is_same_object(key))
    }

    /// Whether the user excluded an object.
    pub(crate) fn excludes(&self, key: &Key) -> bool {
        self.rules.as_ref().is_some_and(|rules| rules.excludes(key))
    }
}
