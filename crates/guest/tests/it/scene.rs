//! A machine for one guest: its configuration, its runner, a program in place of the power switch, and what became of it.

use crate::operator::{Answer, Heard, Operator};
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use bootstrap::{
    Attestation, Claim, Config, END_PATH, EXCHANGE_PATH, Grant, Limits, REPORT_PATH, Runner, Secret, Source,
};
use flate2::Compression;
use flate2::write::GzEncoder;
use ring::digest::{SHA256, digest};
use std::collections::BTreeMap;
use std::fmt::Write;
use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::sync::MutexGuard;
use std::time::{Duration, Instant};
use tempfile::TempDir;

/// The secrets, all of which can be recognised.
pub(crate) const CANARIES: [&str; 50] = [
    "canary-00-bootstrap-token-0123456789abcdef",
    "canary-01-report-token-0123456789abcdef",
    "canary-02-rsa-d-0123456789abcdef",
    "canary-03-rsa-dp-0123456789abcdef",
    "canary-04-rsa-dq-0123456789abcdef",
    "canary-05-rsa-inverse-q-0123456789abcdef",
    "canary-06-rsa-p-0123456789abcdef",
    "canary-07-rsa-q-0123456789abcdef",
    "canary-08-rsa-modulus-0123456789abcdef",
    "canary-09-client-id-0123456789abcdef",
    "canary-10-authorization-0123456789abcdef",
    "canary-11-scheme-data-0123456789abcdef",
    "canary-12-oauth-0123456789abcdef",
    "canary-13-extra-0123456789abcdef",
    "canary-14-extra-0123456789abcdef",
    "canary-15-extra-0123456789abcdef",
    "canary-16-extra-0123456789abcdef",
    "canary-17-extra-0123456789abcdef",
    "canary-18-extra-0123456789abcdef",
    "canary-19-extra-0123456789abcdef",
    "canary-20-extra-0123456789abcdef",
    "canary-21-extra-0123456789abcdef",
    "canary-22-extra-0123456789abcdef",
    "canary-23-extra-0123456789abcdef",
    "canary-24-extra-0123456789abcdef",
    "canary-25-extra-0123456789abcdef",
    "canary-26-extra-0123456789abcdef",
    "canary-27-extra-0123456789abcdef",
    "canary-28-extra-0123456789abcdef",
    "canary-29-extra-0123456789abcdef",
    "canary-30-extra-0123456789abcdef",
    "canary-31-extra-0123456789abcdef",
    "canary-32-extra-0123456789abcdef",
    "canary-33-extra-0123456789abcdef",
    "canary-34-extra-0123456789abcdef",
    "canary-35-extra-0123456789abcdef",
    "canary-36-extra-0123456789abcdef",
    "canary-37-extra-0123456789abcdef",
    "canary-38-extra-0123456789abcdef",
    "canary-39-extra-0123456789abcdef",
    "canary-40-extra-0123456789abcdef",
    "canary-41-extra-0123456789abcdef",
    "canary-42-extra-0123456789abcdef",
    "canary-43-extra-0123456789abcdef",
    "canary-44-extra-0123456789abcdef",
    "canary-45-extra-0123456789abcdef",
    "canary-46-extra-0123456789abcdef",
    "canary-47-extra-0123456789abcdef",
    "canary-48-extra-0123456789abcdef",
    "canary-49-extra-0123456789abcdef",
];
/// Whether a job was done, as GitHub's listener says it.
pub(crate) const JOB: &str = "echo '2026-11-18 16:00:00Z: Running job: build'\n";
pub(crate) const JOB_DONE: &str = "echo '2026-11-18 16:00:09Z: Job build completed with result: Succeeded'\n";

/// Limits that are too long for any test, so that only what it sets can happen.
const LONG: u64 = 300;

/// What is to be set up.
pub(crate) struct Plan {
    /// What `run.sh` does.
    pub(crate) script: String,
    pub(crate) limits: Limits,
    pub(crate) credentials_expire_seconds: u64,
    /// Answers in place of the usual ones.
    pub(crate) answers: Vec<(&'static str, Vec<Answer>)>,
    /// The checksum in place of the right one.
    pub(crate) sha256: Option<String>,
    /// The program in the archive.
    pub(crate) program: &'static str,
    /// Whether the archive is at another server than the operator, and whether the guest is told its authority.
    pub(crate) elsewhere: Option<bool>,
    /// A link in the archive.
    pub(crate) link: Option<(&'static str, &'static str)>,
    pub(crate) remove_credentials_at_job_start: bool,
    pub(crate) user: Option<String>,
    pub(crate) arguments: Vec<&'static str>,
    /// Changes the configuration.
    pub(crate) config: fn(&mut Config),
}

impl Default for Plan {
    fn default() -> Plan {
        Plan {
            script: format!("{JOB}{JOB_DONE}"),
            limits: Limits {
                exchange_seconds: LONG,
                prepare_seconds: LONG,
                idle_seconds: LONG,
                job_seconds: LONG,
                lifetime_seconds: LONG,
                silence_seconds: LONG,
                heartbeat_seconds: 1,
                stop_seconds: 2,
                end_seconds: 5,
            },
            credentials_expire_seconds: LONG,
            answers: Vec::new(),
            sha256: None,
            program: "./run.sh",
            elsewhere: None,
            link: None,
            remove_credentials_at_job_start: false,
            user: None,
            arguments: Vec::new(),
            config: |_| {},
        }
    }
}

/// A machine whose guest runs.
pub(crate) struct Scene {
    pub(crate) root: TempDir,
    pub(crate) memory: TempDir,
    pub(crate) operator: Operator,
    pub(crate) guest: Child,
}

/// What became of it.
pub(crate) struct Ended {
    pub(crate) scene: Scene,
    /// How often the power was switched off.
    pub(crate) power_offs: usize,
    /// What the guest and its watchdog wrote.
    pub(crate) output: String,
}

pub(crate) fn claim() -> Claim {
    Claim { namespace: "ci".to_owned(), name: "linux-1".to_owned(), uid: "0000-1111".to_owned() }
}

/// The JIT configuration, with most of the secrets.
fn jit_config() -> String {
    let mut rsa = String::from("{");
    for (number, canary) in CANARIES.iter().enumerate().skip(2).take(7) {
        write!(rsa, "\"k{number}\": \"{canary}\", ").unwrap();
    }
    rsa.push_str("\"exponent\": \"AQAB\"}");
    let rest: Vec<String> = CANARIES.iter().skip(9).map(|canary| format!("{canary:?}")).collect();
    let files = BTreeMap::from([
        (".runner", STANDARD.encode("{\"agentName\": \"linux-1\"}")),
        (".credentials", STANDARD.encode(format!("{{\"data\": [{}]}}", rest.join(", ")))),
        (".credentials_rsaparams", STANDARD.encode(rsa)),
    ]);
    STANDARD.encode(serde_json::to_string(&files).unwrap())
}

fn archive(plan: &Plan) -> Vec<u8> {
    let mut builder = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
    let mut file = |path: &str, content: &str| {
        let mut header = tar::Header::new_gnu();
        header.set_mode(0o755);
        header.set_size(u64::try_from(content.len()).unwrap());
        builder.append_data(&mut header, path, content.as_bytes()).unwrap();
    };
    // The real one checks its settings in the same way.
    file(plan.program, &format!("#!/bin/sh\ncat .runner bin/node >/dev/null || exit 9\n{}", plan.script));
    file("./externals/node", "node");
    for (path, link) in [("./bin/node", "../externals/node")].into_iter().chain(plan.link) {
        let mut header = tar::Header::new_gnu();
        header.set_entry_type(tar::EntryType::Symlink);
        header.set_size(0);
        builder.append_link(&mut header, path, link).unwrap();
    }
    builder.into_inner().unwrap().finish().unwrap()
}

fn json(value: &impl serde::Serialize) -> Vec<Answer> {
    vec![(200, String::new(), serde_json::to_vec(value).unwrap())]
}

/// A refusal.
pub(crate) fn refusal(status: u16, reason: &str) -> Vec<Answer> {
    let body = format!("{{\"reason\": \"{reason}\", \"message\": \"because of the test\"}}");
    vec![(status, String::new(), body.into_bytes())]
}

impl Scene {
    /// Starts a guest.
    pub(crate) fn start(plan: &Plan) -> Scene {
        let root = tempfile::tempdir().unwrap();
        let memory = tempfile::tempdir_in("/dev/shm").unwrap();
        // The user of a runner that is not root reaches its folders.
        for folder in [&root, &memory] {
            std::fs::set_permissions(folder.path(), Permissions::from_mode(0o755)).unwrap();
        }
        let archive = archive(plan);
        let sum: String = digest(&SHA256, &archive).as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
        let archive_server = plan.elsewhere.map(|_| {
            Operator::start(BTreeMap::from([("/first".to_owned(), vec![(200, String::new(), archive.clone())])]))
        });
        let (server, ca) = match &archive_server {
            Some(server) => (
                format!("https://127.0.0.1:{}", server.port),
                plan.elsewhere.filter(|is_told| *is_told).map(|_| server.ca.clone()),
            ),
            None => (String::new(), None),
        };
        let grant = Grant {
            report_token: Secret::new(CANARIES[1].to_owned()),
            jit_config: Secret::new(jit_config()),
            credentials_expire_seconds: plan.credentials_expire_seconds,
            runner: Runner {
                source: Source::Download {
                    url: format!("{server}/first"),
                    sha256: plan.sha256.clone().unwrap_or(sum),
                    ca,
                },
                user: plan.user.clone(),
                remove_credentials_at_job_start: plan.remove_credentials_at_job_start,
            },
        };
        let redirect = |to: &str| vec![(302, format!("Location: {to}\r\n"), Vec::new())];
        let mut answers = BTreeMap::from([
            (EXCHANGE_PATH.to_owned(), json(&grant)),
            (REPORT_PATH.to_owned(), json(&bootstrap::ReportReply::default())),
            (END_PATH.to_owned(), json(&bootstrap::ReportReply::default())),
            ("/first".to_owned(), redirect("/archive")),
            ("/archive".to_owned(), vec![(200, "Transfer-Encoding: chunked\r\n".to_owned(), archive)]),
        ]);
        answers.extend(plan.answers.iter().map(|(path, answers)| ((*path).to_owned(), answers.clone())));
        let operator = Operator::start(answers);
        let mut config = Config {
            operator: format!("https://127.0.0.1:{}", operator.port),
            ca: operator.ca.clone(),
            claim: claim(),
            attestation: Attestation::Token { token: Secret::new(CANARIES[0].to_owned()) },
            limits: plan.limits,
            copies: vec![root.path().join("user-data.txt").display().to_string()],
        };
        (plan.config)(&mut config);
        let text = serde_json::to_string(&config).unwrap();
        std::fs::write(root.path().join("user-data.txt"), &text).unwrap();
        std::fs::write(root.path().join("guest.json"), text).unwrap();
        let power = root.path().join("power-off");
        std::fs::write(&power, format!("#!/bin/sh\necho off >> {}/power\n", root.path().display())).unwrap();
        std::fs::set_permissions(&power, Permissions::from_mode(0o755)).unwrap();
        let path = |name: &str| root.path().join(name);
        let guest = Command::new(env!("CARGO_BIN_EXE_virtpilot-guest"))
            .arg("--config")
            .arg(path("guest.json"))
            .arg("--folder")
            .arg(path("folder"))
            .arg("--memory")
            .arg(memory.path().join("secrets"))
            .arg("--power-off-program")
            .arg(path("power-off"))
            .args(&plan.arguments)
            .stdin(Stdio::null())
            .stdout(std::fs::File::create(path("stdout")).unwrap())
            .stderr(std::fs::File::create(path("stderr")).unwrap())
            .spawn()
            .unwrap();
        Scene { root, memory, operator, guest }
    }

    /// What was said to the operator.
    pub(crate) fn heard(&self) -> MutexGuard<'_, Heard> {
        self.operator.heard.lock().unwrap()
    }

    /// Waits until something is so.
    pub(crate) fn until(&self, what: &str, is_so: impl Fn(&Scene) -> bool) {
        let start = Instant::now();
        while !is_so(self) {
            let late = start.elapsed() > Duration::from_secs(60);
            assert!(
                !late,
                "{what} did not happen:\n{}",
                std::fs::read_to_string(self.root.path().join("stderr")).unwrap()
            );
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits until the power is off.
    pub(crate) fn ended(mut self) -> Ended {
        let power = self.root.path().join("power");
        self.until("the power off", |_| power.exists());
        // The watchdog may be gone before the guest, in the test that kills it.
        let _ = self.guest.wait().unwrap();
        let text = |name: &str| std::fs::read_to_string(self.root.path().join(name)).unwrap();
        let (power_offs, output) = (text("power").lines().count(), text("stdout") + &text("stderr"));
        Ended { scene: self, power_offs, output }
    }

    /// The folder where the runner is unpacked.
    pub(crate) fn runner(&self) -> PathBuf {
        self.root.path().join("folder/runner")
    }
}

impl Ended {
    /// The last message to the operator. It is sent once, and the power is switched off once.
    pub(crate) fn end(&self) -> bootstrap::End {
        assert_eq!(self.power_offs, 1, "{}", self.output);
        let heard = self.scene.heard();
        assert_eq!(heard.ends.len(), 1, "{}", self.output);
        assert!(heard.bearers.iter().all(|bearer| bearer == CANARIES[1]), "{:?}", heard.bearers);
        assert_eq!(heard.ends[0].claim, claim());
        heard.ends[0].clone()
    }

    /// Asserts that no secret was written or is left.
    pub(crate) fn has_no_secret(&self) {
        let mut hits = Vec::new();
        let mut search = |place: &str, text: &[u8]| {
            for canary in CANARIES.iter().map(|canary| (*canary).to_owned()).chain([jit_config()]) {
                if text.windows(canary.len()).any(|window| window == canary.as_bytes()) {
                    hits.push(format!("{place}: {canary}"));
                }
            }
        };
        search("output", self.output.as_bytes());
        for end in &self.scene.heard().ends {
            search("end", format!("{end:?}").as_bytes());
        }
        let mut folders = vec![self.scene.root.path().to_owned(), self.scene.memory.path().to_owned()];
        while let Some(folder) = folders.pop() {
            for entry in std::fs::read_dir(folder).unwrap().flatten() {
                let path = entry.path();
                let kind = entry.file_type().unwrap();
                if kind.is_dir() {
                    folders.push(path);
                } else if kind.is_file() {
                    search(&path.display().to_string(), &std::fs::read(&path).unwrap());
                }
            }
        }
        assert_eq!(hits, Vec::<String>::new());
        for gone in ["guest.json", "user-data.txt", "folder"] {
            assert!(!self.scene.root.path().join(gone).exists(), "{gone} is left");
        }
        assert!(!self.scene.memory.path().join("secrets").exists());
    }
}
