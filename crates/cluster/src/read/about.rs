//! Asks the API server about itself.

use crate::request::{Failure, Request, WHOLE, send_with_clock};
use crate::server::Server;
use jiff::Timestamp;
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
    let (text, clock) = send_with_clock(server, Request::get("", "/version", WHOLE)).await?;
    let answer: Value = serde_json::from_str(&text)?;
    Ok(About { version: answer["gitVersion"].as_str().unwrap_or("unknown").to_owned(), clock })
}
