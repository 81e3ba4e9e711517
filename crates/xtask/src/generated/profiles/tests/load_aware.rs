//! The profile load-aware-rebalancing.

use super::cluster::Bed;
use super::{item, line, object, pack};
use catalog::{Answer, Need, ProfileInputValue, Query, Resolved, WantedResult, wanted};
use change::{Impact, Kind};
use serde_json::{Value, json};

const NAME: &str = "load-aware-rebalancing";
const PSI: &str = "enable-psi-metrics";
const PSI_MASTER: &str = "enable-psi-metrics-master";
const DESCHEDULER: &str = "enable-load-aware-descheduling";

/// The spec of the KubeDescheduler.
fn descheduler(bed: &Bed, options: &Value) -> Value {
    object(&bed.with(&pack(), NAME, options), DESCHEDULER)["spec"].clone()
}

#[test]
fn the_default_plan_has_psi_and_the_descheduler_at_once() {
    let catalog = pack();
    let wants = Bed::default().with(&catalog, NAME, &json!({}));
    let names: Vec<&str> = wants.items.iter().map(|item| item.name.as_str()).collect();
    assert_eq!(names, [PSI, PSI_MASTER, DESCHEDULER]);
    let psi = object(&wants, PSI);
    assert_eq!(psi["metadata"]["labels"], json!({"machineconfiguration.openshift.io/role": "worker"}));
    assert_eq!(psi["spec"]["kernelArguments"], json!(["psi=1"]));
    assert!(line(&wants, PSI_MASTER).starts_with("not applicable"), "{}", line(&wants, PSI_MASTER));
    let expected = json!({"managementState": "Managed", "mode": "Automatic", "deschedulingIntervalSeconds": 60,
        "profiles": ["KubeVirtRelieveAndMigrate"],
        "profileCustomizations": {"devActualUtilizationProfile": "PrometheusCPUCombined",
            "devDeviationThresholds": "AsymmetricLow", "devEnableSoftTainter": true},
        "evictionLimits": {"total": 5, "node": 2}});
    assert_eq!(object(&wants, DESCHEDULER)["spec"], expected);
    assert_eq!([PSI, DESCHEDULER].map(|name| item(&wants, name).impact), [Impact::High, Impact::Medium]);
    assert_eq!(
        Bed::default().wants(&catalog, super::profile(&catalog, NAME), None),
        wants,
        "no options are the defaults"
    );
}

#[test]
fn every_option_is_in_the_plan() {
    for (options, pointer, expected) in [
        (json!({"deschedulingIntervalSeconds": 3600}), "/deschedulingIntervalSeconds", json!(3600)),
        (json!({"mode": "Predictive"}), "/mode", json!("Predictive")),
        (json!({"mode": "Automatic"}), "/mode", json!("Automatic")),
        (json!({"devDeviationThresholds": "High"}), "/profileCustomizations/devDeviationThresholds", json!("High")),
        (
            json!({"devActualUtilizationProfile": "PrometheusCPUMemoryCombinedProfile"}),
            "/profileCustomizations/devActualUtilizationProfile",
            json!("PrometheusCPUMemoryCombinedProfile"),
        ),
        (json!({"evictionLimitTotal": 50}), "/evictionLimits", json!({"total": 50, "node": 2})),
        (json!({"evictionLimitNode": 4}), "/evictionLimits", json!({"total": 5, "node": 4})),
    ] {
        assert_eq!(descheduler(&Bed::default(), &options).pointer(pointer), Some(&expected), "{options}");
    }
}

#[test]
fn psi_that_is_switched_off_is_off_and_the_descheduler_does_not_wait() {
    let wants = Bed::default().with(&pack(), NAME, &json!({"enablePSIMetrics": false}));
    assert_eq!(line(&wants, PSI), "off: no MachineConfig 99-openshift-machineconfig-worker-psi-karg");
    assert_eq!(line(&wants, PSI_MASTER), "off: no MachineConfig 99-openshift-machineconfig-master-psi-karg");
    assert_eq!(line(&wants, DESCHEDULER), "KubeDescheduler cluster");
}

#[test]
fn a_wrong_setting_of_a_user_of_the_autopilot_is_named_with_what_to_write() {
    let catalog = pack();
    let of = |key: &str, value: &str| {
        let mut bed = Bed::default();
        bed.facts.hco["metadata"]["annotations"] =
            json!({"platform.kubevirt.io/psi-enabled": "true", format!("platform.kubevirt.io/{key}"): value});
        bed.resolve(&catalog, "descheduler-loadaware")
    };
    for (key, wrong, why) in [
        ("descheduler-mode", "Sometimes", "write one of Automatic, Predictive"),
        ("descheduler-deviation-thresholds", "Lower", "write one of AsymmetricLow, "),
        ("descheduler-interval", "59", "write a whole number from 60 to 86400"),
        ("descheduler-interval", "1h", "write a whole number from 60 to 86400"),
        ("descheduler-limit-total", "1001", "write a whole number from 1 to 1000"),
        ("descheduler-limit-node", "0", "write a whole number from 1 to 100"),
        ("descheduler-limit-headroom", "yes", "write true or false"),
        ("descheduler-waits-for-psi", "no", "write true or false"),
        ("descheduler-replaces-profiles", "all", "write true or false"),
    ] {
        let Resolved::Broken(found) = of(key, wrong) else { panic!("{key}: {wrong} is taken") };
        assert!(found.contains(key) && found.contains(why), "{found}");
    }
    let Resolved::Object(object) = of("descheduler-interval", " 300 ") else { panic!("it is refused") };
    assert_eq!(object["spec"]["deschedulingIntervalSeconds"], 300);
}

#[test]
fn the_best_profile_that_the_installed_release_offers_is_used() {
    let of = |release: &'static str| {
        let bed = Bed { descheduler: release, ..Bed::default() };
        let spec = descheduler(&bed, &json!({}));
        (spec["profiles"].clone(), spec["profileCustomizations"].clone(), spec["evictionLimits"].clone())
    };
    let load_aware = json!({"devActualUtilizationProfile": "PrometheusCPUCombined",
        "devDeviationThresholds": "AsymmetricLow", "devEnableSoftTainter": true});
    let old = json!(["LongLifecycle", "EvictPodsWithPVC", "EvictPodsWithLocalStorage"]);
    assert_eq!(of("v510"), (old, json!({"devEnableEvictionsInBackground": true}), json!({"total": 5})));
    let preview = (json!(["DevKubeVirtRelieveAndMigrate"]), load_aware.clone(), json!({"total": 5}));
    assert_eq!((of("v514"), of("v521")), (preview.clone(), preview));
    assert_eq!(of("v532"), (json!(["KubeVirtRelieveAndMigrate"]), load_aware, json!({"total": 5, "node": 2})));
}

#[test]
fn a_release_without_a_profile_for_virtual_machines_has_nothing_to_plan() {
    let of = |release: &'static str| Bed { descheduler: release, ..Bed::default() }.with(&pack(), NAME, &json!({}));
    let too_old = of("v500");
    assert!(line(&too_old, DESCHEDULER).contains("update it to 5.1 or later"), "{}", line(&too_old, DESCHEDULER));
    let without_psi = of("v510");
    assert!(line(&without_psi, PSI).contains("has no profile that uses it"), "{}", line(&without_psi, PSI));
}

#[test]
fn measured_load_is_used_where_the_recording_rules_exist() {
    let rule = |record: &str| json!({"spec": {"groups": [{"rules": [{"record": record, "expr": "1"}]}]}});
    let combined = "descheduler:node:linear_amplified_ideal_point_positive_distance:k3:avg1m";
    let (memory, processors) = ("PrometheusCPUMemoryCombinedProfile", "PrometheusCPUCombined");
    for (rules, by_profile, by_autopilot) in [
        (Some(rule(combined)), json!(memory), json!(memory)),
        (Some(rule("other")), json!(processors), json!(processors)),
        // The autopilot changes it by itself once they are there.
        (None, json!(processors), Value::Null),
    ] {
        let bed = Bed { rules, ..Bed::default() };
        let utilization = |spec: &Value| spec["profileCustomizations"]["devActualUtilizationProfile"].clone();
        assert_eq!(utilization(&descheduler(&bed, &json!({}))), by_profile);
        let mut bed = bed;
        bed.facts.hco["metadata"]["annotations"] = json!({"platform.kubevirt.io/psi-enabled": "true"});
        let Resolved::Object(object) = bed.resolve(&pack(), "descheduler-loadaware") else { panic!("it is missing") };
        assert_eq!(utilization(&object["spec"]), by_autopilot);
    }
}

#[test]
fn the_rules_that_the_descheduler_brings_make_no_second_plan() {
    let combined = "descheduler:node:linear_amplified_ideal_point_positive_distance:k3:avg1m";
    for record in [combined, "other"] {
        for options in [json!({}), json!({"devActualUtilizationProfile": "PrometheusCPUMemoryCombinedProfile"})] {
            let planned = descheduler(&Bed::default(), &options);
            let rules = Some(json!({"spec": {"groups": [{"rules": [{"record": record, "expr": "1"}]}]}}));
            let live = Some(json!({"metadata": {"name": "cluster"}, "spec": planned}));
            assert_eq!(descheduler(&Bed { rules, live, ..Bed::default() }, &options), planned, "{record} {options}");
        }
    }
}

#[test]
fn two_profiles_of_others_stay_and_the_rest_is_replaced() {
    let profiles = |live: &[&str], release: &'static str| {
        let live = Some(json!({"metadata": {"name": "cluster"}, "spec": {"profiles": live}}));
        descheduler(&Bed { live, descheduler: release, ..Bed::default() }, &json!({}))["profiles"].clone()
    };
    let all = ["AffinityAndTaints", "LifecycleAndUtilization", "SoftTopologyAndDuplicates"];
    assert_eq!(
        profiles(&all, "v532"),
        json!(["AffinityAndTaints", "SoftTopologyAndDuplicates", "KubeVirtRelieveAndMigrate"])
    );
    assert_eq!(profiles(&["LongLifecycle"], "v532"), json!(["KubeVirtRelieveAndMigrate"]));
    assert_eq!(profiles(&["AffinityAndTaints"], "v510")[0], "AffinityAndTaints");
    assert_eq!(
        profiles(&["AffinityAndTaints", "KubeVirtRelieveAndMigrate"], "v532"),
        json!(["AffinityAndTaints", "KubeVirtRelieveAndMigrate"])
    );
}

/// A cluster with these limits of live migrations.
fn limited(api_version: &str, total: Option<i64>, node: Option<i64>) -> Bed {
    let mut bed = Bed::default();
    let mut limits = json!({});
    for (name, limit) in [("parallelMigrationsPerCluster", total), ("parallelOutboundMigrationsPerNode", node)] {
        if let Some(limit) = limit {
            limits[name] = json!(limit);
        }
    }
    bed.facts.hco["apiVersion"] = json!(api_version);
    bed.facts.hco["spec"] = match api_version.ends_with("/v1") {
        true => json!({"virtualization": {"liveMigrationConfig": limits}}),
        false => json!({"liveMigrationConfig": limits}),
    };
    bed
}

#[test]
fn limits_follow_the_hyperconverged_and_above_ten_leave_a_fifth_to_others() {
    for version in ["hco.kubevirt.io/v1", "hco.kubevirt.io/v1beta1"] {
        for (migrations, limit) in [(1, 1), (9, 9), (10, 10), (11, 10), (15, 14), (20, 18), (50, 42), (100, 82)] {
            let spec = descheduler(&limited(version, Some(migrations), Some(migrations)), &json!({}));
            assert_eq!(spec["evictionLimits"], json!({"total": limit, "node": limit}), "{version} {migrations}");
        }
        let spec = descheduler(&limited(version, None, Some(1)), &json!({}));
        assert_eq!(spec["evictionLimits"], json!({"total": 5, "node": 1}), "{version}, without one");
    }
    let mut bed = Bed::default();
    bed.facts.hco = Value::Null;
    assert_eq!(descheduler(&bed, &json!({}))["evictionLimits"], json!({"total": 5, "node": 2}), "without the object");
}

#[test]
fn an_explicit_limit_replaces_its_own_input_and_is_not_scaled() {
    let bed = limited("hco.kubevirt.io/v1", Some(50), Some(20));
    let inputs = |options: Value| {
        let wants = bed.with(&pack(), NAME, &options);
        let inputs: Vec<String> =
            wants.inputs.iter().map(|ProfileInputValue { name, value }| format!("{name}={value}")).collect();
        (inputs, object(&wants, DESCHEDULER)["spec"]["evictionLimits"].clone())
    };
    let total = "hyperconverged.parallelMigrationsPerCluster=50".to_owned();
    let node = "hyperconverged.parallelOutboundMigrationsPerNode=20".to_owned();
    assert_eq!(inputs(json!({})), (vec![total.clone(), node.clone()], json!({"total": 42, "node": 18})));
    assert_eq!(inputs(json!({"evictionLimitTotal": 50})), (vec![node], json!({"total": 50, "node": 18})));
    assert_eq!(inputs(json!({"evictionLimitNode": 20})), (vec![total], json!({"total": 42, "node": 20})));
    let both = json!({"evictionLimitTotal": 12, "evictionLimitNode": 11});
    assert_eq!(inputs(both), (vec![], json!({"total": 12, "node": 11})));
    let wants = limited("hco.kubevirt.io/v1", None, None).with(&pack(), NAME, &json!({}));
    assert_eq!(wants.inputs[0].value, "not set");
}

#[test]
fn clusters_of_masters_and_hosted_ones_have_items_that_fit() {
    let catalog = pack();
    let compact = Bed::compact(3).with(&catalog, NAME, &json!({}));
    assert_eq!(line(&compact, PSI_MASTER), "MachineConfig 99-openshift-machineconfig-master-psi-karg");
    assert_eq!(line(&compact, DESCHEDULER), "KubeDescheduler cluster");
    let single = Bed::compact(1).with(&catalog, NAME, &json!({}));
    for name in [PSI, PSI_MASTER, DESCHEDULER] {
        assert!(line(&single, name).contains("the cluster has one node"), "{}", line(&single, name));
    }
    let mut hosted = Bed::default();
    hosted.facts.topology.is_hcp = true;
    let wants = hosted.with(&catalog, NAME, &json!({}));
    assert!(line(&wants, PSI).contains("NodePool"), "{}", line(&wants, PSI));
    assert!(line(&wants, DESCHEDULER).contains("set enablePSIMetrics to false"), "{}", line(&wants, DESCHEDULER));
    let wants = hosted.with(&catalog, NAME, &json!({"enablePSIMetrics": false}));
    assert_eq!(line(&wants, DESCHEDULER), "KubeDescheduler cluster");
}

#[test]
fn an_object_of_the_predecessor_is_taken_over_under_its_name() {
    let catalog = pack();
    let profile = super::profile(&catalog, NAME);
    let old = Query::Object {
        api_version: "machineconfiguration.openshift.io/v1".into(),
        kind: "MachineConfig".into(),
        namespace: String::new(),
        name: "99-worker-psi-karg".into(),
    };
    let mut bed = Bed::default();
    let crd = Query::Crd { name: "kubedeschedulers.operator.openshift.io".into() };
    let schema = json!({"profiles": {"items": {"enum": ["KubeVirtRelieveAndMigrate"]}}});
    let schema = json!({"openAPIV3Schema": {"properties": {"spec": {"properties": schema}}}});
    let found = json!({"spec": {"versions": [{"storage": true, "schema": schema}]}});
    bed.facts.answers.insert(crd, Answer::Found(found));
    let on = |bed: &Bed| item(&wanted(&catalog, profile, None, &bed.facts), PSI).result.clone();
    let off = |bed: &Bed| {
        let options = json!({"enablePSIMetrics": false});
        item(&wanted(&catalog, profile, options.as_object(), &bed.facts), PSI).result.clone()
    };
    let asks = WantedResult::Needs(vec![old.clone()]);
    assert_eq!((on(&bed), off(&bed)), (asks.clone(), asks), "it is asked for first");
    let name = |result: WantedResult| match result {
        WantedResult::Object { key, object } => {
            assert_eq!(object["metadata"]["name"], key.name);
            key.name
        }
        WantedResult::Off { key } => key.unwrap().name,
        other => panic!("{other:?}"),
    };
    let ours = "99-openshift-machineconfig-worker-psi-karg";
    let own = Query::Object {
        api_version: "machineconfiguration.openshift.io/v1".into(),
        kind: "MachineConfig".into(),
        namespace: String::new(),
        name: ours.into(),
    };
    let found = || Answer::Found(json!({}));
    for (former, present, expected) in [
        (found(), Answer::Absent, "99-worker-psi-karg"),
        (found(), found(), ours),
        (Answer::Absent, Answer::Absent, ours),
    ] {
        bed.facts.answers.extend([(old.clone(), former), (own.clone(), present)]);
        assert_eq!([name(on(&bed)), name(off(&bed))], [expected, expected]);
    }
    bed.facts.answers.insert(old.clone(), Answer::Unknown);
    assert_eq!((on(&bed), off(&bed)), (WantedResult::Held(old.clone()), WantedResult::Held(old)));
}

#[test]
fn every_missing_prerequisite_is_named() {
    let catalog = pack();
    let profile = super::profile(&catalog, NAME);
    let mut bed = Bed::default();
    let config = Need::of(&Kind::new("machineconfiguration.openshift.io/v1", "MachineConfig"));
    let descheduler = Need::of(&Kind::new("operator.openshift.io/v1", "KubeDescheduler"));
    let crd = Need::Crd { name: "kubedeschedulers.operator.openshift.io".into() };
    bed.facts.absent.extend([config.clone(), descheduler.clone(), crd.clone()]);
    let wants = bed.wants(&catalog, profile, None);
    assert_eq!(item(&wants, PSI).result, WantedResult::Missing(config.clone()));
    assert_eq!(item(&wants, DESCHEDULER).result, WantedResult::Missing(descheduler.clone()));
    let missing = |options: Value| catalog::profile::missing(&catalog, profile, options.as_object(), &bed.facts);
    assert_eq!(missing(json!({})), [config, crd, descheduler.clone()]);
    assert_eq!(missing(json!({"enablePSIMetrics": false})), [descheduler], "PSI that is off needs nothing");
    let off = bed.with(&catalog, NAME, &json!({"enablePSIMetrics": false}));
    assert_eq!(item(&off, PSI).result, WantedResult::Off { key: None }, "a kind that is not served has no object");
}
