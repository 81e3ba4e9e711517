//! What happened, for people who look into a broken promise.

use crate::hypervisor::Operation;

/// A write in words.
pub(super) fn written(effect: &change::Effect) -> String {
    match effect {
        change::Effect::ReplaceStatus { object } => {
            let status = &object["status"];
            let reason = status["conditions"].as_array().and_then(|all| all.last()).map(|last| last["reason"].clone());
            format!("status {} {} {reason:?}", status["phase"], status["vmRef"]["vmId"])
        }
        other => format!("{other:?}"),
    }
}

/// An operation in words.
pub(super) fn shown(operation: &Operation) -> String {
    match operation {
        Operation::Create(blueprint) => format!("create {} {}", blueprint.id.0, blueprint.owner.claim),
        Operation::Configure(blueprint) => format!("configure {} {}", blueprint.id.0, blueprint.owner.claim),
        Operation::Destroy(target) => format!("destroy {} {}", target.id.0, target.owner.claim),
        Operation::Start(target) => format!("start {} {}", target.id.0, target.owner.claim),
        Operation::Addresses(target) => format!("addresses {} {}", target.id.0, target.owner.claim),
        other => format!("{other:?}"),
    }
}
