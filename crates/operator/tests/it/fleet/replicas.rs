//! Replicas of the fleet, as processes under its role; the log of all is one file.

use super::Fleet;
use crate::operator::{Process, free_port};
use playground::fleet_site::HOME;
use std::process::{Command, Stdio};

impl Fleet {
    /// Kills the operator, if it runs, and starts it as the same pod.
    pub(crate) fn restart(&mut self) -> u16 {
        self.process = None;
        let (process, port) = self.replica("virtpilot-fleet-0");
        self.process = Some(process);
        port
    }

    /// Starts a replica, and returns the port of its probes. The log of all is one file.
    pub(super) fn replica(&self, pod: &str) -> (Process, u16) {
        self.replica_with(pod, "0", None)
    }

    /// The same with metrics at an address, and with traces for a collector.
    pub(crate) fn replica_with(&self, pod: &str, metrics: &str, collector: Option<&str>) -> (Process, u16) {
        let (port, log) = (free_port(), std::fs::File::options().create(true).append(true).open(&self.log).unwrap());
        let mut command = Command::new(env!("CARGO_BIN_EXE_virtpilot"));
        command.args(["run", "--products=fleet", "--leader-elect", "--metrics-bind-address", metrics]);
        command.arg(format!("--namespace={HOME}")).arg(format!("--health-probe-bind-address=127.0.0.1:{port}"));
        command.arg("--kubeconfig").arg(&self.account.kubeconfig);
        command.args(collector.map(|address| format!("--otlp-endpoint=http://{address}")));
        command.env("LOG_LEVEL", "trace").env("POD_NAME", pod).stdin(Stdio::null()).stderr(log);
        (Process::of(&mut command), port)
    }

    /// Starts a replica whose bootstrap endpoint and receiver of webhooks are on these ports.
    pub(crate) fn replica_that_serves(&self, pod: &str, bootstrap: u16, webhooks: u16) -> Process {
        self.replica_with_all_servers(pod, bootstrap, webhooks, "0")
    }

    /// The same with metrics at an address.
    pub(crate) fn replica_with_all_servers(&self, pod: &str, bootstrap: u16, webhooks: u16, metrics: &str) -> Process {
        let log = std::fs::File::options().create(true).append(true).open(&self.log).unwrap();
        let mut command = Command::new(env!("CARGO_BIN_EXE_virtpilot"));
        command.args(["run", "--products=fleet", "--leader-elect", "--metrics-bind-address", metrics]);
        command.arg(format!("--namespace={HOME}")).arg("--health-probe-bind-address=0");
        command.arg("--kubeconfig").arg(&self.account.kubeconfig);
        command.arg(format!("--webhook-bind-address=:{webhooks}"));
        command.arg(format!("--bootstrap-bind-address=:{bootstrap}"));
        // Another address than that of the clients, as another pod has.
        command.env("POD_IP", "127.0.0.2");
        command.env("BOOTSTRAP_ADDRESS", format!("localhost:{bootstrap}"));
        command.env("LOG_LEVEL", "debug").env("POD_NAME", pod).stdin(Stdio::null()).stderr(log);
        Process::of(&mut command)
    }
}
