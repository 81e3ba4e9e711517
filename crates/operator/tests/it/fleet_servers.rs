//! The fleet's servers with the rights of its own role: the authority of the bootstrap endpoint is made once, and every replica serves by it.

use crate::fleet::Fleet;
use crate::operator::{eventually, eventually_within, free_port};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use kube::api::{Api, DeleteParams, DynamicObject};
use kube::config::Config;
use playground::deployment::objects;
use playground::fleet_site::HOME;
use playground::proxmox::Timing;
use ring::hmac;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use serde_json::json;
use std::io::{Read, Write};
use std::time::Duration;

const SECRET: &str = "it is a secret to everybody";

/// The authority in its Secret, as guests trust it; nothing while there is none.
async fn authority(secrets: &Api<DynamicObject>) -> Option<String> {
    let secret = secrets.get_opt("virtpilot-fleet-bootstrap").await.unwrap()?;
    let text = STANDARD.decode(secret.data["data"]["ca.crt"].as_str()?).unwrap();
    Some(String::from_utf8(text).unwrap())
}

/// A client that trusts this authority only.
fn client(port: u16, ca: &str) -> kube::Client {
    let mut config = Config::new(format!("https://localhost:{port}").parse().unwrap());
    config.root_cert = Some(vec![CertificateDer::from_pem_slice(ca.as_bytes()).unwrap().to_vec()]);
    kube::Client::try_from(config).unwrap()
}

/// The status of the answer to a guest whose token nobody knows: only a replica that leads can say so.
async fn guest(port: u16, ca: &str) -> Option<u16> {
    let claim = json!({"namespace": "ci", "name": "linux-1", "uid": "u"});
    let attestation = json!({"method": "token", "token": "vpb1_unknown"});
    let body = json!({"claim": claim, "attestation": attestation, "nonce": "n".repeat(32), "version": ""}).to_string();
    let request = http::Request::post("/bootstrap/v1/exchange").body(body.into_bytes().into()).unwrap();
    let client = client(port, ca);
    Some(tokio::time::timeout(Duration::from_secs(3), client.send(request)).await.ok()?.ok()?.status().as_u16())
}

/// Whether a server with a certificate of this authority answers on this port.
async fn answers(port: u16, ca: &str) -> Option<()> {
    let client = client(port, ca);
    let request = http::Request::get("/nothing").body(Vec::new()).unwrap();
    match tokio::time::timeout(Duration::from_secs(3), client.request_text(request)).await.ok()? {
        // There is nothing at this path, which only a server that is trusted can say.
        Err(kube::Error::Api(_)) => Some(()),
        _ => None,
    }
}

/// The answer to a webhook without a signature.
fn webhook(port: u16) -> Option<String> {
    send(port, "", "{}")
}

/// The answer to a webhook about a job, signed with the secret of the pool.
fn signed(port: u16, id: u64) -> Option<String> {
    let now = jiff::Timestamp::now().to_string();
    let job = json!({
        "id": id, "run_id": 7, "run_attempt": 1, "status": "queued", "name": "build", "created_at": now, "started_at": now,
        "labels": ["self-hosted"],
    });
    let body = json!({"action": "queued", "workflow_job": job, "repository": {"full_name": "acme/shop"}}).to_string();
    let code = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes()), body.as_bytes());
    let digits: String = code.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let headers =
        format!("X-GitHub-Event: workflow_job\r\nX-GitHub-Delivery: {id}\r\nX-Hub-Signature-256: sha256={digits}\r\n");
    send(port, &headers, &body)
}

fn send(port: u16, headers: &str, body: &str) -> Option<String> {
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).ok()?;
    let length = body.len();
    let request = format!(
        "POST /webhooks/github HTTP/1.1\r\nHost: a\r\nConnection: close\r\n{headers}Content-Length: {length}\r\n\r\n{body}"
    );
    stream.write_all(request.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    Some(answer)
}

#[tokio::test(flavor = "multi_thread")]
async fn the_authority_is_made_once_and_survives_restarts_and_the_deletion_of_its_secret() {
    let fleet = Fleet::install(Timing::short(), "").await;
    let secrets = objects(&fleet.playground, "v1", "Secret", Some(HOME));
    let [first, second, webhooks, standby] = [(); 4].map(|()| free_port());
    let leader = fleet.replica_that_serves("virtpilot-fleet-0", first, webhooks);
    let ca = eventually("there is an authority", async || authority(&secrets).await).await;
    eventually("the endpoint has a certificate of it", async || answers(first, &ca).await).await;

    // A replica on standby has a certificate of the same authority, and refuses webhooks so that they are delivered again.
    let other = fleet.replica_that_serves("virtpilot-fleet-1", second, standby);
    eventually("the other one, too", async || answers(second, &ca).await).await;
    let answer = eventually("it receives webhooks", async || webhook(standby)).await;
    assert!(answer.starts_with("HTTP/1.1 503") && answer.contains("does not lead"), "{answer}");

    // Machines that were created before trust nothing else.
    secrets.delete("virtpilot-fleet-bootstrap", &DeleteParams::default()).await.unwrap();
    let again = eventually_within(Duration::from_secs(60), "the Secret is back", async || authority(&secrets).await);
    assert_eq!(again.await, ca);
    drop((leader, other));
    let restarted = free_port();
    let _process = fleet.replica_that_serves("virtpilot-fleet-0", restarted, free_port());
    eventually("a new process uses the same one", async || answers(restarted, &ca).await).await;
    assert_eq!(authority(&secrets).await, Some(ca));
    assert_eq!(fleet.denied(), Vec::<String>::new());
    assert!(!fleet.shown().await.contains("PRIVATE KEY"), "a key is shown");
}

/// A Service sends to any replica, and GitHub delivers once only.
#[tokio::test(flavor = "multi_thread")]
async fn a_replica_on_standby_passes_webhooks_and_guests_on_to_the_leader() {
    let fleet = Fleet::install(Timing::short(), "ci/github").await;
    fleet.secret("github", json!({"token": "ghp_nobody", "secret": SECRET})).await;
    let key = |key: &str| json!({"name": "github", "key": key});
    let github = json!({
        "server": "https://127.0.0.1:9", "organization": "acme", "labels": ["self-hosted"],
        "credentials": {"token": key("token")}, "webhookSecrets": [key("secret")],
    });
    let workload = json!({"type": "github-actions", "config": {"github": github}});
    let spec = json!({"templateRef": {"name": "linux"}, "scaling": {"maxReplicas": 1}, "workload": workload});
    fleet.apply("RunnerPool", "linux", spec).await;
    let secrets = objects(&fleet.playground, "v1", "Secret", Some(HOME));
    let [first, second, webhooks, standby] = [(); 4].map(|()| free_port());
    let leader = fleet.replica_that_serves("virtpilot-fleet-0", first, webhooks);
    let ca = eventually("the first one leads", async || authority(&secrets).await).await;
    let _other = fleet.replica_that_serves("virtpilot-fleet-1", second, standby);
    let accepted = async || signed(standby, 1).filter(|answer| answer.starts_with("HTTP/1.1 202"));
    eventually("the leader takes a webhook that the other one has received", accepted).await;
    let repeated = signed(webhooks, 1).unwrap();
    assert!(repeated.contains("received before"), "it is the leader that has it: {repeated}");
    eventually("the leader answers a guest", async || guest(second, &ca).await.filter(|status| *status == 403)).await;

    // Without a leader it says so, until it leads itself.
    assert_eq!(leader.terminate(), Some(0));
    let answer = webhook(standby).unwrap();
    assert!(answer.starts_with("HTTP/1.1 503") || answer.starts_with("HTTP/1.1 401"), "{answer}");
    let accepted = async || signed(standby, 2).filter(|answer| answer.starts_with("HTTP/1.1 202"));
    eventually("it leads", accepted).await;
    assert_eq!(fleet.denied(), Vec::<String>::new());
}
