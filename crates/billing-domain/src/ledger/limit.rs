//! The numbers of limits, and the usage that limits reject (billing rules 11).

use std::collections::BTreeMap;

use chrono::NaiveDate;
use rust_decimal::Decimal;

use super::{ContractBook, Entry, IdGenerator, post};
use crate::calendar::{Period, Timestamp};
use crate::contract::ProductPeriod;
use crate::decimal::exact_add;
use crate::document::BookDocument;
use crate::document::lines::signed_amount;
use crate::document::totals::{NetPrice, lines_of_period, usage_key};
use crate::hold::OpenEntry;
use crate::limit::{Limit, LimitMetric, LimitReached, LimitValue};
use crate::money::{Money, MoneySum};
use crate::receivables::AccountKey;
use crate::refs::{LineItemId, ProductNo, UsageProductRef};
use crate::refusal::Refusal;
use crate::usage::{UsageKey, UsageTotal};

/// Returns the service period of a product at an instant, in the time zone of the product's entity. Returns `None` if the contract
/// bills no such period.
///
/// # Errors
/// Returns [`Refusal::Broken`] when the book lacks the entity.
pub fn window_at(book: &ContractBook, product_no: ProductNo, now: Timestamp) -> Result<Option<Period>, Refusal> {
    let product = book.contract.product(product_no);
    let Some((product, terms)) = product.and_then(|product| Some((product, product.newest_terms()?))) else { return Ok(None) };
    Ok(product.period_at(book.today(terms, now)?).map(|period| period.days()))
}

/// Returns what a book adds to the number of a limit, in units of its metric. It adds nothing to free credit, which all books of the
/// customer share. `period_start` is the first day of the service period,
/// which the number of a service period needs.
///
/// # Errors
/// Returns [`Refusal::AmountOutOfRange`], or [`Refusal::Broken`] when the book lacks a required row.
pub fn added_to_number(book: &ContractBook, limit: &Limit, period_start: Option<NaiveDate>) -> Result<Decimal, Refusal> {
    let of_book = limit.metric.product().filter(|(contract_ref, _)| *contract_ref == book.contract.contract_ref);
    let period = of_book.zip(period_start).and_then(|((_, product_no), start)| book.contract.period_from(product_no, start));
    match (&limit.metric, period) {
        (LimitMetric::Owed { entity_ref, currency }, _) => {
            let account = AccountKey { customer_id: limit.customer_id, entity_ref: entity_ref.clone(), currency: *currency };
            Ok(added_to_account(book, &account)?.to_decimal())
        }
        (LimitMetric::Spend { currency, .. }, Some(period)) if period.terms.pricing.currency == *currency => {
            Ok(price_of(book, &period)?.to_decimal())
        }
        (LimitMetric::Quantity { usage_product_ref, line_item_id, .. }, Some(period)) => {
            quantity_of(book, &period, usage_product_ref, line_item_id.as_ref())
        }
        _ => Ok(limit.metric.zero()),
    }
}

/// Returns the price of a service period after the discount and before tax, on all documents.
fn price_of(book: &ContractBook, period: &ProductPeriod<'_>) -> Result<Money, Refusal> {
    let lines = lines_of_period(&book.contract, period, period.terms.line_items.iter(), (book.usage(), book.charges()))?;
    Ok(NetPrice::of(&lines, period, book.charges())?.amount()?)
}

/// Returns the quantity that a line item rates in a service period. Without a line item, all running totals of the usage product
/// count, in the aggregation of its first line item.
fn quantity_of(
    book: &ContractBook,
    period: &ProductPeriod<'_>,
    usage_product_ref: &UsageProductRef,
    line_item_id: Option<&LineItemId>,
) -> Result<Decimal, Refusal> {
    let contract_ref = book.contract.contract_ref;
    let mut items = period.terms.metering(usage_product_ref);
    let Some((item, metered)) = items.find(|(item, _)| line_item_id.is_none_or(|id| item.id == *id)) else {
        return Ok(Decimal::ZERO);
    };
    let total = match line_item_id {
        Some(_) => book.usage().of_line_item(contract_ref, period, (item, metered))?,
        None => book.usage().joined(&usage_key(contract_ref, period, usage_product_ref))?,
    };
    Ok(total.quantity(metered.aggregation))
}

/// Returns what a book adds to the amount owed in an account, beyond the stored amounts that are due, written off or unapplied:
/// the totals of its drafts, and of the documents that decisions issued or voided since the book was loaded. Credits count
/// below zero.
///
/// # Errors
/// Returns [`Refusal::AmountOutOfRange`], or [`Refusal::Broken`] when the book lacks a required row.
pub(crate) fn added_to_account(book: &ContractBook, account: &AccountKey) -> Result<MoneySum, Refusal> {
    let mut sum = MoneySum::zero(account.currency);
    // What a sale of credit owes is owed for the credit, which covers nothing until then.
    let counts = |document: &BookDocument| AccountKey::of(document) == *account && !book.is_sale(document.family);
    for (draft, content) in book.draft_contents()? {
        if counts(draft) {
            sum = sum.checked_add(signed_amount(draft.head.kind, content.total)?)?;
        }
    }
    for entry in book.entries() {
        let (document_ref, content, is_void) = match entry {
            Entry::Issued { document_ref, issued, .. } => (*document_ref, &issued.content, false),
            Entry::Voided { document_ref, content, .. } => (*document_ref, &**content, true),
            _ => continue,
        };
        let document = book.require_document(document_ref)?;
        if counts(document) {
            let total = signed_amount(document.head.kind, content.total)?;
            sum = if is_void { sum.checked_sub(total)? } else { sum.checked_add(total)? };
        }
    }
    Ok(sum)
}

/// Returns whether a book that has not all rows shows what open entries of holds would change.
///
/// # Errors
/// Returns [`Refusal::Broken`] when the book lacks a required row.
pub fn has_rows_of_held<'e>(book: &ContractBook, entries: impl IntoIterator<Item = &'e OpenEntry>) -> Result<bool, Refusal> {
    for entry in entries {
        let period = book.contract.period_of(&entry.key);
        if let Some(period) = period
            && !post::only_extends_draft(book, &period)?
        {
            return Ok(false);
        }
    }
    Ok(true)
}

/// Returns a copy of a book in which open entries of holds are usage.
///
/// # Errors
/// Returns the errors of [`post_held`](post::post_held).
pub fn with_held<'e>(
    book: &ContractBook,
    entries: impl IntoIterator<Item = &'e OpenEntry>,
    now: Timestamp,
    ids: &mut impl IdGenerator,
) -> Result<ContractBook, Refusal> {
    let mut totals: BTreeMap<&UsageKey, UsageTotal> = BTreeMap::new();
    for entry in entries {
        let total = totals.entry(&entry.key).or_insert(UsageTotal::ZERO);
        *total = total.plus(entry.counted())?;
    }
    let mut copy = book.clone();
    for (key, held) in totals {
        post::post_held(&mut copy, key, held, now, ids)?;
    }
    Ok(copy)
}

/// Judges usage by the numbers of limits without it and with it, in the same order. Open holds count.
///
/// # Errors
/// Returns [`Refusal::LimitReached`] for the first number that the usage raises and leaves above its maximum, or
/// [`Refusal::AmountOutOfRange`] on overflow.
pub fn judge(before: &[LimitValue], after: &[LimitValue]) -> Result<(), Refusal> {
    for (before, after) in before.iter().zip(after) {
        let Limit { limit_ref, metric, levels, .. } = &after.limit;
        let needed = exact_add(after.judged()?, -before.judged()?)?;
        if let Some(max) = levels.max.filter(|max| needed > Decimal::ZERO && after.judged().is_ok_and(|judged| judged > *max)) {
            let (limit_ref, metric, value, held) = (*limit_ref, metric.kind(), before.value, before.held);
            let reached = LimitReached { limit_ref, metric, max, value, held, needed };
            return Err(Refusal::LimitReached(Box::new(reached)));
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use rust_decimal::Decimal;
    use uuid::Uuid;

    use super::*;
    use crate::calendar::Timestamp;
    use crate::limit::{LimitCredit, LimitLevels, ReachedLevels};
    use crate::money::Currency;
    use crate::refs::{CustomerId, EntityRef, LimitRef};

    fn values(numbers: &[(i64, i64)]) -> Vec<LimitValue> {
        let limit = |number: usize, max: i64| Limit {
            limit_ref: LimitRef::from_uuid(Uuid::from_u128(number as u128)),
            customer_id: CustomerId::from_uuid(Uuid::nil()),
            metric: LimitMetric::Owed {
                entity_ref: EntityRef::parse("main").expect("a reference"),
                currency: Currency::from_code("EUR").expect("a currency"),
            },
            levels: LimitLevels { max: Some(Decimal::new(max, 2)), thresholds: Vec::new() },
            reached: ReachedLevels::default(),
            notifications: 0,
            created_at: Timestamp::parse("2026-01-10T12:00:00Z").expect("an instant"),
            updated_at: Timestamp::parse("2026-01-10T12:00:00Z").expect("an instant"),
        };
        let value = |(number, (value, max)): (usize, &(i64, i64))| {
            LimitValue::new(limit(number, *max), (None, true), (Decimal::new(*value, 2), Decimal::ZERO)).expect("a small number")
        };
        numbers.iter().enumerate().map(value).collect()
    }

    #[test]
    fn usage_that_raises_a_number_above_its_maximum_is_rejected() {
        // Before, after and max, and whether the usage is accepted.
        for (before, after, max, accepted) in [
            (0, 1_000, 1_000, true),
            (0, 1_001, 1_000, false),
            (1_000, 1_001, 1_000, false),
            // A number above its maximum stops what raises it, and nothing else.
            (1_200, 1_200, 1_000, true),
            (1_200, 1_100, 1_000, true),
            (-500, 0, 0, true),
            (-4, 2, 0, false),
        ] {
            let judged = judge(&values(&[(before, max)]), &values(&[(after, max)]));
            assert_eq!(judged.is_ok(), accepted, "{before} {after} {max}");
            if let Err(Refusal::LimitReached(reached)) = judged {
                assert_eq!((reached.value, reached.needed), (Decimal::new(before, 2), Decimal::new(after - before, 2)));
            }
        }
    }

    #[test]
    fn all_limits_must_allow_and_the_first_that_does_not_is_named() {
        let (before, after) = (values(&[(0, 100), (0, 50), (0, 40)]), values(&[(60, 100), (60, 50), (60, 40)]));
        let judged = judge(&before, &after);
        let Err(Refusal::LimitReached(reached)) = judged else { panic!("accepted: {judged:?}") };
        assert_eq!(reached.limit_ref, after[1].limit.limit_ref);
        assert_eq!(judge(&before, &values(&[(40, 100), (40, 50), (40, 40)])), Ok(()));
    }

    #[test]
    fn what_is_left_is_never_below_zero() {
        for (value, max, left, above) in
            [(999, 1_000, "0.01", "0.00"), (1_000, 1_000, "0.00", "0.00"), (1_150, 1_000, "0.00", "1.50")]
        {
            let number = &values(&[(value, max)])[0];
            let found = (number.left.map(|left| left.to_string()), number.above.to_string());
            assert_eq!(found, (Some(left.to_owned()), above.to_owned()));
        }
    }

    #[test]
    fn free_credit_adds_to_what_is_left_and_not_to_the_number() {
        // What is owed, free credit, what holds take of it, and max, and what is left.
        for (value, free, taken, max, left) in [
            (0, 9_800, 0, 0, "98.00"),
            (0, 9_800, 9_700, 0, "1.00"),
            (144, 0, 0, 0, "0.00"),
            (144, 100, 0, 0, "0.00"),
            (500, 250, 0, 1_000, "7.50"),
        ] {
            let credit = LimitCredit { free: Decimal::new(free, 2), held: Decimal::new(taken, 2) };
            let number = values(&[(value, max)]).remove(0).with_credit(credit).expect("a small number");
            assert_eq!(number.left.map(|left| left.to_string()).as_deref(), Some(left), "{value} {credit:?} {max}");
            assert_eq!(number.less_credit(), Ok(Decimal::new(value - free, 2)));
        }
    }

    #[test]
    fn a_hold_takes_credit_before_it_adds_to_the_number() {
        let credit = |free, held| LimitCredit { free: Decimal::new(free, 2), held: Decimal::new(held, 2) };
        // 1.00 is free. Usage of 1.50 takes it, and 0.60 is owed with tax.
        let number = values(&[(0, 500)]).remove(0).with_credit(credit(100, 0)).expect("a small number");
        let judged = values(&[(60, 500)]).remove(0).with_credit(credit(0, 0)).expect("a small number");
        let held = number.with_usage_held(&judged).expect("a small number");
        assert_eq!((held.value, held.held, held.credit), (Decimal::new(0, 2), Decimal::new(60, 2), credit(100, 100)));
        assert_eq!(held.left, Some(Decimal::new(440, 2)));
    }
}
