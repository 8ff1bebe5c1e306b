//! What is wrong with issued documents, as the difference between what a period costs and what is documented
//! (billing rules 5). It decides amounts and kinds; where the difference is put is the use cases' business.

use rust_decimal::Decimal;

use super::DocumentKind;
use super::totals::{DocumentLine, Documented, LineKey, LineUsage};
use crate::calendar::Period;
use crate::contract::ProductPeriod;
use crate::decimal::exact_add;
use crate::money::{AmountOutOfRange, Currency, Money};
use crate::refs::{LineItemId, ProductNo, UsageProductRef};
use crate::text::Line;

/// The name of the true-up's line.
pub const MINIMUM_FEE_NAME: &str = "Minimum fee";

/// A line as it is kept for the sums of billing rules 5: of issued documents and of open adjustments.
/// Its amount has the sign of its document's kind: what a credit takes back is positive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerLine {
    /// The product.
    pub product_no: ProductNo,
    /// The line item; `None` for the true-up to the minimum fee.
    pub line_item_id: Option<LineItemId>,
    /// The service period.
    pub service_period: Period,
    /// What was used, of a usage line.
    pub usage: Option<LedgerUsage>,
    /// The amount.
    pub amount: Money,
}

/// The usage of a ledger line.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LedgerUsage {
    /// What was used.
    pub usage_product_ref: UsageProductRef,
    /// How much; of an adjustment, by how much it changed.
    pub quantity: Decimal,
}

impl LedgerLine {
    /// What its amount is for.
    pub fn key(&self) -> LineKey {
        LineKey {
            product_no: self.product_no,
            period_start: self.service_period.start(),
            line_item_id: self.line_item_id.clone(),
        }
    }

    /// As a document shows it, with the names of the terms in force in its period.
    pub fn shown(&self, period: Option<&ProductPeriod<'_>>) -> DocumentLine {
        let item =
            period.and_then(|period| period.terms.line_items.iter().find(|item| Some(&item.id) == self.line_item_id.as_ref()));
        let name = match (item, &self.line_item_id) {
            (Some(item), _) => item.name.clone(),
            (None, Some(id)) => Line::of_id(id),
            (None, None) => Line::constant(MINIMUM_FEE_NAME),
        };
        let metered = item.and_then(|item| item.metered());
        let usage = self.usage.as_ref().map(|usage| LineUsage {
            usage_product_ref: usage.usage_product_ref.clone(),
            quantity: usage.quantity,
            unit: metered.and_then(|metered| metered.unit.clone()),
            unit_price: None,
            tiers: Vec::new(),
        });
        DocumentLine {
            line_item_id: self.line_item_id.clone(),
            name,
            service_period: self.service_period,
            usage,
            amount: self.amount,
        }
    }

    /// From a document's line.
    pub fn of(product_no: ProductNo, line: &DocumentLine) -> Self {
        let usage = line.usage.as_ref();
        Self {
            product_no,
            line_item_id: line.line_item_id.clone(),
            service_period: line.service_period,
            usage: usage
                .map(|usage| LedgerUsage { usage_product_ref: usage.usage_product_ref.clone(), quantity: usage.quantity }),
            amount: line.amount,
        }
    }
}

/// The kind of an adjustment for a difference: a debit from zero up, a credit below.
pub const fn kind_of(difference: Money) -> DocumentKind {
    if difference.minor() < 0 { DocumentKind::Credit } else { DocumentKind::Debit }
}

/// The sign that an amount of a kind counts with.
pub const fn sign(kind: DocumentKind) -> i64 {
    match kind {
        DocumentKind::Invoice | DocumentKind::Debit => 1,
        DocumentKind::Credit => -1,
    }
}

/// What a service period of a product costs now and isn't documented yet, line by line. `target` is what the
/// period's issued documents should say; `before` is what they should have said before the change, and gives
/// the lines the quantity it changed by. Lines without any difference are left out.
///
/// # Errors
/// [`AmountOutOfRange`] when an amount can't be held.
pub fn difference(
    product_no: ProductNo,
    service_period: Period,
    currency: Currency,
    before: &[DocumentLine],
    target: &[DocumentLine],
    documented: &Documented,
) -> Result<Vec<LedgerLine>, AmountOutOfRange> {
    let ledger = |lines: &[DocumentLine]| lines.iter().map(|line| LedgerLine::of(product_no, line)).collect::<Vec<_>>();
    let nothing = |line: &LedgerLine| LedgerLine { amount: Money::zero(currency), ..line.clone() };
    // Two shares may bill parts of one line: they are one here.
    let target = merge(Vec::new(), ledger(target))?;
    let before: Vec<LedgerLine> = merge(Vec::new(), ledger(before))?.iter().map(nothing).collect();
    let mut lines = merge(target, negated(before)?)?;
    for line in &mut lines {
        let billed = Money::from_minor(documented.minor(&line.key()), currency);
        line.amount = line.amount.checked_sub(billed)?;
    }
    for (key, minor) in documented.of_product(product_no) {
        let listed = lines.iter().any(|line| line.key() == *key);
        if key.period_start == service_period.start() && !listed {
            let amount = Money::zero(currency).checked_sub(Money::from_minor(minor, currency))?;
            lines.push(LedgerLine { product_no, line_item_id: key.line_item_id.clone(), service_period, usage: None, amount });
        }
    }
    let differs =
        |line: &LedgerLine| line.amount.minor() != 0 || line.usage.as_ref().is_some_and(|usage| !usage.quantity.is_zero());
    lines.retain(differs);
    Ok(lines)
}

/// Adds lines to lines: one per line item and service period.
///
/// # Errors
/// [`AmountOutOfRange`] when an amount can't be held.
pub fn merge(mut into: Vec<LedgerLine>, lines: Vec<LedgerLine>) -> Result<Vec<LedgerLine>, AmountOutOfRange> {
    for line in lines {
        match into.iter_mut().find(|present| present.key() == line.key()) {
            None => into.push(line),
            Some(present) => {
                present.amount = present.amount.checked_add(line.amount)?;
                present.usage = match (present.usage.take(), line.usage) {
                    (Some(a), Some(b)) => Some(LedgerUsage { quantity: exact_add(a.quantity, b.quantity)?, ..a }),
                    (a, b) => a.or(b),
                };
            }
        }
    }
    Ok(into)
}

/// The same lines for the other kind.
///
/// # Errors
/// [`AmountOutOfRange`] when an amount can't be held.
pub fn negated(lines: Vec<LedgerLine>) -> Result<Vec<LedgerLine>, AmountOutOfRange> {
    let negate = |line: LedgerLine| {
        let amount = Money::zero(line.amount.currency()).checked_sub(line.amount)?;
        let usage = line.usage.map(|usage| LedgerUsage { quantity: -usage.quantity, ..usage });
        Ok(LedgerLine { amount, usage, ..line })
    };
    lines.into_iter().map(negate).collect()
}
