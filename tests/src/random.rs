//! Numbers that look random and come again from their seed.

/// A generator (SplitMix64).
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// From a seed; neighbouring seeds give unlike numbers.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    /// A number below a bound.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut mixed = self.0;
        mixed = (mixed ^ (mixed >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        (mixed ^ (mixed >> 31)) % bound
    }

    /// A number from a range, both ends included.
    pub fn between(&mut self, least: i64, most: i64) -> i64 {
        let steps = u64::try_from(most - least + 1).expect("a range");
        least + i64::try_from(self.below(steps)).expect("within the range")
    }

    /// One of some things.
    ///
    /// # Panics
    /// When there are none.
    pub fn one_of<'a, T>(&mut self, things: &'a [T]) -> &'a T {
        let count = u64::try_from(things.len()).expect("few");
        &things[usize::try_from(self.below(count)).expect("few")]
    }

    /// True as often as said.
    pub fn percent(&mut self, often: u64) -> bool {
        self.below(100) < often
    }
}

/// A setting of the test run; random tests take their seed and their number from here.
pub fn setting(name: &str, default: u64) -> u64 {
    std::env::var(name).map_or(default, |text| text.parse().unwrap_or_else(|_| panic!("{name}={text} is no number")))
}
