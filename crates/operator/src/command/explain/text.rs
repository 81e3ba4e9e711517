//! One explanation as text.

use super::history::History;
use super::next::Next;
use crate::command::colour::{Colour, Palette};
use crate::command::{table, wrap};
use autopilot::{Explanation, GateOutcome, GateRow};
use catalog::{Catalog, Install};

/// The widest column of what a gate looks at, and of what it is: longer texts are wrapped.
const WIDEST: [usize; 2] = [56, 64];
/// A line of notes is wrapped after this, unless the terminal is narrower.
const WIDTH: usize = 111;

/// The width of the names of notes.
const NAMES: usize = 11;

/// The explanation for a terminal of this width, if it goes to one.
pub(super) fn text(
    explanation: &Explanation,
    catalog: &Catalog,
    next: &Next,
    history: &History,
    terminal: Option<usize>,
    palette: Palette,
) -> String {
    let bold = |text: &str| palette.paint(Colour::Bold, text);
    let line = &explanation.line;
    let object = line.key.as_ref().map_or_else(|| line.component.clone(), ToString::to_string);
    let mut text = format!("{}  {object}\n", bold(&line.asset));
    text.push_str(&notes(explanation, catalog, terminal, palette));
    text.push_str(&gates(&explanation.gates, terminal, |mark| palette.paint(Colour::of(explanation.word), mark)));
    let why = wrap::plain(&line.state.to_string());
    let why = if why.is_empty() { String::new() } else { format!(": {why}") };
    text.push('\n');
    text.push_str(&wrap::hanging("", &format!("{}{why}", palette.state(explanation.word)), terminal));
    if !next.step.is_empty() {
        text.push_str(&format!("{} {}\n", bold("Next:"), wrap::plain(&next.step)));
    }
    if !next.besides.is_empty() {
        text.push_str(&wrap::hanging("", &format!("This alone is not enough: {}", next.besides.join("; ")), terminal));
    }
    let mut section = |title: &str, lines: Vec<String>| {
        if !lines.is_empty() {
            text.push_str(&format!("\n{}\n", bold(title)));
            lines.iter().for_each(|line| text.push_str(&wrap::hanging("  ", &wrap::plain(line), terminal)));
        }
    };
    let is_refused = |key: &str| {
        let name = key.strip_prefix(api::annotation::PREFIX).unwrap_or(key);
        explanation.gates.iter().any(|row| row.gate.name() == name && row.outcome == GateOutcome::Closed && row.decides)
    };
    let shown = |(key, value): &(String, String)| match is_override(key) && is_refused(key) {
        true => format!("{key}: {value}  (refused, not in force)"),
        false => format!("{key}: {value}"),
    };
    section("Overrides:", explanation.overrides.iter().map(shown).collect());
    section("Settings without effect:", explanation.advice.clone());
    let dim = |time: &str| palette.paint(Colour::Dim, time);
    let entries = history.entries.iter();
    let mut past: Vec<String> =
        entries.map(|entry| format!("{}  {}  {}", dim(&entry.time), entry.who, entry.what)).collect();
    past.extend(history.problem.clone());
    section("History:", past);
    text
}

/// Whether an annotation changes what is applied.
fn is_override(key: &str) -> bool {
    [api::annotation::PATCH, api::annotation::IGNORE_FIELDS].contains(&key)
}

fn notes(explanation: &Explanation, catalog: &Catalog, terminal: Option<usize>, palette: Palette) -> String {
    let Some(asset) = catalog.asset(&explanation.line.asset) else {
        return "A former release created it; it is deleted.\n\n".to_owned();
    };
    let notes = catalog.notes(asset);
    let features: Vec<&str> = catalog.features_of(asset).map(|feature| feature.name.as_str()).collect();
    let install = match asset.install {
        Install::Always => "on by default",
        Install::OptIn => "only when it is switched on",
    };
    let sources = notes.sources.join(" ");
    let mut text = String::new();
    for (name, value) in [
        ("does", notes.docs.as_str()),
        ("feature", &features.join(", ")),
        ("install", install),
        ("why", &notes.why),
        ("source", &sources),
        ("verify", &notes.verify),
        ("opt out", &notes.opt_out),
    ] {
        for (place, part) in wrap::lines(value, terminal.unwrap_or(WIDTH).min(WIDTH) - NAMES).iter().enumerate() {
            let name = format!("{:<8}", if place == 0 { name } else { "" });
            text.push_str(&format!("  {} {part}\n", palette.paint(Colour::Dim, &name)));
        }
    }
    format!("{text}\n")
}

/// The gates; `paint` gives the mark of the one that decides its colour.
fn gates(rows: &[GateRow], terminal: Option<usize>, paint: impl Fn(&str) -> String) -> String {
    let cells: Vec<[String; 4]> = rows.iter().map(|row| cells(row, &paint)).collect();
    let width = |column: usize| cells.iter().map(|row| wrap::width(&row[column])).max().unwrap_or_default();
    let mut widths = [width(0), width(1).min(WIDEST[0]), width(2).min(WIDEST[1]), width(3)];
    if let Some(terminal) = terminal {
        widths = table::narrowed(widths, &[1, 2], terminal.saturating_sub(2));
    }
    let lines = cells.iter().map(|row| table::block(row, widths));
    lines.flat_map(|block| block.lines().map(|line| format!("  {line}\n")).collect::<Vec<_>>()).collect()
}

fn cells(row: &GateRow, paint: impl Fn(&str) -> String) -> [String; 4] {
    let value = match row.outcome {
        GateOutcome::Open => row.value.clone(),
        GateOutcome::Closed => format!("no: {}", row.value),
        GateOutcome::Unknown => format!("not known: {}", row.value),
        GateOutcome::NotReached => format!("({})", row.value),
    };
    let mark = if row.decides { paint("<- decides") } else { String::new() };
    [row.gate.name().to_owned(), wrap::plain(&row.what), wrap::plain(&value), mark]
}

#[cfg(test)]
pub(super) mod tests {
    use super::gates;
    use autopilot::{GateKind, GateOutcome, GateRow};

    /// A gate.
    pub(in crate::command::explain) fn row(
        gate: GateKind,
        value: &str,
        outcome: GateOutcome,
        decides: bool,
    ) -> GateRow {
        GateRow { gate, what: "what".into(), value: value.into(), outcome, decides }
    }

    #[test]
    fn the_deciding_gate_is_marked_and_columns_align() {
        let rows = [
            row(GateKind::Scope, "true", GateOutcome::Open, false),
            row(GateKind::Switch, "not set", GateOutcome::Closed, true),
            row(GateKind::Template, "not rendered", GateOutcome::NotReached, false),
        ];
        let lines = [
            "  autopilot       what  true",
            "  switched on by  what  no: not set     <- decides",
            "  template        what  (not rendered)",
        ];
        assert_eq!(gates(&rows, None, str::to_owned), format!("{}\n", lines.join("\n")));
    }

    #[test]
    fn what_decides_is_wrapped_and_never_cut() {
        let value = "word ".repeat(40);
        let what = "what".to_owned();
        let row = GateRow { gate: GateKind::Fact, what, value, outcome: GateOutcome::Closed, decides: true };
        for terminal in [None, Some(60)] {
            let text = gates(std::slice::from_ref(&row), terminal, str::to_owned);
            assert_eq!(text.matches("word").count(), 40, "{text}");
            assert!(text.lines().all(|line| line.chars().count() <= terminal.unwrap_or(110)), "{text}");
        }
    }
}
