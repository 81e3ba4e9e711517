//! Broken assets delay no other asset and cost few requests.

use crate::operator::{Running, edit, eventually};
use kube::api::{DynamicObject, ObjectMeta, PostParams, TypeMeta};
use serde_json::json;
use std::time::Duration;

const PACK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/packs/troubled");
const ROLE: &str = include_str!("../packs/troubled.role.yaml");

#[tokio::test(flavor = "multi_thread")]
async fn broken_assets_delay_no_other_and_cost_few_requests() {
    let running = Running::with_pack(ROLE, &["--assets-dir", PACK]).await;
    let before = running.audit().mark().unwrap();
    let seen_is = async |wanted: &str| {
        eventually(&format!("the lookup returned {wanted:?}"), async || {
            let looking = running.config_maps().get_opt("looking").await.unwrap()?;
            (looking.data["data"]["seen"] == wanted).then_some(())
        })
        .await;
    };
    eventually("the valid object exists", async || running.config_maps().get_opt("fine").await.unwrap()).await;
    // Each broken asset is reported with its error.
    for (reason, text) in [
        ("InvalidConfiguration", "asset no-template"),
        ("ApplyFailed", "PrometheusRule openshift-cnv/no-schema: the API server refused it"),
    ] {
        eventually(&format!("{text} is reported"), async || {
            running.events(reason).await.into_iter().find(|note| note.contains(text))
        })
        .await;
    }
    // A lookup follows its object: it is created, changed and deleted.
    seen_is("").await;
    let metadata = ObjectMeta { name: Some("source".into()), ..ObjectMeta::default() };
    let types = Some(TypeMeta { api_version: "v1".into(), kind: "ConfigMap".into() });
    let source = DynamicObject { types, metadata, data: json!({"data": {"word": "one"}}) };
    running.config_maps().create(&PostParams::default(), &source).await.unwrap();
    seen_is("one").await;
    edit(&running.config_maps(), "source", json!({"data": {"word": "two"}})).await;
    seen_is("two").await;
    running.config_maps().delete("source", &Default::default()).await.unwrap();
    seen_is("").await;
    // The backoff doubles from two seconds on; in fifteen seconds there are four attempts for each.
    tokio::time::sleep(Duration::from_secs(15)).await;
    let own = running.own(&running.audit().since(before).unwrap());
    let schema =
        own.filter(|request| request.resource.starts_with("prometheusrules") && request.verb == "patch").count();
    let right = own.filter(|request| request.resource.starts_with("networkpolicies")).count();
    assert!((2..=5).contains(&schema) && (2..=5).contains(&right), "{schema} {right}");
}
