//! `requests`: who asked what of a playground's API server.

use super::Ended;
use jiff::{SignedDuration, Timestamp};
use playground::Trouble;
use playground::audit::{AuditLog, Kind, Mark, Requests};
use serde::Serialize;
use std::io::Write;
use std::path::PathBuf;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The playground's folder (`up` prints it), or an audit log
    folder: PathBuf,
    /// Only this user; a service account as NAMESPACE/NAME
    #[arg(long)]
    user: Option<String>,
    /// Only what the server received in the last while, such as 30s or 5m
    #[arg(long, value_name = "TIME")]
    since: Option<SignedDuration>,
    /// How to print it
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
}

#[derive(Clone, Copy, Default, clap::ValueEnum)]
pub(crate) enum Format {
    /// For a person
    #[default]
    Text,
    /// For a program
    Json,
}

#[derive(Serialize)]
struct Counted {
    #[serde(flatten)]
    row: playground::audit::Row,
    count: usize,
}

pub(crate) fn run(arguments: &Arguments) -> Result<(), Ended> {
    let path = if arguments.folder.is_dir() { arguments.folder.join("audit.log") } else { arguments.folder.clone() };
    if !path.is_file() {
        return Err(Trouble::new(
            format!("{} is no audit log", path.display()),
            "name the folder that `virtpilot up` printed, while that playground runs",
        )
        .into());
    }
    let mut requests = AuditLog::at(path).since(Mark::BEGINNING)?;
    if let Some(user) = &arguments.user {
        requests = requests.by(user);
    }
    if let Some(since) = arguments.since {
        let begin = Timestamp::now().checked_sub(since).unwrap_or(Timestamp::MIN);
        requests = requests.after(begin);
    }
    match arguments.output {
        Format::Text => print_text(&requests),
        Format::Json => print_json(&requests),
    }
}

fn print_text(requests: &Requests) -> Result<(), Ended> {
    let mut out = std::io::stdout().lock();
    let mut user = String::new();
    for (row, count) in requests.table() {
        if row.user != user {
            writeln!(out, "{}", row.user)?;
            user.clone_from(&row.user);
        }
        writeln!(out, "{count:>7}  {:<8} {:<17} {}", word(row.kind), row.verb, row.resource)?;
    }
    writeln!(out, "{:>7}  in all", requests.count())?;
    Ok(())
}

fn print_json(requests: &Requests) -> Result<(), Ended> {
    let rows: Vec<Counted> = requests.table().into_iter().map(|(row, count)| Counted { row, count }).collect();
    let text = serde_json::to_string_pretty(&rows).map_err(std::io::Error::from)?;
    writeln!(std::io::stdout().lock(), "{text}")?;
    Ok(())
}

fn word(kind: Kind) -> &'static str {
    match kind {
        Kind::DryRun => "dry run",
        Kind::Watch => "watch",
        Kind::Lease => "lease",
        Kind::Event => "event",
        Kind::Read => "read",
        Kind::Write => "write",
    }
}
