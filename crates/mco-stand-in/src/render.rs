//! The render controller: one configuration for every pool, from the MachineConfigs that the pool selects.

use crate::snapshot::{Action, Kind, Snapshot, Write};
use crate::timing::Timing;
use crate::{API_VERSION, GENERATED_BY, VERSION, ignition, merge, selector};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::time::Duration;

/// The configuration of a pool.
#[derive(Debug, Clone, PartialEq)]
pub struct Rendered {
    /// The rendered MachineConfig.
    pub machine_config: Value,
    /// References to what it was made from, sorted by name.
    pub source: Vec<Value>,
}

impl Rendered {
    /// Its name: `rendered-POOL-HASH`, where the hash depends only on the content.
    pub fn name(&self) -> &str {
        self.machine_config["metadata"]["name"].as_str().unwrap_or_default()
    }
}

/// Renders the configuration of a pool, or says why it cannot be rendered.
pub fn render<'a>(pool: &Value, machine_configs: impl IntoIterator<Item = &'a Value>) -> Result<Rendered, String> {
    let selected = select(pool, machine_configs);
    let pool_name = pool["metadata"]["name"].as_str().unwrap_or_default();
    if selected.is_empty() {
        return Err(format!("no MachineConfigs found matching selector {}", pool["spec"]["machineConfigSelector"]));
    }
    for config in &selected {
        ignition::check(&config["spec"])
            .map_err(|error| format!("machine config {} contains {error}", name_of(config)))?;
    }
    let spec = merge::specs(&selected.iter().map(|config| &config["spec"]).collect::<Vec<_>>());
    if spec["kernelType"] != "default" && has_text(&spec["extensions"], "kernel-devel") {
        let kind = &spec["kernelType"];
        return Err(format!("installing kernel-devel extension is not supported with kernelType: {kind}"));
    }
    let hash: String = Sha256::digest(spec.to_string()).iter().take(16).map(|byte| format!("{byte:02x}")).collect();
    let mut metadata = json!({
        "name": format!("rendered-{pool_name}-{hash}"),
        "annotations": {GENERATED_BY: VERSION},
    });
    if let Some(uid) = pool["metadata"]["uid"].as_str() {
        metadata["ownerReferences"] = json!([{
            "apiVersion": API_VERSION, "kind": "MachineConfigPool", "name": pool_name, "uid": uid,
            "controller": true, "blockOwnerDeletion": true,
        }]);
    }
    let source = selected.iter().map(|config| reference(name_of(config))).collect();
    let machine_config =
        json!({"apiVersion": API_VERSION, "kind": "MachineConfig", "metadata": metadata, "spec": spec});
    Ok(Rendered { machine_config, source })
}

fn reference(name: &str) -> Value {
    json!({"apiVersion": API_VERSION, "kind": "MachineConfig", "name": name})
}

fn name_of(object: &Value) -> &str {
    object["metadata"]["name"].as_str().unwrap_or_default()
}

fn has_text(list: &Value, text: &str) -> bool {
    list.as_array().is_some_and(|items| items.iter().any(|item| item == text))
}

/// The MachineConfigs that a pool selects, sorted by name.
fn select<'a>(pool: &Value, machine_configs: impl IntoIterator<Item = &'a Value>) -> Vec<&'a Value> {
    let wanted = &pool["spec"]["machineConfigSelector"];
    let is_selected = |config: &&Value| selector::selects(wanted, &config["metadata"]["labels"]);
    let mut selected: Vec<&Value> = machine_configs.into_iter().filter(is_selected).collect();
    selected.sort_by_key(|config| name_of(config));
    selected
}

/// What the render controller remembers of one pool.
#[derive(Debug, Default)]
pub(crate) struct RenderState {
    /// The specs that were rendered last, by name.
    inputs: Option<Vec<(String, Value)>>,
    /// When changed specs are rendered.
    due: Option<Duration>,
    outcome: Option<Result<Rendered, String>>,
}

impl RenderState {
    /// Why the last render failed.
    pub(crate) fn error(&self) -> Option<&str> {
        self.outcome.as_ref()?.as_ref().err().map(String::as_str)
    }

    /// When it has something to do.
    pub(crate) fn due(&self) -> Option<Duration> {
        self.due
    }

    /// Renders when it is time, and returns what is missing of the last result.
    pub(crate) fn step(&mut self, pool: &Value, snapshot: &Snapshot, timing: &Timing, now: Duration) -> Vec<Write> {
        let configs = || snapshot.machine_configs.values();
        let inputs = select(pool, configs());
        let rendered = self.inputs.iter().flatten().map(|(name, spec)| (name.as_str(), spec));
        let is_rendered =
            self.inputs.is_some() && rendered.eq(inputs.iter().map(|config| (name_of(config), &config["spec"])));
        if is_rendered {
            self.due = None;
        } else {
            // As in a work queue: further changes before the render do not delay it.
            let due = *self.due.get_or_insert(now + timing.render_delay);
            if now >= due {
                self.outcome = Some(render(pool, configs()));
                let inputs = inputs.iter().map(|config| (name_of(config).to_owned(), config["spec"].clone()));
                (self.inputs, self.due) = (Some(inputs.collect()), None);
            }
        }
        let Some(Ok(rendered)) = &self.outcome else { return Vec::new() };
        if !snapshot.machine_configs.contains_key(rendered.name()) {
            let create = Action::Create(rendered.machine_config.clone());
            return vec![Write::new(Kind::MachineConfig, rendered.name(), create)];
        }
        let configuration = json!({"spec": {"configuration": {"name": rendered.name(), "source": rendered.source}}});
        Write::patch(Kind::Pool, name_of(pool), pool, &configuration).into_iter().collect()
    }
}
