//! `--watch`: shows something again when it has changed, and goes on when a request fails.

use super::print;
use crate::failure;
use std::convert::Infallible;
use std::io::IsTerminal;
use std::time::Duration;

/// Moves the cursor to the top and clears the screen.
const CLEAR: &str = "\x1b[H\x1b[2J";

/// What was found: what a change is judged by, how it is shown, and after which time to look again.
pub(super) struct View<N> {
    pub(super) news: N,
    pub(super) text: String,
    pub(super) pause: Duration,
}

/// Shows what `look` finds until the command is ended. The first view is on the screen already.
pub(super) fn run<N: PartialEq>(
    first: View<N>,
    look: impl Fn() -> anyhow::Result<View<N>>,
) -> anyhow::Result<Infallible> {
    let is_terminal = std::io::stdout().is_terminal();
    let mut pause = first.pause;
    let mut screen = Screen { news: first.news, text: first.text, error: String::new(), is_terminal };
    loop {
        std::thread::sleep(pause);
        match look() {
            Ok(view) => {
                pause = view.pause;
                if let Some(text) = screen.shows(view.news, view.text) {
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

/// What was shown last.
struct Screen<N> {
    news: N,
    text: String,
    /// The last failure, while it lasts.
    error: String,
    is_terminal: bool,
}

impl<N: PartialEq> Screen<N> {
    /// What to print. A terminal also shows how old everything is by now; in a file that would be a line of news every other second.
    fn shows(&mut self, news: N, text: String) -> Option<String> {
        let has_failed = !std::mem::take(&mut self.error).is_empty();
        let is_news = has_failed || news != self.news || (self.is_terminal && text != self.text);
        (self.news, self.text) = (news, text);
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
    use super::{CLEAR, Screen};

    fn screen(is_terminal: bool) -> Screen<u32> {
        Screen { news: 0, text: "1s ago".into(), error: String::new(), is_terminal }
    }

    #[test]
    fn a_terminal_shows_the_age_and_a_file_only_changes() {
        let mut terminal = screen(true);
        assert_eq!(terminal.shows(0, "1s ago".into()), None);
        assert_eq!(terminal.shows(0, "3s ago".into()), Some(format!("{CLEAR}3s ago")));
        let mut file = screen(false);
        assert_eq!(file.shows(0, "3s ago".into()), None);
        assert_eq!(file.shows(1, "0s ago".into()).as_deref(), Some("\n0s ago"));
    }

    #[test]
    fn a_failure_is_one_line_and_everything_is_shown_again_after_it() {
        let mut file = screen(false);
        let line = file.fails("no answer".into()).unwrap();
        assert_eq!(line, "error: no answer; what is shown may be out of date; trying again");
        assert_eq!(file.fails("no answer".into()), None);
        assert!(file.fails("forbidden".into()).is_some());
        assert!(file.shows(0, "1s ago".into()).is_some());
        assert!(file.fails("forbidden".into()).is_some(), "it fails again");
    }
}
