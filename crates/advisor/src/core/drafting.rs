//! Makes the plan of a profile, as far as everything for it is known.

use super::comparing::{Aim, Found, Work};
use super::{Core, Timer};
use crate::health;
use crate::overrides::Hold;
use crate::plan::{Item, Plan, Terms, Unplanned, left, removed};
use crate::situation::{Draft, Health, Progress, continues};
use api::advisor::Remediation;
use catalog::Pool;
use catalog::profile::{self, Profile, ProfileWants, WantedItem, WantedResult};
use catalog::rollout::Change;
use change::restarts::{NodeEffect, Scope};
use change::{Impact, Key, Restarts};
use serde_json::{Map, Value};
use std::collections::{BTreeMap, BTreeSet};

/// Added to the name of an item for the object that it replaces.
const FORMER: &str = "-former";
const NODES: &str = "machineconfiguration.openshift.io";

/// What a plan is about: an item and its object.
struct Aimed {
    item: WantedItem,
    key: Key,
    aim: Aim,
}

/// The item that deletes what the Go operator made under another name: once the object of this item is there, or if it is not wanted.
fn replaced(item: &WantedItem, former: Key, aim: &Aim) -> Aimed {
    let name = format!("{}{FORMER}", item.name);
    let (why, aim) = match aim {
        Aim::Removal => ("does not want", Aim::Removal),
        Aim::Content(_) | Aim::Replaced => ("replaces", Aim::Replaced),
    };
    let description = format!("Deletes {former} of the Go operator, which {} {why}.", item.name);
    let item = WantedItem { name, description, needs: Vec::new(), former: None, is_former: true, ..item.clone() };
    Aimed { item, key: former, aim }
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
            item.compared.hold = Some(Hold { why: why.clone(), until: None });
            item.hold = Some(why);
        }
    }
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
        let aims = match self.aims(name, &profile) {
            Ok(aims) => aims,
            Err(draft) => return Drafted::Not(draft),
        };
        if let Some(conflict) = self.conflict(name, &aims) {
            return Drafted::Not(Draft::Missing(vec![conflict]));
        }
        self.follow_aims(name, &aims);
        let mut is_complete = true;
        for aimed in &aims {
            // The others are shown although one cannot be planned.
            is_complete &=
                self.go_on_comparing(name, &aimed.item.name) || self.failure(name, &aimed.item.name).is_some();
        }
        match is_complete.then(|| self.assemble(name, aims)).flatten() {
            Some(plan) => Drafted::Made(plan),
            None => Drafted::Not(Draft::Incomplete),
        }
    }

    /// Why an item cannot be compared now.
    fn failure(&self, name: &str, item: &str) -> Option<String> {
        self.profiles.get(name)?.work.get(item)?.failure.clone()
    }

    /// What a profile wants, rendered again only if something has changed.
    fn wants(&mut self, name: &str, profile: &Profile) -> Option<ProfileWants> {
        let options = self.options(name, profile);
        let managed = self.profiles.get_mut(name)?;
        let versions = (self.facts_version, managed.generation);
        if let Some((facts, spec, wants)) = &managed.wants
            && (*facts, *spec) == versions
        {
            return Some(wants.clone());
        }
        let wants = match managed.spec.rollback {
            Some(true) => profile::rolled_back(&self.catalog, profile, options.as_ref(), &self.facts),
            _ => profile::wanted(&self.catalog, profile, options.as_ref(), &self.facts),
        };
        managed.wants = Some((versions.0, versions.1, wants.clone()));
        Some(wants)
    }

    /// The options of a profile, below its own key.
    fn options(&self, name: &str, profile: &Profile) -> Option<Map<String, Value>> {
        let key = &profile.options.as_ref()?.key;
        self.profiles.get(name)?.spec.options.as_ref()?.get(key)?.as_object().cloned()
    }

    fn is_rollback(&self, name: &str) -> bool {
        self.profiles.get(name).is_some_and(|managed| managed.spec.rollback == Some(true))
    }

    fn aims(&mut self, name: &str, profile: &Profile) -> Result<Vec<Aimed>, Draft> {
        let Some(wants) = self.wants(name, profile) else { return Err(Draft::Unknown) };
        let is_rollback = self.is_rollback(name);
        let options = self.options(name, profile);
        let missing = profile::missing(&self.catalog, profile, options.as_ref(), &self.facts);
        if !missing.is_empty() && !is_rollback {
            return Err(Draft::Missing(missing.iter().map(catalog::Need::why).collect()));
        }
        let (mut aims, mut wrong, mut held) = (Vec::new(), Vec::new(), Vec::new());
        let mut needed = BTreeSet::new();
        for item in wants.items {
            let former = item.former.clone();
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
                let replaced = former.map(|former| replaced(&item, former, &aim));
                aims.push(Aimed { item, key, aim });
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
        let others = self.profiles.iter().filter(|(other, managed)| {
            *other != name && managed.spec.action != api::advisor::Action::Ignore && managed.spec.rollback != Some(true)
        });
        for (other, managed) in others {
            let Some((_, _, wants)) = &managed.wants else { continue };
            for theirs in &wants.items {
                let WantedResult::Object { key, object } = &theirs.result else { continue };
                let ours = aims.iter().find(|aimed| aimed.key.is_same_object(key));
                if let Some(Aimed { aim: Aim::Content(wanted), .. }) = ours
                    && wanted != object
                {
                    return Some(format!(
                        "{key} is wanted differently by the profile {other}; set the action of one of both to Ignore"
                    ));
                }
            }
        }
        None
    }

    /// Takes over what the plan is about now.
    fn follow_aims(&mut self, name: &str, aims: &[Aimed]) {
        let Some(managed) = self.profiles.get_mut(name) else { return };
        managed.work.retain(|item, _| aims.iter().any(|aimed| aimed.item.name == *item));
        for Aimed { item, key, aim } in aims {
            if !managed.work.get(&item.name).is_some_and(|work| work.is_about(key, aim)) {
                managed.work.insert(item.name.clone(), Work::new(key.clone(), aim.clone(), item.is_former));
            }
        }
    }

    /// Puts the plan together; nothing if something has to be read first.
    fn assemble(&mut self, name: &str, aims: Vec<Aimed>) -> Option<Plan> {
        let (mut items, mut unplanned) = (Vec::new(), Vec::new());
        let mut is_complete = true;
        for Aimed { item, key, aim } in aims {
            if let Some(why) = self.failure(name, &item.name) {
                let place = items.len() + unplanned.len();
                unplanned.push(Unplanned { place, name: item.name, key, why });
                continue;
            }
            let managed = self.profiles.get(name)?;
            let remembered = managed.memory.items.get(&item.name).map(|memory| (memory.state, memory.written));
            let found = managed.work.get(&item.name).and_then(|work| work.found.clone())?;
            let is_approved = || {
                let approved = managed.memory.approved.as_ref();
                approved.is_some_and(|approved| approved.items.contains_key(&item.name))
            };
            // What has no replacement stays: users want the object that would replace it to be left alone.
            if aim == Aim::Replaced && items.last().is_some_and(|replacement: &Item| replacement.compared.is_skipped) {
                continue;
            }
            let compared = match found {
                // Once its replacement is complete, nobody needs to know of it any more.
                Found::NotOurs(None) if aim == Aim::Replaced && !is_approved() => continue,
                Found::Compared(compared) => *compared,
                // Nothing of it is the profile's: it was as wanted when it was handed over. The HyperConverged is never to be deleted.
                Found::NotOurs(Some(live))
                    if aim == Aim::Removal
                        && remembered.is_none_or(|(_, written)| written.is_none())
                        && key.kind.kind != api::hco::KIND =>
                {
                    left(&live)
                }
                // Its removal is followed until nodes run without it, or with what was restored, and then shown.
                Found::NotOurs(rest) if remembered.is_some_and(|(state, _)| state != Progress::Pending) => {
                    removed(&key, rest.as_deref())
                }
                Found::NotOurs(_) => continue,
            };
            let mut planned = Item {
                name: item.name,
                description: item.description,
                needs: item.needs,
                joins: (aim == Aim::Replaced).then(|| items.last().map(|item| item.name.clone())).flatten(),
                impact: item.impact,
                restarts: None,
                hold: None,
                health: Health::Healthy,
                key,
                compared,
            };
            let is_complete_item = match planned.is_done() {
                true if planned.compared.is_skipped => true,
                true => self.find_health(&mut planned, remembered.map(|(state, _)| state)),
                false => self.find_restarts(name, &mut planned),
            };
            if let Some(hold) = planned.compared.hold.clone().filter(|hold| self.holds(name, hold)) {
                planned.hold = Some(hold.why);
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
        let (_, _, wants) = self.profiles.get(name)?.wants.as_ref()?;
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

    /// Whether users still do not want an object to be written.
    fn holds(&mut self, name: &str, hold: &Hold) -> bool {
        let until = hold.until.filter(|until| *until > self.now.wall);
        if let Some(until) = until {
            self.timers.set(Timer::Resume(name.to_owned()), self.now.moment_of(until));
        }
        until.is_some() || hold.until.is_none()
    }

    /// How an object is that is as it should be; false if something has to be read first.
    fn find_health(&mut self, item: &mut Item, remembered: Option<Progress>) -> bool {
        if remembered == Some(Progress::Completed) {
            return true;
        }
        if item.key.kind.group != NODES {
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
        item.hold = self.hold(item, &restarts);
        item.restarts = Some(restarts);
        true
    }

    /// Why nodes are not to restart for an item now. A removal may be what repairs a pool, and so may another content of an object that a pool
    /// is rolling out.
    fn hold(&self, item: &Item, restarts: &Restarts) -> Option<String> {
        if item.impact != Impact::High || item.compared.is_removal {
            return None;
        }
        let is_concerned = |pool: &&Pool| match &restarts.scope {
            Scope::Pools(names) => names.contains(&pool.name),
            Scope::Selected | Scope::Cluster => true,
        };
        let exists = item.compared.contributions[0].is_some();
        let may_repair = |pool: &Pool| exists && pool.wanted_configuration != pool.running_configuration;
        let mut concerned = self.surroundings.pools().values().filter(is_concerned).filter(|pool| !may_repair(pool));
        let why = concerned.find_map(Pool::why_not_ready)?;
        Some(format!("{why}; it is written when the pool is ready"))
    }
}
