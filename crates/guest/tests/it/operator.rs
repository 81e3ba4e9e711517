//! A stand-in of the operator's bootstrap endpoint: HTTPS on a port of this machine, with an answer for each path.

use bootstrap::{End, Exchange, Report};
use rcgen::{BasicConstraints, CertificateParams, IsCa, Issuer, KeyPair};
use rustls::pki_types::PrivateKeyDer;
use rustls::{ServerConfig, ServerConnection, StreamOwned};
use std::collections::BTreeMap;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

/// What it answers: the status, further headers and the body.
pub(crate) type Answer = (u16, String, Vec<u8>);

/// What was said to it.
#[derive(Default)]
pub(crate) struct Heard {
    pub(crate) exchanges: Vec<Exchange>,
    pub(crate) reports: Vec<Report>,
    pub(crate) ends: Vec<End>,
    /// The bearer tokens of reports and ends.
    pub(crate) bearers: Vec<String>,
    /// The number of requests for each path.
    pub(crate) requests: BTreeMap<String, usize>,
    /// The headers of all downloads.
    pub(crate) downloads: String,
}

/// The stand-in.
pub(crate) struct Operator {
    pub(crate) port: u16,
    /// The certificate of its authority.
    pub(crate) ca: String,
    pub(crate) heard: Arc<Mutex<Heard>>,
}

impl Operator {
    /// Starts one. It answers a path with the first answers in turn, and then always with the last one.
    pub(crate) fn start(answers: BTreeMap<String, Vec<Answer>>) -> Operator {
        let authority_key = KeyPair::generate().unwrap();
        let mut params = CertificateParams::default();
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let ca = params.self_signed(&authority_key).unwrap().pem();
        let key = KeyPair::generate().unwrap();
        let issuer = Issuer::new(params, authority_key);
        let certificate =
            CertificateParams::new(vec!["127.0.0.1".to_owned()]).unwrap().signed_by(&key, &issuer).unwrap();
        let provider = Arc::new(rustls::crypto::ring::default_provider());
        let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions().unwrap();
        let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
        let config = config.with_no_client_auth().with_single_cert(vec![certificate.der().clone()], key).unwrap();
        let config = Arc::new(config);
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let heard = Arc::new(Mutex::new(Heard::default()));
        let (answers, said) = (Arc::new(answers), Arc::clone(&heard));
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (config, answers, said) = (Arc::clone(&config), Arc::clone(&answers), Arc::clone(&said));
                // A guest that does not trust the certificate, or is killed, breaks off.
                thread::spawn(move || serve(&config, stream, &answers, &said));
            }
        });
        Operator { port, ca, heard }
    }
}

fn serve(
    config: &Arc<ServerConfig>,
    stream: TcpStream,
    answers: &BTreeMap<String, Vec<Answer>>,
    heard: &Mutex<Heard>,
) -> Option<()> {
    let connection = ServerConnection::new(Arc::clone(config)).ok()?;
    let mut stream = BufReader::new(StreamOwned::new(connection, stream));
    let mut head = String::new();
    while !head.ends_with("\r\n\r\n") {
        if stream.read_line(&mut head).ok()? == 0 {
            return None;
        }
    }
    let header = |name: &str| head.lines().find_map(|line| line.strip_prefix(name)).map(str::to_owned);
    let path = head.split(' ').nth(1)?.to_owned();
    let mut body = vec![0; header("Content-Length: ").map_or(0, |length| length.parse().unwrap())];
    stream.read_exact(&mut body).ok()?;
    let (status, headers, content) = {
        let mut heard = heard.lock().unwrap();
        heard.bearers.extend(header("Authorization: Bearer "));
        match path.as_str() {
            bootstrap::EXCHANGE_PATH => heard.exchanges.push(serde_json::from_slice(&body).unwrap()),
            bootstrap::REPORT_PATH => heard.reports.push(serde_json::from_slice(&body).unwrap()),
            bootstrap::END_PATH => heard.ends.push(serde_json::from_slice(&body).unwrap()),
            _ => heard.downloads.push_str(&head),
        }
        let count = heard.requests.entry(path.clone()).or_default();
        *count += 1;
        let missing = (404, String::new(), Vec::new());
        answers
            .get(&path)
            .and_then(|answers| answers.get((*count - 1).min(answers.len() - 1)))
            .unwrap_or(&missing)
            .clone()
    };
    let stream = stream.get_mut();
    if headers.contains("chunked") {
        write!(stream, "HTTP/1.1 {status} OK\r\n{headers}\r\n").ok()?;
        for chunk in content.chunks(1_000) {
            write!(stream, "{:x}\r\n", chunk.len()).ok()?;
            stream.write_all(chunk).ok()?;
            stream.write_all(b"\r\n").ok()?;
        }
        stream.write_all(b"0\r\n\r\n").ok()?;
    } else {
        write!(stream, "HTTP/1.1 {status} OK\r\nContent-Length: {}\r\n{headers}\r\n", content.len()).ok()?;
        stream.write_all(&content).ok()?;
    }
    stream.conn.send_close_notify();
    stream.flush().ok()
}
