//! Random clusters: what people, other tools and former releases may do to a cluster on which the operator runs.

use crate::operator::{NAMESPACE, Running};
use kube::api::{Api, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use playground::deployment::objects;
use playground::pseudo_random::PseudoRandom;
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// The kinds whose CRD is deleted now and then; nothing else of the cluster depends on them.
const KINDS_THAT_GO: [&str; 2] = ["persesdashboards.perses.dev", "metallbs.metallb.io"];
/// A window that is always open, one that opens on the other side of the week at the earliest, and one that cannot be read.
const ALWAYS: &str = "Mon,Tue,Wed,Thu,Fri,Sat,Sun 00:00-23:59 UTC; Mon,Tue,Wed,Thu,Fri,Sat,Sun 23:00-01:00 UTC";
const UNREADABLE: &str = "Caturday 01:00-02:00 UTC";

/// One object that an asset renders.
#[derive(Debug, Clone)]
pub(crate) struct Target {
    pub(crate) desired: Value,
}

impl Target {
    pub(crate) fn name(&self) -> &str {
        self.desired["metadata"]["name"].as_str().unwrap()
    }

    pub(crate) fn kind(&self) -> &str {
        self.desired["kind"].as_str().unwrap()
    }

    pub(crate) fn api(&self, running: &Running) -> Api<DynamicObject> {
        let namespace = self.desired["metadata"]["namespace"].as_str();
        objects(&running.playground, self.desired["apiVersion"].as_str().unwrap(), self.kind(), namespace)
    }

    /// The JSON pointer of a text below `spec` or `data`, in maps only.
    fn text(&self) -> Option<String> {
        fn find(value: &Value, at: &str) -> Option<String> {
            match value {
                Value::String(_) => Some(at.to_owned()),
                Value::Object(map) => {
                    let escaped = |key: &str| key.replace('~', "~0").replace('/', "~1");
                    map.iter().find_map(|(key, value)| find(value, &format!("{at}/{}", escaped(key))))
                }
                _ => None,
            }
        }
        ["data", "spec"].into_iter().find_map(|part| find(&self.desired[part], &format!("/{part}")))
    }

    /// The object with nothing but its identity and, if given, one text.
    fn sketch(&self, text: Option<&str>) -> Value {
        let metadata = &self.desired["metadata"];
        let mut sketch =
            json!({"apiVersion": self.desired["apiVersion"], "kind": self.kind(), "metadata": {"name": self.name()}});
        if let Some(namespace) = metadata.get("namespace") {
            sketch["metadata"]["namespace"] = namespace.clone();
        }
        if let (Some(text), Some(pointer)) = (text, self.text()) {
            let mut at = &mut sketch;
            for key in pointer.split('/').skip(1) {
                at = &mut at[key.replace("~1", "/").replace("~0", "~")];
            }
            *at = json!(text);
        }
        sketch
    }
}

/// What a random cluster is made from.
pub(crate) struct Acts<'a> {
    pub(crate) running: &'a Running,
    pub(crate) random: &'a mut PseudoRandom,
    /// The objects that assets render now.
    pub(crate) targets: &'a [Target],
    /// The operator's last report.
    pub(crate) report: &'a Value,
    /// CRDs that were deleted.
    pub(crate) unserved: &'a mut BTreeMap<String, DynamicObject>,
}

impl Acts<'_> {
    fn one<'b, T: ?Sized>(&mut self, of: &[&'b T]) -> &'b T {
        of[self.random.below(of.len())]
    }

    fn chance(&mut self, percent: usize) -> bool {
        self.random.below(100) < percent
    }

    fn target(&mut self) -> Option<Target> {
        if self.targets.is_empty() { None } else { Some(self.targets[self.random.below(self.targets.len())].clone()) }
    }

    /// Changes annotations of the HyperConverged at once, as one edit does.
    pub(crate) async fn edit_policy(&mut self) -> String {
        let mut edit = BTreeMap::new();
        // What stops everything does not last, so that most clusters have much to compare.
        for (key, percent) in [("autopilot", 80), ("disabled-resources", 40), ("maintenance-window", 50)] {
            if self.chance(percent) {
                edit.insert(key.to_owned(), None);
            }
        }
        for _ in 0..1 + self.random.below(5) {
            let (key, value) = self.setting();
            edit.insert(key, value);
        }
        let annotations: serde_json::Map<String, Value> =
            edit.iter().map(|(key, value)| (format!("{}{key}", api::annotation::PREFIX), json!(value))).collect();
        let hco = objects(&self.running.playground, "hco.kubevirt.io/v1", api::hco::KIND, Some(NAMESPACE));
        let params = PatchParams { field_manager: Some("person".into()), ..PatchParams::default() };
        let patch = json!({"metadata": {"annotations": annotations}});
        hco.patch(api::hco::NAME, &params, &Patch::Merge(&patch)).await.unwrap();
        format!("annotate the HyperConverged: {edit:?}")
    }

    /// A setting of the HyperConverged, right or wrong.
    fn setting(&mut self) -> (String, Option<String>) {
        const SWITCHES: [&str; 17] = [
            "enable-cpu-manager",
            "enable-in-flight-operations",
            "enable-korrel8r",
            "enable-ksm-zero-only",
            "enable-kubelet-performance-settings",
            "enable-kubevirt-metrics-exporter",
            "enable-logging",
            "enable-metallb",
            "enable-mtv",
            "enable-node-remediation",
            "enable-numa",
            "enable-pci-passthrough",
            "enable-self-node-remediation",
            "enable-thp-tuning",
            "enable-vfio-device-assignment",
            "psi-enabled",
            "enable-aaq",
        ];
        let (key, values): (&str, Vec<Option<String>>) = match self.random.below(20) {
            0 => {
                let asset = self.asset();
                let typo = format!("{asset}x");
                (
                    "autopilot",
                    [None, Some("true"), Some("false"), Some(&asset), Some(&typo), Some("swap, observability")]
                        .map(|value| value.map(str::to_owned))
                        .to_vec(),
                )
            }
            1 | 2 => {
                let target = self.target();
                let (kind, name) = target.as_ref().map_or(("Service", "x"), |target| (target.kind(), target.name()));
                let rules = [
                    format!("{kind}/{name}"),
                    format!("- {{kind: {kind}, name: {name}}}"),
                    format!("- {{kind: {kind}, name: \"*\"}}\n- {{kind: Nothing, name: x}}"),
                    format!("- {{kind: {kind}, nmae: x}}"),
                ];
                ("disabled-resources", rules.into_iter().map(Some).collect())
            }
            3 => (
                "approval",
                [None, Some("none"), Some("high-impact"), Some("nnone")].map(|value| value.map(str::to_owned)).to_vec(),
            ),
            4 => {
                let day = jiff::Timestamp::now() + jiff::SignedDuration::from_hours(84);
                let closed = format!("{} 00:00-01:00 UTC", day.strftime("%a"));
                (
                    "maintenance-window",
                    vec![None, Some(ALWAYS.into()), Some(closed.clone()), Some(closed), Some(UNREADABLE.into())],
                )
            }
            5 | 6 => {
                let waiting = self.report["assets"].as_array().into_iter().flatten();
                let digests: Vec<&str> = waiting.filter_map(|line| line["digest"].as_str()).collect();
                let first = digests.first().map(|digest| (*digest).to_owned());
                ("approved", vec![None, first, Some(digests.join(",")), Some("sha256:12".into())])
            }
            7 => ("autopilott", vec![None, Some("true".into())]),
            8 => ("numa-reserved-memory", vec![None, Some("8Gi".into()), Some("lots".into())]),
            9 => ("vfio-pci-ids", vec![None, Some("10de:1eb8".into()), Some("10de".into())]),
            _ => {
                let key = self.one(&SWITCHES);
                let values =
                    [Some("true"), Some("true"), Some("true"), Some("True"), None, Some("false"), Some("ture")];
                (key, values.map(|value| value.map(str::to_owned)).to_vec())
            }
        };
        let value = values[self.random.below(values.len())].clone();
        (key.to_owned(), value)
    }

    fn asset(&mut self) -> String {
        let assets = self.report["assets"].as_array().unwrap();
        assets[self.random.below(assets.len())]["asset"].as_str().unwrap().to_owned()
    }

    /// Something that happens to one object or to the cluster; the result describes it.
    pub(crate) async fn act(&mut self) -> String {
        match self.random.below(24) {
            0 => return self.toggle_crd().await,
            1 => return self.edit_pool().await,
            _ => {}
        }
        let Some(target) = self.target() else { return "nothing is rendered".to_owned() };
        let (api, name) = (target.api(self.running), target.name().to_owned());
        let Ok(found) = api.get_opt(&name).await else { return format!("{} is not served", target.kind()) };
        let done = match found {
            None => self.create(&target, &api).await,
            Some(_) => self.change(&target, &api).await,
        };
        format!("{} {name}: {done}", target.kind())
    }

    /// Somebody else creates the object first: as it is wanted, or otherwise.
    async fn create(&mut self, target: &Target, api: &Api<DynamicObject>) -> String {
        let mut theirs = target.desired.clone();
        if self.chance(50)
            && let Some(text) = target.text().and_then(|pointer| theirs.pointer_mut(&pointer))
        {
            *text = json!("theirs");
        }
        theirs["metadata"]["labels"] = json!({"theirs": "true"});
        let params = PostParams { field_manager: Some("person".into()), ..PostParams::default() };
        let created = api.create(&params, &serde_json::from_value(theirs).unwrap()).await;
        format!("somebody creates it: {}", answer(created))
    }

    async fn change(&mut self, target: &Target, api: &Api<DynamicObject>) -> String {
        let name = target.name();
        let later = (jiff::Timestamp::now() + jiff::SignedDuration::from_hours(1)).to_string();
        let ignored = target.text();
        let (key, values): (&str, Vec<Option<&str>>) = match self.random.below(12) {
            // The deletion of a Namespace never ends here, and without a HyperConverged there is nothing to compare.
            0 if ["Namespace", api::hco::KIND].contains(&target.kind()) => return "nothing".to_owned(),
            0 => return format!("delete: {}", answer(api.delete(name, &DeleteParams::background()).await)),
            1 | 2 => {
                let patch = match self.chance(50) {
                    true => target.sketch(Some("edited")),
                    false => json!({"metadata": {"labels": {api::MANAGED_BY.0: null}}}),
                };
                let params = PatchParams { field_manager: Some("rogue".into()), ..PatchParams::default() };
                return format!("edit: {}", answer(api.patch(name, &params, &Patch::Merge(&patch)).await));
            }
            3 | 4 => {
                let text = self.one(&[Some("gitops"), Some("gitops"), None].each_ref());
                let theirs = target.sketch(*text);
                let params = PatchParams::apply("gitops").force();
                return format!(
                    "gitops applies {text:?}: {}",
                    answer(api.patch(name, &params, &Patch::Apply(&theirs)).await)
                );
            }
            5 | 6 => ("mode", vec![None, Some("unmanaged"), Some("managed"), Some("unmanagd")]),
            7 => (
                "reconcile-paused",
                vec![None, Some("true"), Some("2020-01-31T18:00:00Z"), Some(&later), Some("tomorrow")],
            ),
            8 | 9 => (
                "patch",
                vec![
                    None,
                    Some(r#"[{"op": "add", "path": "/metadata/labels/random", "value": "x"}]"#),
                    Some(r#"[{"op": "remove", "path": "/spec/missing"}]"#),
                    Some(r#"[{"op": "replace", "path": "/metadata/name", "value": "x"}]"#),
                    Some("nonsense"),
                ],
            ),
            10 => ("ignore-fields", vec![None, ignored.as_deref(), Some("/metadata"), Some("/spec/missing")]),
            _ => ("mood", vec![None, Some("good")]),
        };
        let value = values[self.random.below(values.len())];
        // The operator may prune it meanwhile.
        let patch = json!({"metadata": {"annotations": {format!("{}{key}", api::annotation::PREFIX): value}}});
        let params = PatchParams { field_manager: Some("person".into()), ..PatchParams::default() };
        format!("{key} is {value:?}: {}", answer(api.patch(name, &params, &Patch::Merge(&patch)).await))
    }

    /// A kind is not served any more, or is again.
    async fn toggle_crd(&mut self) -> String {
        let crds = objects(&self.running.playground, "apiextensions.k8s.io/v1", "CustomResourceDefinition", None);
        let name = self.one(&KINDS_THAT_GO);
        if let Some(mut crd) = self.unserved.remove(name) {
            crd.metadata = kube::api::ObjectMeta {
                name: Some(name.to_owned()),
                annotations: crd.metadata.annotations,
                ..Default::default()
            };
            crd.data.as_object_mut().unwrap().remove("status");
            // The former one may still be on its way out.
            crate::operator::eventually("the CRD is served again", async || {
                crds.create(&PostParams::default(), &crd).await.ok()
            })
            .await;
            return format!("{name} is served again");
        }
        self.unserved.insert(name.to_owned(), crds.get(name).await.unwrap());
        crds.delete(name, &DeleteParams::default()).await.unwrap();
        format!("{name} is not served any more")
    }

    /// The pool of workers is degraded, or healthy again.
    async fn edit_pool(&mut self) -> String {
        let pools =
            objects(&self.running.playground, "machineconfiguration.openshift.io/v1", "MachineConfigPool", None);
        let mut pool = pools.get("worker").await.unwrap();
        let degraded = self.one(&["True", "False"]);
        for condition in pool.data["status"]["conditions"].as_array_mut().unwrap() {
            if condition["type"] == "Degraded" {
                condition["status"] = json!(degraded);
            }
        }
        let patch = json!({"status": {"conditions": pool.data["status"]["conditions"]}});
        pools.patch_status("worker", &PatchParams::default(), &Patch::Merge(&patch)).await.unwrap();
        format!("pool worker: Degraded is {degraded}")
    }
}

/// What the server said.
fn answer<T>(result: Result<T, kube::Error>) -> String {
    match result {
        Ok(_) => "done".to_owned(),
        Err(error) => format!("refused: {error}").chars().take(120).collect(),
    }
}
