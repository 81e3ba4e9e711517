//! How often `status --watch` looks.

use super::Look;
use std::time::Duration;

/// How often the report of the operator is read.
const INTERVAL: Duration = Duration::from_secs(2);
/// How often the cluster is evaluated: every kind is listed.
const EVALUATION: Duration = Duration::from_secs(30);

pub(super) fn pause_after(look: &Look) -> Duration {
    if look.is_evaluated { EVALUATION } else { INTERVAL }
}

#[cfg(test)]
mod tests {
    use super::{Look, pause_after};
    use autopilot::Report;

    #[test]
    fn a_cluster_is_not_evaluated_every_other_second() {
        let look = |is_evaluated| Look { report: Report::default(), made_by: String::new(), is_evaluated };
        assert_eq!((pause_after(&look(true)).as_secs(), pause_after(&look(false)).as_secs()), (30, 2));
    }
}
