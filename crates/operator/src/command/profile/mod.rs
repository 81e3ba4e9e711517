//! The profiles of the advisor, as `VirtPlatformConfig` objects show them: what `plan`, `approve`, `rollback` and `explain` do with one.

pub(super) mod approve;
mod cost;
pub(super) mod explain;
mod next;
pub(super) mod plan;
pub(super) mod rollback;
#[cfg(test)]
mod samples;
mod text;
mod write;

use super::object_name::is_object;
use super::target::Target;
use anyhow::{Context, bail};
use api::advisor::{Authorship, Item, Operation, Truth, VirtPlatformConfigSpec, VirtPlatformConfigStatus};
use catalog::Catalog;
use change::{Key, Kind};
use cluster::{Failure, Server, discovery, list, live};
use cost::Costs;
use jiff::Timestamp;
use protocol::{Kinds, Served};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::Value;

/// The kind of the objects.
fn kind() -> Kind {
    Kind::new("advisor.kubevirt.io/v1alpha1", "VirtPlatformConfig")
}

/// The key of the object of a profile.
fn key(name: &str) -> Key {
    Key { kind: kind(), namespace: String::new(), name: name.to_owned() }
}

/// A cluster that serves `VirtPlatformConfig`.
pub(super) struct Profiles {
    server: Server,
    kinds: Kinds,
    served: Served,
}

/// A `VirtPlatformConfig`.
#[derive(Debug, Clone)]
pub(super) struct Profile {
    name: String,
    generation: i64,
    resource_version: String,
    created: Option<Timestamp>,
    /// Whether it only tells of the profile.
    only_tells: bool,
    spec: VirtPlatformConfigSpec,
    status: VirtPlatformConfigStatus,
    /// The digest of the plan that was approved and may be applied, as the advisor recorded it.
    approved: Option<String>,
    /// What its plan costs, once that is read.
    costs: Costs,
}

impl Profiles {
    /// Connects to a cluster; nothing if it does not serve the kind.
    async fn find(target: &Target) -> anyhow::Result<Option<Profiles>> {
        let server = target.connect().await?;
        let kinds = discovery::discover(&server).await.with_context(|| {
            format!(
                "could not ask the API server at {} what it serves; check that it is running and that the kubeconfig is right",
                server.address
            )
        })?;
        Ok(kinds.find(&kind()).map(|served| Profiles { server, kinds, served }))
    }

    /// The same; an error if it does not serve the kind.
    async fn connect(target: &Target) -> anyhow::Result<Profiles> {
        Profiles::find(target).await?.context(
            "the cluster does not serve VirtPlatformConfig; install the advisor with \"virtpilot manifests | kubectl apply --filename -\"",
        )
    }

    /// The object of a profile, if there is one.
    async fn get(&self, name: &str) -> anyhow::Result<Option<Profile>> {
        let read = live::whole(&self.server, &self.served, &key(name)).await;
        let read = read.with_context(|| format!("could not read {}", key(name)))?;
        read.map(|object| Profile::read(&object)).transpose()
    }

    /// The same; an error if there is none.
    async fn existing(&self, name: &str, catalog: &Catalog) -> anyhow::Result<Profile> {
        let Some(found) = self.get(name).await? else { bail!("{}", absent(name, catalog)) };
        Ok(found)
    }

    /// All objects, by name.
    async fn all(&self) -> anyhow::Result<Vec<Profile>> {
        let listed = self.list().await.context("could not list the VirtPlatformConfigs")?;
        let mut all = listed.iter().map(Profile::read).collect::<anyhow::Result<Vec<Profile>>>()?;
        all.sort_by(|one, other| one.name.cmp(&other.name));
        Ok(all)
    }

    async fn list(&self) -> Result<Vec<Value>, Failure> {
        list::whole(&self.server, &self.served, "").await
    }
}

/// Why there is nothing to show, and what to do.
fn absent(name: &str, catalog: &Catalog) -> String {
    let names: Vec<&str> = catalog.profiles.iter().map(|profile| profile.name.as_str()).collect();
    match names.contains(&name) {
        true => format!(
            "there is no VirtPlatformConfig {name}; create one with spec.profile: {name}, whose plan is then shown; nothing is written before \
             an approval"
        ),
        false => {
            let meant = autopilot::nearest::question(&autopilot::nearest::nearest(name, names.iter().copied()));
            format!("there is no profile {name:?}{meant}; \"virtpilot plan list\" lists them")
        }
    }
}

/// The name of the profile that a word means. A feature may have the name of a profile: such a name means the profile while the profile
/// governs, because nothing of the feature then waits for the autopilot.
async fn meant(word: &str, catalog: &Catalog, target: &Target) -> anyhow::Result<Option<String>> {
    if let Some((_, name)) = word.split_once(['/', ' '])
        && is_object(word, &key(name))
    {
        return Ok(Some(name.to_owned()));
    }
    if !catalog.profiles.iter().any(|profile| profile.name == word) {
        return Ok(None);
    }
    let is_feature = catalog.features.iter().any(|feature| feature.name == word);
    let is_asset = catalog.assets.iter().any(|asset| asset.name == word || asset.group.as_deref() == Some(word));
    if !is_feature && !is_asset {
        return Ok(Some(word.to_owned()));
    }
    let Some(profiles) = Profiles::find(target).await? else { return Ok(None) };
    let governs = profiles.get(word).await?.is_some_and(|profile| profile.governs());
    Ok(governs.then(|| word.to_owned()))
}

impl Profile {
    fn read(object: &Value) -> anyhow::Result<Profile> {
        let metadata = &object["metadata"];
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let name = text(&metadata["name"]);
        Ok(Profile {
            generation: metadata["generation"].as_i64().unwrap_or_default(),
            resource_version: text(&metadata["resourceVersion"]),
            only_tells: Authorship::deserialize(metadata).is_ok_and(|metadata| metadata.only_tells()),
            created: metadata["creationTimestamp"].as_str().and_then(|text| text.parse().ok()),
            spec: part(object, "spec", &name)?,
            status: match object.get("status") {
                Some(_) => part(object, "status", &name)?,
                None => VirtPlatformConfigStatus::default(),
            },
            approved: approved(&object["status"]["approved"]),
            costs: Costs::default(),
            name,
        })
    }

    /// Whether the autopilot leaves the objects of the profile alone.
    fn governs(&self) -> bool {
        self.spec.governs(self.only_tells)
    }

    /// Whether the status is about the present spec.
    fn is_current(&self) -> bool {
        self.status.observed_generation == Some(self.generation)
    }

    /// Why the profile is in its phase: the message of the condition of that name.
    fn why(&self) -> &str {
        let phase = self.phase();
        let of = |name: &str| {
            let is_meant = |condition: &&api::advisor::Condition| condition.r#type == name;
            self.status.conditions.iter().find(is_meant)
        };
        let of_phase = of(&phase).filter(|condition| condition.status == Truth::True);
        of_phase.or_else(|| of("Ready")).map(|condition| condition.message.as_str()).unwrap_or_default()
    }

    fn phase(&self) -> String {
        self.status.phase.map_or_else(|| "Pending".to_owned(), |phase| format!("{phase:?}"))
    }

    /// The items that change something.
    fn changes(&self) -> impl Iterator<Item = &Item> {
        self.status.items.iter().filter(|item| item.operation != Some(Operation::Keep))
    }
}

/// An approval without items is recorded so that it is not taken for a new one; nothing of it is applied.
fn approved(recorded: &Value) -> Option<String> {
    let has_items = recorded["items"].as_array().is_some_and(|items| !items.is_empty());
    recorded["digest"].as_str().filter(|_| has_items).map(str::to_owned)
}

fn part<T: DeserializeOwned>(object: &Value, part: &str, name: &str) -> anyhow::Result<T> {
    serde_json::from_value(object[part].clone()).with_context(|| {
        format!("{part} of VirtPlatformConfig {name} is not as this version knows it; use the version of the operator")
    })
}

#[cfg(test)]
mod tests {
    use super::approved;
    use super::samples::{profile, sample};
    use serde_json::json;

    #[test]
    fn the_reason_is_that_of_the_phase() {
        assert_eq!(sample().why(), "the plan has 2 changes; approve it to apply it");
        let ready = json!([{"type": "Ready", "status": "False", "lastTransitionTime": "2026-11-17T10:00:00Z", "reason": "X", "message": "m"}]);
        let without = profile(&json!({}), json!({"phase": "Failed", "conditions": ready}));
        assert_eq!((without.why(), without.phase().as_str()), ("m", "Failed"));
        let new = profile(&json!({}), json!({}));
        assert_eq!((new.why(), new.phase().as_str(), new.is_current()), ("", "Pending", false));
    }

    #[test]
    fn an_approval_of_which_nothing_is_applied_is_none() {
        let item = json!({"name": "a", "digest": "sha256:2"});
        assert_eq!(approved(&json!({"digest": "sha256:1", "items": [item]})).as_deref(), Some("sha256:1"));
        assert_eq!(approved(&json!({"digest": "sha256:1", "items": []})), None);
        assert_eq!(approved(&json!({"digest": "sha256:1"})), None);
    }

    #[test]
    fn a_status_is_about_the_generation_that_it_names() {
        assert!(sample().is_current());
        let mut edited = sample();
        edited.generation += 1;
        assert!(!edited.is_current());
    }
}
