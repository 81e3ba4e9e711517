//! Clients of GitHub's API that others wrote, GitHub among them: from the cache, or downloaded and built.

use crate::cache::Cache;
use crate::fetched::Fetched;
use crate::node::{Node, Script};
use crate::programs::{Module, Program};
use crate::progress::Progress;
use crate::tools::Tools;
use crate::user_error::UserError;
use std::path::PathBuf;

const PROGRAMS: [Program; 1] = [Program { name: "github-client", package: ".", built_as: "github-clients" }];

/// Programs that do with a GitHub what a fleet does. They read `GITHUB_ADDRESS`, `GITHUB_TOKEN`, `GITHUB_KEY` and others.
#[derive(Debug, Clone)]
pub struct Clients {
    /// With GitHub's own client of scale sets: a program.
    pub go: PathBuf,
    /// With octokit: node, and a script for it beside its packages. Nothing if node or npm is not installed and no package with them is
    /// published for this machine.
    pub node: Option<(PathBuf, PathBuf)>,
}

impl Clients {
    /// GitHub's published examples of webhooks, beside the script for node.
    pub fn examples(&self) -> Option<PathBuf> {
        let folder = self.node.as_ref()?.1.parent()?;
        Some(folder.join("node_modules/@octokit/webhooks-examples/api.github.com/index.json"))
    }
}

/// The paths of the clients, which are fetched and built first if they are not in the cache.
pub async fn ensure(tools: &Tools, cache: &Cache, progress: Progress) -> Result<Clients, UserError> {
    let sources = &tools.github_clients;
    let module = Module {
        kind: "github-client-go",
        what: "the Go client of GitHub's scale sets",
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
    let node = match Node::ensure(tools, cache, progress).await? {
        Some(node) => {
            let fetched = Fetched {
                kind: "github-client-node",
                file: "client.mjs",
                inputs: &[&sources.package, &sources.package_lock, &sources.node],
                what: "Node.js client of GitHub",
            };
            let script = Script {
                package: &sources.package,
                package_lock: &sources.package_lock,
                text: &sources.node,
                pinned_in: "tools/github-clients/package-lock.json",
            };
            let script = fetched.ensure(cache, progress, async |folder| script.install(&node, folder).await).await?;
            Some((node.program, script))
        }
        None => None,
    };
    Ok(Clients { go, node })
}
