//! The three places of an object's backups, and which of them the next backup takes.

use super::{RETAINED, object, taken};
use crate::write::effect::Precondition;
use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

/// The ConfigMaps of [`super::names`] in their order, as far as they exist.
pub type Slots = [Option<Value>; RETAINED];

/// Where a backup goes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Slot {
    /// This version of the object is backed up already.
    BackedUp,
    /// All slots contain newer backups.
    Outdated,
    /// Into this slot, which is free or contains the oldest backup.
    Write {
        /// Its index.
        index: usize,
        /// What must be true of its ConfigMap.
        precondition: Precondition,
    },
}

/// The slot for a backup of this object that is taken at this time.
pub fn choose(slots: &Slots, backed_up: &Value, time: Timestamp) -> Slot {
    if slots.iter().flatten().any(|slot| object(slot).as_ref() == Some(backed_up)) {
        return Slot::BackedUp;
    }
    let free = slots.iter().position(Option::is_none);
    if let Some(index) = free {
        return Slot::Write { index, precondition: Precondition::Absent };
    }
    // A ConfigMap that is not a backup has no time and is the first to be replaced.
    let occupied = slots.iter().enumerate().filter_map(|(index, slot)| Some((index, slot.as_ref()?)));
    let oldest = occupied.min_by_key(|(_, slot)| valid_time(slot));
    match oldest {
        Some((index, slot)) if valid_time(slot) < Some(time) => {
            let word = |key: &str| slot["metadata"][key].as_str().unwrap_or_default().to_owned();
            let precondition = Precondition::Present { uid: word("uid"), resource_version: word("resourceVersion") };
            Slot::Write { index, precondition }
        }
        _ => Slot::Outdated,
    }
}

/// The time of a backup that is taken now: later than those of all others, also after the clock was set back.
pub fn time_of_next(slots: &Slots, now: Timestamp) -> Timestamp {
    let newest = slots.iter().flatten().filter_map(valid_time).max();
    let after = newest.and_then(|newest| newest.checked_add(SignedDuration::from_millis(1)).ok());
    after.map_or(now, |after| now.max(after))
}

fn valid_time(slot: &Value) -> Option<Timestamp> {
    object(slot).and_then(|_| taken(slot))
}

#[cfg(test)]
mod tests {
    use super::{Slot, Slots, choose, time_of_next};
    use crate::Precondition;
    use crate::backup::config_map;
    use jiff::Timestamp;
    use serde_json::{Value, json};

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(second).unwrap()
    }

    fn version(number: i64) -> Value {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "resourceVersion": number.to_string()}})
    }

    fn backup(number: i64) -> Value {
        let mut backup = config_map(&version(number), "home", "slot", at(number)).unwrap();
        backup["metadata"]["uid"] = json!(format!("u{number}"));
        backup["metadata"]["resourceVersion"] = json!("1");
        backup
    }

    fn over(index: usize, uid: &str) -> Slot {
        let precondition = Precondition::Present { uid: uid.into(), resource_version: "1".into() };
        Slot::Write { index, precondition }
    }

    #[test]
    fn each_version_is_backed_up_once_into_a_free_slot_or_over_the_oldest_backup() {
        let some: Slots = [Some(backup(5)), None, Some(backup(6))];
        assert_eq!(choose(&some, &version(6), at(7)), Slot::BackedUp);
        assert_eq!(choose(&some, &version(7), at(7)), Slot::Write { index: 1, precondition: Precondition::Absent });
        let full: Slots = [Some(backup(5)), Some(backup(4)), Some(backup(6))];
        assert_eq!(choose(&full, &version(7), at(7)), over(1, "u4"));
        assert_eq!(choose(&full, &version(3), at(3)), Slot::Outdated, "a backup of the first release may be too old");
        assert_eq!(choose(&full, &version(3), at(4)), Slot::Outdated, "not later than the oldest");
        let mut foreign = backup(9);
        foreign["data"] = json!({});
        foreign["metadata"]["uid"] = json!("theirs");
        assert_eq!(choose(&[Some(backup(5)), Some(backup(4)), Some(foreign)], &version(7), at(7)), over(2, "theirs"));
    }

    #[test]
    fn a_backup_is_newer_than_all_others_even_if_the_clock_was_set_back() {
        assert_eq!(time_of_next(&[None, None, None], at(5)), at(5));
        assert_eq!(time_of_next(&[Some(backup(4)), None, None], at(5)), at(5));
        assert!(time_of_next(&[Some(backup(9)), None, None], at(5)) > at(9));
    }
}
