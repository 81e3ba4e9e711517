//! Walks down an object and decides for every position whether users may patch it.

use super::Allowed;
use crate::fields::pattern::{Progress, Step};
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
    items: BTreeMap<Option<String>, Position>,
    reads_name: bool,
    reads_text: bool,
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

    /// Moves down to a key of a map, or along a step of a pointer.
    pub(crate) fn step(&mut self, position: Position, name: &str) -> Position {
        if let Some(known) = self.positions[position].below.get(name) {
            return *known;
        }
        let next = self.further(position, Step::Key(name));
        self.positions[position].below.insert(name.to_owned(), next);
        next
    }

    /// Moves down to an item of a list.
    pub(crate) fn item(&mut self, position: Position, name: Option<&str>) -> Position {
        let name = name.filter(|_| self.positions[position].reads_name).map(str::to_owned);
        if let Some(known) = self.positions[position].items.get(&name) {
            return *known;
        }
        let next = self.further(position, Step::Item(name.as_deref()));
        self.positions[position].items.insert(name, next);
        next
    }

    /// Whether this text may be put here or taken away.
    pub(crate) fn judge_text(&self, position: Position, text: &str) -> Result<(), Option<&'static str>> {
        let visited = &self.positions[position];
        if !visited.reads_text {
            return visited.verdict;
        }
        let closed = visited.progress.iter().find_map(|(index, progress)| {
            let (pattern, why) = &self.allowed.patterns[*index];
            pattern.accepts(&pattern.advance(progress, Step::Text(text))).then_some(*why)
        });
        closed.map_or(visited.verdict, Err)
    }

    /// Whether this position may be patched; the error is the reason why it is closed, or `None` if no open path matches.
    pub(crate) fn judge(&self, position: Position) -> Result<(), Option<&'static str>> {
        self.positions[position].verdict
    }

    fn further(&mut self, position: Position, step: Step<'_>) -> Position {
        let advance = |(index, progress): &(usize, Progress)| {
            let next = self.allowed.patterns[*index].0.advance(progress, step);
            (!next.is_over()).then_some((*index, next))
        };
        let next = self.positions[position].progress.iter().filter_map(advance).collect();
        self.visit(next)
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
        let patterns = || progress.iter().map(|(index, progress)| (&self.allowed.patterns[*index].0, progress));
        let reads_name = patterns().any(|(pattern, progress)| pattern.reads_name(progress));
        let reads_text = patterns().any(|(pattern, progress)| pattern.reads_text(progress));
        self.numbers.insert(progress.clone(), self.positions.len());
        let (below, items) = (BTreeMap::new(), BTreeMap::new());
        self.positions.push(VisitedPosition { progress, verdict, below, items, reads_name, reads_text });
        self.positions.len() - 1
    }
}
