//! `prepare`: fills the cache without starting a playground.

use super::{EarlyExit, unless_interrupted};
use playground::packaging::Packaging;
use playground::{Playground, Progress};
use std::io::Write;

pub(crate) async fn run(packaging: bool) -> Result<(), EarlyExit> {
    let (cache, ..) = unless_interrupted(Playground::prepare(None, Progress::detect())).await?;
    if packaging {
        unless_interrupted(Packaging::ensure(Progress::detect())).await?;
    }
    writeln!(std::io::stdout().lock(), "ready in {}", cache.folder().display())?;
    Ok(())
}
