//! What must hold in a cluster for an asset to be wanted.

/// One condition of an asset; all of them must hold.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Condition {
    /// The HyperConverged object carries an annotation, with this value where one is given.
    Annotation {
        /// The annotation's key.
        key: String,
        /// Its value; `None` asks only that the annotation is there.
        value: Option<String>,
    },
    /// The HyperConverged object names a feature gate that is not disabled.
    FeatureGate {
        /// The gate's name.
        value: String,
    },
    /// Some node has this hardware.
    HardwareDetection {
        /// Which.
        detector: String,
    },
    /// The operator knows an image of this name.
    Image {
        /// The image's name.
        key: String,
    },
    /// The user has not set this field of the HyperConverged object.
    HcoFieldUnconfigured {
        /// The field, dotted.
        path: String,
    },
    /// The cluster has this shape.
    Topology {
        /// Which boolean of the topology.
        field: String,
        /// The value that is asked for.
        value: bool,
    },
    /// The KubeVirt object names this feature gate.
    KubevirtFeatureGate {
        /// The gate's name.
        value: String,
    },
}
