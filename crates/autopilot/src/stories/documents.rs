//! A document that several people edit: only our key in it is ours.

use super::settled;
use crate::testing::bed::TestBed;
use crate::testing::pack::{ALWAYS, Pack, config_map};
use crate::testing::requests::Fault;
use expect_test::expect;
use serde_json::{Value, json};

pub(super) const SHARED: &str = "ConfigMap virt/shared";
pub(super) const THEIRS: &str = "# ours, do not touch\nprometheus:  # big\n  retention: 24h\n";

/// An asset that reads its own object and sets one key of the document in it, as the predecessor does.
pub(super) fn pack() -> Pack {
    let data = "data:\n  config.yaml: |\n\
        {{ mergeOverwrite (getConfigMapData \"virt\" \"shared\" \"config.yaml\" | fromYaml) \
        (dict \"nodeExporter\" (dict \"ksmd\" true)) | toYaml | indent 4 }}";
    Pack::default().asset("monitoring", ALWAYS, &config_map("shared", data))
}

pub(super) fn shared(text: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "shared", "namespace": "virt"}, "data": {"config.yaml": text}})
}

fn with_document(text: &str) -> TestBed {
    let mut bed = TestBed::of(pack());
    bed.create("kubectl-create", &shared(text));
    bed
}

pub(super) fn write(bed: &mut TestBed, text: &str) {
    bed.edit("kubectl-edit", SHARED, &json!({"data": {"config.yaml": text}}));
}

pub(super) fn text(bed: &TestBed) -> String {
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
    // Our apply gets back the budget, which the edit wrote; no value changes.
    expect![[r#"
        apply ConfigMap virt/shared
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
    write(&mut bed, "{\"a\": 1}\n");
    expect![[r#"
        notice DocumentUnreadable ConfigMap virt/shared: the document in /data/config.yaml is left as it is, because it cannot be edited: it is not written as a block of keys
    "#]].assert_eq(&bed.advance(super::SECOND * 5));
    for unreadable in ["- a\n", "{\"a\": 1}\n", "a: 1\n---\nb: 1\n"] {
        write(&mut bed, unreadable);
        bed.advance(super::SECOND * 5);
        assert_eq!(text(&bed), unreadable);
        bed.expect_silence();
    }
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

#[test]
fn odd_documents_of_others_keep_every_byte() {
    let odd = [
        "x: .nan\n",
        "x: .inf\n",
        "big: 123456789012345678901234567890\n",
        "x: 1e400\n",
        "x: 0.1e-400\n",
        "x: 012\n",
        "x: 0o12\n",
        "x: 0x1F\n",
        "x: 1_000\n",
        "x: 1:30\n",
        "x: 2001-01-01\n",
        "x: yes\n",
        "yes: x\n",
        "1: x\n",
        "1.5: x\n",
        "null: x\n",
        "~: x\n",
        "x: ~\n",
        "x: !!str 1\n",
        "x: !!binary aGk=\n",
        "x: !custom 1\n",
        "x: \"a\\tb\"\n",
        "x: \"a\\u0085b\"\n",
        "x: \"a\\u2028b\\u2029c\"\n",
        "x: \"a\\r\\nb\"\n",
        "x: \"\\r\"\n",
        "x: \" lead\"\n",
        "x: \"trail \"\n",
        "x: |\n  a  \n  b\t\n",
        "x: |2\n    lead\n  b\n",
        "x: |+\n  a\n\n\n",
        "x: \"\\0\"\n",
        "x: \"\\x7f\"\n",
        "x: \"\\ufeff\"\n",
        "x: \"\u{1F600}\"\n",
        "x: \"\\e[0m\"\n",
        "x: 'it''s'\n",
        "x: \"{{ evil }}\"\n",
        "x: '{{ evil }}'\n",
        "x: |\n  # not a comment\ny: 1\n",
        "x: |\n  a\n  # not a comment\n",
        "base: &b\n  x: 1\nuse:\n  <<: *b\n  y: 2\n",
        "a: 9223372036854775808\n",
        "a: 18446744073709551616\n",
        "a: -9223372036854775809\n",
        "a: 1.0\n",
        "a: 1e3\n",
        "a: 1.10\n",
        "a: -0.0\n",
        "a: -0\n",
        "a: +1\n",
        "a: 0.30000000000000004\n",
        "a: 1e22\n",
        "a: \"\"\n",
        "a: ''\n",
        "a:\n",
        "\"\": 1\n",
        "\u{feff}a: 1\n",
        "a: 1\r\nb: 2\r\n",
        "a: 1\rb: 2\r",
        "a: 1\t# c\n",
        "? a\n: 1\n",
        "a : 1\n",
        "a: \"x\\ny\"\n",
        "a: \"\\n\"\n",
        "a: \"\\n\\n x\"\n",
        "a: \"x\\n \\n\"\n",
        "a: \"\\tx\"\n",
        "a: \"- x\"\n",
        "a: \"x: y\"\n",
        "a: \"x #y\"\n",
        "%YAML 1.1\n---\na: 1\n",
        "---\na: 1\n...\n",
        "a: \"\u{a0}\"\n",
        "a: \"x\\u00a0\"\n",
        "a: '0123'\n",
        "a: '1e3'\n",
        "a: '1_000'\n",
        "a: '0x1'\n",
        "a: 'null'\n",
        "a: '~'\n",
        "a: 'on'\n",
        "a: 'N'\n",
        "a: '='\n",
        "a: '<<'\n",
        "a: '2001-01-01'\n",
        "a: '1:30'\n",
        "a: '.5'\n",
        "a: '+.inf'\n",
        "a: '0o7'\n",
        "a: '0b1'\n",
        "a: '-'\n",
        "a: '?'\n",
    ];
    let ours = "nodeExporter:\n  ksmd: true\n";
    for odd in odd {
        let mut bed = with_document(odd);
        let lines = bed.advance(super::SECOND * 10);
        let after = text(&bed);
        let added = after.strip_prefix(odd).map(|added| added.trim_start().replace('\r', ""));
        let is_kept = added.as_deref() == Some(ours) || (added.as_deref() == Some("") && lines.contains("notice"));
        assert!(is_kept, "{odd:?} -> {after:?}\n{lines}");
        bed.expect_silence();
    }
}

#[test]
fn a_template_that_says_nothing_removes_no_key_of_others() {
    // The document is rendered only where the user asked for it.
    let data = "{{ $old := getConfigMapData \"virt\" \"shared\" \"config.yaml\" | fromYaml }}\
        data:\n  config.yaml: |\n    {{ if index .HCO.GetAnnotations \"platform.kubevirt.io/color\" }}nodeExporter: {{ $old | len }}{{ end }}\n";
    let mut bed = TestBed::of(Pack::default().asset("monitoring", ALWAYS, &config_map("shared", data)));
    bed.create("kubectl-create", &shared(THEIRS));
    let lines = bed.advance(super::SECOND * 10);
    assert_eq!(text(&bed), THEIRS, "{lines}");
}

/// Appends one item to a list of the document.
fn appending() -> Pack {
    let data = "{{ $old := getConfigMapData \"virt\" \"shared\" \"config.yaml\" | fromYaml }}\
        {{ $list := index $old \"list\" | default (list) }}\
        {{ if not (has \"ours\" $list) }}{{ $list = append $list \"ours\" }}{{ end }}\
        data:\n  config.yaml: |\n{{ mergeOverwrite $old (dict \"list\" $list) | toYaml | indent 4 }}";
    Pack::default().asset("monitoring", ALWAYS, &config_map("shared", data))
}

#[test]
fn a_list_with_items_of_others_is_theirs_although_a_template_appends_to_it() {
    let mut bed = TestBed::of(appending());
    bed.create("kubectl-create", &shared("list: [theirs]\n"));
    bed.advance(super::SECOND * 10);
    assert_eq!(text(&bed), "list: [theirs]\n");
    write(&mut bed, "list: [theirs, new]\n");
    bed.advance(super::SECOND * 10);
    assert_eq!(text(&bed), "list: [theirs, new]\n");
    bed.expect_silence();
    write(&mut bed, "other: 1\n");
    bed.advance(super::SECOND * 10);
    assert_eq!(text(&bed), "other: 1\nlist: [\"ours\"]\n");
}

#[test]
fn a_template_that_fails_without_the_keys_of_others_wants_nothing() {
    let data = "{{ $old := getConfigMapData \"virt\" \"shared\" \"config.yaml\" | fromYaml }}\
        {{ $retention := index $old \"prometheus\" \"retention\" }}\
        data:\n  config.yaml: |\n{{ mergeOverwrite $old (dict \"nodeExporter\" $retention) | toYaml | indent 4 }}";
    let mut bed = TestBed::of(Pack::default().asset("monitoring", ALWAYS, &config_map("shared", data)));
    bed.create("kubectl-create", &shared(THEIRS));
    expect![[r#"
        notice Invalid: asset monitoring: it cannot be rendered with an empty document: active/monitoring.yaml.tpl:4: index: nil cannot be indexed with a string
    "#]].assert_eq(&bed.advance(super::SECOND * 10));
    assert_eq!(text(&bed), THEIRS);
    bed.expect_silence();
}

#[test]
fn a_document_below_an_ignored_field_is_left_alone() {
    let mut bed = with_document(THEIRS);
    bed.annotate(SHARED, "ignore-fields=/data");
    let lines = bed.advance(super::SECOND * 10);
    assert_eq!(text(&bed), THEIRS, "{lines}");
    assert!(!lines.contains("no effect"), "{lines}");
}

#[test]
fn a_document_that_the_user_ignores_is_left_alone() {
    let mut bed = with_document(THEIRS);
    bed.advance(super::SECOND * 10);
    bed.annotate(SHARED, "ignore-fields=/data/config.yaml");
    bed.advance(super::SECOND * 10);
    write(&mut bed, THEIRS);
    let lines = bed.advance(super::SECOND * 10);
    assert_eq!(text(&bed), THEIRS, "{lines}");
}

#[test]
fn a_document_that_the_user_patches_is_the_users() {
    let mut bed = with_document(THEIRS);
    bed.advance(super::SECOND * 10);
    bed.annotate(SHARED, r#"patch=[{"op":"add","path":"/data/config.yaml","value":"mine: true"}]"#);
    let lines = bed.advance(super::SECOND * 10);
    assert_eq!(text(&bed), "mine: true", "{lines}");
}

#[test]
fn a_document_of_an_object_that_is_not_managed_is_left_alone() {
    for annotation in ["mode=unmanaged", "reconcile-paused=true"] {
        let mut bed = with_document(THEIRS);
        bed.annotate(SHARED, annotation);
        let lines = bed.advance(super::MINUTE);
        assert_eq!(text(&bed), THEIRS, "{lines}");
    }
}

#[test]
fn a_conflicting_owner_of_a_document_is_followed_while_the_operator_restarts() {
    let mut bed = with_document(THEIRS);
    bed.advance(super::SECOND * 10);
    bed.apply_by_force("gitops", &shared(THEIRS));
    bed.restart();
    let lines = bed.advance(super::MINUTE);
    assert_eq!(text(&bed), THEIRS, "{lines}");
    bed.expect_silence();
}

#[test]
fn a_document_stays_as_it_is_while_an_override_is_refused() {
    let mut bed = with_document(THEIRS);
    bed.annotate(SHARED, "ignore-fields=/data/config.yaml");
    bed.advance(super::SECOND * 10);
    bed.annotate(SHARED, "ignore-fields=data/config.yaml");
    let lines = bed.advance(super::SECOND * 10);
    assert_eq!(text(&bed), THEIRS, "{lines}");
    bed.expect_silence();
}

#[test]
fn a_fight_over_a_document_is_paused_although_the_operator_is_killed() {
    let mut bed = with_document(THEIRS);
    bed.advance(super::SECOND * 10);
    let before = bed.moves();
    for _ in 0..30 {
        write(&mut bed, THEIRS);
        bed.advance(super::SECOND * 3);
        bed.restart();
        bed.advance(super::SECOND);
    }
    let paused = bed.value(SHARED, "/metadata/annotations/platform.kubevirt.io~1reconcile-paused");
    assert_eq!(paused, json!("true"), "{} moves", bed.moves() - before);
}

/// A document of others of which an asset that restarts nodes wants a key; the core has run for some seconds.
fn restarting() -> TestBed {
    let data = "data:\n  config.yaml: |\n\
        {{ mergeOverwrite (getConfigMapData \"virt\" \"shared\" \"config.yaml\" | fromYaml) \
        (dict \"nodeExporter\" (dict \"ksmd\" true)) | toYaml | indent 4 }}";
    let high = Pack::default().asset(
        "monitoring",
        "install: always, reconcile_order: 5, impact: high",
        &config_map("shared", data),
    );
    let mut bed = TestBed::of(high);
    bed.create("kubectl-create", &shared(THEIRS));
    bed.advance(super::SECOND * 10);
    bed
}

#[test]
fn an_approval_of_an_edit_is_used_once() {
    let mut bed = restarting();
    bed.approve(SHARED);
    bed.advance(super::SECOND * 10);
    let before = text(&bed);
    bed.approve(SHARED);
    bed.advance(super::SECOND * 10);
    assert!(!before.contains("ksmd") && text(&bed).contains("ksmd"));
    // Nobody sees that it is undone.
    write(&mut bed, &before);
    bed.restart();
    let lines = bed.advance(super::SECOND * 10);
    assert_eq!(text(&bed), before, "{lines}");
}

#[test]
fn a_document_that_restarts_nodes_is_approved_and_then_silent() {
    let mut bed = restarting();
    bed.approve(SHARED);
    let mut lines = bed.advance(super::SECOND * 10);
    // What others write meanwhile is not what is approved.
    bed.approve(SHARED);
    write(&mut bed, &format!("more: 1\n{THEIRS}"));
    lines.push_str(&bed.advance(super::SECOND * 10));
    assert!(text(&bed).contains("ksmd"), "{lines}");
    // The drift is seen, and what the nodes run is brought back: that is never gated.
    write(&mut bed, THEIRS);
    lines.push_str(&bed.advance(super::SECOND * 10));
    assert!(text(&bed).contains("ksmd"), "{lines}");
}

#[test]
fn a_document_that_restarts_nodes_and_changed_while_nobody_saw_it_waits_for_approval() {
    let mut bed = restarting();
    bed.approve(SHARED);
    bed.advance(super::SECOND * 10);
    bed.approve(SHARED);
    bed.advance(super::SECOND * 10);
    assert!(text(&bed).contains("ksmd"));
    bed.silent.insert("ConfigMap".into());
    write(&mut bed, THEIRS);
    bed.advance(super::MINUTE);
    bed.silent.clear();
    bed.restore_watch("ConfigMap");
    let lines = bed.advance(super::SECOND * 10);
    assert!(!text(&bed).contains("ksmd") && lines.contains("ApprovalRequired"), "{lines}");
}

#[test]
fn a_document_that_is_as_wanted_after_a_start_drifts_later() {
    let mut bed = with_document(THEIRS);
    bed.advance(super::SECOND * 10);
    bed.restart();
    bed.advance(super::SECOND * 10);
    write(&mut bed, THEIRS);
    expect![[r#"
        edit ConfigMap virt/shared
        notice DriftCorrected ConfigMap virt/shared: kubectl-edit changed nodeExporter.ksmd in /data/config.yaml; the drift was corrected
    "#]]
    .assert_eq(&bed.advance(super::SECOND * 10));
}

/// Whether our key is put back without an approval after these writes of it have failed.
fn is_put_back_after(faults: &[Fault]) -> bool {
    let mut bed = restarting();
    bed.approve(SHARED);
    bed.advance(super::SECOND * 10);
    bed.approve(SHARED);
    bed.advance(super::SECOND * 10);
    faults.iter().for_each(|fault| bed.fail_next(SHARED, *fault));
    write(&mut bed, THEIRS);
    let lines = bed.advance(super::MINUTE);
    let is_back = text(&bed).contains("ksmd");
    assert_ne!(lines.contains("ApprovalRequired"), is_back, "{lines}");
    is_back
}

#[test]
fn what_restarts_nodes_and_could_not_be_undone_for_a_while_waits_for_approval() {
    assert!(is_put_back_after(&[Fault::Transient; 3]));
    assert!(!is_put_back_after(&[Fault::Transient; 4]));
    assert!(!is_put_back_after(&[Fault::Refused(403, "forbidden")]));
}
