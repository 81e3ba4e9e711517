//! Runs the Go command under supervision and turns its complaints into words with a remedy.

use crate::process::{Output, Start, run_to_end};
use crate::trouble::{self, Trouble};
use std::path::{Path, PathBuf};

/// The Go command and the module folder it works in.
#[derive(Debug)]
pub struct Go {
    program: PathBuf,
    module: PathBuf,
}

/// One line of what Go printed.
#[derive(Debug)]
pub enum Line<'a> {
    /// On standard output.
    Out(&'a str),
    /// On standard error.
    Err(&'a str),
}

impl Go {
    /// Finds `go` on the PATH; `purpose` says what it is needed for.
    pub fn find(module: &Path, purpose: &str) -> Result<Go, Trouble> {
        let program = which("go").ok_or_else(|| {
            Trouble::new(
                format!("go is not installed, and it is needed {purpose}"),
                "install Go 1.26 or newer and put it on the PATH; for the control plane alone KUBEBUILDER_ASSETS may name a \
                 folder with etcd, kube-apiserver, kube-controller-manager and kubectl instead",
            )
        })?;
        Ok(Go { program, module: module.to_owned() })
    }

    /// Runs `go ARGS` and hands over each line it prints.
    pub async fn run(&self, args: &[&str], mut each: impl FnMut(Line<'_>)) -> Result<(), Trouble> {
        let mut words = Vec::new();
        let start = Start {
            name: "go".into(),
            program: self.program.clone(),
            args: args.iter().map(|&arg| arg.to_owned()).collect(),
            env: vec![
                ("CGO_ENABLED".into(), "0".into()),
                // What the user has set up for other work must not change ours, and rubbish goes with the folder.
                ("GOWORK".into(), "off".into()),
                ("GOFLAGS".into(), String::new()),
                ("GOTMPDIR".into(), self.module.display().to_string()),
            ],
            folder: self.module.clone(),
            output: Output::Lines,
        };
        let end = run_to_end(start, |text, is_error| {
            // Everything may hold the reason: `go mod download -json` puts it on standard output.
            words.push(text.to_owned());
            each(if is_error { Line::Err(text) } else { Line::Out(text) });
        })
        .await?;
        end.map_err(|status| explain(&words, &status, &self.module))
    }
}

/// A program on the PATH.
pub fn which(name: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path).map(|folder| folder.join(name)).find(|file| file.is_file())
}

/// What Go's last words mean, and what to do about it.
fn explain(words: &[String], status: &str, module: &Path) -> Trouble {
    let telling = |patterns: &[&str]| {
        // With -x every request is shown; one that failed and was made elsewhere is no failure.
        let mut said = words.iter().filter(|line| !line.starts_with("# get"));
        said.find(|line| patterns.iter().any(|pattern| line.contains(pattern))).map(|line| unquote(line))
    };
    if let Some(line) = telling(&["no space left on device"]) {
        // Go says which file it could not write; that one's disk is full.
        let file = line.split([' ', ':', '"']).find(|word| word.starts_with('/')).map(Path::new);
        return trouble::disk_full(file.unwrap_or(module));
    }
    if let Some(line) = telling(&["checksum mismatch"]) {
        return Trouble::new(
            "a Go module is not what go.sum says it must be",
            "do not trust that download: if you changed go.sum by hand, put it back; else remove the module with \
             `go clean -modcache` and run again, and tell us if it stays",
        )
        .because(line);
    }
    if let Some(line) = telling(&["requires go >=", "invalid go version", "toolchain not available"]) {
        return Trouble::new("this Go is too old", "install Go 1.26 or newer").because(line);
    }
    if let Some(line) =
        telling(&["403 Forbidden", "404 Not Found", "410 Gone", "module lookup disabled", "unknown revision"])
    {
        return Trouble::new(
            "the Go module registry refused a module",
            "a refusal is final for that version: pin another one in go.mod and go.sum, or set GOPROXY to a registry that has it",
        )
        .because(line);
    }
    if let Some(line) = telling(&["dial tcp", "no such host", "i/o timeout", "connection refused", "TLS handshake"]) {
        return Trouble::new(
            "the Go module registry cannot be reached",
            "check the network or GOPROXY and run again; what was fetched is kept",
        )
        .because(line);
    }
    let tail = words.iter().rev().take(8).rev().cloned().collect::<Vec<_>>().join("\n");
    Trouble::new(format!("go ended with {status}"), "see the lines above; run again to continue where it stopped")
        .because(tail)
}

/// In JSON output the reason is `"Error": "..."`; what a person reads is inside.
fn unquote(line: &str) -> String {
    let line = line.trim().trim_start_matches("\"Error\":").trim();
    serde_json::from_str::<String>(line.trim_end_matches(',')).unwrap_or_else(|_| line.to_owned())
}

#[cfg(test)]
mod tests {
    use super::explain;
    use expect_test::{Expect, expect};
    use std::path::Path;

    fn check(words: &str, expected: &Expect) {
        let words: Vec<String> = words.lines().map(str::to_owned).collect();
        let trouble = explain(&words, "exit status: 1", Path::new("cache")).to_string();
        expected.assert_eq(trouble.split("\n  fix:").next().unwrap());
    }

    #[test]
    fn each_way_in_which_go_fails_is_told_apart() {
        check("# x\nwrite /a: no space left on device", &expect!["the disk that holds /a is full"]);
        check("no space left on device", &expect!["the disk that holds cache is full"]);
        check(
            "verifying m@v1: checksum mismatch\n\tdownloaded: h1:a\n\tgo.sum: h1:b",
            &expect![[r#"
                a Go module is not what go.sum says it must be
                  | verifying m@v1: checksum mismatch"#]],
        );
        check(
            "\t\"Error\": \"m@v1: module lookup disabled by GOPROXY=off\"",
            &expect![[r#"
                the Go module registry refused a module
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
                the Go module registry cannot be reached
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
