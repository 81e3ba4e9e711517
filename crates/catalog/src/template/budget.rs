//! What one render may use: a pack is data, and data must not be able to stop the operator.

use std::cell::Cell;

/// How long a rendered document, or any one text in a template, may be. Kubernetes takes objects up to 1.5 MB.
pub const TEXT_BYTES: usize = 10 * 1024 * 1024;
/// How deep values and documents may nest.
pub const DEPTH: usize = 100;
/// How deep templates, blocks and parentheses may nest while they run. An ordinary stack of 2 MiB holds this.
pub const CALLS: usize = 100;
/// How many bytes all functions of one render may make, together. A large asset makes less than one of these 64 MiB.
const ALL_BYTES: usize = 64 * 1024 * 1024;
/// How many steps one render may take: a tenth of a second. A large asset takes some thousands.
const STEPS: usize = 500_000;

/// What is left for this render.
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
    /// Takes steps.
    pub fn step(&self, steps: usize) -> Result<(), String> {
        let left = self.steps.get().checked_sub(steps);
        self.steps.set(left.unwrap_or(0));
        left.map(|_| ()).ok_or_else(|| format!("it takes more than {STEPS} steps"))
    }

    /// Takes memory for a text of this length.
    pub fn text(&self, bytes: usize) -> Result<(), String> {
        if bytes > TEXT_BYTES {
            return Err(format!("it makes a text of more than {TEXT_BYTES} bytes"));
        }
        self.memory(bytes)
    }

    /// Takes memory for a list or map of this many items.
    pub fn items(&self, items: usize) -> Result<(), String> {
        self.memory(items.saturating_mul(64))
    }

    fn memory(&self, bytes: usize) -> Result<(), String> {
        let left = self.bytes.get().checked_sub(bytes);
        self.bytes.set(left.unwrap_or(0));
        left.map(|_| ()).ok_or_else(|| format!("it makes more than {ALL_BYTES} bytes of values"))
    }
}

/// Text that grows only as far as the budget allows.
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

    /// Appends.
    pub fn push(&mut self, more: &str) -> Result<(), String> {
        if self.text.len() + more.len() > TEXT_BYTES {
            return Err(format!("it makes a text of more than {TEXT_BYTES} bytes"));
        }
        self.budget.memory(more.len())?;
        self.text.push_str(more);
        Ok(())
    }

    /// What was written.
    pub fn finish(self) -> String {
        self.text
    }

    /// What it is paid from.
    pub fn budget(&self) -> &'a RenderBudget {
        self.budget
    }
}
