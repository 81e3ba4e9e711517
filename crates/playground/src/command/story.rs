//! The demo: the autopilot in thirteen steps, the advisor in six, the fleet in eight. Every step is checked, and the first that fails ends the demo with an error.

use super::{print, rollout, story_of_advisor, story_of_fleet};
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use playground::deployment::{self, edit, objects};
use playground::user_error::refused;
use playground::{MachineConfigOperator, Playground, UserError, poll};
use serde_json::json;
use std::time::{Duration, Instant};

const SERVICE: &str = "virt-platform-autopilot-metrics";
const SWAP: &str = "90-worker-swap-online";
/// What stays enabled while the asset of the Service is not: deleting more than a few objects by one edit would need an approval.
const OTHERS: &str = "swap, hco-golden-config, load-aware-descheduler, console-monitoring, metrics-servicemonitor, prometheus-alerts, autopilot-dashboard";
/// The length of `sha256:` and 64 hexadecimal digits.
const DIGEST: usize = 71;
/// Long enough for a very busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// The APIs that the demo uses.
struct Demo {
    services: Api<DynamicObject>,
    machine_configs: Api<DynamicObject>,
    hco: Api<DynamicObject>,
    events: Api<DynamicObject>,
}

/// Starts the operator with its own service account and demonstrates what it does.
pub(super) async fn run(
    playground: &mut Playground,
    hco_version: &str,
    machine_config_operator: &MachineConfigOperator,
) -> Result<(), UserError> {
    print("\nThe autopilot on this cluster:\n")?;
    let account = deployment::grant(playground).await?;
    deployment::start(playground, &account)?;
    let namespace = Some(deployment::NAMESPACE);
    let demo = Demo {
        services: objects(playground, "v1", "Service", namespace),
        machine_configs: objects(playground, "machineconfiguration.openshift.io/v1", "MachineConfig", None),
        hco: objects(playground, &format!("{}/{hco_version}", api::hco::GROUP), api::hco::KIND, namespace),
        events: objects(playground, "events.k8s.io/v1", "Event", namespace),
    };
    demo.install().await?;
    demo.approve().await?;
    rollout::show(playground, SWAP, machine_config_operator).await?;
    demo.revert_manual_edit().await?;
    demo.patch().await?;
    demo.ignore_field().await?;
    demo.pause_edit_war().await?;
    demo.prune_adopt_and_hand_back().await?;
    story_of_advisor::run(playground, hco_version).await?;
    story_of_fleet::run(playground).await?;
    print("\nAll steps succeeded.\n\n")
}

impl Demo {
    async fn install(&self) -> Result<(), UserError> {
        until("the metrics Service exists", async || exists(&self.services, SERVICE).await).await?;
        print_step(
            "The autopilot is installed with default settings: low-impact objects are applied.",
            &format!("Service {SERVICE} exists"),
        )
    }

    async fn approve(&self) -> Result<(), UserError> {
        let message = until("an approval is requested", async || self.event("ApprovalRequired", SWAP).await).await?;
        print_step("What restarts nodes waits for approval.", &message)?;
        check(exists(&self.machine_configs, SWAP).await.is_none(), "the MachineConfig was applied without approval")?;
        let digest = message.find("sha256:").and_then(|at| message.get(at..at + DIGEST)).unwrap_or_default();
        annotate(&self.hco, api::hco::NAME, "approved", Some(digest)).await?;
        until("the MachineConfig exists", async || exists(&self.machine_configs, SWAP).await).await?;
        print_step("An administrator approves exactly that change.", &format!("MachineConfig {SWAP} exists"))
    }

    async fn revert_manual_edit(&self) -> Result<(), UserError> {
        let baseline = self.single_patch().await?;
        let started = Instant::now();
        edit(&self.services, SERVICE, &json!({"spec": {"selector": {"app": "manual-edit"}}})).await?;
        until("the manual edit is reverted", async || self.selector_is_managed().await).await?;
        let took = started.elapsed();
        let message = until("the correction is reported", async || self.event("DriftCorrected", SERVICE).await).await?;
        let times =
            format!("{:.0} ms from edit to correction; a single PATCH takes {:.0} ms", millis(took), millis(baseline));
        print_step("A manual edit is reverted.", &format!("{message} ({times})"))
    }

    async fn patch(&self) -> Result<(), UserError> {
        let patch = r#"[{"op": "add", "path": "/spec/sessionAffinity", "value": "ClientIP"}]"#;
        annotate(&self.services, SERVICE, "patch", Some(patch)).await?;
        until("the patch is applied", async || self.affinity_is("ClientIP").await).await?;
        print_step("A user's JSON patch on the Service is applied.", "spec.sessionAffinity is ClientIP")?;
        annotate(&self.machine_configs, SWAP, "patch", Some(patch)).await?;
        let refused = until("the patch is refused", async || self.event("InvalidPatch", SWAP).await).await?;
        print_step("A JSON patch on the MachineConfig is refused.", &refused)?;
        annotate(&self.machine_configs, SWAP, "patch", None).await
    }

    async fn ignore_field(&self) -> Result<(), UserError> {
        annotate(&self.services, SERVICE, "ignore-fields", Some("/spec/sessionAffinity")).await?;
        let users_apply = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": SERVICE}, "spec": {"sessionAffinity": "None"}});
        // Without force the apply succeeds only once no other manager owns the field.
        until("the user's apply succeeds without force", async || {
            self.services
                .patch(SERVICE, &PatchParams::apply("a-user"), &Patch::Apply(&users_apply))
                .await
                .ok()
                .map(|_| ())
        })
        .await?;
        // Once a later edit is reverted, the operator has also processed the user's apply.
        edit(&self.services, SERVICE, &json!({"spec": {"selector": {"app": "later"}}})).await?;
        until("a later edit is reverted", async || self.selector_is_managed().await).await?;
        check(self.affinity_is("None").await.is_some(), "an ignored field was reverted")?;
        print_step(
            "An ignored field belongs to the user: their apply needs no force and is not reverted.",
            "spec.sessionAffinity is None",
        )
    }

    async fn pause_edit_war(&self) -> Result<(), UserError> {
        for round in 0..200 {
            edit(&self.services, SERVICE, &json!({"spec": {"selector": {"app": format!("rogue-{round}")}}})).await?;
            tokio::time::sleep(Duration::from_millis(100)).await;
            if let Some(paused) = self.event("ThrashingDetected", SERVICE).await {
                print_step("In an edit war the object is paused and the other writer is named.", &paused)?;
                annotate(&self.services, SERVICE, "reconcile-paused", None).await?;
                until("the Service is managed again", async || self.selector_is_managed().await).await?;
                return print_step(
                    "The annotation is removed, and the object is managed again.",
                    "spec.selector is restored",
                );
            }
        }
        Err(UserError::new("an edit war was never paused", "this is a bug, please report it"))
    }

    async fn prune_adopt_and_hand_back(&self) -> Result<(), UserError> {
        annotate(&self.hco, api::hco::NAME, "autopilot", Some(OTHERS)).await?;
        let pruned = until("the Service is pruned", async || self.event("Pruned", SERVICE).await).await?;
        print_step(
            "All other assets stay enabled: the object of this one, which the autopilot created, is pruned.",
            &pruned,
        )?;
        let users_service =
            json!({"metadata": {"name": SERVICE}, "spec": {"selector": {"app": "users"}, "ports": [{"port": 8080}]}});
        let users_service = serde_json::from_value(users_service).map_err(|error| {
            UserError::new("an object of the demo is invalid", "this is a bug, please report it").with_source(error)
        })?;
        self.services.create(&PostParams::default(), &users_service).await.map_err(|error| refused(&error))?;
        annotate(&self.hco, api::hco::NAME, "autopilot", Some(&format!("{OTHERS}, metrics-service"))).await?;
        let adopted = until("the Service is adopted", async || self.event("Adopted", SERVICE).await).await?;
        print_step(
            "The asset is enabled again, but a user has created the object: it is backed up and adopted.",
            &adopted,
        )?;
        annotate(&self.hco, api::hco::NAME, "autopilot", Some(OTHERS)).await?;
        let handed_back = until("the Service is handed back", async || self.event("HandedBack", SERVICE).await).await?;
        check(exists(&self.services, SERVICE).await.is_some(), "a user's Service was deleted")?;
        print_step("The asset is disabled: an adopted object is handed back and never deleted.", &handed_back)
    }

    /// The median duration of five single apply requests, for comparison.
    async fn single_patch(&self) -> Result<Duration, UserError> {
        let mut times = Vec::new();
        for round in 0..5 {
            let object = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "baseline"},
                "spec": {"selector": {"round": round.to_string()}, "ports": [{"port": 1}]}});
            let started = Instant::now();
            self.services
                .patch("baseline", &PatchParams::apply("baseline").force(), &Patch::Apply(&object))
                .await
                .map_err(|error| refused(&error))?;
            times.push(started.elapsed());
        }
        let _ = self.services.delete("baseline", &kube::api::DeleteParams::default()).await;
        times.sort();
        Ok(times[2])
    }

    async fn selector_is_managed(&self) -> Option<()> {
        let service = self.services.get(SERVICE).await.ok()?;
        (service.data["spec"]["selector"]["app"] == "virt-platform-autopilot").then_some(())
    }

    async fn affinity_is(&self, expected: &str) -> Option<()> {
        let service = self.services.get(SERVICE).await.ok()?;
        (service.data["spec"]["sessionAffinity"] == expected).then_some(())
    }

    /// The last event with this reason about an object.
    async fn event(&self, reason: &str, object: &str) -> Option<String> {
        let list = self.events.list(&ListParams::default()).await.ok()?;
        let matching = list.items.iter().filter(|event| event.data["reason"] == reason);
        let mut notes = matching.filter_map(|event| event.data["note"].as_str());
        notes.rfind(|note| note.contains(object)).map(str::to_owned)
    }
}

async fn exists(api: &Api<DynamicObject>, name: &str) -> Option<()> {
    api.get_opt(name).await.ok().flatten().map(|_| ())
}

async fn annotate(api: &Api<DynamicObject>, name: &str, key: &str, value: Option<&str>) -> Result<(), UserError> {
    edit(api, name, &json!({"metadata": {"annotations": {format!("{}{key}", api::annotation::PREFIX): value}}})).await
}

/// Polls until there is a result, or fails after the timeout.
pub(super) async fn until<T>(what: &str, attempt: impl AsyncFn() -> Option<T>) -> Result<T, UserError> {
    let found = poll::with_timeout(Duration::from_millis(2), TIMEOUT, async || Ok(attempt().await)).await?;
    found.ok_or_else(|| step_failed(&format!("timed out after {} s waiting until {what}", TIMEOUT.as_secs())))
}

pub(super) fn check(holds: bool, message: &str) -> Result<(), UserError> {
    if holds { Ok(()) } else { Err(step_failed(message)) }
}

fn step_failed(message: &str) -> UserError {
    UserError::new(message, "this is a bug, please report it with the log `virtpilot.log` (run with --keep)")
}

pub(super) fn print_step(claim: &str, evidence: &str) -> Result<(), UserError> {
    print(&format!("  ✓ {claim}\n      {evidence}\n"))
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
