//! Lets only those read metrics whom the API server allows it.

use axum::http::{HeaderMap, StatusCode, header};
use cluster::Server;
use cluster::review::{Bearer, may_get};
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};
use std::time::{Duration, Instant};
use tokio::sync::Semaphore;

/// An answer of the server holds for so long.
const FRESH: Duration = Duration::from_secs(60);
/// More answers are not remembered.
const MOST_REMEMBERED: usize = 64;
/// More reviews at a time would only load the server.
const REVIEWS_AT_A_TIME: usize = 2;

/// Who may get one path.
pub struct Guard {
    server: Server,
    path: &'static str,
    reviews: Semaphore,
    /// By the digest of the token.
    known: Mutex<HashMap<[u8; 32], (Instant, Bearer)>>,
}

impl Guard {
    /// A guard of this path.
    pub fn new(server: Server, path: &'static str) -> Guard {
        Guard { server, path, reviews: Semaphore::new(REVIEWS_AT_A_TIME), known: Mutex::default() }
    }

    /// Checks the bearer token of a request.
    pub async fn check(&self, headers: &HeaderMap) -> Result<(), (StatusCode, String)> {
        let value = headers.get(header::AUTHORIZATION).and_then(|value| value.to_str().ok()).unwrap_or_default();
        let token = match value.split_once(' ') {
            Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => token.trim(),
            _ => return Err((StatusCode::UNAUTHORIZED, "send a bearer token\n".to_owned())),
        };
        match self.access(token).await {
            Ok(Bearer::Allowed) => Ok(()),
            Ok(Bearer::Denied) => {
                let rule = format!("{{nonResourceURLs: [\"{}\"], verbs: [\"get\"]}}", self.path);
                Err((StatusCode::FORBIDDEN, format!("not allowed; bind a ClusterRole with this rule: {rule}\n")))
            }
            Ok(Bearer::Unauthenticated) => {
                Err((StatusCode::UNAUTHORIZED, "the API server does not know this token\n".to_owned()))
            }
            Err(why) => {
                tracing::warn!("could not check who asks for {}: {why}", self.path);
                Err((StatusCode::SERVICE_UNAVAILABLE, "the API server cannot be asked about this token\n".to_owned()))
            }
        }
    }

    async fn access(&self, token: &str) -> Result<Bearer, String> {
        let digest: [u8; 32] = Sha256::digest(token).into();
        if let Some(known) = self.known(&digest) {
            return Ok(known);
        }
        let _permit = self.reviews.acquire().await.map_err(|error| error.to_string())?;
        // Another request with the same token may have waited for the same answer.
        if let Some(known) = self.known(&digest) {
            return Ok(known);
        }
        let access = may_get(&self.server, token, self.path).await.map_err(|failure| failure.to_string())?;
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.retain(|_, (at, _)| at.elapsed() < FRESH);
        // Strangers may send any number of tokens, and must not push out those who are known.
        if known.len() >= MOST_REMEMBERED {
            known.retain(|_, (_, access)| *access != Bearer::Unauthenticated);
        }
        if known.len() < MOST_REMEMBERED {
            known.insert(digest, (Instant::now(), access));
        }
        Ok(access)
    }

    fn known(&self, digest: &[u8; 32]) -> Option<Bearer> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.get(digest).filter(|(at, _)| at.elapsed() < FRESH).map(|(_, access)| *access)
    }
}

#[cfg(test)]
mod tests {
    use super::Guard;
    use crate::test_server::{self, Answer};
    use axum::http::{HeaderMap, StatusCode};
    use std::sync::Arc;
    use std::sync::atomic::{AtomicUsize, Ordering};

    #[tokio::test]
    async fn a_token_is_reviewed_once_a_minute_and_only_the_allowed_one_passes() {
        let reviews = Arc::new(AtomicUsize::new(0));
        let count = reviews.clone();
        let server = test_server::answering(move |_, url, body| {
            count.fetch_add(1, Ordering::SeqCst);
            let answer = match url.rsplit('/').next().unwrap() {
                "tokenreviews" if body.contains("stranger") => r#"{"status":{"authenticated":false}}"#.to_owned(),
                "tokenreviews" => {
                    let user = if body.contains("reader") { "reader" } else { "nobody" };
                    format!(r#"{{"status":{{"authenticated":true,"user":{{"username":"{user}","groups":["g"]}}}}}}"#)
                }
                _ => format!(r#"{{"status":{{"allowed":{}}}}}"#, body.contains(r#""user":"reader""#)),
            };
            Answer::now(201, &answer)
        });
        let guard = Guard::new(server, "/metrics");
        let code = async |value: Option<&str>| {
            let mut headers = HeaderMap::new();
            if let Some(value) = value {
                headers.insert("authorization", value.parse().unwrap());
            }
            guard.check(&headers).await.map_or_else(|(code, _)| code, |()| StatusCode::OK)
        };
        for _ in 0..3 {
            assert_eq!(code(Some("Bearer reader")).await, StatusCode::OK);
            assert_eq!(code(Some("Bearer nobody")).await, StatusCode::FORBIDDEN);
            assert_eq!(code(Some("bearer stranger")).await, StatusCode::UNAUTHORIZED);
            assert_eq!(code(Some("Basic reader")).await, StatusCode::UNAUTHORIZED);
            assert_eq!(code(None).await, StatusCode::UNAUTHORIZED);
        }
        assert_eq!(reviews.load(Ordering::SeqCst), 5, "two reviews for each known user, one for a stranger");
        for number in 0..2 * super::MOST_REMEMBERED {
            let stranger = format!("Bearer stranger-{number}");
            assert_eq!(code(Some(&stranger)).await, StatusCode::UNAUTHORIZED);
        }
        let before = reviews.load(Ordering::SeqCst);
        assert_eq!(code(Some("Bearer reader")).await, StatusCode::OK);
        assert_eq!(reviews.load(Ordering::SeqCst), before, "strangers do not push out those who are known");
    }

    #[tokio::test]
    async fn nobody_passes_while_the_server_does_not_answer() {
        let server = test_server::answering(|_, _, _| Answer::now(500, "{}"));
        let mut headers = HeaderMap::new();
        headers.insert("authorization", "Bearer reader".parse().unwrap());
        let refused = Guard::new(server, "/metrics").check(&headers).await.unwrap_err();
        assert_eq!(refused.0, StatusCode::SERVICE_UNAVAILABLE);
    }
}
