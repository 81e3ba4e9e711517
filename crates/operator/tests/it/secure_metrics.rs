//! Metrics over TLS, for those whom the API server lets read them.

use crate::operator::{NAMESPACE, Running, eventually};
use kube::config::{AuthInfo, Config};
use playground::service_account::Account;
use playground::{Playground, deployment};
use serde_json::Value;
use std::path::Path;
use std::time::Duration;

/// Its two rights, and that of Prometheus.
const ROLES: &str = include_str!("../../../../deploy/kustomize/secure-metrics/roles.yaml");

/// Asks for the metrics; the status, or why there is none.
pub(crate) async fn scrape(port: u16, token: Option<&str>, authority: Option<&[u8]>) -> Result<u16, String> {
    let mut config = Config::new(format!("https://localhost:{port}").parse().unwrap());
    config.accept_invalid_certs = authority.is_none();
    config.root_cert = authority.map(|authority| vec![authority.to_vec()]);
    config.auth_info = AuthInfo { token: token.map(|token| token.to_owned().into()), ..AuthInfo::default() };
    let client = kube::Client::try_from(config).map_err(|error| error.to_string())?;
    let request = http::Request::get("/metrics").body(Vec::new()).unwrap();
    // The client repeats a request that cannot be served now.
    let answer = tokio::time::timeout(Duration::from_secs(3), client.request_text(request)).await;
    match answer.map_err(|_| "no answer".to_owned())? {
        Ok(text) if text.contains("kubevirt_autopilot_leader 1") => Ok(200),
        Ok(text) => Err(text),
        Err(kube::Error::Api(status)) => Ok(status.code),
        Err(error) => Err(format!("{error:?}")),
    }
}

/// The token of an account.
fn token(account: &Account) -> String {
    let text = std::fs::read_to_string(&account.kubeconfig).unwrap();
    let config: Value = serde_saphyr::from_str(&text).unwrap();
    config["users"][0]["user"]["token"].as_str().unwrap().to_owned()
}

/// Writes a certificate for localhost; returns it.
pub(crate) fn write_certificate(folder: &Path) -> Vec<u8> {
    let made = rcgen::generate_simple_self_signed(vec!["localhost".to_owned()]).unwrap();
    std::fs::write(folder.join("tls.key"), made.signing_key.serialize_pem()).unwrap();
    std::fs::write(folder.join("tls.crt"), made.cert.pem()).unwrap();
    made.cert.der().to_vec()
}

/// An account that may read metrics once the roles are granted, and one that may not.
pub(crate) async fn accounts(playground: &Playground) -> [String; 2] {
    let account = async |namespace: &str, name: &str| {
        playground.account(namespace, name).await.unwrap_or_else(|error| panic!("{error}"))
    };
    [account("openshift-monitoring", "prometheus-k8s").await, account(NAMESPACE, "other").await]
        .map(|account| token(&account))
}

#[tokio::test(flavor = "multi_thread")]
async fn only_those_who_may_read_metrics_do_and_a_new_certificate_is_followed() {
    let mut running = Running::without_operator().await;
    let [reader, other] = accounts(&running.playground).await;
    let kubeconfig = running.kubeconfig().to_owned();
    let served = running.restart_served(&kubeconfig, &["--metrics-secure"]);
    let code = async |token: Option<&str>| scrape(served.metrics, token, None).await;
    // Without its two rights it lets nobody pass.
    eventually("it cannot ask", async || {
        let answer = code(Some(&reader)).await;
        assert_ne!(answer, Ok(200));
        let log = std::fs::read_to_string(&served.log).unwrap();
        log.contains("could not check who asks for /metrics").then_some(())
    })
    .await;
    deployment::grant_for(&running.playground, ROLES).await.unwrap_or_else(|error| panic!("{error}"));
    eventually("a reader reads", async || code(Some(&reader)).await.ok().filter(|code| *code == 200)).await;
    assert_eq!(code(Some(&other)).await, Ok(403));
    assert_eq!((code(None).await, code(Some("invented")).await), (Ok(401), Ok(401)));
    let mark = running.audit().mark().unwrap();
    for _ in 0..5 {
        assert_eq!(code(Some(&reader)).await, Ok(200));
    }
    let reviews =
        running.own(&running.audit().since(mark).unwrap()).filter(|request| request.resource.contains("reviews"));
    assert_eq!(reviews.count(), 0, "an answer holds for a minute: {reviews:?}");

    let folder = tempfile::tempdir().unwrap();
    let path = format!("--metrics-cert-path={}", folder.path().display());
    let served = running.restart_served(&kubeconfig, &[&path]);
    let with = async |authority: &[u8]| scrape(served.metrics, Some(&reader), Some(authority)).await;
    // Until there is a certificate, it is self-signed.
    eventually("a reader reads", async || {
        scrape(served.metrics, Some(&reader), None).await.ok().filter(|code| *code == 200)
    })
    .await;
    let first = write_certificate(folder.path());
    eventually("the first certificate is served", async || with(&first).await.ok().filter(|code| *code == 200)).await;
    let second = write_certificate(folder.path());
    assert!(with(&first).await.is_err(), "it is not served any more");
    assert_eq!(with(&second).await, Ok(200));
    // A certificate that cannot be used leaves the last one in use.
    std::fs::write(folder.path().join("tls.crt"), "no certificate").unwrap();
    assert_eq!(with(&second).await, Ok(200));
    let log = std::fs::read_to_string(&served.log).unwrap();
    assert!(log.contains("the last certificate of the metrics stays in use"), "{log}");
    assert!(!log.contains(&reader), "a token is in the log");
}
