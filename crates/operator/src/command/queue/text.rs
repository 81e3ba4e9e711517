//! The queue as a table.

use crate::command::{table, wrap};
use fleet::jobs::published::{Report, Row, span};

/// A label that every runner of one's own has.
const SELF_HOSTED: &str = "self-hosted";

pub(super) fn text(report: &Report, rows: &[Row], is_all: bool, terminal: Option<usize>) -> String {
    let table = match (rows.is_empty(), is_all) {
        (true, true) => "there are no jobs\n".to_owned(),
        (true, false) => {
            let running = report.total.running;
            let running = if running == 0 { String::new() } else { format!("; {running} run: --all shows them") };
            format!("no job waits{running}\n")
        }
        (false, true) => {
            let rows: Vec<[String; 5]> = rows.iter().map(of_all).collect();
            table::wrapped(["JOB", "LABELS", "STATE", "FOR", "WHY"], &rows, &[0, 1, 4], terminal)
        }
        (false, false) => {
            let rows: Vec<[String; 4]> = rows.iter().map(of_waiting).collect();
            table::wrapped(["JOB", "LABELS", "WAITS", "WHY"], &rows, &[0, 1, 3], terminal)
        }
    };
    format!("{table}{}", rest(report))
}

fn labels(row: &Row) -> String {
    let shown: Vec<&str> = row.labels.iter().map(String::as_str).filter(|label| *label != SELF_HOSTED).collect();
    wrap::plain(&shown.join(","))
}

fn of_waiting(row: &Row) -> [String; 4] {
    [wrap::plain(&row.job()), labels(row), span(row.seconds), wrap::plain(&row.why)]
}

fn of_all(row: &Row) -> [String; 5] {
    [wrap::plain(&row.job()), labels(row), row.state.to_owned(), span(row.seconds), wrap::plain(&row.why)]
}

/// What is not shown because there is too much of it.
fn rest(report: &Report) -> String {
    let waiting = report.jobs.iter().filter(|line| line.wait.is_some()).count();
    match report.total.waiting.saturating_sub(waiting) {
        0 => String::new(),
        more => format!("\n{more} further jobs wait; the fleet publishes those that wait longest\n"),
    }
}

#[cfg(test)]
pub(super) mod tests {
    use super::text;
    use expect_test::expect;
    use fleet::jobs::JobKey;
    use fleet::jobs::published::{Filter, Report, rows};
    use serde_json::{Value, json};

    /// A queue as the fleet publishes it.
    pub(in crate::command::queue) fn report() -> Report {
        let job = |id: u64, attempt: u32, repository: &str, name: &str, labels: &[&str], more: Value| {
            let key = JobKey::Job { id, attempt };
            let at = "2026-11-18T12:00:00Z";
            let mut line = json!({
                "key": key, "repository": repository, "run": 5, "name": name, "labels": labels, "state": "Queued",
                "since": at, "seen": "2026-11-18T12:00:01Z", "source": "Webhook", "created": at,
                "story": [{"at": "2026-11-18T12:00:01Z", "what": {"Became": {"state": "Queued", "source": "Webhook"}}}],
            });
            line.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            line
        };
        let booting = json!({"reason": "Booting", "claim": "ci/linux-7f2k", "since": "2026-11-18T12:00:02Z"});
        let jobs = [
            job(
                812,
                2,
                "acme/web",
                "test",
                &["linux", "self-hosted", "x64"],
                json!({"wait": booting, "pool": "ci/linux"}),
            ),
            job(
                77,
                1,
                "acme/api",
                "build\u{1b}[2J",
                &["gpu"],
                json!({"wait": {"reason": "NoPool", "missing": ["gpu"]}}),
            ),
            job(
                813,
                1,
                "acme/web",
                "lint",
                &["linux"],
                json!({"wait": {"reason": "Quota", "of": "acme/web", "allowed": 4}}),
            ),
            job(
                700,
                1,
                "acme/web",
                "deploy",
                &["linux"],
                json!({"state": "InProgress", "claim": "ci/linux-9", "pool": "ci/linux"}),
            ),
        ];
        serde_json::from_value(json!({
            "version": 1, "jobs": jobs, "total": {"waiting": 5, "running": 1, "ended": 0},
            "operator": {"pod": "fleet-0", "version": "0.2.0", "started": "2026-11-18T11:00:00Z"},
            "pools": [{
                "name": "ci/linux", "scope": "acme", "labels": ["gpu-a100", "linux", "self-hosted", "x64"], "max": 10,
                "waiting": 1, "starting": 1, "idle": 0, "busy": 1, "usualStartSeconds": 20,
            }],
        }))
        .unwrap()
    }

    fn shown(report: &Report, is_all: bool, terminal: Option<usize>) -> String {
        let filter = Filter { is_all, ..Filter::default() };
        let now = "2026-11-18T12:00:14Z".parse().unwrap();
        text(report, &rows(report, &filter, now, crate::command::queue::similar), is_all, terminal)
    }

    #[test]
    fn the_queue_is_a_table_that_says_why_each_job_waits() {
        expect![[r#"
            JOB                           LABELS     WAITS  WHY
            acme/web #812 test (2nd try)  linux,x64  14s    machine linux-7f2k is booting (12s of about 20s)
            acme/api #77 build�[2J        gpu        14s    no pool has label gpu; nearest: gpu-a100
            acme/web #813 lint            linux      14s    quota of acme/web is 4, all busy

            2 further jobs wait; the fleet publishes those that wait longest
        "#]]
        .assert_eq(&shown(&report(), false, None));
        expect![[r#"
            JOB                           LABELS     STATE        FOR  WHY
            acme/web #812 test (2nd try)  linux,x64  queued       14s  machine linux-7f2k is booting (12s of about 20s)
            acme/api #77 build�[2J        gpu        queued       14s  no pool has label gpu; nearest: gpu-a100
            acme/web #813 lint            linux      queued       14s  quota of acme/web is 4, all busy
            acme/web #700 deploy          linux      in progress  14s  runs on machine linux-9

            2 further jobs wait; the fleet publishes those that wait longest
        "#]]
        .assert_eq(&shown(&report(), true, None));
        expect![[r#"
            JOB                           LABELS     WAITS  WHY
            acme/web #812 test (2nd try)  linux,x64  14s    machine linux-7f2k is booting
                                                            (12s of about 20s)
            acme/api #77 build�[2J        gpu        14s    no pool has label gpu; nearest:
                                                            gpu-a100
            acme/web #813 lint            linux      14s    quota of acme/web is 4, all busy

            2 further jobs wait; the fleet publishes those that wait longest
        "#]]
        .assert_eq(&shown(&report(), false, Some(80)));
        let mut empty = Report { jobs: Vec::new(), ..report() };
        empty.total.waiting = 0;
        assert_eq!(shown(&empty, false, None), "no job waits; 1 run: --all shows them\n");
        empty.total.running = 0;
        assert_eq!(
            (shown(&empty, false, None).as_str(), shown(&empty, true, None).as_str()),
            ("no job waits\n", "there are no jobs\n")
        );
    }
}
