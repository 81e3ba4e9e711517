//! Parses YAML into JSON values.

use crate::template::budget::{DEPTH, TEXT_BYTES};
use serde_json::{Number, Value};

/// An error of the parser and its line.
#[derive(Debug, PartialEq, Eq)]
pub struct YamlError {
    /// The line, if it is known.
    pub line: Option<usize>,
    /// The reason.
    pub message: String,
}

/// The options of the parser: `0644` is an octal number, as in YAML 1.1.
pub fn options() -> serde_saphyr::Options {
    serde_saphyr::options! {
        legacy_octal_numbers: true,
        budget: serde_saphyr::budget! { max_depth: DEPTH },
        // Aliases are expanded, so a short text can become a large document.
        alias_limits: serde_saphyr::alias_limits! { max_total_replayed_events: 20_000 },
        with_snippet: false,
    }
}

/// Parses the documents of a text, without those that have only comments.
pub fn documents(text: &str) -> Result<Vec<Value>, YamlError> {
    if text.len() > TEXT_BYTES {
        return Err(YamlError { line: None, message: format!("it is longer than {TEXT_BYTES} bytes") });
    }
    let mut documents: Vec<Value> =
        serde_saphyr::from_multiple_with_options(text, options()).map_err(|error| yaml_error(&error))?;
    for document in &mut documents {
        make_whole(document);
    }
    Ok(documents)
}

/// Converts an error of the parser, without the position that its text repeats.
pub fn yaml_error(error: &serde_saphyr::Error) -> YamlError {
    let line = error.location().and_then(|location| usize::try_from(location.line()).ok());
    let message = error.without_snippet().to_string();
    let message = message.split(" at line ").next().unwrap_or(&message).to_owned();
    let message = message.split(", set DuplicateKeyPolicy").next().unwrap_or(&message).to_owned();
    YamlError { line, message }
}

/// Converts floats such as `1.0` and `1e3` to integers, because JSON in Kubernetes does not distinguish them.
fn make_whole(value: &mut Value) {
    match value {
        Value::Number(number) if number.is_f64() => {
            let float = number.as_f64().unwrap_or(0.0);
            if float.fract() == 0.0 && float.abs() < 9.2e18 {
                *number = Number::from(float as i64);
            }
        }
        Value::Array(items) => items.iter_mut().for_each(make_whole),
        Value::Object(entries) => entries.values_mut().for_each(make_whole),
        _ => {}
    }
}

/// The type of a value, for messages.
pub fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "nothing",
        Value::Bool(_) => "true or false",
        Value::Number(_) => "a number",
        Value::String(_) => "text",
        Value::Array(_) => "a list",
        Value::Object(_) => "a map",
    }
}

#[cfg(test)]
mod tests {
    use super::documents;
    use crate::template::budget::TEXT_BYTES;

    #[test]
    fn a_text_may_be_as_long_as_its_limit() {
        let comment = format!("#{}", "x".repeat(TEXT_BYTES - 1));
        assert!(documents(&comment).is_ok());
        for more in ["x", "xx"] {
            assert!(documents(&format!("{comment}{more}")).is_err());
        }
    }

    #[test]
    fn a_whole_number_is_an_integer_unless_it_is_too_large() {
        let read = |text: &str| documents(text).unwrap().remove(0).to_string();
        assert_eq!(read("[1.0, 1e3, -9.1e18, 9.2e18, 1.5]"), "[1,1000,-9100000000000000000,9.2e+18,1.5]");
    }
}
