//! The limit of a period's price when a contract changes (billing rules 6).

use std::collections::BTreeSet;

use chrono::NaiveDate;

use super::ContractBook;
use super::reconcile::{MAX_PERIOD_MINOR, require_in_range};
use crate::contract::amendment::Amendment;
use crate::contract::terms::{ProductTerms, SelectedCharge};
use crate::contract::{Contract, ContractProduct};
use crate::document::totals::{UsageTotals, lines_of_period};
use crate::money::{AmountOutOfRange, DayShare};
use crate::quantity::Quantity;
use crate::rating::{rate_fixed, rate_prepaid};
use crate::refs::ProductNo;
use crate::refusal::Refusal;

/// Refuses a change that raises the price of a period with usage or charges above the limit for documents (billing rules 6). A
/// price above the limit may stay or decrease.
pub(super) fn require_price_limit_of_periods(
    book: &ContractBook,
    amendment: &Amendment,
    recounted: &UsageTotals,
) -> Result<(), Refusal> {
    let mut usage = book.usage().clone();
    for (key, total) in recounted.iter() {
        usage.put(key.clone(), *total);
    }
    let of_usage = book.usage().iter().filter(|(_, total)| total.events > 0).map(|(key, _)| (key.product_no, key.period_start));
    let of_charges = book.charges().live().map(|charge| (charge.product_no, charge.date));
    let periods: BTreeSet<(ProductNo, NaiveDate)> =
        of_usage.chain(of_charges).filter(|(no, _)| amendment.since.contains_key(no)).collect();
    for (no, day) in periods {
        let price_in = |contract: &Contract, usage: &UsageTotals| {
            let period = contract.product(no).and_then(|product| product.period_at(day));
            let price =
                period.map(|period| lines_of_period(contract, &period, period.terms.line_items.iter(), (usage, book.charges())));
            Ok::<_, Refusal>(price.transpose()?.unwrap_or_default())
        };
        require_in_range(&price_in(&amendment.contract, &usage)?, || price_in(&book.contract, book.usage()))?;
    }
    Ok(())
}

/// Refuses terms that raise the price of a period without usage above the limit for documents (billing rules 6).
pub(super) fn require_price_limit(contract: &Contract, before: Option<&Contract>) -> Result<(), Refusal> {
    let most_of = |product: &ContractProduct| {
        let clips = product.plan().into_iter().map(|clip| most_without_usage(clip.terms));
        clips.collect::<Result<Vec<i128>, Refusal>>().map(|most| most.into_iter().max().unwrap_or(0))
    };
    for product in &contract.products {
        let most = most_of(product)?;
        let was = || before.and_then(|before| before.product(product.no)).map_or(Ok(0), most_of);
        if most > i128::from(MAX_PERIOD_MINOR) && most > was()? {
            return Err(AmountOutOfRange.into());
        }
    }
    Ok(())
}

/// Returns the maximum price of a period without usage, in minor units: the fixed items, each in its largest quantity, and the prepaid
/// quantities.
fn most_without_usage(terms: &ProductTerms) -> Result<i128, Refusal> {
    let (whole, currency) = (DayShare::WHOLE, terms.pricing.currency);
    let mut most: i128 = 0;
    for item in terms.line_items.iter() {
        match &item.charge {
            SelectedCharge::Fixed { price, quantities, .. } => {
                let mut of_item = 0;
                for quantity in quantities.as_slice().iter().map(|step| step.quantity).chain([Quantity::ONE]) {
                    let amount = rate_fixed(price, &[(quantity, whole.days)], whole.of, currency)?;
                    of_item = i128::from(amount.minor()).max(of_item);
                }
                most += of_item;
            }
            SelectedCharge::Usage(metered) => {
                let in_advance = rate_prepaid(metered, whole, currency)?;
                most += in_advance.map_or(0, |rated| i128::from(rated.amount.minor()));
            }
        }
    }
    Ok(most)
}
