//! Makes the plan of a profile, as far as everything for it is known.

use super::comparing::{Aim, Found, Work};
use super::managed::{Managed, Wants};
use super::{Core, Timer};
use crate::health;
use crate::overrides;
use crate::plan::{Compared, Item, Plan, Terms, Unplanned, left, left_hyperconverged, never_deleted, removed, shared};
use crate::situation::{Draft, Health, Hold, ItemMemory, Progress, continues};
use api::advisor::{Operation, Remediation};
use catalog::Query;
use catalog::profile::{self, Profile, ProfileWants, WantedItem, WantedResult};
use catalog::rollout::Change;
use change::restarts::NodeEffect;
use change::{Impact, Key};
use jiff::Timestamp;
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Added to the name of an item for the object that it replaces.
const FORMER: &str = "-former";

/// What a plan is about: an item and its object.
struct Aimed {
    name: String,
    description: String,
    needs: Vec<String>,
    impact: Impact,
    /// Whether the object has the name that the Go operator gave it.
    is_former: bool,
    is_never_deleted: bool,
    /// Whether its operator says in its status what it made of it.
    reports: bool,
    key: Key,
    aim: Aim,
    /// Another profile that wants the object, which would be removed otherwise.
    kept_for: Option<String>,
}

/// The item that deletes what the Go operator made under another name: once the object of this item is there, or if it is not wanted.
fn replaced(item: &WantedItem, former: Key, aim: &Aim) -> Aimed {
    let (why, aim) = match aim {
        Aim::Removal => ("does not want", Aim::Removal),
        Aim::Content(_) | Aim::Replaced => ("replaces", Aim::Replaced),
    };
    let description = format!("Deletes {former} of the Go operator, which {} {why}.", item.name);
    let name = format!("{}{FORMER}", item.name);
    Aimed { name, description, needs: Vec::new(), is_former: true, ..Aimed::of(item, former, aim) }
}

impl Aimed {
    fn of(item: &WantedItem, key: Key, aim: Aim) -> Aimed {
        let WantedItem { name, description, needs, .. } = item;
        Aimed {
            name: name.clone(),
            description: description.clone(),
            needs: needs.clone(),
            impact: item.impact,
            is_former: item.is_former,
            is_never_deleted: item.is_never_deleted,
            reports: item.reports,
            key,
            aim,
            kept_for: None,
        }
    }
}

/// Holds the items that depend on one that users want to be left alone: nobody knows whether it is as they need it.
fn hold_for_skipped(items: &mut [Item]) {
    let skipped: Vec<Item> = items.iter().filter(|item| item.compared.is_skipped).cloned().collect();
    for item in items.iter_mut().filter(|item| !item.is_done()) {
        let why = skipped.iter().find_map(|skipped| match item.compared.is_removal {
            false if !skipped.compared.is_removal && item.needs.contains(&skipped.name) => {
                Some(format!("it needs {}, which is skipped; see that {} is managed", skipped.name, skipped.key))
            }
            true if skipped.needs.contains(&item.name) => Some(format!(
                "{} needs it and is skipped, so it stays; see that {} is managed",
                skipped.name, skipped.key
            )),
            _ => None,
        });
        if let Some(why) = why {
            item.compared.hold = Some(overrides::Hold { why: why.clone(), until: None });
            item.hold = Some(Hold { why, opens: None });
        }
    }
}

/// Whether an item was written, or a write of it may have arrived that is not recorded yet.
fn may_be_written(remembered: Option<(Progress, Option<Timestamp>)>) -> bool {
    remembered
        .is_some_and(|(state, written)| written.is_some() || matches!(state, Progress::InProgress | Progress::Failed))
}

/// A plan, or why there is none yet.
pub(super) enum Drafted {
    /// There is none.
    Not(Draft),
    /// This one.
    Made(Plan),
}

impl Core {
    /// Makes the plan of a profile as far as possible, and asks for what is missing.
    pub(super) fn draft(&mut self, name: &str) -> Drafted {
        if !self.is_hco_known || !self.surroundings.is_known() || !self.discovery.has_listed_crds {
            return Drafted::Not(Draft::Unknown);
        }
        let Some(profile) = self.catalog.profiles.iter().find(|profile| profile.name == name).cloned() else {
            let why = format!("this version of the operator has no profile {name}");
            return Drafted::Not(Draft::Missing(vec![why]));
        };
        let mut aims = match self.aims(name, &profile) {
            Ok(aims) => aims,
            Err(draft) => return Drafted::Not(draft),
        };
        if let Err(draft) = self.learn_what_others_want(name, &aims) {
            return Drafted::Not(draft);
        }
        for aimed in aims.iter_mut().filter(|aimed| !matches!(aimed.aim, Aim::Content(_))) {
            aimed.kept_for = self.wanted_by_another(name, &aimed.key);
        }
        if let Some(conflict) = self.conflict(name, &aims) {
            return Drafted::Not(Draft::Missing(vec![conflict]));
        }
        self.follow_aims(name, &aims);
        self.unread.clear();
        let mut is_complete = true;
        for aimed in aims.iter().filter(|aimed| aimed.kept_for.is_none()) {
            // The others are shown although one cannot be planned.
            is_complete &= self.go_on_comparing(name, &aimed.name) || self.failure(name, &aimed.name).is_some();
        }
        match is_complete.then(|| self.assemble(name, aims)).flatten() {
            Some(plan) => Drafted::Made(plan),
            None => Drafted::Not(self.unreadable().map_or(Draft::Incomplete, Draft::Failed)),
        }
    }

    /// Why an item cannot be compared now.
    fn failure(&self, name: &str, item: &str) -> Option<String> {
        self.profiles.get(name)?.work.get(item)?.failure.clone()
    }

    /// What a profile wants, rendered again only if something has changed.
    fn wants(&mut self, name: &str, profile: &Profile) -> Option<&Wants> {
        let options = self.options(name, profile);
        let managed = self.profiles.get_mut(name)?;
        let (facts, generation) = (self.facts_version, managed.generation);
        if managed.wants.as_ref().is_none_or(|wants| (wants.facts, wants.generation) != (facts, generation)) {
            let options = options.as_ref();
            let (all, missing) = match managed.spec.rollback {
                // What is missing now is not needed any more.
                Some(true) => (profile::rolled_back(&self.catalog, profile, options, &self.facts), Vec::new()),
                _ => (
                    profile::wanted(&self.catalog, profile, options, &self.facts),
                    profile::missing(&self.catalog, profile, options, &self.facts),
                ),
            };
            let missing = missing.iter().map(catalog::Need::why).collect();
            managed.wants = Some(Wants { facts, generation, all: Arc::new(all), missing });
        }
        managed.wants.as_ref()
    }

    /// The options of a profile, below its own key.
    fn options(&self, name: &str, profile: &Profile) -> Option<Map<String, Value>> {
        let key = &profile.options.as_ref()?.key;
        self.profiles.get(name)?.spec.options.as_ref()?.get(key)?.as_object().cloned()
    }

    fn aims(&mut self, name: &str, profile: &Profile) -> Result<Vec<Aimed>, Draft> {
        let Some(wants) = self.wants(name, profile) else { return Err(Draft::Unknown) };
        if !wants.missing.is_empty() {
            return Err(Draft::Missing(wants.missing.clone()));
        }
        let wants = Arc::clone(&wants.all);
        let (mut aims, mut wrong, mut held) = (Vec::new(), Vec::new(), Vec::new());
        let mut needed = BTreeSet::new();
        for item in &wants.items {
            let aimed = match &item.result {
                WantedResult::Object { key, object } => Some((key.clone(), Aim::Content(object.clone()))),
                WantedResult::Off { key } => key.clone().map(|key| (key, Aim::Removal)),
                WantedResult::NotApplicable(_) | WantedResult::Missing(_) => None,
                WantedResult::Needs(queries) => {
                    needed.extend(queries.iter().cloned());
                    None
                }
                WantedResult::Held(query) => {
                    held.push(format!("{query} could not be read"));
                    None
                }
                WantedResult::Broken(why) => {
                    wrong.push(format!("{}: {why}", item.name));
                    None
                }
            };
            if let Some((key, aim)) = aimed.filter(|(key, _)| self.discovery.kinds.find(&key.kind).is_some()) {
                let replaced = item.former.clone().map(|former| replaced(item, former, &aim));
                aims.push(Aimed::of(item, key, aim));
                aims.extend(replaced);
            }
        }
        let is_asking = !needed.is_empty();
        needed.into_iter().for_each(|query| self.ask(query));
        match (wrong.is_empty(), held.is_empty(), is_asking) {
            (false, ..) => Err(Draft::Missing(wrong)),
            (true, false, _) => Err(Draft::Failed(held.join("; "))),
            (true, true, true) => Err(Draft::Incomplete),
            (true, true, false) => {
                // An item may rely on those before it, so that nothing goes before what relies on it has changed.
                let is_removal = |aimed: &Aimed| aimed.aim == Aim::Removal;
                let (removals, mut aims): (Vec<Aimed>, Vec<Aimed>) = aims.into_iter().partition(is_removal);
                aims.extend(removals.into_iter().rev());
                Ok(aims)
            }
        }
    }

    /// Another profile that wants the same object differently: neither is applied before a person has decided. Both write as the same field
    /// manager, so that the fields of one would be removed by an apply of the other.
    fn conflict(&self, name: &str, aims: &[Aimed]) -> Option<String> {
        for (other, wants) in self.wants_of_others(name) {
            for theirs in &wants.items {
                let WantedResult::Object { key, object } = &theirs.result else { continue };
                let ours = aims.iter().find(|aimed| aimed.key.is_same_object(key));
                if let Some(Aimed { aim: Aim::Content(wanted), .. }) = ours
                    && wanted != object
                {
                    return Some(format!(
                        "{key} is wanted differently by the profile {other}; delete one of both, or set its action to Ignore and its handOver to true"
                    ));
                }
            }
        }
        None
    }

    /// The other profiles that want anything: they are planned, applied, or ignored so that nobody is to touch their objects, and not rolled back.
    fn others(&self, name: &str) -> impl Iterator<Item = (&String, &Managed)> {
        self.profiles.iter().filter(move |(other, managed)| {
            *other != name && managed.spec.governs(managed.only_tells) && managed.spec.rollback != Some(true)
        })
    }

    /// What they want, as far as it is known.
    fn wants_of_others(&self, name: &str) -> impl Iterator<Item = (&String, &ProfileWants)> {
        self.others(name).filter_map(|(other, managed)| Some((other, managed.wants.as_ref()?.all.as_ref())))
    }

    /// Finds out whether another profile wants the objects of this one; the error is that this is not known yet, or why it cannot be known now.
    fn learn_what_others_want(&mut self, name: &str, aims: &[Aimed]) -> Result<(), Draft> {
        let others: Vec<String> = self.others(name).map(|(other, _)| other.clone()).collect();
        let (mut is_asking, mut unread) = (false, Vec::new());
        for other in others {
            let Some(theirs) = self.catalog.profiles.iter().find(|profile| profile.name == other).cloned() else {
                continue;
            };
            let Some(wants) = self.wants(&other, &theirs) else { continue };
            let wants = Arc::clone(&wants.all);
            for item in &wants.items {
                let asset = theirs.items.iter().find(|of| of.name == item.name);
                let Some(asset) = asset.and_then(|of| self.catalog.profile_asset(&of.asset)) else { continue };
                let Some(ours) = aims.iter().find(|aimed| self.catalog.may_render(asset, &aimed.key)) else { continue };
                match &item.result {
                    WantedResult::Needs(queries) => {
                        is_asking = true;
                        // The other one may be unable to ask, for example because its spec cannot be read.
                        queries.iter().for_each(|query| self.ask(query.clone()));
                    }
                    WantedResult::Held(query) => {
                        let what = match ours.aim {
                            Aim::Content(_) => format!("{} differently", ours.key),
                            Aim::Removal | Aim::Replaced => "what is to be removed".to_owned(),
                        };
                        unread.push(format!(
                            "nobody knows whether VirtPlatformConfig {other} wants {what} ({}): {query} could not be read",
                            item.name
                        ));
                    }
                    _ => {}
                }
            }
        }
        match (unread.is_empty(), is_asking) {
            (true, false) => Ok(()),
            (true, true) => Err(Draft::Incomplete),
            (false, _) => Err(Draft::Failed(unread.join("; "))),
        }
    }

    /// Another profile that wants an object.
    fn wanted_by_another(&self, name: &str, key: &Key) -> Option<String> {
        let wants_it = |item: &WantedItem| match &item.result {
            WantedResult::Object { key: theirs, .. } => theirs.is_same_object(key),
            _ => false,
        };
        self.wants_of_others(name).find(|(_, wants)| wants.items.iter().any(wants_it)).map(|(other, _)| other.clone())
    }

    /// Takes over what the plan is about now.
    fn follow_aims(&mut self, name: &str, aims: &[Aimed]) {
        let (Some(managed), facts) = (self.profiles.get_mut(name), &self.facts) else { return };
        let ours = || aims.iter().filter(|aimed| aimed.kept_for.is_none());
        managed.work.retain(|item, _| ours().any(|aimed| aimed.name == *item));
        for Aimed { name, key, aim, is_former, reports, .. } in ours() {
            if !managed.work.get(name).is_some_and(|work| work.is_about(key, aim)) {
                let is_looked_at = facts.answers.contains_key(&Query::of(key));
                managed
                    .work
                    .insert(name.clone(), Work::new(key.clone(), aim.clone(), [*is_former, is_looked_at, *reports]));
            }
        }
    }

    /// Puts the plan together; nothing if something has to be read first.
    fn assemble(&mut self, name: &str, aims: Vec<Aimed>) -> Option<Plan> {
        let (mut items, mut unplanned) = (Vec::new(), Vec::new());
        let mut is_complete = true;
        for Aimed { name: item, description, needs, impact, is_never_deleted, key, aim, kept_for, .. } in aims {
            if let Some(why) = self.failure(name, &item) {
                let place = items.len() + unplanned.len();
                unplanned.push(Unplanned { place, name: item, key, why });
                continue;
            }
            let managed = self.profiles.get(name)?;
            let remembered = managed.memory.items.get(&item).map(|memory| (memory.state, memory.written));
            let found = match &kept_for {
                Some(other) => Found::Compared(Box::new(shared(other))),
                None => managed.work.get(&item).and_then(|work| work.found.clone())?,
            };
            let is_approved = || {
                let approved = managed.memory.approved.as_ref();
                approved.is_some_and(|approved| approved.items.contains_key(&item))
            };
            // What has no replacement stays: users want the object that would replace it to be left alone.
            if aim == Aim::Replaced && items.last().is_some_and(|replacement: &Item| replacement.compared.is_skipped) {
                continue;
            }
            let compared = match found {
                // Once its replacement is complete, nobody needs to know of it any more.
                Found::NotOurs(None) if aim == Aim::Replaced && !is_approved() => continue,
                Found::Compared(compared) if is_never_deleted && compared.operation == Operation::Delete => {
                    never_deleted(&key)
                }
                Found::Compared(compared) => *compared,
                // Nothing of it is the profile's: it was as wanted when it was handed over. The HyperConverged is never to be deleted.
                Found::NotOurs(Some(live))
                    if aim == Aim::Removal && !may_be_written(remembered) && key.kind.kind != api::hco::KIND =>
                {
                    left(&live)
                }
                Found::NotOurs(Some(live))
                    if aim == Aim::Removal
                        && key.kind.kind == api::hco::KIND
                        && let Some(left) = self.left_hyperconverged(name, &item, &live) =>
                {
                    left
                }
                // Its removal is followed until nodes run without it, or with what was restored, and then shown.
                Found::NotOurs(rest) if remembered.is_some_and(|(state, _)| state != Progress::Pending) => {
                    removed(&key, rest.as_deref())
                }
                Found::NotOurs(_) => continue,
            };
            let mut planned = Item {
                name: item,
                description,
                needs,
                joins: (aim == Aim::Replaced).then(|| items.last().map(|item| item.name.clone())).flatten(),
                impact,
                restarts: None,
                hold: None,
                health: Health::Healthy,
                key,
                compared,
            };
            // What is replaced goes in the rollout of its replacement, which has begun.
            let follows = items.last().is_some_and(|last: &Item| {
                let memory = self.profiles.get(name).and_then(|managed| managed.memory.items.get(&last.name));
                planned.joins.is_some() && last.is_done() && memory.is_some_and(ItemMemory::is_rolling_out)
            });
            let is_complete_item = match planned.is_done() {
                true if planned.compared.is_skipped => true,
                true => self.find_health(&mut planned, remembered.map(|(state, _)| state)),
                false => self.find_restarts(name, &mut planned),
            };
            if follows {
                planned.hold = None;
            }
            if !planned.is_done() {
                planned.hold = self.outdated(impact).or(planned.hold);
            }
            if let Some(hold) = planned.compared.hold.clone().filter(|hold| self.holds(name, hold)) {
                planned.hold = Some(Hold { why: hold.why, opens: None });
            }
            if let Some(work) = self.profiles.get_mut(name).and_then(|managed| managed.work.get_mut(&planned.name)) {
                work.is_watched_closely = planned.is_done()
                    && !matches!(remembered, Some((Progress::Completed, _)))
                    && planned.health != Health::Healthy;
                // Its status may have changed while it was compared, when nobody waited for it yet.
                if work.is_older_than(self.targets.get(&planned.key)) {
                    self.due.insert(name.to_owned());
                }
            }
            is_complete &= is_complete_item;
            items.push(planned);
        }
        hold_for_skipped(&mut items);
        let wants = &self.profiles.get(name)?.wants.as_ref()?.all;
        let inputs: BTreeMap<String, String> =
            wants.inputs.iter().map(|input| (input.name.clone(), input.value.clone())).collect();
        let not_applicable = wants.items.iter().filter_map(|item| match &item.result {
            WantedResult::NotApplicable(why) => Some(format!("{}: {why}", item.name)),
            _ => None,
        });
        let not_applicable = not_applicable.collect();
        let spec = &self.profiles.get(name)?.spec;
        let terms = Terms {
            bypasses: spec.bypass_optimistic_lock,
            corrects: spec.remediation == Some(Remediation::Automatic),
            continues: continues(spec.failure_policy),
        };
        is_complete.then_some(Plan { items, not_applicable, inputs, unplanned, terms })
    }

    /// The HyperConverged as it stays, if it has what the profile wants without a record of what was there before.
    fn left_hyperconverged(&self, name: &str, item: &str, live: &Value) -> Option<Compared> {
        let profile = self.catalog.profiles.iter().find(|profile| profile.name == name)?;
        let options = self.options(name, profile);
        let wants = profile::wanted(&self.catalog, profile, options.as_ref(), &self.facts);
        wants.items.iter().filter(|wanted| wanted.name == item).find_map(|wanted| match &wanted.result {
            WantedResult::Object { object, .. } => left_hyperconverged(live, object),
            _ => None,
        })
    }

    /// Whether users still do not want an object to be written.
    fn holds(&mut self, name: &str, hold: &overrides::Hold) -> bool {
        let until = hold.until.filter(|until| *until > self.now.wall);
        if let Some(until) = until {
            self.timers.set(Timer::Resume(name.to_owned()), self.now.moment_of(until));
        }
        until.is_some() || hold.until.is_none()
    }

    /// How an object is that is as it should be; false if something has to be read first.
    fn find_health(&mut self, item: &mut Item, remembered: Option<Progress>) -> bool {
        let is_of_nodes = health::is_of_nodes(&item.key);
        if remembered == Some(Progress::Completed) {
            if !is_of_nodes && !item.compared.is_removal {
                item.health = item.compared.health.clone();
            }
            return true;
        }
        if !is_of_nodes {
            item.health = item.compared.health.clone();
            return true;
        }
        if item.compared.is_removal && item.compared.health != Health::Healthy {
            item.health = item.compared.health.clone();
            return true;
        }
        let (pools, readings) = (self.surroundings.pools(), &self.readings);
        let found = match &item.compared.contributions[1] {
            Some(contribution) => health::of_pools(&item.key, contribution, pools, &readings.configurations),
            None => health::of_pools_without(&item.key, pools, &readings.sources),
        };
        match found {
            Ok(found) => {
                item.health = found;
                true
            }
            Err(unread) => {
                unread.iter().for_each(|name| self.read_configuration(name));
                false
            }
        }
    }

    /// What a write does to nodes, and so how much it disturbs; false if something has to be read first.
    fn find_restarts(&mut self, name: &str, item: &mut Item) -> bool {
        if item.impact != Impact::High {
            return true;
        }
        let [before, after] = &item.compared.contributions;
        let change = Change { name: &item.key.name, before: before.as_ref(), after: after.as_ref() };
        let (pools, policy) = (self.surroundings.pools(), self.surroundings.disruption_policy());
        let known = self.profiles.get(name).and_then(|managed| managed.work.get(&item.name)?.restarts.clone());
        let restarts = match (known, self.readings.estimate(&change, pools, policy)) {
            (_, Ok(estimate)) => estimate.restarts(self.surroundings.nodes()),
            // Nodes that restart one after the other change nothing of what was found out before. What restarts none may restart some now:
            // they may have followed another change meanwhile.
            (Some(known), Err(unread)) if known.effect == NodeEffect::Restart => {
                self.read_unread(&unread);
                known
            }
            (_, Err(unread)) => {
                self.read_unread(&unread);
                return false;
            }
        };
        if let Some(work) = self.profiles.get_mut(name).and_then(|managed| managed.work.get_mut(&item.name)) {
            work.restarts = Some(restarts.clone());
        }
        item.impact = match restarts.effect {
            NodeEffect::None => Impact::Low,
            NodeEffect::Reload => Impact::Medium,
            NodeEffect::Restart => Impact::High,
        };
        let hold = self.hold(item, &restarts);
        item.restarts = Some(restarts);
        match hold {
            Ok(hold) => {
                item.hold = hold;
                true
            }
            Err(unread) => {
                unread.iter().for_each(|name| self.read_configuration(name));
                false
            }
        }
    }
}
