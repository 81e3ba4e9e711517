//! The gate that decides agrees with what the operator decides, for every asset of our pack and many clusters.

use autopilot::{AssetResult, Before, GateKind, GateOutcome, evaluate, gates};
use catalog::{Catalog, Facts, Hardware, Need, Topology};
use serde_json::{Map, json};

/// Numbers that look random and are the same in every run.
struct Numbers(u64);

impl Numbers {
    fn below(&mut self, most: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % most
    }
}

fn facts(catalog: &Catalog, numbers: &mut Numbers) -> Facts {
    let mut annotations = Map::new();
    for setting in catalog.all_settings() {
        let value = ["true", "True", "false", "yes"].get(usize::try_from(numbers.below(8)).unwrap());
        annotations.extend(value.map(|value| (setting.key, json!(value))));
    }
    let own =
        [("autopilot", "true"), ("autopilot", "swap, mtv"), ("disabled-resources", "MachineConfig/*, service/virt-*")];
    for (name, value) in own {
        if numbers.below(4) == 0 {
            annotations.insert(format!("{}{name}", api::annotation::PREFIX), json!(value));
        }
    }
    let hco = json!({
        "apiVersion": "hco.kubevirt.io/v1", "kind": "HyperConverged",
        "metadata": {"name": api::hco::NAME, "namespace": "n", "annotations": annotations}, "spec": {},
    });
    let hardware = Hardware {
        gpu_present: numbers.below(2) == 0,
        pci_devices_present: numbers.below(2) == 0,
        usb_devices_present: numbers.below(2) == 0,
        ..Hardware::default()
    };
    let topology = Topology { is_hcp: numbers.below(4) == 0, is_compact: numbers.below(4) == 0, ..Topology::default() };
    let needs: Vec<Need> = catalog.assets.iter().flat_map(Need::all_of).collect();
    let absent = needs.into_iter().filter(|_| numbers.below(4) == 0).collect();
    Facts { hco, hardware, topology, absent, ..Facts::default() }
}

#[test]
fn the_deciding_gate_agrees_with_the_evaluation_of_every_asset() {
    let catalog = crate::pack::embedded().unwrap_or_else(|error| panic!("{error}"));
    let mut numbers = Numbers(7);
    let (mut decided, mut included) = (0, 0);
    for _ in 0..40 {
        let facts = facts(&catalog, &mut numbers);
        let evaluation = evaluate(&catalog, &facts, false, Before::default());
        for outcome in &evaluation.outcomes {
            let rows = gates(&catalog, &facts, &evaluation, outcome);
            let deciding: Vec<usize> = (0..rows.len()).filter(|place| rows[*place].decides).collect();
            let AssetResult::Included(_) = outcome.result else {
                let [place] = deciding[..] else { panic!("{}: {rows:#?}", outcome.asset) };
                assert_ne!(rows[place].outcome, GateOutcome::Open, "{}: {rows:#?}", outcome.asset);
                // Among conditions, one that the user can change comes before the others.
                let is_condition = |gate: GateKind| matches!(gate, GateKind::Switch | GateKind::Fact);
                let before =
                    rows[..place].iter().filter(|row| !(is_condition(row.gate) && is_condition(rows[place].gate)));
                assert!(before.into_iter().all(|row| row.outcome == GateOutcome::Open), "{}: {rows:#?}", outcome.asset);
                decided += 1;
                continue;
            };
            assert!(rows.iter().all(|row| row.outcome == GateOutcome::Open && !row.decides), "{rows:#?}");
            included += 1;
        }
    }
    assert!(decided > 500 && included > 100, "{decided} {included}");
}
