//! Plans as text.

use super::super::samples::{item, large, sample};
use super::{Palette, Style, print};
use autopilot::Plan;
use autopilot::plan::{ItemState, Operation};
use change::{Difference, Edit, Shown};
use expect_test::expect;

#[test]
fn a_plan_shows_what_happens_why_not_and_ends_with_a_summary() {
    expect![[r#"
        + MachineConfig 90-worker-swap-online  create, high impact, 06b9fbb8
            restarts 3 nodes of pool worker: worker-0, worker-1, worker-2
            needs approval: virtpilot approve sha256:06b9fbb81b48c03518074a963c1d92b9b2fa1e805a38df9e1ebc0ab4a428786c
            + file /etc/openshift/kubelet.conf.d/90-swap.conf (0644, 9 lines)
            + unit swap-file.swap (enabled, 5 lines)
        ~ MachineConfig 99-worker-psi  change, high impact, 460d540b
            it restarts nodes and waits for the next maintenance window, which opens Sat
            01:00 UTC
            ~ .spec.kernelArguments[0]: "psi=0" -> "psi=1"
        ~ Service openshift-cnv/virt-platform-autopilot-metrics
            adopt, after a backup, low impact, fa6b8fda
            ~ .spec.selector.app: "handmade" -> "virt-platform-autopilot"
            ~ .spec.note: "a long value that does not fit into the width of a termina...
            ~ .data.text
                -old
                +new
                ...
                +more
            - .spec.gone: (redacted)
        - ConfigMap openshift-cnv/old-settings  delete, low impact, e610c20a
        = ConfigMap openshift-cnv/held  held
            mode is unmanaged: the object is left alone
        ! ConfigMap openshift-cnv/failed  failed, create
            the API server refused it: data.color: Invalid value

        1 object gets only our label and annotations; --full lists it.
        Local diff instead of the API server's: you may not patch Service. Values that
        the server fills in are not shown.
        Plan: 1 to create, 1 to change, 1 to adopt, 1 to delete; 1 needs approval
        (06b9fbb8); 1 waiting; 1 held; 1 failed.
    "#]]
    .assert_eq(&print(&sample(), Style::default()));
}

#[test]
fn a_plan_without_anything_to_do_is_one_line() {
    let plan = Plan { items: Vec::new(), in_sync: 2 };
    assert_eq!(print(&plan, Style::default()), "Plan: nothing to do; 2 objects are in sync.\n");
}

#[test]
fn lines_fit_into_the_width_unless_everything_is_asked_for() {
    let usual = print(&sample(), Style::default());
    let long: Vec<&str> = usual.lines().filter(|line| line.chars().count() > 80).collect();
    assert!(long.iter().all(|line| line.contains("virtpilot approve")), "{long:?}");
    let full = print(&sample(), Style { full: true, ..Style::default() });
    assert!(full.contains("does not fit into the width of a terminal") && full.contains("recorded"), "{full}");
    assert!(!full.contains('\u{1b}'), "a terminal must not act on a value");
}

#[test]
fn only_on_request_there_is_colour() {
    assert!(!print(&sample(), Style::default()).contains('\u{1b}'));
    let coloured = print(&sample(), Style { palette: Palette::COLOURED, ..Style::default() });
    assert!(
        coloured.contains("\u{1b}[32m+ MachineConfig 90-worker-swap-online")
            && coloured.contains("\u{1b}[31m- ConfigMap")
    );
}

#[test]
fn a_long_plan_begins_with_its_summary_and_shows_only_differences_that_need_an_approval() {
    let text = print(&large(80), Style::default());
    let summary = "Plan: 80 to change; 1 needs approval";
    assert!(text.starts_with(summary), "{text}");
    assert!(text.trim_end().lines().last().unwrap().starts_with(summary));
    assert!(text.lines().count() < 120, "{}", text.lines().count());
    assert_eq!(text.matches(".data.key-0:").count(), 1);
    assert!(text.contains("... 8 more lines: --full") && text.contains("differences are left out"));
    assert_eq!(print(&large(80), Style { full: true, ..Style::default() }).matches(".data.key-0:").count(), 80);
}

#[test]
fn one_cause_that_holds_many_is_shown_once() {
    let held = |number: usize| {
        let mut item = item(&format!("a{number}"), "ConfigMap", "n", &format!("x{number}"), Operation::Create);
        (item.state, item.operation, item.why) = (ItemState::Held, None, "the annotation cannot be read".to_owned());
        item
    };
    let plan = Plan { items: (0..5).map(held).collect(), in_sync: 0 };
    expect![[r"
        ! the annotation cannot be read
            = 5 assets are held by this: a0, a1, a2, a3, a4

        Plan: nothing to do; 5 held.
    "]]
    .assert_eq(&print(&plan, Style::default()));
    assert_eq!(print(&plan, Style { full: true, ..Style::default() }).matches("cannot be read").count(), 5);
    let many = Plan { items: (0..90).map(held).collect(), in_sync: 0 };
    let text = print(&many, Style::default());
    assert!(text.lines().count() < 8 && text.contains("a5 and 84 more"), "{text}");
    let markdown = super::super::markdown::print(&many, Style::default());
    assert!(markdown.contains("**the annotation cannot be read** 90 assets are held"), "{markdown}");
}

#[test]
fn a_digest_that_nobody_asked_for_is_not_shown() {
    let mut plan = sample();
    plan.items[0].approval = None;
    let text = print(&plan, Style::default());
    assert!(text.contains("start the operator first") && !text.contains("06b9fbb8"), "{text}");
}

#[test]
fn the_text_of_a_new_file_is_shown_on_request() {
    let mut item = item("a", "MachineConfig", "", "x", Operation::Create);
    let after = Shown::Text { summary: "0755, 2 lines".into(), lines: vec!["#!/bin/sh".into(), "swapon".into()] };
    item.diff = vec![Difference { path: "file /x".into(), edit: Edit::Added { after } }];
    let plan = Plan { items: vec![item], in_sync: 0 };
    let usual = print(&plan, Style::default());
    assert!(usual.contains("+ file /x (0755, 2 lines)") && !usual.contains("swapon"), "{usual}");
    let full = print(&plan, Style { full: true, ..Style::default() });
    assert!(full.contains("        +#!/bin/sh\n        +swapon\n"), "{full}");
}
