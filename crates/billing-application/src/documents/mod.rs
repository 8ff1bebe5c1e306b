//! Documents as they are shown: stored or planned, drafts rated as of now, issued ones as issued.

mod act;

pub use act::{PaymentRequest, issue_document, record_payment, void_document};

use billing_domain::access::Principal;
use billing_domain::calendar::{Date, Period, Timestamp};
use billing_domain::document::linking::Share;
use billing_domain::document::numbering::DocumentNumber;
use billing_domain::document::totals::DocumentContent;
use billing_domain::document::{Document, DocumentHead, DocumentKind, DocumentState, Lifecycle, Parties, Purpose, Settlement};
use billing_domain::money::{Currency, Money};
use billing_domain::page::{Page, PageRequest};
use billing_domain::party::{NetTerms, PaymentDetails};
use billing_domain::ports::{Access, DocumentFilter, Tx, transact};
use billing_domain::refs::{ContractRef, CustomerRef, DocumentRef, OrganizationId};
use billing_domain::text::{Line, Prose};

use crate::Services;
use crate::error::{Thing, UseCaseError, UseCaseResult};
use crate::ledger::{Account, Planned, corrupt};

/// A document with everything the interface shows of it.
#[derive(Clone, Debug)]
pub struct DocumentView {
    /// `None` of one that isn't opened yet, as of everything else a document gets when it is opened.
    pub opened: Option<Opened>,
    /// What it does.
    pub kind: DocumentKind,
    /// How far it has come.
    pub state: DocumentState,
    /// Why it exists.
    pub purpose: Purpose,
    /// The contract it bills.
    pub contract_ref: ContractRef,
    /// The contract's number.
    pub contract_number: String,
    /// Who bills whom.
    pub parties: Parties,
    /// The one currency of all its amounts.
    pub currency: Currency,
    /// How long the customer has to pay.
    pub net_terms: NetTerms,
    /// Where and how to pay.
    pub payment: PaymentDetails,
    /// Its own period.
    pub period: Period,
    /// Whether its period is shorter than a whole one.
    pub is_partial_period: bool,
    /// When it was issued and is due; `None` of one that isn't issued.
    pub issued: Option<IssueDates>,
    /// Lines and totals.
    pub content: DocumentContent,
    /// What payments and credits say about it.
    pub settlement: Settlement,
    /// What is left to pay.
    pub amount_due: Money,
    /// Purchase order number.
    pub po_number: Option<Line>,
    /// Its products' notes.
    pub note: Option<Prose>,
}

/// What a document gets when it is opened.
#[derive(Clone, Debug)]
pub struct Opened {
    /// Its reference.
    pub document_ref: DocumentRef,
    /// Its number.
    pub number: DocumentNumber,
    /// Counts the contract's documents.
    pub number_in_contract: u32,
    /// The void document it bills again.
    pub replaces: Option<DocumentRef>,
    /// The invoice it belongs to.
    pub parent: Option<Related>,
    /// The documents that name it as parent.
    pub related: Vec<Related>,
    /// When it was opened.
    pub created_at: Timestamp,
}

/// Another document that has to do with one: its parent, a child, an adjustment.
#[derive(Clone, Debug)]
pub struct Related {
    /// Its reference.
    pub document_ref: DocumentRef,
    /// Its number.
    pub number: DocumentNumber,
    /// What it does.
    pub kind: DocumentKind,
    /// Why it exists.
    pub purpose: Purpose,
    /// How far it has come.
    pub state: DocumentState,
}

impl Related {
    fn of(document: Document) -> UseCaseResult<Self> {
        let state = document.state()?;
        let DocumentHead { document_ref, number, kind, purpose, .. } = document.head;
        Ok(Self { document_ref, number, kind, purpose, state })
    }
}

/// The dates of an issued document.
#[derive(Clone, Copy, Debug)]
pub struct IssueDates {
    /// When it was issued, in the entity's zone.
    pub issue_date: Date,
    /// When it has to be paid.
    pub due_date: Date,
    /// Whether that day has passed with something left to pay.
    pub overdue: bool,
}

/// What a list of documents is narrowed to.
#[derive(Clone, Debug, Default)]
pub struct DocumentQuery {
    /// This customer's.
    pub customer_ref: Option<CustomerRef>,
    /// The rest.
    pub filter: DocumentFilter,
}

/// Reads a document.
///
/// # Errors
/// [`UseCaseError::Unknown`].
pub fn get_document(services: &Services, principal: &Principal, document_ref: DocumentRef) -> UseCaseResult<DocumentView> {
    let now = services.now();
    transact(&*services.store, Access::Read, |tx| {
        let document = tx.document(principal.organization, document_ref)?.ok_or(UseCaseError::Unknown(Thing::Document))?;
        let mut accounts = Vec::new();
        let account = account_of(tx, principal.organization, &mut accounts, &document.head)?;
        view_stored(tx, account, document, now)
    })
}

/// A page of documents, by creation; a reference that names nothing finds nothing.
///
/// # Errors
/// [`UseCaseError::Store`].
pub fn list_documents(
    services: &Services,
    principal: &Principal,
    query: &DocumentQuery,
    page: PageRequest,
) -> UseCaseResult<Page<DocumentView>> {
    let now = services.now();
    let organization = principal.organization;
    transact(&*services.store, Access::Read, |tx| {
        let mut filter = query.filter.clone();
        if let Some(customer_ref) = &query.customer_ref {
            let customers = tx.customers_by_refs(organization, std::slice::from_ref(customer_ref))?;
            let Some(customer) = customers.first() else { return Ok(Page::empty()) };
            filter.customer_id = Some(customer.id);
        }
        let documents = tx.documents(organization, &filter, page)?;
        let mut accounts = Vec::new();
        documents.try_map(|document| {
            let account = account_of(tx, organization, &mut accounts, &document.head)?;
            view_stored(tx, account, document, now)
        })
    })
}

/// The account of a document's contract, read once for all of a contract's documents.
fn account_of<'a>(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    accounts: &'a mut Vec<Account>,
    head: &DocumentHead,
) -> UseCaseResult<&'a Account> {
    let known = accounts.iter().position(|account| account.contract.contract_ref == head.contract_ref);
    let index = match known {
        Some(index) => index,
        None => {
            let contract = tx.contract(organization, head.contract_ref)?;
            let contract = contract.ok_or_else(|| corrupt("a document", &head.document_ref, "has no contract"))?;
            accounts.push(Account::read(tx, organization, contract)?);
            accounts.len() - 1
        }
    };
    Ok(&accounts[index])
}

/// Shows a stored document: a draft as it is rated now, an issued one as it was issued.
pub(crate) fn view_stored(tx: &mut dyn Tx, account: &Account, document: Document, now: Timestamp) -> UseCaseResult<DocumentView> {
    let state = document.state()?;
    let Document { head, lifecycle, settlement } = document;
    let opened = Opened {
        document_ref: head.document_ref,
        number: head.number.clone(),
        number_in_contract: head.number_in_contract,
        replaces: head.replaces,
        parent: parent_of(tx, account.organization, &head)?,
        related: related_to(tx, account, &head)?,
        created_at: head.created_at,
    };
    let (content, parties, po_number, note, issued) = match lifecycle {
        Lifecycle::Issued(issued) | Lifecycle::Uncollectible(issued) | Lifecycle::Void(Some(issued)) => {
            let today = account.entity(&head.entity_ref)?.profile.time_zone.service_date(now);
            let unpaid = matches!(state, DocumentState::Issued | DocumentState::PartiallyPaid);
            // A credit is nobody's debt.
            let overdue = unpaid && head.kind != DocumentKind::Credit && today > issued.due_date;
            let dates = IssueDates { issue_date: issued.issue_date, due_date: issued.due_date, overdue };
            (issued.content, issued.parties, issued.po_number, issued.note, Some(dates))
        }
        Lifecycle::Draft | Lifecycle::Void(None) => {
            let content = account.draft_content(tx, &head)?;
            (content, account.parties(&head.entity_ref)?, account.contract.po_number.clone(), account.note_of(&head)?, None)
        }
    };
    Ok(DocumentView {
        opened: Some(opened),
        kind: head.kind,
        state,
        purpose: head.purpose,
        contract_ref: head.contract_ref,
        contract_number: account.contract.number_text(),
        parties,
        currency: head.currency,
        net_terms: head.net_terms,
        payment: head.payment,
        period: head.period,
        is_partial_period: head.is_partial_period,
        issued,
        amount_due: settlement.amount_due(content.total)?,
        content,
        settlement,
        po_number,
        note,
    })
}

/// Shows a document that isn't opened yet, as it would be opened.
pub(crate) fn view_planned(tx: &mut dyn Tx, account: &Account, planned: &Planned<'_>) -> UseCaseResult<DocumentView> {
    let (first, terms) = &planned.shares[0];
    let content = account.preview(tx, planned)?;
    let settlement = Settlement::none(terms.currency);
    let shares: Vec<Share<'_>> = planned.shares.iter().map(|(share, _)| *share).collect();
    Ok(DocumentView {
        opened: None,
        kind: first.slot.kind(),
        state: DocumentState::Draft,
        purpose: Purpose::Regular(first.slot),
        contract_ref: account.contract.contract_ref,
        contract_number: account.contract.number_text(),
        parties: account.parties(&terms.entity_ref)?,
        currency: terms.currency,
        net_terms: terms.net_terms,
        payment: terms.payment.clone(),
        period: first.own.period.span(),
        is_partial_period: first.own.period.is_partial(),
        issued: None,
        amount_due: settlement.amount_due(content.total)?,
        content,
        settlement,
        po_number: account.contract.po_number.clone(),
        note: Account::note(&shares),
    })
}

fn parent_of(tx: &mut dyn Tx, organization: OrganizationId, head: &DocumentHead) -> UseCaseResult<Option<Related>> {
    let Some(parent) = head.parent else { return Ok(None) };
    let parent = tx.document(organization, parent)?.ok_or_else(|| corrupt("a document", &parent, "is not there"))?;
    Related::of(parent).map(Some)
}

fn related_to(tx: &mut dyn Tx, account: &Account, head: &DocumentHead) -> UseCaseResult<Vec<Related>> {
    let related = tx.documents_of_parent(account.organization, head.customer_id, head.document_ref)?;
    related.into_iter().map(Related::of).collect()
}
