//! Objects that cannot be listed, for example because the right is missing: no plan can be made without them, and people are told why.

use super::drafting::Drafted;
use super::{Core, Timer};
use crate::situation::Draft;
use observe::{Surroundings, target_of};
use protocol::WatchTarget;
use std::time::Duration;

/// A watch that is lost for a shorter time is no news: the API server starts again.
const LONG: Duration = Duration::from_secs(30);

impl Core {
    /// A watch is lost, or still lost.
    pub(super) fn note_lost(&mut self, target: &WatchTarget, why: &str) {
        let now = self.now.monotonic;
        let (since, said) = self.lost.entry(target.clone()).or_insert((now, String::new()));
        if !why.is_empty() && said != why {
            why.clone_into(said);
        }
        if now < since.after(LONG) {
            self.timers.set(Timer::Unwatched(target.clone()), since.after(LONG));
        }
    }

    /// A plan that is not there says why, if it waits for objects that cannot be listed.
    pub(super) fn unwatched(&self, name: &str, drafted: Drafted) -> Drafted {
        let needed: Vec<WatchTarget> = match &drafted {
            Drafted::Not(Draft::Unknown) => {
                let around = [WatchTarget::of(&self.hco), WatchTarget::crds()];
                around.into_iter().chain(Surroundings::targets(false).map(|(target, _)| target)).collect()
            }
            Drafted::Not(Draft::Incomplete) => {
                let work = self.profiles.get(name).into_iter().flat_map(|managed| managed.work.values());
                let unfinished = work.filter(|work| work.found.is_none()).map(|work| WatchTarget::of(&work.key));
                let queries = self.queries.all();
                let unanswered = queries.iter().filter(|query| !self.facts.answers.contains_key(query)).map(target_of);
                unfinished.chain(unanswered).collect()
            }
            _ => return drafted,
        };
        let long = |target: &WatchTarget| {
            let (since, why) = self.lost.get(target)?;
            (self.now.monotonic >= since.after(LONG)).then(|| {
                let kind = &target.kind.kind;
                format!("objects of the kind {kind} cannot be listed ({why}); see that the advisor has the right to (virtpilot rbac shows it) and that the API server serves them")
            })
        };
        match needed.iter().find_map(long) {
            Some(why) => Drafted::Not(Draft::Missing(vec![why])),
            None => drafted,
        }
    }
}
