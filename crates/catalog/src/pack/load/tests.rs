//! Tests of the faults that a pack is refused for, and of their locations.

use crate::pack::asset::{Install, Prune};
use crate::pack::catalog::Catalog;
use crate::pack::condition::Condition;
use crate::pack::feature::Maturity;
use crate::pack::test_pack::{files, listed, loaded, sample};
use change::Impact;
use expect_test::{Expect, expect};

/// Checks the faults of a pack with this catalogue and a valid template.
fn refused(metadata: &str, expected: &Expect) {
    let pack = files(&[
        ("active/metadata.yaml", metadata),
        ("active/a.yaml.tpl", "apiVersion: v1\n"),
        ("active/script.sh", "echo\n"),
    ]);
    expected.assert_eq(&listed(&Catalog::load(pack).unwrap_err()));
}

fn refused_file(path: &str, text: &str, expected: &Expect) {
    let pack = files(&[("active/metadata.yaml", "assets: []\n"), (path, text)]);
    expected.assert_eq(&listed(&Catalog::load(pack).unwrap_err()));
}

#[test]
fn the_sample_pack_loads() {
    let catalog = sample();
    let names: Vec<&str> = catalog.assets.iter().map(|asset| asset.name.as_str()).collect();
    assert_eq!(names, ["sample-service", "sample-karg-worker", "sample-karg-master", "sample-config"]);
    let master = catalog.asset("sample-karg-master").unwrap();
    assert_eq!(master.group.as_deref(), Some("sample-karg"));
    assert_eq!(master.install, Install::OptIn);
    assert_eq!(master.template_params["role"], "master");
    assert_eq!(master.conditions[1], Condition::Topology { field: "hasSchedulableMasters".into(), value: true });
    assert_eq!(catalog.framework.maturity, Some(Maturity::Tp));
    assert_eq!(catalog.features[0].groups, ["sample-karg"]);
    assert_eq!(catalog.tombstones[0].name, "sample-old");
    assert!(catalog.asset("no-such").is_none());
}

#[test]
fn an_annotation_condition_without_a_value_is_one_of_presence() {
    let metadata = "assets:\n- name: a\n  path: active/a.yaml\n  install: opt-in\n  conditions:\n  \
        - {type: annotation, key: k, value: \"\"}\n  - {type: annotation, key: k, value: v}\nexcluded_assets: [a]\n";
    let catalog = loaded(files(&[("active/metadata.yaml", metadata), ("active/a.yaml", "kind: X\n")]));
    let condition = |value: Option<&str>| Condition::Annotation { key: "k".into(), value: value.map(str::to_owned) };
    assert_eq!(catalog.assets[0].conditions, [condition(None), condition(Some("v"))]);
}

#[test]
fn every_document_of_a_file_has_a_literal_kind_and_name_of_its_own() {
    let faults = |documents: &str| {
        let metadata = "assets:\n- {name: a, path: active/a.yaml.tpl, install: always}\n";
        let pack = files(&[("active/metadata.yaml", metadata), ("active/a.yaml.tpl", documents)]);
        listed(&Catalog::load(pack).unwrap_err())
    };
    let document = |name: &str| format!("apiVersion: v1\nkind: X\nmetadata:\n  name: {name}\n");
    let (one, computed) = (document("one"), document("{{ .Params.name }}"));
    expect![[r#"
        active/metadata.yaml:2: the file has several documents, and document 2 does not state apiVersion, kind and metadata.name literally
    "#]]
    .assert_eq(&faults(&format!("{one}---\n{computed}")));
    expect![[r#"
        active/metadata.yaml:2: the file has several documents, and one of them has no line that begins with `kind:`
    "#]]
    .assert_eq(&faults(&format!("{one}---\n{}---\n{{apiVersion: v1, kind: Y}}\n", document("two # why"))));
    expect![[r#"
        active/metadata.yaml:2: the file has two documents for X one
    "#]]
    .assert_eq(&faults(&format!("{one}---\n{one}---\n{one}")));
    let slash = "assets:\n- {name: a/b, path: active/a.yaml.tpl, install: always}\n";
    refused(
        slash,
        &expect![[r#"
        active/metadata.yaml:2: the name `a/b` must have no slash
    "#]],
    );
}

#[test]
fn notes_of_an_asset_are_completed_by_those_of_its_feature() {
    let metadata = "assets:\n- {name: a, path: active/a.yaml, install: always, docs: own, source: [one, two], maturity: dp}\n\
        features:\n- {name: f, assets: [a], description: all, why: because, source: three, verify: look, opt_out: never, maturity: tp}\n";
    let catalog = loaded(files(&[("active/metadata.yaml", metadata), ("active/a.yaml", "kind: X\n")]));
    let notes = catalog.notes(&catalog.assets[0]);
    let texts = [notes.docs, notes.why, notes.verify, notes.opt_out];
    assert_eq!(texts, ["own", "because", "look", "never"]);
    assert_eq!((notes.sources, notes.maturity), (vec!["one".to_owned(), "two".to_owned()], Some(Maturity::Dp)));
    let feature = &catalog.features[0].notes;
    assert_eq!((feature.docs.as_str(), feature.sources.as_slice()), ("all", ["three".to_owned()].as_slice()));
}

#[test]
fn a_text_that_is_needed_must_not_be_empty() {
    refused(
        "assets:\n- {name: \"\", path: active/a.yaml.tpl, install: always}\n",
        &expect![[r#"
        active/metadata.yaml:2: `name` must not be empty
    "#]],
    );
}

#[test]
fn an_older_pack_has_its_catalogue_at_its_root() {
    let asset = "assets:\n- {name: a, path: active/a.yaml, install: always}\n";
    let catalog = loaded(files(&[("metadata.yaml", asset), ("active/a.yaml", "kind: X\n")]));
    assert_eq!(catalog.assets[0].path, "active/a.yaml");
}

#[test]
fn extension_keys_and_newer_conditions_are_accepted() {
    let metadata = "
x-anything: {goes: here}
assets:
- name: a
  path: active/a.yaml
  install: opt-in
  impact: high
  prune: never
  x-note: for us
  reads:
  - {apiVersion: v1, kind: ConfigMap, namespace: ns}
  conditions:
  - {type: kubevirt-feature-gate, value: G}
  - {type: topology, field: isHCP, value: false}
  - {type: topology, field: isAWS, value: \"false\"}
  - {type: annotation, key: k}
excluded_assets: [a]
";
    let catalog = loaded(files(&[("active/metadata.yaml", metadata), ("active/a.yaml", "kind: X\n")]));
    let asset = &catalog.assets[0];
    assert_eq!((asset.impact, asset.prune), (Some(Impact::High), Prune::Never));
    assert_eq!(asset.reads.as_ref().unwrap()[0].namespace.as_deref(), Some("ns"));
    assert_eq!(asset.conditions[0], Condition::KubevirtFeatureGate { value: "G".into() });
    assert_eq!(asset.conditions[1], Condition::Topology { field: "isHCP".into(), value: false });
    assert_eq!(asset.conditions[2], Condition::Topology { field: "isAWS".into(), value: false });
    assert_eq!(asset.conditions[3], Condition::Annotation { key: "k".into(), value: None });
    assert_eq!(catalog.excluded_assets, ["a"]);
}

#[test]
fn a_pack_without_a_catalogue_is_refused() {
    let faults = Catalog::load(files(&[])).unwrap_err();
    expect![[r#"
        active/metadata.yaml: the pack has neither this file nor a metadata.yaml at its root
    "#]]
    .assert_eq(&listed(&faults));
    refused(
        "",
        &expect![[r#"
        active/metadata.yaml:1: the catalogue is empty
    "#]],
    );
    refused(
        "[]",
        &expect![[r#"
        active/metadata.yaml:1: the catalogue must be a map, not a list
    "#]],
    );
    refused(
        "assets: []\n---\nassets: []\n",
        &expect![[r#"
        active/metadata.yaml:3: the catalogue must be one document
    "#]],
    );
    refused(
        "assets:\n- [\n",
        &expect![[r#"
            active/metadata.yaml:2: unclosed bracket '['
        "#]],
    );
    refused(
        "assets: []\nassets: []\n",
        &expect![[r#"
        active/metadata.yaml:2: duplicate mapping key: assets
    "#]],
    );
}

#[test]
fn an_unknown_key_is_reported_with_its_line_and_a_suggestion() {
    let metadata = "
assetts: []
colour: red
assets:
- name: a
  path: active/a.yaml.tpl
  install: always
  reconcile-order: 1
  conditions:
  - type: annotation
    key: k
    valeu: x
features:
- name: f
  assets: [a]
  desc: x
framework:
  maturty: tp
";
    refused(
        metadata,
        &expect![[r#"
        active/metadata.yaml:2: the catalogue has an unknown key `assetts`, did you mean `assets`?
        active/metadata.yaml:3: the catalogue has an unknown key `colour`
        active/metadata.yaml:8: asset has an unknown key `reconcile-order`, did you mean `reconcile_order`?
        active/metadata.yaml:12: condition has an unknown key `valeu`, did you mean `value`?
        active/metadata.yaml:16: feature has an unknown key `desc`
        active/metadata.yaml:18: framework has an unknown key `maturty`, did you mean `maturity`?
    "#]],
    );
}

#[test]
fn missing_keys_and_wrong_types_are_reported() {
    let metadata = "
assets:
- path: active/a.yaml.tpl
  install: always
- name: b
  install: sometimes
  path: active/a.yaml.tpl
- name: c
  path: active/nowhere.yaml
- name: d
  path: active/script.sh
  install: always
  phase: one
  conditions: yes
  template_params: {size: 5}
  impact: huge
  reports: perhaps
  reads: [{kind: Secret, apiVersion: v1}, {kind: X}]
- name: b
  path: active/a.yaml.tpl
  install: always
- text
features:
- name: f
- name: g
  assets: [bb, nothing]
  groups: [h]
excluded_assets: [zzz]
framework: {maturity: ready}
";
    refused(
        metadata,
        &expect![[r#"
        active/metadata.yaml:3: asset needs `name`
        active/metadata.yaml:6: `install` is `sometimes` and must be `always` or `opt-in`
        active/metadata.yaml:8: asset needs `install`
        active/metadata.yaml:9: the pack has no file `active/nowhere.yaml`
        active/metadata.yaml:11: `active/script.sh` is neither a template (.tpl, .tmpl) nor .yaml
        active/metadata.yaml:13: `phase` must be a whole number, not text
        active/metadata.yaml:14: `conditions` must be a list, not true or false
        active/metadata.yaml:15: `template_params.size` must be text, not a number (put it in quotes)
        active/metadata.yaml:16: `impact` is `huge` and must be `none` or `low` or `medium` or `high`
        active/metadata.yaml:17: `reports` must be true or false, not text
        active/metadata.yaml:18: a template cannot read a Secret
        active/metadata.yaml:18: an item of `reads` needs `apiVersion`
        active/metadata.yaml:19: asset `b` is already declared in line 5
        active/metadata.yaml:22: asset must be a map, not text
        active/metadata.yaml:24: feature `f` names neither an asset nor a group
        active/metadata.yaml:26: there is no asset `bb`, did you mean `b`?
        active/metadata.yaml:26: there is no asset `nothing`
        active/metadata.yaml:27: there is no group `h`
        active/metadata.yaml:28: there is no asset `zzz`
        active/metadata.yaml:29: `maturity` is `ready` and must be `ga` or `tp` or `dp`
    "#]],
    );
}

#[test]
fn invalid_conditions_are_reported() {
    let metadata = "
assets:
- name: a
  path: active/a.yaml.tpl
  install: opt-in
  conditions:
  - type: anotation
  - {}
  - type: annotation
  - type: annotation
    key: k
    value: true
  - type: feature-gate
  - type: kubevirt-feature-gate
  - type: image
  - type: hco-field-unconfigured
  - type: hardware-detection
    detector: sriovCapable
  - type: hardware-detection
    detector: gpupresent
  - type: topology
    field: masterCount
  - type: topology
    field: isHCP
    value: maybe
  - type: moon
";
    refused(
        metadata,
        &expect![[r#"
        active/metadata.yaml:7: there is no condition of type `anotation`, did you mean `annotation`?
        active/metadata.yaml:8: condition needs `type`
        active/metadata.yaml:9: condition needs `key`
        active/metadata.yaml:12: `value` must be text, not true or false (put it in quotes)
        active/metadata.yaml:13: condition needs `value`
        active/metadata.yaml:14: condition needs `value`
        active/metadata.yaml:15: condition needs `key`
        active/metadata.yaml:16: condition needs `path`
        active/metadata.yaml:18: `detector` is `sriovCapable`, which is not one of pciDevicesPresent, numaNodesPresent, vfioCapable, usbDevicesPresent, gpuPresent
        active/metadata.yaml:20: `detector` is `gpupresent`, which is not one of pciDevicesPresent, numaNodesPresent, vfioCapable, usbDevicesPresent, gpuPresent, did you mean `gpuPresent`?
        active/metadata.yaml:22: `field` is `masterCount`, which is not one of isHCP, isCompact, hasSchedulableMasters, isAWS, isAzure, isGCP, isBareMetal, isVSphere, isOpenStack
        active/metadata.yaml:25: `value` is `maybe` and must be `` or `true` or `false`
        active/metadata.yaml:26: there is no condition of type `moon`
    "#]],
    );
}

#[test]
fn a_template_that_does_not_parse_is_reported_with_its_line() {
    let check = |text: &str, expected: &Expect| refused_file("active/t.yaml.tpl", text, expected);
    check(
        "a\n{{ if .x }}\n",
        &expect![[r#"
        active/t.yaml.tpl:2: {{if}} is never closed with {{end}}
    "#]],
    );
    check(
        "a\n{{ .x | }}\n",
        &expect![[r#"
        active/t.yaml.tpl:2: empty command
    "#]],
    );
    check(
        "{{ foo 1 }}\n{{ bar }} {{ $x }}\n{{ template \"t\" }}\n{{ (list $y | baz).z }}",
        &expect![[r#"
        active/t.yaml.tpl:1: unknown function foo
        active/t.yaml.tpl:2: unknown function bar
        active/t.yaml.tpl:2: variable $x is not defined
        active/t.yaml.tpl:3: template "t" is not defined
        active/t.yaml.tpl:4: unknown function baz
        active/t.yaml.tpl:4: variable $y is not defined
    "#]],
    );
    check(
        "{{ $x := 1 }}{{ if true }}{{ $y := 2 }}{{ $x }}{{ end }}\n{{ $y }}",
        &expect![[r#"
        active/t.yaml.tpl:2: variable $y is not defined
    "#]],
    );
    check(
        "{{ env \"HOME\" }}{{ now }}{{ randAlpha 5 }}",
        &expect![[r#"
        active/t.yaml.tpl:1: unknown function env
        active/t.yaml.tpl:1: unknown function now
        active/t.yaml.tpl:1: unknown function randAlpha
    "#]],
    );
    check(
        "\n{{ readAsset \"scripts/none.sh\" }}",
        &expect![[r#"
        active/t.yaml.tpl:2: readAsset: the pack has no file active/scripts/none.sh
    "#]],
    );
    refused_file(
        "active/x.tmpl",
        "{{ end }}",
        &expect![[r#"
        active/x.tmpl:1: {{end}} closes no block
    "#]],
    );
}

#[test]
fn a_plain_file_is_parsed_when_the_pack_is_loaded() {
    let pack = files(&[
        ("active/metadata.yaml", "assets:\n- {name: a, path: active/a.yaml, install: always}\n"),
        ("active/a.yaml", "kind: X\nmetadata: [\n"),
    ]);
    expect![[r#"
        active/a.yaml:2: unclosed bracket '['
    "#]]
    .assert_eq(&listed(&Catalog::load(pack).unwrap_err()));
}

#[test]
fn a_tombstone_must_have_the_managed_by_label() {
    let label = "labels: {platform.kubevirt.io/managed-by: virt-platform-autopilot}";
    let check = |text: &str, expected: &Expect| refused_file("tombstones/v1/t.yaml", text, expected);
    check(
        "apiVersion: v1\nkind: X\nmetadata: {name: thing}\n",
        &expect![[r#"
        tombstones/v1/t.yaml:1: a tombstone needs the label `platform.kubevirt.io/managed-by: virt-platform-autopilot`
    "#]],
    );
    check(
        &format!("kind: X\nmetadata: {{name: thing, {label}}}\n---\napiVersion: v1\nmetadata: {{{label}}}\n"),
        &expect![[r#"
        tombstones/v1/t.yaml:1: a tombstone needs `apiVersion`
        tombstones/v1/t.yaml:4: a tombstone needs `kind`
    "#]],
    );
    check(
        &format!("apiVersion: v1\nkind: X\nmetadata: {{{label}}}\n"),
        &expect![[r#"
        tombstones/v1/t.yaml:1: a tombstone needs `metadata.name`
    "#]],
    );
    check(
        "a: [",
        &expect![[r#"
        tombstones/v1/t.yaml:1: unclosed bracket '['
    "#]],
    );
}

#[test]
fn tombstones_are_never_rendered_as_templates() {
    let text = "apiVersion: v1\nkind: X\nmetadata:\n  name: thing\n  labels: {platform.kubevirt.io/managed-by: virt-platform-autopilot}\n";
    let two = format!("# gone since v2\n{text}---\n{text}  namespace: '{{{{ if }}}}'\n---\n");
    let catalog = loaded(files(&[
        ("active/metadata.yaml", "assets: []"),
        ("tombstones/v2/t.yaml.tpl", &two),
        ("tombstones/README.md", "why"),
    ]));
    assert_eq!(catalog.tombstones.len(), 2);
    assert_eq!(catalog.tombstones[1].namespace.as_deref(), Some("{{ if }}"));
    assert_eq!(catalog.tombstones[1].file, "tombstones/v2/t.yaml.tpl");
}

#[test]
fn a_catalogue_can_be_shared_between_threads() {
    fn shared<T: Send + Sync + 'static>(_: &T) {}
    shared(&sample());
}

#[test]
fn different_packs_have_different_digests() {
    let digest = |pack: &[(&str, &str)]| {
        let mut all = vec![("active/metadata.yaml", "assets: []")];
        all.extend_from_slice(pack);
        loaded(files(&all)).digest()
    };
    let first = digest(&[("active/a", "bc")]);
    assert_eq!(first, digest(&[("active/a", "bc")]));
    assert_ne!(first, digest(&[("active/ab", "c")]));
    assert_ne!(first, digest(&[]));
    assert!(first.starts_with("sha256:") && first.len() == 7 + 64, "{first}");
}
