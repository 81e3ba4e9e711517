//! A status that somebody else has written: it cannot be read, or says what never happened.

use crate::Notice;
use crate::testing::bed::TestBed;
use crate::testing::pack::{OBJECTS, PROFILE};
use serde_json::{Value, json};
use std::time::Duration;

const HOUR: Duration = Duration::from_secs(3_600);

/// Somebody writes another status.
fn write_status(bed: &mut TestBed, status: &Value) {
    let key = bed.key(&format!("VirtPlatformConfig {PROFILE}"));
    bed.server.update_status("somebody", &key, |object| object["status"] = status.clone()).unwrap();
}

#[test]
fn a_status_that_cannot_be_read_is_written_again_and_the_spec_is_planned() {
    for wrong in [json!({"phase": "Wonderful"}), json!({"items": "none"}), json!({"observedGeneration": "7"}), json!(7)]
    {
        let mut bed = TestBed::new();
        bed.ask(json!({"action": "DryRun"}));
        write_status(&mut bed, &wrong);
        bed.run_for(HOUR);
        assert_eq!(bed.phase(), "ReviewRequired", "{wrong}");
        let is_told = |notice: &Notice| matches!(notice, Notice::Unreadable { name, .. } if name == PROFILE);
        assert!(bed.notices.iter().any(is_told), "{wrong}");
        // And so it is while the advisor runs, also if somebody asks for something else at once.
        bed.ask(json!({"options": {"advice": {"size": 9}}}));
        write_status(&mut bed, &wrong);
        bed.run_for(HOUR);
        assert_eq!(
            (bed.phase().as_str(), &bed.item("sizes")["desiredState"]["data"]["size"]),
            ("ReviewRequired", &json!("9"))
        );
        let sent = bed.sent.0;
        bed.run_for(HOUR);
        assert_eq!(bed.sent.0, sent, "it is not written for ever");
        assert_eq!(bed.sent.1, 0);
    }
}

#[test]
fn who_cannot_read_what_was_shown_takes_apply_alone_for_no_approval() {
    let mut bed = TestBed::new();
    // Nothing of this restarts nodes, so that Apply alone would be enough at first.
    let options = json!({"advice": {"nodes": false}});
    bed.ask(json!({"action": "Apply", "options": options}));
    write_status(&mut bed, &json!({"phase": "Wonderful"}));
    bed.run_for(HOUR);
    assert_eq!((bed.phase().as_str(), bed.sent.1), ("ReviewRequired", 0));
    bed.approve();
    bed.run_for(HOUR);
    assert_eq!(bed.phase(), "Completed");
}

/// What a status says that was made to look as if the plan had been approved, or applied, or were another one.
fn forged(bed: &TestBed) -> Vec<(&'static str, Value)> {
    let shown = bed.status();
    let digest = shown["planDigest"].clone();
    let items = shown["items"].as_array().unwrap();
    let with = |change: &dyn Fn(&mut Value)| {
        let mut status = shown.clone();
        change(&mut status);
        status
    };
    let approved: Vec<Value> =
        items.iter().map(|item| json!({"name": item["name"], "digest": item["digest"]})).collect();
    let each = |field: &'static str, value: Value| {
        move |status: &mut Value| {
            for item in status["items"].as_array_mut().unwrap() {
                item[field] = value.clone();
            }
        }
    };
    let injected = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "sizes", "namespace": "virt"}, "data": {"injected": "1"}});
    let elsewhere = json!({"apiVersion": "v1", "kind": "ConfigMap", "name": "elsewhere", "namespace": "virt"});
    vec![
        ("another content", with(&each("desiredState", injected))),
        ("another object", with(&each("targetRef", elsewhere))),
        ("a deletion", with(&each("operation", json!("Delete")))),
        ("everything is in progress", with(&each("state", json!("InProgress")))),
        ("everything has failed", with(&each("state", json!("Failed")))),
        ("everything was written", with(&each("appliedTime", json!("2026-01-01T00:00:00Z")))),
        (
            "it is approved",
            with(&|status| {
                status["approved"] = json!({"digest": digest, "generation": 1, "content": digest, "items": approved});
            }),
        ),
        (
            "it is being applied",
            with(&|status| {
                status["phase"] = json!("InProgress");
                status["approved"] = json!({"digest": digest, "generation": 2, "content": digest, "items": approved});
            }),
        ),
        (
            "it was applied",
            with(&|status| {
                status["applied"] =
                    json!({"digest": digest, "content": digest, "request": digest, "time": "2026-01-01T00:00:00Z"});
            }),
        ),
        ("another digest", with(&|status| status["planDigest"] = json!(format!("sha256:{}", "7".repeat(64))))),
        (
            "another item",
            with(&|status| {
                let mut more = status["items"][0].clone();
                more["name"] = json!("more");
                status["items"].as_array_mut().unwrap().push(more);
            }),
        ),
        ("nothing at all", json!({})),
    ]
}

// The Go operator applied what stood in the status, whoever had written it.
#[test]
fn a_forged_status_leads_to_no_write_that_the_spec_and_an_approval_do_not_allow() {
    let reviewed = || {
        let mut bed = TestBed::new();
        bed.ask(json!({"action": "DryRun"}));
        bed.run();
        bed
    };
    let cases = forged(&reviewed());
    assert_eq!(cases.len(), 12);
    for (case, status) in cases {
        for restarts in [false, true] {
            let mut bed = reviewed();
            let digest = bed.status()["planDigest"].clone();
            write_status(&mut bed, &status);
            if restarts {
                bed.restart();
            }
            bed.run_for(HOUR);
            assert_eq!(bed.sent.1, 0, "{case}: nothing is approved\n{}", bed.lines.concat());
            // Who then approves what was really shown gets exactly that, or is asked once more, where the forged status made it another plan.
            bed.ask(json!({"action": "Apply", "approvedPlan": digest}));
            bed.run_for(2 * HOUR);
            if bed.phase() != "Completed" {
                assert!(bed.sent.1 == 0 && restarts, "{case}\n{}", bed.lines.concat());
                bed.approve();
                bed.run_for(2 * HOUR);
            }
            assert_eq!(bed.phase(), "Completed", "{case}\n{}", bed.lines.concat());
            assert_eq!(bed.sent.1, 3, "{case}: each item once");
            assert_eq!(bed.value(OBJECTS[2], "/data"), json!({"size": "7"}), "{case}");
            assert!(bed.stored("ConfigMap virt/elsewhere").is_none(), "{case}");
        }
    }
}
