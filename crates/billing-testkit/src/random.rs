//! Random numbers that a seed decides.

/// SplitMix64: small, and good enough to draw test cases.
#[derive(Clone, Debug)]
pub struct Random(u64);

impl Random {
    /// The same seed draws the same.
    pub const fn new(seed: u64) -> Self {
        Self(seed)
    }

    fn bits(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mut z = self.0;
        z = (z ^ (z >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        z ^ (z >> 31)
    }

    /// From 0 to one less than a bound.
    pub fn below(&mut self, bound: u64) -> u64 {
        self.bits() % bound
    }

    /// From one number to another, both included.
    ///
    /// # Panics
    /// When the second is less than the first.
    pub fn between(&mut self, low: i64, high: i64) -> i64 {
        let width = u64::try_from(high - low).expect("a range") + 1;
        low + i64::try_from(self.below(width)).expect("a small number")
    }

    /// True so many times in a hundred.
    pub fn percent(&mut self, chance: u64) -> bool {
        self.below(100) < chance
    }

    /// One of a list that isn't empty.
    ///
    /// # Panics
    /// When it is.
    pub fn pick<'a, T>(&mut self, from: &'a [T]) -> &'a T {
        &from[usize::try_from(self.below(from.len() as u64)).expect("an index")]
    }

    /// Draws something so many times in a hundred.
    pub fn maybe<T>(&mut self, chance: u64, draw: impl FnOnce(&mut Self) -> T) -> Option<T> {
        if self.percent(chance) { Some(draw(self)) } else { None }
    }
}
