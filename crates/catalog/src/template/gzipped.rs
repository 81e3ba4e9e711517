//! What `gzip` has made of texts: a template compresses the same files again whenever anything else in it changes, and that takes longer
//! than all the rest of its rendering.

use change::Digest;
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

/// So many texts are remembered; a pack has fewer, unless it compresses what changes.
const MOST: usize = 32;

/// Compressed texts by the digests of what they were.
#[derive(Debug, Default)]
pub struct Gzipped(Mutex<BTreeMap<Digest, Arc<[u8]>>>);

/// A copy begins with nothing: it remembers only to be faster.
impl Clone for Gzipped {
    fn clone(&self) -> Gzipped {
        Gzipped::default()
    }
}

impl Gzipped {
    /// A text as it was compressed before, or as it is compressed now.
    pub fn of<E>(&self, text: &str, compress: impl FnOnce() -> Result<Vec<u8>, E>) -> Result<Arc<[u8]>, E> {
        let digest = Digest::of_bytes(text.as_bytes());
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(packed) = known.get(&digest) {
            return Ok(packed.clone());
        }
        let packed: Arc<[u8]> = compress()?.into();
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(digest, packed.clone());
        Ok(packed)
    }
}

#[cfg(test)]
mod tests {
    use super::{Gzipped, MOST};

    #[test]
    fn a_text_is_compressed_once_and_no_more_texts_are_remembered_than_a_pack_has() {
        let (gzipped, mut count) = (Gzipped::default(), 0);
        let mut compress = |text: &str| {
            let packed = gzipped.of(text, || {
                count += 1;
                Ok::<_, ()>(text.as_bytes().to_vec())
            });
            assert_eq!(packed.as_deref(), Ok(text.as_bytes()));
        };
        ["a", "b", "a", "b"].into_iter().for_each(&mut compress);
        (0..MOST).for_each(|number| compress(&number.to_string()));
        compress("a");
        assert_eq!(count, 2 + MOST + 1);
        assert!(gzipped.0.lock().unwrap().len() <= MOST);
        assert_eq!(gzipped.of("a", || Err("not compressed again")).as_deref(), Ok("a".as_bytes()));
        assert_eq!(gzipped.of("new", || Err("it failed")), Err("it failed"));
    }
}
