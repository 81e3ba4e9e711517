//! The debug server answers from the running core, with the predecessor's paths.

use crate::operator::{NAMESPACE, Running, eventually, http};
use serde_json::Value;

const ROLE: &str = include_str!("../packs/life.role.yaml");
const PACK: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/packs/life");

/// The status, the content type and the body of a page.
fn page(port: u16, path: &str) -> Option<(u16, String, String)> {
    let response = http(port, "GET", path)?;
    let (head, body) = response.split_once("\r\n\r\n")?;
    let content = head.lines().find_map(|line| line.strip_prefix("content-type: ")).unwrap_or_default();
    Some((head.split(' ').nth(1)?.parse().ok()?, content.to_owned(), body.to_owned()))
}

fn json(port: u16, path: &str) -> Value {
    let (code, content, body) = page(port, path).unwrap();
    assert_eq!((code, content.as_str()), (200, "application/json"), "{path}: {body}");
    serde_json::from_str(&body).unwrap()
}

fn named<'a>(list: &'a Value, asset: &str) -> &'a Value {
    list.as_array().unwrap().iter().find(|entry| entry["asset"] == asset).unwrap_or(&Value::Null)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_pages_of_the_predecessor_show_what_the_core_knows() {
    let mut running = Running::with_pack(ROLE, &["--assets-dir", PACK]).await;
    let kubeconfig = running.kubeconfig().to_owned();
    let port = running.restart_served(&kubeconfig, &[]).debug;
    eventually("something is rendered", async || page(port, "/debug/render").filter(|(code, ..)| *code == 200)).await;
    assert_eq!(page(port, "/debug/health").unwrap().2, "OK");
    let rendered = json(port, "/debug/render?format=json");
    let settings = named(&rendered, "life-settings");
    assert_eq!((&settings["status"], &settings["object"]["kind"]), (&"INCLUDED".into(), &"ConfigMap".into()));
    assert_eq!(*named(&rendered, "life-extra"), Value::Null, "it is excluded");
    let all = json(port, "/debug/render?show-excluded=true&format=json");
    assert_eq!(named(&all, "life-extra")["status"], "EXCLUDED");
    let (_, content, yaml) = page(port, "/debug/render/life-settings").unwrap();
    assert_eq!(content, "application/x-yaml");
    assert!(yaml.starts_with("# Asset: life-settings\n# Path: ") && yaml.ends_with("---\n"), "{yaml}");
    let excluded = json(port, "/debug/exclusions?format=json");
    assert!(named(&excluded, "life-extra")["reason"].as_str().unwrap().contains("enable-extra"), "{excluded}");
    let tombstones = json(port, "/debug/tombstones?format=json");
    assert!(tombstones.as_array().unwrap().iter().all(|entry| entry["path"].is_string()), "{tombstones}");
    assert_eq!(json(port, "/debug/features?format=json")["features"][0]["name"], "life");
    // It follows what the core knows.
    let rule = "- {kind: ConfigMap, name: life-settings}";
    running.annotate_hco("disabled-resources", Some(rule)).await;
    let filtered = eventually("the exclusion is shown", async || {
        let excluded = json(port, "/debug/exclusions?format=json");
        Some(named(&excluded, "life-settings").clone()).filter(|entry| !entry.is_null())
    })
    .await;
    assert_eq!(filtered["details"]["annotation"], "platform.kubevirt.io/disabled-resources");
    assert_eq!(filtered["details"]["resource"], format!("ConfigMap {NAMESPACE}/life-settings"));
    for (path, code) in [
        ("/debug/render?format=xml", 400),
        ("/debug/render/", 400),
        ("/debug/render/missing", 404),
        ("/debug/else", 404),
    ] {
        assert_eq!(page(port, path).unwrap().0, code, "{path}");
    }
    let posted = http(port, "POST", "/debug/health").unwrap();
    assert!(posted.starts_with("HTTP/1.0 405") && posted.contains("allow: GET"), "{posted}");
}
