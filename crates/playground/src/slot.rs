//! Limits how many control planes run at a time on one machine, so that tests do not starve each other.

use crate::cache::Cache;
use crate::poll;
use crate::user_error::{self, UserError};
use std::fs::File;
use std::time::Duration;

/// One of the limited slots; the kernel releases it when it is dropped or its process is killed.
#[derive(Debug)]
pub struct Slot {
    _lock: File,
}

impl Slot {
    /// Waits for a free slot. There is one per core: a control plane keeps about one core busy while it starts.
    pub async fn take(cache: &Cache) -> Result<Slot, UserError> {
        let slots = std::thread::available_parallelism().map_or(1, usize::from);
        let folder = cache.folder().join("slots");
        std::fs::create_dir_all(&folder).map_err(|error| user_error::io("create", &folder, error))?;
        poll::until_some(Duration::from_millis(50), async || {
            for slot in 0..slots {
                let path = folder.join(slot.to_string());
                let file = File::create(&path).map_err(|error| user_error::io("open", &path, error))?;
                if file.try_lock().is_ok() {
                    return Ok(Some(Slot { _lock: file }));
                }
            }
            Ok(None)
        })
        .await
    }
}
