//! Builds the guest that is copied into images of machines.

use crate::release::{self, Binary};
use crate::workspace::Workspace;
use anyhow::Context;
use sha2::{Digest, Sha256};
use std::os::unix::fs::PermissionsExt;
use std::path::Path;

/// What machines run.
const PROGRAM: &str = "virtpilot-guest";

/// Builds the guest for every platform that can be built for, into a folder of its own below this one.
pub(crate) fn write(workspace: &Workspace, folder: &Path) -> anyhow::Result<()> {
    for binary in release::binaries(workspace, "guest", PROGRAM)? {
        println!("{}", place(folder, &binary)?);
    }
    Ok(())
}

/// Writes a binary; its path, size and checksum.
fn place(folder: &Path, binary: &Binary) -> anyhow::Result<String> {
    let path = folder.join(binary.architecture).join(PROGRAM);
    let failed = || format!("could not write {}", path.display());
    std::fs::create_dir_all(path.parent().unwrap_or(folder)).with_context(failed)?;
    std::fs::write(&path, &binary.content).with_context(failed)?;
    std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).with_context(failed)?;
    let digest: String = Sha256::digest(&binary.content).iter().map(|byte| format!("{byte:02x}")).collect();
    Ok(format!("wrote {}: {} bytes, sha256 {digest}", path.display(), binary.content.len()))
}

#[cfg(test)]
mod tests {
    use super::place;
    use crate::release::Binary;
    use std::os::unix::fs::PermissionsExt;

    #[test]
    fn the_guest_can_be_run_and_is_named_with_its_size_and_checksum() {
        let folder = std::env::temp_dir().join(format!("virtpilot-guest-{}", std::process::id()));
        let line = place(&folder, &Binary { architecture: "amd64", content: b"abc".to_vec() }).unwrap();
        let path = folder.join("amd64/virtpilot-guest");
        assert_eq!(std::fs::read(&path).unwrap(), b"abc");
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o755);
        let digest = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";
        assert_eq!(line, format!("wrote {}: 3 bytes, sha256 {digest}", path.display()));
        std::fs::remove_dir_all(folder).unwrap();
    }
}
