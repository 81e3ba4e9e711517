//! The conditions under which an asset applies.

use crate::cluster::hardware::device;
use crate::cluster::topology::sentence;
use std::fmt;

/// One condition of an asset; all of them must be met.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// The HyperConverged object has an annotation, with this value if one is given.
    Annotation {
        /// The annotation's key.
        key: String,
        /// The expected value; `None` accepts any value.
        value: Option<String>,
    },
    /// The HyperConverged object has a feature gate that is not disabled.
    FeatureGate {
        /// The gate's name.
        value: String,
    },
    /// At least one node has this hardware.
    HardwareDetection {
        /// The name of the hardware detector.
        detector: String,
    },
    /// The operator is configured with an image of this name.
    Image {
        /// The image's name.
        key: String,
    },
    /// The user has not set this field of the HyperConverged object.
    HcoFieldUnconfigured {
        /// The path of the field, with dots.
        path: String,
    },
    /// The cluster has this topology.
    Topology {
        /// The name of the topology's boolean.
        field: String,
        /// The expected value.
        value: bool,
    },
    /// The KubeVirt object has this feature gate.
    KubevirtFeatureGate {
        /// The gate's name.
        value: String,
    },
    /// At least one of these is met.
    Any {
        /// The conditions.
        of: Vec<Condition>,
    },
}

impl Condition {
    /// Whether the answer to a query decides about it.
    pub fn makes_query(&self) -> bool {
        self.leaves().iter().any(|leaf| matches!(leaf, Condition::KubevirtFeatureGate { .. }))
    }

    /// The condition, or those that it consists of.
    pub fn leaves(&self) -> Vec<&Condition> {
        match self {
            Condition::Any { of } => of.iter().flat_map(Condition::leaves).collect(),
            leaf => vec![leaf],
        }
    }
}

impl fmt::Display for Condition {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Condition::Annotation { key, value: None } => write!(f, "the HyperConverged has the annotation {key}"),
            Condition::Annotation { key, value: Some(value) } => {
                write!(f, "the HyperConverged has the annotation {key}: {value}")
            }
            Condition::FeatureGate { value } => write!(f, "the HyperConverged has the feature gate {value}"),
            Condition::HardwareDetection { detector } => write!(f, "a node has {}", device(detector)),
            Condition::Image { key } => write!(f, "the operator has an image {key}"),
            Condition::HcoFieldUnconfigured { path } => write!(f, "{path} of the HyperConverged is not set"),
            Condition::Topology { field, value } => f.write_str(&sentence(field, *value)),
            Condition::Any { of } => {
                let texts: Vec<String> = of.iter().map(Condition::to_string).collect();
                write!(f, "({})", texts.join(", or "))
            }
            Condition::KubevirtFeatureGate { value } => write!(f, "KubeVirt has the feature gate {value}"),
        }
    }
}
