//! The table of foreign CRDs, `tools/crds/crds.toml`, as checked values.

use crate::trouble::Trouble;
use serde::Deserialize;
use std::collections::BTreeMap;

/// Where every CRD comes from.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// CRDs that stand as YAML in a Go module.
    #[serde(rename = "module")]
    pub modules: Vec<Module>,
    /// The package of OpenAPI schemas.
    pub sdist: Sdist,
    /// CRDs made from a schema of that package.
    #[serde(rename = "schema")]
    pub schemas: Vec<Schema>,
    /// CRDs that accept anything, because no package has them.
    #[serde(rename = "stub")]
    pub stubs: Vec<Stub>,
}

/// A Go module and the files we read from it, by CRD name.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Module {
    /// The module's path.
    pub path: String,
    /// CRD name to file.
    pub crds: BTreeMap<String, String>,
}

/// A Python source package.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sdist {
    /// Its name.
    pub package: String,
    /// Its version.
    pub version: String,
    /// The checksum of its archive.
    pub sha256: String,
}

/// A CRD made from an OpenAPI schema.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schema {
    /// The CRD's name: `plural.group`.
    pub crd: String,
    /// Its kind.
    pub kind: String,
    /// The version it serves.
    pub version: String,
    /// Which shape this is, where there are several.
    pub variant: Option<String>,
}

/// A CRD that accepts anything.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Stub {
    /// The CRD's name: `plural.group`.
    pub crd: String,
    /// Its kind.
    pub kind: String,
    /// The version it serves.
    pub version: String,
    /// `Namespaced` or `Cluster`.
    pub scope: String,
}

/// One CRD in one shape.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The CRD's name.
    pub crd: String,
    /// Which shape, where there are several.
    pub variant: Option<String>,
    /// Where it comes from.
    pub source: Source,
}

/// Where a CRD comes from.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// A Go module of that path.
    Module(String),
    /// The package of OpenAPI schemas.
    Schema,
    /// Nowhere: it accepts anything.
    Stub,
}

impl Row {
    /// The name of its file in the cache.
    pub fn file_name(&self) -> String {
        match &self.variant {
            Some(variant) => format!("{}@{variant}.json", self.crd),
            None => format!("{}.json", self.crd),
        }
    }
}

impl Schema {
    /// Its row.
    pub fn row(&self) -> Row {
        Row { crd: self.crd.clone(), variant: self.variant.clone(), source: Source::Schema }
    }
}

impl Stub {
    /// Its row.
    pub fn row(&self) -> Row {
        Row { crd: self.crd.clone(), variant: None, source: Source::Stub }
    }
}

impl Table {
    /// Reads the table; a mistake is told with its line.
    pub fn parse(text: &str) -> Result<Table, Trouble> {
        toml::from_str(text).map_err(|error| {
            Trouble::new("the table of foreign CRDs cannot be read", "correct tools/crds/crds.toml")
                .because(error.to_string())
        })
    }

    /// Every CRD in every shape.
    pub fn rows(&self) -> Vec<Row> {
        let of_module = |module: &Module| {
            let source = Source::Module(module.path.clone());
            module
                .crds
                .keys()
                .map(move |crd| Row { crd: crd.clone(), variant: None, source: source.clone() })
                .collect::<Vec<_>>()
        };
        let modules = self.modules.iter().flat_map(of_module);
        modules.chain(self.schemas.iter().map(Schema::row)).chain(self.stubs.iter().map(Stub::row)).collect()
    }
}

/// `plural.group` in its two halves.
pub fn plural_and_group(crd: &str) -> (&str, &str) {
    crd.split_once('.').unwrap_or((crd, ""))
}
