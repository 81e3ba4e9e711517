//! The fleet has the rights that it needs, by name where that is possible, and no others.

use super::FleetSettings;
use crate::tests::pack;
use crate::{Installation, Products, Settings};
use serde_json::{Value, json};

fn installed(fleet: FleetSettings) -> Vec<Value> {
    let settings = Settings { products: Products::Fleet, namespace: "fleet-home".into(), fleet, ..Settings::default() };
    Installation::new(&pack(), &settings).unwrap().objects().collect()
}

fn rules(objects: &[Value]) -> Vec<(String, Value)> {
    let roles = objects.iter().filter(|object| ["Role", "ClusterRole"].contains(&object["kind"].as_str().unwrap()));
    let name =
        |role: &Value| format!("{} {}", role["kind"].as_str().unwrap(), role["metadata"]["name"].as_str().unwrap());
    roles
        .flat_map(|role| role["rules"].as_array().unwrap().iter().map(move |rule| (name(role), rule.clone())))
        .collect()
}

#[test]
fn no_secret_but_its_own_is_read_unless_it_is_named() {
    let is_about_secrets = |rule: &Value| rule["resources"].as_array().unwrap().contains(&json!("secrets"));
    let own = json!({"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["virtpilot-fleet-bootstrap"], "verbs": ["get", "create", "patch"]});
    let own = ("Role virtpilot-fleet".to_owned(), own);
    let found = rules(&installed(FleetSettings::default())).into_iter().filter(|(_, rule)| is_about_secrets(rule));
    assert_eq!(found.collect::<Vec<_>>(), std::slice::from_ref(&own));
    let kubevirt = ["vms".to_owned()].into();
    let found = rules(&installed(FleetSettings { kubevirt, ..FleetSettings::default() }));
    let seeds = json!({"apiGroups": [""], "resources": ["secrets"], "verbs": ["create"]});
    let found: Vec<_> = found.into_iter().filter(|(_, rule)| is_about_secrets(rule)).collect();
    assert_eq!(found, [own.clone(), ("Role virtpilot-fleet-machines".to_owned(), seeds)]);
    let secrets = [("ci".to_owned(), "pve-token".to_owned())].into();
    let objects = installed(FleetSettings { secrets, ..FleetSettings::default() });
    let found: Vec<_> = rules(&objects).into_iter().filter(|(_, rule)| is_about_secrets(rule)).collect();
    let rule = json!({"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["pve-token"], "verbs": ["get", "list", "watch"]});
    assert_eq!(found, [own, ("Role virtpilot-fleet-secret-pve-token".to_owned(), rule)]);
    let binding =
        objects.iter().find(|object| object["kind"] == "RoleBinding" && object["metadata"]["namespace"] == "ci");
    let subject = json!([{"kind": "ServiceAccount", "name": "virtpilot-fleet", "namespace": "fleet-home"}]);
    assert_eq!(binding.unwrap()["subjects"], subject);
}

#[test]
fn nothing_is_granted_for_all_resources_or_verbs_and_nothing_escalates() {
    let kubevirt = ["vms".to_owned()].into();
    for (role, rule) in rules(&installed(FleetSettings { kubevirt, ..FleetSettings::default() })) {
        let text = rule.to_string();
        for forbidden in ["*", "bind", "escalate", "impersonate", "roles", "serviceaccounts", "pods/"] {
            assert!(!text.contains(forbidden), "{role}: {rule}");
        }
        if role.ends_with("virtpilot-fleet") {
            let is_its_own = rule["apiGroups"] == json!(["hyperfleet.io"]) || rule.get("resourceNames").is_some();
            let only_reads = rule["verbs"]
                .as_array()
                .unwrap()
                .iter()
                .all(|verb| ["get", "list", "watch"].contains(&verb.as_str().unwrap()));
            let is_report = ["events", "leases"].iter().any(|resource| rule["resources"] == json!([resource]));
            assert!(is_its_own || only_reads || is_report, "{role}: {rule}");
        }
    }
}

/// P17 and P22: without any privilege, and configured by a ConfigMap if there is one.
#[test]
fn the_fleet_is_deployed_by_itself_and_needs_nothing_of_the_platform() {
    let objects = installed(FleetSettings::default());
    let text = serde_json::to_string(&objects).unwrap();
    for other in ["virt-platform-autopilot", "virt-advisor-operator", "hyperconverged", "openshift-cnv"] {
        assert!(!text.contains(other), "{other}");
    }
    let deployment = objects.iter().find(|object| object["kind"] == "Deployment").unwrap();
    let pod = &deployment["spec"]["template"]["spec"];
    let arguments =
        ["run", "--leader-elect", "--namespace=$(POD_NAMESPACE)", "--products=fleet", "--webhook-bind-address=:8083"];
    assert_eq!(pod["containers"][0]["args"], json!(arguments));
    let environment = json!([{"configMapRef": {"name": "virtpilot-fleet-environment", "optional": true}}]);
    assert_eq!(pod["containers"][0]["envFrom"], environment);
    assert_eq!(pod["securityContext"]["runAsNonRoot"], true);
    assert_eq!(pod["containers"][0]["securityContext"]["allowPrivilegeEscalation"], false);
    assert_eq!((&pod["serviceAccountName"], pod.get("priorityClassName")), (&json!("virtpilot-fleet"), None));
    let policy = objects.iter().find(|object| object["kind"] == "NetworkPolicy").unwrap();
    assert_eq!(policy["spec"]["egress"][1]["ports"], json!([{"port": 8006, "protocol": "TCP"}]));
    let numbers = |ports: &Value| ports.as_array().unwrap().iter().map(|port| port["port"].clone()).collect::<Vec<_>>();
    let to_replicas = &policy["spec"]["egress"][3];
    assert_eq!(numbers(&to_replicas["ports"]), [8083, 8443]);
    assert_eq!(
        to_replicas["to"][0]["podSelector"], policy["spec"]["podSelector"],
        "a replica passes webhooks and guests on to the one that leads"
    );
    let address = json!({"name": "POD_IP", "valueFrom": {"fieldRef": {"fieldPath": "status.podIP"}}});
    assert!(pod["containers"][0]["env"].as_array().unwrap().contains(&address));
    assert_eq!(numbers(&policy["spec"]["ingress"][0]["ports"]), [8080, 8082, 8083, 8443]);
    let service = objects.iter().find(|object| object["kind"] == "Service").unwrap();
    assert_eq!(numbers(&service["spec"]["ports"]), [8083, 8443]);
    let crds: Vec<&str> = objects
        .iter()
        .filter(|object| object["kind"] == "CustomResourceDefinition")
        .map(|crd| crd["metadata"]["name"].as_str().unwrap())
        .collect();
    let names = ["hypervisorclusters", "hypervisormachinetemplates", "runnerpools", "machineclaims"];
    assert_eq!(crds, names.map(|name| format!("{name}.hyperfleet.io")));
}

#[test]
fn the_bootstrap_endpoint_is_where_the_settings_say() {
    let settings = FleetSettings {
        bootstrap_address: Some("a:1".into()),
        service_type: "NodePort".into(),
        ..FleetSettings::default()
    };
    let objects = installed(settings);
    let of = |kind: &str| objects.iter().find(|object| object["kind"] == kind).unwrap();
    let arguments = &of("Deployment")["spec"]["template"]["spec"]["containers"][0]["args"];
    assert!(arguments.as_array().unwrap().contains(&json!("--bootstrap-address=a:1")), "{arguments}");
    assert_eq!(of("Service")["spec"]["type"], "NodePort");
}
