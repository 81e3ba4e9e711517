//! Lists objects once, where nothing is watched.

use crate::read::live::Object;
use crate::read::pages::Pages;
use crate::request::{Failure, METADATA_LIST, WHOLE};
use crate::server::Server;
use change::{Key, Live};
use protocol::Served;
use serde_json::Value;

/// The metadata of all objects with a label, as JSON; an empty namespace is all of them.
pub async fn metadata(
    server: &Server,
    served: &Served,
    namespace: &str,
    selector: &str,
) -> Result<Vec<Value>, Failure> {
    list(server, served, namespace, selector, |text| Ok(serde_json::from_str(text)?)).await
}

/// The same as decisions need it.
pub async fn lives(
    server: &Server,
    served: &Served,
    namespace: &str,
    selector: &str,
) -> Result<Vec<(Key, Live)>, Failure> {
    let read = |text: &str| {
        let metadata = serde_json::from_str::<Object<'_>>(text)?.metadata;
        let (namespace, name) = (metadata.namespace.clone(), metadata.name.clone());
        Ok((Key { kind: served.kind().clone(), namespace, name }, metadata.live(&server.identity)))
    };
    list(server, served, namespace, selector, read).await
}

/// All objects as a whole; an empty namespace is all of them.
pub async fn whole(server: &Server, served: &Served, namespace: &str) -> Result<Vec<Value>, Failure> {
    pages(Pages::new(server, served, namespace, "", WHOLE), |text| Ok(serde_json::from_str(text)?)).await
}

async fn list<T>(
    server: &Server,
    served: &Served,
    namespace: &str,
    selector: &str,
    read: impl Fn(&str) -> Result<T, Failure>,
) -> Result<Vec<T>, Failure> {
    pages(Pages::new(server, served, namespace, selector, METADATA_LIST), read).await
}

async fn pages<T>(mut pages: Pages<'_>, read: impl Fn(&str) -> Result<T, Failure>) -> Result<Vec<T>, Failure> {
    let mut all = Vec::new();
    while let Some(page) = pages.fetch().await? {
        for item in pages.items(&page)? {
            all.push(read(item.get())?);
        }
    }
    Ok(all)
}
