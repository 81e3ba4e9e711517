//! The preset scenes: common shapes of real clusters.

use super::{Pool, Scene, Topology};
use crate::user_error::UserError;

/// The names of all presets.
pub const PRESETS: [&str; 6] = ["small", "compact", "single-node", "hosted", "big", "gpu"];

pub(super) fn find(name: &str) -> Result<Scene, UserError> {
    let small = Scene {
        name: name.to_owned(),
        masters: 3,
        workers: 3,
        pools: Vec::new(),
        schedulable_masters: false,
        topology: Topology::HighlyAvailable,
        platform: "BareMetal".into(),
        hco: "v1".into(),
        descheduler: "5.2".into(),
    };
    let pool = |name: &str, nodes: usize, gpu: bool| vec![Pool { name: name.into(), nodes, gpu }];
    Ok(match name {
        "small" => small,
        "compact" => Scene { workers: 0, schedulable_masters: true, ..small },
        "single-node" => Scene {
            masters: 1,
            workers: 0,
            schedulable_masters: true,
            topology: Topology::SingleReplica,
            platform: "None".into(),
            ..small
        },
        "hosted" => Scene { masters: 0, topology: Topology::External, platform: "AWS".into(), ..small },
        "big" => Scene { workers: 90, pools: pool("infra", 7, false), ..small },
        "gpu" => Scene { workers: 2, pools: pool("gpu", 2, true), ..small },
        other => {
            return Err(UserError::new(
                format!("unknown scene {other:?}"),
                format!("choose one of {}", PRESETS.join(", ")),
            ));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::{PRESETS, find};
    use expect_test::expect;

    #[test]
    fn each_preset_has_the_shape_its_name_promises() {
        let shown: String = PRESETS.iter().map(|name| find(name).unwrap().summary() + "\n").collect();
        expect![[r#"
            small: 3 masters, 3 workers, BareMetal, HyperConverged v1
            compact: 3 masters, schedulable masters, BareMetal, HyperConverged v1
            single-node: 1 master, schedulable masters, None, HyperConverged v1
            hosted: 3 workers, hosted control plane, AWS, HyperConverged v1
            big: 3 masters, 90 workers, 7 in pool infra, BareMetal, HyperConverged v1
            gpu: 3 masters, 2 workers, 2 in pool gpu, BareMetal, HyperConverged v1
        "#]]
        .assert_eq(&shown);
        assert_eq!(find("big").unwrap().nodes(), 100);
        assert!(find("huge").unwrap_err().to_string().contains("choose one of small, compact"));
    }
}
