//! Every check on the list of exclusions, by name, so that a test can show what happens without it.

/// One check.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum ExclusionGuard {
    /// It is a list of rules, and a rule that cannot be read is not passed over.
    Shape,
    /// A rule has no other keys.
    RuleMembers,
    /// Their values are text.
    RuleTexts,
    /// They can be names.
    RuleCharacters,
    /// There are not too many.
    RuleCount,
}

/// The checks that are made. All of them: only a test of this crate can make another value.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct ExclusionGuards {
    #[cfg(test)]
    off: &'static [ExclusionGuard],
}

impl ExclusionGuards {
    /// Every check.
    pub(crate) const ALL: ExclusionGuards = ExclusionGuards {
        #[cfg(test)]
        off: &[],
    };

    /// Every check but these.
    #[cfg(test)]
    pub(crate) const fn without(off: &'static [ExclusionGuard]) -> ExclusionGuards {
        ExclusionGuards { off }
    }

    /// Whether a check is made.
    #[cfg_attr(not(test), expect(unused_variables))]
    pub(crate) fn enabled(self, guard: ExclusionGuard) -> bool {
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
