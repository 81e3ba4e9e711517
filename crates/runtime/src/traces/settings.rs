//! Where traces go: the flag, and the standard variables of OpenTelemetry.

use anyhow::{Context, bail};
use http::{HeaderName, HeaderValue, Uri};

const ENDPOINT: &str = "OTEL_EXPORTER_OTLP_ENDPOINT";
const TRACES_ENDPOINT: &str = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";
const HEADERS: &str = "OTEL_EXPORTER_OTLP_HEADERS";
const SERVICE_NAME: &str = "OTEL_SERVICE_NAME";
const DISABLED: &str = "OTEL_SDK_DISABLED";

/// Where traces go, and as what.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// The URL to which they are posted.
    pub address: Uri,
    /// Headers of every post: they may hold credentials.
    pub headers: Vec<(HeaderName, HeaderValue)>,
    /// What describes this process.
    pub resource: Vec<(String, String)>,
}

impl Settings {
    /// The settings, or nothing if no traces are wanted. The flag goes before the variables; an empty value is none.
    pub fn read(
        flag: Option<&str>,
        variable: impl Fn(&str) -> Option<String>,
        default_service: &str,
    ) -> anyhow::Result<Option<Settings>> {
        let variable = |name: &str| variable(name).filter(|value| !value.trim().is_empty());
        if variable(DISABLED).is_some_and(|value| value.trim().eq_ignore_ascii_case("true")) {
            return Ok(None);
        }
        let found = if let Some(flag) = flag.filter(|flag| !flag.is_empty()) {
            ("--otlp-endpoint", below(flag))
        } else if let Some(address) = variable(TRACES_ENDPOINT) {
            (TRACES_ENDPOINT, address)
        } else if let Some(base) = variable(ENDPOINT) {
            (ENDPOINT, below(&base))
        } else {
            return Ok(None);
        };
        let (name, text) = found;
        let address = address(text.trim()).with_context(|| format!("{name} cannot be used"))?;
        let headers =
            headers(&variable(HEADERS).unwrap_or_default()).with_context(|| format!("{HEADERS} cannot be used"))?;
        let service = variable(SERVICE_NAME).unwrap_or_else(|| default_service.to_owned());
        Ok(Some(Settings { address, headers, resource: vec![("service.name".to_owned(), service)] }))
    }
}

/// The address of traces below that of all signals.
fn below(base: &str) -> String {
    format!("{}/v1/traces", base.trim().trim_end_matches('/'))
}

/// Errors do not quote the address, because it may hold a password.
fn address(text: &str) -> anyhow::Result<Uri> {
    let address: Uri = text.parse().context("it is not a URL such as http://collector:4318")?;
    if !matches!(address.scheme_str(), Some("http" | "https")) {
        bail!("it must begin with http:// or https://, as http://collector:4318 does");
    }
    if address.authority().is_some_and(|authority| authority.as_str().contains('@')) {
        bail!("it holds a user or a password, which would be logged; set {HEADERS}=authorization=... instead");
    }
    Ok(address)
}

/// Headers as `name=value,name=value`, where values may be percent-encoded. Errors do not quote values.
fn headers(text: &str) -> anyhow::Result<Vec<(HeaderName, HeaderValue)>> {
    let mut headers = Vec::new();
    for (number, pair) in (1..).zip(text.split(',').map(str::trim).filter(|pair| !pair.is_empty())) {
        let form = || format!("header {number} is not of the form name=value");
        let (name, value) = pair.split_once('=').with_context(form)?;
        let name: HeaderName = name.trim().parse().ok().with_context(form)?;
        let value = percent_decoded(value.trim()).and_then(|value| HeaderValue::from_bytes(&value).ok());
        let mut value = value.with_context(|| format!("the value of the header {name} is not valid"))?;
        value.set_sensitive(true);
        headers.push((name, value));
    }
    Ok(headers)
}

fn percent_decoded(text: &str) -> Option<Vec<u8>> {
    let mut decoded = Vec::new();
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        decoded.push(match byte {
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                u8::try_from(digit()? * 16 + digit()?).ok()?
            }
            byte => byte,
        });
    }
    Some(decoded)
}

#[cfg(test)]
mod tests {
    use super::Settings;

    fn read(flag: Option<&str>, variables: &[(&str, &str)]) -> anyhow::Result<Option<Settings>> {
        let find = |name: &str| variables.iter().find(|(key, _)| *key == name).map(|(_, value)| (*value).to_owned());
        Settings::read(flag, find, "default")
    }

    #[test]
    fn the_flag_goes_before_the_variables_and_nothing_means_off() {
        let (general, traces) = ("OTEL_EXPORTER_OTLP_ENDPOINT", "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT");
        let address =
            |flag, variables: &[_]| read(flag, variables).unwrap().map(|settings| settings.address.to_string());
        for (flag, variables, expected) in [
            (None, &[][..], None),
            (Some(""), &[(general, " "), (traces, "")], None),
            (None, &[(general, "http://c:4318")], Some("http://c:4318/v1/traces")),
            (None, &[(general, "https://c/otlp/")], Some("https://c/otlp/v1/traces")),
            (None, &[(general, "http://c:4318"), (traces, "http://t/x")], Some("http://t/x")),
            (Some("http://f:1/"), &[(general, "http://c:4318"), (traces, "http://t/x")], Some("http://f:1/v1/traces")),
            (Some("http://f:1"), &[("OTEL_SDK_DISABLED", "True")], None),
            (Some("http://f:1"), &[("OTEL_SDK_DISABLED", "no")], Some("http://f:1/v1/traces")),
        ] {
            assert_eq!(address(flag, variables).as_deref(), expected, "{flag:?} {variables:?}");
        }
    }

    #[test]
    fn headers_are_decoded_and_the_service_has_a_name() {
        let variables = [
            ("OTEL_EXPORTER_OTLP_HEADERS", "authorization=Basic%20abc==, x-scope = a,"),
            ("OTEL_SERVICE_NAME", "mine"),
        ];
        let settings = read(Some("http://f:1"), &variables).unwrap().unwrap();
        let headers: Vec<_> =
            settings.headers.iter().map(|(name, value)| (name.as_str(), value.to_str().unwrap())).collect();
        assert_eq!(headers, [("authorization", "Basic abc=="), ("x-scope", "a")]);
        assert!(!format!("{settings:?}").contains("abc"), "what may be secret is not shown");
        assert_eq!(settings.resource, [("service.name".to_owned(), "mine".to_owned())]);
        let settings = read(Some("http://f:1"), &[]).unwrap().unwrap();
        assert_eq!(settings.resource[0].1, "default");
    }

    #[test]
    fn what_cannot_be_used_is_an_error_that_shows_no_secret() {
        let error = |flag, headers| {
            let error = read(Some(flag), &[("OTEL_EXPORTER_OTLP_HEADERS", headers)]).unwrap_err();
            format!("{error:#}")
        };
        for (flag, headers, expected) in [
            ("collector:4318", "", "--otlp-endpoint cannot be used: it is not a URL such as http://collector:4318"),
            ("grpc://c:4317", "", "--otlp-endpoint cannot be used: it must begin with http:// or https://"),
            ("http://u:hidden@c", "", "--otlp-endpoint cannot be used: it holds a user or a password"),
            ("http://c", "hidden", "OTEL_EXPORTER_OTLP_HEADERS cannot be used: header 1 is not of the form name=value"),
            (
                "http://c",
                "a=hidden%0a",
                "OTEL_EXPORTER_OTLP_HEADERS cannot be used: the value of the header a is not valid",
            ),
            (
                "http://c",
                "a=hidden%x",
                "OTEL_EXPORTER_OTLP_HEADERS cannot be used: the value of the header a is not valid",
            ),
        ] {
            let error = error(flag, headers);
            assert!(error.starts_with(expected), "{error}");
            assert!(!error.contains("hidden"), "{error}");
        }
    }
}
