//! The scripts and configuration files of assets, as large and about as compressible as real ones.

use super::kinds::KINDS;
use std::collections::BTreeMap;

/// The number of settings in a script or configuration file.
const SETTINGS: usize = 200;

/// Every file that an asset's parameter names, by its path in the pack.
pub(super) fn files() -> BTreeMap<String, String> {
    let named = KINDS.iter().flat_map(|kind| kind.params).filter(|(param, _)| ["script", "file"].contains(param));
    let paths = named.flat_map(|(_, values)| values);
    paths
        .zip(1..)
        .map(|(path, seed)| {
            let text = if path.ends_with(".sh") { script(seed) } else { settings(seed) };
            (format!("active/{path}"), text)
        })
        .collect()
}

fn script(seed: u32) -> String {
    let mut text = String::from(
        "#!/bin/sh\n# Sets kernel parameters; parameters that this kernel does not have are skipped.\nset -eu\n\n\
         put() { if [ -w \"$1\" ]; then printf '%s\\n' \"$2\" >\"$1\"; else echo \"no $1\" >&2; fi; }\n\n",
    );
    for (knob, value) in values(seed).enumerate() {
        text.push_str(&format!("put /sys/kernel/mm/bench/knob_{knob:03}_{:04x} {value}\n", value % 65536));
    }
    text
}

fn settings(seed: u32) -> String {
    let mut text = String::from("collectors:\n");
    for (number, value) in values(seed).enumerate() {
        text.push_str(&format!("  - {{name: collector_{number:03}, timeoutMilliseconds: {}}}\n", value % 60_000));
    }
    text
}

/// A fixed pseudo-random sequence.
fn values(seed: u32) -> impl Iterator<Item = u32> {
    let next = |value: &u32| Some(value.wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
    std::iter::successors(Some(seed), next).skip(1).take(SETTINGS)
}
