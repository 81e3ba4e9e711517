//! The command line.

use crate::fault::Fault;
use crate::power::Power;
use std::ffi::OsString;
use std::path::PathBuf;
use std::time::Duration;

/// What `--help` prints.
pub(crate) const HELP: &str = "\
virtpilot-guest: runs one job in a runner's machine, and powers it off, whatever happens.

Usage: virtpilot-guest [--config FILE] [--folder FOLDER] [--memory FOLDER] [--hang-seconds SECONDS]

  --config FILE           the configuration; it is removed when it was read [/etc/virtpilot/guest.json]
  --folder FOLDER         where the runner is unpacked [/var/lib/virtpilot-guest]
  --memory FOLDER         where the runner's credentials are, in a tmpfs [/run/virtpilot-guest]
  --hang-seconds SECONDS  after which silence of the guest its watchdog powers off [60]
  --version, --help

It powers off the machine also if an argument or the configuration is wrong.
";

/// The command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Arguments {
    pub(crate) config: PathBuf,
    pub(crate) folder: PathBuf,
    pub(crate) memory: PathBuf,
    pub(crate) hang: Duration,
    /// Whether this is the process that a watchdog watches.
    pub(crate) is_watched: bool,
    pub(crate) power: Power,
    pub(crate) fault: Fault,
}

/// What the command line asks for.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Request {
    Run(Box<Arguments>),
    Help,
    Version,
}

/// Reads a command line without the name of the program.
pub(crate) fn parse(words: impl IntoIterator<Item = OsString>) -> Result<Request, String> {
    let mut arguments = Arguments {
        config: PathBuf::from("/etc/virtpilot/guest.json"),
        folder: PathBuf::from("/var/lib/virtpilot-guest"),
        memory: PathBuf::from("/run/virtpilot-guest"),
        hang: Duration::from_secs(60),
        is_watched: false,
        power: Power::from_argument(None)?,
        fault: Fault::default(),
    };
    let mut words = words.into_iter();
    while let Some(word) = words.next() {
        let word = word.to_string_lossy().into_owned();
        let mut value = || words.next().ok_or_else(|| format!("{word} needs a value; see --help"));
        match word.as_str() {
            "--config" => arguments.config = value()?.into(),
            "--folder" => arguments.folder = value()?.into(),
            "--memory" => arguments.memory = value()?.into(),
            "--hang-seconds" => {
                let seconds = value()?.to_string_lossy().parse().ok().filter(|seconds| (1..=3600).contains(seconds));
                arguments.hang = Duration::from_secs(seconds.ok_or("--hang-seconds needs a number from 1 to 3600")?);
            }
            "--watched" => arguments.is_watched = true,
            "--power-off-program" => arguments.power = Power::from_argument(Some(value()?.into()))?,
            #[cfg(debug_assertions)]
            "--fault" => arguments.fault = Fault::parse(&value()?.to_string_lossy())?,
            "--help" | "-h" => return Ok(Request::Help),
            "--version" | "-V" => return Ok(Request::Version),
            _ => return Err(format!("{word:?} is not an argument of virtpilot-guest; see --help")),
        }
    }
    Ok(Request::Run(Box::new(arguments)))
}

#[cfg(test)]
mod tests {
    use super::{Request, parse};
    use std::ffi::OsString;

    fn parsed(words: &[&str]) -> Result<Request, String> {
        parse(words.iter().map(OsString::from))
    }

    #[test]
    fn arguments_are_read_or_refused_with_a_remedy() {
        let Ok(Request::Run(arguments)) = parsed(&["--config", "/a", "--hang-seconds", "5"]) else { panic!() };
        assert_eq!((arguments.config.to_str(), arguments.hang.as_secs(), arguments.is_watched), (Some("/a"), 5, false));
        assert_eq!(parsed(&["--version"]), Ok(Request::Version));
        assert_eq!(parsed(&["--config", "/a", "--help"]), Ok(Request::Help));
        for wrong in [&["--config"][..], &["--hang-seconds", "0"], &["--hang-seconds", "x"], &["token"]] {
            assert!(parsed(wrong).unwrap_err().contains("-"), "{wrong:?}");
        }
    }
}
