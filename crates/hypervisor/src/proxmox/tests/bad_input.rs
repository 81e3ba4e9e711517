//! Everything that a person can get wrong, or that can be broken: one clear failure each, with a remedy where somebody has to act.

use super::server::{Asked, Reply, Server, refused};
use super::{blueprint, connect, fake, once, set, target};
use crate::provider::Provider;
use crate::settings::{Settings, Tls};
use fleet::hypervisor::{Failure, TemplateRef};
use jiff::{SignedDuration, Timestamp};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use serde_json::json;
use sha2::{Digest, Sha256};
use std::sync::Arc;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::crypto::ring;
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};

/// What is wrong, and what to do about it if a person has to do something.
fn said(failure: &Failure) -> String {
    match failure {
        Failure::Configuration { message, remedy } => format!("configuration: {message} -> {remedy}"),
        Failure::Transient(message) => format!("transient: {message}"),
        Failure::NoQuorum(message) => format!("no quorum: {message}"),
        Failure::Resource { message, remedy } => format!("resource: {message} -> {remedy}"),
        other => format!("{other:?}"),
    }
}

fn check_said(what: &str, failure: &Failure, expected: [&str; 3]) {
    let text = said(failure);
    assert!(text.starts_with(expected[0]), "{what}: {text}");
    assert!(expected[1..].iter().all(|part| text.contains(part)), "{what}: {text}");
}

#[tokio::test]
async fn every_refusal_of_the_server_is_one_clear_failure() {
    let cases: [(&str, u16, &str, [&str; 3]); 6] = [
        (
            "wrong token",
            401,
            "invalid token value!",
            ["configuration: logging in", "invalid token value!", "check the id and the secret"],
        ),
        ("quorum lost", 500, "cluster not ready - no quorum?", ["no quorum:", "cluster not ready", ""]),
        ("node down", 595, "No route to host", ["transient:", "No route to host", "bring the node back"]),
        ("gateway", 502, "Bad Gateway", ["transient:", "502", ""]),
        ("a redirect", 301, "Moved Permanently", ["configuration:", "Moved", "use the address of the API"]),
        (
            "no privilege",
            403,
            "Permission check failed (/, Sys.Audit)",
            ["configuration:", "Permission", "grant Sys.Audit on /,"],
        ),
    ];
    for (what, code, reason, expected) in cases {
        let server = Server::start(move |_: &Asked| refused(code, reason)).await;
        let failure = connect(&server.settings()).check().await.unwrap_err();
        check_said(what, &failure, expected);
    }
    let server = Server::start(|_: &Asked| Reply::Data(json!("hello"))).await;
    check_said(
        "another server",
        &connect(&server.settings()).list().await.unwrap_err(),
        ["configuration:", "is not that of Proxmox VE", "address"],
    );
}

#[tokio::test]
async fn what_a_machine_needs_and_is_not_there_is_named() {
    let (_server, state, proxmox) = fake().await;
    let missing = proxmox.find_template(&TemplateRef::Name("fedora".into())).await.unwrap_err();
    check_said(
        "unknown template",
        &missing,
        ["configuration:", "no template with the name fedora", "name a template that exists"],
    );
    once(&state, "POST /nodes/pve1/qemu/9000/clone", |_| {
        Some(refused(403, "Permission check failed (/vms/9000, VM.Clone)"))
    });
    let privilege = proxmox.create(&blueprint()).await.unwrap_err();
    check_said(
        "missing privilege",
        &privilege,
        ["configuration: cloning template 9000 to machine 105", "VM.Clone", "grant VM.Clone on /vms/9000"],
    );
    proxmox.create(&blueprint()).await.unwrap();
    for (exit, expected) in [
        (
            "start failed: bridge 'vmbr9' does not exist",
            ["configuration: starting machine 105", "vmbr9", "create the bridge"],
        ),
        (
            "start failed: Cannot allocate memory",
            ["resource: starting machine 105", "memory", "end machines on the node"],
        ),
        ("no space left on device", ["resource: starting machine 105", "space", "free space on the storage"]),
    ] {
        set(&state, |state| {
            (state.exit, state.machines.get_mut("105").unwrap().is_running) = (Some(exit.into()), false);
        });
        check_said(exit, &proxmox.start(&target("u-1")).await.unwrap_err(), expected);
    }
    once(&state, "GET /nodes/pve1/qemu/105/config", |_| Some(refused(596, "Connection timed out")));
    set(&state, |state| state.exit = None);
    assert_eq!(proxmox.stop(&target("u-1")).await, Ok(()), "it is found in the list and asked again");
}

/// A server with another clock, and what is there.
async fn to_check(ahead: i64, code: u16) -> Server {
    Server::start(move |asked: &Asked| {
        let date = Timestamp::now() + SignedDuration::from_secs(ahead);
        let date = jiff::fmt::rfc2822::DateTimePrinter::new().timestamp_to_rfc9110_string(&date).unwrap();
        let reply = match asked.path.as_str() {
            _ if code != 200 => refused(code, "permission denied - invalid PVE ticket"),
            "/pools" => Reply::Data(json!([{"poolid": "other"}])),
            "/version" => Reply::Data(json!({"version": "9.1.2", "release": "9.1"})),
            "/access/permissions" => {
                Reply::Data(json!({"/vms": {"VM.Audit": 1, "VM.Clone": "1"}, "/storage": {"Datastore.Audit": 0}}))
            }
            "/cluster/status" => {
                Reply::Data(json!([{"type": "cluster", "quorate": 0}, {"type": "node", "name": "pve1"}]))
            }
            "/cluster/resources" if asked.parameters["type"] == "node" => {
                Reply::Data(json!([{"type": "node", "node": "pve1", "status": "online"}]))
            }
            "/cluster/resources" => Reply::Data(json!([{"type": "storage", "storage": "fast", "node": "pve1"}])),
            "/nodes/pve1/network" => {
                Reply::Data(json!([{"iface": "vmbr0", "type": "bridge"}, {"iface": "eth0", "type": "eth"}]))
            }
            _ => refused(501, "not implemented"),
        };
        Reply::With("date", date, Box::new(reply))
    })
    .await
}

#[tokio::test]
async fn a_check_names_everything_that_is_missing_and_the_difference_of_clocks() {
    let server = to_check(-300, 200).await;
    let mut settings = server.settings();
    let names = |names: &[&str]| names.iter().map(|name| (*name).to_owned()).collect();
    settings.scope.nodes = names(&["pve1", "pve9"]);
    settings.scope.storages = names(&["fast", "slow"]);
    let bridge = |name: &str| fleet::hypervisor::Network { bridge: name.into(), vlan: None };
    settings.scope.networks = ["vmbr0", "eth0"].map(bridge).into();
    settings.scope.pools = names(&["ci"]);
    let checked = connect(&settings).check().await.unwrap();
    assert_eq!(checked.version, "9.1.2");
    assert_eq!(checked.unknown, ["node pve9", "storage slow", "pool ci", "bridge eth0 on node pve1"]);
    assert!(!checked.is_quorate && (-302..=-298).contains(&checked.clock_ahead), "{checked:?}");
    assert!(checked.missing.contains(&"VM.Allocate on /pool/ci or /vms".to_owned()), "{:?}", checked.missing);
    assert!(!checked.missing.iter().any(|missing| missing.starts_with("VM.Clone")), "{:?}", checked.missing);

    let skewed = to_check(8000, 401).await;
    let failure = connect(&skewed.settings()).check().await.unwrap_err();
    check_said("clock skew", &failure, ["configuration:", "s ahead of ours", "synchronize the clocks"]);
}

struct Certificates {
    ca: String,
    acceptor: TlsAcceptor,
    fingerprint: String,
}

/// A server certificate of a new authority, valid until this number of days from now.
fn certificates(days: i64) -> Certificates {
    let ca_key = KeyPair::generate().unwrap();
    let mut ca = CertificateParams::new(Vec::new()).unwrap();
    ca.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    let ca_certificate = ca.self_signed(&ca_key).unwrap();
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
    if days < 0 {
        params.not_after = rcgen::date_time_ymd(2020, 1, 1);
    }
    let certificate = params.signed_by(&key, &Issuer::new(ca, ca_key)).unwrap();
    let digest = Sha256::digest(certificate.der());
    let fingerprint = digest.iter().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().join(":");
    let chain = vec![CertificateDer::from(certificate.der().to_vec())];
    let key = PrivateKeyDer::try_from(key.serialize_der()).unwrap();
    let config = ServerConfig::builder_with_provider(Arc::new(ring::default_provider()))
        .with_safe_default_protocol_versions()
        .unwrap()
        .with_no_client_auth()
        .with_single_cert(chain, key)
        .unwrap();
    Certificates { ca: ca_certificate.pem(), acceptor: TlsAcceptor::from(Arc::new(config)), fingerprint }
}

#[tokio::test]
async fn certificates_are_checked_by_authority_or_fingerprint() {
    let (good, other, expired) = (certificates(1), certificates(1), certificates(-1));
    let empty = |_: &Asked| Reply::Data(json!([]));
    let server = Server::start_tls(good.acceptor.clone(), empty).await;
    let old = Server::start_tls(expired.acceptor.clone(), empty).await;
    let plain = Server::start(empty).await;
    let with = |server: &Server, tls: Tls| Settings { tls, ..server.settings() };
    for tls in [Tls::Authorities(good.ca.clone()), Tls::Fingerprint(good.fingerprint.clone()), Tls::SkipVerify] {
        let listed = connect(&with(&server, tls.clone())).list().await;
        assert!(listed.is_ok(), "{tls:?}: {listed:?}");
    }
    let mut elsewhere = with(&server, Tls::Authorities(good.ca.clone()));
    elsewhere.endpoint = elsewhere.endpoint.replace("localhost", "127.0.0.1");
    let mut spoken = with(&plain, Tls::SkipVerify);
    spoken.endpoint = spoken.endpoint.replace("http://", "https://");
    let cases = [
        (
            "wrong CA",
            with(&server, Tls::Authorities(other.ca)),
            ["configuration:", "not signed by the given CA", "pve-root-ca.pem"],
        ),
        ("system's CAs", with(&server, Tls::System), ["configuration:", "", "give the CA"]),
        (
            "wrong fingerprint",
            with(&server, Tls::Fingerprint(other.fingerprint)),
            ["configuration:", &good.fingerprint, "new fingerprint"],
        ),
        (
            "expired, or wrong clock",
            with(&old, Tls::Authorities(expired.ca)),
            ["configuration:", "is not valid now", "set the clocks"],
        ),
        (
            "wrong name",
            elsewhere,
            ["configuration:", "for another name", "use an endpoint with a name of the certificate"],
        ),
        ("no TLS", spoken, ["configuration:", "does not speak TLS", "port 8006"]),
    ];
    for (what, settings, expected) in cases {
        let failure = match super::Proxmox::new(&settings, Arc::new(crate::gate::Gate::new(1)), Arc::new(|_| {})) {
            Ok(proxmox) => proxmox.list().await.unwrap_err(),
            Err(failure) => failure,
        };
        check_said(what, &failure, expected);
    }
    let mut clear = plain.settings();
    clear.allows_http = false;
    let failure = super::Proxmox::new(&clear, Arc::new(crate::gate::Gate::new(1)), Arc::new(|_| {})).err().unwrap();
    check_said("clear text", &failure, ["configuration:", "clear text", "https://"]);
}
