//! `rollback`: restores an object as it was before its adoption, or has the rollback of a profile planned.

mod migrate;

use super::target::{Reached, Target};
use super::{print, profile};
use anyhow::{Context, bail};
use change::{Effect, Impact, Key, Kind, backup};
use cluster::{list, live};
use jiff::Timestamp;
use protocol::{Served, WriteError};
use serde_json::Value;
use std::collections::BTreeSet;
use std::time::{Duration, Instant};

/// How long the restored object is checked: a write that the operator decided before it saw the exclusion is over by then.
const CHECKED: Duration = Duration::from_secs(2);
/// The pause between two checks.
const CHECK_INTERVAL: Duration = Duration::from_millis(100);
/// A write in flight is undone with a second restore; more restores mean that another writer is at work.
const MAX_RESTORES: usize = 5;

/// The field manager of a rollback, so that the restored fields are not the autopilot's.
const ROLLBACK: &str = "virtpilot-rollback";

const WHEN_BACKED_UP: &str = "an object is backed up when the autopilot adopts it, right before its first write to it; what it created \
    itself has no former state: to stop managing that, set its annotation platform.kubevirt.io/mode to unmanaged, or add it to \
    disabled-resources of the HyperConverged";

#[derive(clap::Args)]
pub(crate) struct Arguments {
    /// The object's kind, such as ConfigMap, or KubeletConfig.machineconfiguration.openshift.io; or, alone, the name of a profile of the
    /// advisor, whose rollback is then planned
    #[arg(value_name = "KIND|PROFILE", required_unless_present_any = ["list", "migrate"], add = super::completions::profiles())]
    kind: Option<String>,
    /// The object's name
    name: Option<String>,
    /// The object's namespace, if objects in several namespaces have backups
    #[arg(long, value_name = "NAMESPACE")]
    object_namespace: Option<String>,
    /// The name of the backup; by default the newest
    #[arg(long, value_name = "BACKUP", conflicts_with_all = ["list", "migrate"])]
    to: Option<String>,
    /// List the backups and restore nothing
    #[arg(long, conflicts_with = "migrate")]
    list: bool,
    /// Move backups of the first release from Secrets to ConfigMaps, and restore nothing
    #[arg(long)]
    migrate: bool,
    #[command(flatten)]
    target: Target,
}

/// Selects backups by the arguments.
struct Selection<'a> {
    kind: Option<&'a str>,
    name: Option<&'a str>,
    namespace: Option<&'a str>,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    if let (Some(word), None, false, false) = (&arguments.kind, &arguments.name, arguments.list, arguments.migrate) {
        let catalog = crate::pack::embedded()?;
        if profile::rollback::run(word, &arguments.target, &catalog)? {
            return Ok(());
        }
        bail!(
            "{word:?} is no profile; name the kind and the name of an object, such as \"virtpilot rollback {word} NAME\""
        );
    }
    let selection = Selection {
        kind: arguments.kind.as_deref(),
        name: arguments.name.as_deref(),
        namespace: arguments.object_namespace.as_deref(),
    };
    arguments.target.with(async |reached| {
        let all = backups(&reached).await?;
        let found = selection.among(all.clone());
        if arguments.list {
            return print(&table(&found));
        }
        if arguments.migrate {
            return migrate::run(&reached, &found).await;
        }
        let key = selection.one(&found, &all)?;
        let chosen = match &arguments.to {
            None => found.first(),
            Some(wanted) => found.iter().find(|backup| name(backup) == *wanted),
        };
        let Some(chosen) = chosen else {
            let names: Vec<String> = found.iter().map(name).collect();
            bail!(
                "{} is not a backup of {key}; choose one of {}",
                arguments.to.as_deref().unwrap_or_default(),
                names.join(", ")
            );
        };
        let (stored, read) = read(&reached, chosen).await?;
        let before = backup::object(&read).with_context(|| format!("{stored} does not contain a backup of {key}"))?;
        roll_back(&reached, &key, before, &read, &stored).await
    })
}

/// The metadata of all backups: ConfigMaps, and the Secrets of the first release.
async fn backups(reached: &Reached) -> anyhow::Result<Vec<Value>> {
    let (namespace, mut all) = (&reached.key.namespace, Vec::new());
    for kind in ["ConfigMap", "Secret"] {
        let served = served(reached, kind)?;
        let listed = match list::metadata(&reached.server, &served, namespace, api::BACKUP_OF).await {
            Err(failure) if kind == "Secret" && failure.is_refusal() => {
                print(&format!(
                    "backups of the first release are left out, because their Secrets cannot be listed: {failure}\n"
                ))?;
                continue;
            }
            listed => listed.with_context(|| format!("could not list the {kind}s of namespace {namespace}"))?,
        };
        all.extend(listed.into_iter().map(|mut backup| {
            backup["kind"] = kind.into();
            backup
        }));
    }
    Ok(all)
}

/// Reads a whole backup; also returns its key.
async fn read(reached: &Reached, backup: &Value) -> anyhow::Result<(Key, Value)> {
    let kind = backup["kind"].as_str().unwrap_or_default();
    let key = Key { kind: Kind::new("v1", kind), namespace: reached.key.namespace.clone(), name: name(backup) };
    let read = live::whole(&reached.server, &served(reached, kind)?, &key).await;
    let read = read.with_context(|| format!("could not read {key}"))?;
    let read = read.with_context(|| format!("{key} does not exist any more"))?;
    Ok((key, read))
}

async fn roll_back(
    reached: &Reached,
    key: &Key,
    mut before: Value,
    backup: &Value,
    stored: &Key,
) -> anyhow::Result<()> {
    let served = reached.kinds.find(&key.kind);
    let served = served
        .with_context(|| format!("the cluster does not serve {} {} any more", key.kind.api_version(), key.kind.kind))?;
    // The exclusion comes first: a running operator would change the restored object again.
    let add = |text: Option<&str>| {
        autopilot::exclude(text, key).map_err(|why| {
            anyhow::anyhow!(
                "{why}; nothing was changed; correct the annotation {} of {}",
                api::annotation::DISABLED_RESOURCES,
                reached.key
            )
        })
    };
    let is_new = reached.annotate(api::annotation::DISABLED_RESOURCES, add).await?;
    print(&match is_new {
        true => format!("excluded {key}: the autopilot does not manage it any more\n"),
        false => format!("{key} is already excluded\n"),
    })?;
    if key.is_same_object(&reached.key) {
        // Users configure the autopilot with annotations on it, the new exclusion included; they are not rolled back.
        let now = live::whole(&reached.server, &reached.served, key).await?.unwrap_or_default();
        let is_users = |name: &str| name.starts_with(api::annotation::PREFIX) && !api::annotation::OURS.contains(&name);
        if let Some(annotations) = before["metadata"]["annotations"].as_object_mut() {
            annotations.retain(|name, _| !is_users(name));
        }
        for (name, value) in now["metadata"]["annotations"].as_object().into_iter().flatten() {
            if is_users(name) {
                before["metadata"]["annotations"][name] = value.clone();
            }
        }
    }
    if Impact::implied_by(&key.kind.group, &key.kind.kind) == Impact::High {
        print("the nodes of its pool restart, unless they already run this configuration\n")?;
    }
    let times = restore(reached, &served, key, &before).await?;
    let taken = time(backup);
    print(&match times {
        0 => format!("{key} already is as it was at {taken}; nothing was written\n"),
        1 => format!("restored {key} as it was at {taken} ({stored})\n"),
        _ => format!(
            "restored {key} as it was at {taken} ({stored}), {times} times, because another writer changed it\n"
        ),
    })?;
    print(&format!(
        "to manage it again, remove its rule from the annotation {} of {}\n",
        api::annotation::DISABLED_RESOURCES,
        reached.key
    ))
}

/// Restores the object until it stays restored; returns how many restores that took.
async fn restore(reached: &Reached, served: &Served, key: &Key, before: &Value) -> anyhow::Result<usize> {
    let (mut times, mut since) = (0, Instant::now());
    loop {
        let live = live::whole(&reached.server, served, key).await.with_context(|| format!("could not read {key}"))?;
        if live.as_ref().is_some_and(|live| backup::is_restored(before, live)) {
            if since.elapsed() >= CHECKED {
                return Ok(times);
            }
            tokio::time::sleep(CHECK_INTERVAL).await;
            continue;
        }
        if live.as_ref().is_some_and(|live| live["metadata"].get("deletionTimestamp").is_some()) {
            bail!("{key} is being deleted; run the command again when it is gone");
        }
        if times == MAX_RESTORES {
            bail!(
                "{key} was restored {MAX_RESTORES} times, and another writer changed it each time; stop that writer; managedFields of the object names it"
            );
        }
        match write(reached, served, key, before, live.as_ref()).await {
            // A stale version means that it was changed in between; it is read again.
            Ok(()) | Err(WriteError::Stale(_)) => (times, since) = (times + 1, Instant::now()),
            Err(error) => return Err(error).with_context(|| format!("excluded {key}, but could not restore it")),
        }
    }
}

/// Restores the content first, then its managedFields.
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
        reached.write(api::FIELD_MANAGER, served, key, Effect::JsonPatch { patch }).await?;
    }
    Ok(())
}

fn served(reached: &Reached, kind: &str) -> anyhow::Result<Served> {
    reached.kinds.find(&Kind::new("v1", kind)).with_context(|| format!("this cluster does not serve {kind}s"))
}

impl Selection<'_> {
    /// The selected backups, newest first.
    fn among(&self, mut backups: Vec<Value>) -> Vec<Value> {
        backups.retain(|backup| backup::key(backup).is_some_and(|key| self.matches(&key)));
        backup::newest_first(&mut backups);
        backups
    }

    fn matches(&self, key: &Key) -> bool {
        self.kind.is_none_or(|text| is_kind(&key.kind, text))
            && self.name.is_none_or(|name| key.name == name)
            && self.namespace.is_none_or(|namespace| key.namespace == namespace)
    }

    /// The one selected object.
    fn one(&self, found: &[Value], all: &[Value]) -> anyhow::Result<Key> {
        let (kind, name) = (self.kind.unwrap_or_default(), self.name.unwrap_or_default());
        let mut keys: Vec<Key> = found.iter().filter_map(backup::key).collect();
        keys.dedup_by(|one, other| one.is_same_object(other));
        let is_one = keys.first().is_some_and(|first| keys.iter().all(|key| key.is_same_object(first)));
        match keys.first() {
            Some(first) if is_one => Ok(first.clone()),
            Some(_) => bail!(
                "{kind} {name} is ambiguous, these objects have backups: {}; give --object-namespace, or write the kind with its group",
                names(found)
            ),
            None if all.is_empty() => {
                bail!("{kind} {name} has no backup, and neither has any other object; {WHEN_BACKED_UP}")
            }
            None => {
                bail!("{kind} {name} has no backup; these objects have one: {}; {WHEN_BACKED_UP}", names(all))
            }
        }
    }
}

/// Whether the text names the kind, as `Kind`, `Kind.group`, `Kind.version` or `Kind.version.group`.
fn is_kind(kind: &Kind, text: &str) -> bool {
    let (name, rest) = text.split_once('.').unwrap_or((text, ""));
    let full = format!("{}.{}", kind.version, kind.group);
    let rests = ["", &kind.group, &kind.version, &full];
    name.eq_ignore_ascii_case(&kind.kind) && rests.contains(&rest)
}

/// The objects of some backups.
fn names(backups: &[Value]) -> String {
    let describe = |key: Key| match key.kind.group.is_empty() {
        true => key.to_string(),
        false => format!("{} ({})", key, key.kind.group),
    };
    let objects: BTreeSet<String> = backups.iter().filter_map(backup::key).map(describe).collect();
    objects.into_iter().collect::<Vec<_>>().join(", ")
}

fn name(backup: &Value) -> String {
    backup["metadata"]["name"].as_str().unwrap_or_default().to_owned()
}

/// When a backup was taken, to the second.
fn time(backup: &Value) -> String {
    let seconds = backup::taken(backup).and_then(|taken| Timestamp::from_second(taken.as_second()).ok());
    seconds.map(|seconds| seconds.to_string()).unwrap_or_default()
}

fn table(backups: &[Value]) -> String {
    if backups.is_empty() {
        return "no backups found\n".into();
    }
    let row = |backup: &Value| {
        let object = backup::key(backup).map(|key| key.to_string()).unwrap_or_default();
        let kind = backup["kind"].as_str().unwrap_or_default().to_owned();
        [object, time(backup), kind, name(backup)]
    };
    let mut text =
        super::table::table(["OBJECT", "TAKEN", "KIND", "BACKUP"], &backups.iter().map(row).collect::<Vec<_>>());
    if backups.iter().any(|backup| backup["kind"] == "Secret") {
        text.push_str("to move the backups of the first release to ConfigMaps, run \"virtpilot rollback --migrate\"\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::{Selection, is_kind};
    use change::{Kind, backup};
    use jiff::Timestamp;
    use serde_json::{Value, json};

    fn backed_up(api_version: &str, kind: &str, namespace: &str) -> Value {
        let object =
            json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x", "namespace": namespace}});
        backup::config_map(&object, "home", "slot", Timestamp::UNIX_EPOCH).unwrap()
    }

    #[test]
    fn a_kind_is_named_with_or_without_group_and_version() {
        let kubelet = Kind::new("machineconfiguration.openshift.io/v1", "KubeletConfig");
        for word in [
            "KubeletConfig",
            "kubeletconfig.machineconfiguration.openshift.io",
            "KubeletConfig.v1",
            "KubeletConfig.v1.machineconfiguration.openshift.io",
        ] {
            assert!(is_kind(&kubelet, word), "{word}");
        }
        for word in ["Kubelet", "KubeletConfig.v2", "KubeletConfig.openshift.io"] {
            assert!(!is_kind(&kubelet, word), "{word}");
        }
        assert!(is_kind(&Kind::new("v1", "ConfigMap"), "ConfigMap.v1"));
    }

    #[test]
    fn an_ambiguous_or_unknown_object_is_refused() {
        let all =
            vec![backed_up("v1", "ConfigMap", "a"), backed_up("v1", "ConfigMap", "b"), backed_up("v1", "Service", "a")];
        let select = |kind: &'static str, namespace: Option<&'static str>| {
            let selection = Selection { kind: Some(kind), name: Some("x"), namespace };
            selection
                .one(&selection.among(all.clone()), &all)
                .map(|key| key.to_string())
                .map_err(|error| error.to_string())
        };
        assert_eq!(select("service", None).unwrap(), "Service a/x");
        assert_eq!(select("ConfigMap", Some("b")).unwrap(), "ConfigMap b/x");
        assert!(
            select("ConfigMap", None)
                .unwrap_err()
                .contains("ConfigMap x is ambiguous, these objects have backups: ConfigMap a/x, ConfigMap b/x")
        );
        let unknown = select("ConfgMap", None).unwrap_err();
        assert!(
            unknown.contains("these objects have one: ConfigMap a/x")
                && unknown.contains("an object is backed up when"),
            "{unknown}"
        );
    }
}
