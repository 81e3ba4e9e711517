//! The operator under test, as it is deployed: its own account, its own process.

use playground::service_account::Account;
use playground::{Playground, Trouble, trouble};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

pub(crate) struct Subject(Child);

/// What the operator wants of a pack on this cluster, as it prints it itself.
pub(crate) async fn render(playground: &Playground, pack: Option<&Path>) -> Result<Value, Trouble> {
    let mut command = tokio::process::Command::new(binary()?);
    command.args(["render", "--output", "json", "--kubeconfig"]).arg(playground.kubeconfig());
    if let Some(pack) = pack {
        command.arg("--assets-dir").arg(pack);
    }
    let failed = |words: String| Trouble::new("the pack cannot be rendered", "run `virtpilot render`").because(words);
    let output = command.output().await.map_err(|error| failed(error.to_string()))?;
    serde_json::from_slice(&output.stdout).map_err(|_| failed(String::from_utf8_lossy(&output.stderr).into_owned()))
}

/// The binary beside this one.
fn binary() -> Result<PathBuf, Trouble> {
    let own = std::env::current_exe();
    Ok(own
        .map_err(|error| Trouble::new("cannot find this program", "run again").from(error))?
        .with_file_name("virtpilot"))
}

impl Subject {
    /// Starts it.
    pub(crate) fn start(account: &Account, pack: Option<&Path>, log: &Path) -> Result<Subject, Trouble> {
        let log = std::fs::File::create(log).map_err(|error| trouble::io("write", log, error))?;
        let mut command = Command::new(binary()?);
        command.args(["run", "--metrics-bind-address=0", "--health-probe-bind-address=0", "--kubeconfig"]);
        command
            .arg(&account.kubeconfig)
            .env("LOG_LEVEL", "warn")
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        if let Some(pack) = pack {
            command.arg("--assets-dir").arg(pack);
        }
        let started = command.spawn();
        Ok(Subject(
            started.map_err(|error| Trouble::new("the operator cannot be started", "run `make bench`").from(error))?,
        ))
    }

    /// Whether it still runs; nobody starts it again.
    pub(crate) fn is_alive(&mut self) -> bool {
        matches!(self.0.try_wait(), Ok(None))
    }

    /// Memory that only it uses and its part of what it shares, in MB.
    pub(crate) fn pss(&self) -> Result<f64, Trouble> {
        Ok(self.number("smaps_rollup", "Pss:")? / 1024.0)
    }

    /// The most memory it ever had, in MB.
    pub(crate) fn most_memory(&self) -> Result<f64, Trouble> {
        Ok(self.number("status", "VmHWM:")? / 1024.0)
    }

    /// How much of a processor it has used, in milliseconds.
    pub(crate) fn cpu(&self) -> Result<f64, Trouble> {
        let text = self.read("schedstat")?;
        let nanoseconds =
            text.split_whitespace().next().and_then(|number| number.parse::<f64>().ok()).unwrap_or_default();
        Ok(nanoseconds / 1e6)
    }

    fn number(&self, file: &str, field: &str) -> Result<f64, Trouble> {
        let text = self.read(file)?;
        let line = text.lines().find_map(|line| line.strip_prefix(field)).unwrap_or_default();
        Ok(line.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or_default())
    }

    fn read(&self, file: &str) -> Result<String, Trouble> {
        let path = PathBuf::from(format!("/proc/{}/{file}", self.0.id()));
        std::fs::read_to_string(&path).map_err(|error| trouble::io("read", &path, error))
    }
}

impl Drop for Subject {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
