//! CRDs created from the OpenAPI of a real OpenShift cluster, which a pinned Python package contains.

use super::table::{Row, Schema, Sdist};
use super::{descheduler, from_schema};
use crate::cache::hex;
use crate::files;
use crate::pip::Package;
use crate::user_error::{self, UserError};
use flate2::read::GzDecoder;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::io::{Cursor, Read};
use std::path::Path;

/// The path in the archive, below its top folder.
const SCHEMAS: &str = "class_generator/schema/__resources-mappings.json.gz";
const ARCHIVE: &str = ".tar.gz";
/// Where it is pinned.
const TABLE: &str = "tools/crds/crds.toml";

/// The CRDs of these rows of the table.
pub(super) fn crds(archive: &[u8], sdist: &Sdist, wanted: &[Schema]) -> Result<Vec<(Row, Value)>, UserError> {
    let schemas = read_schemas(archive, sdist)?;
    let create = |wanted: &Schema| {
        let schema = schemas
            .get(&wanted.kind.to_lowercase())
            .into_iter()
            .flatten()
            .find(|schema| from_schema::describes(schema, &wanted.crd, &wanted.kind, &wanted.version));
        let schema = schema.ok_or_else(|| {
            UserError::new(
                format!(
                    "{} {} no longer contains a schema of {} {}",
                    sdist.package, sdist.version, wanted.kind, wanted.version
                ),
                "correct the entry in tools/crds/crds.toml",
            )
        })?;
        let mut crd = from_schema::crd(schema, &wanted.crd, &wanted.kind, &wanted.version);
        if wanted.kind == "KubeDescheduler"
            && let Some(release) = &wanted.variant
        {
            descheduler::derive_release(&mut crd, release)?;
        }
        Ok((wanted.row(), crd))
    };
    wanted.iter().map(create).collect()
}

/// Downloads the pinned version; pip verifies its checksum, and it is verified again here.
pub(super) async fn download(sdist: &Sdist, staging: &Path) -> Result<Vec<u8>, UserError> {
    let package = Package {
        what: &format!("{} {}", sdist.package, sdist.version),
        requirement: &format!("{}=={} --hash=sha256:{}\n", sdist.package, sdist.version, sdist.sha256),
        pinned_in: TABLE,
    };
    let (_, bytes) = download_one(&package, sdist, staging).await?;
    let found = hex(&Sha256::digest(&bytes));
    if found == sdist.sha256 {
        Ok(bytes)
    } else {
        Err(package.wrong_checksum().with_detail(format!("its sha256 is {found}")))
    }
}

/// Downloads the newest version that is neither a prerelease nor yanked: what to pin, and its archive.
pub(super) async fn download_newest(pinned: &Sdist, staging: &Path) -> Result<(Sdist, Vec<u8>), UserError> {
    let requirement = format!("{}\n", pinned.package);
    let package = Package { what: &pinned.package, requirement: &requirement, pinned_in: TABLE };
    let (file, bytes) = download_one(&package, pinned, staging).await?;
    // By the rules for source packages the file is NAME-VERSION.tar.gz, and the version has no hyphen.
    let version = file.strip_suffix(ARCHIVE).and_then(|name| name.rsplit_once('-')).map(|(_, version)| version);
    let version = version.ok_or_else(|| {
        UserError::new(format!("the archive {file} of {} has no version in its name", pinned.package), "pin it by hand")
    })?;
    let sha256 = hex(&Sha256::digest(&bytes));
    Ok((Sdist { package: pinned.package.clone(), version: version.to_owned(), sha256 }, bytes))
}

/// The name and the content of the archive that pip chooses.
async fn download_one(package: &Package<'_>, sdist: &Sdist, staging: &Path) -> Result<(String, Vec<u8>), UserError> {
    let folder = tempfile::tempdir_in(staging).map_err(|error| user_error::io("create a folder in", staging, error))?;
    write_build_backend_stub(folder.path())?;
    // Nothing is installed, so the package may be made for another Python.
    let args = ["download", "--ignore-requires-python", "--no-build-isolation", "--no-binary", &sdist.package];
    package.run(&args, folder.path()).await?;
    let archive = std::fs::read_dir(folder.path())
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| user_error::io("read", folder.path(), error))?
        .into_iter()
        .map(|entry| entry.path())
        .find(|path| path.to_string_lossy().ends_with(ARCHIVE))
        .ok_or_else(|| UserError::new(format!("pip downloaded no archive of {}", sdist.package), "run again"))?;
    let bytes = std::fs::read(&archive).map_err(|error| user_error::io("read", &archive, error))?;
    Ok((archive.file_name().unwrap_or_default().to_string_lossy().into_owned(), bytes))
}

/// pip needs a package's metadata even for a download, and would fetch and run a build backend that no checksum pins. This
/// writes a module with the backend's name that returns the name and the version from the archive.
fn write_build_backend_stub(folder: &Path) -> Result<(), UserError> {
    let module = folder.join("hatchling");
    std::fs::create_dir(&module).map_err(|error| user_error::io("create", &module, error))?;
    files::write(&module.join("__init__.py"), "")?;
    files::write(&module.join("build.py"), include_str!("build_backend.py"))
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
        format!("{} {} no longer contains {SCHEMAS}", sdist.package, sdist.version),
        "pin a version that contains it in tools/crds/crds.toml",
    ))
}
