//! Becomes another program that the kernel ends as soon as our parent is gone.

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Ties this process to the supervisor `parent` and replaces it by `command`. Returns only on failure.
///
/// The wish survives `exec`, so the program dies with the supervisor even if that is killed with SIGKILL. No unsafe code
/// is needed because the wish is made in a process of its own and not between fork and exec.
pub fn tether(parent: u32, command: &[OsString]) -> io::Error {
    let Some((program, args)) = command.split_first() else {
        return io::Error::new(io::ErrorKind::InvalidInput, "nothing to run");
    };
    if let Err(error) = set_parent_process_death_signal(Some(Signal::KILL)) {
        return error.into();
    }
    // The parent may have died before the wish was made; then nobody would fulfil it.
    if getppid().map(Pid::as_raw_nonzero).map(|pid| pid.get().unsigned_abs()) != Some(parent) {
        return io::Error::new(io::ErrorKind::BrokenPipe, "the supervisor is gone");
    }
    Command::new(program).args(args).exec()
}
