//! The CRD of `VirtPlatformConfig` for the profiles of a pack.

use super::{Profile, ProfileOptions};
use serde_json::{Map, Value, json};

/// What the types of `api::advisor` say, as `cargo xtask gen` writes it: generating it in the operator would need a third of a megabyte of
/// code.
const BASE: &str = include_str!("crd.json");

/// The CRD: its names and fields are the published ones, and the profiles and their options are those of a pack.
pub fn crd(profiles: &[Profile]) -> Value {
    // It is generated and compared, so it can be read.
    let mut crd: Value = serde_json::from_str(BASE).unwrap_or_default();
    let schema = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"];
    schema["x-kubernetes-validations"] = json!([rule(
        "self.metadata.name == self.spec.profile",
        "metadata.name must be the name of the profile in spec.profile: there is one object for each profile",
    )]);
    let names: Vec<&str> = profiles.iter().map(|profile| profile.name.as_str()).collect();
    let spec = &mut schema["properties"]["spec"];
    spec["x-kubernetes-validations"] = rules(profiles).into();
    let fields = &mut spec["properties"];
    fields["profile"]["enum"] = json!(names);
    fields["profile"]["x-kubernetes-validations"] = json!([rule(
        "self == oldSelf",
        "spec.profile cannot be changed; create an object with the name of the other profile"
    )]);
    // What Go reads as a duration: whatever the Go operator could work with stays valid.
    fields["waitTimeout"]["maxLength"] = json!(64);
    fields["waitTimeout"]["x-kubernetes-validations"] = json!([rule(
        "self.matches('^[-+]?(0|(([0-9]+([.][0-9]*)?|[.][0-9]+)(ns|us|µs|μs|ms|s|m|h))+)$')",
        "waitTimeout is a duration such as 30m or 1h30m"
    )]);
    fields["approvedPlan"]["maxLength"] = json!(71);
    fields["approvedPlan"]["x-kubernetes-validations"] = json!([rule(
        "self == '' || self.matches('^sha256:[0-9a-fA-F]{64}$')",
        "approvedPlan is the digest that status.planDigest shows: sha256: and 64 hexadecimal digits"
    )]);
    fields["options"] = options(profiles);
    let status = &mut schema["properties"]["status"]["properties"];
    any_fields(&mut status["appliedOptions"]);
    any_fields(&mut status["items"]["items"]["properties"]["desiredState"]);
    crd
}

/// Lets an object have any fields.
fn any_fields(schema: &mut Value) {
    *schema = json!({
        "description": schema["description"],
        "type": "object",
        "nullable": true,
        "x-kubernetes-preserve-unknown-fields": true,
    });
}

fn rule(rule: &str, message: &str) -> Value {
    json!({"rule": rule, "message": message})
}

/// Options belong to their profile.
fn rules(profiles: &[Profile]) -> Vec<Value> {
    let mut rules = Vec::new();
    for (name, ProfileOptions { key, .. }) in with_options(profiles) {
        rules.push(rule(
            &format!("self.profile != '{name}' || !has(self.options) || has(self.options.{key})"),
            &format!("the options of {name} are below options.{key}"),
        ));
        rules.push(rule(
            &format!("!has(self.options) || !has(self.options.{key}) || self.profile == '{name}'"),
            &format!("options.{key} is only for the profile {name}"),
        ));
    }
    rules
}

fn options(profiles: &[Profile]) -> Value {
    let schema = |(name, options): (&str, &ProfileOptions)| {
        let rules: Vec<Value> = options.rules.iter().map(|found| rule(&found.rule, &found.message)).collect();
        let mut schema = json!({
            "description": format!("The options of the profile {name}."),
            "type": "object",
            "properties": options.properties,
        });
        if !rules.is_empty() {
            schema["x-kubernetes-validations"] = rules.into();
        }
        (options.key.clone(), schema)
    };
    let properties: Map<String, Value> = with_options(profiles).map(schema).collect();
    json!({"description": "The options of the profile, below its own key.", "type": "object", "properties": properties})
}

fn with_options(profiles: &[Profile]) -> impl Iterator<Item = (&str, &ProfileOptions)> {
    profiles.iter().filter_map(|profile| Some((profile.name.as_str(), profile.options.as_ref()?)))
}

#[cfg(test)]
mod tests {
    use super::crd;
    use crate::pack::test_pack::{files, loaded};
    use serde_json::json;

    #[test]
    fn profiles_and_options_come_from_the_pack() {
        let profile = |name: &str, options: &str| {
            format!("name: {name}\ncategory: c\ndescription: d\nimpact_summary: i\nadvertised: true\n{options}")
        };
        let (one, two) = (
            profile("one", "options: {key: first, properties: {size: {type: integer, description: s}}}\n"),
            profile("two", ""),
        );
        let catalog = loaded(files(&[
            ("active/metadata.yaml", "assets: []\n"),
            ("profiles/one.yaml", &one),
            ("profiles/two.yaml", &two),
        ]));
        let crd = crd(&catalog.profiles);
        assert_eq!(crd["metadata"]["name"], "virtplatformconfigs.advisor.kubevirt.io");
        let spec = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
        assert_eq!(spec["properties"]["profile"]["enum"], serde_json::json!(["one", "two"]));
        assert_eq!(spec["properties"]["options"]["properties"]["first"]["properties"]["size"]["type"], "integer");
        assert_eq!(spec["x-kubernetes-validations"].as_array().unwrap().len(), 2, "only one has options");
    }
    /// `kubectl get` prints what the published kind prints, in its order; what we add needs `--output wide`.
    #[test]
    fn the_published_columns_are_printed() {
        let crd = crd(&[]);
        let columns = crd["spec"]["versions"][0]["additionalPrinterColumns"].as_array().unwrap();
        let shown = columns.iter().filter(|column| column["priority"].as_i64().unwrap_or_default() == 0);
        let shown: Vec<[&str; 3]> =
            shown.map(|column| ["name", "type", "jsonPath"].map(|key| column[key].as_str().unwrap())).collect();
        assert_eq!(
            shown,
            [
                ["Action", "string", ".spec.action"],
                ["Impact", "string", ".status.impactSeverity"],
                ["Phase", "string", ".status.phase"],
                ["Age", "date", ".metadata.creationTimestamp"],
            ]
        );
        let names = &crd["spec"]["names"];
        assert_eq!(
            (&names["plural"], &names["singular"]),
            (&json!("virtplatformconfigs"), &json!("virtplatformconfig"))
        );
        assert_eq!((&names["shortNames"], &names["categories"]), (&json!(null), &json!(null)));
        assert_eq!(crd["spec"]["scope"], "Cluster");
        assert_eq!(crd["spec"]["versions"][0]["subresources"], json!({"status": {}}));
    }
}
