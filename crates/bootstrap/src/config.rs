//! The configuration of a guest, which the operator writes for each machine.

use crate::messages::{Attestation, Claim};
use serde::{Deserialize, Serialize};

/// The configuration file of a guest.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
pub struct Config {
    /// The address of the bootstrap endpoint: `https://HOST:PORT`.
    pub operator: String,
    /// The certificates of the only authority that the endpoint's certificate is accepted from, as PEM.
    pub ca: String,
    /// The claim this machine was made for.
    pub claim: Claim,
    /// The proof of it.
    pub attestation: Attestation,
    /// Time limits.
    #[serde(default)]
    pub limits: Limits,
    /// Files that hold copies of this one, such as those of cloud-init; they are overwritten and removed together with it.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub copies: Vec<String>,
}

/// Time limits of a guest, in seconds.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields, default)]
pub struct Limits {
    /// How long it asks for its credentials.
    pub exchange_seconds: u64,
    /// How long it takes from its credentials to a runner that was started.
    pub prepare_seconds: u64,
    /// How long a runner waits for a job.
    pub idle_seconds: u64,
    /// How long a job takes.
    pub job_seconds: u64,
    /// How old the machine gets.
    pub lifetime_seconds: u64,
    /// How long the operator may be silent while there is no job.
    pub silence_seconds: u64,
    /// The pause between two reports.
    pub heartbeat_seconds: u64,
    /// How long a runner that is asked to stop may take.
    pub stop_seconds: u64,
    /// How long the last report is tried.
    pub end_seconds: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            exchange_seconds: 5 * 60,
            prepare_seconds: 15 * 60,
            idle_seconds: 30 * 60,
            job_seconds: 6 * 60 * 60,
            lifetime_seconds: 24 * 60 * 60,
            silence_seconds: 15 * 60,
            heartbeat_seconds: 30,
            stop_seconds: 60,
            end_seconds: 30,
        }
    }
}

/// The longest limit: GitHub ends a job of a self-hosted runner after five days.
const LONGEST: u64 = 6 * 24 * 60 * 60;

impl Limits {
    /// What is wrong with them, if anything.
    pub fn check(&self) -> Result<(), String> {
        let all = [
            ("exchangeSeconds", self.exchange_seconds),
            ("prepareSeconds", self.prepare_seconds),
            ("idleSeconds", self.idle_seconds),
            ("jobSeconds", self.job_seconds),
            ("lifetimeSeconds", self.lifetime_seconds),
            ("silenceSeconds", self.silence_seconds),
            ("heartbeatSeconds", self.heartbeat_seconds),
            ("stopSeconds", self.stop_seconds),
            ("endSeconds", self.end_seconds),
        ];
        match all.into_iter().find(|(_, seconds)| !(1..=LONGEST).contains(seconds)) {
            Some((key, seconds)) => Err(format!("limits.{key} is {seconds}: write a number from 1 to {LONGEST}")),
            None => Ok(()),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Config, Limits};

    #[test]
    fn every_limit_is_at_least_a_second_and_at_most_six_days() {
        assert_eq!(Limits::default().check(), Ok(()));
        let text = serde_json::to_value(Limits::default()).unwrap();
        for key in text.as_object().unwrap().keys() {
            for wrong in [0_u64, 1_000_000] {
                let mut text = text.clone();
                text[key] = wrong.into();
                let message = serde_json::from_value::<Limits>(text).unwrap().check().unwrap_err();
                assert!(message.contains(&format!("limits.{key} is {wrong}")), "{message}");
            }
        }
    }

    #[test]
    fn a_misspelled_key_is_refused_and_named() {
        let text = r#"{"operator": "https://a", "ca": "", "claim": {"namespace": "a", "name": "b", "uid": "c"},
            "attestation": {"method": "token", "token": "t"}, "limits": {"idelSeconds": 5}}"#;
        let message = serde_json::from_str::<Config>(text).unwrap_err().to_string();
        assert!(message.contains("idelSeconds"), "{message}");
    }

    #[test]
    fn an_unknown_way_of_attestation_is_refused_and_named() {
        let text = r#"{"method": "telepathy", "token": "t"}"#;
        let message = serde_json::from_str::<crate::Attestation>(text).unwrap_err().to_string();
        assert!(message.contains("telepathy") && message.contains("token"), "{message}");
    }
}
