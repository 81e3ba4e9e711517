//! `rollback`: an object as it was before the autopilot took it over.

use super::print;
use super::target::{Reached, Target};
use anyhow::{Context, bail};
use change::{Effect, Impact, Key, Kind, backup};
use cluster::{list, live};
use protocol::{Served, WriteError};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// An operator may have decided before it saw the exclusion; what it began is over by then.
const WATCHED: Duration = Duration::from_secs(2);
/// How often it is looked at meanwhile.
const LOOK: Duration = Duration::from_millis(100);
/// One write on the way is undone with one more; whoever writes more often than this is not an operator that was told to stop.
const TIMES: usize = 5;

/// The field manager of a person's rollback: what it changes is not the autopilot's.
const ROLLBACK: &str = "virtpilot-rollback";

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The object's kind, such as ConfigMap, or KubeletConfig.machineconfiguration.openshift.io
    #[arg(required_unless_present = "list", requires = "name")]
    kind: Option<String>,
    /// The object's name
    #[arg(required_unless_present = "list")]
    name: Option<String>,
    /// The object's namespace, where there are backups from several
    #[arg(long, value_name = "NAMESPACE")]
    object_namespace: Option<String>,
    /// The backup, by the name of its Secret; by default the newest
    #[arg(long, value_name = "SECRET", conflicts_with = "list")]
    to: Option<String>,
    /// Only show which backups there are
    #[arg(long)]
    list: bool,
    #[command(flatten)]
    target: Target,
}

/// Fits backups by what was typed.
struct Asked<'a> {
    kind: Option<&'a str>,
    name: Option<&'a str>,
    namespace: Option<&'a str>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let asked = Asked {
        kind: arguments.kind.as_deref(),
        name: arguments.name.as_deref(),
        namespace: arguments.object_namespace.as_deref(),
    };
    arguments.target.with(async |reached| {
        let (namespace, secrets) = (&reached.key.namespace, secrets(&reached)?);
        let all = list::metadata(&reached.server, &secrets, namespace, api::BACKUP_OF).await;
        let all = all.with_context(|| format!("could not list the Secrets of namespace {namespace}"))?;
        let found = asked.among(all.clone());
        if arguments.list {
            return print(&table(&found));
        }
        let key = asked.one(&found, &all)?;
        let chosen = match &arguments.to {
            None => found.first().map(name),
            Some(wanted) => found.iter().map(name).find(|name| name == wanted),
        };
        let Some(chosen) = chosen else {
            let names: Vec<String> = found.iter().map(name).collect();
            bail!(
                "{} is no backup of {key}\n  fix: choose one of {}",
                arguments.to.as_deref().unwrap_or_default(),
                names.join(", ")
            );
        };
        let secret = Key { kind: Kind::new("v1", "Secret"), namespace: namespace.clone(), name: chosen };
        let read = live::whole(&reached.server, &secrets, &secret).await;
        let read =
            read.with_context(|| format!("could not read {secret}"))?.with_context(|| format!("{secret} is gone"))?;
        let before = backup::object(&read).with_context(|| format!("{secret} does not hold a backup of {key}"))?;
        roll_back(&reached, &key, before, &read, &secret).await
    })
}

async fn roll_back(
    reached: &Reached,
    key: &Key,
    mut before: Value,
    backup: &Value,
    secret: &Key,
) -> anyhow::Result<()> {
    let served = reached.kinds.find(&key.kind);
    let served = served.with_context(|| {
        format!("this cluster does not serve {} {} any more", key.kind.api_version(), key.kind.kind)
    })?;
    // First of all: else what is restored would be changed again at once.
    let add = |text: Option<&str>| {
        autopilot::exclude(text, key).map_err(|why| {
            anyhow::anyhow!(
                "{why}; nothing was done\n  fix: correct the annotation {} of {}",
                api::annotation::DISABLED_RESOURCES,
                reached.key
            )
        })
    };
    let is_new = reached.annotate(api::annotation::DISABLED_RESOURCES, add).await?;
    print(&match is_new {
        true => format!("excluded {key}: the autopilot leaves it alone from now on\n"),
        false => format!("{key} was excluded before\n"),
    })?;
    if key.is_same_object(&reached.key) {
        // What users steer with stands on it, its own exclusion among that: it is not for us to take back.
        let now = live::whole(&reached.server, &reached.served, key).await?.unwrap_or_default();
        let is_theirs =
            |name: &str| name.starts_with(api::annotation::PREFIX) && !api::annotation::OURS.contains(&name);
        if let Some(annotations) = before["metadata"]["annotations"].as_object_mut() {
            annotations.retain(|name, _| !is_theirs(name));
        }
        for (name, value) in now["metadata"]["annotations"].as_object().into_iter().flatten() {
            if is_theirs(name) {
                before["metadata"]["annotations"][name] = value.clone();
            }
        }
    }
    if Impact::implied_by(&key.kind.group, &key.kind.kind) == Impact::High {
        print("the nodes of its pool restart, unless they run this already\n")?;
    }
    let times = restore(reached, &served, key, &before).await?;
    let taken = backup["metadata"]["creationTimestamp"].as_str().unwrap_or_default();
    print(&match times {
        0 => format!("{key} is as it was at {taken}; nothing was written\n"),
        1 => format!("restored {key} as it was at {taken} ({secret})\n"),
        _ => format!("restored {key} as it was at {taken} ({secret}); it was changed meanwhile, so {times} times\n"),
    })?;
    print(&format!(
        "to let the autopilot keep it again, remove its rule from the annotation {} of {}\n",
        api::annotation::DISABLED_RESOURCES,
        reached.key
    ))
}

/// Writes until it is so and stays so; returns how often it was written.
async fn restore(reached: &Reached, served: &Served, key: &Key, before: &Value) -> anyhow::Result<usize> {
    let (mut times, mut since) = (0, Instant::now());
    loop {
        let live = live::whole(&reached.server, served, key).await.with_context(|| format!("could not read {key}"))?;
        if live.as_ref().is_some_and(|live| backup::is_restored(before, live)) {
            if since.elapsed() >= WATCHED {
                return Ok(times);
            }
            tokio::time::sleep(LOOK).await;
            continue;
        }
        if live.as_ref().is_some_and(|live| live["metadata"].get("deletionTimestamp").is_some()) {
            bail!("{key} is being deleted\n  fix: try again when it is gone");
        }
        if times == TIMES {
            bail!(
                "{key} was restored {TIMES} times and changed again each time\n  fix: find out who changes it; its managedFields tell"
            );
        }
        match write(reached, served, key, before, live.as_ref()).await {
            // It was changed in between: look again.
            Ok(()) | Err(WriteError::Stale(_)) => (times, since) = (times + 1, Instant::now()),
            Err(error) => return Err(error).context("it is excluded, but could not be restored"),
        }
    }
}

/// The content first, then who owns it.
async fn write(
    reached: &Reached,
    served: &Served,
    key: &Key,
    before: &Value,
    live: Option<&Value>,
) -> Result<(), WriteError> {
    let object = backup::restored(before, live);
    let written = match live {
        Some(_) => reached.write(ROLLBACK, served, key, Effect::Replace { object }).await?,
        None => reached.write(api::FIELD_MANAGER, served, key, Effect::Create { object }).await?,
    };
    if let Some(live) = written.live {
        let patch = backup::ownership(before, &live);
        reached.write(api::FIELD_MANAGER, served, key, Effect::PatchOwnership { patch }).await?;
    }
    Ok(())
}

fn secrets(reached: &Reached) -> anyhow::Result<Served> {
    reached.kinds.find(&Kind::new("v1", "Secret")).context("this cluster does not serve Secrets")
}

impl Asked<'_> {
    /// Those that fit, the newest first.
    fn among(&self, mut backups: Vec<Value>) -> Vec<Value> {
        backups.retain(|secret| backup::key(secret).is_some_and(|key| self.fits(&key)));
        backup::newest_first(&mut backups);
        backups
    }

    fn fits(&self, key: &Key) -> bool {
        self.kind.is_none_or(|word| is_called(&key.kind, word))
            && self.name.is_none_or(|name| key.name == name)
            && self.namespace.is_none_or(|namespace| key.namespace == namespace)
    }

    /// The one object that is meant.
    fn one(&self, found: &[Value], all: &[Value]) -> anyhow::Result<Key> {
        let (kind, name) = (self.kind.unwrap_or_default(), self.name.unwrap_or_default());
        let mut keys: Vec<Key> = found.iter().filter_map(backup::key).collect();
        keys.dedup_by(|one, other| one.is_same_object(other));
        let is_one = keys.first().is_some_and(|first| keys.iter().all(|key| key.is_same_object(first)));
        match keys.first() {
            Some(first) if is_one => Ok(first.clone()),
            Some(_) => bail!(
                "there are backups of several objects called {kind} {name}: {}\n  fix: say which with --object-namespace, or write the kind with its group",
                told(found)
            ),
            None if all.is_empty() => bail!(
                "there is no backup of {kind} {name}, nor of anything else\n  why: a backup is made when the autopilot takes over an object that somebody else made, right before it changes it"
            ),
            None => bail!(
                "there is no backup of {kind} {name}; there are backups of {}\n  why: a backup is made when the autopilot takes over an object that somebody else made, right before it changes it",
                told(all)
            ),
        }
    }
}

/// Whether a kind is meant by `Kind`, `Kind.group`, `Kind.version` or `Kind.version.group`.
fn is_called(kind: &Kind, word: &str) -> bool {
    let (name, rest) = word.split_once('.').unwrap_or((word, ""));
    let full = format!("{}.{}", kind.version, kind.group);
    let rests = ["", &kind.group, &kind.version, &full];
    name.eq_ignore_ascii_case(&kind.kind) && rests.contains(&rest)
}

fn told(backups: &[Value]) -> String {
    let one = |key: Key| match key.kind.group.is_empty() {
        true => key.to_string(),
        false => format!("{} ({})", key, key.kind.group),
    };
    let objects: BTreeSet<String> = backups.iter().filter_map(backup::key).map(one).collect();
    objects.into_iter().collect::<Vec<_>>().join(", ")
}

fn name(secret: &Value) -> String {
    secret["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

fn table(backups: &[Value]) -> String {
    if backups.is_empty() {
        return "there are no backups\n".into();
    }
    let row = |secret: &Value| {
        let object = backup::key(secret).map(|key| key.to_string()).unwrap_or_default();
        let taken = secret["metadata"]["creationTimestamp"].as_str().unwrap_or_default().to_owned();
        [object, taken, name(secret)]
    };
    super::table::table(["OBJECT", "TAKEN", "SECRET"], &backups.iter().map(row).collect::<Vec<_>>())
}

#[cfg(test)]
mod tests {
    use super::{Asked, is_called};
    use change::{Kind, backup};
    use serde_json::{Value, json};

    fn backed_up(api_version: &str, kind: &str, namespace: &str) -> Value {
        let object =
            json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x", "namespace": namespace}});
        backup::secret(&object, "home").unwrap()
    }

    #[test]
    fn a_kind_is_called_by_its_name_and_perhaps_group_and_version() {
        let kubelet = Kind::new("machineconfiguration.openshift.io/v1", "KubeletConfig");
        for word in [
            "KubeletConfig",
            "kubeletconfig.machineconfiguration.openshift.io",
            "KubeletConfig.v1",
            "KubeletConfig.v1.machineconfiguration.openshift.io",
        ] {
            assert!(is_called(&kubelet, word), "{word}");
        }
        for word in ["Kubelet", "KubeletConfig.v2", "KubeletConfig.openshift.io"] {
            assert!(!is_called(&kubelet, word), "{word}");
        }
        assert!(is_called(&Kind::new("v1", "ConfigMap"), "ConfigMap.v1"));
    }

    #[test]
    fn what_is_meant_must_be_one_object() {
        let all =
            vec![backed_up("v1", "ConfigMap", "a"), backed_up("v1", "ConfigMap", "b"), backed_up("v1", "Service", "a")];
        let ask = |kind: &'static str, namespace: Option<&'static str>| {
            let asked = Asked { kind: Some(kind), name: Some("x"), namespace };
            asked.one(&asked.among(all.clone()), &all).map(|key| key.to_string()).map_err(|error| error.to_string())
        };
        assert_eq!(ask("service", None).unwrap(), "Service a/x");
        assert_eq!(ask("ConfigMap", Some("b")).unwrap(), "ConfigMap b/x");
        assert!(
            ask("ConfigMap", None)
                .unwrap_err()
                .contains("several objects called ConfigMap x: ConfigMap a/x, ConfigMap b/x")
        );
        let unknown = ask("ConfgMap", None).unwrap_err();
        assert!(
            unknown.contains("there are backups of ConfigMap a/x") && unknown.contains("a backup is made when"),
            "{unknown}"
        );
    }
}
