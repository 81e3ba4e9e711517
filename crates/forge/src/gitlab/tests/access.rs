//! Logging in: what is missing is named, wherever it is.

use super::{ask, checked, connect, group, jit, mended_by, settings, start, wanted};
use crate::settings::{Credentials, Settings, Tls};
use crate::{Hands, Link};
use fleet::forge::{Ask, Failure, ForgeKey, Request};
use playground::gitlab::{Owner, Setup};
use std::sync::Arc;

#[tokio::test]
async fn a_check_says_who_it_is_and_until_when_and_that_nothing_is_missing() {
    let stand_in = start(|setup| setup.skew = 90);
    let found = checked(&group(&stand_in)).await;
    assert_eq!((found.version.as_deref(), found.missing), (Some("18.5.1-ee"), Vec::new()));
    assert_eq!(found.login, "the access token fleet of fleet, which expires on 2027-11-18");
    assert!((85..=91).contains(&found.clock_ahead), "{}", found.clock_ahead);
    assert!(found.budget.is_some_and(|(limit, left)| limit == 2000 && left < 2000), "{:?}", found.budget);
}

#[tokio::test]
async fn every_scope_and_every_role_that_is_missing_is_named() {
    let stand_in = start(|_| {});
    let missing = async |path: &str, token: &str| checked(&connect(&settings(&stand_in, path, token))).await.missing;
    assert_eq!(
        missing("acme", Setup::READER_TOKEN).await,
        ["the scope create_runner (or api)", "the scope manage_runner (or api)", "the role Owner in the group acme"]
    );
    assert_eq!(missing("", Setup::TOKEN).await, ["the rights of an administrator of the server"]);
    assert_eq!(missing("", Setup::ADMIN_TOKEN).await, [""; 0]);
    stand_in.with(|state, _| state.set_role(Setup::TOKEN, "acme", 40));
    assert_eq!(missing("acme/shop", Setup::TOKEN).await, [""; 0], "a maintainer of a project may have runners of it");
    assert_eq!(missing("acme", Setup::TOKEN).await, ["the role Owner in the group acme"]);
    stand_in.with(|state, _| state.set_scopes(Setup::TOKEN, &["create_runner", "manage_runner"]));
    assert_eq!(missing("acme", Setup::TOKEN).await, ["the scope read_api (or api)"]);
}

#[tokio::test]
async fn refusals_say_what_a_person_has_to_change() {
    let stand_in = start(|_| {});
    let reader = connect(&settings(&stand_in, "acme", Setup::READER_TOKEN));
    let said = mended_by(ask(&reader, Ask::JitConfig(wanted("vm-1", &["pve"]))).await);
    assert!(
        said.contains("registering runner vm-1 at 127.0.0.1") && said.contains("the scope create_runner"),
        "{said}"
    );
    let said = mended_by(ask(&reader, Ask::ListRunners { name: None }).await);
    assert!(said.contains("the role Owner in the group acme"), "{said}");
    let unseen = connect(&settings(&stand_in, "other", Setup::TOKEN));
    let said = mended_by(ask(&unseen, Ask::ListRunners { name: None }).await);
    assert!(said.contains("404 Group Not Found") && said.contains("check the name of the group other"), "{said}");
    let gitlab = group(&stand_in);
    stand_in.with(|state, _| state.revoke(Setup::TOKEN));
    let said = mended_by(ask(&gitlab, Ask::Check).await);
    assert!(said.contains("renew the access token") && !said.contains("glpat"), "{said}");
}

#[tokio::test]
async fn runners_are_those_of_the_server_the_group_the_subgroup_or_the_project() {
    let stand_in = start(|_| {});
    for (path, token, expected) in [
        ("", Setup::ADMIN_TOKEN, Owner::Instance),
        ("acme", Setup::TOKEN, Owner::Group(10)),
        ("groups/acme/lab", Setup::TOKEN, Owner::Group(11)),
        ("acme/lab", Setup::TOKEN, Owner::Group(11)),
        ("acme/shop", Setup::TOKEN, Owner::Project(20)),
        ("acme/lab/robot.git", Setup::TOKEN, Owner::Project(22)),
    ] {
        let found = jit(&connect(&settings(&stand_in, path, token)), "vm-1", &["pve"]).await;
        let runner = stand_in.with(|state, _| state.runners()[&found.runner.0].clone());
        assert_eq!(runner.owner, expected, "{path}");
        assert_eq!(runner.is_locked, matches!(expected, Owner::Project(_)), "{path}");
    }
}

#[test]
fn settings_that_cannot_work_are_refused_with_a_remedy_and_without_their_secret() {
    let hands = Hands::new(Arc::new(|_| {}));
    let forge = ForgeKey { namespace: "ci".into(), name: "acme".into() };
    let app = Credentials::App { id: "42".into(), installation: None, key: "hush".into() };
    let token = |text: &str| Credentials::Token(text.into());
    for (address, credentials, expected) in [
        ("http://gitlab.com/acme", token("glpat-hush"), "clear text"),
        ("https://gitlab.com/acme", token("glpat-\nhush"), "cannot be sent"),
        ("https://gitlab.com/acme", token(" "), "is empty"),
        ("https://gitlab.com/acme", app, "no Apps"),
    ] {
        let (address, tls, limits) = (address.to_owned(), Tls::System, crate::Limits::default());
        let settings = Settings { address, allows_http: false, credentials, tls, limits };
        match hands.connect(&forge, Link::Gitlab(Box::new(settings))) {
            Err(Failure::Configuration { message, remedy }) => {
                assert!(message.contains(expected) && !remedy.is_empty(), "{expected}: {message}; {remedy}");
                assert!(!message.contains("hush"), "{message}");
            }
            other => panic!("{expected}: {other:?}"),
        }
    }
}

#[tokio::test]
async fn hands_connect_it_like_any_platform() {
    let stand_in = start(|_| {});
    let hands = Hands::new(Arc::new(|_| {}));
    let forge = ForgeKey { namespace: "ci".into(), name: "acme".into() };
    let settings = settings(&stand_in, "acme", Setup::TOKEN);
    hands.connect(&forge, Link::Gitlab(Box::new(settings.clone()))).unwrap();
    let request = Request { forge, address: settings.address, ask: Ask::ListRunners { name: None } };
    hands.carry_out(&request).await.unwrap();
}
