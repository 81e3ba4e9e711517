//! `approve`: a person's yes to one change that restarts nodes.

use super::print;
use super::target::{Reached, Target};
use anyhow::bail;
use cluster::Permit;
use cluster::act::{self, Act};
use std::collections::BTreeMap;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The digest `virtpilot status` and the event show: sha256:...
    digest: String,
    #[command(flatten)]
    target: Target,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let digest = arguments.digest.trim();
    let hex = digest.strip_prefix("sha256:").unwrap_or_default();
    if hex.len() != 64 || !hex.chars().all(|letter| letter.is_ascii_hexdigit() && !letter.is_ascii_uppercase()) {
        bail!(
            "{digest:?} is no digest\n  fix: copy it from `virtpilot status`; it is sha256: and 64 hexadecimal digits"
        );
    }
    arguments.target.with(async |Reached { server, key, served, hco, .. }| {
        let annotations = hco.metadata.annotations.unwrap_or_default();
        let before = annotations.get(api::annotation::APPROVED).map(|text| text.trim()).unwrap_or_default();
        if before.split(',').any(|entry| entry.trim() == digest) {
            return print(&format!("{digest} was approved before\n"));
        }
        let after = if before.is_empty() { digest.to_owned() } else { format!("{before},{digest}") };
        let act = Act::Annotate {
            annotations: BTreeMap::from([(api::annotation::APPROVED.to_owned(), after)]),
            resource_version: hco.metadata.resource_version.unwrap_or_default(),
        };
        act::act(&server, &Permit::person(), &served, &key, act, 0).await?;
        print(&format!("approved {digest}\n"))
    })
}
