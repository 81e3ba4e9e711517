//! The calls of the API: their paths and parameters, and how a request is matched and verified.

use crate::access::Caller;
use crate::request::{Method, Request};
use crate::response::{Answer, Refusal};
use crate::stand_in::StandIn;
use crate::{body, config, property};
use std::collections::BTreeMap;
use std::fmt;
use std::time::Duration;

/// One call of the API.
#[derive(Clone, Copy)]
pub struct Route {
    /// Its method.
    pub method: Method,
    /// Its path, as the published schema has it.
    pub path: &'static str,
    /// Its parameters without those in the path.
    pub params: &'static [Param],
    pub(crate) run: Run,
}

/// Carries out a call.
pub(crate) type Run = fn(&mut StandIn, &Call<'_>) -> Result<Answer, Refusal>;

/// A parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Param {
    /// Its name; `net[n]` is `net0`, `net1` ...
    pub name: &'static str,
    /// Whether it has to be given.
    pub is_required: bool,
    /// Its values.
    pub kind: Kind,
}

/// The values of a parameter.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Any text.
    Text,
    /// A whole number.
    Number {
        /// The smallest.
        min: u64,
        /// The largest.
        max: u64,
    },
    /// 0 or 1.
    Flag,
    /// One of these texts.
    OneOf(&'static [&'static str]),
    /// The name of a host.
    DnsName,
    /// Tags, separated by `;`, `,` or a space.
    Tags,
    /// A size, such as `32G`, or with a plus how much is added.
    Size,
    /// A text of at most so many characters.
    Short(usize),
    /// Texts. Of a single one nobody can tell whether it is a list.
    List,
}

impl fmt::Debug for Route {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.method.as_str(), self.path)
    }
}

/// A request that was matched with its route and whose sender is known.
#[derive(Debug)]
pub(crate) struct Call<'a> {
    pub(crate) request: &'a Request,
    pub(crate) in_path: BTreeMap<&'static str, String>,
    pub(crate) caller: Caller,
    pub(crate) now: Duration,
}

impl Call<'_> {
    pub(crate) fn text(&self, name: &str) -> Option<&str> {
        self.request.parameters.get(name).map(String::as_str)
    }

    pub(crate) fn number<T: std::str::FromStr>(&self, name: &str) -> Option<T> {
        self.text(name)?.parse().ok()
    }

    pub(crate) fn flag(&self, name: &str) -> bool {
        self.text(name).is_some_and(is_true)
    }

    pub(crate) fn node(&self) -> &str {
        self.path("node")
    }

    pub(crate) fn path(&self, name: &str) -> &str {
        self.in_path.get(name).map_or("", String::as_str)
    }

    pub(crate) fn vmid(&self) -> u32 {
        self.path("vmid").parse().unwrap_or_default()
    }

    /// The path of the VM in permissions.
    pub(crate) fn vm_path(&self) -> String {
        format!("/vms/{}", self.vmid())
    }
}

fn is_true(text: &str) -> bool {
    matches!(text.to_lowercase().as_str(), "1" | "on" | "yes" | "true")
}

impl Route {
    /// Whether a request with this method and path, without its query, is this call.
    pub fn serves(&self, method: &str, path: &str) -> bool {
        self.method.as_str() == method && self.matches(self.method, path).is_some()
    }

    /// The variable parts of a path that is this route's. The name of a volume may contain slashes.
    pub(crate) fn matches(&self, method: Method, path: &str) -> Option<BTreeMap<&'static str, String>> {
        if method != self.method {
            return None;
        }
        let mut found = BTreeMap::new();
        let mut rest = path.trim_matches('/').split('/');
        for expected in self.path.trim_matches('/').split('/') {
            let part = rest.next().filter(|part| !part.is_empty())?;
            match expected.strip_prefix('{').and_then(|name| name.strip_suffix('}')) {
                Some("volume") => {
                    let whole = [part].into_iter().chain(rest.by_ref()).collect::<Vec<_>>().join("/");
                    found.insert("volume", whole);
                }
                Some(name) => {
                    found.insert(name, part.to_owned());
                }
                None if expected == part => {}
                None => return None,
            }
        }
        rest.next().is_none().then_some(found)
    }

    /// Refuses parameters that are unknown, missing or wrong, all at once.
    pub(crate) fn verify(&self, call: &Call<'_>) -> Result<(), Refusal> {
        let mut wrong = BTreeMap::new();
        if let Some(vmid) = call.in_path.get("vmid")
            && let Err(text) = (Kind::Number { min: 100, max: 999_999_999 }).verify(vmid)
        {
            wrong.insert("vmid".to_owned(), text);
        }
        for (name, value) in &call.request.parameters {
            let verified = match self.params.iter().find(|param| config::is_key(param.name, name)) {
                Some(param) => param.kind.verify(value),
                None => {
                    Err("property is not defined in schema and the schema does not allow additional properties"
                        .to_owned())
                }
            };
            if let Err(text) = verified {
                wrong.insert(name.clone(), text);
            }
        }
        for param in self.params.iter().filter(|param| param.is_required) {
            if call.text(param.name).is_none() {
                wrong.insert(param.name.to_owned(), "property is missing and it is not optional".to_owned());
            }
        }
        if wrong.is_empty() { Ok(()) } else { Err(Refusal::parameters(wrong)) }
    }
}

impl Kind {
    fn verify(self, value: &str) -> Result<(), String> {
        if self != Kind::List && value.contains(body::SEPARATOR) {
            return Err("type check ('string') failed - got ARRAY".to_owned());
        }
        match self {
            Kind::Text | Kind::List => Ok(()),
            Kind::Flag => {
                let is_flag = is_true(value) || matches!(value.to_lowercase().as_str(), "0" | "off" | "no" | "false");
                is_flag.then_some(()).ok_or_else(|| format!("type check ('boolean') failed - got '{value}'"))
            }
            Kind::Number { min, max } => {
                let found: i128 =
                    value.parse().map_err(|_| format!("type check ('integer') failed - got '{value}'"))?;
                if found < i128::from(min) {
                    return Err(format!("value must have a minimum value of {min}"));
                }
                match found > i128::from(max) {
                    true => Err(format!("value must have a maximum value of {max}")),
                    false => Ok(()),
                }
            }
            Kind::OneOf(values) => values.contains(&value).then_some(()).ok_or_else(|| {
                format!("value '{value}' does not have a value in the enumeration '{}'", values.join(", "))
            }),
            Kind::DnsName => is_dns_name(value)
                .then_some(())
                .ok_or_else(|| "invalid format - value does not look like a valid DNS name\n".to_owned()),
            Kind::Tags => {
                let is_wrong = config::split_tags(value).any(|tag| !config::is_tag(tag));
                (!is_wrong).then_some(()).ok_or_else(|| "invalid format - invalid characters in tag\n".to_owned())
            }
            Kind::Size => property::bytes(value.trim_start_matches('+'))
                .map(|_| ())
                .ok_or_else(|| "value does not match the regex pattern".to_owned()),
            Kind::Short(most) => (value.chars().count() <= most)
                .then_some(())
                .ok_or_else(|| format!("value may only be {most} characters long")),
        }
    }
}

fn is_dns_name(text: &str) -> bool {
    let is_label = |label: &str| {
        !label.is_empty()
            && label.len() <= 63
            && !label.starts_with('-')
            && !label.ends_with('-')
            && label.bytes().all(|byte| byte.is_ascii_alphanumeric() || byte == b'-')
    };
    text.split('.').all(is_label)
}
