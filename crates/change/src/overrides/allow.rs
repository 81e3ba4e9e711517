//! Which fields of which kind users may patch.

mod table;
mod walk;

use crate::fields::pattern::{PathPattern, fits};
use crate::fields::pointer::Pointer;
use crate::object::key::Kind;
use crate::overrides::guards::{OverrideGuard, OverrideGuards};
use serde::Serialize;
use std::collections::BTreeSet;
use table::{CLASSES, DEFAULT, OPENED, SENSITIVE};
pub(crate) use walk::{Position, RuleWalk};

/// A path pattern, and why its fields may or may not be patched.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
pub struct PathRule {
    /// The pattern: `*` matches a step or a part of one, `**` any number of steps.
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

/// Kinds that cannot be patched unless they are opened, and why; a kind may be a pattern.
#[derive(Debug)]
struct Sensitive {
    kinds: &'static [&'static str],
    why: &'static str,
}

/// The sensitive kinds that the administrator has made patchable.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct PatchableKinds(BTreeSet<String>);

impl PatchableKinds {
    /// No sensitive kind is patchable.
    pub fn none() -> PatchableKinds {
        PatchableKinds::default()
    }

    /// Parses a comma-separated list of kinds; a kind that is not sensitive is an error.
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
        return Err(format!("{kind:?} is not a kind; write a kind such as MachineConfig, patterns are not supported"));
    }
    if sensitive(kind).is_some() {
        return Ok(());
    }
    if let Some(known) = known(kind).filter(|known| *known != kind) {
        return Err(format!("there is no kind {kind:?}; did you mean {known}?"));
    }
    Err(format!(
        "{kind} is not a closed kind, so it cannot be opened; `virtpilot explain patch {kind}` shows which fields may be patched"
    ))
}

fn sensitive(kind: &str) -> Option<&'static Sensitive> {
    SENSITIVE.iter().find(|sensitive| sensitive.kinds.iter().any(|pattern| fits(pattern, kind)))
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
    /// Paths that may be patched.
    pub open: Vec<PathRule>,
    /// Paths that may not, although an open path matches.
    pub closed: Vec<PathRule>,
    /// An example of an allowed patch.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub example: Option<&'static str>,
}

/// The rules of a kind, found case-insensitively.
pub fn explain(kind: &str, patchable_kinds: &PatchableKinds) -> Explanation {
    let spelled = known(kind).unwrap_or(kind);
    let sensitive = sensitive(spelled);
    let rules = |lists: &[&[PathRule]]| lists.iter().flat_map(|list| list.iter().copied()).collect();
    if let Some(sensitive) = sensitive {
        let open = if patchable_kinds.contains(spelled) { OPENED.to_vec() } else { Vec::new() };
        return Explanation {
            kind: spelled.to_owned(),
            named: true,
            class: "sensitive",
            why: sensitive.why,
            sensitive: true,
            open,
            closed: Vec::new(),
            example: None,
        };
    }
    let class = class(spelled);
    Explanation {
        kind: spelled.to_owned(),
        named: class.kinds.contains(&spelled),
        class: class.name,
        why: class.why,
        sensitive: false,
        open: rules(class.open),
        closed: rules(class.closed),
        example: Some(class.example),
    }
}

/// The sensitive kinds, and why they are closed.
pub fn sensitive_kinds() -> impl Iterator<Item = (&'static [&'static str], &'static str)> {
    SENSITIVE.iter().map(|sensitive| (sensitive.kinds, sensitive.why))
}

/// The compiled rules of one kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Allowed {
    kind: String,
    /// Closed paths with their reason, then open paths without one.
    patterns: Vec<(PathPattern, Option<&'static str>)>,
}

impl Allowed {
    /// Compiles the rules of a kind; the error is a message for the author of a patch.
    pub(crate) fn of(kind: &Kind, patchable_kinds: &PatchableKinds, guards: OverrideGuards) -> Result<Allowed, String> {
        let name = kind.kind.as_str();
        let closed = sensitive(name).filter(|_| guards.enabled(OverrideGuard::SensitiveKinds));
        let (open, closed): (&[&[PathRule]], &[&[PathRule]]) = match closed {
            Some(_) if patchable_kinds.contains(name) => (&[OPENED], &[]),
            Some(sensitive) => {
                return Err(format!("a {name} cannot be patched by annotation: {}", sensitive.why));
            }
            None => (class(name).open, class(name).closed),
        };
        let closed = closed.iter().flat_map(|rules| rules.iter()).map(|rule| (rule.path, Some(rule.why)));
        let open = open.iter().flat_map(|rules| rules.iter()).map(|rule| (rule.path, None));
        let patterns = closed.chain(open).map(|(path, why)| (PathPattern::new(path), why)).collect();
        Ok(Allowed { kind: name.to_owned(), patterns })
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
    use super::{Allowed, CLASSES, DEFAULT, PatchableKinds, SENSITIVE, explain};
    use crate::fields::pointer::Pointer;
    use crate::object::key::Kind;
    use crate::overrides::guards::OverrideGuards;
    use crate::overrides::patch::Patch;
    use expect_test::expect;

    fn may(kind: &str, path: &str) -> bool {
        let allowed = Allowed::of(&Kind::new("v1", kind), &PatchableKinds::none(), OverrideGuards::ALL);
        allowed.is_ok_and(|allowed| allowed.judge(&Pointer::parse(path).unwrap()).is_ok())
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
            let kind = Kind::new("v1", class.kinds.first().unwrap_or(&"Unknown"));
            assert_eq!(
                Patch::parse(class.example, &kind, &PatchableKinds::none()).map(|patch| patch.len()),
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
    fn only_sensitive_kinds_can_be_opened_and_then_only_their_spec() {
        let patchable_kinds = PatchableKinds::parse("MachineConfig, FenceAgentsRemediationTemplate,").unwrap();
        let allowed = Allowed::of(&Kind::new("m/v1", "MachineConfig"), &patchable_kinds, OverrideGuards::ALL).unwrap();
        assert!(allowed.judge(&Pointer::parse("/spec/kernelArguments/0").unwrap()).is_ok());
        assert!(allowed.judge(&Pointer::parse("/metadata/labels/x").unwrap()).is_err());
        assert!(Allowed::of(&Kind::new("m/v1", "KubeletConfig"), &patchable_kinds, OverrideGuards::ALL).is_err());
        let refused: Vec<String> = ["Service", "machineconfig", "Frobnicator", "*"]
            .map(|kinds| PatchableKinds::parse(kinds).unwrap_err())
            .into();
        expect![[r#"
            Service is not a closed kind, so it cannot be opened; `virtpilot explain patch Service` shows which fields may be patched
            there is no kind "machineconfig"; did you mean MachineConfig?
            Frobnicator is not a closed kind, so it cannot be opened; `virtpilot explain patch Frobnicator` shows which fields may be patched
            "*" is not a kind; write a kind such as MachineConfig, patterns are not supported"#]]
        .assert_eq(&refused.join("\n"));
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
    }
}
