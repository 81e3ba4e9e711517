//! The messages between a parent and its supervisor, one JSON line each.

use serde::{Deserialize, Serialize};
use std::path::PathBuf;

/// What the parent sends to the supervisor's standard input; closing it ends all programs.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Request {
    /// Start a program.
    Start(Start),
    /// Send SIGTERM to the program with this name and report when it has ended.
    Stop(String),
}

/// One program to start.
#[derive(Debug, Clone, Serialize, Deserialize)]
pub struct Start {
    /// Its name in reports.
    pub name: String,
    /// The path of the executable.
    pub program: PathBuf,
    /// Its arguments.
    pub args: Vec<String>,
    /// Variables added to the supervisor's environment.
    pub env: Vec<(String, String)>,
    /// Its working directory.
    pub folder: PathBuf,
    /// Where its output goes.
    pub output: Output,
}

/// Where a program's standard output and error go.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Output {
    /// To this file.
    File(PathBuf),
    /// To the parent, line by line.
    Lines,
}

/// What the supervisor writes to its standard output.
#[derive(Debug, Clone, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Report {
    /// The folder that the supervisor has created and will remove.
    Folder(PathBuf),
    /// The program has started.
    Started {
        /// Its name in the request.
        name: String,
        /// Its process id.
        pid: u32,
    },
    /// The program could not be started.
    Failed {
        /// Its name in the request.
        name: String,
        /// The error of the operating system.
        error: String,
    },
    /// The program wrote a line to its standard output.
    Out {
        /// Its name in the request.
        name: String,
        /// The line.
        text: String,
    },
    /// The program wrote a line to its standard error.
    Err {
        /// Its name in the request.
        name: String,
        /// The line.
        text: String,
    },
    /// The program has ended and all its output has been reported.
    Ended {
        /// Its name in the request.
        name: String,
        /// Whether it exited with status 0.
        success: bool,
        /// Its exit status as text.
        status: String,
    },
}
