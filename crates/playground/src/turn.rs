//! Lets a few control planes run at a time on one machine, so that tests do not starve each other.

use crate::cache::Cache;
use crate::trouble::{self, Trouble};
use std::fs::File;
use std::time::Duration;

/// A place among those that may run now; given back when dropped, also by a process that is killed.
#[derive(Debug)]
pub struct Turn {
    _place: File,
}

impl Turn {
    /// Waits for a place. There are as many as cores: a control plane keeps about one busy while it starts.
    pub async fn take(cache: &Cache) -> Result<Turn, Trouble> {
        let places = std::thread::available_parallelism().map_or(1, usize::from);
        let folder = cache.folder().join("turns");
        std::fs::create_dir_all(&folder).map_err(|error| trouble::io("create", &folder, error))?;
        loop {
            for place in 0..places {
                let path = folder.join(place.to_string());
                let file = File::create(&path).map_err(|error| trouble::io("open", &path, error))?;
                if file.try_lock().is_ok() {
                    return Ok(Turn { _place: file });
                }
            }
            tokio::time::sleep(Duration::from_millis(50)).await;
        }
    }
}
