//! The certificate authority of a playground, and the keys and certificates it issues.

use crate::files;
use crate::user_error::UserError;
use rcgen::{
    BasicConstraints, CertificateParams, DistinguishedName, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};
use std::path::{Path, PathBuf};

/// The administrator's user and group; RBAC grants this group everything.
const ADMIN: (&str, &str) = (ADMIN_USER, "system:masters");
/// The administrator's user name in the audit log.
pub const ADMIN_USER: &str = "playground-admin";
/// The controller manager's user, to which RBAC binds its role.
const CONTROLLER_MANAGER: (&str, &str) = ("system:kube-controller-manager", "");

/// The key and certificate files of one control plane.
#[derive(Debug)]
pub struct Certificates {
    /// The authority's certificate.
    pub authority: PathBuf,
    /// The API server's certificate.
    pub server: Identity,
    /// The administrator's certificate.
    pub admin: Identity,
    /// The controller manager's certificate.
    pub controller_manager: Identity,
    /// The key pair that signs service account tokens.
    pub tokens: Identity,
}

/// A private key and its certificate or public key.
#[derive(Debug)]
pub struct Identity {
    /// The certificate or public key.
    pub public: PathBuf,
    /// The private key, readable only by its owner.
    pub private: PathBuf,
}

impl Certificates {
    /// Creates all of them in a folder.
    pub fn create(folder: &Path) -> Result<Certificates, UserError> {
        let failed = |error: rcgen::Error| {
            UserError::new("could not create the certificates of the control plane", "this is a bug, please report it")
                .with_source(error)
        };
        let authority_key = KeyPair::generate().map_err(failed)?;
        let mut params = CertificateParams::default();
        params.distinguished_name = name("virtpilot-playground", "");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        params.key_usages =
            vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign, KeyUsagePurpose::DigitalSignature];
        let certificate = params.self_signed(&authority_key).map_err(failed)?;
        let authority = write(folder, "ca.crt", &certificate.pem(), 0o644)?;
        let issuer = Issuer::new(params, authority_key);
        let issue = |file: &str, subject: (&str, &str), hosts: &[&str]| {
            let key = KeyPair::generate().map_err(failed)?;
            let hosts: Vec<String> = hosts.iter().map(|&host| host.to_owned()).collect();
            let mut params = CertificateParams::new(hosts).map_err(failed)?;
            params.distinguished_name = name(subject.0, subject.1);
            params.key_usages = vec![KeyUsagePurpose::DigitalSignature];
            params.extended_key_usages = vec![ExtendedKeyUsagePurpose::ServerAuth, ExtendedKeyUsagePurpose::ClientAuth];
            let certificate = params.signed_by(&key, &issuer).map_err(failed)?;
            Ok::<_, UserError>(Identity {
                public: write(folder, &format!("{file}.crt"), &certificate.pem(), 0o644)?,
                private: write(folder, &format!("{file}.key"), &key.serialize_pem(), 0o600)?,
            })
        };
        let token_key = KeyPair::generate().map_err(failed)?;
        Ok(Certificates {
            authority,
            server: issue(
                "apiserver",
                ("kube-apiserver", ""),
                &["127.0.0.1", "localhost", "10.0.0.1", "kubernetes", "kubernetes.default", "kubernetes.default.svc"],
            )?,
            admin: issue("admin", ADMIN, &[])?,
            controller_manager: issue("controller-manager", CONTROLLER_MANAGER, &[])?,
            tokens: Identity {
                public: write(folder, "tokens.pub", &token_key.public_key_pem(), 0o644)?,
                private: write(folder, "tokens.key", &token_key.serialize_pem(), 0o600)?,
            },
        })
    }
}

fn name(common: &str, organization: &str) -> DistinguishedName {
    let mut name = DistinguishedName::new();
    name.push(DnType::CommonName, common);
    if !organization.is_empty() {
        name.push(DnType::OrganizationName, organization);
    }
    name
}

fn write(folder: &Path, name: &str, text: &str, mode: u32) -> Result<PathBuf, UserError> {
    let path = folder.join(name);
    files::write_with_mode(&path, text, mode)?;
    Ok(path)
}
