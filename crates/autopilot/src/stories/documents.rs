//! A document that several people edit: only our key in it is ours.

use super::settled;
use crate::testing::bed::TestBed;
use crate::testing::pack::{ALWAYS, Pack, config_map};
use expect_test::expect;
use serde_json::{Value, json};

const SHARED: &str = "ConfigMap virt/shared";
const THEIRS: &str = "# ours, do not touch\nprometheus:  # big\n  retention: 24h\n";

/// An asset that reads its own object and sets one key of the document in it, as the predecessor does.
fn pack() -> Pack {
    let data = "data:\n  config.yaml: |\n\
        {{ mergeOverwrite (getConfigMapData \"virt\" \"shared\" \"config.yaml\" | fromYaml) \
        (dict \"nodeExporter\" (dict \"ksmd\" true)) | toYaml | indent 4 }}";
    Pack::default().asset("monitoring", ALWAYS, &config_map("shared", data))
}

fn shared(text: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shared", "namespace": "virt"}, "data": {"config.yaml": text}})
}

fn with_document(text: &str) -> TestBed {
    let mut bed = TestBed::of(pack());
    bed.create("kubectl-create", &shared(text));
    bed
}

fn write(bed: &mut TestBed, text: &str) {
    bed.edit("kubectl-edit", SHARED, &json!({"data": {"config.yaml": text}}));
}

fn text(bed: &TestBed) -> String {
    bed.value(SHARED, "/data/config.yaml").as_str().unwrap_or_default().to_owned()
}

#[test]
fn our_key_is_added_and_every_other_byte_stays() {
    let mut bed = with_document(THEIRS);
    expect![[r#"
        back up ConfigMap virt/shared
        apply ConfigMap virt/shared
        notice Adopted ConfigMap virt/shared: adopted; a backup of the object as it was is kept. Nothing was changed
        edit ConfigMap virt/shared
        notice AssetApplied ConfigMap virt/shared: applied
    "#]]
    .assert_eq(&bed.advance(super::SECOND * 3));
    assert_eq!(text(&bed), format!("{THEIRS}nodeExporter:\n  ksmd: true\n"));
    expect![[r#"
        virt-platform-autopilot applied metadata.labels.platform.kubevirt.io/managed-by
        virt-platform-autopilot updated data.config.yaml
    "#]]
    .assert_eq(&bed.owners(SHARED));
    bed.expect_silence();
    bed.restart();
    expect![[r#"
        apply ConfigMap virt/shared: no change
    "#]]
    .assert_eq(&bed.advance(super::SECOND * 3));
    bed.expect_silence();
}

#[test]
fn edits_by_others_are_never_undone_and_cost_no_write() {
    let mut bed = with_document(THEIRS);
    bed.advance(super::SECOND * 3);
    let mut edited = text(&bed);
    for number in 0..8 {
        edited.insert_str(0, &format!("key{number}: {number} # edit {number}\n"));
        write(&mut bed, &edited);
        expect![[r#""#]].assert_eq(&bed.settle());
    }
    expect![[r#""#]].assert_eq(&bed.advance(super::MINUTE));
    assert_eq!(text(&bed), edited);
    bed.expect_silence();
}

#[test]
fn our_key_is_put_back_without_the_rest() {
    let mut bed = with_document(THEIRS);
    bed.advance(super::SECOND * 3);
    write(&mut bed, "more: theirs # new\nnodeExporter: {} # none\n");
    expect![[r#"
        edit ConfigMap virt/shared
        notice DriftCorrected ConfigMap virt/shared: kubectl-edit changed nodeExporter.ksmd in /data/config.yaml; the drift was corrected
    "#]]
    .assert_eq(&bed.advance(super::SECOND * 5));
    assert_eq!(text(&bed), "more: theirs # new\nnodeExporter: # none\n  ksmd: true\n");
    bed.expect_silence();
}

#[test]
fn a_document_that_cannot_be_read_is_left_alone_and_reported() {
    let mut bed = with_document("a: [\n");
    expect![[r#"
        notice Invalid: asset monitoring: active/monitoring.yaml.tpl:6: fromYaml: line 1 of its text: unclosed bracket '['
    "#]].assert_eq(&bed.advance(super::SECOND * 3));
    assert_eq!(text(&bed), "a: [\n");
    bed.expect_silence();
    write(&mut bed, "a: []\n");
    expect![[r#"
        back up ConfigMap virt/shared
        apply ConfigMap virt/shared
        notice Adopted ConfigMap virt/shared: adopted; a backup of the object as it was is kept. Nothing was changed
        edit ConfigMap virt/shared
        notice AssetApplied ConfigMap virt/shared: applied
    "#]]
    .assert_eq(&bed.advance(super::SECOND * 5));
    assert_eq!(text(&bed), "a: []\nnodeExporter:\n  ksmd: true\n");
    for unreadable in ["- a\n", "{\"a\": 1}\n", "a: 1\n---\nb: 1\n"] {
        write(&mut bed, unreadable);
        bed.advance(super::SECOND * 5);
        assert_eq!(text(&bed), unreadable);
        bed.expect_silence();
    }
    write(&mut bed, "{\"a\": 1}\n");
    expect![[r#"
        notice DocumentUnreadable ConfigMap virt/shared: the document in /data/config.yaml is left as it is, because it cannot be edited: it is not written as a block of keys
    "#]].assert_eq(&bed.advance(super::SECOND * 5));
}

#[test]
fn a_document_that_another_manager_applies_is_theirs() {
    let mut bed = TestBed::of(pack());
    assert!(bed.apply("gitops", &shared(THEIRS)));
    expect![[r#"
        back up ConfigMap virt/shared
        apply ConfigMap virt/shared
        notice Adopted ConfigMap virt/shared: adopted; a backup of the object as it was is kept. Nothing was changed
        notice OwnedByAnother ConfigMap virt/shared: gitops applies nodeExporter.ksmd in /data/config.yaml; these fields are left to it
    "#]]
    .assert_eq(&bed.advance(super::SECOND * 3));
    assert_eq!(text(&bed), THEIRS);
    bed.expect_silence();
    // If they say what we want, all is well.
    assert!(bed.apply("gitops", &shared("nodeExporter: {ksmd: true} # as wished\n")));
    expect![[r#"
        apply ConfigMap virt/shared: no change
    "#]]
    .assert_eq(&bed.advance(super::SECOND * 5));
    bed.expect_silence();
}

#[test]
fn a_document_that_we_created_is_not_ours_any_more_once_others_may_edit_it() {
    let mut bed = settled(pack());
    bed.advance(super::SECOND * 5);
    assert_eq!(text(&bed), "nodeExporter:\n  ksmd: true\n");
    write(&mut bed, "# mine\nnodeExporter:\n  ksmd: true\n");
    expect![[r#""#]].assert_eq(&bed.advance(super::MINUTE));
    assert_eq!(text(&bed), "# mine\nnodeExporter:\n  ksmd: true\n");
    bed.expect_silence();
}
