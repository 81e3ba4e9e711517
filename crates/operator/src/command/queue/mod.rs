//! `queue`: the CI jobs that wait for a machine, and why. The fleet publishes them; nothing is asked of GitHub here.

pub(crate) mod job;
mod published;
mod text;

use super::print;
use super::table::terminal_width;
use super::target::on_runtime;
use super::value::namespace;
use super::watch::{self, View};
use anyhow::Context;
use autopilot::nearest::nearest;
use cluster::{KubeconfigContext, Server, Timeouts};
use fleet::jobs::published::{Filter, Report, Row, rows};
use jiff::Timestamp;
use published::Published;
use serde_json::json;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

/// How often `--watch` reads the published queue.
const INTERVAL: Duration = Duration::from_secs(2);

/// The fleet whose jobs are shown.
#[derive(clap::Args)]
pub(crate) struct Source {
    /// The kubeconfig file; by default $KUBECONFIG or ~/.kube/config
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig; by default its current one
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
    /// The namespace of the fleet
    #[arg(long, short, default_value = install::FLEET_NAMESPACE, value_parser = namespace)]
    namespace: String,
}

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    source: Source,
    /// Also show jobs that run, and those that ended within the last hour
    #[arg(long, short)]
    all: bool,
    /// Only jobs that wait for this RunnerPool, or run on it: NAME or NAMESPACE/NAME
    #[arg(long, value_name = "POOL")]
    pool: Option<String>,
    /// Only jobs of this repository, or of all repositories of an owner
    #[arg(long, value_name = "OWNER[/NAME]")]
    repository: Option<String>,
    /// Show it again whenever it has changed; looks every 2 s
    #[arg(long, short, conflicts_with = "exit_code")]
    watch: bool,
    /// Exit with 2 if a job waits
    #[arg(long)]
    exit_code: bool,
    /// Output format
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
}

/// The output format.
#[derive(Clone, Copy, Default, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum Format {
    /// Human-readable text
    #[default]
    Text,
    /// JSON
    Json,
    /// YAML
    Yaml,
}

impl Format {
    /// A document in this format; nothing for text.
    fn document(self, value: &serde_json::Value) -> anyhow::Result<Option<String>> {
        Ok(match self {
            Format::Text => None,
            Format::Json => Some(format!("{value:#}\n")),
            Format::Yaml => Some(serde_saphyr::to_string(value).context("could not write it as YAML")?),
        })
    }
}

impl Source {
    async fn connect(&self) -> anyhow::Result<Server> {
        let chosen = KubeconfigContext { file: self.kubeconfig.as_deref(), context: self.context.as_deref() };
        Ok(cluster::connect(chosen, Timeouts::default(), fleet::IDENTITY).await?)
    }

    /// The published queue.
    fn read(&self) -> anyhow::Result<Published> {
        on_runtime(async { published::read(&self.connect().await?, &self.namespace).await })
    }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let (first, is_waiting) = view(arguments)?;
    print(&first.text)?;
    if arguments.watch {
        watch::run(first, || Ok(view(arguments)?.0))?;
    }
    Ok(ExitCode::from(if arguments.exit_code && is_waiting { 2 } else { 0 }))
}

/// What is shown, and whether a job that is selected waits.
fn view(arguments: &Arguments) -> anyhow::Result<(View<Report>, bool)> {
    let found = arguments.source.read()?;
    if let Some(doubt) = &found.doubt {
        eprintln!("warning: {doubt}");
    }
    let now = Timestamp::now();
    let filter =
        Filter { is_all: arguments.all, pool: arguments.pool.clone(), repository: arguments.repository.clone() };
    let rows = rows(&found.report, &filter, now, similar);
    let text = shown(&found, &rows, arguments)?;
    let is_waiting = rows.iter().any(|row| row.reason.is_some());
    Ok((View { news: found.report, text, pause: INTERVAL }, is_waiting))
}

fn shown(found: &Published, rows: &[Row], arguments: &Arguments) -> anyhow::Result<String> {
    let Report { operator, total, pools, .. } = &found.report;
    let document = json!({
        "reported": found.reported, "operator": operator, "total": total, "jobs": rows, "pools": pools,
    });
    Ok(match arguments.output.document(&document)? {
        Some(document) => document,
        None => text::text(&found.report, rows, arguments.all, terminal_width()),
    })
}

/// The label that was perhaps meant.
fn similar(label: &str, all: &[&str]) -> Option<String> {
    nearest(label, all.iter().copied()).into_iter().next()
}
