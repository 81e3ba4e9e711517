//! `completions`: completes commands, flags, and the names of assets, features and states.

use super::print;
use crate::pack;
use anyhow::{Context, bail};
use autopilot::StateWord;
use clap_complete::engine::{ArgValueCandidates, CompletionCandidate, complete};
use clap_complete::env::{CompleteEnv, Shells};
use std::ffi::OsString;

/// The variable by which a shell asks for completions.
const VARIABLE: &str = "COMPLETE";
/// The program that kubectl asks for the completions of its plugin.
const OF_KUBECTL: &str = "kubectl_complete-virtpilot";
/// Tells kubectl not to offer the names of files.
const NO_FILES: &str = ":4";

#[derive(clap::Args)]
#[command(
    after_help = "Examples:\n  source <(virtpilot completions bash)\n  virtpilot completions zsh > ~/.zfunc/_virtpilot\n\nFor `kubectl virtpilot`, link this program as kubectl-virtpilot and as kubectl_complete-virtpilot in a folder of PATH."
)]
pub(crate) struct Arguments {
    /// The shell
    #[arg(value_parser = ["bash", "elvish", "fish", "powershell", "zsh"])]
    shell: String,
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<()> {
    let shells = Shells::builtins();
    let Some(shell) = shells.completer(&arguments.shell) else { bail!("there are no completions for this shell") };
    let mut script = Vec::new();
    let written = shell.write_registration(VARIABLE, "virtpilot", "virtpilot", "virtpilot", &mut script);
    written.context("could not write the completions")?;
    print(&String::from_utf8_lossy(&script))
}

/// Answers a shell or kubectl that asks for completions, and ends the process; else nothing happens.
pub(crate) fn answer(program: impl Fn() -> clap::Command) {
    let words: Vec<OsString> = std::env::args_os().collect();
    if super::invoked_as(&words).is_some_and(|name| name == OF_KUBECTL) {
        println!("{}", for_kubectl(program(), words));
        std::process::exit(0);
    }
    CompleteEnv::with_factory(program).var(VARIABLE).complete();
}

/// One candidate per line with its description, and what kubectl does with them.
fn for_kubectl(mut program: clap::Command, words: Vec<OsString>) -> String {
    let last = words.len().saturating_sub(1);
    let found = complete(&mut program, words, last, None).unwrap_or_default();
    let lines = found.iter().map(|candidate| {
        let value = candidate.get_value().to_string_lossy().into_owned();
        let help = candidate.get_help().map(ToString::to_string).unwrap_or_default();
        format!("{value}\t{}", help.lines().next().unwrap_or_default())
    });
    lines.chain([NO_FILES.to_owned()]).collect::<Vec<_>>().join("\n")
}

/// The features of the embedded catalogue.
pub(super) fn features() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let catalog = pack::embedded().ok();
        let features = catalog.into_iter().flat_map(|catalog| catalog.features);
        features.map(|feature| CompletionCandidate::new(feature.name).help(Some(feature.description.into()))).collect()
    })
}

/// The assets of the embedded catalogue.
pub(super) fn assets() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let catalog = pack::embedded().ok();
        let assets = catalog.into_iter().flat_map(|catalog| catalog.assets);
        assets.map(|asset| CompletionCandidate::new(asset.name).help(Some(asset.notes.docs.into()))).collect()
    })
}

/// The profiles of the embedded catalogue.
pub(super) fn profiles() -> ArgValueCandidates {
    ArgValueCandidates::new(|| {
        let catalog = pack::embedded().ok();
        let profiles = catalog.into_iter().flat_map(|catalog| catalog.profiles);
        profiles.map(|profile| CompletionCandidate::new(profile.name).help(Some(profile.description.into()))).collect()
    })
}

/// The states of `status`.
pub(super) fn states() -> ArgValueCandidates {
    ArgValueCandidates::new(|| StateWord::ALL.map(|word| CompletionCandidate::new(word.to_string())).into())
}

#[cfg(test)]
mod tests {
    use super::for_kubectl;
    use clap::CommandFactory;

    fn completed(words: &[&str]) -> Vec<String> {
        let words = ["kubectl_complete-virtpilot"].iter().chain(words).map(Into::into).collect();
        for_kubectl(crate::Arguments::command(), words).lines().map(str::to_owned).collect()
    }

    #[test]
    fn kubectl_gets_candidates_with_descriptions() {
        let commands = completed(&["sta"]);
        assert_eq!(commands, ["status\tShow the state of every object, and why", ":4"]);
        let features = completed(&["features", ""]);
        assert!(features.iter().any(|line| line.starts_with("swap\t")), "{features:?}");
        for command in ["explain", "approve"] {
            let assets = completed(&[command, "swap-e"]);
            assert!(assets.iter().any(|line| line.starts_with("swap-enable\t")), "{command}: {assets:?}");
        }
        let profiles = completed(&["plan", "show", "load"]);
        assert!(profiles[0].starts_with("load-aware-rebalancing\t"), "{profiles:?}");
        assert_eq!(completed(&["status", "--state", "PendingA"]), ["PendingApproval\t", ":4"]);
    }
}
