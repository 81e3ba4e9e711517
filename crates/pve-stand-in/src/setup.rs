//! How a cluster is at the start.

use crate::access::{Token, User};
use crate::acl::{ALL_PRIVILEGES, FLEET_PRIVILEGES};
use crate::node::Node;
use crate::stand_in::{Pool, StandIn};
use crate::storage::{Storage, StorageKind, Volume};
use crate::timing::Timing;
use crate::vm::Vm;
use std::collections::{BTreeMap, BTreeSet};

/// How a cluster is at the start.
#[derive(Debug, Clone, PartialEq)]
pub struct Setup {
    /// Its name.
    pub name: String,
    /// The seed of everything that looks random.
    pub seed: u64,
    /// What the clock shows at the start, in seconds since 1970.
    pub epoch: i64,
    /// How long everything takes.
    pub timing: Timing,
    /// How many clones of templates on one storage may run at a time.
    pub max_clones: Option<usize>,
    /// The nodes; the first one serves the API.
    pub nodes: Vec<NodeSetup>,
    /// The storages.
    pub storages: Vec<StorageSetup>,
    /// The templates.
    pub templates: Vec<TemplateSetup>,
    /// The pools.
    pub pools: Vec<String>,
    /// The users.
    pub users: Vec<UserSetup>,
}

/// A node.
#[derive(Debug, Clone, PartialEq)]
pub struct NodeSetup {
    /// Its name.
    pub name: String,
    /// Its CPUs.
    pub cpus: u32,
    /// Its memory in bytes.
    pub memory: u64,
    /// Its bridges.
    pub bridges: Vec<String>,
}

/// A storage.
#[derive(Debug, Clone, PartialEq)]
pub struct StorageSetup {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub kind: StorageKind,
    /// Whether all nodes see the same volumes.
    pub is_shared: bool,
    /// What it may have: `images`, `iso` ...
    pub content: Vec<String>,
    /// Its size in bytes.
    pub bytes: u64,
}

/// A template.
#[derive(Debug, Clone, PartialEq)]
pub struct TemplateSetup {
    /// Its id.
    pub vmid: u32,
    /// Its name.
    pub name: String,
    /// The node it is on.
    pub node: String,
    /// The storage of its disk.
    pub storage: String,
    /// The size of its disk in bytes.
    pub disk: u64,
    /// Its tags.
    pub tags: String,
    /// Whether its configuration switches the guest agent on.
    pub has_agent: bool,
}

/// A user.
#[derive(Debug, Clone, PartialEq)]
pub struct UserSetup {
    /// `name@realm`
    pub name: String,
    /// The password.
    pub password: String,
    /// Its tokens.
    pub tokens: Vec<TokenSetup>,
    /// Its privileges by path.
    pub privileges: Vec<(String, Vec<String>)>,
}

/// A token.
#[derive(Debug, Clone, PartialEq)]
pub struct TokenSetup {
    /// Its name.
    pub id: String,
    /// Its secret.
    pub secret: String,
    /// Its privileges by path, if they are separated from those of its user.
    pub privileges: Option<Vec<(String, Vec<String>)>>,
}

fn texts(values: &[&str]) -> Vec<String> {
    values.iter().map(|&value| value.to_owned()).collect()
}

impl Setup {
    /// The user with all rights, its password and its token.
    pub const ROOT: &'static str = "root@pam";
    /// The password of [`Setup::ROOT`].
    pub const ROOT_PASSWORD: &'static str = "correct horse";
    /// A token with all rights.
    pub const ROOT_TOKEN: &'static str = "root@pam!full=11111111-1111-4111-8111-111111111111";
    /// A token with exactly the rights that a fleet needs: in the pool [`Setup::POOL`], on its template, storages and bridges.
    pub const FLEET_TOKEN: &'static str = "fleet@pve!virtpilot=22222222-2222-4222-8222-222222222222";
    /// The pool of the fleet.
    pub const POOL: &'static str = "virtpilot";
    /// The template of the fleet.
    pub const TEMPLATE: u32 = 9000;

    /// Three nodes `pve1` to `pve3` with 16 CPUs and 64 GiB each; the storages `local` (files, ISO images), `local-lvm` (disks, of each
    /// node) and `shared` (disks and ISO images, shared); the template 9000 `runner` on `shared`, seen from `pve1`; the bridge `vmbr0`.
    pub fn cluster(timing: Timing) -> Setup {
        let gib = 1 << 30;
        let node =
            |name: &str| NodeSetup { name: name.to_owned(), cpus: 16, memory: 64 * gib, bridges: texts(&["vmbr0"]) };
        let storage = |name: &str, kind: StorageKind, is_shared: bool, content: &[&str], size: u64| StorageSetup {
            name: name.to_owned(),
            kind,
            is_shared,
            content: texts(content),
            bytes: size * gib,
        };
        let fleet: Vec<(String, Vec<String>)> = [
            ("/", vec!["Sys.Audit"]),
            ("/pool/virtpilot", [&FLEET_PRIVILEGES[..], &["Pool.Audit"]].concat()),
            ("/vms/9000", vec!["VM.Audit", "VM.Clone"]),
            (
                "/storage/shared",
                vec!["Datastore.Allocate", "Datastore.AllocateSpace", "Datastore.AllocateTemplate", "Datastore.Audit"],
            ),
            (
                "/storage/local",
                vec!["Datastore.Allocate", "Datastore.AllocateSpace", "Datastore.AllocateTemplate", "Datastore.Audit"],
            ),
            ("/storage/local-lvm", vec!["Datastore.AllocateSpace", "Datastore.Audit"]),
            ("/sdn/zones/localnetwork", vec!["SDN.Use"]),
        ]
        .into_iter()
        .map(|(path, privileges)| (path.to_owned(), texts(&privileges)))
        .collect();
        let token = |text: &str, privileges: Option<Vec<(String, Vec<String>)>>| {
            let (_, rest) = text.split_once('!').unwrap_or_default();
            let (id, secret) = rest.split_once('=').unwrap_or_default();
            TokenSetup { id: id.to_owned(), secret: secret.to_owned(), privileges }
        };
        Setup {
            name: "demo".to_owned(),
            seed: 1,
            epoch: 1_790_000_000,
            timing,
            max_clones: None,
            nodes: ["pve1", "pve2", "pve3"].map(node).to_vec(),
            storages: vec![
                storage("local", StorageKind::Dir, false, &["iso", "vztmpl", "backup", "import"], 100),
                storage("local-lvm", StorageKind::LvmThin, false, &["images", "rootdir"], 800),
                storage("shared", StorageKind::Nfs, true, &["images", "iso"], 4000),
            ],
            templates: vec![TemplateSetup {
                vmid: Setup::TEMPLATE,
                name: "runner".to_owned(),
                node: "pve1".to_owned(),
                storage: "shared".to_owned(),
                disk: 8 * gib,
                tags: "runner;ubuntu".to_owned(),
                has_agent: true,
            }],
            pools: texts(&[Setup::POOL]),
            users: vec![
                UserSetup {
                    name: Setup::ROOT.to_owned(),
                    password: Setup::ROOT_PASSWORD.to_owned(),
                    tokens: vec![token(Setup::ROOT_TOKEN, None)],
                    privileges: vec![("/".to_owned(), texts(&ALL_PRIVILEGES))],
                },
                UserSetup {
                    name: "fleet@pve".to_owned(),
                    password: "battery staple".to_owned(),
                    tokens: vec![token(Setup::FLEET_TOKEN, Some(fleet.clone()))],
                    privileges: fleet,
                },
            ],
        }
    }
}

impl StandIn {
    pub(crate) fn populate(&mut self, setup: &Setup) {
        for (number, node) in setup.nodes.iter().enumerate() {
            let new = Node {
                cpus: node.cpus,
                memory: node.memory,
                bridges: node.bridges.iter().cloned().collect(),
                address: format!("192.0.2.{}", 11 + number),
                is_online: true,
            };
            self.nodes.insert(node.name.clone(), new);
        }
        for storage in &setup.storages {
            let new = Storage {
                kind: storage.kind,
                is_shared: storage.is_shared,
                content: storage.content.iter().cloned().collect(),
                nodes: BTreeSet::new(),
                bytes: storage.bytes,
                is_full: false,
                volumes: BTreeMap::new(),
            };
            self.storages.insert(storage.name.clone(), new);
        }
        for pool in &setup.pools {
            self.pools.insert(pool.clone(), Pool::default());
        }
        for user in &setup.users {
            self.add_user(user);
        }
        for template in &setup.templates {
            self.add_template(template);
        }
    }

    fn add_user(&mut self, user: &UserSetup) {
        let mut tokens = BTreeMap::new();
        for token in &user.tokens {
            let is_separated = token.privileges.is_some();
            tokens.insert(token.id.clone(), Token { secret: token.secret.clone(), is_separated });
            for (path, privileges) in token.privileges.iter().flatten() {
                let privileges: Vec<&str> = privileges.iter().map(String::as_str).collect();
                self.acl.grant(&format!("{}!{}", user.name, token.id), path, &privileges);
            }
        }
        for (path, privileges) in &user.privileges {
            let privileges: Vec<&str> = privileges.iter().map(String::as_str).collect();
            self.acl.grant(&user.name, path, &privileges);
        }
        self.users.insert(user.name.clone(), User { password: user.password.clone(), tokens });
    }

    /// Adds a template with one disk.
    pub fn add_template(&mut self, template: &TemplateSetup) {
        let Some(storage) = self.storages.get_mut(&template.storage) else { return };
        let (vmid, size) = (template.vmid, crate::property::size(template.disk));
        let volume = match storage.kind {
            StorageKind::Dir | StorageKind::Nfs => format!("{}:{vmid}/base-{vmid}-disk-0.qcow2", template.storage),
            _ => format!("{}:base-{vmid}-disk-0", template.storage),
        };
        let disk = Volume {
            content: "images",
            format: storage.kind.format(),
            bytes: template.disk,
            allocated: template.disk,
            vmid: Some(vmid),
            parent: None,
            created: self.epoch,
            data: Vec::new(),
        };
        storage.volumes.insert((storage.place(&template.node), volume.clone()), disk);
        let mut config: BTreeMap<String, String> = [
            ("name", template.name.clone()),
            ("cores", "2".to_owned()),
            ("sockets", "1".to_owned()),
            ("memory", "2048".to_owned()),
            ("ostype", "l26".to_owned()),
            ("scsihw", "virtio-scsi-single".to_owned()),
            ("boot", "order=scsi0".to_owned()),
            ("scsi0", format!("{volume},size={size}")),
            ("net0", format!("virtio={},bridge=vmbr0", self.random.mac())),
            ("smbios1", format!("uuid={}", self.random.uuid())),
            ("vmgenid", self.random.uuid()),
        ]
        .into_iter()
        .map(|(key, value)| (key.to_owned(), value))
        .collect();
        if !template.tags.is_empty() {
            config.insert("tags".to_owned(), template.tags.clone());
        }
        if template.has_agent {
            config.insert("agent".to_owned(), "1".to_owned());
        }
        let vm = Vm {
            birth: self.new_birth(),
            node: template.node.clone(),
            config,
            pending: BTreeMap::new(),
            is_template: true,
            lock: None,
            run: None,
            guest: self.default_guest(),
        };
        self.vms.insert(vmid, vm);
    }
}
