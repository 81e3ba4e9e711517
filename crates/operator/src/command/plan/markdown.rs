//! A plan as Markdown, for a comment on a pull request.

use autopilot::plan::Plan;

pub(super) fn print(plan: &Plan, _is_offline: bool, _full: bool) -> String {
    format!("{plan}\n")
}
