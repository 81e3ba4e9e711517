//! What would unblock a claim.

use super::{Facts, Gate, cluster_of, condition};
use api::fleet::{ClaimPhase, FORCE_DELETE, Truth};

/// The next step, or nothing if waiting is enough.
pub(super) fn next(facts: &Facts<'_>, reason: &str, message: &str, gates: &[Gate]) -> String {
    let claim = facts.claim;
    let (namespace, name) = (&claim.name.namespace, &claim.name.name);
    let cluster = cluster_of(claim, facts.template).map(|cluster| cluster.to_string()).unwrap_or_default();
    let template = &claim.spec.template_ref.name;
    if claim.status.phase.is_none() {
        return "check that the fleet runs: kubectl get deployments --all-namespaces --selector app=virtpilot-fleet"
            .to_owned();
    }
    if claim.status.phase == Some(ClaimPhase::Failed) {
        let replaced =
            if facts.pool.is_some() { " (its pool has replaced it, and keeps it for inspection)" } else { "" };
        if reason == "OwnerRecordMissing" {
            return message.to_owned();
        }
        return format!(
            "a failed claim stays failed{replaced}: kubectl delete machineclaim {name} --namespace {namespace}"
        );
    }
    let decides = gates.iter().find(|gate| gate.decides).map(|gate| gate.name);
    match reason {
        "ClusterNotReady" => match of_cluster(facts) {
            Some((Truth::True, _)) => {
                format!("the HypervisorCluster {cluster} is ready now: the claim goes on by itself")
            }
            Some((_, why)) => {
                format!("make the HypervisorCluster {cluster} ready: {why}; \"virtpilot fleet check\" tells more")
            }
            None => format!("wait until the HypervisorCluster {cluster} was checked"),
        },
        "ClusterNotFound" => format!("create the HypervisorCluster {cluster}"),
        "TemplateNotFound" if facts.template.is_none() => {
            format!("create the HypervisorMachineTemplate {template} in the namespace {namespace}")
        }
        "TemplateNotFound" | "TemplateInvalid" => {
            format!("correct the HypervisorMachineTemplate {template}, or what it names on {cluster}")
        }
        "TemplateDeleting" => "delete the claim, and make another one with a template that stays".to_owned(),
        "LimitReached" => format!("delete claims, or raise limits.machines of the HypervisorCluster {cluster}"),
        "InsufficientResources" => {
            format!(
                "wait until machines end; or free room on {cluster}, raise its overcommit, or make the template smaller"
            )
        }
        "NoFreeId" => format!("widen vmIds of the HypervisorCluster {cluster}, or delete claims"),
        "WaitingForGuest" => format!(
            "nothing, if the guest still boots; otherwise install qemu-guest-agent in the template and check that {cluster} gives it a \
             network with DHCP, or set readiness.signal: Running"
        ),
        "WaitingForCloudInit" => {
            "nothing, while cloud-init works; its log in the guest is /var/log/cloud-init.log".to_owned()
        }
        "Standby" if facts.pool.is_some() => "nothing: its pool starts it when it is needed".to_owned(),
        "Standby" => "set spec.power to Running".to_owned(),
        "ConfigurationError" | "OwnerRecordMissing" => message.to_owned(),
        "ProvisioningStuck" => format!(
            "look at {cluster} (\"virtpilot fleet check\"); or give up: kubectl delete machineclaim {name} --namespace {namespace}"
        ),
        "Retrying" => "nothing: it is tried again".to_owned(),
        "CleanupFailed" | "CleanupStuck" => format!(
            "let {cluster} answer; or remove the machine by hand, and then: kubectl annotate machineclaim {name} --namespace \
             {namespace} {FORCE_DELETE}=true"
        ),
        "Busy" => "nothing: it ends when the annotation hyperfleet.io/busy is removed".to_owned(),
        _ if decides == Some("hypervisor ready") => {
            format!("make the HypervisorCluster {cluster} ready; \"virtpilot fleet check\" says what is missing")
        }
        _ => String::new(),
    }
}

/// Whether the hypervisor is ready, and why.
fn of_cluster<'a>(facts: &Facts<'a>) -> Option<(Truth, &'a str)> {
    let ready = condition(&facts.cluster?.status.conditions, "Ready")?;
    Some((ready.status, ready.message.as_str()))
}
