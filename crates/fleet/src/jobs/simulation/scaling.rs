//! The pools of the simulation: the controller of pools as it is, with what jobs need.

use super::github::wall;
use super::world::{Kept, Vm, World};
use crate::jobs::runners::{Claim, Machine, Phase};
use crate::object::{Name, Object};
use crate::pool;
use api::fleet::RunnerPoolSpec;
use std::collections::BTreeMap;

impl World {
    /// The pool controller, as it is.
    pub(super) fn scale(&mut self) {
        for index in 0..self.pools.len() {
            let name = self.pools[index].name.clone();
            let members: Vec<pool::Member> = self.members(&name);
            let replicas = self.replicas.get(&name).copied();
            let object = Object {
                name: name.clone(),
                uid: "pool".into(),
                version: "1".into(),
                generation: 1,
                created: wall(0),
                deleting: None,
                finalizers: vec![api::fleet::IN_USE_FINALIZER.into()],
                annotations: BTreeMap::new(),
                spec: RunnerPoolSpec { replicas, ..self.spec.clone() },
                status: self.surplus.get(&name).cloned().unwrap_or_default(),
            };
            let observed =
                pool::Observed { pool: &object, members: &members, size: None, hold: None, now: self.time() };
            let decision = pool::decide(&observed);
            self.surplus.insert(name.clone(), decision.status);
            for claim in decision.drain {
                self.note(|| format!("drain {claim}"));
                if let Some(kept) = self.claims.get_mut(&claim) {
                    kept.claim.ends = true;
                }
            }
            for _ in 0..decision.create {
                self.create(&name);
            }
        }
    }

    fn members(&self, pool: &Name) -> Vec<pool::Member> {
        let of_pool = self.claims.values().filter(|kept| kept.claim.pool == *pool);
        let member = of_pool.map(|kept| {
            let claim = &kept.claim;
            let state = match self.phases.get(&claim.name) {
                _ if claim.ends => pool::State::Draining(claim.since),
                _ if claim.machine == Machine::Ended => pool::State::Ending,
                Some(Phase::Ending) => pool::State::Ending,
                Some(Phase::Online(since)) => pool::State::Idle(*since),
                Some(Phase::Busy(_)) => pool::State::Busy,
                Some(Phase::Starting) | None => pool::State::Starting,
            };
            pool::Member::new(claim.name.clone(), wall(kept.created), state)
        });
        member.collect()
    }

    fn create(&mut self, pool: &Name) {
        self.machines += 1;
        let name = Name::new("ci", &format!("{}-{}", pool.name, self.machines));
        self.note(|| format!("create {name}"));
        let (now, boot) = (self.now, self.random.between(15, 60));
        let fails = self.fails(15);
        let vm = Vm {
            boots_at: (!fails).then_some(now + boot),
            fails_at: fails.then_some(now + boot),
            runner: None,
            ends_at: None,
        };
        let claim = Claim {
            name: name.clone(),
            uid: format!("uid-{}", self.machines),
            pool: pool.clone(),
            machine: Machine::Starting,
            since: wall(now),
            is_off: false,
            runner: None,
            is_elsewhere: false,
            ends: false,
        };
        self.claims.insert(name, Kept { claim, vm, created: now, visible_at: now + 1 });
    }
}
