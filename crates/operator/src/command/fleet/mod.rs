//! `fleet`: shows and explains the machines of the fleet, and checks its hypervisors.

mod check;
mod convert;
pub(crate) mod explain;
mod list;
mod templates;

use super::Format;
use super::value::namespace;
use cluster::{Failure, KubeconfigContext, Server, Timeouts};
use fleet::object::fleet_kind;
use protocol::Served;
use serde_json::Value;
use std::path::PathBuf;
use std::process::ExitCode;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    #[command(subcommand)]
    command: Command,
}

#[derive(clap::Subcommand)]
enum Command {
    /// List claims with their machines, and pools
    List(Selection),
    /// Explain why a claim or a pool is as it is, and what would unblock it
    Explain(explain::Arguments),
    /// Convert manifests of the predecessor's group hypervisor.hyperfleet.io, and say what is not carried over
    Convert(convert::Arguments),
    /// Log in to each hypervisor from here with the credentials of its HypervisorCluster, and say what is missing and how to fix it
    Check(Selection),
}

/// The API server to ask.
#[derive(clap::Args)]
struct Connection {
    /// The kubeconfig file; by default $KUBECONFIG or ~/.kube/config
    #[arg(long, value_name = "FILE")]
    kubeconfig: Option<PathBuf>,
    /// The context of the kubeconfig; by default its current one
    #[arg(long, value_name = "NAME")]
    context: Option<String>,
}

impl Connection {
    async fn connect(&self) -> anyhow::Result<Server> {
        let chosen = KubeconfigContext { file: self.kubeconfig.as_deref(), context: self.context.as_deref() };
        Ok(cluster::connect(chosen, Timeouts::default(), fleet::IDENTITY).await?)
    }
}

#[derive(clap::Args)]
struct Selection {
    #[command(flatten)]
    connection: Connection,
    /// Only this namespace; by default all
    #[arg(long, short, value_parser = namespace)]
    namespace: Option<String>,
    /// Output format
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
}

impl Selection {
    async fn connect(&self) -> anyhow::Result<Server> {
        self.connection.connect().await
    }

    /// All objects of a kind of the fleet, by namespace and name.
    async fn read(&self, server: &Server, kind: &str, plural: &str) -> anyhow::Result<Vec<Value>> {
        list_kind(server, kind, plural, self.namespace.as_deref().unwrap_or_default()).await
    }
}

/// All objects of a kind of the fleet in a namespace or, without one, in all of them, by namespace and name.
async fn list_kind(server: &Server, kind: &str, plural: &str, namespace: &str) -> anyhow::Result<Vec<Value>> {
    try_to_list(server, kind, plural, namespace).await.map_err(|failure| unlisted(server, plural, &failure))
}

/// The same, for somebody who may go on without it.
async fn try_to_list(server: &Server, kind: &str, plural: &str, namespace: &str) -> Result<Vec<Value>, Failure> {
    let served = Served::at(fleet_kind(kind), plural, true);
    let mut found = cluster::list::whole(server, &served, namespace).await?;
    found.sort_by_key(|object| (text(&object["metadata"]["namespace"]), text(&object["metadata"]["name"])));
    Ok(found)
}

/// Why objects could not be listed.
fn unlisted(server: &Server, plural: &str, failure: &Failure) -> anyhow::Error {
    let hint = match failure.is_not_found() {
        true => "; install the fleet with: virtpilot manifests --products fleet",
        false => "",
    };
    anyhow::anyhow!("{failure}{hint}").context(format!("could not list {plural} at {}", server.address))
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    match &arguments.command {
        Command::List(selection) => list::run(selection),
        Command::Check(selection) => check::run(selection),
        Command::Convert(arguments) => convert::run(arguments).map(|()| ExitCode::SUCCESS),
        Command::Explain(arguments) => explain::run(arguments).map(|()| ExitCode::SUCCESS),
    }
}

/// A text of somebody else, fit for a terminal.
fn text(value: &Value) -> String {
    match value {
        Value::String(text) => super::wrap::plain(text),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

/// The Ready condition of a status.
fn ready(object: &Value) -> &Value {
    let conditions = object["status"]["conditions"].as_array().into_iter().flatten();
    conditions.into_iter().find(|condition| condition["type"] == "Ready").unwrap_or(&Value::Null)
}
