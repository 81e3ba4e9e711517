//! `fleet check`: whether each hypervisor can be used with the credentials that its `HypervisorCluster` names, and what to do if not.

use super::templates::{Templates, Unread};
use super::{Selection, text};
use crate::command::target::on_runtime;
use crate::command::{Format, print};
use crate::fleet::connect_once;
use anyhow::Context;
use api::fleet::{HypervisorCluster, HypervisorMachineTemplate};
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
    /// Where templates may be that use it and could not be read.
    unread: Vec<Unread>,
}

/// Exits with 1 if a hypervisor cannot be used.
pub(super) fn run(selection: &Selection) -> anyhow::Result<ExitCode> {
    let rows = on_runtime(async {
        let server = selection.connect().await?;
        let mut clusters: Vec<HypervisorCluster> = Vec::new();
        for object in selection.read(&server, "HypervisorCluster", "hypervisorclusters").await? {
            let of = format!("{}/{}", text(&object["metadata"]["namespace"]), text(&object["metadata"]["name"]));
            let cluster = serde_json::from_value(object);
            clusters.push(cluster.with_context(|| format!("HypervisorCluster {of} cannot be read"))?);
        }
        let templates = Templates::read(&server, selection.namespace.as_deref(), &clusters).await?;
        let mut rows = Vec::new();
        for cluster in &clusters {
            let metadata = cluster.metadata.clone();
            let (namespace, name) = (metadata.namespace.unwrap_or_default(), metadata.name.unwrap_or_default());
            let key = ClusterKey { namespace, name };
            let row = row(&key, checked(&server, &key, &templates.all).await);
            rows.push(Row { unread: templates.unread(cluster), ..row });
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
    Row { cluster: format!("{}/{}", key.namespace, key.name), version, problems, unread: Vec::new() }
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
    let Row { cluster, version, problems, unread } = row;
    let problem = |problem: &Problem| format!("{cluster}: FAIL: {}\n  fix: {}\n", problem.found, problem.remedy);
    let mut shown: String = problems.iter().map(problem).collect();
    if problems.is_empty() {
        shown = format!("{cluster}: ok (version {version})\n");
    }
    for Unread { namespace, why } in unread {
        let of = if namespace == "*" { "other namespaces".to_owned() } else { format!("the namespace {namespace}") };
        shown.push_str(&format!(
            "{cluster}: note: templates of {of} may use it and could not be read, so that what they need was not checked: {why}\n  \
             fix: ask for the right to list hypervisormachinetemplates there (ClusterRole virtpilot-fleet-viewer)\n"
        ));
    }
    shown
}

#[cfg(test)]
mod tests {
    use super::{Row, Unread, row, shown};
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
        let unread = vec![Unread { namespace: "*".into(), why: "forbidden".into() }];
        let partly = shown(&Row { unread, ..row(&key, Ok(Checked { is_quorate: true, ..Checked::default() })) });
        assert!(
            partly.starts_with("ci/pve: ok (version )\nci/pve: note: templates of other namespaces may use it")
                && partly.contains(": forbidden\n"),
            "{partly}"
        );
    }
}
