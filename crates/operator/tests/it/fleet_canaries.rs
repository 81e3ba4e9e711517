//! Looks for secrets where people and programs may look, while jobs run: at each moment, all secrets that exist by then.

use crate::fleet::Fleet;
use playground::job_site::{JobSite, WEBHOOK_SECRET};
use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

/// All secrets that were seen, and where they should not have been.
#[derive(Default)]
pub(crate) struct Canaries {
    known: BTreeSet<String>,
    hits: BTreeMap<String, usize>,
}

impl Canaries {
    /// The secrets of the installation: they are there all the time.
    pub(crate) fn of(fleet: &Fleet, jobs: &JobSite) -> Canaries {
        let key = jobs.github.credentials.private_key.lines();
        let lines = key.filter(|line| line.len() > 20 && !line.starts_with('-')).map(str::to_owned);
        let known = lines.chain([WEBHOOK_SECRET.to_owned(), fleet.token().1]).collect();
        Canaries { known, hits: BTreeMap::new() }
    }

    /// Looks at what exists for a short time only: cloud-init images, disks of machines, and the processes in them.
    pub(crate) fn look(&mut self, fleet: &Fleet, jobs: &JobSite) {
        self.known.extend(jobs.github.with(|state, _| state.secrets()));
        let mut images = Vec::new();
        fleet.proxmox.with(|state| {
            for storage in state.storages().values() {
                images.extend(
                    storage.volumes.values().filter(|volume| !volume.data.is_empty()).map(|one| one.data.clone()),
                );
            }
        });
        images.iter().for_each(|image| self.search("a cloud-init image", image));
        let disks = jobs.machines.disks();
        self.search_folder(&disks);
        for process in std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path()) {
            let Ok(arguments) = std::fs::read(process.join("cmdline")) else { continue };
            if contains(&arguments, disks.as_os_str().as_encoded_bytes()) {
                self.search("the arguments of a process", &arguments);
                self.search("an environment", &std::fs::read(process.join("environ")).unwrap_or_default());
            }
        }
    }

    /// Files come and go while they are read.
    fn search_folder(&mut self, folder: &Path) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => self.search_folder(&entry.path()),
                Ok(kind) if kind.is_file() => {
                    self.search("a disk", &std::fs::read(entry.path()).unwrap_or_default());
                }
                _ => {}
            }
        }
    }

    /// Looks at what stays: logs, objects, events, the queue, metrics, and the consoles of machines.
    pub(crate) async fn look_at_all(&mut self, fleet: &Fleet, jobs: &JobSite, metrics: &str) {
        let shown = fleet.shown().await;
        self.search("a log, an object or an event", shown.as_bytes());
        self.search("metrics", metrics.as_bytes());
        self.search("a console", jobs.machines.said().as_bytes());
        // Tokens of guests are in images and on disks until they are used, and nowhere else.
        for prefix in ["vpb1_", "PRIVATE KEY", "ghs_"] {
            assert!(!shown.contains(prefix), "{prefix} is shown");
        }
    }

    fn search(&mut self, place: &str, bytes: &[u8]) {
        let found = self.known.iter().filter(|secret| contains(bytes, secret.as_bytes())).count();
        if found > 0 {
            *self.hits.entry(place.to_owned()).or_default() += found;
        }
    }

    /// How many there were; none was found.
    pub(crate) fn end(self) -> usize {
        assert_eq!(self.hits, BTreeMap::new());
        self.known.len()
    }
}

fn contains(text: &[u8], part: &[u8]) -> bool {
    // Most positions are ruled out by one byte.
    let Some((first, rest)) = part.split_first() else { return false };
    let mut text = text;
    while let Some(at) = text.iter().position(|byte| byte == first) {
        text = &text[at + 1..];
        if text.starts_with(rest) {
            return true;
        }
    }
    false
}
