//! What the user agreed to: the annotations `approval` and `approved`.

use crate::object::digest::Digest;
use std::collections::BTreeSet;

/// What the user agreed to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Consent {
    /// The annotation `approval`.
    pub policy: ApprovalPolicy,
    /// The approved digests.
    pub approved: BTreeSet<Digest>,
}

/// The annotation `approval`.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum ApprovalPolicy {
    /// `high-impact`, not set, or a value we do not know: every restart of nodes waits for an approval.
    #[default]
    Required,
    /// `none`: nothing waits.
    Waived,
}

/// What lets a change go ahead.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Needed {
    /// An approval of exactly this change, or the policy to approve everything.
    ApprovalOrPolicy,
    /// An approval of exactly this change, whatever the policy.
    ApprovalOnly,
}

impl Consent {
    /// Reads the annotations `approval` and `approved`.
    pub fn read(approval: Option<&str>, approved: Option<&str>) -> Consent {
        let policy = match approval.map(str::trim) {
            Some("none") => ApprovalPolicy::Waived,
            _ => ApprovalPolicy::Required,
        };
        let approved = Consent::digests(approved.unwrap_or_default()).filter_map(Digest::parse).collect();
        Consent { policy, approved }
    }

    /// The digests in the annotation `approved`, separated by commas, blanks or line breaks.
    pub fn digests(approved: &str) -> impl Iterator<Item = &str> {
        approved.split([',', ' ', '\n']).map(str::trim).filter(|entry| !entry.is_empty())
    }

    /// Whether somebody approved exactly this digest.
    pub fn is_approved(&self, digest: &Digest) -> bool {
        self.approved.contains(digest)
    }

    /// Whether the policy alone lets a change go ahead.
    pub fn is_waived(&self, needed: Needed) -> bool {
        self.policy == ApprovalPolicy::Waived && needed == Needed::ApprovalOrPolicy
    }
}

#[cfg(test)]
mod tests {
    use super::{Consent, Needed};
    use crate::object::digest::Digest;
    use serde_json::json;

    #[test]
    fn only_none_waives_an_approval_and_only_of_what_is_not_taken_over() {
        for (approval, waived) in [
            (None, false),
            (Some(""), false),
            (Some("high-impact"), false),
            (Some("nnone"), false),
            (Some("None"), false),
            (Some(" none "), true),
        ] {
            let consent = Consent::read(approval, None);
            assert_eq!(consent.is_waived(Needed::ApprovalOrPolicy), waived, "{approval:?}");
            assert!(!consent.is_waived(Needed::ApprovalOnly), "{approval:?}");
        }
    }

    #[test]
    fn approved_digests_are_listed_with_commas_blanks_or_line_breaks() {
        let [one, two, other] = [1, 2, 3].map(|number| Digest::of(&json!(number)));
        let consent = Consent::read(None, Some(&format!("sha256:00, {one}\n{two}")));
        assert!(consent.is_approved(&one) && consent.is_approved(&two) && !consent.is_approved(&other));
    }
}
