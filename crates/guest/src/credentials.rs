//! The runner's credentials: in memory, where the runner looks for them.
//!
//! GitHub's JIT configuration is the base64 of a JSON object with the content of files of the runner's folder, such as `.runner`,
//! `.credentials` and `.credentials_rsaparams`. `run.sh --jitconfig` would write them to the disk and show all of it in the list of
//! processes; here they are files of a folder in memory, and the runner's folder has links to them.

use crate::users::User;
use crate::wipe;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use rustix::fs::statfs;
use std::collections::BTreeMap;
use std::fs::{DirBuilder, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, chown, symlink};
use std::path::{Path, PathBuf};
use zeroize::Zeroizing;

/// The most files of a configuration, and the size of each.
const MAX_FILES: usize = 16;
const MAX_SIZE: usize = 64 * 1024;
/// What the kernel calls file systems in memory: tmpfs and ramfs.
const IN_MEMORY: [u64; 2] = [0x0102_1994, 0x8584_58f6];

/// The files of a JIT configuration, by name.
pub(crate) type Files = BTreeMap<String, Zeroizing<Vec<u8>>>;

/// The files of a JIT configuration. The messages of errors quote nothing of it.
pub(crate) fn decode(jit_config: &str) -> Result<Files, String> {
    let wrong = |what: &str| {
        format!(
            "the JIT configuration {what}: the operator and this guest are of different versions, or the API of the CI platform has changed"
        )
    };
    let json = STANDARD.decode(jit_config.trim()).map(Zeroizing::new).map_err(|_| wrong("is not base64"))?;
    let encoded: BTreeMap<String, Zeroizing<String>> = serde_json::from_slice::<BTreeMap<String, String>>(&json)
        .map_err(|_| wrong("is not a JSON object of texts"))?
        .into_iter()
        .map(|(name, content)| (name, Zeroizing::new(content)))
        .collect();
    if encoded.is_empty() || encoded.len() > MAX_FILES {
        return Err(wrong(&format!("has {} files, and not 1 to {MAX_FILES}", encoded.len())));
    }
    let mut files = Files::new();
    for (name, content) in encoded {
        let is_name = name.len() > 1 && name.starts_with('.') && !name.starts_with("..") && !name.contains(['/', '\0']);
        if !is_name {
            return Err(wrong("has a file that is not one of the runner's settings"));
        }
        let content = STANDARD
            .decode(content.as_bytes())
            .map(Zeroizing::new)
            .map_err(|_| wrong("has a file that is not base64"))?;
        if content.len() > MAX_SIZE {
            return Err(wrong("has a file that is too large"));
        }
        files.insert(name, content);
    }
    Ok(files)
}

/// The texts of the files that must not be shown: what is long enough to be random.
pub(crate) fn secrets(files: &Files) -> Vec<Zeroizing<String>> {
    let mut found = Vec::new();
    for content in files.iter().filter(|(name, _)| name.starts_with(".credentials")).map(|(_, content)| content) {
        let text = Zeroizing::new(String::from_utf8_lossy(content).into_owned());
        for part in text.split(['"', '\n', ' ', '\r', '\t']).filter(|part| part.len() >= 16) {
            found.push(Zeroizing::new(part.to_owned()));
        }
    }
    found
}

/// Where credentials were placed.
#[derive(Debug, Clone, Default)]
pub(crate) struct Placed {
    folder: PathBuf,
    links: Vec<PathBuf>,
}

/// Writes the files to a new folder in memory for this user, and links to them into the runner's folder.
pub(crate) fn place(files: &Files, memory: &Path, runner: &Path, user: Option<&User>) -> Result<Placed, String> {
    let failed = |path: &Path, error: std::io::Error| format!("could not write {}: {error}", path.display());
    wipe::folder(memory)?;
    DirBuilder::new().recursive(true).mode(0o700).create(memory).map_err(|error| failed(memory, error))?;
    let kind = statfs(memory).map_err(|error| failed(memory, error.into()))?.f_type;
    if !IN_MEMORY.contains(&u64::try_from(kind).unwrap_or_default()) {
        return Err(format!(
            "{} is not in memory: mount a tmpfs there, so that no secret is written to the disk",
            memory.display()
        ));
    }
    let give = |path: &Path| match user {
        Some(user) => chown(path, Some(user.uid), Some(user.gid)).map_err(|error| failed(path, error)),
        None => Ok(()),
    };
    let mut placed = Placed { folder: memory.to_owned(), links: Vec::new() };
    give(memory)?;
    for (name, content) in files {
        let (path, link) = (memory.join(name), runner.join(name));
        let file = OpenOptions::new().write(true).create_new(true).mode(0o600).open(&path);
        file.and_then(|mut file| file.write_all(content)).map_err(|error| failed(&path, error))?;
        give(&path)?;
        // Of an earlier runner in a baked folder, if at all.
        wipe::file(&link)?;
        symlink(&path, &link).map_err(|error| failed(&link, error))?;
        placed.links.push(link);
    }
    Ok(placed)
}

impl Placed {
    /// Overwrites and removes the secret files; the worker of a job still reads `.runner`, which has no secret.
    pub(crate) fn remove_secrets(&self) -> Result<(), String> {
        for link in &self.links {
            let name = link.file_name().unwrap_or_default();
            if name.to_string_lossy().starts_with(".credentials") {
                wipe::file(&self.folder.join(name))?;
                wipe::file(link)?;
            }
        }
        Ok(())
    }

    /// Overwrites and removes everything.
    pub(crate) fn wipe(&self) -> Result<(), String> {
        self.links.iter().try_for_each(|link| wipe::file(link))?;
        wipe::folder(&self.folder)
    }
}

#[cfg(test)]
mod tests {
    use super::{decode, place, secrets};
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use std::os::unix::fs::PermissionsExt;

    fn jit(files: &[(&str, &str)]) -> String {
        let files: Vec<String> =
            files.iter().map(|(name, content)| format!("{name:?}: {:?}", STANDARD.encode(content))).collect();
        STANDARD.encode(format!("{{{}}}", files.join(", ")))
    }

    #[test]
    fn only_settings_of_the_runner_are_accepted_and_errors_quote_nothing() {
        let files = decode(&jit(&[(".runner", "{}"), (".credentials_rsaparams", "{\"d\": \"canary-canary-canary\"}")]))
            .unwrap();
        assert_eq!(files.len(), 2);
        assert_eq!(secrets(&files).iter().map(|secret| secret.as_str()).collect::<Vec<_>>(), ["canary-canary-canary"]);
        let many: Vec<(String, String)> = (0..17).map(|number| (format!(".{number}"), "canary".to_owned())).collect();
        let many: Vec<(&str, &str)> = many.iter().map(|(name, content)| (name.as_str(), content.as_str())).collect();
        let large = "canary".repeat(20_000);
        let wrong = [
            "canary!".to_owned(),
            STANDARD.encode("[\"canary\"]"),
            STANDARD.encode("{\".runner\": \"canary!\"}"),
            STANDARD.encode("{\".runner\": 5}"),
            jit(&[]),
            jit(&many),
            jit(&[(".runner", &large)]),
            jit(&[("run.sh", "canary")]),
            jit(&[("../.runner", "canary")]),
            jit(&[("..", "canary")]),
            jit(&[(".", "canary")]),
            jit(&[(".a/b", "canary")]),
        ];
        for text in wrong {
            let error = decode(&text).unwrap_err();
            assert!(!error.contains("canary") && error.contains("JIT"), "{error}");
        }
    }

    #[test]
    fn credentials_are_files_in_memory_that_only_their_user_reads_and_leave_nothing() {
        let root = tempfile::tempdir().unwrap();
        let memory = tempfile::tempdir_in("/dev/shm").unwrap();
        let folder = memory.path().join("secrets");
        let files = decode(&jit(&[(".runner", "settings"), (".credentials", "canary")])).unwrap();
        let placed = place(&files, &folder, root.path(), None).unwrap();
        let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
        assert_eq!((mode(&folder), mode(&folder.join(".credentials"))), (0o700, 0o600));
        assert_eq!(std::fs::read_to_string(root.path().join(".credentials")).unwrap(), "canary");
        placed.remove_secrets().unwrap();
        assert!(!folder.join(".credentials").exists() && root.path().join(".runner").exists());
        placed.wipe().unwrap();
        assert!(!folder.exists() && std::fs::read_dir(root.path()).unwrap().next().is_none());

        let on_disk = root.path().join("secrets");
        if !super::IN_MEMORY.contains(&u64::try_from(rustix::fs::statfs(root.path()).unwrap().f_type).unwrap()) {
            assert!(place(&files, &on_disk, root.path(), None).unwrap_err().contains("mount a tmpfs"));
            assert!(!root.path().join(".credentials").exists());
        }
    }
}
