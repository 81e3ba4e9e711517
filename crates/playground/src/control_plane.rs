//! A running control plane: etcd, API server and controller manager, empty or from a seed.

use crate::binaries::Binaries;
use crate::certificates::Certificates;
use crate::components::{self, API_SERVER, CONTROLLER_MANAGER, ETCD, Layout};
use crate::files;
use crate::kubeconfig::{self, Credential};
use crate::poll;
use crate::port;
use crate::process::{Report, SupervisorHandle};
use crate::run_folder;
use crate::user_error::{self, UserError};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use std::collections::VecDeque;
use std::path::Path;
use std::time::Duration;

/// An idle machine needs three seconds; a very busy one has needed half a minute.
const TIMEOUT: Duration = Duration::from_secs(120);
/// Another process may take the free port before the API server does; then another port is tried.
const ATTEMPTS: usize = 5;

/// A running control plane; it ends when this value is dropped.
pub struct ControlPlane {
    supervisor: SupervisorHandle,
    /// Reports that were received but not handled yet.
    unhandled: VecDeque<Report>,
    layout: Layout,
    certificates: Certificates,
    address: String,
    port: u16,
    fsync: bool,
    client: Client,
}

/// How to start a control plane.
#[derive(Debug)]
pub struct Launch<'a> {
    /// The programs.
    pub binaries: &'a Binaries,
    /// The initial etcd data.
    pub seed: Option<&'a Path>,
    /// Whether etcd calls fsync.
    pub fsync: bool,
    /// The API server's port; by default a free one.
    pub port: Option<u16>,
    /// Whether to keep the folder.
    pub keep: bool,
}

impl ControlPlane {
    /// Starts all programs and returns when the API server is ready.
    pub async fn start(launch: &Launch<'_>) -> Result<ControlPlane, UserError> {
        let mut attempt = 1;
        loop {
            let port = match launch.port {
                Some(port) => port::requested(port)?,
                None => port::free()?,
            };
            match start_on(launch, port).await {
                Err(StartError::PortInUse) if launch.port.is_none() && attempt < ATTEMPTS => attempt += 1,
                Err(StartError::PortInUse) => return Err(port::in_use(port)),
                Err(StartError::Other(error)) => return Err(error),
                Ok(control_plane) => return Ok(control_plane),
            }
        }
    }

    /// A client with administrator rights.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// The API server's address.
    pub fn address(&self) -> &str {
        &self.address
    }

    /// Its files.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// Its keys and certificates.
    pub fn certificates(&self) -> &Certificates {
        &self.certificates
    }

    /// The process id of one of its programs, if it is running.
    pub fn pid(&mut self, name: &str) -> Option<u32> {
        while let Ok(Some(report)) = self.supervisor.poll() {
            self.unhandled.push_back(report);
        }
        self.supervisor.pid(name)
    }

    /// Starts an additional program.
    pub fn start_program(&mut self, name: &str, program: &Path, arguments: Vec<String>) -> Result<(), UserError> {
        self.supervisor.start(self.layout.start(name, program, arguments))
    }

    /// Waits until one of the programs ends unexpectedly.
    pub async fn wait_for_failure(&mut self) -> UserError {
        loop {
            let report = match self.unhandled.pop_front() {
                Some(report) => Some(report),
                None => self.supervisor.next().await,
            };
            let Some(report) = report else { break };
            if let Some(error) = self.failure_in(&report) {
                return error;
            }
        }
        UserError::new("the supervisor of the control plane exited unexpectedly", "start the playground again")
    }

    /// Stops the programs in order, so that etcd's data is consistent, and passes the data folder to `copy`.
    pub async fn shut_down(mut self, copy: impl FnOnce(&Path) -> Result<(), UserError>) -> Result<(), UserError> {
        self.stop_all().await?;
        copy(&self.layout.data())
    }

    /// Stops the programs, lets `change` save or replace etcd's data folder, and starts them again at the same address.
    pub async fn restart(
        &mut self,
        binaries: &Binaries,
        change: impl FnOnce(&Path) -> Result<(), UserError>,
    ) -> Result<(), UserError> {
        self.stop_all().await?;
        change(&self.layout.data())?;
        match self.start_all(binaries).await {
            Err(StartError::PortInUse) => Err(port::in_use(self.port)),
            Err(StartError::Other(error)) => Err(error),
            Ok(()) => Ok(()),
        }
    }

    /// Starts etcd again, after somebody has killed it.
    pub fn start_etcd(&mut self, binaries: &Binaries) -> Result<(), UserError> {
        self.supervisor.start(components::etcd(binaries, &self.layout, self.fsync))
    }

    async fn stop_all(&mut self) -> Result<(), UserError> {
        for name in [CONTROLLER_MANAGER, API_SERVER, ETCD] {
            self.supervisor.stop(name).await?;
        }
        Ok(())
    }

    /// Starts all programs and returns when the API server is ready.
    async fn start_all(&mut self, binaries: &Binaries) -> Result<(), StartError> {
        self.supervisor.start(components::etcd(binaries, &self.layout, self.fsync))?;
        self.supervisor.start(components::api_server(binaries, &self.layout, &self.certificates, self.port))?;
        self.wait_until_ready().await?;
        let manager = components::controller_manager(binaries, &self.layout, &self.certificates);
        Ok(self.supervisor.start(manager)?)
    }

    fn failure_in(&self, report: &Report) -> Option<UserError> {
        let (name, reason) = match report {
            Report::Ended { name, status, .. } => (name, status),
            Report::Failed { name, error } => (name, error),
            _ => return None,
        };
        Some(program_failed(&self.layout, name, reason))
    }
}

/// Why a start failed.
enum StartError {
    PortInUse,
    Other(UserError),
}

impl From<UserError> for StartError {
    fn from(error: UserError) -> Self {
        StartError::Other(error)
    }
}

async fn start_on(launch: &Launch<'_>, port: u16) -> Result<ControlPlane, StartError> {
    let (supervisor, folder) = SupervisorHandle::in_folder(&run_folder::parent()?, launch.keep).await?;
    let layout = Layout { folder };
    if let Some(seed) = launch.seed {
        crate::seed::copy(seed, &layout.data())?;
    }
    let certificates = Certificates::create(&layout.folder)?;
    files::write(&layout.audit_policy(), components::AUDIT_POLICY)?;
    let address = format!("https://127.0.0.1:{port}");
    let authority = &certificates.authority;
    kubeconfig::write(&layout.kubeconfig(), &address, authority, &Credential::Certificate(&certificates.admin))?;
    let manager = Credential::Certificate(&certificates.controller_manager);
    kubeconfig::write(&layout.controller_manager_kubeconfig(), &address, authority, &manager)?;
    let client = client(&layout.kubeconfig()).await?;

    let mut control_plane = ControlPlane {
        supervisor,
        unhandled: VecDeque::new(),
        layout,
        certificates,
        address,
        port,
        fsync: launch.fsync,
        client,
    };
    control_plane.start_all(launch.binaries).await?;
    Ok(control_plane)
}

impl ControlPlane {
    async fn wait_until_ready(&mut self) -> Result<(), StartError> {
        let ready = poll::with_timeout(Duration::from_millis(25), TIMEOUT, async || {
            while let Some(report) = self.supervisor.poll()? {
                if let Some(error) = self.failure_in(&report) {
                    let log = std::fs::read_to_string(self.layout.log(API_SERVER)).unwrap_or_default();
                    let in_use = log.contains("address already in use");
                    return Err(if in_use { StartError::PortInUse } else { StartError::Other(error) });
                }
            }
            let request = http::Request::get("/readyz").body(Vec::new()).map_err(|error| internal(&error))?;
            let response = tokio::time::timeout(Duration::from_secs(2), self.client.request_text(request)).await;
            Ok(matches!(response, Ok(Ok(text)) if text == "ok").then_some(()))
        });
        match ready.await? {
            Some(()) => Ok(()),
            None => Err(program_failed(&self.layout, API_SERVER, "is not ready").into()),
        }
    }
}

/// A client from a kubeconfig.
pub async fn client(kubeconfig: &Path) -> Result<Client, UserError> {
    let unusable = |error: &dyn std::error::Error| {
        UserError::new(format!("the kubeconfig {} cannot be used", kubeconfig.display()), "start the playground again")
            .with_detail(error.to_string())
    };
    let file = Kubeconfig::read_from(kubeconfig).map_err(|error| unusable(&error))?;
    let mut config =
        Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.map_err(|error| unusable(&error))?;
    // The server is on this machine, so a proxy from the environment must not be used.
    config.proxy_url = None;
    Client::try_from(config).map_err(|error| unusable(&error))
}

/// The error for a program that should be running, with the end of its log.
fn program_failed(layout: &Layout, name: &str, reason: &str) -> UserError {
    let log = layout.log(name);
    let text = std::fs::read_to_string(&log).unwrap_or_default();
    if text.contains("no space left on device") {
        return user_error::disk_full(&layout.folder);
    }
    let lines: Vec<&str> = text.lines().rev().take(5).collect();
    let tail: Vec<String> = lines.into_iter().rev().map(|line| line.chars().take(300).collect()).collect();
    UserError::new(format!("{name} ended: {reason}"), "read its last log lines above; run with --keep to keep all logs")
        .with_detail(tail.join("\n"))
}

fn internal(error: &dyn std::error::Error) -> UserError {
    UserError::new(error.to_string(), "this is a bug, please report it")
}
