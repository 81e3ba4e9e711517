//! `approve --revoke`: takes back approvals that are not used yet.

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
    text: String,
    object: Option<String>,
}

pub(super) fn run(arguments: &Arguments) -> anyhow::Result<ExitCode> {
    let mut waiting = Waiting::look(&arguments.evaluation)?;
    let approved = waiting.approved.clone();
    waiting.changes.retain(|change| change.digest.is_some_and(|digest| approved.contains(&digest)));
    let spent = spent(&waiting);
    let (chosen, refused) = match arguments.all {
        true => (waiting.changes.iter().collect(), spent.iter().collect()),
        false => choose(arguments, &waiting, &spent)?,
    };
    let (mut lines, mut is_refused) = (String::new(), !refused.is_empty() && !arguments.all);
    let revoked: BTreeSet<Digest> = chosen.iter().filter_map(|change| change.digest).collect();
    if !arguments.dry_run && !revoked.is_empty() {
        write::remove(&arguments.evaluation, &revoked)?;
    }
    let still = match arguments.dry_run || revoked.is_empty() {
        true => revoked,
        // The operator may have used an approval while it was taken back.
        false => Waiting::look(&arguments.evaluation)?.changes.iter().filter_map(|change| change.digest).collect(),
    };
    for change in chosen {
        let record = change.digest.and_then(|digest| waiting.record(&digest));
        let by = record.map_or_else(|| "without a record of who did".to_owned(), |record| record.author());
        let is_asked = change.digest.is_some_and(|digest| still.contains(&digest));
        is_refused |= !is_asked;
        lines.push_str(&match (arguments.dry_run, is_asked) {
            (true, _) => format!("would revoke {change}, approved {by}\n"),
            (false, true) => format!("revoked {change}, approved {by}; it waits for an approval again\n"),
            (false, false) => format!("too late for {change}, approved {by}: the operator was making the change\n"),
        });
    }
    lines.extend(refused.iter().map(|spent| format!("{}\n", spent.text)));
    if lines.is_empty() {
        lines.push_str("nothing is approved\n");
    }
    print(&lines)?;
    Ok(if is_refused { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The approvals that a person names: those that can be taken back, and those that cannot.
fn choose<'a>(
    arguments: &Arguments,
    waiting: &'a Waiting,
    spent: &'a [Spent],
) -> anyhow::Result<(Vec<&'a Change>, Vec<&'a Spent>)> {
    let (mut words, mut refused) = (Vec::new(), Vec::new());
    for given in &arguments.changes {
        let digest = select::digest_among(given, spent.iter().map(|spent| &spent.digest));
        let is_named = |spent: &&Spent| match digest {
            Some(digest) => spent.digest == digest,
            None => spent.object.as_deref().is_some_and(|object| select::is_word(given, object)),
        };
        let is_waiting = select::select(&selection(std::slice::from_ref(given)), waiting).is_ok();
        match spent.iter().filter(is_named).collect::<Vec<_>>() {
            named if !named.is_empty() && !is_waiting => refused.extend(named),
            _ => words.push(given.clone()),
        }
    }
    if words.is_empty() && arguments.pool.is_none() && !arguments.deletions && !refused.is_empty() {
        return Ok((Vec::new(), refused));
    }
    let selection = select::Selection { words: &words, ..arguments.selection() };
    match select::select(&selection, waiting) {
        Ok(chosen) => Ok((chosen, refused)),
        Err(_) => {
            let named = arguments.changes.join(", ");
            let of = arguments.pool.as_deref().map_or(named, |pool| format!("pool {pool}"));
            let unused: Vec<String> = waiting.changes.iter().map(ToString::to_string).collect();
            match unused.is_empty() {
                true => bail!("nothing can be revoked: no approval of {of:?} waits to be used, nor any other"),
                false => {
                    bail!("no approval of {of:?} waits to be used, but of {}; --all revokes all", unused.join(", "))
                }
            }
        }
    }
}

fn selection(words: &[String]) -> select::Selection<'_> {
    select::Selection { words, pool: None, deletions: false }
}

/// Approvals that nothing waits for, each with why it cannot be taken back.
fn spent(waiting: &Waiting) -> Vec<Spent> {
    let status = waiting.core.status();
    let is_asked = |digest: &Digest| waiting.changes.iter().any(|change| change.digest == Some(*digest));
    let unasked = waiting.approved.iter().filter(|digest| !is_asked(digest));
    let of = |digest: &Digest| {
        let record = waiting.record(digest);
        let object = record.map(|record| record.object.clone());
        let line = status.iter().find(|line| line.key.as_ref().map(word) == object && object.is_some());
        let why = match line.map(|line| &line.state) {
            Some(LineState::Object(ObjectState::InSync | ObjectState::Gone | ObjectState::Deleting)) => {
                "the change was already made"
            }
            Some(LineState::Object(ObjectState::Held(reason))) if reason.asked().is_some() => {
                "it was used, or the change is another by now; another digest waits for an approval"
            }
            _ => "it was used, or nothing waits for it any more",
        };
        let by = record.map(|record| format!(" ({}, approved {})", record.object, record.author())).unwrap_or_default();
        Spent { digest: *digest, text: format!("{}{by} cannot be revoked: {why}", digest.short()), object }
    };
    unasked.map(of).collect()
}
