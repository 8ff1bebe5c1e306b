//! Every invariant of a book (billing rules 2, 5, 7). The laws of amounts are asserted after each decision, `verify` asserts all of
//! them of every book.

use std::collections::BTreeSet;

use chrono::NaiveDate;

use crate::document::lines::{BillWith, FamilySums, LedgerLine, SumKey, sign};
use crate::document::linking::{BillingSlot, part_in};
use crate::document::{BookDocument, DocumentHead, LifecycleStatus, Purpose};
use crate::money::Money;
use crate::refs::{DocumentRef, ProductNo};
use crate::refusal::Refusal;

use super::{ContractBook, Entry};

/// What is wrong with a book, in a sentence each.
///
/// # Errors
/// [`Refusal::AmountOutOfRange`] or [`Refusal::Broken`] where the book can't even be read.
pub fn check(book: &ContractBook) -> Result<Vec<String>, Refusal> {
    let mut found = Vec::new();
    check_places(book, &mut found);
    check_plans(book, &mut found);
    check_charges(book, &mut found);
    let mut periods: BTreeSet<(ProductNo, NaiveDate)> = book.documented().periods().collect();
    for document in book.documents().filter(|document| document.status.is_issued()) {
        periods.extend(billed_periods(book, &document.head));
    }
    check_lines(book, &periods, &mut found)?;
    for (family, sums) in book.sums() {
        check_sums(book, family, sums, &mut found)?;
    }
    for draft in book.documents().filter(|document| document.status == LifecycleStatus::Draft) {
        if !book.content(draft.head.document_ref)?.adds_up() {
            found.push(format!("{}: its totals are not the sums of its lines", draft.head.number));
        }
    }
    Ok(found)
}

/// Refuses what was decided since it was asked last, where it breaks a law of rules 5 in a service period or a family that it
/// concerns: a defect, which is never billed.
///
/// # Errors
/// [`Refusal::Broken`] with what is wrong.
pub(super) fn require_lawful(book: &mut ContractBook) -> Result<(), Refusal> {
    let mut periods: BTreeSet<(ProductNo, NaiveDate)> = BTreeSet::new();
    let mut families: BTreeSet<DocumentRef> = BTreeSet::new();
    for entry in book.unchecked_entries() {
        match entry {
            Entry::Lines { document_ref, .. } | Entry::Issued { document_ref, .. } | Entry::Voided { document_ref, .. } => {
                let document = book.require_document(*document_ref)?;
                families.insert(document.family);
                periods.extend(book.lines_of(*document_ref).iter().map(|line| (line.key.product_no, line.key.period_start)));
                periods.extend(billed_periods(book, &document.head));
            }
            Entry::UsageMoved { key, .. } => {
                periods.insert((key.product_no, key.period_start));
            }
            Entry::Charged { charge, .. } => {
                let period = book.product(charge.product_no)?.period_at(charge.date);
                periods.extend(period.map(|period| (charge.product_no, period.start())));
            }
            Entry::Amended(_)
            | Entry::Opened { .. }
            | Entry::Redrawn(_)
            | Entry::Discarded { .. }
            | Entry::EventsMoved { .. }
            | Entry::Due(_) => {}
        }
    }
    let mut found = Vec::new();
    check_lines(book, &periods, &mut found)?;
    for family in families {
        check_sums(book, family, &book.sums_of(family), &mut found)?;
    }
    if !found.is_empty() {
        return Err(Refusal::Broken(format!("contract {}: {}", book.contract.contract_ref, found.join("; "))));
    }
    book.note_checked();
    Ok(())
}

/// The service periods that a period's own document bills by the plan.
fn billed_periods(book: &ContractBook, head: &DocumentHead) -> Vec<(ProductNo, NaiveDate)> {
    let Purpose::Regular(slot) = head.purpose else { return Vec::new() };
    let part_of = |no: &ProductNo| {
        let place = BillingSlot { product_no: *no, period_start: head.period.start(), slot };
        part_in(book.contract.product(*no)?, place)
    };
    let parts = head.parts.iter().filter_map(part_of);
    parts.flat_map(|part| [part.fixed, part.usage]).flatten().map(|period| (period.product_no, period.start())).collect()
}

/// A place has one document in force, and a draft stands in places that the plan has.
fn check_places(book: &ContractBook, found: &mut Vec<String>) {
    let mut seen: Vec<BillingSlot> = Vec::new();
    for document in book.documents().filter(|document| !document.status.is_void()) {
        let head = &document.head;
        let Purpose::Regular(slot) = head.purpose else {
            if head.parent.is_none() {
                found.push(format!("{}: it has no parent", head.number));
            }
            continue;
        };
        for no in &head.parts {
            let place = BillingSlot { product_no: *no, period_start: head.period.start(), slot };
            if seen.contains(&place) {
                found.push(format!(
                    "{}: another document in force bills product {} from {}",
                    head.number, no.0, place.period_start
                ));
            }
            seen.push(place);
            let part = book.contract.product(*no).and_then(|product| part_in(product, place));
            if document.status == LifecycleStatus::Draft && part.is_none_or(|part| part.own.days() != head.period) {
                found.push(format!("{}: product {} has no such period", head.number, no.0));
            }
        }
    }
}

/// The days of a product are planned once, and no pricing twice on one day (billing rules 1, 7).
fn check_plans(book: &ContractBook, found: &mut Vec<String>) {
    let products = &book.contract.products;
    for (i, product) in products.iter().enumerate() {
        let plan = product.plan();
        if plan.windows(2).any(|pair| pair[1].days.start() < pair[0].days.end()) {
            found.push(format!("product {}: its plan overlaps itself", product.no.0));
        }
        for other in &products[..i] {
            let twice = other.plan().iter().any(|theirs| {
                plan.iter().any(|own| {
                    own.terms.pricing.pricing_ref == theirs.terms.pricing.pricing_ref
                        && own.days.intersection(theirs.days).is_some()
                })
            });
            if twice {
                found.push(format!("products {} and {}: one pricing on the same days", other.no.0, product.no.0));
            }
        }
    }
}

/// A charge that counts has a period, in its currency (billing rules 7).
fn check_charges(book: &ContractBook, found: &mut Vec<String>) {
    for charge in book.charges().live() {
        let period = book.contract.product(charge.product_no).and_then(|product| product.period_at(charge.date));
        if period.is_none_or(|period| period.terms.pricing.currency != charge.currency) {
            found.push(format!("charge {}: no period of product {} bills it", charge.charge_ref, charge.product_no.0));
        }
    }
}

/// Lines and rates (billing rules 5): nothing stands at a discount or a tax that isn't in force; what is billed of a period whose
/// document is issued is its price, of one whose document is open no more than that, and of one that is planned no more nothing.
fn check_lines(book: &ContractBook, periods: &BTreeSet<(ProductNo, NaiveDate)>, found: &mut Vec<String>) -> Result<(), Refusal> {
    for (no, start) in periods {
        let Some(period) = book.product(*no)?.period_from(*start) else {
            for (key, minor) in book.documented().of_period(*no, *start) {
                found.push(format!("product {}, {:?}, from {start}: {minor} are billed of what isn't planned", no.0, key.line));
            }
            continue;
        };
        let unbilled = book.unbilled(&period, &book.price_of(&period)?, false)?;
        for (key, minor) in &unbilled.misrated {
            found.push(format!(
                "product {}, {:?}, from {start}: {minor} stand at {:?}, which isn't in force",
                no.0, key.line.line_item_id, key.rates
            ));
        }
        for line in &unbilled.lines {
            let rest = line.rest()?.minor();
            let is_issued = book.is_billed(&period, line.line.bill_with);
            let is_above = line.billed.iter().map(|(_, minor)| minor).sum::<i64>() > 0 && rest < 0;
            if (is_issued && rest != 0) || is_above {
                let with = if line.line.bill_with == BillWith::Fixed { "fixed items" } else { "usage" };
                found.push(format!(
                    "product {}, {:?} of the {with}, from {start}: {rest} minor units of the price are not billed",
                    no.0, line.line.line_item_id
                ));
            }
        }
    }
    Ok(())
}

/// Discount and tax (billing rules 5): of a family what its rates make of its sums.
fn check_sums(book: &ContractBook, family: DocumentRef, sums: &FamilySums, found: &mut Vec<String>) -> Result<(), Refusal> {
    let Some(root) = book.document(family) else {
        found.push(format!("family {family} has sums and no document"));
        return Ok(());
    };
    let currency = root.head.currency;
    // Once a document is void a family may be a cent off: the step of what replaces it at the same rates mends that.
    let is_at = |line: &LedgerLine, key: &SumKey| match key {
        SumKey::Discount(no, rates) => line.key.product_no == *no && line.rates == *rates,
        SumKey::Tax(treatment) => line.rates.tax == *treatment,
    };
    let is_mended = |void: &BookDocument, key: &SumKey| {
        let mut replacements = book.documents().filter(|other| other.head.replaces == Some(void.head.document_ref));
        replacements.any(|other| {
            let lines = book.lines_of(other.head.document_ref);
            other.status.is_issued() && lines.iter().any(|line| is_at(line, key))
        })
    };
    let void: Vec<&BookDocument> =
        book.documents().filter(|it| it.family == family && it.status == LifecycleStatus::Void).collect();
    for (key, sum) in sums.iter() {
        let right = Money::from_minor(sum.base, currency).percent(key.rate())?.minor();
        if right != sum.amount && void.iter().all(|void| is_mended(void, key)) {
            found.push(format!("{}: {key:?} of {} is {}, not {right}", root.head.number, sum.base, sum.amount));
        }
    }
    let lines: i64 = book.documented().iter().filter(|(key, _)| key.family == family).map(|(_, minor)| minor).sum();
    let open: i64 = book
        .documents()
        .filter(|document| document.family == family && document.status == LifecycleStatus::Draft)
        .filter(|document| !matches!(document.head.purpose, Purpose::Regular(_)))
        .map(|document| {
            let lines = book.lines_of(document.head.document_ref);
            sign(document.head.kind) * lines.iter().map(|line| line.amount.minor()).sum::<i64>()
        })
        .sum();
    let discounted: i64 = sums.iter().filter(|(key, _)| matches!(key, SumKey::Discount(..))).map(|(_, sum)| sum.base).sum();
    if lines - open != discounted {
        found.push(format!("{}: its family's lines make {}, its sums {discounted}", root.head.number, lines - open));
    }
    Ok(())
}
