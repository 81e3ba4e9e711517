//! Reads the Secrets that an object names, and says what is wrong without ever showing a value.

use api::fleet::SecretKeyRef;
use change::{Key, Kind};
use cluster::{Server, live};
use k8s_openapi::ByteString;
use protocol::Served;
use std::collections::BTreeMap;

/// The Secrets that one object names, each read once.
pub(super) struct Secrets<'a> {
    server: &'a Server,
    home: Option<&'a str>,
    namespace: &'a str,
    /// Kind, namespace and name of the object, such as `HypervisorCluster ci/pve`.
    of: String,
    read: BTreeMap<String, BTreeMap<String, ByteString>>,
}

/// Why a value cannot be had.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) enum Unavailable {
    /// The API server does not answer now.
    Transient(String),
    /// A person has to change something: what is wrong, and what to do.
    Configuration(String, String),
}

impl<'a> Secrets<'a> {
    /// `home` is the namespace of the fleet, unless a person asks.
    pub(super) fn new(server: &'a Server, home: Option<&'a str>, namespace: &'a str, of: String) -> Secrets<'a> {
        Secrets { server, home, namespace, of, read: BTreeMap::new() }
    }

    /// Kind, namespace and name of the object.
    pub(super) fn of(&self) -> &str {
        &self.of
    }

    /// The value of a key; `field` is where the object names it. An error never contains a value.
    pub(super) async fn value(&mut self, field: &str, reference: &SecretKeyRef) -> Result<String, Unavailable> {
        if !self.read.contains_key(&reference.name) {
            let data = self.data(field, &reference.name).await?;
            self.read.insert(reference.name.clone(), data);
        }
        let data = self.read.get(&reference.name).cloned().unwrap_or_default();
        value_of(&data, self.namespace, &self.of, field, reference)
    }

    async fn data(&self, field: &str, name: &str) -> Result<BTreeMap<String, ByteString>, Unavailable> {
        let (namespace, of) = (self.namespace, &self.of);
        let kind = Kind::new("v1", "Secret");
        let served = Served::at(kind.clone(), "secrets", true);
        let key = Key { kind, namespace: namespace.to_owned(), name: name.to_owned() };
        let what = format!("the Secret {namespace}/{name}, which {field} of {of} names");
        let found = live::whole(self.server, &served, &key).await.map_err(|failure| {
            let remedy = match self.home {
                Some(home) => format!(
                    "let the fleet read it: virtpilot rbac --product fleet --namespace {home} --fleet-secrets {namespace}/{name} \
                     | kubectl apply -f -"
                ),
                None => format!("ask for the right to get it; the conditions of {of} say what the fleet finds"),
            };
            unread(&failure, &what, &remedy)
        })?;
        let Some(mut found) = found else {
            return Err(Unavailable::Configuration(
                format!("{what}, does not exist"),
                format!(
                    "create it: kubectl create secret generic {name} --namespace {namespace} --from-literal=KEY=VALUE"
                ),
            ));
        };
        // The text of the error could quote a value.
        serde_json::from_value::<Option<_>>(found["data"].take())
            .map(Option::unwrap_or_default)
            .map_err(|_| Unavailable::Configuration(format!("{what}, cannot be read"), "create it again".into()))
    }
}

fn value_of(
    data: &BTreeMap<String, ByteString>,
    namespace: &str,
    of: &str,
    field: &str,
    reference: &SecretKeyRef,
) -> Result<String, Unavailable> {
    let SecretKeyRef { name, key } = reference;
    let wrong = |what: &str, remedy: String| {
        Unavailable::Configuration(format!("the Secret {namespace}/{name}: {what} ({field} of {of})"), remedy)
    };
    let Some(value) = data.get(key) else {
        let keys: Vec<&str> = data.keys().map(String::as_str).collect();
        let has = if keys.is_empty() { "it has none".to_owned() } else { format!("it has {}", keys.join(", ")) };
        return Err(wrong(&format!("there is no key {key:?}"), format!("add the key, or correct {field}.key: {has}")));
    };
    let Ok(text) = std::str::from_utf8(&value.0) else {
        return Err(wrong(&format!("the key {key:?} is not text"), format!("store the plain text in {key}")));
    };
    // Whoever makes a Secret from a file often has a line break at its end.
    let text = text.trim_end_matches(['\r', '\n']);
    match text.is_empty() {
        true => Err(wrong(&format!("the key {key:?} is empty"), format!("store the value in {key}"))),
        false => Ok(text.to_owned()),
    }
}

/// Why something could not be read: a refusal needs a person, everything else passes.
pub(super) fn unread(failure: &cluster::Failure, what: &str, remedy: &str) -> Unavailable {
    match failure.is_refusal() {
        true => Unavailable::Configuration(format!("{what}, cannot be read: {failure}"), remedy.to_owned()),
        false => Unavailable::Transient(format!("{what}, cannot be read now: {failure}")),
    }
}

#[cfg(test)]
mod tests {
    use super::{Unavailable, value_of};
    use api::fleet::SecretKeyRef;
    use k8s_openapi::ByteString;

    #[test]
    fn a_value_is_text_without_its_last_line_break_or_it_is_said_what_is_wrong_and_no_value() {
        let data = [("good", &b"hush\r\n"[..]), ("empty", b"\n"), ("binary", b"\xff\xfe")];
        let data = data.map(|(key, value)| (key.to_owned(), ByteString(value.to_vec()))).into();
        let value = |key: &str| {
            let reference = SecretKeyRef { name: "token".into(), key: key.into() };
            value_of(&data, "ci", "HypervisorCluster ci/pve", "credentials.tokenSecret", &reference)
        };
        assert_eq!(value("good"), Ok("hush".to_owned()));
        for (key, wrong, fix) in [
            ("other", "there is no key \"other\"", "correct credentials.tokenSecret.key: it has binary, empty, good"),
            ("empty", "the key \"empty\" is empty", "store the value in empty"),
            ("binary", "the key \"binary\" is not text", "store the plain text in binary"),
        ] {
            let Err(Unavailable::Configuration(message, remedy)) = value(key) else { panic!("{key} is accepted") };
            assert!(
                message.starts_with(&format!("the Secret ci/token: {wrong}")) && remedy.ends_with(fix),
                "{message}; {remedy}"
            );
            assert!(
                message.contains("HypervisorCluster ci/pve") && !message.contains("hush") && !remedy.contains("hush")
            );
        }
    }
}
