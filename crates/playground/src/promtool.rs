//! Prometheus' promtool, which tests the rules of alerts: from the cache or built from source.

use crate::cache::Cache;
use crate::programs::{Module, Program};
use crate::progress::Progress;
use crate::tools::Tools;
use crate::user_error::UserError;
use std::path::PathBuf;

const PROGRAMS: [Program; 1] =
    [Program { name: "promtool", package: "github.com/prometheus/prometheus/cmd/promtool", built_as: "promtool" }];

/// The path of promtool, which is built first if it is not in the cache.
pub async fn ensure(tools: &Tools, cache: &Cache, progress: Progress) -> Result<PathBuf, UserError> {
    let module = Module {
        kind: "promtool",
        what: "promtool",
        go_mod: &tools.promtool_mod,
        go_sum: &tools.promtool_sum,
        main_go: "",
        // Without the clients for service discovery in clouds, which are most of the code and check no rule.
        tags: "remove_all_sd",
        linker_flags: "-s -w".to_owned(),
        programs: &PROGRAMS,
        prebuilt: None,
        instead: "",
    };
    Ok(module.ensure(cache, progress).await?.into_iter().next().unwrap_or_default())
}
