//! Replaces this process with a program that the kernel kills when its parent dies.

use rustix::process::{Pid, Signal, getppid, set_parent_process_death_signal};
use std::ffi::OsString;
use std::io;
use std::os::unix::process::CommandExt;
use std::process::Command;

/// Requests a SIGKILL for the death of `parent` and replaces this process with `command`. Returns only on failure.
///
/// The parent-death signal survives `exec`, so the program dies with the supervisor even if that is killed with SIGKILL.
/// It is set in a process of its own and not between fork and exec, so no unsafe code is needed.
pub fn tether(parent: u32, command: &[OsString]) -> io::Error {
    let Some((program, args)) = command.split_first() else {
        return io::Error::new(io::ErrorKind::InvalidInput, "no command to run");
    };
    if let Err(error) = set_parent_process_death_signal(Some(Signal::KILL)) {
        return error.into();
    }
    // If the parent died before the signal was requested, it will never be sent.
    if getppid().map(Pid::as_raw_nonzero).map(|pid| pid.get().unsigned_abs()) != Some(parent) {
        return io::Error::new(io::ErrorKind::BrokenPipe, "the supervisor has exited");
    }
    Command::new(program).args(args).exec()
}
