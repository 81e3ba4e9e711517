//! Repeats an attempt at a fixed interval.

use std::time::{Duration, Instant};

/// Repeats until the attempt returns a value or fails.
pub async fn until_some<T, E>(
    interval: Duration,
    mut attempt: impl AsyncFnMut() -> Result<Option<T>, E>,
) -> Result<T, E> {
    loop {
        if let Some(value) = attempt().await? {
            return Ok(value);
        }
        tokio::time::sleep(interval).await;
    }
}

/// Repeats until the attempt returns a value or fails; `None` means that the timeout has expired.
pub async fn with_timeout<T, E>(
    interval: Duration,
    timeout: Duration,
    mut attempt: impl AsyncFnMut() -> Result<Option<T>, E>,
) -> Result<Option<T>, E> {
    let started = Instant::now();
    until_some(interval, async || match attempt().await? {
        Some(value) => Ok(Some(Some(value))),
        None if started.elapsed() > timeout => Ok(Some(None)),
        None => Ok(None),
    })
    .await
}

#[cfg(test)]
mod tests {
    use super::with_timeout;
    use std::time::Duration;

    #[tokio::test]
    async fn polling_ends_with_a_value_an_error_or_the_timeout() {
        let (interval, timeout) = (Duration::from_millis(1), Duration::from_millis(5));
        let mut attempts = 0;
        let third = with_timeout(interval, Duration::from_secs(60), async || {
            attempts += 1;
            Ok::<_, ()>((attempts == 3).then_some(attempts))
        });
        assert_eq!(third.await, Ok(Some(3)));
        assert_eq!(with_timeout(interval, timeout, async || Err::<Option<()>, _>("failed")).await, Err("failed"));
        assert_eq!(with_timeout(interval, timeout, async || Ok::<Option<()>, ()>(None)).await, Ok(None));
    }
}
