//! `approve`: records a person's approval of one change that waits for it.

use super::evaluation::Evaluation;
use super::print;
use anyhow::bail;
use autopilot::{LineState, ObjectState, StatusLine};
use change::{Consent, Digest, Reason};

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The digest of the change, as shown by `virtpilot status` and the event: sha256:...
    digest: String,
    #[command(flatten)]
    evaluation: Evaluation,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let text = arguments.digest.trim();
    let Some(digest) = Digest::parse(text) else {
        bail!(
            "{text:?} is not a digest; copy it from \"virtpilot status\"; a digest is sha256: followed by 64 hexadecimal digits"
        );
    };
    let waiting: Vec<(Option<Digest>, String)> = arguments
        .evaluation
        .evaluate(arguments.evaluation.catalog()?)?
        .status()
        .into_iter()
        .filter_map(|line| asked(&line))
        .collect();
    let is_asked = waiting.iter().any(|(asked, _)| *asked == Some(digest));
    arguments.evaluation.target().with(async |reached| {
        let add = |before: Option<&str>| {
            let before = before.map(str::trim).unwrap_or_default();
            if Consent::digests(before).any(|entry| Digest::parse(entry) == Some(digest)) {
                return Ok(None);
            }
            if !is_asked {
                bail!("{}", refusal(digest, &waiting));
            }
            Ok(Some(if before.is_empty() { digest.to_string() } else { format!("{before},{digest}") }))
        };
        let is_new = reached.annotate(api::annotation::APPROVED, add).await?;
        print(&match (is_new, is_asked) {
            (true, _) => format!("approved {digest}\n"),
            (false, true) => format!("{digest} is already approved\n"),
            (false, false) => format!("{digest} is already approved; nothing waits for it now\n"),
        })
    })
}

/// What a line of the status asks to approve, and for which object; no digest if the operator has not asked yet.
fn asked(line: &StatusLine) -> Option<(Option<Digest>, String)> {
    let LineState::Object(ObjectState::Held(reason)) = &line.state else { return None };
    let object = line.key.as_ref().map_or(line.component.clone(), ToString::to_string);
    let digest = reason.asked().copied();
    (digest.is_some() || matches!(reason, Reason::NeedsApproval { .. })).then_some((digest, object))
}

fn refusal(digest: Digest, waiting: &[(Option<Digest>, String)]) -> String {
    let line = |(digest, object): &(Option<Digest>, String)| match digest {
        Some(digest) => format!("{object} ({digest})"),
        None => format!("{object} (start the operator: it has not asked yet)"),
    };
    let waiting: Vec<String> = waiting.iter().map(line).collect();
    let waiting = if waiting.is_empty() { "nothing".to_owned() } else { waiting.join(", ") };
    format!(
        "nobody asks to approve {digest}; waiting for an approval: {waiting}; a digest changes with the change, and is good for one write"
    )
}
