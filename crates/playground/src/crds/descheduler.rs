//! The KubeDescheduler CRDs of older and newer operator releases, derived from the published one (5.2).

use crate::user_error::UserError;
use serde_json::{Value, json};

const DEVELOPER_PREVIEW: &str = "DevKubeVirtRelieveAndMigrate";
const GENERAL: &str = "KubeVirtRelieveAndMigrate";

/// Changes the published CRD into that of `release`.
///
/// 5.1 has no profile for virtual machines (only `LongLifecycle`); 5.2 has one as a developer preview; 5.3 also offers it
/// under its final name and can limit evictions per node.
pub(super) fn derive_release(crd: &mut Value, release: &str) -> Result<(), UserError> {
    let spec = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
    let Some(profiles) = spec["profiles"]["items"]["enum"].as_array_mut() else {
        return Err(UserError::new(
            "the published KubeDescheduler CRD no longer has an enum of profiles",
            "adapt crates/playground/src/crds/descheduler.rs to the new schema",
        ));
    };
    match release {
        "5.1" => profiles.retain(|profile| profile != DEVELOPER_PREVIEW),
        "5.2" => {}
        "5.3" => {
            profiles.push(json!(GENERAL));
            spec["evictionLimits"]["properties"]["node"] =
                json!({"description": "the most evictions on one node", "format": "int32", "type": "integer"});
        }
        other => {
            return Err(UserError::new(format!("unknown descheduler release {other:?}"), "use 5.1, 5.2 or 5.3"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::derive_release;
    use serde_json::{Value, json};

    fn release(name: &str) -> Value {
        let spec = json!({
            "profiles": {"items": {"enum": ["LongLifecycle", "DevKubeVirtRelieveAndMigrate"]}},
            "evictionLimits": {"properties": {"total": {}}},
        });
        let schema = json!({"openAPIV3Schema": {"properties": {"spec": {"properties": spec}}}});
        let mut crd = json!({"spec": {"versions": [{"schema": schema}]}});
        derive_release(&mut crd, name).unwrap();
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"].take()
    }

    #[test]
    fn each_release_has_its_own_profiles_and_limits() {
        assert_eq!(release("5.1")["profiles"]["items"]["enum"], json!(["LongLifecycle"]));
        assert_eq!(
            release("5.2")["profiles"]["items"]["enum"],
            json!(["LongLifecycle", "DevKubeVirtRelieveAndMigrate"])
        );
        assert!(release("5.2")["evictionLimits"]["properties"].get("node").is_none());
        let newest = release("5.3");
        assert_eq!(newest["profiles"]["items"]["enum"][2], "KubeVirtRelieveAndMigrate");
        assert_eq!(newest["evictionLimits"]["properties"]["node"]["type"], "integer");
    }
}
