//! The requests to the operator.

use crate::http::{Request, Trust, Url, send};
use bootstrap::{
    END_PATH, EXCHANGE_PATH, End, Exchange, Grant, MAX_REPLY, REPORT_PATH, Refusal, Report, ReportReply, Secret,
};
use zeroize::Zeroizing;

/// The operator's bootstrap endpoint.
pub(crate) struct Operator {
    pub(crate) url: Url,
    pub(crate) trust: Trust,
}

/// An answer that is no success.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum Failure {
    /// It may succeed later.
    Transient(String),
    /// It will not.
    Permanent(String),
}

impl Operator {
    /// The endpoint at this address, with a certificate of this authority.
    pub(crate) fn new(address: &str, ca: &str) -> Result<Operator, String> {
        let url = Url::parse(address).map_err(|error| format!("operator: {error}"))?;
        Ok(Operator { trust: Trust::new(url.clone(), ca)?, url })
    }

    /// Exchanges a proof of identity for credentials.
    pub(crate) fn exchange(&self, exchange: &Exchange) -> Result<Grant, Failure> {
        let body = serde_json::to_vec(exchange).map(Zeroizing::new);
        let body = body.map_err(|error| Failure::Permanent(error.to_string()))?;
        let reply = self.post(EXCHANGE_PATH, None, &body)?;
        // The message of an error would quote the answer.
        serde_json::from_slice(&reply).map_err(|_| Failure::Permanent(other_version()))
    }

    /// Reports that the guest is alive.
    pub(crate) fn report(&self, token: &Secret, report: &Report) -> Result<ReportReply, Failure> {
        let body = serde_json::to_vec(report).map_err(|error| Failure::Permanent(error.to_string()))?;
        let reply = self.post(REPORT_PATH, Some(token), &body)?;
        serde_json::from_slice(&reply).map_err(|_| Failure::Permanent(other_version()))
    }

    /// Says that the guest ends.
    pub(crate) fn end(&self, token: &Secret, end: &End) -> Result<(), Failure> {
        let body = serde_json::to_vec(end).map_err(|error| Failure::Permanent(error.to_string()))?;
        self.post(END_PATH, Some(token), &body).map(|_| ())
    }

    fn post(&self, path: &str, token: Option<&Secret>, body: &[u8]) -> Result<Zeroizing<Vec<u8>>, Failure> {
        let url = self.url.refer(path).map_err(Failure::Permanent)?;
        let request = Request { method: "POST", bearer: token.map(Secret::expose), body };
        let response = send(&self.trust, &url, &request).map_err(Failure::Transient)?;
        let status = response.status;
        let reply = response.read(MAX_REPLY).map_err(Failure::Transient)?;
        if status == 200 { Ok(reply) } else { Err(failure(status, &reply)) }
    }
}

fn other_version() -> String {
    "the operator's answer cannot be read: use a guest of the operator's version".to_owned()
}

/// What an answer that is no success means. Only what the operator says may be repeated is, and what a broken server or proxy answers.
fn failure(status: u16, reply: &[u8]) -> Failure {
    let refusal: Option<Refusal> = serde_json::from_slice(reply).ok();
    let text = match &refusal {
        Some(refusal) => format!("the operator answers {status} {:?}: {}", refusal.reason, refusal.message),
        None => format!("the operator answers {status}"),
    };
    match status {
        408 | 425 | 429 | 500..=599 => Failure::Transient(text),
        _ => Failure::Permanent(text),
    }
}

#[cfg(test)]
mod tests {
    use super::{Failure, Operator, failure};

    #[test]
    fn a_refusal_is_final_and_a_server_that_is_not_ready_is_asked_again() {
        let refusal = br#"{"reason": "Used", "message": "the token was used before"}"#;
        assert_eq!(
            failure(403, refusal),
            Failure::Permanent("the operator answers 403 Used: the token was used before".to_owned())
        );
        assert_eq!(failure(404, b"<html>"), Failure::Permanent("the operator answers 404".to_owned()));
        for status in [408, 429, 500, 502, 503] {
            assert!(matches!(failure(status, b""), Failure::Transient(_)), "{status}");
        }
    }

    #[test]
    fn a_configuration_without_an_authority_is_refused() {
        let error = Operator::new("https://a", "no certificate").err().unwrap();
        assert!(error.contains("BEGIN"), "{error}");
        let error = Operator::new("http://a", "").err().unwrap();
        assert!(error.starts_with("operator: "), "{error}");
    }
}
