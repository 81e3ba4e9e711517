//! What the user agreed to: the annotations `approval` and `approved`, and how the product was switched on.

use crate::object::digest::Digest;
use std::collections::BTreeSet;

/// What the user agreed to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Consent {
    /// How far the way in which the product was switched on counts as consent.
    pub given: Given,
    /// The annotation `approval`.
    pub policy: ApprovalPolicy,
    /// The approved digests.
    pub approved: BTreeSet<Digest>,
}

/// How explicitly the product was switched on.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Given {
    /// By default.
    #[default]
    ByDefault,
    /// For the assets that are named.
    ByName,
    /// For everything.
    ToAll,
}

/// The annotation `approval`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ApprovalPolicy {
    /// Not set: approval is required unless the product was switched on explicitly.
    #[default]
    Normal,
    /// `high-impact`, or a value we do not know: approval is always required.
    Always,
    /// `none`: approval is never required.
    Never,
}

/// How explicit a consent has to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needed {
    /// Switching the product on for this asset is enough.
    ByName,
    /// Switching it on for everything is enough: no list can name this object.
    ToAll,
    /// Only an approval of this digest counts, or the policy to approve everything.
    ApprovalOrPolicy,
    /// Only an approval of this digest counts, whatever the policy.
    ApprovalOnly,
}

impl Consent {
    /// Reads the annotations `approval` and `approved`.
    pub fn read(given: Given, approval: Option<&str>, approved: Option<&str>) -> Consent {
        let policy = match approval.map(str::trim).unwrap_or_default() {
            "" => ApprovalPolicy::Normal,
            "none" => ApprovalPolicy::Never,
            _ => ApprovalPolicy::Always,
        };
        let approved = Consent::digests(approved.unwrap_or_default()).filter_map(Digest::parse).collect();
        Consent { given, policy, approved }
    }

    /// The digests in the annotation `approved`, separated by commas, blanks or line breaks.
    pub fn digests(approved: &str) -> impl Iterator<Item = &str> {
        approved.split([',', ' ', '\n']).map(str::trim).filter(|entry| !entry.is_empty())
    }

    /// Whether somebody approved exactly this digest.
    pub fn is_approved(&self, digest: &Digest) -> bool {
        self.approved.contains(digest)
    }

    /// Whether what has this digest may go ahead.
    pub fn covers(&self, digest: &Digest, needed: Needed) -> bool {
        let is_given = match needed {
            Needed::ByName => self.given >= Given::ByName,
            Needed::ToAll => self.given == Given::ToAll,
            Needed::ApprovalOrPolicy | Needed::ApprovalOnly => false,
        };
        match self.policy {
            ApprovalPolicy::Never if needed != Needed::ApprovalOnly => true,
            ApprovalPolicy::Never | ApprovalPolicy::Always => self.is_approved(digest),
            ApprovalPolicy::Normal => is_given || self.is_approved(digest),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Consent, Given, Needed};
    use crate::object::digest::Digest;
    use serde_json::json;

    #[test]
    fn a_restart_needs_approval_unless_consent_was_given() {
        let digest = Digest::of(&json!({}));
        let covers = |given: Given, approval: Option<&str>, approved: Option<&str>| {
            let consent = Consent::read(given, approval, approved);
            [Needed::ByName, Needed::ToAll, Needed::ApprovalOrPolicy, Needed::ApprovalOnly]
                .map(|needed| consent.covers(&digest, needed))
        };
        let approved = format!("sha256:00, {digest}");
        for (given, approval, approved, expected) in [
            (Given::ByDefault, None, None, [false, false, false, false]),
            (Given::ByName, None, None, [true, false, false, false]),
            (Given::ToAll, None, None, [true, true, false, false]),
            (Given::ByDefault, None, Some(approved.as_str()), [true, true, true, true]),
            (Given::ByDefault, Some("none"), None, [true, true, true, false]),
            (Given::ToAll, Some("high-impact"), None, [false, false, false, false]),
            (Given::ByDefault, Some("high-impact"), Some(approved.as_str()), [true, true, true, true]),
            (Given::ToAll, Some("hihg-impact"), None, [false, false, false, false]),
        ] {
            assert_eq!(covers(given, approval, approved), expected, "{given:?} {approval:?} {approved:?}");
        }
    }
}
