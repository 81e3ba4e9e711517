//! Answers that are still good if the server says so, which costs nothing of the budget.

use bytes::Bytes;
use http::header::HeaderValue;
use std::collections::BTreeMap;
use std::sync::Arc;

/// What is kept of answers at most, in bytes.
const MOST: usize = 16 << 20;

/// An answer and its entity tag.
pub(crate) struct Known {
    pub(crate) tag: HeaderValue,
    pub(crate) body: Bytes,
    /// The header `Link`.
    pub(crate) link: Option<String>,
}

/// Answers by their address, those that were used last.
#[derive(Default)]
pub(crate) struct Tags {
    entries: BTreeMap<String, (u64, Arc<Known>)>,
    bytes: usize,
    uses: u64,
}

impl Tags {
    pub(crate) fn get(&mut self, url: &str) -> Option<Arc<Known>> {
        self.uses += 1;
        let (used, known) = self.entries.get_mut(url)?;
        *used = self.uses;
        Some(known.clone())
    }

    pub(crate) fn put(&mut self, url: &str, known: Known) {
        self.remove(url);
        self.uses += 1;
        self.bytes += size(url, &known);
        self.entries.insert(url.to_owned(), (self.uses, Arc::new(known)));
        while self.bytes > MOST {
            let oldest = self.entries.iter().min_by_key(|(_, (used, _))| *used).map(|(url, _)| url.clone());
            match oldest {
                Some(oldest) => self.remove(&oldest),
                None => return,
            }
        }
    }

    fn remove(&mut self, url: &str) {
        if let Some((_, known)) = self.entries.remove(url) {
            self.bytes -= size(url, &known);
        }
    }
}

fn size(url: &str, known: &Known) -> usize {
    url.len() + known.body.len() + known.link.as_ref().map_or(0, String::len) + 128
}

#[cfg(test)]
mod tests {
    use super::{Known, MOST, Tags};
    use bytes::Bytes;
    use http::header::HeaderValue;

    #[test]
    fn the_oldest_answers_go_when_there_are_too_many() {
        let mut tags = Tags::default();
        let known = |size: usize| Known {
            tag: HeaderValue::from_static("\"a\""),
            body: Bytes::from(vec![0; size]),
            link: None,
        };
        for name in ["a", "b", "c"] {
            tags.put(name, known(MOST / 4));
        }
        assert!(tags.get("a").is_some());
        tags.put("d", known(MOST / 4));
        tags.put("e", known(MOST / 8));
        assert!(tags.get("b").is_none() && tags.get("a").is_some() && tags.get("e").is_some());
        tags.put("huge", known(MOST * 2));
        assert!(tags.entries.is_empty() && tags.bytes == 0);
    }
}
