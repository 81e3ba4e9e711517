//! What the status daemon of the nodes saw in its last round; `cluster/resources` shows that and not what is true now.

use crate::stand_in::StandIn;
use std::collections::BTreeMap;
use std::time::Duration;

/// The last round.
#[derive(Debug, Clone, Default, PartialEq)]
pub(crate) struct Statistics {
    /// When it was.
    pub(crate) at: Duration,
    pub(crate) vms: BTreeMap<u32, VmStatistics>,
}

/// One VM in it.
#[derive(Debug, Clone, PartialEq)]
pub(crate) struct VmStatistics {
    pub(crate) name: String,
    pub(crate) started: Option<Duration>,
    pub(crate) is_template: bool,
    pub(crate) cpus: u64,
    pub(crate) memory: u64,
    pub(crate) disk: u64,
}

impl StandIn {
    /// Lets the rounds happen that are due until then, with what is true now.
    pub(crate) fn observe_until(&mut self, until: Duration) {
        let interval = self.timing.statistics;
        if interval.is_zero() {
            return;
        }
        let rounds = until.as_nanos() / interval.as_nanos();
        let last = interval.saturating_mul(u32::try_from(rounds).unwrap_or(u32::MAX));
        // Nothing changed between the rounds before, so that only the last one counts.
        if last > self.statistics.at {
            self.take_statistics(last);
        }
    }

    pub(crate) fn take_statistics(&mut self, at: Duration) {
        let of_vm = |vmid: &u32, vm: &crate::Vm| VmStatistics {
            name: vm.name().map_or_else(|| format!("VM {vmid}"), str::to_owned),
            started: vm.run.map(|run| run.since),
            is_template: vm.is_template,
            cpus: vm.cpus(),
            memory: vm.memory(),
            disk: vm.disk_bytes(),
        };
        let vms = self.vms.iter().map(|(vmid, vm)| (*vmid, of_vm(vmid, vm))).collect();
        self.statistics = Statistics { at, vms };
    }

    /// What is known of a VM for lists of the whole cluster; nothing if its node is away or no round saw it yet.
    pub(crate) fn seen(&mut self, vmid: u32) -> Option<VmStatistics> {
        if self.timing.statistics.is_zero() {
            self.take_statistics(self.now());
        }
        let node = &self.vms.get(&vmid)?.node;
        self.nodes.get(node).filter(|node| node.is_online)?;
        self.statistics.vms.get(&vmid).cloned()
    }
}
