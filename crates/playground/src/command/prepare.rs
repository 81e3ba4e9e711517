//! `prepare`: everything into the cache, nothing started for good.

use super::{Ended, unless_interrupted};
use playground::{Playground, Progress};
use std::io::Write;

pub(crate) async fn run() -> Result<(), Ended> {
    let (cache, ..) = unless_interrupted(Playground::prepare(None, Progress::detect())).await?;
    writeln!(std::io::stdout().lock(), "ready in {}", cache.folder().display())?;
    Ok(())
}
