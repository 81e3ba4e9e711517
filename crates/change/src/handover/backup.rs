//! Backups of objects from before their adoption, stored in ConfigMaps, and how to restore them.

pub mod slots;

use crate::object::key::{Key, Kind};
use crate::object::live::Live;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};
use std::fmt;

/// The largest object that is backed up. A ConfigMap takes 1 MiB, and nobody writes an object of half that size by hand.
pub const MOST_BYTES: usize = 512 * 1024;
/// The number of backups that are kept of one object.
pub const RETAINED: usize = 3;

/// The key of the object in the ConfigMap.
const DATA: &str = "object";
/// Metadata that only the server sets.
const SERVER_METADATA: [&str; 7] = [
    "uid",
    "resourceVersion",
    "creationTimestamp",
    "generation",
    "deletionTimestamp",
    "deletionGracePeriodSeconds",
    "selfLink",
];
/// An annotation in which the server counts the generations of a DaemonSet's template; nobody else can set it.
const TEMPLATE_GENERATION: &str = "deprecated.daemonset.template.generation";

/// Why an object cannot be backed up.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Unfit {
    /// It is larger than a backup may be.
    TooLarge {
        /// Its size.
        bytes: usize,
    },
    /// It is a Secret, and more people may read ConfigMaps than Secrets.
    Secret,
}

impl fmt::Display for Unfit {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Unfit::TooLarge { bytes } => write!(f, "it has {bytes} bytes, more than the {MOST_BYTES} of a backup"),
            Unfit::Secret => write!(f, "a Secret has no safe place for a backup"),
        }
    }
}

/// Whether objects of this kind can be backed up: more people may read ConfigMaps than Secrets.
pub fn has_safe_place(kind: &Kind) -> bool {
    !(kind.group.is_empty() && kind.kind == "Secret")
}

/// The names of the ConfigMaps for the backups of an object. They are fixed, so that the role can grant them by name.
pub fn names(key: &Key) -> [String; RETAINED] {
    let id = short_id(key);
    std::array::from_fn(|slot| format!("{}-backup-{id}-{slot}", api::FIELD_MANAGER))
}

/// The backup of an object as the server sent it, as a ConfigMap of this name.
pub fn config_map(object: &Value, namespace: &str, name: &str, taken: Timestamp) -> Result<Value, Unfit> {
    let (text, key) = (object.to_string(), key_of(object));
    if !has_safe_place(&key.kind) {
        return Err(Unfit::Secret);
    }
    if text.len() > MOST_BYTES {
        return Err(Unfit::TooLarge { bytes: text.len() });
    }
    let qualified_name =
        if key.namespace.is_empty() { key.name.clone() } else { format!("{}/{}", key.namespace, key.name) };
    Ok(json!({
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": {api::BACKUP_OF: short_id(&key)},
            "annotations": {
                api::annotation::BACKUP_OBJECT: format!("{} {} {qualified_name}", key.kind.api_version(), key.kind.kind),
                api::annotation::BACKUP_TAKEN: taken.to_string(),
            },
        },
        "data": {DATA: text},
    }))
}

/// The label selector of all backups of an object.
pub fn selector(key: &Key) -> String {
    format!("{}={}", api::BACKUP_OF, short_id(key))
}

/// The key of the object in a backup, from the metadata of the backup.
pub fn key(backup: &Value) -> Option<Key> {
    let mut words = backup["metadata"]["annotations"][api::annotation::BACKUP_OBJECT].as_str()?.split(' ');
    let (api_version, kind, qualified_name) = (words.next()?, words.next()?, words.next()?);
    let (namespace, name) = qualified_name.split_once('/').unwrap_or(("", qualified_name));
    Some(Key { kind: Kind::new(api_version, kind), namespace: namespace.into(), name: name.into() })
}

/// The object in a backup; `None` if it is not a valid backup. The first release wrote Secrets, which have a type.
pub fn object(backup: &Value) -> Option<Value> {
    let data = backup["data"][DATA].as_str()?;
    let text = match backup.get("type") {
        None => data.as_bytes().to_vec(),
        Some(name) if name == api::BACKUP_TYPE => STANDARD.decode(data).ok()?,
        Some(_) => return None,
    };
    let object: Value = serde_json::from_slice(&text).ok()?;
    (Key::of(&object) == key(backup)).then_some(object)
}

/// When a backup was taken, from its metadata. A Secret of the first release was created then.
pub fn taken(backup: &Value) -> Option<Timestamp> {
    let metadata = &backup["metadata"];
    let text = metadata["annotations"][api::annotation::BACKUP_TAKEN].as_str();
    text.or_else(|| metadata["creationTimestamp"].as_str())?.parse().ok()
}

/// Sorts backups from the newest to the oldest.
pub fn newest_first(backups: &mut [Value]) {
    let name = |backup: &Value| backup["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    backups.sort_by_cached_key(|backup| std::cmp::Reverse((taken(backup), name(backup))));
}

/// The object to write in order to restore a backup: it replaces the live object in its current version, or is created.
pub fn restored(backup: &Value, live: Option<&Value>) -> Value {
    let mut object = backup.clone();
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return object };
    metadata.retain(|key, _| !SERVER_METADATA.contains(&key.as_str()));
    let nothing = Value::Null;
    let now = live.map_or(&nothing, |live| &live["metadata"]);
    for key in ["uid", "resourceVersion"] {
        if let Some(value) = now.get(key) {
            metadata.insert(key.into(), value.clone());
        }
    }
    metadata.insert("managedFields".into(), owners(backup, &now["managedFields"]));
    object
}

/// A JSON patch that restores the field managers, because the server assigns the fields that a write changes to the writer.
pub fn ownership(backup: &Value, live: &Live) -> Value {
    json!([
        {"op": "replace", "path": "/metadata/resourceVersion", "value": live.resource_version},
        {"op": "add", "path": "/metadata/managedFields", "value": owners(backup, &live.managed_fields.value())},
    ])
}

/// Whether the live object equals the backup, field managers included. The status is not restored, because it belongs to a controller.
pub fn is_restored(backup: &Value, live: &Value) -> bool {
    comparable(backup) == comparable(live)
}

fn comparable(object: &Value) -> Value {
    let mut object = object.clone();
    if let Some(fields) = object.as_object_mut() {
        fields.remove("status");
    }
    if let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
        let entries = metadata.remove("managedFields").unwrap_or_default();
        metadata.retain(|key, _| !SERVER_METADATA.contains(&key.as_str()));
        let mut entries: Vec<Value> = entries.as_array().into_iter().flatten().filter(is_of_object).cloned().collect();
        entries.sort_by_cached_key(ToString::to_string);
        metadata.insert("managedFields".into(), entries.into());
        if let Some(annotations) = metadata.get_mut("annotations").and_then(Value::as_object_mut) {
            annotations.remove(TEMPLATE_GENERATION);
        }
    }
    object
}

/// The field managers of the backup, and those of the live object's subresources.
fn owners(backup: &Value, now: &Value) -> Value {
    let before = backup["metadata"]["managedFields"].as_array().into_iter().flatten().filter(is_of_object);
    let subresources = now.as_array().into_iter().flatten().filter(|entry| !is_of_object(entry));
    let entries: Vec<Value> = before.chain(subresources).cloned().collect();
    // The server ignores an empty list; a list with one empty entry removes all entries.
    if entries.is_empty() { json!([Map::new()]) } else { entries.into() }
}

fn is_of_object(entry: &&Value) -> bool {
    entry.get("subresource").is_none_or(|subresource| subresource == "")
}

/// Identifies an object in a label and in a name, independent of its API version.
fn short_id(key: &Key) -> String {
    hex(&format!("{}/{}/{}/{}", key.kind.group, key.kind.kind, key.namespace, key.name), 16)
}

/// The first hexadecimal digits of the SHA-256 digest of a text.
fn hex(text: &str, digits: usize) -> String {
    let bytes = Sha256::digest(text);
    bytes.iter().map(|byte| format!("{byte:02x}")).collect::<String>().chars().take(digits).collect()
}

/// The key of an object that the server sent, which always has a kind and a name.
fn key_of(object: &Value) -> Key {
    let nameless = || Key { kind: Kind::new("", ""), namespace: String::new(), name: String::new() };
    Key::of(object).unwrap_or_else(nameless)
}

#[cfg(test)]
mod tests {
    use super::{
        MOST_BYTES, Unfit, config_map, is_restored, key, names, newest_first, object, ownership, restored, selector,
        taken,
    };
    use crate::{Key, Live, ManagedFields};
    use base64::Engine;
    use base64::engine::general_purpose::STANDARD;
    use jiff::Timestamp;
    use serde_json::{Value, json};

    fn backed_up(object: &Value) -> Result<Value, Unfit> {
        config_map(object, "home", "slot", Timestamp::UNIX_EPOCH)
    }

    fn service() -> Value {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {
            "name": "s", "namespace": "n", "uid": "u", "resourceVersion": "5", "generation": 2, "creationTimestamp": "t",
            "managedFields": [
                {"manager": "person", "operation": "Apply", "fieldsV1": {"f:spec": {}}},
                {"manager": "old", "operation": "Update", "subresource": "status", "fieldsV1": {"f:status": {}}},
            ]}, "spec": {"a": 1}})
    }

    #[test]
    fn a_backup_holds_the_whole_object_its_key_and_its_time() {
        let backup = backed_up(&service()).unwrap();
        assert_eq!(object(&backup).unwrap(), service());
        assert_eq!((key(&backup), taken(&backup)), (Key::of(&service()), Some(Timestamp::UNIX_EPOCH)));
        let metadata = &backup["metadata"];
        assert_eq!((&metadata["name"], &metadata["namespace"]), (&json!("slot"), &json!("home")));
        assert!(metadata["labels"].get(api::MANAGED_BY.0).is_none(), "a backup is not a managed object");
        let mark = metadata["labels"][api::BACKUP_OF].as_str().unwrap();
        assert_eq!(selector(&Key::of(&service()).unwrap()), format!("{}={mark}", api::BACKUP_OF));
        assert_eq!(mark.len(), 16);
        let mut other = backup.clone();
        other["metadata"]["annotations"][api::annotation::BACKUP_OBJECT] = json!("v1 Service n/other");
        assert_eq!(object(&other), None, "the annotation names another object");
    }

    #[test]
    fn a_backup_of_the_first_release_is_read_from_its_secret() {
        let mut secret = backed_up(&service()).unwrap();
        secret["data"] = json!({"object": STANDARD.encode(service().to_string())});
        secret["type"] = json!(api::BACKUP_TYPE);
        secret["metadata"]["creationTimestamp"] = json!("2026-11-16T11:40:24Z");
        secret["metadata"]["annotations"].as_object_mut().unwrap().remove(api::annotation::BACKUP_TAKEN);
        assert_eq!(object(&secret), Some(service()));
        assert_eq!(taken(&secret).unwrap().to_string(), "2026-11-16T11:40:24Z");
        secret["type"] = json!("Opaque");
        assert_eq!(object(&secret), None);
    }

    #[test]
    fn the_names_of_backups_depend_only_on_the_object() {
        let key = Key::of(&service()).unwrap();
        let mut other = key.clone();
        other.namespace = "m".into();
        let all = names(&key);
        assert_eq!(all, names(&key));
        assert!(all[0] != all[1] && names(&other)[0] != all[0]);
        assert!(all.iter().all(|name| name.starts_with("virt-platform-autopilot-backup-") && name.len() < 63));
        let newer = Key { kind: crate::Kind::new("v2", "Service"), ..key };
        assert_eq!(names(&newer), all, "another version of the API is the same object");
    }

    #[test]
    fn an_object_that_is_too_large_or_a_secret_is_not_backed_up() {
        let mut large = service();
        large["spec"]["a"] = json!("x".repeat(MOST_BYTES));
        let bytes = large.to_string().len();
        assert_eq!(backed_up(&large), Err(Unfit::TooLarge { bytes }));
        let message = format!("it has {bytes} bytes, more than the 524288 of a backup");
        assert_eq!(backed_up(&large).unwrap_err().to_string(), message);
        let room = MOST_BYTES - (bytes - MOST_BYTES);
        large["spec"]["a"] = json!("x".repeat(room));
        assert!(backed_up(&large).is_ok(), "exactly the limit");
        let mut secret = service();
        secret["kind"] = json!("Secret");
        assert_eq!(backed_up(&secret), Err(Unfit::Secret));
        assert_eq!(Unfit::Secret.to_string(), "a Secret has no safe place for a backup");
        secret["apiVersion"] = json!("example.com/v1");
        assert!(backed_up(&secret).is_ok(), "only the Secrets of Kubernetes");
    }

    #[test]
    fn backups_are_sorted_by_the_time_they_were_taken() {
        let backup = |name: &str, time: &str| json!({"metadata": {"name": name, "annotations": {api::annotation::BACKUP_TAKEN: time}}});
        let (old, new) = ("2026-01-01T00:00:00Z", "2026-01-01T00:00:00.5Z");
        let mut all = vec![backup("a", old), json!({"metadata": {"name": "b"}}), backup("c", new), backup("d", old)];
        newest_first(&mut all);
        let order: Vec<&str> = all.iter().filter_map(|backup| backup["metadata"]["name"].as_str()).collect();
        assert_eq!(order, ["c", "d", "a", "b"]);
    }

    #[test]
    fn a_restore_replaces_the_live_version_with_the_backup() {
        let mut live = service();
        live["spec"]["a"] = json!(2);
        live["metadata"]["resourceVersion"] = json!("9");
        live["metadata"]["managedFields"] = json!([
            {"manager": "us", "operation": "Apply", "fieldsV1": {"f:spec": {}}},
            {"manager": "new", "operation": "Update", "subresource": "status", "fieldsV1": {"f:status": {}}},
        ]);
        let over = restored(&service(), Some(&live));
        assert_eq!((&over["spec"]["a"], &over["metadata"]["resourceVersion"]), (&json!(1), &json!("9")));
        let managers = |object: &Value| -> Vec<String> {
            let entries = object["metadata"]["managedFields"].as_array().unwrap().iter();
            entries.map(|entry| entry["manager"].as_str().unwrap_or("none").to_owned()).collect()
        };
        assert_eq!(managers(&over), ["person", "new"], "field managers of the status are not restored");
        assert!(is_restored(&service(), &over) && !is_restored(&service(), &live));
        let mut changed = over.clone();
        changed["metadata"]["managedFields"][0]["manager"] = json!("us");
        assert!(!is_restored(&service(), &changed), "field managers count");

        let created = restored(&service(), None);
        assert_eq!((managers(&created), created["metadata"].get("uid")), (vec!["person".to_owned()], None));
        assert!(
            created["metadata"].get("resourceVersion").is_none()
                && created["metadata"].get("creationTimestamp").is_none()
        );

        let live = Live { resource_version: "7".into(), managed_fields: ManagedFields::new("[]"), ..Live::default() };
        let patch = ownership(&service(), &live);
        assert_eq!((&patch[0]["value"], &patch[1]["value"][0]["manager"]), (&json!("7"), &json!("person")));
        let bare = json!({"metadata": {}});
        assert_eq!(ownership(&bare, &live)[1]["value"], json!([{}]), "an empty entry removes all field managers");
    }
}
