//! The states of objects that `status` shows.

use crate::status::{LineState, ObjectState, StatusLine};
use change::Key;
use std::collections::BTreeMap;

/// The state of each object.
pub(super) fn states(lines: Vec<StatusLine>) -> BTreeMap<Key, ObjectState> {
    let objects = lines.into_iter().filter_map(|line| match line.state {
        LineState::Object(state) => Some((line.key?, state)),
        LineState::NotWanted(_)
        | LineState::Unclear(_)
        | LineState::Governed { .. }
        | LineState::NotApplicable(_)
        | LineState::Error(_) => None,
    });
    objects.collect()
}
