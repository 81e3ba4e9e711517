//! `fleet explain` and `explain machine`: why a claim or a pool is as it is, from what the API server has.

use super::Connection;
use crate::command::target::on_runtime;
use crate::command::value::namespace;
use crate::command::{Format, print, table, wrap};
use anyhow::{Context, bail};
use autopilot::nearest::{nearest, question};
use change::{Key, Kind};
use cluster::{Server, list, live};
use fleet::explain::{Explanation, Facts, Happened, PoolFacts, cluster_of, happened, lines, read_object};
use fleet::machine::Claim;
use fleet::object::{Name, fleet_kind};
use protocol::Served;
use serde::de::DeserializeOwned;
use serde_json::Value;

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// A MachineClaim, or pool/NAME for a RunnerPool
    #[arg(value_name = "NAME|pool/NAME")]
    name: String,
    /// The namespace; by default the only one that has an object of this name
    #[arg(long, short, value_parser = namespace)]
    namespace: Option<String>,
    #[command(flatten)]
    connection: Connection,
    /// Output format
    #[arg(long, short, value_enum, default_value_t)]
    output: Format,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let explanation = on_runtime(async {
        let server = arguments.connection.connect().await?;
        let space = arguments.namespace.as_deref();
        match arguments.name.split_once('/') {
            None => explain_claim(&server, space, &arguments.name).await,
            Some(("machine" | "machineclaim" | "mclaim", name)) => explain_claim(&server, space, name).await,
            Some(("pool" | "runnerpool" | "rp", name)) => explain_pool(&server, space, name).await,
            Some((kind, _)) => bail!("{kind:?} is not explained; name a MachineClaim, or a RunnerPool as pool/NAME"),
        }
    })?;
    print(&match arguments.output {
        Format::Json => format!("{}\n", serde_json::to_string_pretty(&explanation)?),
        Format::Text => shown(&explanation, table::terminal_width()),
    })
}

fn shown(explanation: &Explanation, terminal: Option<usize>) -> String {
    let line = |line: fleet::explain::Line| match line.text.is_empty() {
        true => format!("{}\n", line.start.trim_end()),
        false => wrap::hanging(&line.start, &wrap::plain(&line.text), terminal),
    };
    lines(explanation).into_iter().map(line).collect()
}

async fn explain_claim(server: &Server, space: Option<&str>, name: &str) -> anyhow::Result<Explanation> {
    let claims = super::list_kind(server, "MachineClaim", "machineclaims", space.unwrap_or_default()).await?;
    let found = one(&claims, space, name, "MachineClaim")?.clone();
    let claim: Claim = read("MachineClaim", found)?;
    let template = claim.name.beside(None, &claim.spec.template_ref.name);
    let template = optional(server, "HypervisorMachineTemplate", "hypervisormachinetemplates", &template).await?;
    let cluster_name = cluster_of(&claim, template.as_ref());
    let cluster: Option<fleet::cluster::Cluster> = match &cluster_name {
        Some(name) => optional(server, "HypervisorCluster", "hypervisorclusters", name).await?,
        None => None,
    };
    let pool = match &claim.spec.runner_pool_ref {
        Some(pool) => optional(server, "RunnerPool", "runnerpools", &claim.name.beside(None, &pool.name)).await?,
        None => None,
    };
    let machines = cluster.as_ref().and_then(|cluster| cluster.status.machines).unwrap_or_default();
    let machines = usize::try_from(machines).unwrap_or_default();
    let events = events(server, &claim).await;
    let (template, cluster, pool) = (template.as_ref(), cluster.as_ref(), pool.as_ref());
    let now = jiff::Timestamp::now();
    Ok(fleet::explain::claim(&Facts { claim: &claim, template, cluster, pool, machines, events: &events, now }))
}

async fn explain_pool(server: &Server, space: Option<&str>, name: &str) -> anyhow::Result<Explanation> {
    let pools = super::list_kind(server, "RunnerPool", "runnerpools", space.unwrap_or_default()).await?;
    let pool: fleet::pool::Pool = read("RunnerPool", one(&pools, space, name, "RunnerPool")?.clone())?;
    let template = pool.name.beside(None, &pool.spec.template_ref.name);
    let template = optional(server, "HypervisorMachineTemplate", "hypervisormachinetemplates", &template).await?;
    let all = super::list_kind(server, "MachineClaim", "machineclaims", &pool.name.namespace).await?;
    let mut claims = Vec::new();
    for claim in all.into_iter().filter(|claim| claim["spec"]["runnerPoolRef"]["name"] == *pool.name.name) {
        claims.push(read("MachineClaim", claim)?);
    }
    let now = jiff::Timestamp::now();
    Ok(fleet::explain::pool(&PoolFacts { pool: &pool, claims: &claims, template: template.as_ref(), now }))
}

/// The only object of a name, in this namespace or in all of them.
fn one<'a>(all: &'a [Value], space: Option<&str>, name: &str, kind: &str) -> anyhow::Result<&'a Value> {
    let is_in = |object: &&Value| space.is_none_or(|space| metadata(object, "namespace") == space);
    let found: Vec<&Value> = all.iter().filter(is_in).filter(|object| metadata(object, "name") == name).collect();
    match found.as_slice() {
        [only] => Ok(only),
        [] => {
            let names = all.iter().filter(is_in).map(|object| metadata(object, "name"));
            let nearest = question(&nearest(name, names));
            let place = space.map(|space| format!(" in the namespace {space}")).unwrap_or_default();
            bail!("there is no {kind} {name:?}{place}{nearest}; \"virtpilot fleet list\" lists them")
        }
        several => {
            let spaces: Vec<&str> = several.iter().map(|object| metadata(object, "namespace")).collect();
            bail!("there are several {kind}s {name:?}; add --namespace with one of {}", spaces.join(", "))
        }
    }
}

fn metadata<'a>(object: &'a Value, field: &str) -> &'a str {
    object["metadata"][field].as_str().unwrap_or_default()
}

fn read<S, T>(kind: &str, object: Value) -> anyhow::Result<fleet::object::Object<S, T>>
where
    S: DeserializeOwned,
    T: DeserializeOwned + Default,
{
    read_object(object)
        .map_err(|why| anyhow::anyhow!("the {kind} cannot be read: {why}; use the virtpilot of the fleet's version"))
}

async fn optional<S, T>(
    server: &Server,
    kind: &str,
    plural: &str,
    name: &Name,
) -> anyhow::Result<Option<fleet::object::Object<S, T>>>
where
    S: DeserializeOwned,
    T: DeserializeOwned + Default,
{
    let served = Served::at(fleet_kind(kind), plural, true);
    let found = live::whole(server, &served, &name.key(kind)).await;
    let found = found
        .map_err(|failure| anyhow::anyhow!("{failure}"))
        .with_context(|| format!("could not read {kind} {name}"))?;
    found.map(|object| read(kind, object)).transpose()
}

/// The events about a claim; without the right to read them there are none.
async fn events(server: &Server, claim: &Claim) -> Vec<Happened> {
    let kind = Kind::new("events.k8s.io/v1", "Event");
    let served = Served::at(kind.clone(), "events", true);
    let key = Key { kind, namespace: claim.name.namespace.to_string(), name: String::new() };
    let found = list::whole(server, &served, &key.namespace).await.unwrap_or_default();
    found.iter().filter_map(|event| happened(event, &claim.uid)).collect()
}

#[cfg(test)]
mod tests {
    use super::one;
    use serde_json::json;

    #[test]
    fn a_name_is_looked_for_everywhere_and_has_to_be_the_only_one() {
        let object = |space: &str, name: &str| json!({"metadata": {"namespace": space, "name": name}});
        let all = [object("ci", "one"), object("dev", "one"), object("dev", "two")];
        assert_eq!(one(&all, None, "two", "MachineClaim").unwrap(), &all[2]);
        assert_eq!(one(&all, Some("ci"), "one", "MachineClaim").unwrap(), &all[0]);
        let wrong = |space: Option<&str>, name: &str| one(&all, space, name, "MachineClaim").unwrap_err().to_string();
        assert!(wrong(None, "one").contains("add --namespace with one of ci, dev"), "{}", wrong(None, "one"));
        assert!(wrong(Some("ci"), "two").contains("there is no MachineClaim \"two\" in the namespace ci"));
    }
}
