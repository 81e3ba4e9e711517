//! Walks down an object and tells of every place whether it may be touched.

use super::Allowed;
use crate::fields::pattern::Progress;
use std::collections::BTreeMap;

/// A walk. Places that no rule tells apart are one place, and a step that was taken once is known, so a large object of few kinds of
/// fields costs little.
pub(crate) struct Walk<'a> {
    allowed: &'a Allowed,
    places: Vec<Known>,
    /// Places by how far every pattern has come.
    numbers: BTreeMap<Vec<(usize, Progress)>, Place>,
}

/// A place, as far as rules go.
pub(crate) type Place = usize;

struct Known {
    progress: Vec<(usize, Progress)>,
    verdict: Result<(), Option<&'static str>>,
    below: BTreeMap<String, Place>,
}

impl<'a> Walk<'a> {
    /// The top of an object.
    pub(crate) const TOP: Place = 0;

    /// From the top.
    pub(crate) fn new(allowed: &'a Allowed) -> Walk<'a> {
        let mut walk = Walk { allowed, places: Vec::new(), numbers: BTreeMap::new() };
        walk.know(allowed.patterns.iter().map(|(pattern, _)| pattern.start()).enumerate().collect());
        walk
    }

    /// One step further down.
    pub(crate) fn step(&mut self, place: Place, name: &str) -> Place {
        if let Some(known) = self.places[place].below.get(name) {
            return *known;
        }
        let further = |(index, progress): &(usize, Progress)| {
            let next = self.allowed.patterns[*index].0.advance(progress, name);
            (!next.is_over()).then_some((*index, next))
        };
        let next = self.places[place].progress.iter().filter_map(further).collect();
        let next = self.know(next);
        self.places[place].below.insert(name.to_owned(), next);
        next
    }

    /// Whether this very place may be touched; an error says why it is closed, where there is more to say than that it is not open.
    pub(crate) fn judge(&self, place: Place) -> Result<(), Option<&'static str>> {
        self.places[place].verdict
    }

    fn know(&mut self, progress: Vec<(usize, Progress)>) -> Place {
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
        self.numbers.insert(progress.clone(), self.places.len());
        self.places.push(Known { progress, verdict, below: BTreeMap::new() });
        self.places.len() - 1
    }
}
