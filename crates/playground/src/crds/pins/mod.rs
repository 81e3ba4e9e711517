//! Checks the pinned sources of third-party CRDs, and moves the pins to the newest versions that load.

mod accept;
mod decide;
mod edit;
mod newest;
mod replace;
mod version;

use super::modules::{LoadedModule, Modules};
use super::table::{Module, Row, Sdist, Table, Written};
use super::{sdist, written};
use crate::cache::Cache;
use crate::progress::{Progress, Step};
use crate::tools::{Tools, required_version};
use crate::user_error::{self, UserError};
use accept::Judge;
use decide::{Finding, Mode, Newest};
use replace::Change;
use serde_json::Value;
use std::path::Path;
use tempfile::TempDir;

/// The outcome for all sources.
#[derive(Debug)]
pub struct Report {
    /// The table: source, pinned version, newest version, result.
    pub lines: Vec<[String; 4]>,
    /// The sources that do not load.
    pub broken: Vec<String>,
    /// How many pins moved.
    pub updated: usize,
}

/// A source with what was loaded from it.
struct Examined {
    finding: Finding,
    /// The CRDs of the pinned version.
    pinned: Vec<(Row, Value)>,
    /// The newer version.
    candidate: Option<Candidate>,
}

/// A newer version of a source.
struct Candidate {
    crds: Vec<(Row, Value)>,
    pin: Pin,
}

/// What is written into the files of `tools/crds`.
enum Pin {
    Module { path: String, old: String, new: String, sums: [String; 2] },
    Sdist { old: Sdist, new: Sdist },
}

/// Checks every source; changes nothing.
pub async fn verify(tools: &Tools, cache: &Cache, progress: Progress) -> Result<Report, UserError> {
    let (sources, _judge) = examine(tools, cache, progress).await?;
    Ok(report(&sources, Mode::Verify))
}

/// Moves the pins in a folder like `tools` of this repository; on an error it stays as it was.
pub async fn update(folder: &Path, cache: &Cache, progress: Progress) -> Result<Report, UserError> {
    let tools = Tools::read(folder)?;
    let folder = folder.join("crds");
    replace::check_writable(&folder)?;
    let (sources, judge) = examine(&tools, cache, progress).await?;
    let report = report(&sources, Mode::Update);
    if report.updated > 0 {
        let is_moved = |source: &&Examined| source.finding.moves_to(Mode::Update).is_some();
        let is_kept = |source: &&Examined| !is_moved(source) && source.finding.pinned_fault.is_none();
        let kept = sources.iter().filter(is_kept).flat_map(|source| &source.pinned);
        let moved = sources.iter().filter(is_moved).filter_map(|source| source.candidate.as_ref());
        judge.establish(kept.chain(moved.clone().flat_map(|candidate| &candidate.crds))).await?;
        let new = edited(&tools, moved.map(|candidate| &candidate.pin))?;
        // Without an await: an interruption comes before or after it.
        replace::replace(
            &folder,
            &[
                Change { file: "go.mod", old: &tools.crds_mod, new: &new.crds_mod },
                Change { file: "go.sum", old: &tools.crds_sum, new: &new.crds_sum },
                Change { file: "crds.toml", old: &tools.crds_table, new: &new.crds_table },
            ],
        )?;
    }
    Ok(report)
}

fn report(sources: &[Examined], mode: Mode) -> Report {
    let findings = || sources.iter().map(|source| &source.finding);
    Report {
        lines: findings().map(|finding| finding.line(mode)).collect(),
        broken: findings().filter(|finding| finding.is_broken(mode)).map(|finding| finding.source.clone()).collect(),
        updated: findings().filter(|finding| finding.moves_to(mode).is_some()).count(),
    }
}

/// Loads every source at its pinned and at its newest version, and lets an API server judge the CRDs.
async fn examine(tools: &Tools, cache: &Cache, progress: Progress) -> Result<(Vec<Examined>, Judge), UserError> {
    let table = Table::parse(&tools.crds_table)?;
    let mut step = progress.step("sources of third-party CRDs");
    let mut sources = Vec::new();
    let modules = Modules::of(tools)?;
    for module in &table.modules {
        step.update(&module.path);
        sources.push(of_module(&modules, module).await);
    }
    if let Some(sdist) = &table.sdist {
        sources.push(of_sdist(&table, sdist, &mut step).await?);
    }
    sources.extend(table.written.iter().map(|written| of_written(written, tools)));
    step.update("asking an API server");
    let judge = Judge::start(tools, cache, progress).await?;
    for source in &mut sources {
        if source.finding.pinned_fault.is_none() {
            source.finding.pinned_fault = judge.refusal(&source.pinned).await;
        }
        if let Some(candidate) = &source.candidate {
            source.finding.newest_fault = judge.refusal(&candidate.crds).await;
        }
    }
    step.done(format_args!("{} checked", sources.len()));
    Ok((sources, judge))
}

async fn of_module(modules: &Modules, module: &Module) -> Examined {
    let mut finding = finding(&module.path, "?", Newest::Unversioned);
    let version = match modules.pinned(module) {
        Ok(version) => version,
        Err(error) => {
            finding.pinned_fault = Some(error.summary());
            finding.newest = Newest::Unknown { why: "no version is pinned".to_owned() };
            return Examined { finding, pinned: Vec::new(), candidate: None };
        }
    };
    version.clone_into(&mut finding.pinned);
    finding.newest = newest::of_module(modules, &module.path, version).await;
    finding.retracted = newest::retraction(modules, &module.path, version).await;
    let pinned = record(modules.load(module, version).await, &mut finding.pinned_fault);
    let candidate = match &finding.newest {
        Newest::Newer(new) => record(modules.load(module, new).await, &mut finding.newest_fault).map(|loaded| {
            let LoadedModule { crds, sum, go_mod_sum } = loaded;
            let (path, old, new) = (module.path.clone(), version.to_owned(), new.clone());
            Candidate { crds, pin: Pin::Module { path, old, new, sums: [sum, go_mod_sum] } }
        }),
        _ => None,
    };
    Examined { finding, pinned: pinned.map(|loaded| loaded.crds).unwrap_or_default(), candidate }
}

async fn of_sdist(table: &Table, pinned: &Sdist, step: &mut Step) -> Result<Examined, UserError> {
    step.update(&pinned.package);
    let folder = TempDir::new().map_err(|error| user_error::io("create a folder in", &std::env::temp_dir(), error))?;
    let mut finding = finding(&pinned.package, &pinned.version, Newest::Pinned);
    let loaded = match sdist::download(pinned, folder.path()).await {
        Ok(archive) => sdist::crds(&archive, pinned, &table.schemas),
        Err(error) => Err(error),
    };
    let crds = record(loaded, &mut finding.pinned_fault).unwrap_or_default();
    let mut candidate = None;
    match sdist::download_newest(pinned, folder.path()).await {
        Ok((new, archive)) => {
            finding.newest = decide::judge(&pinned.version, &new.version, None);
            if matches!(finding.newest, Newest::Newer(_)) {
                let loaded = sdist::crds(&archive, &new, &table.schemas);
                let pin = Pin::Sdist { old: pinned.clone(), new };
                candidate = record(loaded, &mut finding.newest_fault).map(|crds| Candidate { crds, pin });
            }
        }
        Err(error) => finding.newest = Newest::Unknown { why: error.summary() },
    }
    Ok(Examined { finding, pinned: crds, candidate })
}

fn of_written(written: &Written, tools: &Tools) -> Examined {
    let mut finding = finding(&written.file, "-", Newest::Unversioned);
    let loaded = record(written::load(written, tools), &mut finding.pinned_fault);
    let pinned = loaded.map(|crd| (written.row(), crd)).into_iter().collect();
    Examined { finding, pinned, candidate: None }
}

fn finding(source: &str, pinned: &str, newest: Newest) -> Finding {
    let (source, pinned) = (source.to_owned(), pinned.to_owned());
    Finding { source, pinned, pinned_fault: None, retracted: None, newest, newest_fault: None }
}

/// Keeps the fault of what did not load.
fn record<T>(loaded: Result<T, UserError>, fault: &mut Option<String>) -> Option<T> {
    loaded.map_err(|error| *fault = Some(error.summary())).ok()
}

/// The files with these pins.
fn edited<'a>(tools: &Tools, pins: impl Iterator<Item = &'a Pin>) -> Result<Tools, UserError> {
    let mut new = tools.clone();
    for pin in pins {
        let is_pinned = match pin {
            Pin::Module { path, old, new: version, sums: [sum, go_mod_sum] } => {
                new.crds_mod = edit::go_mod(&new.crds_mod, path, old, version);
                new.crds_sum = edit::go_sum(&new.crds_sum, path, old, version, [sum, go_mod_sum]);
                required_version(&new.crds_mod, path) == Some(version)
            }
            Pin::Sdist { old, new: sdist } => {
                new.crds_table = edit::table(&new.crds_table, old, sdist);
                Table::parse(&new.crds_table)?.sdist.as_ref() == Some(sdist)
            }
        };
        if !is_pinned {
            let name = match pin {
                Pin::Module { path, .. } => path,
                Pin::Sdist { new, .. } => &new.package,
            };
            return Err(UserError::new(
                format!("the pin of {name} could not be edited, so nothing was replaced"),
                "write it on lines of its own, as `go mod edit` and the other entries do, and run again",
            ));
        }
    }
    Ok(new)
}
