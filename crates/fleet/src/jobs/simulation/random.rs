//! A fixed pseudo-random sequence for each seed, for simulations and tests of jobs.

/// A generator: SplitMix64.
pub(in crate::jobs) struct Random(pub(in crate::jobs) u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        mixed ^ (mixed >> 31)
    }

    /// A number below another.
    pub(in crate::jobs) fn below(&mut self, end: u64) -> u64 {
        self.next() % end.max(1)
    }

    /// A number of a range.
    pub(in crate::jobs) fn between(&mut self, from: u64, to: u64) -> u64 {
        from + self.below(to - from + 1)
    }

    /// True so many times out of a hundred.
    pub(in crate::jobs) fn chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }
}
