//! Which kinds the API server serves, and how.

use change::Kind;
use serde::Deserialize;
use std::collections::{BTreeMap, BTreeSet};

/// What the API server serves, as of the last discovery.
#[derive(Debug, Default)]
pub struct Kinds {
    /// The core group, which never changes.
    core: Map,
    /// All other groups.
    groups: Groups,
}

type Map = BTreeMap<Kind, (Box<str>, bool)>;

/// What is served in all groups but the core one.
#[derive(Debug, Default)]
pub struct Groups {
    kinds: Map,
    /// Groups and versions of which the server itself does not know what there is now.
    unclear: BTreeSet<(String, String)>,
    /// What the server calls this answer.
    tag: String,
}

/// A kind that is served.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Served {
    kind: Kind,
    /// The resource name in URLs.
    pub plural: Box<str>,
    /// Whether its objects live in namespaces.
    pub namespaced: bool,
}

impl Kinds {
    /// From two discovery documents: the core group, and all others with the tag of the answer.
    pub fn read(core: &str, groups: Groups) -> serde_json::Result<Kinds> {
        Ok(Kinds { core: Groups::read(core, String::new())?.kinds, groups })
    }

    /// What the server calls its last answer, for the next discovery.
    pub fn tag(&self) -> &str {
        &self.groups.tag
    }

    /// Takes another answer. Where the server itself does not know what there is now, what there was still counts.
    pub fn take(&mut self, groups: Groups) {
        let before = std::mem::replace(&mut self.groups, groups);
        let unclear = &self.groups.unclear;
        let still = |kind: &Kind| unclear.contains(&(kind.group.clone(), kind.version.clone()));
        let kept = before.kinds.into_iter().filter(|(kind, _)| still(kind));
        for (kind, place) in kept.collect::<Vec<_>>() {
            self.groups.kinds.entry(kind).or_insert(place);
        }
    }

    /// Whether some version of a CustomResourceDefinition is served; its name is `plural.group`.
    pub fn serves_crd(&self, name: &str) -> bool {
        let Some((plural, group)) = name.split_once('.') else { return false };
        let first = Kind { group: group.to_owned(), version: String::new(), kind: String::new() };
        let of_group = self.groups.kinds.range(first..).take_while(|(kind, _)| kind.group == group);
        of_group.into_iter().any(|(_, (served, _))| **served == *plural)
    }

    /// Takes out what a definition brought that is no longer there; whether there was anything. The next discovery is a new one.
    pub fn drop_crd(&mut self, name: &str) -> bool {
        let Some((plural, group)) = name.split_once('.') else { return false };
        let before = self.groups.kinds.len();
        self.groups.kinds.retain(|kind, (served, _)| kind.group != group || **served != *plural);
        let is_changed = self.groups.kinds.len() != before;
        if is_changed {
            self.groups.tag.clear();
        }
        is_changed
    }

    /// How a kind is served; `None` if it is not.
    pub fn find(&self, kind: &Kind) -> Option<Served> {
        let map = if kind.group.is_empty() { &self.core } else { &self.groups.kinds };
        let (plural, namespaced) = map.get(kind)?;
        Some(Served { kind: kind.clone(), plural: plural.clone(), namespaced: *namespaced })
    }

    /// The newest of these versions of a kind that is served.
    pub fn newest(&self, group: &str, versions: &[&str], kind: &str) -> Option<(Kind, Served)> {
        versions.iter().find_map(|version| {
            let kind = Kind { group: group.into(), version: (*version).into(), kind: kind.into() };
            self.find(&kind).map(|served| (kind, served))
        })
    }
}

impl Groups {
    /// From a discovery document and its tag.
    pub fn read(text: &str, tag: String) -> serde_json::Result<Groups> {
        let list: Discovered = serde_json::from_str(text)?;
        // Older servers do not know aggregated discovery and answer with another document, in which everything would be missing.
        if !list.kind.is_empty() && list.kind != AGGREGATED {
            let why = format!("it is an {} and no {AGGREGATED}; Kubernetes 1.27 or newer is needed", list.kind);
            return Err(serde::de::Error::custom(why));
        }
        let mut groups = Groups { tag, ..Groups::default() };
        for group in list.items {
            for version in group.versions {
                if version.freshness == "Stale" {
                    groups.unclear.insert((group.metadata.name.clone(), version.version.clone()));
                }
                let all = version.resources.into_iter();
                for resource in all.filter(|resource| resource.verbs.iter().any(|verb| verb == "list")) {
                    let Some(kind) = resource.response_kind else { continue };
                    let (group, version) = (group.metadata.name.clone(), version.version.clone());
                    let place = (resource.resource.into_boxed_str(), resource.scope == "Namespaced");
                    groups.kinds.entry(Kind { group, version, kind: kind.kind }).or_insert(place);
                }
            }
        }
        Ok(groups)
    }
}

impl Served {
    /// A kind whose place is known without asking the server.
    pub fn at(kind: Kind, plural: &str, namespaced: bool) -> Served {
        Served { kind, plural: plural.into(), namespaced }
    }

    /// What it is.
    pub fn kind(&self) -> &Kind {
        &self.kind
    }

    /// The address of one object, or with no name of all of them.
    pub fn url(&self, namespace: &str, name: &str) -> String {
        let Kind { group, version, .. } = &self.kind;
        let mut url = if group.is_empty() { format!("/api/{version}") } else { format!("/apis/{group}/{version}") };
        if self.namespaced && !namespace.is_empty() {
            url.push_str(&format!("/namespaces/{namespace}"));
        }
        url.push_str(&format!("/{}", self.plural));
        if !name.is_empty() {
            url.push_str(&format!("/{name}"));
        }
        url
    }
}

/// The kind of a document with everything that is served.
const AGGREGATED: &str = "APIGroupDiscoveryList";

#[derive(Deserialize)]
struct Discovered {
    #[serde(default)]
    kind: String,
    #[serde(default)]
    items: Vec<Group>,
}

#[derive(Deserialize)]
struct Group {
    metadata: Named,
    #[serde(default)]
    versions: Vec<Version>,
}

#[derive(Deserialize)]
struct Named {
    /// The core group has none.
    #[serde(default)]
    name: String,
}

#[derive(Deserialize)]
struct Version {
    version: String,
    #[serde(default)]
    freshness: String,
    #[serde(default)]
    resources: Vec<Resource>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Resource {
    resource: String,
    response_kind: Option<ResponseKind>,
    #[serde(default)]
    scope: String,
    #[serde(default)]
    verbs: Vec<String>,
}

#[derive(Deserialize)]
struct ResponseKind {
    kind: String,
}

#[cfg(test)]
mod tests {
    use super::{Groups, Kinds};
    use change::Kind;

    fn discovered(group: &str, version: &str, more: &str, resource: Option<(&str, &str, &str)>) -> String {
        let resource = resource.map_or(String::new(), |(resource, kind, scope)| {
            format!(
                r#"{{"resource":"{resource}","responseKind":{{"group":"","version":"","kind":"{kind}"}},"scope":"{scope}","verbs":["get","list"]}}"#
            )
        });
        format!(
            r#"{{"items":[{{"metadata":{{{group}}},"versions":[{{"version":"{version}",{more}"resources":[{resource}]}}]}}]}}"#
        )
    }

    fn read(text: &str) -> Groups {
        Groups::read(text, String::new()).unwrap()
    }

    const POOL: Option<(&str, &str, &str)> = Some(("machineconfigpools", "MachineConfigPool", "Cluster"));

    #[test]
    fn a_kind_is_found_with_its_address() {
        let service = Some(("services", "Service", "Namespaced"));
        let core = discovered(r#""creationTimestamp":null"#, "v1", "", service);
        let mut kinds = Kinds::read(&core, read(&discovered(r#""name":"m.io""#, "v2", "", POOL))).unwrap();
        let url = |api_version: &str, kind: &str| {
            kinds.find(&Kind::new(api_version, kind)).map(|served| served.url("n", "x"))
        };
        assert_eq!(url("v1", "Service").unwrap(), "/api/v1/namespaces/n/services/x");
        assert_eq!(url("m.io/v2", "MachineConfigPool").unwrap(), "/apis/m.io/v2/machineconfigpools/x");
        assert_eq!(url("m.io/v1", "MachineConfigPool"), None);
        assert!(kinds.serves_crd("machineconfigpools.m.io") && !kinds.serves_crd("machineconfigpools.n.io"));
        assert!(!kinds.drop_crd("other.m.io") && kinds.drop_crd("machineconfigpools.m.io"));
        assert!(!kinds.serves_crd("machineconfigpools.m.io"));
    }

    #[test]
    fn a_server_without_aggregated_discovery_is_named_as_too_old_and_not_taken_as_empty() {
        for kind in ["APIGroupList", "APIVersions"] {
            let text = format!(r#"{{"kind":"{kind}","groups":[{{"name":"apps"}}],"versions":["v1"]}}"#);
            let error = Groups::read(&text, String::new()).unwrap_err().to_string();
            assert!(error.contains(kind) && error.contains("Kubernetes 1.27 or newer is needed"), "{error}");
        }
        assert!(Groups::read(r#"{"kind":"APIGroupDiscoveryList","items":[]}"#, String::new()).is_ok());
    }

    #[test]
    fn the_newest_version_that_is_served_is_found() {
        let kinds = Kinds { groups: read(&discovered(r#""name":"m.io""#, "v2", "", POOL)), ..Kinds::default() };
        let newest = |versions: &[&str]| kinds.newest("m.io", versions, "MachineConfigPool").map(|(kind, _)| kind);
        assert_eq!(newest(&["v3", "v2", "v1"]), Some(Kind::new("m.io/v2", "MachineConfigPool")));
        assert_eq!(newest(&["v3"]), None);
    }

    #[test]
    fn what_cannot_be_listed_is_not_served() {
        let text = discovered(r#""name":"m.io""#, "v2", "", POOL).replace(r#""list""#, r#""create""#);
        let kinds = Kinds { groups: read(&text), ..Kinds::default() };
        assert!(kinds.find(&Kind::new("m.io/v2", "MachineConfigPool")).is_none());
    }

    #[test]
    fn the_tag_of_an_answer_is_kept_until_a_definition_goes() {
        let text = discovered(r#""name":"m.io""#, "v2", "", POOL);
        let groups = Groups::read(&text, "seven".into()).unwrap();
        let mut kinds = Kinds { groups, ..Kinds::default() };
        assert!(!kinds.drop_crd("other.m.io") && kinds.tag() == "seven");
        assert!(kinds.drop_crd("machineconfigpools.m.io") && kinds.tag().is_empty(), "the next discovery is a new one");
    }

    #[test]
    fn what_the_server_is_not_sure_of_is_not_gone() {
        let pool = Kind::new("m.io/v2", "MachineConfigPool");
        let mut kinds = Kinds { groups: read(&discovered(r#""name":"m.io""#, "v2", "", POOL)), ..Kinds::default() };
        kinds.take(read(&discovered(r#""name":"m.io""#, "v2", r#""freshness":"Stale","#, None)));
        assert!(kinds.find(&pool).is_some());
        kinds.take(read(&discovered(r#""name":"m.io""#, "v2", r#""freshness":"Current","#, None)));
        assert!(kinds.find(&pool).is_none());
    }
}
