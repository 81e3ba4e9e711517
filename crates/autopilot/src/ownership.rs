//! Who owns an object: created by us, adopted by us, left by our predecessor, or foreign.

use api::annotation;
use change::{Claim, Live};

/// How an object came to be ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// We created it, and may delete it.
    Created,
    /// Somebody else created it: it is handed back and never deleted.
    Adopted,
}

impl Origin {
    /// The value of the annotation.
    pub fn word(self) -> &'static str {
        match self {
            Origin::Created => "created",
            Origin::Adopted => "adopted",
        }
    }
}

/// Who owns an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Ownership {
    /// Ours.
    Ours(Origin),
    /// It carries our label and no origin: usually the predecessor's.
    Inherited,
    /// Somebody else's.
    Foreign,
}

impl Ownership {
    /// From the object's metadata alone.
    pub(crate) fn read(live: &Live) -> Ownership {
        Ownership::of(live, live.managed_fields.claim(api::FIELD_MANAGER).as_ref(), None)
    }

    /// From the object's metadata and our claim in it; an origin that we remember to have written has precedence.
    pub(crate) fn of(live: &Live, claim: Option<&Claim>, remembered: Option<Origin>) -> Ownership {
        if let Some(origin) = remembered {
            return Ownership::Ours(origin);
        }
        let written = live.annotations.get(annotation::ORIGIN);
        match (claim, written) {
            (Some(claim), Some(written)) => {
                // The annotation counts only if we own it; in doubt the object counts as adopted: it is handed back and never deleted.
                let is_ours = claim.has_annotation(annotation::ORIGIN);
                let created = is_ours && written == Origin::Created.word();
                Ownership::Ours(if created { Origin::Created } else { Origin::Adopted })
            }
            (claim, _) if live.labelled || claim.is_some() => Ownership::Inherited,
            _ => Ownership::Foreign,
        }
    }

    /// The origin that an apply writes.
    pub(crate) fn origin(self) -> Option<Origin> {
        match self {
            Ownership::Ours(origin) => Some(origin),
            Ownership::Foreign => Some(Origin::Adopted),
            Ownership::Inherited => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Origin, Ownership};
    use change::{Live, ManagedFields};
    use serde_json::json;

    fn ownership(written: Option<&str>, labelled: bool, claimed: Option<bool>) -> Ownership {
        let annotations = written.map(|word| ("platform.kubevirt.io/origin".to_owned(), word.to_owned()));
        let fields = |is_ours: bool| match is_ours {
            true => json!({"f:metadata": {"f:annotations": {"f:platform.kubevirt.io/origin": {}}}}),
            false => json!({"f:data": {}}),
        };
        let entry =
            |is_ours| json!({"manager": "virt-platform-autopilot", "operation": "Apply", "fieldsV1": fields(is_ours)});
        let entries: Vec<_> = claimed.into_iter().map(entry).collect();
        let managed_fields = ManagedFields::new(&json!(entries).to_string());
        let live = Live { annotations: annotations.into_iter().collect(), labelled, managed_fields, ..Live::default() };
        Ownership::read(&live)
    }

    #[test]
    fn only_an_origin_that_we_own_makes_an_object_ours_to_delete() {
        use Ownership::{Foreign, Inherited, Ours};
        for (written, labelled, claimed, expected) in [
            (Some("created"), true, Some(true), Ours(Origin::Created)),
            (Some("adopted"), true, Some(true), Ours(Origin::Adopted)),
            (Some("created"), true, Some(false), Ours(Origin::Adopted)),
            (Some("nonsense"), true, Some(true), Ours(Origin::Adopted)),
            (Some("created"), true, None, Inherited),
            (Some("created"), false, None, Foreign),
            (None, true, Some(false), Inherited),
            (None, true, None, Inherited),
            (None, false, None, Foreign),
        ] {
            assert_eq!(ownership(written, labelled, claimed), expected, "{written:?} {labelled} {claimed:?}");
        }
    }
}
