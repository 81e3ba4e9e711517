//! What the assets need, the pools of nodes, and others who write the same.

use super::{Row, Verdict};
use autopilot::{AssetResult, Core, Report, StateWord};
use catalog::{Need, Pool, Selector};
use change::Kind;
use cluster::{Server, list};
use protocol::Kinds;
use serde_json::Value;
use std::collections::BTreeMap;

pub(super) fn not_evaluated(why: &str) -> Row {
    Row::new("hyperconverged", Verdict::Fail, "the cluster could not be evaluated", why)
}

pub(super) fn rows(core: &Core) -> Vec<Row> {
    let report = core.report();
    let mut rows = vec![hyperconverged(&report, core.hyperconverged().to_string())];
    rows.extend(
        core.advice()
            .into_iter()
            .map(|advice| Row::new("settings", Verdict::Warn, advice, "correct it; virtpilot lint finds it in files")),
    );
    rows.extend(kinds(core));
    rows.extend(pools(&core.facts().pools));
    rows.extend(states(core));
    rows
}

/// Whether it is known what the HyperConverged wants.
fn hyperconverged(report: &Report, name: String) -> Row {
    let suspended = report.assets.iter().find(|line| line.state == StateWord::Suspended);
    match (report.policy.autopilot == "suspended", suspended) {
        (false, _) => Row::ok("hyperconverged", name),
        (true, Some(line)) => Row::new("hyperconverged", Verdict::Fail, "everything is suspended", &line.why),
        (true, None) => Row::new(
            "hyperconverged",
            Verdict::Fail,
            "everything is suspended",
            "correct the annotations of the HyperConverged",
        ),
    }
}

/// What the cluster does not serve, and the assets that stay off without it.
fn kinds(core: &Core) -> Vec<Row> {
    let mut missing: BTreeMap<Need, (bool, Vec<&str>)> = BTreeMap::new();
    for outcome in core.outcomes() {
        if let AssetResult::Missing { need, asked } = &outcome.result {
            let (is_asked, assets) = missing.entry(need.clone()).or_default();
            *is_asked |= asked;
            assets.push(&outcome.asset);
        }
    }
    if missing.is_empty() {
        return vec![Row::ok("kinds", "every kind that is needed is served")];
    }
    let row = |(need, (is_asked, assets)): (Need, (bool, Vec<&str>))| {
        let verdict = if is_asked { Verdict::Warn } else { Verdict::Info };
        Row::new("kinds", verdict, need.why(), format!("{} stays off", assets.join(", ")))
    };
    missing.into_iter().map(row).collect()
}

fn pools(pools: &[Pool]) -> Vec<Row> {
    let mut rows = Vec::new();
    for pool in pools {
        match pool.why_not_ready() {
            Some(why) if pool.degraded => {
                rows.push(Row::new(
                    "pools",
                    Verdict::Fail,
                    why,
                    "changes that restart nodes wait until it is repaired",
                ));
            }
            Some(why) => {
                let found =
                    format!("{why}: {} of {} machines are done", pool.updated_machine_count, pool.machine_count);
                rows.push(Row::new("pools", Verdict::Info, found, "changes that restart nodes wait until it is done"));
            }
            None if pool.paused => {
                let found = format!("pool {} is paused", pool.name);
                rows.push(Row::new(
                    "pools",
                    Verdict::Warn,
                    found,
                    "approved changes are written, and wait for the end of the pause",
                ));
            }
            None => {}
        }
    }
    if rows.is_empty() && !pools.is_empty() {
        rows.push(Row::ok("pools", format!("{} healthy", pools.len())));
    }
    rows
}

/// Objects that others apply, and objects that cannot be written.
fn states(core: &Core) -> Vec<Row> {
    let mut rows = Vec::new();
    for line in core.status() {
        let subject = line.key.as_ref().map_or_else(|| line.asset.clone(), ToString::to_string);
        match StateWord::of(&line.state) {
            StateWord::Conflict => {
                let remedy = "let only one of them apply these fields, or use ignore-fields";
                rows.push(Row::new("clashes", Verdict::Warn, format!("{subject}: {}", line.state), remedy));
            }
            StateWord::Failed => {
                let remedy = format!("virtpilot explain {}", line.asset);
                rows.push(Row::new("objects", Verdict::Warn, format!("{subject}: {}", line.state), remedy));
            }
            _ => {}
        }
    }
    if rows.is_empty() {
        rows.push(Row::ok("objects", "none has failed or is applied by others"));
    }
    rows
}

/// KubeletConfigs of others: only one for each pool takes effect.
pub(super) async fn kubelet_configs(server: &Server, kinds: &Kinds) -> Vec<Row> {
    let group = "machineconfiguration.openshift.io/v1";
    let served = |kind: &str| kinds.find(&Kind::new(group, kind));
    let (Some(configs), Some(pools)) = (served("KubeletConfig"), served("MachineConfigPool")) else {
        return Vec::new();
    };
    let read = async {
        Ok::<_, cluster::Failure>((list::whole(server, &configs, "").await?, list::whole(server, &pools, "").await?))
    };
    match read.await {
        Ok((configs, pools)) => clashes(&configs, &pools),
        Err(failure) => {
            vec![Row::new("clashes", Verdict::Info, "KubeletConfigs cannot be listed", failure.to_string())]
        }
    }
}

fn clashes(configs: &[Value], pools: &[Value]) -> Vec<Row> {
    let (label, value) = api::MANAGED_BY;
    let name = |object: &Value| object["metadata"]["name"].as_str().unwrap_or_default().to_owned();
    let mut rows = Vec::new();
    for config in configs.iter().filter(|config| config["metadata"]["labels"][label] != value) {
        let selector: Selector =
            serde_json::from_value(config["spec"]["machineConfigPoolSelector"].clone()).unwrap_or_default();
        for pool in pools {
            let labels = serde_json::from_value(pool["metadata"]["labels"].clone()).unwrap_or_default();
            if selector.matches(&labels) {
                let found = format!("KubeletConfig {} selects pool {}", name(config), name(pool));
                let remedy = "only one takes effect, so the autopilot writes none for this pool; \"virtpilot explain KubeletConfig/NAME\" names the fields to add";
                rows.push(Row::new("clashes", Verdict::Warn, found, remedy));
            }
        }
    }
    if rows.is_empty() {
        rows.push(Row::ok("clashes", "no KubeletConfig of others selects a pool"));
    }
    rows
}

#[cfg(test)]
mod tests {
    use super::{Verdict, clashes, hyperconverged, pools};
    use autopilot::{Policy, Report};
    use catalog::Pool;
    use serde_json::json;

    #[test]
    fn pools_that_are_degraded_paused_or_updating_are_reported() {
        let pool = Pool {
            name: "worker".into(),
            machine_count: 3,
            updated_machine_count: 3,
            is_observed: true,
            ..Pool::default()
        };
        let verdict = |pool: Pool| pools(&[pool])[0].verdict;
        assert_eq!(verdict(pool.clone()), Verdict::Ok);
        assert_eq!(verdict(Pool { degraded: true, ..pool.clone() }), Verdict::Fail);
        assert_eq!(verdict(Pool { paused: true, ..pool.clone() }), Verdict::Warn);
        assert_eq!(verdict(Pool { updating: true, ..pool }), Verdict::Info);
        assert!(pools(&[]).is_empty());
    }

    #[test]
    fn suspended_assets_have_to_be_repaired() {
        let verdict = |autopilot: &str| {
            let policy = Policy { autopilot: autopilot.into(), ..Policy::default() };
            hyperconverged(&Report { policy, ..Report::default() }, "h".into()).verdict
        };
        assert_eq!((verdict("suspended"), verdict("on"), verdict("off")), (Verdict::Fail, Verdict::Ok, Verdict::Ok));
    }

    #[test]
    fn a_kubelet_config_of_others_that_selects_a_pool_is_a_clash() {
        let pools = [json!({"metadata": {"name": "worker", "labels": {"a": "b"}}})];
        let config = |labels| json!({"metadata": {"name": "x", "labels": labels}, "spec": {"machineConfigPoolSelector": {"matchLabels": {"a": "b"}}}});
        let found = clashes(&[config(json!({}))], &pools);
        assert_eq!((found[0].verdict, found[0].found.as_str()), (Verdict::Warn, "KubeletConfig x selects pool worker"));
        let ours = json!({api::MANAGED_BY.0: api::MANAGED_BY.1});
        assert_eq!(clashes(&[config(ours)], &pools)[0].verdict, Verdict::Ok);
    }
}
