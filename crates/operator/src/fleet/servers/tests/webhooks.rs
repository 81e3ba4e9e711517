//! Hostile webhooks are refused cheaply and counted, and genuine ones arrive meanwhile.

use super::rig::{Counted, connect, exchange, listener, received, status};
use crate::fleet::border::Border;
use crate::fleet::servers::leader::Leader;
use crate::fleet::servers::webhooks::Webhooks;
use crate::fleet::servers::{OF_WEBHOOKS, WEBHOOK};
use fleet::forge::{GITLAB_WEBHOOK_PATH, Platform, WEBHOOK_PATH as PATH};
use fleet::inbox::Received;
use jiff::Timestamp;
use ring::hmac;
use runtime::bounded::{Limits, Tls, serve};
use serde_json::json;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::io::AsyncWriteExt;

const SECRET: &str = "it is a secret to everybody";

/// A receiver.
struct Scene {
    address: SocketAddr,
    border: Arc<Border>,
    counted: Counted,
}

/// A receiver of a replica that leads, with these limits of time.
async fn scene(limits: Limits, body: Duration) -> Scene {
    let (border, counted, (listener, address)) = (Border::new(), Counted::default(), listener().await);
    border.set_webhook_secrets(Platform::GitHub, "ci/linux", vec![SECRET.to_owned().into()]);
    border.open();
    let mut service = Webhooks::new(border.clone(), None, counted.count());
    service.within = body;
    tokio::spawn(serve(listener, || Tls::Off, limits, Arc::new(service)));
    Scene { address, border, counted }
}

async fn usual() -> Scene {
    scene(OF_WEBHOOKS, Duration::from_secs(8)).await
}

fn job(id: u64) -> Vec<u8> {
    let now = Timestamp::now().to_string();
    let job = json!({
        "id": id, "run_id": 7, "run_attempt": 1, "status": "queued", "name": "build", "created_at": now, "started_at": now,
        "labels": ["self-hosted"],
    });
    json!({"action": "queued", "workflow_job": job, "repository": {"full_name": "acme/shop"}}).to_string().into_bytes()
}

fn signature(body: &[u8]) -> String {
    let code = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes()), body);
    let digits: String = code.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("X-Hub-Signature-256: sha256={digits}\r\n")
}

/// The head of a webhook; one more line is given by the caller.
fn head(event: &str, id: &str, signature: &str, length: usize) -> String {
    format!(
        "POST {PATH} HTTP/1.1\r\nHost: fleet\r\nConnection: close\r\nContent-Type: application/json\r\nX-GitHub-Event: {event}\r\n\
         X-GitHub-Delivery: {id}\r\n{signature}Content-Length: {length}\r\n\r\n"
    )
}

fn signed(event: &str, id: &str, body: &[u8]) -> Vec<u8> {
    [head(event, id, &signature(body), body.len()).as_bytes(), body].concat()
}

impl Scene {
    async fn send(&self, request: &[u8]) -> String {
        exchange(connect(self.address).await, request).await
    }

    /// Asserts that a genuine webhook is accepted and arrives.
    async fn still_works(&self, id: u64) {
        let answer = self.send(&signed("workflow_job", &format!("good-{id}"), &job(id))).await;
        assert_eq!(status(&answer), 202, "{answer}");
        let arrived = received(&self.border).await;
        assert!(matches!(arrived[..], [Received::Job(_)]), "{arrived:?}");
    }
}

#[tokio::test]
async fn whatever_is_not_genuine_is_refused_with_its_reason_and_counted() {
    let scene = usual().await;
    let (good, deep) = (job(1), "[".repeat(200_000).into_bytes());
    let mut forged = signed("workflow_job", "b", &good);
    *forged.last_mut().unwrap() = b' ';
    let cases: [(&str, u16, &str, Vec<u8>); 9] = [
        ("no_signature", 401, "set a secret", [head("workflow_job", "a", "", good.len()).as_bytes(), &good].concat()),
        ("wrong_signature", 401, "none of those", forged),
        ("unreadable", 400, "application/json", signed("workflow_job", "c", &deep)),
        ("other_event", 200, "workflow_job", signed("push", "d", &good)),
        ("ping", 200, "pong", signed("ping", "e", b"{}")),
        ("wrong_path", 404, "/webhooks/github", b"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 0\r\n\r\n".to_vec()),
        ("wrong_method", 405, "POST", format!("GET {PATH} HTTP/1.1\r\nHost: a\r\n\r\n").into_bytes()),
        ("no_delivery", 400, "X-GitHub-Delivery", signed("workflow_job", "", &good)),
        ("too_old", 200, "too old", {
            let old = String::from_utf8(job(2)).unwrap().replace(&Timestamp::now().to_string()[..4], "2020");
            signed("workflow_job", "f", old.as_bytes())
        }),
    ];
    for (reason, expected, text, request) in cases {
        let answer = scene.send(&request).await;
        assert_eq!(status(&answer), expected, "{reason}: {answer}");
        assert!(answer.contains(text), "{reason}: {answer}");
        assert_eq!(scene.counted.of(WEBHOOK, reason), 1, "{reason}");
    }
    assert!(received(&scene.border).await.is_empty());
    scene.still_works(1).await;
}

#[tokio::test]
async fn a_replay_is_passed_on_once_also_with_another_id() {
    let scene = usual().await;
    scene.still_works(7).await;
    let again = signed("workflow_job", "good-7", &job(7));
    let answer = scene.send(&again).await;
    assert!(status(&answer) == 200 && answer.contains("received before"), "{answer}");
    let body = job(8);
    assert_eq!(status(&scene.send(&signed("workflow_job", "x", &body)).await), 202);
    assert_eq!(status(&scene.send(&signed("workflow_job", "y", &body)).await), 200);
    assert_eq!((received(&scene.border).await.len(), scene.counted.of(WEBHOOK, "repeated")), (1, 2));
}

#[tokio::test]
async fn a_large_body_is_refused_as_soon_as_it_is_known_to_be_large() {
    let scene = usual().await;
    // Announced: not a byte of the body is sent.
    let announced = head("workflow_job", "a", &signature(b""), 30 << 20);
    assert_eq!(status(&scene.send(announced.as_bytes()).await), 413);
    // Not announced: the answer comes while the body is being sent.
    let chunked =
        head("workflow_job", "b", &signature(b""), 0).replace("Content-Length: 0", "Transfer-Encoding: chunked");
    let (mut reader, mut writer) = connect(scene.address).await.into_split();
    writer.write_all(chunked.as_bytes()).await.unwrap();
    let chunk = [b"10000\r\n".as_slice(), &[b'x'; 0x10000], b"\r\n"].concat();
    let sending = tokio::spawn(async move {
        let mut sent = 0_usize;
        while sent < 480 && writer.write_all(&chunk).await.is_ok() {
            sent += 1;
        }
        sent
    });
    let mut answer = [0; 12];
    tokio::io::AsyncReadExt::read_exact(&mut reader, &mut answer).await.unwrap();
    assert_eq!(&answer, b"HTTP/1.1 413");
    assert!(sending.await.unwrap() < 480, "30 MB were read");
    assert_eq!(scene.counted.of(WEBHOOK, "too_large"), 2);
    scene.still_works(1).await;
}

#[tokio::test]
async fn slow_heads_and_slow_bodies_are_given_up_and_counted() {
    let short = Duration::from_millis(300);
    let scene = scene(Limits { head: short, ..OF_WEBHOOKS }, short).await;
    let body = job(1);
    // The head and half of the body.
    let whole = signed("workflow_job", "a", &body);
    let answer = scene.send(&whole[..whole.len() - body.len() / 2]).await;
    assert_eq!((status(&answer), scene.counted.of(WEBHOOK, "slow_body")), (408, 1), "{answer}");
    // Half of a head, and nothing at all.
    for (number, start) in [&whole[..40], b""].into_iter().enumerate() {
        let answer = scene.send(start).await;
        assert!(!answer.contains(" 20"), "{answer}");
        scene.counted.until(WEBHOOK, "slow_head", u64::try_from(number).unwrap() + 1).await;
    }
    scene.still_works(2).await;
}

#[tokio::test]
async fn a_replica_that_does_not_lead_and_one_that_is_behind_have_it_delivered_again() {
    let (border, counted, (listener, address)) = (Border::new(), Counted::default(), listener().await);
    border.set_webhook_secrets(Platform::GitHub, "ci/linux", vec![SECRET.to_owned().into()]);
    border.set_webhook_secrets(Platform::GitHub, "team/other", vec!["another secret".to_owned().into()]);
    let service = Arc::new(Webhooks::new(border.clone(), None, counted.count()));
    tokio::spawn(serve(listener, || Tls::Off, OF_WEBHOOKS, service));
    let scene = Scene { address, border, counted };
    let request = signed("workflow_job", "a", &job(1));
    let answer = scene.send(&request).await;
    assert!(status(&answer) == 503 && answer.contains("does not lead") && answer.contains("retry-after"), "{answer}");
    scene.border.open();
    assert_eq!(status(&scene.send(&request).await), 202, "it is no repetition");
    // As many as may wait for a core that hangs.
    let Received::Job(one) = received(&scene.border).await.remove(0) else { panic!("no job") };
    assert_eq!(one.pools.iter().map(ToString::to_string).collect::<Vec<_>>(), ["ci/linux"], "whose secret it is");
    while scene.border.observed((*one).clone()).is_ok() {}
    let request = signed("workflow_job", "b", &job(2));
    let answer = scene.send(&request).await;
    assert!(status(&answer) == 503 && scene.counted.of(WEBHOOK, "behind") == 1, "{answer}");
    received(&scene.border).await;
    assert_eq!(status(&scene.send(&request).await), 202, "it was not remembered");
}

#[tokio::test]
async fn thousands_of_idle_connections_keep_nobody_out() {
    let scene = usual().await;
    let mut idle = Vec::new();
    for number in 0..3_000 {
        let mut stream = connect(scene.address).await;
        if number % 2 == 0 {
            stream.write_all(format!("POST {PATH} HTTP/1.1\r\n").as_bytes()).await.unwrap();
        }
        idle.push(stream);
    }
    let start = Instant::now();
    scene.still_works(1).await;
    let took = start.elapsed();
    assert!(took < Duration::from_secs(4), "it waited for an idle one: {took:?}");
    scene.counted.until(WEBHOOK, "evicted", 2_000).await;
}

/// A receiver of a replica that does not lead.
async fn standby(leader: SocketAddr) -> Scene {
    let (border, counted, (listener, address)) = (Border::new(), Counted::default(), listener().await);
    let service = Arc::new(Webhooks::new(border.clone(), Some(Arc::new(Leader::at(leader))), counted.count()));
    // It has no certificate yet: what is passed on needs none.
    tokio::spawn(serve(listener, || Tls::NotYet, OF_WEBHOOKS, service));
    Scene { address, border, counted }
}

#[tokio::test]
async fn a_replica_that_does_not_lead_passes_webhooks_on_to_the_one_that_does() {
    let (border, counted) = (Border::new(), Counted::default());
    border.set_webhook_secrets(Platform::GitHub, "ci/linux", vec![SECRET.to_owned().into()]);
    border.open();
    // On another address than the client's, as another pod has it.
    let listener = tokio::net::TcpListener::bind("127.0.0.2:0").await.unwrap();
    let reached = listener.local_addr().unwrap();
    let service = Arc::new(Webhooks::new(border.clone(), None, counted.count()));
    tokio::spawn(serve(listener, || Tls::Off, OF_WEBHOOKS, service));
    let other = standby(reached).await;
    let answer = other.send(&signed("workflow_job", "a", &job(1))).await;
    assert_eq!(status(&answer), 202, "{answer}");
    assert!(matches!(received(&border).await[..], [Received::Job(_)]));
    assert_eq!((other.counted.of(WEBHOOK, "passed_on"), counted.of(WEBHOOK, "accepted")), (1, 1));
}

#[tokio::test]
async fn a_replica_that_does_not_lead_refuses_while_the_leader_does_not_answer_or_asks_itself() {
    let nobody = listener().await.1;
    for leader in [SocketAddr::from(([127, 0, 0, 2], nobody.port())), SocketAddr::from(([127, 0, 0, 1], 1))] {
        let (border, counted, (listener, address)) = (Border::new(), Counted::default(), listener().await);
        let service = Arc::new(Webhooks::new(border.clone(), Some(Arc::new(Leader::at(leader))), counted.count()));
        tokio::spawn(serve(listener, || Tls::Off, OF_WEBHOOKS, service));
        let scene = Scene { address, border, counted };
        let answer = scene.send(&signed("workflow_job", "a", &job(1))).await;
        assert!(status(&answer) == 503 && answer.contains("does not lead"), "{leader}: {answer}");
        assert_eq!(scene.counted.of(WEBHOOK, "passed_on"), 0);
    }
}

/// A webhook of GitLab: a job that runs on a runner.
fn of_gitlab(id: u64, token: &str) -> Vec<u8> {
    let now = Timestamp::now().to_string();
    let body = json!({
        "object_kind": "build", "build_id": id, "build_name": "test", "build_status": "running", "build_started_at": now,
        "pipeline_id": 7, "project": {"path_with_namespace": "acme/lab/robot"}, "runner": {"description": "vp-1"},
    })
    .to_string();
    let length = body.len();
    format!(
        "POST {GITLAB_WEBHOOK_PATH} HTTP/1.1\r\nHost: fleet\r\nConnection: close\r\nContent-Type: application/json\r\n\
         X-Gitlab-Event: Job Hook\r\nX-Gitlab-Event-UUID: {id}\r\n{token}Content-Length: {length}\r\n\r\n{body}"
    )
    .into_bytes()
}

#[tokio::test]
async fn webhooks_of_gitlab_are_taken_by_the_token_of_a_pool_of_gitlab_and_no_other() {
    let scene = usual().await;
    scene.border.set_webhook_secrets(Platform::GitLab, "ci/lab", vec!["token of the lab".to_owned().into()]);
    for (line, expected) in [
        (String::new(), "there is no secret token"),
        ("X-Gitlab-Token: wrong\r\n".to_owned(), "none of those of the pools"),
        (format!("X-Gitlab-Token: {SECRET}\r\n"), "none of those of the pools"),
    ] {
        let answer = scene.send(&of_gitlab(1, &line)).await;
        assert!(status(&answer) == 401 && answer.contains(expected), "{answer}");
    }
    let answer = scene.send(&of_gitlab(1, "X-Gitlab-Token: token of the lab\r\n")).await;
    assert_eq!(status(&answer), 202, "{answer}");
    let Received::Job(one) = received(&scene.border).await.remove(0) else { panic!("no job") };
    assert_eq!(one.pools.iter().map(ToString::to_string).collect::<Vec<_>>(), ["ci/lab"]);
    assert_eq!(one.observation.facts.repository.to_string(), "acme/lab/robot");
    scene.still_works(1).await;
}
