//! Follows all objects of one kind.

use super::cache::{News, number};
use futures::{StreamExt, TryStreamExt};
use kube::api::{Api, DynamicObject, ListParams, WatchEvent, WatchParams};
use mco_stand_in::Kind;
use std::time::Duration;
use tokio::sync::mpsc::UnboundedSender;

/// Rights are granted with a delay, and a control plane may be restarted.
const PAUSE: Duration = Duration::from_millis(50);

/// Sends all objects and then every change, until the receiver is gone.
pub(super) async fn follow(api: Api<DynamicObject>, kind: Option<Kind>, news: UnboundedSender<(Option<Kind>, News)>) {
    let mut newest = 0;
    while !news.is_closed() {
        if follow_once(&api, kind, &news, &mut newest).await.is_err() {
            tokio::time::sleep(PAUSE).await;
        }
    }
}

async fn follow_once(
    api: &Api<DynamicObject>,
    kind: Option<Kind>,
    news: &UnboundedSender<(Option<Kind>, News)>,
    newest: &mut u64,
) -> kube::Result<()> {
    let list = api.list(&ListParams::default()).await?;
    let text = list.metadata.resource_version.unwrap_or_default();
    let version = number(&text);
    let _ = news.send((kind, News::Listed { objects: list.items, version, is_restored: version < *newest }));
    *newest = version;
    let mut events = api.watch(&WatchParams::default(), &text).await?.boxed();
    while let Some(event) = events.try_next().await? {
        let item = match event {
            WatchEvent::Added(object) | WatchEvent::Modified(object) => News::Changed(Box::new(object)),
            WatchEvent::Deleted(object) => News::Deleted(Box::new(object)),
            WatchEvent::Bookmark(_) => continue,
            WatchEvent::Error(_) => return Ok(()),
        };
        if let News::Changed(object) | News::Deleted(object) = &item {
            *newest = number(object.metadata.resource_version.as_deref().unwrap_or_default());
        }
        let _ = news.send((kind, item));
    }
    Ok(())
}
