//! The annotations that decide whether we write an object: `mode` and `reconcile-paused`.

use crate::fields::redact;
use crate::overrides::guards::{OverrideGuard, OverrideGuards};
use crate::reason::Reason;
use api::annotation;
use jiff::Timestamp;
use std::collections::BTreeMap;

/// Who manages an object.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Mode {
    /// We do.
    #[default]
    Managed,
    /// The user does; we never write it.
    Unmanaged,
}

/// Whether reconciliation is paused.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub enum Pause {
    /// Not paused.
    #[default]
    No,
    /// Paused until somebody removes the annotation.
    UntilRemoved,
    /// Paused until this time.
    Until(Timestamp),
    /// The value cannot be parsed, which counts as paused.
    Unclear(String),
}

/// The parsed annotations.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Steering {
    /// Who manages the object.
    pub mode: Mode,
    /// Whether reconciliation is paused.
    pub pause: Pause,
}

impl Steering {
    /// Parses the annotations of a live object.
    pub fn read(annotations: &BTreeMap<String, String>) -> Result<Steering, Reason> {
        Steering::read_with(annotations, OverrideGuards::ALL)
    }

    pub(crate) fn read_with(
        annotations: &BTreeMap<String, String>,
        guards: OverrideGuards,
    ) -> Result<Steering, Reason> {
        let text = |name: &str| annotations.get(name).map(|value| value.trim()).filter(|value| !value.is_empty());
        let mode = match text(annotation::MODE) {
            None => Mode::Managed,
            Some(value) if value.eq_ignore_ascii_case("managed") => Mode::Managed,
            Some(value) if value.eq_ignore_ascii_case("unmanaged") => Mode::Unmanaged,
            Some(value) if guards.enabled(OverrideGuard::ModeKnown) => {
                return Err(Reason::ModeUnknown { value: short(value) });
            }
            Some(_) => Mode::Managed,
        };
        let pause = match text(annotation::RECONCILE_PAUSED) {
            None => Pause::No,
            Some(value) if value.eq_ignore_ascii_case("false") => Pause::No,
            Some(value) if value.eq_ignore_ascii_case("true") => Pause::UntilRemoved,
            Some(value) => match value.parse::<Timestamp>() {
                Ok(end) => Pause::Until(end),
                Err(_) if guards.enabled(OverrideGuard::PauseRead) => Pause::Unclear(short(value)),
                Err(_) => Pause::No,
            },
        };
        Ok(Steering { mode, pause })
    }
}

/// Shortens a value for a message.
fn short(value: &str) -> String {
    redact::text(value).chars().take(64).collect()
}

#[cfg(test)]
mod tests {
    use super::{Mode, Pause, Steering};
    use crate::reason::Reason;
    use std::collections::BTreeMap;

    fn read(key: &str, value: &str) -> Result<Steering, Reason> {
        Steering::read(&BTreeMap::from([(format!("platform.kubevirt.io/{key}"), value.to_owned())]))
    }

    #[test]
    fn mode_is_case_insensitive_and_refused_when_unknown() {
        assert_eq!(Steering::read(&BTreeMap::new()).unwrap(), Steering::default());
        assert_eq!(read("mode", " Unmanaged ").unwrap().mode, Mode::Unmanaged);
        assert_eq!(read("mode", "Managed").unwrap().mode, Mode::Managed);
        assert_eq!(read("mode", "off").unwrap_err(), Reason::ModeUnknown { value: "off".into() });
    }

    #[test]
    fn a_pause_ends_at_its_time_and_an_unclear_pause_counts_as_paused() {
        let pause = |value: &str| read("reconcile-paused", value).unwrap().pause;
        assert_eq!(
            (pause("true"), pause("TRUE"), pause("false"), pause("")),
            (Pause::UntilRemoved, Pause::UntilRemoved, Pause::No, Pause::No)
        );
        assert_eq!(pause("2027-01-01T01:00:00+01:00"), Pause::Until("2027-01-01T00:00:00Z".parse().unwrap()));
        assert_eq!(pause("tomorrow"), Pause::Unclear("tomorrow".into()));
    }
}
