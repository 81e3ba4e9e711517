//! What is to be done about one object, from what its last event says.

use crate::budget::Budget;
use crate::scope::Consent;
use api::annotation::{self, APPLIED};
use change::field_set::{applied_by_another, takers};
use change::{Digest, Entry, FieldSet, Impact, Key, Live, Mode, Overrides, Reason};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// All that a decision about one object may depend on.
#[derive(Debug, Clone)]
pub struct Observed<'a> {
    /// The object.
    pub key: &'a Key,
    /// What the catalogue wants it to be.
    pub wanted: &'a Value,
    /// What writing it does to the cluster.
    pub impact: Impact,
    /// The object's metadata as of its last event; `None` if it does not exist.
    pub live: Option<&'a Live>,
    /// What our last apply was answered with; `None` after a start.
    pub remembered: Option<&'a Remembered>,
    /// To what the user said yes.
    pub consent: &'a Consent,
    /// Whether the user excluded it.
    pub excluded: bool,
    /// The nodes a High write restarts, in words.
    pub restarts: &'a str,
}

/// What our last apply was answered with.
#[derive(Debug, Clone, PartialEq)]
pub struct Remembered {
    /// The digest of what we wanted, overrides included.
    pub digest: Digest,
    /// The fields the answer said are ours.
    pub fields: FieldSet,
    /// When our entry last changed.
    pub time: String,
    /// The identity of the object we applied to.
    pub uid: String,
}

/// What to do, and what to say about it.
#[derive(Debug, Clone, PartialEq)]
pub struct Decision {
    /// What to do.
    pub verdict: Verdict,
    /// What to say, if it was not said before.
    pub tell: Option<Tell>,
}

/// The answer for one object.
#[derive(Debug, Clone, PartialEq)]
pub enum Verdict {
    /// It is as it should be.
    InSync,
    /// It is left as it is, for this reason.
    Hold(Reason),
    /// Do this; the answer tells whether it is as it should be.
    Do(Effect),
}

/// One write.
#[derive(Debug, Clone, PartialEq)]
pub enum Effect {
    /// Apply this object; on an existing one only in the version we know.
    Apply {
        /// The object.
        object: Value,
        /// The digest to remember with the answer.
        digest: Digest,
    },
    /// Give up our claim on these fields without changing their values; the next decision applies without them.
    Release {
        /// A JSON patch on managedFields, guarded by the version we know.
        patch: Value,
    },
    /// Write these annotations and nothing else, in the version we know.
    Annotate {
        /// The annotations.
        annotations: BTreeMap<String, String>,
        /// The version.
        resource_version: String,
    },
}

/// Something worth an event.
#[derive(Debug, Clone, PartialEq)]
pub enum Tell {
    /// It was created, or what we want of it has changed.
    Applied,
    /// Somebody changed these fields and they were put back.
    Corrected {
        /// Who, as far as the object tells.
        actors: Vec<String>,
        /// Which fields.
        fields: Vec<String>,
    },
    /// It is held, for this reason.
    Held(Reason),
}

/// Decides about one object. `now` is in milliseconds since 1970.
pub fn decide(observed: &Observed<'_>, now: i64) -> Decision {
    if observed.excluded {
        return hold(Reason::Excluded);
    }
    let Some(live) = observed.live else {
        return create(observed, now);
    };
    if live.deleting {
        // It is on its way out; its end is an event of its own.
        return Decision { verdict: Verdict::InSync, tell: None };
    }
    let overrides = match Overrides::read(&live.annotations, observed.key) {
        Ok(overrides) => overrides,
        Err(reason) => return hold(reason),
    };
    if overrides.mode == Mode::Unmanaged {
        return hold(Reason::Unmanaged);
    }
    if overrides.paused {
        return hold(Reason::Paused);
    }
    let wanted = match overrides.apply(observed.wanted) {
        Ok(wanted) => wanted,
        Err(reason) => return hold(reason),
    };
    let digest = Digest::of(&wanted);
    let entries = Entry::all(&live.managed_fields);
    let ours = Entry::ours(&entries, api::FIELD_MANAGER);
    let remembered = observed.remembered.filter(|remembered| remembered.uid == live.uid && remembered.digest == digest);
    if let (Some(remembered), Some(ours)) = (remembered, ours)
        && remembered.fields == ours.fields
        && remembered.time == ours.time
    {
        return Decision { verdict: Verdict::InSync, tell: None };
    }
    if let Some((manager, fields)) = applied_by_another(&FieldSet::of_object(&wanted), &entries, api::FIELD_MANAGER) {
        return hold(Reason::OwnedByAnother { manager, fields: fields.paths().map(str::to_owned).collect() });
    }
    if let Some(patch) = release(&overrides, &live.managed_fields, live) {
        return Decision { verdict: Verdict::Do(Effect::Release { patch }), tell: None };
    }
    // What the object already was by our own hand may be put back at any time: it restarts nothing that does not run so already.
    let ran_already = live.annotations.get(APPLIED).is_some_and(|applied| applied == digest.as_str());
    if observed.impact == Impact::High && !ran_already && !observed.consent.covers(&digest) {
        return hold(Reason::NeedsApproval { digest, restarts: observed.restarts.to_owned() });
    }
    let budget = Budget::read(live.annotations.get(annotation::BUDGET).map(String::as_str), now);
    let Some(remembered) = remembered else {
        // After a start, or with another wish: one apply, which changes nothing if all is as it was.
        let tell = (!ran_already).then_some(Tell::Applied);
        let kept = live.annotations.get(annotation::BUDGET).cloned();
        return apply(wanted, digest, &kept.unwrap_or_else(|| budget.to_string()), tell);
    };
    let now_ours = ours.map(|entry| entry.fields.clone()).unwrap_or_default();
    let lost = remembered.fields.without(&now_ours);
    let fields: Vec<String> = lost.paths().map(str::to_owned).collect();
    let actors: Vec<String> = takers(&lost, &entries, api::FIELD_MANAGER).into_iter().map(str::to_owned).collect();
    match budget.spend(now) {
        Some(left) => apply(wanted, digest, &left.to_string(), Some(Tell::Corrected { actors, fields })),
        None => {
            let annotations = BTreeMap::from([
                (annotation::RECONCILE_PAUSED.to_owned(), "true".to_owned()),
                (annotation::BUDGET.to_owned(), Budget::full(now).to_string()),
            ]);
            let resource_version = live.resource_version.clone();
            let tell = Some(Tell::Held(Reason::Fighting { actors, fields }));
            Decision { verdict: Verdict::Do(Effect::Annotate { annotations, resource_version }), tell }
        }
    }
}

/// An object that does not exist has no overrides: they lived on it.
fn create(observed: &Observed<'_>, now: i64) -> Decision {
    let digest = Digest::of(observed.wanted);
    if observed.impact == Impact::High && !observed.consent.covers(&digest) {
        return hold(Reason::NeedsApproval { digest, restarts: observed.restarts.to_owned() });
    }
    apply(observed.wanted.clone(), digest, &Budget::full(now).to_string(), Some(Tell::Applied))
}

fn hold(reason: Reason) -> Decision {
    Decision { tell: Some(Tell::Held(reason.clone())), verdict: Verdict::Hold(reason) }
}

/// What is sent: what is wanted, our label, and what we have to know after a restart.
fn apply(mut object: Value, digest: Digest, budget: &str, tell: Option<Tell>) -> Decision {
    let metadata = &mut object["metadata"];
    metadata["labels"][api::MANAGED_BY.0] = json!(api::MANAGED_BY.1);
    metadata["annotations"][annotation::BUDGET] = json!(budget);
    metadata["annotations"][APPLIED] = json!(digest);
    Decision { verdict: Verdict::Do(Effect::Apply { object, digest }), tell }
}

/// A patch that takes ignored fields out of our entry, if one is in it: dropping a field that only we own would delete it.
fn release(overrides: &Overrides, managed_fields: &Value, live: &Live) -> Option<Value> {
    let entries = managed_fields.as_array()?;
    let index = entries.iter().position(|entry| {
        entry["operation"] == "Apply" && entry["manager"] == api::FIELD_MANAGER && entry.get("subresource").is_none()
    })?;
    let before = &entries[index]["fieldsV1"];
    let mut fields = before.clone();
    for pointer in &overrides.ignored {
        let steps: Vec<String> = pointer.steps().iter().map(|step| format!("f:{step}")).collect();
        take_out(&mut fields, &steps);
    }
    (fields != *before).then(|| {
        json!([
            {"op": "test", "path": "/metadata/resourceVersion", "value": live.resource_version},
            {"op": "replace", "path": format!("/metadata/managedFields/{index}/fieldsV1"), "value": fields},
        ])
    })
}

/// Takes a path out, and whatever holds nothing any more: an empty map would claim the whole field.
fn take_out(node: &mut Value, steps: &[String]) {
    let (Some(fields), Some((first, rest))) = (node.as_object_mut(), steps.split_first()) else { return };
    if rest.is_empty() {
        fields.remove(first);
    } else if let Some(below) = fields.get_mut(first) {
        let had = below.as_object().is_some_and(|fields| !fields.is_empty());
        take_out(below, rest);
        if had && below.as_object().is_some_and(serde_json::Map::is_empty) {
            fields.remove(first);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Decision, Effect, Observed, Remembered, Tell, Verdict, decide};
    use crate::budget::Budget;
    use crate::scope::{Consent, Rule};
    use api::annotation::APPLIED;
    use change::{Digest, FieldSet, Impact, Key, Live, Reason};
    use serde_json::{Value, json};
    use std::collections::BTreeMap;

    const NOW: i64 = 1_800_000_000_000;

    fn wanted() -> Value {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "s", "namespace": "n"},
            "spec": {"type": "ClusterIP", "selector": {"app": "x"}}})
    }

    fn our_fields() -> Value {
        json!({"f:metadata": {"f:labels": {"f:platform.kubevirt.io/managed-by": {}}},
            "f:spec": {"f:type": {}, "f:selector": {"f:app": {}}}})
    }

    /// An object as it is right after our apply.
    struct Scene {
        live: Live,
        remembered: Option<Remembered>,
        impact: Impact,
        consent: Consent,
    }

    impl Scene {
        fn settled() -> Scene {
            let managed_fields = json!([{"manager": "virt-platform-autopilot", "operation": "Apply", "time": "t1", "fieldsV1": our_fields()}]);
            let annotations = BTreeMap::from([
                (APPLIED.to_owned(), Digest::of(&wanted()).to_string()),
                ("platform.kubevirt.io/budget".to_owned(), Budget::full(NOW).to_string()),
            ]);
            Scene {
                live: Live {
                    uid: "u".into(),
                    resource_version: "7".into(),
                    annotations,
                    managed_fields,
                    ..Live::default()
                },
                remembered: Some(Remembered {
                    digest: Digest::of(&wanted()),
                    fields: FieldSet::read(&our_fields()),
                    time: "t1".into(),
                    uid: "u".into(),
                }),
                impact: Impact::Low,
                consent: Consent::default(),
            }
        }

        fn annotate(mut self, key: &str, value: &str) -> Scene {
            self.live.annotations.insert(format!("platform.kubevirt.io/{key}"), value.into());
            self
        }

        /// Somebody sets the type by a plain update, and so takes it from us.
        fn edited(mut self) -> Scene {
            self.live.managed_fields[0]["fieldsV1"]["f:spec"] = json!({"f:selector": {"f:app": {}}});
            let other = json!({"manager": "kubectl-edit", "operation": "Update", "time": "t2", "fieldsV1": {"f:spec": {"f:type": {}}}});
            self.live.managed_fields.as_array_mut().unwrap().push(other);
            self
        }

        fn decide(&self) -> Decision {
            let key = Key::of(&wanted()).unwrap();
            decide(&self.observed(&key, &wanted(), Some(&self.live)), NOW)
        }

        fn decide_absent(&self) -> Decision {
            let key = Key::of(&wanted()).unwrap();
            decide(&self.observed(&key, &wanted(), None), NOW)
        }

        fn observed<'a>(&'a self, key: &'a Key, wanted: &'a Value, live: Option<&'a Live>) -> Observed<'a> {
            let (remembered, consent) = (self.remembered.as_ref(), &self.consent);
            Observed {
                key,
                wanted,
                impact: self.impact,
                live,
                remembered,
                consent,
                excluded: false,
                restarts: "3 nodes",
            }
        }
    }

    fn applied(decision: &Decision) -> &Value {
        match &decision.verdict {
            Verdict::Do(Effect::Apply { object, .. }) => object,
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn an_object_that_is_absent_is_created_with_our_label() {
        let decision = Scene::settled().decide_absent();
        let object = applied(&decision);
        assert_eq!(object["metadata"]["labels"]["platform.kubevirt.io/managed-by"], "virt-platform-autopilot");
        assert_eq!(object["spec"], wanted()["spec"]);
        assert_eq!(decision.tell, Some(Tell::Applied));
    }

    #[test]
    fn after_our_apply_there_is_nothing_left_to_do() {
        assert_eq!(Scene::settled().decide().verdict, Verdict::InSync);
        // A write of the same value leaves our entry alone, and so do other managers' own fields.
        let mut shared = Scene::settled();
        let other =
            json!({"manager": "kubectl", "operation": "Update", "time": "t2", "fieldsV1": {"f:spec": {"f:type": {}}}});
        shared.live.managed_fields.as_array_mut().unwrap().push(other);
        assert_eq!(shared.decide().verdict, Verdict::InSync);
    }

    #[test]
    fn a_hand_edit_is_put_back_and_names_its_author_and_its_fields() {
        let decision = Scene::settled().edited().decide();
        let object = applied(&decision);
        assert_eq!(object["spec"]["type"], "ClusterIP");
        assert_eq!(
            object["metadata"]["annotations"]["platform.kubevirt.io/budget"],
            Budget::full(NOW).spend(NOW).unwrap().to_string()
        );
        let expected = Tell::Corrected { actors: vec!["kubectl-edit".into()], fields: vec![".spec.type".into()] };
        assert_eq!(decision.tell, Some(expected));
    }

    #[test]
    fn an_apply_under_our_own_name_is_seen_by_its_time() {
        let mut scene = Scene::settled();
        scene.live.managed_fields[0]["time"] = json!("t2");
        assert!(matches!(scene.decide().tell, Some(Tell::Corrected { .. })));
    }

    #[test]
    fn a_fight_is_paused_when_the_budget_is_spent() {
        let mut spent = Budget::full(NOW);
        while let Some(left) = spent.spend(NOW) {
            spent = left;
        }
        let decision = Scene::settled().annotate("budget", &spent.to_string()).edited().decide();
        let Verdict::Do(Effect::Annotate { annotations, resource_version }) = decision.verdict else { panic!() };
        assert_eq!(annotations["platform.kubevirt.io/reconcile-paused"], "true");
        assert_eq!(resource_version, "7");
        let Some(Tell::Held(Reason::Fighting { actors, .. })) = decision.tell else { panic!() };
        assert_eq!(actors, ["kubectl-edit"]);
    }

    #[test]
    fn what_users_say_on_the_object_holds_it() {
        let held = |key: &str, value: &str| match Scene::settled().annotate(key, value).edited().decide().verdict {
            Verdict::Hold(reason) => reason.word(),
            other => panic!("{other:?}"),
        };
        assert_eq!(held("mode", "unmanaged"), "UnmanagedMode");
        assert_eq!(held("mode", "none"), "InvalidMode");
        assert_eq!(held("reconcile-paused", "true"), "Paused");
        assert_eq!(held("patch", "[{}]"), "InvalidPatch");
        assert_eq!(held("ignore-fields", "/metadata"), "InvalidIgnoreFields");
    }

    #[test]
    fn what_another_manager_applied_is_left_to_them() {
        let mut scene = Scene::settled().edited();
        scene.live.managed_fields[1]["operation"] = json!("Apply");
        scene.live.managed_fields[1]["manager"] = json!("gitops");
        let expected = Reason::OwnedByAnother { manager: "gitops".into(), fields: vec![".spec.type".into()] };
        assert_eq!(scene.decide().verdict, Verdict::Hold(expected));
    }

    #[test]
    fn a_patch_changes_what_is_wanted_and_is_no_drift() {
        let patch = r#"[{"op": "replace", "path": "/spec/type", "value": "NodePort"}]"#;
        let decision = Scene::settled().annotate("patch", patch).decide();
        assert_eq!(applied(&decision)["spec"]["type"], "NodePort");
        assert_eq!(
            applied(&decision)["metadata"]["annotations"].get("platform.kubevirt.io/patch"),
            None,
            "it stays the user's"
        );
        assert_eq!(decision.tell, Some(Tell::Applied));
    }

    #[test]
    fn an_ignored_field_is_released_first_and_then_left_out() {
        let mut scene = Scene::settled().annotate("ignore-fields", "/spec/selector/app");
        let Verdict::Do(Effect::Release { patch }) = scene.decide().verdict else { panic!() };
        assert_eq!(patch[0], json!({"op": "test", "path": "/metadata/resourceVersion", "value": "7"}));
        let left = json!({"f:metadata": our_fields()["f:metadata"], "f:spec": {"f:type": {}}});
        assert_eq!(patch[1], json!({"op": "replace", "path": "/metadata/managedFields/0/fieldsV1", "value": left}));
        scene.live.managed_fields[0]["fieldsV1"] = left;
        let decision = scene.decide();
        assert_eq!(applied(&decision)["spec"], json!({"type": "ClusterIP"}));
    }

    #[test]
    fn a_restart_costs_one_apply_that_says_and_changes_nothing() {
        let mut scene = Scene::settled();
        scene.remembered = None;
        let decision = scene.decide();
        assert_eq!(decision.tell, None);
        let annotations = &applied(&decision)["metadata"]["annotations"];
        assert_eq!(annotations["platform.kubevirt.io/budget"], scene.live.annotations["platform.kubevirt.io/budget"]);
        assert_eq!(annotations[APPLIED], scene.live.annotations[APPLIED]);
    }

    #[test]
    fn nodes_are_never_restarted_by_surprise() {
        let high = |change: &dyn Fn(&mut Scene)| {
            let mut scene = Scene { impact: Impact::High, ..Scene::settled() };
            scene.remembered = None;
            change(&mut scene);
            scene
        };
        let waits = |decision: &Decision| matches!(&decision.verdict, Verdict::Hold(Reason::NeedsApproval { restarts, .. }) if restarts == "3 nodes");
        assert!(waits(&high(&|_| {}).decide_absent()), "creating it waits");
        assert!(!waits(&high(&|_| {}).decide()), "what we last applied ourselves may be put back");
        let forget = |scene: &mut Scene| {
            scene.live.annotations.remove(APPLIED);
        };
        assert!(waits(&high(&forget).decide()), "another content waits");
        let digest = Digest::of(&wanted()).to_string();
        assert!(
            !waits(
                &high(&|scene| {
                    forget(scene);
                    scene.consent.approved.insert(digest.clone());
                })
                .decide()
            ),
            "a yes to exactly that goes ahead"
        );
        assert!(!waits(
            &high(&|scene| {
                forget(scene);
                scene.consent.said = true;
            })
            .decide()
        ));
        assert!(waits(
            &high(&|scene| {
                forget(scene);
                scene.consent = Consent { said: true, rule: Rule::Always, ..Consent::default() };
            })
            .decide()
        ));
    }
}
