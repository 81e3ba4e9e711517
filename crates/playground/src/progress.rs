//! Progress of slow steps on standard error: one updated line in a terminal, occasional lines in a log.

use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Often enough to show progress, rarely enough for a log.
const LOG_EVERY: Duration = Duration::from_secs(10);
/// Faster than the eye can read is wasted.
const DRAW_EVERY: Duration = Duration::from_millis(80);

/// Where progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// One line that is redrawn.
    Terminal,
    /// Separate lines, for a log.
    Log,
    /// No output.
    Silent,
}

impl Progress {
    /// Terminal or log, depending on standard error.
    pub fn detect() -> Progress {
        if std::io::stderr().is_terminal() { Progress::Terminal } else { Progress::Log }
    }

    /// Starts a slow step.
    pub fn step(self, title: impl Into<String>) -> Step {
        let step = Step { progress: self, title: title.into(), started: Instant::now(), shown: None };
        step.show(&"", false);
        step
    }
}

/// A slow step; dropped without `done`, its last line stays.
#[derive(Debug)]
pub struct Step {
    progress: Progress,
    title: String,
    started: Instant,
    shown: Option<Instant>,
}

impl Step {
    /// Shows a message now.
    pub fn message(&mut self, detail: impl Display) {
        self.shown = Some(Instant::now());
        self.show(&detail, false);
    }

    /// Shows how far the step has come, at most at the interval of the output.
    pub fn update(&mut self, detail: impl Display) {
        let every = if self.progress == Progress::Terminal { DRAW_EVERY } else { LOG_EVERY };
        if self.shown.is_none_or(|shown| shown.elapsed() >= every) {
            self.message(detail);
        }
    }

    /// Shows that the step is done.
    pub fn done(self, detail: impl Display) {
        self.show(&detail, true);
    }

    fn show(&self, detail: &dyn Display, last: bool) {
        let seconds = self.started.elapsed().as_secs_f32();
        let mut line = format!("{} {}", if last { "✓" } else { "…" }, self.title);
        let detail = detail.to_string();
        if !detail.is_empty() {
            line.push_str(": ");
            line.push_str(&detail);
        }
        if seconds >= 0.1 {
            line.push_str(&format!(" ({seconds:.1} s)"));
        }
        let mut err = std::io::stderr().lock();
        let _ = match self.progress {
            Progress::Terminal => {
                let width = rustix::termios::tcgetwinsize(&err).map_or(80, |size| usize::from(size.ws_col).max(20));
                write!(err, "\r\x1b[2K{}{}", clip(&line, width), if last { "\n" } else { "" })
                    .and_then(|()| err.flush())
            }
            Progress::Log => writeln!(err, "{line}"),
            Progress::Silent => Ok(()),
        };
    }
}

/// Shortens a line to the terminal's width: a line that wraps cannot be redrawn.
fn clip(line: &str, width: usize) -> String {
    if line.chars().count() < width { line.to_owned() } else { line.chars().take(width - 2).chain(['…']).collect() }
}

#[cfg(test)]
mod tests {
    use super::clip;

    #[test]
    fn a_long_line_is_clipped_to_the_width_of_the_terminal() {
        assert_eq!(clip("short", 80), "short");
        assert_eq!(clip(&"é".repeat(300), 80).chars().count(), 79);
    }
}
