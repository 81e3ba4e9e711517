//! How many more machines of a pool have room on their hypervisor now.

use super::Core;
use crate::jobs::demand;
use crate::object::Name;
use crate::{blueprint, placement, template};
use api::fleet::ClaimPower;

impl Core {
    /// A pool with the room that it has, where that is known.
    pub(super) fn with_room(&self, pool: demand::Pool) -> demand::Pool {
        let room = self.pools.get(&pool.name).and_then(|managed| {
            let template = pool.name.beside(None, &managed.entry.object.spec.template_ref.name);
            // Machines that wait to be started have their room already.
            let standby = u32::try_from(self.standby(&pool.name)).unwrap_or(u32::MAX);
            Some(self.room(&template)?.saturating_add(standby))
        });
        demand::Pool { room, ..pool }
    }

    fn standby(&self, pool: &Name) -> usize {
        let claims = self.of_pool.get(pool).into_iter().flatten().filter_map(|claim| self.claims.get(claim));
        let objects = claims.map(|managed| &managed.entry.object);
        objects.filter(|claim| claim.spec.power == ClaimPower::Stopped && claim.status.vm_ref.is_some()).count()
    }

    /// How many machines of a template fit; nothing before the hypervisor was asked.
    fn room(&self, name: &Name) -> Option<u32> {
        let managed = self.templates.get(name)?;
        let hypervisor = self.clusters.get(&managed.cluster()).filter(|found| found.is_ready && managed.is_valid)?;
        let (spec, cluster) = (&managed.entry.object.spec, &hypervisor.entry.object.spec);
        let found = hypervisor.found.get(&template::reference(spec)?)?.as_ref().ok()?;
        let need = blueprint::need(spec, cluster, found.first()?).ok()?;
        let (listed, promised) = (hypervisor.listed.as_deref()?, hypervisor.loads.promised());
        let fits = placement::fits(&need, found, &cluster.nodes, listed, promised, cluster.overcommit);
        let members = u32::try_from(hypervisor.members.len()).unwrap_or(u32::MAX);
        let allowed = cluster.limits.machines.map_or(u32::MAX, |most| most.saturating_sub(members));
        Some(fits.min(allowed))
    }
}
