//! A whole playground: a control plane with real CRDs and a scene on it.

use crate::audit::AuditLog;
use crate::binaries::Binaries;
use crate::cache::Cache;
use crate::certificates::Certificates;
use crate::control_plane::{ControlPlane, Launch};
use crate::crds::Crds;
use crate::progress::Progress;
use crate::scene::{self, Scene};
use crate::service_account::{self, Account};
use crate::tools::Tools;
use crate::trouble::{self, Trouble};
use crate::turn::Turn;
use crate::{abandoned, run_folder, seed};
use kube::Client;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// What kind of playground is wanted.
#[derive(Debug, Clone)]
pub struct Options {
    /// What stands on it; nothing but the CRDs of the default variants where it is `None`.
    pub scene: Option<Scene>,
    /// Whether etcd waits for the disk: on for benchmarks, off for tests.
    pub fsync: bool,
    /// The API server's port; by default one that is free.
    pub port: Option<u16>,
    /// Whether to leave the folder with all logs behind.
    pub keep: bool,
    /// Whether to wait until few others run on this machine.
    pub in_turn: bool,
}

impl Options {
    /// For a test: this scene, fast, and in turn with the other tests.
    pub fn for_test(scene: Scene) -> Options {
        Options { scene: Some(scene), fsync: false, port: None, keep: false, in_turn: true }
    }
}

/// A playground that lives as long as this value, and never longer than this process.
pub struct Playground {
    control_plane: ControlPlane,
    binaries: Binaries,
    _turn: Option<Turn>,
}

impl Playground {
    /// Makes sure that everything it is made of is in the cache.
    pub async fn prepare(scene: Option<&Scene>, progress: Progress) -> Result<(Cache, Binaries, PathBuf), Trouble> {
        let (tools, cache) = (Tools::load()?, Cache::open()?);
        let binaries = Binaries::ensure(&tools, &cache, progress).await?;
        let crds = Crds::ensure(&tools, &cache, progress).await?;
        let variants = scene.map(Scene::variants).unwrap_or_default();
        let seed = seed::ensure(&binaries, &crds, &variants, &cache, progress).await?;
        Ok((cache, binaries, seed))
    }

    /// Starts one and sets up its scene.
    pub async fn start(options: &Options, progress: Progress) -> Result<Playground, Trouble> {
        abandoned::sweep(&run_folder::place()?, run_folder::PREFIX);
        let (cache, binaries, seed) = Playground::prepare(options.scene.as_ref(), progress).await?;
        let turn = if options.in_turn { Some(Turn::take(&cache).await?) } else { None };
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
            scene::stage(&control_plane.client(), scene).await?;
        }
        step.done("ready");
        let playground = Playground { control_plane, binaries, _turn: turn };
        playground.write_commands()?;
        Ok(playground)
    }

    /// A client with the rights of an administrator.
    pub fn client(&self) -> Client {
        self.control_plane.client()
    }

    /// A service account with its own kubeconfig and client.
    pub async fn account(&self, namespace: &str, name: &str) -> Result<Account, Trouble> {
        service_account::account(&self.control_plane, namespace, name).await
    }

    /// Where the API server listens.
    pub fn address(&self) -> &str {
        self.control_plane.address()
    }

    /// The administrator's kubeconfig.
    pub fn kubeconfig(&self) -> PathBuf {
        self.control_plane.layout().kubeconfig()
    }

    /// The folder with all its files.
    pub fn folder(&self) -> &Path {
        &self.control_plane.layout().folder
    }

    /// What was asked of its API server.
    pub fn audit_log(&self) -> AuditLog {
        AuditLog::at(self.control_plane.layout().audit_log())
    }

    /// What identifies its parts.
    pub(crate) fn certificates(&self) -> &Certificates {
        self.control_plane.certificates()
    }

    /// The process id of one of its programs, see [`crate::components`].
    pub fn pid(&mut self, name: &str) -> Option<u32> {
        self.control_plane.pid(name)
    }

    /// Starts another program that lives as long as the playground; what it prints goes to a log in the folder.
    pub fn start_program(&mut self, name: &str, program: &Path, arguments: Vec<String>) -> Result<(), Trouble> {
        self.control_plane.start_program(name, program, arguments)
    }

    /// Waits until something of it ends by itself.
    pub async fn broken(&mut self) -> Trouble {
        self.control_plane.broken().await
    }

    /// Short commands to type: `FOLDER/kubectl` and `FOLDER/requests`.
    fn write_commands(&self) -> Result<(), Trouble> {
        // Its cache too goes with the folder: another playground on the same port may serve other kinds.
        let (kubectl, cache) = (quoted(&self.binaries.kubectl), quoted(&self.folder().join("kubectl-cache")));
        let kubectl = format!("{kubectl} --kubeconfig={} --cache-dir={cache}", quoted(&self.kubeconfig()));
        self.write_command("kubectl", &kubectl)?;
        let own = std::env::current_exe().unwrap_or_else(|_| "virtpilot-playground".into());
        self.write_command("requests", &format!("{} requests {}", quoted(&own), quoted(self.folder())))
    }

    fn write_command(&self, name: &str, command: &str) -> Result<(), Trouble> {
        let path = self.folder().join(name);
        std::fs::write(&path, format!("#!/bin/sh\nexec {command} \"$@\"\n"))
            .and_then(|()| std::fs::set_permissions(&path, std::fs::Permissions::from_mode(0o755)))
            .map_err(|error| trouble::io("write", &path, error))
    }
}

/// A path as one word of a shell.
fn quoted(path: &Path) -> String {
    format!("'{}'", path.display().to_string().replace('\'', "'\\''"))
}
