//! `cargo xtask gen` writes what is derived; `cargo xtask tidy` checks what the architecture promises.

mod generated;
mod layers;
mod tidy;
mod workspace;

use anyhow::bail;
use std::process::ExitCode;
use workspace::Workspace;

const USAGE: &str = "usage: cargo xtask gen    write every derived file\n       cargo xtask tidy   check what the architecture promises";

fn main() -> ExitCode {
    match run(std::env::args().nth(1).as_deref()) {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::FAILURE
        }
    }
}

fn run(command: Option<&str>) -> anyhow::Result<()> {
    let workspace = Workspace::load()?;
    match command {
        Some("gen") => {
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
        Some("tidy") => {
            let complaints = tidy::all(&workspace)?;
            for complaint in &complaints {
                eprintln!("{complaint}");
            }
            match complaints.len() {
                0 => Ok(()),
                count => bail!("{count} things are not as ARCHITECTURE.md promises"),
            }
        }
        _ => bail!("{USAGE}"),
    }
}
