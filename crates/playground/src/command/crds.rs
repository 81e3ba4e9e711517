//! `crds`: prints the table of third-party CRDs, checks their sources, and moves the pins of the sources.

use super::{EarlyExit, unless_interrupted};
use clap::{Args, Subcommand};
use playground::cache::Cache;
use playground::crds::pins::{self, Report};
use playground::crds::{Row, Source, Table};
use playground::text_table::{self, Align};
use playground::tools::{Tools, required_version};
use playground::{Progress, UserError};
use std::io::Write;
use std::path::{Path, PathBuf};

#[derive(Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    action: Option<Action>,
}

#[derive(Subcommand)]
enum Action {
    /// Report which pinned sources are stale or no longer load, and change nothing
    Verify(Folder),
    /// Move the pins to the newest versions served, of every source whose newest version loads
    Update(Folder),
}

#[derive(Args)]
struct Folder {
    /// The folder `tools` of a checkout [default: VIRTPILOT_TOOLS, or that of the checkout around the current directory]
    #[arg(long = "tools", value_name = "FOLDER")]
    tools: Option<PathBuf>,
}

pub(crate) async fn run(arguments: Arguments) -> Result<(), EarlyExit> {
    match arguments.action {
        None => list(),
        Some(Action::Verify(folder)) => verify(folder).await,
        Some(Action::Update(folder)) => update(folder).await,
    }
}

fn list() -> Result<(), EarlyExit> {
    let tools = Tools::load()?;
    let table = Table::parse(&tools.crds_table)?;
    let describe = |row: Row| {
        let source = match (&row.source, &table.sdist) {
            (Source::Module(path), _) => format!("{path} {}", required_version(&tools.crds_mod, path).unwrap_or("?")),
            (Source::Schema, Some(sdist)) => format!("{} {} (OpenAPI of a real cluster)", sdist.package, sdist.version),
            (Source::Schema, None) => "?".to_owned(),
            (Source::Written(file), _) => format!("tools/crds/{file} (written from public documents)"),
        };
        let variant = row.variant.map(|variant| format!(" ({variant})")).unwrap_or_default();
        [row.crd + &variant, source]
    };
    let rows: Vec<[String; 2]> = table.rows().into_iter().map(describe).collect();
    print(text_table::lines([Align::Left; 2], &rows))
}

async fn verify(folder: Folder) -> Result<(), EarlyExit> {
    let tools = match find(folder) {
        Some(folder) => Tools::read(&folder)?,
        None => Tools::load()?,
    };
    let report = unless_interrupted(pins::verify(&tools, &Cache::open()?, Progress::detect())).await?;
    print_table(&report)?;
    require_all(&report)
}

async fn update(folder: Folder) -> Result<(), EarlyExit> {
    let folder = find(folder).ok_or_else(|| {
        UserError::new(
            "there is no tools/crds in this directory or above it",
            "run this in a checkout, or name its folder `tools` with --tools",
        )
    })?;
    let report = unless_interrupted(pins::update(&folder, &Cache::open()?, Progress::detect())).await?;
    print_table(&report)?;
    print([conclusion(&report, &folder)])?;
    require_all(&report)
}

/// Where the pins are; the copy in this program is not among these places.
fn find(folder: Folder) -> Option<PathBuf> {
    let named = folder.tools.or_else(|| std::env::var_os("VIRTPILOT_TOOLS").map(PathBuf::from));
    named.or_else(|| Tools::find(&std::env::current_dir().ok()?))
}

fn conclusion(report: &Report, folder: &Path) -> String {
    match report.updated {
        0 => "no pin was moved".to_owned(),
        count => format!(
            "moved {count} of {} pins in {}; now run `cargo xtask gen` and `make test`",
            report.lines.len(),
            folder.join("crds").display()
        ),
    }
}

fn print_table(report: &Report) -> Result<(), EarlyExit> {
    let title = ["source", "pinned", "newest", "result"].map(str::to_owned);
    let rows: Vec<[String; 4]> = std::iter::once(title).chain(report.lines.iter().cloned()).collect();
    print(text_table::lines([Align::Left; 4], &rows))
}

fn print(lines: impl IntoIterator<Item = String>) -> Result<(), EarlyExit> {
    let mut out = std::io::stdout().lock();
    for line in lines {
        writeln!(out, "{line}")?;
    }
    Ok(())
}

fn require_all(report: &Report) -> Result<(), EarlyExit> {
    if report.broken.is_empty() {
        return Ok(());
    }
    Err(UserError::new(
        format!("these sources of third-party CRDs do not load: {}", report.broken.join(", ")),
        "see the table; move the pins with `make update-crds`, or pin other versions in tools/crds",
    )
    .into())
}
