//! The gate that decides agrees with the result of the evaluation, whatever the cluster.

use super::{GateKind, GateOutcome, gates};
use crate::evaluate::{AssetResult, Before, evaluate};
use crate::testing::pack::{ALWAYS, Pack};
use catalog::{Answer, Facts, Hardware, Need, Query};
use change::Kind;
use proptest::prelude::{Strategy, any, prop, proptest};
use serde_json::{Map, Value, json};

/// Values of the annotations that matter, some of them wrong.
const ANNOTATIONS: [(&str, &[&str]); 4] = [
    ("autopilot", &["true", "false", "extras", "plain, opted", "typo", " ,"]),
    ("disabled-resources", &["ConfigMap/plain", "configmap/*", "- {kind: Service, name: service}", "[", "Service"]),
    ("enable-opted", &["true", "True", "false", "yes", ""]),
    ("enable-lasting", &["true", "nope"]),
];

fn facts() -> impl Strategy<Value = Facts> {
    let choices = prop::array::uniform4(0_usize..12);
    (choices, any::<bool>(), any::<bool>(), 0_u8..4).prop_map(|(choices, has_gpu, is_served, answer)| {
        let mut annotations = Map::new();
        for ((name, values), choice) in ANNOTATIONS.iter().zip(choices) {
            if let Some(value) = values.get(choice) {
                annotations.insert(format!("{}{name}", api::annotation::PREFIX), json!(value));
            }
        }
        let hco = json!({"metadata": {"name": "h", "namespace": "virt", "annotations": annotations}});
        let hardware = Hardware { gpu_present: has_gpu, ..Hardware::default() };
        let mut facts = Facts { hco, hardware, ..Facts::default() };
        if !is_served {
            facts.absent.insert(Need::of(&Kind::new("operator.openshift.io/v1", "KubeDescheduler")));
        }
        let (api_version, kind) = ("v1".into(), "ConfigMap".into());
        let query = Query::Object { api_version, kind, namespace: "virt".into(), name: "source".into() };
        let found: Value = json!({"data": {"color": "red"}});
        let answer = match answer {
            0 => None,
            1 => Some(Answer::Absent),
            2 => Some(Answer::Unknown),
            _ => Some(Answer::Found(found)),
        };
        facts.answers.extend(answer.map(|answer| (query, answer)));
        facts
    })
}

proptest! {
    #[test]
    fn the_first_gate_that_is_not_open_decides(facts in facts(), opt_in in any::<bool>()) {
        let catalog = Pack::standard().catalog();
        let evaluation = evaluate(&catalog, &facts, opt_in, Before::default());
        for outcome in &evaluation.outcomes {
            let rows = gates(&catalog, &facts, &evaluation, outcome);
            let first = rows.iter().position(|row| row.outcome != GateOutcome::Open);
            let decides = rows.iter().position(|row| row.decides);
            assert_eq!(first, decides, "{}: {:?}\n{rows:#?}", outcome.asset, outcome.result);
            assert_eq!(decides.is_none(), matches!(outcome.result, AssetResult::Included(_)), "{rows:#?}");
        }
    }
}

#[test]
fn a_kind_that_only_the_render_shows_and_the_cluster_does_not_serve_decides() {
    let template = "apiVersion: v1\nkind: {{ \"Widget\" }}\nmetadata: {name: x}\n";
    let catalog = Pack::default().asset("a", ALWAYS, template).catalog();
    let mut facts = Facts { hco: json!({"metadata": {"name": "h", "namespace": "n"}}), ..Facts::default() };
    facts.absent.insert(Need::of(&Kind::new("v1", "Widget")));
    let evaluation = evaluate(&catalog, &facts, false, Before::default());
    let rows = gates(&catalog, &facts, &evaluation, &evaluation.outcomes[0]);
    let deciding: Vec<(GateKind, &str)> =
        rows.iter().filter(|row| row.decides).map(|row| (row.gate, row.what.as_str())).collect();
    assert_eq!(deciding, [(GateKind::Served, "Widget of v1")], "{rows:#?}");
}
