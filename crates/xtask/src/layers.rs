//! The role of every crate, and which workspace crates it may depend on.

/// What a crate may do.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Role {
    /// Defines the user-facing API types.
    Nouns,
    /// Decides, without I/O.
    Think,
    /// Performs I/O, without deciding.
    Do,
    /// Used for the demo and tests; never part of the product.
    Demo,
    /// Works on this repository.
    Tool,
}

impl Role {
    pub(crate) fn label(self) -> &'static str {
        match self {
            Role::Nouns => "NOUNS",
            Role::Think => "THINK",
            Role::Do => "DO",
            Role::Demo => "DEMO",
            Role::Tool => "TOOL",
        }
    }

    /// Whether its crates may not use I/O, the clock, the environment, randomness or logging.
    pub(crate) fn is_pure(self) -> bool {
        matches!(self, Role::Nouns | Role::Think)
    }
}

/// The rules for one crate.
pub(crate) struct Layer {
    pub(crate) name: &'static str,
    pub(crate) role: Role,
    /// Workspace crates allowed as normal or build dependencies.
    pub(crate) may_use: &'static [&'static str],
    pub(crate) what: &'static str,
}

/// Which crates may use which DEMO crates in tests: every crate a real control plane, and simulations what has no I/O.
const IN_TESTS: [(Option<&str>, &str); 10] = [
    (None, "playground"),
    (Some("autopilot"), "mco-stand-in"),
    (Some("autopilot"), "server-model"),
    (Some("advisor"), "mco-stand-in"),
    (Some("advisor"), "server-model"),
    (Some("fleet"), "github-stand-in"),
    (Some("fleet"), "pve-stand-in"),
    (Some("forge"), "github-stand-in"),
    (Some("forge"), "gitlab-stand-in"),
    (Some("hypervisor"), "pve-stand-in"),
];

impl Layer {
    /// Whether it may depend on another workspace crate, for tests or always.
    pub(crate) fn may_depend_on(&self, other: &str, for_tests: bool) -> bool {
        let in_tests = IN_TESTS.iter().any(|(user, used)| *used == other && user.is_none_or(|user| user == self.name));
        self.may_use.contains(&other) || (for_tests && in_tests)
    }

    /// Whether it may not use I/O, the clock, the environment, randomness or logging. A simulation needs its surroundings to be like that, too.
    pub(crate) fn is_pure(&self) -> bool {
        self.role.is_pure()
            || ["github-stand-in", "gitlab-stand-in", "mco-stand-in", "pve-stand-in", "server-model"]
                .contains(&self.name)
    }
}

/// Every crate of the design, including crates that do not exist yet.
pub(crate) const LAYERS: [Layer; 25] = [
    Layer { name: "api", role: Role::Nouns, may_use: &[], what: "what users write: names, keys, kinds" },
    Layer { name: "bootstrap", role: Role::Nouns, may_use: &[], what: "the messages between a guest and the operator" },
    Layer {
        name: "change",
        role: Role::Think,
        may_use: &["api"],
        what: "one object: desired state, overrides, diff, digest, gate, effect",
    },
    Layer {
        name: "catalog",
        role: Role::Think,
        may_use: &["change", "api"],
        what: "facts about a cluster in, desired objects out",
    },
    Layer {
        name: "install",
        role: Role::Think,
        may_use: &["catalog", "api"],
        what: "the objects that install the operator",
    },
    Layer {
        name: "protocol",
        role: Role::Think,
        may_use: &["catalog", "change"],
        what: "the events and commands between a core and its hands, and the rule of leader election",
    },
    Layer {
        name: "observe",
        role: Role::Think,
        may_use: &["protocol", "catalog", "change", "api"],
        what: "what a core knows of a cluster: what is served, watched and asked, and when to ask again",
    },
    Layer {
        name: "autopilot",
        role: Role::Think,
        may_use: &["observe", "protocol", "catalog", "change", "api"],
        what: "the autopilot's decisions: one state machine, `handle(events, now) -> commands`",
    },
    Layer {
        name: "advisor",
        role: Role::Think,
        may_use: &["observe", "protocol", "catalog", "change", "api"],
        what: "the advisor's decisions: plan, approval, phase",
    },
    Layer {
        name: "fleet",
        role: Role::Think,
        may_use: &["observe", "protocol", "change", "api", "bootstrap"],
        what: "the fleet's decisions: pools, machines, placement",
    },
    Layer {
        name: "jsonpath-rust",
        role: Role::Think,
        may_use: &[],
        what: "a small replacement of a dependency of kube: paths of fields",
    },
    Layer {
        name: "cluster",
        role: Role::Do,
        may_use: &["protocol", "catalog", "change"],
        what: "the Kubernetes API: reads, watches, and the only writer; knows no product",
    },
    Layer {
        name: "runtime",
        role: Role::Do,
        may_use: &["cluster", "protocol", "catalog", "change"],
        what: "the hands all products share: run a core, publish events, lead, probes, stop; knows no product",
    },
    Layer {
        name: "hypervisor",
        role: Role::Do,
        may_use: &["fleet", "change", "api"],
        what: "machines of hypervisors: Proxmox VE by its API, KubeVirt",
    },
    Layer {
        name: "forge",
        role: Role::Do,
        may_use: &["fleet", "change", "api"],
        what: "clients for CI platforms: GitHub, GitLab",
    },
    Layer {
        name: "identity",
        role: Role::Do,
        may_use: &["fleet", "change", "api"],
        what: "client for SPIRE: join tokens, entries",
    },
    Layer {
        name: "operator",
        role: Role::Do,
        may_use: &[
            "api",
            "change",
            "catalog",
            "install",
            "protocol",
            "autopilot",
            "advisor",
            "fleet",
            "cluster",
            "runtime",
            "hypervisor",
            "forge",
            "identity",
            "bootstrap",
        ],
        what: "the `virtpilot` binary: arguments, wiring, journal, commands",
    },
    Layer {
        name: "guest",
        role: Role::Do,
        may_use: &["bootstrap"],
        what: "the small binary inside a runner's machine",
    },
    Layer {
        name: "github-stand-in",
        role: Role::Demo,
        may_use: &[],
        what: "a stand-in of GitHub's API for runners without I/O: `handle(request, now) -> reply`",
    },
    Layer {
        name: "gitlab-stand-in",
        role: Role::Demo,
        may_use: &[],
        what: "a stand-in of GitLab's API for runners without I/O: `handle(request, now) -> reply`",
    },
    Layer {
        name: "mco-stand-in",
        role: Role::Demo,
        may_use: &[],
        what: "a stand-in of the machine-config operator without I/O: `step(snapshot, now) -> writes`",
    },
    Layer {
        name: "pve-stand-in",
        role: Role::Demo,
        may_use: &[],
        what: "a stand-in of the API of a Proxmox VE cluster without I/O: `handle(request, now) -> reply`",
    },
    Layer {
        name: "server-model",
        role: Role::Demo,
        may_use: &["protocol", "catalog", "change", "api"],
        what: "a model of the API server without I/O, for simulations",
    },
    Layer {
        name: "playground",
        role: Role::Demo,
        may_use: &["api", "github-stand-in", "gitlab-stand-in", "mco-stand-in", "pve-stand-in"],
        what: "a real control plane on this machine, for demo, tests and benches; its own binary",
    },
    Layer {
        name: "xtask",
        role: Role::Tool,
        may_use: &["api", "change", "catalog", "install"],
        what: "`gen`, `tidy`, `image`, `guest` and `gen-pack`",
    },
];

/// The rules for the crate with this name.
pub(crate) fn find(name: &str) -> Option<&'static Layer> {
    LAYERS.iter().find(|layer| layer.name == name)
}
