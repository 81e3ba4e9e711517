//! `lint`: finds wrong annotations in YAML files and faults of asset packs, without a cluster.

use super::print;
use crate::pack::{self, Pack};
use anyhow::{Context, bail};
use autopilot::lint::lint;
use catalog::Catalog;
use change::PatchableKinds;
use serde::Serialize;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::process::ExitCode;

/// No file of objects is larger.
const LARGEST: u64 = 32 * 1024 * 1024;

/// What only a cluster knows.
const NOT_CHECKED: &str = "not checked without a cluster: whether storage classes and other named objects exist, what its CRDs accept, and \
    what its hardware and kinds decide; \"virtpilot check\" and \"virtpilot plan\" do that";

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// YAML files, `-` for the standard input, or folders with an asset pack
    #[arg(required = true, value_name = "FILE|FOLDER|-")]
    paths: Vec<PathBuf>,
    #[command(flatten)]
    pack: Pack,
    /// The namespace of the HyperConverged
    #[arg(long, default_value = api::hco::NAMESPACE, value_parser = super::value::namespace)]
    namespace: String,
    /// Kinds whose closed fields users may patch, comma-separated; set it as for the operator
    #[arg(long, default_value = "", value_name = "KINDS", value_parser = PatchableKinds::parse, hide_default_value = true)]
    patchable_kinds: PatchableKinds,
    /// Output format
    #[arg(long, short, value_enum, default_value_t)]
    output: super::Format,
}

/// One line of the output.
#[derive(Debug, Serialize)]
struct Line {
    file: String,
    line: Option<usize>,
    message: String,
}

/// Exits with 1 if anything is wrong.
pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let catalog = arguments.pack.load()?;
    let mut lines = Vec::new();
    for path in &arguments.paths {
        match path.is_dir() {
            true => lines.extend(of_folder(path)?),
            false => lines.extend(of_file(path, &catalog, arguments)?),
        }
    }
    print(&match arguments.output {
        super::Format::Text => lines.iter().map(text).collect::<String>(),
        super::Format::Json => format!("{}\n", serde_json::to_string_pretty(&lines)?),
    })?;
    if matches!(arguments.output, super::Format::Text) && arguments.paths.iter().any(|path| !path.is_dir()) {
        eprintln!("{NOT_CHECKED}");
    }
    Ok(if lines.is_empty() { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

fn text(Line { file, line, message }: &Line) -> String {
    let line = line.map_or(String::new(), |line| format!("{line}:"));
    let message = message.split_whitespace().collect::<Vec<_>>().join(" ");
    format!("{file}:{line} {message}\n")
}

fn of_folder(folder: &Path) -> anyhow::Result<Vec<Line>> {
    let faults = pack::faults(folder)?;
    let file = |name: &str| folder.join(name).display().to_string();
    Ok(faults
        .into_iter()
        .map(|fault| Line { file: file(&fault.file), line: fault.line, message: fault.message })
        .collect())
}

fn of_file(path: &Path, catalog: &Catalog, arguments: &Arguments) -> anyhow::Result<Vec<Line>> {
    let is_input = path == Path::new("-");
    let file = if is_input { "<stdin>".to_owned() } else { path.display().to_string() };
    let mut text = String::new();
    let read = match is_input {
        true => std::io::stdin().lock().take(LARGEST + 1).read_to_string(&mut text),
        false => std::fs::File::open(path).and_then(|file| file.take(LARGEST + 1).read_to_string(&mut text)),
    };
    let bytes = read.with_context(|| format!("could not read {file}"))?;
    if bytes as u64 > LARGEST {
        bail!("{file} is larger than {LARGEST} bytes; check its objects one by one");
    }
    let findings = lint(&text, catalog, &arguments.namespace, &arguments.patchable_kinds);
    Ok(findings
        .into_iter()
        .map(|found| Line { file: file.clone(), line: found.line, message: found.message })
        .collect())
}
