//! Edits, cancels and resumes → documents (billing rules 7): drafts are brought in line with the new plan, issued documents
//! get the difference at once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use chrono::NaiveDate;

use super::adjust::no_amount;
use super::issue::{self, due_documents, has_begun};
use super::{ContractBook, Entry, Supplies};
use crate::calendar::{Period, Timestamp};
use crate::contract::agreement::Catalog;
use crate::contract::amendment::{
    Amendment, ContractEdit, LastDay, QuantityChange, Situation, cancelled, edited, resumed, with_quantity,
};
use crate::contract::terms::ProductTerms;
use crate::contract::{Contract, ContractProduct, ContractState, ProductPeriod};
use crate::document::lines::{BillWith, LedgerLine, Rates, kind_of, negated};
use crate::document::linking::{Part, Place, part_for, part_for_usage, part_in};
use crate::document::{BookDocument, DocumentHead, DocumentKind, DraftContent, Purpose, Standing};
use crate::money::Money;
use crate::refs::{DocumentRef, LineItemId, ProductNo};
use crate::refusal::Refusal;

/// The most documents that one change may make due at once (billing rules 1.6).
pub const MAX_DUE_AT_ONCE: usize = 24;
/// The same, where the caller said that it is meant.
pub const MAX_DUE_BACKDATED: usize = 1200;

/// How much one change may make due at once.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Backdated {
    /// At most [`MAX_DUE_AT_ONCE`] documents.
    #[default]
    Refused,
    /// At most [`MAX_DUE_BACKDATED`].
    Allowed,
}

/// Begins the book of a new contract: nothing is opened, but what it makes due is counted.
///
/// # Errors
/// [`Refusal::Invalid`] `too_many_documents`.
pub fn create(book: &mut ContractBook, backdated: Backdated, now: Timestamp) -> Result<(), Refusal> {
    book.require_apart(&book.contract, None)?;
    refuse_too_many(book, 0, &[], backdated, now)?;
    issue::remind(book, now)
}

/// Edits the contract.
///
/// # Errors
/// [`Refusal::Invalid`] with every violation, `not_retroactive` and `too_many_documents` among them; [`Refusal::Conflict`]
/// `contract_over`, `version_conflict`, `already_started`, `product_over`, `usage_already_reported`.
pub fn edit(
    book: &mut ContractBook,
    edit: &ContractEdit,
    catalog: &Catalog,
    backdated: Backdated,
    now: Timestamp,
    supplies: &mut impl Supplies,
) -> Result<(), Refusal> {
    refuse_over(book, now)?;
    let amendment = with_situation(book, now, |situation| edited(&book.contract, edit, catalog, situation))?;
    book.require_apart(&amendment.contract, Some(&book.contract))?;
    amend(book, amendment, backdated, now, supplies)
}

/// Adds a step to a line item's quantity.
///
/// # Errors
/// As [`edit`].
pub fn change_quantity(
    book: &mut ContractBook,
    change: &QuantityChange,
    backdated: Backdated,
    now: Timestamp,
    supplies: &mut impl Supplies,
) -> Result<(), Refusal> {
    refuse_over(book, now)?;
    let amendment = with_situation(book, now, |situation| with_quantity(&book.contract, change, situation))?;
    amend(book, amendment, backdated, now, supplies)
}

/// Cancels the contract. With a last day of today or before, everything open is issued at once, as final.
///
/// # Errors
/// [`Refusal::Invalid`] for a last day outside the contract; [`Refusal::Conflict`] `contract_over` when it is cancelled or
/// over already and ends no earlier by this, `usage_already_reported` when usage is dated after the last day.
pub fn cancel(
    book: &mut ContractBook,
    last_day: LastDay,
    backdated: Backdated,
    now: Timestamp,
    supplies: &mut impl Supplies,
) -> Result<(), Refusal> {
    let is_retroactive = matches!(last_day, LastDay::Day(_));
    match book.state(now) {
        ContractState::Pending | ContractState::Active | ContractState::Cancelling => {}
        // A contract that is over may still be cut back to an earlier day.
        ContractState::Completed if is_retroactive => {}
        ContractState::Completed | ContractState::Cancelled => {
            return Err(Refusal::conflict("contract_over", "the contract is cancelled or over already"));
        }
    }
    let amendment = with_situation(book, now, |situation| cancelled(&book.contract, last_day, now, situation))?;
    amend(book, amendment, backdated, now, supplies)?;
    let is_final = match last_day {
        LastDay::PeriodEnd => false,
        LastDay::Today => true,
        LastDay::Day(day) => {
            let first = book.contract.products.first().and_then(ContractProduct::newest_terms).cloned();
            first.map_or(Ok(true), |terms| book.today(&terms, now).map(|today| day <= today))?
        }
    };
    if is_final {
        issue::everything(book, now, supplies)?;
        issue::remind(book, now)?;
    }
    Ok(())
}

/// Takes a cancel back, as long as its last day isn't over.
///
/// # Errors
/// [`Refusal::Conflict`] `contract_over`.
pub fn resume(
    book: &mut ContractBook,
    backdated: Backdated,
    now: Timestamp,
    supplies: &mut impl Supplies,
) -> Result<(), Refusal> {
    let is_cancelling = book.state(now) == ContractState::Cancelling;
    if !is_cancelling {
        let detail = "only a cancelled contract whose last day isn't over can be resumed";
        return Err(Refusal::conflict("contract_over", detail));
    }
    let amendment = resumed(&book.contract);
    amend(book, amendment, backdated, now, supplies)
}

fn with_situation<T>(
    book: &ContractBook,
    now: Timestamp,
    decide: impl FnOnce(&Situation<'_>) -> Result<T, Refusal>,
) -> Result<T, Refusal> {
    book.require_whole()?;
    for terms in book.contract.products.iter().flat_map(ContractProduct::terms) {
        book.entity(&terms.entity_ref)?;
    }
    // Every entity is there: the fallback is never read.
    let today = |terms: &ProductTerms| book.today(terms, now).unwrap_or(NaiveDate::MAX);
    let begun = |no: ProductNo| has_begun(book, no);
    decide(&Situation { today: &today, has_begun: &begun })
}

fn refuse_over(book: &ContractBook, now: Timestamp) -> Result<(), Refusal> {
    match book.state(now) {
        ContractState::Pending | ContractState::Active | ContractState::Completed => Ok(()),
        ContractState::Cancelling | ContractState::Cancelled => {
            Err(Refusal::conflict("contract_over", "a contract that is cancelled can't be edited: resume it, or make another"))
        }
    }
}

/// Puts an amendment into effect. One that changes nothing writes nothing.
fn amend(
    book: &mut ContractBook,
    amendment: Amendment,
    backdated: Backdated,
    now: Timestamp,
    supplies: &mut impl Supplies,
) -> Result<(), Refusal> {
    if amendment.contract == *book.contract {
        return Ok(());
    }
    refuse_restructured(book, &amendment)?;
    let due_before = due_documents(book, now, usize::MAX)?.len();
    let drafts: Vec<(BookDocument, DraftContent)> = book
        .documents()
        .filter(|document| document.standing == Standing::Draft && matches!(document.head.purpose, Purpose::Regular(_)))
        .map(|document| Ok((document.clone(), book.draft_content(document.head.document_ref)?)))
        .collect::<Result<_, Refusal>>()?;
    let before = Arc::clone(&book.contract);
    refuse_homeless_usage(book, &before, &amendment)?;
    refuse_homeless_charges(book, &amendment)?;
    let housed = housed_charges(book)?;
    let entries_before = book.entries().len();
    book.put(Entry::Amended(Box::new(amendment.contract.clone())))?;
    redraw(book, &before, drafts, &housed, now, supplies)?;
    correct_issued(book, &before, &amendment.since, now, supplies)?;
    let issued: Vec<DocumentRef> = book.entries()[entries_before..]
        .iter()
        .filter_map(|entry| match entry {
            Entry::Issued { document_ref, .. } => Some(*document_ref),
            _ => None,
        })
        .collect();
    refuse_too_many(book, due_before, &issued, backdated, now)?;
    issue::remind(book, now)
}

/// Refuses to make more documents due at once than are meant, corrections included (billing rules 1.6). What was due anyway
/// doesn't count.
fn refuse_too_many(
    book: &ContractBook,
    due_before: usize,
    issued: &[DocumentRef],
    backdated: Backdated,
    now: Timestamp,
) -> Result<(), Refusal> {
    let due = due_documents(book, now, usize::MAX)?;
    let most = match backdated {
        Backdated::Refused => MAX_DUE_AT_ONCE,
        Backdated::Allowed => MAX_DUE_BACKDATED,
    };
    let made_due = (due.len() + issued.len()).saturating_sub(due_before);
    if made_due <= most {
        return Ok(());
    }
    let corrected = issued.iter().filter_map(|issued| book.document(*issued)).map(|issued| issued.head.period.start());
    let first = due.iter().map(|(_, place)| place.period_start).chain(corrected).min();
    let since = first.map_or_else(String::new, |first| format!(", since the period from {first}"));
    let remedy = match backdated {
        Backdated::Refused => format!("if that is meant, say allow_backdated: true, which allows {MAX_DUE_BACKDATED}"),
        Backdated::Allowed => "let it begin later".to_owned(),
    };
    let detail = format!("would make {made_due} documents due at once{since}; at most {most} are taken: {remedy}");
    Err(Refusal::field(&["products"], "too_many_documents", detail))
}

/// What structures documents can't change under an issued one (billing rules 7).
fn refuse_restructured(book: &ContractBook, amendment: &Amendment) -> Result<(), Refusal> {
    for (no, from) in &amendment.restructured {
        let under = book.documents().find(|document| {
            document.standing.is_issued()
                && matches!(document.head.purpose, Purpose::Regular(_))
                && document.head.parts.contains(no)
                && document.head.period.start() >= *from
        });
        // An event's own document is one, too, before its period's invoice is.
        let billed = book.documented().iter().find(|(key, _)| key.line.product_no == *no && key.line.period_start >= *from);
        let issued = under.map(|issued| (&issued.head, issued.head.period.start())).or_else(|| {
            let (key, _) = billed?;
            Some((&book.document(key.family)?.head, key.line.period_start))
        });
        if let Some((head, start)) = issued {
            let detail = format!(
                "{} bills the period from {start} already: entity, currency, payment time, cycle, issue day and an end that moves the periods can change only after it",
                head.number
            );
            return Err(Refusal::field(&["products"], "not_retroactive", detail));
        }
    }
    Ok(())
}

/// Refuses a change that would leave usage already reported without a line item or a period. A cancel can do that to usage
/// that is dated after its last day.
fn refuse_homeless_usage(book: &ContractBook, before: &Contract, amendment: &Amendment) -> Result<(), Refusal> {
    for (key, total) in book.usage().iter().filter(|(_, total)| total.events > 0) {
        let Some(from) = amendment.since.get(&key.product_no) else { continue };
        let old = before.product(key.product_no).and_then(|product| product.period_from(key.period_start));
        if old.is_some_and(|old| old.days().end() <= *from) {
            continue;
        }
        let new = amendment.contract.product(key.product_no).and_then(|product| product.period_from(key.period_start));
        let stays = match (old, new) {
            (_, None) => false,
            (old, Some(new)) => {
                let is_shorter = old.is_none_or(|old| new.days().end() < old.days().end());
                let holds = !is_shorter || total.last_day.is_some_and(|day| new.days().contains(day));
                holds && new.terms.meters(&key.usage_product_ref)
            }
        };
        if !stays {
            let detail = format!(
                "usage of {} in the period from {} is reported already and would be left without a line item or a period; let the change begin later, or delete that usage first",
                key.usage_product_ref, key.period_start
            );
            return Err(Refusal::conflict("usage_already_reported", detail));
        }
    }
    Ok(())
}

/// Refuses a change that would leave a charge without a period, or in one of another currency.
fn refuse_homeless_charges(book: &ContractBook, amendment: &Amendment) -> Result<(), Refusal> {
    for charge in book.charges().live().filter(|charge| amendment.since.contains_key(&charge.product_no)) {
        let period = amendment.contract.product(charge.product_no).and_then(|product| product.period_at(charge.date));
        if period.is_none_or(|period| period.terms.pricing.currency != charge.currency) {
            let detail = format!(
                "the charge {} of {} is recorded already and would be left without a period in {}; let the change begin later, or delete that charge first",
                charge.charge_ref, charge.date, charge.currency
            );
            return Err(Refusal::conflict("charge_already_recorded", detail));
        }
    }
    Ok(())
}

/// The charges that have a document; the others wait for one that replaces a void one.
fn housed_charges(book: &ContractBook) -> Result<Vec<LineItemId>, Refusal> {
    let mut housed = Vec::new();
    for charge in book.charges().live() {
        let period = book.product(charge.product_no)?.period_at(charge.date);
        if period.is_some_and(|period| book.home(&period, charge.bill_with).is_some()) {
            housed.push(charge.line_item_id());
        }
    }
    Ok(housed)
}

/// Opens the documents of charges that have lost theirs to the new plan.
fn house_charges(
    book: &mut ContractBook,
    contract: &Contract,
    housed: &[LineItemId],
    now: Timestamp,
    supplies: &mut impl Supplies,
) -> Result<(), Refusal> {
    for line_item_id in housed {
        let Some(charge) = book.charges().of_line(Some(line_item_id)) else { continue };
        let period = contract.product(charge.product_no).and_then(|product| product.period_at(charge.date));
        let part = period.filter(|period| book.home(period, charge.bill_with).is_none());
        if let Some(part) = part.map(|period| part_for(period, charge.bill_with)) {
            book.document_in(part.place(), now, supplies)?;
        }
    }
    Ok(())
}

/// Brings a period's own drafts in line with the new plan, and usage to the document that bills it now. A draft whose place
/// is gone goes where its usage is billed, or out of force.
fn redraw(
    book: &mut ContractBook,
    before: &Contract,
    drafts: Vec<(BookDocument, DraftContent)>,
    housed: &[LineItemId],
    now: Timestamp,
    supplies: &mut impl Supplies,
) -> Result<(), Refusal> {
    let contract = Arc::clone(&book.contract);
    let mut emptied: Vec<(DocumentRef, DraftContent)> = Vec::new();
    // First every draft leaves the places it can't stand in, so that none is in another's way.
    for (draft, content) in &drafts {
        let Purpose::Regular(slot) = draft.head.purpose else { continue };
        let mut head = draft.head.clone();
        let stays = |no: &ProductNo| {
            let place = Place { product_no: *no, period_start: draft.head.period.start(), slot };
            let part = part_in(contract.product(*no)?, place)?;
            let same_series =
                part.own.terms.entity_ref == draft.head.entity_ref && part.own.terms.pricing.currency == draft.head.currency;
            same_series.then_some(part)
        };
        let parts: Vec<Part<'_>> = draft.head.parts.iter().filter_map(stays).collect();
        if let Some(first) = parts.first() {
            head.period = first.own.days();
            head.is_partial_period = first.own.period.is_partial();
        }
        head.parts = parts
            .iter()
            .filter(|part| part.own.days() == head.period && part.own.terms.payment_time == parts[0].own.terms.payment_time)
            .map(|part| part.own.product_no)
            .collect();
        if head.parts.is_empty() {
            emptied.push((draft.head.document_ref, content.clone()));
        }
        if head != draft.head {
            book.put(Entry::Redrawn(Box::new(head)))?;
        }
    }
    for (document_ref, _) in &emptied {
        rehome(book, before, &contract, *document_ref, &drafts)?;
    }
    for (draft, _) in &drafts {
        book.join(draft.head.document_ref)?;
    }
    for (draft, _) in &drafts {
        move_usage(book, before, &contract, &draft.head, now, supplies)?;
    }
    house_charges(book, &contract, housed, now, supplies)?;
    for (document_ref, content) in emptied {
        let document = book.known(document_ref)?.clone();
        if !document.head.parts.is_empty() || document.standing != Standing::Draft {
            continue;
        }
        if book.has_dependents(&document) {
            // Others name it as their parent: it is issued with nothing of its own.
            issue::issue(book, document_ref, now, supplies)?;
        } else {
            book.put(Entry::Discarded { document_ref, content: Box::new(content), at: now })?;
        }
    }
    Ok(())
}

/// Puts a draft that bills nothing any more where the usage is billed now that it billed, if that place is free.
fn rehome(
    book: &mut ContractBook,
    before: &Contract,
    contract: &Contract,
    document_ref: DocumentRef,
    drafts: &[(BookDocument, DraftContent)],
) -> Result<(), Refusal> {
    let Some((was, _)) = drafts.iter().find(|(draft, _)| draft.head.document_ref == document_ref) else { return Ok(()) };
    // Events, or those that name it as their parent.
    let is_stood_on = book.has_events(document_ref) || book.has_dependents(was);
    for (no, usage) in usage_of(before, &was.head) {
        let Some(now) = contract.product(no).and_then(|product| product.period_from(usage)) else { continue };
        let carrier = part_for_usage(now);
        let is_charged = || book.charges().in_period(&now).any(|charge| charge.bill_with == BillWith::Usage);
        let same_series = !book.is_billed(&now, BillWith::Usage)
            && carrier.own.terms.entity_ref == was.head.entity_ref
            && carrier.own.terms.pricing.currency == was.head.currency
            && carrier.slot.kind() == was.head.kind;
        if !same_series || book.in_place(carrier.place()).is_some() || !(is_stood_on || is_charged()) {
            continue;
        }
        let head = DocumentHead {
            purpose: Purpose::Regular(carrier.slot),
            period: carrier.own.days(),
            is_partial_period: carrier.own.period.is_partial(),
            parts: vec![no],
            ..was.head.clone()
        };
        return book.put(Entry::Redrawn(Box::new(head)));
    }
    Ok(())
}

/// The products and service periods whose usage a draft billed.
fn usage_of(contract: &Contract, head: &DocumentHead) -> Vec<(ProductNo, NaiveDate)> {
    let Purpose::Regular(slot) = head.purpose else { return Vec::new() };
    let usage = |no: &ProductNo| {
        let place = Place { product_no: *no, period_start: head.period.start(), slot };
        let part = part_in(contract.product(*no)?, place)?;
        Some((*no, part.usage?.start()))
    };
    head.parts.iter().filter_map(usage).collect()
}

/// Moves the usage that stands on a draft which bills it no more to the document that does, opened if need be.
fn move_usage(
    book: &mut ContractBook,
    before: &Contract,
    contract: &Contract,
    was: &DocumentHead,
    now: Timestamp,
    supplies: &mut impl Supplies,
) -> Result<(), Refusal> {
    if !book.has_events(was.document_ref) {
        return Ok(());
    }
    for (no, start) in usage_of(before, was) {
        let is_used =
            book.usage().iter().any(|(key, total)| key.product_no == no && key.period_start == start && total.events > 0);
        let Some(usage) = contract.product(no).and_then(|product| product.period_from(start)).filter(|_| is_used) else {
            continue;
        };
        let place = part_for_usage(usage).place();
        let from = was.document_ref;
        let to = match book.home(&usage, BillWith::Usage).cloned() {
            Some(carrier) if carrier.head.document_ref == from => continue,
            // The difference to what it bills goes on an adjustment of it, and the events with it.
            Some(carrier) if carrier.standing.is_issued() => {
                let parent = book.parent_for(&carrier)?;
                book.adjustment(parent, DocumentKind::Debit, (no, usage.days()), now, supplies)?
            }
            Some(carrier) => carrier.head.document_ref,
            None => book.document_in(place, now, supplies)?,
        };
        book.put(Entry::EventsMoved { from, to, of: Some((no, start)) })?;
    }
    Ok(())
}

/// A difference to be documented: in which family, for which product, and its lines.
type Differences = BTreeMap<DocumentRef, BTreeMap<(ProductNo, Rates), Vec<LedgerLine>>>;

/// Gives every issued document that the new plan makes wrong the difference, issued at once: per family one credit with
/// what goes down, one debit with what goes up; changed rates as a credit at the old and a debit at the new.
fn correct_issued(
    book: &mut ContractBook,
    before: &Contract,
    since: &BTreeMap<ProductNo, NaiveDate>,
    now: Timestamp,
    supplies: &mut impl Supplies,
) -> Result<(), Refusal> {
    let contract = Arc::clone(&book.contract);
    let mut differences = Differences::new();
    for (no, from) in since {
        let product = contract.product(*no);
        let old = before.product(*no);
        for start in touched(book, *no, old, product, *from) {
            let was = old.and_then(|product| product.period_from(start));
            let is = product.and_then(|product| product.period_from(start));
            for with in [BillWith::Fixed, BillWith::Usage] {
                differ(book, *no, start, with, was, is, &mut differences)?;
            }
        }
    }
    for (family, products) in differences {
        let (mut down, mut up): (Vec<LedgerLine>, Vec<LedgerLine>) = (Vec::new(), Vec::new());
        for lines in products.into_values() {
            let sum = Money::sum(lines[0].amount.currency(), lines.iter().map(|line| line.amount))?;
            match kind_of(sum) {
                DocumentKind::Credit => down.extend(negated(lines)?),
                DocumentKind::Debit | DocumentKind::Invoice => up.extend(lines),
            }
        }
        for (kind, lines) in [(DocumentKind::Credit, down), (DocumentKind::Debit, up)] {
            if no_amount(&lines) {
                continue;
            }
            let days = reach(&lines);
            let adjustment = book.adjustment(family, kind, (lines[0].key.product_no, days), now, supplies)?;
            book.collect(adjustment, (lines[0].key.product_no, days), lines)?;
            issue::issue(book, adjustment, now, supplies)?;
        }
    }
    Ok(())
}

/// From the first day that lines bill or give back to the last.
fn reach(lines: &[LedgerLine]) -> Period {
    let first = lines[0].service_period;
    lines.iter().fold(first, |reach, line| {
        let (start, end) = (reach.start().min(line.service_period.start()), reach.end().max(line.service_period.end()));
        Period::new(start, end).unwrap_or(reach)
    })
}

/// The service periods, by their first days, that may be wrong on issued documents: those of either plan that reach beyond a
/// day, as far as anything is documented or issued.
fn touched(
    book: &ContractBook,
    no: ProductNo,
    old: Option<&ContractProduct>,
    new: Option<&ContractProduct>,
    from: NaiveDate,
) -> BTreeSet<NaiveDate> {
    let documented: BTreeSet<NaiveDate> =
        book.documented().iter().filter(|(key, _)| key.line.product_no == no).map(|(key, _)| key.line.period_start).collect();
    let issued = book.documents().filter(|document| document.standing.is_issued() && document.head.parts.contains(&no));
    let until = documented.iter().copied().chain(issued.map(|document| document.head.period.last_day())).max();
    let Some(until) = until else { return BTreeSet::new() };
    let mut starts: BTreeSet<NaiveDate> = documented.into_iter().filter(|start| *start >= from).collect();
    for product in [old, new].into_iter().flatten() {
        let mut next = product.period_at(from).or_else(|| product.period_after(from));
        while let Some(period) = next.filter(|period| period.start() <= until) {
            starts.insert(period.start());
            next = product.period_after(period.days().end());
        }
    }
    starts
}

/// What of a service period, of what is billed with its fixed items or its usage, is documented otherwise than it costs.
fn differ(
    book: &ContractBook,
    no: ProductNo,
    start: NaiveDate,
    with: BillWith,
    was: Option<ProductPeriod<'_>>,
    is: Option<ProductPeriod<'_>>,
    differences: &mut Differences,
) -> Result<(), Refusal> {
    let issued_home = is.and_then(|period| book.home(&period, with)).filter(|home| home.standing.is_issued());
    let billed: Vec<_> = book
        .documented()
        .of_period(no, start)
        .filter(|(key, _)| key.line.bill_with == with)
        .map(|(key, minor)| (key.clone(), minor))
        .collect();
    let mut put = |family: DocumentRef, line: LedgerLine| {
        if line.amount.minor() != 0 {
            differences.entry(family).or_default().entry((no, line.rates)).or_default().push(line);
        }
    };
    let days_of = |amount: Money, period: Period| given_back(amount, was, is).unwrap_or(period);
    let currency = match (is, was) {
        (Some(period), _) | (None, Some(period)) => period.terms.pricing.currency,
        (None, None) => match billed.first().and_then(|(key, _)| book.document(key.family)) {
            Some(family) => family.head.currency,
            None => return Ok(()),
        },
    };
    let whole = is.or(was).map_or_else(|| Period::new(start, crate::calendar::day_after(start)), |period| Some(period.days()));
    let Some(whole) = whole else { return Ok(()) };
    let minus = |minor: i64| Money::zero(currency).checked_sub(Money::from_minor(minor, currency));
    let line = |key: &crate::document::lines::LineKey, rates: Rates, amount: Money| LedgerLine {
        key: key.clone(),
        service_period: days_of(amount, whole),
        rates,
        usage: None,
        amount,
    };
    let Some(period) = is else {
        // Billed no more: everything documented is taken back.
        for (key, minor) in &billed {
            put(key.family, line(&key.line, key.rates, minus(*minor)?));
        }
        return Ok(());
    };
    match issued_home {
        Some(home) => {
            let rates =
                |key: &crate::document::lines::LineKey| book.rates_of(key.line_item_id.as_ref(), period.terms, Some(home.family));
            let mut at_rates: BTreeMap<crate::document::lines::LineKey, i64> = BTreeMap::new();
            let stands_right = |key: &crate::document::lines::BilledKey| book.stands_right(key, period.terms);
            for (key, minor) in &billed {
                if stands_right(key) {
                    *at_rates.entry(key.line.clone()).or_default() += minor;
                } else {
                    put(key.family, LedgerLine { service_period: whole, ..line(&key.line, key.rates, minus(*minor)?) });
                }
            }
            let has_other_rates = billed.iter().any(|(key, _)| !stands_right(key));
            for target in book.price_of(&period)?.into_iter().filter(|target| target.bill_with == with) {
                let key = target.key(no);
                let amount = target.amount.checked_sub(Money::from_minor(at_rates.remove(&key).unwrap_or(0), currency))?;
                let ledger = line(&key, rates(&key), amount);
                put(home.family, if has_other_rates { LedgerLine { service_period: whole, ..ledger } } else { ledger });
            }
            for (key, minor) in at_rates {
                put(home.family, line(&key, rates(&key), minus(minor)?));
            }
        }
        // The draft bills the rest; what others have billed of it goes over to the rates in force.
        None => {
            for (key, minor) in &billed {
                let rates = book.rates_of(key.line.line_item_id.as_ref(), period.terms, Some(key.family));
                if key.rates != rates {
                    let back = line(&key.line, key.rates, minus(*minor)?);
                    put(key.family, LedgerLine { service_period: whole, ..back });
                    let again = line(&key.line, rates, Money::from_minor(*minor, currency));
                    put(key.family, LedgerLine { service_period: whole, ..again });
                }
            }
        }
    }
    Ok(())
}

/// The days that a period lost and gives back, or got and bills, where that is what an amount is about.
fn given_back(amount: Money, was: Option<ProductPeriod<'_>>, is: Option<ProductPeriod<'_>>) -> Option<Period> {
    let (was, is) = (was?.days(), is?.days());
    if amount.minor() < 0 { Period::new(is.end(), was.end()) } else { Period::new(was.end(), is.end()) }
}
