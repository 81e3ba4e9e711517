//! The seed of a machine: the user's cloud-config merged with what the fleet adds, checked before it is used.

use crate::hypervisor::Seed;
use api::fleet::{CloudInit, HypervisorMachineTemplateSpec, Network, NetworkMode, SeedDelivery};
use bootstrap::Config;
use serde_json::{Map, Value, json};
use std::collections::BTreeMap;

/// Keys that the fleet sets itself.
const OURS: [&str; 2] = ["hostname", "preserve_hostname"];
/// The folder of the guest in which the fleet writes files.
const FOLDER: &str = "/etc/hyperfleet";
/// The folder of the guest that registers a runner.
const GUEST_FOLDER: &str = "/etc/virtpilot";
/// Where cloud-init keeps copies of its data; the guest wipes its configuration there, too.
const COPIES: [&str; 7] = [
    "/var/lib/cloud/instance/user-data.txt",
    "/var/lib/cloud/instance/user-data.txt.i",
    "/var/lib/cloud/instance/cloud-config.txt",
    "/var/lib/cloud/instance/combined-cloud-config.json",
    "/var/lib/cloud/instance/obj.pkl",
    "/run/cloud-init/combined-cloud-config.json",
    "/run/cloud-init/instance-data-sensitive.json",
];
/// The unit of the guest: a machine without it, and one whose guest has ended, powers off. An image may have its own of this name.
const GUEST_UNIT: &str = "\
[Unit]
Description=Virtpilot guest
After=network-online.target
Wants=network-online.target
FailureAction=poweroff-force
SuccessAction=poweroff-force

[Service]
ExecStart=/usr/local/bin/virtpilot-guest
KillMode=process
TimeoutStopSec=180
";

/// Where an image is if the template does not say.
const STORAGE: &str = "local";
/// The guest agent takes no larger file.
const LARGEST_FILE: usize = 61_440;

/// How the seed of a template's machines gets into them; nothing if they have none, or if the hypervisor keeps it as a part of the machine.
pub fn delivery(spec: &HypervisorMachineTemplateSpec) -> Option<SeedDelivery> {
    let is_image = spec.template.kubevirt.is_none();
    let has_seed = spec.cloud_init.is_some() || spec.network.mode != NetworkMode::Dhcp;
    (is_image && has_seed).then(|| spec.cloud_init.as_ref().map(|settings| settings.delivery).unwrap_or_default())
}

/// Whether a guest needs its image at every boot: cloud-init sets up the network anew each time, and without the image it would take that of DHCP.
pub fn keeps_image(spec: &HypervisorMachineTemplateSpec) -> bool {
    spec.network.mode != NetworkMode::Dhcp
}

/// The storage of the images of a template's machines, if they have any.
pub fn storage(spec: &HypervisorMachineTemplateSpec) -> Option<String> {
    let of = |settings: &CloudInit| settings.storage.clone();
    (delivery(spec)? == SeedDelivery::Iso).then(|| spec.cloud_init.as_ref().map_or_else(|| STORAGE.into(), of))
}

/// What is wrong with the way that a seed is to get into machines.
pub fn check_delivery(spec: &HypervisorMachineTemplateSpec) -> Result<(), String> {
    let Some(settings) = spec.cloud_init.as_ref().filter(|found| found.delivery == SeedDelivery::GuestAgent) else {
        return Ok(());
    };
    if spec.template.kubevirt.is_some() {
        return Err("cloudInit.delivery GuestAgent is for Proxmox VE; remove it: KubeVirt keeps cloud-init in a Secret of the VirtualMachine".into());
    }
    if spec.network.mode != NetworkMode::Dhcp {
        return Err(
            "cloudInit.delivery is GuestAgent, which comes after the network: use network.mode dhcp, or delivery Iso"
                .into(),
        );
    }
    let seed = seed(Some(settings), &spec.network, "name", "uid")?;
    for (name, content) in seed.iter().flat_map(|seed| &seed.files) {
        // Names and uids are longer than those of this check.
        let bytes = content.len() + 512;
        if bytes > LARGEST_FILE {
            return Err(format!(
                "the {name} has {bytes} bytes, and the guest agent takes {LARGEST_FILE}: shorten it, or use cloudInit.delivery Iso"
            ));
        }
    }
    Ok(())
}

/// The seed of a machine; the error says what is wrong in the template.
pub fn seed(
    settings: Option<&CloudInit>,
    network: &Network,
    host_name: &str,
    uid: &str,
) -> Result<Option<Seed>, String> {
    seed_for(settings, network, (host_name, uid), None)
}

/// The seed of a machine with this host name and uid, whose guest has this configuration, if it has one.
pub fn seed_for(
    settings: Option<&CloudInit>,
    network: &Network,
    (host_name, uid): (&str, &str),
    guest: Option<&Config>,
) -> Result<Option<Seed>, String> {
    if settings.is_none() && network.mode == NetworkMode::Dhcp && guest.is_none() {
        return Ok(None);
    }
    let settings =
        settings.cloned().unwrap_or(CloudInit { storage: STORAGE.into(), bus: "ide2".into(), ..CloudInit::default() });
    let mut files = BTreeMap::from([
        ("user-data".to_owned(), user_data(settings.user_data.as_deref(), host_name, uid, guest)?),
        ("meta-data".to_owned(), meta_data(settings.meta_data.as_deref(), host_name, uid)?),
    ]);
    if let Some(config) = network_config(settings.network_data.as_deref(), network)? {
        files.insert("network-config".to_owned(), config);
    }
    Ok(Some(Seed { storage: settings.storage, bus: settings.bus, files }))
}

/// The configuration of a guest, which also names the copies that cloud-init makes of it.
pub fn guest_config(mut config: Config) -> Config {
    config.copies = COPIES.map(str::to_owned).to_vec();
    config
}

fn user_data(user: Option<&str>, host_name: &str, uid: &str, guest: Option<&Config>) -> Result<String, String> {
    let text = user.unwrap_or_default();
    let is_config = text.trim().is_empty() || text.trim_start().starts_with("#cloud-config");
    if !is_config {
        if guest.is_some() {
            return Err(
                "cloudInit.userData must begin with #cloud-config, since it is merged with what starts the runner"
                    .into(),
            );
        }
        return match text.starts_with("#!") || text.starts_with("Content-Type: multipart") {
            // The machine still has its name from the meta-data.
            true => Ok(text.to_owned()),
            false => Err("cloudInit.userData must begin with #cloud-config or #!".to_owned()),
        };
    }
    let mut config = mapping(text, "cloudInit.userData")?;
    for key in OURS {
        if config.contains_key(key) {
            return Err(format!(
                "cloudInit.userData sets {key}, which the fleet sets to the name of the claim: remove it"
            ));
        }
    }
    config.insert("hostname".into(), json!(host_name));
    config.insert("preserve_hostname".into(), json!(false));
    let file = json!({
        "path": format!("{FOLDER}/machine.json"),
        "permissions": "0644",
        "content": json!({"claim": host_name, "uid": uid}).to_string(),
    });
    let files = config.entry("write_files").or_insert_with(|| json!([]));
    let Some(files) = files.as_array_mut() else {
        return Err("cloudInit.userData: write_files must be a list".to_owned());
    };
    let is_ours = |file: &Value| file["path"].as_str().is_some_and(|path| path.starts_with(FOLDER));
    if files.iter().any(is_ours) {
        return Err(format!("cloudInit.userData writes below {FOLDER}, which is the fleet's: use another folder"));
    }
    files.push(file);
    if let Some(guest) = guest {
        add_guest(&mut config, guest)?;
    }
    Ok(format!("#cloud-config\n{}", yaml(config)))
}

/// What starts the guest, after everything that the user wants.
fn add_guest(config: &mut Map<String, Value>, guest: &Config) -> Result<(), String> {
    let files = config.get_mut("write_files").and_then(Value::as_array_mut);
    let Some(files) = files else { return Err("cloudInit.userData: write_files must be a list".to_owned()) };
    if files.iter().any(|file| file["path"].as_str().is_some_and(|path| path.starts_with(GUEST_FOLDER))) {
        return Err(format!(
            "cloudInit.userData writes below {GUEST_FOLDER}, which is the guest's: use another folder"
        ));
    }
    let content = serde_json::to_string(guest).map_err(|error| format!("the configuration of the guest: {error}"))?;
    files.push(json!({
        "path": format!("{GUEST_FOLDER}/guest.json"), "owner": "root:root", "permissions": "0600", "content": content,
    }));
    files.push(json!({
        "path": "/run/systemd/system/virtpilot-guest.service", "permissions": "0644", "content": GUEST_UNIT,
    }));
    let commands = config.entry("runcmd").or_insert_with(|| json!([]));
    let Some(commands) = commands.as_array_mut() else {
        return Err("cloudInit.userData: runcmd must be a list".to_owned());
    };
    commands.push(json!(["systemctl", "daemon-reload"]));
    commands.push(json!(["systemctl", "start", "--no-block", "virtpilot-guest.service"]));
    Ok(())
}

fn meta_data(user: Option<&str>, host_name: &str, uid: &str) -> Result<String, String> {
    let mut data = mapping(user.unwrap_or_default(), "cloudInit.metaData")?;
    for (key, value) in [("instance-id", uid), ("local-hostname", host_name)] {
        if data.insert(key.into(), json!(value)).is_some() {
            return Err(format!("cloudInit.metaData sets {key}, which is the fleet's: remove it"));
        }
    }
    Ok(yaml(data))
}

fn network_config(user: Option<&str>, network: &Network) -> Result<Option<String>, String> {
    match (network.mode, user, &network.static_config) {
        (NetworkMode::CloudInit, None, _) => {
            Err("network.mode is cloud-init, so that cloudInit.networkData is needed".to_owned())
        }
        (NetworkMode::CloudInit, Some(text), _) => {
            let data = mapping(text, "cloudInit.networkData")?;
            let is_known = matches!(data.get("version").and_then(Value::as_u64), Some(1 | 2));
            match is_known || data.contains_key("network") {
                true => Ok(Some(text.to_owned())),
                false => Err("cloudInit.networkData needs version: 1 or version: 2".to_owned()),
            }
        }
        (_, Some(_), _) => Err("cloudInit.networkData has an effect only with network.mode cloud-init".to_owned()),
        (NetworkMode::Static, None, Some(fixed)) => {
            let config = json!({
                "version": 2,
                "ethernets": {"primary": {
                    "match": {"name": "e*"},
                    "addresses": [fixed.ip],
                    "routes": [{"to": "default", "via": fixed.gateway}],
                    "nameservers": {"addresses": fixed.dns},
                }},
            });
            Ok(Some(config.to_string()))
        }
        (NetworkMode::Static, None, None) => {
            Err("network.mode is static, so that network.staticConfig is needed".into())
        }
        (NetworkMode::Dhcp, None, _) => Ok(None),
    }
}

/// A text as a mapping; an empty one has no keys.
fn mapping(text: &str, place: &str) -> Result<Map<String, Value>, String> {
    if text.lines().all(|line| line.trim().is_empty() || line.trim_start().starts_with('#')) {
        return Ok(Map::new());
    }
    match serde_saphyr::from_str::<Value>(text) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err(format!("{place} must be a mapping of keys to values")),
        Err(error) => Err(format!("{place} is no YAML: {}", error.to_string().lines().next().unwrap_or_default())),
    }
}

/// JSON is YAML, and needs no quoting rules of its own.
fn yaml(map: Map<String, Value>) -> String {
    format!("{:#}\n", Value::Object(map))
}

#[cfg(test)]
mod tests {
    use super::{check_delivery, delivery, keeps_image, seed, storage};
    use api::fleet::{CloudInit, Network, NetworkMode, SeedDelivery, StaticNetwork};
    use serde_json::Value;

    fn settings(user_data: &str) -> CloudInit {
        let (storage, bus) = ("iso".into(), "ide2".into());
        CloudInit { user_data: Some(user_data.into()), storage, bus, ..CloudInit::default() }
    }

    fn merged(user_data: &str) -> Result<Value, String> {
        let seed = seed(Some(&settings(user_data)), &Network::default(), "one", "u-1")?.unwrap();
        assert!(seed.files["user-data"].starts_with("#cloud-config\n"));
        Ok(serde_saphyr::from_str(&seed.files["user-data"]).unwrap())
    }

    /// P5.
    #[test]
    fn user_data_and_ours_merge_without_conflict() {
        let users =
            "#cloud-config\npackages: [git]\nwrite_files:\n- {path: /etc/motd, content: 'a: b'}\nruncmd: [[ls]]\n";
        let all = merged(users).unwrap();
        assert_eq!((&all["packages"][0], &all["runcmd"][0][0]), (&"git".into(), &"ls".into()));
        assert_eq!(all["hostname"], "one");
        let paths: Vec<&str> =
            all["write_files"].as_array().unwrap().iter().filter_map(|f| f["path"].as_str()).collect();
        assert_eq!(paths, ["/etc/motd", "/etc/hyperfleet/machine.json"]);
        assert_eq!(merged("").unwrap()["hostname"], "one");
        assert_eq!(merged("#cloud-config\n# nothing\n").unwrap()["hostname"], "one");
    }

    #[test]
    fn a_conflict_or_a_mistake_is_named_with_its_place() {
        for (text, part) in [
            ("#cloud-config\nhostname: mine\n", "sets hostname"),
            ("#cloud-config\nwrite_files: [{path: /etc/hyperfleet/x}]\n", "use another folder"),
            ("#cloud-config\nwrite_files: {}\n", "must be a list"),
            ("#cloud-config\n- a\n", "must be a mapping"),
            ("#cloud-config\na: [\n", "is no YAML"),
            ("echo hello", "must begin with"),
        ] {
            let error = merged(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    fn guest() -> bootstrap::Config {
        let claim = bootstrap::Claim { namespace: "ci".into(), name: "one".into(), uid: "u-1".into() };
        super::guest_config(bootstrap::Config {
            operator: "https://operator:8443".into(),
            ca: "-----BEGIN CERTIFICATE-----\n".into(),
            claim,
            attestation: bootstrap::Attestation::Token { token: bootstrap::Secret::new("vpb1_hush".into()) },
            limits: bootstrap::Limits::default(),
            copies: Vec::new(),
        })
    }

    fn with_guest(user_data: &str) -> Result<Value, String> {
        let config = guest();
        let found = super::seed_for(Some(&settings(user_data)), &Network::default(), ("one", "u-1"), Some(&config));
        let seed = found?.unwrap();
        assert!(!format!("{seed:?}").contains("hush"), "a token is never shown");
        Ok(serde_saphyr::from_str(&seed.files["user-data"]).unwrap())
    }

    #[test]
    fn the_guest_starts_after_what_the_user_wants_and_its_configuration_is_for_root_only() {
        let all = with_guest("#cloud-config\nruncmd: [[ls]]\nwrite_files: [{path: /etc/motd, content: a}]\n").unwrap();
        let commands = all["runcmd"].as_array().unwrap();
        assert_eq!((&commands[0][0], &commands[2][3]), (&"ls".into(), &"virtpilot-guest.service".into()));
        let files = all["write_files"].as_array().unwrap();
        let config = files.iter().find(|file| file["path"] == "/etc/virtpilot/guest.json").unwrap();
        assert_eq!(config["permissions"], "0600");
        let read: bootstrap::Config = serde_json::from_str(config["content"].as_str().unwrap()).unwrap();
        assert_eq!(read, guest());
        assert!(read.copies.iter().any(|copy| copy == "/var/lib/cloud/instance/user-data.txt"));
        for (text, part) in [
            ("#!/bin/sh\n", "must begin with #cloud-config"),
            ("#cloud-config\nruncmd: ls\n", "runcmd must be a list"),
            ("#cloud-config\nwrite_files: [{path: /etc/virtpilot/x}]\n", "which is the guest's"),
        ] {
            let error = with_guest(text).unwrap_err();
            assert!(error.contains(part), "{text}: {error}");
        }
    }

    #[test]
    fn a_script_stays_as_it_is_and_nothing_is_seeded_without_need() {
        let script = seed(Some(&settings("#!/bin/sh\nls\n")), &Network::default(), "one", "u").unwrap().unwrap();
        assert_eq!(script.files["user-data"], "#!/bin/sh\nls\n");
        assert_eq!(seed(None, &Network::default(), "one", "u"), Ok(None));
    }

    #[test]
    fn addresses_come_from_where_the_mode_says() {
        let fixed = StaticNetwork { ip: "192.0.2.7/24".into(), gateway: "192.0.2.1".into(), dns: vec![] };
        let network = Network { mode: NetworkMode::Static, static_config: Some(fixed), ..Network::default() };
        let config: Value =
            serde_json::from_str(&seed(None, &network, "one", "u").unwrap().unwrap().files["network-config"]).unwrap();
        assert_eq!(config["ethernets"]["primary"]["addresses"][0], "192.0.2.7/24");
        let network = Network { mode: NetworkMode::CloudInit, ..Network::default() };
        assert!(seed(None, &network, "one", "u").unwrap_err().contains("networkData is needed"));
        let data = CloudInit { network_data: Some("version: 2\n".into()), ..settings("") };
        assert!(seed(Some(&data), &network, "one", "u").is_ok());
        assert!(seed(Some(&data), &Network::default(), "one", "u").unwrap_err().contains("only with"));
    }

    #[test]
    fn what_a_guest_agent_cannot_deliver_is_said_before_a_machine_is_made() {
        let spec = |more: Value, source: Value| {
            let mut spec = serde_json::json!({
                "hypervisorClusterRef": {"name": "pve"}, "template": source, "resources": {"cpu": 1, "memory": "1Gi"},
            });
            spec.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            serde_json::from_value(spec).unwrap()
        };
        let proxmox = || serde_json::json!({"proxmox": {"tag": "a"}});
        let by_agent = |more: Value| {
            let mut found = serde_json::json!({"cloudInit": {"delivery": "GuestAgent"}});
            found.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            found
        };
        let good = spec(by_agent(serde_json::json!({})), proxmox());
        assert_eq!(check_delivery(&good), Ok(()));
        assert_eq!((delivery(&good), storage(&good)), (Some(SeedDelivery::GuestAgent), None));
        let image = spec(serde_json::json!({"cloudInit": {}}), proxmox());
        assert_eq!((delivery(&image), storage(&image).as_deref()), (Some(SeedDelivery::Iso), Some("local")));
        assert_eq!(delivery(&spec(serde_json::json!({}), proxmox())), None);
        let kubevirt = serde_json::json!({"kubevirt": {"name": "golden"}});
        assert_eq!(delivery(&spec(serde_json::json!({"cloudInit": {}}), kubevirt.clone())), None);
        let fixed = serde_json::json!({"network": {"mode": "static", "staticConfig": {"ip": "192.0.2.7/24", "gateway": "192.0.2.1"}}});
        let data = serde_json::json!({"network": {"mode": "cloud-init"}, "cloudInit": {"networkData": "version: 2"}});
        assert!(
            !keeps_image(&image) && keeps_image(&spec(fixed.clone(), proxmox())) && keeps_image(&spec(data, proxmox()))
        );
        let long = format!("#!/bin/sh\n{}", "x".repeat(61_000));
        let long = serde_json::json!({"cloudInit": {"delivery": "GuestAgent", "userData": long}});
        for (spec, part) in [
            (spec(by_agent(serde_json::json!({})), kubevirt), "is for Proxmox VE"),
            (spec(by_agent(fixed), proxmox()), "use network.mode dhcp"),
            (spec(by_agent(long), proxmox()), "the user-data has 61522 bytes"),
        ] {
            let error = check_delivery(&spec).unwrap_err();
            assert!(error.contains(part), "{error}");
        }
    }
}
