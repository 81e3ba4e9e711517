//! An admission webhook that never answers holds up only the objects it is asked about.

use crate::operator::{Running, edit, eventually, eventually_within};
use kube::api::{DynamicObject, PostParams};
use playground::{Scene, deployment};
use serde_json::json;
use std::fmt::Write;
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

/// More objects than the operator writes at a time.
const SLOW: usize = 12;
const QUICK: &str = "quick";
const ROLE: &str = r#"
apiVersion: v1
kind: ServiceAccount
metadata: {name: virt-platform-autopilot, namespace: openshift-cnv}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRole
metadata: {name: virt-platform-autopilot}
rules:
- {apiGroups: ["*"], resources: ["*"], verbs: [get, list, watch]}
- {apiGroups: [""], resources: [configmaps], verbs: [create, patch]}
- {apiGroups: [events.k8s.io], resources: [events], verbs: [create]}
---
apiVersion: rbac.authorization.k8s.io/v1
kind: ClusterRoleBinding
metadata: {name: virt-platform-autopilot}
roleRef: {apiGroup: rbac.authorization.k8s.io, kind: ClusterRole, name: virt-platform-autopilot}
subjects: [{kind: ServiceAccount, name: virt-platform-autopilot, namespace: openshift-cnv}]
"#;

fn slow(number: usize) -> String {
    format!("slow{number}")
}

/// A pack of ConfigMaps; the quick one is the last in the order of writes.
fn write_pack(folder: &Path) {
    let active = folder.join("active");
    std::fs::create_dir_all(&active).unwrap();
    let names: Vec<String> = (0..SLOW).map(slow).chain([QUICK.to_owned()]).collect();
    let mut catalogue = "assets:\n".to_owned();
    for (order, name) in names.iter().enumerate() {
        writeln!(catalogue, "- {{name: {name}, path: active/{name}.yaml, install: always, reconcile_order: {order}}}")
            .unwrap();
        let object = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata:\n  name: {name}\n  namespace: openshift-cnv\ndata:\n  level: \"1\"\n"
        );
        std::fs::write(active.join(format!("{name}.yaml")), object).unwrap();
    }
    writeln!(catalogue, "features: [{{name: all, description: all, assets: [{}]}}]", names.join(", ")).unwrap();
    std::fs::write(active.join("metadata.yaml"), catalogue).unwrap();
}

/// Accepts connections and never answers; returns its port and how many there were.
fn listen() -> (u16, Arc<AtomicUsize>) {
    let (listener, count) = (TcpListener::bind("127.0.0.1:0").unwrap(), Arc::<AtomicUsize>::default());
    let (port, accepted) = (listener.local_addr().unwrap().port(), count.clone());
    std::thread::spawn(move || {
        let mut open = Vec::new();
        while let Ok((stream, _)) = listener.accept() {
            open.push(stream);
            accepted.fetch_add(1, Ordering::SeqCst);
        }
    });
    (port, count)
}

#[tokio::test(flavor = "multi_thread")]
async fn writes_that_a_webhook_holds_up_keep_no_other_correction_waiting() {
    let folder = tempfile::tempdir().unwrap();
    write_pack(folder.path());
    let pack = folder.path().display().to_string();
    // As long as the webhook may take, so that no write ends by itself.
    let arguments = ["--assets-dir", &pack, "--request-timeout=30s"];
    let mut running = Running::on(Scene::preset("small").unwrap(), ROLE, &arguments).await;
    running.restart();
    let maps = running.config_maps();
    let level = async |name: &str| maps.get_opt(name).await.unwrap().map(|map| map.data["data"]["level"].clone());
    eventually("every object exists", async || {
        for number in 0..SLOW {
            level(&slow(number)).await?;
        }
        level(QUICK).await
    })
    .await;
    let (port, asked) = listen();
    let user = format!("system:serviceaccount:{}:{}", deployment::NAMESPACE, deployment::ACCOUNT);
    let condition = format!("request.userInfo.username == '{user}' && request.name.startsWith('slow')");
    let webhook = json!({
        "name": "hangs.example.com", "sideEffects": "None", "admissionReviewVersions": ["v1"], "timeoutSeconds": 30,
        "failurePolicy": "Fail", "clientConfig": {"url": format!("https://127.0.0.1:{port}/")},
        "rules": [{"apiGroups": [""], "apiVersions": ["v1"], "resources": ["configmaps"], "operations": ["*"]}],
        "matchConditions": [{"name": "only", "expression": condition}],
    });
    let (group, kind) = ("admissionregistration.k8s.io/v1", "ValidatingWebhookConfiguration");
    let object =
        json!({"apiVersion": group, "kind": kind, "metadata": {"name": "hangs.example.com"}, "webhooks": [webhook]});
    let object: DynamicObject = serde_json::from_value(object).unwrap();
    let webhooks = deployment::objects(&running.playground, group, kind, None);
    webhooks.create(&PostParams::default(), &object).await.unwrap();
    eventually("the webhook is asked", async || {
        // Until the server knows it, the edit is corrected; a second edit of an object whose correction hangs changes nothing.
        edit(&maps, &slow(0), json!({"data": {"level": "9"}})).await;
        tokio::time::sleep(Duration::from_millis(500)).await;
        (asked.load(Ordering::SeqCst) > 0).then_some(())
    })
    .await;
    for number in 1..SLOW {
        edit(&maps, &slow(number), json!({"data": {"level": "9"}})).await;
    }
    eventually("eight corrections hang", async || (asked.load(Ordering::SeqCst) >= 8).then_some(())).await;
    edit(&maps, QUICK, json!({"data": {"level": "9"}})).await;
    let begun = std::time::Instant::now();
    // The server itself gives up after ten seconds, because the connection is never established.
    eventually_within(Duration::from_secs(6), "the other object is corrected", async || {
        (level(QUICK).await? == "1").then_some(())
    })
    .await;
    println!("corrected after {} ms", begun.elapsed().as_millis());
    for number in 0..SLOW {
        assert_eq!(level(&slow(number)).await.unwrap(), "9", "the correction of slow{number} still hangs");
    }
    // Without the webhook they are corrected, too.
    webhooks.delete("hangs.example.com", &Default::default()).await.unwrap();
    eventually_within(Duration::from_secs(120), "all others are corrected", async || {
        for number in 0..SLOW {
            level(&slow(number)).await.filter(|level| level == "1")?;
        }
        Some(())
    })
    .await;
}
