//! The calculations of a document's lines: the factors that give an amount.

use billing_domain::contract::terms::QuantityStep;
use billing_domain::document::AppliedAtIssue;
use billing_domain::document::calculation::{
    CalculatedTier, ExcludedAmount, PackageCalculation, PercentageCalculation, PreviouslyBilled, Proration, QuantityShare,
    UnissuedAmount,
};
use billing_domain::document::lines::DocumentLine;
use billing_domain::document::numbering::DocumentNumber;
use billing_domain::rating::RatedTier;

use super::declare::answer;
use super::values::{DateText, LineText};
use super::wire::ExactNumber;

answer! {
    /// The part of a line that one tier contributes.
    DocumentTierJson of rated: RatedTier {
        /// Quantity above which the tier begins; in format 3 and later.
        @omitted from: Option<ExactNumber> = None::<ExactNumber>,
        /// Largest quantity in the tier; null in the last tier.
        up_to: Option<ExactNumber> = rated.tier.up_to,
        /// Price per unit.
        unit_price: ExactNumber = rated.tier.unit_price,
        /// Amount added once when the tier is reached.
        flat_amount: ExactNumber = rated.tier.flat_amount,
        /// Units priced in this tier.
        quantity: ExactNumber = rated.quantity,
        /// Unrounded amount that the tier contributes to the line.
        amount: ExactNumber = rated.amount,
    }
}

impl From<&CalculatedTier> for DocumentTierJson {
    fn from(tier: &CalculatedTier) -> Self {
        Self {
            from: Some(ExactNumber::from(tier.from)),
            up_to: tier.up_to.map(ExactNumber::from),
            unit_price: ExactNumber::from(tier.unit_price),
            flat_amount: ExactNumber::from(tier.flat_amount),
            quantity: ExactNumber::from(tier.quantity),
            amount: ExactNumber::from(tier.amount),
        }
    }
}

answer! {
    /// A quantity of a fixed line item with its first day. In format 3 and later, a quantity that changes within the period
    /// has its days and its part of the amount.
    DocumentQuantityJson of share: QuantityShare {
        /// First day.
        from: DateText = share.from,
        /// Last day.
        @omitted to: Option<DateText> = Some(share.to),
        /// Quantity.
        quantity: ExactNumber = share.quantity,
        /// Number of days from the first to the last.
        @omitted days: Option<u32> = Some(share.days),
        /// Number of days of the whole period.
        @omitted of_days: Option<u32> = Some(share.of_days),
        /// Tiers that the quantity reaches, for a tiered price.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        #[schema(required = false)]
        tiers: Vec<DocumentTierJson> = &share.tiers,
        /// Packages, for a price by package.
        @omitted packages: Option<PackagesJson> = share.packages.as_ref(),
        /// Part of the line's amount. The parts add up to the amount.
        @omitted amount: Option<ExactNumber> = Some(share.amount),
    }
}

impl From<&QuantityStep> for DocumentQuantityJson {
    fn from(step: &QuantityStep) -> Self {
        Self {
            from: DateText::from(step.from),
            to: None,
            quantity: ExactNumber::from(step.quantity),
            days: None,
            of_days: None,
            tiers: Vec::new(),
            packages: None,
            amount: None,
        }
    }
}

answer! {
    /// Packages of a price by package: `count × price`.
    PackagesJson of packages: PackageCalculation {
        /// Number of packages, full or partial.
        count: ExactNumber = packages.count,
        /// Units in a package.
        size: ExactNumber = packages.size,
        /// Price of a package.
        price: ExactNumber = packages.price,
    }
}

answer! {
    /// Percentage of a price in percent: `rate % × base + fixed_amount × count`.
    PercentageJson of percentage: PercentageCalculation {
        /// Rate in percent.
        rate: ExactNumber = percentage.rate,
        /// Amount of money that the rate applies to.
        base: ExactNumber = percentage.base,
        /// Amount added for each event.
        fixed_amount: ExactNumber = percentage.fixed_amount,
        /// Number of events.
        count: u64 = percentage.count,
    }
}

answer! {
    /// Billed days of a whole period.
    ProrationJson of proration: Proration {
        /// Number of billed days.
        days: u32 = proration.days,
        /// Number of days of the whole period.
        of_days: u32 = proration.of_days,
    }
}

answer! {
    /// A line that does not count for a minimum fee.
    ExcludedAmountJson of excluded: ExcludedAmount {
        /// Name of the line.
        name: LineText = &excluded.name,
        /// Amount of the line in the period's price.
        amount: ExactNumber = excluded.amount,
    }
}

answer! {
    /// Amounts that issued documents bill of the same price. Before format 4, also amounts of other documents.
    PreviouslyBilledJson of previously: PreviouslyBilled {
        /// Billed quantity, for usage.
        @omitted quantity: Option<ExactNumber> = previously.quantity,
        /// Sum of their lines. Credits count as negative amounts.
        amount: ExactNumber = previously.amount,
        /// Numbers of the documents, in the order of opening. Of more than 12, the first six and the latest six.
        documents: Vec<String> = previously.documents.iter().map(DocumentNumber::to_string),
    }
}

answer! {
    /// Amounts that drafts bill of the same price, whether they are opened or not. Other lines of the same document count.
    UnissuedAmountJson of unissued: UnissuedAmount {
        /// Sum of the lines, as previews show them. Credits count as negative amounts.
        amount: ExactNumber = unissued.amount,
        /// Numbers of opened drafts, on a document that is not issued. At most 12, as in `previously`.
        #[serde(skip_serializing_if = "Vec::is_empty")]
        #[schema(required = false)]
        documents: Vec<String> = unissued.documents.iter().map(DocumentNumber::to_string),
    }
}

answer! {
    /// An amount that was applied when the document was issued.
    AppliedAtIssueJson of applied: AppliedAtIssue {
        /// Number of the other document: the credit, the document whose payment had a surplus, or for a credit the document
        /// that it settles. Null for an amount of a deposit.
        #[schema(example = "UB-CRD-1")]
        document_number: Option<String> = applied.document_number.as_ref().map(ToString::to_string),
        /// Amount.
        amount: ExactNumber = applied.amount,
    }
}

/// Returns the tiers of a line. Older documents have them without their lower bounds.
pub(super) fn tiers_of(line: &DocumentLine) -> Vec<DocumentTierJson> {
    match (&line.calculation, &line.usage) {
        (Some(calculation), _) => calculation.tiers.iter().map(DocumentTierJson::from).collect(),
        (None, Some(usage)) => usage.tiers.iter().map(DocumentTierJson::from).collect(),
        (None, None) => Vec::new(),
    }
}

/// Returns the quantities of a fixed item: with their days if they change within the period, or else as agreed.
pub(super) fn quantities_of(line: &DocumentLine) -> Vec<DocumentQuantityJson> {
    let shares = line.calculation.as_ref().map_or(&[][..], |calculation| calculation.quantities.as_slice());
    if shares.is_empty() {
        return line.quantities.iter().map(DocumentQuantityJson::from).collect();
    }
    shares.iter().map(DocumentQuantityJson::from).collect()
}

/// Returns the price of one unit, if the line has a single one.
pub(super) fn unit_price_of(line: &DocumentLine) -> Option<ExactNumber> {
    let calculated = line.calculation.as_ref().and_then(|calculation| calculation.unit_price);
    let of_usage = line.usage.as_ref().and_then(|usage| usage.unit_price);
    let of_charge = line.charge.as_ref().map(|charge| charge.unit_price);
    calculated.map(ExactNumber::from).or(of_usage.map(ExactNumber::from)).or(of_charge.map(ExactNumber::from))
}

/// Returns the lines that don't count for the minimum fee of a line.
pub(super) fn excluded_of(line: &DocumentLine) -> &[ExcludedAmount] {
    let minimum_fee = line.calculation.as_ref().and_then(|calculation| calculation.minimum_fee.as_ref());
    minimum_fee.map_or(&[], |minimum_fee| minimum_fee.excluded.as_slice())
}
