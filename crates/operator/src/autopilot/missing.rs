//! What somebody asked for and cannot have, because the cluster does not serve what it needs.

use super::engine::Engine;
use super::journal;
use catalog::Need;
use std::collections::BTreeMap;

/// What is missing, and the assets that need it.
pub(super) type Missing = BTreeMap<Need, Vec<String>>;

impl Engine {
    /// Tells what is missing and what has come, each once.
    pub(super) fn tell_missing(&mut self, missing: Missing) {
        let metrics = self.settings.metrics.clone();
        for (need, assets) in &missing {
            if !self.missing.contains_key(need) {
                metrics.missing(need, true);
                self.tell_hco(journal::missing(need, assets));
            }
        }
        for (need, assets) in std::mem::take(&mut self.missing) {
            if !missing.contains_key(&need) {
                metrics.missing(&need, false);
                // What nobody asks for any more has not come.
                if !self.facts.absent.contains(&need) {
                    self.tell_hco(journal::discovered(&need, &assets));
                }
            }
        }
        self.missing = missing;
    }
}
