//! A document that administrators edit while the operator keeps one key in it.

use crate::operator::{Running, eventually, quiet};
use kube::api::{Api, DynamicObject, PostParams};
use playground::audit::Kind;
use playground::{Scene, deployment};
use serde_json::json;

const PACK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/packs/documents");
const ROLE: &str = include_str!("../packs/documents.role.yaml");
const NAME: &str = "cluster-monitoring-config";
const OURS: &str = "nodeExporter:\n  collectors:\n    ksmd:\n      enabled: true\n";

async fn text(maps: &Api<DynamicObject>) -> String {
    maps.get(NAME).await.unwrap().data["data"]["config.yaml"].as_str().unwrap().to_owned()
}

/// Edits the document as `kubectl edit` does: what was read is changed and written, unless somebody was faster.
async fn edit(maps: &Api<DynamicObject>, change: impl Fn(&str) -> String) {
    loop {
        let mut map = maps.get(NAME).await.unwrap();
        let before = map.data["data"]["config.yaml"].as_str().unwrap().to_owned();
        map.data["data"]["config.yaml"] = json!(change(&before));
        match maps
            .replace(NAME, &PostParams { field_manager: Some("admin".into()), ..PostParams::default() }, &map)
            .await
        {
            Ok(_) => return,
            Err(kube::Error::Api(status)) if status.code == 409 => {}
            Err(error) => panic!("{error}"),
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn edits_of_a_shared_document_are_never_lost_and_only_our_key_is_kept() {
    let mut running = Running::on(Scene::preset("small").unwrap(), ROLE, &["--assets-dir", PACK]).await;
    let maps = deployment::objects(&running.playground, "v1", "ConfigMap", Some("openshift-monitoring"));
    let theirs = "# ours, do not touch\nprometheusK8s:   # big\n  retention: 24h\n\n# the end\n";
    let map =
        json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": NAME}, "data": {"config.yaml": theirs}});
    maps.create(&PostParams::default(), &serde_json::from_value(map).unwrap()).await.unwrap();
    running.restart();
    eventually("our key is added", async || text(&maps).await.contains(OURS).then_some(())).await;
    let added = text(&maps).await;
    assert_eq!(added.replace(OURS, ""), theirs, "every other byte stays");
    quiet(&running).await;

    // Edits at any rate: other keys, comments, and every third takes out our key.
    let before = running.audit().mark().unwrap();
    for number in 0..24 {
        edit(&maps, |text| {
            let more = format!("key{number}: {number} # edit {number}\n{text}");
            if number % 3 == 0 { more.replace(OURS, "") } else { more }
        })
        .await;
    }
    eventually("our key is back", async || text(&maps).await.contains(OURS).then_some(())).await;
    quiet(&running).await;
    let text_after = text(&maps).await;
    let mut rest = text_after.replace(OURS, "");
    for number in 0..24 {
        let line = format!("key{number}: {number} # edit {number}\n");
        assert!(rest.contains(&line), "edit {number} is lost:\n{text_after}");
        rest = rest.replace(&line, "");
    }
    assert_eq!(rest, theirs);
    let own = running.own(&running.audit().since(before).unwrap());
    let writes = own.of(Kind::Write).count();
    assert!(writes <= 12, "{writes} writes for 8 removals of our key: {:?}", own.table());

    // A document that cannot be read is left alone and reported.
    edit(&maps, |_| "a: [\n".to_owned()).await;
    let words = "unclosed bracket";
    eventually("it is reported", async || {
        running.events("InvalidConfiguration").await.into_iter().find(|note| note.contains(words))
    })
    .await;
    quiet(&running).await;
    assert_eq!(text(&maps).await, "a: [\n");
    edit(&maps, |_| "a: []\n".to_owned()).await;
    eventually("it is edited again", async || (text(&maps).await == format!("a: []\n{OURS}")).then_some(())).await;
}
