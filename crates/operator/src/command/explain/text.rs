//! One explanation as text.

use super::history::History;
use crate::command::colour::{Colour, Palette};
use autopilot::{Explanation, GateOutcome, GateRow};
use catalog::{Catalog, Install};

/// The widest column of what a gate looks at, and of what it is: longer texts are cut, the last lines have them in full.
const WIDEST: [usize; 2] = [56, 64];
/// A line of notes is wrapped after this.
const WIDTH: usize = 100;

pub(super) fn text(
    explanation: &Explanation,
    catalog: &Catalog,
    next: &str,
    history: &History,
    palette: Palette,
) -> String {
    let bold = |text: &str| palette.paint(Colour::Bold, text);
    let line = &explanation.line;
    let object = line.key.as_ref().map_or_else(|| line.component.clone(), ToString::to_string);
    let mut text = format!("{}  {object}\n", bold(&line.asset));
    text.push_str(&notes(explanation, catalog, palette));
    text.push_str(&gates(&explanation.gates, |mark| palette.paint(Colour::of(explanation.word), mark)));
    let why = line.state.to_string();
    let why = if why.is_empty() { String::new() } else { format!(": {why}") };
    text.push_str(&format!("\n{}{why}\n", palette.state(explanation.word)));
    if !next.is_empty() {
        text.push_str(&format!("{} {next}\n", bold("Next:")));
    }
    let mut section = |title: &str, lines: Vec<String>| {
        if !lines.is_empty() {
            text.push_str(&format!("\n{}\n", bold(title)));
            lines.iter().for_each(|line| text.push_str(&format!("  {line}\n")));
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

fn notes(explanation: &Explanation, catalog: &Catalog, palette: Palette) -> String {
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
        for (place, part) in wrapped(value).iter().enumerate() {
            text.push_str(&format!(
                "  {} {part}\n",
                palette.paint(Colour::Dim, &format!("{:<8}", if place == 0 { name } else { "" }))
            ));
        }
    }
    format!("{text}\n")
}

/// A text in lines.
fn wrapped(text: &str) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    for word in text.split_whitespace() {
        match lines.last_mut() {
            Some(line) if line.len() + word.len() < WIDTH => {
                line.push(' ');
                line.push_str(word);
            }
            _ => lines.push(word.to_owned()),
        }
    }
    lines
}

/// The gates; `paint` gives the mark of the one that decides its colour.
fn gates(rows: &[GateRow], paint: impl Fn(&str) -> String) -> String {
    let cells: Vec<[String; 3]> = rows.iter().map(cells).collect();
    let width = |column: usize| cells.iter().map(|row| row[column].chars().count()).max().unwrap_or_default();
    let (names, subjects, values) = (width(0), width(1), width(2));
    let mut text = String::new();
    for (row, [name, what, value]) in rows.iter().zip(&cells) {
        let mark = if row.decides { paint("<- decides") } else { String::new() };
        let line = format!("  {name:<names$}  {what:<subjects$}  {value:<values$}  {mark}");
        text.push_str(&format!("{}\n", line.trim_end()));
    }
    text
}

fn cells(row: &GateRow) -> [String; 3] {
    let value = match row.outcome {
        GateOutcome::Open => row.value.clone(),
        GateOutcome::Closed => format!("no: {}", row.value),
        GateOutcome::Unknown => format!("not known: {}", row.value),
        GateOutcome::NotReached => format!("({})", row.value),
    };
    [row.gate.name().to_owned(), cut(&row.what, WIDEST[0]), cut(&value, WIDEST[1])]
}

/// The beginning of a text.
fn cut(text: &str, most: usize) -> String {
    let plain: String = text.split_whitespace().collect::<Vec<_>>().join(" ");
    match plain.char_indices().nth(most) {
        None => plain,
        Some(_) => format!("{}...", plain.chars().take(most - 3).collect::<String>()),
    }
}

#[cfg(test)]
mod tests {
    use super::{cut, gates, wrapped};
    use autopilot::{GateKind, GateOutcome, GateRow};

    #[test]
    fn the_deciding_gate_is_marked_and_columns_align() {
        let row = |gate, value: &str, outcome, decides| GateRow {
            gate,
            what: "what".into(),
            value: value.into(),
            outcome,
            decides,
        };
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
        assert_eq!(gates(&rows, str::to_owned), format!("{}\n", lines.join("\n")));
    }

    #[test]
    fn long_texts_are_cut_or_wrapped() {
        assert_eq!((cut("a  b\nc", 9), cut("abcdefgh", 6)), ("a b c".to_owned(), "abc...".to_owned()));
        let lines = wrapped(&"word ".repeat(40));
        assert!(lines.len() == 2 && lines.iter().all(|line| line.len() <= super::WIDTH), "{lines:?}");
    }
}
