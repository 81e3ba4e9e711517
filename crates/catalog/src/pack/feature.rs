//! What the pack's assets add up to for a reader.

/// How finished a feature is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Maturity {
    /// Generally available.
    Ga,
    /// Technology preview.
    Tp,
    /// Developer preview.
    Dp,
}

/// Some assets under one name that people know.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Feature {
    /// Its name.
    pub name: String,
    /// What it gives, in a sentence.
    pub description: String,
    /// How finished it is, where the pack says so.
    pub maturity: Option<Maturity>,
    /// Its assets by name.
    pub assets: Vec<String>,
    /// Its assets by group.
    pub groups: Vec<String>,
    /// What it needs beside it.
    pub requires: Vec<String>,
    /// What goes well with it.
    pub recommended: Vec<String>,
}

/// The engine itself, as a feature.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Framework {
    /// How finished it is.
    pub maturity: Option<Maturity>,
    /// How one switches it on.
    pub opt_in: Option<String>,
}
