//! Runners on GitHub that this installation registered and that no claim has: marked when they are listed, removed when they are listed again
//! after a grace period.

use super::demand::Scope;
use super::runners::Seen;
use change::Moment;
use std::collections::BTreeMap;
use std::time::Duration;

/// Between the two lists.
pub const GRACE: Duration = Duration::from_secs(180);

/// The marks.
#[derive(Debug, Clone, Default)]
pub struct Marks(BTreeMap<(Scope, u64), (String, Moment)>);

impl Marks {
    /// Takes a complete list of the runners of a scope; the ids of those that may be removed. `is_orphan` says of a name whether it is one of
    /// this installation that no claim has.
    pub fn listed(
        &mut self,
        scope: &Scope,
        runners: &[Seen],
        asked: Moment,
        is_orphan: impl Fn(&str) -> bool,
    ) -> Vec<u64> {
        let mut found = Vec::new();
        let before = std::mem::take(&mut self.0);
        let (of_scope, others) = before.into_iter().partition(|((of, _), _)| of == scope);
        let of_scope: BTreeMap<(Scope, u64), (String, Moment)> = of_scope;
        self.0 = others;
        // One that is busy is removed by GitHub when its job has ended.
        for runner in runners.iter().filter(|runner| !runner.is_busy && is_orphan(&runner.name)) {
            let key = (scope.clone(), runner.id);
            let since = of_scope.get(&key).filter(|(name, _)| *name == runner.name).map_or(asked, |(_, since)| *since);
            if since.after(GRACE) <= asked {
                found.push(runner.id);
            }
            self.0.insert(key, (runner.name.clone(), since));
        }
        found
    }

    /// How many are marked.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether none is.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use super::{GRACE, Marks};
    use crate::jobs::demand::Scope;
    use crate::jobs::runners::Seen;
    use change::Moment;
    use std::time::Duration;

    #[test]
    fn a_runner_is_removed_only_if_two_lists_over_the_grace_period_show_it_without_a_claim() {
        let scope = Scope { owner: "acme".into(), repository: None };
        let other = Scope { owner: "other".into(), repository: None };
        let at = |second: u64| Moment::since_start(Duration::from_secs(second));
        let seen = |id: u64, name: &str, is_busy: bool| Seen { id, name: name.into(), is_online: false, is_busy };
        let ours = |name: &str| name.starts_with("vp-");
        let mut marks = Marks::default();
        let all = [seen(1, "vp-a", false), seen(2, "theirs", false), seen(3, "vp-b", true)];
        assert_eq!(marks.listed(&scope, &all, at(0), ours), [0; 0]);
        assert_eq!(marks.listed(&scope, &all, at(GRACE.as_secs() - 1), ours), [0; 0]);
        assert_eq!(marks.listed(&other, &[], at(GRACE.as_secs()), ours), [0; 0], "another scope says nothing about it");
        assert_eq!(marks.listed(&scope, &all, at(GRACE.as_secs()), ours), [1]);
        assert_eq!(marks.listed(&scope, &all, at(400), |name| name == "vp-b"), [0; 0], "it has a claim meanwhile");
        assert_eq!(marks.listed(&scope, &all, at(900), ours), [0; 0], "which begins anew");
        let renamed = [seen(1, "vp-c", false)];
        assert_eq!(marks.listed(&scope, &renamed, at(2_000), ours), [0; 0], "it is another one");
        marks.listed(&scope, &[], at(3_000), ours);
        assert!(marks.is_empty());
    }
}
