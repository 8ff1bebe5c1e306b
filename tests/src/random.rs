//! Pseudorandom numbers that can be reproduced from their seed.

/// A pseudorandom number generator (SplitMix64).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// Creates a generator from a seed. Neighboring seeds give different numbers.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// Returns a number below a bound.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    /// Returns a number from a range that includes both ends.
    pub fn between(&mut self, least: i64, most: i64) -> i64 {
        let steps = u64::try_from(most - least + 1).expect("a range");
        least + i64::try_from(self.below(steps)).expect("within the range")
    }

    /// Returns one element of a slice.
    ///
    /// # Panics
    /// Panics if the slice is empty.
    pub fn one_of<'a, T>(&mut self, things: &'a [T]) -> &'a T {
        let count = u64::try_from(things.len()).expect("few");
        &things[usize::try_from(self.below(count)).expect("few")]
    }

    /// Returns true with a probability of `often` percent.
    pub fn percent(&mut self, often: u64) -> bool {
        self.below(100) < often
    }
}

/// Returns a setting of the test run from the environment. Random tests get their seed and their number of runs from
/// settings.
pub fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is not a number")))
}
