//! Backups of objects from before their adoption, stored in Secrets, and how to restore them.

use crate::object::key::{Key, Kind};
use crate::object::live::Live;
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use sha2::{Digest, Sha256};

/// The largest object that is backed up. A Secret takes 1 MiB, and nobody writes an object of half that size by hand.
pub const MOST_BYTES: usize = 512 * 1024;
/// The number of backups that are kept of one object.
pub const RETAINED: usize = 3;

/// The key of the object in the Secret.
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

/// The object is larger than a backup may be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooLarge {
    /// The size of the object.
    pub bytes: usize,
}

/// A backup that is no longer needed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Surplus {
    /// The name of the Secret.
    pub name: String,
    /// The UID of the Secret.
    pub uid: String,
    /// The resource version of the Secret.
    pub resource_version: String,
}

/// The backup Secret of an object as the server sent it. Its name depends on the resource version, so each version is backed up once.
pub fn secret(object: &Value, namespace: &str) -> Result<Value, TooLarge> {
    let text = object.to_string();
    if text.len() > MOST_BYTES {
        return Err(TooLarge { bytes: text.len() });
    }
    let (key, metadata) = (key_of(object), &object["metadata"]);
    let id = short_id(&key);
    let word = |key: &str| metadata[key].as_str().unwrap_or_default();
    let version = hex(&format!("{}/{}", word("uid"), word("resourceVersion")), 8);
    let qualified_name =
        if key.namespace.is_empty() { key.name.clone() } else { format!("{}/{}", key.namespace, key.name) };
    Ok(json!({
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": format!("{}-backup-{id}-{version}", api::FIELD_MANAGER),
            "namespace": namespace,
            "labels": {api::BACKUP_OF: id},
            "annotations": {
                api::annotation::BACKUP_OBJECT: format!("{} {} {qualified_name}", key.kind.api_version(), key.kind.kind),
            },
        },
        "immutable": true,
        "type": api::BACKUP_TYPE,
        "data": {DATA: STANDARD.encode(text)},
    }))
}

/// The label selector of all backups of an object.
pub fn selector(key: &Key) -> String {
    format!("{}={}", api::BACKUP_OF, short_id(key))
}

/// The key of the object in a backup, from the metadata of the Secret.
pub fn key(secret: &Value) -> Option<Key> {
    let mut words = secret["metadata"]["annotations"][api::annotation::BACKUP_OBJECT].as_str()?.split(' ');
    let (api_version, kind, qualified_name) = (words.next()?, words.next()?, words.next()?);
    let (namespace, name) = qualified_name.split_once('/').unwrap_or(("", qualified_name));
    Some(Key { kind: Kind::new(api_version, kind), namespace: namespace.into(), name: name.into() })
}

/// The object in a backup; `None` if the Secret is not a valid backup.
pub fn object(secret: &Value) -> Option<Value> {
    let text = STANDARD.decode(secret["data"][DATA].as_str()?).ok()?;
    let object: Value = serde_json::from_slice(&text).ok()?;
    (Key::of(&object) == key(secret) && secret["type"] == api::BACKUP_TYPE).then_some(object)
}

/// Sorts backups from the newest to the oldest.
pub fn newest_first(secrets: &mut [Value]) {
    let word = |secret: &Value, key: &str| secret["metadata"][key].as_str().unwrap_or_default().to_owned();
    secrets.sort_by_cached_key(|secret| std::cmp::Reverse((word(secret, "creationTimestamp"), word(secret, "name"))));
}

/// All backups of one object except the newest.
pub fn surplus(secrets: &[Value]) -> Vec<Surplus> {
    let mut sorted = secrets.to_vec();
    newest_first(&mut sorted);
    let named = |secret: Value| {
        let word = |key: &str| secret["metadata"][key].as_str().unwrap_or_default().to_owned();
        Surplus { name: word("name"), uid: word("uid"), resource_version: word("resourceVersion") }
    };
    sorted.into_iter().skip(RETAINED).map(named).collect()
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
        MOST_BYTES, Surplus, TooLarge, is_restored, key, newest_first, object, ownership, restored, secret, selector,
        surplus,
    };
    use crate::{Key, Live, ManagedFields};
    use serde_json::{Value, json};

    fn service() -> Value {
        json!({"apiVersion": "v1", "kind": "Service", "metadata": {
            "name": "s", "namespace": "n", "uid": "u", "resourceVersion": "5", "generation": 2, "creationTimestamp": "t",
            "managedFields": [
                {"manager": "person", "operation": "Apply", "fieldsV1": {"f:spec": {}}},
                {"manager": "old", "operation": "Update", "subresource": "status", "fieldsV1": {"f:status": {}}},
            ]}, "spec": {"a": 1}})
    }

    #[test]
    fn a_backup_holds_the_whole_object_and_its_key() {
        let backup = secret(&service(), "home").unwrap();
        assert_eq!(object(&backup).unwrap(), service());
        assert_eq!(key(&backup), Key::of(&service()));
        let metadata = &backup["metadata"];
        assert_eq!((&backup["immutable"], &metadata["namespace"]), (&json!(true), &json!("home")));
        assert!(metadata["labels"].get(api::MANAGED_BY.0).is_none(), "a backup is not a managed object");
        let mark = metadata["labels"][api::BACKUP_OF].as_str().unwrap();
        assert_eq!(selector(&Key::of(&service()).unwrap()), format!("{}={mark}", api::BACKUP_OF));
        assert_eq!(mark.len(), 16);
        let mut other = backup.clone();
        other["metadata"]["annotations"][api::annotation::BACKUP_OBJECT] = json!("v1 Service n/other");
        assert_eq!(object(&other), None, "the annotation names another object");
    }

    #[test]
    fn each_version_is_backed_up_once() {
        let name = |object: &Value| secret(object, "home").unwrap()["metadata"]["name"].as_str().unwrap().to_owned();
        let (mut newer, mut newborn) = (service(), service());
        newer["metadata"]["resourceVersion"] = json!("6");
        newborn["metadata"]["uid"] = json!("v");
        assert_eq!(name(&service()), name(&service()));
        assert!(name(&service()) != name(&newer) && name(&service()) != name(&newborn));
        assert!(name(&service()).starts_with("virt-platform-autopilot-backup-") && name(&service()).len() < 63);
    }

    #[test]
    fn an_object_that_is_too_large_is_not_backed_up() {
        let mut large = service();
        large["spec"]["a"] = json!("x".repeat(MOST_BYTES));
        let bytes = large.to_string().len();
        assert_eq!(secret(&large, "home"), Err(TooLarge { bytes }));
        let room = MOST_BYTES - (bytes - MOST_BYTES);
        large["spec"]["a"] = json!("x".repeat(room));
        assert!(secret(&large, "home").is_ok(), "exactly the limit");
    }

    #[test]
    fn all_but_the_newest_three_are_surplus() {
        let backup = |name: &str, time: &str| json!({"metadata": {"name": name, "uid": format!("u-{name}"), "resourceVersion": "1", "creationTimestamp": time}});
        let mut all = vec![backup("a", "2"), backup("b", "1"), backup("c", "2"), backup("d", "3"), backup("e", "1")];
        let names: Vec<String> = surplus(&all).into_iter().map(|surplus| surplus.name).collect();
        assert_eq!(names, ["e", "b"]);
        assert_eq!(surplus(&all)[1], Surplus { name: "b".into(), uid: "u-b".into(), resource_version: "1".into() });
        newest_first(&mut all);
        assert_eq!(all[0]["metadata"]["name"], "d");
        assert_eq!(surplus(&all[..3]), []);
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
