//! A record of tokens as the status of a claim keeps it.

use super::{Digest, Record, Used};
use crate::conditions::{read, shown};
use api::fleet::BootstrapInfo;
use bootstrap::Claim;
use serde_json::json;

fn digest(text: &str) -> Option<Digest> {
    serde_json::from_value(json!(text)).ok()
}

fn text(digest: &Digest) -> String {
    format!("{digest:?}")
}

/// As a status shows it.
pub fn info(record: &Record) -> BootstrapInfo {
    let used = record.used.as_ref();
    BootstrapInfo {
        token: text(&record.token),
        expires: shown(record.expires),
        nonce: used.map(|used| text(&used.nonce)),
        report: used.map(|used| text(&used.report)),
        granted_time: used.and_then(|used| used.granted).map(shown),
        has_reported: used.is_some_and(|used| used.has_reported),
        has_ended: record.has_ended,
        stop: record.stop,
    }
}

/// From a status; nothing if somebody has made it unreadable: then the token is not valid.
pub fn record(claim: Claim, info: &BootstrapInfo) -> Option<Record> {
    let used = match (&info.nonce, &info.report) {
        (Some(nonce), Some(report)) => Some(Used {
            nonce: digest(nonce)?,
            report: digest(report)?,
            granted: info.granted_time.as_ref().and_then(read),
            has_reported: info.has_reported,
        }),
        _ => None,
    };
    let (token, expires) = (digest(&info.token)?, read(&info.expires)?);
    Some(Record { claim, token, expires, used, has_ended: info.has_ended, stop: info.stop })
}

#[cfg(test)]
mod tests {
    use super::{info, record};
    use crate::bootstrap::Registry;
    use bootstrap::{Attestation, Claim, Exchange, Secret};
    use jiff::Timestamp;
    use std::time::Duration;

    #[test]
    fn a_record_survives_in_a_status_without_a_secret() {
        let (claim, now) = (Claim { namespace: "ci".into(), name: "a".into(), uid: "u".into() }, Timestamp::UNIX_EPOCH);
        let mut registry = Registry::default();
        let token = registry.mint(claim.clone(), [7; 32], Duration::from_secs(60), now).unwrap();
        let minted = registry.record("u").cloned().unwrap();
        assert_eq!(record(claim.clone(), &info(&minted)), Some(minted));
        let nonce = "n".repeat(32);
        let exchange = Exchange {
            claim: claim.clone(),
            attestation: Attestation::Token { token: token.clone() },
            nonce: Secret::new(nonce.clone()),
            version: String::new(),
        };
        registry.exchange(&exchange, now);
        let used = registry.record("u").cloned().unwrap();
        let shown = info(&used);
        assert_eq!(record(claim.clone(), &shown), Some(used));
        let text = serde_json::to_string(&shown).unwrap();
        assert!(!text.contains(token.expose()) && !text.contains(&nonce), "{text}");
        let broken = api::fleet::BootstrapInfo { token: "x".into(), ..shown };
        assert_eq!(record(claim, &broken), None, "a token that nobody can check is not valid");
    }
}
