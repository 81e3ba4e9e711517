//! Lists and reads once, where nobody watches: for commands and for backups.

use crate::kinds::Served;
use crate::live::{Object, content};
use crate::request::{Failure, METADATA_LIST, Sent, send};
use crate::server::Server;
use change::{Key, Live};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;

/// Few enough that a page never costs much memory.
const PAGE: usize = 200;

#[derive(Deserialize)]
struct Page<'a> {
    #[serde(default)]
    metadata: More,
    /// None at all are `null` where only metadata is asked for.
    #[serde(borrow)]
    items: Option<Vec<&'a RawValue>>,
}

#[derive(Default, Deserialize)]
struct More {
    #[serde(default, rename = "continue")]
    token: String,
}

/// The metadata of all objects with a label, everywhere or in a namespace.
pub async fn metadata(
    server: &Server,
    served: &Served,
    namespace: &str,
    selector: &str,
) -> Result<Vec<Value>, Failure> {
    texts(server, served, namespace, selector, |text| Ok(serde_json::from_str(text)?)).await
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
        Ok((Key { kind: served.kind().clone(), namespace, name }, metadata.live()))
    };
    texts(server, served, namespace, selector, read).await
}

async fn texts<T>(
    server: &Server,
    served: &Served,
    namespace: &str,
    selector: &str,
    read: impl Fn(&str) -> Result<T, Failure>,
) -> Result<Vec<T>, Failure> {
    let selector = selector.replace('=', "%3D").replace('/', "%2F");
    let base = format!("{}?limit={PAGE}&labelSelector={selector}", served.url(namespace, ""));
    let (mut all, mut url) = (Vec::new(), base.clone());
    loop {
        let text = send(server, Sent::get(&url, METADATA_LIST)).await?;
        let page: Page<'_> = serde_json::from_str(&text)?;
        for item in page.items.unwrap_or_default() {
            all.push(read(item.get())?);
        }
        if page.metadata.token.is_empty() {
            return Ok(all);
        }
        url = format!("{base}&continue={}", page.metadata.token);
    }
}

/// One whole object; `None` if it does not exist.
pub async fn whole(server: &Server, served: &Served, key: &Key) -> Result<Option<Value>, Failure> {
    Ok(content(server, served, key).await?.map(|(_, object)| object))
}
