//! Finds what is wrong with the annotations in YAML files, without a cluster: by the same rules as the operator.

use crate::advice::{about_object, about_platform, is_boolean, is_known, unknown};
use crate::evaluate::{AssetResult, Before, DesiredObject, Evaluation, evaluate, targets};
use crate::exclusion::Exclusions;
use crate::nearest::{nearest, question};
use api::annotation;
use catalog::{Answer, Catalog, Condition, Facts, Hardware, Query, Rendered, YamlContent, YamlNode, yaml_nodes};
use change::{Key, Kind, Overrides, PatchableKinds, Pause, Reason, Steering};
use serde_json::{Map, Value, json};
use std::collections::{BTreeMap, BTreeSet};

/// More rounds of questions than a template needs.
const ROUNDS: usize = 8;

/// Something wrong in a file.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    /// The line, counted from one, if it is known.
    pub line: Option<usize>,
    /// What is wrong, and how to fix it.
    pub message: String,
}

/// An object in a file.
struct Written<'a> {
    key: Key,
    /// Our annotations: key, line and value.
    annotations: Vec<(&'a str, usize, &'a YamlNode)>,
}

/// What is wrong with the annotations of all objects in a text of YAML documents.
pub fn lint(text: &str, catalog: &Catalog, namespace: &str, patchable: &PatchableKinds) -> Vec<Finding> {
    let documents = match yaml_nodes(text) {
        Ok(documents) => documents,
        Err(error) => return vec![Finding { line: error.line, message: error.message }],
    };
    let mut objects = Vec::new();
    documents.iter().for_each(|document| collect(document, &mut objects));
    let mut findings = Vec::new();
    for object in &objects {
        if object.key.kind.kind == api::hco::KIND {
            about_hyperconverged(object, catalog, namespace, &mut findings);
        } else {
            about_managed(object, catalog, namespace, patchable, &mut findings);
        }
    }
    findings.sort();
    findings.dedup();
    findings
}

/// The objects of a document that have annotations of ours; a List has several.
fn collect<'a>(node: &'a YamlNode, objects: &mut Vec<Written<'a>>) {
    if let Some(YamlNode { content: YamlContent::List(items), .. }) = get(node, "items") {
        items.iter().for_each(|item| collect(item, objects));
    }
    let text = |node: Option<&'a YamlNode>| match node.map(|node| &node.content) {
        Some(YamlContent::Text(text)) => text.as_str(),
        _ => "",
    };
    let Some(metadata) = get(node, "metadata") else { return };
    let Some(YamlContent::Map(entries)) = get(metadata, "annotations").map(|node| &node.content) else { return };
    let ours = entries.iter().filter(|(key, ..)| key.starts_with(annotation::PREFIX));
    let annotations: Vec<_> = ours.map(|(key, line, value)| (key.as_str(), *line, value)).collect();
    if annotations.is_empty() {
        return;
    }
    let kind = Kind::new(text(get(node, "apiVersion")), text(get(node, "kind")));
    let (namespace, name) = (text(get(metadata, "namespace")).to_owned(), text(get(metadata, "name")).to_owned());
    objects.push(Written { key: Key { kind, namespace, name }, annotations });
}

fn get<'a>(node: &'a YamlNode, key: &str) -> Option<&'a YamlNode> {
    let YamlContent::Map(entries) = &node.content else { return None };
    entries.iter().find(|(name, ..)| name == key).map(|(.., value)| value)
}

/// The value of an annotation; what is no text is reported.
fn value<'a>((key, line, node): &(&str, usize, &'a YamlNode), findings: &mut Vec<Finding>) -> Option<&'a str> {
    match &node.content {
        YamlContent::Text(text) => Some(text),
        _ => {
            let message = format!("the annotation {key} is {}, and must be text; put it in quotes", node.kind());
            findings.push(Finding { line: Some(*line), message });
            None
        }
    }
}

fn about_hyperconverged(object: &Written<'_>, catalog: &Catalog, namespace: &str, findings: &mut Vec<Finding>) {
    let texts: Vec<(&str, usize, &str)> =
        object.annotations.iter().filter_map(|entry| Some((entry.0, entry.1, value(entry, findings)?))).collect();
    // What decides about everything is judged alone.
    let general = [annotation::AUTOPILOT, annotation::DISABLED_RESOURCES];
    let others = texts.iter().filter(|(key, ..)| !general.contains(key));
    let others = others.map(|(key, _, text)| ((*key).to_owned(), json!(text))).collect();
    let evaluation = evaluated(catalog, hyperconverged(&object.key, namespace, &others));
    let targets = targets(catalog, &evaluation.outcomes);
    for (key, line, text) in &texts {
        let mut report = |message: String| findings.push(Finding { line: Some(*line), message });
        // One annotation at a time, so that the line is known.
        let alone = hyperconverged(&object.key, namespace, &Map::from_iter([((*key).to_owned(), json!(text))]));
        if general.contains(key)
            && let Some(unclear) = evaluated(catalog, alone.clone()).unclear
        {
            report(unclear.to_string());
        }
        let exclusions = match *key {
            annotation::DISABLED_RESOURCES => Exclusions::read(Some(text)),
            _ => Exclusions::none(),
        };
        about_platform(&alone, catalog, exclusions.rules(), &targets).into_iter().for_each(&mut report);
        if is_condition(key, catalog) && !is_boolean(text) {
            let nearest = question(&nearest(text, ["true", "false"]));
            let shown: String = text.chars().take(80).collect();
            report(format!(
                "the annotation {key} is {shown:?}, which is neither true nor false{nearest}; write true or false"
            ));
        }
        if annotation::USERS.contains(key) {
            let written = BTreeMap::from([((*key).to_owned(), (*text).to_owned())]);
            about_steering(&object.key, &written, &PatchableKinds::none()).into_iter().for_each(&mut report);
        }
    }
    // Templates judge the values that only they read. What is named already is not named twice.
    let named: BTreeSet<usize> = findings.iter().filter_map(|finding| finding.line).collect();
    for (asset, why) in refusals(catalog, &hyperconverged(&object.key, namespace, &others)) {
        let words = || why.split(|letter: char| !(letter.is_alphanumeric() || "-./".contains(letter)));
        let is_read = |key: &str| words().any(|word| word.trim_end_matches('.') == key);
        if let Some((_, line, _)) = texts.iter().find(|(key, line, _)| is_read(key) && !named.contains(line)) {
            findings.push(Finding { line: Some(*line), message: format!("asset {asset}: {why}") });
        }
    }
}

/// What templates refuse on a cluster without other objects, and on one that has all hardware: each by its asset. Whether anybody asked for
/// the asset does not matter, a wrong value is wrong.
fn refusals(catalog: &Catalog, hco: &Value) -> BTreeSet<(String, String)> {
    let hardware = Hardware {
        pci_devices_present: true,
        numa_nodes_present: true,
        vfio_capable: true,
        usb_devices_present: true,
        gpu_present: true,
    };
    let conditions = catalog.assets.iter().flat_map(|asset| &asset.conditions).flat_map(Condition::leaves);
    let images = conditions.filter_map(|condition| match condition {
        Condition::Image { key } => Some((key.clone(), "registry.example/image".to_owned())),
        _ => None,
    });
    let images: BTreeMap<String, String> = images.collect();
    let mut refusals = BTreeSet::new();
    for hardware in [Hardware::default(), hardware] {
        let mut facts = Facts { hco: hco.clone(), hardware, images: images.clone(), ..Facts::default() };
        for asset in &catalog.assets {
            for _ in 0..ROUNDS {
                match catalog::render(catalog, asset, &facts) {
                    Rendered::Needs(queries) => {
                        facts.answers.extend(queries.into_iter().map(|query| (query, Answer::Absent)));
                        continue;
                    }
                    Rendered::Broken(why) => _ = refusals.insert((asset.name.clone(), why)),
                    Rendered::Object(_) | Rendered::Empty | Rendered::NotApplicable(_) | Rendered::Held(_) => {}
                }
                break;
            }
        }
    }
    refusals
}

/// Whether a condition of an asset reads the annotation as true or false.
fn is_condition(key: &str, catalog: &Catalog) -> bool {
    let mut conditions = catalog.assets.iter().flat_map(|asset| &asset.conditions).flat_map(Condition::leaves);
    conditions.any(|condition| matches!(condition, Condition::Annotation { key: read, value: Some(value) } if read == key && value == "true"))
}

fn hyperconverged(key: &Key, namespace: &str, annotations: &Map<String, Value>) -> Value {
    let namespace = if key.namespace.is_empty() { namespace } else { &key.namespace };
    let name = if key.name.is_empty() { api::hco::NAME } else { &key.name };
    json!({
        "apiVersion": format!("{}/{}", api::hco::GROUP, api::hco::VERSIONS[0]), "kind": api::hco::KIND,
        "metadata": {"name": name, "namespace": namespace, "annotations": annotations}, "spec": {},
    })
}

/// Evaluates as if the cluster had nothing but the HyperConverged.
fn evaluated(catalog: &Catalog, hco: Value) -> Evaluation {
    let mut facts = Facts { hco, ..Facts::default() };
    let mut evaluation = evaluate(catalog, &facts, false, Before::default());
    for _ in 0..ROUNDS {
        let needed = evaluation.outcomes.iter().filter_map(|outcome| match &outcome.result {
            AssetResult::Needs(queries) => Some(queries.clone()),
            _ => None,
        });
        let needed: Vec<Query> = needed.flatten().collect();
        if needed.is_empty() {
            break;
        }
        facts.answers.extend(needed.into_iter().map(|query| (query, Answer::Absent)));
        // Only assets that make queries are rendered again.
        let before = Before { rules: None, outcomes: evaluation.outcomes };
        evaluation = evaluate(catalog, &facts, false, before);
    }
    evaluation
}

fn about_managed(
    object: &Written<'_>,
    catalog: &Catalog,
    namespace: &str,
    patchable: &PatchableKinds,
    findings: &mut Vec<Finding>,
) {
    let evaluation =
        evaluated(catalog, hyperconverged(&Key { name: String::new(), ..object.key.clone() }, namespace, &Map::new()));
    for entry @ (key, line, _) in &object.annotations {
        let Some(text) = value(entry, findings) else { continue };
        let mut report = |message: String| findings.push(Finding { line: Some(*line), message });
        if !is_known(key, &annotation::USERS) {
            report(unknown(key, annotation::USERS));
            continue;
        }
        let written = BTreeMap::from([((*key).to_owned(), text.to_owned())]);
        let refused = about_steering(&object.key, &written, patchable);
        let is_fine = refused.is_empty();
        refused.into_iter().for_each(&mut report);
        let desired = desired(&evaluation, &object.key).filter(|_| is_fine);
        if let Some(desired) = desired {
            let wanted = || crate::documents::with_places(desired.desired.object(), &desired.documents);
            about_object(&object.key, &written, wanted).into_iter().for_each(&mut report);
            if *key == annotation::PATCH
                && let Ok(overrides) = Overrides::read(Some(text), None, &object.key, patchable)
                && let Err(reason) = overrides.apply(&desired.desired.object())
            {
                report(message(reason));
            }
        }
    }
    let targets = targets(catalog, &evaluation.outcomes);
    let is_same_kind = |kind: &str| kind == object.key.kind.kind;
    let is_managed = targets.keys.iter().any(|key| is_same_kind(&key.kind.kind) && key.name == object.key.name)
        || targets.nameless.iter().any(|kind| is_same_kind(kind));
    let set = object.annotations.iter().find(|(key, ..)| annotation::USERS.contains(key));
    if let Some((_, line, _)) = set.filter(|_| !is_managed) {
        let names = targets.keys.iter().filter(|key| is_same_kind(&key.kind.kind)).map(|key| key.name.as_str());
        let nearest = question(&nearest(&object.key.name, names));
        let message = format!("no asset has the object {}{nearest}, so its annotations have no effect", object.key);
        findings.push(Finding { line: Some(*line), message });
    }
}

/// What an asset wants of an object, as far as that is known without a cluster.
fn desired<'a>(evaluation: &'a Evaluation, key: &Key) -> Option<&'a DesiredObject> {
    evaluation.outcomes.iter().find_map(|outcome| match &outcome.result {
        AssetResult::Included(object)
        | AssetResult::Filtered(object)
        | AssetResult::Governed { object: Some(object), .. }
        | AssetResult::Unwanted { object: Some(object), .. }
            if object.key.kind.kind == key.kind.kind && object.key.name == key.name =>
        {
            Some(&**object).filter(|object| !object.desired.object().is_null())
        }
        _ => None,
    })
}

/// Why the annotations of a user on an object are refused.
fn about_steering(key: &Key, written: &BTreeMap<String, String>, patchable: &PatchableKinds) -> Vec<String> {
    let text = |name: &str| written.get(name).map(String::as_str);
    let steering = match Steering::read(written) {
        Ok(Steering { pause: Pause::Unclear(value), .. }) => Some(Reason::PauseUnclear { value }),
        Ok(_) => None,
        Err(reason) => Some(reason),
    };
    let overrides = Overrides::read(text(annotation::PATCH), text(annotation::IGNORE_FIELDS), key, patchable).err();
    steering.into_iter().chain(overrides).map(message).collect()
}

/// Nothing is kept yet, so only what is wrong is worth saying.
fn message(reason: Reason) -> String {
    match reason {
        Reason::PatchRefused { why } => format!("patch: {why}"),
        Reason::IgnoreFieldsRefused { why } => format!("ignore-fields: {why}"),
        other => other.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::lint;
    use crate::testing::pack::Pack;
    use change::PatchableKinds;
    use expect_test::{Expect, expect};

    fn check(text: &str, expected: &Expect) {
        let findings = lint(text, &Pack::standard().catalog(), "virt", &PatchableKinds::none());
        let lines: Vec<String> = findings
            .iter()
            .map(|finding| format!("{}: {}", finding.line.unwrap_or_default(), finding.message))
            .collect();
        expected.assert_eq(&lines.join("\n"));
    }

    fn object(head: &str, annotations: &[&str]) -> String {
        let lines: Vec<String> = annotations.iter().map(|line| format!("    platform.kubevirt.io/{line}\n")).collect();
        format!("{head}\n  annotations:\n{}", lines.concat())
    }

    const HCO: &str =
        "apiVersion: hco.kubevirt.io/v1\nkind: HyperConverged\nmetadata:\n  name: kubevirt-hyperconverged";
    const PLAIN: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: plain\n  namespace: virt";

    #[test]
    fn right_annotations_are_accepted() {
        let hco = object(
            HCO,
            &["autopilot: plain, extras", "enable-opted: \"True\"", "disabled-resources: service/*", "approval: none"],
        );
        let plain = object(PLAIN, &["ignore-fields: /data/level", "mode: Unmanaged", "patch: '[]'"]);
        check(&format!("{hco}---\n{plain}"), &expect![[""]]);
        check("# nothing\n", &expect![[""]]);
        check("apiVersion: v1\nkind: Pod\nmetadata: {name: x, annotations: {example.com/a: b}}\n", &expect![[""]]);
    }

    #[test]
    fn wrong_annotations_of_the_hyperconverged_are_named_with_their_lines() {
        let wrong = [
            "autopilott: \"true\"",
            "autopilot: plian",
            "enable-opted: ture",
            "enable-lasting: true",
            "approval: nnone",
            "maintenance-window: Caturday",
            "disabled-resources: Servise/x, ConfigMap/plian",
        ];
        check(
            &object(HCO, &wrong),
            &expect![[r#"
                6: the annotation platform.kubevirt.io/autopilott is not known (did you mean autopilot?) and has no effect
                7: the annotation autopilot names "plian" (did you mean plain?), which is no feature, group or asset; nothing new is done until it is corrected. Write true, false, or names such as extras; "virtpilot status --all" lists the assets
                8: the annotation platform.kubevirt.io/enable-opted is "ture", which is neither true nor false (did you mean true?); write true or false
                9: the annotation platform.kubevirt.io/enable-lasting is true or false, and must be text; put it in quotes
                10: approval is "nnone", which counts as high-impact (did you mean none?); write none or high-impact
                11: maintenance-window cannot be read, so nothing that restarts nodes goes ahead: "Caturday": days, times and time zone are three words, these are 1; write it like Sat,Sun 01:00-05:00 Europe/Berlin
                12: disabled-resources names the kind "Servise" (did you mean Service?), of which no asset has an object"#]],
        );
    }

    #[test]
    fn wrong_annotations_of_objects_are_named_with_their_lines() {
        let wrong = [
            "mood: unmanaged",
            "mode: unmanagd",
            "reconcile-paused: tomorrow",
            "ignore-fields: /data/levle",
            "patch: '[{\"op\": \"add\", \"path\": \"/metadata/name\", \"value\": \"x\"}]'",
        ];
        check(
            &object(PLAIN, &wrong),
            &expect![[r#"
            7: the annotation platform.kubevirt.io/mood is not known (did you mean mode?) and has no effect
            8: mode is "unmanagd"; write managed or unmanaged
            9: reconcile-paused is "tomorrow", which counts as paused; write true, or a time such as 2027-01-31T18:00:00Z
            10: ignore-fields names /data/levle, which has no effect: the autopilot sets no field "levle" there (did you mean level?)
            11: patch: operation 1: /metadata/name may not be patched in a ConfigMap; see `virtpilot explain patch ConfigMap`"#]],
        );
        let missing = object(PLAIN, &["patch: '[{\"op\": \"remove\", \"path\": \"/data/levle\"}]'"]);
        check(&missing, &expect!["7: patch: operation 1 cannot be applied: /data/levle does not exist"]);
        check(
            &object(&PLAIN.replace("ConfigMap", "Service"), &["mode: unmanaged"]),
            &expect!["7: no asset has the object Service virt/plain, so its annotations have no effect"],
        );
        let list = format!("kind: List\nitems:\n- {}", object(PLAIN, &["patch: '{'"]).replace('\n', "\n  "));
        check(&list, &expect!["9: patch: it is not JSON: EOF while parsing an object at line 1 column 1"]);
        check("a: [", &expect!["1: unclosed bracket '['"]);
    }

    #[test]
    fn a_value_that_only_a_template_reads_is_judged_as_if_the_cluster_had_the_hardware() {
        let template = "{{ if .Hardware.NUMANodesPresent }}{{ if ne (index .HCO.GetAnnotations \"platform.kubevirt.io/reserved\") \"8Gi\" }}\
            {{ fail \"annotation platform.kubevirt.io/reserved must be 8Gi\" }}{{ end }}{{ end }}";
        let conditions = "install: opt-in, conditions: [{type: hardware-detection, detector: numaNodesPresent}]";
        let template = format!("{template}\n{}", crate::testing::pack::config_map("reserved", "data: {}"));
        let catalog = Pack::default().asset("reserved", conditions, &template).catalog();
        let found = |value: &str| {
            let text = object(HCO, &[&format!("reserved: {value}")]);
            lint(&text, &catalog, "virt", &PatchableKinds::none())
                .into_iter()
                .map(|found| found.message)
                .collect::<String>()
        };
        assert_eq!(found("8Gi"), "");
        assert!(found("9000Gi").contains("reserved must be 8Gi"), "{}", found("9000Gi"));
    }
}
