//! Makes one write of the stand-in.

use super::cache::{Cache, News};
use super::{FIELD_MANAGER, api};
use kube::Client;
use kube::api::{DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use mco_stand_in::{Action, Write};

/// Makes a write and puts the answer into the cache, so that the next step sees it.
pub(super) async fn perform(client: &Client, write: &Write, cache: &mut Cache) -> kube::Result<()> {
    let (api, name, kind) = (api(client, Some(write.kind)), write.name.as_str(), write.kind);
    let params = PatchParams { field_manager: Some(FIELD_MANAGER.into()), ..PatchParams::default() };
    let answer = match &write.action {
        Action::Create(object) => {
            let params = PostParams { field_manager: Some(FIELD_MANAGER.into()), ..PostParams::default() };
            let object: DynamicObject = serde_json::from_value(object.clone()).map_err(kube::Error::SerdeError)?;
            match api.create(&params, &object).await {
                Err(kube::Error::Api(status)) if status.is_already_exists() => api.get(name).await,
                answer => answer,
            }
        }
        Action::Patch(patch) => api.patch(name, &params, &Patch::Merge(patch)).await,
        Action::PatchStatus(patch) => api.patch_status(name, &params, &Patch::Merge(patch)).await,
        Action::Delete => match api.delete(name, &DeleteParams::default()).await {
            Ok(deleted) => match deleted.left() {
                Some(object) if object.metadata.finalizers.as_ref().is_some_and(|list| !list.is_empty()) => Ok(object),
                _ => {
                    cache.forget(kind, name);
                    return Ok(());
                }
            },
            Err(error) => Err(error),
        },
    };
    match answer {
        Ok(object) => cache.take(Some(kind), News::Changed(Box::new(object))),
        Err(kube::Error::Api(status)) if status.is_not_found() => cache.forget(kind, name),
        Err(error) => return Err(error),
    }
    Ok(())
}
