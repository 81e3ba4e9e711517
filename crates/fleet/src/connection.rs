//! How a `HypervisorCluster` wants to be reached, and what its templates use of it.

use crate::cloud_init;
use crate::hypervisor::{ClusterKey, Network, TemplateRef};
use crate::template;
use api::fleet::{
    Credentials, HypervisorClusterSpec, HypervisorMachineTemplate, HypervisorMachineTemplateSpec, SecretKeyRef,
    SeedDelivery, Tls,
};
use std::collections::BTreeSet;

/// Which credentials are meant.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Login {
    /// An API token: its id and its secret.
    Token(SecretKeyRef, SecretKeyRef),
    /// A user and its password.
    Password(SecretKeyRef, SecretKeyRef),
}

/// The credentials of a hypervisor: a token goes before a password. Nothing if neither is complete.
pub fn login(named: Option<&Credentials>) -> Option<Login> {
    let Credentials { token_id, token_secret, username, password } = named.cloned()?;
    let token = token_id.zip(token_secret).map(|(id, secret)| Login::Token(id, secret));
    token.or_else(|| username.zip(password).map(|(username, password)| Login::Password(username, password)))
}

/// How the certificate of a hypervisor is verified.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Verification {
    /// Not at all.
    Skipped,
    /// By its fingerprint.
    Fingerprint(String),
    /// By the authorities in a Secret.
    Authorities(SecretKeyRef),
    /// By the authorities of the system.
    System,
}

/// How the certificate of a hypervisor is verified: a fingerprint goes before authorities, because it says more.
pub fn verification(tls: &Tls) -> Verification {
    match (&tls.fingerprint, &tls.ca_certificate) {
        _ if tls.insecure_skip_verify => Verification::Skipped,
        (Some(fingerprint), _) => Verification::Fingerprint(fingerprint.clone()),
        (None, Some(reference)) => Verification::Authorities(reference.clone()),
        (None, None) => Verification::System,
    }
}

/// A template of the hypervisor, and how it is cloned.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord)]
pub struct Cloned {
    /// The template.
    pub template: TemplateRef,
    /// Whether clones are full wherever the template is.
    pub is_full: bool,
    /// The storage of full clones; without one, that of the template.
    pub storage: Option<String>,
}

/// What templates use of a hypervisor.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Uses {
    /// Storages for the disks of full clones.
    pub disks: BTreeSet<String>,
    /// Storages for images with cloud-init.
    pub seeds: BTreeSet<String>,
    /// Bridges with their VLANs.
    pub networks: BTreeSet<Network>,
    /// The templates of the hypervisor.
    pub templates: BTreeSet<Cloned>,
    /// Whether the guest agent runs cloud-init.
    pub runs_in_guests: bool,
}

/// What the templates that may use a hypervisor use of it; the defaults are the bridge and the storage of those that name none.
pub fn uses(key: &ClusterKey, cluster: &HypervisorClusterSpec, templates: &[HypervisorMachineTemplate]) -> Uses {
    let (default_network, default_storage) = (cluster.default_network.as_deref(), cluster.default_storage.as_deref());
    let mut uses = Uses::default();
    let is_of = |template: &&HypervisorMachineTemplate| {
        let own = template.metadata.namespace.as_deref().unwrap_or_default();
        let named = &template.spec.hypervisor_cluster_ref;
        named.name == key.name
            && named.namespace.as_deref().unwrap_or(own) == key.namespace
            && template::may_use(&key.namespace, &cluster.allowed_namespaces, own)
    };
    for HypervisorMachineTemplate { spec, .. } in templates.iter().filter(is_of) {
        let HypervisorMachineTemplateSpec { network, template, .. } = spec;
        uses.disks.extend(template.proxmox.as_ref().and_then(|proxmox| proxmox.storage.clone()));
        uses.seeds.extend(cloud_init::storage(spec));
        let bridge = network.bridge.clone().or_else(|| default_network.map(str::to_owned));
        uses.networks.extend(bridge.map(|bridge| Network { bridge, vlan: network.vlan }));
        let source = template.proxmox.as_ref();
        let storage = source.and_then(|source| source.storage.clone()).or_else(|| default_storage.map(str::to_owned));
        let is_full = source.is_some_and(|source| source.linked_clone == Some(false));
        uses.templates.extend(template::reference(spec).map(|template| Cloned { template, is_full, storage }));
        uses.runs_in_guests |= cloud_init::delivery(spec) == Some(SeedDelivery::GuestAgent);
    }
    uses
}

#[cfg(test)]
mod tests {
    use super::{Cloned, Login, Uses, Verification, login, uses, verification};
    use crate::hypervisor::{ClusterKey, Network, TemplateRef};
    use api::fleet::{Credentials, HypervisorClusterSpec, HypervisorMachineTemplate, SecretKeyRef, Tls};
    use serde_json::{Value, json};

    fn key(key: &str) -> SecretKeyRef {
        SecretKeyRef { name: "pve".into(), key: key.into() }
    }

    #[test]
    fn a_token_goes_before_a_password_and_halves_are_none() {
        let of = |keys: [bool; 4]| {
            let [token_id, token_secret, username, password] =
                [("id", keys[0]), ("secret", keys[1]), ("user", keys[2]), ("password", keys[3])]
                    .map(|(name, is_there)| is_there.then(|| key(name)));
            login(Some(&Credentials { token_id, token_secret, username, password }))
        };
        let (token, password) = (Login::Token(key("id"), key("secret")), Login::Password(key("user"), key("password")));
        for (keys, expected) in [
            ([true, true, true, true], Some(token.clone())),
            ([true, true, false, false], Some(token)),
            ([true, false, true, true], Some(password.clone())),
            ([false, false, true, true], Some(password)),
            ([true, false, false, true], None),
            ([false; 4], None),
        ] {
            assert_eq!(of(keys), expected, "{keys:?}");
        }
        assert_eq!(login(None), None);
    }

    #[test]
    fn a_fingerprint_goes_before_authorities_and_the_system_is_the_last() {
        let of = |skips: bool, fingerprint: Option<&str>, authority: bool| {
            verification(&Tls {
                insecure_skip_verify: skips,
                fingerprint: fingerprint.map(str::to_owned),
                ca_certificate: authority.then(|| key("ca")),
            })
        };
        assert_eq!(of(true, Some("AB"), true), Verification::Skipped);
        assert_eq!(of(false, Some("AB"), true), Verification::Fingerprint("AB".into()));
        assert_eq!(of(false, None, true), Verification::Authorities(key("ca")));
        assert_eq!(of(false, None, false), Verification::System);
    }

    fn cluster(more: &Value) -> HypervisorClusterSpec {
        let mut spec = json!({"provider": "proxmox", "endpoint": "https://pve:8006"});
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        serde_json::from_value(spec).unwrap()
    }

    fn template(cluster: &Value, storage: &str, more: &Value) -> HypervisorMachineTemplate {
        let mut spec = json!({
            "hypervisorClusterRef": cluster, "template": {"proxmox": {"tag": "a", "storage": storage}},
            "resources": {"cpu": 1, "memory": "1Gi"},
        });
        spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        let object = json!({
            "apiVersion": "hyperfleet.io/v1alpha1", "kind": "HypervisorMachineTemplate",
            "metadata": {"name": "t", "namespace": "ci"}, "spec": spec,
        });
        serde_json::from_value(object).unwrap()
    }

    #[test]
    fn what_the_templates_of_a_hypervisor_use_is_known_and_nothing_of_others() {
        let own = || json!({"name": "pve"});
        let first = json!({"cloudInit": {"storage": "seeds"}, "network": {"bridge": "vmbr7", "vlan": 12}});
        let all = [
            template(&own(), "fast", &first),
            template(&own(), "fast", &json!({"cloudInit": {"delivery": "GuestAgent"}})),
            template(&json!({"name": "pve", "namespace": "elsewhere"}), "slow", &json!({"cloudInit": {}})),
        ];
        let key = ClusterKey { namespace: "ci".into(), name: "pve".into() };
        let on = |bridge: &str, vlan| Network { bridge: bridge.into(), vlan };
        let one = |name: &str| [name.to_owned()].into();
        let cloned = |is_full, storage: &str| Cloned {
            template: TemplateRef::Tag("a".into()),
            is_full,
            storage: Some(storage.to_owned()),
        };
        let expected = Uses {
            disks: one("fast"),
            seeds: one("seeds"),
            networks: [on("vmbr0", None), on("vmbr7", Some(12))].into(),
            templates: [cloned(false, "fast")].into(),
            runs_in_guests: true,
        };
        let (plain, named) =
            (cluster(&json!({})), cluster(&json!({"defaultNetwork": "vmbr0", "defaultStorage": "default"})));
        assert_eq!(uses(&key, &named, &all), expected);
        let full = json!({"template": {"proxmox": {"tag": "a", "linkedClone": false}}});
        let full = uses(&key, &cluster(&json!({"defaultStorage": "default"})), &[template(&own(), "", &full)]);
        assert_eq!((full.templates, full.disks), ([cloned(true, "default")].into(), [].into()));
        assert_eq!(uses(&key, &plain, &all[1..2]).networks, [].into(), "the bridge of the template stays");
        let fixed =
            json!({"network": {"mode": "static", "staticConfig": {"ip": "192.0.2.7/24", "gateway": "192.0.2.1"}}});
        assert_eq!(
            uses(&key, &plain, &[template(&own(), "fast", &fixed)]).seeds,
            one("local"),
            "addresses are in an image, too"
        );
    }

    #[test]
    fn templates_of_other_namespaces_count_where_they_may_use_the_hypervisor() {
        let key = ClusterKey { namespace: "ci".into(), name: "pve".into() };
        let mut foreign = template(&json!({"name": "pve", "namespace": "ci"}), "theirs", &json!({}));
        foreign.metadata.namespace = Some("team".into());
        for (allowed, is_used) in
            [(json!([]), false), (json!(["teams"]), false), (json!(["team"]), true), (json!(["*"]), true)]
        {
            let disks =
                uses(&key, &cluster(&json!({"allowedNamespaces": allowed})), std::slice::from_ref(&foreign)).disks;
            assert_eq!(disks.contains("theirs"), is_used, "{allowed}");
        }
    }
}
