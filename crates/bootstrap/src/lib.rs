//! What the guest inside a runner's machine and the operator's bootstrap endpoint say to each other: JSON over HTTPS.

mod config;
mod messages;
mod secret;

pub use config::{Config, Limits};
pub use messages::{
    Attestation, Claim, End, EndReason, Exchange, Grant, Phase, Refusal, RefusalReason, Report, ReportReply, Runner,
    Source, Step,
};
pub use secret::Secret;

/// Where a guest exchanges its proof of identity for a [`Grant`]: POST of an [`Exchange`].
pub const EXCHANGE_PATH: &str = "/bootstrap/v1/exchange";
/// Where it reports its phase, which is also its heartbeat: POST of a [`Report`] with its report token as bearer.
pub const REPORT_PATH: &str = "/bootstrap/v1/report";
/// Where it says that it ends, and asks to be deregistered: POST of an [`End`] with its report token as bearer.
pub const END_PATH: &str = "/bootstrap/v1/end";

/// The largest request, in bytes; an endpoint refuses more before it parses anything.
pub const MAX_REQUEST: usize = 64 * 1024;
/// The largest answer, in bytes.
pub const MAX_REPLY: usize = 256 * 1024;
/// How much of the runner's output is sent at most when it has failed, in bytes.
pub const MAX_LOG: usize = 16 * 1024;
/// The longest message about a failure, in bytes.
pub const MAX_MESSAGE: usize = 1024;
/// The shortest and longest nonce, in characters.
pub const NONCE: std::ops::RangeInclusive<usize> = 32..=128;

/// The longest part of a text that begins it and has at most so many bytes.
pub fn truncated(text: &str, bytes: usize) -> &str {
    &text[..text.floor_char_boundary(bytes)]
}
