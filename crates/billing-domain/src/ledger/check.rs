//! Every invariant of a book (billing rules 2, 5, 7): what tests hold after each decision and `verify` holds of all.

use crate::calendar::Timestamp;
use crate::document::lines::{BillWith, BilledKey, LineKey, Rates, SumKey, sign};
use crate::document::linking::{Place, part_in};
use crate::document::{BookDocument, Purpose, Standing};
use crate::money::Money;
use crate::refusal::Refusal;

use super::ContractBook;
use super::issue::due_documents;

/// What is wrong with a book, in a sentence each.
///
/// # Errors
/// [`Refusal::AmountOutOfRange`] or [`Refusal::Broken`] where the book can't even be read.
pub fn check(book: &ContractBook) -> Result<Vec<String>, Refusal> {
    let mut found = Vec::new();
    check_places(book, &mut found);
    check_plans(book, &mut found);
    check_charges(book, &mut found);
    check_lines(book, &mut found)?;
    check_sums(book, &mut found)?;
    for draft in book.documents().filter(|document| document.standing == Standing::Draft) {
        if !book.content(draft.head.document_ref)?.adds_up() {
            found.push(format!("{}: its totals are not the sums of its lines", draft.head.number));
        }
    }
    Ok(found)
}

/// What is due at an instant and has no document, in a sentence each: what a billing run just before leaves none of.
///
/// # Errors
/// As [`check`].
pub fn check_due(book: &ContractBook, now: Timestamp) -> Result<Vec<String>, Refusal> {
    let unissued = due_documents(book, now, usize::MAX)?.into_iter().filter(|(_, place)| book.in_place(*place).is_none());
    Ok(unissued
        .map(|(due_at, place)| {
            format!(
                "product {}: the period from {} is due since {due_at} and has no document",
                place.product_no.0, place.period_start
            )
        })
        .collect())
}

/// A place has one document in force, and a draft stands in places that the plan has.
fn check_places(book: &ContractBook, found: &mut Vec<String>) {
    let mut seen: Vec<Place> = Vec::new();
    for document in book.documents().filter(|document| !document.standing.is_void()) {
        let head = &document.head;
        let Purpose::Regular(slot) = head.purpose else {
            if head.parent.is_none() {
                found.push(format!("{}: it has no parent", head.number));
            }
            continue;
        };
        for no in &head.parts {
            let place = Place { product_no: *no, period_start: head.period.start(), slot };
            if seen.contains(&place) {
                found.push(format!(
                    "{}: another document in force bills product {} from {}",
                    head.number, no.0, place.period_start
                ));
            }
            seen.push(place);
            let part = book.contract.product(*no).and_then(|product| part_in(product, place));
            if document.standing == Standing::Draft && part.is_none_or(|part| part.own.days() != head.period) {
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

/// Lines and rates (billing rules 5): what is billed of a period whose document is issued is its price, at the rates in
/// force; of one that is planned no more, nothing.
fn check_lines(book: &ContractBook, found: &mut Vec<String>) -> Result<(), Refusal> {
    let mut periods: Vec<_> = book.documented().iter().map(|(key, _)| (key.line.product_no, key.line.period_start)).collect();
    for document in book.documents().filter(|document| document.standing.is_issued()) {
        if let Purpose::Regular(slot) = document.head.purpose {
            for no in &document.head.parts {
                let place = Place { product_no: *no, period_start: document.head.period.start(), slot };
                let part = book.contract.product(*no).and_then(|product| part_in(product, place));
                let billed = part.into_iter().flat_map(|part| [part.fixed, part.usage]).flatten();
                periods.extend(billed.map(|period| (*no, period.start())));
            }
        }
    }
    periods.sort();
    periods.dedup();
    for (no, start) in periods {
        let period = book.product(no)?.period_from(start);
        for with in [BillWith::Fixed, BillWith::Usage] {
            let home = period.and_then(|period| book.home(&period, with));
            let is_issued = home.is_some_and(|home| home.standing.is_issued());
            let stands_right = |key: &BilledKey| period.is_some_and(|period| book.stands_right(key, period.terms));
            let mut missing: Vec<(LineKey, Rates, i64)> = Vec::new();
            if let Some(period) = period.filter(|_| is_issued) {
                let family = home.map(|home| home.family);
                let of_account = book.price_of(&period)?.into_iter().filter(|line| line.bill_with == with);
                missing.extend(of_account.map(|line| {
                    let rates = book.rates_of(line.line_item_id.as_ref(), period.terms, family);
                    (line.key(no), rates, line.amount.minor())
                }));
            }
            for (key, minor) in book.documented().of_period(no, start).filter(|(key, _)| key.line.bill_with == with) {
                let is_right = stands_right(key);
                if is_right && !is_issued {
                    // The period's own draft bills the rest.
                    continue;
                }
                let same = |entry: &&mut (LineKey, Rates, i64)| entry.0 == key.line && (is_right || entry.1 == key.rates);
                match missing.iter_mut().find(same) {
                    Some(entry) => entry.2 -= minor,
                    None => missing.push((key.line.clone(), key.rates, -minor)),
                }
            }
            for (key, rates, minor) in missing.into_iter().filter(|(_, _, minor)| *minor != 0) {
                found.push(format!(
                    "product {}, {:?}, period from {start}, at {} % discount and {} % tax: {minor} minor units are not documented",
                    no.0,
                    key.line_item_id,
                    rates.discount.as_decimal(),
                    rates.tax.as_decimal()
                ));
            }
        }
    }
    Ok(())
}

/// Discount and tax (billing rules 5): of each family what its rates make of its sums.
fn check_sums(book: &ContractBook, found: &mut Vec<String>) -> Result<(), Refusal> {
    for (family, sums) in book.sums() {
        let Some(root) = book.document(family) else {
            found.push(format!("family {family} has sums and no document"));
            continue;
        };
        let currency = root.head.currency;
        // Between a void document and what replaces it a family may be a cent off: the replacement's step mends it.
        let waits = |void: &&BookDocument| {
            void.family == family
                && void.standing == Standing::Void
                && !book
                    .documents()
                    .any(|other| other.head.replaces == Some(void.head.document_ref) && other.standing.is_issued())
        };
        let is_exact = book.documents().find(waits).is_none();
        for (key, sum) in sums.iter() {
            let (what, rate) = match key {
                SumKey::Discount(no, rates) => (format!("discount of product {}", no.0), rates.discount),
                SumKey::Tax(rate) => ("tax".to_owned(), rate),
            };
            let right = Money::from_minor(sum.base, currency).percent(rate)?.minor();
            if right != sum.amount && is_exact {
                let detail = format!("{what} at {} % of {} is {}, not {right}", rate.as_decimal(), sum.base, sum.amount);
                found.push(format!("{}: {detail}", root.head.number));
            }
        }
        let lines: i64 = book.documented().iter().filter(|(key, _)| key.family == family).map(|(_, minor)| minor).sum();
        let open: i64 = book
            .documents()
            .filter(|document| document.family == family && document.standing == Standing::Draft)
            .filter(|document| !matches!(document.head.purpose, Purpose::Regular(_)))
            .map(|document| {
                let lines = book.lines_on(document.head.document_ref);
                sign(document.head.kind) * lines.iter().map(|line| line.amount.minor()).sum::<i64>()
            })
            .sum();
        let discounted: i64 = sums.iter().filter(|(key, _)| matches!(key, SumKey::Discount(..))).map(|(_, sum)| sum.base).sum();
        if lines - open != discounted {
            found.push(format!("{}: its family's lines make {}, its sums {discounted}", root.head.number, lines - open));
        }
    }
    Ok(())
}
