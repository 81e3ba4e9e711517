//! Unpacking an archive into a folder and nowhere else.

use flate2::read::GzDecoder;
use std::fs::File;
use std::io::Read;
use std::os::unix::fs::lchown;
use std::path::{Component, Path, PathBuf};
use tar::{Archive, Entry, EntryType};

/// The most that an archive may unpack to.
const MAX_UNPACKED: u64 = 8 << 30;
/// The most files it may have.
const MAX_ENTRIES: usize = 500_000;

/// Unpacks a gzipped tar archive into a new folder, with its links, for this user. What leaves the folder is refused.
pub(crate) fn unpack(archive: &Path, to: &Path, owner: Option<(u32, u32)>) -> Result<(), String> {
    let file = File::open(archive).map_err(|error| format!("could not open {}: {error}", archive.display()))?;
    entries(GzDecoder::new(file), to, owner).map_err(|error| format!("could not unpack the archive: {error}"))
}

fn entries(content: impl Read, to: &Path, owner: Option<(u32, u32)>) -> Result<(), String> {
    std::fs::create_dir_all(to).map_err(|error| format!("{}: {error}", to.display()))?;
    give(to, owner)?;
    let mut archive = Archive::new(content.take(MAX_UNPACKED));
    archive.set_overwrite(false);
    archive.set_preserve_mtime(false);
    let entries = archive.entries().map_err(|error| error.to_string())?;
    for (count, entry) in entries.enumerate() {
        let mut entry = entry.map_err(|error| format!("it is broken: {error}"))?;
        if count >= MAX_ENTRIES {
            return Err(format!("it has more than {MAX_ENTRIES} files"));
        }
        let path = entry.path().map_err(|error| error.to_string())?.into_owned();
        let target = one(&mut entry, &path, to).map_err(|error| format!("{}: {error}", path.display()))?;
        // Folders that have no entry of their own belong to the user, too.
        for folder in target.iter().flat_map(|target| target.ancestors()).take_while(|folder| *folder != to) {
            give(folder, owner)?;
        }
    }
    Ok(())
}

/// Unpacks one entry, and says where; the folder itself needs none.
fn one(entry: &mut Entry<'_, impl Read>, path: &Path, to: &Path) -> Result<Option<PathBuf>, String> {
    let inside = inside(path)?;
    if inside.as_os_str().is_empty() {
        return Ok(None);
    }
    let target = to.join(&inside);
    let parent = target.parent().unwrap_or(to);
    real_folders(to, inside.parent().unwrap_or(Path::new("")))?;
    match entry.header().entry_type() {
        EntryType::Directory | EntryType::Regular | EntryType::Continuous => {}
        EntryType::Symlink => {
            let link = entry.link_name().map_err(|error| error.to_string())?.unwrap_or_default().into_owned();
            check_link(&link, inside.components().count() - 1)?;
        }
        EntryType::Link => {
            let link = entry.link_name().map_err(|error| error.to_string())?.unwrap_or_default().into_owned();
            let source = to.join(self::inside(&link)?);
            real_folders(to, self::inside(&link)?.parent().unwrap_or(Path::new("")))?;
            // A hard link to a symbolic link would be another way to its target.
            if !std::fs::symlink_metadata(&source).is_ok_and(|metadata| metadata.is_file()) {
                return Err("it is a hard link to something that is no file of the archive".to_owned());
            }
        }
        _ => return Err("it is neither a file nor a folder nor a link".to_owned()),
    }
    std::fs::create_dir_all(parent).map_err(|error| error.to_string())?;
    // What the entry itself cannot do wrong any more; setuid bits and owners of the archive are dropped.
    entry.unpack_in(to).map_err(|error| error.to_string())?;
    Ok(Some(target))
}

/// A path of an archive, if it stays inside of the folder.
fn inside(path: &Path) -> Result<PathBuf, String> {
    let mut inside = PathBuf::new();
    for component in path.components() {
        match component {
            Component::Normal(name) => inside.push(name),
            Component::CurDir => {}
            _ => return Err("its path leaves the folder".to_owned()),
        }
    }
    Ok(inside)
}

/// Refuses a path through a symbolic link: nobody could say from names alone where it ends.
fn real_folders(to: &Path, parent: &Path) -> Result<(), String> {
    let mut at = to.to_owned();
    for component in parent.components() {
        at.push(component);
        match std::fs::symlink_metadata(&at) {
            Ok(metadata) if !metadata.is_dir() => return Err("its path goes through a link or a file".to_owned()),
            _ => {}
        }
    }
    Ok(())
}

/// Whether a symbolic link in a folder of this depth stays inside: it goes up at its beginning only, and not too far.
fn check_link(link: &Path, depth: usize) -> Result<(), String> {
    let mut up = 0;
    let mut has_gone_down = false;
    for component in link.components() {
        match component {
            Component::Normal(_) => has_gone_down = true,
            Component::CurDir => {}
            Component::ParentDir if !has_gone_down && up < depth => up += 1,
            _ => return Err(format!("it is a link to {}, which leaves the folder", link.display())),
        }
    }
    Ok(())
}

fn give(path: &Path, owner: Option<(u32, u32)>) -> Result<(), String> {
    let Some((user, group)) = owner else { return Ok(()) };
    lchown(path, Some(user), Some(group))
        .map_err(|error| format!("could not give {} to its user: {error}", path.display()))
}

#[cfg(test)]
mod tests {
    use super::entries;
    use std::path::Path;
    use tar::{Builder, EntryType, Header};

    /// One entry of an archive: its kind, its path and what it contains or links to.
    type Case = (EntryType, &'static str, &'static str);
    const FILE: EntryType = EntryType::Regular;
    const LINK: EntryType = EntryType::Symlink;

    /// An archive, with paths that the library would refuse to write.
    fn archive(cases: &[Case]) -> Vec<u8> {
        let mut builder = Builder::new(Vec::new());
        for (kind, path, content) in cases {
            let mut header = Header::new_gnu();
            header.set_entry_type(*kind);
            header.set_mode(0o4755);
            header.as_old_mut().name[..path.len()].copy_from_slice(path.as_bytes());
            let is_file = *kind == FILE;
            if !is_file {
                header.as_old_mut().linkname[..content.len()].copy_from_slice(content.as_bytes());
            }
            header.set_size(if is_file { u64::try_from(content.len()).unwrap() } else { 0 });
            header.set_cksum();
            builder.append(&header, if is_file { content.as_bytes() } else { b"" }).unwrap();
        }
        builder.into_inner().unwrap()
    }

    fn unpacked(cases: &[Case], to: &Path) -> Result<(), String> {
        entries(archive(cases).as_slice(), to, None)
    }

    #[test]
    fn files_folders_and_links_are_unpacked_and_stay_what_they_are() {
        use std::os::unix::fs::PermissionsExt;
        let root = tempfile::tempdir().unwrap();
        let to = root.path().join("to");
        let cases = [
            (EntryType::Directory, "./", ""),
            (FILE, "./run.sh", "#!/bin/sh"),
            (FILE, "externals/node20/bin/node", "node"),
            (LINK, "externals/node20/bin/npm", "../lib/npm-cli.js"),
            (LINK, "bin", "bin.2"),
            (FILE, "externals/node20/lib/npm-cli.js", "npm"),
            (EntryType::Link, "same", "./run.sh"),
            (LINK, "externals/top", "../run.sh"),
        ];
        unpacked(&cases, &to).unwrap();
        let text = |path: &str| std::fs::read_to_string(to.join(path)).unwrap();
        assert_eq!(text("externals/node20/bin/npm"), "npm");
        assert_eq!(text("externals/top"), "#!/bin/sh");
        assert_eq!(text("same"), "#!/bin/sh");
        assert_eq!(std::fs::read_link(to.join("bin")).unwrap(), Path::new("bin.2"));
        assert_eq!(std::fs::metadata(to.join("run.sh")).unwrap().permissions().mode() & 0o7777, 0o755);
    }

    #[test]
    fn whatever_leaves_the_folder_is_refused_and_nothing_is_written_outside() {
        let cases: [&[Case]; 15] = [
            &[(FILE, "../a", "x")],
            &[(FILE, "a/../../b", "x")],
            &[(FILE, "/etc/a", "x")],
            &[(LINK, "a", "/etc")],
            &[(LINK, "a", "..")],
            &[(LINK, "a", "../to/b")],
            &[(LINK, "d/a", "../../b")],
            &[(LINK, "a", "d/../..")],
            &[(LINK, "d", "."), (FILE, "d/a", "x")],
            &[(FILE, "a/b/c/f", "x"), (LINK, "a/b/c/l", "../../.."), (LINK, "a/b/c/l/x", "../../..")],
            &[(FILE, "a/b/c/f", "x"), (LINK, "a/b/c/l", "../../.."), (LINK, "x", "a/b/c/l/../..")],
            &[(FILE, "p/q/f", "x"), (LINK, "p/q/l", "../.."), (LINK, "p/q/x", "l/../..")],
            &[(EntryType::Link, "a", "../outside")],
            &[(LINK, "l", "inside"), (EntryType::Link, "a", "l")],
            &[(EntryType::Fifo, "a", "")],
        ];
        for case in cases {
            let root = tempfile::tempdir().unwrap();
            std::fs::write(root.path().join("outside"), "secret").unwrap();
            let result = unpacked(case, &root.path().join("to"));
            assert!(result.is_err(), "{case:?}");
            let outside: Vec<_> =
                std::fs::read_dir(root.path()).unwrap().map(|entry| entry.unwrap().file_name()).collect();
            assert_eq!(outside.len(), 2, "{case:?}: {outside:?}");
            assert_eq!(std::fs::read_to_string(root.path().join("outside")).unwrap(), "secret");
        }
    }

    #[test]
    fn a_second_entry_of_the_same_path_and_a_broken_archive_are_refused() {
        let root = tempfile::tempdir().unwrap();
        assert!(unpacked(&[(LINK, "a", "b"), (FILE, "a", "x")], &root.path().join("to")).is_err());
        let mut broken = archive(&[(FILE, "a", "text")]);
        broken.truncate(700);
        assert!(entries(broken.as_slice(), &root.path().join("other"), None).is_err());
    }
}
