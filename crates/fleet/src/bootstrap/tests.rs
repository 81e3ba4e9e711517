//! Tests of tokens: used once, by one guest, for one claim, in time.

use super::{
    Answer, LONGEST_TOKEN_LIFE, MAX_RECORDS, Notice, Offer, REPEATS_LAST, Record, Registry, Reply, TooMany, message,
};
use bootstrap::{
    Attestation, Claim, End, EndReason, Exchange, Grant, MAX_LOG, Phase, RefusalReason, Report, ReportReply, Runner,
    Secret, Source, Step,
};
use jiff::Timestamp;
use std::time::Duration;

const TTL: Duration = Duration::from_secs(600);

fn at(seconds: u64) -> Timestamp {
    Timestamp::from_second(1_800_000_000 + i64::try_from(seconds).unwrap()).unwrap()
}

fn claim(name: &str) -> Claim {
    Claim { namespace: "ci".to_owned(), name: name.to_owned(), uid: format!("uid-{name}") }
}

fn request(claim: Claim, token: &Secret, nonce: char) -> Exchange {
    Exchange {
        claim,
        attestation: Attestation::Token { token: token.clone() },
        nonce: Secret::new(nonce.to_string().repeat(32)),
        version: "0.1.0".to_owned(),
    }
}

fn offer() -> Offer {
    Offer {
        jit_config: Secret::new("jit".to_owned()),
        expires: at(3_600),
        runner: Runner {
            source: Source::Installed { folder: "/opt/runner".to_owned() },
            user: None,
            remove_credentials_at_job_start: false,
        },
    }
}

/// A registry with a token for claim `a` and its credentials.
fn offered() -> (Registry, Secret) {
    let mut registry = Registry::default();
    let token = registry.mint(claim("a"), [7; 32], TTL, at(0)).unwrap();
    registry.offer("uid-a", offer());
    (registry, token)
}

fn granted(answer: &Answer) -> &Grant {
    match &answer.reply {
        Reply::Granted(grant) => grant,
        other => panic!("{other:?}"),
    }
}

fn refusal(answer: &Answer) -> RefusalReason {
    match &answer.reply {
        Reply::Refused { refusal, .. } => refusal.reason,
        other => panic!("{other:?}"),
    }
}

fn report(claim: Claim) -> Report {
    Report { claim, phase: Phase::Idle, uptime_seconds: 5 }
}

fn end(claim: Claim) -> End {
    End {
        claim,
        reason: EndReason::StepFailed,
        step: Step::Download,
        message: "404".to_owned(),
        ran_job: false,
        exit_code: None,
        log: String::new(),
    }
}

#[test]
fn a_token_is_exchanged_once_and_a_lost_answer_is_repeated_only_to_the_same_guest_and_not_for_long() {
    let (mut registry, token) = offered();
    let first = registry.exchange(&request(claim("a"), &token, 'n'), at(10));
    assert_eq!(granted(&first).jit_config, Secret::new("jit".to_owned()));
    assert_eq!(granted(&first).credentials_expire_seconds, 3_590);
    assert_eq!(first.notices, [Notice::Attested(claim("a")), Notice::Granted(claim("a"))]);

    let again = registry.exchange(&request(claim("a"), &token, 'n'), at(20));
    assert_eq!(granted(&again).report_token, granted(&first).report_token);
    assert_eq!(granted(&again).jit_config, granted(&first).jit_config);
    assert_eq!(again.notices, []);

    let stolen = registry.exchange(&request(claim("a"), &token, 'x'), at(21));
    assert_eq!(refusal(&stolen), RefusalReason::Used);
    assert!(stolen.notices.contains(&Notice::TokenReused(claim("a"))), "{stolen:?}");

    let late = registry.exchange(&request(claim("a"), &token, 'n'), at(10 + REPEATS_LAST.as_secs()));
    assert_eq!(refusal(&late), RefusalReason::Used);
    assert!(!late.notices.contains(&Notice::TokenReused(claim("a"))), "{late:?}");
}

#[test]
fn a_token_is_of_no_use_after_its_time_for_another_claim_or_after_a_new_one() {
    for (now, is_valid) in [(0, true), (TTL.as_secs() - 1, true), (TTL.as_secs(), false), (86_400, false)] {
        let (mut registry, token) = offered();
        let answer = registry.exchange(&request(claim("a"), &token, 'n'), at(now));
        match is_valid {
            true => assert_eq!(granted(&answer).jit_config, offer().jit_config),
            false => assert_eq!(refusal(&answer), RefusalReason::Expired),
        }
    }
    let (mut registry, token) = offered();
    let other = registry.mint(claim("b"), [8; 32], TTL, at(0)).unwrap();
    registry.offer("uid-b", offer());
    let renamed = Claim { name: "z".to_owned(), ..claim("a") };
    let moved = Claim { namespace: "z".to_owned(), ..claim("a") };
    let recreated = Claim { uid: "uid-z".to_owned(), ..claim("a") };
    for (claim, token) in
        [(claim("b"), &token), (claim("a"), &other), (renamed, &token), (moved, &token), (recreated, &token)]
    {
        let answer = registry.exchange(&request(claim.clone(), token, 'n'), at(1));
        assert_eq!(refusal(&answer), RefusalReason::Unknown, "{claim:?}");
        // Others hear only of claims that exist, under their real names.
        let known = [self::claim("a"), self::claim("b")].into_iter().find(|known| known.uid == claim.uid);
        let notices: Vec<_> = known.map(|known| Notice::Refused(known, RefusalReason::Unknown)).into_iter().collect();
        assert_eq!(answer.notices, notices, "{claim:?}");
    }
    registry.mint(claim("a"), [9; 32], TTL, at(1)).unwrap();
    registry.offer("uid-a", offer());
    assert_eq!(refusal(&registry.exchange(&request(claim("a"), &token, 'n'), at(2))), RefusalReason::Unknown);
}

#[test]
fn credentials_are_wanted_only_for_a_guest_that_has_proved_who_it_is() {
    let mut registry = Registry::default();
    let token = registry.mint(claim("a"), [7; 32], TTL, at(0)).unwrap();
    assert_eq!(registry.wanted().count(), 0);
    let answer = registry.exchange(&request(claim("a"), &Secret::new("guess".to_owned()), 'n'), at(1));
    assert_eq!((refusal(&answer), registry.wanted().count()), (RefusalReason::Unknown, 0));

    let answer = registry.exchange(&request(claim("a"), &token, 'n'), at(1));
    assert_eq!(refusal(&answer), RefusalReason::NotYet);
    assert!(
        matches!(answer.reply, Reply::Refused { status: 503, ref refusal } if refusal.retry_after_seconds.is_some())
    );
    assert_eq!(answer.notices, [Notice::Attested(claim("a"))]);
    assert_eq!(registry.wanted().collect::<Vec<_>>(), [&claim("a")]);
    // The nonce is bound although nothing was granted yet.
    let stolen = registry.exchange(&request(claim("a"), &token, 'x'), at(2));
    assert!(stolen.notices.contains(&Notice::TokenReused(claim("a"))), "{stolen:?}");

    registry.offer("uid-a", offer());
    assert_eq!(registry.wanted().count(), 0);
    let answer = registry.exchange(&request(claim("a"), &token, 'n'), at(3));
    assert_eq!(granted(&answer).jit_config, offer().jit_config);
    assert_eq!(answer.notices, [Notice::Granted(claim("a"))]);
}

#[test]
fn a_guest_that_waits_for_credentials_is_refused_when_its_token_expires() {
    let mut registry = Registry::default();
    let token = registry.mint(claim("a"), [7; 32], TTL, at(0)).unwrap();
    assert_eq!(refusal(&registry.exchange(&request(claim("a"), &token, 'n'), at(1))), RefusalReason::NotYet);
    registry.offer("uid-a", offer());
    assert_eq!(refusal(&registry.exchange(&request(claim("a"), &token, 'n'), at(600))), RefusalReason::Expired);
}

#[test]
fn credentials_that_have_expired_are_not_granted() {
    let (mut registry, token) = offered();
    registry.offer("uid-a", Offer { expires: at(5), ..offer() });
    assert_eq!(refusal(&registry.exchange(&request(claim("a"), &token, 'n'), at(5))), RefusalReason::NotYet);
    assert_eq!(registry.wanted().count(), 1);
}

#[test]
fn credentials_are_dropped_when_they_have_arrived_or_nobody_can_ask_any_more() {
    let (mut registry, token) = offered();
    let bearer = granted(&registry.exchange(&request(claim("a"), &token, 'n'), at(1))).report_token.clone();
    registry.prune(at(REPEATS_LAST.as_secs()));
    assert_eq!(registry.offers.len(), 1);
    let mut late = registry.clone();
    late.prune(at(1 + REPEATS_LAST.as_secs()));
    assert_eq!(late.offers.len(), 0);
    registry.report(&bearer, &report(claim("a")));
    assert_eq!(registry.offers.len(), 0);
    assert_eq!(refusal(&registry.exchange(&request(claim("a"), &token, 'n'), at(2))), RefusalReason::Used);

    for case in 0..3 {
        let (mut registry, _) = offered();
        match case {
            0 => registry.forget("uid-a"),
            1 => registry.prune(at(TTL.as_secs())),
            _ => registry.mint(claim("a"), [1; 32], TTL, at(0)).map(|_| ()).unwrap(),
        }
        assert_eq!(registry.offers.len(), 0, "case {case}");
    }
    let mut registry = Registry::default();
    registry.offer("uid-a", offer());
    assert_eq!(registry.offers.len(), 0, "there is no such claim");
}

#[test]
fn reports_need_the_token_of_their_claim() {
    let (mut registry, token) = offered();
    let other = registry.mint(claim("b"), [8; 32], TTL, at(0)).unwrap();
    registry.offer("uid-b", offer());
    let bearer = granted(&registry.exchange(&request(claim("a"), &token, 'n'), at(1))).report_token.clone();
    let others = granted(&registry.exchange(&request(claim("b"), &other, 'n'), at(1))).report_token.clone();
    assert_ne!(bearer, others);
    let answer = registry.report(&bearer, &report(claim("a")));
    assert_eq!(answer.reply, Reply::Accepted(ReportReply { stop: false }));
    assert_eq!(answer.notices, [Notice::Reported(claim("a"), Phase::Idle)]);
    let renamed = Claim { name: "z".to_owned(), ..claim("a") };
    for (bearer, claim) in
        [(&others, claim("a")), (&bearer, claim("b")), (&token, claim("a")), (&bearer, renamed), (&bearer, claim("c"))]
    {
        assert_eq!(refusal(&registry.report(bearer, &report(claim.clone()))), RefusalReason::Unknown, "{claim:?}");
        assert_eq!(refusal(&registry.end(bearer, &end(claim.clone()))), RefusalReason::Unknown, "{claim:?}");
    }
    registry.drain("uid-a");
    assert_eq!(registry.report(&bearer, &report(claim("a"))).reply, Reply::Accepted(ReportReply { stop: true }));
}

#[test]
fn a_token_that_was_not_used_has_no_report_token() {
    let (mut registry, token) = offered();
    assert_eq!(refusal(&registry.report(&token, &report(claim("a")))), RefusalReason::Unknown);
}

#[test]
fn an_end_is_noticed_once_may_be_repeated_and_nothing_follows_it() {
    let (mut registry, token) = offered();
    let bearer = granted(&registry.exchange(&request(claim("a"), &token, 'n'), at(1))).report_token.clone();
    let mut said = end(claim("a"));
    said.message = "bell\u{7}\u{1b}[2J".to_owned();
    said.log = "ü\n".repeat(MAX_LOG);
    let answer = registry.end(&bearer, &said);
    let [Notice::Ended(noticed)] = &answer.notices[..] else { panic!("{answer:?}") };
    assert_eq!(noticed.message, "bell[2J");
    assert!(noticed.log.len() <= MAX_LOG && noticed.log.starts_with("ü\nü"), "{}", noticed.log.len());
    let again = registry.end(&bearer, &said);
    assert!(matches!(again.reply, Reply::Accepted(_)) && again.notices.is_empty(), "{again:?}");
    assert_eq!(refusal(&registry.report(&bearer, &report(claim("a")))), RefusalReason::Ended);
    registry.offer("uid-a", offer());
    assert_eq!(refusal(&registry.exchange(&request(claim("a"), &token, 'n'), at(2))), RefusalReason::Ended);
    assert_eq!(registry.wanted().count(), 0);
}

#[test]
fn a_restart_forgets_neither_tokens_nor_their_use_and_stores_no_secret() {
    let (mut registry, token) = offered();
    let bearer = granted(&registry.exchange(&request(claim("a"), &token, 'n'), at(1))).report_token.clone();
    let text = serde_json::to_string(registry.record("uid-a").unwrap()).unwrap();
    for secret in [&token.expose()[5..], &bearer.expose()[5..], &"n".repeat(32), "jit"] {
        assert!(!text.contains(secret), "{text}");
    }
    let record: Record = serde_json::from_str(&text).unwrap();
    let mut restored = Registry::restore([record]);
    assert_eq!(refusal(&restored.exchange(&request(claim("a"), &token, 'x'), at(2))), RefusalReason::Used);
    let mut reported = restored.clone();
    assert!(matches!(reported.report(&bearer, &report(claim("a"))).reply, Reply::Accepted(_)));
    assert_eq!(refusal(&reported.exchange(&request(claim("a"), &token, 'n'), at(2))), RefusalReason::Used);
    // The answer was lost together with the operator: the same guest asks again, and gets other credentials.
    assert_eq!(refusal(&restored.exchange(&request(claim("a"), &token, 'n'), at(3))), RefusalReason::NotYet);
    assert_eq!(restored.wanted().collect::<Vec<_>>(), [&claim("a")]);
}

#[test]
fn a_token_is_valid_for_an_hour_at_most() {
    let mut registry = Registry::default();
    registry.mint(claim("a"), [7; 32], Duration::MAX, at(0)).unwrap();
    assert_eq!(registry.record("uid-a").unwrap().expires, at(LONGEST_TOKEN_LIFE.as_secs()));
}

#[test]
fn there_is_a_limit_of_records_and_expired_ones_make_room() {
    let mut registry = Registry::default();
    let mint =
        |registry: &mut Registry, name: usize, now| registry.mint(claim(&name.to_string()), [0; 32], TTL, at(now));
    for name in 0..MAX_RECORDS {
        mint(&mut registry, name, 0).unwrap();
    }
    assert_eq!(mint(&mut registry, MAX_RECORDS, 1).err(), Some(TooMany));
    assert!(mint(&mut registry, 3, 1).is_ok(), "a new token of a known claim needs no room");
    assert!(mint(&mut registry, MAX_RECORDS, TTL.as_secs()).is_ok());
    assert_eq!(registry.records.len(), 2);
}

#[test]
fn nonces_have_a_length_and_every_refusal_has_a_status_and_a_message() {
    let (mut registry, token) = offered();
    for length in [0, 31, 129, 100_000] {
        let nonce = Secret::new("n".repeat(length));
        let answer = registry.exchange(&Exchange { nonce, ..request(claim("a"), &token, 'n') }, at(1));
        assert_eq!(refusal(&answer), RefusalReason::Malformed, "{length}");
    }
    use RefusalReason::{Ended, Expired, Malformed, NotYet, Other, Unknown, Used};
    for (reason, expected) in
        [(Malformed, 400), (Unknown, 403), (Expired, 403), (Used, 403), (NotYet, 503), (Ended, 410), (Other, 400)]
    {
        assert_eq!(super::status(reason), expected);
        assert!(message(reason).len() > 20);
    }
}

/// Whatever two parties with one token do, in any order: one of them at most gets credentials.
#[test]
fn of_two_holders_of_a_token_one_at_most_gets_credentials() {
    for order in 0..256_u32 {
        let (mut registry, token) = offered();
        let mut winners = Vec::new();
        for turn in 0..8_u32 {
            let who = if order & (1 << turn) == 0 { 'a' } else { 'b' };
            let answer = registry.exchange(&request(claim("a"), &token, who), at(u64::from(turn) * 20));
            if matches!(answer.reply, Reply::Granted(_)) {
                winners.push(who);
            }
        }
        winners.dedup();
        assert_eq!(winners.len(), 1, "{order:b}: {winners:?}");
    }
}
