//! The older and newer lines of the descheduler operator, derived from the published one (5.2).

use crate::trouble::Trouble;
use serde_json::{Value, json};

const DEVELOPER_PREVIEW: &str = "DevKubeVirtRelieveAndMigrate";
const GENERAL: &str = "KubeVirtRelieveAndMigrate";

/// Changes the published definition into the one of `line`.
///
/// 5.1 knows no profile made for virtual machines (only `LongLifecycle`); 5.2 has it as a developer preview; 5.3 has it for
/// everybody beside the preview's name, and can limit evictions per node.
pub(super) fn make_line(crd: &mut Value, line: &str) -> Result<(), Trouble> {
    let spec = &mut crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"];
    let Some(profiles) = spec["profiles"]["items"]["enum"].as_array_mut() else {
        return Err(Trouble::new(
            "the published KubeDescheduler has no list of profiles any more",
            "derive the lines anew in crates/playground/src/crds/descheduler.rs",
        ));
    };
    match line {
        "5.1" => profiles.retain(|profile| profile != DEVELOPER_PREVIEW),
        "5.2" => {}
        "5.3" => {
            profiles.push(json!(GENERAL));
            spec["evictionLimits"]["properties"]["node"] =
                json!({"description": "the most evictions on one node", "format": "int32", "type": "integer"});
        }
        other => {
            return Err(Trouble::new(format!("there is no descheduler line {other:?}"), "use 5.1, 5.2 or 5.3"));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::make_line;
    use serde_json::{Value, json};

    fn line(name: &str) -> Value {
        let spec = json!({
            "profiles": {"items": {"enum": ["LongLifecycle", "DevKubeVirtRelieveAndMigrate"]}},
            "evictionLimits": {"properties": {"total": {}}},
        });
        let schema = json!({"openAPIV3Schema": {"properties": {"spec": {"properties": spec}}}});
        let mut crd = json!({"spec": {"versions": [{"schema": schema}]}});
        make_line(&mut crd, name).unwrap();
        crd["spec"]["versions"][0]["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"].take()
    }

    #[test]
    fn each_line_offers_its_own_profiles_and_limits() {
        assert_eq!(line("5.1")["profiles"]["items"]["enum"], json!(["LongLifecycle"]));
        assert_eq!(line("5.2")["profiles"]["items"]["enum"], json!(["LongLifecycle", "DevKubeVirtRelieveAndMigrate"]));
        assert!(line("5.2")["evictionLimits"]["properties"].get("node").is_none());
        let newest = line("5.3");
        assert_eq!(newest["profiles"]["items"]["enum"][2], "KubeVirtRelieveAndMigrate");
        assert_eq!(newest["evictionLimits"]["properties"]["node"]["type"], "integer");
    }
}
