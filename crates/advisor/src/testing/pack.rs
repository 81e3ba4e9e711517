//! A pack with one profile, as small as stories need it: an object for nodes, one that depends on an input, and one that depends on options.

use catalog::{Catalog, Files};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The namespace of the HyperConverged and of everything that is namespaced.
pub(crate) const NAMESPACE: &str = "virt";
/// The profile.
pub(crate) const PROFILE: &str = "advice";
/// Another profile, which wants the same object as the first one.
pub(crate) const RIVAL: &str = "rival";
/// The objects of the profile, in the order of its items.
pub(crate) const OBJECTS: [&str; 3] = ["MachineConfig 90-args", "ConfigMap virt/limits", "ConfigMap virt/sizes"];

const METADATA: &str = "assets: []
profile_assets:
- {name: args, path: active/args.yaml.tpl, component: X, impact: high, gate_crd: machineconfigs.machineconfiguration.openshift.io}
- {name: limits, path: active/limits.yaml.tpl, component: X}
- {name: sizes, path: active/sizes.yaml.tpl, component: X}
- {name: rival, path: active/rival.yaml.tpl, component: X}
";
const ARGS: &str = "apiVersion: machineconfiguration.openshift.io/v1
kind: MachineConfig
metadata: {name: 90-args, labels: {machineconfiguration.openshift.io/role: worker}}
spec: {kernelArguments: [psi=1]}
";
const LIMITS: &str = "apiVersion: v1
kind: ConfigMap
metadata: {name: limits, namespace: virt}
data: {limit: '{{ dig \"spec\" \"limit\" 5 .HCO.Object }}', release: '1'}
";
const SIZES: &str = "apiVersion: v1
kind: ConfigMap
metadata: {name: sizes, namespace: virt}
data: {size: '{{ dig \"platform.kubevirt.io/advice-size\" \"7\" .HCO.GetAnnotations }}'}
";
const RIVALS: &str = "apiVersion: v1
kind: ConfigMap
metadata: {name: sizes, namespace: virt}
data: {color: red}
";
const ADVICE: &str = "name: advice
category: c
description: D.
impact_summary: I.
advertised: true
options:
  key: advice
  properties:
    nodes: {type: boolean, description: d, default: true}
    size: {type: integer, description: d}
items:
- {name: args, description: Sets arguments., asset: args, when: nodes, formerly: 99-args}
- {name: limits, description: Sets limits., asset: limits}
- {name: sizes, description: Sets sizes., asset: sizes}
settings:
- {key: platform.kubevirt.io/advice-size, option: size}
inputs:
- {name: limit, paths: [spec.limit]}
- {name: other, paths: [spec.other]}
";
const OF_RIVAL: &str = "name: rival
category: c
description: D.
impact_summary: I.
advertised: false
items:
- {name: sizes, description: Sets a color., asset: rival}
";

/// The pack of a release; each wants something else.
pub(crate) fn catalog(release: u8) -> Catalog {
    static FIRST: LazyLock<Catalog> = LazyLock::new(|| load(1));
    if release == 1 { FIRST.clone() } else { load(release) }
}

fn load(release: u8) -> Catalog {
    let limits = LIMITS.replace("release: '1'", &format!("release: '{release}'"));
    let files = [
        ("active/metadata.yaml", METADATA),
        ("active/args.yaml.tpl", ARGS),
        ("active/limits.yaml.tpl", &limits),
        ("active/sizes.yaml.tpl", SIZES),
        ("active/rival.yaml.tpl", RIVALS),
        ("profiles/advice.yaml", ADVICE),
        ("profiles/rival.yaml", OF_RIVAL),
    ];
    let files: BTreeMap<String, Vec<u8>> =
        files.into_iter().map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec())).collect();
    Catalog::load(Files::new(files)).unwrap_or_else(|faults| panic!("{faults:?}"))
}
