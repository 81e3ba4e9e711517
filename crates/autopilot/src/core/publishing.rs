//! Publishes the report in a ConfigMap: when it has changed, and not too often.

use super::Core;
use super::timers::Timer;
use crate::evaluate::{Rules, WrittenRules};
use crate::notice::Notice;
use crate::removal::written_overrides;
use crate::report::{Operator, Policy, shortened};
use change::{Backoff, Effect, Key, Kind, Moment, Precondition, redact};
use protocol::{Command, Write, WriteError, Written};
use serde_json::json;
use std::time::Duration;

/// Changes within this time are one report: most drift is corrected by then, and there is nothing to report.
const TOGETHER: Duration = Duration::from_secs(1);
/// The least time between two reports.
const APART: Duration = Duration::from_secs(5);
/// A longer override is not shown: reading it would take memory in every report.
const LONGEST_OVERRIDE: usize = 1000;
/// After a report that could not be written.
const RETRY: Backoff = Backoff { first: APART, longest: Duration::from_secs(300) };

/// What was published.
#[derive(Debug)]
pub(crate) struct Publishing {
    pub(crate) key: Key,
    /// The last report that was written.
    written: Option<String>,
    /// The report on its way.
    in_flight: Option<String>,
    failures: u32,
    not_before: Moment,
}

impl Publishing {
    pub(crate) fn new(namespace: &str) -> Publishing {
        let key = Key { kind: Kind::new("v1", "ConfigMap"), namespace: namespace.to_owned(), name: api::STATUS.into() };
        Publishing { key, written: None, in_flight: None, failures: 0, not_before: Moment::default() }
    }

    /// Whether this answer is awaited.
    pub(crate) fn is_in_flight(&self) -> bool {
        self.in_flight.is_some()
    }
}

impl Core {
    /// Something may have changed that the report shows.
    pub(super) fn plan_report(&mut self) {
        if self.config.operator.is_some() && self.config.writes {
            let at = self.now.monotonic.after(TOGETHER).max(self.publishing.not_before);
            self.timers.set(Timer::Publish, at);
        }
    }

    /// Writes the report, if it is another one than that before.
    pub(super) fn publish(&mut self) {
        if self.publishing.is_in_flight() {
            // The answer is an event, which plans it again.
            return;
        }
        let Some(served) = self.discovery.kinds.find(&self.publishing.key.kind) else { return };
        let report = self.report().to_json();
        if self.publishing.written.as_ref() == Some(&report) {
            return;
        }
        let key = self.publishing.key.clone();
        let data = json!({"reported": self.now.wall.to_string(), "status.json": report});
        let metadata = json!({"name": key.name, "namespace": key.namespace});
        let object = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data});
        let (effect, attempt) = (Effect::apply(object, Precondition::None, true), self.publishing.failures);
        self.publishing.in_flight = Some(report);
        self.commands.push(Command::Write(Box::new(Write { key, served, effect, attempt, backup: None })));
    }

    /// Takes the answer.
    pub(super) fn published(&mut self, result: &Result<Written, WriteError>) {
        let report = self.publishing.in_flight.take();
        let pause = match result {
            Ok(_) => {
                (self.publishing.written, self.publishing.failures) = (report, 0);
                APART
            }
            Err(error) => {
                let pause = RETRY.pause(self.publishing.failures);
                let why = error.to_string();
                self.notify(match self.publishing.failures {
                    0 => Notice::PublishFailed { why },
                    _ => Notice::Retry { why, wait: pause.as_millis() },
                });
                self.publishing.failures += 1;
                pause
            }
        };
        self.publishing.not_before = self.now.monotonic.after(pause);
    }
}

/// What [`Core::report`] needs to know.
impl Core {
    pub(crate) fn operator(&self) -> Option<&Operator> {
        self.config.operator.as_ref()
    }

    pub(crate) fn policy_in_force(&self) -> Policy {
        let of = |name: &str| self.facts.hco["metadata"]["annotations"][name].as_str().map(str::trim);
        let autopilot = match of(api::annotation::AUTOPILOT) {
            _ if self.platform.suspended.is_some() => "suspended",
            _ if self.platform.is_off => "off",
            None | Some("" | "true") => "on",
            Some(names) => names,
        };
        let approval = match self.platform.consent.is_waived(change::consent::Needed::ApprovalOrPolicy) {
            true => "none",
            false => "high-impact",
        };
        let window = of(api::annotation::MAINTENANCE_WINDOW).filter(|window| !window.is_empty());
        Policy { autopilot: shortened(autopilot), approval: approval.to_owned(), window: window.map(shortened) }
    }

    /// Whether the annotations of the HyperConverged cannot be read, and nothing is known of those before.
    pub fn lacks_rules(&self) -> bool {
        self.platform.suspended.is_some() && self.platform.rules.is_none()
    }

    /// What holds while the annotations of the HyperConverged cannot be read.
    pub(crate) fn last_rules(&self) -> Option<&WrittenRules> {
        let is_unclear = self.platform.suspended.is_some() && !self.platform.is_absent;
        self.platform.rules.as_ref().filter(|_| is_unclear).map(Rules::written)
    }

    /// The overrides on an object, as far as they may be shown; the one with the name `refused` is not in force.
    pub(crate) fn overrides_of(&self, key: &Key, refused: &str) -> Vec<String> {
        let Some(live) = self.objects.get(key).and_then(|object| object.live()) else { return Vec::new() };
        let shown = |(name, value): (&String, &String)| {
            let mark = if name == refused { "  (refused, not in force)" } else { "" };
            match value.len() {
                0..=LONGEST_OVERRIDE => format!("{name}: {}{mark}", redact::annotation(&key.kind, name, value)),
                bytes => format!("{name}: {bytes} bytes{mark}"),
            }
        };
        written_overrides(live).map(shown).collect()
    }

    /// What nothing can be decided without.
    pub(crate) fn waits_for(&self) -> Vec<String> {
        let absent = self.platform.is_absent.then(|| format!("{}, which does not exist", self.platform.key));
        self.reports.last_readiness().iter().cloned().chain(absent).collect()
    }
}
