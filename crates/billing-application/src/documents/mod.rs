//! Views of documents: stored and planned ones, drafts rated as of now, and issued documents as issued.

mod e_invoice;
mod issue_and_void;
mod list;
mod payments;
mod print;

pub use e_invoice::{EInvoiceToWrite, WantedEInvoice, WrittenEInvoice, find_e_invoice, write_e_invoice};
pub use issue_and_void::{issue_document, void_document};
pub use list::{DocumentList, DocumentPart, DocumentQuery, DocumentRow, list_documents, summarize_documents, tabulate_documents};
pub use payments::{
    DepositAccount, PaymentOutcome, PaymentQuery, PaymentView, SourceRef, apply, list_payments, payments_of_customer,
    payments_of_document, record_deposit, record_payment, refund, reverse_payment, unapply, write_off,
};
pub use print::{PrintedDocument, ToPrint, WantedPrint, find_print, keep_attached_e_invoice, keep_print, print_document};

use std::collections::{BTreeMap, BTreeSet, HashMap};

use billing_domain::calendar::{Date, Period, Timestamp};
use billing_domain::document::legal_particulars::{LegalParticulars, missing};
use billing_domain::document::lines::FamilySums;
use billing_domain::document::numbering::DocumentNumber;
use billing_domain::document::printout::Printout;
use billing_domain::document::totals::{DocumentContent, total_up};
use billing_domain::document::{
    AtIssue, BookDocument, CONTENT_FORMAT, Document, DocumentHead, DocumentKind, DocumentState, DraftContent, IssuedDocument,
    Lifecycle, LifecycleStatus, OutstandingAmounts, Parties, Purpose, Settlement,
};
use billing_domain::ledger::ContractBook;
use billing_domain::ledger::preview::{self, DocumentPreview};
use billing_domain::money::{Currency, Money};
use billing_domain::party::{NetTerms, PaymentDetails};
use billing_domain::ports::Tx;
use billing_domain::receivables::{Application, ApplicationSource, WriteOff};
use billing_domain::refs::{ContractRef, CustomerId, DocumentRef, OrganizationId};
use billing_domain::text::{OneLine, Prose};

use crate::book_repository::{self, corrupt};
use crate::carry_out::Cx;
use crate::error::{ResourceKind, UseCaseError, UseCaseResult};

/// A document with all fields that the API shows.
#[derive(Clone, Debug)]
pub struct DocumentView {
    /// The fields assigned when a document is opened. `None` for a planned document.
    pub opened: Option<OpenedFields>,
    /// Invoice, credit or debit.
    pub kind: DocumentKind,
    /// The current state.
    pub state: DocumentState,
    /// The purpose of the document.
    pub purpose: Purpose,
    /// The contract that the document bills.
    pub contract_ref: ContractRef,
    /// The contract's number.
    pub contract_number: String,
    /// The billing entity and the customer.
    pub parties: Parties,
    /// The currency of all amounts.
    pub currency: Currency,
    /// The payment terms.
    pub net_terms: NetTerms,
    /// The payment instructions.
    pub payment: PaymentDetails,
    /// The document's own period.
    pub period: Period,
    /// Whether the period is shorter than a whole one.
    pub is_partial_period: bool,
    /// The format of the content.
    pub format: u8,
    /// The issue and due dates. `None` if the document is not issued.
    pub issued: Option<IssueDates>,
    /// Lines and totals.
    pub content: DocumentContent,
    /// The sum of the prepaid amounts of the content.
    pub total_prepaid: Money,
    /// The amounts paid, credited and used.
    pub settlement: Settlement,
    /// The outstanding amounts.
    pub owed: OutstandingAmounts,
    /// The applications to the document and from it.
    pub applications: Vec<ApplicationView>,
    /// The write-offs of the document, with their reductions.
    pub write_offs: Vec<WriteOff>,
    /// The purchase order number.
    pub po_number: Option<OneLine>,
    /// The notes of its products.
    pub note: Option<Prose>,
    /// The legal particulars. `None` for a document frozen before they were recorded.
    pub paper: Option<Box<LegalParticulars>>,
    /// The amounts applied at the issue. `None` for a document that is not issued or was frozen before they were recorded.
    pub at_issue: Option<AtIssue>,
    /// The characters that no font has, which a PDF file shows as boxes. Only the view of a single document has them.
    pub missing_glyphs: Option<String>,
}

impl DocumentView {
    /// Returns pointers to the missing legal information (billing rules 10).
    pub fn missing(&self) -> Vec<String> {
        missing(&self.parties, self.paper.as_deref(), &self.content)
    }

    /// Returns whether another view of the same document has the same content and outstanding amounts.
    pub(crate) fn says_the_same(&self, other: &Self) -> bool {
        let compared = |view: &Self| {
            let Self { state, period, net_terms, ref payment, ref parties, ref content, .. } = *view;
            let paper = (view.po_number.clone(), view.note.clone(), view.paper.clone());
            let owed = (view.settlement, view.owed, view.write_offs.clone());
            let content = content.without_calculations();
            ((state, period, net_terms), (payment.clone(), parties.clone(), content), paper, owed)
        };
        compared(self) == compared(other)
    }
}

/// The fields assigned when a document is opened.
#[derive(Clone, Debug)]
pub struct OpenedFields {
    /// The document's reference.
    pub document_ref: DocumentRef,
    /// The document's number.
    pub number: DocumentNumber,
    /// The document's sequence number within its contract.
    pub number_in_contract: u32,
    /// The void document that this one replaces.
    pub replaces: Option<DocumentRef>,
    /// The parent document.
    pub parent: Option<RelatedDocument>,
    /// The documents whose parent is this one.
    pub related: Vec<RelatedDocument>,
    /// When the document was opened.
    pub created_at: Timestamp,
    /// When the document last changed.
    pub updated_at: Timestamp,
}

/// A related document: a parent, a child or an adjustment.
#[derive(Clone, Debug)]
pub struct RelatedDocument {
    /// The document's reference.
    pub document_ref: DocumentRef,
    /// The document's number.
    pub number: DocumentNumber,
    /// Invoice, credit or debit.
    pub kind: DocumentKind,
    /// The purpose of the document.
    pub purpose: Purpose,
    /// The current state.
    pub state: DocumentState,
}

impl RelatedDocument {
    fn of(document: &BookDocument) -> UseCaseResult<Self> {
        let DocumentHead { document_ref, ref number, kind, purpose, .. } = document.head;
        Ok(Self { document_ref, number: number.clone(), kind, purpose, state: document.state()? })
    }
}

/// An application with the numbers of its documents.
#[derive(Clone, Debug)]
pub struct ApplicationView {
    /// The application.
    pub application: Application,
    /// The number of the credit it comes from. `None` for a payment.
    pub from_number: Option<DocumentNumber>,
    /// The number of the document it settles.
    pub to_number: DocumentNumber,
}

/// The dates of an issued document.
#[derive(Clone, Copy, Debug)]
pub struct IssueDates {
    /// The issue date in the entity's time zone.
    pub issue_date: Date,
    /// The due date. `None` for credits and for documents that are not in force.
    pub due_date: Option<Date>,
    /// Whether the due date has passed with an amount due.
    pub overdue: bool,
}

/// Returns a document.
///
/// # Errors
/// Returns [`UseCaseError::Unknown`] if the document does not exist.
pub fn get_document(cx: &mut Cx<'_>, document_ref: DocumentRef) -> UseCaseResult<DocumentView> {
    let document = cx.tx.document(cx.organization, document_ref)?.ok_or(UseCaseError::Unknown(ResourceKind::Document))?;
    let head = document.head.clone();
    let mut view = document_view(cx.tx, cx.organization, document, cx.now)?;
    let draft_content = DraftContent {
        parties: view.parties.clone(),
        po_number: view.po_number.clone(),
        note: view.note.clone(),
        content: view.content.clone(),
        paper: view.paper.clone(),
    };
    let missing = cx.services.printer.missing_glyphs(&Printout::of_draft(head, draft_content));
    view.missing_glyphs = (!missing.is_empty()).then_some(missing);
    Ok(view)
}

/// Returns the view of a document.
fn document_view(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    document: Document,
    now: Timestamp,
) -> UseCaseResult<DocumentView> {
    let relatives = RelatedDocuments::read(tx, organization, [&document])?;
    let mut books = Vec::new();
    let book = book_of(tx, organization, &mut books, &document, now)?;
    show_document(book, &relatives, document, now)
}

/// Returns the views of documents, in the same order.
pub(crate) fn view_all(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    documents: Vec<Document>,
    now: Timestamp,
) -> UseCaseResult<Vec<DocumentView>> {
    let relatives = RelatedDocuments::read(tx, organization, &documents)?;
    let mut books = books_of(tx, organization, &documents, now)?;
    let mut views = Vec::with_capacity(documents.len());
    for document in documents {
        let book = book_of(tx, organization, &mut books, &document, now)?;
        views.push(show_document(book, &relatives, document, now)?);
    }
    Ok(views)
}

/// Loads the books of documents' contracts together, as [`book_of`] has them. PostgreSQL answers each statement in a round
/// trip, and a page may have a thousand drafts, each of another contract.
fn books_of<'d>(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    documents: impl IntoIterator<Item = &'d Document>,
    now: Timestamp,
) -> UseCaseResult<Vec<(bool, ContractBook)>> {
    let (mut contracts, mut drafted) = (BTreeSet::new(), BTreeSet::new());
    for document in documents {
        contracts.insert(document.head.contract_key(organization));
        if document.is_draft() {
            drafted.insert(document.head.contract_ref);
        }
    }
    if contracts.len() <= 1 {
        // A single contract is read with the terms that are cached.
        return Ok(Vec::new());
    }
    let headers = book_repository::load_headers(tx, organization, &Vec::from_iter(contracts))?;
    let is_drafted = |book: &ContractBook| drafted.contains(&book.contract.contract_ref);
    let (whole, headers): (Vec<ContractBook>, Vec<ContractBook>) = headers.into_iter().partition(is_drafted);
    let whole = book_repository::load_books(tx, organization, whole, now)?;
    Ok(whole.into_iter().map(|book| (true, book)).chain(headers.into_iter().map(|book| (false, book))).collect())
}

/// Returns the book of a document's contract, loaded once for all documents of the contract. Frozen documents need only the
/// contract and its parties.
fn book_of<'a>(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    books: &'a mut Vec<(bool, ContractBook)>,
    document: &Document,
    now: Timestamp,
) -> UseCaseResult<&'a ContractBook> {
    let head = &document.head;
    let needs_whole = document.is_draft();
    let known = books.iter().position(|(_, book)| book.contract.contract_ref == head.contract_ref);
    let index = match known {
        Some(index) => index,
        None => {
            let book = book_repository::load_header(tx, head.contract_key(organization), None)?;
            books.push((false, book.ok_or_else(|| corrupt("a document", &head.document_ref, "has no contract"))?));
            books.len() - 1
        }
    };
    if needs_whole && !books[index].0 {
        books[index] = (true, book_repository::load_book(tx, organization, books[index].1.clone(), now)?);
    }
    Ok(&books[index].1)
}

/// Documents related to given ones: parents, children, and documents linked by applications.
#[derive(Default)]
pub(crate) struct RelatedDocuments {
    documents: HashMap<DocumentRef, BookDocument>,
    applications: Vec<ApplicationView>,
    write_offs: Vec<WriteOff>,
}

/// Returns whether a document has any applications.
fn is_applied(settlement: &Settlement) -> bool {
    [settlement.paid, settlement.credits, settlement.used].iter().any(|amount| amount.minor() != 0)
}

/// Adds the document numbers to the applications of a customer.
fn applications_shown(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    customer_id: CustomerId,
    applications: Vec<Application>,
) -> UseCaseResult<Vec<ApplicationView>> {
    if applications.is_empty() {
        return Ok(Vec::new());
    }
    let named = applications.iter().flat_map(|application| {
        let credit = match application.from {
            ApplicationSource::Credit(credit) => Some(credit),
            ApplicationSource::Payment(_) => None,
        };
        [Some(application.to), credit].into_iter().flatten()
    });
    let documents = tx.book_documents_by_refs(organization, &[customer_id], &book_repository::distinct(named))?;
    let numbers: HashMap<DocumentRef, DocumentNumber> =
        documents.into_iter().map(|document| (document.head.document_ref, document.head.number)).collect();
    let number = |document_ref: DocumentRef| {
        numbers.get(&document_ref).cloned().ok_or_else(|| corrupt("a document", &document_ref, "is not there"))
    };
    let show = |application: Application| {
        let from_number = match application.from {
            ApplicationSource::Credit(credit) => Some(number(credit)?),
            ApplicationSource::Payment(_) => None,
        };
        Ok(ApplicationView { from_number, to_number: number(application.to)?, application })
    };
    applications.into_iter().map(show).collect()
}

impl RelatedDocuments {
    /// Loads the related documents: the children of all documents together, and the others customer by customer, where
    /// there are any.
    fn read<'d>(
        tx: &mut dyn Tx,
        organization: OrganizationId,
        documents: impl IntoIterator<Item = &'d Document>,
    ) -> UseCaseResult<Self> {
        #[derive(Default)]
        struct LinkRow {
            parents: BTreeSet<DocumentRef>,
            /// Only these can have write-offs.
            issued: Vec<DocumentRef>,
            applied: Vec<DocumentRef>,
        }
        let mut of_customer: BTreeMap<CustomerId, LinkRow> = BTreeMap::new();
        let mut own: Vec<(CustomerId, DocumentRef)> = Vec::new();
        for Document { head, lifecycle, settlement, .. } in documents {
            own.push((head.customer_id, head.document_ref));
            let around = of_customer.entry(head.customer_id).or_default();
            around.parents.extend(head.parent);
            around.issued.extend(lifecycle.issued().map(|_| head.document_ref));
            around.applied.extend(is_applied(settlement).then_some(head.document_ref));
        }
        let mut relatives = Self::default();
        relatives.add(tx.documents_of_parents(organization, &own)?);
        for (customer_id, LinkRow { parents, issued, applied }) in of_customer {
            if !parents.is_empty() {
                relatives.add(tx.book_documents_by_refs(organization, &[customer_id], &Vec::from_iter(parents))?);
            }
            relatives.add_applications(tx, organization, customer_id, &applied)?;
            if !issued.is_empty() {
                relatives.write_offs.extend(tx.write_offs_of(organization, customer_id, &issued)?);
            }
        }
        Ok(relatives)
    }

    fn add_applications(
        &mut self,
        tx: &mut dyn Tx,
        organization: OrganizationId,
        customer_id: CustomerId,
        documents: &[DocumentRef],
    ) -> UseCaseResult<()> {
        if !documents.is_empty() {
            let around = tx.applications_around(organization, customer_id, documents, &[])?;
            self.applications.extend(applications_shown(tx, organization, customer_id, around)?);
        }
        Ok(())
    }

    /// Returns the applications to a document and from it.
    fn applications(&self, document_ref: DocumentRef) -> Vec<ApplicationView> {
        let is_of_it = |shown: &&ApplicationView| {
            shown.application.to == document_ref || shown.application.from == ApplicationSource::Credit(document_ref)
        };
        self.applications.iter().filter(is_of_it).cloned().collect()
    }

    /// Returns the documents of a whole book and the children of `parents`.
    pub(crate) fn of_book(
        tx: &mut dyn Tx,
        organization: OrganizationId,
        book: &ContractBook,
        parents: &[DocumentRef],
    ) -> UseCaseResult<Self> {
        let mut relatives = Self::default();
        relatives.add(book.documents().cloned());
        // A child with an open adjustment is already in the book.
        if book.has_children() || relatives.children().next().is_some() {
            let parents: Vec<(CustomerId, DocumentRef)> =
                parents.iter().map(|parent| (book.contract.customer_id, *parent)).collect();
            relatives.add(tx.documents_of_parents(organization, &parents)?);
        }
        Ok(relatives)
    }

    /// Loads the remaining rows for the shown documents: missing parents, applications and write-offs.
    pub(crate) fn complete(
        &mut self,
        tx: &mut dyn Tx,
        organization: OrganizationId,
        book: &ContractBook,
        shown: &[DocumentRef],
    ) -> UseCaseResult<()> {
        let customer_id = book.contract.customer_id;
        let known: Vec<&BookDocument> = shown.iter().filter_map(|document_ref| self.documents.get(document_ref)).collect();
        let applied: Vec<DocumentRef> =
            known.iter().filter(|of| is_applied(&of.settlement)).map(|of| of.head.document_ref).collect();
        let given_up: Vec<DocumentRef> = known
            .iter()
            .filter(|of| is_applied(&of.settlement) || of.status == LifecycleStatus::Uncollectible)
            .map(|of| of.head.document_ref)
            .collect();
        let parents = known.iter().filter_map(|of| of.head.parent).filter(|parent| !self.documents.contains_key(parent));
        let parents = book_repository::distinct(parents);
        if !parents.is_empty() {
            self.add(tx.book_documents_by_refs(organization, &[customer_id], &parents)?);
        }
        self.add_applications(tx, organization, customer_id, &applied)?;
        if !given_up.is_empty() {
            self.write_offs.extend(tx.write_offs_of(organization, customer_id, &given_up)?);
        }
        Ok(())
    }

    /// Returns the child documents of events, ordered by creation.
    pub(crate) fn children(&self) -> impl Iterator<Item = &BookDocument> {
        let mut children: Vec<&BookDocument> =
            self.documents.values().filter(|document| document.head.purpose == Purpose::Usage).collect();
        children.sort_by_key(|child| (child.head.created_at, child.head.document_ref));
        children.into_iter()
    }

    /// Returns the documents with the given parent, ordered by creation.
    fn below(&self, parent: DocumentRef) -> Vec<&BookDocument> {
        let mut below: Vec<&BookDocument> = self.documents.values().filter(|other| other.head.parent == Some(parent)).collect();
        below.sort_by_key(|other| (other.head.created_at, other.head.document_ref));
        below
    }

    fn add(&mut self, documents: impl IntoIterator<Item = BookDocument>) {
        self.documents.extend(documents.into_iter().map(|document| (document.head.document_ref, document)));
    }

    fn opened(&self, head: &DocumentHead, updated_at: Timestamp) -> UseCaseResult<OpenedFields> {
        let parent = match head.parent {
            None => None,
            Some(parent) => {
                let found = self.documents.get(&parent);
                Some(RelatedDocument::of(found.ok_or_else(|| corrupt("a document", &parent, "is not there"))?)?)
            }
        };
        Ok(OpenedFields {
            document_ref: head.document_ref,
            number: head.number.clone(),
            number_in_contract: head.number_in_contract,
            replaces: head.replaces,
            parent,
            related: self.below(head.document_ref).into_iter().map(RelatedDocument::of).collect::<UseCaseResult<_>>()?,
            created_at: head.created_at,
            updated_at,
        })
    }
}

/// Returns the views of a book's documents, given by reference.
pub(crate) fn show_refs(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    book: &ContractBook,
    refs: &[DocumentRef],
    now: Timestamp,
) -> UseCaseResult<Vec<DocumentView>> {
    let mut relatives = RelatedDocuments::of_book(tx, organization, book, refs)?;
    relatives.complete(tx, organization, book, refs)?;
    let shown = refs.iter().map(|document_ref| preview::stored(book, *document_ref)).collect::<Result<_, _>>()?;
    show_all(tx, organization, book, &relatives, shown, now)
}

/// Returns the views of a book's documents. Drafts are shown as the book has them, possibly as they would be opened or
/// issued. Other documents are shown as stored.
pub(crate) fn show_all(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    book: &ContractBook,
    relatives: &RelatedDocuments,
    shown: Vec<DocumentPreview>,
    now: Timestamp,
) -> UseCaseResult<Vec<DocumentView>> {
    let frozen: Vec<DocumentRef> =
        shown.iter().filter(|shown| shown.content.is_none()).map(|shown| shown.document.head.document_ref).collect();
    let mut stored: HashMap<DocumentRef, Document> = HashMap::new();
    if !frozen.is_empty() {
        let found = tx.documents_by_refs(organization, &[book.contract.customer_id], &frozen)?;
        stored.extend(found.into_iter().map(|document| (document.head.document_ref, document)));
    }
    let show = |shown: DocumentPreview| {
        let DocumentPreview { document, is_opened, content } = shown;
        match content {
            Some(content) => {
                let opened = is_opened.then(|| relatives.opened(&document.head, document.updated_at)).transpose()?;
                let state = DocumentState::Draft;
                unissued_view(book, document.head, (LifecycleStatus::Draft, state), document.settlement, opened, content)
            }
            None => {
                let document_ref = document.head.document_ref;
                let document =
                    stored.remove(&document_ref).ok_or_else(|| corrupt("a document", &document_ref, "is not there"))?;
                show_document(book, relatives, document, now)
            }
        }
    };
    shown.into_iter().map(show).collect()
}

/// Returns the view of a stored document: a draft as rated now, an issued document as issued.
fn show_document(
    book: &ContractBook,
    relatives: &RelatedDocuments,
    document: Document,
    now: Timestamp,
) -> UseCaseResult<DocumentView> {
    let state = document.state()?;
    let Document { head, lifecycle, settlement, updated_at, .. } = document;
    let stands = (lifecycle.status(), state);
    let opened = Some(relatives.opened(&head, updated_at)?);
    let issued = match lifecycle {
        Lifecycle::Issued(issued) | Lifecycle::Uncollectible(issued) | Lifecycle::Void(issued) => issued,
        Lifecycle::Draft => {
            let content = book.draft_content(head.document_ref)?;
            return unissued_view(book, head, stands, settlement, opened, content);
        }
        Lifecycle::Discarded(content) => {
            let content = content.map_or_else(|| forgotten(book, &head), |content| Ok(*content))?;
            return unissued_view(book, head, stands, settlement, opened, content);
        }
    };
    let today = book.entity(&head.entity_ref)?.profile.time_zone.service_date(now);
    let applications = relatives.applications(head.document_ref);
    let write_offs =
        relatives.write_offs.iter().filter(|write_off| write_off.document_ref == head.document_ref).cloned().collect();
    let IssuedDocument { format, issue_date, due_date, parties, po_number, note, content, paper, at_issue, .. } = *issued;
    let draft_content = DraftContent { parties, po_number, note, content, paper };
    let view = unissued_view(book, head, stands, settlement, opened, draft_content)?;
    let overdue = view.owed.amount_due.is_some_and(|due| due.minor() > 0) && today > due_date;
    let dates = IssueDates { issue_date, due_date: view.owed.amount_due.map(|_| due_date), overdue };
    Ok(DocumentView { format, issued: Some(dates), applications, write_offs, at_issue, ..view })
}

/// Returns the content of a document that was not issued: a draft as of now, a voided draft as of its voiding.
fn unissued_content(
    tx: &mut dyn Tx,
    organization: OrganizationId,
    books: &mut Vec<(bool, ContractBook)>,
    document: &Document,
    now: Timestamp,
) -> UseCaseResult<DraftContent> {
    if let Lifecycle::Discarded(Some(draft_content)) = &document.lifecycle {
        return Ok((**draft_content).clone());
    }
    let book = book_of(tx, organization, books, document, now)?;
    if document.is_draft() { Ok(book.draft_content(document.head.document_ref)?) } else { forgotten(book, &document.head) }
}

/// Returns empty content for drafts voided by early releases, which did not store it.
fn forgotten(book: &ContractBook, head: &DocumentHead) -> UseCaseResult<DraftContent> {
    Ok(DraftContent {
        parties: Parties::of(&book.customer, book.entity(&head.entity_ref)?),
        po_number: None,
        note: None,
        content: total_up(head.currency, head.kind, Vec::new(), &FamilySums::default())?,
        paper: None,
    })
}

/// Returns the format of content that is not issued. Drafts voided by early releases lack legal particulars or calculations.
fn unissued_format(draft_content: &DraftContent) -> u8 {
    let mut lines = draft_content.content.products.iter().flat_map(|product| &product.lines);
    match draft_content.paper {
        None => 1,
        Some(_) if lines.any(|line| line.calculation.is_none()) => 2,
        Some(_) => CONTENT_FORMAT,
    }
}

fn unissued_view(
    book: &ContractBook,
    head: DocumentHead,
    (status, state): (LifecycleStatus, DocumentState),
    settlement: Settlement,
    opened: Option<OpenedFields>,
    draft_content: DraftContent,
) -> UseCaseResult<DocumentView> {
    let format = unissued_format(&draft_content);
    Ok(DocumentView {
        opened,
        kind: head.kind,
        state,
        purpose: head.purpose,
        contract_ref: head.contract_ref,
        contract_number: book.contract.number_text(),
        parties: draft_content.parties,
        currency: head.currency,
        net_terms: head.net_terms,
        payment: head.payment,
        period: head.period,
        is_partial_period: head.is_partial_period,
        format,
        issued: None,
        owed: settlement.owed(head.kind, status, draft_content.content.total)?,
        applications: Vec::new(),
        write_offs: Vec::new(),
        total_prepaid: draft_content.content.total_prepaid()?,
        content: draft_content.content,
        settlement,
        po_number: draft_content.po_number,
        note: draft_content.note,
        paper: draft_content.paper,
        at_issue: None,
        missing_glyphs: None,
    })
}
