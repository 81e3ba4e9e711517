//! The table of third-party CRDs, `tools/crds/crds.toml`, as typed values.

use crate::user_error::UserError;
use serde::Deserialize;
use std::collections::BTreeMap;

/// The sources of all CRDs.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Table {
    /// CRDs that a Go module contains as YAML.
    #[serde(rename = "module", default)]
    pub modules: Vec<Module>,
    /// The package of OpenAPI schemas.
    pub sdist: Option<Sdist>,
    /// CRDs created from a schema of that package.
    #[serde(rename = "schema", default)]
    pub schemas: Vec<Schema>,
    /// CRDs for kinds that no package contains, written from public documents.
    #[serde(rename = "written", default)]
    pub written: Vec<Written>,
}

/// A Go module and the files to read from it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Module {
    /// The module's path.
    pub path: String,
    /// CRD name to file.
    pub crds: BTreeMap<String, String>,
}

/// A Python source package.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Sdist {
    /// Its name.
    pub package: String,
    /// Its version.
    pub version: String,
    /// The SHA-256 of its archive.
    pub sha256: String,
}

/// A CRD created from an OpenAPI schema.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Schema {
    /// The CRD's name: `plural.group`.
    pub crd: String,
    /// Its kind.
    pub kind: String,
    /// The version it serves.
    pub version: String,
    /// The variant, if there are several.
    pub variant: Option<String>,
}

/// A CRD written from public documents.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Written {
    /// The CRD's name: `plural.group`.
    pub crd: String,
    /// Its file, beside the table.
    pub file: String,
    /// The documents it is written from.
    pub documents: Vec<String>,
}

/// One variant of a CRD.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Row {
    /// The CRD's name.
    pub crd: String,
    /// The variant, if there are several.
    pub variant: Option<String>,
    /// Where it comes from.
    pub source: Source,
}

/// The source of a CRD.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Source {
    /// The Go module with this path.
    Module(String),
    /// The package of OpenAPI schemas.
    Schema,
    /// No package: the CRD is written from public documents, in this file.
    Written(String),
}

impl Row {
    /// Its file name in the cache.
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

impl Written {
    /// Its row.
    pub fn row(&self) -> Row {
        Row { crd: self.crd.clone(), variant: None, source: Source::Written(self.file.clone()) }
    }
}

impl Table {
    /// Parses the table; the error names the line.
    pub fn parse(text: &str) -> Result<Table, UserError> {
        let invalid = |detail: String| {
            UserError::new("the table of third-party CRDs is invalid", "correct tools/crds/crds.toml")
                .with_detail(detail)
        };
        let table: Table = toml::from_str(text).map_err(|error| invalid(error.to_string()))?;
        if table.sdist.is_none() && !table.schemas.is_empty() {
            return Err(invalid("it has a [[schema]] but no [sdist] that contains it".to_owned()));
        }
        Ok(table)
    }

    /// Every variant of every CRD.
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
        modules.chain(self.schemas.iter().map(Schema::row)).chain(self.written.iter().map(Written::row)).collect()
    }
}

/// Splits `plural.group`.
pub fn plural_and_group(crd: &str) -> (&str, &str) {
    crd.split_once('.').unwrap_or((crd, ""))
}
