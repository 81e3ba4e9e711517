//! Dry runs of writes that are not made, so that `status` shows what the server would refuse.

use super::writes::Preview;
use super::{Core, Previews};
use crate::decide::Refused;
use crate::decision::PendingWrite;
use crate::status::ObjectState;
use change::{Effect, Key};
use protocol::{Command, WatchTarget, WriteError};
use serde_json::Value;

impl Core {
    /// Tries an apply that creates or changes an object, once.
    pub(super) fn preview(&mut self, key: &Key, effect: Effect, write: &PendingWrite) {
        let PendingWrite::Apply { digest, .. } = write else { return };
        let Some(served) = self.watches.served(&WatchTarget::of(key)).filter(|_| self.config.previews != Previews::Off)
        else {
            return;
        };
        let Some(object) = self.objects.get_mut(key) else { return };
        let is_change = matches!(object.state, ObjectState::ToCreate | ObjectState::ToChange);
        let is_tried = is_change && self.config.previews == Previews::Check;
        if !is_tried || object.writes.preview.as_ref().is_some_and(|tried| tried.digest == *digest) {
            return;
        }
        object.writes.preview = Some(Preview { digest: *digest, refused: None });
        self.objects.write_started(key, self.now.monotonic);
        self.commands.push(Command::Preview { key: key.clone(), served, effect });
    }

    /// Takes the answer to a dry run: a refusal means what it would mean for the write.
    pub(super) fn previewed(&mut self, key: &Key, result: Result<Value, WriteError>) {
        self.objects.write_ended(key);
        let result = match self.config.previews {
            Previews::Off | Previews::Check => result,
            Previews::Diff => match self.planned(key, result) {
                Some(refusal) => Err(refusal),
                None => return,
            },
        };
        let Some(object) = self.objects.get_mut(key) else { return };
        let is_foreign = object.live().is_none_or(|live| !live.labelled);
        let (message, is_invalid) = match result {
            Err(WriteError::Refused { code, message, .. }) if !is_about_the_dry_run(code, &message) => {
                (message, matches!(code, 400 | 413 | 422))
            }
            // The lists of an object of ours are repaired.
            Err(WriteError::KeyChanged { message, .. }) if is_foreign => (message, true),
            // Accepted, or nothing that says anything about the write.
            Ok(_) | Err(_) => return,
        };
        let Some(preview) = &mut object.writes.preview else { return };
        if is_invalid {
            let digest = preview.digest;
            object.refuse(Refused { digest, message });
        } else {
            preview.refused = Some(message);
        }
        self.enqueue(key);
    }
}

/// Whether the server refuses the dry run only: the person who asks lacks the right, or an admission webhook takes part in no dry run.
pub(super) fn is_about_the_dry_run(code: u16, message: &str) -> bool {
    let lacks_right = ["cannot patch resource", "cannot create resource"].iter().any(|text| message.contains(text));
    code == 401 || (code == 403 && lacks_right) || message.contains("does not support dry run")
}
