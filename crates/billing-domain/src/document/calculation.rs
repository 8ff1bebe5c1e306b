//! The calculation of a line's amount: the factors that are frozen with a document and shown by the API, on paper and in the
//! console.
//!
//! The law: the factors give the amount, rounded once, and the printed parts add up to it. [`check`] recomputes the amount from
//! the factors alone. [`DocumentLine::check`](super::lines::DocumentLine::check) checks a line.
//!
//! [`totals`](super::totals) makes the calculation of a price from the factors that [`rating`](crate::rating) used. The ledger
//! adds the amounts that other documents bill ([`PreviouslyBilled`], [`UnissuedAmount`]).

use chrono::NaiveDate;
use rust_decimal::Decimal;
use thiserror::Error;

use super::DocumentKind;
use super::numbering::DocumentNumber;
use crate::decimal::{WideDecimal, exact_add};
use crate::money::{AmountOutOfRange, Currency, DayShare, Money, MoneyError, Price, SignedPrice, round_to_minor};
use crate::quantity::Quantity;
pub use crate::rating::{CalculatedTier, PackageCalculation, PercentageCalculation};
use crate::text::OneLine;

/// The factors that give a line's amount. A factor that doesn't apply is absent.
///
/// Without `previously` and `unissued`, the factors give the amount of the line, also on a credit. With them, the factors give
/// the price now, and the amount is that price less what other documents bill; on a credit with the opposite sign. A calculation
/// without a factor then gives a price of zero: the line takes back an amount that is no longer owed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct LineCalculation {
    /// The quantity of the period's usage, for a line of usage.
    pub usage_quantity: Option<Decimal>,
    /// The included quantity, if it is above 0.
    pub included_quantity: Option<Decimal>,
    /// The quantity that is billed in advance, if it is above 0. At least this quantity is priced.
    pub prepaid_quantity: Option<Decimal>,
    /// The quantity that is priced. For usage, the usage or the prepaid quantity if that is larger, less the included quantity.
    /// For a fixed item or a charge, its quantity, if it is the same on all days.
    pub billable_quantity: Option<Decimal>,
    /// The price of one unit, if there is a single price.
    pub unit_price: Option<SignedPrice>,
    /// The tiers that the quantity reaches, for a tiered price.
    pub tiers: Vec<CalculatedTier>,
    /// The packages, for a price by package.
    pub packages: Option<PackageCalculation>,
    /// The percentage, for a price in percent.
    pub percentage: Option<PercentageCalculation>,
    /// The quantities of a fixed item whose quantity changes within the period, oldest first.
    pub quantities: Vec<QuantityShare>,
    /// The billed share of a whole period. It applies to the price of a fixed item, to the minimum of usage and to the minimum
    /// fee. Absent for a whole period, and for [`quantities`](Self::quantities), which have their own days.
    pub proration: Option<Proration>,
    /// The minimum that raised the amount, for a whole period. For a charge below zero, the amount that it could take at most.
    pub minimum: Option<Decimal>,
    /// The maximum that lowered the amount.
    pub maximum: Option<Decimal>,
    /// The minimum fee, for the line that raises a period to it.
    pub minimum_fee: Option<MinimumFeeCalculation>,
    /// What issued documents bill of the same price.
    pub previously: Option<PreviouslyBilled>,
    /// What drafts bill of the same price.
    pub unissued: Option<UnissuedAmount>,
}

/// A quantity of a fixed item with the days for which it was agreed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct QuantityShare {
    /// The first day.
    pub from: NaiveDate,
    /// The last day.
    pub to: NaiveDate,
    /// The quantity.
    pub quantity: Quantity,
    /// The number of days from the first to the last.
    pub days: u32,
    /// The number of days of the whole period.
    pub of_days: u32,
    /// The tiers that the quantity reaches, for a tiered price.
    pub tiers: Vec<CalculatedTier>,
    /// The packages, for a price by package.
    pub packages: Option<PackageCalculation>,
    /// The part of the line's amount. The parts add up to the amount: if parts that are rounded by themselves don't, a part is
    /// the difference between two rounded sums.
    pub amount: Money,
}

/// The billed days of a whole period.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Proration {
    /// The number of billed days.
    pub days: u32,
    /// The number of days of the whole period.
    pub of_days: u32,
}

/// The calculation of the line that raises a period to its minimum fee.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MinimumFeeCalculation {
    /// The minimum fee of a whole period.
    pub fee: Price,
    /// The sum of the period's lines that count for the fee.
    pub billed: Money,
    /// The period's lines that don't count for the fee: `ONCE` items and charges (billing rules 6). Together with `billed`, they
    /// are the period's price without the fee.
    pub excluded: Vec<ExcludedAmount>,
}

/// A line that doesn't count for a minimum fee.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ExcludedAmount {
    /// The name of the line.
    pub name: OneLine,
    /// The amount of the line in the period's price.
    pub amount: Money,
}

/// What issued documents bill of the same price.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreviouslyBilled {
    /// The quantity that they bill, for usage.
    pub quantity: Option<Decimal>,
    /// The sum of their lines. Credits count as negative amounts.
    pub amount: Money,
    /// Their numbers, in the order of opening. Of more than [`MAX_NAMED_DOCUMENTS`], the first and the latest ones.
    pub documents: Vec<DocumentNumber>,
}

/// What drafts bill of the same price, whether they are opened or not, including other lines of the same document.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnissuedAmount {
    /// The sum of their lines as previews show them. Credits count as negative amounts.
    pub amount: Money,
    /// The numbers of opened drafts, like those of [`PreviouslyBilled`]. Empty on an issued document, because drafts can change.
    pub documents: Vec<DocumentNumber>,
}

/// The maximum number of documents that [`PreviouslyBilled`] and [`UnissuedAmount`] name.
pub const MAX_NAMED_DOCUMENTS: usize = 12;

/// A printed row of a calculation. Each renderer adds the words in its language.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CalculationStep {
    /// "273,677 calls, 10,000 included, 263,677 billed". Absent if the whole usage is priced.
    Usage {
        /// The usage; `None` for a line that bills the prepaid quantity in advance.
        used: Option<Decimal>,
        /// The included quantity.
        included: Option<Decimal>,
        /// The prepaid quantity.
        prepaid: Option<Decimal>,
        /// The quantity that is priced.
        billed: Decimal,
    },
    /// "5 × 12.00".
    UnitPrice {
        /// The quantity.
        quantity: Decimal,
        /// The price of one unit.
        unit_price: Decimal,
        /// The unrounded product.
        amount: WideDecimal,
    },
    /// A tier that was reached: "1,000 × 0.05 + 10.00". Its amount is not rounded.
    Tier(CalculatedTier),
    /// "3 × 1,000 at 35.00".
    Packages {
        /// The packages.
        packages: PackageCalculation,
        /// The unrounded price.
        amount: WideDecimal,
    },
    /// "2.9 % of 1,000.00 + 12 × 0.30".
    Percentage {
        /// The percentage.
        percentage: PercentageCalculation,
        /// The unrounded price.
        amount: WideDecimal,
    },
    /// "5 seats 1–14 Oct". The part of a quantity that changes within the period.
    Quantity {
        /// The quantity with its days and its part of the amount.
        share: QuantityShare,
        /// The price of one unit for a whole period, if there is a single price. A tiered price or a price by package is part
        /// of the share.
        unit_price: Option<Decimal>,
    },
    /// "24 of 30 days".
    Proration(Proration),
    /// "minimum 50.00".
    Minimum {
        /// The minimum of a whole period.
        minimum: Decimal,
        /// The share of the period, if it isn't a whole one.
        proration: Option<Proration>,
        /// The amount that the minimum gives.
        amount: Money,
    },
    /// "maximum 50.00".
    Maximum {
        /// The maximum.
        maximum: Decimal,
        /// The amount that the maximum gives.
        amount: Money,
    },
    /// "minimum fee 100.00, 89.00 billed".
    MinimumFee {
        /// The minimum fee of a whole period, and what counts for it.
        minimum_fee: MinimumFeeCalculation,
        /// The share of the period, if it isn't a whole one.
        proration: Option<Proration>,
        /// What is missing to the fee.
        amount: Money,
    },
    /// "now 60.00, billed on UB-INV-1 49.00, on documents not issued yet -10.00, difference 21.00".
    Difference {
        /// The price that the factors give now.
        now: Money,
        /// What issued documents bill.
        previously: Option<PreviouslyBilled>,
        /// What drafts bill.
        unissued: Option<UnissuedAmount>,
        /// The price now less the amounts of other documents. On a credit, the line's amount has the opposite sign.
        difference: Money,
    },
}

impl CalculationStep {
    /// Returns the row in English, for texts that have no language of their own. `unit` is the name of one unit of usage.
    #[expect(clippy::too_many_lines, reason = "one arm for each step")]
    pub fn in_english(&self, unit: &str) -> String {
        let counted = |quantity: Decimal| if unit.is_empty() { shown(quantity) } else { format!("{} {unit}", shown(quantity)) };
        match self {
            Self::Usage { used, included, prepaid, billed } => {
                let mut parts = Vec::new();
                parts.extend(used.map(counted));
                parts.extend(prepaid.map(|prepaid| format!("{} prepaid", shown(prepaid))));
                parts.extend(included.map(|included| format!("{} included", shown(included))));
                parts.push(format!("{} billed", shown(*billed)));
                parts.join(", ")
            }
            Self::UnitPrice { quantity, unit_price, amount } => {
                format!("{} × {} = {}", counted(*quantity), price(*unit_price), shown(*amount))
            }
            Self::Tier(tier) => tier_in_english(tier),
            Self::Packages { packages, amount } => packages_in_english(packages, *amount),
            Self::Percentage { percentage, amount } => {
                let PercentageCalculation { rate, base, fixed_amount, count } = percentage;
                let mut text = format!("{} % of {}", shown(rate.as_decimal()), shown(*base));
                if !fixed_amount.as_decimal().is_zero() {
                    text = format!("{text} + {} × {}", shown(Decimal::from(*count)), price(fixed_amount.as_decimal()));
                }
                format!("{text} = {}", shown(*amount))
            }
            Self::Quantity { share, unit_price } => {
                let QuantityShare { from, to, quantity, days, of_days, tiers, packages, amount } = share;
                let mut text = shown(quantity.as_decimal());
                if let Some(unit_price) = unit_price {
                    text = format!("{text} × {}", price(*unit_price));
                }
                for tier in tiers {
                    text = format!("{text}, {}", tier_in_english(tier));
                }
                if let Some(packages) = packages {
                    let amount = packages.amount().unwrap_or(WideDecimal::ZERO);
                    text = format!("{text}, {}", packages_in_english(packages, amount));
                }
                format!("{text}, {from} to {to}, {days} of {of_days} days: {}", amount.to_decimal())
            }
            Self::Proration(proration) => proration_in_english(*proration),
            Self::Minimum { minimum, proration, amount } => {
                let days = proration.map(|proration| format!(", {}", proration_in_english(proration))).unwrap_or_default();
                format!("minimum {}{days}: {}", price(*minimum), amount.to_decimal())
            }
            Self::Maximum { maximum, amount } => format!("maximum {}: {}", price(*maximum), amount.to_decimal()),
            Self::MinimumFee { minimum_fee, proration, amount } => {
                let MinimumFeeCalculation { fee, billed, excluded } = minimum_fee;
                let days = proration.map(|proration| format!(", {}", proration_in_english(proration))).unwrap_or_default();
                let (fee, billed, missing) = (price(fee.as_decimal()), billed.to_decimal(), amount.to_decimal());
                if excluded.is_empty() {
                    return format!("minimum fee {fee}{days} − {billed} billed = {missing}");
                }
                let excluded = excluded.iter().map(|line| format!("{} {}", line.name, line.amount.to_decimal()));
                let excluded = excluded.collect::<Vec<_>>().join(", ");
                format!("minimum fee {fee}{days} − {billed} counted = {missing}, not counted: {excluded}")
            }
            Self::Difference { now, previously, unissued, difference } => {
                let mut parts = vec![format!("now {}", now.to_decimal())];
                parts.extend(previously.as_ref().map(|previously| {
                    let documents = joined(&previously.documents);
                    let place = if documents.is_empty() { "before".to_owned() } else { format!("on {documents}") };
                    format!("billed {place} {}", previously.amount.to_decimal())
                }));
                parts.extend(unissued.as_ref().map(|unissued| {
                    let documents = joined(&unissued.documents);
                    let named = if documents.is_empty() { documents } else { format!(" ({documents})") };
                    format!("on documents not issued yet{named} {}", unissued.amount.to_decimal())
                }));
                parts.push(format!("difference {}", difference.to_decimal()));
                parts.join(", ")
            }
        }
    }
}

fn tier_in_english(tier: &CalculatedTier) -> String {
    let mut text = format!("{} × {}", shown(tier.quantity), price(tier.unit_price.as_decimal()));
    let flat_amount = tier.flat_amount.as_decimal();
    if !flat_amount.is_zero() {
        text = format!("{text} + {}", price(flat_amount));
    }
    format!("{text} = {}", shown(tier.amount))
}

fn packages_in_english(packages: &PackageCalculation, amount: WideDecimal) -> String {
    let PackageCalculation { count, size, price: of_package } = packages;
    let (count, size) = (shown(*count), shown(size.as_decimal()));
    format!("{count} × {size} at {} = {}", price(of_package.as_decimal()), shown(amount))
}

fn proration_in_english(proration: Proration) -> String {
    format!("{} of {} days", proration.days, proration.of_days)
}

/// Returns numbers of documents, separated by commas.
fn joined(numbers: &[DocumentNumber]) -> String {
    numbers.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ")
}

/// Returns a price with the digits that it was given.
fn price(price: Decimal) -> String {
    price.to_string()
}

/// Returns a number without trailing zeros and with its thousands separated.
fn shown(number: impl Into<WideDecimal>) -> String {
    let text = number.into().to_string();
    let (integer, fraction) = text.split_once('.').unwrap_or((text.as_str(), ""));
    let fraction = fraction.trim_end_matches('0');
    let (sign, digits) = integer.strip_prefix('-').map_or(("", integer), |digits| ("-", digits));
    let mut grouped = String::new();
    for (place, digit) in digits.chars().enumerate() {
        if place > 0 && (digits.len() - place) % 3 == 0 {
            grouped.push(',');
        }
        grouped.push(digit);
    }
    if fraction.is_empty() { format!("{sign}{grouped}") } else { format!("{sign}{grouped}.{fraction}") }
}

/// The reason why a calculation doesn't explain the amount of its line. This is a defect.
#[derive(Clone, Debug, PartialEq, Eq, Error)]
pub enum Unexplained {
    /// The line has no calculation.
    #[error("it has no calculation")]
    Missing,
    /// The factors give another amount.
    #[error("it is of {amount}, but its factors give {given}")]
    Differs {
        /// The line's amount.
        amount: Money,
        /// The amount that the factors give.
        given: Money,
    },
    /// The printed parts have another sum.
    #[error("its parts make {parts}, but its factors give {given}")]
    Parts {
        /// The sum of the parts.
        parts: WideDecimal,
        /// The amount that the factors give.
        given: WideDecimal,
    },
    /// A factor contradicts the others.
    #[error("its {0} contradicts the other factors")]
    Factor(&'static str),
    /// An amount is out of range.
    #[error(transparent)]
    Money(#[from] MoneyError),
}

impl From<AmountOutOfRange> for Unexplained {
    fn from(error: AmountOutOfRange) -> Self {
        Self::Money(error.into())
    }
}

impl LineCalculation {
    /// Returns the price that the factors give, rounded once, without the amounts of other documents.
    ///
    /// # Errors
    /// Returns [`MoneyError`] if an amount can't be represented exactly.
    pub fn price(&self, currency: Currency) -> Result<Money, MoneyError> {
        if let Some(minimum_fee) = &self.minimum_fee {
            return self.missing_to(minimum_fee, currency);
        }
        Ok(Money::round(self.limited(self.unlimited(currency)?, currency)?, currency)?)
    }

    /// Returns the printed rows in order. The words are added by each renderer in its language.
    pub fn steps(&self, currency: Currency) -> Vec<CalculationStep> {
        let mut steps = Vec::new();
        if let Some(billed) = self.billable_quantity.filter(|_| self.is_of_usage()) {
            let (used, included, prepaid) = (self.usage_quantity, self.included_quantity, self.prepaid_quantity);
            if included.is_some() || prepaid.is_some() {
                steps.push(CalculationStep::Usage { used, included, prepaid, billed });
            }
        }
        let unit_price = self.unit_price.map(SignedPrice::as_decimal);
        if let (Some(quantity), Some(unit_price)) = (self.billable_quantity, unit_price) {
            let amount = WideDecimal::from(quantity).times(unit_price).ok();
            steps.extend(amount.map(|amount| CalculationStep::UnitPrice { quantity, unit_price, amount }));
        }
        steps.extend(self.tiers.iter().cloned().map(CalculationStep::Tier));
        if let Some(packages) = self.packages {
            steps.extend(packages.amount().ok().map(|amount| CalculationStep::Packages { packages, amount }));
        }
        if let Some(percentage) = self.percentage {
            steps.extend(percentage.amount().ok().map(|amount| CalculationStep::Percentage { percentage, amount }));
        }
        steps.extend(self.quantities.iter().cloned().map(|share| CalculationStep::Quantity { share, unit_price }));
        if self.prorates_price() {
            steps.extend(self.proration.map(CalculationStep::Proration));
        }
        if let Some(minimum) = self.minimum {
            let proration = self.proration.filter(|_| !self.prorates_price());
            let amount = self.minimum_amount(minimum, currency).ok();
            steps.extend(amount.map(|amount| CalculationStep::Minimum { minimum, proration, amount }));
        }
        if let Some(maximum) = self.maximum {
            let amount = Money::round(maximum, currency).ok();
            steps.extend(amount.map(|amount| CalculationStep::Maximum { maximum, amount }));
        }
        if let Some(minimum_fee) = &self.minimum_fee {
            let (proration, amount) = (self.proration, self.missing_to(minimum_fee, currency).ok());
            let minimum_fee = minimum_fee.clone();
            steps.extend(amount.map(|amount| CalculationStep::MinimumFee { minimum_fee, proration, amount }));
        }
        if self.is_difference() {
            let amounts = self.price(currency).and_then(|now| Ok((now, self.less_others(now)?))).ok();
            let (previously, unissued) = (self.previously.clone(), self.unissued.clone());
            let step = |(now, difference)| CalculationStep::Difference { now, previously, unissued, difference };
            steps.extend(amounts.map(step));
        }
        steps
    }

    /// Returns the amount that the calculation gives on a document of a kind.
    ///
    /// # Errors
    /// Returns [`MoneyError`] if an amount can't be represented exactly.
    pub fn amount(&self, kind: DocumentKind, currency: Currency) -> Result<Money, MoneyError> {
        let price = self.price(currency)?;
        if !self.is_difference() {
            return Ok(price);
        }
        let difference = self.less_others(price)?;
        match kind {
            DocumentKind::Invoice | DocumentKind::Debit => Ok(difference),
            DocumentKind::Credit => Money::zero(currency).checked_sub(difference),
        }
    }

    /// Makes the factors give the amount on a credit, for a price that no other document bills. A negative price is shown as
    /// what is credited; a positive one, which lessens the credit, stays a difference.
    pub(crate) fn turn_to_credit(&mut self, price: Money) {
        if self.is_difference() || price.minor() == 0 {
            return;
        }
        match self.unit_price.filter(|_| price.minor() < 0) {
            Some(unit_price) => {
                self.unit_price = Some(-unit_price);
                (self.minimum, self.maximum) = (self.maximum.map(|most| -most), self.minimum.map(|least| -least));
            }
            None => {
                let amount = Money::zero(price.currency());
                self.previously = Some(PreviouslyBilled { quantity: None, amount, documents: Vec::new() });
            }
        }
    }

    /// Returns whether the amount is a difference to the amounts of other documents.
    pub const fn is_difference(&self) -> bool {
        self.previously.is_some() || self.unissued.is_some()
    }

    /// Returns a price less the amounts of other documents.
    fn less_others(&self, price: Money) -> Result<Money, MoneyError> {
        let previously = self.previously.as_ref().map(|previously| previously.amount);
        let unissued = self.unissued.as_ref().map(|unissued| unissued.amount);
        previously.into_iter().chain(unissued).try_fold(price, Money::checked_sub)
    }

    /// Returns whether the line prices usage, whose price isn't prorated.
    const fn is_of_usage(&self) -> bool {
        self.usage_quantity.is_some() || self.prepaid_quantity.is_some()
    }

    /// Returns whether the share of the period applies to the price itself, and not only to a minimum.
    fn prorates_price(&self) -> bool {
        !self.is_of_usage() && self.minimum_fee.is_none() && self.quantities.is_empty()
    }

    fn share(&self) -> DayShare {
        self.proration.map_or(DayShare::WHOLE, Proration::share)
    }

    /// Returns the price before minimum and maximum, rounded once. It can exceed the range of money until the maximum lowers it.
    fn unlimited(&self, currency: Currency) -> Result<WideDecimal, AmountOutOfRange> {
        if let Some(of_days) = self.quantities.first().map(|share| share.of_days) {
            let days = self.quantities.iter().try_fold(WideDecimal::ZERO, |sum, share| {
                sum.plus(self.price_of_share(share)?.times(Decimal::from(share.days))?)
            })?;
            return round_to_minor(days, DayShare { days: 1, of: of_days }, currency);
        }
        let quantity = self.billable_quantity.unwrap_or(Decimal::ZERO);
        let mut price = units(quantity, self.unit_price, &self.tiers, self.packages)?;
        if let Some(percentage) = self.percentage {
            price = price.plus(percentage.amount()?)?;
        }
        let share = if self.prorates_price() { self.share() } else { DayShare::WHOLE };
        round_to_minor(price, share, currency)
    }

    /// Returns the unrounded price of a quantity for a whole period.
    fn price_of_share(&self, share: &QuantityShare) -> Result<WideDecimal, AmountOutOfRange> {
        units(share.quantity.as_decimal(), self.unit_price, &share.tiers, share.packages)
    }

    /// Applies the minimum, then the maximum.
    fn limited(&self, price: WideDecimal, currency: Currency) -> Result<WideDecimal, AmountOutOfRange> {
        let mut amount = price;
        if let Some(minimum) = self.minimum {
            amount = amount.max(self.minimum_amount(minimum, currency)?.into());
        }
        if let Some(maximum) = self.maximum {
            amount = amount.min(Money::round(maximum, currency)?.into());
        }
        Ok(amount)
    }

    fn minimum_amount(&self, minimum: Decimal, currency: Currency) -> Result<Money, AmountOutOfRange> {
        let share = if self.is_of_usage() { self.share() } else { DayShare::WHOLE };
        Money::round_share(minimum, share, currency)
    }

    /// Returns what is missing to the minimum fee; zero if nothing is.
    fn missing_to(&self, minimum_fee: &MinimumFeeCalculation, currency: Currency) -> Result<Money, MoneyError> {
        let fee = Money::round_share(minimum_fee.fee.as_decimal(), self.share(), currency)?;
        let missing = fee.checked_sub(minimum_fee.billed)?;
        Ok(if missing.minor() > 0 { missing } else { Money::zero(currency) })
    }
}

impl Proration {
    /// Returns the proration of a share of a period; `None` for a whole period.
    pub fn of(share: DayShare) -> Option<Self> {
        (share.days != share.of).then_some(Self { days: share.days, of_days: share.of })
    }

    /// Returns the share of the period.
    pub const fn share(self) -> DayShare {
        DayShare { days: self.days, of: self.of_days }
    }
}

/// Returns the unrounded price of a quantity by whichever price is given.
fn units(
    quantity: Decimal,
    unit_price: Option<SignedPrice>,
    tiers: &[CalculatedTier],
    packages: Option<PackageCalculation>,
) -> Result<WideDecimal, AmountOutOfRange> {
    let mut price = match unit_price {
        Some(unit_price) => WideDecimal::from(quantity).times(unit_price.as_decimal())?,
        None => WideDecimal::ZERO,
    };
    for tier in tiers {
        price = price.plus(tier.price()?)?;
    }
    if let Some(packages) = packages {
        price = price.plus(packages.amount()?)?;
    }
    Ok(price)
}

/// Checks that the frozen factors of a line give its amount, and that its printed parts add up to it.
///
/// # Errors
/// Returns [`Unexplained`] for an amount that the factors don't explain, which is a defect.
pub fn check(calculation: &LineCalculation, amount: Money, kind: DocumentKind) -> Result<(), Unexplained> {
    check_factors(calculation)?;
    let given = calculation.amount(kind, amount.currency())?;
    if given == amount { Ok(()) } else { Err(Unexplained::Differs { amount, given }) }
}

/// Checks that the factors agree with each other.
fn check_factors(calculation: &LineCalculation) -> Result<(), Unexplained> {
    let LineCalculation { usage_quantity, included_quantity, prepaid_quantity, billable_quantity, .. } = calculation;
    if let Some(billable) = billable_quantity.filter(|_| calculation.is_of_usage()) {
        let used = usage_quantity.unwrap_or(Decimal::ZERO).max(prepaid_quantity.unwrap_or(Decimal::ZERO));
        let rest = exact_add(used, -included_quantity.unwrap_or(Decimal::ZERO))?.max(Decimal::ZERO);
        if rest != billable {
            return Err(Unexplained::Factor("billable_quantity"));
        }
    }
    let quantity = billable_quantity.unwrap_or(Decimal::ZERO);
    check_tiers(&calculation.tiers, quantity)?;
    if calculation.packages.is_some_and(|packages| !packages.holds(quantity)) {
        return Err(Unexplained::Factor("packages"));
    }
    if calculation.percentage.is_some_and(|percentage| percentage.base != quantity) {
        return Err(Unexplained::Factor("percentage"));
    }
    for share in &calculation.quantities {
        let quantity = share.quantity.as_decimal();
        check_tiers(&share.tiers, quantity)?;
        let has_days = (share.to - share.from).num_days() + 1 == i64::from(share.days);
        if !has_days || share.packages.is_some_and(|packages| !packages.holds(quantity)) {
            return Err(Unexplained::Factor("quantities"));
        }
    }
    if let Some(first) = calculation.quantities.first() {
        let currency = first.amount.currency();
        let parts = Money::sum(currency, calculation.quantities.iter().map(|share| share.amount))?.into();
        let given = calculation.unlimited(currency)?;
        if parts != given {
            return Err(Unexplained::Parts { parts, given });
        }
    }
    Ok(())
}

/// Checks that tiers price a quantity, and that the amount of each one is the product of its factors.
fn check_tiers(tiers: &[CalculatedTier], quantity: Decimal) -> Result<(), Unexplained> {
    if tiers.is_empty() {
        return Ok(());
    }
    let mut units = WideDecimal::ZERO;
    for tier in tiers {
        let given = tier.price()?;
        if tier.amount != given {
            return Err(Unexplained::Parts { parts: tier.amount, given });
        }
        units = units.plus(tier.quantity)?;
    }
    if units == quantity.into() { Ok(()) } else { Err(Unexplained::Factor("tiers")) }
}
