//! How the certificate of a CI platform is checked, and what is wrong if it is refused.

use crate::settings::Tls;
use hyper_rustls::ConfigBuilderExt;
use rustls::crypto::ring;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::{CertificateError, ClientConfig, InvalidMessage, RootCertStore};
use std::error::Error;
use std::sync::Arc;

/// The settings of TLS, or what is wrong with them and the remedy.
pub(crate) fn config(tls: &Tls) -> Result<ClientConfig, (String, String)> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| (error.to_string(), "report this as a bug".to_owned()))?;
    match tls {
        Tls::System => match builder.with_native_roots() {
            Ok(builder) => Ok(builder.with_no_client_auth()),
            Err(error) => Err((
                format!("the certificate authorities of the system cannot be read: {error}"),
                "give the CA that signed the certificate of the server".into(),
            )),
        },
        Tls::Authorities(pem) => Ok(builder.with_root_certificates(authorities(pem)?).with_no_client_auth()),
    }
}

fn authorities(pem: &str) -> Result<RootCertStore, (String, String)> {
    let remedy = || "give the PEM text of the CA that signed the certificate of the server".to_owned();
    let mut roots = RootCertStore::empty();
    for certificate in CertificateDer::pem_slice_iter(pem.as_bytes()) {
        let certificate = certificate.map_err(|error| (format!("the CA is not valid PEM: {error}"), remedy()))?;
        roots.add(certificate).map_err(|error| (format!("the CA is no valid certificate: {error}"), remedy()))?;
    }
    match roots.is_empty() {
        true => Err(("the CA contains no certificate".into(), remedy())),
        false => Ok(roots),
    }
}

/// What a person has to change, if a connection failed because of TLS: what is wrong and the remedy.
pub(crate) fn explain(error: &(dyn Error + 'static)) -> Option<(String, String)> {
    let found = rustls_error(error)?;
    let said = |what: &str, remedy: &str| Some((format!("{what}: {found}"), remedy.to_owned()));
    match found {
        rustls::Error::InvalidCertificate(problem) => match problem {
            CertificateError::UnknownIssuer | CertificateError::BadSignature => said(
                "the certificate of the server is not signed by a trusted CA",
                "give the CA that signed it; a proxy that opens TLS has a CA of its own",
            ),
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. } => said(
                "the certificate of the server is not valid now",
                "renew it, or set the clocks: they may be wrong here or there",
            ),
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => said(
                "the certificate of the server is for another name",
                "use an address with a name of the certificate",
            ),
            _ => said("the certificate of the server is refused", "renew it"),
        },
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            said("the server does not speak TLS", "check the port of the address")
        }
        _ => None,
    }
}

/// The error of rustls among the causes.
fn rustls_error<'a>(error: &'a (dyn Error + 'static)) -> Option<&'a rustls::Error> {
    let mut next = Some(error);
    while let Some(error) = next {
        if let Some(found) = error.downcast_ref::<rustls::Error>() {
            return Some(found);
        }
        let inner = error.downcast_ref::<std::io::Error>().and_then(std::io::Error::get_ref);
        next = match inner {
            Some(inner) => Some(inner),
            None => error.source(),
        };
    }
    None
}

#[cfg(test)]
mod tests {
    use super::config;
    use crate::settings::Tls;

    #[test]
    fn a_ca_that_cannot_be_used_is_refused_with_a_remedy() {
        for (pem, expected) in [
            ("", "the CA contains no certificate"),
            ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----", "the CA is no valid certificate"),
            ("-----BEGIN CERTIFICATE-----\nAAAA\n", "the CA is not valid PEM"),
        ] {
            let (message, remedy) = config(&Tls::Authorities(pem.into())).unwrap_err();
            assert!(message.starts_with(expected) && remedy.contains("PEM text"), "{pem}: {message}");
        }
    }
}
