//! Values of flags that several commands have.

use install::{Account, Products};
use std::time::Duration;

/// Parses a boolean as Go does: true, T, 1 and so on.
pub(crate) fn boolean(text: &str) -> Result<bool, String> {
    match text {
        "1" | "t" | "T" | "TRUE" | "true" | "True" => Ok(true),
        "0" | "f" | "F" | "FALSE" | "false" | "False" => Ok(false),
        _ => Err("write true or false".into()),
    }
}

/// Parses a duration in Go's notation: 10s, 1m30s.
pub(crate) fn duration(text: &str) -> Result<Duration, String> {
    let invalid = || format!("{text:?} is not a duration; write it as 10s or 1m30s");
    let time = text.parse::<jiff::SignedDuration>().map_err(|_| invalid())?;
    Duration::try_from(time).ok().filter(|time| !time.is_zero()).ok_or_else(invalid)
}

/// Parses the name of a namespace.
pub(crate) fn namespace(text: &str) -> Result<String, String> {
    let is_plain = |character: char| character.is_ascii_lowercase() || character.is_ascii_digit() || character == '-';
    let is_name = (1..=63).contains(&text.len()) && text.chars().all(is_plain);
    match is_name && !text.starts_with('-') && !text.ends_with('-') {
        true => Ok(text.to_owned()),
        false => Err(format!("{text:?} is not the name of a namespace; write one such as {}", api::hco::NAMESPACE)),
    }
}

/// Parses the products of an installation.
pub(crate) fn products(text: &str) -> Result<Products, String> {
    match text {
        "autopilot,advisor" | "advisor,autopilot" => Ok(Products::Both),
        "autopilot" => Ok(Products::Autopilot),
        "advisor" => Ok(Products::Advisor),
        "fleet" => Ok(Products::Fleet),
        _ => Err("write autopilot, advisor, autopilot,advisor, or fleet".into()),
    }
}

/// Parses a service account, such as monitoring/prometheus.
pub(crate) fn account(text: &str) -> Result<Account, String> {
    match namespaced(text) {
        Some((namespace, name)) => Ok(Account { namespace, name }),
        None => Err(format!("{text:?} is not a service account; write one such as monitoring/prometheus-k8s")),
    }
}

/// Parses a Secret, such as ci/pve-token.
pub(crate) fn secret(text: &str) -> Result<(String, String), String> {
    namespaced(text).ok_or_else(|| format!("{text:?} is not a Secret; write one such as ci/pve-token"))
}

/// A namespace and the name of an object.
fn namespaced(text: &str) -> Option<(String, String)> {
    let is_plain = |character: char| {
        character.is_ascii_lowercase() || character.is_ascii_digit() || character == '-' || character == '.'
    };
    let (space, name) = text.split_once('/')?;
    let is_name = !name.is_empty() && name.chars().all(is_plain);
    is_name.then(|| Some((namespace(space).ok()?, name.to_owned())))?
}

/// Parses a kind, such as DaemonSet.
pub(crate) fn kind(text: &str) -> Result<String, String> {
    match !text.is_empty() && text.chars().all(|character| character.is_ascii_alphanumeric()) {
        true => Ok(text.to_owned()),
        false => Err(format!("{text:?} is not a kind; write one such as DaemonSet")),
    }
}

/// Parses a kind, or an object such as ConfigMap/trusted-ca.
pub(crate) fn kind_or_object(text: &str) -> Result<String, String> {
    let (of, name) = text.split_once('/').unwrap_or((text, "x"));
    let is_name =
        !name.is_empty() && name.chars().all(|character| character.is_ascii_alphanumeric() || "-.".contains(character));
    match kind(of) {
        Ok(_) if is_name => Ok(text.to_owned()),
        _ => Err(format!("{text:?} is not a kind or an object; write one such as DaemonSet or ConfigMap/trusted-ca")),
    }
}

#[cfg(test)]
mod tests {
    use super::{account, boolean, duration, kind, kind_or_object, namespace, products, secret};
    use install::Products;

    #[test]
    fn values_are_what_they_say_or_refused() {
        assert_eq!((boolean("T"), boolean("0")), (Ok(true), Ok(false)));
        assert!(boolean("yes").is_err() && boolean("").is_err());
        assert!(duration("1m30s").is_ok() && duration("0s").is_err() && duration("10").is_err());
        assert!(namespace("openshift-cnv").is_ok());
        for wrong in ["", "A", "a_b", "-a", "a-", "a.b", "a/b", &"a".repeat(64)] {
            assert!(namespace(wrong).is_err(), "{wrong}");
        }
        assert_eq!(account("monitoring/prometheus-k8s").unwrap().to_string(), "monitoring/prometheus-k8s");
        assert!(account("monitoring").is_err() && account("monitoring/").is_err() && account("a/b/c").is_err());
        assert!(kind_or_object("ConfigMap/a-b.c").is_ok() && kind_or_object("ConfigMap/").is_err());
        assert_eq!((products("autopilot,advisor"), products("advisor")), (Ok(Products::Both), Ok(Products::Advisor)));
        assert_eq!(products("fleet"), Ok(Products::Fleet));
        assert!(products("").is_err() && products("fleet,advisor").is_err());
        assert_eq!(secret("ci/pve-token"), Ok(("ci".to_owned(), "pve-token".to_owned())));
        assert!(secret("pve-token").is_err() && secret("ci/").is_err() && secret("ci/*").is_err());
        assert!(kind("DaemonSet").is_ok() && kind("").is_err() && kind("a b").is_err());
    }
}
