//! An OCI image layout with one layer per platform, the same bytes for the same content.

use crate::release::Binary;
use anyhow::Context;
use flate2::{Compression, GzBuilder};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::Write;

/// A user that owns nothing; a cluster may choose another one.
const USER: &str = "65532:65532";

/// What all platforms share.
pub(super) struct Image {
    pub(super) version: String,
    pub(super) revision: String,
    pub(super) sbom: String,
}

/// The files of a layout by path, and the digest of the image.
pub(super) struct Layout {
    pub(super) files: BTreeMap<String, Vec<u8>>,
    pub(super) digest: String,
}

pub(super) fn files(image: &Image, binaries: &[Binary]) -> anyhow::Result<Layout> {
    let mut files = BTreeMap::new();
    let mut manifests = Vec::new();
    for binary in binaries {
        let mut manifest = manifest(&mut files, image, binary)?;
        manifest["platform"] = json!({"architecture": binary.architecture, "os": "linux"});
        manifests.push(manifest);
    }
    let index_type = "application/vnd.oci.image.index.v1+json";
    let index =
        json!({"schemaVersion": 2, "mediaType": index_type, "manifests": manifests, "annotations": labels(image)});
    let mut entry = add(&mut files, index_type, index.to_string().into_bytes());
    let digest = entry["digest"].as_str().unwrap_or_default().to_owned();
    entry["annotations"] = json!({"org.opencontainers.image.ref.name": image.version});
    let top = json!({"schemaVersion": 2, "mediaType": index_type, "manifests": [entry]});
    files.insert("index.json".to_owned(), top.to_string().into_bytes());
    files.insert("oci-layout".to_owned(), json!({"imageLayoutVersion": "1.0.0"}).to_string().into_bytes());
    Ok(Layout { files, digest })
}

/// Adds the manifest of one platform and what it refers to.
fn manifest(files: &mut BTreeMap<String, Vec<u8>>, image: &Image, binary: &Binary) -> anyhow::Result<Value> {
    let archive = archive(image, binary).context("could not write the layer")?;
    let mut compressed = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    compressed.write_all(&archive)?;
    let layer = add(files, "application/vnd.oci.image.layer.v1.tar+gzip", compressed.finish()?);
    let config = json!({
        "architecture": binary.architecture,
        "os": "linux",
        "config": {"User": USER, "Entrypoint": ["/virtpilot"], "Labels": labels(image)},
        "rootfs": {"type": "layers", "diff_ids": [digest(&archive)]},
    });
    let config = add(files, "application/vnd.oci.image.config.v1+json", config.to_string().into_bytes());
    let media_type = "application/vnd.oci.image.manifest.v1+json";
    let manifest = json!({"schemaVersion": 2, "mediaType": media_type, "config": config, "layers": [layer]});
    Ok(add(files, media_type, manifest.to_string().into_bytes()))
}

fn labels(image: &Image) -> Value {
    json!({
        "org.opencontainers.image.title": "virtpilot",
        "org.opencontainers.image.version": image.version,
        "org.opencontainers.image.revision": image.revision,
        "org.opencontainers.image.licenses": "Apache-2.0",
    })
}

/// The binary and the bill of materials as a tar archive without times and owners.
fn archive(image: &Image, binary: &Binary) -> std::io::Result<Vec<u8>> {
    let mut archive = tar::Builder::new(Vec::new());
    for (path, mode, content) in
        [("virtpilot", 0o755, binary.content.as_slice()), ("sbom.cdx.json", 0o644, image.sbom.as_bytes())]
    {
        let mut header = tar::Header::new_ustar();
        header.set_size(content.len() as u64);
        header.set_mode(mode);
        header.set_uid(0);
        header.set_gid(0);
        header.set_mtime(0);
        archive.append_data(&mut header, path, content)?;
    }
    archive.into_inner()
}

/// Adds a blob; returns its descriptor.
fn add(files: &mut BTreeMap<String, Vec<u8>>, media_type: &str, content: Vec<u8>) -> Value {
    let digest = digest(&content);
    let descriptor = json!({"mediaType": media_type, "digest": digest, "size": content.len()});
    files.insert(format!("blobs/{}", digest.replace(':', "/")), content);
    descriptor
}

fn digest(content: &[u8]) -> String {
    let digest = Sha256::digest(content);
    format!("sha256:{}", digest.iter().map(|byte| format!("{byte:02x}")).collect::<String>())
}

#[cfg(test)]
mod tests {
    use super::{Binary, Image, Layout, digest, files};
    use expect_test::expect;
    use flate2::read::GzDecoder;
    use serde_json::Value;
    use std::io::Read;

    fn fixed() -> Layout {
        let image = Image { version: "1.2.3".into(), revision: "abc".into(), sbom: "{}\n".into() };
        let binary = |architecture| Binary { architecture, content: format!("for {architecture}").into_bytes() };
        files(&image, &[binary("amd64"), binary("arm64")]).unwrap()
    }

    /// The content that a descriptor refers to.
    fn content<'a>(layout: &'a Layout, descriptor: &Value) -> &'a [u8] {
        let named = descriptor["digest"].as_str().unwrap();
        let content = &layout.files[&format!("blobs/{}", named.replace(':', "/"))];
        assert_eq!((named, &descriptor["size"]), (digest(content).as_str(), &Value::from(content.len())));
        content
    }

    fn read(layout: &Layout, descriptor: &Value) -> Value {
        serde_json::from_slice(content(layout, descriptor)).unwrap()
    }

    #[test]
    fn the_same_content_gives_the_same_bytes() {
        let (one, other) = (fixed(), fixed());
        assert_eq!(one.files, other.files);
        expect!["sha256:6b6a14b9426ed1f9cbbfec33848ed1e11666966d2465902612195f1e052f4a7c"].assert_eq(&one.digest);
    }

    #[test]
    fn every_descriptor_is_right_and_every_blob_is_needed() {
        let layout = fixed();
        let top: Value = serde_json::from_slice(&layout.files["index.json"]).unwrap();
        let entry = &top["manifests"][0];
        assert_eq!(entry["annotations"]["org.opencontainers.image.ref.name"], "1.2.3");
        let index = read(&layout, entry);
        let mut blobs = 1;
        for (descriptor, architecture) in index["manifests"].as_array().unwrap().iter().zip(["amd64", "arm64"]) {
            assert_eq!(descriptor["platform"]["architecture"], architecture);
            let manifest = read(&layout, descriptor);
            let config = read(&layout, &manifest["config"]);
            assert_eq!((&config["architecture"], &config["os"]), (&architecture.into(), &"linux".into()));
            // Kubernetes can tell only from a number that a user is not root.
            assert!(config["config"]["User"].as_str().unwrap().split(':').all(|id| id.parse::<u32>().unwrap() > 0));
            let mut archive = Vec::new();
            GzDecoder::new(content(&layout, &manifest["layers"][0])).read_to_end(&mut archive).unwrap();
            assert_eq!(config["rootfs"]["diff_ids"][0], digest(&archive));
            let mut entries = Vec::new();
            for entry in tar::Archive::new(archive.as_slice()).entries().unwrap() {
                let mut entry = entry.unwrap();
                let mut text = String::new();
                entry.read_to_string(&mut text).unwrap();
                let header = entry.header();
                assert_eq!((header.uid().unwrap(), header.gid().unwrap(), header.mtime().unwrap()), (0, 0, 0));
                entries.push((entry.path().unwrap().display().to_string(), entry.header().mode().unwrap(), text));
            }
            let binary = ("virtpilot".to_owned(), 0o755, format!("for {architecture}"));
            assert_eq!(entries, [binary, ("sbom.cdx.json".to_owned(), 0o644, "{}\n".to_owned())]);
            blobs += 3;
        }
        assert_eq!(layout.files.keys().filter(|path| path.starts_with("blobs/")).count(), blobs);
    }
}
