//! Charges, which are one-off amounts and manual credit notes. The contract's book decides which documents they affect
//! (billing rules 5).

use std::collections::{BTreeMap, BTreeSet};

use billing_domain::access::Actor;
use billing_domain::audit::{AuditAction, AuditActor};
use billing_domain::calendar::Timestamp;
use billing_domain::charge::{Charge, ChargeEdit, NewCharge};
use billing_domain::document::numbering::DocumentNumbers;
use billing_domain::document::{BookDocument, DocumentState};
use billing_domain::ledger::ContractBook;
use billing_domain::ledger::charge::{self, ChargeContext};
use billing_domain::money::Money;
use billing_domain::page::{ListSortKey, Page, PageRequest};
use billing_domain::ports::{ChargeFilter, Tx};
use billing_domain::refs::{
    ChargeRef, ContractKey, ContractRef, CustomerId, CustomerRef, DocumentRef, OrganizationId, PricingRef,
};
use billing_domain::refusal::Refusal;
use billing_domain::text::OneLine;
use billing_domain::usage::EventAction;

use crate::audit::{AuditChange, AuditSubject};
use crate::book_repository::{self, corrupt, distinct};
use crate::carry_out::Cx;
use crate::catalog::narrow_to_customer;
use crate::error::{ResourceKind, UseCaseError, UseCaseResult, unknown_reference};
use crate::names::{Named, name_all};

/// A charge with display fields.
#[derive(Clone, Debug)]
pub struct ChargeView {
    /// The charge.
    pub charge: Charge,
    /// The charge's amount.
    pub amount: Money,
    /// The amount that counts for the period's price. A charge below zero can count in part (billing rules 9).
    pub billed_amount: Money,
    /// The number of the contract that the charge belongs to.
    pub contract_number: String,
    /// The customer's reference.
    pub customer_ref: CustomerRef,
    /// The customer's name.
    pub customer_name: OneLine,
    /// The pricing of the product whose documents bill the charge.
    pub product_pricing_ref: PricingRef,
    /// The documents that carry the charge. `None` while it waits for the replacement of a void document.
    pub documents: Option<ChargeDocuments>,
    /// The revisions of the charge, oldest first, including its creation.
    pub history: Vec<ChargeRevision>,
}

/// The documents that carry a charge in its period.
#[derive(Clone, Debug)]
pub struct ChargeDocuments {
    /// The latest document.
    pub document_ref: DocumentRef,
    /// The state of the latest document.
    pub state: DocumentState,
    /// The numbers of all documents, in order.
    pub numbers: DocumentNumbers,
}

/// One revision of a charge.
#[derive(Clone, Debug)]
pub struct ChargeRevision {
    /// The revision number, starting at 1.
    pub revision: u32,
    /// When the revision was made.
    pub changed_at: Timestamp,
    /// Who made the revision.
    pub changed_by: Actor,
    /// The name of that actor, if the view was read for somebody who may see it.
    pub changed_by_name: Option<String>,
    /// The action that made the revision.
    pub action: EventAction,
    /// The previous revision. `None` for the first.
    pub before: Option<Charge>,
    /// The charge as of this revision.
    pub after: Charge,
}

/// A request to record a charge.
#[derive(Clone, Debug)]
pub struct ChargeRequest {
    /// The contract to charge.
    pub contract_ref: ContractRef,
    /// The charge.
    pub charge: NewCharge,
    /// Whether to issue the charge's adjustment immediately.
    pub issue: bool,
}

/// A filter of charges with the references that a caller gives.
#[derive(Clone, Debug, Default)]
pub struct ChargeQuery {
    /// Only charges of this customer.
    pub customer_ref: Option<CustomerRef>,
    /// The other conditions.
    pub filter: ChargeFilter,
    /// The sort key.
    pub by: ListSortKey,
}

/// Records a charge and puts it on its document.
///
/// # Errors
/// Returns one of these errors:
/// - [`UseCaseError::AlreadyExists`] if the reference is in use.
/// - [`UseCaseError::NoMatch`] if no product bills the day.
/// - [`UseCaseError::Invalid`] for invalid values, including a credit above the billed amount.
pub fn record_charge(cx: &mut Cx<'_>, request: &ChargeRequest) -> UseCaseResult<ChargeView> {
    if let Some(charge_ref) = &request.charge.charge_ref
        && cx.tx.charge(cx.organization, charge_ref)?.is_some()
    {
        return Err(UseCaseError::AlreadyExists { thing: ResourceKind::Charge, field: "charge_ref" });
    }
    let book = book_repository::lock_book_by_ref(cx, request.contract_ref)?;
    let mut book = book.ok_or_else(|| unknown_reference(&["contract_ref"], ResourceKind::Contract))?;
    let made = decide(cx, &mut book, request.issue, |cx, book, occasion| {
        charge::record(book, request.charge.clone(), occasion, &mut cx.ids())
    })?;
    cx.audit(AuditAction::Create, AuditChange::Made(AuditSubject::Charge(&made.charge)))?;
    Ok(made)
}

/// Changes a charge. An edit that changes nothing creates no revision.
///
/// # Errors
/// Returns [`UseCaseError::Unknown`] if the charge does not exist, or any error of [`record_charge`].
pub fn edit_charge(cx: &mut Cx<'_>, charge_ref: &ChargeRef, edit: &ChargeEdit, issue: bool) -> UseCaseResult<ChargeView> {
    let (mut book, present) = held(cx, charge_ref)?;
    let edited =
        decide(cx, &mut book, issue, |cx, book, occasion| charge::change(book, &present, edit, occasion, &mut cx.ids()))?;
    cx.audit(AuditAction::Edit, AuditChange::From(AuditSubject::Charge(&present), AuditSubject::Charge(&edited.charge)))?;
    Ok(edited)
}

/// Deletes a charge. It is no longer counted, but its row and all revisions remain.
///
/// # Errors
/// Returns [`UseCaseError::Unknown`] if the charge does not exist or is already deleted.
pub fn delete_charge(cx: &mut Cx<'_>, charge_ref: &ChargeRef) -> UseCaseResult<()> {
    let (mut book, present) = held(cx, charge_ref)?;
    decide(cx, &mut book, false, |cx, book, occasion| charge::delete(book, &present, occasion, &mut cx.ids()))?;
    cx.audit(AuditAction::Delete, AuditChange::Gone(AuditSubject::Charge(&present)))
}

/// Returns a charge.
///
/// # Errors
/// Returns [`UseCaseError::Unknown`] if the charge does not exist or is deleted.
pub fn get_charge(cx: &mut Cx<'_>, charge_ref: &ChargeRef) -> UseCaseResult<ChargeView> {
    let charge = live(cx.tx, cx.organization, charge_ref)?;
    let found = view_all(cx.tx, cx.organization, vec![charge], cx.now)?;
    with_authors(cx, found)?.pop().ok_or(UseCaseError::InvariantViolation("a charge without a view"))
}

/// Returns a page of charges that are not deleted. The page is empty if a reference does not exist.
///
/// # Errors
/// Returns [`UseCaseError::Store`] if the charges cannot be read.
pub fn list_charges(cx: &mut Cx<'_>, query: &ChargeQuery, page: PageRequest) -> UseCaseResult<Page<ChargeView>> {
    let mut filter = query.filter.clone();
    if !narrow_to_customer(cx.tx, cx.organization, query.customer_ref.as_ref(), &mut filter.customer_id)? {
        return Ok(Page::empty());
    }
    let Page { items, total } = cx.tx.listed_charges(cx.organization, &filter, query.by, page)?;
    let views = view_all(cx.tx, cx.organization, items, cx.now)?;
    Ok(Page { items: with_authors(cx, views)?, total })
}

/// Adds the names of the actors who made the revisions.
fn with_authors(cx: &mut Cx<'_>, views: Vec<ChargeView>) -> UseCaseResult<Vec<ChargeView>> {
    let author = |revision: &ChargeRevision| AuditActor::of(revision.changed_by);
    let named = name_all(cx, views, |view, request| view.history.iter().for_each(|one| request.add_actor(author(one))))?;
    let with_names = |Named { mut item, names }: Named<ChargeView>| {
        item.history.iter_mut().for_each(|revision| revision.changed_by_name = names.of_actor(author(revision)));
        item
    };
    Ok(named.into_iter().map(with_names).collect())
}

fn live(tx: &mut dyn Tx, organization: OrganizationId, charge_ref: &ChargeRef) -> UseCaseResult<Charge> {
    let charge = tx.charge(organization, charge_ref)?;
    charge.filter(|charge| !charge.deleted).ok_or(UseCaseError::Unknown(ResourceKind::Charge))
}

/// Locks the contract of a charge, and returns its book and the charge. A charge never moves to another contract, but may
/// change until the lock is taken.
fn held(cx: &mut Cx<'_>, charge_ref: &ChargeRef) -> UseCaseResult<(ContractBook, Charge)> {
    let organization = cx.organization;
    let Charge { customer_id: customer, contract_ref: contract, .. } = live(cx.tx, organization, charge_ref)?;
    let book = book_repository::lock_book(cx, ContractKey { organization, customer, contract })?;
    let book = book.ok_or_else(|| corrupt("a charge", charge_ref, "has no contract"))?;
    let present = book.charges().live().find(|charge| charge.charge_ref == *charge_ref).cloned();
    Ok((book, present.ok_or(UseCaseError::Unknown(ResourceKind::Charge))?))
}

/// Decides on a locked contract's book, saves the entries, and returns the charge.
fn decide(
    cx: &mut Cx<'_>,
    book: &mut ContractBook,
    issue: bool,
    decide: impl FnOnce(&mut Cx<'_>, &mut ContractBook, ChargeContext) -> Result<Charge, Refusal>,
) -> UseCaseResult<ChargeView> {
    // A credit must not exceed the billed amount, and documents may be issued. Both need complete usage totals.
    book_repository::recount_all(cx.tx, cx.organization, book)?;
    let occasion = ChargeContext { now: cx.now, by: cx.by, issue };
    let charge = decide(cx, book, occasion)?;
    book_repository::write(cx, book)?;
    let refs = std::slice::from_ref(&charge.charge_ref);
    let earlier = cx.tx.superseded_charges(cx.organization, &[charge.customer_id], refs)?;
    view(book, charge, earlier)
}

/// Returns the views of charges. Loads the book of each contract once.
fn view_all(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    charges: Vec<Charge>,
    now: Timestamp,
) -> UseCaseResult<Vec<ChargeView>> {
    let mut of_contracts: BTreeMap<ContractRef, ContractBook> = BTreeMap::new();
    let key_of = |charge: &Charge| ContractKey { organization, customer: charge.customer_id, contract: charge.contract_ref };
    for key in distinct(charges.iter().map(key_of)) {
        let book = book_repository::load_header(tx, key, None)?;
        let book = book.ok_or_else(|| corrupt("a charge", &key.contract, "names a contract that is not there"))?;
        let mut book = book_repository::load_book(tx, organization, book, now)?;
        // The price of the period limits the charges below zero.
        book_repository::recount_all(tx, organization, &mut book)?;
        of_contracts.insert(key.contract, book);
    }
    let edited = charges.iter().filter(|charge| charge.revision > 1);
    let (customers, refs): (BTreeSet<CustomerId>, Vec<ChargeRef>) =
        edited.map(|charge| (charge.customer_id, charge.charge_ref.clone())).unzip();
    let earlier =
        if refs.is_empty() { Vec::new() } else { tx.superseded_charges(organization, &Vec::from_iter(customers), &refs)? };
    let show = |charge: Charge| {
        let of_charge = earlier.iter().filter(|earlier| earlier.charge_ref == charge.charge_ref).cloned().collect();
        view(&of_contracts[&charge.contract_ref], charge, of_charge)
    };
    charges.into_iter().map(show).collect()
}

fn view(book: &ContractBook, charge: Charge, earlier: Vec<Charge>) -> UseCaseResult<ChargeView> {
    let product = book.product(charge.product_no)?;
    let terms = product.period_at(charge.date).map(|period| period.terms).or(product.newest_terms());
    let terms = terms.ok_or_else(|| corrupt("a charge", &charge.charge_ref, "has a product without terms"))?;
    let carriers = book.documents_of_charge(&charge);
    let numbers = DocumentNumbers::in_order_of_change(carriers.iter().map(|document| document.head.number.clone()));
    let of_latest = |latest: &&BookDocument| Ok::<_, UseCaseError>((latest.head.document_ref, latest.state()?));
    let latest = carriers.last().map(of_latest).transpose()?;
    let documents = latest.zip(numbers).map(|((document_ref, state), numbers)| ChargeDocuments { document_ref, state, numbers });
    let mut history = Vec::new();
    let mut before: Option<Charge> = None;
    for after in earlier.into_iter().chain([charge.clone()]) {
        history.push(ChargeRevision {
            revision: after.revision,
            changed_at: after.revised_at,
            changed_by: after.revised_by,
            changed_by_name: None,
            action: match (after.deleted, after.revision) {
                (true, _) => EventAction::Deleted,
                (false, 1) => EventAction::Created,
                (false, _) => EventAction::Updated,
            },
            before: before.replace(after.clone()),
            after,
        });
    }
    Ok(ChargeView {
        amount: charge.amount()?,
        billed_amount: charge::billed_amount(book, &charge)?,
        contract_number: book.contract.number_text(),
        customer_ref: book.customer.customer_ref.clone(),
        customer_name: book.customer.profile.name.clone(),
        product_pricing_ref: terms.pricing.pricing_ref.clone(),
        documents,
        history,
        charge,
    })
}
