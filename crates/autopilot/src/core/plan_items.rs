//! What is known of one object, as an item of a plan.

use super::Core;
use super::managed::Managed;
use super::planning::{Findings, Stage};
use crate::plan::{Item, ItemState, Operation, Source, state_of};
use crate::status::{LineState, ObjectState, StatusLine};
use change::consent::Needed;
use change::restarts::NodeEffect;
use change::{Key, Reason, Restarts};

impl Core {
    /// The place of an object in the order of writes: what is removed comes last.
    pub(crate) fn order_of(&self, key: &Key) -> (bool, i64) {
        let object = self.objects.get(key);
        object.map_or((false, i64::MAX), |object| (object.removal.is_some(), object.order))
    }

    /// One line of the status as an item; nothing if there is nothing to do and nothing to report.
    pub(crate) fn item(&self, line: &StatusLine) -> Option<Item> {
        let bare = |state: ItemState, why: String| Some(Item::bare(&line.asset, line.key.clone(), state, why));
        let state = match &line.state {
            LineState::Object(state) => state,
            LineState::Unclear(why) => return bare(ItemState::Held, why.to_string()),
            LineState::Error(why) => return bare(ItemState::Failed, why.clone()),
            LineState::NotWanted(_) | LineState::Governed { .. } | LineState::NotApplicable(_) => return None,
        };
        let object = line.key.as_ref().and_then(|key| self.objects.get(key));
        let Some(object) = object else { return bare(ItemState::Failed, line.state.to_string()) };
        let held = match state {
            ObjectState::Held(reason) => Some(reason),
            ObjectState::Unknown => return bare(ItemState::Failed, line.state.to_string()),
            ObjectState::Deleting => return bare(ItemState::Held, line.state.to_string()),
            _ => None,
        };
        if object.intent.is_none() {
            let mut item = Item::bare(&line.asset, line.key.clone(), state_of(held?), held?.to_string());
            item.operation = object.removal.map(|_| Operation::Delete).filter(|_| item.state == ItemState::Waiting);
            return Some(item);
        }
        self.item_of(line, object, held)
    }

    fn item_of(&self, line: &StatusLine, object: &Managed, held: Option<&Reason>) -> Option<Item> {
        let intent = object.intent.as_ref()?;
        let mut item = Item::bare(&line.asset, line.key.clone(), ItemState::Ready, String::new());
        item.operation = Some(intent.operation);
        item.impact = Some(object.object.impact);
        if let Some(reason) = held {
            // An override is refused, and something else is done in spite of that.
            let state = if intent.is_held { state_of(reason) } else { ItemState::Ready };
            (item.state, item.why) = (state, reason.to_string());
            item.approval = reason.asked().copied().filter(|_| item.state == ItemState::Waiting);
            item.needs_approval = matches!(reason, Reason::NeedsApproval { .. } | Reason::ManyDeletions { .. });
        }
        // What nobody has to agree to restarts no node.
        let is_waived = self.platform.consent.is_waived(Needed::ApprovalOrPolicy);
        let is_gated = intent.is_approved || is_waived || item.state == ItemState::Waiting;
        let outlook = self.outlook(&object.object.key).filter(|_| is_gated);
        match &intent.stage {
            // It is as it should be, apart from what is refused.
            Stage::Unchanged if !intent.is_held => {
                (item.state, item.operation) = (state_of(held?), None);
            }
            Stage::Unchanged => item.operation = Some(Operation::Record),
            Stage::Refused(message) => {
                let reason = Reason::RefusedByServer { message: message.clone() };
                (item.state, item.why) = (ItemState::Failed, reason.to_string());
            }
            Stage::Done(Findings { diff, source, digest }) => {
                (item.diff, item.source, item.digest) = (diff.clone(), source.clone(), Some(*digest));
                let is_shown = *source == Source::Server || matches!(source, Source::Local { .. });
                let restarts = outlook.as_ref().is_some_and(|outlook| !outlook.is_running);
                if diff.is_empty() && is_shown && item.operation == Some(Operation::Change) && !restarts {
                    item.operation = Some(Operation::Record);
                }
            }
            Stage::Sent | Stage::Answered(_) | Stage::Unanswered(_) => {
                (item.state, item.why) =
                    (ItemState::Failed, "it changes too fast to be compared; try again".to_owned());
            }
        }
        item.digest = item.approval.or(item.digest);
        if item.operation != Some(Operation::Record) {
            let restarts = outlook.map(|outlook| outlook.restarts);
            item.restarts = restarts.filter(|restarts| restarts.effect != NodeEffect::None);
            item.disruption = item.restarts.as_ref().map(ToString::to_string).unwrap_or_default();
            item.cost = item.restarts.as_ref().map(Restarts::cost).unwrap_or_default();
        }
        Some(item)
    }
}
