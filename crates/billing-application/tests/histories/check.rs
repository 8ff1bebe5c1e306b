//! What must hold after every step, whatever happened before.

use std::collections::{BTreeMap, BTreeSet};

use billing_application::documents::{DocumentView, IssueDates};
use billing_application::verify::verify;
use billing_domain::document::totals::DocumentContent;
use billing_domain::document::{DocumentKind, DocumentState, Purpose};
use billing_domain::refs::DocumentRef;

use crate::conservation::check_conservation;
use crate::model::calendar::{Date, plus, service_date};
use crate::model::rating::percent;
use crate::world::{Checked, World, reference};

/// What was seen of documents before.
#[derive(Clone, Default)]
pub(crate) struct Memory {
    states: BTreeMap<DocumentRef, DocumentState>,
    issued: BTreeMap<DocumentRef, Issued>,
}

/// What an issued document says.
#[derive(Clone, PartialEq, Debug)]
struct Issued {
    content: DocumentContent,
    dates: (Date, Date),
    rest: String,
}

/// Looks at everything, and remembers it.
pub(crate) fn check(world: &mut World) -> Checked {
    let documents = world.bench.documents();
    for document in &documents {
        check_document(world, document, &documents)
            .map_err(|problem| format!("{}: {problem}", document.opened.as_ref().expect("stored").number))?;
    }
    check_numbers(&documents)?;
    remember(world, &documents)?;
    world.documents = documents;
    check_open_documents(world)?;
    check_conservation(world)?;
    check_events(world)?;
    let verification = verify(&world.bench.services).map_err(|error| error.to_string())?;
    match verification.findings.first() {
        Some(finding) => Err(format!("verify: {}: {}", finding.subject, finding.detail)),
        None => Ok(()),
    }
}

pub(crate) fn entity_of(document: &DocumentView) -> usize {
    document.parties.entity_ref.as_str()[1..].parse().expect("the number of an entity")
}

fn ensure(holds: bool, problem: impl FnOnce() -> String) -> Checked {
    if holds { Ok(()) } else { Err(problem()) }
}

/// Hundredths of a percent.
fn rate(rate: billing_domain::money::Percentage) -> u32 {
    let scaled = rate.as_decimal() * rust_decimal::Decimal::ONE_HUNDRED;
    scaled.normalize().to_string().parse().expect("two decimals")
}

/// M1, in whole numbers, and the rules of section 5 on kinds, signs and parents.
fn check_document(world: &World, document: &DocumentView, all: &[DocumentView]) -> Checked {
    adds_up(&document.content)?;
    let opened = document.opened.as_ref().expect("a stored document");
    let parent = opened.parent.as_ref().and_then(|parent| all.iter().find(|other| reference(other) == parent.document_ref));
    let parent_is_invoice = parent.is_some_and(|parent| parent.kind == DocumentKind::Invoice);
    let fits = match (document.purpose, document.kind) {
        (Purpose::Regular(slot), kind) => match kind {
            DocumentKind::Invoice => slot.kind() == kind && parent.is_none(),
            DocumentKind::Debit => slot.kind() == kind && parent_is_invoice,
            DocumentKind::Credit => false,
        },
        (Purpose::Usage, kind) => kind != DocumentKind::Debit && parent_is_invoice,
        (Purpose::Adjustment, kind) => kind != DocumentKind::Invoice && parent_is_invoice,
    };
    ensure(fits, || format!("{:?} {:?} has parent {:?}", document.purpose, document.kind, parent.map(|p| p.kind)))?;
    if document.state != DocumentState::Void {
        ensure(parent.is_none_or(|parent| parent.state != DocumentState::Void), || "its parent is void".to_owned())?;
    }
    if let (Some(IssueDates { issue_date, due_date, .. }), DocumentKind::Credit | DocumentKind::Debit) =
        (document.issued, document.kind)
    {
        ensure(document.content.total.minor() >= 0, || format!("issued at {}", document.content.total))?;
        ensure(issue_date <= due_date, || "due before it was issued".to_owned())?;
    }
    let due = document.content.total.minor() - document.settlement.credits.minor() - document.settlement.paid.minor();
    ensure(document.amount_due.minor() == due, || format!("{} is due", document.amount_due))?;
    if document.state == DocumentState::Draft && parent.is_none() {
        check_rates(world, document)?;
    }
    Ok(())
}

fn adds_up(content: &DocumentContent) -> Checked {
    let (mut sub_total, mut discounts) = (0, 0);
    let mut bases: BTreeMap<u32, i64> = BTreeMap::new();
    for product in &content.products {
        let sum: i64 = product.lines.iter().map(|line| line.amount.minor()).sum();
        let discount = percent(sum, rate(product.discount_rate));
        let right =
            product.sub_total.minor() == sum && product.discount.minor() == discount && product.net.minor() == sum - discount;
        ensure(right, || format!("a product doesn't add up: {product:?}"))?;
        (sub_total, discounts) = (sub_total + sum, discounts + discount);
        *bases.entry(rate(product.tax_rate)).or_default() += sum - discount;
    }
    let taxes: Vec<(u32, i64, i64)> = bases.into_iter().map(|(rate, base)| (rate, base, percent(base, rate))).collect();
    let shown: Vec<_> = content.taxes.iter().map(|tax| (rate(tax.rate), tax.base.minor(), tax.amount.minor())).collect();
    let tax: i64 = taxes.iter().map(|(_, _, amount)| amount).sum();
    let right = shown == taxes
        && content.sub_total.minor() == sub_total
        && content.total_discount.minor() == discounts
        && content.total_tax.minor() == tax
        && content.total.minor() == sub_total - discounts + tax;
    ensure(right, || format!("it doesn't add up: {content:?}"))
}

/// A regular draft has the days and the rates of the terms in force.
fn check_rates(world: &World, document: &DocumentView) -> Checked {
    let contract = world.contract_of(document);
    let contract = &world.model.contracts[contract];
    for billed in &document.content.products {
        let product = contract.products.iter().find(|product| product.no == billed.product_no.0).expect("a product");
        let Some(period) = product.period_at(document.period.start()) else {
            return Err(format!("product {} has no period on {}", product.no, document.period));
        };
        let terms = product.terms_of(period);
        let same = (period.start, period.end) == (document.period.start(), document.period.end());
        ensure(same, || format!("its period is {}, the product's {} to {}", document.period, period.start, period.end))?;
        let rates = (rate(billed.tax_rate), rate(billed.discount_rate));
        ensure(rates == world.model.rates(contract.customer, terms), || format!("its rates are {rates:?}"))?;
    }
    Ok(())
}

/// N1: every series counts from 1, and so does every contract.
fn check_numbers(documents: &[DocumentView]) -> Checked {
    let mut series: BTreeMap<String, Vec<u64>> = BTreeMap::new();
    for document in documents {
        let opened = document.opened.as_ref().expect("a stored document");
        let of_kind = format!("{} {:?}", document.parties.entity_ref, document.kind);
        series.entry(of_kind).or_default().push(opened.number.sequence);
        let of_contract = document.contract_ref.to_string();
        series.entry(of_contract).or_default().push(u64::from(opened.number_in_contract));
    }
    for (name, mut numbers) in series {
        numbers.sort_unstable();
        let gapless = numbers.iter().copied().eq(1..=numbers.len() as u64);
        ensure(gapless, || format!("{name} counts {numbers:?}"))?;
    }
    Ok(())
}

/// N3 and S1: what was issued stays as it is, and states move forward.
fn remember(world: &mut World, documents: &[DocumentView]) -> Checked {
    use DocumentState::{Draft, Issued as Unpaid, Paid, PartiallyPaid, Void};
    let now = world.now();
    for document in documents {
        let opened = document.opened.as_ref().expect("a stored document");
        let (key, number) = (opened.document_ref, &opened.number);
        let before = world.memory.states.insert(key, document.state);
        let forward = match (before, document.state) {
            (None | Some(Draft), _) | (Some(Unpaid), Unpaid | PartiallyPaid | Paid | Void) => true,
            (Some(PartiallyPaid), PartiallyPaid | Paid) | (Some(Paid), Paid) => true,
            // A document of nothing is paid from the beginning, and may be voided.
            (Some(Paid), Void) => document.content.total.minor() <= 0,
            (Some(before), after) => before == after,
        };
        ensure(forward, || format!("{number} went from {before:?} to {:?}", document.state))?;
        let Some(dates) = document.issued else { continue };
        let related = opened.parent.as_ref().map(|parent| parent.document_ref);
        let rest = format!(
            "{number} {:?} {:?} {} {:?} {:?} {:?} {:?} {:?} {related:?} {:?}",
            document.kind,
            document.purpose,
            document.period,
            document.parties,
            document.po_number,
            document.note,
            document.net_terms,
            document.payment,
            opened.replaces,
        );
        let issued = Issued { content: document.content.clone(), dates: (dates.issue_date, dates.due_date), rest };
        match world.memory.issued.get(&key) {
            Some(before) if *before == issued => {}
            Some(before) => return Err(format!("{number} was issued as {before:?} and is {issued:?}")),
            None => {
                let today = service_date(world.model.zone(entity_of(document)), now);
                let due = plus(today, i64::from(document.net_terms.due_after_days()));
                ensure(issued.dates == (today, due), || format!("{number} is dated {:?} on {today}", issued.dates))?;
                world.memory.issued.insert(key, issued);
            }
        }
    }
    Ok(())
}

/// One open adjustment per parent and kind; after a billing run nothing open is due; after a cancel at once
/// nothing is open.
fn check_open_documents(world: &World) -> Checked {
    let mut open = BTreeSet::new();
    for draft in world.documents.iter().filter(|document| document.state == DocumentState::Draft) {
        let opened = draft.opened.as_ref().expect("a stored document");
        let number = &opened.number;
        let zone = world.model.zone(entity_of(draft));
        if world.closed == Some(world.contract_of(draft)) {
            return Err(format!("{number} is open in a contract that is cancelled at once"));
        }
        match draft.purpose {
            Purpose::Usage => return Err(format!("{number} is an open child")),
            Purpose::Adjustment => {
                let parent = opened.parent.as_ref().expect("a parent").document_ref;
                ensure(open.insert((parent, draft.kind)), || format!("{number} is the second open one of its parent"))?;
                if let Some(billed_at) = world.billed_at {
                    let (since, on) = (service_date(zone, opened.created_at), service_date(zone, billed_at));
                    ensure(since >= on, || format!("{number}, open since {since}, wasn't issued on {on}"))?;
                }
            }
            Purpose::Regular(slot) => {
                let contract = &world.model.contracts[world.contract_of(draft)];
                let Some(billed_at) = world.billed_at else { continue };
                for billed in &draft.content.products {
                    let product = contract.products.iter().find(|product| product.no == billed.product_no.0);
                    let product = product.expect("a product");
                    let index = product.periods.iter().position(|period| period.start == draft.period.start());
                    let due_at = world.model.due_at(product, index.expect("a period"), slot);
                    ensure(due_at > billed_at, || format!("{number}, due {due_at}, wasn't issued at {billed_at}"))?;
                }
            }
        }
    }
    Ok(())
}

/// Every live event counts where the model puts it, and names a document in force of that period.
fn check_events(world: &World) -> Checked {
    let principal = &world.bench.principal;
    let stored = world
        .bench
        .read(|tx| world.events.iter().map(|event| tx.event(principal.organization, *event)).collect::<Result<Vec<_>, _>>());
    for (i, (stored, expected)) in stored.into_iter().zip(&world.model.events).enumerate() {
        let stored = stored.ok_or_else(|| format!("event {i} is gone"))?;
        ensure(stored.deleted == expected.deleted, || format!("event {i}: deleted is {}", stored.deleted))?;
        if stored.deleted {
            continue;
        }
        let (place, placement) = (expected.place, stored.placement);
        let contract = world.contracts.iter().position(|contract| *contract == placement.contract_ref);
        let counted = (contract, placement.product_no.0, placement.service_period.start());
        let right = counted == (Some(place.contract), place.product, place.start);
        ensure(right, || format!("event {i} counts in {counted:?}, not in {place:?}"))?;
        let same = crate::convert::quantity(expected.quantity) == stored.quantity && expected.at == stored.occurred_at;
        ensure(same, || format!("event {i} has another quantity or timestamp"))?;
        let document = world.documents.iter().find(|document| reference(document) == placement.document_ref);
        let document = document.ok_or_else(|| format!("event {i} is on no document"))?;
        let number = &document.opened.as_ref().expect("a stored document").number;
        let product = &world.model.contracts[place.contract].products;
        let product = product.iter().find(|product| product.no == place.product).expect("a product");
        let index = product.periods.iter().position(|period| period.start == place.start).expect("a period");
        let (own, slot) = product.usage_slot(index);
        let own = product.periods[own].start;
        let on_carrier = document.purpose == Purpose::Regular(slot) && document.period.start() == own;
        match document.purpose {
            Purpose::Regular(_) => {
                let issued = document.issued.is_some();
                ensure(on_carrier || issued, || format!("event {i} is on {number} of another period or slot"))?;
            }
            Purpose::Usage | Purpose::Adjustment => {
                // One draft collects the corrections of all service periods that its parent bills.
                let bills = document.content.products.iter().filter(|billed| billed.product_no.0 == place.product);
                let mut lines = bills.flat_map(|billed| &billed.lines);
                let same = document.period.start() == place.start || lines.any(|line| line.service_period.start() == place.start);
                ensure(same, || format!("event {i} is on {number} of {}", document.period))?;
            }
        }
        if document.state == DocumentState::Void {
            let replaced = world.documents.iter().any(|other| {
                other.state != DocumentState::Void
                    && other.contract_ref == document.contract_ref
                    && other.purpose == Purpose::Regular(slot)
                    && other.period.start() == own
                    && other.content.products.iter().any(|billed| billed.product_no.0 == place.product)
            });
            ensure(document.issued.is_some() && !replaced, || format!("event {i} is on {number}, which is void"))?;
        }
    }
    Ok(())
}

impl World {
    pub(crate) fn contract_of(&self, document: &DocumentView) -> usize {
        self.contracts.iter().position(|contract| *contract == document.contract_ref).expect("a contract")
    }
}
