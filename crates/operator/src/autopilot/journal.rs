//! One decision, told once: a log line and an event.

use autopilot::Tell;
use catalog::Need;
use change::{Key, Reason};
use cluster::event::Told;

/// What to say about a decision, and whether it is a warning.
pub(super) fn told(key: &Key, tell: &Tell) -> Told {
    let (warning, reason, note) = match tell {
        Tell::Applied => (false, "AssetApplied", format!("{key} was applied")),
        Tell::Recreated { dropped } => {
            let lost: Vec<String> = dropped.iter().map(|(key, value)| format!("{key}: {value}")).collect();
            let lost = match lost.is_empty() {
                true => String::new(),
                false => format!(" without what was written on it: {}", lost.join("; ")),
            };
            (false, "DriftCorrected", format!("{key}: somebody deleted it; it was created again{lost}"))
        }
        Tell::Corrected { actors, fields } => {
            let who = if actors.is_empty() { "somebody".to_owned() } else { actors.join(", ") };
            let what = if fields.is_empty() { "our entry".to_owned() } else { fields.join(", ") };
            (false, "DriftCorrected", format!("{key}: {who} changed {what}; it was put back"))
        }
        Tell::Held(reason) => {
            let warning = !matches!(reason, Reason::Unmanaged | Reason::Paused | Reason::Excluded);
            (warning, reason.word(), format!("{key}: {reason}"))
        }
    };
    if warning {
        tracing::warn!(reason, object = %key, "{note}");
    } else {
        tracing::info!(reason, object = %key, "{note}");
    }
    Told { warning, reason: reason.to_owned(), about: Some(key.clone()), note }
}

/// Something that is wrong with the platform as a whole.
pub(super) fn complaint(words: &str) -> Told {
    tracing::warn!("{words}");
    Told { warning: true, reason: "InvalidConfiguration".to_owned(), about: None, note: words.to_owned() }
}

/// Something that assets need and somebody asked for is not there.
pub(super) fn missing(need: &Need, assets: &[String]) -> Told {
    let note = format!("{} cannot be applied: {}", assets.join(", "), need.why());
    tracing::warn!(reason = "CRDMissing", "{note}");
    Told { warning: true, reason: "CRDMissing".to_owned(), about: None, note }
}

/// What was missing has come.
pub(super) fn discovered(need: &Need, assets: &[String]) -> Told {
    let note = format!("the cluster serves {need} now, which {} needs", assets.join(", "));
    tracing::info!(reason = "CRDDiscovered", "{note}");
    Told { warning: false, reason: "CRDDiscovered".to_owned(), about: None, note }
}
