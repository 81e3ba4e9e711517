//! A web server for tests whose answers are a function.

use crate::settings::{Credentials, Limits, Scope, Settings, Tls};
use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::ext::ReasonPhrase;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use percent_encoding::percent_decode_str;
use serde_json::{Value, json};
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::TcpListener;
use tokio_rustls::TlsAcceptor;

/// One request that arrived.
#[derive(Clone)]
pub(crate) struct Asked {
    pub(crate) method: String,
    /// Path and query as they were sent.
    pub(crate) target: String,
    /// Below `/api2/json`.
    pub(crate) path: String,
    /// Of the URL and of the form.
    pub(crate) parameters: BTreeMap<String, String>,
    pub(crate) headers: http::HeaderMap,
    pub(crate) body: Vec<u8>,
}

impl Asked {
    pub(crate) fn line(&self) -> String {
        format!("{} {}", self.method, self.path)
    }
}

/// One answer.
pub(crate) enum Reply {
    Data(Value),
    Refused(u16, String),
    /// Code, reason and body.
    Whole(u16, String, String),
    /// The connection breaks.
    Lost,
    /// So much later.
    Late(Duration, Box<Reply>),
    /// An answer with a header.
    With(&'static str, String, Box<Reply>),
}

pub(crate) fn refused(code: u16, reason: &str) -> Reply {
    Reply::Refused(code, reason.to_owned())
}

type Answering = Arc<dyn Fn(&Asked) -> Reply + Send + Sync>;

/// A running server; it ends with the test.
pub(crate) struct Server {
    pub(crate) endpoint: String,
    pub(crate) asked: Arc<Mutex<Vec<Asked>>>,
}

impl Server {
    pub(crate) async fn start(answering: impl Fn(&Asked) -> Reply + Send + Sync + 'static) -> Server {
        Server::listen(Arc::new(answering), None).await
    }

    pub(crate) async fn start_tls(
        acceptor: TlsAcceptor,
        answering: impl Fn(&Asked) -> Reply + Send + Sync + 'static,
    ) -> Server {
        Server::listen(Arc::new(answering), Some(acceptor)).await
    }

    async fn listen(answering: Answering, tls: Option<TlsAcceptor>) -> Server {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let port = listener.local_addr().unwrap().port();
        let asked: Arc<Mutex<Vec<Asked>>> = Arc::default();
        let (log, is_tls) = (asked.clone(), tls.is_some());
        tokio::spawn(async move {
            while let Ok((stream, _)) = listener.accept().await {
                let (answering, log, tls) = (answering.clone(), log.clone(), tls.clone());
                tokio::spawn(async move {
                    match tls {
                        Some(tls) => {
                            if let Ok(stream) = tls.accept(stream).await {
                                serve(stream, answering, log).await;
                            }
                        }
                        None => serve(stream, answering, log).await,
                    }
                });
            }
        });
        let scheme = if is_tls { "https" } else { "http" };
        Server { endpoint: format!("{scheme}://localhost:{port}"), asked }
    }

    /// `METHOD PATH` of everything but the questions for tasks.
    pub(crate) fn lines(&self) -> Vec<String> {
        let asked = self.asked.lock().unwrap();
        asked.iter().map(Asked::line).filter(|line| !line.contains("/tasks/")).collect()
    }

    pub(crate) fn forget(&self) {
        self.asked.lock().unwrap().clear();
    }

    pub(crate) fn settings(&self) -> Settings {
        Settings {
            endpoint: self.endpoint.clone(),
            allows_http: true,
            credentials: Credentials::Token { id: "fleet@pve!ci".into(), secret: "hush".into() },
            tls: Tls::System,
            scope: Scope::default(),
            limits: Limits { request: Duration::from_secs(5), ..Limits::default() },
        }
    }
}

async fn serve<S: AsyncRead + AsyncWrite + Unpin + 'static>(
    stream: S,
    answering: Answering,
    log: Arc<Mutex<Vec<Asked>>>,
) {
    let service = service_fn(move |request: http::Request<Incoming>| {
        let (answering, log) = (answering.clone(), log.clone());
        async move {
            let asked = read(request).await;
            log.lock().unwrap().push(asked.clone());
            let mut reply = answering(&asked);
            if let Reply::Late(time, late) = reply {
                tokio::time::sleep(time).await;
                reply = *late;
            }
            respond(reply)
        }
    });
    // A connection that breaks is part of the test.
    let _ = hyper::server::conn::http1::Builder::new().serve_connection(TokioIo::new(stream), service).await;
}

async fn read(request: http::Request<Incoming>) -> Asked {
    let (parts, body) = request.into_parts();
    let body = body.collect().await.unwrap().to_bytes().to_vec();
    let target = parts.uri.path_and_query().unwrap().to_string();
    let path = parts.uri.path().strip_prefix("/api2/json").unwrap().to_owned();
    let is_form = parts.headers.get("content-type").is_some_and(|kind| kind == "application/x-www-form-urlencoded");
    let form = if is_form { String::from_utf8(body.clone()).unwrap() } else { String::new() };
    let mut parameters = BTreeMap::new();
    for pair in parts.uri.query().unwrap_or_default().split('&').chain(form.split('&')).filter(|pair| !pair.is_empty())
    {
        let (name, value) = pair.split_once('=').unwrap();
        parameters.insert(name.to_owned(), percent_decode_str(value).decode_utf8().unwrap().into_owned());
    }
    let path = percent_decode_str(&path).decode_utf8().unwrap().into_owned();
    Asked { method: parts.method.to_string(), target, path, parameters, headers: parts.headers, body }
}

fn respond(reply: Reply) -> Result<http::Response<Full<Bytes>>, std::io::Error> {
    let response = http::Response::builder();
    match reply {
        Reply::Data(data) => Ok(response.body(Full::from(json!({"data": data}).to_string())).unwrap()),
        Reply::Refused(code, reason) => respond(Reply::Whole(code, reason, "{\"data\":null}".into())),
        Reply::Whole(code, reason, body) => {
            let mut response = response.status(code).body(Full::from(body)).unwrap();
            response.extensions_mut().insert(ReasonPhrase::try_from(reason.into_bytes()).unwrap());
            Ok(response)
        }
        Reply::Lost | Reply::Late(..) => Err(std::io::Error::other("lost")),
        Reply::With(header, value, reply) => {
            let mut response = respond(*reply)?;
            response.headers_mut().insert(header, value.parse().unwrap());
            Ok(response)
        }
    }
}
