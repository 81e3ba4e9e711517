//! The scripts by which the guest agent carries out a seed. Each may be started again at any time: an answer of the agent may be lost, the guest may boot again, and the
//! process may be killed.

/// Where cloud-init looks for a seed without an image.
pub(crate) const SEED: &str = "/var/lib/cloud/seed/nocloud";
/// Which process runs cloud-init for which claim, as the agent's client writes it.
pub(crate) const PROCESS: &str = "/var/lib/hyperfleet/seed-process";
/// For which claim cloud-init has ended, and with which exit code.
pub(crate) const EXIT: &str = "/var/lib/hyperfleet/seed-exit";

/// There is no cloud-init.
pub(crate) const NO_CLOUD_INIT: i64 = 69;
/// Another process runs cloud-init.
pub(crate) const RUNS_ALREADY: i64 = 75;
/// The files are complete, and cloud-init was begun with them.
pub(crate) const HAS_BEGUN: i64 = 76;

/// What both scripts know. `root` is empty but in tests. The holder of the lock is its content.
const COMMON: &str = r#"umask 077
state="$root/var/lib/hyperfleet" seed="$root/var/lib/cloud/seed/nocloud" lock="$root/run/hyperfleet-seed"
boot=$(cat "$root/proc/sys/kernel/random/boot_id" 2>/dev/null)
is_held() { holder=$(cat "$lock" 2>/dev/null) && [ -n "$holder" ] && kill -0 "$holder" 2>/dev/null; }
has_begun() { read -r of since 2>/dev/null <"$state/seed-begun" && [ "$of" = "$uid" ]; }
has_ended() { read -r of code 2>/dev/null <"$state/seed-exit" && [ "$of" = "$uid" ]; }
record() { echo "$uid $2" >"$state/$1.new" && mv "$state/$1.new" "$state/$1"; }
"#;

/// Makes folders and empty files that only root may read: the agent itself makes no folders, and files that everybody may read and write.
const PREPARE: &str = r#"
if is_held; then exit 75; fi
if has_begun; then exit 76; fi
(umask 022 && mkdir -p "$root/var/lib/cloud") || exit 1
mkdir -p "$seed" "$state" && chmod 700 "$seed" "$state" || exit 1
for file in $files "$state/seed-process"; do : >>"$file" && chmod 600 "$file" || exit 1; done
"#;

/// Runs cloud-init as at a first boot. After that, only its exit code is told. A run that was interrupted goes on where it was: cloud-init knows which of its modules have run, unless it is
/// cleaned, and after a boot it goes on by itself. Whatever it starts must not read the rest of this script.
const RUN: &str = r#"
command -v cloud-init >/dev/null || exit 69
echo $$ >"$lock.$$"
take() { ln "$lock.$$" "$lock" 2>/dev/null; }
if ! take; then
  if is_held; then rm -f "$lock.$$"; exit 75; fi
  rm -f "$lock"
  take || { rm -f "$lock.$$"; exit 75; }
fi
trap 'rm -f "$lock" "$lock.$$"' EXIT
if has_ended; then exit "$code"; fi
run() { (umask 022 && exec cloud-init "$@") </dev/null >/dev/null 2>&1; }
stage() { run "$@" || [ $? -eq 2 ] || { record seed-exit 1; exit 1; }; }
if has_begun; then
  [ "$since" = "$boot" ] || run status --wait
else
  record seed-begun "$boot" || exit 1
  stage clean
fi
rm -f "$root/run/cloud-init/cloud.cfg"
stage init --local
stage init
stage modules --mode config
stage modules --mode final
record seed-exit 0 || exit 1
"#;

/// Prepares the guest for these files of the seed.
pub(crate) fn prepare(uid: &str, names: &[&str]) -> String {
    let files: Vec<String> = names.iter().map(|name| format!("\"$seed/{name}\"")).collect();
    script("", uid, PREPARE).replace("$files", &files.join(" "))
}

/// Runs cloud-init with the files of the seed.
pub(crate) fn run(uid: &str) -> String {
    script("", uid, RUN)
}

/// In braces, so that the shell has read everything before it does anything.
fn script(root: &str, uid: &str, what: &str) -> String {
    format!("{{\nroot='{root}' uid='{uid}'\n{COMMON}{what}exit\n}}\n")
}

#[cfg(test)]
mod tests {
    use super::{COMMON, HAS_BEGUN, NO_CLOUD_INIT, PREPARE, RUN, RUNS_ALREADY, prepare, run, script};
    use std::fs;
    use std::io::Write;
    use std::os::unix::fs::PermissionsExt;
    use std::path::PathBuf;
    use std::process::{Command, Stdio};

    /// A guest in a folder, whose cloud-init writes down how it is called and then does what a test says.
    struct Guest {
        root: PathBuf,
    }

    impl Drop for Guest {
        fn drop(&mut self) {
            let _ = fs::remove_dir_all(&self.root);
        }
    }

    impl Guest {
        fn new(name: &str, cloud_init: &str) -> Guest {
            let root = std::env::temp_dir().join(format!("guest-{}-{name}", std::process::id()));
            let guest = Guest { root };
            for folder in ["bin", "run/cloud-init", "proc/sys/kernel/random", "var/lib"] {
                fs::create_dir_all(guest.root.join(folder)).unwrap();
            }
            let root = guest.root.display();
            // It reads its input, as programs do that it starts.
            let text = format!("#!/bin/sh\necho \"$* $(umask) $(cat)\" >>{root}/calls\n{cloud_init}\n");
            guest.write("bin/cloud-init", &text);
            fs::set_permissions(guest.root.join("bin/cloud-init"), fs::Permissions::from_mode(0o755)).unwrap();
            guest.write("proc/sys/kernel/random/boot_id", "first\n");
            guest
        }

        fn write(&self, path: &str, text: &str) {
            fs::write(self.root.join(path), text).unwrap();
        }

        fn read(&self, path: &str) -> String {
            fs::read_to_string(self.root.join(path)).unwrap_or_default()
        }

        /// The exit code of a script that the shell gets as its input, with an agent that masks nothing.
        fn execute(&self, what: &str) -> i64 {
            let path = format!("{}:/usr/bin:/bin", self.root.join("bin").display());
            let mut shell = Command::new("/bin/sh");
            shell.args(["-c", "umask 0; exec /bin/sh"]).env("PATH", path).stdin(Stdio::piped()).stderr(Stdio::null());
            let mut shell = shell.spawn().unwrap();
            let text = script(&self.root.display().to_string(), "u-1", what);
            let text = text.replace("$files", "\"$seed/user-data\" \"$seed/meta-data\"");
            shell.stdin.take().unwrap().write_all(text.as_bytes()).unwrap();
            i64::from(shell.wait().unwrap().code().unwrap())
        }

        /// How cloud-init was called since the last question.
        fn calls(&self) -> Vec<String> {
            let calls = self.read("calls").lines().map(|line| line.trim_end().to_owned()).collect();
            self.write("calls", "");
            calls
        }
    }

    const ALL: [&str; 5] =
        ["clean 0022", "init --local 0022", "init 0022", "modules --mode config 0022", "modules --mode final 0022"];

    #[test]
    fn only_root_may_read_what_is_delivered() {
        let guest = Guest::new("modes", "");
        assert_eq!(guest.execute(PREPARE), 0);
        let mode = |path: &str| fs::metadata(guest.root.join(path)).unwrap().permissions().mode() & 0o777;
        for folder in ["var/lib/cloud/seed/nocloud", "var/lib/hyperfleet"] {
            assert_eq!(mode(folder), 0o700, "{folder}");
        }
        assert_eq!(mode("var/lib/cloud"), 0o755, "this is cloud-init's, and others read in it");
        for file in ["cloud/seed/nocloud/user-data", "cloud/seed/nocloud/meta-data", "hyperfleet/seed-process"] {
            assert_eq!(mode(&format!("var/lib/{file}")), 0o600, "{file}");
        }
        guest.write("var/lib/cloud/seed/nocloud/user-data", "#cloud-config");
        assert_eq!(guest.execute(PREPARE), 0);
        assert_eq!(guest.read("var/lib/cloud/seed/nocloud/user-data"), "#cloud-config", "what is there stays");
    }

    #[test]
    fn cloud_init_runs_once_and_its_exit_code_is_kept() {
        for (cloud_init, code, calls) in [("", 0, 5), ("exit 2", 0, 5), ("[ \"$1\" = clean ] || exit 1", 1, 2)] {
            let guest = Guest::new(&format!("once-{code}-{}", cloud_init.len()), cloud_init);
            guest.write("run/cloud-init/cloud.cfg", "datasource_list: [None]");
            assert_eq!(guest.execute(PREPARE), 0);
            assert_eq!(guest.execute(RUN), code);
            assert_eq!(guest.calls(), ALL[..calls], "{cloud_init}");
            assert!(!guest.root.join("run/cloud-init/cloud.cfg").exists());
            assert_eq!(guest.read("var/lib/hyperfleet/seed-exit"), format!("u-1 {code}\n"));
            assert_eq!(guest.execute(PREPARE), HAS_BEGUN, "the files are not written again");
            assert_eq!((guest.execute(RUN), guest.calls()), (code, Vec::new()), "the answer was lost");
            assert_eq!(fs::read_dir(guest.root.join("run")).unwrap().count(), 1, "no lock is left");
        }
    }

    #[test]
    fn what_another_claim_has_left_is_no_answer() {
        let guest = Guest::new("other", "");
        assert_eq!(guest.execute(PREPARE), 0);
        guest.write("var/lib/hyperfleet/seed-exit", "u-0 1\n");
        guest.write("var/lib/hyperfleet/seed-begun", "u-0 first\n");
        assert_eq!((guest.execute(PREPARE), guest.execute(RUN)), (0, 0));
        assert_eq!(guest.calls(), ALL);
    }

    #[test]
    fn a_lock_counts_as_long_as_its_holder_lives() {
        let guest = Guest::new("lock", "");
        assert_eq!(guest.execute(PREPARE), 0);
        guest.write("run/hyperfleet-seed", &format!("{}\n", std::process::id()));
        assert_eq!((guest.execute(PREPARE), guest.execute(RUN)), (RUNS_ALREADY, RUNS_ALREADY));
        assert_eq!(guest.calls(), Vec::<String>::new());
        let mut dead = Command::new("true").spawn().unwrap();
        dead.wait().unwrap();
        guest.write("run/hyperfleet-seed", &format!("{}\n", dead.id()));
        assert_eq!((guest.execute(PREPARE), guest.execute(RUN)), (0, 0));
        assert_eq!(guest.calls(), ALL);
    }

    /// A power cut, or a reboot that cloud-init asked for: what has run does not run again.
    #[test]
    fn a_run_that_was_interrupted_goes_on_without_beginning_anew() {
        let guest = Guest::new("begun", "");
        assert_eq!(guest.execute(PREPARE), 0);
        guest.write("var/lib/hyperfleet/seed-begun", "u-1 first\n");
        assert_eq!((guest.execute(PREPARE), guest.execute(RUN)), (HAS_BEGUN, 0));
        assert_eq!(guest.calls(), ALL[1..]);
        fs::remove_file(guest.root.join("var/lib/hyperfleet/seed-exit")).unwrap();
        guest.write("proc/sys/kernel/random/boot_id", "second\n");
        assert_eq!(guest.execute(RUN), 0);
        let mut calls = vec!["status --wait 0022"];
        calls.extend(&ALL[1..]);
        assert_eq!(guest.calls(), calls, "it waits for what the boot has begun");
    }

    #[test]
    fn a_guest_without_cloud_init_says_so() {
        let guest = Guest::new("none", "");
        fs::remove_file(guest.root.join("bin/cloud-init")).unwrap();
        assert_eq!((guest.execute(PREPARE), guest.execute(RUN)), (0, NO_CLOUD_INIT));
    }

    #[test]
    fn the_scripts_name_the_claim_and_the_files() {
        let text = prepare("u-1", &["user-data", "meta-data"]);
        assert!(
            text.contains("uid='u-1'") && text.contains("in \"$seed/user-data\" \"$seed/meta-data\" \"$state"),
            "{text}"
        );
        assert!(run("u-1").contains(COMMON) && run("u-1").contains("root='' uid='u-1'"));
    }
}
