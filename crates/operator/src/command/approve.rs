//! `approve`: shows changes that wait for an approval, asks, and records the approval with its author; or approves the plan of a profile.

mod record;
mod revoke;
mod saved;
mod select;
mod show;
mod waiting;
mod write;

use super::colour::Palette;
use super::evaluation::Evaluation;
use super::plan::Style;
use super::target::on_runtime;
use super::{leader, print, profile};
use anyhow::{Context, bail};
use catalog::Catalog;
use change::Digest;
use select::Selection;
use std::collections::BTreeSet;
use std::io::IsTerminal;
use std::path::PathBuf;
use std::process::ExitCode;
use waiting::{Change, Next, Waiting};

#[derive(clap::Args)]
#[command(
    after_help = "Exit codes:\n  0  everything named is approved (with --revoke: revoked), or was shown with --dry-run\n  1  an error, a refusal, or the answer was no: nothing is approved; with --revoke also: a change was already made"
)]
pub(crate) struct Arguments {
    /// What to approve: an asset or feature, KIND/NAME, KIND/NAMESPACE/NAME, or the first 8 digits of a digest; or the name of a profile of
    /// the advisor
    #[arg(value_name = "CHANGE", conflicts_with = "plan", add = super::completions::assets())]
    changes: Vec<String>,
    /// Everything that waits to restart nodes of this pool, as one rollout
    #[arg(long, value_name = "POOL", conflicts_with = "plan")]
    pool: Option<String>,
    /// The deletion of many objects by one edit of the HyperConverged
    #[arg(long, conflicts_with = "plan")]
    deletions: bool,
    /// Everything that waits in a plan saved by `virtpilot plan --out FILE`, without a question, unless the cluster has moved since
    #[arg(long, value_name = "FILE")]
    plan: Option<PathBuf>,
    /// The digest of the plan of the profile that is named, as `virtpilot plan show` prints it; it is approved without a question, unless
    /// the plan has changed since
    #[arg(long, value_name = "DIGEST", requires = "changes", conflicts_with_all = ["pool", "deletions", "plan", "revoke"])]
    digest: Option<String>,
    /// Do not ask
    #[arg(long, short)]
    yes: bool,
    /// Show what would be approved or revoked, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Show every line of the differences
    #[arg(long)]
    full: bool,
    /// Take back approvals that are not used yet
    #[arg(long, conflicts_with = "plan")]
    revoke: bool,
    /// With --revoke: all approvals
    #[arg(long, requires = "revoke", conflicts_with_all = ["changes", "pool", "deletions"])]
    all: bool,
    #[command(flatten)]
    evaluation: Evaluation,
}

impl Arguments {
    fn selection(&self) -> Selection<'_> {
        Selection { words: &self.changes, pool: self.pool.as_deref(), deletions: self.deletions }
    }

    fn of_profile<'a>(&'a self, catalog: &'a Catalog) -> profile::approve::Request<'a> {
        profile::approve::Request {
            // A pool and deletions are the autopilot's.
            words: if self.pool.is_some() || self.deletions { &[] } else { &self.changes },
            digest: self.digest.as_deref(),
            dry_run: self.dry_run,
            yes: self.yes,
            revoke: self.revoke,
            target: self.evaluation.target(),
            catalog,
        }
    }
}

pub(crate) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    if let Some(path) = &arguments.plan {
        return saved::approve(arguments, path);
    }
    if let Some(code) = profile::approve::run(&arguments.of_profile(&arguments.evaluation.catalog()?), confirm)? {
        return Ok(code);
    }
    if arguments.revoke {
        return revoke::run(arguments);
    }
    loop {
        let waiting = Waiting::look(&arguments.evaluation)?;
        let chosen = match select::select(&arguments.selection(), &waiting) {
            Ok(chosen) => chosen,
            Err(why) => return unless_approved(&waiting, &arguments.changes, &why),
        };
        let (approved, new): (Vec<&Change>, Vec<&Change>) =
            chosen.into_iter().partition(|change| change.digest.is_some_and(|digest| waiting.is_approved(&digest)));
        print(&show::changes(&new, &waiting, Style::new(arguments.full)))?;
        if arguments.pool.is_some() && arguments.changes.is_empty() {
            print(&show::left_out(&waiting.changes))?;
        }
        if arguments.dry_run {
            return print(&show::dry_run(&approved, &new)).map(|()| ExitCode::SUCCESS);
        }
        if !new.is_empty() && !arguments.yes && !confirm(&show::question(&new))? {
            bail!("not approved; nothing was changed");
        }
        let digests: Vec<Digest> = new.iter().filter_map(|change| change.digest).collect();
        let after = waiting.after(&arguments.evaluation, &digests)?;
        let next = |change: &Change| waiting::next(&after, change);
        if new.iter().any(|change| next(change) == Next::Moved) {
            let message = "the cluster has changed meanwhile, and what was shown is not what waits now";
            if arguments.yes {
                bail!("{message}; nothing is approved; run the command again");
            }
            eprintln!("{message}:");
            continue;
        }
        let when = when_made(&arguments.evaluation)?;
        let mut lines: Vec<String> =
            approved.iter().map(|change| show::already(change, &waiting, &next(change), &when)).collect();
        if !new.is_empty() {
            let written = write::add(&arguments.evaluation, &waiting, &new)?;
            let approved =
                |&change| show::approved(change, written.by.as_deref(), &next(change), &when, Palette::of_output());
            lines.extend(new.iter().map(approved));
        }
        return print(&lines.concat()).map(|()| ExitCode::SUCCESS);
    }
}

/// When a change is made that waits for nothing.
fn when_made(evaluation: &Evaluation) -> anyhow::Result<String> {
    let target = evaluation.target();
    on_runtime(async { Ok(leader::when_made(&leader::find(&target.connect().await?, &target.namespace).await)) })
}

/// Whoever repeats an approval after it was used has nothing left to do; anything else that nobody asks for is refused.
fn unless_approved(waiting: &Waiting, words: &[String], why: &str) -> anyhow::Result<ExitCode> {
    let used: BTreeSet<Digest> =
        words.iter().filter_map(|word| select::digest_among(word, waiting.approved.iter())).collect();
    if words.is_empty() || used.len() != words.len() {
        bail!("{why}");
    }
    let line = |digest: &Digest| format!("{} is already approved; nothing waits for it now\n", digest.short());
    print(&used.iter().map(line).collect::<String>())?;
    Ok(ExitCode::SUCCESS)
}

/// Asks a person; without a terminal there is nobody to ask.
fn confirm(question: &str) -> anyhow::Result<bool> {
    if !std::io::stdin().is_terminal() {
        bail!("nothing is approved: there is no terminal to ask on; add --yes, or look first with --dry-run");
    }
    eprint!("{question} [y/N] ");
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer).context("could not read the answer")?;
    Ok(is_yes(&answer))
}

fn is_yes(answer: &str) -> bool {
    ["y", "yes"].contains(&answer.trim().to_lowercase().as_str())
}

#[cfg(test)]
mod tests {
    use super::is_yes;

    #[test]
    fn only_yes_is_yes() {
        assert!(["y\n", "Y", " yes \r\n", "YES"].iter().all(|answer| is_yes(answer)));
        assert!(["", "\n", "n", "no", "yy", "yes please", "j"].iter().all(|answer| !is_yes(answer)));
    }
}
