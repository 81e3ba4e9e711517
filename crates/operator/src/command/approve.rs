//! `approve`: a person's yes to one change that restarts nodes.

use super::print;
use super::target::Target;
use anyhow::bail;

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
    arguments.target.with(async |reached| {
        let add = |before: Option<&str>| {
            let before = before.map(str::trim).unwrap_or_default();
            let is_there = before.split(',').any(|entry| entry.trim() == digest);
            let after = if before.is_empty() { digest.to_owned() } else { format!("{before},{digest}") };
            Ok((!is_there).then_some(after))
        };
        let is_new = reached.annotate(api::annotation::APPROVED, add).await?;
        print(&if is_new { format!("approved {digest}\n") } else { format!("{digest} was approved before\n") })
    })
}
