//! What a decision means for metrics.

use super::shown_state;
use crate::core::managed::tests::managed;
use crate::decision::Decision;
use crate::notice::State;
use crate::removal::Cause;
use change::Live;

#[test]
fn a_tombstone_is_present_until_its_object_is_gone() {
    let shown = |labelled: bool, removal: Option<Cause>| {
        let mut object = managed();
        object.observe(Live { labelled, ..Live::default() });
        object.removal = removal;
        shown_state(&object, &Decision::in_sync())
    };
    assert!(matches!(shown(true, Some(Cause::Tombstone)), Some(State::TombstonePresent)));
    assert!(shown(false, Some(Cause::Tombstone)).is_none());
    assert!(shown(true, Some(Cause::OptedOut)).is_none());
    assert!(matches!(shown(true, None), Some(State::InSync)));
}
