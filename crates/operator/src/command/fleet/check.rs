//! `fleet check`: whether each hypervisor can be used with the credentials that its `HypervisorCluster` names, and what to do if not.

use super::{Selection, text};
use crate::command::target::on_runtime;
use crate::command::{Format, print};
use crate::fleet::connect_once;
use api::fleet::HypervisorMachineTemplate;
use cluster::Server;
use fleet::hypervisor::{Answer, Checked, ClusterKey, Failure, Operation, Request};
use serde::Serialize;
use std::process::ExitCode;

/// What is wrong, and how to fix it.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Problem {
    found: String,
    remedy: String,
}

/// One hypervisor.
#[derive(Debug, PartialEq, Eq, Serialize)]
struct Row {
    cluster: String,
    version: String,
    problems: Vec<Problem>,
}

/// Exits with 1 if a hypervisor cannot be used.
pub(super) fn run(selection: &Selection) -> anyhow::Result<ExitCode> {
    let rows = on_runtime(async {
        let server = selection.connect().await?;
        let mut rows = Vec::new();
        let templates = selection.read(&server, "HypervisorMachineTemplate", "hypervisormachinetemplates").await?;
        let templates: Vec<HypervisorMachineTemplate> =
            templates.into_iter().filter_map(|object| serde_json::from_value(object).ok()).collect();
        for object in selection.read(&server, "HypervisorCluster", "hypervisorclusters").await? {
            let metadata = &object["metadata"];
            let key = ClusterKey { namespace: text(&metadata["namespace"]), name: text(&metadata["name"]) };
            rows.push(row(&key, checked(&server, &key, &templates).await));
        }
        Ok(rows)
    })?;
    print(&match selection.output {
        Format::Json => format!("{}\n", serde_json::to_string_pretty(&rows)?),
        Format::Text if rows.is_empty() => "there is no HypervisorCluster\n".to_owned(),
        Format::Text => rows.iter().map(shown).collect::<String>(),
    })?;
    let is_good = rows.iter().all(|row| row.problems.is_empty());
    Ok(if is_good { ExitCode::SUCCESS } else { ExitCode::FAILURE })
}

async fn checked(
    server: &Server,
    key: &ClusterKey,
    templates: &[HypervisorMachineTemplate],
) -> Result<Checked, Failure> {
    let hands = connect_once(server, key, templates).await?;
    match hands
        .carry_out(&Request { cluster: key.clone(), endpoint: String::new(), operation: Operation::Check })
        .await?
    {
        Answer::Checked(checked) => Ok(*checked),
        _ => Err(Failure::Transient("the hypervisor answered something else".into())),
    }
}

fn row(key: &ClusterKey, checked: Result<Checked, Failure>) -> Row {
    let mut problems = Vec::new();
    let mut add = |found: String, remedy: String| problems.push(Problem { found, remedy });
    let version = match checked {
        Err(Failure::Configuration { message, remedy }) => {
            add(message, remedy);
            String::new()
        }
        Err(failure) => {
            add(fleet::backoff::message(&failure), "check its endpoint and that this machine reaches it".into());
            String::new()
        }
        Ok(checked) => {
            for problem in fleet::cluster::problems(&checked) {
                let remedy = granting(&problem.found).unwrap_or(problem.remedy);
                add(problem.found, remedy);
            }
            checked.version
        }
    };
    Row { cluster: format!("{}/{}", key.namespace, key.name), version, problems }
}

/// The command that grants a privilege of Proxmox VE on a path.
fn granting(found: &str) -> Option<String> {
    let (privilege, paths) = found.strip_prefix("missing privilege: ")?.split_once(" on /")?;
    let path = format!("/{}", paths.split(" or ").next().unwrap_or(paths));
    Some(format!(
        "give the user and its API token a role with {privilege} on {path}: pveum acl modify {path} --roles ROLE --users USER, \
         and with --privsep 1 also --tokens TOKEN"
    ))
}

fn shown(row: &Row) -> String {
    let Row { cluster, version, problems } = row;
    if problems.is_empty() {
        return format!("{cluster}: ok (version {version})\n");
    }
    let problem = |problem: &Problem| format!("{cluster}: FAIL: {}\n  fix: {}\n", problem.found, problem.remedy);
    problems.iter().map(problem).collect()
}

#[cfg(test)]
mod tests {
    use super::{row, shown};
    use fleet::hypervisor::{Checked, ClusterKey, Failure};

    #[test]
    fn every_problem_has_its_fix() {
        let key = ClusterKey { namespace: "ci".into(), name: "pve".into() };
        let good = Checked { version: "9.2".into(), is_quorate: true, ..Checked::default() };
        assert_eq!(shown(&row(&key, Ok(good.clone()))), "ci/pve: ok (version 9.2)\n");
        let missing = vec!["VM.Clone on /vms/9000".into()];
        let lacking = shown(&row(&key, Ok(Checked { missing, unknown: vec!["node pve4".into()], ..good })));
        assert!(lacking.starts_with("ci/pve: FAIL: missing privilege: VM.Clone on /vms/9000\n  fix: "), "{lacking}");
        assert!(
            lacking.contains("pveum acl modify /vms/9000 --roles ROLE") && lacking.contains("no node pve4"),
            "{lacking}"
        );
        let late = shown(&row(&key, Ok(Checked { clock_ahead: 400, is_quorate: true, ..Checked::default() })));
        assert_eq!(late, "ci/pve: FAIL: the clocks differ by 400 s\n  fix: synchronise them with NTP\n");
        let refused = Failure::Configuration { message: "wrong token".into(), remedy: "create another".into() };
        assert_eq!(shown(&row(&key, Err(refused))), "ci/pve: FAIL: wrong token\n  fix: create another\n");
    }
}
