//! A plan as text for a person.

use super::{Style, is_record, remarks};
use crate::command::colour::{Colour, Palette};
use crate::command::wrap::{self, plain};
use autopilot::plan::{Item, ItemState, Operation, Plan, Source};
use change::{Difference, Edit, Impact, Shown};
use std::collections::BTreeMap;

/// The width where it fits.
const WIDTH: usize = 80;
/// So many lines of the difference of one object are shown.
const LINES: usize = 12;
/// Of a plan with more lines only the differences that need an approval are shown, after a summary.
const LONG: usize = 150;

/// As many objects that are held for the same reason are shown together.
const GROUPED: usize = 4;

/// More of their names are counted.
const NAMED: usize = 6;

/// How much of it is shown.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Detail {
    /// Everything.
    Full,
    /// The first lines of each difference.
    Usual,
    /// No differences but those that need an approval.
    Brief,
}

/// The plan, with the summary at the end; a long one also begins with it.
pub(super) fn print(plan: &Plan, style: Style) -> String {
    let (causes, items) = by_cause(plan, style);
    let all = |detail: Detail| -> Vec<String> {
        causes.iter().flat_map(cause_lines).chain(items.iter().flat_map(|item| lines(item, detail))).collect()
    };
    let mut shown = all(if style.full { Detail::Full } else { Detail::Usual });
    let is_long = !style.full && shown.len() > LONG;
    if is_long {
        shown = all(Detail::Brief);
        shown.insert(0, wrapped(&plan.to_string(), ""));
    }
    let mut text = coloured(&shown, style.palette);
    if !shown.is_empty() {
        text.push('\n');
    }
    if is_long {
        text.push_str(
            "The plan is long, so differences are left out: --full shows all, --asset NAME those of one asset.\n",
        );
    }
    for remark in remarks(plan, style) {
        text.push_str(&wrapped(&remark, ""));
    }
    text.push_str(&wrapped(&plan.to_string(), ""));
    text
}

/// The reasons that hold several objects, each with what it holds; and the other items.
pub(super) fn by_cause(plan: &Plan, style: Style) -> (Vec<(&str, String)>, Vec<&Item>) {
    let held = |item: &&Item| item.state == ItemState::Held && item.operation.is_none() && !style.full;
    let mut counts: BTreeMap<&str, Vec<&str>> = BTreeMap::new();
    for item in plan.items.iter().filter(held) {
        counts.entry(&item.why).or_default().push(&item.asset);
    }
    counts.retain(|_, assets| assets.len() >= GROUPED);
    let rest = plan.items.iter().filter(|item| !(held(item) && counts.contains_key(item.why.as_str()))).collect();
    let causes = counts.into_iter().map(|(cause, names)| {
        let named = match names.len().checked_sub(NAMED).filter(|more| *more > 1) {
            Some(more) => format!("{} and {more} more: --full lists them", names[..NAMED].join(", ")),
            None => names.join(", "),
        };
        (cause, format!("{} assets are held by this: {named}", names.len()))
    });
    (causes.collect(), rest)
}

fn cause_lines((cause, held): &(&str, String)) -> Vec<String> {
    let text = wrapped(&format!("! {cause}"), "") + &wrapped(&format!("= {held}"), "    ");
    text.lines().map(str::to_owned).collect()
}

/// One change that a person is asked to approve, as if it went ahead.
pub(in crate::command) fn change(item: &Item, style: Style) -> String {
    let item = Item { state: ItemState::Ready, why: String::new(), ..item.clone() };
    let shown = lines(&item, if style.full { Detail::Full } else { Detail::Usual });
    coloured(&shown, style.palette)
}

fn lines(item: &Item, detail: Detail) -> Vec<String> {
    if is_record(item) && detail != Detail::Full {
        return Vec::new();
    }
    let (name, about) = (plain(&format!("{} {}", sign(item), item.name())), about(item));
    let mut lines = match name.chars().count() + 2 + about.chars().count() <= WIDTH {
        true => vec![format!("{name}  {about}")],
        false => vec![name, format!("    {about}")],
    };
    let mut say = |text: &str| lines.extend(wrapped(text, "    ").lines().map(str::to_owned));
    if let Some(disruption) = item.disruption_with_cost() {
        say(&disruption);
    }
    match (&item.approval, item.state) {
        (Some(digest), ItemState::Waiting) => lines.push(format!("    needs approval: virtpilot approve {digest}")),
        (None, ItemState::Waiting) if item.needs_approval => {
            say("needs approval: start the operator first, which asks for it with a digest");
        }
        (_, ItemState::Ready) if item.why.is_empty() => {}
        (_, ItemState::Ready | ItemState::Waiting | ItemState::Held | ItemState::Failed) => say(&item.why),
    }
    if let Source::None { why: Some(why) } = &item.source {
        lines.extend(wrapped(&format!("no diff: {why}"), "    ").lines().map(str::to_owned));
    }
    let is_shown = match detail {
        Detail::Full | Detail::Usual => true,
        Detail::Brief => item.needs_approval,
    };
    if is_shown {
        lines.extend(of_item(item, detail == Detail::Full));
    }
    lines
}

/// The difference of one object; unless everything is asked for, only its first lines.
pub(super) fn of_item(item: &Item, full: bool) -> Vec<String> {
    let mut lines: Vec<String> = item.diff.iter().flat_map(|difference| of_difference(difference, full)).collect();
    // One line more is as short as saying that there is one.
    if let Some(more) = lines.len().checked_sub(LINES).filter(|more| *more > 1 && !full) {
        lines.truncate(LINES);
        lines.push(format!("    ... {more} more lines: --full"));
    }
    lines
}

pub(super) fn sign(item: &Item) -> char {
    match (item.state, item.operation) {
        (ItemState::Failed, _) => '!',
        (ItemState::Held, _) | (_, None) => '=',
        (_, Some(Operation::Create)) => '+',
        (_, Some(Operation::Delete)) => '-',
        (_, Some(_)) => '~',
    }
}

/// Operation, impact and digest.
pub(super) fn about(item: &Item) -> String {
    let state = match item.state {
        ItemState::Held => Some("held".to_owned()),
        ItemState::Failed => Some("failed".to_owned()),
        ItemState::Ready | ItemState::Waiting => None,
    };
    let operation = item.operation.map(|operation| match operation {
        Operation::Adopt => "adopt, after a backup".to_owned(),
        Operation::TakeOver => "take over from the predecessor".to_owned(),
        Operation::HandBack => "hand back, values stay".to_owned(),
        Operation::Pause => "pause: another writer keeps changing it".to_owned(),
        Operation::Record => "record: only our label and annotations".to_owned(),
        Operation::Create | Operation::Change | Operation::Delete => operation.to_string(),
    });
    let impact = item.impact.filter(|_| state.is_none()).map(|impact| match impact {
        Impact::None => "no impact".to_owned(),
        Impact::Low => "low impact".to_owned(),
        Impact::Medium => "medium impact".to_owned(),
        Impact::High => "high impact".to_owned(),
    });
    // Before the operator has asked, its digest would be void.
    let is_asked = !item.needs_approval || item.approval.is_some();
    let digest = item.digest.filter(|_| item.is_pending() && is_asked).map(|digest| digest.short());
    [state, operation, impact, digest].into_iter().flatten().collect::<Vec<_>>().join(", ")
}

fn of_difference(difference: &Difference, full: bool) -> Vec<String> {
    let sign = difference.edit.sign();
    let cut = |line: String| if full { line } else { wrap::cut(&line, WIDTH) };
    let inner = |line: &str| cut(format!("        {}", plain(line)));
    let head = format!("    {sign} {}", plain(&difference.to_string()));
    match &difference.edit {
        Edit::Lines { lines } => {
            let head = format!("    {sign} {}", plain(&difference.path));
            std::iter::once(head).chain(lines.iter().map(|line| inner(line))).collect()
        }
        Edit::Added { after: Shown::Text { lines, .. } } | Edit::Removed { before: Shown::Text { lines, .. } }
            if full =>
        {
            std::iter::once(head).chain(lines.iter().map(|line| inner(&format!("{sign}{line}")))).collect()
        }
        // A summary may end with a digest.
        Edit::Added { after: Shown::Summary(_) | Shown::Text { .. } }
        | Edit::Removed { before: Shown::Summary(_) | Shown::Text { .. } }
        | Edit::Changed { before: Shown::Summary(_), .. } => vec![head],
        _ => vec![cut(head)],
    }
}

/// The text in lines of at most the usual width, as far as its words allow.
pub(in crate::command) fn wrapped(text: &str, indent: &str) -> String {
    wrap::indented(&plain(text), indent, WIDTH)
}

/// Green for what is added, red for what is removed, yellow for what changes or does not happen.
fn coloured(lines: &[String], palette: Palette) -> String {
    let painted = lines.iter().map(|line| match line.trim_start().chars().next() {
        Some('+') => palette.paint(Colour::Green, line),
        Some('-') => palette.paint(Colour::Red, line),
        Some('~' | '!') => palette.paint(Colour::Yellow, line),
        _ => line.clone(),
    });
    painted.map(|line| format!("{line}\n")).collect()
}

#[cfg(test)]
mod tests;
