//! Walks down an object and tells of every position whether it may be touched.

use super::Allowed;
use crate::fields::pattern::Progress;
use std::collections::BTreeMap;

/// A walk. Places that no rule tells apart are one position, and a step that was taken once is known, so a large object of few kinds of
/// fields costs little.
pub(crate) struct RuleWalk<'a> {
    allowed: &'a Allowed,
    positions: Vec<VisitedPosition>,
    /// Places by how far every pattern has come.
    numbers: BTreeMap<Vec<(usize, Progress)>, Position>,
}

/// A position, as far as rules go.
pub(crate) type Position = usize;

struct VisitedPosition {
    progress: Vec<(usize, Progress)>,
    verdict: Result<(), Option<&'static str>>,
    below: BTreeMap<String, Position>,
}

impl<'a> RuleWalk<'a> {
    /// The top of an object.
    pub(crate) const TOP: Position = 0;

    /// From the top.
    pub(crate) fn new(allowed: &'a Allowed) -> RuleWalk<'a> {
        let mut walk = RuleWalk { allowed, positions: Vec::new(), numbers: BTreeMap::new() };
        walk.visit(allowed.patterns.iter().map(|(pattern, _)| pattern.start()).enumerate().collect());
        walk
    }

    /// One step further down.
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

    /// Whether this very position may be touched; an error says why it is closed, where there is more to say than that it is not open.
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
        // What is closed stands first, so the first that fits decides.
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
