//! Documents that others edit while we read, render and write: no edit is lost.

use super::documents::{SHARED, THEIRS, pack, shared, text, write};
use super::{MINUTE, SECOND};
use crate::testing::bed::TestBed;
use crate::testing::pack::{ALWAYS, Pack, config_map};
use protocol::Command;
use serde_json::{Value, json};

fn config_map_without_document() -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shared", "namespace": "virt"}, "data": {"other": "x"}})
}

#[test]
fn a_document_created_by_a_user_just_before_us_is_not_lost() {
    let mut bed = TestBed::of(pack());
    bed.run_until(|command| matches!(command, Command::Write(write) if write.key.name == "shared"));
    bed.create("kubectl-create", &shared(THEIRS));
    let lines = bed.advance(SECOND * 10);
    assert!(text(&bed).starts_with(THEIRS), "{lines}{}", text(&bed));
}

#[test]
fn a_document_written_by_a_user_just_before_our_first_apply_is_not_lost() {
    let mut bed = TestBed::of(pack());
    bed.create("kubectl-create", &config_map_without_document());
    bed.run_until(|command| matches!(command, Command::Write(write) if write.key.name == "shared"));
    write(&mut bed, THEIRS);
    let lines = bed.advance(SECOND * 10);
    assert!(text(&bed).starts_with(THEIRS), "{lines}{}", text(&bed));
}

#[test]
fn a_document_that_is_taken_away_and_brought_back_is_not_lost() {
    let mut bed = TestBed::of(pack());
    bed.create("kubectl-create", &shared(THEIRS));
    bed.advance(SECOND * 10);
    bed.edit("kubectl-edit", SHARED, &json!({"data": {"config.yaml": null, "other": "x"}}));
    bed.run_until(|command| matches!(command, Command::Write(write) if write.key.name == "shared"));
    write(&mut bed, THEIRS);
    let lines = bed.advance(SECOND * 10);
    assert!(text(&bed).starts_with(THEIRS), "{lines}{}", text(&bed));
}

#[test]
fn while_a_document_cannot_be_read_edits_of_others_are_not_undone() {
    let mut bed = TestBed::of(pack());
    bed.run_until(|command| matches!(command, Command::Write(write) if write.key.name == "shared"));
    bed.fail_reads(3);
    bed.settle();
    write(&mut bed, "nodeExporter:\n  ksmd: true\nmine: 1\n");
    let lines = bed.advance(MINUTE);
    assert!(text(&bed).contains("mine"), "{lines}{}", text(&bed));
}

#[test]
fn a_document_in_an_object_with_empty_labels_is_no_hot_loop() {
    let data = "data:\n  config.yaml: |\n\
        {{ mergeOverwrite (getConfigMapData \"virt\" \"shared\" \"config.yaml\" | fromYaml) \
        (dict \"nodeExporter\" (dict \"ksmd\" true)) | toYaml | indent 4 }}";
    let template =
        format!("apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: shared\n  namespace: virt\n  labels:\n{data}");
    let mut bed = TestBed::of(Pack::default().asset("monitoring", ALWAYS, &template));
    bed.create("kubectl-create", &shared(THEIRS));
    bed.advance(SECOND * 10);
    bed.expect_silence();
}

#[test]
fn a_value_that_the_server_shows_otherwise_than_it_was_applied_is_no_endless_comparison() {
    let data = "data:\n  size: 1000m\n  config.yaml: |\n\
        {{ mergeOverwrite (getConfigMapData \"virt\" \"shared\" \"config.yaml\" | fromYaml) \
        (dict \"nodeExporter\" (dict \"ksmd\" true)) | toYaml | indent 4 }}";
    let mut bed = TestBed::of(Pack::default().asset("monitoring", ALWAYS, &config_map("shared", data)));
    bed.create("kubectl-create", &shared(THEIRS));
    bed.advance(SECOND * 10);
    // The first apply after an edit of a document takes back the ownership of the budget.
    bed.restart();
    bed.advance(SECOND * 10);
    bed.server.shown = Some(|object| object["data"]["size"] = json!("1"));
    let edited = format!("more: 1\n{}", text(&bed));
    write(&mut bed, &edited);
    let lines = bed.advance(SECOND * 10);
    assert!(!lines.contains("notice"), "{lines}");
    bed.verify();
    let lines = bed.advance(SECOND * 10);
    assert!(!lines.contains("notice"), "{lines}");
    bed.expect_silence();
}
