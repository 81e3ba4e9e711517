//! Documents of others keep every byte but those of our keys.

use super::Document;
use expect_test::{Expect, expect};
use proptest::prelude::{ProptestConfig, Strategy, any, prop_assert, prop_assert_eq, proptest};
use proptest::sample::select;
use serde_json::{Value, json};

/// The object with this text, and what a template makes of it that sets one key.
fn wanted(text: &str, path: &[&str], value: &Value) -> (Value, Vec<Document>) {
    let live = json!({"data": {"config.yaml": text, "other": "theirs"}});
    let mut document = super::map(text).map_or_else(|_| json!({}), Value::Object);
    *path.iter().fold(&mut document, |below, key| {
        if !below.is_object() {
            *below = json!({});
        }
        &mut below[*key]
    }) = value.clone();
    let mut rendered = json!({"kind": "ConfigMap", "data": {"config.yaml": document.to_string()}});
    let documents = Document::take(&mut rendered, &live);
    assert_eq!(rendered, json!({"kind": "ConfigMap"}), "the document is not ours as a whole");
    (live, documents)
}

fn edited(text: &str, path: &[&str], value: &Value) -> String {
    let (live, documents) = wanted(text, path, value);
    match documents[0].edited(&live) {
        Ok(None) => "unchanged".to_owned(),
        Ok(Some(text)) => text,
        Err(why) => format!("refused: {why}"),
    }
}

const KSM: [&str; 4] = ["nodeExporter", "collectors", "ksmd", "enabled"];

fn ksm(text: &str, expected: &Expect) {
    expected.assert_eq(&edited(text, &KSM, &json!(true)));
}

#[test]
fn only_our_key_changes() {
    ksm(
        "# ours, do not touch\nprometheusK8s:   # big\n  retention: 24h\n\n  volumeClaimTemplate:\n  - a\n# end\n",
        &expect![[r#"
            # ours, do not touch
            prometheusK8s:   # big
              retention: 24h

              volumeClaimTemplate:
              - a
            nodeExporter:
              collectors:
                ksmd:
                  enabled: true
            # end
        "#]],
    );
    ksm(
        "nodeExporter:\n    collectors:   # all of them\n        # a comment\n        tcpstat: {enabled: true}\n\nalertmanagerMain: {}",
        &expect![[r#"
            nodeExporter:
                collectors:   # all of them
                    # a comment
                    tcpstat: {enabled: true}
                    ksmd:
                      enabled: true

            alertmanagerMain: {}"#]],
    );
    let text = "nodeExporter:\r\n  collectors:\r\n    \"ksmd\":\r\n      enabled: 'false' # not yet\r\n";
    assert_eq!(edited(text, &KSM, &json!(true)), text.replace("'false'", "true"));
    ksm(
        "nodeExporter: {} # nothing\n",
        &expect![[r#"
            nodeExporter: # nothing
              collectors:
                ksmd:
                  enabled: true
        "#]],
    );
    ksm(
        "",
        &expect![[r#"
        nodeExporter:
          collectors:
            ksmd:
              enabled: true
    "#]],
    );
    ksm(
        "text: |\n  nodeExporter:\n    collectors: x\nlast: no newline",
        &expect![[r#"
        text: |
          nodeExporter:
            collectors: x
        last: no newline
        nodeExporter:
          collectors:
            ksmd:
              enabled: true
    "#]],
    );
    ksm("nodeExporter:\n  collectors:\n    ksmd:\n      enabled: true\n", &expect!["unchanged"]);
}

#[test]
fn what_cannot_be_edited_is_refused() {
    ksm("{\"nodeExporter\": {}, \"a\": 1}", &expect!["refused: it is not written as a block of keys"]);
    ksm(
        "nodeExporter: {collectors: {tcpstat: {}}}",
        &expect![[r#"refused: the value of "nodeExporter" is not written as a block of keys"#]],
    );
    ksm("a: [", &expect!["refused: line 1: unclosed bracket '['"]);
    ksm("- a\n- b\n", &expect!["refused: it is a list, and not a map"]);
    ksm("a: 1\n---\nb: 2\n", &expect!["refused: it consists of several documents"]);
    ksm(
        "base: &base\n  a: 1\nnodeExporter: *base\n",
        &expect![[r#"refused: the value of "nodeExporter" is not written as a block of keys"#]],
    );
}

#[test]
fn a_key_that_a_template_takes_out_is_removed() {
    let live = json!({"data": {"c": "a: 1 # one\nb:\n  c: 2\n  d: 3\n# end\n"}});
    let mut rendered = json!({"data": {"c": "{\"a\": 1, \"b\": {\"d\": 3}}", "plain": "x"}});
    let documents = Document::take(&mut rendered, &live);
    assert_eq!(rendered, json!({"data": {"plain": "x"}}));
    assert_eq!(documents[0].edited(&live).unwrap().unwrap(), "a: 1 # one\nb:\n  d: 3\n# end\n");
    assert_eq!(documents[0].keys().collect::<Vec<_>>(), ["b.c"]);
    let gone = json!({"data": {}});
    assert_eq!(documents[0].edited(&gone), Ok(None), "a document that is not there is rendered as a whole");
}

/// A document as people write it.
fn documents() -> impl Strategy<Value = String> {
    let line = select(
        [
            "# a comment\n",
            "\n",
            "a: 1\n",
            "b:\n  c: text # why\n  # inside\n  d:\n  - x\n  - y: z\n",
            "nodeExporter:\n  collectors:\n    tcpstat:\n      enabled: true # kept\n  extra: |\n    nodeExporter:\n      x: y\n",
            "nodeExporter: # none yet\n",
            "\"quoted key\": 'a: b # c'\n",
            "folded: >-\n  one\n  two\n\n",
            "list:\n- 1\n# between\n- 2\n",
            "flow: {a: [1, 2]}\n",
        ]
        .as_slice(),
    );
    proptest::collection::vec(line, 0..7).prop_map(|lines| lines.concat())
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_document_keeps_every_line_of_others(text in documents(), is_set in any::<bool>(), cut in any::<bool>()) {
        let text = if cut { text.trim_end().to_owned() } else { text };
        let (live, documents) = wanted(&text, &KSM, &json!(is_set));
        if let Ok(Some(edited)) = documents[0].edited(&live) {
            // What was there is still there, in order; all that is new is our key.
            let mut rest = edited.lines();
            for line in text.lines() {
                prop_assert!(rest.any(|other| other == line), "{text}\n---\n{edited}");
            }
            let more = edited.lines().count() - text.lines().count();
            prop_assert!(more <= KSM.len(), "{text}\n---\n{edited}");
            let again = json!({"data": {"config.yaml": edited}});
            prop_assert_eq!(documents[0].edited(&again), Ok(None));
        }
    }

    #[test]
    fn no_text_breaks_an_edit(text in any::<String>()) {
        let (live, documents) = wanted(&text, &KSM, &json!(true));
        let _ = documents[0].edited(&live);
    }
}
