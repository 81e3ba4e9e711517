//! The words between a parent and its supervisor: one JSON line each.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What the parent asks for, on the supervisor's standard input. Its end means "end everything".
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Start this program.
    Start(Start),
    /// Ask the program of that name to end, and report when it has.
    Stop(String),
}

/// One program to start.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Start {
    /// What reports call it.
    pub name: String,
    /// The program, by path.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables added to our own environment.
    pub env: Vec<(String, String)>,
    /// The folder it runs in.
    pub folder: PathBuf,
    /// Where its output goes.
    pub output: Output,
}

/// Where a program's standard output and error go.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Output {
    /// Into this file.
    File(PathBuf),
    /// To the parent, line by line.
    Lines,
}

/// What the supervisor says, on its standard output.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Report {
    /// The family's folder, made by the supervisor and removed by it.
    Folder(PathBuf),
    /// The program runs.
    Started {
        /// Its name in the order.
        name: String,
        /// Its process id.
        pid: u32,
    },
    /// The program could not be started.
    Failed {
        /// Its name in the order.
        name: String,
        /// The system's words.
        error: String,
    },
    /// The program wrote a line to its standard output.
    Out {
        /// Its name in the order.
        name: String,
        /// The line.
        text: String,
    },
    /// The program wrote a line to its standard error.
    Err {
        /// Its name in the order.
        name: String,
        /// The line.
        text: String,
    },
    /// The program has ended and all its output was reported.
    Ended {
        /// Its name in the order.
        name: String,
        /// Whether it ended well.
        success: bool,
        /// Its exit status in words.
        status: String,
    },
}
