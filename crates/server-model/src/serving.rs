//! What the model serves, and its answers to reads: discovery, CRDs, lists, queries and searches.

use crate::server::{ApiServer, Change, ServedKind, is_of};
use crate::stored::{Stored, id};
use catalog::{Answer, Part, Query};
use change::{Key, Kind, Live};
use protocol::{Body, Content, Discovered, Groups, Kinds, Search, WatchEvent, WatchTarget};
use serde_json::{Value, json};
use std::collections::BTreeMap;

/// A CustomResourceDefinition of the model.
#[derive(Debug, Clone, Copy)]
pub struct Crd {
    /// The API version of its kind.
    pub api_version: &'static str,
    /// Its kind.
    pub kind: &'static str,
    /// The name of its kind in paths.
    pub plural: &'static str,
    /// Whether its objects have a namespace.
    pub namespaced: bool,
}

impl Crd {
    /// Its name.
    pub fn name(&self) -> String {
        format!("{}.{}", self.plural, Kind::new(self.api_version, self.kind).group)
    }

    /// The CRD as an object.
    fn key(&self) -> Key {
        Key { kind: WatchTarget::crds().kind, namespace: String::new(), name: self.name() }
    }
}

impl ApiServer {
    /// Whether a kind is served.
    pub fn serves(&self, kind: &Kind) -> bool {
        self.kinds.iter().any(|served| served.kind == *kind)
    }

    /// Serves a kind.
    pub fn serve(&mut self, api_version: &str, kind: &str, plural: &str, namespaced: bool) {
        let (kind, plural) = (Kind::new(api_version, kind), plural.to_owned());
        self.kinds.push(ServedKind { kind, plural, namespaced, crd: None });
        self.discoveries += 1;
    }

    /// Installs a CRD: its kind is served at once.
    pub fn install_crd(&mut self, crd: &Crd) {
        let key = crd.key();
        if self.get(&key).is_some() {
            return;
        }
        self.serve(crd.api_version, crd.kind, crd.plural, crd.namespaced);
        self.kinds.last_mut().expect("it was just added").crd = Some(crd.name());
        let kind = Kind::new(crd.api_version, crd.kind);
        let spec = json!({"group": kind.group, "versions": [{"name": kind.version, "storage": true}]});
        let object = json!({"apiVersion": key.kind.api_version(), "kind": key.kind.kind, "metadata": {"name": key.name}, "spec": spec});
        self.create("installer", &key, &object).expect("CRDs are served");
    }

    /// Removes a CRD: its objects are deleted before it.
    pub fn remove_crd(&mut self, crd: &Crd) {
        let key = crd.key();
        if self.get(&key).is_none() {
            return;
        }
        let time = self.time();
        let terminate = |object: &mut Value| object["metadata"]["deletionTimestamp"] = json!(time);
        // A finalizer keeps the CRD until its objects are gone.
        self.update("server", &key, |object| object["metadata"]["finalizers"] = json!(["cleanup"])).expect("it exists");
        self.update("server", &key, terminate).expect("it exists");
        let kind = Kind::new(crd.api_version, crd.kind);
        let all: Vec<Key> = self.list(&kind, "").into_iter().map(|(key, _)| key.clone()).collect();
        for object in all {
            self.remove(&object);
        }
        self.remove(&id(&key));
        self.kinds.retain(|served| served.crd != Some(crd.name()));
        self.discoveries += 1;
    }

    /// Answers a discovery.
    pub fn discover(&self, tag: Option<&str>) -> Discovered {
        let now = format!("discovery-{}", self.discoveries);
        if tag == Some(now.as_str()) {
            return Discovered::Unchanged;
        }
        let (core, others): (Vec<_>, Vec<_>) = self.kinds.iter().partition(|served| served.kind.group.is_empty());
        let groups = Groups::read(&document(&others), now).expect("it is a discovery document");
        match tag {
            None => Discovered::All(Kinds::read(&document(&core), groups).expect("it is a discovery document")),
            Some(_) => Discovered::Groups(groups),
        }
    }

    /// The name of the kind as it is served; a panic if it is not.
    pub fn kind_called(&self, name: &str) -> Kind {
        let found = self.kinds.iter().find(|served| served.kind.kind == name);
        found.unwrap_or_else(|| panic!("the model does not serve {name}")).kind.clone()
    }

    /// Answers a query of a template.
    pub fn answer(&self, query: &Query) -> Answer {
        let object = |key: &Key| self.get(key).map(|stored| stored.whole(&key.kind.api_version()));
        let found = match query {
            Query::Object { namespace, name, .. } => {
                object(&Key { kind: query.kind(), namespace: namespace.clone(), name: name.clone() })
            }
            Query::Crd { name } => {
                let whole = object(&Key { kind: query.kind(), namespace: String::new(), name: name.clone() });
                whole.and_then(|whole| catalog::crd::read(&whole.to_string()).ok())
            }
            Query::List { .. } if !self.serves(&query.kind()) => None,
            Query::List { api_version, .. } => {
                let all = self.list(&query.kind(), "");
                Some(all.into_iter().map(|(_, stored)| stored.whole(api_version)).collect())
            }
        };
        found.map_or(Answer::Absent, Answer::Found)
    }

    /// Answers a search.
    pub fn search(&self, search: &Search) -> Vec<Key> {
        match search {
            Search::Name(key) => self.get(key).map(|_| key.clone()).into_iter().collect(),
            Search::Label(target) => {
                let all = self.list(&target.kind, &target.namespace).into_iter();
                let labelled = all.filter(|(_, stored)| stored.live().labelled);
                labelled.map(|(key, _)| Key { kind: target.kind.clone(), ..key.clone() }).collect()
            }
        }
    }

    /// Reads one whole object.
    pub fn inspect(&self, key: &Key) -> Option<(Live, Value)> {
        self.get(key).map(|stored| {
            let mut content = stored.whole(&key.kind.api_version());
            self.shown.iter().for_each(|show| show(&mut content));
            (stored.live(), content)
        })
    }

    /// What a watch reports when it lists.
    pub fn listing(&self, target: &WatchTarget, content: Content, verifies: bool) -> Vec<WatchEvent> {
        let all = self.list(&target.kind, &target.namespace);
        let mut events: Vec<WatchEvent> =
            all.iter().map(|(key, stored)| present(target, key, stored, content)).collect();
        let names = all.iter().map(|(key, _)| (key.namespace.clone(), key.name.clone())).collect();
        events.push(WatchEvent::Listed { all: names, version: self.version.to_string(), verifies });
        events
    }
}

/// What a watch reports of one change; `None` if it is of another kind or namespace.
pub fn report(target: &WatchTarget, content: Content, change: &Change) -> Option<WatchEvent> {
    if !is_of(&change.id, &target.kind, &target.namespace) {
        return None;
    }
    let (namespace, name) = (change.id.namespace.clone(), change.id.name.clone());
    Some(match &change.after {
        Some(stored) => present(target, &change.id, stored, content),
        None => WatchEvent::Gone { namespace, name, version: change.version.to_string() },
    })
}

fn present(target: &WatchTarget, id: &Key, stored: &Stored, content: Content) -> WatchEvent {
    let (live, body) = match content {
        Content::Names => (stored.name_and_version(), Body::None),
        Content::Metadata => (stored.live(), Body::None),
        Content::Part => {
            let object = match target.kind.kind.as_str() {
                "VirtPlatformConfig" => &stored.whole(&target.kind.api_version()),
                // Nothing that is read of other kinds depends on who owns their fields.
                _ => &stored.object,
            };
            let part = Part::read(&target.kind.kind, &object.to_string());
            (stored.name_and_version(), Body::Part(part.expect("the object can be read")))
        }
        Content::Whole => (stored.live(), Body::Whole(stored.whole(&target.kind.api_version()))),
    };
    let (namespace, name) = (id.namespace.clone(), id.name.clone());
    WatchEvent::Present { namespace, name, live, generation: stored.generation(), body }
}

/// A document of aggregated discovery.
fn document(kinds: &[&ServedKind]) -> String {
    let mut groups: BTreeMap<(&str, &str), Vec<Value>> = BTreeMap::new();
    for ServedKind { kind, plural, namespaced, .. } in kinds {
        let scope = if *namespaced { "Namespaced" } else { "Cluster" };
        let resource =
            json!({"resource": plural, "responseKind": {"kind": kind.kind}, "scope": scope, "verbs": ["list"]});
        groups.entry((&kind.group, &kind.version)).or_default().push(resource);
    }
    let items = groups.into_iter().map(|((group, version), resources)| {
        json!({"metadata": {"name": group}, "versions": [{"version": version, "resources": resources}]})
    });
    json!({"items": items.collect::<Vec<_>>()}).to_string()
}
