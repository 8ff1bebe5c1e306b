//! Bringing what isn't issued in line with a contract's new version, and usage to the document that bills it now
//! (billing rules 7).

use std::cmp::Reverse;

use billing_domain::calendar::{Date, Timestamp};
use billing_domain::contract::{Contract, ContractProduct, ProductPeriod};
use billing_domain::document::linking::{Share, Slot, share_for_usage, shares_of_period};
use billing_domain::document::totals::usage_keys;
use billing_domain::document::{Document, DocumentHead, DocumentPart, Lifecycle, Purpose};
use billing_domain::ports::Tx;
use billing_domain::refs::{DocumentRef, ProductNo};

use super::{Account, issue_draft};
use crate::Services;
use crate::error::{UseCaseError, UseCaseResult};

/// Usage whose document is out of force, and is billed by one that is issued now: it goes on the correction.
pub(crate) struct Stranded {
    /// Where it stands.
    pub(crate) on: DocumentRef,
    /// The product it counts in.
    pub(crate) product_no: ProductNo,
    /// The service period's first day.
    pub(crate) start: Date,
}

/// Brings drafts, and usage that waits on void documents, in line with the new version. What usage is stranded the
/// corrections of issued documents have to take.
pub(crate) fn redraw(
    services: &Services,
    tx: &mut dyn Tx,
    before: &Account,
    after: &Account,
    now: Timestamp,
) -> UseCaseResult<Vec<Stranded>> {
    let mut stranded = redraw_drafts(services, tx, before, after, now)?;
    stranded.extend(rehome_voided(services, tx, before, after)?);
    Ok(stranded)
}

/// Brings regular drafts in line with the new version: period, products, rates and terms. A draft whose period is
/// gone goes where its usage is billed now; one that bills nothing any more is put out of force, or issued as it is
/// when others name it as their parent. Products whose entity, currency or terms don't fit any more leave it.
fn redraw_drafts(
    services: &Services,
    tx: &mut dyn Tx,
    before: &Account,
    after: &Account,
    now: Timestamp,
) -> UseCaseResult<Vec<Stranded>> {
    let contract = &after.contract;
    let mut stranded = Vec::new();
    let mut drafts = tx.drafts_of_contract(after.organization, contract.customer_id, contract.contract_ref)?;
    // The newest first: a debit before the invoice it names.
    drafts.sort_by_key(|draft| Reverse(draft.head.number_in_contract));
    for draft in drafts {
        let Purpose::Regular(slot) = draft.head.purpose else { continue };
        let mut places = Vec::new();
        for part in &draft.head.parts {
            places.extend(place_now(before, after, &draft.head, slot, part.product_no)?);
        }
        // Those that stay where they are decide where the draft is.
        places.sort_by_key(|place| !is_place(place, draft.head.period.start(), slot));
        let mut kept: Option<DocumentHead> = None;
        for place in places {
            let terms = place.own.terms.resolve(&after.customer, after.entity(&place.own.terms.entity_ref)?);
            let same_series = terms.entity_ref == draft.head.entity_ref
                && terms.currency == draft.head.currency
                && place.slot.kind() == draft.head.kind;
            let fits = kept.as_ref().is_none_or(|head| {
                head.net_terms == terms.net_terms
                    && head.payment == terms.payment
                    && head.period == place.own.period.span()
                    && head.purpose == Purpose::Regular(place.slot)
            });
            let stored = after.stored(tx, &place)?;
            let is_free = stored.is_none_or(|stored| stored.head.document_ref == draft.head.document_ref);
            if !same_series || !fits || !is_free {
                continue;
            }
            let head = kept.get_or_insert_with(|| DocumentHead {
                parts: Vec::new(),
                purpose: Purpose::Regular(place.slot),
                net_terms: terms.net_terms,
                payment: terms.payment.clone(),
                period: place.own.period.span(),
                is_partial_period: place.own.period.is_partial(),
                ..draft.head.clone()
            });
            head.parts.push(DocumentPart {
                product_no: place.own.product_no,
                tax_rate: terms.tax_rate,
                discount_rate: terms.discount_rate,
            });
            head.parts.sort_by_key(|part| part.product_no);
        }
        let (organization, customer_id) = (after.organization, draft.head.customer_id);
        match &kept {
            Some(head) if *head == draft.head => {}
            Some(head) => {
                tx.update_draft(organization, head)?;
            }
            None => {
                let dependents = tx.documents_of_parent(organization, customer_id, draft.head.document_ref)?;
                if dependents.iter().all(|dependent| matches!(dependent.lifecycle, Lifecycle::Void(_))) {
                    tx.void_draft(organization, customer_id, draft.head.document_ref, now)?;
                } else {
                    tx.update_draft(organization, &DocumentHead { parts: Vec::new(), ..draft.head.clone() })?;
                    let emptied = after.document(tx, draft.head.document_ref)?;
                    issue_draft(services, tx, after, emptied.head, now)?;
                }
            }
        }
        for part in &draft.head.parts {
            stranded.extend(rehome_usage(services, tx, before, after, &draft.head, kept.as_ref(), slot, part.product_no)?);
        }
    }
    Ok(stranded)
}

fn is_place(share: &Share<'_>, start: Date, slot: Slot) -> bool {
    share.own.period.span().start() == start && share.slot == slot
}

/// A product's period that starts on a day.
pub(crate) fn period_from(product: &ContractProduct, start: Date) -> Option<ProductPeriod<'_>> {
    product.period_at(start).filter(|period| period.period.span().start() == start)
}

/// The period whose usage a draft billed for a product, as the new version has it.
fn usage_of_draft<'c>(
    before: &Account,
    after: &'c Account,
    head: &DocumentHead,
    slot: Slot,
    no: ProductNo,
) -> UseCaseResult<Option<ProductPeriod<'c>>> {
    let billed = period_from(before.product(no)?, head.period.start());
    let usage = match billed {
        Some(own) => before.share_in(own, slot)?.usage,
        None => None,
    };
    let product = after.product(no)?;
    Ok(usage.and_then(|usage| period_from(product, usage.period.span().start())))
}

/// Where a product of a draft belongs now: where it was, or else where the usage is billed that it billed.
fn place_now<'c>(
    before: &Account,
    after: &'c Account,
    head: &DocumentHead,
    slot: Slot,
    no: ProductNo,
) -> UseCaseResult<Option<Share<'c>>> {
    let product = after.product(no)?;
    let same = period_from(product, head.period.start());
    let same = same.and_then(|own| shares_of_period(product, own).into_iter().find(|share| share.slot == slot));
    match same {
        Some(share) => Ok(Some(share)),
        None => Ok(usage_of_draft(before, after, head, slot, no)?.map(|usage| share_for_usage(product, usage))),
    }
}

/// Moves the usage of a product that a draft billed and doesn't bill any more to the document that does.
#[allow(clippy::too_many_arguments, reason = "a draft before and after, and where to write")]
fn rehome_usage(
    services: &Services,
    tx: &mut dyn Tx,
    before: &Account,
    after: &Account,
    was: &DocumentHead,
    is: Option<&DocumentHead>,
    slot: Slot,
    no: ProductNo,
) -> UseCaseResult<Option<Stranded>> {
    let Some(usage) = usage_of_draft(before, after, was, slot, no)? else { return Ok(None) };
    let carrier = share_for_usage(after.product(no)?, usage);
    let stays = is.is_some_and(|is| {
        let Purpose::Regular(slot) = is.purpose else { return false };
        is.parts.iter().any(|part| part.product_no == no) && is_place(&carrier, is.period.start(), slot)
    });
    let keys = usage_keys(after.contract.contract_ref, &[carrier]);
    let totals = tx.usage(after.organization, was.customer_id, &keys)?;
    if stays || totals.iter().all(|(_, total)| total.events == 0) {
        return Ok(None);
    }
    move_usage(services, tx, after, was.document_ref, usage, &carrier)
}

/// Moves the usage of a period from a document that bills it no more to the draft that does, opened if need be.
fn move_usage(
    services: &Services,
    tx: &mut dyn Tx,
    account: &Account,
    from: DocumentRef,
    usage: ProductPeriod<'_>,
    carrier: &Share<'_>,
) -> UseCaseResult<Option<Stranded>> {
    let (product_no, start) = (usage.product_no, usage.period.span().start());
    let head = match account.stored(tx, carrier)? {
        Some(stored) if stored.is_draft() => stored.head,
        // What is issued keeps the events it was issued with.
        Some(_) => return Ok(Some(Stranded { on: from, product_no, start })),
        None => {
            let planned = account.plan(tx, carrier)?;
            account.open(services, tx, &planned)?
        }
    };
    let customer_id = account.contract.customer_id;
    tx.move_events_of_period(account.organization, customer_id, from, head.document_ref, product_no, start)?;
    Ok(None)
}

/// After a document was put out of force: where its usage is billed on a document of another place now, it goes there.
///
/// # Errors
/// [`UseCaseError::Conflict`] when that one is issued: it wouldn't bill it again.
pub(crate) fn rehome_void(services: &Services, tx: &mut dyn Tx, account: &Account, void: &Document) -> UseCaseResult<()> {
    let (Purpose::Regular(slot), Some(issued)) = (void.head.purpose, void.lifecycle.issued()) else { return Ok(()) };
    for billed in &issued.content.products {
        let product = account.product(billed.product_no)?;
        // The true-up goes with the usage.
        let of_usage = billed.lines.iter().filter(|line| line.usage.is_some() || line.line_item_id.is_none());
        let mut starts: Vec<Date> = of_usage.map(|line| line.service_period.start()).collect();
        starts.dedup();
        for usage in starts.into_iter().filter_map(|start| period_from(product, start)) {
            let carrier = share_for_usage(product, usage);
            let in_advance = slot == Slot::Period && carrier.slot == Slot::UsageDebit;
            if in_advance || is_place(&carrier, void.head.period.start(), slot) {
                continue;
            }
            if let Some(stored) = account.stored(tx, &carrier)?.filter(|stored| !stored.is_draft()) {
                let detail =
                    format!("its usage is billed by {} now, which is issued and wouldn't bill it again", stored.head.number);
                return Err(UseCaseError::Conflict { code: "billed_elsewhere", detail });
            }
            let (organization, customer_id) = (account.organization, account.contract.customer_id);
            if tx.has_events(organization, customer_id, void.head.document_ref)? {
                move_usage(services, tx, account, void.head.document_ref, usage, &carrier)?;
            }
            tx.bring_due_forward(organization, customer_id, account.contract.contract_ref, account.due_at(&carrier)?)?;
        }
    }
    Ok(())
}

/// Usage on a void document waits for its replacement. Where that will be another document now, it goes there.
fn rehome_voided(services: &Services, tx: &mut dyn Tx, before: &Account, after: &Account) -> UseCaseResult<Vec<Stranded>> {
    let mut stranded = Vec::new();
    let (organization, contract) = (after.organization, &after.contract);
    for (product, changed) in changed_products(&before.contract, contract) {
        let Some(from) = changed.segments.last().map(|segment| segment.in_force_from) else { continue };
        // The usage of the period before may be billed on a document of the first that changes.
        let from = product.period_before(from).map_or(from, |period| period.period.span().start());
        for (key, _) in tx.usage_since(organization, contract.customer_id, contract.contract_ref, product.no, from)? {
            let (Some(old), Some(new)) = (period_from(product, key.period_start), period_from(changed, key.period_start)) else {
                continue;
            };
            let (was, is) = (share_for_usage(product, old), share_for_usage(changed, new));
            let start = was.own.period.span().start();
            if is_place(&is, start, was.slot) || before.stored(tx, &was)?.is_some() {
                continue;
            }
            let (customer_id, contract_ref) = (contract.customer_id, contract.contract_ref);
            if let Some(void) = tx.last_void(organization, customer_id, contract_ref, product.no, start, was.slot)? {
                stranded.extend(move_usage(services, tx, after, void, new, &is)?);
            }
        }
    }
    Ok(stranded)
}

/// Products that a new version changes, as they were and as they are.
pub(crate) fn changed_products<'c>(
    before: &'c Contract,
    after: &'c Contract,
) -> impl Iterator<Item = (&'c ContractProduct, &'c ContractProduct)> {
    let pairs = after.products.iter().filter_map(|product| Some((before.product(product.no)?, product)));
    pairs.filter(|(was, is)| was.segments.len() != is.segments.len())
}
