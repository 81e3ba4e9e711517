//! What the bootstrap endpoint answers to guests: a token, bound to a claim and usable once, is exchanged for a runner's credentials.

pub mod authority;
mod digest;
pub mod limits;
mod registry;
pub mod status;
#[cfg(test)]
mod tests;

pub use digest::Digest;
pub use registry::{Registry, TooMany};

use bootstrap::{Claim, End, Grant, Phase, Refusal, RefusalReason, ReportReply, Runner, Secret};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};
use std::time::Duration;

/// The longest time a token is valid.
pub const LONGEST_TOKEN_LIFE: Duration = Duration::from_secs(60 * 60);
/// So long after its first answer the same request gets the same answer again, in case the first was lost.
pub const REPEATS_LAST: Duration = Duration::from_secs(2 * 60);
/// The pause that a guest is asked for while its credentials are not there.
pub const NOT_YET_PAUSE: Duration = Duration::from_secs(2);
/// The most claims that tokens are known of at a time.
pub const MAX_RECORDS: usize = 10_000;

/// What is recorded of a claim's tokens. It has no secret and may be stored; without it a restart would refuse machines that are booting.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Record {
    /// The claim.
    pub claim: Claim,
    /// The digest of its token.
    pub token: Digest,
    /// When the token expires.
    pub expires: Timestamp,
    /// Who has used it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub used: Option<Used>,
    /// Whether the guest has said that it ends.
    #[serde(default)]
    pub has_ended: bool,
    /// Whether the guest shall end unless a job runs.
    #[serde(default)]
    pub stop: bool,
}

/// The use of a token.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Used {
    /// The digest of the nonce: who has used it first.
    pub nonce: Digest,
    /// The digest of the token of later reports.
    pub report: Digest,
    /// When it was granted credentials.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub granted: Option<Timestamp>,
    /// Whether it has reported since, so that its credentials have arrived.
    #[serde(default)]
    pub has_reported: bool,
}

/// The credentials for a guest, in memory only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Offer {
    /// The configuration of its runner.
    pub jit_config: Secret,
    /// When the runner can no longer get a job with it.
    pub expires: Timestamp,
    /// The runner to start.
    pub runner: Runner,
}

/// An answer to a guest, and what else is to be said about it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Answer {
    /// The answer.
    pub reply: Reply,
    /// What others have to know.
    pub notices: Vec<Notice>,
}

/// An answer to a guest.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Reply {
    /// Credentials.
    Granted(Box<Grant>),
    /// The report was taken.
    Accepted(ReportReply),
    /// The request is refused.
    Refused {
        /// The HTTP status.
        status: u16,
        /// Why.
        refusal: Refusal,
    },
}

/// What others have to know of a request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Notice {
    /// A guest has proved that it belongs to its claim: now its credentials can be made.
    Attested(Claim),
    /// It has got them.
    Granted(Claim),
    /// Somebody has presented a token that somebody else has used: one of the two has stolen it.
    TokenReused(Claim),
    /// A request in the name of a claim was refused.
    Refused(Claim, RefusalReason),
    /// The guest is alive and does this.
    Reported(Claim, Phase),
    /// The guest ends, and its runner is to be deregistered.
    Ended(Box<End>),
}

/// The HTTP status of a refusal.
pub fn status(reason: RefusalReason) -> u16 {
    match reason {
        RefusalReason::Malformed | RefusalReason::Other => 400,
        RefusalReason::Unknown | RefusalReason::Expired | RefusalReason::Used => 403,
        RefusalReason::Ended => 410,
        RefusalReason::NotYet => 503,
    }
}

/// The message of a refusal. It says nothing that a stranger does not know.
pub fn message(reason: RefusalReason) -> &'static str {
    match reason {
        RefusalReason::Malformed => "the request is not one of this endpoint: use the guest of the operator's version",
        RefusalReason::Unknown => "the token is not valid for this claim; delete the MachineClaim to get a new machine",
        RefusalReason::Expired => {
            "the token has expired before the machine asked: the machine boots too slowly, or its clock or network is late"
        }
        RefusalReason::Used => "the token was used before; if no machine of this claim was restarted, it was stolen",
        RefusalReason::NotYet => "the credentials of the runner are being made; repeat the request",
        RefusalReason::Ended => "the guest of this claim has said that it ends",
        RefusalReason::Other => "the request is refused",
    }
}
