//! Failed deliveries are made again, a few at a time, and only while there is hope and budget.

use super::{MOST_AT_ONCE, MOST_KNOWN, PAUSES, Redelivery};
use crate::forge::{Ask, Delivery, Hook};
use crate::jobs::budget::Allowance;
use change::{Moment, Now};
use jiff::Timestamp;
use std::time::Duration;

const START: i64 = 1_800_000_000;

fn at(second: u64) -> Now {
    let wall = Timestamp::from_second(START + i64::try_from(second).unwrap()).unwrap();
    Now { monotonic: Moment::since_start(Duration::from_secs(second)), wall }
}

fn plenty() -> Allowance {
    let mut allowance = Allowance::default();
    allowance.set(1_000_000, 1_000_000, at(3_000_000).wall);
    allowance
}

fn delivery(id: u64, guid: &str, second: u64, is_accepted: bool) -> Delivery {
    Delivery {
        id,
        guid: guid.to_owned(),
        at: at(second).wall,
        event: ("workflow_job".to_owned(), Some("queued".to_owned())),
        is_accepted,
        is_redelivery: false,
    }
}

fn redelivered(asks: &[Ask]) -> Vec<u64> {
    let id = |ask: &Ask| match ask {
        Ask::Redeliver { hook: Hook::Scope(7), delivery } => Some(*delivery),
        _ => None,
    };
    asks.iter().filter_map(id).collect()
}

/// One that has listed these deliveries.
fn listed(deliveries: &[Delivery], second: u64) -> Redelivery {
    let mut redelivery = Redelivery::new(Hook::Scope(7));
    let asks = redelivery.decide(true, &mut plenty(), at(second));
    assert!(matches!(asks[..], [Ask::Deliveries { hook: Hook::Scope(7), .. }]), "{asks:?}");
    redelivery.listed(deliveries, at(second));
    redelivery
}

#[test]
fn what_failed_is_delivered_again_and_what_succeeded_in_any_attempt_is_not() {
    let mut other_event = delivery(5, "e", 105, false);
    other_event.event.0 = "push".to_owned();
    let deliveries = [
        delivery(6, "f", 106, true),
        other_event,
        delivery(4, "b", 104, true),
        delivery(3, "c", 103, false),
        delivery(2, "b", 102, false),
        delivery(1, "a", 101, true),
    ];
    let mut redelivery = listed(&deliveries, 110);
    assert_eq!(redelivered(&redelivery.decide(true, &mut plenty(), at(110))), [3]);
    assert!(redelivered(&redelivery.decide(true, &mut plenty(), at(111))).is_empty(), "it was asked a second ago");
    redelivery.listed(&[delivery(7, "c", 112, true)], at(113));
    for second in 113..5_000 {
        assert!(redelivered(&redelivery.decide(true, &mut plenty(), at(second))).is_empty(), "{second}");
    }
}

#[test]
fn an_event_is_tried_a_few_times_and_then_left_to_polls() {
    // Another event shows that the receiver can be reached.
    let deliveries = [delivery(1, "a", 100, false), delivery(2, "b", 101, true)];
    let mut redelivery = listed(&deliveries, 110);
    let mut tried = Vec::new();
    for second in 110..10_000 {
        let asks = redelivery.decide(true, &mut plenty(), at(second));
        tried.extend(redelivered(&asks).iter().map(|_| second));
        if asks.iter().any(|ask| matches!(ask, Ask::Deliveries { .. })) {
            redelivery.listed(&deliveries, at(second));
        }
    }
    assert_eq!(tried, [110, 171, 471, 1_371], "never before the list of that moment is there");
    assert_eq!((tried.len(), redelivery.given_up()), (PAUSES.len() + 1, 1));
}

#[test]
fn a_receiver_that_cannot_be_reached_gets_one_at_a_time_and_then_many() {
    let mut deliveries: Vec<Delivery> = (0..100).map(|id| delivery(id, &format!("g{id}"), 100 + id, false)).collect();
    let mut redelivery = listed(&deliveries, 300);
    assert_eq!(redelivered(&redelivery.decide(true, &mut plenty(), at(300))), [0], "the oldest one");
    assert_eq!(redelivered(&redelivery.decide(true, &mut plenty(), at(301))), [1]);
    deliveries.push(delivery(100, "g0", 302, true));
    redelivery.listed(&deliveries, at(303));
    assert_eq!(redelivered(&redelivery.decide(true, &mut plenty(), at(303))).len(), MOST_AT_ONCE);
}

#[test]
fn a_queued_job_comes_before_one_that_has_ended() {
    let mut done = delivery(1, "a", 100, false);
    done.event.1 = Some("completed".to_owned());
    let mut redelivery = listed(&[done, delivery(2, "b", 101, false), delivery(3, "c", 102, true)], 110);
    assert_eq!(redelivered(&redelivery.decide(true, &mut plenty(), at(110))), [2, 1]);
}

#[test]
fn nothing_is_asked_without_budget_and_a_list_is_asked_for_once_in_its_time() {
    let mut redelivery = Redelivery::new(Hook::App);
    assert!(redelivery.decide(true, &mut Allowance::default(), at(0)).is_empty(), "no limit is known yet");
    assert_eq!(redelivery.decide(false, &mut plenty(), at(0)).len(), 1);
    assert!(redelivery.decide(false, &mut plenty(), at(3_000)).is_empty(), "one is on its way");
    redelivery.not_listed(at(3_000));
    assert!(redelivery.decide(false, &mut plenty(), at(3_059)).is_empty());
    assert_eq!(redelivery.decide(false, &mut plenty(), at(3_060)).len(), 1);
    redelivery.listed(&[], at(3_061));
    let quiet = (3_062..9_000).filter(|second| {
        let is_asked = !redelivery.decide(false, &mut plenty(), at(*second)).is_empty();
        redelivery.listed(&[], at(*second));
        is_asked
    });
    assert_eq!(quiet.take(2).collect::<Vec<_>>(), [3_660, 4_260]);
    assert!(redelivery.wake() > at(4_260).monotonic);
}

#[test]
fn a_list_continues_where_the_last_one_ended_and_never_looks_back_far() {
    let since = |asks: &[Ask]| match asks {
        [Ask::Deliveries { since, .. }, ..] => since.as_second() - START,
        other => panic!("{other:?}"),
    };
    let mut redelivery = Redelivery::new(Hook::App);
    assert_eq!(since(&redelivery.decide(true, &mut plenty(), at(10_000))), 10_000 - 3_600);
    redelivery.listed(&[delivery(1, "a", 9_990, true)], at(10_000));
    assert_eq!(since(&redelivery.decide(true, &mut plenty(), at(10_060))), 9_990 - 120);
    redelivery.listed(&[], at(10_061));
    assert_eq!(since(&redelivery.decide(true, &mut plenty(), at(2_000_000))), 2_000_000 - 86_400);
}

#[test]
fn a_flood_of_failures_needs_no_endless_memory_and_nothing_old_is_delivered() {
    let count = u64::try_from(MOST_KNOWN).unwrap() + 500;
    let deliveries: Vec<Delivery> = (0..count).map(|id| delivery(id, &format!("g{id}"), 100 + id, false)).collect();
    let mut redelivery = listed(&deliveries, 100 + count);
    assert_eq!((redelivery.failed.len(), redelivery.given_up()), (MOST_KNOWN, 500));
    let asks = redelivery.decide(true, &mut plenty(), at(100 + count + 86_400));
    assert!(redelivered(&asks).is_empty() && redelivery.failed.is_empty());
}

#[test]
fn attempts_of_an_earlier_process_count() {
    let again = |id: u64, second: u64| Delivery { is_redelivery: true, ..delivery(id, "a", second, false) };
    let accepted = delivery(9, "b", 400, true);
    let mut redelivery = listed(&[accepted.clone(), again(2, 110), delivery(1, "a", 100, false)], 410);
    assert!(redelivered(&redelivery.decide(true, &mut plenty(), at(410))).is_empty(), "it was tried once");
    assert_eq!(redelivered(&redelivery.decide(true, &mut plenty(), at(470 - 1))), [0; 0]);
    redelivery.decide(true, &mut plenty(), at(470));
    redelivery.listed(&[], at(470));
    assert_eq!(redelivered(&redelivery.decide(true, &mut plenty(), at(471))), [1]);
    let all: Vec<Delivery> =
        (2..6).map(|id| again(id, 100 + id)).chain([delivery(1, "a", 100, false), accepted]).collect();
    let redelivery = listed(&all, 410);
    assert_eq!((redelivery.failed.len(), redelivery.given_up()), (0, 1), "four times");
}
