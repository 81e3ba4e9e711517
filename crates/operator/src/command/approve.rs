//! `approve`: records a person's approval of one change that restarts nodes.

use super::print;
use super::target::Target;
use anyhow::bail;
use change::Consent;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The digest of the change, as shown by `virtpilot status` and the event: sha256:...
    digest: String,
    #[command(flatten)]
    target: Target,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let digest = arguments.digest.trim();
    let hex = digest.strip_prefix("sha256:").unwrap_or_default();
    if hex.len() != 64 || !hex.chars().all(|digit| digit.is_ascii_hexdigit() && !digit.is_ascii_uppercase()) {
        bail!(
            "{digest:?} is not a digest; copy it from \"virtpilot status\"; a digest is sha256: followed by 64 hexadecimal digits"
        );
    }
    arguments.target.with(async |reached| {
        let add = |before: Option<&str>| {
            let before = before.map(str::trim).unwrap_or_default();
            let is_listed = Consent::digests(before).any(|entry| entry == digest);
            let after = if before.is_empty() { digest.to_owned() } else { format!("{before},{digest}") };
            Ok((!is_listed).then_some(after))
        };
        let is_new = reached.annotate(api::annotation::APPROVED, add).await?;
        print(&if is_new { format!("approved {digest}\n") } else { format!("{digest} is already approved\n") })
    })
}
