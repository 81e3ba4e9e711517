//! Evaluates one listing of a cluster with the operator's own core and writes off, for `status`, `plan`, `render`, `facts` and `approve`.

use super::published::{self, Published};
use super::skew;
use super::target::{NO_HYPERCONVERGED, Target, absent, on_runtime};
use super::value::boolean;
use crate::failure::Several;
use crate::images;
use crate::pack::Pack;
use anyhow::bail;
use autopilot::{Config, Core, Previews};
use catalog::Catalog;
use change::{Digest, PatchableKinds};
use runtime::{Clock, Discard};
use std::cell::RefCell;
use std::collections::BTreeSet;

/// The cluster, the asset pack, and the operator's flags that change its decisions.
#[derive(clap::Args)]
pub(crate) struct Evaluation {
    #[command(flatten)]
    target: Target,
    #[command(flatten)]
    pack: Pack,
    /// Treat an absent annotation `autopilot` as off; set it as for the operator [default: false]
    #[arg(long, num_args = 0..=1, default_missing_value = "true", value_parser = boolean)]
    opt_in: Option<bool>,
    /// Kinds whose closed fields users may patch, comma-separated; set it as for the operator
    #[arg(long, value_name = "KINDS", value_parser = PatchableKinds::parse)]
    patchable_kinds: Option<PatchableKinds>,
    /// Prune objects that are not wanted any more; set it as for the operator [default: true]
    #[arg(long, num_args = 0..=1, default_missing_value = "true", value_parser = boolean)]
    prune: Option<bool>,
    /// Metrics are served over TLS; set it as for the operator [default: false]
    #[arg(long, num_args = 0..=1, default_missing_value = "true", value_parser = boolean)]
    metrics_secure: Option<bool>,
    /// Warnings that were printed: who evaluates twice reads them once.
    #[arg(skip)]
    warnings: RefCell<BTreeSet<String>>,
}

impl Evaluation {
    fn warn(&self, warning: &str) {
        if self.warnings.borrow_mut().insert(warning.to_owned()) {
            eprintln!("warning: {warning}");
        }
    }

    /// The cluster.
    pub(crate) fn target(&self) -> &Target {
        &self.target
    }

    /// Whether an absent annotation `autopilot` means off.
    pub(crate) fn opt_in(&self) -> bool {
        self.opt_in.unwrap_or(false)
    }

    /// Whether a flag says how to decide: what an operator reports is then not what is asked for.
    pub(crate) fn says_how(&self) -> bool {
        self.pack.is_chosen()
            || self.opt_in.is_some()
            || self.patchable_kinds.is_some()
            || self.prune.is_some()
            || self.metrics_secure.is_some()
    }

    /// The namespace of the HyperConverged.
    pub(crate) fn namespace(&self) -> &str {
        &self.target.namespace
    }

    /// The catalogue of the asset pack.
    pub(crate) fn catalog(&self) -> anyhow::Result<Catalog> {
        self.pack.load()
    }

    /// Evaluates a cluster once. A kind that cannot be listed is reported on standard error, and its objects are unknown.
    pub(crate) fn evaluate(&self, catalog: Catalog) -> anyhow::Result<Core> {
        self.evaluate_with(catalog, Previews::Off, None)
    }

    /// The same, and every apply that is to be made is tried by a dry run: what the server refuses is shown as failed.
    pub(crate) fn evaluate_with_previews(&self, catalog: Catalog) -> anyhow::Result<Core> {
        self.evaluate_with(catalog, Previews::Check, None)
    }

    /// The same, with these dry runs; if digests are given, they count as approved instead of those that the HyperConverged lists.
    pub(crate) fn evaluate_with(
        &self,
        catalog: Catalog,
        previews: Previews,
        approved: Option<BTreeSet<Digest>>,
    ) -> anyhow::Result<Core> {
        let config = Config {
            namespace: self.target.namespace.clone(),
            opt_in: self.opt_in(),
            patchable: self.patchable_kinds.clone().unwrap_or_default(),
            prune: self.prune.unwrap_or(true),
            images: images::from_environment(),
            secure_metrics: self.metrics_secure.unwrap_or(false),
            writes: false,
            previews,
            operator: None,
            approved,
            last_rules: None,
        };
        let core = self.evaluate_as(config.clone(), catalog)?;
        if core.lacks_rules()
            && let Published::Report(report, _) = on_runtime(published::read(&self.target))?
            && report.in_force.is_some()
        {
            // An operator that could read them before goes on with what it read.
            return self.evaluate_as(Config { last_rules: report.in_force, ..config }, self.catalog()?);
        }
        Ok(core)
    }

    fn evaluate_as(&self, config: Config, catalog: Catalog) -> anyhow::Result<Core> {
        let target = &self.target;
        on_runtime(async {
            let server = target.connect().await?;
            let ours = skew::Release::of(&catalog);
            if let Some(warning) = skew::with_leader(&server, &target.namespace, &ours).await {
                self.warn(&warning);
            }
            let mut core = Core::new(config, catalog, Clock::start().now());
            let unlisted = runtime::evaluate(&server, &mut core, &Discard).await?;
            let reports = unlisted
                .iter()
                .map(|unlisted| format!("could not list {}: {}", unlisted.target.kind.kind, unlisted.why));
            let reports: Vec<String> = reports.collect();
            if core.has_evaluated() && !core.has_read_records() {
                let state = api::STATE;
                self.warn(&format!(
                    "could not read ConfigMap {state}; without it, the digests to approve are not known"
                ));
            }
            match core.has_evaluated() {
                true => reports.iter().for_each(|report| self.warn(report)),
                false if !reports.is_empty() => return Err(Several(reports).into()),
                false if !core.serves_hyperconverged() => {
                    bail!("{NO_HYPERCONVERGED}")
                }
                false => bail!("{}", absent(core.hyperconverged())),
            }
            Ok(core)
        })
    }
}
