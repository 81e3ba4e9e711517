//! Walks down an object and decides for every position whether users may patch it.

use super::Allowed;
use crate::fields::pattern::Progress;
use std::collections::BTreeMap;

/// A walk through an object. Paths that no rule distinguishes share one position and steps are cached, so a large object with few
/// different fields is cheap.
pub(crate) struct RuleWalk<'a> {
    allowed: &'a Allowed,
    positions: Vec<VisitedPosition>,
    /// Positions by the progress of every pattern.
    numbers: BTreeMap<Vec<(usize, Progress)>, Position>,
}

/// The index of a visited position.
pub(crate) type Position = usize;

struct VisitedPosition {
    progress: Vec<(usize, Progress)>,
    verdict: Result<(), Option<&'static str>>,
    below: BTreeMap<String, Position>,
}

impl<'a> RuleWalk<'a> {
    /// The root of an object.
    pub(crate) const TOP: Position = 0;

    /// Starts at the root.
    pub(crate) fn new(allowed: &'a Allowed) -> RuleWalk<'a> {
        let mut walk = RuleWalk { allowed, positions: Vec::new(), numbers: BTreeMap::new() };
        walk.visit(allowed.patterns.iter().map(|(pattern, _)| pattern.start()).enumerate().collect());
        walk
    }

    /// Moves one step down.
    pub(crate) fn step(&mut self, position: Position, name: &str) -> Position {
        if let Some(known) = self.positions[position].below.get(name) {
            return *known;
        }
        let further = |(index, progress): &(usize, Progress)| {
            let next = self.allowed.patterns[*index].0.advance(progress, name);
            (!next.is_over()).then_some((*index, next))
        };
        let next = self.positions[position].progress.iter().filter_map(further).collect();
        let next = self.visit(next);
        self.positions[position].below.insert(name.to_owned(), next);
        next
    }

    /// Whether this position may be patched; the error is the reason why it is closed, or `None` if no open path matches.
    pub(crate) fn judge(&self, position: Position) -> Result<(), Option<&'static str>> {
        self.positions[position].verdict
    }

    fn visit(&mut self, progress: Vec<(usize, Progress)>) -> Position {
        if let Some(known) = self.numbers.get(&progress) {
            return *known;
        }
        let accepted = progress.iter().map(|(index, progress)| (&self.allowed.patterns[*index], progress));
        let mut accepted =
            accepted.filter(|((pattern, _), progress)| pattern.accepts(progress)).map(|((_, why), _)| why);
        // Closed patterns come first, so the first match decides.
        let verdict = match accepted.next() {
            Some(None) => Ok(()),
            Some(why) => Err(*why),
            None => Err(None),
        };
        self.numbers.insert(progress.clone(), self.positions.len());
        self.positions.push(VisitedPosition { progress, verdict, below: BTreeMap::new() });
        self.positions.len() - 1
    }
}
