//! Splits an asset whose file has several documents into one asset for each object.

use crate::pack::asset::{Asset, DocumentInFile};
use crate::pack::requirement;
use change::Key;

/// One asset for each object of its file, in the order of the file. The error says what the file has to state.
pub(super) fn split(asset: Asset, text: &str) -> Result<Vec<Asset>, String> {
    let all = documents(text);
    let documents: Vec<&str> = all.iter().copied().filter(|document| has_kind(document)).collect();
    if documents.len() < 2 {
        return Ok(vec![asset]);
    }
    if all.iter().any(|document| !has_kind(document) && has_content(document)) {
        return Err("the file has several documents, and one of them has no line that begins with `kind:`".to_owned());
    }
    let mut assets: Vec<Asset> = Vec::new();
    for (index, document) in documents.into_iter().enumerate() {
        let (Some(kind), Some((namespace, name))) = (requirement::requirement(document), requirement::name(document))
        else {
            return Err(format!(
                "the file has several documents, and document {} does not state apiVersion, kind and metadata.name literally",
                index + 1
            ));
        };
        let is_taken = |taken: &str| assets.iter().any(|other| other.name == taken);
        let mut asset_name = format!("{}/{}", asset.name, kind.kind);
        if is_taken(&asset_name) {
            asset_name = format!("{}/{}/{name}", asset.name, kind.kind);
        }
        if is_taken(&asset_name) {
            return Err(format!("the file has two documents for {} {name}", kind.kind));
        }
        assets.push(Asset {
            name: asset_name,
            component: kind.kind.clone(),
            kind: Some(kind.clone()),
            document: Some(DocumentInFile { index, key: Key { kind, namespace, name } }),
            ..asset.clone()
        });
    }
    Ok(assets)
}

/// The documents of a file, which are separated by lines of three dashes.
fn documents(text: &str) -> Vec<&str> {
    let mut documents = Vec::new();
    let mut start = 0;
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        if line.trim_end() == "---" {
            documents.push(&text[start..at]);
            start = at + line.len();
        }
        at += line.len();
    }
    documents.push(&text[start..]);
    documents
}

/// Whether there is anything beside comments and lines of template code.
fn has_content(document: &str) -> bool {
    document.lines().any(|line| !line.trim().is_empty() && !line.starts_with('#') && !line.starts_with("{{"))
}

fn has_kind(document: &str) -> bool {
    document.lines().any(|line| line.starts_with("kind:"))
}
