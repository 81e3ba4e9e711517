//! `status`: prints the state of the objects that matter, and why: as the operator reports it, or evaluated here if none runs.

mod text;

use super::colour::Palette;
use super::evaluation::Evaluation;
use super::print;
use super::published::{self, Published};
use super::table::terminal_width;
use super::target::on_runtime;
use anyhow::Context;
use autopilot::{Report, ReportLine, StateWord};
use jiff::Timestamp;
use std::io::IsTerminal;
use std::process::ExitCode;
use std::time::Duration;

/// How often `--watch` looks.
const INTERVAL: Duration = Duration::from_secs(2);
/// Moves the cursor to the top and clears the screen.
const CLEAR: &str = "\x1b[H\x1b[2J";

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    evaluation: Evaluation,
    /// Also show what is in sync, switched off or not applicable
    #[arg(long, short)]
    all: bool,
    /// Only these states, comma-separated, such as PendingApproval,Failed
    #[arg(long, value_name = "STATES", value_delimiter = ',', add = super::completions::states())]
    state: Vec<StateWord>,
    /// Evaluate the cluster here, even if an operator reports its state
    #[arg(long)]
    evaluate: bool,
    /// Show it again whenever it has changed
    #[arg(long, short, conflicts_with = "exit_code")]
    watch: bool,
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
    /// YAML, of all assets
    Yaml,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let (report, made_by) = report(arguments)?;
    print(&shown(&report, &made_by, arguments)?)?;
    if arguments.watch {
        return watch(arguments, report);
    }
    let is_pending = |line: &ReportLine| (StateWord::PendingApproval..=StateWord::Deleting).contains(&line.state);
    Ok(match arguments.exit_code {
        true if report.assets.iter().any(|line| line.state.is_problem()) => ExitCode::FAILURE,
        true if report.assets.iter().any(is_pending) => ExitCode::from(2),
        _ => ExitCode::SUCCESS,
    })
}

/// Shows every other report.
fn watch(arguments: &Arguments, mut last: Report) -> anyhow::Result<ExitCode> {
    let clear = if std::io::stdout().is_terminal() { CLEAR } else { "\n" };
    loop {
        std::thread::sleep(INTERVAL);
        let (report, made_by) = self::report(arguments)?;
        if report != last {
            print(&format!("{clear}{}", shown(&report, &made_by, arguments)?))?;
            last = report;
        }
    }
}

/// The report of the operator, or one that is made here; and who made it.
fn report(arguments: &Arguments) -> anyhow::Result<(Report, String)> {
    let why = if arguments.evaluate {
        "evaluated by this command".to_owned()
    } else {
        match on_runtime(published::read(arguments.evaluation.target()))? {
            Published::Report(report, reported) => {
                let made_by = text::reported(&report, reported, Timestamp::now());
                return Ok((*report, made_by));
            }
            Published::Nothing(why) => format!("{why}; evaluated by this command"),
        }
    };
    let core = arguments.evaluation.evaluate_with_previews(arguments.evaluation.catalog()?)?;
    Ok((core.report(), why))
}

fn shown(report: &Report, made_by: &str, arguments: &Arguments) -> anyhow::Result<String> {
    let is_whole = matches!(arguments.output, Format::Json | Format::Yaml);
    let is_shown = |line: &&ReportLine| match arguments.state.as_slice() {
        [] => arguments.all || is_whole || line.state.matters(),
        wanted => wanted.contains(&line.state),
    };
    let lines: Vec<&ReportLine> = report.assets.iter().filter(is_shown).collect();
    let selected = || Report { assets: lines.iter().copied().cloned().collect(), ..report.clone() };
    Ok(match arguments.output {
        Format::Json => format!("{}\n", serde_json::to_string_pretty(&selected())?),
        Format::Yaml => serde_saphyr::to_string(&selected()).context("could not write the status as YAML")?,
        Format::Wide => text::text(report, made_by, &lines, Format::Wide, None, Palette::of_output()),
        Format::Text => text::text(report, made_by, &lines, Format::Text, terminal_width(), Palette::of_output()),
    })
}
