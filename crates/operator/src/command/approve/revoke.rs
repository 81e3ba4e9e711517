//! `approve --revoke`: takes back approvals that are not used yet.

use super::record::Record;
use super::select;
use super::waiting::{Change, Waiting, word};
use super::{Arguments, write};
use crate::command::print;
use anyhow::bail;
use autopilot::{LineState, ObjectState};
use change::Digest;
use std::collections::BTreeSet;
use std::process::ExitCode;

/// An approval that nothing waits for: it was used, or what was approved is not what waits now.
struct Spent {
    digest: Digest,
    /// Its digest, object and author, as far as they are recorded.
    text: String,
    object: Option<String>,
    /// Whether its object is as it should be.
    is_made: bool,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut waiting = Waiting::look(&arguments.evaluation)?;
    let approved = waiting.approved.clone();
    waiting.changes.retain(|change| change.digest.is_some_and(|digest| approved.contains(&digest)));
    let all = spent(&waiting);
    let (chosen, spent) = match arguments.all {
        true => (waiting.changes.iter().collect(), all.iter().collect()),
        false => choose(arguments, &waiting, &all)?,
    };
    let asked: BTreeSet<Digest> = chosen.iter().filter_map(|change| change.digest).collect();
    let (mut still, mut code) = (asked.clone(), ExitCode::SUCCESS);
    if !arguments.dry_run {
        // Nobody knows whether something will ask for it again, so it does not stay.
        let dropped = spent.iter().filter(|spent| arguments.all || !spent.is_made).map(|spent| spent.digest);
        write::remove(&arguments.evaluation, &asked.into_iter().chain(dropped).collect())?;
    }
    if !arguments.dry_run && !chosen.is_empty() {
        // The operator may have used an approval while it was taken back.
        still = Waiting::look(&arguments.evaluation)?.changes.iter().filter_map(|change| change.digest).collect();
    }
    let mut lines = String::new();
    for change in chosen {
        let record = change.digest.and_then(|digest| waiting.record(&digest));
        let by = record.map_or_else(|| "by nobody on record".to_owned(), Record::author);
        let is_asked = change.digest.is_some_and(|digest| still.contains(&digest));
        if !is_asked {
            code = ExitCode::FAILURE;
        }
        lines.push_str(&match (arguments.dry_run, is_asked) {
            (true, _) => format!("would revoke {change}, approved {by}\n"),
            (false, true) => format!("revoked {change}, approved {by}; it waits for an approval again\n"),
            (false, false) => format!(
                "too late for {change}, approved {by}: the operator has used it, or another change waits by now\n"
            ),
        });
    }
    for Spent { text, is_made, .. } in spent {
        lines.push_str(&match (is_made, arguments.dry_run) {
            (true, _) => format!("{text} cannot be revoked: the change was already made\n"),
            (false, true) => format!("would revoke {text}; nothing waits for it\n"),
            (false, false) => format!("revoked {text}; it was used, or nothing waits for it any more\n"),
        });
        if *is_made && !arguments.all {
            code = ExitCode::FAILURE;
        }
    }
    if lines.is_empty() {
        lines.push_str("nothing is approved\n");
    }
    print(&lines)?;
    Ok(code)
}

/// The approvals that a person names: those that something waits for, and the others.
fn choose<'a>(
    arguments: &Arguments,
    waiting: &'a Waiting,
    spent: &'a [Spent],
) -> anyhow::Result<(Vec<&'a Change>, Vec<&'a Spent>)> {
    let unused: Vec<String> = waiting.changes.iter().map(ToString::to_string).collect();
    let unused = if unused.is_empty() { "nothing".to_owned() } else { unused.join(", ") };
    if arguments.changes.is_empty() && arguments.pool.is_none() && !arguments.deletions {
        bail!(
            "name what to revoke: an asset, KIND/NAME, a digest, --pool POOL or --all; approved and not used: {unused}"
        );
    }
    let (mut words, mut found) = (Vec::new(), Vec::new());
    for given in &arguments.changes {
        let digest = select::digest_among(given, spent.iter().map(|spent| &spent.digest));
        let of_asset = waiting.objects_of(given);
        let is_named = |spent: &&Spent| match (digest, &spent.object) {
            (Some(digest), _) => spent.digest == digest,
            (None, Some(object)) => select::is_word(given, object) || of_asset.contains(object),
            (None, None) => false,
        };
        let is_waiting = select::select(&selection(std::slice::from_ref(given)), waiting).is_ok();
        match spent.iter().filter(is_named).collect::<Vec<_>>() {
            named if !named.is_empty() && !is_waiting => found.extend(named),
            _ => words.push(given.clone()),
        }
    }
    if words.is_empty() && arguments.pool.is_none() && !arguments.deletions {
        return Ok((Vec::new(), found));
    }
    let selection = select::Selection { words: &words, ..arguments.selection() };
    match select::select(&selection, waiting) {
        Ok(chosen) => Ok((chosen, found)),
        Err(_) => {
            let pool = arguments.pool.as_ref().map(|pool| format!("pool {pool}"));
            let named: Vec<String> = words.into_iter().chain(pool).collect();
            bail!("nothing can be revoked for {:?}; approved and not used: {unused}", named.join(", "))
        }
    }
}

fn selection(words: &[String]) -> select::Selection<'_> {
    select::Selection { words, pool: None, deletions: false }
}

/// Approvals that nothing waits for.
fn spent(waiting: &Waiting) -> Vec<Spent> {
    let status = waiting.core.status();
    let is_asked = |digest: &Digest| waiting.changes.iter().any(|change| change.digest == Some(*digest));
    let of = |digest: &Digest| {
        let record = waiting.record(digest);
        let is_made = record.is_some_and(|record| {
            let line = status.iter().find(|line| line.key.as_ref().map(word).as_ref() == Some(&record.object));
            let done = [ObjectState::InSync, ObjectState::Gone, ObjectState::Deleting].map(LineState::Object);
            line.is_some_and(|line| done.contains(&line.state))
        });
        let by = record.map(|record| format!(" ({}), approved {}", record.object, record.author())).unwrap_or_default();
        let object = record.map(|record| record.object.clone());
        Spent { digest: *digest, text: format!("{}{by}", digest.short()), object, is_made }
    };
    waiting.approved.iter().filter(|digest| !is_asked(digest)).map(of).collect()
}
