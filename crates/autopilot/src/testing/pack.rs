//! A catalogue from text, as small as stories need it.

use catalog::{Catalog, Files};
use std::collections::BTreeMap;

/// The namespace of the HyperConverged and of everything that is namespaced.
pub(crate) const NAMESPACE: &str = "virt";

/// A pack of assets.
#[derive(Debug, Clone, Default)]
pub(crate) struct Pack {
    entries: String,
    /// Assets that only profiles use.
    profile_entries: String,
    files: BTreeMap<String, Vec<u8>>,
}

impl Pack {
    /// The pack of most stories. All assets have the order 5 but `kernel` and `descheduler`.
    ///
    /// - `plain`: a ConfigMap; `service`: a Service, which has a list;
    /// - `opted`: a ConfigMap for `enable-opted=true`; `lasting`: one for `enable-lasting=true` that is never pruned;
    /// - `gpu`: a ConfigMap where a node has a GPU; `asking`: a ConfigMap with `color` of the ConfigMap `source`;
    /// - `kernel`: a MachineConfig of the pool worker (High); `descheduler`: a KubeDescheduler, whose CRD is not installed;
    /// - a tombstone: the ConfigMap `old`; a profile `density` of `plain`, `opted` and `kernel`.
    pub(crate) fn standard() -> Pack {
        let opted = |name: &str| {
            format!(
                "install: opt-in, reconcile_order: 5, group: extras, conditions: [{{type: annotation, key: platform.kubevirt.io/enable-{name}, value: \"true\"}}]"
            )
        };
        let gpu = "install: opt-in, reconcile_order: 5, group: extras, conditions: [{type: hardware-detection, detector: gpuPresent}]";
        let kernel = "apiVersion: machineconfiguration.openshift.io/v1\nkind: MachineConfig\n\
            metadata: {name: kernel, labels: {machineconfiguration.openshift.io/role: worker}}\n\
            spec: {kernelArguments: [quiet], kernelType: default}\n";
        let descheduler = "apiVersion: operator.openshift.io/v1\nkind: KubeDescheduler\n\
            metadata: {name: cluster, namespace: virt}\nspec: {mode: Automatic}\n";
        let service = "apiVersion: v1\nkind: Service\nmetadata: {name: service, namespace: virt}\n\
            spec: {selector: {app: virt}, ports: [{name: metrics, port: 8080}]}\n";
        let asking = "data: {color: '{{ getConfigMapData \"virt\" \"source\" \"color\" }}'}";
        Pack::default()
            .asset("plain", ALWAYS, &config_map("plain", "data: {level: \"1\", mode: auto}"))
            .asset("service", ALWAYS, service)
            .asset("opted", &opted("opted"), &config_map("opted", "data: {size: small}"))
            .asset(
                "lasting",
                &format!("{}, prune: never", opted("lasting")),
                &config_map("lasting", "data: {size: large}"),
            )
            .asset("gpu", gpu, &config_map("gpu", "data: {driver: open}"))
            .asset("asking", ALWAYS, &config_map("asking", asking))
            .asset("kernel", "install: always, reconcile_order: 1", kernel)
            .asset("descheduler", "install: always, reconcile_order: 9", descheduler)
            .tombstone("old", &config_map("old", ""))
            .profile("density", &["plain", "opted", "kernel"])
    }

    /// Adds an asset: its keys in the catalogue, and its template.
    pub(crate) fn asset(mut self, name: &str, keys: &str, template: &str) -> Pack {
        self.entries.push_str(&format!("  - {{name: {name}, path: active/{name}.yaml.tpl, component: X, {keys}}}\n"));
        self.files.insert(format!("active/{name}.yaml.tpl"), template.as_bytes().to_vec());
        self
    }

    /// Adds a tombstone.
    pub(crate) fn tombstone(mut self, name: &str, object: &str) -> Pack {
        let label = format!("labels: {{{}: {}}}", api::MANAGED_BY.0, api::MANAGED_BY.1);
        let object = object.replacen("metadata: {", &format!("metadata: {{{label}, "), 1);
        self.files.insert(format!("tombstones/{name}.yaml"), object.into_bytes());
        self
    }

    /// Adds an asset that only profiles use.
    pub(crate) fn profile_asset(mut self, name: &str, template: &str) -> Pack {
        self.profile_entries.push_str(&format!("  - {{name: {name}, path: active/{name}.yaml.tpl, component: X}}\n"));
        self.files.insert(format!("active/{name}.yaml.tpl"), template.as_bytes().to_vec());
        self
    }

    /// Adds a profile with one item for each of these assets.
    pub(crate) fn profile(mut self, name: &str, assets: &[&str]) -> Pack {
        let item = |asset: &&str| format!("  - {{name: {asset}, description: An object., asset: {asset}}}\n");
        let items: String = assets.iter().map(item).collect();
        let head = format!("name: {name}\ncategory: c\ndescription: D.\nimpact_summary: I.\nadvertised: false\n");
        self.files.insert(format!("profiles/{name}.yaml"), format!("{head}items:\n{items}").into_bytes());
        self
    }

    /// Adds a profile with one item, whose object the Go operator made under this name.
    pub(crate) fn profile_with_former(mut self, name: &str, asset: &str, formerly: &str) -> Pack {
        let head = format!("name: {name}\ncategory: c\ndescription: D.\nimpact_summary: I.\nadvertised: false\n");
        let item = format!("  - {{name: {asset}, description: An object., asset: {asset}, formerly: {formerly}}}\n");
        self.files.insert(format!("profiles/{name}.yaml"), format!("{head}items:\n{item}").into_bytes());
        self
    }

    /// Only these assets and tombstones.
    pub(crate) fn only(mut self, names: &[&str]) -> Pack {
        let is_named = |name: &str| names.contains(&name);
        let entries = self.entries.lines().filter(|line| {
            let name = line.trim_start_matches("  - {name: ").split(',').next();
            name.is_some_and(is_named)
        });
        self.entries = entries.map(|line| format!("{line}\n")).collect();
        self.files.retain(|path, _| path.split(['/', '.']).nth(1).is_some_and(is_named));
        self
    }

    /// Replaces the template of an asset, as another release would.
    pub(crate) fn with_template(mut self, name: &str, template: &str) -> Pack {
        self.files.insert(format!("active/{name}.yaml.tpl"), template.as_bytes().to_vec());
        self
    }

    /// The catalogue.
    pub(crate) fn catalog(&self) -> Catalog {
        let mut files = self.files.clone();
        let names: Vec<&str> =
            files.keys().filter_map(|path| path.strip_prefix("active/")?.strip_suffix(".yaml.tpl")).collect();
        let names: Vec<&str> =
            names.into_iter().filter(|name| self.entries.contains(&format!("{{name: {name},"))).collect();
        let profile_assets = match self.profile_entries.as_str() {
            "" => String::new(),
            entries => format!("profile_assets:\n{entries}"),
        };
        let excluded = names.join(", ");
        let catalogue = format!("assets:\n{}{profile_assets}excluded_assets: [{excluded}]\n", self.entries);
        files.insert("active/metadata.yaml".into(), catalogue.into_bytes());
        Catalog::load(Files::new(files)).unwrap_or_else(|faults| panic!("{faults:?}"))
    }
}

/// The keys of an asset that always applies.
pub(crate) const ALWAYS: &str = "install: always, reconcile_order: 5";

/// The template of a ConfigMap.
pub(crate) fn config_map(name: &str, more: &str) -> String {
    format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: {NAMESPACE}}}\n{more}\n")
}
