//! Tests of logging in, and of what is reported.

use super::server::{Asked, Reply, Server, refused};
use super::{Proxmox, connect};
use crate::exchange::{Exchange, Status};
use crate::gate::Gate;
use crate::provider::Provider;
use crate::settings::Credentials;
use fleet::hypervisor::Failure;
use serde_json::json;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

/// A server with users: it gives tickets with growing numbers, and only the newest is valid.
async fn with_tickets(made: Arc<AtomicUsize>) -> Server {
    Server::start(move |asked: &Asked| match asked.path.as_str() {
        "/access/ticket" if asked.parameters["password"] == "hush" => {
            let number = made.fetch_add(1, Ordering::SeqCst) + 1;
            Reply::Data(json!({"ticket": format!("PVE:fleet@pve:{number}::a/b+c=="), "CSRFPreventionToken": format!("c{number}")}))
        }
        "/access/ticket" => refused(401, "authentication failure"),
        _ => {
            let number = made.load(Ordering::SeqCst);
            let cookie = asked.headers.get("cookie").map(|cookie| cookie.to_str().unwrap().to_owned());
            match cookie == Some(format!("PVEAuthCookie=PVE:fleet@pve:{number}::a/b+c==")) {
                true => Reply::Data(json!([])),
                false => refused(401, "permission denied - invalid PVE ticket"),
            }
        }
    })
    .await
}

#[tokio::test]
async fn a_token_is_sent_with_every_request() {
    let server =
        Server::start(|asked: &Asked| match asked.headers["authorization"] == "PVEAPIToken=fleet@pve!ci=hush" {
            true => Reply::Data(json!([])),
            false => refused(401, "invalid token value!"),
        })
        .await;
    assert!(connect(&server.settings()).list().await.is_ok());
    for (id, is_usable) in [("fleet@pve!ci", true), ("fleet@pve", false), ("fleet!ci", false), ("", false)] {
        let mut settings = server.settings();
        settings.credentials = Credentials::Token { id: id.into(), secret: "hush\n".into() };
        let made = Proxmox::new(&settings, Arc::new(Gate::new(1)), Arc::new(|_| {}));
        assert_eq!(made.is_ok(), is_usable, "{id}");
    }
}

#[tokio::test]
async fn a_ticket_is_used_until_it_is_refused_and_then_renewed_once() {
    let made = Arc::new(AtomicUsize::new(0));
    let server = with_tickets(made.clone()).await;
    let mut settings = server.settings();
    settings.credentials = Credentials::Password { username: "fleet@pve".into(), password: "hush".into() };
    let proxmox = connect(&settings);
    assert!(proxmox.list().await.is_ok() && proxmox.list().await.is_ok());
    assert_eq!(made.load(Ordering::SeqCst), 1);
    // Somebody logs in elsewhere: here this means that the former ticket has expired.
    made.fetch_add(1, Ordering::SeqCst);
    let both = futures::join!(proxmox.list(), proxmox.list());
    assert!(both.0.is_ok() && both.1.is_ok());
    assert_eq!(made.load(Ordering::SeqCst), 3, "one of two requests logged in");

    settings.credentials = Credentials::Password { username: "fleet@pve".into(), password: "wrong".into() };
    server.forget();
    match connect(&settings).list().await {
        Err(Failure::Configuration { message, remedy }) => {
            assert!(
                message.contains("authentication failure") && remedy.starts_with("check the user and the password"),
                "{message} {remedy}"
            );
            assert!(!message.contains("wrong"));
        }
        other => panic!("{other:?}"),
    }
    assert_eq!(server.lines(), ["POST /access/ticket"]);
}

#[tokio::test]
async fn every_request_is_reported_with_its_path_and_no_name() {
    let server = Server::start(|asked: &Asked| match asked.path.ends_with("/resources") {
        true => Reply::Data(json!([{"type": "qemu", "vmid": 105, "node": "pve1", "name": "a"}])),
        false => Reply::Lost,
    })
    .await;
    let seen: Arc<Mutex<Vec<Exchange>>> = Arc::default();
    let log = seen.clone();
    let report = Arc::new(move |exchange: &Exchange| log.lock().unwrap().push(*exchange));
    let proxmox = Proxmox::new(&server.settings(), Arc::new(Gate::new(1)), report).unwrap();
    let failed = proxmox.inspect(&fleet::hypervisor::MachineId("105".into())).await;
    assert!(matches!(failed, Err(Failure::Transient(_))), "{failed:?}");
    let seen = seen.lock().unwrap();
    let lines: Vec<_> = seen.iter().map(|seen| (seen.method, seen.path, seen.status.label())).collect();
    assert_eq!(lines, [("GET", "/cluster/resources", "2xx"), ("GET", "/nodes/{node}/qemu/{vmid}/config", "none")]);
    assert_eq!(Status::of(595), Status::ServerError);
}
