//! What a person does next with a profile: one rule for `plan show`, `explain` and `approve`.

use super::Profile;
use advisor::judge::UNHEALTHY;
use api::advisor::{Action, Phase};
use serde::Serialize;

/// A command, and what it is good for.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(super) struct Next {
    pub(super) command: String,
    pub(super) what: &'static str,
}

/// Whether the plan can be approved.
#[derive(Debug, PartialEq, Eq)]
pub(super) enum Approval<'a> {
    /// It can, with this digest.
    Possible(&'a str),
    /// It is approved already.
    Given(&'a str),
    /// There is nothing to approve, for this reason.
    Nothing(String),
}

impl Profile {
    /// Whether the plan that the status shows can be approved.
    pub(super) fn approval(&self) -> Approval<'_> {
        let Profile { name, spec, status, .. } = self;
        let nothing = |why: String| Approval::Nothing(format!("nothing of {name} can be approved: {why}"));
        if spec.action == Action::Ignore {
            return nothing(format!("its action is Ignore; to plan it, run \"{}\"", self.plan_it()));
        }
        if !self.is_current() {
            let seen =
                status.observed_generation.map_or("no generation".to_owned(), |seen| format!("generation {seen}"));
            return nothing(format!(
                "its status is about {seen} of the spec, and the spec has generation {}; wait until \"virtpilot plan show {name}\" shows the new plan",
                self.generation
            ));
        }
        let digest = status.plan_digest.as_deref().filter(|_| self.has_present_plan());
        let Some(digest) = digest else {
            return nothing(format!("it has no plan, its phase is {}{}", self.phase(), with_colon(self.why())));
        };
        if self.changes().next().is_none() {
            return nothing(format!("the plan changes nothing, its phase is {}", self.phase()));
        }
        let is_given = spec.approved_plan.as_deref() == Some(digest)
            || (spec.approved_plan.is_none() && self.approved.as_deref() == Some(digest));
        match spec.action == Action::Apply && is_given {
            true => Approval::Given(digest),
            false => Approval::Possible(digest),
        }
    }

    /// Whether what the status shows is the plan for the cluster and the spec as they are; else it is a former one.
    fn has_present_plan(&self) -> bool {
        let has_failed =
            |condition: &api::advisor::Condition| condition.r#type == "Failed" && condition.reason == "PlanFailed";
        match self.status.phase {
            Some(Phase::Pending | Phase::Drafting | Phase::PrerequisiteFailed) | None => false,
            Some(Phase::Failed) => !self.status.conditions.iter().any(has_failed),
            Some(_) => true,
        }
    }

    /// Whether an object says that something is wrong with it, although all is applied.
    fn is_unhealthy(&self) -> bool {
        let says = |condition: &api::advisor::Condition| condition.r#type == "Ready" && condition.reason == UNHEALTHY;
        self.status.conditions.iter().any(says)
    }

    /// The command that has a profile planned.
    fn plan_it(&self) -> String {
        format!(
            r#"kubectl patch virtplatformconfig {} --type merge --patch '{{"spec":{{"action":"DryRun"}}}}'"#,
            self.name
        )
    }

    /// The next command, if anything is left to do.
    pub(super) fn next(&self) -> Option<Next> {
        let name = &self.name;
        let next = |command: String, what| Some(Next { command, what });
        let show = format!("virtpilot plan show {name}");
        if self.spec.action == Action::Ignore {
            return next(self.plan_it(), "plans it; nothing is written");
        }
        if !self.is_current() {
            return next(show, "shows the plan once the advisor has made it; \"virtpilot check\" says whether it runs");
        }
        if let Approval::Possible(digest) = self.approval() {
            return next(format!("virtpilot approve {name} --digest {digest}"), "applies exactly this plan");
        }
        match self.status.phase.unwrap_or(Phase::Pending) {
            Phase::PrerequisiteFailed => next(show, "after what is missing is there: the plan is then made by itself"),
            Phase::Failed | Phase::CompletedWithErrors => next(show, "after what failed is corrected"),
            Phase::Completed if self.is_unhealthy() => next(show, "after what its items name is corrected"),
            Phase::Completed | Phase::Ignored => None,
            _ => next(
                format!("kubectl wait virtplatformconfig/{name} --for=condition=Ready --timeout=1h"),
                "ends when the plan is applied",
            ),
        }
    }

    /// 0 nothing to do, 2 changes are pending, 1 something failed.
    pub(super) fn exit_code(&self) -> u8 {
        match self.status.phase.unwrap_or(Phase::Pending) {
            Phase::Failed | Phase::CompletedWithErrors | Phase::PrerequisiteFailed => 1,
            _ if self.spec.action == Action::Ignore => 0,
            _ if !self.is_current() => 2,
            Phase::Completed | Phase::Ignored => 0,
            _ => 2,
        }
    }
}

fn with_colon(text: &str) -> String {
    if text.is_empty() { String::new() } else { format!(": {text}") }
}

#[cfg(test)]
mod tests {
    use super::super::samples::{DIGEST, profile, sample};
    use super::Approval;
    use api::advisor::Phase;
    use serde_json::json;

    #[test]
    fn a_plan_with_changes_can_be_approved_once() {
        assert_eq!(sample().approval(), Approval::Possible(DIGEST));
        let mut approved = sample();
        approved.spec.action = api::advisor::Action::Apply;
        assert_eq!(approved.approval(), Approval::Possible(DIGEST), "the advisor has recorded nothing");
        approved.approved = Some(DIGEST.to_owned());
        assert_eq!(approved.approval(), Approval::Given(DIGEST));
        approved.spec.approved_plan = Some("sha256:other".to_owned());
        assert_eq!(approved.approval(), Approval::Possible(DIGEST), "another plan is approved");
        approved.spec.approved_plan = Some(DIGEST.to_owned());
        assert_eq!(approved.approval(), Approval::Given(DIGEST));
        approved.spec.action = api::advisor::Action::DryRun;
        assert_eq!(approved.approval(), Approval::Possible(DIGEST), "a dry run applies nothing");
    }

    #[test]
    fn what_cannot_be_approved_says_why() {
        let mut edited = sample();
        edited.generation = 4;
        let ignored = profile(&json!({"action": "Ignore"}), json!({"phase": "Ignored"}));
        let unplanned = profile(&json!({}), json!({"phase": "PrerequisiteFailed"}));
        // A former plan is still shown.
        let mut unmet = sample();
        unmet.status.phase = Some(Phase::PrerequisiteFailed);
        let mut drafting = sample();
        drafting.status.phase = Some(Phase::Drafting);
        let mut failed = sample();
        failed.status.phase = Some(Phase::Failed);
        assert_eq!(failed.approval(), Approval::Possible(DIGEST), "an item has failed");
        let condition = json!({"type": "Failed", "status": "True", "lastTransitionTime": "2026-11-17T10:00:00Z", "reason": "PlanFailed", "message": "m"});
        failed.status.conditions = vec![serde_json::from_value(condition).unwrap()];
        let mut kept = sample();
        kept.status.items.retain(|item| item.name == "reserve-memory");
        for (profile, why) in [
            (edited, "its status is about generation 3 of the spec, and the spec has generation 4"),
            (
                ignored,
                "its action is Ignore; to plan it, run \"kubectl patch virtplatformconfig load-aware-rebalancing",
            ),
            (unmet, "it has no plan, its phase is PrerequisiteFailed"),
            (drafting, "it has no plan, its phase is Drafting"),
            (failed, "it has no plan, its phase is Failed"),
            (unplanned, "it has no plan, its phase is PrerequisiteFailed"),
            (kept, "the plan changes nothing, its phase is ReviewRequired"),
        ] {
            let Approval::Nothing(found) = profile.approval() else { panic!("{why}") };
            assert!(found.contains(why), "{found}");
        }
    }

    #[test]
    fn every_phase_has_its_next_command_and_exit_code() {
        let next = |phase: &str| {
            let profile = profile(&json!({"action": "Apply"}), json!({"phase": phase}));
            let command = profile.next().map(|next| next.command).unwrap_or_default();
            (profile.exit_code(), command.split(' ').take(2).collect::<Vec<_>>().join(" "))
        };
        let all = [
            ("Pending", 2, "kubectl wait"),
            ("Drafting", 2, "kubectl wait"),
            ("PrerequisiteFailed", 1, "virtpilot plan"),
            ("ReviewRequired", 2, "kubectl wait"),
            ("InProgress", 2, "kubectl wait"),
            ("Completed", 0, ""),
            ("CompletedWithErrors", 1, "virtpilot plan"),
            ("CompletedWithUpgrade", 2, "kubectl wait"),
            ("Failed", 1, "virtpilot plan"),
            ("Drifted", 2, "kubectl wait"),
            ("Ignored", 0, ""),
        ];
        for (phase, code, command) in all {
            assert_eq!(next(phase), (code, command.to_owned()), "{phase}");
        }
        assert_eq!(
            sample().next().unwrap().command,
            format!("virtpilot approve load-aware-rebalancing --digest {DIGEST}")
        );
        assert_eq!(sample().exit_code(), 2);
        let ignored = profile(&json!({"action": "Ignore"}), json!({"phase": "Ignored"}));
        assert!(ignored.next().unwrap().command.ends_with(r#"'{"spec":{"action":"DryRun"}}'"#));
        let condition = json!({"type": "Ready", "status": "False", "lastTransitionTime": "2026-11-17T10:00:00Z", "reason": "Unhealthy", "message": "m"});
        let status = json!({"phase": "Completed", "conditions": [condition]});
        let unhealthy = profile(&json!({"action": "Apply"}), status).next().unwrap();
        assert_eq!(unhealthy.what, "after what its items name is corrected");
        let new = profile(&json!({}), json!({}));
        assert_eq!(
            (new.exit_code(), new.next().unwrap().command.as_str()),
            (2, "virtpilot plan show load-aware-rebalancing")
        );
    }
}
