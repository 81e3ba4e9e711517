//! `status --watch`: shows the report again when it has changed, and goes on when a request fails.

use super::Look;
use crate::command::print;
use crate::failure;
use autopilot::Report;
use std::convert::Infallible;
use std::io::IsTerminal;
use std::time::Duration;

/// How often the report of the operator is read.
const INTERVAL: Duration = Duration::from_secs(2);
/// How often the cluster is evaluated: every kind is listed.
const EVALUATION: Duration = Duration::from_secs(30);
/// Moves the cursor to the top and clears the screen.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// Shows what `look` finds until the command is ended.
pub(super) fn run(
    first: &Look,
    text: String,
    show: impl Fn(&Look) -> anyhow::Result<String>,
    look: impl Fn() -> anyhow::Result<Look>,
) -> anyhow::Result<Infallible> {
    let is_terminal = std::io::stdout().is_terminal();
    let mut screen = Screen { report: first.report.clone(), text, error: String::new(), is_terminal };
    let mut pause = pause_after(first);
    loop {
        std::thread::sleep(pause);
        match look().and_then(|look| Ok((show(&look)?, look))) {
            Ok((text, look)) => {
                pause = pause_after(&look);
                if let Some(text) = screen.shows(look.report, text) {
                    print(&text)?;
                }
            }
            Err(error) => {
                if let Some(line) = screen.fails(failure::lines(&error).join("; ")) {
                    eprintln!("{line}");
                }
            }
        }
    }
}

fn pause_after(look: &Look) -> Duration {
    if look.is_evaluated { EVALUATION } else { INTERVAL }
}

/// What was shown last.
struct Screen {
    report: Report,
    text: String,
    /// The last failure, while it lasts.
    error: String,
    is_terminal: bool,
}

impl Screen {
    /// What to print. A terminal also shows how old the report is by now; in a file that would be a line of news every other second.
    fn shows(&mut self, report: Report, text: String) -> Option<String> {
        let has_failed = !std::mem::take(&mut self.error).is_empty();
        let is_news = has_failed || report != self.report || (self.is_terminal && text != self.text);
        (self.report, self.text) = (report, text);
        let clear = if self.is_terminal { CLEAR } else { "\n" };
        is_news.then(|| format!("{clear}{}", self.text))
    }

    /// The line to print, once for each failure.
    fn fails(&mut self, why: String) -> Option<String> {
        let is_new = self.error != why;
        self.error = why;
        is_new.then(|| format!("error: {}; what is shown may be out of date; trying again", self.error))
    }
}

#[cfg(test)]
mod tests {
    use super::{CLEAR, Look, Screen, pause_after};
    use autopilot::Report;

    fn screen(is_terminal: bool) -> Screen {
        Screen { report: Report::default(), text: "1s ago".into(), error: String::new(), is_terminal }
    }

    #[test]
    fn a_terminal_shows_the_age_and_a_file_only_changes() {
        let mut terminal = screen(true);
        assert_eq!(terminal.shows(Report::default(), "1s ago".into()), None);
        assert_eq!(terminal.shows(Report::default(), "3s ago".into()), Some(format!("{CLEAR}3s ago")));
        let mut file = screen(false);
        assert_eq!(file.shows(Report::default(), "3s ago".into()), None);
        let other = Report { warnings: vec!["w".into()], ..Report::default() };
        assert_eq!(file.shows(other, "0s ago".into()).as_deref(), Some("\n0s ago"));
    }

    #[test]
    fn a_failure_is_one_line_and_the_report_is_shown_again_after_it() {
        let mut file = screen(false);
        let line = file.fails("no answer".into()).unwrap();
        assert_eq!(line, "error: no answer; what is shown may be out of date; trying again");
        assert_eq!(file.fails("no answer".into()), None);
        assert!(file.fails("forbidden".into()).is_some());
        assert!(file.shows(Report::default(), "1s ago".into()).is_some());
        assert!(file.fails("forbidden".into()).is_some(), "it fails again");
    }

    #[test]
    fn a_cluster_is_not_evaluated_every_other_second() {
        let look = |is_evaluated| Look { report: Report::default(), made_by: String::new(), is_evaluated };
        assert_eq!((pause_after(&look(true)).as_secs(), pause_after(&look(false)).as_secs()), (30, 2));
    }
}
