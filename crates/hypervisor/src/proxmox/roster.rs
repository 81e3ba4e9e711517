//! The machines of the cluster, for those who look for one of them: one list answers everybody who has asked before it was begun.

use crate::proxmox::client::Client;
use crate::proxmox::list::seen;
use crate::proxmox::resources::{Words, each};
use crate::proxmox::trouble::Trouble;
use fleet::hypervisor::Seen;
use std::collections::BTreeMap;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use tokio::sync::Mutex;

/// A machine of the cluster.
#[derive(Debug, Clone)]
pub(crate) struct Machine {
    /// Whether it is a virtual machine; containers take ids, too.
    pub(crate) is_virtual: bool,
    pub(crate) seen: Seen,
}

type Machines = Arc<BTreeMap<u32, Machine>>;

/// Lists on demand.
#[derive(Default)]
pub(crate) struct Roster {
    /// How often it was asked.
    asked: AtomicU64,
    last: Mutex<Last>,
}

/// The last list.
#[derive(Default)]
struct Last {
    /// Those who had asked before it was begun.
    answers: u64,
    list: Option<Result<Machines, Trouble>>,
}

impl Roster {
    /// The machine with an id, as a list shows it that was begun after this call.
    pub(crate) async fn find(&self, client: &Client, vmid: &str) -> Result<Option<Machine>, Trouble> {
        let own = self.asked.fetch_add(1, Ordering::SeqCst);
        let mut last = self.last.lock().await;
        let known = last.list.clone().filter(|_| own < last.answers);
        let list = match known {
            Some(list) => list,
            None => {
                // While it is fetched, the one before is needed by nobody.
                last.list = None;
                let answers = self.asked.load(Ordering::SeqCst);
                let list = machines(client).await;
                *last = Last { answers, list: Some(list.clone()) };
                list
            }
        };
        drop(last);
        let id = vmid.parse().unwrap_or_default();
        list.map(|machines| machines.get(&id).cloned())
    }

    /// Forgets the last list, which nobody waits for after a while.
    pub(crate) fn forget(&self) {
        if let Ok(mut last) = self.last.try_lock() {
            last.list = None;
        }
    }
}

async fn machines(client: &Client) -> Result<Machines, Trouble> {
    let (mut machines, mut words) = (BTreeMap::new(), Words::default());
    each(client, Some("vm"), |resource| {
        if let Ok(id) = resource.vmid.parse() {
            let is_virtual = resource.kind == "qemu";
            machines.insert(id, Machine { is_virtual, seen: seen(&resource, &mut words) });
        }
    })
    .await?;
    Ok(Arc::new(machines))
}
