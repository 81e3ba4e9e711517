//! The checks on overrides, by name, so that a test can show what gets through without each of them.

/// One check on an override.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum OverrideGuard {
    /// A patch is not too long.
    PatchLength,
    /// A patch does not have too many operations.
    OperationCount,
    /// No object in a patch has a duplicate key.
    DuplicateKeys,
    /// An operation has exactly its members.
    Members,
    /// A pointer begins with a slash.
    LeadingSlash,
    /// A `~` in a pointer is `~0` or `~1`.
    Escapes,
    /// A list index has one spelling.
    Indexes,
    /// Sensitive kinds cannot be patched.
    SensitiveKinds,
    /// Every operation changes only fields that users may patch.
    Operations,
    /// Every field that the patch changed is one that users may patch.
    ChangedFields,
    /// The identity of the object does not change.
    Identity,
    /// The patched object is not too large.
    Size,
    /// The patched object is not nested too deep.
    Depth,
    /// The identity of an object cannot be ignored.
    IgnoredIdentity,
    /// Our own labels and annotations cannot be ignored.
    IgnoredOwnKeys,
    /// A list item cannot be ignored.
    IgnoredListItems,
    /// An ignored field has a name.
    IgnoredNames,
    /// There are not too many ignored fields.
    IgnoredCount,
    /// `mode` has a known value.
    ModeKnown,
    /// A pause that cannot be parsed counts as a pause.
    PauseRead,
}

/// The enabled checks. Outside of the tests of this crate all of them are enabled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct OverrideGuards {
    #[cfg(test)]
    off: &'static [OverrideGuard],
    /// A row of the table of patchable fields that does not count.
    #[cfg(test)]
    row_off: Option<&'static str>,
}

impl OverrideGuards {
    /// All checks are enabled.
    pub(crate) const ALL: OverrideGuards = OverrideGuards {
        #[cfg(test)]
        off: &[],
        #[cfg(test)]
        row_off: None,
    };

    /// All checks except these are enabled.
    #[cfg(test)]
    pub(crate) const fn without(off: &'static [OverrideGuard]) -> OverrideGuards {
        OverrideGuards { off, row_off: None }
    }

    /// All checks are enabled, but the table has no such row: a closed path, or a sensitive kind.
    #[cfg(test)]
    pub(crate) const fn without_row(row: &'static str) -> OverrideGuards {
        OverrideGuards { off: &[], row_off: Some(row) }
    }

    /// Whether a row of the table counts.
    #[cfg_attr(not(test), expect(unused_variables))]
    pub(crate) fn has_row(self, row: &str) -> bool {
        // In one function, so that it is tested as a whole.
        #[cfg(test)]
        {
            self.row_off != Some(row)
        }
        #[cfg(not(test))]
        {
            true
        }
    }

    /// Whether a check is enabled.
    #[cfg_attr(not(test), expect(unused_variables))]
    pub(crate) fn enabled(self, guard: OverrideGuard) -> bool {
        // In one function, so that it is tested as a whole.
        #[cfg(test)]
        {
            !self.off.contains(&guard)
        }
        #[cfg(not(test))]
        {
            true
        }
    }
}
