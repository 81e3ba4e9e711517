//! `explain job`: the whole story of one job.

use super::{Format, Source};
use crate::command::{print, table, wrap};
use anyhow::bail;
use fleet::jobs::published::{Question, Tale, find, read, span, tale};
use jiff::Timestamp;
use serde_json::json;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// Jobs: their ids as `queue` shows them, or the addresses of jobs or runs on GitHub
    #[arg(value_name = "URL|ID", required = true)]
    jobs: Vec<String>,
    #[command(flatten)]
    source: Source,
    /// Output format
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let questions = arguments.jobs.iter().map(|text| question(text)).collect::<anyhow::Result<Vec<Question>>>()?;
    let found = arguments.source.read()?;
    if let Some(doubt) = &found.doubt {
        eprintln!("warning: {doubt}");
    }
    let (now, mut tales) = (Timestamp::now(), Vec::new());
    for (text, question) in arguments.jobs.iter().zip(&questions) {
        let jobs = find(&found.report, question);
        if jobs.is_empty() {
            bail!(
                "the fleet knows no job {text}: it knows jobs of repositories that a RunnerPool serves, until an hour after their end; \
                 \"virtpilot queue --all\" lists them"
            );
        }
        tales.extend(jobs.into_iter().map(|line| tale(line, &found.report, now)));
    }
    print(&match arguments.output.document(&json!(tales))? {
        Some(document) => document,
        None => tales.iter().map(|tale| shown(tale, table::terminal_width())).collect::<Vec<_>>().join("\n"),
    })
}

fn question(text: &str) -> anyhow::Result<Question> {
    match read(text) {
        Some(question) => Ok(question),
        None => bail!(
            "{text:?} is no job; write its id, as \"virtpilot queue\" shows it, or its address, such as \
             https://github.com/acme/web/actions/runs/5/job/77"
        ),
    }
}

fn shown(tale: &Tale, terminal: Option<usize>) -> String {
    let line = |start: &str, text: &str| wrap::hanging(start, &wrap::plain(text), terminal);
    let mut shown = line("", &tale.job) + &line("", &tale.state);
    if let Some(next) = &tale.next {
        shown.push_str(&line("Next: ", next));
    }
    shown.push('\n');
    for (name, value) in &tale.facts {
        shown.push_str(&line(&format!("  {name:<8} "), value));
    }
    shown.push('\n');
    for step in &tale.steps {
        let took = step.seconds.map(span).unwrap_or_default();
        shown.push_str(&line(&format!("  {:.0}  {took:<6}  ", step.at), &step.what));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::{question, shown};
    use crate::command::queue::text::tests::report;
    use expect_test::expect;
    use fleet::jobs::published::{find, tale};

    #[test]
    fn the_story_of_a_job_has_what_it_waits_for_and_the_next_command() {
        let report = report();
        let found = |text: &str| {
            let jobs = find(&report, &question(text).unwrap());
            assert_eq!(jobs.len(), 1, "{text}");
            shown(&tale(jobs[0], &report, "2026-11-18T12:00:14Z".parse().unwrap()), Some(100))
        };
        expect![[r#"
            acme/web #812 test (attempt 2)
            queued for 14s: machine ci/linux-7f2k has been booting for 12 s
            Next: virtpilot fleet explain linux-7f2k --namespace ci

              labels   linux, self-hosted, x64
              run      5 of acme/web
              pool     ci/linux: 1 busy, 0 idle, 1 starting, at most 10; 1 job waits for it
              created  2026-11-18T12:00:00Z on GitHub
              seen     2026-11-18T12:00:01Z by a webhook, 1s after its creation

              2026-11-18T12:00:01Z  13s     it is queued, as a webhook says
        "#]]
        .assert_eq(&found("https://github.com/acme/web/actions/runs/5/job/812"));
        expect![[r#"
            acme/api #77 build�[2J
            queued for 14s: no RunnerPool of its repository has the label gpu; correct runs-on of the job, or
            add the label to a pool
            Next: correct runs-on of the job, or add the label gpu to a pool: kubectl edit runnerpool linux
                  --namespace ci

              labels   gpu
              run      5 of acme/api
              created  2026-11-18T12:00:00Z on GitHub
              seen     2026-11-18T12:00:01Z by a webhook, 1s after its creation

              2026-11-18T12:00:01Z  13s     it is queued, as a webhook says
        "#]]
        .assert_eq(&found("77"));
        let why = question("acme/web").unwrap_err().to_string();
        assert!(why.starts_with("\"acme/web\" is no job; write its id"), "{why}");
    }
}
