//! `rollback --migrate`: moves backups of the first release from Secrets to ConfigMaps.

use super::{read, served};
use crate::command::print;
use crate::command::target::Reached;
use anyhow::Context;
use change::backup::slots::{self, Slot};
use change::{Effect, Key, Kind, Precondition, backup};
use serde_json::Value;

/// Moves these backups, newest first, so that the newest three of each object are kept. A Secret is deleted only after its ConfigMap is
/// written.
pub(super) async fn run(reached: &Reached, backups: &[Value]) -> anyhow::Result<()> {
    let old: Vec<&Value> = backups.iter().filter(|backup| backup["kind"] == "Secret").collect();
    if old.is_empty() {
        return print("no backups of the first release found\n");
    }
    for backup in old {
        let (secret, whole) = read(reached, backup).await?;
        let Some((object, taken)) = backup::object(&whole).zip(backup::taken(&whole)) else {
            print(&format!("left {secret}: it is not a valid backup\n"))?;
            continue;
        };
        let Some(key) = backup::key(&whole).filter(|key| backup::has_safe_place(&key.kind)) else {
            print(&format!("left {secret}: it contains a Secret, and more people may read ConfigMaps\n"))?;
            continue;
        };
        let config_maps = served(reached, "ConfigMap")?;
        let existing = cluster::backup::existing(&reached.server, &config_maps, &secret.namespace, &key).await?;
        let done = match slots::choose(&existing, &object, taken) {
            Slot::Write { index, precondition } => {
                let name = backup::names(&key)[index].clone();
                let map = Key { kind: Kind::new("v1", "ConfigMap"), namespace: secret.namespace.clone(), name };
                write(reached, &map, &object, taken, precondition).await?;
                format!("moved the backup of {key} from {secret} to {map}\n")
            }
            Slot::BackedUp => format!("deleted {secret}: a ConfigMap contains the same backup of {key}\n"),
            Slot::Outdated => format!("deleted {secret}: there are {} newer backups of {key}\n", backup::RETAINED),
        };
        let word = |name: &str| whole["metadata"][name].as_str().unwrap_or_default().to_owned();
        let delete = Effect::Delete { uid: word("uid"), resource_version: word("resourceVersion") };
        let deleted = reached.write(api::FIELD_MANAGER, &served(reached, "Secret")?, &secret, delete).await;
        deleted.with_context(|| format!("could not delete {secret}"))?;
        print(&done)?;
    }
    Ok(())
}

async fn write(
    reached: &Reached,
    map: &Key,
    object: &Value,
    taken: jiff::Timestamp,
    precondition: Precondition,
) -> anyhow::Result<()> {
    let content = backup::config_map(object, &map.namespace, &map.name, taken);
    let content = content.map_err(|why| anyhow::anyhow!("could not write {map}: {why}"))?;
    let effect = Effect::apply(content, precondition, true);
    let written = reached.write(api::FIELD_MANAGER, &served(reached, "ConfigMap")?, map, effect).await;
    written.map(|_| ()).with_context(|| format!("could not write {map}; nothing was deleted"))
}
