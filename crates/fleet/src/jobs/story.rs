//! What happened to a job, for people: a bounded list, the first entries and the last ones.

use super::demand::Wait;
use super::job::{Source, State};
use jiff::Timestamp;
use serde::{Deserialize, Serialize};

/// How many entries are kept: the first ones say where a job came from, the last ones why it is where it is.
const FIRST: usize = 8;
const LAST: usize = 24;

/// One entry.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Note {
    /// When, on our clock.
    pub at: Timestamp,
    /// What.
    pub what: What,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all_fields = "camelCase")]
pub enum What {
    /// A source said so for the first time.
    Became {
        /// The state.
        state: State,
        /// Who said so.
        source: Source,
        /// The runner, once there is one.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        runner: Option<String>,
    },
    /// It waits, for another reason than before.
    Waits(Wait),
    /// A list of the jobs of its repository did not have it; it is looked up.
    NotListed,
    /// GitHub says that there is no such job.
    Absent,
    /// It was listed again.
    ListedAgain,
    /// A machine that was made while it waited has failed, so that another one is needed.
    MachineFailed(String),
    /// Its runner is that of a machine of ours.
    On {
        /// The claim.
        claim: String,
        /// Its pool.
        pool: String,
    },
    /// The machine that ran it is ended, because of this.
    MachineEnded(String),
}

/// The list.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Story {
    first: Vec<Note>,
    last: std::collections::VecDeque<Note>,
    left_out: usize,
}

impl Story {
    /// Adds an entry, unless the last one says the same. What is true once and for ever is noted once.
    pub fn add(&mut self, at: Timestamp, what: What) {
        let is_lasting = matches!(what, What::On { .. } | What::MachineEnded(_));
        if is_lasting && self.notes().any(|note| note.what == what) {
            return;
        }
        if let What::Waits(wait) = &what {
            let before =
                self.notes().filter_map(|note| if let What::Waits(wait) = &note.what { Some(wait) } else { None });
            if before.last().is_some_and(|before| before.is_like(wait)) {
                return;
            }
        } else if self.notes().last().is_some_and(|last| last.what == what) {
            return;
        }
        let note = Note { at, what };
        if self.first.len() < FIRST {
            return self.first.push(note);
        }
        self.last.push_back(note);
        if self.last.len() > LAST {
            self.last.pop_front();
            self.left_out += 1;
        }
    }

    /// All entries, the oldest first.
    pub fn notes(&self) -> impl Iterator<Item = &Note> {
        self.first.iter().chain(&self.last)
    }

    /// How many entries were left out after the first ones.
    pub fn left_out(&self) -> usize {
        self.left_out
    }

    /// After how many entries some are left out.
    pub fn beginning(&self) -> usize {
        self.first.len()
    }
}

#[cfg(test)]
mod tests {
    use super::{FIRST, LAST, Story, What};
    use crate::jobs::demand::Wait;
    use jiff::Timestamp;

    #[test]
    fn a_story_is_bounded_and_says_nothing_twice() {
        let mut story = Story::default();
        let at = Timestamp::UNIX_EPOCH;
        for _ in 0..3 {
            story.add(at, What::Absent);
            story.add(at, What::Waits(Wait::RateLimited { until: at }));
        }
        assert_eq!(story.notes().count(), 3, "the reason to wait did not change");
        for _ in 0..3 {
            story.add(at, What::On { claim: "ci/a".into(), pool: "ci/linux".into() });
            story.add(at, What::Absent);
        }
        assert_eq!(story.notes().count(), 5, "a machine stays the same");
        for number in 0..100 {
            story.add(at, What::MachineFailed(number.to_string()));
        }
        assert_eq!((story.notes().count(), story.left_out()), (FIRST + LAST, 105 - FIRST - LAST));
    }
}
