//! Follows `docs/adding-a-profile.md` word by word.

use super::super::of;
use super::cluster::Bed;
use super::{line, object, profile};
use crate::pack;
use crate::workspace::Workspace;
use catalog::Catalog;
use serde_json::json;
use std::collections::BTreeMap;

const NAME: &str = "gentle-migrations";
const PROFILE: &str = "profiles/gentle-migrations.yaml";

/// The block of the document below a mark.
fn block<'a>(document: &'a str, mark: &str) -> &'a str {
    let (_, rest) = document.split_once(&format!("<!-- {mark} -->\n```")).unwrap_or_else(|| panic!("no mark {mark}"));
    let (_, rest) = rest.split_once('\n').unwrap();
    rest.split_once("```").unwrap().0
}

/// The files of our pack, and those of the document.
fn files(workspace: &Workspace, document: &str) -> BTreeMap<String, Vec<u8>> {
    let mut files = BTreeMap::new();
    for path in workspace.files.iter().filter_map(|path| path.strip_prefix("assets/")) {
        files.insert(path.to_owned(), std::fs::read(workspace.root.join("assets").join(path)).unwrap());
    }
    for path in ["active/profiles/gentle-migrations.yaml.tpl", PROFILE] {
        files.insert(path.to_owned(), block(document, &format!("file: {path}")).into());
    }
    let metadata = String::from_utf8(files["active/metadata.yaml"].clone()).unwrap();
    let entry = format!("profile_assets:\n{}", block(document, "profile_assets"));
    files.insert("active/metadata.yaml".into(), metadata.replacen("profile_assets:\n", &entry, 1).into());
    files
}

fn generated(catalog: &Catalog, path: &str) -> String {
    of(catalog).into_iter().find(|file| file.path == path).unwrap_or_else(|| panic!("no file {path}")).text
}

#[test]
fn a_profile_is_added_as_the_document_says() {
    let workspace = Workspace::load().unwrap();
    let document = workspace.read("docs/adding-a-profile.md").unwrap();
    let catalog = pack::load(files(&workspace, &document)).unwrap();

    let crd = catalog::profile::crd(&catalog.profiles);
    let spec = &crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"];
    let names = spec["properties"]["profile"]["enum"].as_array().unwrap();
    assert!(names.contains(&json!(NAME)), "{names:?}");
    let options = &spec["properties"]["options"]["properties"]["gentleMigrations"];
    assert_eq!(options["properties"]["limitBandwidth"]["default"], true);
    assert_eq!(options["x-kubernetes-validations"].as_array().unwrap().len(), 1);
    let rules = spec["x-kubernetes-validations"].to_string();
    assert!(rules.contains("options.gentleMigrations is only for the profile gentle-migrations"), "{rules}");

    let page = generated(&catalog, "docs/reference/profiles.md");
    assert!(page.contains("\n## gentle-migrations\n") && page.contains("| `limit-bandwidth` | MigrationPolicy |"));
    let sample = generated(&catalog, "deploy/samples/advisor/gentle-migrations.yaml");
    assert!(sample.ends_with(block(&document, "sample")), "{sample}");
    let outcomes = generated(&catalog, "crates/catalog/tests-data/profiles.md");
    assert!(outcomes.contains("MigrationPolicy gentle\n"));

    // The advisor may write its object, by name, and the autopilot may not.
    let roles = |objects: Result<Vec<serde_json::Value>, Vec<String>>| serde_json::to_value(objects.unwrap()).unwrap();
    let named = |role: &serde_json::Value| {
        let rules = role.as_array().unwrap().iter().flat_map(|object| object["rules"].as_array().into_iter().flatten());
        let is_it = |rule: &&serde_json::Value| {
            rule["resources"] == json!(["migrationpolicies"]) && rule["resourceNames"] == json!(["gentle"])
        };
        rules.filter(is_it).map(|rule| rule["verbs"].clone()).collect::<Vec<_>>()
    };
    let of_advisor = roles(catalog::role::advisor_role_objects(&catalog, "openshift-cnv", catalog::role::ADVISOR));
    assert_eq!(named(&of_advisor), [json!(["create", "get", "patch", "delete"])], "{of_advisor:#}");
    let watched =
        of_advisor.to_string().contains("\"resources\":[\"migrationpolicies\"],\"verbs\":[\"list\",\"watch\"]");
    assert!(watched, "{of_advisor:#}");
    assert!(named(&roles(catalog::role_objects(&catalog, "openshift-cnv"))).is_empty());

    let bed = Bed::default();
    let bandwidth = |options| {
        let wants = bed.with(&catalog, NAME, &options);
        object(&wants, "limit-bandwidth")["spec"]["bandwidthPerMigration"].clone()
    };
    assert_eq!([bandwidth(json!({})), bandwidth(json!({"bandwidth": "64Mi"}))], ["256Mi", "64Mi"]);
    let off = bed.wants(&catalog, profile(&catalog, NAME), json!({"limitBandwidth": false}).as_object());
    assert_eq!(line(&off, "limit-bandwidth"), "off: no MigrationPolicy gentle");
    assert!(catalog.asset(NAME).is_none(), "the autopilot never applies it");
}

#[test]
fn a_mistake_is_reported_as_the_document_says() {
    let workspace = Workspace::load().unwrap();
    let document = workspace.read("docs/adding-a-profile.md").unwrap();
    let mut files = files(&workspace, &document);
    let text =
        block(&document, &format!("file: {PROFILE}")).replace("asset: gentle-migrations", "asset: gentle-migration");
    files.insert(PROFILE.into(), text.into());
    assert_eq!(pack::load(files).unwrap_err().to_string(), block(&document, "fault").trim_end());
}
