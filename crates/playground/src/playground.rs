//! A playground: a control plane with real CRDs, populated with a scene.

use crate::audit::AuditLog;
use crate::binaries::Binaries;
use crate::cache::Cache;
use crate::certificates::Certificates;
use crate::control_plane::{ControlPlane, Launch};
use crate::crds::Crds;
use crate::machine_config_operator::{self, MachineConfigOperator};
use crate::progress::Progress;
use crate::scene::{self, Scene};
use crate::service_account::{self, Account};
use crate::slot::Slot;
use crate::status_writer::{self, StatusWriter};
use crate::tools::Tools;
use crate::user_error::{self, UserError};
use crate::{files, owned_folder, run_folder, seed};
use kube::Client;
use mco_stand_in::Timing;
use std::path::{Path, PathBuf};

/// How to start a playground.
#[derive(Debug, Clone)]
pub struct Options {
    /// What it is populated with; `None` means only the CRDs of the default variants.
    pub scene: Option<Scene>,
    /// Whether etcd calls fsync: on for benchmarks, off for tests.
    pub fsync: bool,
    /// The API server's port; by default a free one.
    pub port: Option<u16>,
    /// Whether to keep the folder with all logs.
    pub keep: bool,
    /// Whether to wait while other playgrounds use all cores of this machine.
    pub wait_for_slot: bool,
}

impl Options {
    /// For a benchmark: with fsync, as on a real cluster, and without waiting for a slot.
    pub fn for_bench(scene: Option<Scene>) -> Options {
        Options { scene, fsync: true, port: None, keep: false, wait_for_slot: false }
    }

    /// For a test: with this scene, without fsync, limited to the number of cores.
    pub fn for_test(scene: Scene) -> Options {
        Options { scene: Some(scene), fsync: false, port: None, keep: false, wait_for_slot: true }
    }
}

/// A running playground; it ends when this value is dropped or this process dies.
pub struct Playground {
    control_plane: ControlPlane,
    binaries: Binaries,
    _slot: Option<Slot>,
}

impl Playground {
    /// Fills the cache with everything a playground needs.
    pub async fn prepare(scene: Option<&Scene>, progress: Progress) -> Result<(Cache, Binaries, PathBuf), UserError> {
        let (tools, cache) = (Tools::load()?, Cache::open()?);
        let binaries = Binaries::ensure(&tools, &cache, progress).await?;
        let crds = Crds::ensure(&tools, &cache, progress).await?;
        let variants = scene.map(Scene::variants).unwrap_or_default();
        let seed = seed::ensure(&binaries, &crds, &variants, &cache, progress).await?;
        Ok((cache, binaries, seed))
    }

    /// Starts a playground and sets up its scene.
    pub async fn start(options: &Options, progress: Progress) -> Result<Playground, UserError> {
        owned_folder::remove_abandoned(&run_folder::parent()?, run_folder::PREFIX);
        let (cache, binaries, seed) = Playground::prepare(options.scene.as_ref(), progress).await?;
        let slot = if options.wait_for_slot { Some(Slot::take(&cache).await?) } else { None };
        let mut step = progress.step("starting the control plane");
        let launch = Launch {
            binaries: &binaries,
            seed: Some(&seed),
            fsync: options.fsync,
            port: options.port,
            keep: options.keep,
        };
        let control_plane = ControlPlane::start(&launch).await?;
        if let Some(scene) = &options.scene {
            step.update("setting up the scene");
            scene::apply(&control_plane.client(), scene).await?;
        }
        step.done("ready");
        let playground = Playground { control_plane, binaries, _slot: slot };
        playground.write_scripts()?;
        Ok(playground)
    }

    /// A client with administrator rights.
    pub fn client(&self) -> Client {
        self.control_plane.client()
    }

    /// A service account with its own kubeconfig and client.
    pub async fn account(&self, namespace: &str, name: &str) -> Result<Account, UserError> {
        service_account::account(&self.control_plane, namespace, name).await
    }

    /// Starts the stand-in of the machine-config operator: it renders MachineConfigs and updates nodes.
    pub async fn start_machine_config_operator(&self, timing: Timing) -> Result<MachineConfigOperator, UserError> {
        machine_config_operator::start(self, timing).await
    }

    /// Writes the statuses of objects whose operators it does not have, as the stand-in of the machine-config operator does, too.
    pub fn start_status_writer(&self) -> StatusWriter {
        status_writer::start(&self.client())
    }

    /// The programs of the control plane.
    pub fn binaries(&self) -> &Binaries {
        &self.binaries
    }

    /// The API server's address.
    pub fn address(&self) -> &str {
        self.control_plane.address()
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.control_plane.layout().kubeconfig()
    }

    /// The folder that holds all its files.
    pub fn folder(&self) -> &Path {
        &self.control_plane.layout().folder
    }

    /// The audit log of its API server.
    pub fn audit_log(&self) -> AuditLog {
        AuditLog::at(self.control_plane.layout().audit_log())
    }

    /// The certificates of its control plane.
    pub(crate) fn certificates(&self) -> &Certificates {
        self.control_plane.certificates()
    }

    /// The process id of one of its programs; for the names see [`crate::components`].
    pub fn pid(&mut self, name: &str) -> Option<u32> {
        self.control_plane.pid(name)
    }

    /// Starts another program that ends with the playground; its output goes to a log in the folder.
    pub fn start_program(&mut self, name: &str, program: &Path, arguments: Vec<String>) -> Result<(), UserError> {
        self.control_plane.start_program(name, program, arguments)
    }

    /// Stops the control plane, saves a copy of etcd's data in a folder, and starts it again.
    pub async fn save(&mut self, folder: &Path) -> Result<(), UserError> {
        self.control_plane.restart(&self.binaries, |data| seed::copy(data, folder)).await
    }

    /// Starts etcd again, after somebody has killed it.
    pub fn start_etcd(&mut self) -> Result<(), UserError> {
        self.control_plane.start_etcd(&self.binaries)
    }

    /// Stops the control plane, replaces etcd's data with a saved copy, and starts it again, as an administrator restores a cluster.
    pub async fn restore(&mut self, folder: &Path) -> Result<(), UserError> {
        let replace = |data: &Path| {
            std::fs::remove_dir_all(data).map_err(|error| user_error::io("remove", data, error))?;
            seed::copy(folder, data)
        };
        self.control_plane.restart(&self.binaries, replace).await
    }

    /// Waits until one of its programs ends unexpectedly.
    pub async fn wait_for_failure(&mut self) -> UserError {
        self.control_plane.wait_for_failure().await
    }

    /// Writes the scripts `FOLDER/kubectl` and `FOLDER/requests`.
    fn write_scripts(&self) -> Result<(), UserError> {
        // kubectl's cache is per playground: another one on the same port may serve other kinds.
        let (kubectl, cache) = (quoted(&self.binaries.kubectl), quoted(&self.folder().join("kubectl-cache")));
        let kubectl = format!("{kubectl} --kubeconfig={} --cache-dir={cache}", quoted(&self.kubeconfig()));
        self.write_script("kubectl", &kubectl)?;
        let own = std::env::current_exe().unwrap_or_else(|_| "virtpilot-playground".into());
        self.write_script("requests", &format!("{} requests {}", quoted(&own), quoted(self.folder())))
    }

    fn write_script(&self, name: &str, command: &str) -> Result<(), UserError> {
        files::write_with_mode(&self.folder().join(name), format!("#!/bin/sh\nexec {command} \"$@\"\n"), 0o755)
    }
}

/// Quotes a path for a shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', "'\\''"))
}
