//! A program that prints the traces it receives, with the receiver of the OpenTelemetry Collector: from the cache or built from source.

use crate::cache::Cache;
use crate::programs::{Module, Program};
use crate::progress::Progress;
use crate::tools::Tools;
use crate::user_error::UserError;
use std::path::PathBuf;

const PROGRAMS: [Program; 1] = [Program { name: "otlp-receiver", package: ".", built_as: "otlp-receiver" }];

/// The path of the program, which is built first if it is not in the cache.
pub async fn ensure(tools: &Tools, cache: &Cache, progress: Progress) -> Result<PathBuf, UserError> {
    let module = Module {
        kind: "otlp-receiver",
        what: "the receiver of traces",
        go_mod: &tools.otlp_receiver_mod,
        go_sum: &tools.otlp_receiver_sum,
        main_go: &tools.otlp_receiver_main,
        tags: "",
        linker_flags: "-s -w".to_owned(),
        programs: &PROGRAMS,
        prebuilt: None,
        instead: "",
    };
    Ok(module.ensure(cache, progress).await?.into_iter().next().unwrap_or_default())
}
