//! What a profile wants of a cluster whose answers are given.

use catalog::profile::Profile;
use catalog::{Answer, Catalog, Facts, ProfileWants, Query, WantedResult, wanted};
use serde_json::{Map, Value};

/// A template that needs more rounds of queries keeps asking.
const ROUNDS: usize = 8;

pub(super) fn wants(
    catalog: &Catalog,
    profile: &Profile,
    options: Option<&Map<String, Value>>,
    facts: &Facts,
    answer: impl Fn(&Query) -> Answer,
) -> ProfileWants {
    let mut facts = facts.clone();
    let mut wants = wanted(catalog, profile, options, &facts);
    for _ in 0..ROUNDS {
        let queries = wants.items.iter().filter_map(|item| match &item.result {
            WantedResult::Needs(queries) => Some(queries),
            _ => None,
        });
        let queries: Vec<Query> = queries.flatten().cloned().collect();
        if queries.is_empty() {
            break;
        }
        facts.answers.extend(queries.into_iter().map(|query| {
            let found = answer(&query);
            (query, found)
        }));
        wants = wanted(catalog, profile, options, &facts);
    }
    wants
}
