//! An explanation as lines of text.

use super::{Explanation, span};

/// One line: what it begins with, and a text that may be wrapped.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Line {
    /// The beginning, which further lines are indented by.
    pub start: String,
    /// The text.
    pub text: String,
}

/// The lines.
pub fn lines(explanation: &Explanation) -> Vec<Line> {
    let mut lines = Vec::new();
    let mut add = |start: String, text: &str| lines.push(Line { start, text: text.to_owned() });
    let Explanation { subject, state, reason, message, .. } = explanation;
    add(String::new(), subject);
    let since = explanation.since.as_ref().map(|since| format!(" since {since}")).unwrap_or_default();
    let why = if reason == state { String::new() } else { format!(", {reason}") };
    add(String::new(), &format!("{state}{since}{why}: {message}"));
    if !explanation.next.is_empty() {
        add("Next: ".to_owned(), &explanation.next);
    }
    add(String::new(), "");
    let width = explanation.about.iter().map(|(name, _)| name.len()).max().unwrap_or_default();
    for (name, value) in &explanation.about {
        add(format!("  {name:<width$}  "), value);
    }
    if !explanation.gates.is_empty() {
        add(String::new(), "");
        let width = explanation.gates.iter().map(|gate| gate.name.len()).max().unwrap_or_default();
        for gate in &explanation.gates {
            let mark = if gate.decides { "  <- decides" } else { "" };
            add(
                format!("  {:<width$}  {:<3}  ", gate.name, gate.outcome.word()),
                format!("{}{mark}", gate.found).trim_start(),
            );
        }
    }
    if let Some(failure) = &explanation.failure {
        add(String::new(), "");
        add("Last failure: ".to_owned(), failure);
    }
    if !explanation.ending.is_empty() {
        add(String::new(), "");
        add(String::new(), "End:");
        explanation.ending.iter().for_each(|line| add("  ".to_owned(), line));
    }
    if !explanation.timeline.is_empty() {
        add(String::new(), "");
        add(String::new(), "Timeline:");
        for happened in &explanation.timeline {
            let after = happened.time.duration_since(explanation.created).as_secs();
            let after = format!("+{}", span(after.max(0)));
            add(format!("  {}  {after:<7}  {:<18}  ", happened.time, happened.what), &happened.note);
        }
    }
    lines
}
