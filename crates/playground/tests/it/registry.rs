//! A Go module proxy and a Python package index made of files, and a folder of pins that refers to them.

use crate::marked_process::{CommandOutput, ProcessMark, run};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

const PACKAGE: &str = "example-wrapper";
/// Writes an archive: its path, then names and contents of files.
const ZIP: &str = "import sys, zipfile
with zipfile.ZipFile(sys.argv[1], 'w') as archive:
    for name, content in zip(sys.argv[2::2], sys.argv[3::2]):
        archive.writestr(name, content)
";

/// The folders below `tools` that a playground reads, beside that of the CRDs.
pub(crate) const PINNED: [&str; 8] = [
    "control-plane",
    "github-clients",
    "gitlab-clients",
    "otlp-receiver",
    "packaging",
    "promtool",
    "proxmox-clients",
    "shellcheck",
];

/// The registries and the pins of one test.
pub(crate) struct Registry {
    folder: tempfile::TempDir,
    mark: ProcessMark,
}

/// The CRD `things.GROUP` with this type of its field.
pub(crate) fn crd(group: &str, field_type: &str) -> String {
    let schema = json!({
        "type": "object",
        "properties": {"spec": {"type": "object", "properties": {"field": {"type": field_type}}}},
    });
    json!({
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": format!("things.{group}")},
        "spec": {
            "group": group,
            "names": {"kind": "Thing", "plural": "things"},
            "scope": "Cluster",
            "versions": [{"name": "v1", "served": true, "storage": true, "schema": {"openAPIV3Schema": schema}}],
        },
    })
    .to_string()
}

impl Registry {
    pub(crate) fn new(test: &str) -> Registry {
        let registry = Registry { folder: tempfile::tempdir().unwrap(), mark: ProcessMark::new(test) };
        let source = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../tools");
        for folder in ["tools/crds", "proxy", "index", "cache"] {
            std::fs::create_dir_all(registry.path(folder)).unwrap();
        }
        for part in PINNED {
            let target = registry.path("tools").join(part);
            std::fs::create_dir(&target).unwrap();
            for entry in std::fs::read_dir(source.join(part)).unwrap().flatten() {
                std::fs::copy(entry.path(), target.join(entry.file_name())).unwrap();
            }
        }
        registry
    }

    fn path(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// The folder with the pins.
    pub(crate) fn tools(&self) -> PathBuf {
        self.path("tools")
    }

    /// Serves a version of a module with one file; `directives` are added to its go.mod.
    pub(crate) fn serve_module(&self, module: &str, version: &str, file: &str, text: &str, directives: &str) {
        let served = self.path("proxy").join(module).join("@v");
        std::fs::create_dir_all(&served).unwrap();
        let go_mod = format!("module {module}\n\n{directives}\n");
        std::fs::write(served.join(format!("{version}.mod")), &go_mod).unwrap();
        let info = json!({"Version": version, "Time": "2026-01-02T03:04:05Z"}).to_string();
        std::fs::write(served.join(format!("{version}.info")), info).unwrap();
        let list = std::fs::read_to_string(served.join("list")).unwrap_or_default();
        std::fs::write(served.join("list"), format!("{list}{version}\n")).unwrap();
        let zip = served.join(format!("{version}.zip"));
        let [go_mod_name, file] = ["go.mod", file].map(|file| format!("{module}@{version}/{file}"));
        let mut command = Command::new("python3");
        let output = run(command.arg("-c").arg(ZIP).arg(zip).args([&go_mod_name, &go_mod, &file, text]));
        assert_eq!(output.code, Some(0), "{}", output.err);
    }

    /// Serves a version of the package with one schema; returns its checksum.
    pub(crate) fn serve_package(&self, version: &str, field_type: &str) -> String {
        let schema = json!({"gadget": [{
            "namespaced": false,
            "type": "object",
            "x-kubernetes-group-version-kind": [{"group": "example.com", "kind": "Gadget", "version": "v1"}],
            "properties": {"spec": {"type": "object", "properties": {"field": {"type": field_type}}}},
        }]});
        let pyproject = "[build-system]\nrequires = [\"hatchling\"]\nbuild-backend = \"hatchling.build\"\n";
        let info = format!("Metadata-Version: 2.1\nName: {PACKAGE}\nVersion: {version}\n");
        let name = format!("{}-{version}", PACKAGE.replace('-', "_"));
        let mut archive = tar::Builder::new(GzEncoder::new(Vec::new(), Compression::fast()));
        for (file, content) in [
            ("PKG-INFO", info.into_bytes()),
            ("pyproject.toml", pyproject.as_bytes().to_vec()),
            ("class_generator/schema/__resources-mappings.json.gz", gzip(schema.to_string().as_bytes())),
        ] {
            let mut header = tar::Header::new_gnu();
            header.set_size(content.len() as u64);
            header.set_mode(0o644);
            archive.append_data(&mut header, format!("{name}/{file}"), content.as_slice()).unwrap();
        }
        let bytes = archive.into_inner().unwrap().finish().unwrap();
        std::fs::write(self.path("index").join(format!("{name}.tar.gz")), &bytes).unwrap();
        Sha256::digest(&bytes).iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// Pins modules, each with the CRD `things.GROUP` in `crd.yaml`, and the package at a version with this checksum.
    pub(crate) fn pin(&self, modules: &[(&str, &str, &str)], package: Option<(&str, &str)>) {
        let (mut required, mut sums, mut table) = (String::new(), String::new(), String::new());
        for (module, version, group) in modules {
            let [content, go_mod] = self.checksums(module, version);
            required.push_str(&format!("\t{module} {version}\n"));
            sums.push_str(&format!("{module} {version} {content}\n{module} {version}/go.mod {go_mod}\n"));
            let crds = format!("\"things.{group}\" = \"crd.yaml\"");
            table.push_str(&format!("[[module]]\npath = \"{module}\"\n[module.crds]\n{crds}\n\n"));
        }
        if let Some((version, sha256)) = package {
            table.push_str(&format!(
                "# The package.\n[sdist]\npackage = \"{PACKAGE}\"\nversion = \"{version}\"\nsha256 = \"{sha256}\"\n\n\
                 [[schema]]\ncrd = \"gadgets.example.com\"\nkind = \"Gadget\"\nversion = \"v1\"\n"
            ));
        }
        let go_mod = format!("module virtpilot/tools/crds\n\ngo 1.26.0\n\nrequire (\n{required})\n");
        for (file, text) in [("go.mod", go_mod), ("go.sum", sums), ("crds.toml", table)] {
            std::fs::write(self.path("tools/crds").join(file), text).unwrap();
        }
    }

    fn checksums(&self, module: &str, version: &str) -> [String; 2] {
        let mut command = self.with_registries(Command::new("go"));
        command.args(["mod", "download", "-json", &format!("{module}@{version}")]).current_dir(self.folder.path());
        let output = run(&mut command);
        let reported: Value = serde_json::from_str(&output.out).unwrap_or_else(|_| panic!("{}", output.err));
        ["Sum", "GoModSum"].map(|field| reported[field].as_str().unwrap_or_else(|| panic!("{reported}")).to_owned())
    }

    fn with_registries(&self, mut command: Command) -> Command {
        command
            .env("GOPROXY", format!("file://{}", self.path("proxy").display()))
            .env("GOSUMDB", "off")
            .env("GOMODCACHE", self.path("cache"))
            .env("PIP_NO_INDEX", "1")
            .env("PIP_FIND_LINKS", self.path("index"))
            .env("PIP_CONFIG_FILE", "/dev/null");
        command
    }

    /// `virtpilot-playground crds ACTION` with these registries and pins.
    pub(crate) fn crds(&self, action: &str) -> Command {
        let mut command = self.with_registries(self.mark.playground());
        command.args(["crds", action]).env("VIRTPILOT_TOOLS", self.tools());
        command
    }

    /// Runs it to its end.
    pub(crate) fn run(&self, action: &str) -> CommandOutput {
        run(&mut self.crds(action))
    }

    /// All files that hold pins, with their content.
    pub(crate) fn pins(&self) -> BTreeMap<String, String> {
        let entries = std::fs::read_dir(self.path("tools/crds")).unwrap().flatten();
        let read = |path: PathBuf| {
            (path.file_name().unwrap().to_string_lossy().into_owned(), std::fs::read_to_string(path).unwrap())
        };
        entries.map(|entry| read(entry.path())).collect()
    }

    /// Serves no module any more; what Go has in its cache stays.
    pub(crate) fn serve_no_modules(&self) {
        std::fs::remove_dir_all(self.path("proxy")).unwrap();
    }

    /// Downloads all pinned modules into an empty cache; Go compares them with go.sum.
    pub(crate) fn download_again(&self) {
        self.forget_downloads();
        let mut command = self.with_registries(Command::new("go"));
        let output =
            run(command.args(["mod", "download"]).env("GOFLAGS", "-mod=readonly").current_dir(self.path("tools/crds")));
        assert_eq!(output.code, Some(0), "{}", output.err);
    }

    /// Empties Go's cache.
    pub(crate) fn forget_downloads(&self) {
        let cleaned = self.with_registries(Command::new("go")).args(["clean", "-modcache"]).status();
        assert!(cleaned.unwrap().success());
    }

    /// Fails if a process of this test stays.
    pub(crate) fn expect_no_process(&self) {
        self.mark.expect_gone();
    }
}

impl Drop for Registry {
    fn drop(&mut self) {
        // Go makes its cache read-only, so that only Go can remove it.
        let _ = self.with_registries(Command::new("go")).args(["clean", "-modcache"]).status();
    }
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(bytes).unwrap();
    encoder.finish().unwrap()
}
