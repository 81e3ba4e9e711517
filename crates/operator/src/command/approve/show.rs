//! What `approve` says before and after its question.

use super::waiting::{Change, Next, Waiting};
use crate::command::colour::{Colour, Palette};
use crate::command::plan::{self, Style};
use autopilot::plan::{Item, Plan};
use change::{Maintenance, Window};
use jiff::Timestamp;
use runtime::Clock;

/// The changes with their differences, the nodes that restart, and the maintenance window.
pub(super) fn changes(changes: &[&Change], waiting: &Waiting, style: Style) -> String {
    let mut text = String::new();
    for change in changes {
        if change.is_deletions {
            text.push_str(&format!("One edit of the HyperConverged deletes {} objects:\n", change.objects.len()));
        }
        for object in &change.objects {
            match &object.item {
                Some(item) => text.push_str(&plan::change(item, style)),
                None => text.push_str(&format!("{}\n", object.word())),
            }
        }
        if let Some(note) = &change.note {
            text.push_str(&plan::wrapped(note, "    "));
        }
    }
    let items: Vec<Item> =
        changes.iter().flat_map(|change| &change.objects).filter_map(|object| object.item.clone()).collect();
    let restarts = items.iter().any(|item| item.restarts.is_some());
    for remark in plan::remarks(&Plan { items, in_sync: 0 }, style) {
        text.push_str(&plan::wrapped(&remark, ""));
    }
    let mut pools: Vec<&str> = changes.iter().filter_map(|change| change.pool.as_deref()).collect();
    pools.sort_unstable();
    for same in pools.chunk_by(|one, other| one == other).filter(|same| same.len() > 1) {
        text.push_str(&format!("The {} changes of pool {} are one rollout.\n", same.len(), same[0]));
    }
    if restarts {
        let annotation = waiting.annotations()[api::annotation::MAINTENANCE_WINDOW].as_str();
        text.push_str(&plan::wrapped(&window(annotation, Clock::start().now().wall), ""));
    }
    text
}

/// When nodes may restart.
fn window(annotation: Option<&str>, now: Timestamp) -> String {
    let (maintenance, _) = Maintenance::read(annotation);
    let text = annotation.map(str::trim).unwrap_or_default();
    match (maintenance.at(now), annotation) {
        (Window::Open, None) => "No maintenance window is set: nodes may restart at any time.".to_owned(),
        (Window::Open, Some(_)) => format!("The maintenance window {text:?} is open."),
        (Window::Closed { opens: Some(opens) }, _) => {
            format!("The maintenance window {text:?} opens {}.", maintenance.shown(opens))
        }
        (Window::Closed { opens: None }, _) => {
            format!("The maintenance window {text:?} cannot be read, so no node restarts until it is corrected.")
        }
    }
}

/// What `--pool` leaves out, because it restarts no node of any pool.
pub(super) fn left_out(changes: &[Change]) -> String {
    let alone = changes.iter().filter(|change| change.pool.is_none() && !change.is_deletions && change.note.is_none());
    let names: Vec<&str> = alone.flat_map(|change| &change.objects).map(|object| object.asset.as_str()).collect();
    match names.as_slice() {
        [] => String::new(),
        names => plan::wrapped(
            &format!("Not part of this, because no node restarts: {}; approve it by its name.", names.join(", ")),
            "",
        ),
    }
}

pub(super) fn question(new: &[&Change]) -> String {
    let digests: Vec<String> = new.iter().filter_map(|change| change.digest).map(|digest| digest.short()).collect();
    match digests.as_slice() {
        [digest] => format!("Approve {digest}?"),
        digests => format!("Approve {} changes ({})?", digests.len(), digests.join(", ")),
    }
}

pub(super) fn dry_run(approved: &[&Change], new: &[&Change]) -> String {
    let lines = approved.iter().map(|change| format!("{change} is already approved\n"));
    lines.chain(new.iter().map(|change| format!("would approve {change}\n"))).collect()
}

/// `when_made` says when a change is made that waits for nothing.
pub(super) fn approved(change: &Change, by: Option<&str>, next: &Next, when_made: &str, palette: Palette) -> String {
    let by = by.map(|by| format!(" by {by}")).unwrap_or_default();
    let approved = palette.paint(Colour::Green, "approved");
    format!(
        "{approved} {change}{by}; {}
",
        what_next(next, when_made)
    )
}

pub(super) fn already(change: &Change, waiting: &Waiting, next: &Next, when_made: &str) -> String {
    let record = change.digest.and_then(|digest| waiting.record(&digest));
    let by = record.map(|record| format!(" {}", record.author())).unwrap_or_default();
    format!("{change} is already approved{by}; {}\n", what_next(next, when_made))
}

fn what_next<'a>(next: &'a Next, when_made: &'a str) -> &'a str {
    match next {
        Next::AtOnce => when_made,
        Next::Waits(why) => why,
        Next::Moved => "it is made, or waits for another approval by now; see \"virtpilot status\"",
    }
}

#[cfg(test)]
mod tests {
    use super::{left_out, window};
    use crate::command::approve::waiting::{Change, Object};
    use expect_test::expect;
    use std::collections::BTreeSet;

    #[test]
    fn what_restarts_no_node_is_not_part_of_a_pool_and_that_is_said() {
        let change = |asset: &str, pool: Option<&str>| Change {
            digest: None,
            objects: vec![Object { asset: asset.to_owned(), names: BTreeSet::new(), key: None, item: None }],
            pool: pool.map(str::to_owned),
            is_deletions: false,
            note: None,
        };
        assert_eq!(left_out(&[change("psi", Some("worker"))]), "");
        let text = left_out(&[change("psi", Some("worker")), change("swap", None)]);
        assert_eq!(text, "Not part of this, because no node restarts: swap; approve it by its name.\n");
    }

    #[test]
    fn the_window_is_shown_with_its_next_opening() {
        let now = "2026-11-17T13:00:00Z".parse().unwrap();
        let shown = |annotation: Option<&str>| window(annotation, now);
        expect!["No maintenance window is set: nodes may restart at any time."].assert_eq(&shown(None));
        expect![[r#"The maintenance window "daily 12:00-14:00 UTC" is open."#]]
            .assert_eq(&shown(Some("daily 12:00-14:00 UTC")));
        expect![[
            r#"The maintenance window "Sat,Sun 01:00-05:00 Europe/Berlin" opens Sat 2026-11-21 01:00 Europe/Berlin."#
        ]]
        .assert_eq(&shown(Some("Sat,Sun 01:00-05:00 Europe/Berlin")));
        expect![[r#"The maintenance window "soon" cannot be read, so no node restarts until it is corrected."#]]
            .assert_eq(&shown(Some("soon")));
    }
}
