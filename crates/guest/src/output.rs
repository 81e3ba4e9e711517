//! What the guest writes for people: its messages and the runner's output, both without secrets.

use bootstrap::{MAX_LOG, truncated};
use std::collections::VecDeque;
use std::io::Write;
use std::sync::{Mutex, MutexGuard, PoisonError};
use zeroize::Zeroizing;

/// Shorter texts are no secrets: they would hide half of the output.
const SHORTEST_SECRET: usize = 8;
/// The longest line that is kept.
const LONGEST_LINE: usize = 2_048;
/// How tokens of GitHub and JSON web tokens begin.
const TOKEN_PREFIXES: [&str; 9] = ["ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_", "vpb1_", "vpr1_", "eyJ"];

/// Where messages go, and what must not be in them.
#[derive(Default)]
pub(crate) struct Output {
    secrets: Mutex<Vec<Zeroizing<String>>>,
    tail: Mutex<VecDeque<String>>,
}

impl Output {
    /// Hides this text, and each of its lines, from now on.
    pub(crate) fn hide(&self, secret: &str) {
        let mut secrets = locked(&self.secrets);
        for part in std::iter::once(secret).chain(secret.lines()).map(str::trim) {
            if part.len() >= SHORTEST_SECRET && !secrets.iter().any(|known| known.as_str() == part) {
                secrets.push(Zeroizing::new(part.to_owned()));
            }
        }
        // A secret that contains another one is replaced first.
        secrets.sort_by_key(|secret| std::cmp::Reverse(secret.len()));
    }

    /// A text without secrets.
    pub(crate) fn redacted(&self, text: &str) -> String {
        let mut text = text.to_owned();
        for secret in locked(&self.secrets).iter() {
            if text.contains(secret.as_str()) {
                text = text.replace(secret.as_str(), "***");
            }
        }
        without_tokens(&text)
    }

    /// Writes a message of the guest. A standard error that is closed is no reason to fail.
    pub(crate) fn say(&self, message: &str) {
        let _ = writeln!(std::io::stderr().lock(), "virtpilot-guest: {}", self.redacted(message));
    }

    /// Writes a line of the runner, and keeps it for a report.
    pub(crate) fn runner_said(&self, line: &str) {
        let line = self.redacted(truncated(line, LONGEST_LINE));
        let _ = writeln!(std::io::stderr().lock(), "runner: {line}");
        self.keep(line);
    }

    fn keep(&self, line: String) {
        let mut tail = locked(&self.tail);
        tail.push_back(line);
        let mut size: usize = tail.iter().map(|line| line.len() + 1).sum();
        while size > MAX_LOG {
            size -= tail.pop_front().map_or(size, |line| line.len() + 1);
        }
    }

    /// The last lines of the runner.
    pub(crate) fn tail(&self) -> String {
        locked(&self.tail).iter().map(|line| format!("{line}\n")).collect()
    }

    /// Forgets everything, overwriting the secrets.
    pub(crate) fn wipe(&self) {
        locked(&self.secrets).clear();
        locked(&self.tail).clear();
    }
}

/// A panic of another thread does not make the list of secrets wrong.
fn locked<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

/// A text without anything that looks like a token.
fn without_tokens(text: &str) -> String {
    let is_part = |character: char| character.is_ascii_alphanumeric() || "_-.".contains(character);
    let mut result = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find(is_part) {
        let word = &rest[start..];
        let end = word.find(|character| !is_part(character)).unwrap_or(word.len());
        let word = &word[..end];
        result.push_str(&rest[..start]);
        let is_token = word.len() >= 16 && TOKEN_PREFIXES.iter().any(|prefix| word.starts_with(prefix));
        result.push_str(if is_token { "***" } else { word });
        rest = &rest[start + end..];
    }
    result.push_str(rest);
    result
}

#[cfg(test)]
mod tests {
    use super::{Output, without_tokens};
    use bootstrap::MAX_LOG;

    #[test]
    fn known_secrets_and_what_looks_like_a_token_are_hidden() {
        let output = Output::default();
        output.hide("first-secret\nsecond-secret");
        output.hide("first-secret-and-more");
        assert_eq!(output.redacted("a first-secret-and-more b second-secretc"), "a *** b ***c");
        assert_eq!(without_tokens("token=ghs_0123456789abcdef!"), "token=***!");
        assert_eq!(without_tokens("Bearer eyJhbGciOiJ.eyJzdWIi.c2ln-_x ok"), "Bearer *** ok");
        assert_eq!(without_tokens("ghs_ eyJ ünïcode (eyJust a word)"), "ghs_ eyJ ünïcode (eyJust a word)");
        output.wipe();
        assert_eq!(output.redacted("second-secret"), "second-secret");
    }

    #[test]
    fn a_short_text_is_no_secret() {
        let output = Output::default();
        output.hide("a");
        assert_eq!(output.redacted("a banana"), "a banana");
    }

    #[test]
    fn the_tail_has_the_last_lines_and_a_limit() {
        let output = Output::default();
        for line in 0..10_000 {
            output.keep(format!("line {line}"));
        }
        let tail = output.tail();
        assert!(tail.len() <= MAX_LOG && tail.ends_with("line 9998\nline 9999\n"), "{}", tail.len());
        output.keep("x".repeat(1_000_000));
        assert_eq!(output.tail(), "");
    }
}
