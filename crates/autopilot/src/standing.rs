//! Whose an object is: made by us, taken over by us, left by our predecessor, or somebody else's.

use api::annotation;
use change::Live;

/// How an object came to be ours.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Origin {
    /// We made it, and may delete it.
    Created,
    /// Somebody else made it: it is given back and never deleted.
    Adopted,
}

impl Origin {
    /// As it is written on the object.
    pub fn word(self) -> &'static str {
        match self {
            Origin::Created => "created",
            Origin::Adopted => "adopted",
        }
    }
}

/// Whose an object is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Standing {
    /// Ours.
    Ours(Origin),
    /// It carries our label and nothing that says where it came from: our predecessor's, as a rule.
    Inherited,
    /// Somebody else's.
    Foreign,
}

impl Standing {
    /// From what the object says; what we know to have written ourselves decides before that.
    pub(crate) fn of(live: &Live, remembered: Option<Origin>) -> Standing {
        if let Some(origin) = remembered {
            return Standing::Ours(origin);
        }
        let claim = live.managed_fields.claim(api::FIELD_MANAGER);
        let written = live.annotations.get(annotation::ORIGIN);
        match (claim, written) {
            (Some(claim), Some(written)) => {
                // Only our own word is believed; in doubt it is somebody else's, and nothing is lost.
                let is_ours = claim.has_annotation(annotation::ORIGIN);
                let created = is_ours && written == Origin::Created.word();
                Standing::Ours(if created { Origin::Created } else { Origin::Adopted })
            }
            (claim, _) if live.labelled || claim.is_some() => Standing::Inherited,
            _ => Standing::Foreign,
        }
    }

    /// What is written on it when it is applied.
    pub(crate) fn origin(self) -> Option<Origin> {
        match self {
            Standing::Ours(origin) => Some(origin),
            Standing::Foreign => Some(Origin::Adopted),
            Standing::Inherited => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Origin, Standing};
    use change::{Live, ManagedFields};
    use serde_json::json;

    fn standing(written: Option<&str>, labelled: bool, claimed: Option<bool>) -> Standing {
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
        Standing::of(&live, None)
    }

    #[test]
    fn only_our_own_word_makes_an_object_ours_to_delete() {
        use Standing::{Foreign, Inherited, Ours};
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
            assert_eq!(standing(written, labelled, claimed), expected, "{written:?} {labelled} {claimed:?}");
        }
    }
}
