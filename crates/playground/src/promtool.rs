//! Prometheus' promtool, which tests the rules of alerts: from the cache or built from source.

use crate::cache::{Cache, Key};
use crate::go_build::GoBuild;
use crate::progress::Progress;
use crate::tools::Tools;
use crate::user_error::UserError;
use std::path::PathBuf;

/// Without the clients for service discovery in clouds, which are most of the code and check no rule.
const TAGS: &str = "remove_all_sd";

/// The path of promtool, which is built first if it is not in the cache.
pub async fn ensure(tools: &Tools, cache: &Cache, progress: Progress) -> Result<PathBuf, UserError> {
    let key = Key::of([TAGS, &tools.promtool_mod, &tools.promtool_sum]);
    let program = cache.entry("promtool", &key).join("out/promtool");
    if !program.is_file() {
        let mut step = progress.step("promtool");
        let _lock =
            cache.lock("promtool", &key, || step.message("waiting for another run that is building it")).await?;
        if !program.is_file() {
            let staging = cache.staging_folder("promtool")?;
            let build = GoBuild {
                title: "promtool",
                names: "promtool",
                purpose: "to build promtool, which tests alerts",
                go_mod: &tools.promtool_mod,
                go_sum: &tools.promtool_sum,
                packages: &["github.com/prometheus/prometheus/cmd/promtool"],
                tags: TAGS,
                linker_flags: "-s -w",
            };
            build.run(staging.path(), progress).await?;
            cache.install(staging, "promtool", &key)?;
        }
    }
    Ok(program)
}
