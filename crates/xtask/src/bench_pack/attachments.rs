//! The scripts and settings that assets carry: as long as real ones, and about as hard to compress.

use super::kinds::KINDS;
use std::collections::BTreeMap;

/// Settings of one script or one configuration file.
const SETTINGS: usize = 200;

/// Every file that a parameter of an asset names, by its path from the pack's folder.
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
        "#!/bin/sh\n# Writes what the kernel is to use; what this kernel does not have is passed over.\nset -eu\n\n\
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

/// Numbers that look like chance and are the same every time.
fn values(seed: u32) -> impl Iterator<Item = u32> {
    let next = |value: &u32| Some(value.wrapping_mul(1_664_525).wrapping_add(1_013_904_223));
    std::iter::successors(Some(seed), next).skip(1).take(SETTINGS)
}
