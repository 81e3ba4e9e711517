//! The systemd units of nodes: systemd understands them, and none can keep the kubelet from starting.

use crate::node_files::{self, NodeFiles};
use std::collections::{BTreeMap, BTreeSet};
use std::io::Write;
use std::os::unix::fs::PermissionsExt;
use std::path::Path;
use std::process::Command;

const KEYS: &str = include_str!("systemd_keys.txt");
/// Where the host has its own programs; everything else comes from a MachineConfig.
const HOST_PROGRAMS: [&str; 4] = ["/bin/", "/sbin/", "/usr/bin/", "/usr/sbin/"];
/// What a unit of ours may be started by without delaying the kubelet.
const AFTER_THE_KUBELET: &str = "multi-user.target";
/// What comes after a unit that the kubelet waits for, so that such a unit must not wait for it.
const LATE: [&str; 4] = ["kubelet-dependencies.target", "kubelet.service", "multi-user.target", "graphical.target"];
/// In seconds: the kubelet may wait for a unit for a minute, and logind for its inhibitors for 150 s.
const LONGEST_WAIT_OF_THE_KUBELET: u64 = 60;
const LONGEST_WAIT: u64 = 150;
const FORBIDDEN: [(&str, &str); 13] = [
    ("Alias", "it takes the place of another unit"),
    ("Conflicts", "it stops other units"),
    ("DefaultDependencies", "it may start before the host is able to run it"),
    ("FailureAction", "it can restart the node"),
    ("JobTimeoutAction", "it can restart the node"),
    ("OnFailure", "its failure starts other units"),
    ("OnSuccess", "its success starts other units"),
    ("PropagatesStopTo", "it stops other units"),
    ("RequiredBy", "its failure keeps other units from starting"),
    ("StartLimitAction", "it can restart the node"),
    ("SuccessAction", "it can restart the node"),
    ("TimeoutSec", "TimeoutStartSec and TimeoutStopSec say which is meant"),
    ("Upholds", "it starts other units again and again"),
];

/// Section, key and value of every line.
type Lines<'a> = Vec<(&'a str, &'a str, &'a str)>;

/// The values of a key, also several in a line.
fn words<'a>(lines: &Lines<'a>, key: &str) -> Vec<&'a str> {
    lines.iter().filter(|line| line.1 == key).flat_map(|line| line.2.split_whitespace()).collect()
}

fn known_keys() -> BTreeMap<&'static str, BTreeSet<&'static str>> {
    let sections = KEYS.split("\n[").skip(1).filter_map(|section| section.split_once("]\n"));
    sections.map(|(section, keys)| (section, keys.split_whitespace().collect())).collect()
}

/// Reads a unit; what systemd would not understand is a fault.
fn read<'a>(text: &'a str, sections: &[&str], faults: &mut Vec<String>) -> Lines<'a> {
    let known = known_keys();
    let (mut lines, mut section) = (Vec::new(), "");
    for line in text.lines().filter(|line| !line.is_empty() && !line.starts_with(['#', ';'])) {
        if let Some(name) = line.strip_prefix('[').and_then(|line| line.strip_suffix(']')) {
            section = name;
            if !sections.contains(&name) {
                faults.push(format!("section [{name}] has no place here"));
            }
            continue;
        }
        match line.split_once('=') {
            Some((key, value))
                if known.get(section).is_some_and(|keys| keys.contains(key)) && !value.ends_with('\\') =>
            {
                lines.push((section, key, value));
            }
            _ => faults.push(format!("systemd knows no such line in [{section}]: {line}")),
        }
    }
    lines
}

/// The limit of a key in seconds.
fn check_limit(lines: &Lines<'_>, key: &str, longest: u64, faults: &mut Vec<String>) {
    let seconds: Vec<&str> = words(lines, key);
    if !matches!(seconds[..], [one] if one.parse().is_ok_and(|seconds| (1..=longest).contains(&seconds))) {
        faults.push(format!("{key}= must be 1 to {longest} seconds, and is {seconds:?}"));
    }
}

/// The programs that a unit starts.
fn programs<'a>(lines: &Lines<'a>) -> Vec<&'a str> {
    let commands = lines.iter().filter(|line| line.1.starts_with("Exec") && line.0 == "Service");
    let program = |line: &(&str, &str, &'a str)| line.2.trim_start_matches(['-', '@', ':', '+', '!']);
    commands.map(|line| program(line).split(' ').next().unwrap_or_default()).collect()
}

/// Whether a unit waits for one that comes later than the kubelet, also by way of our other units.
fn waits_for_late(name: &str, units: &BTreeMap<&str, Lines<'_>>, seen: &mut BTreeSet<String>) -> bool {
    let after = units.get(name).map(|lines| words(lines, "After")).unwrap_or_default();
    seen.insert(name.to_owned());
    after.iter().any(|other| LATE.contains(other) || (!seen.contains(*other) && waits_for_late(other, units, seen)))
}

fn check_service(name: &str, node: &NodeFiles, units: &BTreeMap<&str, Lines<'_>>, faults: &mut Vec<String>) {
    let lines = &units[name];
    for (key, why) in FORBIDDEN {
        if lines.iter().any(|line| line.1 == key) {
            faults.push(format!("{key}= is not allowed: {why}"));
        }
    }
    if words(lines, "ExecStart").is_empty() {
        faults.push("there is no ExecStart=".to_owned());
    }
    for program in programs(lines) {
        let is_ours = node.files.get(program).is_some_and(|(_, mode)| mode & 0o111 == 0o111);
        if !is_ours && !HOST_PROGRAMS.iter().any(|folder| program.starts_with(folder)) {
            faults.push(format!("{program:?} is no program of the host or of this MachineConfig"));
        }
    }
    let targets = words(lines, "WantedBy");
    if targets.is_empty() {
        faults.push("there is no WantedBy=, so that nothing starts it".to_owned());
    }
    let foreign = words(lines, "Before").into_iter().filter(|other| !units.contains_key(other));
    let waiting: Vec<&str> = foreign.chain(targets).filter(|other| *other != AFTER_THE_KUBELET).collect();
    let is_once = words(lines, "Type") == ["oneshot"];
    if !waiting.is_empty() {
        if !is_once {
            faults.push(format!("{waiting:?} would wait for something that does not end: Type= must be oneshot"));
        }
        if waits_for_late(name, units, &mut BTreeSet::new()) {
            faults.push(format!("{waiting:?} waits for it, and it waits for what comes later"));
        }
        check_limit(lines, "TimeoutStartSec", LONGEST_WAIT_OF_THE_KUBELET, faults);
    } else if is_once {
        // Its default is to wait forever.
        check_limit(lines, "TimeoutStartSec", LONGEST_WAIT, faults);
    } else {
        check_limit(lines, "TimeoutStopSec", LONGEST_WAIT, faults);
    }
}

/// What is wrong with the units of a MachineConfig.
fn faults(node: &NodeFiles) -> Vec<String> {
    let mut all = Vec::new();
    let mut units = BTreeMap::new();
    for (name, text) in &node.units {
        let mut faults = Vec::new();
        // Units of others are changed only in what their slices may use.
        let sections = match name.split_once(".d/") {
            None if name.ends_with(".service") => &["Unit", "Service", "Install"][..],
            Some((unit, _)) if unit.ends_with(".slice") => &["Slice"],
            _ => &[],
        };
        units.insert(name.as_str(), read(text, sections, &mut faults));
        all.extend(faults.into_iter().map(|fault| format!("{name}: {fault}")));
    }
    for name in units.keys().filter(|name| name.ends_with(".service")) {
        let mut faults = Vec::new();
        check_service(name, node, &units, &mut faults);
        all.extend(faults.into_iter().map(|fault| format!("{name}: {fault}")));
    }
    all
}

#[test]
fn no_unit_can_keep_the_kubelet_from_starting() {
    let nodes = node_files::all();
    assert!(nodes.iter().map(|node| node.units.len()).sum::<usize>() >= 11, "units are missing");
    let of_node = |node: &NodeFiles| faults(node).into_iter().map(|fault| format!("{}: {fault}", node.name)).collect();
    let faults: Vec<String> = nodes.iter().flat_map(|node| -> Vec<String> { of_node(node) }).collect();
    assert!(faults.is_empty(), "{}", faults.join("\n"));
}

#[test]
fn every_fault_of_a_unit_is_found() {
    const UNIT: &str = "[Unit]\nBefore=kubelet.service\n\n[Service]\nType=oneshot\nTimeoutStartSec=60\nExecStart=/usr/local/bin/x a\n\n\
                        [Install]\nWantedBy=kubelet-dependencies.target\n";
    let check = |name: &str, text: String, expected: &str| {
        let files = [("/usr/local/bin/x", 0o755), ("/usr/local/bin/text", 0o644)];
        let files = files.into_iter().map(|(path, mode)| (path.to_owned(), (String::new(), mode))).collect();
        let other = "[Unit]\nAfter=kubelet.service\n[Service]\nType=oneshot\nTimeoutStartSec=1\nExecStart=/bin/true\n[Install]\nWantedBy=multi-user.target\n";
        let units = [("other.service".to_owned(), other.to_owned()), (name.to_owned(), text)].into();
        let found = faults(&NodeFiles { name: "node".to_owned(), files, units }).join("\n");
        assert!(if expected.is_empty() { found.is_empty() } else { found.contains(expected) }, "{expected}: {found}");
    };
    check("x.service", UNIT.to_owned(), "");
    for (from, to, expected) in [
        ("Type=", "Typ=", "systemd knows no such line in [Service]: Typ=oneshot"),
        ("[Install]", "[Instal]", "section [Instal] has no place here"),
        ("60", "61", "TimeoutStartSec= must be 1 to 60 seconds"),
        ("60", "infinity", "TimeoutStartSec= must be"),
        ("TimeoutStartSec=60\n", "", "TimeoutStartSec= must be"),
        ("WantedBy", "RequiredBy", "its failure keeps other units from starting"),
        ("WantedBy=kubelet-dependencies.target\n", "", "nothing starts it"),
        ("[Service]", "Conflicts=a.service\n[Service]", "it stops other units"),
        ("[Service]", "FailureAction=reboot\n[Service]", "it can restart the node"),
        ("[Service]", "After=kubelet.service\n[Service]", "waits for what comes later"),
        ("[Service]", "After=other.service\n[Service]", "waits for what comes later"),
        ("oneshot", "simple", "something that does not end"),
        ("/bin/x", "/bin/y", "\"/usr/local/bin/y\" is no program"),
        ("/bin/x", "/bin/text", "\"/usr/local/bin/text\" is no program"),
        ("/usr/local/bin/x", "x", "\"x\" is no program"),
        ("ExecStart=/usr/local/bin/x a\n", "", "there is no ExecStart="),
    ] {
        assert!(UNIT.contains(from), "{from}");
        check("x.service", UNIT.replacen(from, to, 1), expected);
    }
    let daemon = UNIT.replace("Before=kubelet.service\n", "").replace("kubelet-dependencies.target", AFTER_THE_KUBELET);
    check("x.service", daemon.replace("oneshot\nTimeoutStartSec", "simple\nTimeoutStopSec"), "");
    check("x.service", daemon.replace("oneshot", "simple"), "TimeoutStopSec= must be 1 to 150 seconds");
    check("x.service", daemon.replace("60", "151"), "TimeoutStartSec= must be 1 to 150 seconds");
    check("kubelet.service.d/10.conf", "[Unit]\nRequires=x.service\n".to_owned(), "section [Unit] has no place here");
    check("a.slice.d/10.conf", "[Slice]\nMemorySwapMax=0\n".to_owned(), "");
}

fn write(root: &Path, path: &str, text: &str, mode: u32) {
    let path = root.join(path.trim_start_matches('/'));
    std::fs::create_dir_all(path.parent().unwrap()).unwrap();
    std::fs::write(&path, text).unwrap();
    std::fs::set_permissions(&path, PermissionsExt::from_mode(mode)).unwrap();
}

/// Says something that is seen without `--nocapture`, unlike what macros print.
fn say(text: &str) {
    std::io::stderr().write_all(format!("{text}\n").as_bytes()).unwrap();
}

#[test]
fn systemd_finds_nothing_wrong_with_the_units() {
    let help = Command::new("systemd-analyze").arg("--help").output();
    if !help.is_ok_and(|output| String::from_utf8_lossy(&output.stdout).contains("--recursive-errors")) {
        return say("systemd units: no systemd-analyze 250 or newer is installed, only our own check ran");
    }
    let root = tempfile::tempdir().unwrap();
    let mut units = BTreeMap::new();
    for node in node_files::all() {
        for (path, (text, mode)) in &node.files {
            write(root.path(), path, text, u32::try_from(*mode).unwrap());
        }
        for (name, text) in node.units {
            write(root.path(), &format!("etc/systemd/system/{name}"), &text, 0o644);
            for program in programs(&read(&text, &[], &mut Vec::new())) {
                if HOST_PROGRAMS.iter().any(|folder| program.starts_with(folder)) {
                    write(root.path(), program, "", 0o755);
                }
            }
            let unit = name.split_once(".d/").map_or(name.as_str(), |(unit, _)| unit).to_owned();
            if let Some(other) = units.insert(name.clone(), (unit, text.clone())) {
                assert_eq!(other.1, text, "two MachineConfigs have another {name}");
            }
        }
    }
    write(root.path(), "usr/lib/systemd/system/sysinit.target", "[Unit]\nDescription=a stand-in\n", 0o644);
    let names: BTreeSet<String> = units.into_values().map(|(unit, _)| unit).collect();
    let mut command = Command::new("systemd-analyze");
    command.args(["verify", "--man=no"]).arg(format!("--root={}", root.path().display())).args(&names);
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned()).concat();
    assert!(output.status.success() && text.is_empty(), "systemd-analyze verify: {}\n{text}", output.status);
    say(&format!("systemd units: systemd-analyze verified {} units, and our own check ran", names.len()));
}
