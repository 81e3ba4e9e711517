//! One running control plane: etcd, API server and controller manager, from nothing or from a seed.

use crate::binaries::Binaries;
use crate::certificates::Certificates;
use crate::components::{self, API_SERVER, CONTROLLER_MANAGER, ETCD, Layout};
use crate::kubeconfig::{self, Credential};
use crate::port;
use crate::process::{Family, Report};
use crate::run_folder;
use crate::trouble::{self, Trouble};
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use std::collections::VecDeque;
use std::path::Path;
use std::time::{Duration, Instant};

/// A quiet machine needs three seconds; a very busy one has needed half a minute.
const PATIENCE: Duration = Duration::from_secs(120);
/// Somebody else may take the port between our asking for it and the server's taking it: then another one is tried.
const ATTEMPTS: usize = 5;

/// A control plane that lives as long as this value.
pub struct ControlPlane {
    family: Family,
    /// Reports that came while we looked for something else.
    unheard: VecDeque<Report>,
    layout: Layout,
    certificates: Certificates,
    address: String,
    client: Client,
}

/// How to start one.
#[derive(Debug)]
pub struct Launch<'a> {
    /// The programs.
    pub binaries: &'a Binaries,
    /// etcd data to begin with.
    pub seed: Option<&'a Path>,
    /// Whether etcd waits for the disk.
    pub fsync: bool,
    /// The API server's port; by default one that is free.
    pub port: Option<u16>,
    /// Whether to leave the folder behind.
    pub keep: bool,
}

impl ControlPlane {
    /// Starts everything and returns when the API server is ready.
    pub async fn start(launch: &Launch<'_>) -> Result<ControlPlane, Trouble> {
        let mut attempt = 1;
        loop {
            let port = match launch.port {
                Some(port) => port::wanted(port)?,
                None => port::free()?,
            };
            match start_on(launch, port).await {
                Err(Failure::PortTaken) if launch.port.is_none() && attempt < ATTEMPTS => attempt += 1,
                Err(Failure::PortTaken) => return Err(port::taken(port)),
                Err(Failure::Other(trouble)) => return Err(trouble),
                Ok(control_plane) => return Ok(control_plane),
            }
        }
    }

    /// A client with the rights of an administrator.
    pub fn client(&self) -> Client {
        self.client.clone()
    }

    /// Where the API server listens.
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

    /// The process id of one of its programs, if it runs.
    pub fn pid(&mut self, name: &str) -> Option<u32> {
        while let Ok(Some(report)) = self.family.poll() {
            self.unheard.push_back(report);
        }
        self.family.pid(name)
    }

    /// Starts another program beside those of the control plane.
    pub fn start_program(&mut self, name: &str, program: &Path, arguments: Vec<String>) -> Result<(), Trouble> {
        self.family.start(self.layout.start(name, program, arguments))
    }

    /// Waits until one of the programs ends by itself, and says which.
    pub async fn broken(&mut self) -> Trouble {
        loop {
            let report = match self.unheard.pop_front() {
                Some(report) => Some(report),
                None => self.family.next().await,
            };
            let Some(report) = report else { break };
            if let Some(trouble) = self.complain(&report) {
                return trouble;
            }
        }
        Trouble::new("the supervisor of the control plane is gone", "somebody ended it; start again")
    }

    /// Ends the programs in good order, so that etcd's data is whole, and hands the data to `keep`.
    pub async fn close(mut self, keep: impl FnOnce(&Path) -> Result<(), Trouble>) -> Result<(), Trouble> {
        for name in [CONTROLLER_MANAGER, API_SERVER, ETCD] {
            self.family.stop(name).await?;
        }
        keep(&self.layout.data())
    }

    fn complain(&self, report: &Report) -> Option<Trouble> {
        let (name, what) = match report {
            Report::Ended { name, status, .. } => (name, status),
            Report::Failed { name, error } => (name, error),
            _ => return None,
        };
        Some(ended(&self.layout, name, what))
    }
}

/// Why a start did not work.
enum Failure {
    PortTaken,
    Other(Trouble),
}

impl From<Trouble> for Failure {
    fn from(trouble: Trouble) -> Self {
        Failure::Other(trouble)
    }
}

async fn start_on(launch: &Launch<'_>, port: u16) -> Result<ControlPlane, Failure> {
    let (mut family, folder) = Family::in_folder(&run_folder::place()?, launch.keep).await?;
    let layout = Layout { folder };
    if let Some(seed) = launch.seed {
        crate::seed::copy(seed, &layout.data())?;
    }
    let certificates = Certificates::make(&layout.folder)?;
    let policy = layout.audit_policy();
    std::fs::write(&policy, components::AUDIT_POLICY).map_err(|error| trouble::io("write", &policy, error))?;
    let address = format!("https://127.0.0.1:{port}");
    let authority = &certificates.authority;
    kubeconfig::write(&layout.kubeconfig(), &address, authority, &Credential::Certificate(&certificates.admin))?;
    let manager = Credential::Certificate(&certificates.controller_manager);
    kubeconfig::write(&layout.controller_manager_kubeconfig(), &address, authority, &manager)?;
    let client = client(&layout.kubeconfig()).await?;

    family.start(components::etcd(launch.binaries, &layout, launch.fsync))?;
    family.start(components::api_server(launch.binaries, &layout, &certificates, port))?;
    let mut control_plane = ControlPlane { family, unheard: VecDeque::new(), layout, certificates, address, client };
    control_plane.wait_until_ready().await?;
    let manager = components::controller_manager(launch.binaries, &control_plane.layout, &control_plane.certificates);
    control_plane.family.start(manager)?;
    Ok(control_plane)
}

impl ControlPlane {
    async fn wait_until_ready(&mut self) -> Result<(), Failure> {
        let begun = Instant::now();
        loop {
            while let Some(report) = self.family.poll()? {
                if let Some(trouble) = self.complain(&report) {
                    let log = std::fs::read_to_string(self.layout.log(API_SERVER)).unwrap_or_default();
                    let taken = log.contains("address already in use");
                    return Err(if taken { Failure::PortTaken } else { Failure::Other(trouble) });
                }
            }
            let request = http::Request::get("/readyz").body(Vec::new()).map_err(|error| internal(&error))?;
            if let Ok(Ok(answer)) =
                tokio::time::timeout(Duration::from_secs(2), self.client.request_text(request)).await
                && answer == "ok"
            {
                return Ok(());
            }
            if begun.elapsed() > PATIENCE {
                return Err(ended(&self.layout, API_SERVER, "is not ready").into());
            }
            tokio::time::sleep(Duration::from_millis(25)).await;
        }
    }
}

/// A client for a kubeconfig.
pub async fn client(kubeconfig: &Path) -> Result<Client, Trouble> {
    let unusable = |error: &dyn std::error::Error| {
        Trouble::new(format!("the kubeconfig {} cannot be used", kubeconfig.display()), "start the playground again")
            .because(error.to_string())
    };
    let file = Kubeconfig::read_from(kubeconfig).map_err(|error| unusable(&error))?;
    let mut config =
        Config::from_custom_kubeconfig(file, &KubeConfigOptions::default()).await.map_err(|error| unusable(&error))?;
    // It is on this machine; a proxy that the environment names for the rest of the world would not find it.
    config.proxy_url = None;
    Client::try_from(config).map_err(|error| unusable(&error))
}

/// A program ended that should run: its last words tell why.
fn ended(layout: &Layout, name: &str, what: &str) -> Trouble {
    let log = layout.log(name);
    let text = std::fs::read_to_string(&log).unwrap_or_default();
    if text.contains("no space left on device") {
        return trouble::disk_full(&layout.folder);
    }
    let lines: Vec<&str> = text.lines().rev().take(5).collect();
    let tail: Vec<String> = lines.into_iter().rev().map(|line| line.chars().take(300).collect()).collect();
    Trouble::new(format!("{name} ended: {what}"), "read its last lines above; run with --keep to keep all logs")
        .because(tail.join("\n"))
}

fn internal(error: &dyn std::error::Error) -> Trouble {
    Trouble::new(error.to_string(), "this is a bug, please report it")
}
