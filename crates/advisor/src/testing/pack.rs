//! A pack with small profiles: one with an object for nodes, one that depends on an input and one that depends on options; one that changes the
//! HyperConverged; and one that is a rival of the first.

use catalog::{Catalog, Files};
use std::collections::BTreeMap;
use std::sync::LazyLock;

/// The namespace of the HyperConverged and of everything that is namespaced.
pub(crate) const NAMESPACE: &str = "virt";
/// The profile.
pub(crate) const PROFILE: &str = "advice";
/// Another profile, which wants the same object as the first one.
pub(crate) const RIVAL: &str = "rival";
/// A profile that changes the HyperConverged between two objects of its own.
pub(crate) const DENSITY: &str = "density";
/// A profile that changes the HyperConverged and nothing else; its asset asks for an object then.
pub(crate) const OVERCOMMIT_ONLY: &str = "overcommit-only";
/// A profile whose template looks at its own object, and keeps what it finds there.
pub(crate) const KEEPER: &str = "keeper";
/// Another profile that wants an object of the first one differently; its asset asks for an object first, and names none before.
pub(crate) const ASKING_RIVAL: &str = "asking-rival";
/// A profile with an object that is never deleted, and another one.
pub(crate) const STORE: &str = "store";
/// A profile that changes a field of the HyperConverged which has another place in each version.
pub(crate) const RATIO: &str = "ratio";
/// A profile with an object whose operator reports in its status, and another one that is written after it.
pub(crate) const LOGGING: &str = "logging";
/// The objects of the profile, in the order of its items.
pub(crate) const OBJECTS: [&str; 3] = ["MachineConfig 90-args", "ConfigMap virt/limits", "ConfigMap virt/sizes"];

const METADATA: &str = "assets: []
profile_assets:
- {name: args, path: active/args.yaml.tpl, component: X, impact: high, gate_crd: machineconfigs.machineconfiguration.openshift.io}
- {name: limits, path: active/limits.yaml.tpl, component: X}
- {name: sizes, path: active/sizes.yaml.tpl, component: X}
- {name: rival, path: active/rival.yaml.tpl, component: X}
- {name: swap, path: active/swap.yaml.tpl, component: X}
- {name: overcommit, path: active/overcommit.yaml.tpl, component: X}
- {name: descheduler, path: active/descheduler.yaml.tpl, component: X}
- {name: kept, path: active/kept.yaml.tpl, component: X}
- {name: asking-rival, path: active/asking-rival.yaml.tpl, component: X}
- {name: logs, path: active/logs.yaml.tpl, component: X, prune: never}
- {name: collector, path: active/collector.yaml.tpl, component: X}
- {name: stack, path: active/stack.yaml.tpl, component: X, reports: true}
- {name: ratio, path: active/ratio.yaml.tpl, component: X, prune: never}
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
const SWAP: &str = "apiVersion: v1
kind: ConfigMap
metadata: {name: swap, namespace: virt}
data: {swap: 'on'}
";
// As our own profile: the HyperConverged is changed, and never created.
const OVERCOMMIT: &str = "{{- if not .HCO.GetName }}
{{- notApplicable \"there is no HyperConverged\" }}
{{- end }}
apiVersion: hco.kubevirt.io/v1
kind: HyperConverged
metadata: {name: {{ .HCO.GetName }}, namespace: virt}
{{- if eq (dig \"platform.kubevirt.io/overcommit-asks\" \"\" .HCO.GetAnnotations) \"true\" }}
{{- $_ := getConfigMapData \"virt\" \"flag\" \"x\" }}
{{- end }}
spec: {overcommit: {{ ternary 150 120 (eq (dig \"platform.kubevirt.io/density-swap\" \"true\" .HCO.GetAnnotations) \"true\") }}}
";
const DESCHEDULER: &str = "apiVersion: v1
kind: ConfigMap
metadata: {name: descheduler, namespace: virt}
data: {mode: '{{ dig \"platform.kubevirt.io/density-mode\" \"unset\" .HCO.GetAnnotations }}'}
";
const KEPT: &str = "{{- $live := lookup \"v1\" \"ConfigMap\" \"virt\" \"kept\" }}
apiVersion: v1
kind: ConfigMap
metadata: {name: kept, namespace: virt}
data: {mode: ours, color: '{{ dig \"data\" \"color\" \"blue\" $live }}'}
";
const ASKING_RIVALS: &str = "{{- $name := getConfigMapData \"virt\" \"flag\" \"name\" | default \"sizes\" }}
apiVersion: v1
kind: ConfigMap
metadata: {name: {{ $name }}, namespace: virt}
data: {color: red}
";
const LOGS: &str = "apiVersion: v1
kind: ConfigMap
metadata: {name: logs, namespace: virt}
data: {logs: 'on'}
";
const COLLECTOR: &str = "apiVersion: v1
kind: ConfigMap
metadata: {name: collector, namespace: virt}
data: {collects: 'on'}
";
const RATIOS: &str = "apiVersion: {{ .HCO.GetAPIVersion }}
kind: HyperConverged
metadata: {name: {{ .HCO.GetName }}, namespace: virt}
{{- if hasSuffix \"/v1beta1\" .HCO.GetAPIVersion }}
spec: {higherWorkloadDensity: {memoryOvercommitPercentage: 150}}
{{- else }}
spec: {virtualization: {higherWorkloadDensity: {memoryOvercommitPercentage: 150}}}
{{- end }}
";
const STACK: &str = "apiVersion: loki.grafana.com/v1
kind: LokiStack
metadata: {name: stack, namespace: virt}
spec: {size: 1x.small}
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
const OF_DENSITY: &str = "name: density
category: c
description: D.
impact_summary: I.
advertised: true
options:
  key: density
  properties:
    enableSwap: {type: boolean, description: d, default: true}
    mode: {type: string, description: d, enum: [Automatic, Predictive], default: Automatic}
items:
- {name: swap, description: Sets swap., asset: swap, when: enableSwap}
- {name: overcommit, description: Sets overcommit., asset: overcommit, needs: [swap]}
- {name: descheduler, description: Sets a mode., asset: descheduler}
settings:
- {key: platform.kubevirt.io/density-mode, option: mode}
- {key: platform.kubevirt.io/density-swap, option: enableSwap}
";
const OF_OVERCOMMIT_ONLY: &str = "name: overcommit-only
category: c
description: D.
impact_summary: I.
advertised: false
items:
- {name: overcommit, description: Sets overcommit., asset: overcommit}
settings:
- {key: platform.kubevirt.io/overcommit-asks, value: \"true\"}
";
const OF_KEEPER: &str = "name: keeper
category: c
description: D.
impact_summary: I.
advertised: false
items:
- {name: kept, description: Keeps a color., asset: kept}
";
const OF_ASKING_RIVAL: &str = "name: asking-rival
category: c
description: D.
impact_summary: I.
advertised: false
items:
- {name: asks, description: Sets a color., asset: asking-rival}
";
const OF_STORE: &str = "name: store
category: c
description: D.
impact_summary: I.
advertised: false
options:
  key: store
  properties:
    logging: {type: boolean, description: d, default: true}
items:
- {name: logs, description: Keeps logs., asset: logs, when: logging}
- {name: collector, description: Collects logs., asset: collector, when: logging}
";
const OF_LOGGING: &str = "name: logging
category: c
description: D.
impact_summary: I.
advertised: false
items:
- {name: stack, description: Stores logs., asset: stack}
- {name: limits, description: Sets limits., asset: limits}
";
const OF_RATIO: &str = "name: ratio
category: c
description: D.
impact_summary: I.
advertised: false
items:
- {name: ratio, description: Sets a ratio., asset: ratio}
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
        ("active/swap.yaml.tpl", SWAP),
        ("active/overcommit.yaml.tpl", OVERCOMMIT),
        ("active/descheduler.yaml.tpl", DESCHEDULER),
        ("active/kept.yaml.tpl", KEPT),
        ("active/asking-rival.yaml.tpl", ASKING_RIVALS),
        ("active/logs.yaml.tpl", LOGS),
        ("active/collector.yaml.tpl", COLLECTOR),
        ("active/ratio.yaml.tpl", RATIOS),
        ("active/stack.yaml.tpl", STACK),
        ("profiles/asking-rival.yaml", OF_ASKING_RIVAL),
        ("profiles/store.yaml", OF_STORE),
        ("profiles/logging.yaml", OF_LOGGING),
        ("profiles/ratio.yaml", OF_RATIO),
        ("profiles/advice.yaml", ADVICE),
        ("profiles/density.yaml", OF_DENSITY),
        ("profiles/keeper.yaml", OF_KEEPER),
        ("profiles/overcommit-only.yaml", OF_OVERCOMMIT_ONLY),
        ("profiles/rival.yaml", OF_RIVAL),
    ];
    let files: BTreeMap<String, Vec<u8>> =
        files.into_iter().map(|(path, text)| (path.to_owned(), text.as_bytes().to_vec())).collect();
    Catalog::load(Files::new(files)).unwrap_or_else(|faults| panic!("{faults:?}"))
}
