//! Agreed quantities of fixed line items by date (billing rules 6).

use chrono::NaiveDate;

use crate::calendar::Period;
use crate::quantity::Quantity;
use crate::violation::Violations;

/// The maximum number of quantity steps of a line item.
pub const MAX_QUANTITY_STEPS: usize = 1000;

/// The agreed quantity of a fixed line item from a day on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct QuantityStep {
    /// The first day.
    pub from: NaiveDate,
    /// The agreed quantity.
    pub quantity: Quantity,
}

/// The quantity steps of a fixed line item, with increasing dates. The quantity is 1 before the first step (billing rules
/// 6).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Quantities(Vec<QuantityStep>);

impl Quantities {
    /// Creates a list of steps and checks their order and number.
    ///
    /// # Errors
    /// Returns every violation, with paths below the list.
    pub fn new(steps: Vec<QuantityStep>) -> Result<Self, Violations> {
        let mut found = Violations::none();
        if steps.len() > MAX_QUANTITY_STEPS {
            found.add(&[], "too_many", format!("must have at most {MAX_QUANTITY_STEPS} elements"));
        }
        for (i, pair) in steps.windows(2).enumerate() {
            if pair[1].from <= pair[0].from {
                let index = (i + 1).to_string();
                found.add(&[&index, "from"], "out_of_range", "must be later than the previous step");
            }
        }
        found.or(Self(steps))
    }

    /// Returns a constant quantity.
    pub(super) fn constant(quantity: Quantity) -> Self {
        Self(vec![QuantityStep { from: NaiveDate::MIN, quantity }])
    }

    /// Returns the steps, oldest first.
    pub fn as_slice(&self) -> &[QuantityStep] {
        &self.0
    }

    /// Returns the agreed quantity on a day.
    pub fn on(&self, day: NaiveDate) -> Quantity {
        self.0.iter().take_while(|step| step.from <= day).last().map_or(Quantity::ONE, |step| step.quantity)
    }

    /// Returns the quantities within a range of days, each with the number of days it was agreed for.
    pub fn within(&self, days: Period) -> Vec<(Quantity, u32)> {
        let mut parts = Vec::new();
        let mut from = days.start();
        let later = self.0.iter().filter(|step| step.from > days.start() && step.from < days.end()).map(|step| step.from);
        for until in later.chain([days.end()]) {
            if let Some(part) = Period::new(from, until) {
                parts.push((self.on(from), part.days()));
            }
            from = until;
        }
        parts
    }

    /// Returns the steps with all steps from another list's first date on replaced by that list.
    pub fn replaced_by(&self, list: &Self) -> Self {
        let Some(first) = list.0.first() else { return Self::default() };
        Self(self.0.iter().filter(|step| step.from < first.from).chain(&list.0).copied().collect())
    }

    /// Returns the steps with one step added. The step replaces a step on the same day.
    pub fn with(&self, step: QuantityStep) -> Self {
        let mut steps: Vec<QuantityStep> = self.0.iter().filter(|other| other.from != step.from).copied().collect();
        steps.push(step);
        steps.sort();
        Self(steps)
    }
}
