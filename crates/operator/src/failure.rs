//! Errors as they are printed: one line each.

use std::fmt;

/// Several errors that are printed one by one.
#[derive(Debug)]
pub(crate) struct Several(pub(crate) Vec<String>);

impl fmt::Display for Several {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.0.join("; "))
    }
}

impl std::error::Error for Several {}

/// The lines to print.
pub(crate) fn lines(error: &anyhow::Error) -> Vec<String> {
    match error.downcast_ref::<Several>() {
        Some(Several(errors)) => errors.iter().map(|error| with_hint(&one_line(error))).collect(),
        None => vec![with_hint(&one_line(&chain(error)))],
    }
}

/// An error with its causes, each text once: many libraries repeat the cause in their own text.
fn chain(error: &anyhow::Error) -> String {
    let mut text = String::new();
    for cause in error.chain() {
        let more = cause.to_string();
        if text.is_empty() {
            text = more;
        } else if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
    }
    text
}

/// An error of the connection with what to do about it, if it does not say so.
fn with_hint(text: &str) -> String {
    let lower = text.to_lowercase();
    let hint = match () {
        () if lower.contains("kubeconfig") => "",
        () if lower.contains("connection refused") => {
            "; check that the API server runs, and that the kubeconfig or its context is the right one"
        }
        () if lower.contains("unauthorized") => "; log in again, or check the user of the kubeconfig",
        () => "",
    };
    format!("{text}{hint}")
}

fn one_line(text: &str) -> String {
    text.lines().map(str::trim).filter(|line| !line.is_empty()).collect::<Vec<_>>().join(" ")
}

#[cfg(test)]
mod tests {
    use super::{Several, lines};
    use anyhow::anyhow;

    #[test]
    fn an_error_is_one_line_and_repeats_nothing() {
        let error = anyhow!("refused").context("a request failed: refused").context("could not ask\n  the server");
        assert_eq!(lines(&error), ["could not ask the server: a request failed: refused"]);
        let error = anyhow::Error::from(Several(vec!["one".into(), "two\n".into()]));
        assert_eq!(lines(&error), ["one", "two"]);
        assert!(lines(&anyhow!("Unauthorized"))[0].ends_with("; log in again, or check the user of the kubeconfig"));
        assert!(lines(&anyhow!("Connection refused (os error 111)"))[0].contains("check that the API server runs"));
    }
}
