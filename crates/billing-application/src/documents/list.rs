//! Lists documents, as pages of views or as a table of all rows.

use std::collections::{BTreeMap, HashMap};
use std::io;

use billing_domain::access::Principal;
use billing_domain::calendar::{Date, Period, Timestamp};
use billing_domain::document::numbering::DocumentNumber;
use billing_domain::document::{
    Document, DocumentHead, DocumentKind, DocumentState, DraftContent, Lifecycle, OutstandingAmounts,
};
use billing_domain::money::Money;
use billing_domain::page::PageRequest;
use billing_domain::ports::{
    Access, BilledMonth, ContractFilter, ContractSortKey, DocumentFilter, DocumentOrder, DocumentPosition, DocumentSums,
    ListWindow, LocalDates, PurposeKind, StoreError, Tx, transact,
};
use billing_domain::refs::{ContractRef, CustomerRef, DocumentRef, EntityRef, OrganizationId};
use billing_domain::text::OneLine;

use super::{DocumentView, books_of, unissued_content, view_all};
use crate::book_repository::{corrupt, distinct};
use crate::carry_out::Cx;
use crate::catalog::{all_entities, narrow_to_customer};
use crate::error::UseCaseResult;
use crate::usage::ReportError;
use crate::{Services, UseCase, allow};

/// The number of table rows loaded at a time.
const ROWS_AT_ONCE: u32 = 500;

/// A filter of documents.
#[derive(Clone, Debug, Default)]
pub struct DocumentQuery {
    /// Only documents of this customer.
    pub customer_ref: Option<CustomerRef>,
    /// Only documents of the contract with this number.
    pub contract_number: Option<u64>,
    /// Only documents that are overdue, or only others.
    pub overdue: Option<bool>,
    /// The other conditions.
    pub filter: DocumentFilter,
}

impl DocumentQuery {
    /// Returns the resolved filter, or `None` if a reference or number does not exist.
    fn resolve(&self, tx: &mut dyn Tx, organization: OrganizationId, now: Timestamp) -> UseCaseResult<Option<DocumentFilter>> {
        let mut filter = self.filter.clone();
        if !narrow_to_customer(tx, organization, self.customer_ref.as_ref(), &mut filter.customer_id)? {
            return Ok(None);
        }
        if let Some(number) = self.contract_number {
            let numbered = ContractFilter { number: Some(number), ..ContractFilter::default() };
            let found = tx.contracts(organization, &numbered, ContractSortKey::Created, PageRequest::LARGEST)?;
            let Some(contract) = found.items.first() else { return Ok(None) };
            if filter.contract_ref.is_some_and(|other| other != contract.contract_ref) {
                return Ok(None);
            }
            filter.contract_ref = Some(contract.contract_ref);
        }
        if let Some(overdue) = self.overdue {
            filter.overdue = Some((overdue, LocalDates::at(now, &all_entities(tx, organization)?)));
        }
        Ok(Some(filter))
    }
}

/// The requested part of a list of documents.
#[derive(Clone, Copy, Debug)]
pub struct DocumentPart {
    /// The order of the list.
    pub order: DocumentOrder,
    /// The range of the list.
    pub part: ListWindow,
    /// Whether to compute sums over the whole list.
    pub with_sums: bool,
}

impl From<PageRequest> for DocumentPart {
    /// Returns a page ordered by creation, with sums.
    fn from(page: PageRequest) -> Self {
        Self { order: DocumentOrder::default(), part: page.into(), with_sums: true }
    }
}

/// A part of a list of documents.
#[derive(Clone, Debug, Default)]
pub struct DocumentList {
    /// The documents of the part.
    pub items: Vec<DocumentView>,
    /// The position of the last document, if more follow.
    pub next: Option<DocumentPosition>,
    /// The sums of the whole list, if requested.
    pub sums: Option<DocumentSums>,
}

impl DocumentList {
    /// Returns an empty list.
    pub fn empty(with_sums: bool) -> Self {
        Self { sums: with_sums.then(DocumentSums::default), ..Self::default() }
    }
}

/// Returns a part of the documents that match a query. The list is empty if a reference does not exist.
///
/// # Errors
/// Returns [`UseCaseError::Store`](crate::error::UseCaseError::Store) if the documents cannot be read.
pub fn list_documents(
    cx: &mut Cx<'_>,
    query: &DocumentQuery,
    DocumentPart { order, part, with_sums }: DocumentPart,
) -> UseCaseResult<DocumentList> {
    let (organization, now) = (cx.organization, cx.now);
    let Some(filter) = query.resolve(cx.tx, organization, now)? else { return Ok(DocumentList::empty(with_sums)) };
    let sums = if with_sums { Some(cx.tx.document_sums(organization, &filter)?) } else { None };
    // An additional document shows whether more follow.
    let window = ListWindow { limit: part.limit.saturating_add(1), ..part };
    let mut documents = cx.tx.listed_documents(organization, &filter, order, window)?;
    let size = usize::try_from(part.limit).unwrap_or(usize::MAX);
    let has_more = documents.len() > size;
    documents.truncate(size);
    let next = documents.last().filter(|_| has_more).map(|last| order.position(last));
    Ok(DocumentList { items: view_all(cx.tx, organization, documents, now)?, next, sums })
}

/// Returns the sums of the documents issued and voided that match a query, by month and currency. The list is empty if a
/// reference does not exist.
///
/// # Errors
/// Returns [`UseCaseError::Store`](crate::error::UseCaseError::Store) if the documents cannot be read.
pub fn summarize_documents(cx: &mut Cx<'_>, query: &DocumentQuery) -> UseCaseResult<Vec<BilledMonth>> {
    match query.resolve(cx.tx, cx.organization, cx.now)? {
        Some(filter) => Ok(cx.tx.billed_months(cx.organization, &filter)?),
        None => Ok(Vec::new()),
    }
}

/// A document as a row of a table.
#[derive(Clone, Debug)]
pub struct DocumentRow {
    /// The document's reference.
    pub document_ref: DocumentRef,
    /// The document's number.
    pub number: DocumentNumber,
    /// Invoice, credit or debit.
    pub kind: DocumentKind,
    /// The current state.
    pub state: DocumentState,
    /// The purpose of the document.
    pub purpose: PurposeKind,
    /// The contract's number.
    pub contract_number: String,
    /// The customer's reference.
    pub customer_ref: CustomerRef,
    /// The customer's name on the document.
    pub customer_name: OneLine,
    /// The billing entity's reference.
    pub entity_ref: EntityRef,
    /// The document's own period.
    pub period: Period,
    /// The issue date.
    pub issue_date: Option<Date>,
    /// The due date.
    pub due_date: Option<Date>,
    /// The date on which the amount due became zero.
    pub paid_date: Option<Date>,
    /// The sum of the products.
    pub sub_total: Money,
    /// The sum of the discounts.
    pub total_discount: Money,
    /// The sum of the prepaid credit.
    pub total_prepaid: Money,
    /// The sum of the taxes.
    pub total_tax: Money,
    /// The total with tax.
    pub total: Money,
    /// The payments applied to the document.
    pub paid: Money,
    /// The credits applied to the document.
    pub credits: Money,
    /// The outstanding amounts.
    pub owed: OutstandingAmounts,
    /// The purchase order number.
    pub po_number: Option<OneLine>,
    /// The parent document with its number.
    pub parent: Option<(DocumentRef, DocumentNumber)>,
}

/// Passes all documents that match a query to `sink`, row by row, from one snapshot of the database. Memory use does not grow
/// with the number of documents.
///
/// # Errors
/// Returns [`ReportError::Sink`] with the error of `sink`.
pub fn tabulate_documents(
    services: &Services,
    principal: &Principal,
    query: Option<&DocumentQuery>,
    order: DocumentOrder,
    sink: &mut dyn FnMut(&DocumentRow) -> io::Result<()>,
) -> Result<(), ReportError> {
    let now = services.now();
    let organization = allow(principal, UseCase::ListDocuments)?;
    let Some(query) = query else { return Ok(()) };
    let mut handed_over = false;
    transact(&*services.store, Access::Read, |tx| {
        if handed_over {
            // The output that was already written cannot be undone, so the transaction cannot be retried.
            return Err(StoreError::Contended.into());
        }
        let Some(filter) = query.resolve(tx, organization, now)? else { return Ok(()) };
        let mut part = ListWindow { after: None, skip: 0, limit: ROWS_AT_ONCE };
        loop {
            let documents = tx.listed_documents(organization, &filter, order, part)?;
            let Some(last) = documents.last() else { return Ok(()) };
            part.after = Some(order.position(last));
            for row in rows(tx, organization, documents, now)? {
                handed_over = true;
                sink(&row)?;
            }
        }
    })
}

fn rows(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    documents: Vec<Document>,
    now: Timestamp,
) -> UseCaseResult<Vec<DocumentRow>> {
    let contracts = distinct(documents.iter().map(|document| document.head.contract_ref));
    let customers = distinct(documents.iter().map(|document| document.head.customer_id));
    let contracts: BTreeMap<ContractRef, u64> = tx.contract_numbers(organization, &customers, &contracts)?.into_iter().collect();
    let parents = distinct(documents.iter().filter_map(|document| document.head.parent));
    let parents = if parents.is_empty() { Vec::new() } else { tx.book_documents_by_refs(organization, &customers, &parents)? };
    let parents: HashMap<DocumentRef, DocumentNumber> =
        parents.into_iter().map(|parent| (parent.head.document_ref, parent.head.number)).collect();
    let mut books = books_of(tx, organization, documents.iter().filter(|document| document.is_draft()), now)?;
    let mut rows = Vec::with_capacity(documents.len());
    for document in documents {
        let DocumentHead { document_ref, contract_ref, .. } = document.head;
        let number = contracts.get(&contract_ref).ok_or_else(|| corrupt("a document", &document_ref, "has no contract"))?;
        let parent = document.head.parent.and_then(|parent| Some((parent, parents.get(&parent)?.clone())));
        let draft_content = match &document.lifecycle {
            Lifecycle::Issued(issued) | Lifecycle::Uncollectible(issued) | Lifecycle::Void(issued) => DraftContent {
                parties: issued.parties.clone(),
                po_number: issued.po_number.clone(),
                note: None,
                content: issued.content.clone(),
                paper: None,
            },
            Lifecycle::Draft | Lifecycle::Discarded(_) => unissued_content(tx, organization, &mut books, &document, now)?,
        };
        let (issue_date, due_date) = (document.lifecycle.issued().map(|issued| issued.issue_date), document.due_date());
        let (state, settlement, status) = (document.state()?, document.settlement, document.lifecycle.status());
        let DocumentHead { number: document_number, kind, purpose, entity_ref, period, .. } = document.head;
        rows.push(DocumentRow {
            document_ref,
            number: document_number,
            kind,
            state,
            purpose: purpose.into(),
            contract_number: format!("C-{number}"),
            customer_ref: draft_content.parties.customer_ref,
            customer_name: draft_content.parties.customer_name,
            entity_ref,
            period,
            issue_date,
            due_date,
            paid_date: settlement.paid_date,
            sub_total: draft_content.content.sub_total,
            total_discount: draft_content.content.total_discount,
            total_prepaid: draft_content.content.total_prepaid()?,
            total_tax: draft_content.content.total_tax,
            total: draft_content.content.total,
            paid: settlement.paid,
            credits: settlement.credits,
            owed: settlement.owed(kind, status, draft_content.content.total)?,
            po_number: draft_content.po_number,
            parent,
        });
    }
    Ok(rows)
}
