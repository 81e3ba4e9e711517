//! `status`: prints the state of every object, and why.

use super::evaluation::Evaluation;
use super::print;
use super::table::table;
use autopilot::{Core, StatusLine, WaitingForPool, waiting_by_pool};
use serde::Serialize;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    evaluation: Evaluation,
    /// Output format
    #[arg(long, short, value_enum, default_value_t)]
    output: super::Format,
}

/// One line of the output.
#[derive(Serialize)]
struct Line {
    asset: String,
    object: String,
    state: &'static str,
    why: String,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let core = arguments.evaluation.evaluate_with_previews(arguments.evaluation.catalog()?)?;
    let status = core.status();
    let notes = notes(&core, &waiting_by_pool(&status));
    let lines: Vec<Line> = status.into_iter().map(line).collect();
    match arguments.output {
        super::Format::Json => print(&format!("{}\n", serde_json::to_string_pretty(&lines)?)),
        super::Format::Text => {
            let rows: Vec<_> =
                lines.into_iter().map(|line| [line.asset, line.object, line.state.to_owned(), line.why]).collect();
            print(&format!("{}{notes}", table(["ASSET", "OBJECT", "STATE", "WHY"], &rows)))
        }
    }
}

/// How far the rollouts of pools are, and how to approve what waits.
fn notes(core: &Core, waiting: &[WaitingForPool]) -> String {
    let rollouts = core.unfinished_rollouts().map(|rollout| rollout.to_string());
    let next = waiting.iter().map(|WaitingForPool { pool, changes }| match changes.len() {
        1 => format!("next: virtpilot approve --pool {pool}"),
        count => format!("next: virtpilot approve --pool {pool}    (one rollout for {count} changes)"),
    });
    let lines: Vec<String> = rollouts.chain(next).collect();
    if lines.is_empty() { String::new() } else { format!("\n{}\n", lines.join("\n")) }
}

fn line(line: StatusLine) -> Line {
    let object = line.key.map_or(line.component, |key| key.to_string());
    Line { asset: line.asset, object, state: line.state.name(), why: line.state.to_string() }
}
