//! Tests of placement.

use super::{Load, Need, Promised, Space, StorageId, choose, fits, loads, space};
use crate::hypervisor::{Listed, MachineId, NodeState, StorageState, Template};
use api::fleet::Overcommit;
use std::collections::{BTreeMap, BTreeSet};

const GIB: u64 = 1 << 30;

fn template(node: &str, storage: &str, is_shared: bool) -> Template {
    Template {
        id: MachineId("900".into()),
        name: "base".into(),
        node: node.into(),
        storage: storage.into(),
        others: BTreeSet::new(),
        is_shared,
        can_link: true,
        disk: "scsi0".into(),
        disk_bytes: 10 * GIB,
        has_agent: true,
    }
}

fn listed(nodes: &[(&str, bool, u64)]) -> Listed {
    let mut listed = Listed::default();
    for (name, is_online, used) in nodes {
        let node = NodeState { is_online: *is_online, cpus: 8, memory: 64 * GIB, memory_used: used * GIB };
        listed.nodes.insert((*name).into(), node);
        let storage = StorageState { bytes: 100 * GIB, used: 50 * GIB, is_shared: true };
        listed.storages.insert(((*name).into(), "ceph".into()), storage);
    }
    listed
}

fn need() -> Need {
    Need { cpus: 4, memory: 8 * GIB, disk: 20 * GIB, storage: None, must_link: false }
}

fn promised(nodes: BTreeMap<String, Load>) -> Promised {
    Promised { nodes, ..Promised::default() }
}

fn place(need: &Need, listed: &Listed, loads: &BTreeMap<String, Load>, nodes: &[&str]) -> Result<String, String> {
    let nodes: Vec<String> = nodes.iter().map(|node| (*node).to_owned()).collect();
    let (templates, promised) = ([template("a", "ceph", true)], promised(loads.clone()));
    choose(need, &templates, &nodes, &BTreeSet::new(), listed, &promised, Overcommit::default()).map(|(node, _)| node)
}

#[test]
fn the_node_with_the_most_free_memory_is_taken() {
    let listed = listed(&[("a", true, 40), ("b", true, 10), ("c", false, 0)]);
    assert_eq!(place(&need(), &listed, &loads(&listed), &[]).unwrap(), "b");
    assert_eq!(place(&need(), &listed, &loads(&listed), &["a", "c"]).unwrap(), "a", "only these are allowed");
    let busy = BTreeMap::from([("b".to_owned(), Load { cpus: 30, ..Load::default() })]);
    assert_eq!(place(&need(), &listed, &busy, &[]).unwrap(), "a", "CPUs are promised 4 times and not more");
}

#[test]
fn what_is_missing_is_said_for_each_node() {
    let listed = listed(&[("a", true, 60), ("c", false, 0)]);
    let missing = place(&need(), &listed, &loads(&listed), &[]).unwrap_err();
    assert_eq!(
        missing,
        "a has 4096 MiB of 8192 MiB memory left; c is offline: end machines, or raise the overcommit of the HypervisorCluster; bring \
         the nodes back that are offline"
    );
    let large = Need { storage: Some("ceph".into()), disk: 60 * GIB, memory: GIB, ..need() };
    let missing = place(&large, &listed, &loads(&listed), &["a"]).unwrap_err();
    assert_eq!(
        missing,
        "ceph on a has 50 GiB of 60 GiB left: free space on ceph, name another storage, or end machines"
    );
}

/// A storage that nodes share has its space once, a local one on each node.
#[test]
fn promised_space_is_not_promised_again_wherever_the_storage_is_reached() {
    let templates = ["a", "b"].map(|node| template(node, "ceph", true));
    let full = Need { storage: Some("ceph".into()), disk: 30 * GIB, memory: GIB, ..need() };
    for is_shared in [true, false] {
        let mut listed = listed(&[("a", true, 0), ("b", true, 40)]);
        listed.storages.values_mut().for_each(|storage| storage.is_shared = is_shared);
        let mut promised = promised(loads(&listed));
        let mut next = || {
            let (node, template) =
                choose(&full, &templates, &[], &BTreeSet::new(), &listed, &promised, Overcommit::default())?;
            promised.add_space(&space(&full, &node, template, &listed).unwrap());
            Ok::<_, String>(node)
        };
        assert_eq!(next().unwrap(), "a");
        if !is_shared {
            assert_eq!(next().unwrap(), "b");
        }
        let missing = next().unwrap_err();
        let left = "ceph on b has 20 GiB of 30 GiB left, because 30 GiB are for machines that are being created";
        assert!(missing.contains(left) && missing.contains("ceph on a has 20 GiB"), "{missing}");
        let of = StorageId::on("a", "ceph", is_shared);
        promised.remove_space(&Space { of, bytes: 30 * GIB });
        let placed = choose(&full, &templates, &[], &BTreeSet::new(), &listed, &promised, Overcommit::default());
        assert_eq!(placed.unwrap().0, "a");
    }
}

#[test]
fn space_does_not_matter_where_the_hypervisor_chooses_storages() {
    let listed = listed(&[("a", true, 0)]);
    let placed = |storage: &str| {
        let templates = [template("a", storage, true)];
        let placed = choose(
            &need(),
            &templates,
            &[],
            &BTreeSet::new(),
            &listed,
            &promised(loads(&listed)),
            Overcommit::default(),
        );
        placed.map(|(node, _)| node)
    };
    assert_eq!(
        (placed(""), placed("other")),
        (Ok("a".to_owned()), Err("a has no storage other: name a storage that these nodes have".to_owned()))
    );
}

#[test]
fn as_many_machines_fit_as_find_a_place_one_after_the_other() {
    let mut random = 7_u64;
    let mut below = |limit: u64| {
        random = random.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (random >> 33) % limit
    };
    let mut most = 0;
    for _ in 0..300 {
        let states = [("a", below(8) > 0, below(60)), ("b", below(8) > 0, below(60)), ("c", true, below(60))];
        let mut listed = listed(&states);
        let is_shared = below(2) == 0;
        listed.storages.values_mut().for_each(|storage| storage.is_shared = is_shared);
        let templates = [template("a", "ceph", true), template("b", ["ceph", ""][below(2) as usize], false)];
        let storage = (below(2) == 0).then(|| "ceph".to_owned());
        let (cpus, memory) = (1 + u32::try_from(below(9)).unwrap(), (1 + below(16)) * GIB);
        let need = Need { cpus, memory, disk: (1 + below(30)) * GIB, storage, must_link: false };
        let nodes: Vec<String> = if below(3) == 0 { vec!["a".into(), "c".into()] } else { Vec::new() };
        let mut promised = promised(loads(&listed));
        let expected = fits(&need, &templates, &nodes, &listed, &promised, Overcommit::default());
        let mut found = 0;
        while let Ok((node, template)) =
            choose(&need, &templates, &nodes, &BTreeSet::new(), &listed, &promised, Overcommit::default())
        {
            found += 1;
            promised.nodes.entry(node.clone()).or_default().promise(need.cpus, need.memory);
            if let Some(space) = space(&need, &node, template, &listed) {
                promised.add_space(&space);
            }
        }
        assert_eq!(expected, found, "{need:?} {listed:?}");
        most = most.max(found);
    }
    assert!(most > 10);
}

#[test]
fn no_machine_has_more_cpus_than_its_node() {
    let listed = listed(&[("a", true, 0)]);
    let large = Need { cpus: 9, ..need() };
    assert_eq!(
        place(&large, &listed, &loads(&listed), &[]).unwrap_err(),
        "a has 8 CPUs, and the machine needs 9: lower resources.cpu of the template, or allow larger nodes"
    );
}

/// P4 for a tag: an older template is not used because it is on the node.
#[test]
fn of_several_templates_the_newest_that_a_node_reaches_is_cloned() {
    let listed = listed(&[("a", true, 0), ("b", true, 0)]);
    let numbered = |id: &str, node: &str, storage: &str, is_shared: bool| Template {
        id: MachineId(id.into()),
        ..template(node, storage, is_shared)
    };
    let templates = [
        numbered("9000", "a", "ceph", true),
        numbered("10001", "b", "ceph", true),
        numbered("10002", "c", "local", false),
    ];
    for node in ["a", "b"] {
        assert_eq!(super::template_for(&need(), node, &templates, &listed).unwrap().id.0, "10001", "{node}");
    }
}

/// P21 for placement: a local template keeps a machine on its node.
#[test]
fn a_template_on_local_storage_is_cloned_on_its_node_only() {
    let listed = listed(&[("a", true, 60), ("b", true, 0)]);
    let templates = [template("a", "local-lvm", false)];
    let found =
        choose(&need(), &templates, &[], &BTreeSet::new(), &listed, &promised(loads(&listed)), Overcommit::default());
    let missing = found.unwrap_err();
    assert!(missing.contains("b has neither the template nor its storage"), "{missing}");
}

/// Proxmox VE: "can't clone to non-shared storage", "storage is not available on node".
#[test]
fn a_full_clone_to_another_node_needs_a_storage_that_both_share() {
    let mut listed = listed(&[("a", true, 40), ("b", true, 0)]);
    let local = StorageState { bytes: 500 * GIB, used: 0, is_shared: false };
    for node in ["a", "b"] {
        listed.storages.insert((node.into(), "local-lvm".into()), local.clone());
    }
    listed.storages.insert(("b".into(), "nfs-b".into()), StorageState { is_shared: true, ..local.clone() });
    let placed = |storage: Option<&str>, of: &[&str], nodes: &[&str]| {
        let full = Need { storage: storage.map(str::to_owned), ..need() };
        let numbered = |(number, node): (usize, &&str)| Template {
            id: MachineId((900 + number).to_string()),
            ..template(node, "ceph", true)
        };
        let templates: Vec<Template> = of.iter().enumerate().map(numbered).collect();
        let nodes: Vec<String> = nodes.iter().map(|node| (*node).to_owned()).collect();
        let (promised, none) = (promised(loads(&listed)), BTreeSet::new());
        let found = choose(&full, &templates, &nodes, &none, &listed, &promised, Overcommit::default());
        found.map(|(node, template)| format!("{node} {}", template.node))
    };
    assert_eq!(placed(None, &["a"], &[]).unwrap(), "b a", "a linked clone");
    assert_eq!(placed(Some("ceph"), &["a"], &[]).unwrap(), "b a");
    assert_eq!(placed(Some("local-lvm"), &["a"], &[]).unwrap(), "a a", "although b has more memory left");
    assert_eq!(placed(Some("local-lvm"), &["b", "a"], &[]).unwrap(), "b b", "a copy on the node, although it is older");
    assert_eq!(
        placed(Some("local-lvm"), &["a"], &["b"]).unwrap_err(),
        "b: the template is on a, and the storage local-lvm is not shared: name a shared storage that all these nodes have, or put a \
         copy of the template on every node"
    );
    let missing = placed(Some("nfs-b"), &["a"], &[]).unwrap_err();
    assert!(missing.contains("b: the template is on a, which has no storage nfs-b"), "{missing}");
    assert!(missing.contains("a has no storage nfs-b"), "{missing}");
}

/// A linked clone links every disk, so that a node needs the storages of all of them.
#[test]
fn a_node_without_the_storage_of_another_disk_of_the_template_is_not_chosen() {
    let mut listed = listed(&[("a", true, 40), ("b", true, 0)]);
    listed.storages.insert(("a".into(), "efi".into()), StorageState { bytes: GIB, used: 0, is_shared: true });
    let templates = [Template { others: ["efi".to_owned()].into(), ..template("a", "ceph", true) }];
    let (promised, none) = (promised(loads(&listed)), BTreeSet::new());
    let placed = choose(&need(), &templates, &[], &none, &listed, &promised, Overcommit::default());
    assert_eq!(placed.unwrap().0, "a");
}

#[test]
fn a_node_that_is_avoided_is_left_out_and_no_other() {
    let listed = listed(&[("a", true, 40), ("b", true, 0)]);
    let place = |avoided: &[&str]| {
        let avoided = avoided.iter().map(|node| (*node).to_owned()).collect();
        let (templates, promised) = ([template("a", "ceph", true)], promised(loads(&listed)));
        choose(&need(), &templates, &[], &avoided, &listed, &promised, Overcommit::default()).map(|(node, _)| node)
    };
    assert_eq!((place(&[]).unwrap(), place(&["b"]).unwrap()), ("b".to_owned(), "a".to_owned()));
    assert!(place(&["a", "b"]).unwrap_err().contains("b has machines that could not be looked at"));
}
