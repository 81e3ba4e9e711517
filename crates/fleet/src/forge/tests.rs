//! What is asked and answered is shown without secrets, and failures say what to do.

use super::{Answer, Class, Failure, JitConfig, RepositoryName, RunnerId};

#[test]
fn a_configuration_of_a_runner_is_not_shown() {
    let answer = Answer::JitConfig(JitConfig { runner: RunnerId(7), config: "hush".to_owned().into() });
    let shown = format!("{answer:?}");
    assert!(shown.contains('7') && !shown.contains("hush"), "{shown}");
}

#[test]
fn names_of_repositories_have_two_parts() {
    assert_eq!(RepositoryName::parse("acme/shop").map(|name| name.to_string()), Some("acme/shop".into()));
    for wrong in ["acme", "acme/", "/shop", "a/b/c", ""] {
        assert_eq!(RepositoryName::parse(wrong), None, "{wrong}");
    }
}

#[test]
fn failures_have_classes_and_say_what_to_do() {
    let failure = Failure::Configuration { message: "bad credentials".into(), remedy: "renew the token".into() };
    assert_eq!(
        (failure.class(), failure.to_string().as_str()),
        (Class::Configuration, "bad credentials; renew the token")
    );
    let until = "2026-11-18T12:00:00Z".parse().unwrap();
    let failure = Failure::RateLimited { message: "no requests are left".into(), until };
    assert_eq!(failure.to_string(), "no requests are left; nothing is asked before 2026-11-18T12:00:00Z");
    assert_eq!((failure.class().label(), Failure::StillBusy(RunnerId(7)).class()), ("rate-limited", Class::Transient));
}
