//! Runs the Go command under supervision and turns its errors into messages with a fix.

use crate::process::{Output, Start, run_to_end};
use crate::user_error::{self, UserError};
use std::path::{Path, PathBuf};

/// The Go command and the module folder it runs in.
#[derive(Debug)]
pub struct Go {
    program: PathBuf,
    module: PathBuf,
}

/// One line of Go's output.
#[derive(Debug)]
pub enum OutputLine<'a> {
    /// From standard output.
    Out(&'a str),
    /// From standard error.
    Err(&'a str),
}

impl Go {
    /// Finds `go` on the PATH; `purpose` completes the error message "it is needed ...".
    pub fn find(module: &Path, purpose: &str) -> Result<Go, UserError> {
        let program = which("go").ok_or_else(|| {
            UserError::new(
                format!("go is not installed, and it is needed {purpose}"),
                "install Go 1.26 or newer and add it to the PATH; instead of building the control plane, you can set KUBEBUILDER_ASSETS \
                 to a folder with etcd, kube-apiserver, kube-controller-manager and kubectl",
            )
        })?;
        Ok(Go { program, module: module.to_owned() })
    }

    /// Runs `go ARGS` and passes each line it prints to `each`.
    pub async fn run(&self, args: &[&str], mut each: impl FnMut(OutputLine<'_>)) -> Result<(), UserError> {
        let mut printed = Vec::new();
        let start = Start {
            name: "go".into(),
            program: self.program.clone(),
            args: args.iter().map(|&arg| arg.to_owned()).collect(),
            env: vec![
                ("CGO_ENABLED".into(), "0".into()),
                // The user's settings for other projects must not apply here, and temporary files belong in the module folder.
                ("GOWORK".into(), "off".into()),
                ("GOFLAGS".into(), String::new()),
                ("GOTMPDIR".into(), self.module.display().to_string()),
            ],
            folder: self.module.clone(),
            output: Output::Lines,
        };
        let end = run_to_end(start, |text, is_error| {
            // Either stream may hold the error: `go mod download -json` prints it to standard output.
            printed.push(text.to_owned());
            each(if is_error { OutputLine::Err(text) } else { OutputLine::Out(text) });
        })
        .await?;
        end.map_err(|status| explain(&printed, &status, &self.module))
    }
}

/// Finds a program on the PATH.
pub fn which(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// Finds the cause of a failure in Go's output.
fn explain(printed: &[String], status: &str, module: &Path) -> UserError {
    let find_line = |patterns: &[&str]| {
        // With -x every request is printed; one that failed may have succeeded at the next proxy.
        let mut lines = printed.iter().filter(|line| !line.starts_with("# get"));
        lines.find(|line| patterns.iter().any(|pattern| line.contains(pattern))).map(|line| unquote(line))
    };
    if let Some(line) = find_line(&["no space left on device"]) {
        // The line names the file that could not be written.
        let file = line.split([' ', ':', '"']).find(|word| word.starts_with('/')).map(Path::new);
        return user_error::disk_full(file.unwrap_or(module));
    }
    if let Some(line) = find_line(&["checksum mismatch"]) {
        return UserError::new(
            "a Go module does not match its checksum in go.sum",
            "do not trust that download: if you edited go.sum, restore it; otherwise remove the module with \
             `go clean -modcache`, run again, and report the mismatch if it persists",
        )
        .with_detail(line);
    }
    if let Some(line) = find_line(&["requires go >=", "invalid go version", "toolchain not available"]) {
        return UserError::new("this Go is too old", "install Go 1.26 or newer").with_detail(line);
    }
    if let Some(line) =
        find_line(&["403 Forbidden", "404 Not Found", "410 Gone", "module lookup disabled", "unknown revision"])
    {
        return UserError::new(
            "the Go module proxy refused a module",
            "retrying does not help: pin another version in go.mod and go.sum, or set GOPROXY to a proxy that has this one",
        )
        .with_detail(line);
    }
    if let Some(line) = find_line(&["dial tcp", "no such host", "i/o timeout", "connection refused", "TLS handshake"]) {
        return UserError::new(
            "the Go module proxy cannot be reached",
            "check the network and GOPROXY and run again; downloaded modules are kept",
        )
        .with_detail(line);
    }
    let tail = printed.iter().rev().take(8).rev().cloned().collect::<Vec<_>>().join("\n");
    UserError::new(format!("go ended with {status}"), "see the lines above; a new run continues where this one stopped")
        .with_detail(tail)
}

/// Extracts the message from a line `"Error": "..."` of JSON output.
fn unquote(line: &str) -> String {
    let line = line.trim().trim_start_matches("\"Error\":").trim();
    serde_json::from_str::<String>(line.trim_end_matches(',')).unwrap_or_else(|_| line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::explain;
    use expect_test::{Expect, expect};
    use std::path::Path;

    fn check(printed: &str, expected: &Expect) {
        let printed: Vec<String> = printed.lines().map(str::to_owned).collect();
        let error = explain(&printed, "exit status: 1", Path::new("cache")).to_string();
        expected.assert_eq(error.split("\n  fix:").next().unwrap());
    }

    #[test]
    fn each_failure_of_go_gets_its_own_message() {
        check("# x\nwrite /a: no space left on device", &expect!["the disk that holds /a is full"]);
        check("no space left on device", &expect!["the disk that holds cache is full"]);
        check(
            "verifying m@v1: checksum mismatch\n\tdownloaded: h1:a\n\tgo.sum: h1:b",
            &expect![[r#"
                a Go module does not match its checksum in go.sum
                  | verifying m@v1: checksum mismatch"#]],
        );
        check(
            "\t\"Error\": \"m@v1: module lookup disabled by GOPROXY=off\"",
            &expect![[r#"
                the Go module proxy refused a module
                  | m@v1: module lookup disabled by GOPROXY=off"#]],
        );
        check(
            "go: errors parsing go.mod:\ngo.mod:3: invalid go version '1.26.0': must match format 1.23",
            &expect![[r#"
                this Go is too old
                  | go.mod:3: invalid go version '1.26.0': must match format 1.23"#]],
        );
        check(
            "go: m@v1: Get \"x\": dial tcp: lookup x: no such host",
            &expect![[r#"
                the Go module proxy cannot be reached
                  | go: m@v1: Get "x": dial tcp: lookup x: no such host"#]],
        );
        check(
            "a\nb",
            &expect![[r#"
                go ended with exit status: 1
                  | a
                  | b"#]],
        );
    }
}
