//! Follows `docs/adding-an-opinion.md` word by word.

use crate::commands::virtpilot;
use std::fs;
use std::path::Path;

/// The code blocks of the guide, each with the comment before it that says where it belongs.
fn blocks() -> Vec<(String, String)> {
    let text =
        fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../docs/adding-an-opinion.md")).unwrap();
    let mut blocks = Vec::new();
    let mut rest = text.as_str();
    while let Some((_, after)) = rest.split_once("<!-- ") {
        let (place, after) = after.split_once(" -->\n```yaml\n").unwrap();
        let (code, after) = after.split_once("```\n").unwrap();
        blocks.push((place.to_owned(), code.to_owned()));
        rest = after;
    }
    blocks
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        let target = to.join(path.file_name().unwrap());
        if path.is_dir() {
            copy(&path, &target);
        } else {
            fs::copy(&path, &target).unwrap();
        }
    }
}

#[test]
fn the_guide_adds_an_opinion() {
    let folder = tempfile::tempdir().unwrap();
    let pack = folder.path().join("assets");
    copy(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../../assets"), &pack);
    let metadata = pack.join("active/metadata.yaml");
    let blocks = blocks();
    assert_eq!(blocks.len(), 3);
    for (place, code) in blocks {
        match place.strip_prefix("file: ") {
            Some(path) => {
                fs::create_dir_all(pack.join(path).parent().unwrap()).unwrap();
                fs::write(pack.join(path), code).unwrap();
            }
            None => {
                let text = fs::read_to_string(&metadata).unwrap();
                let section = format!("\n{place}:\n");
                assert!(text.contains(&section), "{place}");
                fs::write(&metadata, text.replacen(&section, &format!("{section}{code}"), 1)).unwrap();
            }
        }
    }
    let pack = pack.to_str().unwrap();
    let features = virtpilot(None, &["features", "virt-priority", "--assets-dir", pack]);
    assert!(features.stdout.contains("enable-virt-priority: true"), "{}{}", features.stdout, features.stderr);
    let hco = folder.path().join("hco.yaml");
    let text = "apiVersion: hco.kubevirt.io/v1\nkind: HyperConverged\nmetadata:\n  name: kubevirt-hyperconverged\n  \
        namespace: openshift-cnv\n  annotations: {platform.kubevirt.io/enable-virt-priority: \"true\"}\nspec: {}\n";
    fs::write(&hco, text).unwrap();
    let hco = hco.to_str().unwrap();
    let rendered = virtpilot(None, &["render", "--asset", "virt-priority", "--hco-file", hco, "--assets-dir", pack]);
    assert!(rendered.stdout.contains("value: 1000000"), "{}{}", rendered.stdout, rendered.stderr);
    let role = virtpilot(None, &["rbac", "--assets-dir", pack]);
    assert!(role.stdout.contains("virt-infrastructure"), "{}{}", role.stdout, role.stderr);
}
