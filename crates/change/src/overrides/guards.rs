//! Every check on what users write, by name, so that a test can show what happens without it.

/// One check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OverrideGuard {
    /// A patch is not too long.
    PatchLength,
    /// It does not have too many operations.
    OperationCount,
    /// No object in it says a key twice.
    DuplicateKeys,
    /// An operation has its members and no other.
    Members,
    /// A pointer begins with a slash.
    LeadingSlash,
    /// A `~` in it is `~0` or `~1`.
    Escapes,
    /// A place in a list is written in one way.
    Indexes,
    /// Kinds that grant power are closed.
    SensitiveKinds,
    /// Every operation stays in what users may patch.
    Operations,
    /// And so does every field in which the result differs.
    ChangedFields,
    /// The object stays the same one.
    Identity,
    /// The result is not too large.
    Size,
    /// Nor too deep.
    Depth,
    /// What the object is cannot be ignored.
    IgnoredIdentity,
    /// Nor can what we write on it.
    IgnoredOwnKeys,
    /// Nor a part of a list.
    IgnoredListItems,
    /// A mask names a field.
    IgnoredNames,
    /// There are not too many.
    IgnoredCount,
    /// `mode` is a word we know.
    ModeKnown,
    /// A pause that cannot be read is one.
    PauseRead,
}

/// The checks that are made. All of them: only a test of this crate can make another value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OverrideGuards {
    #[cfg(test)]
    off: &'static [OverrideGuard],
}

impl OverrideGuards {
    /// Every check.
    pub(crate) const ALL: OverrideGuards = OverrideGuards {
        #[cfg(test)]
        off: &[],
    };

    /// Every check but these.
    #[cfg(test)]
    pub(crate) const fn without(off: &'static [OverrideGuard]) -> OverrideGuards {
        OverrideGuards { off }
    }

    /// Whether a check is made.
    #[cfg(test)]
    pub(crate) fn enabled(self, guard: OverrideGuard) -> bool {
        !self.off.contains(&guard)
    }

    /// Whether a check is made.
    #[cfg(not(test))]
    pub(crate) fn enabled(self, _: OverrideGuard) -> bool {
        true
    }
}
