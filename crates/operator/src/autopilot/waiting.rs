//! What has to be there before anything can be kept: an API server.

use cluster::{Kinds, Server};
use std::time::Duration;

/// A server that does not answer is asked again after this, and then less and less often.
const WAIT: (Duration, Duration) = (Duration::from_millis(100), Duration::from_secs(5));

/// Waits until the API server says what it serves.
pub(super) async fn discover(server: &Server) -> Kinds {
    let (mut trouble, mut wait) = (String::new(), WAIT.0);
    loop {
        match Kinds::discover(server).await {
            Ok(kinds) => return kinds,
            Err(error) => {
                let now = format!(
                    "could not ask the API server at {} what it serves: {error}; trying again until it answers",
                    server.address
                );
                if trouble != now {
                    tracing::warn!("{now}");
                    trouble = now;
                }
            }
        }
        tokio::time::sleep(wait).await;
        wait = (wait * 2).min(WAIT.1);
    }
}
