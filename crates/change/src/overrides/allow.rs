//! Which fields of which kind users may patch.

mod table;
mod walk;

use crate::fields::pattern::{PathPattern, fits};
use crate::fields::pointer::Pointer;
use crate::object::key::Key;
use crate::overrides::guards::{OverrideGuard, OverrideGuards};
use serde::Serialize;
use std::collections::BTreeSet;
use table::{CLASSES, DEFAULT, OPENED, OURS, SENSITIVE};
pub(crate) use walk::{Position, RuleWalk};

/// A path pattern, and why its fields may or may not be patched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PathRule {
    /// The pattern: `*` matches a step or a part of one, `**` any number of steps, `*!(a|b)` all steps but these, `[name=a]` an item or a
    /// key with this name in any case, `step=text` a text.
    pub path: &'static str,
    /// The reason.
    pub why: &'static str,
}

/// Kinds with the same rules; closed paths win over open paths.
#[derive(Debug)]
struct Class {
    name: &'static str,
    kinds: &'static [&'static str],
    why: &'static str,
    open: &'static [&'static [PathRule]],
    closed: &'static [&'static [PathRule]],
    example: &'static str,
}

/// Kinds that cannot be patched unless they are opened, and why; a kind may be a pattern, or `Kind/name` with a pattern of names.
#[derive(Debug)]
struct Sensitive {
    kinds: &'static [&'static str],
    why: &'static str,
}

/// The kinds whose closed fields the administrator has opened.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PatchableKinds(BTreeSet<String>);

impl PatchableKinds {
    /// No kind is opened.
    pub fn none() -> PatchableKinds {
        PatchableKinds::default()
    }

    /// Parses a comma-separated list of kinds; a kind of the table in another spelling is an error.
    pub fn parse(text: &str) -> Result<PatchableKinds, String> {
        let kinds = text.split(',').map(str::trim).filter(|kind| !kind.is_empty());
        kinds.map(|kind| check_patchable(kind).map(|()| kind.to_owned())).collect::<Result<_, _>>().map(PatchableKinds)
    }

    fn contains(&self, kind: &str) -> bool {
        self.0.contains(kind)
    }
}

fn check_patchable(kind: &str) -> Result<(), String> {
    if !kind.chars().all(|character| character.is_ascii_alphanumeric()) {
        return Err(format!(
            "{kind:?} is not a kind; write a kind such as MachineConfig or Service, patterns and names of objects are not supported"
        ));
    }
    if let Some(known) = known(kind).or_else(|| known(kind.strip_suffix('s')?)).filter(|known| *known != kind) {
        return Err(format!("there is no kind {kind:?}; did you mean {known}?"));
    }
    if !kind.starts_with(|first: char| first.is_ascii_uppercase()) {
        return Err(format!("{kind:?} is not a kind; a kind begins with a capital letter, such as MachineConfig"));
    }
    Ok(())
}

fn sensitive(kind: &str, name: &str, guards: OverrideGuards) -> Option<&'static Sensitive> {
    let is_meant = |pattern: &&str| match pattern.split_once('/') {
        Some((kinds, names)) => fits(kinds, kind) && fits(names, name),
        None => fits(pattern, kind),
    };
    SENSITIVE.iter().find(|sensitive| sensitive.kinds.iter().filter(|pattern| guards.has_row(pattern)).any(is_meant))
}

fn class(kind: &str) -> &'static Class {
    CLASSES.iter().find(|class| class.kinds.contains(&kind)).unwrap_or(&DEFAULT)
}

/// A kind of the table in its exact spelling, found case-insensitively.
fn known(kind: &str) -> Option<&'static str> {
    let mut kinds =
        SENSITIVE.iter().flat_map(|sensitive| sensitive.kinds).chain(CLASSES.iter().flat_map(|class| class.kinds));
    kinds.find(|known| known.eq_ignore_ascii_case(kind)).copied()
}

/// The open and the closed paths of a kind.
struct Rules {
    open: Vec<PathRule>,
    closed: Vec<PathRule>,
}

/// The rules for an object; the error says why nothing of it may be patched.
fn rules(
    kind: &str,
    name: &str,
    patchable_kinds: &PatchableKinds,
    guards: OverrideGuards,
) -> Result<Rules, &'static Sensitive> {
    let class = class(kind);
    let is_opened = patchable_kinds.contains(kind);
    let list = |lists: &[&[PathRule]]| lists.iter().flat_map(|list| list.iter().copied()).collect::<Vec<_>>();
    match sensitive(kind, name, guards).filter(|_| guards.enabled(OverrideGuard::SensitiveKinds)) {
        Some(sensitive) if !is_opened => Err(sensitive),
        // All objects of the kind are sensitive, so the kind has no class.
        Some(_) if sensitive(kind, "", guards).is_some() => Ok(Rules { open: OPENED.to_vec(), closed: Vec::new() }),
        _ if is_opened => Ok(Rules { open: list(&[&[OPENED], class.open].concat()), closed: vec![OURS] }),
        _ => {
            let mut closed = list(class.closed);
            closed.retain(|rule| guards.has_row(rule.path));
            Ok(Rules { open: list(class.open), closed })
        }
    }
}

/// The rules of one kind, as shown to users.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Explanation {
    /// The kind.
    pub kind: String,
    /// Whether the table names the kind; otherwise the default rules apply.
    pub named: bool,
    /// The class whose rules apply.
    pub class: &'static str,
    /// Why the kind has these rules.
    pub why: &'static str,
    /// Whether the kind is closed unless it is opened.
    pub sensitive: bool,
    /// Whether the administrator has opened the kind.
    pub opened: bool,
    /// Paths that may be patched.
    pub open: Vec<PathRule>,
    /// Paths that may not, although an open path matches.
    pub closed: Vec<PathRule>,
    /// An example of an allowed patch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub example: Option<&'static str>,
}

/// The rules of a kind, found case-insensitively, or of an object, written as `Kind/name`.
pub fn explain(kind: &str, patchable_kinds: &PatchableKinds) -> Explanation {
    let (kind, name) = kind.split_once('/').unwrap_or((kind, ""));
    let spelled = known(kind).unwrap_or(kind);
    let sensitive = sensitive(spelled, name, OverrideGuards::ALL);
    let class = class(spelled);
    let none = |_| Rules { open: Vec::new(), closed: Vec::new() };
    let Rules { open, closed } = rules(spelled, name, patchable_kinds, OverrideGuards::ALL).unwrap_or_else(none);
    Explanation {
        kind: spelled.to_owned(),
        named: sensitive.is_some() || class.kinds.contains(&spelled),
        class: sensitive.map_or(class.name, |_| "sensitive"),
        why: sensitive.map_or(class.why, |sensitive| sensitive.why),
        sensitive: sensitive.is_some(),
        opened: patchable_kinds.contains(spelled),
        open,
        closed,
        example: sensitive.is_none().then_some(class.example),
    }
}

/// The sensitive kinds, and why they are closed.
pub fn sensitive_kinds() -> impl Iterator<Item = (&'static [&'static str], &'static str)> {
    SENSITIVE.iter().map(|sensitive| (sensitive.kinds, sensitive.why))
}

/// The rows of the table that close something: paths and sensitive kinds. Some paths are in several classes.
#[cfg(test)]
pub(crate) fn rows() -> impl Iterator<Item = &'static str> {
    let classes = CLASSES.iter().chain([&DEFAULT]);
    let closed = classes.flat_map(|class| class.closed).flat_map(|rules| rules.iter()).map(|rule| rule.path);
    closed.chain(SENSITIVE.iter().flat_map(|sensitive| sensitive.kinds).copied())
}

/// The compiled rules of one object.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Allowed {
    kind: String,
    /// Closed paths with their reason, then open paths without one.
    patterns: Vec<(PathPattern, Option<&'static str>)>,
}

impl Allowed {
    /// Compiles the rules for an object; the error is a message for the author of a patch.
    pub(crate) fn of(key: &Key, patchable_kinds: &PatchableKinds, guards: OverrideGuards) -> Result<Allowed, String> {
        let kind = key.kind.kind.as_str();
        let rules = rules(kind, &key.name, patchable_kinds, guards).map_err(|sensitive| {
            let what = if sensitive.kinds.iter().any(|pattern| fits(pattern, kind)) { "" } else { key.name.as_str() };
            let what = if what.is_empty() { format!("a {kind}") } else { format!("the {kind} {what}") };
            format!("{what} cannot be patched by annotation: {}", sensitive.why)
        })?;
        let closed = rules.closed.iter().map(|rule| (rule.path, Some(rule.why)));
        let open = rules.open.iter().map(|rule| (rule.path, None));
        let patterns = closed.chain(open).map(|(path, why)| (PathPattern::new(path), why)).collect();
        Ok(Allowed { kind: kind.to_owned(), patterns })
    }

    /// Checks one path.
    pub(crate) fn judge(&self, path: &Pointer) -> Result<(), String> {
        let mut walk = RuleWalk::new(self);
        let position = path.steps().iter().fold(RuleWalk::TOP, |position, step| walk.step(position, step));
        walk.judge(position).map_err(|why| self.refusal(path, why))
    }

    /// The message for a path that may not be patched.
    pub(crate) fn refusal(&self, path: &Pointer, why: Option<&str>) -> String {
        let what = if path.steps().is_empty() { "the whole object".to_owned() } else { path.to_string() };
        let kind = &self.kind;
        match why {
            Some(why) => format!("{what} may not be patched in a {kind}: {why}"),
            None => format!("{what} may not be patched in a {kind}; see `virtpilot explain patch {kind}`"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::{Allowed, CLASSES, DEFAULT, OURS, PatchableKinds, SENSITIVE, explain, sensitive_kinds};
    use crate::fields::pointer::Pointer;
    use crate::object::key::{Key, Kind};
    use crate::overrides::guards::OverrideGuards;
    use crate::overrides::patch::Patch;
    use expect_test::expect;

    fn named(kind: &str, name: &str) -> Key {
        Key { kind: Kind::new("v1", kind), namespace: "n".into(), name: name.into() }
    }

    fn may_with(key: &Key, path: &str, patchable_kinds: &PatchableKinds) -> bool {
        let allowed = Allowed::of(key, patchable_kinds, OverrideGuards::ALL);
        allowed.is_ok_and(|allowed| allowed.judge(&Pointer::parse(path).unwrap()).is_ok())
    }

    fn may(kind: &str, path: &str) -> bool {
        may_with(&named(kind, "x"), path, &PatchableKinds::none())
    }

    #[test]
    fn the_sensitive_kinds_are_listed_with_their_reasons() {
        let of = |kind: &str| sensitive_kinds().find(|(kinds, _)| kinds.contains(&kind)).map(|(_, why)| why);
        assert_eq!(of("ClusterRole"), Some(explain("ClusterRole", &PatchableKinds::none()).why));
        assert_eq!((sensitive_kinds().count(), of("Service")), (SENSITIVE.len(), None));
    }

    #[test]
    fn every_rule_has_a_pointer_and_a_reason_and_no_kind_is_named_twice() {
        let mut kinds = std::collections::BTreeSet::new();
        for class in CLASSES.iter().chain([&DEFAULT]) {
            for rule in class.open.iter().chain(class.closed).flat_map(|rules| rules.iter()) {
                let pointer = Pointer::parse(rule.path).unwrap_or_else(|why| panic!("{}: {why}", class.name));
                assert!(!pointer.steps().is_empty() && !rule.why.is_empty(), "{}", rule.path);
                // All items of a list have the same rules.
                assert!(
                    !pointer.steps().iter().any(|step| step.chars().all(|character| character.is_ascii_digit())),
                    "{}",
                    rule.path
                );
            }
            assert!(!class.why.is_empty());
        }
        for kind in CLASSES.iter().flat_map(|class| class.kinds).chain(SENSITIVE.iter().flat_map(|entry| entry.kinds)) {
            assert!(kinds.insert(*kind), "{kind}");
        }
    }

    #[test]
    fn no_rule_opens_the_identity_of_an_object() {
        for class in CLASSES.iter().chain([&DEFAULT]) {
            for rule in class.open.iter().flat_map(|rules| rules.iter()) {
                let steps = Pointer::parse(rule.path).unwrap().steps().to_vec();
                let content = ["spec", "data"].contains(&steps[0].as_str());
                let own = steps.len() == 3
                    && steps[0] == "metadata"
                    && ["labels", "annotations"].contains(&steps[1].as_str());
                assert!(content || own, "{} opens {}", class.name, rule.path);
            }
            for path in
                ["", "/metadata", "/metadata/name", "/kind", "/metadata/labels", "/status/x", "/metadata/finalizers/0"]
            {
                for kind in class.kinds.iter().chain([&"Unknown"]) {
                    assert!(!may(kind, path), "{kind} {path}");
                }
            }
        }
    }

    #[test]
    fn every_example_is_allowed() {
        for class in CLASSES.iter().chain([&DEFAULT]) {
            let key = named(class.kinds.first().unwrap_or(&"Unknown"), "x");
            assert_eq!(
                Patch::parse(class.example, &key, &PatchableKinds::none()).map(|patch| patch.len()),
                Ok(1),
                "{}",
                class.name
            );
        }
    }

    #[test]
    fn closed_paths_win_over_open_paths() {
        assert!(may("Service", "/spec/ports/0/port") && may("Service", "/spec/sessionAffinity"));
        assert!(!may("Service", "/spec/externalIPs/0") && !may("Service", "/spec/selector/app"));
        assert!(may("DaemonSet", "/spec/template/spec/containers/0/env/0/value"));
        assert!(!may("DaemonSet", "/spec/template/spec/containers/0/env/0/valueFrom/secretKeyRef/name"));
        assert!(!may("DaemonSet", "/spec/template/spec/containers/0/resources/claims/0/name"));
        assert!(!may("DaemonSet", "/spec/tolerations/0") && may("Pod", "/spec/tolerations/0"));
        assert!(may("ConfigMap", "/data/x") && !may("ConfigMap", "/binaryData/x") && !may("Secret", "/data/x"));
        assert!(
            may("Unknown", "/spec/a/b")
                && !may("Unknown", "/spec/a/hostPath/path")
                && !may("Unknown", "/spec/x/containers/0/name")
        );
        assert!(may("PrometheusRule", "/spec/groups/0/rules/0/annotations/command"));
        assert!(
            !may("ServiceMonitor", "/spec/endpoints/0/bearerTokenFile")
                && may("ServiceMonitor", "/spec/endpoints/0/interval")
        );
        assert!(
            !may("Deployment", "/metadata/annotations/image.openshift.io~1triggers")
                && may("Deployment", "/metadata/annotations/team")
        );
        assert!(!may("HyperConverged", "/metadata/annotations/kubevirt.kubevirt.io~1jsonpatch"));
    }

    #[test]
    fn a_sensitive_kind_can_be_opened_and_then_only_its_spec() {
        let opened = PatchableKinds::parse("MachineConfig, FenceAgentsRemediationTemplate,").unwrap();
        assert!(may_with(&named("MachineConfig", "m"), "/spec/kernelArguments/0", &opened));
        assert!(!may_with(&named("MachineConfig", "m"), "/metadata/labels/x", &opened));
        assert!(!may_with(&named("KubeletConfig", "k"), "/spec/x", &opened));
    }

    #[test]
    fn the_closed_fields_of_any_kind_can_be_opened_but_not_our_own_keys() {
        let opened =
            PatchableKinds::parse("Service, HyperConverged, Deployment, ConfigMap, LokiStack, Widget").unwrap();
        for (kind, name, path) in [
            ("Service", "s", "/spec/type"),
            ("Service", "s", "/metadata/annotations/metallb.io~1address-pool"),
            ("HyperConverged", "h", "/spec/featureGates/0"),
            ("Deployment", "d", "/spec/template/spec/containers/0/resources/limits/nvidia.com~1gpu"),
            ("ConfigMap", "c", "/data/run.sh"),
            ("ConfigMap", "trusted-ca", "/data/x"),
            ("LokiStack", "l", "/spec/tenants/mode"),
            ("Widget", "w", "/metadata/labels/helm.sh~1chart"),
        ] {
            let key = named(kind, name);
            assert!(!may_with(&key, path, &PatchableKinds::none()), "{kind} {path} is open by default");
            assert!(may_with(&key, path, &opened), "{kind} {path} cannot be opened");
        }
        for path in ["/metadata/labels/platform.kubevirt.io~1managed-by", "/metadata/name", "/binaryData/x", ""] {
            assert!(!may_with(&named("ConfigMap", "c"), path, &opened), "{path}");
        }
        let annotation = "/metadata/annotations/kubevirt.kubevirt.io~1jsonpatch";
        assert!(!may_with(&named("HyperConverged", "h"), annotation, &opened), "its class does not open annotations");
    }

    #[test]
    fn kinds_that_are_misspelled_are_refused() {
        let refused: Vec<String> =
            ["machineconfig", "Services", "frobnicator", "*", "ConfigMap/trusted-ca"].map(refusal).into();
        expect![[r#"
            there is no kind "machineconfig"; did you mean MachineConfig?
            there is no kind "Services"; did you mean Service?
            "frobnicator" is not a kind; a kind begins with a capital letter, such as MachineConfig
            "*" is not a kind; write a kind such as MachineConfig or Service, patterns and names of objects are not supported
            "ConfigMap/trusted-ca" is not a kind; write a kind such as MachineConfig or Service, patterns and names of objects are not supported"#]]
        .assert_eq(&refused.join("\n"));
    }

    fn refusal(kinds: &str) -> String {
        PatchableKinds::parse(kinds).unwrap_err()
    }

    #[test]
    fn every_class_closes_our_own_keys_and_every_open_spec_closes_privileged_fields() {
        for class in CLASSES.iter().chain([&DEFAULT]) {
            let has = |path: &str| class.closed.iter().any(|rules| rules.iter().any(|rule| rule.path == path));
            assert!(has(OURS.path), "{}", class.name);
            let opens_spec = class.open.iter().any(|rules| rules.iter().any(|rule| rule.path == "/spec/**"));
            let is_exempt = class.name == "alerts and dashboards";
            assert_eq!(has("/spec/**/securityContext/**"), opens_spec && !is_exempt, "{}", class.name);
            let starts_pods = class.open.iter().any(|rules| rules.iter().any(|rule| rule.path.ends_with("/env/**")));
            assert_eq!(has("/**/resources/claims/**"), starts_pods || (opens_spec && !is_exempt), "{}", class.name);
        }
    }

    #[test]
    fn an_explanation_shows_the_table() {
        let service = explain("service", &PatchableKinds::none());
        assert!(service.named && service.kind == "Service" && service.open[0].path == "/spec/**");
        let unknown = explain("Unknown", &PatchableKinds::none());
        assert!(!unknown.named && unknown.class == "default");
        let machines = explain("MachineConfig", &PatchableKinds::none());
        assert!(machines.sensitive && machines.open.is_empty() && machines.example.is_none());
        assert_eq!(explain("MachineConfig", &PatchableKinds::parse("MachineConfig").unwrap()).open.len(), 1);
        let opened = explain("Service", &PatchableKinds::parse("Service").unwrap());
        assert!(opened.opened && !service.opened && opened.closed == [OURS]);
        assert!(!explain("ConfigMap", &PatchableKinds::none()).sensitive);
        assert!(explain("configmap/trusted-ca", &PatchableKinds::none()).sensitive);
    }
}
