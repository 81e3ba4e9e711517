//! Spans as the JSON encoding of OTLP: ids are hexadecimal, and 64-bit numbers are strings.

use super::span::{Context, Span, Value};
use serde_json::{Value as Json, json};

/// Kinds and codes are numbers in this encoding.
const INTERNAL: u8 = 1;
const CLIENT: u8 = 3;
const STATUS_ERROR: u8 = 2;

/// The body of an export request; `resource` describes the process.
pub(crate) fn encode(resource: &[(String, String)], spans: &[Span]) -> Vec<u8> {
    let resource = resource.iter().map(|(key, value)| json!({"key": key, "value": {"stringValue": value}}));
    let request = json!({"resourceSpans": [{
        "resource": {"attributes": resource.collect::<Vec<_>>()},
        "scopeSpans": [{
            "scope": {"name": "virtpilot", "version": env!("CARGO_PKG_VERSION")},
            "spans": spans.iter().map(span).collect::<Vec<_>>(),
        }],
    }]});
    request.to_string().into_bytes()
}

fn span(span: &Span) -> Json {
    let mut encoded = json!({
        "traceId": span.context.trace.to_string(),
        "spanId": span.context.span.to_string(),
        "name": span.name,
        "kind": if span.is_request { CLIENT } else { INTERNAL },
        "startTimeUnixNano": span.start.to_string(),
        "endTimeUnixNano": span.end.to_string(),
        "attributes": span.attributes.iter().map(|(key, value)| attribute(key, value)).collect::<Vec<_>>(),
    });
    if let Some(parent) = span.parent {
        encoded["parentSpanId"] = parent.to_string().into();
    }
    if !span.links.is_empty() {
        encoded["links"] = span.links.iter().map(link).collect();
    }
    if span.has_failed() {
        encoded["status"] = json!({"code": STATUS_ERROR});
    }
    encoded
}

fn attribute(key: &str, value: &Value) -> Json {
    match value {
        Value::Text(text) => json!({"key": key, "value": {"stringValue": text}}),
        Value::Number(number) => json!({"key": key, "value": {"intValue": number.to_string()}}),
    }
}

fn link(context: &Context) -> Json {
    json!({"traceId": context.trace.to_string(), "spanId": context.span.to_string()})
}

#[cfg(test)]
mod tests {
    use super::encode;
    use crate::traces::span::{Context, Span, Value};
    use crate::traces::{SpanId, TraceId};
    use serde_json::json;

    #[test]
    fn spans_have_the_standard_encoding() {
        let context = |span| Context { trace: TraceId(0xab), span: SpanId(span) };
        let root = Span {
            context: context(1),
            parent: None,
            name: "reconcile".into(),
            is_request: false,
            start: 1_700_000_000_000_000_000,
            end: 1_700_000_000_000_000_005,
            attributes: Vec::new(),
            links: vec![Context { trace: TraceId(u128::MAX), span: SpanId(u64::MAX) }],
        };
        let attributes =
            vec![("http.response.status_code", Value::Number(409)), ("error.type", Value::Text("409".into()))];
        let (parent, links) = (Some(SpanId(1)), Vec::new());
        let request = Span {
            context: context(2),
            parent,
            is_request: true,
            attributes,
            links,
            name: "apply Service".into(),
            ..root.clone()
        };
        let encoded = encode(&[("service.name".into(), "s".into())], &[root, request]);
        let trace = "000000000000000000000000000000ab";
        let expected = json!({"resourceSpans": [{
            "resource": {"attributes": [{"key": "service.name", "value": {"stringValue": "s"}}]},
            "scopeSpans": [{
                "scope": {"name": "virtpilot", "version": env!("CARGO_PKG_VERSION")},
                "spans": [
                    {
                        "traceId": trace, "spanId": "0000000000000001", "name": "reconcile", "kind": 1,
                        "startTimeUnixNano": "1700000000000000000", "endTimeUnixNano": "1700000000000000005",
                        "attributes": [],
                        "links": [{"traceId": "f".repeat(32), "spanId": "f".repeat(16)}],
                    },
                    {
                        "traceId": trace, "spanId": "0000000000000002", "parentSpanId": "0000000000000001",
                        "name": "apply Service", "kind": 3,
                        "startTimeUnixNano": "1700000000000000000", "endTimeUnixNano": "1700000000000000005",
                        "attributes": [
                            {"key": "http.response.status_code", "value": {"intValue": "409"}},
                            {"key": "error.type", "value": {"stringValue": "409"}},
                        ],
                        "status": {"code": 2},
                    },
                ],
            }],
        }]});
        assert_eq!(serde_json::from_slice::<serde_json::Value>(&encoded).unwrap(), expected);
    }
}
