//! The request counter over the audit log agrees with clients that count their own requests.

use crate::{admin_account, start};
use futures::StreamExt;
use k8s_openapi::api::coordination::v1::Lease;
use k8s_openapi::api::core::v1::{ConfigMap, Event, Node};

use kube::Client;
use kube::api::{Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, WatchParams};
use playground::audit::{Kind, Row};
use playground::pseudo_random::PseudoRandom;
use serde_json::{Value, json};
use std::collections::BTreeMap;

const NAMESPACE: &str = "openshift-cnv";

/// A client that counts its own requests.
struct CountingClient {
    client: Client,
    user: String,
    counted: BTreeMap<Row, usize>,
}

impl CountingClient {
    fn count(&mut self, kind: Kind, verb: &str, resource: &str) {
        let row = Row { user: self.user.clone(), kind, verb: verb.into(), resource: resource.into() };
        *self.counted.entry(row).or_default() += 1;
    }

    /// Sends the kind of request selected by `choice`; a failed request counts as well.
    async fn send(&mut self, choice: usize, round: usize) {
        let maps: Api<ConfigMap> = Api::namespaced(self.client.clone(), NAMESPACE);
        let leases: Api<Lease> = Api::namespaced(self.client.clone(), NAMESPACE);
        let events: Api<Event> = Api::namespaced(self.client.clone(), NAMESPACE);
        let nodes: Api<Node> = Api::all(self.client.clone());
        let name = format!("map-{}", round % 7);
        let apply = PatchParams::apply("counter").force();
        let map = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": {"round": round.to_string()}});
        match choice {
            0 => {
                self.count(Kind::Read, "get", "nodes");
                let _ = nodes.get("worker-0").await;
            }
            1 => {
                self.count(Kind::Read, "get", "nodes");
                let _ = nodes.get("missing").await;
            }
            2 => {
                self.count(Kind::Read, "list", "configmaps");
                let _ = maps.list(&ListParams::default()).await;
            }
            3 => {
                self.count(Kind::Write, "patch", "configmaps");
                let _ = maps.patch(&name, &apply, &Patch::Apply(&map)).await;
            }
            4 => {
                self.count(Kind::DryRun, "patch", "configmaps");
                let _ = maps.patch(&name, &apply.dry_run(), &Patch::Apply(&map)).await;
            }
            5 => {
                self.count(Kind::Write, "delete", "configmaps");
                let _ = maps.delete(&name, &DeleteParams::default()).await;
            }
            6 => {
                self.count(Kind::Watch, "watch", "nodes");
                if let Ok(stream) = nodes.watch(&WatchParams::default(), "0").await {
                    let _ = Box::pin(stream).next().await;
                }
            }
            7 => {
                self.count(Kind::Lease, "patch", "leases.coordination.k8s.io");
                let lease = json!({"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": {"name": "l"},
                    "spec": {"holderIdentity": round.to_string()}});
                let _ = leases.patch("l", &apply, &Patch::Apply(&lease)).await;
            }
            8 => {
                self.count(Kind::Event, "create", "events");
                let event: Event = serde_json::from_value(event(round)).unwrap();
                let _ = events.create(&PostParams::default(), &event).await;
            }
            9 => {
                self.count(Kind::Read, "get", "/apis");
                let _ = self.client.list_api_groups().await;
            }
            10 => {
                self.count(Kind::Write, "patch", "nodes/status");
                let labels = json!({"metadata": {"annotations": {"round": round.to_string()}}});
                let _ = nodes.patch_status("worker-1", &PatchParams::default(), &Patch::Merge(&labels)).await;
            }
            _ => {
                self.count(Kind::Write, "create", "configmaps");
                let map: ConfigMap = serde_json::from_value(map).unwrap();
                let _ = maps.create(&PostParams::default(), &map).await;
            }
        }
    }
}

fn event(round: usize) -> Value {
    json!({"metadata": {"name": format!("event-{round}"), "namespace": NAMESPACE},
        "involvedObject": {"kind": "Node", "name": "worker-0", "namespace": NAMESPACE}, "reason": "Counted", "message": "x"})
}

#[tokio::test(flavor = "multi_thread")]
async fn the_request_counter_agrees_with_clients_that_count_their_requests() {
    let playground = start("small").await;
    let admin = admin_account(&playground, "admin").await;
    let unprivileged = playground.account(NAMESPACE, "unprivileged").await.unwrap();

    let before = playground.audit_log().mark().unwrap();
    // One may do everything, the other almost nothing: refused requests count, too. They run concurrently.
    let send = |client: Client, user: String, seed: u64| async move {
        let mut random = PseudoRandom::new(seed);
        let mut counting = CountingClient { client, user, counted: BTreeMap::new() };
        for round in 0..500 {
            counting.send(random.below(12), round).await;
        }
        counting.counted
    };
    let by_admin = send(admin.client, admin.user.clone(), 1);
    let by_unprivileged = send(unprivileged.client, unprivileged.user.clone(), 2);
    let (mut counted, refused) = tokio::join!(by_admin, by_unprivileged);
    let logged = playground.audit_log().since(before).unwrap();
    assert_eq!(logged.by("openshift-cnv/unprivileged").table(), refused);
    counted.extend(refused);
    assert_eq!(counted.values().sum::<usize>(), 1000);
    assert_eq!(logged.filter(|request| request.user.contains("serviceaccount:openshift-cnv:")).table(), counted);
    let kinds = [Kind::DryRun, Kind::Watch, Kind::Lease, Kind::Event, Kind::Read, Kind::Write];
    assert!(kinds.iter().all(|kind| logged.of(*kind).count() > 50), "every kind is covered");
}
