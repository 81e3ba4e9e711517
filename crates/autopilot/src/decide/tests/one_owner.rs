//! Fields that have one owner, in what restarts nodes.

use super::{Situation, wanted};
use crate::decide::inspect;
use crate::decision::Verdict;
use api::annotation::APPLIED;
use change::{Desired, Digest, Impact, Key, Live, ManagedFields, Reason};
use serde_json::json;

#[test]
fn taking_a_key_out_of_a_map_with_one_owner_waits_for_an_approval() {
    // An upgrade: the former release wanted one label more in a selector, as of a KubeletConfig.
    let mut situation = Situation { impact: Impact::High, remembered: None, ..Situation::settled() };
    situation.live.annotations.insert(APPLIED.to_owned(), Digest::of(&json!("former")).to_string());
    situation.fields[0]["fieldsV1"]["f:spec"] = json!({"f:type": {}, "f:selector": {}});
    let mut content = wanted();
    content["spec"]["selector"] = json!({"app": "x", "tier": "y"});
    content["metadata"]["resourceVersion"] = json!("7");
    let (key, desired) = (Key::of(&wanted()).unwrap(), Desired::of(&wanted()));
    let live = Live { managed_fields: ManagedFields::new(&situation.fields.to_string()), ..situation.live.clone() };
    situation.inspected = inspect(&situation.observed(&key, &desired, Some(&live)), &content);
    let verdict = situation.decide().verdict;
    assert!(matches!(verdict, Verdict::Hold(Reason::NeedsApproval { .. })), "{verdict:?}");
}
