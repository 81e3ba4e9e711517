//! Packs for tests: the sample pack, and small ones built in a test.

use crate::pack::catalog::Catalog;
use crate::pack::fault::Fault;
use crate::pack::files::Files;
use std::collections::BTreeMap;

/// A pack of these files.
pub fn files(files: &[(&str, &str)]) -> Files {
    Files::new(files.iter().map(|(path, text)| ((*path).to_owned(), text.as_bytes().to_vec())).collect())
}

/// The pack in `tests-data/sample-pack`.
pub fn sample() -> Catalog {
    let pack = files(&[
        ("active/metadata.yaml", include_str!("../../tests-data/sample-pack/active/metadata.yaml")),
        (
            "active/machine-config/karg.yaml.tpl",
            include_str!("../../tests-data/sample-pack/active/machine-config/karg.yaml.tpl"),
        ),
        (
            "active/observability/config.yaml.tpl",
            include_str!("../../tests-data/sample-pack/active/observability/config.yaml.tpl"),
        ),
        (
            "active/observability/service.yaml.tpl",
            include_str!("../../tests-data/sample-pack/active/observability/service.yaml.tpl"),
        ),
        ("active/scripts/hello.sh", include_str!("../../tests-data/sample-pack/active/scripts/hello.sh")),
        ("tombstones/v0/old.yaml", include_str!("../../tests-data/sample-pack/tombstones/v0/old.yaml")),
    ]);
    loaded(pack)
}

/// Loads a pack that has no faults.
pub fn loaded(files: Files) -> Catalog {
    Catalog::load(files).unwrap_or_else(|faults| panic!("{}", listed(&faults)))
}

/// A pack with one asset, `a`, that has this template and these additional keys.
pub fn of_template(template: &str, more_keys: &str) -> Catalog {
    of_template_and(template, more_keys, &[])
}

/// The same, with additional files.
pub fn of_template_and(template: &str, more_keys: &str, more_files: &[(&str, &str)]) -> Catalog {
    let metadata = format!("assets:\n- name: a\n  path: active/a.yaml.tpl\n  install: always\n{more_keys}\n");
    let mut all: BTreeMap<String, Vec<u8>> = BTreeMap::new();
    let own = [("active/metadata.yaml", metadata.as_str()), ("active/a.yaml.tpl", template)];
    for (path, text) in own.iter().chain(more_files) {
        all.insert((*path).to_owned(), text.as_bytes().to_vec());
    }
    loaded(Files::new(all))
}

/// The faults, one per line.
pub fn listed(faults: &[Fault]) -> String {
    faults.iter().map(|fault| format!("{fault}\n")).collect()
}
