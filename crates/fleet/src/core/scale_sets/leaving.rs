//! Scale sets that are not used any more: sessions are closed, and what the fleet has created is deleted.

use super::{Asked, Listening, MADE_AGAIN};
use crate::core::forges::{Call, ForgeAnswer, key};
use crate::core::{Core, Due};
use crate::forge::{self, Answer, ScaleSetAsk, ScaleSetId};
use crate::jobs::demand::Hearing;
use crate::jobs::exchange::Event;
use crate::jobs::settings::page;
use crate::notice::Notice;
use crate::object::Name;
use crate::outside::Request;
use api::fleet::ScaleSetRecord;
use change::Moment;
use std::time::Duration;

/// How often it is looked whether jobs still run on a scale set that is to be deleted.
const LOOK_AGAIN: Duration = Duration::from_secs(15);
/// So often the deletion of a scale set is tried before its pool is let go.
const DELETIONS: u32 = 3;

/// A scale set that is to be deleted once no job runs on it.
#[derive(Debug, Clone)]
pub(in crate::core) struct Former {
    pub(super) record: ScaleSetRecord,
    is_waiting: bool,
    not_before: Moment,
}

/// How far the deletion of the scale set of a pool is that is being deleted.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(super) enum Farewell {
    #[default]
    Not,
    /// So many attempts have failed, and when the next one is.
    Failed(u32, Moment),
    Asked(u32),
    Done,
}

impl Core {
    /// A pool does not listen to a scale set any more: its session is closed. What is to be deleted, if it was made for the pool.
    pub(in crate::core) fn stop_listening(&mut self, pool: &Name, api: &str, listening: Listening) -> Option<Former> {
        let record = listening.record().filter(|_| listening.is_created && listening.farewell == Farewell::Not);
        let wanted = listening.wanted.as_ref()?;
        if let Some(session) = listening.listener.session() {
            let (address, ask) = (wanted.page.clone(), forge::Ask::ScaleSet(ScaleSetAsk::Close(session.clone())));
            self.call(Call::Other, Request::Forge(forge::Request { forge: key(pool), address, ask }));
        }
        if let Some(set) = listening.set {
            self.tell(api, Event::ScaleSetGone(set.0));
        }
        let former = |record| Former { record, is_waiting: false, not_before: Moment::default() };
        record.map(former).or(listening.former)
    }

    /// Deletes a scale set that the pool has created and does not use any more, once no job runs on it. Jobs that are assigned to it wait for
    /// others again then.
    pub(super) fn clear_former(&mut self, pool: &Name) {
        let now = self.now.monotonic;
        let recorded = self.recorded_set(pool).filter(|record| record.is_created).cloned();
        let Some(forge) = self.ci.forges.get_mut(pool) else { return };
        let (is_connected, scope) =
            (forge.is_connected(), forge.settings.as_ref().ok().map(|found| page(&found.github)));
        let listening = &mut forge.listening;
        if listening.former.is_none()
            && let Some(record) = recorded.filter(|record| Some(&record.scope) == scope.as_ref())
            && listening.gone != Some(ScaleSetId(record.id))
        {
            // An earlier process has created it.
            let is_other = match (&listening.wanted, listening.set) {
                (None, _) => true,
                (Some(_), Some(set)) => set.0 != record.id,
                (Some(wanted), None) => wanted.set.name != record.name,
            };
            let former = Former { record, is_waiting: false, not_before: Moment::default() };
            listening.former = is_other.then_some(former);
        }
        let round = listening.round;
        let Some(former) = listening.former.as_mut().filter(|former| !former.is_waiting && is_connected) else {
            return;
        };
        if former.not_before > now {
            let at = former.not_before;
            return self.wake(Due::Jobs, at);
        }
        former.is_waiting = true;
        let ask = forge::Ask::ScaleSet(ScaleSetAsk::Read(ScaleSetId(former.record.id)));
        self.ask_forge(pool, ask, Call::Listen(pool.clone(), round, Asked::Former));
    }

    pub(super) fn former_answered(&mut self, pool: &Name, asked: &Asked, answer: ForgeAnswer) {
        let again = self.now.monotonic.after(LOOK_AGAIN);
        self.due.extend([Due::Jobs, Due::Pool(pool.clone())]);
        let Some(listening) = self.ci.forges.get_mut(pool).map(|forge| &mut forge.listening) else { return };
        let Some(former) = &mut listening.former else { return };
        let (set, round) = (ScaleSetId(former.record.id), listening.round);
        let is_gone = match (asked, answer) {
            (Asked::DeleteFormer, Ok(_)) => true,
            // Another one with its id is not it.
            (_, Ok(Answer::ScaleSet(found))) => match found.filter(|found| found.name == former.record.name) {
                None => true,
                Some(found) if found.statistics.is_some_and(|found| found.running == 0) => {
                    let ask = forge::Ask::ScaleSet(ScaleSetAsk::Delete(set));
                    return self.ask_forge(pool, ask, Call::Listen(pool.clone(), round, Asked::DeleteFormer));
                }
                Some(_) => false,
            },
            _ => false,
        };
        (former.is_waiting, former.not_before) = (false, again);
        if is_gone {
            (listening.former, listening.gone) = (None, Some(set));
        }
    }

    /// Whether nothing of a pool that is to be gone is left on GitHub, as far as that can be; otherwise it is asked for.
    pub(in crate::core) fn has_left(&mut self, pool: &Name) -> bool {
        let now = self.now.monotonic;
        let recorded = self.recorded_set(pool).filter(|record| record.is_created);
        let (_, hearing) = self.hearing(pool);
        let Some(forge) = self.ci.forges.get(pool) else { return true };
        let listening = &forge.listening;
        let Some(wanted) = &listening.wanted else { return true };
        let is_its = |record: &&ScaleSetRecord| record.scope == wanted.page && record.name == wanted.set.name;
        let recorded = recorded.filter(is_its).map(|record| ScaleSetId(record.id));
        let is_shared = self.ci.forges.iter().any(|(other, forge)| {
            let of = forge.listening.wanted.as_ref();
            other != pool && of.is_some_and(|of| of.is_same(wanted))
        });
        let set = listening.set.filter(|_| listening.is_created).or(recorded);
        let set = set.filter(|_| forge.is_connected() && hearing != Hearing::Taken && !is_shared);
        let failed = match listening.farewell {
            Farewell::Done => return true,
            Farewell::Asked(_) => return false,
            Farewell::Failed(_, at) if at > now => {
                self.wake(Due::Pool(pool.clone()), at);
                return false;
            }
            Farewell::Failed(failed, _) => failed,
            Farewell::Not => 0,
        };
        let (session, round) = (listening.listener.session().cloned(), listening.round);
        let farewell = if set.is_some() { Farewell::Asked(failed) } else { Farewell::Done };
        if let Some(forge) = self.ci.forges.get_mut(pool) {
            forge.listening.farewell = farewell;
        }
        let former = self.ci.forges.get(pool).and_then(|forge| forge.listening.former.as_ref());
        let former = former.map(|former| ScaleSetAsk::Delete(ScaleSetId(former.record.id)));
        if failed == 0 {
            for ask in session.map(ScaleSetAsk::Close).into_iter().chain(former) {
                self.ask_forge(pool, forge::Ask::ScaleSet(ask), Call::Other);
            }
        }
        if let Some(set) = set {
            let call = Call::Listen(pool.clone(), round, Asked::Leave);
            self.ask_forge(pool, forge::Ask::ScaleSet(ScaleSetAsk::Delete(set)), call);
        }
        set.is_none()
    }

    /// Takes the answer to the deletion of the scale set of a pool that is to be gone.
    pub(super) fn left(&mut self, pool: &Name, answer: ForgeAnswer) {
        let again = self.now.monotonic.after(MADE_AGAIN);
        let Some(forge) = self.ci.forges.get_mut(pool) else { return };
        let Farewell::Asked(failed) = forge.listening.farewell else { return };
        forge.listening.farewell = match &answer {
            Err(_) if failed + 1 < DELETIONS => Farewell::Failed(failed + 1, again),
            _ => Farewell::Done,
        };
        if let (Err(failure), Farewell::Done) = (answer, forge.listening.farewell) {
            // A pool is not kept for a GitHub that does not answer.
            self.notify(Notice::ForgeFailed { what: "delete the scale set", message: failure.to_string() });
        }
        self.due.insert(Due::Pool(pool.clone()));
    }
}
