//! The advisor's chapter of the demo: a plan that a person reads and approves. Every step is checked.

use super::print;
use super::story::{check, print_step, until};
use kube::api::{Api, DynamicObject, Patch, PatchParams};
use playground::deployment::{self, edit, objects};
use playground::user_error::refused;
use playground::{Playground, UserError};
use serde_json::{Value, json};

const PROFILE: &str = "virt-higher-density";
const API_VERSION: &str = "advisor.kubevirt.io/v1alpha1";
const KIND: &str = "VirtPlatformConfig";
/// The CRD and the rights of the advisor under the operator's account, as they are installed.
const INSTALLATION: &str = include_str!("../../../../deploy/kustomize/advisor.yaml");

struct Chapter {
    profiles: Api<DynamicObject>,
    hco: Api<DynamicObject>,
    /// Where the HyperConverged has its memory overcommit.
    overcommit: &'static str,
}

/// Installs the advisor beside the running autopilot, and shows a plan from its making to its rollback.
pub(super) async fn run(playground: &Playground, hco_version: &str) -> Result<(), UserError> {
    print("\nThe advisor on this cluster:\n")?;
    deployment::grant_for(playground, INSTALLATION).await?;
    let hco = format!("{}/{hco_version}", api::hco::GROUP);
    let chapter = Chapter {
        profiles: objects(playground, API_VERSION, KIND, None),
        hco: objects(playground, &hco, api::hco::KIND, Some(deployment::NAMESPACE)),
        overcommit: match hco_version {
            "v1" => "/spec/virtualization/higherWorkloadDensity/memoryOvercommitPercentage",
            _ => "/spec/higherWorkloadDensity/memoryOvercommitPercentage",
        },
    };
    chapter.advertise().await?;
    let (digest, before) = chapter.plan().await?;
    chapter.refuse_a_moved_plan(&digest).await?;
    chapter.apply().await?;
    chapter.show_drift().await?;
    chapter.roll_back(before.as_ref()).await
}

impl Chapter {
    async fn advertise(&self) -> Result<(), UserError> {
        let status = self.phase("Ignored").await?;
        check(status["items"].as_array().is_none_or(Vec::is_empty), "an ignored profile has a plan")?;
        print_step(
            "Its CRD is installed while the operator runs: profiles appear, and nothing is done about them.",
            &format!("{KIND} {PROFILE} has the action Ignore"),
        )
    }

    async fn plan(&self) -> Result<(String, Option<Value>), UserError> {
        let before = self.overcommit().await;
        self.ask(json!({"action": "DryRun", "approvedPlan": null})).await?;
        let status = self.phase("ReviewRequired").await?;
        let diff = item(&status, "configure-higher-density")["diff"].as_str().unwrap_or_default().to_owned();
        check(item(&status, "enable-kubelet-swap")["operation"] == "Keep", "swap is planned although nodes have it")?;
        check(self.overcommit().await == before, "a dry run wrote something")?;
        let shown = diff.lines().find(|line| line.starts_with('+')).unwrap_or_default().to_owned();
        print_step(
            "Asked for a plan, the advisor shows what the server would make of it: swap stays as the autopilot made it.",
            &shown,
        )?;
        Ok((status["planDigest"].as_str().unwrap_or_default().to_owned(), before))
    }

    async fn refuse_a_moved_plan(&self, digest: &str) -> Result<(), UserError> {
        let steps: Vec<&str> = self.overcommit.split('/').skip(1).collect();
        let patch = steps.iter().rev().fold(json!(110), |value, step| json!({*step: value}));
        edit(&self.hco, api::hco::NAME, &patch).await?;
        self.ask(json!({"action": "Apply", "approvedPlan": digest})).await?;
        let status = self.phase("ReviewRequired").await?;
        check(self.overcommit().await == Some(json!(110)), "an edit after the plan was overwritten")?;
        let why = status["conditions"].as_array().into_iter().flatten().find(|one| one["type"] == "ReviewRequired");
        let why = why.and_then(|why| why["message"].as_str()).unwrap_or_default();
        print_step("Somebody changed the object after the plan was shown: an approval of it writes nothing.", why)
    }

    async fn apply(&self) -> Result<(), UserError> {
        let digest = self.phase("ReviewRequired").await?["planDigest"].clone();
        self.ask(json!({"action": "Apply", "approvedPlan": digest})).await?;
        self.phase("Completed").await?;
        check(self.overcommit().await == Some(json!(150)), "the approved plan was not applied")?;
        print_step(
            "An administrator approves the plan as it is now, and exactly that is applied.",
            "memory overcommit is 150 %",
        )
    }

    async fn show_drift(&self) -> Result<(), UserError> {
        let steps: Vec<&str> = self.overcommit.split('/').skip(1).collect();
        let patch = steps.iter().rev().fold(json!(200), |value, step| json!({*step: value}));
        edit(&self.hco, api::hco::NAME, &patch).await?;
        let status = self.phase("Drifted").await?;
        let diff = item(&status, "configure-higher-density")["diff"].as_str().unwrap_or_default().replace('\n', " ");
        check(self.overcommit().await == Some(json!(200)), "drift was corrected without a review")?;
        print_step("Drift is shown as a new plan, and corrected only when somebody says so.", diff.trim())
    }

    async fn roll_back(&self, before: Option<&Value>) -> Result<(), UserError> {
        self.ask(json!({"action": "DryRun", "rollback": true, "approvedPlan": null})).await?;
        let digest = self.phase("ReviewRequired").await?["planDigest"].clone();
        self.ask(json!({"action": "Apply", "approvedPlan": digest})).await?;
        self.phase("Completed").await?;
        let restored = self.overcommit().await;
        check(restored.is_some() && restored.as_ref() != Some(&json!(150)), "the rollback restored nothing")?;
        let shown = before.map_or_else(|| "its default".to_owned(), ToString::to_string);
        print_step(
            "A rollback is a plan, too: what was there before comes back.",
            &format!("memory overcommit is {}; before all this it was {shown}", restored.unwrap_or_default()),
        )
    }

    /// Changes the spec, as kubectl patch does.
    async fn ask(&self, spec: Value) -> Result<(), UserError> {
        let patch = json!({"spec": spec});
        let patched = self.profiles.patch(PROFILE, &PatchParams::default(), &Patch::Merge(&patch)).await;
        patched.map(|_| ()).map_err(|error| refused(&error))
    }

    /// Waits until the profile is in a phase, as far as its present spec goes; returns the status.
    async fn phase(&self, phase: &str) -> Result<Value, UserError> {
        until(&format!("the phase of {PROFILE} is {phase}"), async || {
            let object = self.profiles.get_opt(PROFILE).await.ok()??;
            let status = object.data["status"].clone();
            let is_current = status["observedGeneration"].as_i64() == object.metadata.generation;
            (is_current && status["phase"] == phase).then_some(status)
        })
        .await
    }

    async fn overcommit(&self) -> Option<Value> {
        self.hco.get(api::hco::NAME).await.ok()?.data.pointer(self.overcommit).cloned()
    }
}

fn item<'a>(status: &'a Value, name: &str) -> &'a Value {
    let items = status["items"].as_array().into_iter().flatten();
    items.into_iter().find(|item| item["name"] == name).unwrap_or(&Value::Null)
}
