//! What people see of the advisor, one story after the other, against a model of the API server.

mod advertising;
mod approvals;
mod crashes;
mod drift;
mod faults_of_the_predecessor;
mod former_names;
mod incomplete_plans;
mod interleavings;
mod lost_reports;
mod lost_watches;
mod overrides;
mod pools;
mod removals;
mod reports;
mod strange_statuses;
mod two_profiles;
mod versions;
mod windows;

use crate::testing::bed::TestBed;

#[test]
fn a_profile_is_planned_approved_and_applied() {
    let mut bed = TestBed::new();
    bed.complete();
    assert_eq!(bed.promises.checked, 3, "{}", bed.lines.concat());
    assert_eq!((bed.restarts_of("w0"), bed.restarts_of("m0")), (1, 0));
}
