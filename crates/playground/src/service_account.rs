//! Service accounts with bound tokens, so that the audit log names the operator.

use crate::control_plane::{self, ControlPlane};
use crate::kubeconfig::{self, Credential};
use crate::user_error::UserError;
use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use kube::Client;
use kube::api::{Api, ObjectMeta, PostParams};
use std::path::PathBuf;

/// Longer than any test or benchmark.
const TOKEN_SECONDS: i64 = 24 * 3600;

/// A service account and its kubeconfig.
pub struct Account {
    /// Its user name in the audit log.
    pub user: String,
    /// A kubeconfig with its token.
    pub kubeconfig: PathBuf,
    /// A client with its token.
    pub client: Client,
}

/// Creates the service account if it does not exist and requests a token for it.
pub async fn account(control_plane: &ControlPlane, namespace: &str, name: &str) -> Result<Account, UserError> {
    let failed = |error: kube::Error| {
        UserError::new(
            format!("could not create the service account {namespace}/{name}"),
            "check that its namespace is part of the scene",
        )
        .with_source(error)
    };
    let api: Api<ServiceAccount> = Api::namespaced(control_plane.client(), namespace);
    let account = ServiceAccount {
        metadata: ObjectMeta { name: Some(name.to_owned()), ..ObjectMeta::default() },
        ..ServiceAccount::default()
    };
    match api.create(&PostParams::default(), &account).await {
        Ok(_) => {}
        Err(kube::Error::Api(status)) if status.is_already_exists() => {}
        Err(error) => return Err(failed(error)),
    }
    let request = TokenRequest {
        spec: Some(TokenRequestSpec { expiration_seconds: Some(TOKEN_SECONDS), ..TokenRequestSpec::default() }),
        ..TokenRequest::default()
    };
    let response = api.create_token_request(name, &PostParams::default(), &request).await.map_err(failed)?;
    let token = response.status.and_then(|status| status.token).unwrap_or_default();
    let kubeconfig = control_plane.layout().folder.join(format!("{namespace}.{name}.kubeconfig"));
    let authority = &control_plane.certificates().authority;
    kubeconfig::write(&kubeconfig, control_plane.address(), authority, &Credential::Token(&token))?;
    let client = control_plane::client(&kubeconfig).await?;
    Ok(Account { user: format!("system:serviceaccount:{namespace}:{name}"), kubeconfig, client })
}
