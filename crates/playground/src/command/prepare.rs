//! `prepare`: everything into the cache, nothing started for good.

use super::{Ended, unless_interrupted};
use playground::{Playground, Progress};

pub(crate) async fn run() -> Result<(), Ended> {
    let (cache, ..) = unless_interrupted(Playground::prepare(None, Progress::detect())).await?;
    println!("ready in {}", cache.folder().display());
    Ok(())
}
