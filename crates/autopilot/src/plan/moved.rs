//! What is different from a plan that somebody saved: then nothing of it is approved.

use super::{Item, Operation, Plan};
use change::Difference;
use std::fmt;

/// One difference between a saved plan and the cluster as it is.
#[derive(Debug, Clone, PartialEq)]
pub enum Moved {
    /// It waited for an approval, and does not any more.
    Gone(Item),
    /// Something else would be done to the object.
    Different {
        /// What was planned.
        planned: Box<Item>,
        /// What would be done now.
        now: Box<Item>,
    },
    /// It was not planned.
    New(Item),
}

/// What has moved since a plan was saved. What needed no approval and is done by now has not: that was the plan.
pub fn moved(saved: &Plan, now: &Plan) -> Vec<Moved> {
    let mut all = Vec::new();
    for planned in saved.items.iter().filter(|item| item.is_pending()) {
        let same = now.items.iter().find(|item| item.object == planned.object && item.is_pending());
        match same {
            None if planned.needs_approval => all.push(Moved::Gone(planned.clone())),
            None => {}
            Some(now) if is_same(planned, now) => {}
            Some(now) => {
                all.push(Moved::Different { planned: planned.clone().into(), now: now.clone().into() });
            }
        }
    }
    let is_new =
        |item: &&Item| !saved.items.iter().any(|planned| planned.object == item.object && planned.is_pending());
    all.extend(now.items.iter().filter(|item| item.is_pending()).filter(is_new).cloned().map(Moved::New));
    all
}

/// Whether exactly the same would be done, and the same is to be approved.
fn is_same(planned: &Item, now: &Item) -> bool {
    let question = |item: &Item| (item.operation, item.digest, item.needs_approval, item.approval);
    question(planned) == question(now) && planned.disruption == now.disruption
}

impl fmt::Display for Moved {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Moved::Gone(item) => {
                write!(f, "{}: nothing waits for an approval any more (planned: {})", item.name(), words(item))
            }
            Moved::New(item) => write!(f, "{}: not planned, and now: {}", item.name(), words(item)),
            Moved::Different { planned, now } => {
                write!(f, "{}: ", now.name())?;
                if planned.operation != now.operation {
                    return write!(f, "planned: {}, and now: {}", words(planned), words(now));
                }
                if planned.disruption != now.disruption {
                    let words = |item: &Item| match item.disruption.as_str() {
                        "" => "restarts no node".to_owned(),
                        disruption => disruption.to_owned(),
                    };
                    return write!(f, "planned: {}, and now: {}", words(planned), words(now));
                }
                let differs = |these: &[Difference], others: &[Difference]| {
                    let differing = these.iter().filter(|difference| !others.contains(difference));
                    differing.map(signed).collect::<Vec<_>>()
                };
                let before = differs(&planned.diff, &now.diff);
                let after = differs(&now.diff, &planned.diff);
                match (before.is_empty(), after.is_empty()) {
                    (true, true) => write!(
                        f,
                        "the same fields, but the object was replaced, a value that is not shown changed, or an approval of it was used"
                    ),
                    _ => write!(f, "planned: {}, and now: {}", list(&before), list(&after)),
                }
            }
        }
    }
}

fn list(differences: &[String]) -> String {
    if differences.is_empty() { "nothing else".to_owned() } else { differences.join("; ") }
}

fn words(item: &Item) -> String {
    match item.operation {
        Some(Operation::Change) if !item.diff.is_empty() => {
            let all: Vec<String> = item.diff.iter().map(signed).collect();
            format!("change {}", all.join("; "))
        }
        Some(operation) => operation.to_string(),
        None => item.why.clone(),
    }
}

fn signed(difference: &Difference) -> String {
    format!("{} {difference}", difference.edit.sign())
}
