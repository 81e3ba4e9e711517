//! Conditions that keep their time while their status stays the same.

use api::fleet::{Condition, Time, Truth};
use jiff::{Timestamp, Unit};

/// One condition, before it is compared with the one that was published.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wanted {
    /// Its type.
    pub kind: &'static str,
    /// Whether it holds.
    pub status: Truth,
    /// Why, in one word.
    pub reason: String,
    /// Why, in a sentence.
    pub message: String,
}

/// A condition that holds or not.
pub fn wanted(kind: &'static str, holds: bool, reason: impl Into<String>, message: impl Into<String>) -> Wanted {
    let status = if holds { Truth::True } else { Truth::False };
    Wanted { kind, status, reason: reason.into(), message: message.into() }
}

/// The conditions now.
pub fn merge(wanted: Vec<Wanted>, before: &[Condition], generation: i64, now: Timestamp) -> Vec<Condition> {
    let made = wanted.into_iter().map(|wanted| {
        let known = before.iter().find(|known| known.r#type == wanted.kind && known.status == wanted.status);
        Condition {
            r#type: wanted.kind.to_owned(),
            status: wanted.status,
            observed_generation: Some(generation),
            last_transition_time: known.map_or_else(|| shown(now), |known| known.last_transition_time.clone()),
            reason: wanted.reason,
            message: wanted.message,
        }
    });
    made.collect()
}

/// A time as a status shows it: in whole seconds.
pub fn shown(time: Timestamp) -> Time {
    Time(time.round(Unit::Second).unwrap_or(time).to_string())
}

/// The time that a status shows.
pub fn read(time: &Time) -> Option<Timestamp> {
    time.0.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::{merge, read, shown, wanted};
    use jiff::Timestamp;

    #[test]
    fn a_condition_keeps_its_time_until_its_status_changes() {
        let at = |second: i64| Timestamp::from_second(second).unwrap();
        let first = merge(vec![wanted("Ready", false, "A", "a")], &[], 1, at(1));
        let second = merge(vec![wanted("Ready", false, "B", "b")], &first, 2, at(2));
        assert_eq!(second[0].last_transition_time, shown(at(1)));
        assert_eq!((second[0].reason.as_str(), second[0].observed_generation), ("B", Some(2)));
        let third = merge(vec![wanted("Ready", true, "B", "b")], &second, 2, at(3));
        assert_eq!(read(&third[0].last_transition_time), Some(at(3)));
    }
}
