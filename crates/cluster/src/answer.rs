//! Answers what a template asked for. "The API failed" is never "it is absent".

use crate::kinds::Kinds;
use catalog::{Answer, Query};
use change::Kind;
use kube::Client;
use kube::api::{Api, ApiResource, DynamicObject, ListParams};
use serde_json::Value;

/// Asks the API server; an answer that cannot be had is `Unknown`.
pub async fn answer(client: &Client, kinds: &Kinds, query: &Query) -> Answer {
    let found = match query {
        Query::Object { api_version, kind, namespace, name } => {
            let Some(served) = kinds.find(&Kind::new(api_version, kind)) else { return Answer::Absent };
            served.api(client, namespace).get_opt(name).await.map(|object| object.map(value))
        }
        Query::Crd { name } => {
            let definition = Kind::new("apiextensions.k8s.io/v1", "CustomResourceDefinition");
            let gvk = kube::core::GroupVersionKind::gvk(&definition.group, &definition.version, &definition.kind);
            let api: Api<DynamicObject> = Api::all_with(client.clone(), &ApiResource::from_gvk(&gvk));
            api.get_opt(name).await.map(|object| object.map(value))
        }
        Query::List { api_version, kind } => {
            let Some(served) = kinds.find(&Kind::new(api_version, kind)) else { return Answer::Absent };
            served.api(client, "").list(&ListParams::default()).await.map(|list| {
                let mut items: Vec<DynamicObject> = list.items;
                items.sort_by(|one, other| one.metadata.name.cmp(&other.metadata.name));
                Some(Value::Array(items.into_iter().map(value).collect()))
            })
        }
    };
    match found {
        Ok(Some(value)) => Answer::Found(value),
        Ok(None) => Answer::Absent,
        Err(_) => Answer::Unknown,
    }
}

fn value(object: DynamicObject) -> Value {
    serde_json::to_value(object).unwrap_or_default()
}
