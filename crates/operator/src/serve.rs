//! `/healthz`, `/readyz` and `/metrics`.

use crate::metrics::Metrics;
use anyhow::Context;
use axum::Router;
use axum::http::{StatusCode, header};
use axum::response::IntoResponse;
use axum::routing::get;
use std::net::SocketAddr;
use std::sync::Arc;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// What is missing before the operator does its work; nothing means ready.
pub(crate) type Readiness = watch::Receiver<Vec<String>>;

/// An address as the predecessor takes it: `:8080` is every interface, `0` is none.
pub(crate) fn parse_address(text: &str) -> Result<Option<SocketAddr>, String> {
    if text == "0" {
        return Ok(None);
    }
    let full = if text.starts_with(':') { format!("0.0.0.0{text}") } else { text.to_owned() };
    full.parse()
        .map(Some)
        .map_err(|_| format!("{text:?} is no address; write it as :8080 or 127.0.0.1:8080, or 0 for none"))
}

/// Takes the ports, so that a taken one is told before anything else happens; the returned futures serve.
pub(crate) async fn bind(address: Option<SocketAddr>, what: &str, routes: Router) -> anyhow::Result<()> {
    let Some(address) = address else { return Ok(()) };
    let listener = TcpListener::bind(address).await.with_context(|| {
        format!("could not listen on {address} for {what}: end what listens there, or choose another address")
    })?;
    tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, routes).await {
            tracing::error!("serving stopped: {error}");
        }
    });
    Ok(())
}

/// Whether we live, and whether we do our work.
pub(crate) fn probes(readiness: Readiness) -> Router {
    let ready = move || async move {
        let missing = readiness.borrow().clone();
        match missing.is_empty() {
            true => (StatusCode::OK, "ok\n".to_owned()),
            false => (StatusCode::SERVICE_UNAVAILABLE, format!("waiting for {}\n", missing.join(", "))),
        }
    };
    Router::new().route("/healthz", get(async || "ok\n")).route("/readyz", get(ready))
}

/// What a Prometheus scrapes.
pub(crate) fn metrics(metrics: Arc<Metrics>) -> Router {
    let content = [(header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")];
    Router::new().route("/metrics", get(async move || (content, metrics.text()).into_response()))
}

#[cfg(test)]
mod tests {
    use super::parse_address;

    #[test]
    fn addresses_are_read_as_the_predecessor_reads_them() {
        assert_eq!(parse_address(":8080").unwrap().unwrap().to_string(), "0.0.0.0:8080");
        assert_eq!(parse_address("127.0.0.1:1").unwrap().unwrap().to_string(), "127.0.0.1:1");
        assert_eq!(parse_address("0").unwrap(), None);
        assert!(parse_address("8080").unwrap_err().contains("write it as :8080"));
    }
}
