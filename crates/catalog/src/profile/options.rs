//! The values of a profile's options.

use super::ProfileOptions;
use serde_json::{Map, Value};

/// The schema of an option; a path with dots reaches into objects.
pub(super) fn schema<'a>(options: &'a ProfileOptions, path: &str) -> Option<&'a Value> {
    let mut steps = path.split('.');
    let first = options.properties.get(steps.next()?)?;
    steps.try_fold(first, |schema, step| schema.get("properties")?.get(step))
}

/// The value of an option: as written, or its default.
pub(super) fn value(
    options: Option<&ProfileOptions>,
    written: Option<&Map<String, Value>>,
    path: &str,
) -> Option<Value> {
    let mut steps = path.split('.');
    let first = steps.next().and_then(|step| written?.get(step));
    match first.and_then(|first| steps.try_fold(first, |value, step| value.get(step))) {
        Some(value) if !value.is_null() => Some(value.clone()),
        _ => schema(options?, path)?.get("default").cloned(),
    }
}

/// A value as the text of an annotation.
pub(super) fn text(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        other => other.to_string(),
    }
}
