//! Switching the machine off.

use crate::output::Output;
use std::path::PathBuf;
use std::process::{Command, Stdio};

/// What is switched off.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Power {
    /// This machine. Debug builds never do that, because tests and developers run them.
    Machine,
    /// A program is run in place of it; only debug builds accept that.
    #[cfg(debug_assertions)]
    Program(PathBuf),
}

impl Power {
    /// What the command line asks for; release builds know only the machine.
    pub(crate) fn from_argument(program: Option<PathBuf>) -> Result<Power, String> {
        match program {
            None => Ok(Power::Machine),
            #[cfg(debug_assertions)]
            Some(program) => Ok(Power::Program(program)),
            #[cfg(not(debug_assertions))]
            Some(_) => Err("--power-off-program is accepted only by debug builds: remove it".to_owned()),
        }
    }

    /// Switches it off, by the first way that works. The disk of the machine is thrown away, so nothing is unmounted or synced: a disk
    /// that hangs would keep the machine running.
    pub(crate) fn off(&self, output: &Output) {
        match self {
            #[cfg(debug_assertions)]
            Power::Program(program) => {
                if let Err(error) = quiet(&mut Command::new(program)).status() {
                    output.say(&format!("could not run {}: {error}", program.display()));
                }
            }
            Power::Machine if cfg!(debug_assertions) => {
                output.say("a debug build does not power off the machine: use a release build, or --power-off-program");
            }
            Power::Machine => {
                if let Err(error) = rustix::system::reboot(rustix::system::RebootCommand::PowerOff) {
                    output.say(&format!("the kernel refuses to power off ({error}); trying systemctl and sysrq"));
                }
                let _ = quiet(Command::new("systemctl").args(["poweroff", "--force", "--force"])).status();
                let _ = std::fs::write("/proc/sys/kernel/sysrq", "1");
                let _ = std::fs::write("/proc/sysrq-trigger", "o");
            }
        }
    }
}

fn quiet(command: &mut Command) -> &mut Command {
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null())
}

#[cfg(test)]
mod tests {
    use super::Power;
    use std::path::PathBuf;

    #[test]
    fn the_machine_is_switched_off_unless_a_debug_build_is_asked_otherwise() {
        assert_eq!(Power::from_argument(None), Ok(Power::Machine));
        assert_eq!(Power::from_argument(Some(PathBuf::from("/x"))), Ok(Power::Program(PathBuf::from("/x"))));
    }
}
