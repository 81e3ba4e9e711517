//! Budgets are never exceeded, whatever is late, lost or answered out of order.

use super::{Budget, CORE, Left, Limits, Meter, Place, Priority, Ticket, Verdict};
use jiff::Timestamp;
use std::time::Duration;

fn at(second: i64) -> Timestamp {
    Timestamp::from_second(1_790_000_000 + second).unwrap()
}

fn meter(status: u16, remaining: u64, reset: i64) -> Meter {
    let hour = Left { limit: 100, remaining, reset: at(reset) };
    Meter { status, hour: Some(hour), ..Meter::default() }
}

fn ask(budget: &mut Budget, priority: Priority, second: i64) -> Verdict {
    let place = budget.enter(priority);
    let verdict = budget.admit(place, false, CORE, at(second));
    budget.leave(place);
    verdict
}

fn go(budget: &mut Budget, priority: Priority, second: i64) -> Ticket {
    match ask(budget, priority, second) {
        Verdict::Go(ticket) => ticket,
        other => panic!("{other:?}"),
    }
}

fn known(remaining: u64) -> Budget {
    let mut budget = Budget::new(Limits::default());
    let ticket = go(&mut budget, Priority::Bulk, 0);
    budget.answered(&ticket, &meter(200, remaining, 3600), at(0));
    budget
}

fn until(verdict: &Verdict) -> Timestamp {
    match verdict {
        Verdict::Limited { until, .. } => *until,
        other => panic!("{other:?}"),
    }
}

#[test]
fn one_request_finds_out_what_is_left() {
    let mut budget = Budget::new(Limits::default());
    let ticket = go(&mut budget, Priority::Bulk, 0);
    assert_eq!(ask(&mut budget, Priority::Urgent, 0), Verdict::Wait);
    budget.answered(&ticket, &meter(200, 100, 3600), at(0));
    go(&mut budget, Priority::Bulk, 0);
    go(&mut budget, Priority::Bulk, 0);
    assert_eq!(budget.left(), Some((100, 98)));
    let mut unlimited = Budget::new(Limits::default());
    let ticket = go(&mut unlimited, Priority::Bulk, 0);
    unlimited.answered(&ticket, &Meter { status: 200, ..Meter::default() }, at(0));
    assert_eq!(unlimited.left(), None);
    go(&mut unlimited, Priority::Bulk, 0);
    go(&mut unlimited, Priority::Bulk, 0);
}

#[test]
fn lists_leave_something_for_what_cannot_wait() {
    let mut budget = known(11);
    let ticket = go(&mut budget, Priority::Bulk, 0);
    budget.answered(&ticket, &meter(200, 10, 3600), at(0));
    assert_eq!(until(&ask(&mut budget, Priority::Bulk, 0)), at(3601));
    for left in (0..10).rev() {
        let ticket = go(&mut budget, Priority::Urgent, 0);
        budget.answered(&ticket, &meter(200, left, 3600), at(0));
    }
    assert_eq!(until(&ask(&mut budget, Priority::Urgent, 0)), at(3601));
    go(&mut budget, Priority::Bulk, 3601);
}

#[test]
fn an_answer_that_is_known_costs_nothing() {
    let mut budget = known(20);
    for _ in 0..1000 {
        let ticket = go(&mut budget, Priority::Bulk, 0);
        budget.answered(&ticket, &meter(304, 20, 3600), at(0));
        budget.ended.clear();
    }
    assert_eq!(budget.left(), Some((100, 20)));
}

#[test]
fn what_cannot_wait_goes_before_what_waits() {
    let mut budget = known(100);
    let bulk: Vec<Ticket> = (0..10).map(|_| go(&mut budget, Priority::Bulk, 0)).collect();
    let (list, removal) = (budget.enter(Priority::Bulk), budget.enter(Priority::Urgent));
    assert_eq!(budget.admit(list, false, CORE, at(0)), Verdict::Wait, "half of the places are for others");
    budget.answered(&bulk[0], &meter(200, 99, 3600), at(0));
    assert_eq!(budget.admit(list, false, CORE, at(0)), Verdict::Wait, "a removal waits, too");
    assert!(matches!(budget.admit(removal, true, CORE, at(0)), Verdict::Go(_)));
    assert_eq!(budget.admit(list, false, CORE, at(0)), Verdict::Wait);
    budget.answered(&bulk[1], &meter(200, 98, 3600), at(0));
    assert!(matches!(budget.admit(list, false, CORE, at(0)), Verdict::Go(_)));
}

#[test]
fn pauses_are_kept_by_everybody_and_double_if_they_have_no_length() {
    let mut budget = known(50);
    let ticket = go(&mut budget, Priority::Bulk, 0);
    let refused = Meter { retry_after: Some(Duration::from_secs(7)), ..meter(403, 50, 3600) };
    assert_eq!(budget.answered(&ticket, &refused, at(0)), Some(at(8)));
    assert_eq!(until(&ask(&mut budget, Priority::Urgent, 7)), at(8));
    let mut second = 8;
    for pause in [121, 241, 481, 901, 901] {
        let ticket = go(&mut budget, Priority::Urgent, second);
        let refused = Meter { is_secondary: true, ..meter(403, 50, 90_000) };
        assert_eq!(budget.answered(&ticket, &refused, at(second)), Some(at(second + pause)));
        second += pause;
    }
    let ticket = go(&mut budget, Priority::Urgent, second);
    assert_eq!(budget.answered(&ticket, &meter(200, 50, 90_000), at(second)), None);
    let ticket = go(&mut budget, Priority::Urgent, second);
    let refused = Meter { is_secondary: true, ..meter(429, 50, 90_000) };
    assert_eq!(budget.answered(&ticket, &refused, at(second)), Some(at(second + 61)), "it starts again with a minute");
}

#[test]
fn what_was_not_sent_is_not_counted_and_what_was_lost_is() {
    let mut budget = known(50);
    for _ in 0..1000 {
        let ticket = go(&mut budget, Priority::Bulk, 0);
        budget.unsent(&ticket);
    }
    assert_eq!(budget.left(), Some((100, 50)));
    let ticket = go(&mut budget, Priority::Bulk, 0);
    budget.lost(&ticket, at(0));
    assert_eq!(budget.left(), Some((100, 49)));
}

#[test]
fn a_missing_permission_is_no_limit() {
    let mut budget = known(50);
    let ticket = go(&mut budget, Priority::Bulk, 0);
    assert_eq!(budget.answered(&ticket, &meter(403, 49, 3600), at(0)), None);
    go(&mut budget, Priority::Bulk, 0);
}

#[test]
fn what_counts_as_something_else_has_an_hour_of_its_own() {
    let mut budget = known(50);
    let mut register = |second: i64| {
        let place = budget.enter(Priority::Urgent);
        let verdict = budget.admit(place, true, "registration", at(second));
        budget.leave(place);
        (verdict, budget.left())
    };
    let (Verdict::Go(ticket), left) = register(0) else { panic!() };
    assert_eq!(left, Some((100, 50)));
    assert_eq!(register(0).0, Verdict::Wait, "one request finds out");
    let refused = Meter { resource: Some("registration".into()), ..meter(403, 0, 7200) };
    assert_eq!(budget.answered(&ticket, &refused, at(0)), Some(at(7201)));
    let place = budget.enter(Priority::Urgent);
    assert_eq!(until(&budget.admit(place, true, "registration", at(0))), at(7201));
    budget.leave(place);
    go(&mut budget, Priority::Bulk, 0);
}

/// What reads and writes count as.
const RESOURCES: [&str; 2] = [CORE, "registration"];

/// A platform that counts as GitHub does.
struct Platform {
    limits: [u64; 2],
    window: Duration,
    points: u32,
    started: Timestamp,
    used: [u64; 2],
    minute: Timestamp,
    used_points: u32,
    refused: u64,
}

impl Platform {
    fn handle(&mut self, is_write: bool, is_known: bool, now: Timestamp) -> Meter {
        if now >= self.started + self.window {
            (self.started, self.used) = (now, [0; 2]);
        }
        if now >= self.minute + Duration::from_secs(60) {
            (self.minute, self.used_points) = (now, 0);
        }
        let (cost, kind) = (if is_write { 5 } else { 1 }, usize::from(is_write));
        let mut meter = Meter { status: if is_known { 304 } else { 200 }, ..Meter::default() };
        if self.used[kind] >= self.limits[kind] {
            self.refused += 1;
            meter.status = 403;
        } else if self.used_points + cost > self.points {
            self.refused += 1;
            (meter.status, meter.is_secondary) = (403, true);
        } else {
            self.used_points += cost;
            self.used[kind] += u64::from(!is_known);
        }
        let (limit, reset) = (self.limits[kind], self.started + self.window);
        meter.hour = Some(Left { limit, remaining: limit - self.used[kind], reset });
        meter.resource = Some(RESOURCES[kind].to_owned());
        meter
    }
}

/// Small numbers that look random.
struct Random(u64);

impl Random {
    fn below(&mut self, end: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % end
    }
}

/// Requests of all kinds, answers that are late, lost and out of order, hours that end: nothing is ever refused by a limit.
#[test]
fn no_budget_is_ever_exceeded() {
    let (mut sent, mut limited) = (0_u64, 0_u64);
    for seed in 0..300 {
        let mut random = Random(seed);
        let mut now = at(0);
        let limits = Limits { concurrent: 1 + random.below(30) as usize, points: 20 + random.below(60) as u32 };
        let mut platform = Platform {
            limits: [20 + random.below(200), 10 + random.below(50)],
            window: Duration::from_secs(100 + random.below(3000)),
            points: limits.points,
            started: now,
            used: [0; 2],
            minute: now,
            used_points: 0,
            refused: 0,
        };
        let mut budget = Budget::new(limits);
        let mut waiting: Vec<(Place, bool)> = Vec::new();
        // When a request arrives, when its answer does, and what it says.
        let mut flying: Vec<(Timestamp, Timestamp, Ticket, bool, Option<Meter>)> = Vec::new();
        for _ in 0..2000 {
            now += Duration::from_millis(random.below(900));
            for (arrives, _, _, is_write, meter) in flying.iter_mut().filter(|(arrives, ..)| *arrives <= now) {
                if meter.is_none() {
                    *meter = Some(platform.handle(*is_write, !*is_write && random.below(3) == 0, *arrives));
                }
            }
            let mut at = 0;
            while at < flying.len() {
                if flying[at].1 > now || flying[at].4.is_none() {
                    at += 1;
                    continue;
                }
                let (_, _, ticket, _, meter) = flying.remove(at);
                match meter.filter(|_| random.below(20) > 0) {
                    Some(meter) => drop(budget.answered(&ticket, &meter, now)),
                    None => budget.lost(&ticket, now),
                }
            }
            for _ in 0..random.below(4) {
                let priority = [Priority::Urgent, Priority::Normal, Priority::Bulk][random.below(3) as usize];
                waiting.push((budget.enter(priority), random.below(4) == 0));
            }
            waiting.retain(|(place, is_write)| {
                match budget.admit(*place, *is_write, RESOURCES[usize::from(*is_write)], now) {
                    Verdict::Go(ticket) => {
                        sent += 1;
                        let arrives = now + Duration::from_millis(random.below(2000));
                        let answers = arrives + Duration::from_millis(random.below(3000));
                        flying.push((arrives, answers, ticket, *is_write, None));
                        false
                    }
                    Verdict::Wait => true,
                    Verdict::Limited { until, .. } => {
                        assert!(until > now);
                        limited += 1;
                        budget.leave(*place);
                        false
                    }
                }
            });
        }
        assert_eq!(platform.refused, 0, "seed {seed}");
    }
    assert!(sent > 50_000 && limited > 10_000, "{sent} {limited}");
}
