//! The invariants of a book (billing rules 2, 5, 7). Each decision asserts the amount invariants; `verify` asserts all
//! invariants of every book.

use std::collections::{BTreeMap, BTreeSet};

use chrono::NaiveDate;

use crate::document::lines::{BillWith, FamilySums, LedgerLine, SumKey, sign};
use crate::document::linking::{BillingSlot, part_in};
use crate::document::{BookDocument, DocumentHead, LifecycleStatus, Purpose};
use crate::money::{AmountOutOfRange, Money};
use crate::refs::{DocumentRef, ProductNo};
use crate::refusal::Refusal;
use crate::tax::TaxTreatment;

use super::{ContractBook, Entry};

/// Returns the invariant violations of a book, one sentence each.
///
/// # Errors
/// Returns [`Refusal::AmountOutOfRange`] or [`Refusal::Broken`] when the book can't be evaluated.
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
    for (draft, content) in book.draft_contents()? {
        if !content.adds_up() {
            found.push(format!("{}: its totals are not the sums of its lines", draft.head.number));
        }
    }
    Ok(found)
}

/// Checks the amount invariants of billing rules 5 in the service periods and families that changed since the last check. A
/// violation is a defect, and the decision is refused so that it is never billed.
///
/// # Errors
/// Returns [`Refusal::Broken`] with the violations.
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

/// Returns the service periods that a regular document bills according to the plan.
fn billed_periods(book: &ContractBook, head: &DocumentHead) -> Vec<(ProductNo, NaiveDate)> {
    let Purpose::Regular(kind) = head.purpose else { return Vec::new() };
    let part_of = |no: &ProductNo| {
        let slot = BillingSlot { product_no: *no, period_start: head.period.start(), kind };
        part_in(book.contract.product(*no)?, slot)
    };
    let parts = head.parts.iter().filter_map(part_of);
    parts.flat_map(|part| [part.fixed, part.usage]).flatten().map(|period| (period.product_no, period.start())).collect()
}

/// Checks that a slot has at most one document in force, and that drafts occupy only planned slots.
fn check_places(book: &ContractBook, found: &mut Vec<String>) {
    let mut seen: Vec<BillingSlot> = Vec::new();
    for document in book.documents().filter(|document| !document.status.is_void()) {
        let head = &document.head;
        let Purpose::Regular(kind) = head.purpose else {
            if head.parent.is_none() {
                found.push(format!("{}: it has no parent", head.number));
            }
            continue;
        };
        for no in &head.parts {
            let slot = BillingSlot { product_no: *no, period_start: head.period.start(), kind };
            if seen.contains(&slot) {
                found.push(format!(
                    "{}: another document in force bills product {} from {}",
                    head.number, no.0, slot.period_start
                ));
            }
            seen.push(slot);
            let part = book.contract.product(*no).and_then(|product| part_in(product, slot));
            if document.status == LifecycleStatus::Draft && part.is_none_or(|part| part.own.days() != head.period) {
                found.push(format!("{}: product {} has no such period", head.number, no.0));
            }
        }
    }
}

/// Checks that a product plans each day once, and that no pricing applies twice on one day (billing rules 1, 7).
fn check_plans(book: &ContractBook, found: &mut Vec<String>) {
    let products = &book.contract.products;
    for (i, product) in products.iter().enumerate() {
        let plan = product.plan();
        if plan.windows(2).any(|pair| pair[1].days.start() < pair[0].days.end()) {
            found.push(format!("product {}: its plan overlaps itself", product.no.0));
        }
        for other in &products[..i] {
            if other.bills_twice_with(product) {
                found.push(format!("products {} and {}: one pricing on the same days", other.no.0, product.no.0));
            }
        }
    }
}

/// Checks that a charge that isn't deleted has a period in its currency (billing rules 7).
fn check_charges(book: &ContractBook, found: &mut Vec<String>) {
    for charge in book.charges().live() {
        let period = book.contract.product(charge.product_no).and_then(|product| product.period_at(charge.date));
        if period.is_none_or(|period| period.terms.pricing.currency != charge.currency) {
            found.push(format!("charge {}: no period of product {} bills it", charge.charge_ref, charge.product_no.0));
        }
    }
}

/// Checks lines and rates (billing rules 5):
/// - No amount has a discount or tax that isn't in force.
/// - A period whose document is issued is billed at its price.
/// - A period whose document is open is billed at most at its price.
/// - A period that is no longer planned has no billed amounts.
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

/// Checks that a family's discount and tax equal the rates applied to its sums, and its credit (billing rules 5, 12).
fn check_sums(book: &ContractBook, family: DocumentRef, sums: &FamilySums, found: &mut Vec<String>) -> Result<(), Refusal> {
    let Some(root) = book.document(family) else {
        found.push(format!("family {family} has sums and no document"));
        return Ok(());
    };
    let currency = root.head.currency;
    // After a void, a family may be off by a cent. The replacement at the same rates corrects the difference.
    let is_at = |line: &LedgerLine, key: &SumKey| match key {
        SumKey::Discount(no, rates) => line.key.product_no == *no && line.rates == *rates,
        SumKey::Tax(treatment) | SumKey::Prepaid(treatment, _) => line.rates.tax == *treatment,
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
        let Some(rate) = key.rate() else { continue };
        let right = Money::from_minor(sum.base, currency).percent(rate)?.minor();
        if right != sum.amount && void.iter().all(|void| is_mended(void, key)) {
            found.push(format!("{}: {key:?} of {} is {}, not {right}", root.head.number, sum.base, sum.amount));
        }
    }
    check_credit(&root.head, sums, found)?;
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

/// Checks that a family has taken credit of at most its net amounts, and that tax is due on the rest (billing rules 12).
fn check_credit(root: &DocumentHead, sums: &FamilySums, found: &mut Vec<String>) -> Result<(), Refusal> {
    if sums.prepaid().next().is_none() {
        return Ok(());
    }
    if !sums.is_credit_lawful()? {
        found.push(format!("{}: its family's credit is below zero or above its net amounts: {sums:?}", root.number));
    }
    let mut nets: BTreeMap<&TaxTreatment, i64> = BTreeMap::new();
    for (key, sum) in sums.iter() {
        let (treatment, net) = match key {
            SumKey::Discount(_, rates) => (&rates.tax, sum.base.checked_sub(sum.amount)),
            SumKey::Tax(treatment) => (treatment, sum.base.checked_neg()),
            SumKey::Prepaid(treatment, _) => (treatment, sum.amount.checked_neg()),
        };
        let of_treatment = nets.entry(treatment).or_default();
        *of_treatment = net.and_then(|net| of_treatment.checked_add(net)).ok_or(AmountOutOfRange)?;
    }
    for (treatment, minor) in nets.into_iter().filter(|(_, minor)| *minor != 0) {
        found
            .push(format!("{}: {minor} of its family's net amounts at {treatment:?} are neither taxed nor prepaid", root.number));
    }
    Ok(())
}
