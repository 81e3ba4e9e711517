//! How many requests to GitHub may be made. The client enforces the limit; here polls leave enough for what jobs wait for.

use jiff::Timestamp;
use std::time::Duration;

/// The length of the window of GitHub's limit.
const WINDOW: Duration = Duration::from_secs(3600);

/// What a request is for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Purpose {
    /// A runner is registered or removed: a job or a machine waits for it.
    Runner,
    /// Jobs or runners are listed or looked up.
    Poll,
}

/// What is left for one owner.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Allowance {
    /// What answers said last; nothing before the first one.
    window: Option<Window>,
    paused: Option<Timestamp>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Window {
    limit: u32,
    remaining: u32,
    /// When it is the limit again.
    reset: Timestamp,
    /// The end of the window before, if no answer has said anything about this one.
    guessed_after: Option<Timestamp>,
}

impl Allowance {
    /// Takes what an answer says.
    pub fn set(&mut self, limit: u32, remaining: u32, reset: Timestamp) {
        let said = Window { limit, remaining, reset, guessed_after: None };
        // Answers may come in another order than they were made: within a window, less is newer.
        self.window = Some(match self.window {
            Some(Window { guessed_after: Some(before), .. }) if reset > before => said,
            Some(known) if known.guessed_after.is_some() || known.reset > reset => known,
            Some(known) if known.reset == reset => Window { remaining: remaining.min(known.remaining), ..said },
            _ => said,
        });
    }

    /// Nothing is asked before that moment.
    pub fn pause(&mut self, until: Timestamp) {
        self.paused = self.paused.max(Some(until));
    }

    /// Whether the limit is known.
    pub fn is_known(&self) -> bool {
        self.window.is_some()
    }

    /// What is left of the limit, and the limit, if they are known.
    pub fn left(&self) -> Option<(u32, u32)> {
        self.window.map(|window| (window.remaining, window.limit))
    }

    /// Whether requests may be made now, and otherwise when to ask again. What is admitted is spent.
    pub fn admit(&mut self, purpose: Purpose, cost: u32, now: Timestamp) -> Result<(), Timestamp> {
        self.check(purpose, cost, now)?;
        if let Some(window) = &mut self.window {
            window.remaining = window.remaining.saturating_sub(cost);
        }
        Ok(())
    }

    /// Whether requests may be made now.
    pub fn check(&mut self, purpose: Purpose, cost: u32, now: Timestamp) -> Result<(), Timestamp> {
        if let Some(until) = self.paused.filter(|until| *until > now) {
            return Err(until);
        }
        let Some(Window { limit, remaining, reset, .. }) = self.window else { return Err(now) };
        if reset <= now {
            // The next answer says what is left. Until then, half of the limit surely is there.
            let next = change::now::later(now, WINDOW);
            self.window = Some(Window { limit, remaining: limit / 2, reset: next, guessed_after: Some(reset) });
            return self.check(purpose, cost, now);
        }
        let kept = match purpose {
            Purpose::Runner => 0,
            Purpose::Poll => kept(limit, reset, now),
        };
        if remaining >= kept.saturating_add(cost) { Ok(()) } else { Err(reset) }
    }
}

/// What polls leave: a fifth for runners, and of the rest as much as belongs to the time that is left, less a quarter.
fn kept(limit: u32, reset: Timestamp, now: Timestamp) -> u32 {
    let left = u64::try_from(reset.duration_since(now).as_secs()).unwrap_or_default().min(WINDOW.as_secs());
    let (reserve, limit) = (u64::from(limit) / 5, u64::from(limit));
    let paced = (limit - reserve) * left / WINDOW.as_secs() * 3 / 4;
    u32::try_from(reserve + paced).unwrap_or(u32::MAX)
}

#[cfg(test)]
mod tests {
    use super::{Allowance, Purpose};
    use jiff::Timestamp;

    fn at(second: i64) -> Timestamp {
        Timestamp::from_second(1_800_000_000 + second).unwrap()
    }

    #[test]
    fn polls_are_spread_over_the_window_and_leave_enough_for_runners() {
        let mut allowance = Allowance::default();
        assert!(allowance.admit(Purpose::Runner, 1, at(0)).is_err(), "nothing is known yet");
        allowance.set(1_000, 1_000, at(3_600));
        let mut polls = Vec::new();
        for second in 0..3_600 {
            let before = polls.len();
            while allowance.admit(Purpose::Poll, 1, at(second)).is_ok() {
                polls.push(second);
            }
            assert!(second == 0 || polls.len() - before <= 2, "{second}");
        }
        assert!((750..=800).contains(&polls.len()), "{}", polls.len());
        let runners = (0..1_000).filter(|_| allowance.admit(Purpose::Runner, 1, at(3_599)).is_ok()).count();
        assert_eq!(runners + polls.len(), 1_000);
        assert_eq!(allowance.admit(Purpose::Runner, 1, at(3_599)), Err(at(3_600)));
        assert!(allowance.admit(Purpose::Runner, 1, at(3_600)).is_ok(), "the next window has begun");
    }

    #[test]
    fn late_answers_and_pauses_allow_no_more() {
        let mut allowance = Allowance::default();
        allowance.set(100, 3, at(100));
        allowance.set(100, 7, at(100));
        assert_eq!((0..9).filter(|_| allowance.admit(Purpose::Runner, 1, at(0)).is_ok()).count(), 3);
        allowance.set(100, 100, at(3_700));
        allowance.set(100, 90, at(100));
        allowance.pause(at(50));
        assert_eq!(allowance.check(Purpose::Runner, 1, at(49)), Err(at(50)));
        assert_eq!(allowance.check(Purpose::Runner, 100, at(50)), Ok(()));
    }

    #[test]
    fn the_first_answer_of_a_window_replaces_what_was_guessed() {
        let mut allowance = Allowance::default();
        allowance.set(100, 0, at(100));
        assert_eq!(allowance.check(Purpose::Runner, 50, at(130)), Ok(()));
        assert!(allowance.check(Purpose::Runner, 51, at(130)).is_err());
        allowance.set(100, 0, at(100));
        assert_eq!(allowance.check(Purpose::Runner, 50, at(131)), Ok(()), "it is about the window before");
        allowance.set(100, 99, at(3_700));
        assert_eq!(allowance.check(Purpose::Runner, 99, at(131)), Ok(()));
    }
}
