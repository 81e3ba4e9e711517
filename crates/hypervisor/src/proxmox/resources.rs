//! The lines of `cluster/resources`, each read and dropped before the next one: there may be thousands, and few are wanted.

use crate::proxmox::client::{Call, Client, Content};
use crate::proxmox::trouble::Trouble;
use crate::proxmox::wire::Resource;
use http::Method;
use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use std::collections::BTreeSet;
use std::fmt;
use std::sync::Arc;

const PATH: &str = "/cluster/resources";

/// Takes every line of a kind (`vm`, `node`, `storage`), or of all.
pub(crate) async fn each(client: &Client, kind: Option<&str>, take: impl FnMut(Resource)) -> Result<(), Trouble> {
    let content = Content::Parameters(kind.map(|kind| ("type", kind.to_owned())).into_iter().collect());
    let body = client.read(Call { method: Method::GET, path: PATH, parts: &[], content }).await?;
    lines(&body, take).map_err(|error| Trouble::Misread { path: PATH, why: error.to_string() })
}

fn lines(body: &[u8], mut take: impl FnMut(Resource)) -> serde_json::Result<()> {
    let mut json = serde_json::Deserializer::from_slice(body);
    json.deserialize_map(Envelope(&mut take))?;
    json.end()
}

struct Envelope<'a, F>(&'a mut F);

impl<'de, F: FnMut(Resource)> Visitor<'de> for Envelope<'_, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("an object with data")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<(), A::Error> {
        let mut has_data = false;
        while let Some(key) = map.next_key::<String>()? {
            if key == "data" {
                has_data = true;
                map.next_value_seed(Lines(&mut *self.0))?;
            } else {
                map.next_value::<IgnoredAny>()?;
            }
        }
        if has_data { Ok(()) } else { Err(serde::de::Error::missing_field("data")) }
    }
}

struct Lines<'a, F>(&'a mut F);

impl<'de, F: FnMut(Resource)> DeserializeSeed<'de> for Lines<'_, F> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_seq(self)
    }
}

impl<'de, F: FnMut(Resource)> Visitor<'de> for Lines<'_, F> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a list of resources")
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut seq: A) -> Result<(), A::Error> {
        while let Some(resource) = seq.next_element()? {
            (self.0)(resource);
        }
        Ok(())
    }
}

/// Words that many have in common, each once.
#[derive(Default)]
pub(crate) struct Words(BTreeSet<Arc<str>>);

impl Words {
    /// The word.
    pub(crate) fn shared(&mut self, word: &str) -> Arc<str> {
        if let Some(known) = self.0.get(word) {
            return known.clone();
        }
        let word: Arc<str> = word.into();
        self.0.insert(word.clone());
        word
    }
}

#[cfg(test)]
mod tests {
    use super::lines;

    #[test]
    fn every_line_is_taken_and_what_is_no_list_is_an_error() {
        let read = |body: &str| {
            let mut ids = Vec::new();
            let read = lines(body.as_bytes(), |resource| ids.push(resource.vmid));
            read.map(|()| ids.join(" ")).map_err(|error| error.to_string())
        };
        let body = r#"{"total":2,"data":[{"type":"qemu","vmid":105},{"vmid":"106","unknown":[{}]}],"more":{}}"#;
        assert_eq!(read(body), Ok("105 106".into()));
        assert_eq!(read(r#"{"data":[]}"#), Ok(String::new()));
        for wrong in ["", "{}", "[]", r#"{"data":null}"#, r#"{"data":[1]}"#, r#"{"data":[]} x"#, r#"{"data":[{}"#] {
            assert!(read(wrong).is_err(), "{wrong}");
        }
    }
}
