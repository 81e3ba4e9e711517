//! A plan without a cluster: what an installation would create, from facts in a file.

use autopilot::plan::{Item, Plan};
use catalog::{Catalog, Facts};

/// Every object that the facts ask for, as one to be created.
pub(super) fn plan(catalog: &Catalog, facts: &Facts, opt_in: bool) -> Plan {
    let items: Vec<Item> = autopilot::plan::offline(catalog, facts, opt_in);
    Plan { items, in_sync: 0 }
}
