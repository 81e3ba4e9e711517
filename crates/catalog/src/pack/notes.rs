//! What people want to know about an asset or a feature.

use crate::pack::feature::Maturity;

/// Texts for people.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Notes {
    /// What it does, in one line.
    pub docs: String,
    /// Why it is worth having.
    pub why: String,
    /// Public documents that support the reason.
    pub sources: Vec<String>,
    /// How to see that it took effect.
    pub verify: String,
    /// How to leave it out, if that differs from the usual way.
    pub opt_out: String,
    /// The maturity, if the pack declares it.
    pub maturity: Option<Maturity>,
}

impl Notes {
    /// These notes, completed by those of the feature that the asset belongs to.
    pub fn or(&self, feature: &Notes) -> Notes {
        let text = |own: &String, other: &String| if own.is_empty() { other.clone() } else { own.clone() };
        Notes {
            docs: text(&self.docs, &feature.docs),
            why: text(&self.why, &feature.why),
            sources: if self.sources.is_empty() { feature.sources.clone() } else { self.sources.clone() },
            verify: text(&self.verify, &feature.verify),
            opt_out: text(&self.opt_out, &feature.opt_out),
            maturity: self.maturity.or(feature.maturity),
        }
    }
}
