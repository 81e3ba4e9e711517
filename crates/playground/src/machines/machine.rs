//! One machine that is switched on: a folder in place of its disk, and the processes of its guest.

use super::Run;
use crate::deployment;
use crate::files;
use crate::user_error::{self, UserError};
use hadris_io::Cursor;
use hadris_iso::sync::IsoImage;
use rustix::process::{Pid, Signal, kill_process_group};
use serde_json::Value;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

/// Where cloud-init writes the guest's configuration.
const CONFIG: &str = "/etc/virtpilot/guest.json";
/// Where the program in place of the runner writes the id of its runner, beside the folder of the guest.
pub(super) const RUNNER_ID: &str = "runner-id";

/// The guest's configuration in a cloud-init image, as cloud-init would write it.
pub(super) fn guest_config(image: &[u8]) -> Option<Value> {
    let image = IsoImage::open(Cursor::new(image)).ok()?;
    let root = image.root_dirs();
    let root = root.iter().next()?.iter(&image);
    let file = root.entries().flatten().find(|entry| entry.display_name() == "user-data")?;
    let text = String::from_utf8(image.read_file(&file).ok()?).ok()?;
    let user_data: Value = serde_saphyr::from_str(&text).ok()?;
    let written = user_data["write_files"].as_array()?.iter().find(|file| file["path"] == CONFIG)?;
    serde_json::from_str(written["content"].as_str()?).ok()
}

/// A machine.
pub(super) struct Machine {
    folder: PathBuf,
    memory: PathBuf,
    guest: Child,
}

impl Machine {
    /// Boots a machine: its guest finds its configuration, which it removes, and another program in place of the power switch.
    /// It may have a fault.
    pub(super) fn start(all: &Path, run: Run, config: &Value, fault: Option<&str>) -> Result<Machine, UserError> {
        let name = format!("{}-{}-{}", run.vmid, run.birth, run.since.as_millis());
        let (folder, memory) = (all.join(&name), shared_memory(all).join(format!("virtpilot-{name}")));
        std::fs::create_dir_all(&folder).map_err(|error| user_error::io("create", &folder, error))?;
        let path = |name: &str| folder.join(name);
        let mut config = config.clone();
        // Copies of a real machine would be files of this one.
        config["copies"] = serde_json::json!([path("user-data.txt").display().to_string()]);
        for name in ["guest.json", "user-data.txt"] {
            files::write_with_mode(&path(name), config.to_string(), 0o600)?;
        }
        let off = format!("#!/bin/sh\n: > '{}'\n", path("off").display());
        files::write_with_mode(&path("power-off"), off, 0o755)?;
        let console =
            std::fs::File::create(path("console")).map_err(|error| user_error::io("write", &folder, error))?;
        let errors = console.try_clone().map_err(|error| user_error::io("write", &folder, error))?;
        let program = deployment::binary()?.with_file_name("virtpilot-guest");
        let guest = Command::new(&program)
            .args(
                [("--config", "guest.json"), ("--folder", "folder"), ("--power-off-program", "power-off")]
                    .iter()
                    .flat_map(|(flag, name)| [(*flag).into(), path(name).into_os_string()]),
            )
            .arg("--memory")
            .arg(&memory)
            .args(fault.iter().flat_map(|fault| ["--fault", fault]))
            .stdin(Stdio::null())
            .stdout(console)
            .stderr(errors)
            .process_group(0)
            .spawn()
            .map_err(|error| user_error::io("start", &program, error))?;
        Ok(Machine { folder, memory, guest })
    }

    /// Whether the guest has switched the machine off.
    pub(super) fn has_powered_off(&mut self) -> bool {
        self.folder.join("off").exists() || matches!(self.guest.try_wait(), Ok(Some(_)))
    }

    /// Takes the power away, and the disk. Returns what was on the console, and the runner that was started.
    pub(super) fn end(mut self) -> (String, Option<u64>) {
        let group = i32::try_from(self.guest.id()).ok().and_then(Pid::from_raw);
        if let Some(group) = group {
            let _ = kill_process_group(group, Signal::KILL);
        }
        let _ = self.guest.wait();
        let text = std::fs::read_to_string(self.folder.join("console")).unwrap_or_default();
        let runner = std::fs::read_to_string(self.folder.join(RUNNER_ID)).ok().and_then(|id| id.parse().ok());
        for folder in [&self.folder, &self.memory] {
            let _ = std::fs::remove_dir_all(folder);
        }
        (text, runner)
    }
}

/// A folder in memory, if there is one.
fn shared_memory(otherwise: &Path) -> &Path {
    let memory = Path::new("/dev/shm");
    if memory.is_dir() { memory } else { otherwise }
}
