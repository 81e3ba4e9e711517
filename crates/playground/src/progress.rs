//! Shows on standard error what takes time: one moving line in a terminal, a line now and then elsewhere.

use std::fmt::Display;
use std::io::{IsTerminal, Write};
use std::time::{Duration, Instant};

/// Often enough to see that something moves, seldom enough for a log.
const LOG_EVERY: Duration = Duration::from_secs(10);
/// As fast as an eye reads.
const DRAW_EVERY: Duration = Duration::from_millis(80);

/// Where progress is shown.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// One line that moves.
    Terminal,
    /// Lines, for a log.
    Log,
    /// Nowhere.
    Silent,
}

impl Progress {
    /// Terminal or log, by what standard error is.
    pub fn detect() -> Progress {
        if std::io::stderr().is_terminal() { Progress::Terminal } else { Progress::Log }
    }

    /// Begins something that takes time.
    pub fn step(self, title: impl Into<String>) -> Step {
        let step = Step { progress: self, title: title.into(), begun: Instant::now(), shown: None };
        step.show(&"", false);
        step
    }
}

/// Something that takes time; dropped without `done` it leaves its last line behind.
#[derive(Debug)]
pub struct Step {
    progress: Progress,
    title: String,
    begun: Instant,
    shown: Option<Instant>,
}

impl Step {
    /// Says something that must be seen now.
    pub fn say(&mut self, detail: impl Display) {
        self.shown = Some(Instant::now());
        self.show(&detail, false);
    }

    /// Says how far it is.
    pub fn update(&mut self, detail: impl Display) {
        let every = if self.progress == Progress::Terminal { DRAW_EVERY } else { LOG_EVERY };
        if self.shown.is_none_or(|shown| shown.elapsed() >= every) {
            self.say(detail);
        }
    }

    /// Says that it is done.
    pub fn done(self, detail: impl Display) {
        self.show(&detail, true);
    }

    fn show(&self, detail: &dyn Display, last: bool) {
        let seconds = self.begun.elapsed().as_secs_f32();
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

/// A line that wraps cannot be drawn over.
fn clip(line: &str, width: usize) -> String {
    if line.chars().count() < width { line.to_owned() } else { line.chars().take(width - 2).chain(['…']).collect() }
}

#[cfg(test)]
mod tests {
    use super::clip;

    #[test]
    fn a_long_line_is_clipped_to_what_can_be_drawn_over() {
        assert_eq!(clip("short", 80), "short");
        assert_eq!(clip(&"é".repeat(300), 80).chars().count(), 79);
    }
}
