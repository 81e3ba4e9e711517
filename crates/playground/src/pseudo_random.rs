//! A fixed pseudo-random sequence, so that benchmarks and tests are the same in every run.

/// A linear congruential generator.
#[derive(Debug, Clone)]
pub struct PseudoRandom(u64);

impl PseudoRandom {
    /// The sequence of this seed.
    pub fn new(seed: u64) -> PseudoRandom {
        PseudoRandom(seed)
    }

    /// The next number below `limit`.
    pub fn below(&mut self, limit: usize) -> usize {
        usize::try_from(self.next() >> 33).unwrap_or_default() % limit
    }

    /// The next number between 0 and 1.
    pub fn fraction(&mut self) -> f64 {
        f64::from(u32::try_from(self.next() >> 32).unwrap_or_default()) / f64::from(u32::MAX)
    }

    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        self.0
    }
}
