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
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use std::io::{Read, Write};
use std::time::Duration;

/// The authority in its Secret, as guests trust it; nothing while there is none.
async fn authority(secrets: &Api<DynamicObject>) -> Option<String> {
    let secret = secrets.get_opt("virtpilot-fleet-bootstrap").await.unwrap()?;
    let text = STANDARD.decode(secret.data["data"]["ca.crt"].as_str()?).unwrap();
    Some(String::from_utf8(text).unwrap())
}

/// Whether a server with a certificate of this authority answers on this port.
async fn answers(port: u16, ca: &str) -> Option<()> {
    let mut config = Config::new(format!("https://localhost:{port}").parse().unwrap());
    config.root_cert = Some(vec![CertificateDer::from_pem_slice(ca.as_bytes()).unwrap().to_vec()]);
    let client = kube::Client::try_from(config).unwrap();
    let request = http::Request::get("/nothing").body(Vec::new()).unwrap();
    match tokio::time::timeout(Duration::from_secs(3), client.request_text(request)).await.ok()? {
        // There is nothing at this path, which only a server that is trusted can say.
        Err(kube::Error::Api(_)) => Some(()),
        _ => None,
    }
}

/// The answer to a webhook without a signature.
fn webhook(port: u16) -> Option<String> {
    let mut stream = std::net::TcpStream::connect(("127.0.0.1", port)).ok()?;
    let request = "POST /webhooks/github HTTP/1.1\r\nHost: a\r\nConnection: close\r\nContent-Length: 2\r\n\r\n{}";
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
