//! Repository tasks: `gen` writes generated files, `tidy` checks the architecture, `gen-pack` writes a benchmark asset pack, `fuzz`
//! runs property tests for a given time, `mutants` tests the tests, `image`, `guest` and `sbom` make what is released.

mod bench_pack;
mod fuzz;
mod generated;
mod guest;
mod image;
mod layers;
mod mutants;
mod pack;
mod release;
mod sbom;
mod tidy;
mod workspace;

use anyhow::bail;
use std::path::Path;
use std::process::ExitCode;
use workspace::Workspace;

const USAGE: &str = "usage: cargo xtask gen            write all generated files
       cargo xtask tidy           check the rules of ARCHITECTURE.md
       cargo xtask gen-pack DIR   write an asset pack of realistic size, for benchmarks and tests
       cargo xtask image DIR      build static release binaries and write them as an OCI image layout
       cargo xtask guest DIR      build static release binaries of the guest for images of machines
       cargo xtask sbom           print the bill of materials of the binary (CycloneDX)
       cargo xtask fuzz SECONDS   run every property test of the THINK crates for this long
       cargo xtask mutants PROGRAM DIR [ARGUMENT...]
                                  test the mutants of the THINK crates that this cargo-mutants lists, below a folder";

fn main() -> ExitCode {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    match run(&arguments.iter().map(String::as_str).collect::<Vec<_>>()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(arguments: &[&str]) -> anyhow::Result<()> {
    match arguments {
        ["gen"] => {
            let workspace = Workspace::load()?;
            for file in generated::files(&workspace)? {
                if workspace.read(&file.path).ok().as_ref() != Some(&file.text) {
                    let path = workspace.root.join(&file.path);
                    std::fs::create_dir_all(path.parent().unwrap_or(&path))?;
                    std::fs::write(path, &file.text)?;
                    println!("wrote {}", file.path);
                }
            }
            Ok(())
        }
        ["tidy"] => {
            let violations = tidy::all(&Workspace::load()?)?;
            for violation in &violations {
                eprintln!("{violation}");
            }
            match violations.len() {
                0 => Ok(()),
                count => bail!("{count} violations of the rules of ARCHITECTURE.md"),
            }
        }
        ["gen-pack", folder] => bench_pack::write(Path::new(folder)),
        ["image", folder] => image::write(&Workspace::load()?, Path::new(folder)),
        ["guest", folder] => guest::write(&Workspace::load()?, Path::new(folder)),
        ["sbom"] => {
            print!("{}", sbom::text(&Workspace::load()?)?);
            Ok(())
        }
        ["fuzz", seconds] => fuzz::run(seconds),
        ["mutants", program, folder, arguments @ ..] => mutants::run(program, folder, arguments),
        _ => bail!("{USAGE}"),
    }
}
