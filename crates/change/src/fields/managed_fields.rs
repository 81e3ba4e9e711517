//! `metadata.managedFields` as the server sent it, stored as text because a tree takes many times the memory.

use crate::fields::entry::Entry;
use crate::fields::field_set::FieldSet;
use serde::Deserialize;
use serde::de::IgnoredAny;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Deeper JSON is not parsed, so that no input can exhaust the stack.
const DEEPEST: usize = 127;

/// All entries of `managedFields`, as text.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct ManagedFields(Box<str>);

/// The fields that the server recorded as owned by our applies, and when.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Claim {
    fields: Box<str>,
    time: Box<str>,
}

#[derive(Deserialize)]
struct Raw<'a> {
    #[serde(default, borrow)]
    manager: Cow<'a, str>,
    #[serde(default, borrow)]
    operation: Cow<'a, str>,
    #[serde(default, borrow)]
    subresource: Cow<'a, str>,
    #[serde(default, borrow)]
    time: Cow<'a, str>,
    #[serde(default, borrow, rename = "fieldsV1")]
    fields: Option<&'a RawValue>,
}

impl ManagedFields {
    /// Stores the server's text.
    pub fn new(text: &str) -> ManagedFields {
        ManagedFields(text.into())
    }

    /// How long the text is.
    pub(crate) fn bytes(&self) -> usize {
        self.0.len()
    }

    /// Whether it can be parsed: fields of others may be nested deeper than anything of ours.
    pub fn is_readable(&self) -> bool {
        let (mut depth, mut deepest, mut in_text, mut is_escaped) = (0_usize, 0, false, false);
        for byte in self.0.bytes() {
            match byte {
                _ if is_escaped => is_escaped = false,
                b'\\' => is_escaped = in_text,
                b'"' => in_text = !in_text,
                b'{' | b'[' if !in_text => {
                    depth += 1;
                    deepest = depth.max(deepest);
                }
                b'}' | b']' if !in_text => depth = depth.saturating_sub(1),
                _ => {}
            }
        }
        deepest <= DEEPEST
    }

    /// All entries, parsed.
    pub fn entries(&self) -> Vec<Entry> {
        serde_json::from_str(&self.0).unwrap_or_default()
    }

    /// The entries as a JSON value.
    pub fn value(&self) -> Value {
        serde_json::from_str(&self.0).unwrap_or_default()
    }

    /// The claim of this field manager's applies to the object itself.
    pub fn claim(&self, manager: &str) -> Option<Claim> {
        let entries: Vec<Raw<'_>> = serde_json::from_str(&self.0).ok()?;
        let is_ours =
            |entry: &Raw<'_>| entry.operation == "Apply" && entry.manager == manager && entry.subresource.is_empty();
        let ours = entries.into_iter().find(is_ours)?;
        Some(Claim { fields: ours.fields.map_or("{}", RawValue::get).into(), time: ours.time.into() })
    }
}

impl Claim {
    /// The claimed fields.
    pub fn fields(&self) -> FieldSet {
        FieldSet::parse(&self.fields).unwrap_or_default()
    }

    /// Whether the claim has this annotation; a write by another manager removes it from the claim.
    pub fn has_annotation(&self, key: &str) -> bool {
        #[derive(Default, Deserialize)]
        struct Fields<'a> {
            #[serde(default, borrow, rename = "f:metadata")]
            metadata: Metadata<'a>,
        }
        #[derive(Default, Deserialize)]
        struct Metadata<'a> {
            #[serde(default, borrow, rename = "f:annotations")]
            annotations: BTreeMap<Cow<'a, str>, IgnoredAny>,
        }
        // The rest may be large and is not read.
        let fields: Fields<'_> = serde_json::from_str(&self.fields).unwrap_or_default();
        fields.metadata.annotations.contains_key(format!("f:{key}").as_str())
    }

    /// Whether the other claim has the same fields and time. Equal sets usually have equal text, which is compared first because it is
    /// cheaper.
    pub fn is_still(&self, now: &Claim) -> bool {
        self.time == now.time && (self.fields == now.fields || self.fields() == now.fields())
    }
}

#[cfg(test)]
mod tests {
    use super::ManagedFields;
    use serde_json::json;

    fn fields(text: &str, time: &str) -> ManagedFields {
        ManagedFields::new(&format!(
            r#"[{{"manager":"us","operation":"Update","time":"{time}","fieldsV1":{{"f:other":{{}}}}}},
                {{"manager":"us","operation":"Apply","subresource":"status","time":"{time}","fieldsV1":{{}}}},
                {{"manager":"us","operation":"Apply","apiVersion":"v1","fieldsType":"FieldsV1","time":"{time}","fieldsV1":{text}}}]"#
        ))
    }

    #[test]
    fn our_claim_is_the_apply_entry_of_the_object_itself() {
        let ours = fields(r#"{"f:spec":{"f:type":{}}}"#, "t").claim("us").unwrap();
        assert_eq!(ours.fields().paths().collect::<Vec<_>>(), [".spec.type"]);
        assert!(fields("{}", "t").claim("them").is_none());
        assert!(ManagedFields::default().claim("us").is_none(), "an object without entries has no claim of ours");
    }

    #[test]
    fn claims_are_compared_by_set_and_time_and_not_by_text() {
        let claim = |text: &str, time: &str| fields(text, time).claim("us").unwrap();
        let before = claim(r#"{"f:a":{},"f:b":{}}"#, "t");
        assert!(before.is_still(&claim(r#"{"f:a":{},"f:b":{}}"#, "t")));
        assert!(before.is_still(&claim(r#"{"f:b": {}, "f:a": {}}"#, "t")));
        assert!(!before.is_still(&claim(r#"{"f:a":{}}"#, "t")), "another manager took a field");
        assert!(!before.is_still(&claim(r#"{"f:a":{},"f:b":{}}"#, "u")), "somebody applied with our field manager");
    }

    #[test]
    fn what_is_nested_too_deeply_to_be_parsed_is_known_to_be() {
        for depth in [1, 60, 123, 124, 125, 126, 127, 128, 500, 9_000] {
            for name in [r#"{"f:a{[\"": "#, r#"{"f:a}]\"": "#] {
                let text = format!("{}{{}}{}", name.repeat(depth), "}".repeat(depth));
                let managed = fields(&text, "t");
                let is_parsed = serde_json::from_str::<serde_json::Value>(&managed.0).is_ok();
                assert_eq!(managed.is_readable(), is_parsed, "{depth}");
                assert_eq!(managed.entries().is_empty(), !is_parsed, "{depth}");
            }
        }
        assert!(ManagedFields::default().is_readable());
    }

    #[test]
    fn entries_are_read_with_their_managers() {
        let entries =
            ManagedFields::new(&json!([{"manager": "a", "operation": "Update", "fieldsV1": {"f:x": {}}}]).to_string());
        assert_eq!(entries.entries()[0].manager, "a");
    }
}
