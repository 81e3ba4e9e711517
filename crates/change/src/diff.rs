//! What a person is shown of a change: the fields that we would own, before and after it, as far as they may be shown.

mod ignition;
mod lines;
mod text;
mod walk;

use crate::content;
use crate::fields::entry::Entry;
use crate::fields::redact::{Place, REDACTED};
use crate::object::key::Kind;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use std::fmt;
use walk::Walk;

pub use text::text;

/// One difference between an object as it is and as it would be.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Difference {
    /// Where: the way to a field, such as `.spec.type`, or `file /etc/x` and `unit x.service` of a MachineConfig.
    pub path: String,
    /// What.
    #[serde(flatten)]
    pub edit: Edit,
}

/// What becomes of a field.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", tag = "edit")]
pub enum Edit {
    /// It is added.
    Added {
        /// What it will be.
        after: Shown,
    },
    /// It is removed.
    Removed {
        /// What it is.
        before: Shown,
    },
    /// It gets another value.
    Changed {
        /// What it is.
        before: Shown,
        /// What it will be.
        after: Shown,
    },
    /// Some lines of its text change.
    Lines {
        /// The lines, each after a `-` or a `+`; `...` for unchanged lines between them.
        lines: Vec<String>,
    },
}

/// A value, as far as it may be shown.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Shown {
    /// The value.
    Value(Value),
    /// What is to be known of a value that is too long to be shown.
    Summary(String),
    /// A text that is shown on request, and what is to be known of it otherwise.
    Text {
        /// What is to be known of it.
        summary: String,
        /// Its lines.
        lines: Vec<String>,
    },
    /// Nothing of it may be shown.
    Redacted,
    /// It is not known.
    Unknown,
}

/// The value in one line.
impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Shown::Value(value) => value.fmt(f),
            Shown::Summary(summary) | Shown::Text { summary, .. } => write!(f, "({summary})"),
            Shown::Redacted => f.write_str(REDACTED),
            Shown::Unknown => f.write_str("its value"),
        }
    }
}

/// The difference in one line; of a text that changes, only how many lines do.
impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Difference { path, edit } = self;
        match edit {
            Edit::Added { after: Shown::Summary(summary) } if summary.is_empty() => f.write_str(path),
            Edit::Added { after: Shown::Summary(summary) | Shown::Text { summary, .. } } => {
                write!(f, "{path} ({summary})")
            }
            Edit::Added { after } => write!(f, "{path}: {after}"),
            Edit::Removed { before: Shown::Unknown } => f.write_str(path),
            Edit::Removed { before: Shown::Summary(summary) | Shown::Text { summary, .. } } => {
                write!(f, "{path} ({summary})")
            }
            Edit::Removed { before } => write!(f, "{path}: {before}"),
            Edit::Changed { before: Shown::Redacted, after: Shown::Redacted } => write!(f, "{path}: {REDACTED}"),
            Edit::Changed { before, after } => write!(f, "{path}: {before} -> {after}"),
            Edit::Lines { lines } => {
                let count = |sign: char| lines.iter().filter(|line| line.starts_with(sign)).count();
                write!(f, "{path}: {} lines removed, {} added", count('-'), count('+'))
            }
        }
    }
}

impl Edit {
    /// `+`, `-` or `~`.
    pub fn sign(&self) -> char {
        match self {
            Edit::Added { .. } => '+',
            Edit::Removed { .. } => '-',
            Edit::Changed { .. } | Edit::Lines { .. } => '~',
        }
    }
}

/// What an apply does to an object, from the server's own answer to a dry run: the fields that our manager owns before or after it.
pub fn of_answer(before: Option<&Value>, after: &Value, manager: &str) -> Vec<Difference> {
    let owned = |object: &Value| {
        let entries = Entry::all(&object["metadata"]["managedFields"]);
        Entry::ours(&entries, manager).map(|entry| entry.fields.clone()).unwrap_or_default()
    };
    let ours = before.map(owned).unwrap_or_default().with(&owned(after));
    let top = Place::top(&kind_of(after));
    let mut walk = Walk::default();
    if ignition::is_machine_config(after) {
        let [stripped_before, stripped_after] = [before, Some(after)].map(|object| object.map(ignition::without_files));
        walk.owned(stripped_before.as_ref(), stripped_after.as_ref(), &ours, top);
        ignition::compare(before, Some(after), &mut walk);
    } else {
        walk.owned(before, Some(after), &ours, top);
    }
    walk.found
}

/// The same without the server: what is wanted and not so. What the server fills in is not known, and of what we applied before and do not
/// want any more only the paths are.
pub fn of_wanted(live: Option<&Value>, wanted: &Value, removed: &[String]) -> Vec<Difference> {
    let mut walk = Walk::default();
    let is_machine_config = ignition::is_machine_config(wanted);
    let stripped = |object: &Value| if is_machine_config { ignition::without_files(object) } else { object.clone() };
    let mut object = stripped(wanted);
    match live {
        None => {
            walk::without_identity(&mut object);
            walk.added(&object, Place::top(&kind_of(wanted)));
        }
        Some(live) => {
            for change in content::changes(&object, &stripped(live), false).0 {
                // What may not be shown is left out already.
                walk.at(&change.path, |walk| match &change.values {
                    _ if walk.is_stamp() => {}
                    None => walk.push(Edit::Changed { before: Shown::Redacted, after: Shown::Redacted }),
                    Some(values) => walk.whole(values.before.as_ref(), Some(&values.after), Place::default()),
                });
            }
        }
    }
    for path in removed {
        walk.at(path, |walk| walk.push(Edit::Removed { before: Shown::Unknown }));
    }
    if is_machine_config {
        ignition::compare(live, Some(wanted), &mut walk);
    }
    walk.found
}

/// An object as far as it may be shown. Of a MachineConfig that includes the files and units that a difference shows, in the encoding in which
/// they are applied.
pub fn shown_object(kind: &Kind, object: &Value) -> Option<Value> {
    let mut shown = Place::top(kind).shown(object)?;
    if ignition::is_machine_config(object) {
        ignition::with_public_texts(&mut shown, object);
    }
    Some(shown)
}

fn kind_of(object: &Value) -> Kind {
    let text = |key: &str| object[key].as_str().unwrap_or_default();
    Kind::new(text("apiVersion"), text("kind"))
}

#[cfg(test)]
mod tests;
