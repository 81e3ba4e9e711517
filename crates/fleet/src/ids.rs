//! Which id a new machine gets: never one that is listed, reserved by a claim, or in flight.

use crate::backoff::hash;
use crate::hypervisor::MachineId;
use api::fleet::VmIds;

/// Where an installation begins to look on a hypervisor, so that two that share a range or a storage seldom choose the same id.
pub fn start(range: VmIds, operator: &str, cluster: &str) -> u32 {
    let size = u64::from(range.to.saturating_sub(range.from)) + 1;
    let hash = hash(&format!("{operator} {cluster}"), 0);
    range.from.saturating_add(u32::try_from(hash % size).unwrap_or_default())
}

/// The first id of the range from `start` on that is not taken, beginning anew at its end; nothing if all are.
pub fn choose(range: VmIds, start: u32, is_taken: impl Fn(&MachineId) -> bool) -> Option<u32> {
    let start = start.clamp(range.from, range.to.max(range.from));
    (start..=range.to).chain(range.from..start).find(|id| !is_taken(&MachineId(id.to_string())))
}

/// The id after this one.
pub fn next(range: VmIds, id: u32) -> u32 {
    if id >= range.to { range.from } else { id + 1 }
}

/// Whether an id is of the range.
pub fn contains(range: VmIds, id: &MachineId) -> bool {
    id.0.parse::<u32>().is_ok_and(|id| range.from <= id && id <= range.to)
}

#[cfg(test)]
mod tests {
    use super::{choose, contains, next, start};
    use crate::hypervisor::MachineId;
    use api::fleet::VmIds;
    use std::collections::BTreeSet;

    const RANGE: VmIds = VmIds { from: 200, to: 209 };

    #[test]
    fn an_id_is_never_taken_and_always_of_the_range_while_one_is_left() {
        for taken in 0..1_024_u32 {
            let is_taken = |id: &MachineId| id.0.parse::<u32>().is_ok_and(|id| taken & (1 << (id - 200)) != 0);
            for start in [200, 204, 209] {
                match choose(RANGE, start, is_taken) {
                    Some(id) => {
                        let id = MachineId(id.to_string());
                        assert!(!is_taken(&id) && contains(RANGE, &id));
                    }
                    None => assert_eq!(taken, 1_023),
                }
            }
        }
    }

    #[test]
    fn an_id_is_used_again_as_late_as_possible() {
        let (mut at, mut seen) = (start(RANGE, "operator", "cluster"), BTreeSet::new());
        for _ in 0..10 {
            let id = choose(RANGE, at, |_| false).unwrap();
            assert!(seen.insert(id), "{id} was used before all others");
            at = next(RANGE, id);
        }
    }
}
