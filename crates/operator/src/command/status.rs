//! `status`: prints the state of the objects that matter, and why.

use super::evaluation::Evaluation;
use super::print;
use super::table::table;
use autopilot::{Core, LineState, ObjectState, StateWord, StatusLine, WaitingForPool, waiting_by_pool};
use change::Reason;
use serde::Serialize;
use std::collections::BTreeMap;
use std::process::ExitCode;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    evaluation: Evaluation,
    /// Also show what is in sync, switched off or not applicable
    #[arg(long, short)]
    all: bool,
    /// Only these states, comma-separated, such as PendingApproval,Failed
    #[arg(long, value_name = "STATES", value_delimiter = ',')]
    state: Vec<StateWord>,
    /// Exit with 1 if something failed or is invalid, and with 2 if something is pending
    #[arg(long)]
    exit_code: bool,
    /// Output format
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
}

#[derive(Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
enum Format {
    /// A table
    #[default]
    Text,
    /// A table with the whole reasons
    Wide,
    /// JSON, of all assets
    Json,
}

/// One line of the output.
#[derive(Serialize)]
struct Line {
    asset: String,
    object: String,
    state: String,
    why: String,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let core = arguments.evaluation.evaluate_with_previews(arguments.evaluation.catalog()?)?;
    let status = core.status();
    let words: Vec<StateWord> = status.iter().map(|line| StateWord::of(&line.state)).collect();
    let is_shown = |word: StateWord| match arguments.state.as_slice() {
        [] => arguments.all || arguments.output == Format::Json || word.matters(),
        wanted => wanted.contains(&word),
    };
    let shown: Vec<&StatusLine> =
        status.iter().zip(&words).filter(|(_, word)| is_shown(**word)).map(|(line, _)| line).collect();
    print(&match arguments.output {
        Format::Json => {
            let lines: Vec<Line> = shown.into_iter().map(line).collect();
            format!("{}\n", serde_json::to_string_pretty(&lines)?)
        }
        format => {
            let rows: Vec<[String; 4]> = shown.into_iter().map(|line| row(line, format)).collect();
            let table = if rows.is_empty() {
                String::new()
            } else {
                format!("\n{}", table(["ASSET", "OBJECT", "STATE", "DETAIL"], &rows))
            };
            format!("{}\n{table}{}", counts(&words), notes(&core, &waiting_by_pool(&status)))
        }
    })?;
    let is_pending = |word: &StateWord| (StateWord::PendingApproval..=StateWord::Deleting).contains(word);
    Ok(match arguments.exit_code {
        true if words.iter().any(|word| word.is_problem()) => ExitCode::FAILURE,
        true if words.iter().any(is_pending) => ExitCode::from(2),
        _ => ExitCode::SUCCESS,
    })
}

/// How many lines have each state, the most urgent first.
fn counts(words: &[StateWord]) -> String {
    let mut counts: BTreeMap<StateWord, usize> = BTreeMap::new();
    for word in words {
        *counts.entry(*word).or_default() += 1;
    }
    let texts: Vec<String> = counts.iter().map(|(word, count)| format!("{count} {word}")).collect();
    format!("{} assets: {}", words.len(), texts.join(", "))
}

/// Settings that have no effect, how far the rollouts of pools are, and how to approve what waits.
fn notes(core: &Core, waiting: &[WaitingForPool]) -> String {
    let rollouts = core.unfinished_rollouts().map(|rollout| rollout.to_string());
    let next = waiting.iter().map(|WaitingForPool { pool, changes }| match changes.len() {
        1 => format!("next: virtpilot approve --pool {pool}"),
        count => format!("next: virtpilot approve --pool {pool}    (one rollout for {count} changes)"),
    });
    let warnings = core.advice().into_iter().map(|advice| format!("warning: {advice}"));
    let lines: Vec<String> = warnings.chain(rollouts).chain(next).collect();
    if lines.is_empty() { String::new() } else { format!("\n{}\n", lines.join("\n")) }
}

fn line(line: &StatusLine) -> Line {
    let state = StateWord::of(&line.state).to_string();
    Line { asset: line.asset.clone(), object: object(line), state, why: line.state.to_string() }
}

fn object(line: &StatusLine) -> String {
    line.key.as_ref().map_or_else(|| line.component.clone(), ToString::to_string)
}

fn row(line: &StatusLine, format: Format) -> [String; 4] {
    let detail = match &line.state {
        LineState::Object(ObjectState::Held(Reason::NeedsApproval { digest: Some(digest), restarts, .. }))
            if format == Format::Text =>
        {
            // The names of the nodes follow the colon.
            let restarts = restarts.to_string();
            format!("{}  {}", digest.short(), restarts.split(':').next().unwrap_or_default())
        }
        state => state.to_string(),
    };
    [line.asset.clone(), object(line), StateWord::of(&line.state).to_string(), detail]
}

#[cfg(test)]
mod tests {
    use super::{StateWord, counts};

    #[test]
    fn the_most_urgent_states_are_counted_first() {
        let words = [StateWord::InSync, StateWord::Disabled, StateWord::Failed, StateWord::InSync];
        assert_eq!(counts(&words), "4 assets: 1 Failed, 2 InSync, 1 Disabled");
    }
}
