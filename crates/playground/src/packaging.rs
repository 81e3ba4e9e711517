//! The programs that check packages: Helm, and the verifier of bundles for the Operator Lifecycle Manager.

use crate::cache::Cache;
use crate::programs::{Module, Program};
use crate::progress::Progress;
use crate::tools::Tools;
use crate::user_error::UserError;
use std::path::PathBuf;

const PROGRAMS: [Program; 2] = [
    Program { name: "helm", package: "helm.sh/helm/v4/cmd/helm", built_as: "helm" },
    Program {
        name: "operator-verify",
        package: "github.com/operator-framework/api/cmd/operator-verify",
        built_as: "operator-verify",
    },
];

/// The paths of the programs.
#[derive(Debug, Clone)]
pub struct Packaging {
    /// helm
    pub helm: PathBuf,
    /// operator-verify
    pub operator_verify: PathBuf,
}

impl Packaging {
    /// Finds all programs and builds the missing ones.
    pub async fn ensure(progress: Progress) -> Result<Packaging, UserError> {
        let (tools, cache) = (Tools::load()?, Cache::open()?);
        let module = Module {
            kind: "packaging",
            what: "the packaging tools",
            go_mod: &tools.packaging_mod,
            go_sum: &tools.packaging_sum,
            main_go: "",
            tags: "",
            linker_flags: "-s -w".to_owned(),
            programs: &PROGRAMS,
            prebuilt: None,
            instead: "",
        };
        let found = module.ensure(&cache, progress).await?;
        let mut found = found.into_iter();
        let mut next = || found.next().unwrap_or_default();
        Ok(Packaging { helm: next(), operator_verify: next() })
    }
}
