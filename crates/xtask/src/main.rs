//! `cargo xtask gen` writes what is derived, `tidy` checks what the architecture promises, `gen-pack` makes a pack for benches, `fuzz`
//! tries properties for a while.

mod bench_pack;
mod fuzz;
mod generated;
mod layers;
mod pack;
mod tidy;
mod workspace;

use anyhow::bail;
use std::path::Path;
use std::process::ExitCode;
use workspace::Workspace;

const USAGE: &str = "usage: cargo xtask gen            write every derived file
       cargo xtask tidy           check what the architecture promises
       cargo xtask gen-pack DIR   write an asset pack of a real platform's size, for benches and tests
       cargo xtask fuzz SECONDS   try every property test of the crates that think for so long";

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
            let complaints = tidy::all(&Workspace::load()?)?;
            for complaint in &complaints {
                eprintln!("{complaint}");
            }
            match complaints.len() {
                0 => Ok(()),
                count => bail!("{count} things are not as ARCHITECTURE.md promises"),
            }
        }
        ["gen-pack", folder] => bench_pack::write(Path::new(folder)),
        ["fuzz", seconds] => fuzz::run(seconds),
        _ => bail!("{USAGE}"),
    }
}
