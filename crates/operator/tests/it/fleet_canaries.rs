//! Looks for secrets where people and programs may look, while jobs run and afterwards: at each moment, all secrets that exist by then.

use crate::fleet::Fleet;
use playground::job_site::{JobSite, WEBHOOK_SECRET};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::path::Path;

/// What a secret is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Kind {
    PrivateKey,
    WebhookSecret,
    HypervisorToken,
    /// Tokens that GitHub has handed out.
    AccessToken,
    JitConfig,
    /// Tokens of guests: they are in images and on disks until they are used, and nowhere else.
    BootstrapToken,
}

const KINDS: [Kind; 6] = [
    Kind::PrivateKey,
    Kind::WebhookSecret,
    Kind::HypervisorToken,
    Kind::AccessToken,
    Kind::JitConfig,
    Kind::BootstrapToken,
];

/// So many bytes of a text are compared first; every secret is longer.
const HEAD: usize = 8;
/// Whoever has the whole secret of a line of a key has the key.
const LINE: usize = 40;

/// All secrets that were seen, and where they should not have been.
#[derive(Default)]
pub(crate) struct Canaries {
    known: BTreeSet<(Kind, String)>,
    /// What is looked for, by its first bytes: the secrets, lines of them, and what is in them.
    parts: HashMap<[u8; HEAD], Vec<(Kind, String)>>,
    /// Most positions are ruled out by two bytes.
    starts: BTreeSet<[u8; 2]>,
    hits: BTreeMap<(String, Kind), usize>,
    looks: usize,
}

impl Canaries {
    /// The secrets of the installation: they are there all the time.
    pub(crate) fn of(fleet: &Fleet, jobs: &JobSite) -> Canaries {
        let mut canaries = Canaries::default();
        let key = &jobs.github.credentials.private_key;
        let lines = key.lines().filter(|line| line.len() > LINE && !line.starts_with('-'));
        canaries.add(Kind::PrivateKey, key, lines.map(str::to_owned));
        canaries.add(Kind::WebhookSecret, WEBHOOK_SECRET, []);
        canaries.add(Kind::HypervisorToken, &fleet.token().1, []);
        canaries
    }

    /// A secret, and what is as secret as itself.
    fn add(&mut self, kind: Kind, secret: &str, parts: impl IntoIterator<Item = String>) {
        if self.known.insert((kind, secret.to_owned())) {
            for part in parts.into_iter().chain([secret.to_owned()]) {
                let head = part.as_bytes().first_chunk().copied().unwrap();
                self.starts.insert([head[0], head[1]]);
                self.parts.entry(head).or_default().push((kind, part));
            }
        }
    }

    /// Looks everywhere while jobs run: also at what exists for a short time only, such as images, disks and processes.
    pub(crate) async fn look(&mut self, fleet: &Fleet, jobs: &JobSite, metrics: &str) {
        self.looks += 1;
        let (tokens, configs) = jobs.github.with(|state, _| (state.tokens(), state.jit_configs()));
        tokens.iter().for_each(|token| self.add(Kind::AccessToken, token, []));
        configs.into_iter().for_each(|(config, inner)| self.add(Kind::JitConfig, &config, inner));
        let images: Vec<Vec<u8>> = fleet.proxmox.with(|state| {
            let volumes = state.storages().values().flat_map(|storage| storage.volumes.values());
            volumes.filter(|volume| !volume.data.is_empty()).map(|volume| volume.data.clone()).collect()
        });
        for image in &images {
            for token in bootstrap_tokens(image) {
                self.add(Kind::BootstrapToken, &token, []);
            }
            self.search("a cloud-init image", image, &[Kind::BootstrapToken]);
        }
        let disks = jobs.machines.disks();
        self.search_folder(&disks);
        let places = [disks.as_path(), fleet.playground.folder()].map(|path| path.as_os_str().as_encoded_bytes());
        for process in std::fs::read_dir("/proc").unwrap().flatten().map(|entry| entry.path()) {
            let Ok(arguments) = std::fs::read(process.join("cmdline")) else { continue };
            let is_of = |place: &&[u8]| arguments.windows(place.len()).any(|part| part == *place);
            if places.iter().any(is_of) {
                self.search("the arguments of a process", &arguments, &[]);
                self.search("an environment", &std::fs::read(process.join("environ")).unwrap_or_default(), &[]);
            }
        }
        self.search("an object or an event", fleet.shown_objects().await.as_bytes(), &[]);
        self.search("metrics", metrics.as_bytes(), &[]);
        self.search("a console", jobs.machines.said().as_bytes(), &[]);
    }

    /// Files come and go while they are read.
    fn search_folder(&mut self, folder: &Path) {
        for entry in std::fs::read_dir(folder).into_iter().flatten().flatten() {
            match entry.file_type() {
                Ok(kind) if kind.is_dir() => self.search_folder(&entry.path()),
                Ok(kind) if kind.is_file() => {
                    self.search("a disk", &std::fs::read(entry.path()).unwrap_or_default(), &[Kind::BootstrapToken]);
                }
                _ => {}
            }
        }
    }

    /// Looks everywhere again, and at what stays: the log.
    pub(crate) async fn look_at_all(&mut self, fleet: &Fleet, jobs: &JobSite, metrics: &str) {
        self.look(fleet, jobs, metrics).await;
        let shown = fleet.shown().await;
        self.search("a log", shown.as_bytes(), &[]);
        // Also those that were never seen.
        for prefix in ["vpb1_", "PRIVATE KEY", "ghs_"] {
            assert!(!shown.contains(prefix), "{prefix} is shown");
        }
    }

    fn search(&mut self, place: &str, bytes: &[u8], allowed: &[Kind]) {
        for at in 0..bytes.len().saturating_sub(HEAD - 1) {
            if !self.starts.contains(&[bytes[at], bytes[at + 1]]) {
                continue;
            }
            let Some(parts) = bytes[at..].first_chunk::<HEAD>().and_then(|head| self.parts.get(head)) else { continue };
            for (kind, part) in parts {
                if bytes[at..].starts_with(part.as_bytes()) && !allowed.contains(kind) {
                    *self.hits.entry((place.to_owned(), *kind)).or_default() += 1;
                }
            }
        }
    }

    /// How many different secrets there were, some of each kind; none was found.
    pub(crate) fn end(self) -> usize {
        assert_eq!(self.hits, BTreeMap::new());
        let kinds: BTreeSet<Kind> = self.known.iter().map(|(kind, _)| *kind).collect();
        assert_eq!(kinds, KINDS.into(), "some of each kind");
        assert!(self.looks > 3, "{} times", self.looks);
        self.known.len()
    }
}

/// The tokens of guests in an image.
fn bootstrap_tokens(image: &[u8]) -> Vec<String> {
    let text = String::from_utf8_lossy(image);
    let is_part = |letter: char| letter.is_ascii_alphanumeric() || letter == '_' || letter == '-';
    let tokens = text.match_indices("vpb1_").map(|(at, _)| text[at..].split(|letter| !is_part(letter)).next());
    tokens.flatten().filter(|token| token.len() > LINE).map(str::to_owned).collect()
}

/// What is looked for is found, also in the middle and if it only looks like text.
#[test]
fn a_secret_is_found_wherever_it_is_and_only_where_it_must_not_be() {
    let mut canaries = Canaries::default();
    let token = format!("vpb1_{}", "x".repeat(43));
    canaries.add(Kind::BootstrapToken, &token, []);
    canaries.add(Kind::JitConfig, "eyJhbGciOiJub25lIn0", ["a-secret-in-it".to_owned()]);
    assert_eq!(bootstrap_tokens(format!("\0\u{1}token: \"{token}\"").as_bytes()), std::slice::from_ref(&token));
    canaries.search("an image", token.as_bytes(), &[Kind::BootstrapToken]);
    assert_eq!(canaries.hits, BTreeMap::new());
    canaries.search("a log", format!("ü {token}").as_bytes(), &[]);
    canaries.search("a disk", b"\xffa-secret-in-it", &[Kind::BootstrapToken]);
    let hits = [(("a disk".to_owned(), Kind::JitConfig), 1), (("a log".to_owned(), Kind::BootstrapToken), 1)];
    assert_eq!(canaries.hits, hits.into());
}
