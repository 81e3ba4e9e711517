//! What the profiles of our pack want: every option, every release of the descheduler, and clusters of every shape.

mod adding;
mod cluster;
mod density;
mod load_aware;
mod others;

use crate::workspace::Workspace;
use catalog::profile::{Profile, ProfileOptions};
use catalog::{Catalog, ProfileWants, WantedItem, WantedResult};
use cluster::Bed;
use serde_json::{Map, Value, json};
use std::sync::LazyLock;

/// Our pack, read once.
static PACK: LazyLock<Catalog> =
    LazyLock::new(|| super::role::catalog(&Workspace::load().unwrap(), "assets/").unwrap());

fn pack() -> Catalog {
    PACK.clone()
}

fn profile<'a>(catalog: &'a Catalog, name: &str) -> &'a Profile {
    catalog.profiles.iter().find(|profile| profile.name == name).unwrap()
}

fn item<'a>(wants: &'a ProfileWants, name: &str) -> &'a WantedItem {
    wants.items.iter().find(|item| item.name == name).unwrap()
}

fn object<'a>(wants: &'a ProfileWants, name: &str) -> &'a Value {
    match &item(wants, name).result {
        WantedResult::Object { object, .. } => object,
        other => panic!("{name}: {other:?}"),
    }
}

/// What an item comes to, in one line.
fn line(wants: &ProfileWants, name: &str) -> String {
    super::describe(&item(wants, name).result)
}

/// A value of an option that is not its default.
fn another(schema: &Value) -> Value {
    match schema["type"].as_str().unwrap() {
        "boolean" => json!(schema["default"] != json!(true)),
        "integer" => schema["maximum"].clone(),
        "string" if schema["enum"].is_array() => schema["enum"].as_array().unwrap().last().unwrap().clone(),
        "string" => json!("8Gi"),
        "object" => {
            let inner = schema["properties"].as_object().unwrap();
            match inner.get("enabled") {
                Some(schema) => json!({"enabled": another(schema)}),
                None => json!({"matchLabels": {"a": "b"}}),
            }
        }
        other => panic!("an option of type {other}"),
    }
}

#[test]
fn every_option_of_every_profile_has_an_effect() {
    let (catalog, bed) = (pack(), Bed::default());
    for profile in &catalog.profiles {
        let Some(ProfileOptions { properties, .. }) = &profile.options else { continue };
        let booleans = properties.iter().filter(|(_, schema)| schema["type"] == "boolean");
        let all = |value: bool| -> Map<String, Value> {
            booleans.clone().map(|(name, _)| (name.clone(), json!(value))).collect()
        };
        for (name, schema) in properties {
            let differs = |base: &Map<String, Value>| {
                let mut options = base.clone();
                let value =
                    base.get(name).and_then(Value::as_bool).map_or_else(|| another(schema), |is_on| json!(!is_on));
                options.insert(name.clone(), value);
                bed.wants(&catalog, profile, Some(base)) != bed.wants(&catalog, profile, Some(&options))
            };
            assert!([Map::new(), all(true), all(false)].iter().any(differs), "{}: {name}", profile.name);
        }
    }
}

#[test]
fn annotations_of_the_hyperconverged_change_nothing_and_objects_carry_nothing_of_the_autopilot() {
    let catalog = pack();
    let mut bed = Bed::default();
    let plain: Vec<ProfileWants> = catalog.profiles.iter().map(|profile| bed.wants(&catalog, profile, None)).collect();
    for key in
        catalog.all_settings().iter().map(|setting| setting.key.as_str()).chain(["platform.kubevirt.io/autopilot"])
    {
        bed.facts.hco["metadata"]["annotations"][key] = json!("true");
    }
    for (profile, plain) in catalog.profiles.iter().zip(plain) {
        assert_eq!(bed.wants(&catalog, profile, None), plain, "{}", profile.name);
        for item in &plain.items {
            let WantedResult::Object { object, .. } = &item.result else { continue };
            assert!(!object["metadata"].to_string().contains("platform.kubevirt.io"), "{object}");
        }
    }
}

#[test]
fn assets_of_profiles_are_none_of_the_autopilot() {
    let catalog = pack();
    for asset in ["hco-density", "example-config"] {
        assert!(catalog.asset(asset).is_none() && catalog.profile_asset(asset).is_some());
    }
    assert!(catalog.assets.iter().all(|asset| !asset.path.starts_with("active/profiles/")));
}

#[test]
fn the_example_is_one_config_map() {
    let catalog = pack();
    let wants = Bed::default().wants(&catalog, profile(&catalog, "example-profile"), None);
    assert_eq!(wants.items.len(), 1);
    let object = object(&wants, "configure-example-component");
    assert_eq!(object["metadata"], json!({"name": "example-config", "namespace": "openshift-cnv"}));
    assert_eq!(object["data"].as_object().unwrap().len(), 1);
}
