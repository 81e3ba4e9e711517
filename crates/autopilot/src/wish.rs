//! What is wanted of one object once its user's wishes are honoured, or at its last good state where they cannot be.

use crate::decide::Observed;
use api::annotation;
use change::{Desired, Digest, Live, Overrides, Reason};
use serde_json::Value;

/// What is wanted of one object.
#[derive(Debug)]
pub(crate) struct Wish {
    /// The user's wishes that are honoured.
    pub(crate) overrides: Overrides,
    /// The fingerprint of what is wanted.
    pub(crate) digest: Digest,
    /// Annotations of ours that say, after a restart, which wishes were honoured last.
    pub(crate) last_good: Vec<(&'static str, String)>,
    /// The object, where it differs from the catalogue's.
    overridden: Option<Value>,
}

impl Wish {
    /// What the catalogue wants and nothing else.
    pub(crate) fn bare(wanted: &Desired) -> Wish {
        let (overrides, digest) = (Overrides::default(), wanted.digest().clone());
        Wish { overrides, digest, last_good: Vec::new(), overridden: None }
    }

    /// What is wanted, and what of the user's wishes is refused.
    pub(crate) fn of(observed: &Observed<'_>, live: &Live) -> (Wish, Option<Reason>) {
        match Wish::honouring(observed, live, [annotation::PATCH, annotation::IGNORE_FIELDS]) {
            Ok(wish) => (wish, None),
            Err(reason) => {
                let last_good = [annotation::LAST_GOOD_PATCH, annotation::LAST_GOOD_IGNORE_FIELDS];
                let wish = Wish::honouring(observed, live, last_good);
                // Whatever is written there is judged like any wish; if it does not hold, there is none.
                (wish.unwrap_or_else(|_| Wish::bare(observed.wanted)), Some(reason))
            }
        }
    }

    /// The object.
    pub(crate) fn object(&self, wanted: &Desired) -> Value {
        self.overridden.clone().unwrap_or_else(|| wanted.object())
    }

    fn honouring(observed: &Observed<'_>, live: &Live, keys: [&str; 2]) -> Result<Wish, Reason> {
        let [patch, ignore_fields] = keys.map(|key| live.annotations.get(key).map(String::as_str));
        let overrides = Overrides::read(patch, ignore_fields, observed.key, observed.openings)?;
        if overrides.is_empty() {
            return Ok(Wish::bare(observed.wanted));
        }
        if let Some(claim) = live.managed_fields.claim(api::FIELD_MANAGER)
            && let Some((mask, whole)) =
                overrides.ignored().iter().find_map(|mask| Some((mask, claim.whole_around(mask)?)))
        {
            let why = format!("{mask} leads into a field that has one owner; ignore {whole} as a whole");
            return Err(Reason::IgnoreFieldsRefused { why });
        }
        let object = overrides.apply(&observed.wanted.object())?;
        let digest = Digest::of(&object);
        if let Some(refused) = observed.refused.iter().find(|refused| refused.digest == digest) {
            return Err(Reason::PatchRefused { why: refused.words.clone() });
        }
        let texts = [(annotation::LAST_GOOD_PATCH, patch), (annotation::LAST_GOOD_IGNORE_FIELDS, ignore_fields)];
        let last_good = texts.into_iter().filter_map(|(key, text)| Some((key, text?.to_owned()))).collect();
        Ok(Wish { overrides, digest, last_good, overridden: Some(object) })
    }
}
