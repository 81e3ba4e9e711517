//! Tests of rendering: the sample pack, queries, documents and messages for broken templates.

use super::{Rendered, render};
use crate::applies::{Applicability, applies};
use crate::cluster::facts::Facts;
use crate::cluster::node::Node;
use crate::cluster::pool::Pool;
use crate::cluster::query::{Answer, Query};
use crate::cluster::topology::{Infrastructure, Topology};
use crate::pack::asset::Asset;
use crate::pack::catalog::Catalog;
use crate::pack::test_pack::{files, loaded, of_template, of_template_and, sample};
use change::Kind;
use expect_test::{Expect, expect};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The facts of `tests-data/sample-pack/expected/README.md`.
fn sample_facts(nodes: &[&[&str]], schedulable: bool) -> Facts {
    let node =
        |roles: &&[&str]| Node { roles: roles.iter().map(|role| (*role).to_owned()).collect(), ..Node::default() };
    let nodes: Vec<Node> = nodes.iter().map(node).collect();
    let infrastructure =
        Infrastructure { control_plane_topology: "HighlyAvailable".into(), platform: "BareMetal".into() };
    Facts {
        hco: json!({
            "apiVersion": "hco.kubevirt.io/v1",
            "kind": "HyperConverged",
            "metadata": {
                "name": "kubevirt-hyperconverged",
                "namespace": "openshift-cnv",
                "annotations": {
                    "platform.kubevirt.io/autopilot": "true",
                    "platform.kubevirt.io/enable-sample": "true",
                },
            },
        }),
        topology: Topology::of(&nodes, &infrastructure, schedulable),
        ..Facts::default()
    }
}

fn everything(catalog: &Catalog, facts: &Facts) -> Value {
    let mut objects = BTreeMap::new();
    for asset in &catalog.assets {
        match applies(asset, facts) {
            Applicability::Applies => {}
            Applicability::Not(_) | Applicability::NotAskedFor(_) => continue,
            other => panic!("{}: {other:?}", asset.name),
        }
        match render(catalog, asset, facts) {
            Rendered::Object(object) => {
                objects.insert(asset.name.clone(), object);
            }
            Rendered::Empty => {}
            other => panic!("{}: {other:?}", asset.name),
        }
    }
    json!(objects)
}

fn parsed(text: &str) -> Value {
    serde_json::from_str(text).unwrap()
}

#[test]
fn the_sample_pack_renders_as_expected() {
    let catalog = sample();
    let six: [&[&str]; 6] = [&["master"], &["master"], &["master"], &["worker"], &["worker"], &["worker"]];
    assert_eq!(
        everything(&catalog, &sample_facts(&six, false)),
        parsed(include_str!("../../tests-data/sample-pack/expected/six-nodes.json"))
    );
    let compact: [&[&str]; 3] = [&["master", "worker"], &["master", "worker"], &["control-plane", "worker"]];
    assert_eq!(
        everything(&catalog, &sample_facts(&compact, true)),
        parsed(include_str!("../../tests-data/sample-pack/expected/compact.json"))
    );
}

#[test]
fn the_kind_of_an_asset_is_known_without_facts() {
    let catalog = sample();
    let kinds: Vec<Option<Kind>> = catalog.assets.iter().map(|asset| asset.kind.clone()).collect();
    let kind = |group: &str, version: &str, kind: &str| {
        Some(Kind { group: group.into(), version: version.into(), kind: kind.into() })
    };
    let machine_config = kind("machineconfiguration.openshift.io", "v1", "MachineConfig");
    let expected = [kind("", "v1", "Service"), machine_config.clone(), machine_config, kind("", "v1", "ConfigMap")];
    assert_eq!(kinds, expected);
    let catalog = of_template("apiVersion: \"a.b/v1\" # why\nkind: {{ .Params.kind }}\n", "");
    assert_eq!(catalog.assets[0].kind, None);
    let either = "{{ if .HCO.GetName }}\nkind: A\n{{ else }}\nkind: B\n{{ end }}\n";
    assert_eq!(of_template(&format!("apiVersion: a.b/v1\n{either}"), "").assets[0].kind, None);
}

const HEAD: &str = "apiVersion: v1\nkind: X\nmetadata: {name: thing}\n";

/// Checks what a template renders to as the value of `x` in an otherwise valid object.
fn check(template: &str, facts: &Facts, expected: &Expect) {
    let catalog = of_template(&format!("{HEAD}x: {template}\n"), "");
    expected.assert_eq(&summary(&render(&catalog, &catalog.assets[0], facts)));
}

pub fn summary(rendered: &Rendered) -> String {
    match rendered {
        Rendered::Object(object) => object.get("x").unwrap_or(&Value::Null).to_string(),
        Rendered::Empty => "empty".into(),
        Rendered::Needs(queries) => {
            format!("needs {}", queries.iter().map(Query::to_string).collect::<Vec<_>>().join(", "))
        }
        Rendered::Held(query) => format!("held by {query}"),
        Rendered::NotApplicable(why) => format!("not applicable: {why}"),
        Rendered::Broken(reason) => reason.clone(),
    }
}

fn object(api_version: &str, kind: &str, namespace: &str, name: &str) -> Query {
    Query::Object { api_version: api_version.into(), kind: kind.into(), namespace: namespace.into(), name: name.into() }
}

fn knowing(answers: &[(Query, Answer)]) -> Facts {
    Facts { answers: answers.iter().cloned().collect(), ..Facts::default() }
}

#[test]
fn a_template_sees_the_documented_data() {
    let mut facts = sample_facts(&[&["worker"]], false);
    facts.images.insert("exporter".into(), "quay.io/e".into());
    check(
        "[{{ .HCO.GetName }}, {{ .HCO.GetNamespace }}, {{ len .HCO.GetLabels }}, {{ len .HCO.GetAnnotations }}]",
        &facts,
        &expect![[r#"["kubevirt-hyperconverged","openshift-cnv",0,2]"#]],
    );
    check(
        "[{{ index .Images \"exporter\" }}, \"{{ index .Images \"none\" }}\", {{ .Topology.CloudProvider }}]",
        &facts,
        &expect![[r#"["quay.io/e","","BareMetal"]"#]],
    );
    check("{{ .Hardware.GPUPresent }}", &facts, &expect!["false"]);
    check("{{ .Params.role }}", &facts, &expect![[r#"active/a.yaml.tpl:4: the map has no key "role""#]]);
    check("{{ .HCO.Object.spec }}", &Facts::default(), &expect![[r#"active/a.yaml.tpl:4: the map has no key "spec""#]]);
}

#[test]
fn a_query_is_found_absent_held_or_still_needed() {
    let map = object("v1", "ConfigMap", "ns", "m");
    let template = "{{ getConfigMapData \"ns\" \"m\" \"k\" | quote }}";
    let found = Answer::Found(json!({"data": {"k": "v"}}));
    check(template, &Facts::default(), &expect!["needs v1 ConfigMap ns/m"]);
    check(template, &knowing(&[(map.clone(), Answer::Unknown)]), &expect!["held by v1 ConfigMap ns/m"]);
    check(template, &knowing(&[(map.clone(), Answer::Absent)]), &expect![[r#""""#]]);
    check(template, &knowing(&[(map.clone(), found)]), &expect![[r#""v""#]]);
    check(template, &knowing(&[(map, Answer::Found(json!({})))]), &expect![[r#""""#]]);
}

#[test]
fn queries_with_constant_arguments_need_one_round() {
    check(
        "{{ if objectExists \"A\" \"ns\" \"a\" }}{{ objectExists \"B\" \"ns\" \"b\" }}{{ end }}{{ storageProfileRWXClass }}",
        &Facts::default(),
        &expect![
            "needs monitoring.coreos.com/v1 A ns/a, monitoring.coreos.com/v1 B ns/b, the list of cdi.kubevirt.io/v1beta1 StorageProfile"
        ],
    );
    let known = knowing(&[(object("monitoring.coreos.com/v1", "A", "ns", "a"), Answer::Absent)]);
    check(
        "{{ objectExists \"A\" \"ns\" \"a\" }}{{ objectExists (upper \"b\") \"ns\" \"b\" }}",
        &known,
        &expect!["needs monitoring.coreos.com/v1 B ns/b"],
    );
}

#[test]
fn objects_of_the_monitoring_group_are_queried() {
    let rule = object("monitoring.coreos.com/v1", "PrometheusRule", "ns", "r");
    let exists = "{{ objectExists \"PrometheusRule\" \"ns\" \"r\" }}";
    check(exists, &knowing(&[(rule.clone(), Answer::Found(json!({})))]), &expect!["true"]);
    check(exists, &knowing(&[(rule.clone(), Answer::Absent)]), &expect!["false"]);
    check(
        exists,
        &knowing(&[(rule.clone(), Answer::Unknown)]),
        &expect!["held by monitoring.coreos.com/v1 PrometheusRule ns/r"],
    );
    let has = |record: &str| format!("{{{{ prometheusRuleHasRecordingRule \"ns\" \"r\" \"{record}\" }}}}");
    let found = json!({"spec": {"groups": [{"rules": [{"alert": "a"}]}, {"rules": [{"record": "b"}]}]}});
    let facts = knowing(&[(rule.clone(), Answer::Found(found))]);
    check(&has("b"), &facts, &expect!["true"]);
    check(&has("a"), &facts, &expect!["false"]);
    check(&has("b"), &knowing(&[(rule, Answer::Absent)]), &expect!["false"]);
}

#[test]
fn enumerations_of_a_crd_are_queried() {
    let version = |storage: bool, values: Value| {
        json!({"storage": storage, "schema": {"openAPIV3Schema": {"properties": {"spec": {"properties": {
            "mode": {"enum": values},
            "profiles": {"items": {"enum": ["P", "Q"]}},
            "list": {"items": {"properties": {"kind": {"enum": ["K"]}}}},
        }}}}}})
    };
    let crd = json!({"spec": {"versions": [version(false, json!(["old"])), version(true, json!(["a", "b"]))]}});
    let query = Query::Crd { name: "x.y".into() };
    let facts = knowing(&[(query.clone(), Answer::Found(crd))]);
    check("{{ crdEnum \"x.y\" \"spec.mode\" | toJson }}", &facts, &expect![[r#"["a","b"]"#]]);
    check("{{ crdEnum \"x.y\" \"spec.none\" | toJson }}", &facts, &expect!["[]"]);
    check("{{ crdHasEnum \"x.y\" \"spec.mode\" \"b\" }}", &facts, &expect!["true"]);
    check("{{ crdHasEnum \"x.y\" \"spec.mode\" \"old\" }}", &facts, &expect!["false"]);
    check("{{ crdHasEnum \"x.y\" \"spec.profiles\" \"Q\" }}", &facts, &expect!["true"]);
    check("{{ crdHasEnum \"x.y\" \"spec.list.kind\" \"K\" }}", &facts, &expect!["true"]);
    check("{{ crdEnum \"x.y\" \"spec.mode\" | toJson }}", &knowing(&[(query.clone(), Answer::Absent)]), &expect!["[]"]);
    check(
        "{{ crdHasEnum \"x.y\" \"spec.mode\" \"a\" }}",
        &knowing(&[(query, Answer::Unknown)]),
        &expect!["held by CustomResourceDefinition x.y"],
    );
    check(
        "{{ crdHasEnum \"x.y\" \"spec.mode\" \"a\" }}",
        &Facts::default(),
        &expect!["needs CustomResourceDefinition x.y"],
    );
}

#[test]
fn fields_of_a_crd_are_queried() {
    let spec = json!({"properties": {"limits": {"type": "object", "properties": {"total": {}}}, "list": {"items": {"properties": {"kind": {}}}}}});
    let schema = json!({"openAPIV3Schema": {"properties": {"spec": spec}}});
    let crd = json!({"spec": {"versions": [{"storage": true, "schema": schema}]}});
    let query = Query::Crd { name: "x.y".into() };
    let has = |path: &str| format!("{{{{ crdHasField \"x.y\" \"{path}\" }}}}");
    let facts = knowing(&[(query.clone(), Answer::Found(crd))]);
    for (path, expected) in [
        ("spec.limits.total", expect!["true"]),
        ("spec.limits.node", expect!["false"]),
        ("spec.list.kind", expect!["true"]),
        ("limits", expect!["false"]),
    ] {
        check(&has(path), &facts, &expected);
    }
    check(&has("spec"), &knowing(&[(query, Answer::Absent)]), &expect!["false"]);
    check(&has("spec"), &Facts::default(), &expect!["needs CustomResourceDefinition x.y"]);
}

#[test]
fn a_kubelet_config_of_somebody_else_is_found_by_the_pools_that_it_selects() {
    let config = |name: &str, pool: &str, managed_by: &str| {
        json!({"metadata": {"name": name, "labels": {"platform.kubevirt.io/managed-by": managed_by}},
            "spec": {"machineConfigPoolSelector": {"matchLabels": {"pool": pool}}}})
    };
    let pool =
        |name: &str| Pool { name: name.into(), labels: [("pool".into(), name.into())].into(), ..Pool::default() };
    let list = Query::List { api_version: "machineconfiguration.openshift.io/v1".into(), kind: "KubeletConfig".into() };
    let with = |configs: Value| Facts {
        pools: vec![pool("master"), pool("arbiter"), pool("worker"), pool("infra")],
        ..knowing(&[(list.clone(), Answer::Found(configs))])
    };
    let of = |role: &str| format!("{{{{ foreignKubeletConfig \"{role}\" \"mine\" | quote }}}}");
    let ours = config("ours", "worker", "virt-platform-autopilot");
    let facts = with(json!([ours, config("b", "infra", "x"), config("a", "infra", "x"), config("m", "master", "x")]));
    check(&of("worker"), &facts, &expect![[r#""a""#]]);
    check(&of("master"), &facts, &expect![[r#""m""#]]);
    let elsewhere =
        json!([ours, config("m", "master", "x"), config("n", "arbiter", "x"), config("mine", "worker", "x")]);
    check(&of("worker"), &with(elsewhere), &expect![[r#""""#]]);
    let without_selector = json!([{"metadata": {"name": "n"}, "spec": {}}]);
    check(&of("worker"), &with(without_selector), &expect![[r#""""#]]);
    check(
        &of("worker"),
        &Facts { pools: Vec::new(), ..facts },
        &expect!["held by the list of machineconfiguration.openshift.io/v1 MachineConfigPool"],
    );
    check(&of("worker"), &knowing(&[(list.clone(), Answer::Absent)]), &expect![[r#""""#]]);
    check(
        &of("worker"),
        &Facts::default(),
        &expect!["needs the list of machineconfiguration.openshift.io/v1 KubeletConfig"],
    );
}

#[test]
fn a_template_may_end_with_a_message() {
    let template = |call: &str| format!("{{{{ if true }}}}{{{{ {call} }}}}{{{{ end }}}}");
    check(
        &template("notApplicable \"only where it is cold\""),
        &Facts::default(),
        &expect!["not applicable: only where it is cold"],
    );
    check(
        &template("fail \"write a number\""),
        &Facts::default(),
        &expect!["active/a.yaml.tpl:4: fail: write a number"],
    );
}

#[test]
fn a_file_with_several_documents_is_one_asset_for_each() {
    let document = |kind: &str, name: &str, x: &str| {
        format!("apiVersion: v1\nkind: {kind}\nmetadata:\n  name: {name}\n  namespace: n\nx: {x}\n")
    };
    let text = format!(
        "# All of it.\n---\n{}---\n{{{{ if .Topology.IsHCP }}}}\n{}{{{{ end }}}}\n---\n{}",
        document("Service", "s", "1"),
        document("ConfigMap", "one", "2"),
        document("ConfigMap", "two", "3")
    );
    let catalog = of_template(&text, "  group: g\nfeatures: [{name: f, assets: [a]}]");
    let names: Vec<&str> = catalog.assets.iter().map(|asset| asset.name.as_str()).collect();
    assert_eq!(names, ["a/Service", "a/ConfigMap", "a/ConfigMap/two"]);
    let all = |facts: &Facts| -> Vec<String> {
        catalog.assets.iter().map(|asset| summary(&render(&catalog, asset, facts))).collect()
    };
    assert_eq!(all(&Facts::default()), ["1", "empty", "3"]);
    let mut hosted = Facts::default();
    hosted.topology.is_hcp = true;
    assert_eq!(all(&hosted), ["1", "2", "3"]);
    for asset in &catalog.assets {
        assert_eq!((asset.entry(), catalog.features_of(asset).count()), ("a", 1));
    }
    assert!(catalog.assets.is_sorted_by_key(Asset::order), "they are applied in the order of the file");
    for asset in &catalog.assets {
        assert_eq!(catalog.plain_key(asset).map(|key| key.namespace).as_deref(), Some("n"));
        assert_eq!(Some(&asset.component), asset.kind.as_ref().map(|kind| &kind.kind));
    }
}

#[test]
fn storage_classes_with_shared_file_systems_are_found_by_name() {
    let profile = |name: &str, mode: &str, access: &str| {
        json!({"metadata": {"name": name}, "status": {"claimPropertySets": [
            {"volumeMode": "Block", "accessModes": ["ReadWriteMany"]}, {"volumeMode": mode, "accessModes": [access]}
        ]}})
    };
    let list = Query::List { api_version: "cdi.kubevirt.io/v1beta1".into(), kind: "StorageProfile".into() };
    let profiles = json!([
        profile("c", "Filesystem", "ReadWriteMany"),
        profile("a", "Filesystem", "ReadWriteOnce"),
        profile("b", "Filesystem", "ReadWriteMany"),
    ]);
    let template = "{{ storageProfileRWXClass | quote }}";
    check(template, &knowing(&[(list.clone(), Answer::Found(profiles.clone()))]), &expect![[r#""b""#]]);
    check(template, &knowing(&[(list.clone(), Answer::Found(json!([])))]), &expect![[r#""""#]]);
    check(template, &knowing(&[(list.clone(), Answer::Absent)]), &expect![[r#""""#]]);
    let all = "{{ storageProfileRWXClasses | join \",\" | quote }}";
    check(all, &knowing(&[(list.clone(), Answer::Found(profiles))]), &expect![[r#""b,c""#]]);
    check(all, &knowing(&[(list, Answer::Absent)]), &expect![[r#""""#]]);
}

#[test]
fn an_object_of_the_cluster_is_looked_up() {
    let query = Query::Object {
        api_version: "operator.openshift.io/v1".into(),
        kind: "KubeDescheduler".into(),
        namespace: "ns".into(),
        name: "cluster".into(),
    };
    let template = "{{ dig \"spec\" \"mode\" \"none\" (lookup \"operator.openshift.io/v1\" \"KubeDescheduler\" \"ns\" \"cluster\") }}";
    check(template, &Facts::default(), &expect!["needs operator.openshift.io/v1 KubeDescheduler ns/cluster"]);
    let found = Answer::Found(json!({"spec": {"mode": "Automatic"}}));
    check(template, &knowing(&[(query.clone(), found)]), &expect![[r#""Automatic""#]]);
    check(template, &knowing(&[(query, Answer::Absent)]), &expect![[r#""none""#]]);
    let secret = "{{ lookup \"v1\" \"Secret\" \"ns\" \"s\" }}";
    check(secret, &Facts::default(), &expect!["active/a.yaml.tpl:4: lookup: a template cannot read a Secret"]);
}

#[test]
fn a_pool_runs_a_machine_config_once_all_its_machines_do() {
    let pool = |running: &str| Pool {
        name: "worker".into(),
        sources: vec!["00-worker".into(), "ours".into()],
        wanted_configuration: "rendered-2".into(),
        running_configuration: running.into(),
        ..Pool::default()
    };
    let runs = |pool: Pool, name: &str, config: &str, expected: bool| {
        let facts = Facts { pools: vec![pool], ..Facts::default() };
        let template = format!("{HEAD}x: {{{{ poolRuns \"{name}\" \"{config}\" }}}}\n");
        let catalog = of_template(&template, "");
        assert_eq!(summary(&render(&catalog, &catalog.assets[0], &facts)), expected.to_string(), "{name} {config}");
    };
    runs(pool("rendered-2"), "worker", "ours", true);
    runs(pool("rendered-1"), "worker", "ours", false);
    runs(pool("rendered-2"), "worker", "another", false);
    runs(pool("rendered-2"), "master", "ours", false);
}

#[test]
fn a_query_outside_of_the_declared_reads_is_refused() {
    let asked = |reads: &str| {
        let template = format!("{HEAD}x: {{{{ getConfigMapData \"ns\" \"m\" \"k\" }}}}\n");
        let catalog = of_template(&template, &format!("  reads: {reads}\n"));
        summary(&render(&catalog, &catalog.assets[0], &Facts::default()))
    };
    let needed = "needs v1 ConfigMap ns/m";
    let refused = "active/a.yaml.tpl:4: getConfigMapData: v1 ConfigMap ns/m is not among the asset's reads";
    for (reads, expected) in [
        ("[{apiVersion: v1, kind: ConfigMap}]", needed),
        ("[{apiVersion: v1, kind: ConfigMap, namespace: ns}]", needed),
        ("[{apiVersion: v1, kind: ConfigMap, namespace: ns, name: m}]", needed),
        ("[{apiVersion: v1, kind: Pod}, {apiVersion: v1, kind: ConfigMap}]", needed),
        ("[]", refused),
        ("[{apiVersion: v1, kind: ConfigMap, namespace: other}]", refused),
        ("[{apiVersion: v1, kind: ConfigMap, name: other}]", refused),
        ("[{apiVersion: v2, kind: ConfigMap}]", refused),
    ] {
        assert_eq!(asked(reads), expected, "{reads}");
    }
    let crd = "[{apiVersion: apiextensions.k8s.io/v1, kind: CustomResourceDefinition, name: x.y}]";
    let catalog = of_template(&format!("{HEAD}x: {{{{ crdEnum \"x.y\" \"a\" }}}}\n"), &format!("  reads: {crd}\n"));
    let rendered = render(&catalog, &catalog.assets[0], &Facts::default());
    assert_eq!(summary(&rendered), "needs CustomResourceDefinition x.y");
}

#[test]
fn a_secret_cannot_be_queried() {
    check(
        "{{ objectExists \"Secret\" \"ns\" \"s\" }}",
        &Facts::default(),
        &expect!["active/a.yaml.tpl:4: objectExists: a template cannot read a Secret"],
    );
}

#[test]
fn files_of_the_pack_can_be_embedded_in_an_object() {
    let more = [("active/scripts/s.sh", "echo é\n")];
    let template = format!("{HEAD}x: {{{{ readAsset \"scripts/s.sh\" | gzip | b64enc }}}}\n");
    let catalog = of_template_and(&template, "", &more);
    let packed = summary(&render(&catalog, &catalog.assets[0], &Facts::default()));
    assert_eq!(packed, summary(&render(&catalog, &catalog.assets[0], &Facts::default())));
    let packed = packed.trim_matches('"');
    let bytes = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, packed).unwrap();
    assert_eq!(bytes[4..8], [0; 4], "the header must not hold a time");
    let mut text = String::new();
    std::io::Read::read_to_string(&mut flate2::read::GzDecoder::new(bytes.as_slice()), &mut text).unwrap();
    assert_eq!(text, "echo é\n");

    let check = |call: &str, expected: &str| {
        let catalog = of_template_and(&format!("{HEAD}x: {{{{ {call} }}}}\n"), "", &more);
        assert_eq!(summary(&render(&catalog, &catalog.assets[0], &Facts::default())), expected);
    };
    check("readAsset \"scripts/s.sh\" | trim | quote", "\"echo é\"");
    check(
        "readAsset (print \"scripts/\" \"t.sh\")",
        "active/a.yaml.tpl:4: readAsset: the pack has no file active/scripts/t.sh",
    );
    check(
        "readAsset (print \"../metadata.yaml\")",
        "active/a.yaml.tpl:4: readAsset: the pack has no file active/../metadata.yaml",
    );
    check("gzip \"a\"", "active/a.yaml.tpl:4: bytes are not text: pass them through b64enc");
}

#[test]
fn a_document_must_be_one_complete_object() {
    let check = |text: &str, expected: &Expect| {
        let catalog = of_template(text, "");
        expected.assert_eq(&summary(&render(&catalog, &catalog.assets[0], &Facts::default())));
    };
    check("", &expect!["empty"]);
    check("\n  # only a comment\n{{- if false }}x{{ end }}\n", &expect!["empty"]);
    check("---\n# nothing\n---\n", &expect!["empty"]);
    check("---\napiVersion: v1\nkind: X\nmetadata: {name: thing}\nx: 0644\n---\n", &expect!["420"]);
    check("apiVersion: v1\nkind: X\nmetadata: {name: thing}\nx: [1.0, 1e3, 1.5, yes]\n", &expect!["[1,1000,1.5,true]"]);
    check("a: 1\n---\nb: 2\n", &expect!["active/a.yaml.tpl: it renders to 2 documents, expected one"]);
    check("- a\n", &expect!["active/a.yaml.tpl: it renders to a list, not to an object"]);
    check("text\n", &expect!["active/a.yaml.tpl: it renders to text, not to an object"]);
    check(
        "kind: X\nmetadata: {name: thing}\n",
        &expect!["active/a.yaml.tpl: it renders to an object without apiVersion"],
    );
    check(
        "apiVersion: v1\nmetadata: {name: thing}\n",
        &expect!["active/a.yaml.tpl: it renders to an object without kind"],
    );
    check(
        "apiVersion: v1\nkind: X\nmetadata: {name: 5}\n",
        &expect!["active/a.yaml.tpl: it renders to an object without metadata.name"],
    );
    check(
        "apiVersion: v1\nkind: X\nmetadata: {name: \"\"}\n",
        &expect!["active/a.yaml.tpl: it renders to an object without metadata.name"],
    );
    check("a: 1\na: 2\n", &expect!["active/a.yaml.tpl: line 2 of its output: duplicate mapping key: a"]);
    check("a: [\n", &expect!["active/a.yaml.tpl: line 1 of its output: unclosed bracket '['"]);
}

#[test]
fn a_plain_file_is_not_rendered_as_a_template() {
    let catalog = loaded(files(&[
        ("active/metadata.yaml", "assets: [{name: a, path: active/a.yaml, install: always}]"),
        ("active/a.yaml", "apiVersion: v1\nkind: X\nmetadata: {name: thing}\nx: '{{ .nothing }}'\n"),
    ]));
    assert_eq!(summary(&render(&catalog, &catalog.assets[0], &Facts::default())), "\"{{ .nothing }}\"");
}

#[test]
fn a_broken_template_is_reported_with_its_line() {
    let check = |text: &str, expected: &Expect| {
        let catalog = of_template(text, "");
        expected.assert_eq(&summary(&render(&catalog, &catalog.assets[0], &Facts::default())));
    };
    check("a\n\n{{ upper 5 }}", &expect!["active/a.yaml.tpl:3: upper: expected text, got an int"]);
    check(
        "a\n{{ if true }}\n{{ range list 1 }}\n{{ .x }}{{ end }}{{ end }}",
        &expect![r#"active/a.yaml.tpl:4: an int has no field "x""#],
    );
    check(
        "{{ define \"t\" }}\n{{ div 1 0 }}{{ end }}\n\n{{ template \"t\" }}",
        &expect!["active/a.yaml.tpl:2: div: division by zero"],
    );
    check(
        "{{ printf\n  \"%s\"\n  (index (list) 3) }}",
        &expect!["active/a.yaml.tpl:3: index: 3 is out of range of a list of 0 items"],
    );
    check("\n{{ substr 1 }}", &expect!["active/a.yaml.tpl:2: substr takes 3 arguments, got 1"]);
    check("{{ 1 | substr 1 2 3 }}", &expect!["active/a.yaml.tpl:1: substr takes 3 arguments, got 4"]);
    check(
        "\n{{ fromYaml \"a: [\" }}",
        &expect!["active/a.yaml.tpl:2: fromYaml: line 1 of its text: unclosed bracket '['"],
    );
}

#[test]
fn the_same_facts_give_the_same_object() {
    let template = format!(
        "{HEAD}x: {{{{ dict \"b\" 1 \"a\" 2 | keys | join \",\" }}}}-{{{{ values (dict \"b\" 1 \"a\" 2) }}}}\n"
    );
    let catalog = of_template(&template, "");
    let first = render(&catalog, &catalog.assets[0], &Facts::default());
    assert_eq!(summary(&first), "\"a,b-[2 1]\"");
    for _ in 0..20 {
        assert_eq!(render(&catalog, &catalog.assets[0], &Facts::default()), first);
    }
}
