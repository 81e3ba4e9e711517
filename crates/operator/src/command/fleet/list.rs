//! `fleet list`: claims with their machines, and pools.

use super::{Selection, ready, text};
use crate::command::table::table;
use crate::command::target::on_runtime;
use crate::command::{Format, print};
use serde_json::{Value, json};
use std::process::ExitCode;

pub(super) fn run(selection: &Selection) -> anyhow::Result<ExitCode> {
    let (claims, pools) = on_runtime(async {
        let server = selection.connect().await?;
        let claims = selection.read(&server, "MachineClaim", "machineclaims").await?;
        Ok((claims, selection.read(&server, "RunnerPool", "runnerpools").await?))
    })?;
    print(&match selection.output {
        Format::Json => format!("{:#}\n", json!({"claims": claims, "pools": pools})),
        Format::Text => shown(&claims, &pools),
    })?;
    Ok(ExitCode::SUCCESS)
}

fn shown(claims: &[Value], pools: &[Value]) -> String {
    if claims.is_empty() && pools.is_empty() {
        return "there are no claims and no pools\n".to_owned();
    }
    let header = ["CLAIM", "PHASE", "MACHINE", "NODE", "ADDRESS", "POOL", "WHY"];
    let mut shown = String::new();
    if !claims.is_empty() {
        shown.push_str(&table(header, &claims.iter().map(claim).collect::<Vec<_>>()));
    }
    if !pools.is_empty() {
        let gap = if claims.is_empty() { "" } else { "\n" };
        let pools: Vec<_> = pools.iter().map(pool).collect();
        shown.push_str(&format!("{gap}{}", table(["POOL", "WANTED", "MACHINES", "READY", "WHY"], &pools)));
    }
    shown
}

fn name(object: &Value) -> String {
    format!("{}/{}", text(&object["metadata"]["namespace"]), text(&object["metadata"]["name"]))
}

fn claim(object: &Value) -> [String; 7] {
    let status = &object["status"];
    // A claim that is ready needs no reason.
    let why = if status["phase"] == "Ready" { String::new() } else { text(&ready(object)["message"]) };
    [
        name(object),
        text(&status["phase"]),
        text(&status["vmRef"]["vmId"]),
        text(&status["vmRef"]["node"]),
        text(&status["networkInfo"]["ipAddress"]),
        text(&object["spec"]["runnerPoolRef"]["name"]),
        why,
    ]
}

fn pool(object: &Value) -> [String; 5] {
    let status = &object["status"];
    let number = |field: &str| status[field].as_i64().unwrap_or_default().to_string();
    let why = text(&ready(object)["message"]);
    [name(object), number("desiredReplicas"), number("replicas"), number("readyReplicas"), why]
}

#[cfg(test)]
mod tests {
    use super::shown;
    use serde_json::json;

    #[test]
    fn claims_and_pools_are_two_tables() {
        let conditions = json!([{"type": "Ready", "message": "creating machine 100001"}]);
        let claims = [
            json!({
                "metadata": {"namespace": "ci", "name": "a"}, "spec": {"runnerPoolRef": {"name": "linux"}},
                "status": {
                    "phase": "Ready", "vmRef": {"vmId": "100000", "node": "pve1"}, "conditions": conditions,
                    "networkInfo": {"ipAddress": "192.0.2.7"},
                },
            }),
            json!({"metadata": {"namespace": "ci", "name": "b"}, "status": {"phase": "Provisioning", "conditions": conditions}}),
        ];
        let pools = [
            json!({"metadata": {"namespace": "ci", "name": "linux"}, "status": {"desiredReplicas": 2, "replicas": 1}}),
        ];
        let text = shown(&claims, &pools);
        let lines: Vec<String> =
            text.lines().map(|line| line.split_whitespace().collect::<Vec<_>>().join(" ")).collect();
        assert_eq!(
            lines,
            [
                "CLAIM PHASE MACHINE NODE ADDRESS POOL WHY",
                "ci/a Ready 100000 pve1 192.0.2.7 linux",
                "ci/b Provisioning creating machine 100001",
                "",
                "POOL WANTED MACHINES READY WHY",
                "ci/linux 2 1 0",
            ]
        );
        assert_eq!(shown(&[], &[]), "there are no claims and no pools\n");
    }
}
