//! YAML, read as kubectl does and written as Go does.

pub mod node;
pub mod read;
pub mod resolve;
pub mod scalar;
pub mod write;

/// An object as YAML.
pub fn yaml_text(object: &serde_json::Value) -> String {
    let budget = crate::template::budget::RenderBudget::default();
    // What was rendered within a budget fits into one.
    write::written(&crate::template::Value::from_json(object), &budget).unwrap_or_default()
}
