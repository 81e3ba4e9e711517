//! The autopilot at work, told step by step. Each step is checked: a story that does not come true is an error.

use super::print;
use kube::api::{Api, DynamicObject, ListParams, Patch, PatchParams, PostParams};
use playground::deployment::{self, objects};
use playground::{Playground, UserError};
use serde_json::{Value, json};
use std::time::{Duration, Instant};

const SERVICE: &str = "virt-platform-autopilot-metrics";
const SWAP: &str = "90-worker-swap-online";
/// Long enough for a very busy machine.
const TIMEOUT: Duration = Duration::from_secs(60);

/// What the story plays with.
struct Stage {
    services: Api<DynamicObject>,
    machine_configs: Api<DynamicObject>,
    hco: Api<DynamicObject>,
    events: Api<DynamicObject>,
}

/// Starts the operator under its own service account and tells what it does.
pub(super) async fn run(playground: &mut Playground, hco_version: &str) -> Result<(), UserError> {
    print("\nThe autopilot, on this cluster:\n")?;
    let account = deployment::grant(playground).await?;
    deployment::start(playground, &account)?;
    let here = Some(deployment::NAMESPACE);
    let stage = Stage {
        services: objects(playground, "v1", "Service", here),
        machine_configs: objects(playground, "machineconfiguration.openshift.io/v1", "MachineConfig", None),
        hco: objects(playground, &format!("{}/{hco_version}", api::hco::GROUP), api::hco::KIND, here),
        events: objects(playground, "events.k8s.io/v1", "Event", here),
    };
    stage.appears().await?;
    stage.waits_for_a_yes().await?;
    stage.undoes_a_hand_edit().await?;
    stage.honours_and_refuses_patches().await?;
    stage.leaves_an_ignored_field().await?;
    stage.pauses_a_fight().await?;
    stage.lets_go_and_takes_over().await?;
    print("\nIt all came true.\n\n")
}

impl Stage {
    async fn appears(&self) -> Result<(), UserError> {
        until("the metrics Service appears", async || exists(&self.services, SERVICE).await).await?;
        told(
            "It was installed without a word from anybody: what restarts nothing is applied.",
            &format!("Service {SERVICE} exists"),
        )
    }

    async fn waits_for_a_yes(&self) -> Result<(), UserError> {
        let asked = until("an approval is asked for", async || self.event("ApprovalRequired").await).await?;
        told("What restarts nodes waits for a yes.", &asked)?;
        check(exists(&self.machine_configs, SWAP).await.is_none(), "the MachineConfig was written without a yes")?;
        let digest = asked.split_whitespace().find(|word| word.starts_with("sha256:")).unwrap_or_default();
        annotate(&self.hco, api::hco::NAME, "approved", Some(digest)).await?;
        until("the MachineConfig appears", async || exists(&self.machine_configs, SWAP).await).await?;
        told("Somebody says yes to exactly that.", &format!("MachineConfig {SWAP} exists"))
    }

    async fn undoes_a_hand_edit(&self) -> Result<(), UserError> {
        let bare = self.bare_patch().await?;
        let begun = Instant::now();
        edit(&self.services, SERVICE, &json!({"spec": {"selector": {"app": "changed-by-hand"}}})).await?;
        until("the hand edit is undone", async || self.selector_is_ours().await).await?;
        let took = begun.elapsed();
        let told_as = until("the correction is told", async || self.event("DriftCorrected").await).await?;
        let times =
            format!("{:.0} ms from the edit to its end; one bare PATCH takes {:.0} ms", millis(took), millis(bare));
        told("A hand edit is undone.", &format!("{told_as} ({times})"))
    }

    async fn honours_and_refuses_patches(&self) -> Result<(), UserError> {
        let patch = r#"[{"op": "add", "path": "/spec/sessionAffinity", "value": "ClientIP"}]"#;
        annotate(&self.services, SERVICE, "patch", Some(patch)).await?;
        until("the patch is honoured", async || self.affinity_is("ClientIP").await).await?;
        told("A user's JSON patch on the Service is honoured.", "spec.sessionAffinity is ClientIP")?;
        annotate(&self.machine_configs, SWAP, "patch", Some(patch)).await?;
        let refused = until("the patch is refused", async || self.event("InvalidPatch").await).await?;
        told("One on the MachineConfig is refused.", &refused)?;
        annotate(&self.machine_configs, SWAP, "patch", None).await
    }

    async fn leaves_an_ignored_field(&self) -> Result<(), UserError> {
        annotate(&self.services, SERVICE, "ignore-fields", Some("/spec/sessionAffinity")).await?;
        let theirs = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": SERVICE}, "spec": {"sessionAffinity": "None"}});
        // Without force: it succeeds as soon as the field is nobody's.
        until("the user's own apply needs no force", async || {
            self.services.patch(SERVICE, &PatchParams::apply("a-user"), &Patch::Apply(&theirs)).await.ok().map(|_| ())
        })
        .await?;
        // Once a later edit is undone, this one has been looked at, too.
        edit(&self.services, SERVICE, &json!({"spec": {"selector": {"app": "later"}}})).await?;
        until("a later edit is undone", async || self.selector_is_ours().await).await?;
        check(self.affinity_is("None").await.is_some(), "an ignored field was changed")?;
        told(
            "An ignored field is the user's: their own apply needs no force and stays.",
            "spec.sessionAffinity is None",
        )
    }

    async fn pauses_a_fight(&self) -> Result<(), UserError> {
        for round in 0..200 {
            edit(&self.services, SERVICE, &json!({"spec": {"selector": {"app": format!("rogue-{round}")}}})).await?;
            tokio::time::sleep(Duration::from_millis(100)).await;
            if let Some(paused) = self.event("ThrashingDetected").await {
                told("A rogue writer is named and the object paused.", &paused)?;
                annotate(&self.services, SERVICE, "reconcile-paused", None).await?;
                until("it is kept again", async || self.selector_is_ours().await).await?;
                return told("The annotation is removed, and it is kept again.", "spec.selector is ours");
            }
        }
        Err(UserError::new("a fight was never paused", "this is a bug, please report it"))
    }

    async fn lets_go_and_takes_over(&self) -> Result<(), UserError> {
        annotate(&self.hco, api::hco::NAME, "autopilot", Some("swap-enable")).await?;
        let pruned = until("it is deleted", async || self.event("Pruned").await).await?;
        told("Only some are named: what we made and nobody wants goes, in this version and no other.", &pruned)?;
        let theirs =
            json!({"metadata": {"name": SERVICE}, "spec": {"selector": {"app": "theirs"}, "ports": [{"port": 8080}]}});
        let theirs = serde_json::from_value(theirs)
            .map_err(|error| UserError::new("a step is wrong", "report it").with_source(error))?;
        self.services.create(&PostParams::default(), &theirs).await.map_err(|error| failed(&error))?;
        annotate(&self.hco, api::hco::NAME, "autopilot", Some("swap-enable, metrics-service")).await?;
        let adopted = until("it is adopted", async || self.event("Adopted").await).await?;
        told("It is named again, but somebody else has made it: a copy, then it is ours.", &adopted)?;
        annotate(&self.hco, api::hco::NAME, "autopilot", Some("swap-enable")).await?;
        let back = until("it is given back", async || self.event("HandedBack").await).await?;
        check(exists(&self.services, SERVICE).await.is_some(), "somebody else's Service was deleted")?;
        told("What was somebody else's is given back and never deleted.", &back)
    }

    /// What a write costs that only does what is necessary: the median of five.
    async fn bare_patch(&self) -> Result<Duration, UserError> {
        let mut times = Vec::new();
        for round in 0..5 {
            let object = json!({"apiVersion": "v1", "kind": "Service", "metadata": {"name": "bare"},
                "spec": {"selector": {"round": round.to_string()}, "ports": [{"port": 1}]}});
            let begun = Instant::now();
            self.services
                .patch("bare", &PatchParams::apply("bare").force(), &Patch::Apply(&object))
                .await
                .map_err(|error| failed(&error))?;
            times.push(begun.elapsed());
        }
        let _ = self.services.delete("bare", &kube::api::DeleteParams::default()).await;
        times.sort();
        Ok(times[2])
    }

    async fn selector_is_ours(&self) -> Option<()> {
        let service = self.services.get(SERVICE).await.ok()?;
        (service.data["spec"]["selector"]["app"] == "virt-platform-autopilot").then_some(())
    }

    async fn affinity_is(&self, wanted: &str) -> Option<()> {
        let service = self.services.get(SERVICE).await.ok()?;
        (service.data["spec"]["sessionAffinity"] == wanted).then_some(())
    }

    /// The last event with this reason.
    async fn event(&self, reason: &str) -> Option<String> {
        let list = self.events.list(&ListParams::default()).await.ok()?;
        let fits = list.items.iter().filter(|event| event.data["reason"] == reason);
        fits.filter_map(|event| event.data["note"].as_str()).next_back().map(str::to_owned)
    }
}

async fn exists(api: &Api<DynamicObject>, name: &str) -> Option<()> {
    api.get_opt(name).await.ok().flatten().map(|_| ())
}

async fn annotate(api: &Api<DynamicObject>, name: &str, key: &str, value: Option<&str>) -> Result<(), UserError> {
    edit(api, name, &json!({"metadata": {"annotations": {format!("{}{key}", api::annotation::PREFIX): value}}})).await
}

/// Changes an object as somebody else would.
async fn edit(api: &Api<DynamicObject>, name: &str, patch: &Value) -> Result<(), UserError> {
    let params = PatchParams { field_manager: Some("rogue".into()), ..PatchParams::default() };
    api.patch(name, &params, &Patch::Merge(patch)).await.map(|_| ()).map_err(|error| failed(&error))
}

async fn until<T>(what: &str, look: impl AsyncFn() -> Option<T>) -> Result<T, UserError> {
    let begun = Instant::now();
    loop {
        if let Some(found) = look().await {
            return Ok(found);
        }
        check(begun.elapsed() < TIMEOUT, &format!("after {} s it is still not so: {what}", TIMEOUT.as_secs()))?;
        tokio::time::sleep(Duration::from_millis(2)).await;
    }
}

fn check(holds: bool, what: &str) -> Result<(), UserError> {
    if holds {
        Ok(())
    } else {
        Err(UserError::new(what, "this is a bug, please report it with the log `virtpilot.log` (run with --keep)"))
    }
}

fn failed(error: &kube::Error) -> UserError {
    UserError::new("the API server refused a step of the story", "this is a bug, please report it")
        .with_detail(playground::user_error::server_message(error))
}

fn told(what: &str, shown: &str) -> Result<(), UserError> {
    print(&format!("  ✓ {what}\n      {shown}\n"))
}

fn millis(time: Duration) -> f64 {
    time.as_secs_f64() * 1000.0
}
