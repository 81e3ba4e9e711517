//! The role of the advisor: the objects of the profiles, by name, and its own.

use super::{Granted, manifest, objects, unsafe_grant};
use crate::pack::asset::Prune;
use crate::pack::catalog::Catalog;
use crate::yaml::read::documents;
use change::Key;
use serde_json::Value;
use std::collections::BTreeSet;

/// The name of the advisor's service account, roles and Deployment, which is also its field manager.
pub const ADVISOR: &str = "virt-advisor-operator";
/// The advisor's Lease for leader election.
pub const ADVISOR_LEASE: &str = "virt-advisor-operator.kubevirt.io";

/// The roles of the advisor in this namespace and their bindings to an account, as YAML; the account itself is included if it is the
/// advisor's own. The error lists every reason why there is none.
pub fn advisor_role(catalog: &Catalog, namespace: &str, account: &str) -> Result<String, Vec<String>> {
    let (mut granted, mut reads, mut problems) = (Vec::new(), BTreeSet::new(), Vec::new());
    for item in catalog.profiles.iter().flat_map(|profile| &profile.items) {
        let Some(asset) = catalog.profile_asset(&item.asset) else { continue };
        let key = match objects::key(catalog, asset, namespace, &mut reads) {
            Ok(key) => key,
            Err(why) => {
                problems.push(why);
                continue;
            }
        };
        let may_delete = asset.prune != Prune::Never;
        // An object of the predecessor is taken over or replaced, and a rollback brings it back.
        let former = item.formerly.clone().map(|name| Key { name, ..key.clone() });
        let grant = |key: Key| Granted { key, is_tombstone: false, may_delete, backups: BTreeSet::new() };
        granted.extend(former.into_iter().chain([key]).map(grant));
    }
    problems.extend(granted.iter().filter_map(|granted| unsafe_grant(&granted.key.kind, &granted.key.name)));
    problems.extend(reads.iter().filter_map(|read| unsafe_grant(&read.kind, "")));
    match problems.is_empty() {
        true => Ok(manifest::text_of_advisor(&granted, &reads, namespace, account)),
        false => Err(problems),
    }
}

/// The same as values.
pub fn advisor_role_objects(catalog: &Catalog, namespace: &str, account: &str) -> Result<Vec<Value>, Vec<String>> {
    let text = advisor_role(catalog, namespace, account)?;
    documents(&text).map_err(|error| vec![format!("the generated role is not YAML: {}", error.message)])
}

#[cfg(test)]
mod tests {
    use super::{ADVISOR, advisor_role};
    use crate::pack::test_pack::{files, loaded};

    fn role(account: &str) -> String {
        let catalogue = "assets:\n  - {name: a, path: active/a.yaml, install: always}\n  - {name: b, path: active/b.yaml, install: always}\n\
            profile_assets:\n  - {name: c, path: active/c.yaml, prune: never}\n";
        let object =
            |name: &str| format!("apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: n}}\n");
        let profile = "name: p\ncategory: c\ndescription: d\nimpact_summary: i\nadvertised: true\nitems:\n\
            - {name: one, description: d, asset: a, formerly: old}\n- {name: two, description: d, asset: c}\n";
        let catalog = loaded(files(&[
            ("active/metadata.yaml", catalogue),
            ("active/a.yaml", &object("first")),
            ("active/b.yaml", &object("second")),
            ("active/c.yaml", &object("third")),
            ("profiles/p.yaml", profile),
        ]));
        advisor_role(&catalog, "home", account).unwrap()
    }

    #[test]
    fn the_advisor_writes_the_objects_of_profiles_by_name_and_approves_nothing() {
        let role = role(ADVISOR);
        for (names, verbs) in
            [("\"first\", \"old\"", "create, get, patch, delete"), ("\"third\"", "create, get, patch")]
        {
            let rule = format!("    resources: [configmaps]\n    resourceNames: [{names}]\n    verbs: [{verbs}]\n");
            assert!(role.contains(&rule), "{rule} is not in\n{role}");
        }
        assert!(!role.contains("second"), "no profile has it: {role}");
        for rule in [
            "resources: [virtplatformconfigs]\n    verbs: [list, watch]\n",
            "resources: [virtplatformconfigs]\n    verbs: [create]\n",
            "resources: [virtplatformconfigs/status]\n    verbs: [patch]\n",
            // Without it no profile is advertised.
            "resources: [configmaps]\n    resourceNames: [\"virt-advisor-state\"]\n    verbs: [create, get, patch]\n",
            "resourceNames: [\"virt-advisor-operator.kubevirt.io\"]\n    verbs: [get, update]\n",
        ] {
            assert!(role.contains(rule), "{rule} is not in\n{role}");
        }
        for forbidden in ["approve", "\"*\"", "bind]", "escalate]", "secrets", "virt-platform-autopilot"] {
            assert!(!role.contains(forbidden), "{forbidden}");
        }
    }

    #[test]
    fn the_account_is_its_own_or_the_autopilots() {
        let (own, shared) = (role(ADVISOR), role("virt-platform-autopilot"));
        assert!(
            own.starts_with("apiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: virt-advisor-operator\n"),
            "{own}"
        );
        assert!(!shared.contains("kind: ServiceAccount\nmetadata"), "{shared}");
        let subject = "  - kind: ServiceAccount\n    name: virt-platform-autopilot\n    namespace: home\n";
        assert_eq!(shared.matches(subject).count(), 2, "{shared}");
    }
}
