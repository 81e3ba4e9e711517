//! A client of GitLab's API that others wrote: from the cache, or downloaded.

use crate::cache::Cache;
use crate::fetched::Fetched;
use crate::files;
use crate::gitlab::{GitlabStandIn, Setup};
use crate::pip::Package;
use crate::progress::Progress;
use crate::tools::{GitlabClients, Tools};
use crate::user_error::UserError;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The path of the script for python3 with python-gitlab, beside its packages, which are fetched first if they are not in the cache.
pub async fn ensure(tools: &Tools, cache: &Cache, progress: Progress) -> Result<PathBuf, UserError> {
    let sources = &tools.gitlab_clients;
    let fetched = Fetched {
        kind: "gitlab-client-python",
        file: "client.py",
        inputs: &[&sources.requirements, &sources.python],
        what: "Python client of GitLab",
    };
    fetched.ensure(cache, progress, async |folder| install(sources, folder).await).await
}

async fn install(sources: &GitlabClients, folder: &Path) -> Result<(), UserError> {
    let package = Package {
        what: "python-gitlab or a package that it needs",
        requirement: &sources.requirements,
        pinned_in: "tools/gitlab-clients/requirements.txt",
    };
    package.run(&["install", "--only-binary", ":all:", "--target", "."], folder).await?;
    files::write(&folder.join("client.py"), &sources.python)
}

/// Runs the script on a stand-in; what it printed.
pub fn run(script: &Path, stand_in: &GitlabStandIn) -> Result<String, UserError> {
    let failed = |error| UserError::new("the client of GitLab cannot be run", "run again").with_source(error);
    let folder = tempfile::tempdir().map_err(failed)?;
    let authority = folder.path().join("ca.pem");
    files::write(&authority, &stand_in.ca_pem)?;
    let mut command = Command::new("python3");
    command
        .arg(script)
        .env("PYTHONPATH", script.parent().unwrap_or(Path::new(".")))
        .env("GITLAB_ADDRESS", &stand_in.address)
        .env("GITLAB_CA", &authority)
        .env("GITLAB_TOKEN", Setup::TOKEN)
        .env("GITLAB_READER_TOKEN", Setup::READER_TOKEN)
        // Settings of the user for other servers must not count.
        .env("NO_PROXY", "127.0.0.1")
        .env("no_proxy", "127.0.0.1")
        .env_remove("REQUESTS_CA_BUNDLE");
    let output = command.output().map_err(failed)?;
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    match output.status.success() {
        true => Ok(text),
        false => Err(UserError::new("the client of GitLab has failed", "mend the stand-in").with_detail(text)),
    }
}
