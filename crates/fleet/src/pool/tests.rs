//! The life of a pool, as tables.

use super::{Decision, Hold, Member, Observed, Pool, State, claim_name, decide, label};
use crate::object::{Name, Object};
use api::fleet::{
    Lifecycle, LocalRef, Quantity, Quota, RunnerPoolSpec, RunnerPoolStatus, Scaling, Schedule, Span, Spares, Truth,
};
use change::{Moment, Now};
use jiff::Timestamp;
use std::time::Duration;

fn at(second: u64) -> Now {
    let wall = Timestamp::from_second(1_000_000 + i64::try_from(second).unwrap()).unwrap();
    Now { wall, monotonic: Moment::since_start(Duration::from_secs(second)) }
}

fn pool(min_replicas: i32, max_replicas: i32) -> Pool {
    let scale_down_delay = Span("60s".into());
    Object {
        name: Name::new("ci", "pool"),
        uid: "p".into(),
        version: "1".into(),
        generation: 1,
        created: at(0).wall,
        deleting: None,
        finalizers: vec![api::fleet::IN_USE_FINALIZER.into()],
        annotations: std::collections::BTreeMap::new(),
        spec: RunnerPoolSpec {
            template_ref: LocalRef { name: "small".into() },
            replicas: None,
            scaling: Scaling { min_replicas, max_replicas, scale_down_delay, ..Scaling::default() },
            lifecycle: Lifecycle::default(),
            keep_failed: 2,
            quota: None,
            workload: None,
        },
        status: RunnerPoolStatus::default(),
    }
}

/// Members from characters: s starting, i idle, b busy, w standby, p standby that is not configured yet, d draining, f failed, e ending; those in
/// capitals are outdated.
fn members(states: &str) -> Vec<Member> {
    let member = |(number, letter): (usize, char)| {
        let state = match letter.to_ascii_lowercase() {
            's' => State::Starting,
            'i' => State::Idle(at(10).wall),
            'b' => State::Busy,
            'w' | 'p' => State::Standby,
            'd' => State::Draining(at(10).wall),
            'f' => State::Failed,
            _ => State::Ending,
        };
        let name = Name::new("ci", &format!("{letter}{number}"));
        let (is_configured, is_outdated) = (!"sp".contains(letter), letter.is_ascii_uppercase());
        Member { is_configured, is_outdated, ..Member::new(name, at(number as u64).wall, state) }
    };
    states.chars().enumerate().map(member).collect()
}

fn decided(pool: &Pool, states: &str, now: u64) -> Decision {
    let members = members(states);
    decide(&Observed { pool, members: &members, size: Some((2, 4 << 30)), hold: None, now: at(now) })
}

#[test]
fn a_pool_that_creates_no_claims_for_a_while_says_why() {
    let until = at(90).monotonic;
    let hold =
        Hold { until, reason: "ClaimRefused", message: "the API server refuses new claims: exceeded quota".into() };
    let pool = pool(2, 5);
    let of = |now: u64| {
        decide(&Observed { pool: &pool, members: &[], size: Some((2, 4 << 30)), hold: Some(&hold), now: at(now) })
    };
    let held = of(89);
    let scaling = held.status.conditions.iter().find(|condition| condition.r#type == "Scaling").unwrap();
    assert_eq!((held.create, held.wake, scaling.reason.as_str()), (0, Some(until), "ClaimRefused"));
    assert_eq!(scaling.message, "2 machines are wanted; the API server refuses new claims: exceeded quota");
    assert_eq!(of(90).create, 2);
}

/// Demand takes those that only have to be started.
#[test]
fn spares_that_are_configured_are_started_first() {
    let mut pool = pool(2, 9);
    pool.spec.scaling.spares.stopped = 4;
    assert_eq!(names(&decided(&pool, "pwpw", 100).start), ["w1", "w3"]);
    assert_eq!(names(&decided(&pool, "pWpw", 100).start), ["w3", "W1"], "those of the present template before others");
}

#[test]
fn missing_spares_come_when_nothing_holds_them_back_any_more_and_the_pool_says_why_not_yet() {
    let (until, message) = (at(90).monotonic, "the API server refuses new claims".to_owned());
    let hold = Hold { until, reason: "ClaimRefused", message };
    let mut pool = pool(1, 5);
    pool.spec.scaling.spares.stopped = 2;
    let members = members("iw");
    let of =
        |now: u64| decide(&Observed { pool: &pool, members: &members, size: None, hold: Some(&hold), now: at(now) });
    let held = of(89);
    let scaling = held.status.conditions.iter().find(|condition| condition.r#type == "Scaling").unwrap();
    assert_eq!((held.create_standby, held.wake, scaling.reason.as_str()), (0, Some(until), "ClaimRefused"));
    assert_eq!(of(90).create_standby, 1);
}

#[test]
fn spares_are_no_surplus_and_do_not_hide_what_is_missing() {
    let mut pool = pool(2, 9);
    pool.spec.scaling.spares.stopped = 2;
    let scaling = |states: &str| {
        let status = decided(&pool, states, 100).status;
        let found = status.conditions.iter().find(|condition| condition.r#type == "Scaling").unwrap();
        (found.reason.clone(), status.replicas)
    };
    assert_eq!(scaling("iiww"), ("AsWanted".to_owned(), 4));
    assert_eq!(scaling("iw"), ("DemandIncreased".to_owned(), 2));
    assert_eq!(scaling("iiiww"), ("Surplus".to_owned(), 5));
}

#[test]
fn outdated_machines_are_replaced_a_quarter_at_a_time_and_busy_ones_never() {
    let mut pool = pool(8, 20);
    pool.spec.scaling.spares.stopped = 4;
    let replaced = |states: &str| {
        let decision = decided(&pool, states, 100);
        (names(&decision.drain).join(" "), names(&decision.delete).join(" "))
    };
    let pair = |drain: &str, delete: &str| (drain.to_owned(), delete.to_owned());
    assert_eq!(replaced("IIIIIIIIWWWW"), pair("I0 I1 I2", ""));
    assert_eq!(replaced("WWWWIIIIIIII"), pair("", "W0 W1 W2"), "the oldest first");
    assert_eq!(replaced("sIIIIIIIWWWw"), pair("I1 I2", ""), "one is on its way");
    assert_eq!(replaced("ssIIIIIIdwwp"), pair("", ""), "nor while spares are made");
    assert_eq!(replaced("BBBBBBBSwwww"), pair("", ""));
    assert_eq!(replaced("bbbbbbbIwwww"), pair("I7", ""));
    let alone = super::tests::pool(1, 3);
    assert_eq!(names(&decided(&alone, "I", 100).drain), ["I0"], "always one");
}

#[test]
fn a_stopped_spare_lasts_for_the_maximum_lifetime_or_a_week() {
    let mut pool = pool(0, 3);
    pool.spec.scaling.spares.stopped = 1;
    let week = 7 * 86_400;
    let fresh = decided(&pool, "w", week - 1);
    assert_eq!((fresh.delete.len(), fresh.wake), (0, Some(at(week).monotonic)));
    assert_eq!(names(&decided(&pool, "w", week).delete), ["w0"]);
    pool.spec.lifecycle.max_lifetime = Some(Span("1h".into()));
    assert_eq!(names(&decided(&pool, "w", 3_600).delete), ["w0"]);
}

#[test]
fn failed_machines_are_a_part_of_the_quota_and_give_way_to_what_is_wanted() {
    let mut pool = pool(2, 9);
    pool.spec.quota = Some(Quota { cpu: Some(6), memory: None });
    let of = |pool: &Pool, states: &str| {
        let decision = decided(pool, states, 100);
        (decision.create, names(&decision.delete).join(" "))
    };
    assert_eq!(of(&pool, "iff"), (0, "f1".to_owned()), "the quota is for 3, and 2 are wanted");
    assert_eq!(of(&pool, "ife"), (0, String::new()), "not before it is gone");
    assert_eq!(of(&pool, "if"), (1, String::new()));
    pool.spec.quota = Some(Quota { cpu: Some(4), memory: None });
    assert_eq!(of(&pool, "if"), (0, "f1".to_owned()));
    assert_eq!(of(&pool, "i"), (1, String::new()));
}

fn names(names: &[Name]) -> Vec<&str> {
    names.iter().map(|name| &*name.name).collect()
}

#[test]
fn a_schedule_that_cannot_be_read_is_named_with_its_time_zone() {
    let mut pool = pool(0, 5);
    let schedule = |time_zone: &str| Schedule {
        days: Vec::new(),
        from: "07:00".into(),
        to: "19:00".into(),
        time_zone: time_zone.into(),
        min_replicas: 2,
    };
    pool.spec.scaling.schedules = vec![schedule("UTC"), schedule("Europe/Berlin")];
    let ready = |pool: &Pool| decided(pool, "ii", 0).status.conditions.swap_remove(0);
    assert_ne!(ready(&pool).reason, "ScheduleInvalid");
    pool.spec.scaling.schedules.push(schedule("Mars/Olympus"));
    let condition = ready(&pool);
    assert_eq!((condition.status, condition.reason.as_str()), (Truth::False, "ScheduleInvalid"));
    let message = condition.message;
    assert!(message.contains("spec.scaling.schedules[2] (07:00-19:00 Mars/Olympus): "), "{message}");
}

/// P9, over all small pools: the size follows what is wanted and stays between the minimum and the maximum.
#[test]
fn the_size_stays_between_minimum_and_maximum() {
    for min in 0..4 {
        for max in min..5 {
            for replicas in [None, Some(0), Some(2), Some(9)] {
                for there in 0..6_usize {
                    let mut pool = pool(min, max);
                    pool.spec.replicas = replicas;
                    pool.status.surplus_since = Some(crate::conditions::shown(at(0).wall));
                    let decision = decided(&pool, &"i".repeat(there), 1_000);
                    let after = there + decision.create - decision.drain.len();
                    let wanted = replicas.unwrap_or(0).clamp(min, max);
                    assert_eq!(after, usize::try_from(wanted).unwrap(), "min {min} max {max} {replicas:?} {there}");
                    assert_eq!(decision.status.desired_replicas, Some(wanted));
                }
            }
        }
    }
}

/// All strings of up to so many of these characters; the order makes no difference.
fn strings(characters: &str, most: usize) -> Vec<String> {
    let mut all = vec![String::new()];
    let mut last = all.clone();
    for _ in 0..most {
        let longer = |text: &String| {
            let from = text.chars().last().and_then(|end| characters.find(end)).unwrap_or_default();
            characters[from..].chars().map(|one| format!("{text}{one}")).collect::<Vec<String>>()
        };
        last = last.iter().flat_map(longer).collect();
        all.extend(last.clone());
    }
    all
}

/// What a decision makes of a pool: how many are active, how many stand by, and how many are on their way out.
fn after(states: &str, decision: &Decision) -> (usize, usize, usize) {
    let is = |name: &Name, characters: &str| name.name.chars().next().is_some_and(|one| characters.contains(one));
    let count = |characters: &str| states.chars().filter(|one| characters.contains(*one)).count();
    let ended: Vec<&Name> = decision.drain.iter().chain(&decision.delete).collect();
    assert_eq!(ended.iter().collect::<std::collections::BTreeSet<_>>().len(), ended.len(), "{states}: one ends twice");
    assert!(!ended.iter().any(|name| is(name, "bB") || decision.start.contains(name)), "{states}: {decision:?}");
    let ends = |characters: &str| ended.iter().filter(|name| is(name, characters)).count();
    let active = count("siIbB") + decision.start.len() + decision.create - ends("siI");
    let standby = count("wWp") + decision.create_standby - decision.start.len() - ends("wWp");
    (active, standby, count("de") + ends("siIwWp"))
}

/// P9, over all small pools with members in every state, one after the other outdated, with spares and a quota.
#[test]
fn a_pool_with_members_in_every_state_stays_between_minimum_and_maximum() {
    let mut cases = 0_u32;
    for states in strings("biIswWpdef", 4) {
        for (min, max, replicas, stopped, quota) in [0, 1, 3].into_iter().flat_map(|max| {
            let of = move |min: i32| {
                [None, Some(2), Some(9)].into_iter().flat_map(move |replicas| {
                    [0, 2].into_iter().flat_map(move |stopped| {
                        [None, Some(1), Some(2)].into_iter().map(move |quota| (min, max, replicas, stopped, quota))
                    })
                })
            };
            [0, 1, 2].into_iter().filter(move |min| *min <= max).flat_map(of)
        }) {
            cases += 1;
            let mut pool = pool(min, max);
            pool.spec.replicas = replicas;
            pool.spec.scaling.spares.stopped = stopped;
            pool.spec.quota = quota.map(|machines: u32| Quota { cpu: Some(2 * machines), memory: None });
            pool.status.surplus_since = Some(crate::conditions::shown(at(0).wall));
            let most = quota.map_or(max, |quota| max.min(i32::try_from(quota).unwrap()));
            let min = min.min(most);
            let decision = decided(&pool, &states, 1_000);
            let what = format!("{states:?} min {min} max {most} {replicas:?} stopped {stopped}: {decision:?}");
            let desired = decision.status.desired_replicas.unwrap();
            assert!((min..=most).contains(&desired), "{what}");
            let (active, standby, ending) = after(&states, &decision);
            let number = |count: i32| usize::try_from(count).unwrap();
            let count = |characters: &str| states.chars().filter(|one| characters.contains(*one)).count();
            let busy = count("bB");
            assert!(active + standby <= number(most).max(busy), "{what}");
            assert!(active <= number(desired).max(busy), "{what}");
            if decision.create + decision.create_standby > 0 {
                assert!(active + standby + ending <= number(most), "{what}");
            }
            // What is drained is replaced when it is gone.
            let replaced = decision.drain.len().min(1);
            if count("def") == 0 {
                assert!(active + replaced >= number(desired), "{what}");
            }
            if let Some(quota) = quota.filter(|_| decision.create + decision.create_standby > 0) {
                // Also those that have failed, and are deleted only now.
                assert!(active + standby + ending + count("f") <= usize::try_from(quota).unwrap(), "{what}");
            }
        }
    }
    assert!(cases > 50_000, "{cases}");
}

#[test]
fn a_failed_claim_is_replaced_at_once_and_only_the_newest_are_kept() {
    let decision = decided(&pool(2, 5), "fffi", 100);
    assert_eq!((decision.create, names(&decision.delete)), (1, vec!["f0"]));
    assert_eq!(decision.status.failed_replicas, Some(2));
}

/// A part of P9: scaling down drains, never what is busy, and only after the delay.
#[test]
fn scaling_down_waits_then_drains_what_is_not_busy() {
    let mut pool = pool(0, 5);
    let early = decided(&pool, "biis", 100);
    assert!(early.drain.is_empty() && early.delete.is_empty());
    assert!(early.status.surplus_since.is_some() && early.wake.is_some());
    pool.status = early.status;
    assert_eq!(names(&decided(&pool, "biis", 160).drain), ["s3", "i1", "i2"], "what is not ready first");
}

#[test]
fn spares_are_started_before_others_are_created() {
    let mut pool = pool(2, 5);
    pool.spec.scaling.spares = Spares { booted: 1, stopped: 1 };
    let decision = decided(&pool, "bbw", 100);
    assert_eq!((names(&decision.start), decision.create, decision.create_standby), (vec!["w2"], 0, 1));
    pool.spec.scaling.max_replicas = 3;
    assert_eq!(decided(&pool, "bbw", 100).create_standby, 0, "spares count for the maximum");
}

#[test]
fn a_quota_is_a_maximum() {
    let mut pool = pool(0, 10);
    pool.spec.replicas = Some(10);
    pool.spec.quota = Some(Quota { cpu: Some(9), memory: Some(Quantity("12Gi".into())) });
    assert_eq!(decided(&pool, "", 1).create, 3, "memory allows 3, CPUs would allow 4");
}

#[test]
fn idle_machines_that_nobody_wants_end_after_the_idle_time() {
    let mut pool = pool(1, 5);
    pool.spec.lifecycle.idle_timeout = Some(Span("60s".into()));
    assert_eq!(decided(&pool, "iii", 69).drain.len(), 0);
    assert_eq!(decided(&pool, "iii", 70).drain.len(), 2, "the minimum stays");
    pool.spec.replicas = Some(3);
    assert_eq!(decided(&pool, "iii", 70).drain.len(), 0, "they would be created again at once");
}

#[test]
fn a_machine_that_is_not_gone_takes_its_place() {
    let pool = pool(3, 3);
    assert_eq!(decided(&pool, "eee", 1).create, 0, "their ends may take long, and more would follow");
    assert_eq!(decided(&pool, "iee", 1).create, 0);
    assert_eq!(decided(&pool, "iie", 1).create, 0);
    assert_eq!(decided(&pool, "iif", 1).create, 1, "a failed one is kept beside");
    let mut pool = pool;
    pool.spec.scaling.spares.stopped = 2;
    let hanging = decided(&pool, "eee", 1);
    assert_eq!(
        (hanging.create, hanging.create_standby, hanging.start.len()),
        (0, 0, 0),
        "nor do spares come in their place"
    );
    assert_eq!(decided(&pool, "eeew", 1).start.len(), 0);
    let why = hanging.status.conditions.iter().find(|condition| condition.r#type == "Scaling").unwrap();
    assert_eq!(why.reason, "WaitingForCleanup");
}

#[test]
fn a_deleted_pool_drains_its_claims_and_goes_last() {
    let mut pool = pool(2, 5);
    pool.deleting = Some(at(5).wall);
    let decision = decided(&pool, "iwf", 10);
    assert_eq!((names(&decision.drain), names(&decision.delete)), (vec!["i0"], vec!["f2", "w1"]));
    assert_eq!((decision.create, decision.keep), (0, crate::cluster::Keep::AsIs));
    assert_eq!(decided(&pool, "", 10).keep, crate::cluster::Keep::Remove);
}

#[test]
fn a_drained_machine_that_stays_busy_ends_after_the_job_timeout() {
    let mut pool = pool(0, 5);
    pool.spec.lifecycle.job_timeout = Some(Span("30m".into()));
    assert!(decided(&pool, "d", 1_809).delete.is_empty());
    assert_eq!(names(&decided(&pool, "d", 1_810).delete), ["d0"]);
}

#[test]
fn claims_of_a_pool_with_a_long_name_have_names_and_labels_that_are_valid_and_tell_pools_apart() {
    assert_eq!((label("linux").as_str(), claim_name("linux", "bcdfg").as_str()), ("linux", "linux-bcdfg"));
    let long = |end: char| format!("{}{end}", "runners.of-a-team.".repeat(8));
    let (one, two) = (long('a'), long('b'));
    for (one, two) in [(label(&one), label(&two)), (claim_name(&one, "bcdfg"), claim_name(&two, "bcdfg"))] {
        assert!(one.len() <= 63 && one != two, "{one} {two}");
        assert!(one.ends_with(|end: char| end.is_ascii_alphanumeric()) && !one.contains(".-"), "{one}");
    }
    assert_eq!(crate::blueprint::host_name(&claim_name(&one, "bcdfg")).len(), claim_name(&one, "bcdfg").len());
}

/// Autoscalers count the claims that the selector finds.
#[test]
fn the_selector_of_the_scale_finds_the_claims_also_of_a_long_name() {
    for name in ["pool".to_owned(), "a".repeat(63), "a".repeat(64), "long.".repeat(40) + "name"] {
        let pool = Pool { name: Name::new("ci", &name), ..pool(1, 3) };
        let selector = decided(&pool, "", 0).status.selector.unwrap();
        assert_eq!(selector, format!("hyperfleet.io/pool={}", label(&name)));
        assert!(selector.len() <= "hyperfleet.io/pool=".len() + 63, "{selector}");
    }
}
