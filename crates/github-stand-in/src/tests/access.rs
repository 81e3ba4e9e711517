//! Who may ask what.

use super::Lab;
use crate::{APP_KEY, Scope, Setup};
use base64::Engine;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use ring::rand::SystemRandom;
use ring::rsa::KeyPair;
use ring::signature::RSA_PKCS1_SHA256;
use serde_json::{Value, json};
use std::time::Duration;

/// A token that the App signs.
pub(super) fn sign(claims: &Value) -> String {
    let lines: String = APP_KEY.lines().filter(|line| !line.starts_with("-----")).collect();
    let pair = KeyPair::from_der(&STANDARD.decode(lines).unwrap()).unwrap();
    let header = URL_SAFE_NO_PAD.encode(r#"{"alg":"RS256","typ":"JWT"}"#);
    let signed = format!("{header}.{}", URL_SAFE_NO_PAD.encode(claims.to_string()));
    let mut signature = vec![0; pair.public().modulus_len()];
    pair.sign(&RSA_PKCS1_SHA256, &SystemRandom::new(), signed.as_bytes(), &mut signature).unwrap();
    format!("{signed}.{}", URL_SAFE_NO_PAD.encode(signature))
}

fn claims(lab: &Lab, issued: i64, expires: i64) -> Value {
    let now = lab.state.clock(lab.now);
    json!({"iat": now + issued, "exp": now + expires, "iss": Setup::CLIENT_ID})
}

#[test]
fn an_app_gets_tokens_of_its_installation_that_expire_after_an_hour() {
    let mut lab = Lab::new();
    lab.token = sign(&claims(&lab, -60, 480));
    assert_eq!(lab.get("/app").at("/id"), Setup::APP_ID);
    let line = format!("POST /app/installations/{}/access_tokens", Setup::INSTALLATION);
    let response = lab.send(&line, Value::Null);
    assert_eq!(response.status, 201);
    assert_eq!(response.at("/expires_at"), "2026-09-21T15:13:20Z");
    lab.token = response.at("/token").as_str().unwrap().to_owned();
    assert!(lab.token.len() > 400, "its length is not that of old tokens");
    assert_eq!(lab.get("/orgs/acme/actions/runners").status, 200);
    lab.now += Duration::from_secs(3599);
    assert_eq!(lab.get("/orgs/acme/actions/runners").status, 200);
    lab.now += Duration::from_secs(1);
    assert_eq!(lab.refused("GET /orgs/acme/actions/runners", Value::Null), "401 Bad credentials");
}

#[test]
fn the_token_of_an_app_has_to_be_of_this_time_signed_and_known() {
    let mut lab = Lab::new();
    let early = "401 'Issued at' claim ('iat') must be an Integer representing the time that the assertion was issued";
    let late = "401 'Expiration time' claim ('exp') must be a numeric value representing the future time at which the assertion expires";
    let long = "401 'Expiration time' claim ('exp') is too far in the future";
    for (issued, expires, expected) in [
        (-60, 480, "200 "),
        (-60, 600, "200 "),
        (0, 600, "200 "),
        (60, 600, "200 "),
        (61, 600, early),
        (-60, 601, long),
        (-600, 599, long),
        (-600, 0, late),
        (-600, -1, late),
    ] {
        lab.token = sign(&claims(&lab, issued, expires));
        assert_eq!(lab.refused("GET /app", Value::Null), expected, "{issued} {expires}");
    }
    let undecodable = "401 A JSON web token could not be decoded";
    let good = sign(&claims(&lab, 0, 60));
    let (signed, _) = good.rsplit_once('.').unwrap();
    let other = sign(&claims(&lab, 0, 61));
    let (_, signature) = other.rsplit_once('.').unwrap();
    for token in [format!("{signed}.{signature}"), format!("{signed}."), "a.b.c".to_owned(), Setup::TOKEN.to_owned()] {
        lab.token = token;
        assert_eq!(lab.refused("GET /app", Value::Null), undecodable);
    }
    let none = format!("{}.e30.", URL_SAFE_NO_PAD.encode(r#"{"alg":"none"}"#));
    lab.token = none;
    assert_eq!(lab.refused("GET /app", Value::Null), undecodable);
    let mut unknown = claims(&lab, 0, 60);
    unknown["iss"] = 7.into();
    lab.token = sign(&unknown);
    assert_eq!(lab.refused("GET /app", Value::Null), "404 Integration not found");
}

#[test]
fn a_clock_that_is_wrong_refuses_the_token_of_an_app() {
    let mut lab = Lab::new();
    lab.token = sign(&claims(&lab, -30, 570));
    lab.state.skew = -200;
    assert!(lab.refused("GET /app", Value::Null).contains("'Issued at' claim"));
    lab.state.skew = 600;
    assert!(lab.refused("GET /app", Value::Null).contains("future time at which the assertion expires"));
    lab.state.skew = 0;
    assert_eq!(lab.get("/app").status, 200);
}

#[test]
fn a_missing_permission_is_a_403_and_a_missing_owner_a_404() {
    let mut lab = Lab::new();
    let everything = [
        "GET /orgs/acme/actions/runners",
        "GET /repos/acme/shop/actions/runners",
        "GET /enterprises/acme-corp/actions/runners",
        "GET /repos/acme/shop/actions/runs",
        "GET /orgs/acme/hooks",
        "GET /repos/acme/shop/hooks",
    ];
    for line in everything {
        assert_eq!(lab.refused(line, Value::Null), "200 ", "{line}");
    }
    assert_eq!(lab.refused("GET /orgs/other/actions/runners", Value::Null), "404 Not Found");
    assert_eq!(lab.refused("GET /repos/acme/other/actions/runners", Value::Null), "404 Not Found");
    assert_eq!(lab.refused("GET /orgs/ACME/actions/runners", Value::Null), "200 ", "case does not matter");
    assert_eq!(lab.refused("GET /orgs/acme/nothing", Value::Null), "404 Not Found");
    lab.token = Setup::WEAK_TOKEN.to_owned();
    for line in everything {
        assert_eq!(lab.refused(line, Value::Null), "403 Resource not accessible by personal access token", "{line}");
    }
    lab.token = lab.state.installation_token();
    let integration = "403 Resource not accessible by integration";
    assert_eq!(lab.refused("GET /enterprises/acme-corp/actions/runners", Value::Null), integration);
    lab.state.permissions.insert("actions".to_owned(), "read".to_owned());
    assert_eq!(lab.refused("GET /repos/acme/shop/actions/runs", Value::Null), "200 ");
    assert_eq!(lab.refused("POST /repos/acme/shop/actions/runs/1/rerun", Value::Null), integration);
    lab.state.permissions.remove("actions");
    assert_eq!(lab.refused("GET /repos/acme/shop/actions/runs", Value::Null), integration);
    lab.state.permissions.remove("organization_self_hosted_runners");
    assert_eq!(lab.refused("GET /orgs/acme/actions/runners", Value::Null), integration);
    lab.token = "ghp_nobody".to_owned();
    assert_eq!(lab.refused("GET /orgs/acme/actions/runners", Value::Null), "401 Bad credentials");
    let nobody = super::request("GET /orgs/acme/actions/runners");
    let response = lab.state.handle(&nobody, lab.now).answer().unwrap();
    assert_eq!((response.status, response.at("/message").as_str()), (401, Some("Requires authentication")));
}

#[test]
fn an_installation_sees_its_own_organisation_only() {
    let other = |setup: &mut Setup| {
        let name = crate::RepositoryName::parse("aaa/tool").unwrap();
        setup.repositories.push(crate::RepositorySetup { name, is_public: false });
    };
    let mut lab = Lab::with(other);
    assert_eq!(lab.get("/orgs/aaa/actions/runners").status, 200);
    lab.state.add_hook(None, "https://hook.example", None);
    lab.state.push_job(&crate::JobSpec::new("aaa/tool", &["pve"]), lab.now);
    assert!(lab.pass(1000).is_empty());
    lab.token = lab.state.installation_token();
    assert_eq!(lab.refused("GET /orgs/aaa/actions/runners", Value::Null), "404 Not Found");
    assert_eq!(lab.refused("GET /repos/aaa/tool/actions/runs", Value::Null), "404 Not Found");
    assert_eq!(lab.get("/repos/acme/shop/actions/runs").status, 200);
    assert_eq!(lab.get("/installation/repositories").at("/total_count"), 3);
    lab.token = sign(&claims(&lab, 0, 60));
    assert_eq!(lab.get("/orgs/acme/installation").at("/account/login"), "acme");
    assert_eq!(lab.get("/orgs/aaa/installation").status, 404);
}

#[test]
fn repositories_are_listed_for_who_is_known_and_for_the_installation() {
    let mut lab = Lab::new();
    let listed = lab.get("/orgs/acme/repos?per_page=2");
    assert_eq!((listed.at("/0/full_name"), listed.at("/1/full_name")), (&"acme/docs".into(), &"acme/shop".into()));
    assert!(listed.header("link").unwrap().contains("page=2"));
    assert_eq!(lab.get("/repos/ACME/docs").at("/visibility"), "public");
    assert_eq!(lab.get("/installation/repositories").status, 403);
    lab.token = lab.state.installation_token();
    assert_eq!(lab.get("/installation/repositories").at("/total_count"), 3);
    lab.token = "ghp_nobody".to_owned();
    assert_eq!(lab.get("/orgs/acme/repos").status, 401);
}

#[test]
fn a_registration_token_opens_the_service_of_its_owner_only() {
    let mut lab = Lab::new();
    let response = lab.send("POST /orgs/acme/actions/runners/registration-token", Value::Null);
    assert_eq!(response.status, 201);
    let token = response.at("/token").as_str().unwrap().to_owned();
    let connect = |lab: &mut Lab, url: &str| {
        let mut request = super::request("POST /actions/runner-registration");
        request.authorization = Some(format!("RemoteAuth {token}"));
        let body = json!({"url": url, "runner_event": "register"});
        lab.state.handle(&request.json(body), lab.now).answer().unwrap()
    };
    let found = connect(&mut lab, "https://github.example/acme");
    assert_eq!(found.at("/url"), "https://github.example/_services/pipelines/acme/");
    assert_eq!(connect(&mut lab, "https://github.example/acme/shop").status, 404);
    assert_eq!(connect(&mut lab, "https://github.example/enterprises/acme-corp").status, 404);
    let admin = found.at("/token").as_str().unwrap().to_owned();
    lab.token = admin;
    assert_eq!(lab.get("/_services/pipelines/acme/_apis/runtime/runnerscalesets").at("/count"), 0);
    assert_eq!(lab.refused("GET /orgs/acme/actions/runners", Value::Null), "401 Bad credentials", "it is no API token");
    lab.now += Duration::from_secs(3600);
    assert_eq!(lab.get("/_services/pipelines/acme/_apis/runtime/runnerscalesets").status, 401);
    assert_eq!(Scope::Organization("acme".to_owned()).path(), "acme");
}

#[test]
fn hashes_and_signatures_are_those_of_others() {
    use crate::hash::{hex, hmac, sha256};
    assert_eq!(hex(&sha256(b"abc")), "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
    for length in [0, 1, 63, 64, 65, 200] {
        let key = vec![7; length];
        let theirs = ring::hmac::sign(&ring::hmac::Key::new(ring::hmac::HMAC_SHA256, &key), b"data");
        assert_eq!(hmac(&key, b"data"), theirs.as_ref(), "{length}");
    }
    let key = crate::app_key::PUBLIC_KEY.as_ref().unwrap();
    for number in 0..20 {
        let token = sign(&json!({"number": number}));
        let (signed, signature) = token.rsplit_once('.').unwrap();
        let mut signature = URL_SAFE_NO_PAD.decode(signature).unwrap();
        assert!(key.verify(signed.as_bytes(), &signature), "{number}");
        assert!(!key.verify(b"other", &signature));
        assert!(!key.verify(signed.as_bytes(), &[&[0], signature.as_slice()].concat()), "it is longer");
        signature[number] ^= 1;
        assert!(!key.verify(signed.as_bytes(), &signature));
        assert!(!key.verify(signed.as_bytes(), &signature[1..]));
    }
    assert!(!key.verify(b"", &[0xFF; 256]));
}
