//! The desired state of one object with its user's overrides, or with the last good ones where the new ones are refused.

use crate::decide::Observed;
use api::annotation;
use change::atomic::{self, Atomic};
use change::{Desired, Digest, Live, Overrides, Reason};
use serde_json::{Value, json};

/// Where the overrides that were honoured last are recorded.
const LAST_GOOD: [&str; 2] = [annotation::LAST_GOOD_PATCH, annotation::LAST_GOOD_IGNORE_FIELDS];

/// The desired state of one object with overrides.
#[derive(Debug)]
pub(crate) struct EffectiveDesired {
    /// The overrides that are honoured.
    pub(crate) overrides: Overrides,
    /// The digest of the object with overrides.
    pub(crate) digest: Digest,
    /// Annotations of ours that record which overrides were honoured last, for the time after a restart.
    pub(crate) last_good: Vec<(&'static str, String)>,
    /// The object with overrides; `None` without any.
    overridden: Option<Value>,
}

impl EffectiveDesired {
    /// The catalogue's object without overrides.
    pub(crate) fn bare(desired: &Desired) -> EffectiveDesired {
        let (overrides, digest) = (Overrides::default(), *desired.digest());
        EffectiveDesired { overrides, digest, last_good: Vec::new(), overridden: None }
    }

    /// The effective desired state and why an override is refused, if one is; an error where not even the last good ones fit any more.
    pub(crate) fn of(observed: &Observed<'_>, live: &Live) -> Result<(EffectiveDesired, Option<Reason>), Reason> {
        let refused = match EffectiveDesired::honouring(observed, live, [annotation::PATCH, annotation::IGNORE_FIELDS])
        {
            Ok(effective) => match observed.refusal(&effective.digest) {
                Some(Reason::RefusedByServer { message }) if !effective.overrides.is_empty() => {
                    Reason::PatchRefused { why: message }
                }
                // The catalogue's own object has nothing to fall back on: it is tried again.
                refused => return Ok((effective.with_record(observed, live), refused)),
            },
            Err(Unfit::Wrong(reason) | Unfit::NotNow(reason)) => reason,
            // Any write could change what the user wants to be left alone.
            Err(Unfit::Unknown(reason)) => return Err(reason),
        };
        match EffectiveDesired::honouring(observed, live, LAST_GOOD) {
            Ok(effective) => Ok((effective, Some(refused))),
            // It can never have been honoured: somebody else wrote the annotation.
            Err(Unfit::Wrong(_)) => Ok((EffectiveDesired::bare(observed.desired), Some(refused))),
            // It was honoured once; without it the user would lose an override, so nothing is written.
            Err(Unfit::NotNow(_) | Unfit::Unknown(_)) => Err(refused),
        }
    }

    /// Keeps what is recorded on the object if it comes to the same: overrides in other words are no reason for a write.
    fn with_record(mut self, observed: &Observed<'_>, live: &Live) -> EffectiveDesired {
        let is_recorded =
            |(key, text): &(&'static str, String)| live.annotations.get(*key).is_some_and(|recorded| recorded == text);
        if !self.last_good.iter().all(is_recorded)
            && let Ok(recorded) = EffectiveDesired::honouring(observed, live, LAST_GOOD)
            && recorded.digest == self.digest
        {
            self.last_good = recorded.last_good;
        }
        self
    }

    /// The object. It is moved out, because it may be large.
    pub(crate) fn take_object(&mut self, desired: &Desired) -> Value {
        self.overridden.take().unwrap_or_else(|| desired.object())
    }

    fn honouring(observed: &Observed<'_>, live: &Live, keys: [&str; 2]) -> Result<EffectiveDesired, Unfit> {
        let [patch, ignore_fields] = keys.map(|key| live.annotations.get(key).map(String::as_str));
        let overrides =
            Overrides::read(patch, ignore_fields, observed.key, observed.patchable).map_err(Unfit::Wrong)?;
        if overrides.is_empty() {
            return Ok(EffectiveDesired::bare(observed.desired));
        }
        let mut wanted = observed.desired.object();
        // Documents were taken out; a patch may put one back, which is the user's then.
        let is_emptied = !observed.documents.is_empty() && wanted.get("data").is_none();
        if is_emptied {
            wanted["data"] = json!({});
        }
        let mut object = overrides.apply(&wanted).map_err(Unfit::NotNow)?;
        if is_emptied
            && let Some(fields) = object.as_object_mut()
            && fields.get("data") == Some(&json!({}))
        {
            fields.remove("data");
        }
        let entries = if overrides.ignored().is_empty() { Vec::new() } else { live.managed_fields.entries() };
        for field in overrides.ignored() {
            let refused = |why: String| Reason::IgnoreFieldsRefused { why };
            match atomic::around(field, &object, &entries, api::FIELD_MANAGER) {
                None => {}
                Some(Atomic::Whole(whole)) => {
                    let why = format!("{field} leads into a field that has one owner; ignore {whole} as a whole");
                    return Err(Unfit::NotNow(refused(why)));
                }
                Some(Atomic::Unknown(whole)) => {
                    let why = format!(
                        "{field} leads into {whole}, which may have one owner as a whole; until that is known nothing is written; ignore {whole} as a whole"
                    );
                    return Err(Unfit::Unknown(refused(why)));
                }
            }
        }
        let digest = Digest::of(&object);
        let texts = LAST_GOOD.into_iter().zip([patch, ignore_fields]);
        // Overrides without effect are nothing to fall back on.
        let texts = texts.filter(|_| digest != *observed.desired.digest());
        let last_good = texts.filter_map(|(key, text)| Some((key, text?.to_owned()))).collect();
        Ok(EffectiveDesired { overrides, digest, last_good, overridden: Some(object) })
    }
}

/// Why overrides cannot be honoured.
enum Unfit {
    /// They never fit.
    Wrong(Reason),
    /// They do not fit the desired state of now, but may have fitted before.
    NotNow(Reason),
    /// It is not known whether they can be honoured.
    Unknown(Reason),
}
