//! The real guest at the real endpoint: it gets its credentials once, and whoever has stolen its token gets nothing.

use super::rig::{Counted, connect, exchange, listener, status};
use crate::fleet::border::{Border, Endpoint as Served};
use crate::fleet::servers::OF_BOOTSTRAP;
use crate::fleet::servers::authority::certificates::{authority, leaf};
use crate::fleet::servers::bootstrap::Endpoint;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bootstrap::{
    Attestation, Claim, Config, END_PATH, EXCHANGE_PATH, End, EndReason, Exchange, Limits, MAX_REQUEST, REPORT_PATH,
    Runner, Secret, Source,
};
use fleet::bootstrap::{Notice, Offer};
use fleet::inbox::Received;
use jiff::{SignedDuration, Timestamp};
use runtime::Clock;
use runtime::bounded::{Tls, serve};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use std::net::SocketAddr;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tempfile::TempDir;
use tokio_rustls::TlsConnector;

const JIT: &str = "canary-jit-0123456789";

/// An endpoint, and a core that offers credentials to each guest that has proved who it is.
struct Scene {
    address: SocketAddr,
    ca: String,
    border: Arc<Border>,
    counted: Counted,
    notices: Arc<Mutex<Vec<Notice>>>,
    folder: TempDir,
}

fn claim(uid: &str) -> Claim {
    Claim { namespace: "ci".into(), name: "linux-1".into(), uid: uid.into() }
}

async fn scene() -> Scene {
    let (border, counted, (listener, address)) = (Border::new(), Counted::default(), listener().await);
    let now = Timestamp::now();
    let made = authority(now).unwrap();
    let acceptor = leaf(&made, "127.0.0.1", now).unwrap().acceptor;
    border.serve_at(Served { address: format!("https://{address}"), ca: made.certificate.clone() });
    let service = Arc::new(Endpoint::new(border.clone(), None, Clock::start(), counted.count()));
    tokio::spawn(serve(listener, move || Tls::With(acceptor.clone()), OF_BOOTSTRAP, service));
    let folder = tempfile::tempdir().unwrap();
    let (notices, runner) = (Arc::new(Mutex::new(Vec::new())), folder.path().join("runner"));
    std::fs::create_dir(&runner).unwrap();
    tokio::spawn(core(border.clone(), notices.clone(), runner));
    Scene { address, ca: made.certificate, border, counted, notices, folder }
}

/// What the core does with what guests say.
async fn core(border: Arc<Border>, notices: Arc<Mutex<Vec<Notice>>>, runner: PathBuf) {
    loop {
        for received in border.receive().await {
            let Received::Guest(notice) = received else { panic!("no webhook was sent") };
            if let Notice::Attested(claim) = &notice {
                border.offer(&claim.uid, offer(&runner));
            }
            notices.lock().unwrap().push(notice);
        }
    }
}

fn offer(runner: &std::path::Path) -> Offer {
    let file = |text: &str| STANDARD.encode(text);
    let files = serde_json::json!({
        ".runner": file("{\"agentName\": \"linux-1\"}"), ".credentials": file(&format!("{{\"data\": [\"{JIT}\"]}}")),
        ".credentials_rsaparams": file("{\"exponent\": \"AQAB\"}"),
    });
    Offer {
        jit_config: Secret::new(STANDARD.encode(files.to_string())),
        expires: Timestamp::now() + SignedDuration::from_hours(1),
        runner: Runner {
            source: Source::Installed { folder: runner.display().to_string() },
            user: None,
            remove_credentials_at_job_start: false,
        },
    }
}

/// Beside this test program, where `cargo build` puts it.
fn guest_program() -> PathBuf {
    let program = std::env::current_exe().unwrap();
    let found = program.ancestors().map(|folder| folder.join("virtpilot-guest")).find(|path| path.is_file());
    found.unwrap_or_else(|| panic!("there is no virtpilot-guest above {}: cargo build --workspace", program.display()))
}

impl Scene {
    fn mint(&self, uid: &str, byte: u8, life: u64) -> Secret {
        self.border.mint(claim(uid), [byte; 32], Duration::from_secs(life), Timestamp::now()).unwrap().0
    }

    /// Starts a guest with this token, whose runner does this.
    fn guest(&self, token: &Secret, script: &str) -> Child {
        let path = |name: &str| self.folder.path().join(name);
        let program = |name: &str, text: String| {
            std::fs::write(path(name), text).unwrap();
            std::fs::set_permissions(path(name), std::fs::Permissions::from_mode(0o755)).unwrap();
        };
        program("runner/run.sh", format!("#!/bin/sh\n{script}"));
        program("power-off", format!("#!/bin/sh\necho off >> {}\n", path("power").display()));
        let served = self.border.endpoint().unwrap();
        let config = Config {
            operator: served.address,
            ca: served.ca,
            claim: claim("u"),
            attestation: Attestation::Token { token: token.clone() },
            limits: Limits { heartbeat_seconds: 1, stop_seconds: 2, end_seconds: 5, ..Limits::default() },
            copies: Vec::new(),
        };
        std::fs::write(path("guest.json"), serde_json::to_string(&config).unwrap()).unwrap();
        let mut command = Command::new(guest_program());
        for (flag, name) in [("--config", "guest.json"), ("--folder", "work"), ("--power-off-program", "power-off")] {
            command.arg(flag).arg(path(name));
        }
        let memory = tempfile::tempdir_in("/dev/shm").unwrap().keep();
        command.arg("--memory").arg(memory.join("secrets")).stdin(Stdio::null());
        let log = std::fs::File::create(path("log")).unwrap();
        command.stdout(log.try_clone().unwrap()).stderr(log).spawn().unwrap()
    }

    /// Waits until the guest has ended; returns what it logged.
    async fn ended(&self, mut guest: Child) -> String {
        let log = || std::fs::read_to_string(self.folder.path().join("log")).unwrap();
        let waited = tokio::task::spawn_blocking(move || guest.wait());
        tokio::time::timeout(Duration::from_secs(90), waited)
            .await
            .unwrap_or_else(|_| panic!("{}", log()))
            .unwrap()
            .unwrap();
        let power = std::fs::read_to_string(self.folder.path().join("power"));
        assert_eq!(power.unwrap_or_default().lines().count(), 1, "{}", log());
        log()
    }

    /// A request of a stranger over TLS, as it is.
    async fn raw(&self, request: &str) -> String {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.ca.as_bytes()).unwrap()).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let connector = TlsConnector::from(Arc::new(config.with_root_certificates(roots).with_no_client_auth()));
        let name = ServerName::try_from("127.0.0.1").unwrap();
        exchange(connector.connect(name, connect(self.address).await).await.unwrap(), request.as_bytes()).await
    }

    async fn post(&self, path: &str, bearer: &str, body: &str) -> (u16, String) {
        let answer = self
            .raw(&format!(
                "POST {path} HTTP/1.1\r\nHost: a\r\nConnection: close\r\nAuthorization: Bearer {bearer}\r\nContent-Length: {}\r\n\r\n{body}",
                body.len()
            ))
            .await;
        (status(&answer), answer)
    }

    /// What a thief with this token gets for this claim.
    async fn stolen(&self, uid: &str, token: &Secret, nonce: char) -> (u16, String) {
        let attestation = Attestation::Token { token: token.clone() };
        let nonce = Secret::new(nonce.to_string().repeat(32));
        let request = Exchange { claim: claim(uid), attestation, nonce, version: String::new() };
        self.post(EXCHANGE_PATH, "", &serde_json::to_string(&request).unwrap()).await
    }

    fn notices(&self) -> Vec<Notice> {
        self.notices.lock().unwrap().clone()
    }
}

const JOB: &str = "grep -q canary-jit .credentials || exit 9\necho '2026-11-18 16:00:00Z: Running job: build'\n\
    while [ ! -e go ]; do sleep 0.05; done\necho '2026-11-18 16:00:09Z: Job build completed with result: Succeeded'\n";

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_gets_its_credentials_and_a_stolen_token_is_useless_after_its_use_its_end_and_for_another_claim() {
    let scene = scene().await;
    scene.border.open();
    let token = scene.mint("u", 7, 600);
    let guest = scene.guest(&token, JOB);
    scene.counted.until("report", "accepted", 2).await;
    // After its first use, from whom has not used it.
    let (code, answer) = scene.stolen("u", &token, 'x').await;
    assert!(code == 403 && answer.contains("Used") && !answer.contains(JIT), "{answer}");
    // From another claim, also one that has a token of its own.
    scene.mint("other", 8, 600);
    let (code, answer) = scene.stolen("other", &token, 'x').await;
    assert!(code == 403 && answer.contains("Unknown"), "{answer}");
    // After its expiry, although nobody has used it.
    let late = scene.mint("late", 9, 0);
    let (code, answer) = scene.stolen("late", &late, 'x').await;
    assert!(code == 403 && answer.contains("Expired"), "{answer}");
    // The bootstrap token is no token for reports.
    let end = serde_json::to_string(&End {
        claim: claim("u"),
        reason: EndReason::JobCompleted,
        step: bootstrap::Step::Job,
        message: String::new(),
        ran_job: true,
        exit_code: None,
        log: String::new(),
    });
    let (code, answer) = scene.post(END_PATH, token.expose(), &end.unwrap()).await;
    assert!(code == 403 && answer.contains("Unknown"), "{answer}");
    std::fs::write(scene.folder.path().join("runner/go"), "").unwrap();
    let log = scene.ended(guest).await;
    let notices = scene.notices();
    assert!(notices.contains(&Notice::TokenReused(claim("u"))), "{notices:?}");
    let ends: Vec<&End> =
        notices.iter().filter_map(|notice| if let Notice::Ended(end) = notice { Some(&**end) } else { None }).collect();
    assert!(matches!(ends[..], [End { reason: EndReason::JobCompleted, ran_job: true, .. }]), "{ends:?}\n{log}");
    let granted = notices.iter().filter(|notice| matches!(notice, Notice::Granted(_))).count();
    assert_eq!((granted, scene.counted.of("exchange", "granted"), scene.counted.of("end", "accepted")), (1, 1, 1));
    for secret in [token.expose(), JIT] {
        assert!(!log.contains(secret) && !format!("{notices:?}").contains(secret));
    }
    let (code, answer) = scene.stolen("u", &token, 'x').await;
    assert!(code == 410 && answer.contains("Ended"), "{answer}");
}

#[tokio::test(flavor = "multi_thread")]
async fn a_guest_asks_again_until_a_replica_leads() {
    let scene = scene().await;
    let token = scene.mint("u", 7, 600);
    let guest = scene.guest(&token, &JOB.replace("while [ ! -e go ]; do sleep 0.05; done\n", ""));
    scene.counted.until("exchange", "not_leading", 2).await;
    assert!(scene.notices().is_empty(), "a replica that does not lead notes nothing");
    scene.border.open();
    let log = scene.ended(guest).await;
    // A report that was on its way is refused afterwards.
    let has_ended = scene.notices().iter().any(|notice| matches!(notice, Notice::Ended(end) if end.ran_job));
    assert!(has_ended, "{log}");
}

/// Many machines are behind one address, or come through another replica.
#[tokio::test(flavor = "multi_thread")]
async fn the_requests_of_guests_are_not_limited_by_address_and_those_of_strangers_are() {
    let scene = scene().await;
    scene.border.open();
    for number in 0..20 {
        let uid = format!("u-{number}");
        let token = scene.mint(&uid, number, 600);
        for _ in 0..20 {
            assert_ne!(scene.stolen(&uid, &token, 'x').await.0, 429);
        }
    }
    let token = scene.mint("u", 70, 600);
    let mut codes = std::collections::BTreeSet::new();
    for _ in 0..400 {
        codes.insert(scene.post("/bootstrap/v1/other", "", "").await.0);
    }
    assert_eq!(codes, [404, 429].into(), "what no guest sends is limited");
    assert_ne!(scene.stolen("u", &token, 'x').await.0, 429, "and keeps no guest out");
    // A job may be as powerful as its guest.
    let mut codes = std::collections::BTreeSet::new();
    for _ in 0..400 {
        codes.insert(scene.stolen("u", &token, 'x').await.0);
    }
    assert!(codes.contains(&429), "one guest is limited: {codes:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn who_guesses_or_sends_what_is_no_message_is_refused_and_keeps_no_guest_out() {
    let scene = scene().await;
    scene.border.open();
    let (token, wrong) = (scene.mint("u", 7, 600), Secret::new("vpb1_wrong".to_owned()));
    for (path, body, expected) in [
        (EXCHANGE_PATH, "{}".to_owned(), 400),
        (REPORT_PATH, "[".repeat(MAX_REQUEST), 400),
        (END_PATH, "x".repeat(MAX_REQUEST + 1), 413),
        ("/bootstrap/v1/other", String::new(), 404),
    ] {
        let (code, answer) = scene.post(path, "canary-bearer", &body).await;
        assert!(code == expected && !answer.contains("canary"), "{path}: {answer}");
    }
    assert_eq!(status(&scene.raw(&format!("GET {EXCHANGE_PATH} HTTP/1.1\r\nHost: a\r\n\r\n")).await), 405);
    let mut codes = Vec::new();
    for _ in 0..12 {
        codes.push(scene.stolen("u", &wrong, 'x').await.0);
    }
    assert_eq!(codes, [[403; 10].as_slice(), &[429; 2]].concat());
    // The others at the same address, and this machine once the pause is over: a guest asks again.
    scene.mint("other", 8, 600);
    assert_eq!(scene.stolen("other", &wrong, 'x').await.0, 403);
    let guest = scene.guest(&token, &JOB.replace("while [ ! -e go ]; do sleep 0.05; done\n", ""));
    let log = scene.ended(guest).await;
    // A report that was on its way is refused afterwards.
    let has_ended = scene.notices().iter().any(|notice| matches!(notice, Notice::Ended(end) if end.ran_job));
    assert!(has_ended, "{log}");
    // Without TLS there is no answer.
    let plain = exchange(connect(scene.address).await, b"GET / HTTP/1.1\r\nHost: a\r\n\r\n").await;
    assert!(!plain.contains("HTTP/1.1"), "{plain}");
    assert!(scene.counted.of("connection", "no_tls") >= 1);
}

#[test]
fn a_certificate_of_each_authority_is_for_its_host_and_renewed_in_time() {
    let now = Timestamp::now();
    let (one, other) = (authority(now).unwrap(), authority(now + SignedDuration::from_hours(1)).unwrap());
    let made = leaf(&one, "fleet.example.com", now).unwrap();
    let in_days = |days: i64| now + SignedDuration::from_hours(24 * days);
    assert!(made.is_of(&one, now) && made.is_of(&one, in_days(19)));
    assert!(!made.is_of(&one, in_days(21)) && !made.is_of(&other, now) && !made.is_of(&one, in_days(-1)));
}
