//! Commands and notices as text, one line each, for golden output.

use crate::notice::Notice;
use crate::state_word::StateWord;
use crate::testing::bed::TestBed;
use change::{Effect, Precondition};
use protocol::{Command, Search, WatchTarget, WriteError};

/// What a write does.
pub(crate) fn verb(effect: &Effect) -> &'static str {
    match effect {
        Effect::Apply { precondition: Precondition::Absent, .. } | Effect::Create { .. } => "create",
        Effect::Apply { .. } => "apply",
        Effect::RepairLists { .. } => "repair",
        Effect::JsonPatch { patch } if patch[1]["path"].as_str().is_some_and(|path| path.starts_with("/data")) => {
            "edit"
        }
        Effect::JsonPatch { .. } => "release",
        Effect::Annotate { .. } => "annotate",
        Effect::HandBack { .. } => "hand back",
        Effect::Delete { .. } => "delete",
        Effect::Replace { .. } => "replace",
        Effect::ReplaceStatus { .. } => "replace status",
    }
}

/// Why a write did not happen, in a word or two.
pub(crate) fn error(error: &WriteError) -> String {
    match error {
        WriteError::Stale(_) => "stale".into(),
        WriteError::Refused { code, message, .. } => format!("refused with {code}: {message}"),
        WriteError::KeyChanged { .. } => "refused: the key of a list item has changed".into(),
        WriteError::NoBackup { .. } => "no backup".into(),
        WriteError::Transient { .. } => "failed".into(),
    }
}

fn target(target: &WatchTarget) -> String {
    let WatchTarget { kind, namespace, .. } = target;
    format!("{} {} {namespace}", kind.api_version(), kind.kind).trim_end().to_owned()
}

/// A command that is not a write.
pub(crate) fn command(command: &Command<Notice>) -> String {
    match command {
        Command::Watch { target: of, content, .. } => format!("watch {} ({content:?})", target(of)),
        Command::Unwatch(of) => format!("unwatch {}", target(of)),
        Command::Elsewhere(_, never) => match *never {},
        Command::Discover { tag: None } => "discover".into(),
        Command::Discover { tag: Some(_) } => "discover again".into(),
        Command::Query { query, .. } => format!("query {query}"),
        Command::Refetch { key, .. } => format!("refetch {key}"),
        Command::Inspect { key, .. } => format!("inspect {key}"),
        Command::Search { search: Search::Label(of), .. } => format!("search {}", target(of)),
        Command::Search { search: Search::Name(key), .. } => format!("search {key}"),
        Command::Preview { key, .. } => format!("preview {key}"),
        Command::Write(write) => format!("{} {}", verb(&write.effect), write.key),
        Command::Notify(one) => notice(one),
        Command::Readiness(waiting) if waiting.is_empty() => "ready".into(),
        Command::Readiness(waiting) => format!("waiting for {}", waiting.join(", ")),
    }
}

/// A notice; digests are left out, because they say nothing to a reader.
pub(crate) fn notice(notice: &Notice) -> String {
    let text = match notice {
        Notice::Object(key, notice, _) => format!("{} {key}: {notice}", notice.name()),
        Notice::Subject(key, uid) => format!("Subject {key} {uid}"),
        Notice::TakenOverAsIs(key) => format!("TakenOverAsIs {key}"),
        Notice::State(key, state) => format!("State {key}: {state:?}"),
        Notice::Overridden(key, overrides) => format!("Overridden {key}: {overrides:?}"),
        Notice::Answered { key, is_error, .. } => format!("Answered {key}: {is_error}"),
        Notice::NotApplicable(key, why) => format!("NotApplicable {key}: {why}"),
        Notice::SwitchedOff => "SwitchedOff".into(),
        Notice::Invalid(why) => format!("Invalid: {why}"),
        Notice::Missing(need, assets) => format!("Missing {need}: {}", assets.join(", ")),
        Notice::Served(need, assets) => format!("Served {need}: {}", assets.join(", ")),
        Notice::NotNeeded(need) => format!("NotNeeded {need}"),
        Notice::NoHyperConverged => "NoHyperConverged".into(),
        Notice::HyperConvergedAbsent { key, existed: true } => format!("HyperConvergedAbsent {key}: it was deleted"),
        Notice::HyperConvergedAbsent { key, existed: false } => format!("HyperConvergedAbsent {key}"),
        Notice::DiscoveryFailed(why) => format!("DiscoveryFailed: {why}"),
        Notice::WatchLost { kind, why } => format!("WatchLost {kind}: {why}"),
        Notice::SearchFailed { kind, why } => format!("SearchFailed {kind}: {why}"),
        Notice::RecordFailed { why } => format!("RecordFailed: {why}"),
        Notice::PublishFailed { why } => format!("PublishFailed: {why}"),
        Notice::Rollout { rollout, before } => match rollout.event(*before) {
            Some((_, name)) => format!("{name}: {rollout}"),
            None => format!("Rollout: {rollout}"),
        },
        Notice::AdvisorServed => "AdvisorServed".into(),
        Notice::PoolGone(pool) => format!("PoolGone {pool}"),
        Notice::NodeRestarted { node, pool } => format!("NodeRestarted {node} of {pool}"),
        Notice::Retry { wait, .. } => format!("Retry in {wait} ms"),
    };
    format!("notice {}", without_digests(&text))
}

fn without_digests(text: &str) -> String {
    let mut pieces = text.split("sha256:");
    let mut short = pieces.next().unwrap_or_default().to_owned();
    for piece in pieces {
        short.push_str("sha256:*");
        short.push_str(piece.trim_start_matches(|character: char| character.is_ascii_hexdigit()));
    }
    short
}

/// Whether stories show it: writes are shown as they are carried out, states are for metrics, and rollouts are the work of others.
pub(crate) fn is_shown(command: &Command<Notice>) -> bool {
    match command {
        Command::Notify(
            Notice::Subject(..)
            | Notice::State(..)
            | Notice::Overridden(..)
            | Notice::Answered { .. }
            | Notice::Rollout { .. }
            | Notice::NodeRestarted { .. },
        ) => false,
        Command::Notify(_) => true,
        _ => false,
    }
}

impl TestBed {
    /// The state of every asset and object as `status` shows it, from one listing with writes off.
    pub(crate) fn status(&mut self) -> String {
        let lines = self.observe().into_iter().map(|line| {
            let key = line.key.map(|key| format!(" ({key})")).unwrap_or_default();
            let why = line.state.to_string();
            let why = if why.is_empty() { why } else { format!(": {why}") };
            without_digests(&format!("{}{key} {}{why}\n", line.asset, StateWord::of(&line.state)))
        });
        lines.collect()
    }

    /// The field managers of an object and what they own.
    pub(crate) fn owners(&self, key: &str) -> String {
        let stored = self.stored(key).unwrap_or_else(|| panic!("{key} does not exist"));
        let line = |owner: &crate::testing::stored::Owner| {
            let operation = if owner.applies { "applied" } else { "updated" };
            let ours = |path: &str| path.starts_with("metadata.annotations.platform.kubevirt.io/");
            let fields = owner.fields.iter().map(|path| path.join(".")).filter(|path| !ours(path));
            format!("{} {operation} {}\n", owner.manager, fields.collect::<Vec<_>>().join(" "))
        };
        stored.owners.iter().map(line).collect()
    }
}
