//! `requests`: counts the API requests of a playground by user, verb and resource.

use super::EarlyExit;
use jiff::{SignedDuration, Timestamp};
use playground::UserError;
use playground::audit::{AuditLog, Kind, Mark, Requests};
use playground::text_table::{self, Align};
use serde::Serialize;
use std::io::Write;
use std::path::PathBuf;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The playground's folder (printed by `up`) or an audit log
    folder: PathBuf,
    /// Only requests of this user; a service account as NAMESPACE/NAME
    #[arg(long)]
    user: Option<String>,
    /// Only requests received within this time, such as 30s or 5m
    #[arg(long, value_name = "TIME")]
    since: Option<SignedDuration>,
    /// Output format
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
}

#[derive(Clone, Copy, Default, clap::ValueEnum)]
pub(crate) enum Format {
    /// A table
    #[default]
    Text,
    /// JSON
    Json,
}

#[derive(Serialize)]
struct Counted {
    #[serde(flatten)]
    row: playground::audit::Row,
    count: usize,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), EarlyExit> {
    let path = if arguments.folder.is_dir() { arguments.folder.join("audit.log") } else { arguments.folder.clone() };
    if !path.is_file() {
        return Err(UserError::new(
            format!("{} is not an audit log", path.display()),
            "pass the folder printed by `virtpilot up` while that playground is running",
        )
        .into());
    }
    let mut requests = AuditLog::at(path).since(Mark::BEGINNING)?;
    if let Some(user) = &arguments.user {
        requests = requests.by(user);
    }
    if let Some(since) = arguments.since {
        let start = Timestamp::now().checked_sub(since).unwrap_or(Timestamp::MIN);
        requests = requests.after(start);
    }
    match arguments.output {
        Format::Text => print_text(&requests),
        Format::Json => print_json(&requests),
    }
}

fn print_text(requests: &Requests) -> Result<(), EarlyExit> {
    let (users, mut rows): (Vec<String>, Vec<[String; 4]>) = requests
        .table()
        .into_iter()
        .map(|(row, count)| (row.user, [count.to_string(), label(row.kind).to_owned(), row.verb, row.resource]))
        .unzip();
    rows.push([requests.count().to_string(), "total".to_owned(), String::new(), String::new()]);
    let lines = text_table::lines([Align::Right, Align::Left, Align::Left, Align::Left], &rows);
    let mut out = std::io::stdout().lock();
    for (index, line) in lines.iter().enumerate() {
        // The rows are sorted by user; the last one, the total, has none.
        if let Some(user) = users.get(index)
            && (index == 0 || *user != users[index - 1])
        {
            writeln!(out, "{user}")?;
        }
        writeln!(out, "  {line}")?;
    }
    Ok(())
}

fn print_json(requests: &Requests) -> Result<(), EarlyExit> {
    let rows: Vec<Counted> = requests.table().into_iter().map(|(row, count)| Counted { row, count }).collect();
    let text = serde_json::to_string_pretty(&rows).map_err(std::io::Error::from)?;
    writeln!(std::io::stdout().lock(), "{text}")?;
    Ok(())
}

fn label(kind: Kind) -> &'static str {
    match kind {
        Kind::DryRun => "dry run",
        Kind::Watch => "watch",
        Kind::Lease => "lease",
        Kind::Event => "event",
        Kind::Report => "report",
        Kind::Read => "read",
        Kind::Write => "write",
    }
}
