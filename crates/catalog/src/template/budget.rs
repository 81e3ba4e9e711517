//! The limits of one render: a pack is data, and data must not be able to stop the operator.

use std::cell::Cell;

/// The longest rendered document, and the longest text in a template. Kubernetes accepts objects up to 1.5 MB.
pub const TEXT_BYTES: usize = 10 * 1024 * 1024;
/// The deepest nesting of values and documents.
pub const DEPTH: usize = 100;
/// The deepest nesting of templates, blocks and parentheses. It fits into an ordinary stack of 2 MiB.
pub const CALLS: usize = 100;
/// The bytes that all functions of one render may produce together. A large asset produces less than 1 MiB.
const ALL_BYTES: usize = 64 * 1024 * 1024;
/// The steps of one render, which take about a tenth of a second. A large asset takes some thousands.
const STEPS: usize = 500_000;

/// The remaining budget of one render.
#[derive(Debug)]
pub struct RenderBudget {
    bytes: Cell<usize>,
    steps: Cell<usize>,
}

impl Default for RenderBudget {
    fn default() -> RenderBudget {
        RenderBudget { bytes: Cell::new(ALL_BYTES), steps: Cell::new(STEPS) }
    }
}

impl RenderBudget {
    /// Spends steps.
    pub fn step(&self, steps: usize) -> Result<(), String> {
        let left = self.steps.get().checked_sub(steps);
        self.steps.set(left.unwrap_or(0));
        left.map(|_| ()).ok_or_else(|| format!("it takes more than {STEPS} steps"))
    }

    /// Spends memory for a text of this length.
    pub fn text(&self, bytes: usize) -> Result<(), String> {
        if bytes > TEXT_BYTES {
            return Err(format!("it produces a text of more than {TEXT_BYTES} bytes"));
        }
        self.memory(bytes)
    }

    /// Spends memory for a list or map with this many items.
    pub fn items(&self, items: usize) -> Result<(), String> {
        self.memory(items.saturating_mul(64))
    }

    fn memory(&self, bytes: usize) -> Result<(), String> {
        let left = self.bytes.get().checked_sub(bytes);
        self.bytes.set(left.unwrap_or(0));
        left.map(|_| ()).ok_or_else(|| format!("it produces more than {ALL_BYTES} bytes of values"))
    }
}

/// Text that grows only within the budget.
#[derive(Debug)]
pub struct Text<'a> {
    text: String,
    budget: &'a RenderBudget,
}

impl<'a> Text<'a> {
    /// An empty text.
    pub fn new(budget: &'a RenderBudget) -> Text<'a> {
        Text { text: String::new(), budget }
    }

    /// Appends text.
    pub fn push(&mut self, more: &str) -> Result<(), String> {
        if self.text.len() + more.len() > TEXT_BYTES {
            return Err(format!("it produces a text of more than {TEXT_BYTES} bytes"));
        }
        self.budget.memory(more.len())?;
        self.text.push_str(more);
        Ok(())
    }

    /// The whole text.
    pub fn finish(self) -> String {
        self.text
    }

    /// The budget that it spends.
    pub fn budget(&self) -> &'a RenderBudget {
        self.budget
    }
}

#[cfg(test)]
mod tests {
    use super::{RenderBudget, TEXT_BYTES, Text};

    #[test]
    fn a_text_may_be_as_long_as_its_limit() {
        let (longest, longer) = ("x".repeat(TEXT_BYTES), "x".repeat(TEXT_BYTES + 1));
        let budget = RenderBudget::default();
        assert!(budget.text(longest.len()).is_ok() && budget.text(longer.len()).is_err());
        let mut text = Text::new(&budget);
        assert!(text.push(&longest[1..]).is_ok() && text.push("yz").is_err());
        assert!(text.push("y").is_ok() && text.push("z").is_err());
        assert_eq!(text.finish().len(), TEXT_BYTES);
    }
}
