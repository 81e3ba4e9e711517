//! Takes from an object's metadata what decisions need.

use change::Live;
use kube::api::ObjectMeta;

/// Takes what is needed and drops the rest.
pub fn live(metadata: ObjectMeta) -> Live {
    Live {
        uid: metadata.uid.unwrap_or_default(),
        resource_version: metadata.resource_version.unwrap_or_default(),
        generation: metadata.generation.unwrap_or_default(),
        annotations: metadata.annotations.unwrap_or_default(),
        managed_fields: serde_json::to_value(metadata.managed_fields).unwrap_or_default(),
        deleting: metadata.deletion_timestamp.is_some(),
    }
}
