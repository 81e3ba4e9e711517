//! The program in place of GitHub's runner: logs in with its just-in-time configuration, waits for a job, takes its time for it, and says
//! so to GitHub and to its guest, in the words of the real one.

use super::machine::RUNNER_ID;
use crate::user_error::{self, UserError};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use http::header::HOST;
use http::{Method, Request, Uri};
use http_body_util::{BodyExt, Full};
use hyper::client::conn::http1::{self, SendRequest};
use hyper_util::rt::TokioIo;
use rustix::process::getppid;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, RootCertStore};
use serde_json::{Value, json};
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::net::TcpStream;
use tokio_rustls::TlsConnector;

/// How often it asks for its job.
const PAUSE: Duration = Duration::from_millis(50);

/// Runs one job in the folder where `run.sh` is, and returns whether there was one.
pub async fn run(folder: &Path, job: Duration) -> Result<bool, UserError> {
    let guest = getppid();
    let read = |name: &str| {
        let path = folder.join(name);
        std::fs::read_to_string(&path).map_err(|error| user_error::io("read", &path, error))
    };
    let files = [".runner", ".credentials", ".credentials_rsaparams"];
    let mut settings = serde_json::Map::new();
    for name in files {
        settings.insert(name.to_owned(), STANDARD.encode(read(name)?).into());
    }
    let own: Value = serde_json::from_str(&read(".runner")?).unwrap_or_default();
    // Before it logs in: from then on it may get a job, and GitHub has to find out if its machine ends.
    let id = folder.parent().and_then(Path::parent).unwrap_or(folder).join(RUNNER_ID);
    let number = own["AgentId"].as_str().unwrap_or_default();
    std::fs::write(&id, number).map_err(|error| user_error::io("write", &id, error))?;
    let mut github = Github::connect(own["GitHubUrl"].as_str().unwrap_or_default(), &read("ca.pem")?).await?;
    let jit = STANDARD.encode(Value::Object(settings).to_string());
    let (status, started) = github.ask(Method::POST, "", json!({"jit": jit})).await?;
    if status != 201 {
        println!(
            "Failed to create a session: {}",
            started["message"].as_str().unwrap_or("the runner is not registered")
        );
        return Ok(false);
    }
    let path = format!("/{}", started["id"]);
    println!("\n√ Connected to GitHub\n\nListening for Jobs");
    // A machine that loses its power takes the runner with it.
    while getppid() == guest {
        let (status, state) = github.ask(Method::GET, &path, Value::Null).await?;
        if status == 404 {
            println!("The runner registration has been deleted from the server");
            return Ok(false);
        }
        if let Some(name) = state["job"]["name"].as_str() {
            println!("Running job: {name}");
            tokio::time::sleep(job).await;
            if getppid() == guest {
                github.ask(Method::POST, &format!("{path}/finished"), json!({"conclusion": "success"})).await?;
                println!("Job {name} completed with result: Succeeded");
            }
            return Ok(true);
        }
        tokio::time::sleep(PAUSE).await;
    }
    Ok(false)
}

/// A connection to the stand-in of GitHub.
struct Github {
    sender: SendRequest<Full<bytes::Bytes>>,
    host: String,
}

impl Github {
    async fn connect(address: &str, ca: &str) -> Result<Github, UserError> {
        let failed = |error: String| {
            UserError::new(format!("GitHub does not answer at {address:?}"), "look at its stand-in").with_detail(error)
        };
        let uri: Uri = address.parse().map_err(|error: http::uri::InvalidUri| failed(error.to_string()))?;
        let host = uri.authority().map(ToString::to_string).unwrap_or_default();
        let mut roots = RootCertStore::empty();
        roots.add_parsable_certificates(CertificateDer::pem_slice_iter(ca.as_bytes()).flatten());
        let config = ClientConfig::builder_with_provider(Arc::new(rustls::crypto::ring::default_provider()))
            .with_safe_default_protocol_versions()
            .map_err(|error| failed(error.to_string()))?
            .with_root_certificates(roots)
            .with_no_client_auth();
        let name = ServerName::try_from(uri.host().unwrap_or_default().to_owned());
        let name = name.map_err(|error| failed(error.to_string()))?;
        let stream = TcpStream::connect(&host).await.map_err(|error| failed(error.to_string()))?;
        let stream = TlsConnector::from(Arc::new(config)).connect(name, stream).await;
        let stream = TokioIo::new(stream.map_err(|error| failed(error.to_string()))?);
        let (sender, connection) = http1::handshake(stream).await.map_err(|error| failed(error.to_string()))?;
        tokio::spawn(connection);
        Ok(Github { sender, host })
    }

    /// Asks what the stand-in offers to runners; the real protocol is not public.
    async fn ask(&mut self, method: Method, path: &str, body: Value) -> Result<(u16, Value), UserError> {
        let failed = |error: String| UserError::new("GitHub has hung up", "look at its stand-in").with_detail(error);
        let target = format!("/api/v3/_stand-in/runners{path}");
        let body = if body.is_null() { String::new() } else { body.to_string() };
        let request = Request::builder().method(method).uri(target).header(HOST, &self.host);
        let request = request.header("content-type", "application/json").body(Full::from(body));
        let request = request.map_err(|error| failed(error.to_string()))?;
        let response = self.sender.send_request(request).await.map_err(|error| failed(error.to_string()))?;
        let status = response.status().as_u16();
        let body = response.into_body().collect().await.map_err(|error| failed(error.to_string()))?.to_bytes();
        Ok((status, serde_json::from_slice(&body).unwrap_or_default()))
    }
}
