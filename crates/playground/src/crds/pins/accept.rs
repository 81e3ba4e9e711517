//! Lets a real API server judge CRDs.

use super::super::table::Row;
use crate::binaries::Binaries;
use crate::cache::Cache;
use crate::control_plane::{ControlPlane, Launch};
use crate::crds::install;
use crate::progress::Progress;
use crate::slot::Slot;
use crate::tools::Tools;
use crate::user_error::{UserError, server_message};
use k8s_openapi::apiextensions_apiserver::pkg::apis::apiextensions::v1::CustomResourceDefinition;
use kube::api::{Api, ApiResource, DynamicObject, PostParams};
use serde_json::Value;
use std::collections::BTreeMap;

/// An empty control plane.
pub(super) struct Judge {
    control_plane: ControlPlane,
    _slot: Slot,
}

impl Judge {
    /// Starts it.
    pub(super) async fn start(tools: &Tools, cache: &Cache, progress: Progress) -> Result<Judge, UserError> {
        let binaries = Binaries::ensure(tools, cache, progress).await?;
        let slot = Slot::take(cache).await?;
        let launch = Launch { binaries: &binaries, seed: None, fsync: false, port: None, keep: false };
        Ok(Judge { control_plane: ControlPlane::start(&launch).await?, _slot: slot })
    }

    /// Why the server refuses one of these CRDs; nothing is stored.
    pub(super) async fn refusal(&self, crds: &[(Row, Value)]) -> Option<String> {
        let resource = ApiResource::erase::<CustomResourceDefinition>(&());
        // Untyped, because a typed value would drop fields unknown to this program.
        let api: Api<DynamicObject> = Api::all_with(self.control_plane.client(), &resource);
        let params = PostParams { dry_run: true, field_manager: None };
        for (row, crd) in crds {
            let refused = match serde_json::from_value(crd.clone()) {
                Ok(object) => api.create(&params, &object).await.err().map(|error| server_message(&error)),
                Err(error) => Some(error.to_string()),
            };
            if let Some(message) = refused {
                let message = message.split_once(" is invalid: ").map_or(message.as_str(), |(_, why)| why);
                return Some(format!("the API server rejects {}: {message}", row.crd));
            }
        }
        None
    }

    /// Installs CRDs, of several variants the first, and returns when all are established together.
    pub(super) async fn establish(&self, crds: impl Iterator<Item = &(Row, Value)>) -> Result<(), UserError> {
        let mut by_name: BTreeMap<&str, &Value> = BTreeMap::new();
        for (row, crd) in crds {
            by_name.entry(&row.crd).or_insert(crd);
        }
        let crds: Vec<Value> = by_name.into_values().cloned().collect();
        install(&self.control_plane.client(), &crds).await
    }
}
