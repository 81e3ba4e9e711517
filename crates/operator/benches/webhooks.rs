//! How many webhooks one core receives, how long each waits for its answer, and how much memory that takes: `make bench`.
#![expect(clippy::unwrap_used, reason = "it measures and prints")]

mod fleet;

use crate::fleet::border::Border;
use crate::fleet::servers::{Settings, receive_webhooks};
use ::fleet::forge::Platform;
use jiff::Timestamp;
use ring::hmac;
use runtime::health::BindAddress;
use serde_json::json;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::runtime::Builder;

const SECRET: &str = "it is a secret to everybody";
/// What GitHub sends for a job.
const BYTES: usize = 20_000;
const RATE: u64 = 1_000;
const SECONDS: u64 = 20;
/// Enough that a slow answer delays no other request.
const CONNECTIONS: u64 = 50;

fn main() {
    let address = serve();
    let load = Builder::new_current_thread().enable_all().build().unwrap();
    let counter = Arc::new(AtomicU64::new(0));
    // Buffers and tables get the size that they keep.
    load.block_on(send(address, &counter, Duration::from_secs(3), Some(RATE)));
    let before = memory();
    let paced = load.block_on(send(address, &counter, Duration::from_secs(SECONDS), Some(RATE)));
    let after = memory();
    println!("{:<46} {:>9} {:>9} {:>9} {:>9}", "webhooks of 20 kB, one core", "per s", "p50 us", "p99 us", "MB");
    println!("(goal: p99 at most 5,000 us at 1,000 per s; memory of the load generator included)");
    print("at a steady rate", &paced, SECONDS, after);
    println!("{:<46} {:>+39.1}", "growth of memory", after - before);
    let most = load.block_on(send(address, &counter, Duration::from_secs(5), None));
    print("as many as possible, from one other core", &most, 5, memory());
}

fn print(what: &str, sorted: &[u64], seconds: u64, memory: f64) {
    let at = |percent: usize| sorted.get((sorted.len() * percent / 100).min(sorted.len() - 1)).copied().unwrap();
    let count = u64::try_from(sorted.len()).unwrap();
    println!("{what:<46} {:>9} {:>9} {:>9} {memory:>9.1}", count / seconds, at(50), at(99));
}

/// The receiver, in a thread of its own and on one core; what it accepts is taken at once.
fn serve() -> SocketAddr {
    let address: SocketAddr = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap();
    let (ready, is_ready) = std::sync::mpsc::channel();
    std::thread::spawn(move || {
        Builder::new_current_thread().enable_all().build().unwrap().block_on(async move {
            let border = Border::new();
            border.set_webhook_secrets(Platform::GitHub, "ci/linux", vec![SECRET.to_owned().into()]);
            border.open();
            let bound = Some(BindAddress::Host(address.to_string()));
            let settings =
                Settings { webhooks: bound, webhook_certificate: None, bootstrap: None, bootstrap_address: None };
            receive_webhooks(&settings, &border, "fleet", None, Arc::new(|_, _| {})).await.unwrap();
            ready.send(()).unwrap();
            loop {
                border.receive().await;
            }
        });
    });
    is_ready.recv().unwrap();
    address
}

/// Sends webhooks on several connections; returns how long each waited for its answer, in microseconds, sorted. At a rate, a request that
/// is late because others were slow counts from when it was due.
async fn send(address: SocketAddr, counter: &Arc<AtomicU64>, time: Duration, rate: Option<u64>) -> Vec<u64> {
    let start = Instant::now();
    let connections = if rate.is_some() { CONNECTIONS } else { 8 };
    let one = |number: u64| {
        let counter = counter.clone();
        async move {
            let (mut stream, mut waits) = (TcpStream::connect(address).await.unwrap(), Vec::new());
            stream.set_nodelay(true).unwrap();
            for turn in 0_u64.. {
                let due =
                    rate.map(|rate| start + Duration::from_micros((turn * connections + number) * 1_000_000 / rate));
                let request = webhook(counter.fetch_add(1, Ordering::Relaxed));
                if let Some(due) = due {
                    tokio::time::sleep_until(due.into()).await;
                }
                if start.elapsed() >= time {
                    break;
                }
                let begin = due.unwrap_or_else(Instant::now);
                stream.write_all(&request).await.unwrap();
                let (mut answer, mut read) = ([0; 1024], 0);
                while !answer[..read].ends_with(b"accepted\n") {
                    let more = stream.read(&mut answer[read..]).await.unwrap();
                    assert!(more > 0, "{}", String::from_utf8_lossy(&answer[..read]));
                    read += more;
                }
                waits.push(u64::try_from(begin.elapsed().as_micros()).unwrap());
            }
            waits
        }
    };
    let mut waits: Vec<u64> = futures::future::join_all((0..connections).map(one)).await.concat();
    waits.sort_unstable();
    waits
}

fn webhook(id: u64) -> Vec<u8> {
    let now = Timestamp::now().to_string();
    let job = json!({
        "id": id, "run_id": id, "run_attempt": 1, "status": "queued", "name": "build", "created_at": now,
        "started_at": now, "labels": ["self-hosted", "linux"], "steps": ["x".repeat(BYTES)],
    });
    let body = json!({"action": "queued", "workflow_job": job, "repository": {"full_name": "acme/shop"}}).to_string();
    let code = hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, SECRET.as_bytes()), body.as_bytes());
    let digits: String = code.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    let head = format!(
        "POST /webhooks/github HTTP/1.1\r\nHost: fleet\r\nX-GitHub-Event: workflow_job\r\nX-GitHub-Delivery: {id}\r\n\
         X-Hub-Signature-256: sha256={digits}\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    head.into_bytes()
}

/// The memory of this process, in MB.
fn memory() -> f64 {
    let text = std::fs::read_to_string("/proc/self/status").unwrap();
    let line = text.lines().find(|line| line.starts_with("VmRSS:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse::<f64>().unwrap() / 1024.0
}
