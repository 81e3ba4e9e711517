//! The messages.

use crate::secret::Secret;
use serde::{Deserialize, Serialize};

/// The claim a machine was made for.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Claim {
    /// Its namespace.
    pub namespace: String,
    /// Its name.
    pub name: String,
    /// Its uid: a claim of the same name that was made later is another one.
    pub uid: String,
}

/// How a guest proves which claim it belongs to.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "method", rename_all = "kebab-case", deny_unknown_fields)]
pub enum Attestation {
    /// By a token that was made for the claim and can be used once.
    Token {
        /// The token.
        token: Secret,
    },
}

/// The first request of a guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Exchange {
    /// The claim it belongs to.
    pub claim: Claim,
    /// The proof.
    pub attestation: Attestation,
    /// A random text, the same when the request is repeated: whoever repeats it with another nonce is somebody else.
    pub nonce: Secret,
    /// The version of the guest.
    #[serde(default)]
    pub version: String,
}

/// What a guest gets for its proof.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Grant {
    /// The bearer token of its later requests.
    pub report_token: Secret,
    /// The configuration of the runner as GitHub made it: for one runner and one job.
    pub jit_config: Secret,
    /// The number of seconds until the runner can no longer get a job with it.
    pub credentials_expire_seconds: u64,
    /// The runner to start.
    pub runner: Runner,
}

/// The runner to start.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Runner {
    /// Where it comes from.
    pub source: Source,
    /// The user it runs as; without one, the user of the guest.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub user: Option<String>,
    /// Whether its credentials are removed when its job starts. The listener of GitHub's runner reads its key again for each new access
    /// token, so without them it does not hear of a cancellation once its token has expired, about an hour later.
    #[serde(default)]
    pub remove_credentials_at_job_start: bool,
}

/// Where a runner comes from.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "from", rename_all = "kebab-case")]
pub enum Source {
    /// An archive that is downloaded.
    Download {
        /// An `https` address, or a path at the operator.
        url: String,
        /// Its SHA-256, in hexadecimal.
        sha256: String,
        /// The only authorities that its server has its certificate from, as PEM; without them, the public ones.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        ca: Option<String>,
    },
    /// An archive that is part of the machine's image.
    File {
        /// Its path.
        path: String,
        /// Its SHA-256, in hexadecimal.
        sha256: String,
    },
    /// A folder that is part of the machine's image, with the unpacked runner.
    Installed {
        /// Its path.
        folder: String,
    },
}

/// Why a request is refused.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Refusal {
    /// Why, in one word.
    pub reason: RefusalReason,
    /// Why, and what can be done.
    pub message: String,
    /// When the request can be repeated, if it can.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry_after_seconds: Option<u64>,
}

/// Why a request is refused, in one word.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub enum RefusalReason {
    /// The request cannot be read.
    Malformed,
    /// There is no such token, or it is another claim's. Which of the two is not said.
    Unknown,
    /// The token has expired.
    Expired,
    /// The token was used before.
    Used,
    /// The credentials of the runner are not there yet.
    NotYet,
    /// The claim has ended.
    Ended,
    /// A reason that a newer operator gives.
    #[serde(other)]
    Other,
}

/// What a guest does.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Phase {
    /// It obtains the runner.
    Preparing,
    /// The runner waits for a job.
    Idle,
    /// The runner runs a job.
    Running,
    /// It is about to power off.
    Ending,
}

/// A report, and with it a heartbeat.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Report {
    /// The claim.
    pub claim: Claim,
    /// What the guest does.
    pub phase: Phase,
    /// The number of seconds since the guest has started.
    pub uptime_seconds: u64,
}

/// The answer to a report.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ReportReply {
    /// Whether the guest shall end unless a job runs.
    #[serde(default)]
    pub stop: bool,
}

/// The steps of a guest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum Step {
    /// Reading its configuration.
    Configure,
    /// Exchanging its proof of identity for credentials.
    Exchange,
    /// Downloading the archive.
    Download,
    /// Comparing its checksum.
    Verify,
    /// Unpacking it.
    Unpack,
    /// Writing the runner's credentials to memory.
    Credentials,
    /// Starting the runner.
    Start,
    /// Waiting for a job.
    Idle,
    /// Running a job.
    Job,
}

/// The last message of a guest, with which it asks to be deregistered.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct End {
    /// The claim.
    pub claim: Claim,
    /// Why it ends.
    pub reason: EndReason,
    /// The step it was at.
    pub step: Step,
    /// Why, in a sentence.
    pub message: String,
    /// Whether a job was started: then it is not given to another runner.
    pub ran_job: bool,
    /// What the runner exited with.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub exit_code: Option<i32>,
    /// The end of the runner's output, if something went wrong.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub log: String,
}

/// Why a guest ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub enum EndReason {
    /// Its job is done, with whatever result.
    JobCompleted,
    /// There was no job within the idle limit.
    IdleLimit,
    /// The job took longer than its limit.
    JobLimit,
    /// The machine is older than its limit.
    LifetimeLimit,
    /// The runner can no longer get a job with its credentials.
    CredentialsExpired,
    /// The operator asked for it.
    Drained,
    /// Somebody stopped the guest.
    Terminated,
    /// The operator did not answer for too long while there was no job.
    OperatorSilent,
    /// The runner exited without having completed a job.
    RunnerExited,
    /// GitHub refuses the version of the runner.
    RunnerDeprecated,
    /// A step failed.
    StepFailed,
    /// The guest has a fault.
    Panicked,
}

impl EndReason {
    /// Whether nothing went wrong.
    pub fn is_expected(self) -> bool {
        matches!(self, EndReason::JobCompleted | EndReason::IdleLimit | EndReason::Drained)
    }
}
