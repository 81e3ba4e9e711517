//! Conditions of claims while nothing is decided about them: thousands of machines that are ready say the same, so that this is kept once.

use crate::conditions::{read, shown};
use api::fleet::{Condition, Truth};
use jiff::Timestamp;
use std::collections::BTreeSet;
use std::sync::Arc;

/// All of a condition but its time.
type Said = (String, Truth, String, String, Option<i64>);

/// The conditions of one claim.
#[derive(Debug)]
pub(super) struct Packed {
    text: Arc<str>,
    /// Their times in seconds.
    times: Box<[i64]>,
}

/// What conditions say, each text once.
#[derive(Debug, Default)]
pub(super) struct Texts(BTreeSet<Arc<str>>);

impl Texts {
    /// Packs conditions; nothing if they would not come back as they are.
    pub(super) fn pack(&mut self, conditions: &[Condition]) -> Option<Packed> {
        let mut times = Vec::with_capacity(conditions.len());
        let mut said: Vec<Said> = Vec::with_capacity(conditions.len());
        for condition in conditions {
            let Condition { r#type, status, observed_generation, last_transition_time, reason, message } = condition;
            let time = read(last_transition_time).filter(|time| shown(*time) == *last_transition_time)?;
            times.push(time.as_second());
            said.push((r#type.clone(), *status, reason.clone(), message.clone(), *observed_generation));
        }
        let text = serde_json::to_string(&said).ok().filter(|_| !said.is_empty())?;
        let text = match self.0.get(text.as_str()) {
            Some(known) => known.clone(),
            None => {
                let text: Arc<str> = text.into();
                self.0.insert(text.clone());
                text
            }
        };
        Some(Packed { text, times: times.into() })
    }

    /// Forgets what no claim says any more.
    pub(super) fn forget_unused(&mut self) {
        self.0.retain(|text| Arc::strong_count(text) > 1);
    }
}

impl Packed {
    /// The conditions.
    pub(super) fn conditions(&self) -> Vec<Condition> {
        let said: Vec<Said> = serde_json::from_str(&self.text).unwrap_or_default();
        let conditions = said.into_iter().zip(&self.times).map(|(said, time)| {
            let (r#type, status, reason, message, observed_generation) = said;
            let last_transition_time = shown(Timestamp::from_second(*time).unwrap_or_default());
            Condition { r#type, status, observed_generation, last_transition_time, reason, message }
        });
        conditions.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::{Texts, shown};
    use crate::conditions::{merge, wanted};
    use api::fleet::{Condition, Time};
    use jiff::Timestamp;
    use std::sync::Arc;

    fn conditions(second: i64, message: &str) -> Vec<Condition> {
        let wanted = vec![
            wanted("Provisioning", false, "Provisioned", "\"it\" is there\n"),
            wanted("Ready", true, "Ready", message),
        ];
        merge(wanted, &[], 3, Timestamp::from_second(second).unwrap())
    }

    #[test]
    fn conditions_come_back_as_they_were_and_what_they_say_is_kept_once() {
        let mut texts = Texts::default();
        let all = [conditions(1_800_000_000, "ready"), conditions(-5, "ready"), conditions(7, "others")];
        let packed: Vec<_> = all.iter().map(|conditions| texts.pack(conditions).unwrap()).collect();
        for (conditions, packed) in all.iter().zip(&packed) {
            assert_eq!(*conditions, packed.conditions());
        }
        assert!(Arc::ptr_eq(&packed[0].text, &packed[1].text) && texts.0.len() == 2);
        drop(packed.into_iter().next_back());
        texts.forget_unused();
        assert_eq!(texts.0.len(), 0);
    }

    #[test]
    fn what_would_come_back_otherwise_is_left_as_it_is() {
        let mut texts = Texts::default();
        for time in ["2026-11-18T08:25:28.5Z", "2026-11-18T09:25:28+01:00", "yesterday"] {
            let mut conditions = conditions(0, "ready");
            conditions[1].last_transition_time = Time(time.into());
            assert!(texts.pack(&conditions).is_none(), "{time}");
        }
        assert!(texts.pack(&[]).is_none() && texts.0.is_empty());
        assert_eq!(shown(Timestamp::UNIX_EPOCH).0, "1970-01-01T00:00:00Z");
    }
}
