//! A plan as Markdown, for a comment on a pull request.

use super::text::{about, by_cause, of_item, sign};
use super::{Style, is_record, remarks};
use autopilot::plan::{Item, Plan};

/// GitHub takes comments of at most 65,536 characters.
const LARGEST: usize = 60_000;

/// A summary, a table of all objects, and the differences folded away, as far as they fit into a comment.
pub(super) fn print(plan: &Plan, style: Style) -> String {
    let full = style.full;
    let mut text =
        format!("### {}\n", plan.to_string().trim_end_matches('.').replacen("Plan: ", "Virtpilot plan: ", 1));
    let (causes, items) = by_cause(plan, style);
    for (cause, held) in &causes {
        text.push_str(&format!("\n**{}** {}\n", escaped(cause), escaped(held)));
    }
    let shown: Vec<&Item> = items.into_iter().filter(|item| full || !is_record(item)).collect();
    if !shown.is_empty() {
        text.push_str("\n| | object | operation | what it waits for, what it disrupts |\n|---|---|---|---|\n");
    }
    let mut rows = shown.iter().map(|item| row(item)).peekable();
    while let Some(row) = rows.next_if(|row| full || text.len() + row.len() < LARGEST / 2) {
        text.push_str(&row);
    }
    let rows_left_out = rows.count();
    let mut remarks = remarks(plan, style);
    if rows_left_out > 0 {
        remarks.push(format!("{rows_left_out} more objects are left out of the table."));
    }
    let mut left_out = 0;
    for item in shown.iter().filter(|item| !item.diff.is_empty()) {
        let section = section(item, full);
        if !full && text.len() + section.len() > LARGEST {
            left_out += 1;
        } else {
            text.push_str(&section);
        }
    }
    if left_out > 0 {
        remarks.push(format!(
            "The plan is long, so the differences of {left_out} objects are left out: `virtpilot plan --full` shows them."
        ));
    }
    remarks.iter().for_each(|remark| text.push_str(&format!("\n{}\n", escaped(remark))));
    text
}

fn row(item: &Item) -> String {
    let mut notes = Vec::new();
    if let Some(disruption) = item.disruption_with_cost() {
        notes.push(escaped(&disruption));
    }
    match (&item.approval, item.needs_approval) {
        (Some(digest), true) => notes.push(format!("needs approval: `virtpilot approve {digest}`")),
        (None, true) => {
            notes.push("needs approval: start the operator first, which asks for it with a digest".to_owned());
        }
        (_, false) => notes.push(escaped(&item.why)),
    }
    notes.retain(|note| !note.is_empty());
    format!("| `{}` | {} | {} | {} |\n", sign(item), escaped(&item.name()), escaped(&about(item)), notes.join("<br>"))
}

/// One difference, folded away.
fn section(item: &Item, full: bool) -> String {
    let mut lines = String::new();
    for line in of_item(item, full) {
        // A sign at the very beginning gives the line its colour.
        let line = line.strip_prefix("    ").unwrap_or(&line);
        let line = line.strip_prefix("~ ").map_or_else(|| line.to_owned(), |rest| format!("! {rest}"));
        let line = match line.strip_prefix("    ") {
            Some(rest) if rest.starts_with(['+', '-']) => rest.to_owned(),
            _ => line,
        };
        lines.push_str(&format!("{line}\n"));
    }
    // A fence that is longer than any in the text.
    let fence = "`".repeat(longest_run(&lines, '`').max(2) + 1);
    let name = item.name().replace('&', "&amp;").replace('<', "&lt;");
    format!("\n<details><summary><code>{name}</code></summary>\n\n{fence}diff\n{lines}{fence}\n\n</details>\n")
}

fn longest_run(text: &str, character: char) -> usize {
    text.split(|other| other != character).map(str::len).max().unwrap_or_default()
}

/// A text in which Markdown and HTML mean nothing.
fn escaped(text: &str) -> String {
    let mut escaped = String::new();
    for character in text.chars() {
        match character {
            '\n' | '\r' => escaped.push(' '),
            '&' => escaped.push_str("&amp;"),
            '<' => escaped.push_str("&lt;"),
            '\\' | '`' | '*' | '_' | '|' | '[' | ']' | '~' | '#' | '@' => {
                escaped.push('\\');
                escaped.push(character);
            }
            other if other.is_control() => escaped.push('\u{fffd}'),
            other => escaped.push(other),
        }
    }
    escaped
}

#[cfg(test)]
mod tests {
    use super::super::samples::{large, sample};
    use super::{Style, print};
    use expect_test::expect;

    #[test]
    fn a_plan_is_a_table_with_folded_differences() {
        expect![[r####"
            ### Virtpilot plan: 1 to create, 1 to change, 1 to adopt, 1 to delete; 1 needs approval (06b9fbb8); 1 waiting; 1 held; 1 failed

            | | object | operation | what it waits for, what it disrupts |
            |---|---|---|---|
            | `+` | MachineConfig 90-worker-swap-online | create, high impact, 06b9fbb8 | restarts 3 nodes of pool worker: worker-0, worker-1, worker-2<br>needs approval: `virtpilot approve sha256:06b9fbb81b48c03518074a963c1d92b9b2fa1e805a38df9e1ebc0ab4a428786c` |
            | `~` | MachineConfig 99-worker-psi | change, high impact, 460d540b | it restarts nodes and waits for the next maintenance window, which opens Sat 01:00 UTC |
            | `~` | Service openshift-cnv/virt-platform-autopilot-metrics | adopt, after a backup, low impact, fa6b8fda |  |
            | `-` | ConfigMap openshift-cnv/old-settings | delete, low impact, e610c20a |  |
            | `=` | ConfigMap openshift-cnv/held | held | mode is unmanaged: the object is left alone |
            | `!` | ConfigMap openshift-cnv/failed | failed, create | the API server refused it: data.color: Invalid value |

            <details><summary><code>MachineConfig 90-worker-swap-online</code></summary>

            ```diff
            + file /etc/openshift/kubelet.conf.d/90-swap.conf (0644, 9 lines)
            + unit swap-file.swap (enabled, 5 lines)
            ```

            </details>

            <details><summary><code>MachineConfig 99-worker-psi</code></summary>

            ```diff
            ! .spec.kernelArguments[0]: "psi=0" -> "psi=1"
            ```

            </details>

            <details><summary><code>Service openshift-cnv/virt-platform-autopilot-metrics</code></summary>

            ```diff
            ! .spec.selector.app: "handmade" -> "virt-platform-autopilot"
            ! .spec.note: "a long value that does not fit into the width of a termina...
            ! .data.text
            -old
            +new
                ...
            +more
            - .spec.gone: (redacted)
            ```

            </details>

            1 object gets only our label and annotations; --full lists it.

            Local diff instead of the API server's: you may not patch Service. Values that the server fills in are not shown.
        "####]].assert_eq(&print(&sample(), Style::default()));
    }

    #[test]
    fn a_plan_fits_into_a_comment() {
        let text = print(&large(2_000), Style::default());
        assert!(text.len() < 65_536, "{}", text.len());
        assert!(text.contains("objects are left out"), "{}", &text[text.len() - 300..]);
        let all = print(&large(2_000), Style { full: true, ..Style::default() });
        assert!(!all.contains("left out") && all.len() > text.len());
    }

    #[test]
    fn nothing_in_an_object_becomes_markup() {
        let mut plan = sample();
        plan.items.truncate(1);
        plan.items[0].why = "<b>x</b> | `y` **z**\n# title @team".into();
        plan.items[0].needs_approval = false;
        plan.items[0].approval = None;
        plan.items[0].diff[0].path = "````\n</details>".into();
        let text = print(&plan, Style::default());
        assert!(text.contains(r"&lt;b>x&lt;/b> \| \`y\` \*\*z\*\* \# title \@team"), "{text}");
        assert!(text.contains("`````diff\n"), "{text}");
        assert_eq!(text.matches("\n</details>").count(), 1, "{text}");
    }
}
