//! A plan as JSON, printed or saved in a file.

use anyhow::{Context, bail};
use autopilot::Plan;
use change::Digest;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::collections::BTreeSet;
use std::path::Path;

/// What the file says it is.
const KIND: &str = "VirtpilotPlan";
/// The format of the file; another one cannot be read.
const FORMAT: u32 = 1;

/// A plan, and what it was made for.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct Document {
    kind: String,
    format: u32,
    /// The version of the program that made it.
    version: String,
    /// The digest of the asset pack.
    pub(crate) catalogue: String,
    /// The uid of the cluster's HyperConverged; nothing if it was made without a cluster.
    pub(crate) cluster: Option<String>,
    /// The only asset it is about, if it is about one.
    pub(crate) asset: Option<String>,
    summary: String,
    #[serde(flatten)]
    pub(crate) plan: Plan,
}

impl Document {
    /// A plan of this program; with an asset only what is about it.
    pub(crate) fn new(mut plan: Plan, catalogue: String, cluster: Option<String>, asset: Option<String>) -> Document {
        if let Some(asset) = &asset {
            // Many deletions have one approval: whoever sees one of them sees all.
            let of_asset = plan.items.iter().filter(|item| item.asset == *asset);
            let approvals: BTreeSet<Digest> = of_asset.filter_map(|item| item.approval).collect();
            let is_shared = |approval: Option<Digest>| approval.is_some_and(|digest| approvals.contains(&digest));
            plan.items.retain(|item| item.asset == *asset || is_shared(item.approval));
        }
        Document {
            kind: KIND.to_owned(),
            format: FORMAT,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            catalogue,
            cluster,
            asset,
            summary: plan.to_string(),
            plan,
        }
    }

    pub(crate) fn json(&self) -> anyhow::Result<String> {
        Ok(format!("{}\n", serde_json::to_string_pretty(self)?))
    }

    /// Reads a saved plan.
    pub(crate) fn read(path: &Path) -> anyhow::Result<Document> {
        let file = path.display();
        let text = std::fs::read_to_string(path).with_context(|| {
            format!("could not read {file}; give the file that \"virtpilot plan --out FILE\" wrote")
        })?;
        let not_a_plan = || format!("{file} is not a plan; save one with \"virtpilot plan --out {file}\"");
        let value: Value = serde_json::from_str(&text).with_context(not_a_plan)?;
        if value["kind"] != KIND {
            bail!("{}", not_a_plan());
        }
        if value["format"] != FORMAT {
            bail!(
                "{file} is a plan of format {}, written by version {}; this version reads format {FORMAT}; save it again",
                value["format"],
                value["version"]
            );
        }
        serde_json::from_value(value).with_context(not_a_plan)
    }
}
