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

    /// What is wanted, and what of the user's wishes is refused; an error where not even the last good ones can be honoured any more.
    pub(crate) fn of(observed: &Observed<'_>, live: &Live) -> Result<(Wish, Option<Reason>), Reason> {
        let refused = match Wish::honouring(observed, live, [annotation::PATCH, annotation::IGNORE_FIELDS]) {
            Ok(wish) => match observed.refusal(&wish.digest) {
                Some(Reason::RefusedByServer { words }) if !wish.overrides.is_empty() => {
                    Reason::PatchRefused { why: words }
                }
                // What the catalogue wants has nothing to fall back on: it is tried again.
                refused => return Ok((wish, refused)),
            },
            Err(Unfit::Wrong(reason) | Unfit::NotNow(reason)) => reason,
        };
        let last_good = [annotation::LAST_GOOD_PATCH, annotation::LAST_GOOD_IGNORE_FIELDS];
        match Wish::honouring(observed, live, last_good) {
            Ok(wish) => Ok((wish, Some(refused))),
            // It cannot have been honoured: somebody else wrote it.
            Err(Unfit::Wrong(_)) => Ok((Wish::bare(observed.wanted), Some(refused))),
            // It was honoured once. Without it the user would lose what they were granted, so nothing is written.
            Err(Unfit::NotNow(_)) => Err(refused),
        }
    }

    /// The object; it is taken out, because it may be large.
    pub(crate) fn take_object(&mut self, wanted: &Desired) -> Value {
        self.overridden.take().unwrap_or_else(|| wanted.object())
    }

    fn honouring(observed: &Observed<'_>, live: &Live, keys: [&str; 2]) -> Result<Wish, Unfit> {
        let [patch, ignore_fields] = keys.map(|key| live.annotations.get(key).map(String::as_str));
        let overrides = Overrides::read(patch, ignore_fields, observed.key, observed.openings).map_err(Unfit::Wrong)?;
        if overrides.is_empty() {
            return Ok(Wish::bare(observed.wanted));
        }
        if let Some(claim) = live.managed_fields.claim(api::FIELD_MANAGER)
            && let Some((mask, whole)) =
                overrides.ignored().iter().find_map(|mask| Some((mask, claim.whole_around(mask)?)))
        {
            let why = format!("{mask} leads into a field that has one owner; ignore {whole} as a whole");
            return Err(Unfit::Wrong(Reason::IgnoreFieldsRefused { why }));
        }
        let object = overrides.apply(&observed.wanted.object()).map_err(Unfit::NotNow)?;
        let digest = Digest::of(&object);
        let texts = [(annotation::LAST_GOOD_PATCH, patch), (annotation::LAST_GOOD_IGNORE_FIELDS, ignore_fields)];
        let last_good = texts.into_iter().filter_map(|(key, text)| Some((key, text?.to_owned()))).collect();
        Ok(Wish { overrides, digest, last_good, overridden: Some(object) })
    }
}

/// Why wishes cannot be honoured.
enum Unfit {
    /// They never can be.
    Wrong(Reason),
    /// They do not fit what is wanted now, and may have fitted before.
    NotNow(Reason),
}
