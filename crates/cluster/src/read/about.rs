//! Asks the API server about itself.

use crate::request::{Failure, Request, WHOLE, refusal};
use crate::server::Server;
use http::header::DATE;
use jiff::Timestamp;
use kube::client::Body;
use serde_json::Value;

/// What the API server says about itself.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct About {
    /// Its version, such as `v1.36.3`.
    pub version: String,
    /// Its clock, in seconds.
    pub clock: Option<Timestamp>,
}

/// Asks for the version and the clock of the API server.
pub async fn about(server: &Server) -> Result<About, Failure> {
    let request = Request::get("", "/version", WHOLE).into_http()?;
    let answer = async {
        let response = server.client.send(request.map(Body::from)).await?;
        let clock = response.headers().get(DATE).and_then(|date| date.to_str().ok()).and_then(read_date);
        let status = response.status();
        let bytes = response.into_body().collect_bytes().await?;
        if !status.is_success() {
            let message = refusal(status, &String::from_utf8_lossy(&bytes));
            return Err(Failure::Answered { code: status.as_u16(), message });
        }
        let answer: Value = serde_json::from_slice(&bytes)?;
        Ok(About { version: answer["gitVersion"].as_str().unwrap_or("unknown").to_owned(), clock })
    };
    match tokio::time::timeout(server.timeouts.request, answer).await {
        Ok(answer) => answer,
        Err(_) => Err(Failure::timeout()),
    }
}

fn read_date(text: &str) -> Option<Timestamp> {
    jiff::fmt::rfc2822::DateTimeParser::new().parse_timestamp(text).ok()
}

#[cfg(test)]
mod tests {
    use super::read_date;

    #[test]
    fn the_date_of_an_answer_is_read() {
        let date = read_date("Tue, 17 Nov 2026 13:05:13 GMT");
        assert_eq!(date.map(|date| date.to_string()).as_deref(), Some("2026-11-17T13:05:13Z"));
        assert_eq!(read_date("yesterday"), None);
    }
}
