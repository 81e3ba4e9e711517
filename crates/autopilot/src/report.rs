//! What `status` shows: made by the operator, which publishes it, or by a command that evaluates the cluster itself.

use crate::core::Core;
use crate::evaluate::WrittenRules;
use crate::state_word::StateWord;
use crate::status::{LineState, ObjectState, StatusLine, waiting_by_pool};
use change::{Digest, Reason};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A longer text helps nobody.
const LONGEST: usize = 1000;
/// A ConfigMap takes 1 MiB.
const LARGEST: usize = 900 * 1024;

/// The state of everything.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Report {
    /// Who made it; nothing if a command did.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub operator: Option<Operator>,
    /// What the HyperConverged says about everything.
    pub policy: Policy,
    /// The digest of the annotations on the HyperConverged that it was made with.
    pub settings: Option<Digest>,
    /// While the annotations cannot be read: the last ones that could, which hold for what exists.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub in_force: Option<WrittenRules>,
    /// What the operator waits for before it decides anything.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waits_for: Vec<String>,
    /// Every asset, then the objects of former releases that still exist.
    pub assets: Vec<ReportLine>,
    /// The pools whose nodes do not all run what they should.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub rollouts: Vec<String>,
    /// What waits for an approval and restarts nodes, by pool.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub waiting: Vec<WaitingPool>,
    /// Settings that cannot be read or have no effect.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub warnings: Vec<String>,
}

/// The operator that made a report.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Operator {
    /// Its pod.
    pub pod: String,
    /// Its version.
    pub version: String,
    /// The digest of its catalogue.
    pub catalogue: String,
    /// Since when it reconciles.
    pub since: Timestamp,
    /// When its process started. Its Lease says the same, so that the report of a process that has ended is recognised.
    #[serde(default)]
    pub started: Timestamp,
}

/// What the HyperConverged says about everything.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Policy {
    /// `on`, `off`, `suspended`, or the names that are switched on.
    pub autopilot: String,
    /// What waits for an approval: `high-impact` or `none`.
    pub approval: String,
    /// When nodes may restart; nothing means at any time.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub window: Option<String>,
}

/// One asset or object.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportLine {
    /// The asset, or the file of the tombstone.
    pub asset: String,
    /// Its object, or its component where the object is not known.
    pub object: String,
    /// Its state.
    pub state: StateWord,
    /// Why it is so; empty where the state says it all.
    pub why: String,
    /// What to approve, if it waits for that.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub digest: Option<String>,
    /// Which nodes its change restarts, if it waits.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub restarts: Option<String>,
    /// The annotations of users in force, as far as they may be shown.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub overrides: Vec<String>,
}

/// What waits for an approval in one pool.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct WaitingPool {
    /// The pool, or all pools that these changes concern, separated by commas.
    pub pool: String,
    /// The digests to approve.
    pub digests: Vec<String>,
}

/// The digest of what a HyperConverged tells the operator: a report with another one is out of date. What the operator itself writes there
/// while it corrects the object does not count.
pub fn settings(hco: &Value) -> Digest {
    let annotations = hco["metadata"]["annotations"].as_object().into_iter().flatten();
    let users = annotations.filter(|(name, _)| {
        name.starts_with(api::annotation::PREFIX) && !api::annotation::OURS.contains(&name.as_str())
    });
    Digest::of(&users.map(|(name, value)| (name.clone(), value.clone())).collect())
}

/// The beginning of a text; a cut is marked.
pub(crate) fn shortened(text: &str) -> String {
    match text.char_indices().nth(LONGEST) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

impl Report {
    /// The report as JSON that a ConfigMap takes: what makes it too large is left out, and the warnings say so.
    pub(crate) fn to_json(&self) -> String {
        let json = |report: &Report| serde_json::to_string(report).unwrap_or_default();
        let whole = json(self);
        if whole.len() <= LARGEST {
            return whole;
        }
        let mut report = self.clone();
        for line in &mut report.assets {
            for text in &mut line.overrides {
                let name = text.split(": ").next().unwrap_or_default();
                *text = format!("{name}: {} bytes", text.len().saturating_sub(name.len() + 2));
            }
        }
        report.left_out("the values of overrides");
        if json(&report).len() > LARGEST {
            report.assets.iter_mut().for_each(|line| line.why.clear());
            report.left_out("the reasons of states");
        }
        if json(&report).len() > LARGEST {
            (report.rollouts, report.warnings) = (Vec::new(), Vec::new());
            report.left_out("overrides, reasons and warnings");
            report.assets.iter_mut().for_each(|line| line.overrides.clear());
        }
        json(&report)
    }

    fn left_out(&mut self, what: &str) {
        self.warnings.push(format!(
            "the report is too large for a ConfigMap, so {what} are left out; virtpilot status --evaluate shows them"
        ));
    }
}

impl Core {
    /// The state of everything as this core knows it.
    pub fn report(&self) -> Report {
        let status = self.status();
        let waiting = waiting_by_pool(&status).into_iter().map(|waiting| WaitingPool {
            pool: waiting.pool,
            digests: waiting.changes.into_iter().map(|(digest, _)| digest.to_string()).collect(),
        });
        Report {
            operator: self.operator().cloned(),
            policy: self.policy_in_force(),
            settings: Some(settings(&self.facts().hco)),
            in_force: self.last_rules().cloned(),
            waits_for: self.waits_for(),
            assets: status.iter().map(|line| self.report_line(line)).collect(),
            rollouts: self.unfinished_rollouts().map(|rollout| rollout.to_string()).collect(),
            waiting: waiting.collect(),
            warnings: self.advice().iter().map(|advice| shortened(advice)).collect(),
        }
    }

    fn report_line(&self, line: &StatusLine) -> ReportLine {
        let object = line.key.as_ref().map_or_else(|| line.component.clone(), ToString::to_string);
        let (mut digest, mut restarts, mut refused) = (None, None, "");
        if let LineState::Object(ObjectState::Held(Reason::NeedsApproval { digest: asked, restarts: nodes, .. })) =
            &line.state
        {
            (digest, restarts) = (asked.map(|asked| asked.to_string()), Some(nodes.to_string()));
        }
        if let LineState::Object(ObjectState::Held(reason)) = &line.state {
            refused = match reason {
                Reason::PatchRefused { .. } => api::annotation::PATCH,
                Reason::IgnoreFieldsRefused { .. } => api::annotation::IGNORE_FIELDS,
                _ => "",
            };
        }
        ReportLine {
            asset: line.asset.clone(),
            object,
            state: StateWord::of(&line.state),
            why: shortened(&line.state.to_string()),
            digest,
            restarts,
            overrides: line.key.as_ref().map(|key| self.overrides_of(key, refused)).unwrap_or_default(),
        }
    }
}
