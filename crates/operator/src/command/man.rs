//! `man`: the manual pages of all commands.

use super::print;
use anyhow::Context;
use std::path::PathBuf;

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  virtpilot man approve | man -l -\n  virtpilot man --folder /usr/local/share/man/man1"
)]
pub(crate) struct Arguments {
    /// The command; by default the page of the program
    command: Option<String>,
    /// Write all pages into this folder instead
    #[arg(long, value_name = "FOLDER", conflicts_with = "command")]
    folder: Option<PathBuf>,
}

pub(crate) fn run(arguments: &Arguments, mut program: clap::Command) -> anyhow::Result<()> {
    program.build();
    if let Some(folder) = &arguments.folder {
        std::fs::create_dir_all(folder).with_context(|| format!("could not create {}", folder.display()))?;
        return clap_mangen::generate_to(program, folder)
            .with_context(|| format!("could not write manual pages into {}", folder.display()));
    }
    let page = match &arguments.command {
        None => program,
        Some(name) => {
            let found = program.find_subcommand(name).cloned();
            found.with_context(|| format!("there is no command {name:?}; \"virtpilot --help\" lists them"))?
        }
    };
    let mut text = Vec::new();
    clap_mangen::Man::new(page).render(&mut text).context("could not write the manual page")?;
    print(&String::from_utf8_lossy(&text))
}

/// All commands, with their help, for `docs/reference/commands.md`.
#[cfg(test)]
mod tests {
    use clap::CommandFactory;
    use expect_test::expect_file;

    /// The help of one command, below its name.
    fn section(level: &str, name: &str, command: &clap::Command) -> String {
        let help = command.clone().bin_name(name).render_help().to_string();
        let help: Vec<&str> = help.lines().map(str::trim_end).collect();
        format!("\n{level} {name}\n\n```\n{}\n```\n", help.join("\n").trim_end())
    }

    #[test]
    fn the_reference_of_commands_is_current() {
        let mut program = crate::Arguments::command().max_term_width(110).term_width(110);
        program.build();
        let mut text = String::from(
            "# Commands\n\nThis file is generated: `UPDATE_EXPECT=1 cargo test --workspace the_reference_of_commands`.\n\n\
             Every command ends with 0 if it did what was asked, and with 1 if not; others are named below. Errors are one line on\n\
             standard error. A word that begins with a dash and is no flag comes after `--`.\n",
        );
        for command in program.get_subcommands_mut().filter(|command| command.get_name() != "help") {
            let name = command.get_name().to_owned();
            // Its help is that of another program.
            if name == "up" {
                let about = command.get_about().map(ToString::to_string).unwrap_or_default();
                text.push_str(&format!(
                    "\n## virtpilot up\n\n{about}. `virtpilot up --help` lists its flags; see [playground](../playground.md).\n"
                ));
            } else {
                text.push_str(&section("##", &format!("virtpilot {name}"), command));
                for part in command.get_subcommands().filter(|part| part.get_name() != "help") {
                    text.push_str(&section("###", &format!("virtpilot {name} {}", part.get_name()), part));
                }
            }
        }
        expect_file!["../../../../docs/reference/commands.md"].assert_eq(&text);
    }
}
