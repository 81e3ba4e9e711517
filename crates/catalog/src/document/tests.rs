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
    let mut ours = json!({});
    for document in [&mut document, &mut ours] {
        *path.iter().fold(document, |below, key| {
            if !below.is_object() {
                *below = json!({});
            }
            &mut below[*key]
        }) = value.clone();
    }
    let mut rendered = json!({"kind": "ConfigMap", "data": {"config.yaml": document.to_string()}});
    let alone = json!({"kind": "ConfigMap", "data": {"config.yaml": ours.to_string()}});
    let documents = Document::take(&mut rendered, &live, &alone);
    assert_eq!(rendered, json!({"kind": "ConfigMap"}), "the document is not ours as a whole");
    (live, documents)
}

fn edited(text: &str, path: &[&str], value: &Value) -> String {
    let (live, documents) = wanted(text, path, value);
    match documents[0].edited(&live) {
        Ok(None) => "unchanged".to_owned(),
        Ok(Some(edited)) => edited.text,
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
fn every_comment_of_others_stays() {
    for text in [
        "k: 1\t# COMMENT\nb: 2\n",
        "k: 1\r# COMMENT\rb: 2\n",
        "k:\n  x: 1\n  # COMMENT of b, indented\nb: 2\n",
        "k: [1, # one\n  2] # COMMENT\nb: 2\n",
        "k: \"x\" \t# COMMENT\nb: 2\n",
        "k: |  # COMMENT\n  x\nb: 2\n",
        "k: 'it''s' # COMMENT\nb: 2\n",
        "k: \"a\\\"b\" # COMMENT\nb: 2\n",
        "k: a#b # COMMENT\nb: 2\n",
        "k: {} # COMMENT\n",
        "k:\t1 # COMMENT\n",
        "k:  # COMMENT\n  1\nb: 2\n",
        "# COMMENT\nk: 1",
        "k: a\n  b # COMMENT\nc: 1\n",
        "k: 1 # COMMENT\n# COMMENT\n\n\nb: 2\n",
        "\u{feff}# COMMENT\nk: 1\n",
        "\u{feff}k: 1 # COMMENT\n",
        "k: &x 1 # COMMENT\nb: *x\n",
        "k: 1 # COMMENT: x\n",
        "? k\n: 1 # COMMENT\n",
        "k: 1\u{2028}# COMMENT\nb: 1\n",
        "k: 1\u{85}# COMMENT\nb: 1\n",
        "k: \u{e9}\u{e8} # COMMENT\n",
        "\"k\" : 1 # COMMENT\n",
        "'k': 1 # COMMENT\n",
        "k: \"# no\" # COMMENT\n",
        "k: - # COMMENT\n",
        "k:\n- 1\n- 2 # two\n# COMMENT\nb: 1\n",
        "k:\n- 1\n#COMMENT\n- 2\nb: 1\n",
    ] {
        for value in [json!(5), json!({"n": {"m": 1}}), json!([1]), json!("a\n# x: \u{e9}")] {
            if super::map(text).is_err() {
                continue;
            }
            let after = edited(text, &["k"], &value);
            let comments = |text: &str| text.matches("COMMENT").count();
            let is_kept = comments(&after) == comments(text) || after.starts_with("refused: ");
            assert!(is_kept, "{value}: {text:?} -> {after:?}");
        }
    }
    // These are not even refused.
    let edits = |text: &str| edited(text, &["k"], &json!(5));
    assert_eq!(edits("k: 1\t# why\n"), "k: 5\t# why\n");
    assert_eq!(edits("k: 'it''s' # why\n"), "k: 5 # why\n");
    assert_eq!(edits("k: \"a\\\"b\" # why\n"), "k: 5 # why\n");
    assert_eq!(edits("k:\n  x: 1\n  # of b\nb: 2\n"), "k: 5\n  # of b\nb: 2\n");
}

#[test]
fn a_value_is_replaced_with_all_its_lines() {
    let edits = |text: &str| edited(text, &["k"], &json!(5));
    for (text, expected) in [
        ("a: 1\nk: 1\n", "a: 1\nk: 5\n"),
        ("k:\n- 1\n- 2\nb: 1\n", "k: 5\nb: 1\n"),
        ("k:\n-\n  a: 1\nb: 1\n", "k: 5\nb: 1\n"),
        ("k: |\n  x\n\n    y\nb: 1\n", "k: 5\nb: 1\n"),
        ("k: |\n\n  x\nb: 1\n", "k: 5\nb: 1\n"),
        ("k: \"a # b\" # why\n", "k: 5 # why\n"),
        ("k: |\n    x\n  # why\nb: 2\n", "refused: there are comments inside of a value"),
        ("'k''s': 1\n", "'k''s': 1\nk: 5\n"),
    ] {
        assert_eq!(edits(text), expected, "{text:?}");
    }
    assert_eq!(edited("\"a: b\": 1\n", &["a: b"], &json!(5)), "\"a: b\": 5\n");
}

#[test]
fn what_is_in_the_way_of_a_map_is_replaced_by_it() {
    let text = "a: 1\nk: 1 # why\n";
    assert_eq!(edited(text, &["k", "l"], &json!(5)), "a: 1\nk: # why\n  l: 5\n");
    assert_eq!(edited(text, &["k", "l", "m", "o"], &json!(5)), "a: 1\nk: # why\n  l:\n    m:\n      o: 5\n");
    let nothing = "a: 1\nk: null # why\n";
    assert_eq!(edited(nothing, &["k", "l"], &json!(5)), "a: 1\nk: # why\n  l: 5\n");
    assert_eq!(edited("a: 1\nk:\n# end\n", &["k", "l"], &json!(5)), "a: 1\nk:\n  l: 5\n# end\n");
}

#[test]
fn a_map_that_is_wanted_empty_may_have_keys_of_others() {
    assert_eq!(edited("", &["k"], &json!({})), "k: {}\n");
    assert_eq!(edited("k: 1\n", &["k"], &json!({})), "k: {}\n");
    assert_eq!(edited("k:\n  theirs: 1\n", &["k"], &json!({})), "unchanged");
}

#[test]
fn a_key_is_quoted_if_it_is_no_word() {
    for (key, written) in [
        ("a-b_c./d1", "a-b_c./d1"),
        ("a b", "\"a b\""),
        ("true", "\"true\""),
        ("No", "\"No\""),
        ("1a", "\"1a\""),
        ("a#", "\"a#\""),
    ] {
        assert_eq!(edited("", &[key], &json!(5)), format!("{written}: 5\n"));
    }
}

#[test]
fn a_new_key_is_behind_the_last_one_and_before_the_comments_at_the_end() {
    let edits = |text: &str| edited(text, &["k"], &json!(5));
    assert_eq!(edits("# c\n"), "# c\nk: 5\n");
    assert_eq!(edits("x: |\n  a\n# end\n"), "x: |\n  a\nk: 5\n# end\n");
}

#[test]
fn an_edit_that_changes_the_meaning_of_another_part_is_refused() {
    let why = "refused: it is written in a way that cannot be edited without changing other parts of it";
    assert_eq!(edited("a: &v 0\nk:\n  &v 1\nb: *v\n", &["k"], &json!(5)), why);
}

#[test]
fn what_is_wanted_of_a_document_is_its_field_and_its_keys() {
    let (_, documents) = wanted("", &["a", "b"], &json!(1));
    assert_eq!(documents[0].wanted(), json!(["/data/config.yaml", [[["a", "b"], 1]]]));
}

#[test]
fn a_key_is_inserted_behind_a_text_whatever_its_last_lines_are() {
    for text in ["x: |\n  a\n  # no comment\n", "x: |+\n  a\n\n\n", "- |\n  a\n".replace("- ", "x:\n- ").as_str()] {
        assert_eq!(edited(text, &["k"], &json!(5)), format!("{text}k: 5\n"));
    }
}

#[test]
fn only_what_a_template_says_about_an_empty_document_is_wanted() {
    let live = json!({"data": {"c": "a: 1 # one\nb:\n  c: 2\n  d: 3\n# end\n", "unread": "x"}});
    // It rewrites a key of others, loses one, and derives one from them.
    let mut rendered = json!({"data": {"c": "{\"a\": 1.5, \"b\": {\"d\": 3, \"ours\": 1}, \"sum\": 2}", "plain": "x"}});
    let emptied = Document::emptied(&rendered, &live);
    assert_eq!(emptied, json!({"data": {"c": "", "unread": "x"}}));
    let alone = json!({"data": {"c": "{\"b\": {\"ours\": 1}, \"sum\": 0}", "plain": "x"}});
    let documents = Document::take(&mut rendered, &live, &alone);
    assert_eq!(rendered, json!({"data": {"plain": "x"}}));
    let edited = documents[0].edited(&live).unwrap().unwrap();
    assert_eq!(edited.text, "a: 1 # one\nb:\n  c: 2\n  d: 3\n  ours: 1\n# end\n");
    assert_eq!(edited.keys, ["b.ours"]);
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
        if let Ok(Some(super::Edited { text: edited, .. })) = documents[0].edited(&live) {
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
