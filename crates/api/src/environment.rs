//! The one table each of environment variables and exit codes, from which the reference pages are made.

/// An environment variable that is read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Variable {
    /// Its name.
    pub name: &'static str,
    /// The commands that read it.
    pub commands: &'static str,
    /// What it does.
    pub meaning: &'static str,
}

const fn variable(name: &'static str, commands: &'static str, meaning: &'static str) -> Variable {
    Variable { name, commands, meaning }
}

const ALL: &str = "all that reach a cluster";
const RUN: &str = "run";

/// The environment variables that are read.
pub const VARIABLES: [Variable; 23] = [
    variable(
        "KUBECONFIG",
        ALL,
        "kubeconfig files, with a colon between them; without it `~/.kube/config`, or the account of the pod",
    ),
    variable("HOME", ALL, "where `.kube/config` is"),
    variable(
        "HTTPS_PROXY",
        ALL,
        "the proxy to the API server, such as http://proxy.example.com:3128, if the kubeconfig names none",
    ),
    variable(
        "NO_PROXY",
        ALL,
        "servers that are reached without that proxy, comma-separated; so are those on this machine",
    ),
    variable("NO_COLOR", "all", "any value: no colours"),
    variable(
        "LOG_LEVEL",
        RUN,
        "off, error, warn, info, debug or trace, and other levels for parts, such as info,kube=debug",
    ),
    variable("LOG_FORMAT", RUN, "text or json, as `--log-format`"),
    variable("POD_NAME", RUN, "the name under which this replica leads; without it `HOSTNAME`"),
    variable("HOSTNAME", RUN, "the same where `POD_NAME` is not set"),
    variable("POD_IP", RUN, "the address of the pod, to which other replicas of the fleet pass on webhooks and guests"),
    variable("METRICS_SECURE", RUN, "as `--metrics-secure`"),
    variable("METRICS_CERT_PATH", RUN, "as `--metrics-cert-path`"),
    variable("WEBHOOK_BIND_ADDRESS", RUN, "as `--webhook-bind-address`"),
    variable("WEBHOOK_CERT_PATH", RUN, "as `--webhook-cert-path`"),
    variable("BOOTSTRAP_BIND_ADDRESS", RUN, "as `--bootstrap-bind-address`"),
    variable("BOOTSTRAP_ADDRESS", RUN, "as `--bootstrap-address`: without it no runner is started"),
    variable("RELATED_IMAGE_*", "run, and all that evaluate a cluster", "images of what the catalogue deploys"),
    variable(
        "KUBERNETES_SERVICE_HOST",
        "all",
        "set in pods: the command line of the predecessor, without `run`, is accepted there",
    ),
    variable("OTEL_EXPORTER_OTLP_ENDPOINT", RUN, "where traces are sent, as `--otlp-endpoint`"),
    variable("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", RUN, "the same with the whole path"),
    variable("OTEL_EXPORTER_OTLP_HEADERS", RUN, "headers for it, such as api-key=value"),
    variable("OTEL_SERVICE_NAME", RUN, "the name of the service in traces"),
    variable("OTEL_SDK_DISABLED", RUN, "true: no traces"),
];

/// How a command may end.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Exit {
    /// The command.
    pub command: &'static str,
    /// The code.
    pub code: u8,
    /// What it means.
    pub meaning: &'static str,
}

const fn exit(command: &'static str, code: u8, meaning: &'static str) -> Exit {
    Exit { command, code, meaning }
}

/// Every exit code.
pub const EXITS: [Exit; 21] = [
    exit("every command", 0, "it did what was asked"),
    exit("every command", 1, "it did not; standard error has one line that says why"),
    exit("plan", 0, "nothing to do; objects may be held until a person changes something"),
    exit("plan", 2, "changes are pending"),
    exit("plan", 1, "there is no plan, or objects in it failed"),
    exit("plan show", 0, "nothing to do: the plan is applied, or the profile is ignored"),
    exit("plan show", 2, "changes are pending: they wait for an approval, or are being applied"),
    exit("plan show", 1, "there is no such profile, or something failed or is missing"),
    exit("status --exit-code", 1, "something failed, is invalid, in conflict or suspended"),
    exit("status --exit-code", 2, "something is pending, or not known"),
    exit("approve", 0, "everything named is approved (with `--revoke`: revoked), or was shown with `--dry-run`"),
    exit(
        "approve",
        1,
        "a refusal, or the answer was no: nothing is approved; with `--revoke` also: a change was already made",
    ),
    exit("check", 1, "a row is FAIL: something has to be repaired"),
    exit(
        "fleet check",
        1,
        "a hypervisor cannot be reached or used; standard output says what is missing and how to fix it",
    ),
    exit("queue", 1, "there is no queue that can be read: the fleet runs no jobs, or a right is missing"),
    exit("queue --exit-code", 2, "a job that is shown waits"),
    exit("explain job", 1, "the fleet knows no such job, or there is no queue that can be read"),
    exit("lint", 1, "something is wrong with a file"),
    exit("handback", 1, "some objects are not handed back; run it again"),
    exit("render", 1, "an asset could not be rendered"),
    exit("run", 1, "the lease was lost, or something that it needs cannot be used; Kubernetes starts it again"),
];

#[cfg(test)]
mod tests {
    use super::VARIABLES;
    use std::collections::BTreeSet;

    #[test]
    fn every_variable_is_listed_once() {
        let names: BTreeSet<&str> = VARIABLES.iter().map(|variable| variable.name).collect();
        assert_eq!(names.len(), VARIABLES.len());
    }
}
