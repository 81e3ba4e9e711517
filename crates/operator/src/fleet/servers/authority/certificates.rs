//! Makes authorities and the certificates that they sign.

use ::bootstrap::Secret;
use anyhow::Context;
use change::now::later;
use fleet::bootstrap::authority::{Authority, CERTIFICATE_LIFE, CERTIFICATE_MARGIN, DATED_BACK, LIFE};
use jiff::Timestamp;
use jiff::tz::TimeZone;
use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair, KeyUsagePurpose,
    date_time_ymd,
};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use std::sync::Arc;
use std::time::Duration;
use tokio_rustls::TlsAcceptor;

/// The certificate in use.
pub(in crate::fleet::servers) struct Leaf {
    signer: Timestamp,
    made: Timestamp,
    pub(in crate::fleet::servers) acceptor: TlsAcceptor,
}

impl Leaf {
    /// Whether it is of this authority and still good for a while.
    pub(in crate::fleet::servers) fn is_of(&self, signer: &Authority, now: Timestamp) -> bool {
        let renewed = later(self.made, CERTIFICATE_LIFE.saturating_sub(CERTIFICATE_MARGIN));
        // A clock that was set back makes it one of the future.
        self.signer == signer.created && (self.made..renewed).contains(&now)
    }
}

/// A new authority.
pub(in crate::fleet::servers) fn authority(now: Timestamp) -> anyhow::Result<Authority> {
    // Its times are written down in whole seconds.
    let created = Timestamp::from_second(now.as_second())?;
    let key = KeyPair::generate().context("could not make a key")?;
    let certificate = authority_params(created)?.self_signed(&key).context("could not make an authority")?;
    Ok(Authority { created, certificate: certificate.pem(), key: Secret::new(key.serialize_pem()) })
}

/// A certificate of an authority for a host.
pub(in crate::fleet::servers) fn leaf(signer: &Authority, host: &str, now: Timestamp) -> anyhow::Result<Leaf> {
    let authority_key = KeyPair::from_pem(signer.key.expose()).context("the key of the authority cannot be used")?;
    let issuer = Issuer::new(authority_params(signer.created)?, authority_key);
    let mut params = CertificateParams::new(vec![host.to_owned()]).context("the host cannot be in a certificate")?;
    set_period(&mut params, now, CERTIFICATE_LIFE);
    params.distinguished_name.push(DnType::CommonName, "virtpilot fleet bootstrap endpoint");
    params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth];
    params.use_authority_key_identifier_extension = true;
    let key = KeyPair::generate().context("could not make a key")?;
    let certificate = params.signed_by(&key, &issuer).context("could not make a certificate")?;
    let provider = Arc::new(rustls::crypto::ring::default_provider());
    let config = ServerConfig::builder_with_provider(provider).with_safe_default_protocol_versions()?;
    let key = PrivateKeyDer::Pkcs8(key.serialize_der().into());
    let config = config.with_no_client_auth().with_single_cert(vec![certificate.der().clone()], key)?;
    Ok(Leaf { signer: signer.created, made: now, acceptor: TlsAcceptor::from(Arc::new(config)) })
}

/// What an authority certifies of itself; the same each time, because certificates name it.
fn authority_params(created: Timestamp) -> anyhow::Result<CertificateParams> {
    let mut params = CertificateParams::new(Vec::new())?;
    set_period(&mut params, created, LIFE);
    params.distinguished_name.push(DnType::OrganizationName, "virtpilot fleet");
    params.distinguished_name.push(DnType::CommonName, format!("bootstrap authority {created}"));
    params.is_ca = IsCa::Ca(BasicConstraints::Constrained(0));
    params.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::DigitalSignature];
    Ok(params)
}

/// Makes it valid from the day before until so long after a moment, in whole days.
fn set_period(params: &mut CertificateParams, from: Timestamp, life: Duration) {
    let date = |time: Timestamp| {
        let date = time.to_zoned(TimeZone::UTC).date();
        let positive = |number: i8| u8::try_from(number).unwrap_or(1);
        date_time_ymd(i32::from(date.year()), positive(date.month()), positive(date.day()))
    };
    params.not_before = date(from.checked_sub(DATED_BACK).unwrap_or(Timestamp::MIN));
    params.not_after = date(later(later(from, life), DATED_BACK));
}
