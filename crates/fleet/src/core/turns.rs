//! Whose clone is next: claims wait for a storage and a node, and go in the order in which they came, whichever node of the storage they wait for.

use crate::object::Name;
use std::collections::BTreeMap;

/// A storage, and a node on which it makes clones.
pub(super) type Place = (String, String);

/// Claims that wait for a clone to end.
#[derive(Debug, Default)]
pub(super) struct Turns {
    /// By place, in the order of their numbers.
    waiting: BTreeMap<Place, BTreeMap<u64, Name>>,
    /// The number of each claim that waits, and for which place.
    numbers: BTreeMap<Name, (u64, Place)>,
    /// Those whose turn it is.
    called: BTreeMap<Name, Place>,
    last: u64,
}

impl Turns {
    /// Whether it is the turn of a claim; otherwise it waits for it, in the place in the order that it has already.
    pub(super) fn take(&mut self, claim: &Name, place: &Place) -> bool {
        if self.called.remove(claim).is_some_and(|called| called == *place) {
            return true;
        }
        let number = match self.numbers.get(claim) {
            Some((_, before)) if before == place => return false,
            Some((number, before)) => {
                let (number, before) = (*number, before.clone());
                self.forget(number, &before);
                number
            }
            None => {
                self.last += 1;
                self.last
            }
        };
        self.numbers.insert(claim.clone(), (number, place.clone()));
        self.waiting.entry(place.clone()).or_default().insert(number, claim.clone());
        false
    }

    /// Those whose turn it is now; `free` says how many more clones a place can make beside so many of its storage and so many of its node. Whoever was
    /// called before and did not come has lost the turn.
    pub(super) fn next(&mut self, free: impl Fn(&Place, u32, u32) -> bool) -> Vec<Name> {
        self.called.clear();
        let (mut on_storage, mut on_node) = (BTreeMap::<String, u32>::new(), BTreeMap::<String, u32>::new());
        let mut next = Vec::new();
        loop {
            let count = |counts: &BTreeMap<String, u32>, of: &str| counts.get(of).copied().unwrap_or_default();
            let is_free = |place: &&Place| free(place, count(&on_storage, &place.0), count(&on_node, &place.1));
            let first = |place: &Place| self.waiting[place].keys().next().copied();
            let places = self.waiting.keys().filter(is_free);
            let Some((number, place)) = places.filter_map(|place| first(place).map(|number| (number, place))).min()
            else {
                return next;
            };
            let place = place.clone();
            *on_storage.entry(place.0.clone()).or_default() += 1;
            *on_node.entry(place.1.clone()).or_default() += 1;
            if let Some(claim) = self.forget(number, &place) {
                self.numbers.remove(&claim);
                self.called.insert(claim.clone(), place);
                next.push(claim);
            }
        }
    }

    fn forget(&mut self, number: u64, place: &Place) -> Option<Name> {
        let claims = self.waiting.get_mut(place)?;
        let claim = claims.remove(&number);
        if claims.is_empty() {
            self.waiting.remove(place);
        }
        claim
    }
}

#[cfg(test)]
mod tests {
    use super::Turns;
    use crate::object::Name;

    fn claim(name: &str) -> Name {
        Name::new("ci", name)
    }

    fn place(storage: &str, node: &str) -> (String, String) {
        (storage.to_owned(), node.to_owned())
    }

    fn names(called: &[Name]) -> String {
        called.iter().map(|claim| claim.name.to_string()).collect::<Vec<_>>().join(" ")
    }

    /// A storage with one clone at a time that two nodes share.
    #[test]
    fn claims_are_called_in_the_order_of_arrival_across_the_nodes_of_a_storage() {
        let mut turns = Turns::default();
        for (name, node) in [("z", "b"), ("y", "a"), ("a", "a"), ("x", "b"), ("z", "b")] {
            assert!(!turns.take(&claim(name), &place("ceph", node)));
        }
        let mut order = Vec::new();
        for _ in 0..4 {
            let next = turns.next(|_, on_storage, _| on_storage < 1);
            assert_eq!(next.len(), 1, "the storage makes one clone, whichever node asks");
            order.extend(next.clone());
            // Somebody else asks again before the one who was called does.
            turns.take(&claim("a"), &place("ceph", "a"));
            let node = if ["z", "x"].contains(&&*next[0].name) { "b" } else { "a" };
            assert!(next[0] == claim("a") || turns.take(&next[0], &place("ceph", node)));
        }
        assert_eq!(names(&order), "z y a x");
    }

    #[test]
    fn limits_of_storages_and_nodes_count_those_that_are_called() {
        let mut turns = Turns::default();
        for (name, storage, node) in
            [("1", "s", "a"), ("2", "s", "a"), ("3", "s", "b"), ("4", "s", "b"), ("5", "t", "a"), ("6", "t", "c")]
        {
            turns.take(&claim(name), &place(storage, node));
        }
        let limits = |_: &(String, String), on_storage: u32, on_node: u32| on_storage < 2 && on_node < 1;
        assert_eq!(names(&turns.next(limits)), "1 3 6");
        assert_eq!(names(&turns.next(limits)), "2 4", "5 waits for its node, and keeps nobody else");
        assert_eq!(names(&turns.next(|_, _, _| false)), "");
        assert_eq!(names(&turns.next(limits)), "5");
    }

    #[test]
    fn who_is_called_and_wants_another_place_waits_for_it() {
        let mut turns = Turns::default();
        turns.take(&claim("one"), &place("s", "a"));
        turns.take(&claim("two"), &place("s", "a"));
        turns.take(&claim("one"), &place("s", "b"));
        assert_eq!(names(&turns.next(|of, _, _| of.1 == "a")), "two");
        assert!(!turns.take(&claim("two"), &place("s", "b")));
        assert_eq!(names(&turns.next(|of, _, _| of.1 == "b")), "one two", "one has kept its place in the order");
        assert!(turns.take(&claim("one"), &place("s", "b")));
        assert!(turns.numbers.is_empty() && turns.waiting.is_empty());
    }
}
