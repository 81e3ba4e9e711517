//! `prepare`: fills the cache without starting a playground.

use super::{EarlyExit, unless_interrupted};
use playground::cache::Cache;
use playground::packaging::Packaging;
use playground::tools::Tools;
use playground::{
    Playground, Progress, github_clients, gitlab_clients, otlp_receiver, promtool, proxmox_clients, shellcheck,
};
use std::io::Write;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Also promtool, a receiver of traces, shellcheck, clients of GitHub and Proxmox VE, Helm and operator-verify, which tests run
    #[arg(long)]
    tests: bool,
}

pub(crate) async fn run(arguments: &Arguments) -> Result<(), EarlyExit> {
    let progress = Progress::detect();
    if arguments.tests {
        let (tools, cache) = (Tools::load()?, Cache::open()?);
        unless_interrupted(shellcheck::ensure(&tools, &cache, progress)).await?;
        unless_interrupted(promtool::ensure(&tools, &cache, progress)).await?;
        unless_interrupted(otlp_receiver::ensure(&tools, &cache, progress)).await?;
        unless_interrupted(github_clients::ensure(&tools, &cache, progress)).await?;
        unless_interrupted(gitlab_clients::ensure(&tools, &cache, progress)).await?;
        unless_interrupted(proxmox_clients::ensure(&tools, &cache, progress)).await?;
        unless_interrupted(proxmox_clients::ensure_schema(&tools, &cache, progress)).await?;
        unless_interrupted(Packaging::ensure(progress)).await?;
    }
    let (cache, ..) = unless_interrupted(Playground::prepare(None, progress)).await?;
    writeln!(std::io::stdout().lock(), "ready in {}", cache.folder().display())?;
    Ok(())
}
