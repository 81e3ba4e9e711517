//! Serves `/healthz`, `/readyz` and `/metrics`.

use anyhow::Context;
use axum::Router;
use axum::http::{StatusCode, header};
use axum::routing::get;
use std::net::SocketAddr;
use tokio::net::TcpListener;
use tokio::sync::watch;

/// Parses an address: `:8080` is every interface, `0` is nothing.
pub fn parse_address(text: &str) -> Result<Option<SocketAddr>, String> {
    if text == "0" {
        return Ok(None);
    }
    let full = if text.starts_with(':') { format!("0.0.0.0{text}") } else { text.to_owned() };
    full.parse()
        .map(Some)
        .map_err(|_| format!("{text:?} is not an address; write it as :8080 or 127.0.0.1:8080, or 0 for none"))
}

/// Serves these routes, or nothing without an address. A port that is taken is an error at once.
pub async fn serve(address: Option<SocketAddr>, what: &str, routes: Router) -> anyhow::Result<()> {
    let Some(address) = address else { return Ok(()) };
    let listener = TcpListener::bind(address).await.with_context(|| {
        format!(
            "could not listen on {address} for {what}: stop the process that listens there, or choose another address"
        )
    })?;
    tokio::spawn(async move {
        if let Err(error) = axum::serve(listener, routes).await {
            tracing::error!("the server on {address} stopped: {error}");
        }
    });
    Ok(())
}

/// `/healthz`, and `/readyz` that answers what the product waits for.
pub fn probes(readiness: watch::Receiver<Vec<String>>) -> Router {
    let ready = move || async move {
        let missing = readiness.borrow().clone();
        match missing.is_empty() {
            true => (StatusCode::OK, "ok\n".to_owned()),
            false => (StatusCode::SERVICE_UNAVAILABLE, format!("waiting for {}\n", missing.join(", "))),
        }
    };
    Router::new().route("/healthz", get(async || "ok\n")).route("/readyz", get(ready))
}

/// `/metrics`, with the text that a product makes in the OpenMetrics format.
pub fn metrics(text: impl Fn() -> String + Clone + Send + Sync + 'static) -> Router {
    let content = [(header::CONTENT_TYPE, "application/openmetrics-text; version=1.0.0; charset=utf-8")];
    Router::new().route("/metrics", get(move || std::future::ready((content, text()))))
}

#[cfg(test)]
mod tests {
    use super::parse_address;

    #[test]
    fn an_address_may_leave_out_the_interface_and_zero_is_none() {
        assert_eq!(parse_address(":8080").unwrap().unwrap().to_string(), "0.0.0.0:8080");
        assert_eq!(parse_address("127.0.0.1:1").unwrap().unwrap().to_string(), "127.0.0.1:1");
        assert_eq!(parse_address("0").unwrap(), None);
        assert!(parse_address("8080").unwrap_err().contains("write it as :8080"));
    }
}
