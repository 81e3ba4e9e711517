//! `check`: the API server, the rights of the operator, kinds, pools, clashes and the running operator, each with a remedy.

mod platform;
mod rights;
mod server;

use super::colour::{Colour, Palette};
use super::evaluation::Evaluation;
use super::target::on_runtime;
use super::{Format, print};
use crate::failure;
use cluster::discovery;
use serde::Serialize;
use std::process::ExitCode;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(flatten)]
    evaluation: Evaluation,
    /// Output format
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
}

/// How serious a row is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
enum Verdict {
    Ok,
    Info,
    Warn,
    Fail,
}

/// What was checked, what was found, and what to do about it.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
struct Row {
    check: &'static str,
    found: String,
    verdict: Verdict,
    remedy: String,
}

impl Row {
    fn ok(check: &'static str, found: impl Into<String>) -> Row {
        Row { check, found: found.into(), verdict: Verdict::Ok, remedy: String::new() }
    }

    fn new(check: &'static str, verdict: Verdict, found: impl Into<String>, remedy: impl Into<String>) -> Row {
        Row { check, found: found.into(), verdict, remedy: remedy.into() }
    }
}

/// Exits with 1 if anything has to be repaired.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let rows = rows(&arguments.evaluation)?;
    print(&match arguments.output {
        Format::Text => rows.iter().map(|row| line(row, Palette::of_output())).collect::<String>(),
        Format::Json => format!("{}\n", serde_json::to_string_pretty(&rows)?),
    })?;
    let is_failed = rows.iter().any(|row| row.verdict == Verdict::Fail);
    Ok(if is_failed { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

fn rows(evaluation: &Evaluation) -> anyhow::Result<Vec<Row>> {
    let (catalog, target) = (evaluation.catalog()?, evaluation.target());
    let reached = on_runtime(async {
        let server = target.connect().await?;
        let mut rows = server::rows(&server).await;
        if rows.iter().any(|row| row.check == server::CHECK && row.verdict == Verdict::Fail) {
            return Ok((rows, false));
        }
        let kinds = discovery::discover(&server).await?;
        rows.extend(rights::rows(&server, &kinds, &catalog, &target.namespace).await);
        rows.push(server::operator(&server, &kinds, &target.namespace, &catalog).await);
        rows.extend(platform::kubelet_configs(&server, &kinds).await);
        Ok((rows, true))
    });
    let (mut rows, is_reached) = match reached {
        Ok(reached) => reached,
        Err(error) => (vec![server::unreachable(&one_line(&error))], false),
    };
    if is_reached {
        match evaluation.evaluate(catalog) {
            Ok(core) => rows.extend(platform::rows(&core)),
            Err(error) => rows.push(platform::not_evaluated(&one_line(&error))),
        }
    }
    Ok(rows)
}

fn one_line(error: &anyhow::Error) -> String {
    failure::lines(error).join("; ")
}

fn line(row: &Row, palette: Palette) -> String {
    let verdict = match row.verdict {
        Verdict::Ok => palette.paint(Colour::Green, "ok"),
        Verdict::Info => palette.paint(Colour::Dim, "info"),
        Verdict::Warn => palette.paint(Colour::Yellow, "warn"),
        Verdict::Fail => palette.paint(Colour::Red, "FAIL"),
    };
    let remedy = if row.remedy.is_empty() { String::new() } else { format!(": {}", row.remedy) };
    format!("{:<14}  {:<58}  {verdict}{remedy}\n", row.check, row.found)
}

#[cfg(test)]
mod tests {
    use super::{Palette, Row, Verdict, line};

    #[test]
    fn a_row_says_what_was_found_and_what_to_do() {
        assert_eq!(
            line(&Row::ok("pools", "2 healthy"), Palette::default()).split_whitespace().collect::<Vec<_>>().join(" "),
            "pools 2 healthy ok"
        );
        let failed = Row::new("pools", Verdict::Fail, "worker is degraded", "repair it");
        let coloured = line(&failed, Palette::COLOURED);
        assert!(coloured.ends_with("  \u{1b}[31mFAIL\u{1b}[0m: repair it\n"), "{coloured:?}");
        let failed = line(&failed, Palette::default());
        assert!(
            failed.starts_with("pools           worker is degraded ") && failed.ends_with("  FAIL: repair it\n"),
            "{failed}"
        );
    }
}
