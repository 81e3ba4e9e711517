//! Writes, backups, previews and events, each sent to a real server.

use super::{IDENTITY, config_map, desired, start};
use change::{Effect, Key, Kind, Precondition};
use cluster::{Permit, Server, discovery, event, lease, list, live, preview};
use protocol::{Backup, Kinds, Write, WriteError, Written};
use serde_json::{Value, json};

struct Stage {
    server: Server,
    kinds: Kinds,
    permit: Permit,
}

impl Stage {
    async fn write(&self, write: Write) -> Result<Written, WriteError> {
        cluster::act::write(&self.server, &self.permit, write).await
    }

    fn one(&self, key: &Key, effect: Effect) -> Write {
        let served = self.kinds.find(&key.kind).unwrap();
        Write { key: key.clone(), served, effect, attempt: 0, backup: None }
    }

    async fn whole(&self, key: &Key) -> Value {
        live::whole(&self.server, &self.kinds.find(&key.kind).unwrap(), key).await.unwrap().unwrap()
    }
}

fn apply(value: &str, precondition: Precondition, force: bool) -> Effect {
    Effect::apply(desired("x", value), precondition, force)
}

#[tokio::test(flavor = "multi_thread")]
async fn a_write_is_guarded_and_backed_up() {
    let (_playground, server) = start().await;
    let kinds = discovery::discover(&server).await.unwrap();
    let stage = Stage { server, kinds, permit: lease::without_election() };
    let key = config_map("x");

    // It is created only where it does not exist.
    let created = stage.write(stage.one(&key, apply("1", Precondition::Absent, true))).await.unwrap().live.unwrap();
    assert!(created.labelled && created.managed_fields.claim("tester").is_some());
    let again = stage.write(stage.one(&key, apply("1", Precondition::Absent, true))).await;
    assert!(matches!(again, Err(WriteError::Stale(_))), "{again:?}");

    // A preview shows the change and makes none.
    let served = stage.kinds.find(&key.kind).unwrap();
    let precondition =
        Precondition::Present { uid: created.uid.clone(), resource_version: created.resource_version.clone() };
    let object = desired("x", "2");
    let shown = preview::preview(&stage.server, "tester", &served, &key, object, &precondition, true);
    assert_eq!(shown.await.unwrap()["data"]["a"], "2");
    assert_eq!(stage.whole(&key).await["data"]["a"], "1");

    // What another manager applies is taken only by force.
    let field_manager = "somebody";
    let theirs = apply("3", Precondition::None, true);
    cluster::act::act(&stage.server, &stage.permit, field_manager, &served, &key, theirs, 0).await.unwrap();
    let refused = stage.write(stage.one(&key, apply("4", Precondition::None, false))).await;
    assert!(matches!(refused, Err(WriteError::Refused { code: 409, .. })), "{refused:?}");
    assert_eq!(stage.whole(&key).await["data"]["a"], "3");

    // An apply that names a uid goes only to that object, and creates none.
    let of_uid = |name: &str, uid: &str| {
        let mut object = desired(name, "3");
        object["metadata"]["uid"] = json!(uid);
        stage.one(&config_map(name), Effect::apply(object, Precondition::None, true))
    };
    assert_eq!(stage.write(of_uid("x", &created.uid)).await.unwrap().live.unwrap().uid, created.uid);
    let other = stage.write(of_uid("x", "00000000-0000-0000-0000-000000000000")).await;
    assert!(matches!(other, Err(WriteError::Refused { code: 422, .. })), "{other:?}");
    let missing = stage.write(of_uid("missing", &created.uid)).await;
    assert!(matches!(missing, Err(WriteError::Stale(_))), "{missing:?}");

    // A write first makes its backup.
    let mut write = stage.one(&key, apply("4", Precondition::None, true));
    write.backup = Some(Backup { config_maps: served.clone(), namespace: "default".into() });
    let written = stage.write(write).await.unwrap();
    assert_eq!(written.before.unwrap()["data"]["a"], "3");
    assert_eq!(stage.whole(&key).await["data"]["a"], "4");
    let backups = list::metadata(&stage.server, &served, "default", &change::backup::selector(&key)).await.unwrap();
    assert_eq!(backups.len(), 1);

    // Without a backup the object is left as it is, and what is gone needs none.
    let mut write = stage.one(&key, apply("5", Precondition::None, true));
    write.backup = Some(Backup { config_maps: served.clone(), namespace: "does-not-exist".into() });
    let unsaved = stage.write(write).await;
    assert!(matches!(unsaved, Err(WriteError::NoBackup { .. })), "{unsaved:?}");
    assert_eq!(stage.whole(&key).await["data"]["a"], "4");
    let mut write = stage.one(&config_map("missing"), apply("5", Precondition::None, true));
    write.backup = Some(Backup { config_maps: served.clone(), namespace: "default".into() });
    assert!(matches!(stage.write(write).await, Err(WriteError::Stale(_))));

    // Objects are found by the label of the identity.
    let found = list::lives(&stage.server, &served, "", &IDENTITY.selector()).await.unwrap();
    assert_eq!(found.iter().map(|(key, _)| key.name.as_str()).collect::<Vec<_>>(), ["x"]);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_status_is_replaced_and_events_are_published_wherever_an_object_lives() {
    let (_playground, server) = start().await;
    let kinds = discovery::discover(&server).await.unwrap();
    let stage = Stage { server, kinds, permit: lease::without_election() };
    let namespace = Key { kind: Kind::new("v1", "Namespace"), namespace: String::new(), name: "default".into() };
    let condition = json!({"type": "Tested", "status": "True", "reason": "Test", "message": "it works"});
    let before = stage.whole(&namespace).await["metadata"].clone();
    let object = |metadata: Value, phase: &str| {
        json!({
            "apiVersion": "v1",
            "kind": "Namespace",
            "metadata": metadata,
            "status": {"phase": phase, "conditions": [condition]},
        })
    };
    let write = |object| stage.write(stage.one(&namespace, Effect::ReplaceStatus { object }));
    let guarded = json!({"name": "default", "uid": before["uid"], "resourceVersion": before["resourceVersion"]});
    write(object(guarded.clone(), "Active")).await.unwrap();
    let after = stage.whole(&namespace).await;
    assert_eq!(after["status"]["conditions"][0]["message"], "it works");
    assert_eq!(after["metadata"]["labels"], before["labels"], "nothing but the status is replaced");
    let other = json!({"name": "default", "uid": "7c0ffee0-0000-4000-8000-000000000000"});
    for wrong in [guarded, other] {
        let answer = write(object(wrong, "Terminating")).await;
        assert!(matches!(answer, Err(WriteError::Stale(_))), "{answer:?}");
    }
    write(json!({"metadata": {"name": "default"}, "status": {"phase": "Active"}})).await.unwrap();
    let bare = stage.whole(&namespace).await["status"].clone();
    assert_eq!(bare, json!({"phase": "Active"}), "what is not in the new status goes");

    let reference = |key: &Key| event::Reference { key: key.clone(), uid: "u".into() };
    for key in [namespace, config_map("x")] {
        let event = event::Event {
            regarding: reference(&key),
            related: Some(reference(&config_map("y"))),
            warning: true,
            reason: "Tested".into(),
            about: Some(config_map("x")),
            note: "\u{e9}".repeat(2_000),
        };
        let now = jiff::Timestamp::now();
        let name = event::publish(&stage.server, "pod", &event, now).await.unwrap();
        event::repeat(&stage.server, &event, &name, 2, now).await.unwrap();
        let gone = event::repeat(&stage.server, &event, "missing", 2, now).await.unwrap_err();
        assert!(gone.is_not_found(), "{gone}");
    }
}
