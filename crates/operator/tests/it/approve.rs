//! `virtpilot approve`: how changes are named, shown, asked about, approved with a record, and revoked.

use crate::commands::{Output, virtpilot};
use crate::operator::{NAMESPACE, Process, Running, SWAP, digest_in, eventually, quiet};
use kube::api::{DynamicObject, PostParams};
use playground::deployment;
use serde_json::json;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};

const APPROVED: &str = "platform.kubevirt.io/approved";
const APPROVED_BY: &str = "platform.kubevirt.io/approved-by";

/// An annotation of the HyperConverged.
async fn annotation(running: &Running, name: &str) -> Option<String> {
    let hco = deployment::objects(&running.playground, "hco.kubevirt.io/v1", "HyperConverged", Some(NAMESPACE));
    hco.get(api::hco::NAME).await.unwrap().metadata.annotations.unwrap_or_default().get(name).cloned()
}

/// A window that is not open today.
fn closed() -> String {
    let day = jiff::Zoned::now().checked_add(jiff::Span::new().days(3)).unwrap();
    format!("{} 01:00-02:00 UTC", day.strftime("%a"))
}

/// The digest that the operator asks for.
async fn asked(running: &Running, asset: &str, arguments: &[&str]) -> String {
    let kubeconfig = running.playground.kubeconfig();
    eventually("the operator asks", async || {
        let status = virtpilot(Some(&kubeconfig), &[&["status", "-o", "json"], arguments].concat());
        let lines: serde_json::Value = serde_json::from_str(&status.stdout).ok()?;
        let line = lines["assets"].as_array()?.iter().find(|line| line["asset"] == asset)?;
        digest_in(line["why"].as_str()?).map(str::to_owned)
    })
    .await
}

fn fails(output: &Output, message: &str) {
    assert!(output.code == Some(1) && output.stderr.contains(message), "{:?} {}", output.code, output.stderr);
    assert_eq!(output.stderr.matches("error: ").count(), 1, "{}", output.stderr);
    assert_eq!(output.stderr.lines().count(), 1, "{}", output.stderr);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_change_is_approved_by_any_of_its_names_recorded_and_revoked_until_it_is_used() {
    let running = Running::start(None).await;
    running.annotate_hco("maintenance-window", Some(&closed())).await;
    let digest = asked(&running, "swap-enable", &[]).await;
    let short = &digest["sha256:".len()..][..8];
    let admin = running.playground.kubeconfig();
    let approve = |arguments: &[&str]| virtpilot(Some(&admin), &[&["approve"], arguments].concat());

    // What is not known or does not wait is refused with what does.
    let waiting = format!("waiting for an approval: swap-enable {short} (MachineConfig {SWAP})");
    for (arguments, message) in [
        (
            &["swpa-enable"][..],
            "nothing with the name \"swpa-enable\" waits for an approval (did you mean swap-enable?)",
        ),
        (&["swap-enable", "metrics-service", "--yes"], "nothing of metrics-service waits for an approval"),
        (&["MachineConfig/90-worker-swap-offline"], "(did you mean MachineConfig/90-worker-swap-online?)"),
        (&["00000000", "--yes"], "nobody asks to approve 00000000"),
        (&[], "name what to approve"),
        (&["--deletions", "--yes"], "no deletion of many objects waits"),
    ] {
        let output = approve(arguments);
        fails(&output, message);
        assert!(output.stderr.contains(&waiting), "{}", output.stderr);
    }

    // Without a terminal and --yes it is shown and nothing else happens; so it is with --dry-run.
    let shown = [
        &format!("+ MachineConfig {SWAP}  create, high impact, {short}\n"),
        "restarts 3 nodes of pool worker: worker-0, worker-1, worker-2, one at a",
        "    + file /etc/openshift/kubelet.conf.d/90-swap.conf (0644, ",
        "The maintenance window \"",
        "01:00-02:00 UTC\" opens ",
    ];
    let unasked = approve(&["swap"]);
    fails(&unasked, "nothing is approved: there is no terminal to ask on; add --yes, or look first with --dry-run");
    let dry = approve(&["swap", "--dry-run", "--yes"]);
    assert!(dry.code == Some(0) && dry.stdout.ends_with(&format!("would approve {short} (MachineConfig {SWAP})\n")));
    for text in shown {
        assert!(unasked.stdout.contains(text) && dry.stdout.contains(text), "{text:?}: {}", unasked.stdout);
    }
    assert_eq!((annotation(&running, APPROVED).await, annotation(&running, APPROVED_BY).await), (None, None));

    for name in ["swap-enable", &format!("MACHINEconfig/{SWAP}"), short] {
        let approved = approve(&[name, "--yes"]);
        let line = format!("\napproved {short} (MachineConfig {SWAP}) by playground-admin; the window opens ");
        assert!(approved.code == Some(0) && approved.stdout.contains(&line), "{}{}", approved.stdout, approved.stderr);
        assert_eq!(annotation(&running, APPROVED).await.as_ref(), Some(&digest));
        let record = annotation(&running, APPROVED_BY).await.unwrap();
        let parts: Vec<&str> = record.splitn(4, ' ').collect();
        assert_eq!(parts[2..], [&format!("MachineConfig/{SWAP}"), "playground-admin"], "{record}");
        let age = jiff::Timestamp::now().duration_since(parts[1].parse().unwrap());
        assert!(parts[0] == digest && (0..60).contains(&age.as_secs()), "{record}");

        // Once more is no other approval, and needs no answer.
        let again = approve(&["swap"]);
        let line = format!(
            "{short} (MachineConfig {SWAP}) is already approved by playground-admin on {}; the window",
            parts[1]
        );
        assert!(again.code == Some(0) && again.stdout.starts_with(&line), "{}{}", again.stdout, again.stderr);

        fails(
            &approve(&["--revoke", "metrics-service"]),
            &format!("approved and not used: {short} (MachineConfig {SWAP})"),
        );
        let dry = approve(&["--revoke", name, "--dry-run"]).stdout;
        assert!(dry.starts_with(&format!("would revoke {short}")), "{dry}");
        let revoked = approve(&["--revoke", name]);
        let line =
            format!("revoked {short} (MachineConfig {SWAP}), approved by playground-admin on {}; it waits", parts[1]);
        assert!(revoked.code == Some(0) && revoked.stdout.starts_with(&line), "{}{}", revoked.stdout, revoked.stderr);
        assert_eq!((annotation(&running, APPROVED).await, annotation(&running, APPROVED_BY).await), (None, None));
        fails(&approve(&["--revoke", name]), "; approved and not used: nothing");
        fails(&approve(&["--revoke"]), "name what to revoke");
        assert_eq!(approve(&["--revoke", "--all"]).stdout, "nothing is approved\n");
    }
    quiet(&running).await;
    assert!(running.machine_configs().get_opt(SWAP).await.unwrap().is_none(), "nothing was approved in a window");

    // A used approval cannot be revoked, and other approvals are kept.
    let other = format!("sha256:{}", "ab".repeat(32));
    running.annotate_hco("approved", Some(&other)).await;
    running.annotate_hco("maintenance-window", None).await;
    let approved = approve(&["--pool", "worker", "-y"]);
    assert!(
        approved.stdout.ends_with("; no operator leads in namespace openshift-cnv; the change is made when one runs\n"),
        "{}",
        approved.stderr
    );
    eventually("it exists", async || running.machine_configs().get_opt(SWAP).await.unwrap()).await;
    for name in [short, "swap", "swap-enable", &format!("machineconfig/{SWAP}")] {
        let late = approve(&["--revoke", name]);
        assert!(
            late.code == Some(1) && late.stdout.contains("cannot be revoked: the change was already made"),
            "{}{}",
            late.stdout,
            late.stderr
        );
    }
    assert_eq!(annotation(&running, APPROVED).await, Some(format!("{other},{digest}")));
    // What nothing waits for may be asked for again, so it does not stay.
    let unknown = approve(&["--revoke", "abababab"]);
    assert_eq!(
        unknown.stdout, "revoked abababab; it was used, or nothing waits for it any more\n",
        "{}",
        unknown.stderr
    );
    assert_eq!(annotation(&running, APPROVED).await, Some(digest.clone()));
    let all = approve(&["--revoke", "--all"]);
    assert!(all.code == Some(0) && all.stdout.contains("the change was already made"), "{}{}", all.stdout, all.stderr);
    assert_eq!((annotation(&running, APPROVED).await, annotation(&running, APPROVED_BY).await), (None, None));
}

/// Runs a command on a terminal: every line on its standard input answers one question.
const TERMINAL: &str = r"
import os, pty, sys
pid, fd = pty.fork()
if pid == 0:
    os.execv(sys.argv[1], sys.argv[1:])
text = b''
def more():
    global text
    try:
        chunk = os.read(fd, 65536)
    except OSError:
        chunk = b''
    text += chunk
    return chunk
while True:
    chunk = more()
    if text.endswith(b'[y/N] '):
        print(text.replace(b'\r', b'').decode() + '\nQUESTION', flush=True)
        text = b''
        os.write(fd, sys.stdin.readline().encode())
    if not chunk:
        break
print(text.replace(b'\r', b'').decode() + '\nEND', flush=True)
sys.exit(os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]))
";

struct Terminal(Child, BufReader<std::process::ChildStdout>);

impl Terminal {
    fn start(kubeconfig: &Path, arguments: &[&str]) -> Terminal {
        let mut command = Command::new("python3");
        command.args(["-c", TERMINAL, env!("CARGO_BIN_EXE_virtpilot")]).args(crate::operator::with_pack(arguments));
        let mut child = command
            .env("KUBECONFIG", kubeconfig)
            .env("NO_COLOR", "1")
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let output = BufReader::new(child.stdout.take().unwrap());
        Terminal(child, output)
    }

    /// What it prints before its next question, or before its end.
    fn text(&mut self) -> String {
        let mut text = String::new();
        loop {
            let mut line = String::new();
            let count = self.1.read_line(&mut line).unwrap();
            if count == 0 || line == "QUESTION\n" || line == "END\n" {
                return text;
            }
            text.push_str(&line);
        }
    }

    fn answer(&mut self, answer: &str) -> String {
        writeln!(self.0.stdin.as_mut().unwrap(), "{answer}").unwrap();
        self.text()
    }

    fn code(mut self) -> Option<i32> {
        self.0.wait().unwrap().code()
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn a_person_approves_what_is_shown_and_nothing_else() {
    let mut running = Running::start(None).await;
    let digest = asked(&running, "swap-enable", &[]).await;
    quiet(&running).await;
    running.stop();
    let admin = running.playground.kubeconfig();
    let question = format!("Approve {}? [y/N] \n", &digest["sha256:".len()..][..8]);

    let mut terminal = Terminal::start(&admin, &["approve", "swap"]);
    let text = terminal.text();
    assert!(text.contains("+ file /etc/openshift/kubelet.conf.d/90-swap.conf") && text.ends_with(&question), "{text}");
    let refused = terminal.answer("n");
    assert!(refused.contains("error: not approved; nothing was changed"), "{refused}");
    assert_eq!((terminal.code(), annotation(&running, APPROVED).await), (Some(1), None));

    // While the person looks, somebody else creates the object: it is shown again, and another digest is asked about.
    let mut terminal = Terminal::start(&admin, &["approve", "swap"]);
    assert!(terminal.text().ends_with(&question));
    let theirs = json!({"apiVersion": "machineconfiguration.openshift.io/v1", "kind": "MachineConfig", "metadata": {"name": SWAP}, "spec": {"kernelArguments": ["theirs"]}});
    let theirs: DynamicObject = serde_json::from_value(theirs).unwrap();
    running.machine_configs().create(&PostParams::default(), &theirs).await.unwrap();
    let again = terminal.answer("y");
    assert!(again.contains("the cluster has changed meanwhile, and what was shown is not what waits now:"), "{again}");
    assert!(again.contains("adopt, after a backup") && !again.ends_with(&question), "{again}");
    assert_eq!(annotation(&running, APPROVED).await, None, "what was shown does not wait any more");
    let approved = terminal.answer("yes");
    assert!(
        approved.contains(
            " by playground-admin; no operator leads in namespace openshift-cnv; the change is made when one runs"
        ),
        "{approved}"
    );
    assert_eq!(terminal.code(), Some(0));
    let written = annotation(&running, APPROVED).await.unwrap();
    assert!(again.contains(&format!("Approve {}? [y/N] ", &written["sha256:".len()..][..8])) && written != digest);
}

#[tokio::test(flavor = "multi_thread")]
async fn many_deletions_are_shown_one_by_one_and_approved_together() {
    let folder = tempfile::tempdir().unwrap();
    let active = folder.path().join("active");
    std::fs::create_dir_all(&active).unwrap();
    let asset = |name: &str| {
        let map = format!(
            "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: {name}, namespace: {NAMESPACE}}}\ndata: {{a: b}}\n"
        );
        std::fs::write(active.join(format!("{name}.yaml.tpl")), map).unwrap();
        format!(
            "  - {{name: {name}, path: active/{name}.yaml.tpl, install: always, component: ConfigMap, reconcile_order: 1}}\n"
        )
    };
    let names: Vec<String> = (0..7).map(|number| format!("m{number}")).collect();
    let assets: String = names.iter().map(|name| asset(name)).collect();
    std::fs::write(active.join("metadata.yaml"), format!("assets:\n{assets}")).unwrap();
    let pack = ["--assets-dir", folder.path().to_str().unwrap()];
    let running = Running::without_operator().await;
    let admin = running.playground.kubeconfig();
    let _operator = Process::start(&admin, &pack);
    let maps = running.config_maps();
    for name in &names {
        eventually("it exists", async || maps.get_opt(name).await.unwrap()).await;
    }
    running.annotate_hco("autopilot", Some("m0")).await;
    let digest = asked(&running, "m1", &pack).await;
    let approve = |arguments: &[&str]| virtpilot(Some(&admin), &[&["approve"], arguments, &pack].concat());

    // Whoever names one of them sees all.
    let one = approve(&["ConfigMap/m3", "--dry-run"]).stdout;
    let all = approve(&["--deletions", "--dry-run"]).stdout;
    assert_eq!(one, all);
    let short = &digest["sha256:".len()..][..8];
    assert!(all.starts_with("One edit of the HyperConverged deletes 6 objects:\n"), "{all}");
    assert!(all.ends_with(&format!("would approve {short} (deletion of 6 objects)\n")), "{all}");
    for name in &names[1..] {
        assert!(all.contains(&format!("- ConfigMap {NAMESPACE}/{name}  delete, low impact")), "{all}");
    }
    let approved = approve(&["--deletions", "--yes"]);
    let line = format!(
        "approved {short} (deletion of 6 objects) by playground-admin; no operator leads in namespace openshift-cnv; the change is made when one runs\n"
    );
    assert!(approved.stdout.ends_with(&line), "{}{}", approved.stdout, approved.stderr);
    assert!(annotation(&running, APPROVED_BY).await.unwrap().ends_with(" deletion-of-6-objects playground-admin"));
    for name in &names[1..] {
        eventually("it is gone", async || maps.get_opt(name).await.unwrap().is_none().then_some(())).await;
    }
    assert!(maps.get_opt("m0").await.unwrap().is_some());
}

#[tokio::test(flavor = "multi_thread")]
async fn approvals_at_the_same_time_are_both_kept_and_old_used_ones_go_with_their_records() {
    let pack = ["--assets-dir", concat!(env!("CARGO_MANIFEST_DIR"), "/tests/packs/machines")];
    let running = Running::with_pack(include_str!("../packs/machines.role.yaml"), &pack).await;
    let admin = running.playground.kubeconfig();
    running.annotate_hco("maintenance-window", Some(&closed())).await;
    let status = virtpilot(Some(&admin), &[&["status", "-o", "json"], &pack[..]].concat());
    let lines: serde_json::Value = serde_json::from_str(&status.stdout).unwrap();
    let assets: Vec<String> =
        lines["assets"].as_array().unwrap().iter().map(|line| line["asset"].as_str().unwrap().to_owned()).collect();
    let mut digests = Vec::new();
    for asset in &assets {
        digests.push(asked(&running, asset, &pack).await);
    }
    assert_eq!(digests.len(), 2);
    // One that was used long ago, one that somebody else wrote long ago, and one that is younger.
    let [used, foreign, young] = ["a", "b", "c"].map(|digit| format!("sha256:{}", digit.repeat(64)));
    running.annotate_hco("approved", Some(&format!("{used} {foreign} {young}"))).await;
    let now = jiff::Timestamp::now().strftime("%Y-%m-%dT%H:%M:%SZ").to_string();
    let records = format!("{used} 2020-01-01T00:00:00Z MachineConfig/x ada\n{young} {now} MachineConfig/x ada");
    running.annotate_hco("approved-by", Some(&records)).await;
    let outputs: Vec<Output> = std::thread::scope(|scope| {
        let (admin, pack) = (&admin, &pack);
        let command = |asset: &str| virtpilot(Some(admin), &[&["approve", "--yes", asset], &pack[..]].concat());
        let started: Vec<_> = assets.iter().map(|asset| scope.spawn(move || command(asset))).collect();
        started.into_iter().map(|command| command.join().unwrap()).collect()
    });
    for output in outputs {
        assert_eq!(output.code, Some(0), "{}", output.stderr);
    }
    let mut wanted = [digests.clone(), vec![foreign, young.clone()]].concat();
    let approved = annotation(&running, APPROVED).await.unwrap();
    let mut approved: Vec<&str> = approved.split(',').collect();
    wanted.sort();
    approved.sort_unstable();
    assert_eq!(approved, wanted);
    let records = annotation(&running, APPROVED_BY).await.unwrap();
    let mut recorded: Vec<&str> = records.lines().map(|line| line.split(' ').next().unwrap()).collect();
    let mut wanted = [digests, vec![young]].concat();
    wanted.sort();
    recorded.sort_unstable();
    assert_eq!(recorded, wanted);
}
