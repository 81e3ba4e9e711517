//! The operator process under test, with its own service account.

use playground::deployment;
use playground::service_account::Account;
use playground::{Playground, UserError, user_error};
use serde_json::Value;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

pub(crate) struct OperatorProcess(Child);

/// As the operator's deployment names it.
const IMAGE: (&str, &str) = ("RELATED_IMAGE_KUBEVIRT_METRICS_EXPORTER", "registry.example/exporter:1");

/// The features of the embedded catalogue.
pub(crate) async fn features() -> Result<Value, UserError> {
    let mut command = tokio::process::Command::new(deployment::binary()?);
    command.args(["features", "--output", "json"]);
    output(command).await
}

/// The objects of a pack as the operator renders them for this cluster.
pub(crate) async fn render(playground: &Playground, pack: Option<&Path>) -> Result<Value, UserError> {
    let mut command = tokio::process::Command::new(deployment::binary()?);
    command.args(["render", "--output", "json", "--kubeconfig"]).arg(playground.kubeconfig());
    if let Some(pack) = pack {
        command.arg("--assets-dir").arg(pack);
    }
    output(command).await
}

/// What a command prints, as JSON.
async fn output(mut command: tokio::process::Command) -> Result<Value, UserError> {
    let failed = |message: String| {
        UserError::new("the asset pack cannot be rendered", "run `virtpilot render`").with_detail(message)
    };
    let output = command.env(IMAGE.0, IMAGE.1).output().await.map_err(|error| failed(error.to_string()))?;
    serde_json::from_slice(&output.stdout).map_err(|_| failed(String::from_utf8_lossy(&output.stderr).into_owned()))
}

impl OperatorProcess {
    /// Starts the operator.
    pub(crate) fn start(account: &Account, pack: Option<&Path>, log: &Path) -> Result<OperatorProcess, UserError> {
        OperatorProcess::start_with(account, pack, None, log)
    }

    /// Starts the fleet; what it logs is added to the file.
    pub(crate) fn start_fleet(account: &Account, log: &Path) -> Result<OperatorProcess, UserError> {
        OperatorProcess::start_fleet_with(account, &[], log)
    }

    /// The same with further arguments.
    pub(crate) fn start_fleet_with(
        account: &Account,
        arguments: &[String],
        log: &Path,
    ) -> Result<OperatorProcess, UserError> {
        let file = std::fs::File::options().create(true).append(true).open(log);
        let log = file.map_err(|error| user_error::io("write", log, error))?;
        let mut command = Command::new(deployment::binary()?);
        command.args(playground::fleet_site::arguments(account)).args(arguments);
        OperatorProcess::spawn(command, log)
    }

    /// Starts only these products.
    pub(crate) fn start_products(account: &Account, products: &str, log: &Path) -> Result<OperatorProcess, UserError> {
        OperatorProcess::start_with(account, None, Some(products), log)
    }

    fn start_with(
        account: &Account,
        pack: Option<&Path>,
        products: Option<&str>,
        log: &Path,
    ) -> Result<OperatorProcess, UserError> {
        let log = std::fs::File::create(log).map_err(|error| user_error::io("write", log, error))?;
        let mut command = Command::new(deployment::binary()?);
        command.args(deployment::arguments(account));
        if let Some(pack) = pack {
            command.arg("--assets-dir").arg(pack);
        }
        if let Some(products) = products {
            command.arg("--products").arg(products);
        }
        OperatorProcess::spawn(command, log)
    }

    /// Starts it as its deployment does.
    fn spawn(mut command: Command, log: std::fs::File) -> Result<OperatorProcess, UserError> {
        command
            .arg("--leader-elect")
            .env("POD_NAME", "virt-platform-autopilot-0")
            .env("LOG_LEVEL", "warn")
            .env(IMAGE.0, IMAGE.1)
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(log);
        let child = command.spawn();
        Ok(OperatorProcess(child.map_err(|error| {
            UserError::new("the operator could not be started", "run `make bench`").with_source(error)
        })?))
    }

    /// Whether it is still running.
    pub(crate) fn is_alive(&mut self) -> bool {
        matches!(self.0.try_wait(), Ok(None))
    }

    /// Its proportional set size in MB.
    pub(crate) fn pss(&self) -> Result<f64, UserError> {
        Ok(self.number("smaps_rollup", "Pss:")? / 1024.0)
    }

    /// Its peak resident set size in MB.
    pub(crate) fn peak_memory(&self) -> Result<f64, UserError> {
        Ok(self.number("status", "VmHWM:")? / 1024.0)
    }

    /// Its CPU time in milliseconds.
    pub(crate) fn cpu(&self) -> Result<f64, UserError> {
        let text = self.read("schedstat")?;
        let nanoseconds =
            text.split_whitespace().next().and_then(|number| number.parse::<f64>().ok()).unwrap_or_default();
        Ok(nanoseconds / 1e6)
    }

    fn number(&self, file: &str, field: &str) -> Result<f64, UserError> {
        let text = self.read(file)?;
        let line = text.lines().find_map(|line| line.strip_prefix(field)).unwrap_or_default();
        Ok(line.split_whitespace().next().and_then(|number| number.parse().ok()).unwrap_or_default())
    }

    fn read(&self, file: &str) -> Result<String, UserError> {
        let path = PathBuf::from(format!("/proc/{}/{file}", self.0.id()));
        std::fs::read_to_string(&path).map_err(|error| user_error::io("read", &path, error))
    }
}

impl Drop for OperatorProcess {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}
