//! The plan of a profile as text for a person, and as a document.

use super::Profile;
use super::plan::short;
use crate::command::colour::{Colour, Palette};
use crate::command::wrap::{self, plain};
use api::advisor::{
    FailurePolicy, Impact, Item, ItemState, Operation, Phase, Remediation, TargetRef, VirtPlatformConfigSpec,
};
use serde_json::{Value, json};

/// How much of an item is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum Detail {
    /// With its difference, and all that is applied: files and units as they are read, and not as they are encoded.
    Full,
    /// With its difference.
    Differences,
    /// Without.
    Summary,
}

/// The whole plan: phase, inputs, items in their order, digest and the next command.
pub(super) fn text(profile: &Profile, detail: Detail, terminal: Option<usize>, palette: Palette) -> String {
    let mut text = head(profile, terminal, palette);
    if !profile.status.inputs.is_empty() {
        text.push_str("\nIt is derived from:\n");
        let inputs = profile.status.inputs.iter();
        let rows: Vec<[String; 2]> =
            inputs.map(|input| [format!("  {}", plain(&input.name)), plain(&input.value)]).collect();
        let width = rows.iter().map(|[name, _]| name.chars().count()).max().unwrap_or_default();
        rows.iter().for_each(|[name, value]| text.push_str(&format!("{name:<width$}  {value}\n")));
    }
    if let Some(replaced) = &profile.status.replaced_plan {
        text.push_str(&format!("\nChanged since plan {}:\n", plain(short(&replaced.digest))));
        replaced.changes.iter().for_each(|change| text.push_str(&wrap::hanging("  ", &plain(change), terminal)));
    }
    for (place, item) in profile.status.items.iter().enumerate() {
        text.push('\n');
        text.push_str(&self::item(place + 1, item, &profile.costs.text(&item.name), detail, terminal, palette));
    }
    text.push('\n');
    if let Some(unknown) = profile.costs.unknown() {
        text.push_str(&wrap::hanging("", &plain(&unknown), terminal));
    }
    if let Some(digest) = &profile.status.plan_digest {
        text.push_str(&format!("Plan {}\n", plain(digest)));
    }
    match profile.next() {
        Some(next) => {
            text.push_str(&format!("{} {}\n", palette.paint(Colour::Bold, "Next:"), plain(&next.command)));
            text.push_str(&wrap::hanging("      ", next.what, terminal));
        }
        None => text.push_str("Nothing is left to do.\n"),
    }
    text
}

fn head(profile: &Profile, terminal: Option<usize>, palette: Palette) -> String {
    let Profile { name, spec, status, generation, .. } = profile;
    let phase = palette.paint(of_phase(status.phase), &profile.phase());
    let impact = status.impact_severity.map(|found| format!(", {}", impact(found))).unwrap_or_default();
    let rollback = if spec.rollback == Some(true) { ", rollback" } else { "" };
    let mut text =
        format!("{}  {phase}, action {:?}{rollback}{impact}\n", palette.paint(Colour::Bold, &plain(name)), spec.action);
    if !profile.why().is_empty() {
        text.push_str(&wrap::hanging("  ", &plain(profile.why()), terminal));
    }
    let terms = terms(spec);
    if !terms.is_empty() {
        text.push_str(&wrap::hanging("  ", &format!("{}: the digest covers that", terms.join(", ")), terminal));
    }
    if spec.bypass_optimistic_lock || spec.remediation == Some(Remediation::Automatic) {
        let unattended = "Once it is applied, drift is corrected without a review; an approval covers that, too.";
        text.push_str(&wrap::hanging("  ", &palette.paint(Colour::Yellow, unattended), terminal));
    }
    if !profile.is_current() && spec.action != api::advisor::Action::Ignore {
        let seen = status.observed_generation.map_or("nothing".to_owned(), |seen| format!("generation {seen}"));
        let stale = format!("The spec has generation {generation}, and what is shown is of {seen}.");
        text.push_str(&wrap::hanging("  ", &palette.paint(Colour::Yellow, &stale), terminal));
    }
    text
}

/// What a digest covers beside the items, where it is not the default.
fn terms(spec: &VirtPlatformConfigSpec) -> Vec<String> {
    let policy =
        (spec.failure_policy != FailurePolicy::default()).then(|| format!("failurePolicy {:?}", spec.failure_policy));
    let bypasses = spec.bypass_optimistic_lock.then(|| "bypassOptimisticLock true".to_owned());
    let remediation = spec.remediation.filter(|remediation| *remediation != Remediation::default());
    [policy, bypasses, remediation.map(|remediation| format!("remediation {remediation:?}"))]
        .into_iter()
        .flatten()
        .collect()
}

fn item(place: usize, item: &Item, cost: &str, detail: Detail, terminal: Option<usize>, palette: Palette) -> String {
    let (sign, colour) = match (item.state, item.operation) {
        (ItemState::Failed, _) => ('!', Colour::Red),
        (_, Some(Operation::Create)) => ('+', Colour::Green),
        (_, Some(Operation::Delete)) => ('-', Colour::Red),
        (_, Some(Operation::Keep)) => ('=', Colour::Dim),
        (_, Some(Operation::Update) | None) => ('~', Colour::Yellow),
    };
    let operation = item.operation.map(|operation| format!("{operation:?}").to_lowercase());
    let about =
        [operation, item.impact_severity.map(|found| impact(found).to_owned()), Some(format!("{:?}", item.state))];
    let about = about.into_iter().flatten().collect::<Vec<_>>().join(", ");
    let object = palette.paint(colour, &plain(&format!("{sign} {}", target(&item.target_ref))));
    let mut text = format!("{place}. {object}  {about}\n");
    let mut say = |line: String| text.push_str(&wrap::hanging("     ", &plain(&line), terminal));
    say(match &item.message {
        Some(message) if !message.is_empty() => format!("{}: {message}", item.name),
        _ => item.name.clone(),
    });
    let cost = if cost.is_empty() { String::new() } else { format!("; {cost}") };
    match item.restarts.as_slice() {
        [] => {}
        [one] => say(format!("restarts 1 node: {one}{cost}")),
        nodes => say(format!("restarts {} nodes: {}{cost}", nodes.len(), nodes.join(", "))),
    }
    if let Some(since) = &item.held_since {
        say(format!("held since {}", since.0));
    }
    if !item.takes_from.is_empty() {
        say(format!("takes fields from {}", item.takes_from.join(", ")));
    }
    let mut show = |lines: &str| {
        lines.lines().for_each(|line| text.push_str(&format!("     {}\n", diff_line(line, palette))));
    };
    let diff = item.diff.as_deref().unwrap_or_default();
    match (detail, item.operation) {
        (Detail::Summary, _) => {}
        (Detail::Full, Some(Operation::Create)) if item.desired_state.is_some() => show(&applied(item)),
        (Detail::Full, Some(Operation::Create | Operation::Update)) => {
            show(diff);
            show("all that is applied:");
            show(&applied(item));
        }
        (Detail::Full | Detail::Differences, _) => show(diff),
    }
    text
}

/// All that is applied, with files and units decoded.
fn applied(item: &Item) -> String {
    match &item.desired_state {
        Some(desired) => change::diff::text(&change::diff::of_wanted(None, &Value::Object(desired.clone()), &[])),
        None => "(it is too large for the status, or may not be shown)\n".to_owned(),
    }
}

/// A line of a difference in its colour.
fn diff_line(line: &str, palette: Palette) -> String {
    let line = plain(line);
    match line.chars().next() {
        Some('+') => palette.paint(Colour::Green, &line),
        Some('-') => palette.paint(Colour::Red, &line),
        _ => line,
    }
}

/// The kind and the name of an object, as `status` writes them.
pub(super) fn target(target: &TargetRef) -> String {
    match target.namespace.as_deref() {
        Some(namespace) if !namespace.is_empty() => format!("{} {namespace}/{}", target.kind, target.name),
        _ => format!("{} {}", target.kind, target.name),
    }
}

pub(super) fn impact(impact: Impact) -> &'static str {
    match impact {
        Impact::Low => "low impact",
        Impact::Medium => "medium impact",
        Impact::High => "high impact",
    }
}

/// Red is wrong, yellow waits, green is as it should be.
pub(super) fn of_phase(phase: Option<Phase>) -> Colour {
    match phase {
        Some(Phase::Completed) => Colour::Green,
        Some(Phase::Failed | Phase::CompletedWithErrors | Phase::PrerequisiteFailed) => Colour::Red,
        Some(Phase::Ignored) => Colour::Dim,
        _ => Colour::Yellow,
    }
}

/// The same for programs; in full, each item that is applied has that also as text.
pub(super) fn document(profile: &Profile, detail: Detail) -> Value {
    let Profile { name, generation, spec, status, approved, .. } = profile;
    let mut items = json!(status.items);
    for (shown, item) in items.as_array_mut().into_iter().flatten().zip(&status.items) {
        let (minutes, machines) = profile.costs.figures(&item.name);
        minutes.into_iter().for_each(|minutes| shown["minutes"] = json!(minutes));
        machines.into_iter().for_each(|count| shown["virtualMachines"] = json!(count));
    }
    if detail == Detail::Full {
        for (shown, item) in items.as_array_mut().into_iter().flatten().zip(&status.items) {
            if item.desired_state.is_some() {
                shown["applied"] = json!(applied(item));
            }
        }
    }
    json!({
        "name": name,
        "action": spec.action,
        "rollback": spec.rollback.unwrap_or_default(),
        "failurePolicy": spec.failure_policy,
        "bypassOptimisticLock": spec.bypass_optimistic_lock,
        "remediation": spec.remediation.unwrap_or_default(),
        "generation": generation,
        "isCurrent": profile.is_current(),
        "phase": profile.phase(),
        "why": profile.why(),
        "impact": status.impact_severity,
        "digest": status.plan_digest,
        "replacedPlan": status.replaced_plan,
        "approved": spec.approved_plan.as_ref().or(approved.as_ref()),
        "inputs": status.inputs,
        "items": items,
        "next": profile.next(),
    })
}

#[cfg(test)]
mod tests {
    use super::super::samples::{profile, sample};
    use super::{Detail, document, text};
    use crate::command::colour::Palette;
    use expect_test::expect;
    use serde_json::json;

    #[test]
    fn a_plan_is_shown_with_all_that_an_approval_is_about() {
        expect![[r#"
            load-aware-rebalancing  ReviewRequired, action DryRun, high impact
              the plan has 2 changes; approve it to apply it

            It is derived from:
              hyperconverged.parallelMigrationsPerCluster  5

            1. + MachineConfig 99-psi  create, high impact, Pending
                 enable-psi-metrics
                 restarts 2 nodes: worker-0, worker-1
                 +.spec.config: {"ignition":{"version":"3.2.0"}}
                 +.spec.kernelArguments: ["psi=1"]
                 +file /usr/local/bin/psi (0755, 2 lines)
                 +  #!/bin/sh
                 +  swapon -a

            2. ~ KubeDescheduler descheduler/cluster  update, medium impact, Pending
                 enable-load-aware-descheduling: waits for enable-psi-metrics
                 takes fields from kubectl-edit, argocd
                 -.spec.mode: "Predictive"
                 +.spec.mode: "Automatic"

            3. = ConfigMap kept  keep, low impact, Completed
                 reserve-memory

            Plan sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
            Next: virtpilot approve load-aware-rebalancing --digest sha256:0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef
                  applies exactly this plan
        "#]]
        .assert_eq(&text(&sample(), Detail::Differences, None, Palette::default()));
    }

    #[test]
    fn in_full_all_that_is_applied_can_be_read_also_where_the_status_had_no_room_for_the_difference() {
        let mut cut = sample();
        cut.status.items[0].diff = Some("... 2 more lines: --full\n".to_owned());
        let shown = text(&cut, Detail::Full, None, Palette::default());
        let items = &shown[shown.find("1. ").unwrap()..shown.find("3. ").unwrap()];
        expect![[r#"
            1. + MachineConfig 99-psi  create, high impact, Pending
                 enable-psi-metrics
                 restarts 2 nodes: worker-0, worker-1
                 +.spec.config: {"ignition":{"version":"3.2.0"}}
                 +.spec.kernelArguments: ["psi=1"]
                 +file /usr/local/bin/psi (0755, 2 lines)
                 +  #!/bin/sh
                 +  swapon -a

            2. ~ KubeDescheduler descheduler/cluster  update, medium impact, Pending
                 enable-load-aware-descheduling: waits for enable-psi-metrics
                 takes fields from kubectl-edit, argocd
                 -.spec.mode: "Predictive"
                 +.spec.mode: "Automatic"
                 all that is applied:
                 +.spec: {"mode":"Automatic"}

        "#]]
        .assert_eq(items);
        let document = document(&cut, Detail::Full);
        assert!(document["items"][0]["applied"].as_str().unwrap().contains("+  swapon -a\n"), "{document}");
    }

    #[test]
    fn what_a_terminal_would_act_on_is_not_printed_and_lines_have_their_colours() {
        let mut hostile = sample();
        hostile.status.items[0].diff = Some("+a\u{1b}[2Jb\n-c\n".to_owned());
        hostile.status.items[0].message = Some("x\u{1b}]0;y".to_owned());
        let shown = text(&hostile, Detail::Differences, None, Palette::COLOURED);
        assert!(
            shown.contains("\u{1b}[32m+a\u{fffd}[2Jb\u{1b}[0m") && shown.contains("\u{1b}[31m-c\u{1b}[0m"),
            "{shown}"
        );
        assert!(!shown.contains("\u{1b}[2J") && !shown.contains("\u{1b}]0"), "{shown}");
        assert!(shown.contains("\u{1b}[33mReviewRequired\u{1b}[0m"), "{shown}");
        let brief = text(&hostile, Detail::Summary, None, Palette::default());
        assert!(!brief.contains("-c") && brief.contains("restarts 2 nodes"), "{brief}");
    }

    #[test]
    fn what_changed_since_the_plan_was_read_is_shown() {
        let mut changed = sample();
        changed.status.replaced_plan = serde_json::from_value(json!({
            "digest": "sha256:89abcdef0123", "changes": ["enable-psi-metrics: was \"+a\", and is \"+b\" now"],
        }))
        .unwrap();
        let shown = text(&changed, Detail::Summary, None, Palette::default());
        let expected = "\nChanged since plan 89abcdef:\n  enable-psi-metrics: was \"+a\", and is \"+b\" now\n\n1. ";
        assert!(shown.contains(expected), "{shown}");
        assert_eq!(document(&changed, Detail::Differences)["replacedPlan"]["digest"], "sha256:89abcdef0123");
    }

    #[test]
    fn since_when_an_item_is_held_is_shown() {
        let mut held = sample();
        held.status.items[0].held_since = Some(api::advisor::Time("2026-11-17T10:00:00Z".into()));
        let shown = text(&held, Detail::Summary, None, Palette::default());
        assert!(shown.contains("     held since 2026-11-17T10:00:00Z\n"), "{shown}");
    }

    #[test]
    fn what_else_the_digest_covers_is_shown_where_it_is_not_the_default() {
        let spec = json!({"failurePolicy": "Continue", "bypassOptimisticLock": true, "remediation": "Automatic"});
        let unusual = profile(&spec, json!({}));
        let shown = text(&unusual, Detail::Summary, None, Palette::default());
        let expected =
            "failurePolicy Continue, bypassOptimisticLock true, remediation Automatic: the digest covers that\n";
        assert!(shown.contains(expected), "{shown}");
        let document = document(&unusual, Detail::Summary);
        for key in ["failurePolicy", "bypassOptimisticLock", "remediation"] {
            assert_eq!(document[key], spec[key], "{key}");
        }
        assert!(!text(&sample(), Detail::Summary, None, Palette::default()).contains("the digest covers"));
    }

    #[test]
    fn an_old_plan_is_marked() {
        let mut old = sample();
        old.generation = 4;
        let shown = text(&old, Detail::Summary, None, Palette::default());
        assert!(shown.contains("The spec has generation 4, and what is shown is of generation 3."), "{shown}");
        assert!(shown.contains("Next: virtpilot plan show load-aware-rebalancing\n"), "{shown}");
        let rollback = text(&profile(&json!({"rollback": true}), json!({})), Detail::Summary, None, Palette::default());
        assert!(
            rollback.contains("Pending, action DryRun, rollback\n") && rollback.contains("is of nothing."),
            "{rollback}"
        );
    }

    #[test]
    fn a_document_has_the_status_and_the_next_command() {
        let document = document(&sample(), Detail::Differences);
        assert_eq!(document["items"][1]["takesFrom"], json!(["kubectl-edit", "argocd"]));
        assert_eq!(document["isCurrent"], json!(true));
        assert!(document["next"]["command"].as_str().unwrap().starts_with("virtpilot approve"));
    }
}
