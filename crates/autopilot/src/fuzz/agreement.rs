//! `status`, `plan` and the running operator agree: what an observer shows of a cluster is what a core that starts there does next.

use crate::core::explain::gate_of;
use crate::evaluate::gates::GateRow;
use crate::fuzz::people;
use crate::fuzz::simulation::failure;
use crate::fuzz::states::states;
use crate::notice::{Notice, ObjectNotice};
use crate::plan::{Item, ItemState, Operation};
use crate::state_word::StateWord;
use crate::status::{LineState, ObjectState};
use crate::testing::bed::{HCO, TestBed};
use change::{Effect, Key, Reason};
use proptest::prelude::{Strategy, any, prop_assert, proptest};
use serde_json::Value;
use server_model::random::Random;
use std::collections::BTreeMap;

/// What a core does about an object.
#[derive(Debug, Clone, Copy, PartialEq)]
enum Next {
    Nothing,
    Creates,
    Changes,
    Deletes,
    HandsBack,
}

/// A cluster after some acts: the core has seen some of them, and then stops.
fn prepare(seed: u64, acts: usize, bed: &mut TestBed) {
    let random = &mut Random(seed);
    for _ in 0..random.below(6) {
        people::create(bed, random);
    }
    for _ in 0..acts {
        people::act(bed, random);
        if random.chance(40) {
            bed.run();
        }
    }
}

/// What a core that starts on this cluster does first about each object, and why it holds objects.
fn first_acts(bed: &TestBed) -> (BTreeMap<Key, Next>, Vec<(Key, Reason)>) {
    let mut core = bed.fork(bed.config.clone());
    core.run();
    let mut next = BTreeMap::new();
    let made = core.made.iter().filter(|made| made.write.key.name != api::STATE);
    for made in made.filter(|made| made.has_moved()) {
        let act = match (&made.write.effect, &made.before) {
            (Effect::Delete { .. }, _) => Next::Deletes,
            (Effect::HandBack { .. }, _) => Next::HandsBack,
            (_, None) => Next::Creates,
            (_, Some(_)) => Next::Changes,
        };
        next.entry(made.write.key.clone()).or_insert(act);
    }
    let held = core.notices.into_iter().filter_map(|notice| match notice {
        Notice::Object(key, ObjectNotice::Held(reason), _) => Some((key, reason)),
        _ => None,
    });
    (next, held.collect())
}

/// What decides about each object is the reason why it is held, and nothing decides about one that is not.
fn check_explanations(bed: &TestBed) {
    for explanation in bed.explain() {
        let rows = &explanation.gates;
        let deciding: Vec<&GateRow> = rows.iter().filter(|row| row.decides).collect();
        match &explanation.line.state {
            LineState::Object(ObjectState::Held(reason)) => {
                assert!(matches!(deciding[..], [row] if row.gate == gate_of(reason)), "{explanation:#?}");
            }
            LineState::Object(ObjectState::InSync | ObjectState::ToCreate | ObjectState::ToChange) => {
                assert!(deciding.is_empty(), "{explanation:#?}");
            }
            LineState::Object(_) => {}
            _ => assert_eq!(deciding.len(), 1, "{explanation:#?}"),
        }
        assert_eq!(explanation.word, StateWord::of(&explanation.line.state));
    }
}

fn compare(bed: &TestBed) {
    check_explanations(bed);
    let (acts, held) = first_acts(bed);
    let states = states(bed.observe());
    for key in acts.keys().chain(held.iter().map(|(key, _)| key)).chain(states.keys()) {
        let shown = match states.get(key) {
            Some(ObjectState::ToCreate) => Next::Creates,
            Some(ObjectState::ToChange) => Next::Changes,
            Some(ObjectState::ToDelete) => Next::Deletes,
            Some(ObjectState::ToHandBack) => Next::HandsBack,
            Some(ObjectState::InSync | ObjectState::Deleting | ObjectState::Gone) | None => Next::Nothing,
            // A refused override does not keep the last good state from being restored.
            Some(ObjectState::Held(reason)) => {
                // Only an operator can write what a question depends on.
                let is_question = |why: &Reason| matches!(why, Reason::NeedsApproval { .. });
                let is_unasked = is_question(reason) && reason.asked().is_none();
                let is_same = |why: &Reason| why.is_same(reason) || (is_unasked && is_question(why));
                let is_reported = held.iter().any(|(of, why)| of == key && is_same(why));
                assert!(is_reported, "{key} is not held for {reason:?}, but {held:?}");
                continue;
            }
            // Nobody says what is wanted.
            Some(ObjectState::Unknown) if bed.stored(HCO).is_none() => Next::Nothing,
            Some(ObjectState::Unknown) => panic!("{key} is unknown"),
        };
        let done = acts.get(key).copied().unwrap_or(Next::Nothing);
        assert_eq!(shown, done, "{key}");
        // After a write another reason may hold it.
        let is_held = held.iter().any(|(of, why)| of == key && !is_refusal(why));
        assert!(!is_held || done != Next::Nothing, "{key} is held: {held:?}");
    }
}

/// What a plan says is done at once, and whether that changes a value.
fn planned(bed: &TestBed) -> BTreeMap<Key, (Next, bool)> {
    let ready = bed.plan().items.into_iter().filter(|item| item.state == ItemState::Ready);
    let act = |item: Item| {
        let (next, changes) = match item.operation? {
            Operation::Create => (Next::Creates, true),
            Operation::Change => (Next::Changes, true),
            Operation::Adopt | Operation::TakeOver => (Next::Changes, !item.diff.is_empty()),
            Operation::Record | Operation::Pause => (Next::Changes, false),
            Operation::Delete => (Next::Deletes, true),
            Operation::HandBack => (Next::HandsBack, false),
        };
        Some((item.object?, (next, changes)))
    };
    ready.filter_map(act).collect()
}

/// What a core that starts does to each object, and whether that changes a value.
fn done(bed: &TestBed) -> BTreeMap<Key, (Next, bool)> {
    let mut core = bed.fork(bed.config.clone());
    core.run();
    let is_own = |key: &Key| key.name == api::STATE;
    let mut done = BTreeMap::new();
    for (key, next) in first_acts(bed).0.into_iter().filter(|(key, _)| !is_own(key)) {
        let values = |bed: &TestBed| bed.server.get(&key).map(|stored| values(&stored.object));
        done.insert(key.clone(), (next, values(bed) != values(&core)));
    }
    done
}

/// An object without what we write beside what is wanted.
fn values(object: &Value) -> Value {
    let mut object = object.clone();
    let metadata = object["metadata"].take();
    // A finalizer may keep what is deleted.
    object["metadata"]["deletionTimestamp"] = metadata["deletionTimestamp"].clone();
    for part in ["labels", "annotations"] {
        let pairs = metadata[part].as_object().into_iter().flatten();
        let others = pairs.filter(|(key, _)| !key.starts_with(api::annotation::PREFIX));
        object["metadata"][part] = Value::Object(others.map(|(key, value)| (key.clone(), value.clone())).collect());
    }
    object
}

/// Whether only the server knows it.
fn is_refusal(reason: &Reason) -> bool {
    matches!(reason, Reason::RefusedByServer { .. } | Reason::PatchRefused { .. })
}

proptest! {
    #![proptest_config(super::seeds())]

    #[test]
    fn status_shows_what_a_core_that_starts_does_next(seed in any::<u64>().no_shrink(), acts in super::acts()) {
        let failure = failure(|bed| {
            prepare(seed, acts, bed);
            compare(bed);
        });
        prop_assert!(failure.is_none(), "{}", failure.unwrap_or_default());
    }

    #[test]
    fn a_plan_says_exactly_what_a_core_that_starts_does(seed in any::<u64>().no_shrink(), acts in super::acts()) {
        let failure = failure(|bed| {
            prepare(seed, acts, bed);
            assert_eq!(planned(bed), done(bed), "left is the plan: {:#?}", bed.plan());
        });
        prop_assert!(failure.is_none(), "{}", failure.unwrap_or_default());
    }
}
