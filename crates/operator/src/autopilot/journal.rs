//! One decision, told once: a log line and an event.

use autopilot::Tell;
use catalog::Need;
use change::{Key, Reason};
use cluster::event::Told;

/// What to say about a decision, and whether it is a warning.
pub(super) fn told(key: &Key, tell: &Tell) -> Told {
    let (warning, reason, note) = match tell {
        Tell::Applied => (false, "AssetApplied", format!("{key} was applied")),
        Tell::Adopted { changes } => {
            let note = format!(
                "{key} was somebody else's and is kept from now on; a copy was made before. {}",
                changed(changes)
            );
            (false, "Adopted", note)
        }
        Tell::TakenOver { changes } => {
            let note = format!("{key} was our predecessor's and is kept from now on. {}", changed(changes));
            (false, "TakenOver", note)
        }
        Tell::Pruned { dropped } => {
            (false, "Pruned", format!("{key} was not wanted any more and was deleted{}", lost(dropped)))
        }
        Tell::Buried => (false, "TombstoneDeleted", format!("{key} was made by a former release and was deleted")),
        Tell::HandedBack => {
            let note =
                format!("{key} is not wanted any more and was somebody else's before: it was given back as it is");
            (false, "HandedBack", note)
        }
        Tell::Recreated { dropped } => {
            let note = format!("{key}: somebody deleted it; it was created again{}", lost(dropped));
            (false, "DriftCorrected", note)
        }
        Tell::Corrected { actors, fields } => {
            let who = if actors.is_empty() { "somebody".to_owned() } else { actors.join(", ") };
            let what = if fields.is_empty() { "our entry".to_owned() } else { fields.join(", ") };
            (false, "DriftCorrected", format!("{key}: {who} changed {what}; it was put back"))
        }
        Tell::Held(reason) => {
            let warning =
                !matches!(reason, Reason::Unmanaged | Reason::Paused | Reason::Excluded | Reason::LeftBehind { .. });
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

/// What users had written on an object that is gone.
fn lost(dropped: &[(String, String)]) -> String {
    let lost: Vec<String> = dropped.iter().map(|(key, value)| format!("{key}: {value}")).collect();
    if lost.is_empty() { String::new() } else { format!(", without what was written on it: {}", lost.join("; ")) }
}

/// What was changed about an object that was not ours.
fn changed(changes: &[String]) -> String {
    match changes.is_empty() {
        true => "Nothing was changed about it".to_owned(),
        false => format!("Changed: {}", changes.join(", ")),
    }
}

/// An object that is there, and for which there is no reason any more.
pub(super) fn not_applicable(key: &Key, why: &str) -> Told {
    let note = format!("{key} stays as it is and is not kept any more: {why}");
    tracing::info!("{note}");
    Told { warning: false, reason: "NotApplicable".to_owned(), about: Some(key.clone()), note }
}

/// The user turned everything off.
pub(super) fn off(kept: usize) -> Told {
    let stay = match kept {
        0 => "nothing is kept or created".to_owned(),
        1 => "the object that was kept stays as it is".to_owned(),
        kept => format!("the {kept} objects that were kept stay as they are"),
    };
    let note = format!("the autopilot is off: {stay}; `virtpilot handback` gives everything back");
    tracing::info!("{note}");
    Told { warning: false, reason: "Disabled".to_owned(), about: None, note }
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
