//! How the certificate of a Proxmox VE is checked, and what is wrong if it is refused.

use crate::settings::Tls;
use hyper_rustls::ConfigBuilderExt;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::{CryptoProvider, ring, verify_tls12_signature, verify_tls13_signature};
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, ServerName, UnixTime};
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, InvalidMessage, RootCertStore, SignatureScheme};
use sha2::{Digest, Sha256};
use std::error::Error;
use std::sync::Arc;

/// What begins the message about another certificate.
const OTHER_CERTIFICATE: &str = "the certificate has the fingerprint ";

/// The settings of TLS, or what is wrong with them and the remedy.
pub(crate) fn config(tls: &Tls) -> Result<ClientConfig, (String, String)> {
    let provider = Arc::new(ring::default_provider());
    let builder = ClientConfig::builder_with_provider(provider.clone()).with_safe_default_protocol_versions();
    let builder = builder.map_err(|error| (error.to_string(), "report this as a bug".to_owned()))?;
    let unchecked = |expected| Arc::new(Pinned { expected, provider });
    match tls {
        Tls::System => match builder.with_native_roots() {
            Ok(builder) => Ok(builder.with_no_client_auth()),
            Err(error) => Err((
                format!("the certificate authorities of the system cannot be read: {error}"),
                "give the CA of Proxmox VE (/etc/pve/pve-root-ca.pem) or its fingerprint".into(),
            )),
        },
        Tls::Authorities(pem) => Ok(builder.with_root_certificates(authorities(pem)?).with_no_client_auth()),
        Tls::Fingerprint(text) => {
            let verifier = unchecked(Some(fingerprint(text)?));
            Ok(builder.dangerous().with_custom_certificate_verifier(verifier).with_no_client_auth())
        }
        Tls::SkipVerify => {
            Ok(builder.dangerous().with_custom_certificate_verifier(unchecked(None)).with_no_client_auth())
        }
    }
}

fn authorities(pem: &str) -> Result<RootCertStore, (String, String)> {
    let remedy =
        || "give the PEM text of /etc/pve/pve-root-ca.pem, or of the CA that signed the certificate".to_owned();
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

/// 32 bytes in hexadecimal, with or without colons.
fn fingerprint(text: &str) -> Result<[u8; 32], (String, String)> {
    let digits: Vec<u8> = text.bytes().filter(|byte| *byte != b':').collect();
    let pairs: Option<Vec<u8>> = match digits.iter().all(u8::is_ascii_hexdigit) {
        true => digits.chunks(2).map(|pair| u8::from_str_radix(std::str::from_utf8(pair).ok()?, 16).ok()).collect(),
        false => None,
    };
    pairs.filter(|_| digits.len() == 64).and_then(|pairs| <[u8; 32]>::try_from(pairs).ok()).ok_or_else(|| {
        (
            format!("{text:?} is no SHA-256 fingerprint"),
            "give 32 pairs of hexadecimal digits, as `pvenode cert info` prints them".to_owned(),
        )
    })
}

fn spelled(bytes: &[u8]) -> String {
    bytes.iter().map(|byte| format!("{byte:02X}")).collect::<Vec<_>>().join(":")
}

/// Trusts one certificate, whoever signed it, or any. That the server has the key of the certificate is checked in any case.
#[derive(Debug)]
struct Pinned {
    expected: Option<[u8; 32]>,
    provider: Arc<CryptoProvider>,
}

impl ServerCertVerifier for Pinned {
    fn verify_server_cert(
        &self,
        end_entity: &CertificateDer<'_>,
        _intermediates: &[CertificateDer<'_>],
        _server_name: &ServerName<'_>,
        _ocsp_response: &[u8],
        _now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let found: [u8; 32] = Sha256::digest(end_entity).into();
        match self.expected {
            Some(expected) if expected != found => {
                let message = format!("{OTHER_CERTIFICATE}{} and not {}", spelled(&found), spelled(&expected));
                Err(rustls::Error::General(message))
            }
            _ => Ok(ServerCertVerified::assertion()),
        }
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls12_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        cert: &CertificateDer<'_>,
        dss: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        verify_tls13_signature(message, cert, dss, &self.provider.signature_verification_algorithms)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.provider.signature_verification_algorithms.supported_schemes()
    }
}

/// What a person has to change, if a connection failed because of TLS: what is wrong and the remedy.
pub(crate) fn explain(error: &(dyn Error + 'static)) -> Option<(String, String)> {
    let found = rustls_error(error)?;
    let said = |what: &str, remedy: &str| Some((format!("{what}: {found}"), remedy.to_owned()));
    match found {
        rustls::Error::InvalidCertificate(problem) => match problem {
            // A CA of the same name with another key is another CA.
            CertificateError::UnknownIssuer | CertificateError::BadSignature => said(
                "the certificate of Proxmox VE is not signed by the given CA",
                "give the CA that signed it (/etc/pve/pve-root-ca.pem by default), or its SHA-256 fingerprint",
            ),
            CertificateError::Expired
            | CertificateError::ExpiredContext { .. }
            | CertificateError::NotValidYet
            | CertificateError::NotValidYetContext { .. } => said(
                "the certificate of Proxmox VE is not valid now",
                "renew it (pvecm updatecerts --force), or set the clocks: they may be wrong here or there",
            ),
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => said(
                "the certificate of Proxmox VE is for another name",
                "use an endpoint with a name of the certificate, or give its SHA-256 fingerprint",
            ),
            _ => said("the certificate of Proxmox VE is refused", "renew it (pvecm updatecerts --force)"),
        },
        rustls::Error::General(message) if message.starts_with(OTHER_CERTIFICATE) => Some((
            message.clone(),
            "if the certificate was renewed, give its new fingerprint; if not, somebody else answers".to_owned(),
        )),
        rustls::Error::InvalidMessage(InvalidMessage::InvalidContentType) => {
            said("the server does not speak TLS", "check the port of the endpoint; Proxmox VE has https on port 8006")
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
    use super::{config, fingerprint};
    use crate::settings::Tls;

    #[test]
    fn a_fingerprint_is_32_pairs_of_digits() {
        let plain = "ab".repeat(32);
        let colons = vec!["AB"; 32].join(":");
        assert_eq!(fingerprint(&plain), Ok([0xab; 32]));
        assert_eq!(fingerprint(&colons), Ok([0xab; 32]));
        for wrong in ["", "ab", &"ab".repeat(31), &"ab".repeat(33), &"xy".repeat(32), &"ä".repeat(32), &"+1".repeat(32)]
        {
            assert!(fingerprint(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn a_ca_that_cannot_be_used_is_refused_with_a_remedy() {
        for (pem, expected) in [
            ("", "the CA contains no certificate"),
            ("-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----", "the CA is no valid certificate"),
            ("-----BEGIN CERTIFICATE-----\nAAAA\n", "the CA is not valid PEM"),
        ] {
            let (message, remedy) = config(&Tls::Authorities(pem.into())).unwrap_err();
            assert!(message.starts_with(expected) && remedy.contains("pve-root-ca.pem"), "{pem}: {message}");
        }
    }
}
