//! The report as text for people.

use super::Format;
use crate::command::colour::{Colour, Palette};
use crate::command::table::fitted;
use crate::command::wrap;
use autopilot::{Report, ReportLine, StateWord, WaitingPool};
use jiff::Timestamp;
use std::collections::BTreeMap;

/// The column of the state.
const STATE: usize = 2;

/// Shows a report: who made it, what holds for everything, how many objects have each state, and these lines.
pub(super) fn text(
    report: &Report,
    made_by: &str,
    lines: &[&ReportLine],
    format: Format,
    width: Option<usize>,
    palette: Palette,
) -> String {
    let bold = |text: &str| palette.paint(Colour::Bold, text);
    let paint = |row: usize, column: usize, text: &str| match (row.checked_sub(1), column) {
        (None, _) => bold(text),
        (Some(row), STATE) => palette.paint(Colour::of(lines[row].state), text),
        _ => text.to_owned(),
    };
    let rows: Vec<[String; 4]> = lines.iter().map(|line| row(line, format)).collect();
    let table = match rows.is_empty() {
        true => String::new(),
        false => format!("\n{}", fitted(["ASSET", "OBJECT", "STATE", "DETAIL"], &rows, &[0, 1, 3], width, &paint)),
    };
    let mut head = vec![("Operator", wrap::plain(made_by)), ("Policy", wrap::plain(&policy(report)))];
    if !report.waits_for.is_empty() {
        head.push(("Waits", format!("for {}", report.waits_for.join(", "))));
    }
    head.push(("Assets", counts(report, palette)));
    let entry = |(name, value): &(&str, String)| {
        wrap::hanging(&format!("{}{}", bold(name), " ".repeat(10 - name.len())), value, width)
    };
    let head: String = head.iter().map(entry).collect();
    format!("{head}{table}{}", notes(report, width, palette))
}

/// What made a report that is this old.
pub(super) fn reported(report: &Report, reported: Timestamp, now: Timestamp) -> String {
    let Some(operator) = &report.operator else { return String::new() };
    let catalogue = operator.catalogue.trim_start_matches("sha256:");
    let catalogue: String = catalogue.chars().take(8).collect();
    format!(
        "running, leader {} since {} (version {}, catalogue {catalogue}), last change {} ago",
        operator.pod,
        operator.since.strftime("%F %TZ"),
        operator.version,
        age(reported, now)
    )
}

/// A time span in its largest unit, as kubectl shows it.
fn age(from: Timestamp, to: Timestamp) -> String {
    let seconds = to.duration_since(from).as_secs().max(0);
    match seconds {
        0..120 => format!("{seconds}s"),
        120..7200 => format!("{}m", seconds / 60),
        7200..172_800 => format!("{}h", seconds / 3600),
        _ => format!("{}d", seconds / 86400),
    }
}

fn policy(report: &Report) -> String {
    let policy = &report.policy;
    let window = policy.window.as_ref().map_or_else(String::new, |window| format!(", window {window}"));
    format!("autopilot {}, approval {}{window}", policy.autopilot, policy.approval)
}

/// How many lines have each state, the most urgent first.
fn counts(report: &Report, palette: Palette) -> String {
    let mut counts: BTreeMap<StateWord, usize> = BTreeMap::new();
    for line in &report.assets {
        *counts.entry(line.state).or_default() += 1;
    }
    let texts: Vec<String> = counts.iter().map(|(word, count)| format!("{count} {}", palette.state(*word))).collect();
    texts.join(", ")
}

/// How far the rollouts of pools are, overrides in force, what is wrong, and how to approve what waits.
fn notes(report: &Report, width: Option<usize>, palette: Palette) -> String {
    let overridden = report.assets.iter().filter(|line| !line.overrides.is_empty());
    let overrides =
        overridden.map(|line| wrap::plain(&format!("override: {}: {}", line.object, line.overrides.join("; "))));
    let warning = palette.paint(Colour::Yellow, "warning:");
    let warnings = report.warnings.iter().map(|text| format!("{warning} {}", wrap::plain(text)));
    let to_do = palette.paint(Colour::Bold, "next:");
    let approvals = report.waiting.iter().map(|WaitingPool { pool, digests }| match digests.len() {
        1 => format!("{to_do} virtpilot approve --pool {pool}"),
        count => format!("{to_do} virtpilot approve --pool {pool}    (one rollout for {count} changes)"),
    });
    // What no pool takes, or restarts no node, is not part of a rollout.
    let of_pool = |digest: &String| report.waiting.iter().any(|pool| pool.digests.contains(digest));
    let alone = report.assets.iter().filter(|line| line.digest.as_ref().is_some_and(|digest| !of_pool(digest)));
    let alone = alone.map(|line| format!("{to_do} virtpilot approve {}", line.asset));
    let texts = report.rollouts.iter().cloned().chain(overrides).chain(warnings);
    let texts = texts.map(|text| wrap::hanging("", &text, width));
    let commands = next(report, &to_do).into_iter().chain(approvals).chain(alone);
    let lines: String = texts.chain(commands.map(|command| format!("{command}\n"))).collect();
    if lines.is_empty() { String::new() } else { format!("\n{lines}") }
}

/// What to look into first, if something is wrong.
fn next(report: &Report, to_do: &str) -> Option<String> {
    let urgent = report.assets.iter().filter(|line| line.state.is_problem()).min_by_key(|line| line.state)?;
    Some(format!("{to_do} virtpilot explain {}    ({}: {})", urgent.asset, urgent.state, urgent.object))
}

fn row(line: &ReportLine, format: Format) -> [String; 4] {
    let detail = match (&line.digest, &line.restarts) {
        (Some(digest), Some(restarts)) if format == Format::Text => {
            // The names of the nodes follow the colon.
            let short: String = digest.trim_start_matches("sha256:").chars().take(8).collect();
            format!("{short}  {}", restarts.split(':').next().unwrap_or_default())
        }
        _ => wrap::plain(&line.why),
    };
    [line.asset.clone(), line.object.clone(), line.state.to_string(), detail]
}

#[cfg(test)]
mod tests {
    use super::{Format, Palette, age, reported, text};
    use autopilot::{Operator, Policy, Report, ReportLine, StateWord, WaitingPool};
    use expect_test::expect;
    use jiff::Timestamp;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_772_323_200 + second).unwrap()
    }

    fn report() -> Report {
        let line = |asset: &str, state: StateWord, why: &str| ReportLine {
            asset: asset.into(),
            object: format!("MachineConfig {asset}"),
            state,
            why: why.into(),
            digest: None,
            restarts: None,
            overrides: Vec::new(),
        };
        let waiting = ReportLine {
            digest: Some("sha256:c357862d00000000".into()),
            restarts: Some("restarts 2 nodes of pool worker, one at a time: w0, w1".into()),
            ..line("swap", StateWord::PendingApproval, "approval required")
        };
        let overridden = ReportLine {
            overrides: vec!["platform.kubevirt.io/mode: unmanaged".into()],
            ..line("psi", StateWord::Unmanaged, "")
        };
        Report {
            operator: Some(Operator {
                pod: "virtpilot-7c9f".into(),
                version: "0.2.0".into(),
                catalogue: "sha256:4e1c02d9abcdef".into(),
                since: at(0),
                started: at(0),
            }),
            policy: Policy { autopilot: "on".into(), approval: "high-impact".into(), window: Some("Sat 01:00".into()) },
            assets: vec![waiting, overridden, line("ksm", StateWord::InSync, "")],
            waiting: vec![WaitingPool { pool: "worker".into(), digests: vec!["sha256:c357862d00000000".into()] }],
            warnings: vec!["the annotation x is not known".into()],
            ..Report::default()
        }
    }

    #[test]
    fn a_report_begins_with_who_made_it_and_ends_with_what_to_do() {
        let report = report();
        let lines: Vec<&ReportLine> = report.assets.iter().filter(|line| line.state.matters()).collect();
        let shown =
            text(&report, &reported(&report, at(7000), at(7090)), &lines, Format::Text, None, Palette::default());
        expect![[r"
            Operator  running, leader virtpilot-7c9f since 2026-03-01 00:00:00Z (version 0.2.0, catalogue 4e1c02d9), last change 90s ago
            Policy    autopilot on, approval high-impact, window Sat 01:00
            Assets    1 PendingApproval, 1 Unmanaged, 1 InSync

            ASSET  OBJECT              STATE            DETAIL
            swap   MachineConfig swap  PendingApproval  c357862d  restarts 2 nodes of pool worker, one at a time
            psi    MachineConfig psi   Unmanaged

            override: MachineConfig psi: platform.kubevirt.io/mode: unmanaged
            warning: the annotation x is not known
            next: virtpilot approve --pool worker
        "]]
        .assert_eq(&shown);
    }

    #[test]
    fn colours_change_nothing_but_colours() {
        let report = report();
        let lines: Vec<&ReportLine> = report.assets.iter().collect();
        let [plain, coloured] = [Palette::default(), Palette::COLOURED]
            .map(|palette| text(&report, "me", &lines, Format::Text, Some(70), palette));
        assert!(!plain.contains('\u{1b}'), "{plain}");
        for painted in
            ["\u{1b}[33mPendingApproval\u{1b}[0m  c3", "1 \u{1b}[32mInSync\u{1b}[0m\n", "\u{1b}[1mASSET\u{1b}[0m  "]
        {
            assert!(coloured.contains(painted), "{painted:?}: {coloured:?}");
        }
        let codes = ["\u{1b}[0m", "\u{1b}[1m", "\u{1b}[2m", "\u{1b}[31m", "\u{1b}[32m", "\u{1b}[33m"];
        assert_eq!(codes.iter().fold(coloured, |text, code| text.replace(code, "")), plain);
    }

    #[test]
    fn what_is_wrong_comes_before_what_waits() {
        let mut report = report();
        report.assets[2].state = StateWord::Conflict;
        report.assets.push(ReportLine { asset: "mtv".into(), state: StateWord::Failed, ..report.assets[2].clone() });
        let shown = text(&report, "", &[], Format::Text, None, Palette::default());
        let next: Vec<&str> = shown.lines().filter(|line| line.starts_with("next: ")).collect();
        assert_eq!(
            next,
            ["next: virtpilot explain mtv    (Failed: MachineConfig ksm)", "next: virtpilot approve --pool worker"]
        );
    }

    #[test]
    fn what_waits_outside_of_a_rollout_has_a_next_step_and_lines_fit_a_terminal() {
        let report = Report { waiting: Vec::new(), ..report() };
        let lines: Vec<&ReportLine> = report.assets.iter().collect();
        let shown =
            text(&report, &reported(&report, at(7000), at(7090)), &lines, Format::Text, Some(60), Palette::default());
        assert!(shown.ends_with("\nnext: virtpilot approve swap\n"), "{shown}");
        assert!(shown.lines().all(|line| line.chars().count() <= 60), "{shown}");
    }

    #[test]
    fn an_age_has_one_unit() {
        for (seconds, shown) in [(-5, "0s"), (119, "119s"), (120, "2m"), (7200, "2h"), (200_000, "2d")] {
            assert_eq!(age(at(0), at(seconds)), shown);
        }
    }
}
