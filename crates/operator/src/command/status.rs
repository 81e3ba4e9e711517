//! `status`: prints the state of the objects that matter, and why: as the operator reports it, or evaluated here if none runs.

mod interval;
mod text;

use super::colour::Palette;
use super::evaluation::Evaluation;
use super::print;
use super::published::{self, Published};
use super::table::terminal_width;
use super::target::on_runtime;
use super::watch::{self, View};
use anyhow::Context;
use autopilot::{Report, ReportLine, StateWord};
use jiff::Timestamp;
use std::process::ExitCode;

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
    /// Evaluate the cluster here, even if an operator reports its state; --assets-dir, --opt-in, --patchable-kinds, --prune and --metrics-secure imply it
    #[arg(long)]
    evaluate: bool,
    /// Show it again whenever it has changed; looks every 2 s, or every 30 s where it evaluates the cluster here
    #[arg(long, short, conflicts_with = "exit_code")]
    watch: bool,
    /// Exit with 1 if something failed or is invalid, and with 2 if something is pending or not known
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
    let first = view(arguments)?;
    print(&first.text)?;
    let code = if arguments.exit_code { exit_code(&first.news) } else { 0 };
    if arguments.watch {
        watch::run(first, || view(arguments))?;
    }
    Ok(ExitCode::from(code))
}

fn view(arguments: &Arguments) -> anyhow::Result<View<Report>> {
    let look = look(arguments)?;
    let text = shown(&look.report, &look.made_by, arguments)?;
    Ok(View { pause: interval::pause_after(&look), text, news: look.report })
}

/// 1 if a person has to do something, 2 if something is not done or not known yet.
fn exit_code(report: &Report) -> u8 {
    let is_open = |line: &ReportLine| {
        (StateWord::PendingApproval..=StateWord::Deleting).contains(&line.state) || line.state == StateWord::Unknown
    };
    match () {
        () if report.assets.iter().any(|line| line.state.is_problem()) => 1,
        () if !report.waits_for.is_empty() || report.assets.iter().any(is_open) => 2,
        () => 0,
    }
}

/// A report, and who made it.
struct Look {
    report: Report,
    made_by: String,
    /// Whether this command evaluated the cluster, which takes many requests.
    is_evaluated: bool,
}

/// The report of the operator, or one that is made here.
fn look(arguments: &Arguments) -> anyhow::Result<Look> {
    let why = if arguments.evaluate || arguments.evaluation.says_how() {
        "evaluated by this command".to_owned()
    } else {
        match on_runtime(published::read(arguments.evaluation.target()))? {
            Published::Report(report, reported) => {
                let made_by = text::reported(&report, reported, Timestamp::now());
                return Ok(Look { report: *report, made_by, is_evaluated: false });
            }
            Published::Nothing(why) => format!("{why}; evaluated by this command"),
        }
    };
    let core = arguments.evaluation.evaluate_with_previews(arguments.evaluation.catalog()?)?;
    Ok(Look { report: core.report(), made_by: why, is_evaluated: true })
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

#[cfg(test)]
mod tests {
    use super::{Arguments, exit_code};
    use autopilot::{Report, ReportLine, StateWord};
    use clap::{Args, Command, FromArgMatches};

    #[test]
    fn only_a_report_without_anything_open_exits_with_zero() {
        let report = |states: &[StateWord]| {
            let line = |state: &StateWord| ReportLine {
                asset: String::new(),
                object: String::new(),
                state: *state,
                why: String::new(),
                digest: None,
                restarts: None,
                overrides: Vec::new(),
            };
            Report { assets: states.iter().map(line).collect(), ..Report::default() }
        };
        let code = |states: &[StateWord]| exit_code(&report(states));
        assert_eq!(code(&[StateWord::InSync, StateWord::Paused, StateWord::Excluded]), 0);
        assert_eq!((code(&[StateWord::InSync, StateWord::Unknown]), code(&[StateWord::Deleting])), (2, 2));
        assert_eq!(code(&[StateWord::PendingApproval, StateWord::Failed]), 1);
        let waiting = Report { waits_for: vec!["the HyperConverged".into()], ..report(&[StateWord::InSync]) };
        assert_eq!(exit_code(&waiting), 2);
    }

    #[test]
    fn a_flag_that_says_how_to_decide_is_not_ignored() {
        let says_how = |words: &[&str]| {
            let matches = Arguments::augment_args(Command::new("status")).try_get_matches_from(words).unwrap();
            Arguments::from_arg_matches(&matches).unwrap().evaluation.says_how()
        };
        assert!(!says_how(&["status", "--all", "--namespace=n", "--output=wide"]));
        for flag in ["--assets-dir=x", "--opt-in", "--opt-in=false", "--patchable-kinds=Service", "--prune=true"] {
            assert!(says_how(&["status", flag]), "{flag}");
        }
    }
}
