//! Filters, order and cursors of document lists.

use billing_application::documents::{DocumentList, DocumentPart, DocumentQuery};
use billing_domain::calendar::{Date, Timestamp, parse_date};
use billing_domain::document::numbering::DocumentNumber;
use billing_domain::document::{DocumentKind, DocumentState};
use billing_domain::money::{Currency, Money, MoneySum};
use billing_domain::page::PageRequest;
use billing_domain::ports::{
    DocumentAmounts, DocumentFilter, DocumentOrder, DocumentPosition, DocumentSortKey, DocumentSums, ListWindow, OrderedBy,
    PurposeKind,
};
use billing_domain::refs::{ContractRef, CustomerRef, DocumentRef, EntityRef};
use billing_domain::report::ReportFormat;
use billing_domain::text::OneLine;
use http::header::{HeaderName, LINK};

use super::lists::possible;
use super::{
    AnyText, CURSOR, ContractNumber, DEFAULT_PAGE_SIZE, NUMBER, Paged, Query, SIZE, SearchRef, TOTAL, last_page,
    require_number_or_cursor,
};
use crate::dto::declare::{Fieldset as _, params};
use crate::dto::documents::DocumentJson;
use crate::dto::enums::DocumentOrderWord;
use crate::dto::input::Fields;
use crate::dto::wire::written;
use crate::problem::Problem;
use crate::stored_response::Success;

const TOTALS: &str = "totals";
const FORMAT: &str = "format";
pub const TOTAL_AMOUNT: HeaderName = HeaderName::from_static("x-total-amount");
pub const TOTAL_AMOUNT_DUE: HeaderName = HeaderName::from_static("x-total-amount-due");

/// The requested form of a document list.
#[derive(Clone, Copy, Debug)]
pub enum DocumentListRequest {
    /// A part of the list, with its page if requested by number.
    Part(DocumentPart, Option<PageRequest>),
    /// All documents as a table in an order.
    Table(ReportFormat, DocumentOrder),
}

params! {
    /// Filters of documents.
    DocumentParams {
        /// Customer reference.
        customer_ref: Option<SearchRef<CustomerRef>>,
        /// Contract reference.
        contract_ref: Option<SearchRef<ContractRef>>,
        /// Supplier entity reference.
        entity_ref: Option<SearchRef<EntityRef>>,
        /// Document kind.
        kind: Option<DocumentKind>,
        /// Document state.
        state: Option<DocumentState>,
        /// Earliest first day of the period.
        from: Option<Date>,
        /// Latest first day of the period.
        to: Option<Date>,
        /// Document number.
        document_number: Option<SearchRef<DocumentNumber>>,
        /// Contract number.
        contract_number: Option<SearchRef<ContractNumber>>,
        /// Purchase order number.
        po_number: Option<SearchRef<OneLine>>,
        /// Purpose.
        purpose: Option<PurposeKind>,
        /// Currency.
        currency: Option<Currency>,
        /// Earliest date of issue.
        issued_from: Option<Date>,
        /// Latest date of issue.
        issued_to: Option<Date>,
        /// Earliest due date.
        due_from: Option<Date>,
        /// Latest due date.
        due_to: Option<Date>,
        /// Earliest time of the last change (`updated_at`), RFC 3339 with an offset.
        updated_since: Option<Timestamp>,
        /// Whether an invoice or debit has an amount due.
        has_amount_due: Option<bool>,
        /// Whether an amount is still due after the due date.
        overdue: Option<bool>,
    }
}

impl DocumentParams {
    /// Returns the query; `None` if nothing can match.
    pub fn query(self) -> Option<DocumentQuery> {
        let filter = DocumentFilter {
            customer_id: None,
            contract_ref: possible(self.contract_ref)?,
            entity_ref: possible(self.entity_ref)?,
            kind: self.kind,
            state: self.state,
            from: self.from,
            to: self.to,
            number: possible(self.document_number)?,
            po_number: possible(self.po_number)?,
            purpose: self.purpose,
            currency: self.currency,
            issued_from: self.issued_from,
            issued_to: self.issued_to,
            due_from: self.due_from,
            due_to: self.due_to,
            updated_since: self.updated_since,
            has_amount_due: self.has_amount_due,
            overdue: None,
        };
        let contract_number = possible(self.contract_number)?.map(|number| number.0);
        Some(DocumentQuery { customer_ref: possible(self.customer_ref)?, contract_number, overdue: self.overdue, filter })
    }
}

params! {
    /// Filters, order, position and format of a document list.
    DocumentListParams {
        @flat documents: DocumentParams,
        /// Sort order. Default: by creation. Documents that are not issued have neither dates nor amount and come last,
        /// as do documents without a due date.
        order: DocumentOrderWord = DocumentOrder::default(),
        /// Position to continue from, as in the `next` link of the same list. Excludes `pageNumber`.
        cursor: Option<AnyText>,
        /// Whether to count and total all documents. Default: `true`, with `cursor` `false`.
        totals: Option<bool>,
        /// Format of a table with all documents, without pages.
        format: Option<ReportFormat>,
        @flat page: Paged<DEFAULT_PAGE_SIZE>,
    }
    with {
        fn check(fields: Fields<'_>) {
            if fields.has(FORMAT) {
                for name in [SIZE, NUMBER, CURSOR, TOTALS].into_iter().filter(|name| fields.has(name)) {
                    fields.refuse::<()>(name, "invalid_value", "must be omitted, because format is given and a table has every document");
                }
            } else {
                require_number_or_cursor(fields);
            }
        }
    }
}

impl DocumentListParams {
    fn asked(&self, fields: Fields<'_>) -> Option<DocumentListRequest> {
        if let Some(format) = self.format {
            return Some(DocumentListRequest::Table(format, self.order));
        }
        let after = match &self.cursor {
            None => None,
            Some(text) => match read_cursor(self.order, text) {
                Some(after) => Some(after),
                None => {
                    let reason = "must come from the `next` link of the same list in the same order";
                    return fields.refuse(CURSOR, "invalid_value", reason);
                }
            },
        };
        let (page, with_sums) = (self.page.0, self.totals.unwrap_or(after.is_none()));
        let part = if after.is_some() { ListWindow { after, skip: 0, limit: page.size() } } else { page.into() };
        Some(DocumentListRequest::Part(DocumentPart { order: self.order, part, with_sums }, after.is_none().then_some(page)))
    }
}

impl Query {
    /// Reads a document list request. The query is `None` for a malformed reference or number.
    pub fn documents(&self) -> Result<(Option<DocumentQuery>, DocumentListRequest), Problem> {
        self.read_as(|fields| {
            let asked = DocumentListParams::read_whole(fields)?;
            asked.asked(fields).map(|of| (asked.documents.query(), of))
        })
    }

    /// Builds the response with a part of the documents: as for other lists, with totals by currency.
    pub fn answer_documents(&self, part: DocumentPart, page: Option<PageRequest>, list: &DocumentList) -> Success {
        let elements: Vec<DocumentJson> = list.items.iter().map(DocumentJson::from).collect();
        let mut answer = Success::json(written(&elements)).with(LINK, &self.document_links(part, page, list));
        if let Some(sums) = &list.sums {
            answer = answer.with(TOTAL, &sums.count.to_string());
            if !sums.amounts.is_empty() {
                answer = answer.with(TOTAL_AMOUNT, &shown(sums, |amounts| amounts.total));
                answer = answer.with(TOTAL_AMOUNT_DUE, &shown(sums, |amounts| amounts.due));
            }
        }
        answer
    }

    fn document_links(&self, part: DocumentPart, page: Option<PageRequest>, list: &DocumentList) -> String {
        let size = u64::from(part.part.limit);
        let next = list.next.map(|next| format!("{CURSOR}={}", cursor(part.order, &next)));
        self.links_around(
            size,
            page.map(|page| page.number().into()),
            next,
            list.sums.as_ref().map(|sums| last_page(sums.count, size)),
        )
    }
}

/// Formats totals as `EUR 12.50, USD 0.00`.
fn shown(sums: &DocumentSums, amount: impl Fn(&DocumentAmounts) -> MoneySum) -> String {
    let shown = |amounts: &DocumentAmounts| format!("{} {}", amounts.currency().code(), amount(amounts).to_decimal());
    sums.amounts.iter().map(shown).collect::<Vec<_>>().join(", ")
}

/// Encodes a position in a list for callers: the order, the sort value and the reference of the document.
fn cursor(order: DocumentOrder, position: &DocumentPosition) -> String {
    let key = match position.key {
        OrderedBy::Created(at) | OrderedBy::Updated(at) => at.as_micros().to_string(),
        OrderedBy::Day(day) => day.to_string(),
        OrderedBy::Amount(amount) => format!("{}:{}", amount.currency().code(), amount.minor()),
        OrderedBy::Nothing => NOT_ISSUED.to_owned(),
    };
    format!("{}~{key}~{}", DocumentOrderWord::word(order), position.document_ref)
}

/// Sort value in a cursor after all issued documents.
const NOT_ISSUED: &str = "none";

/// Reads a position as written by [`cursor`] for the same order.
fn read_cursor(order: DocumentOrder, text: &str) -> Option<DocumentPosition> {
    let mut parts = text.split('~');
    let (word, key, document_ref) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || word != DocumentOrderWord::word(order) {
        return None;
    }
    let key = match order.by {
        DocumentSortKey::Created => OrderedBy::Created(Timestamp::from_micros(key.parse().ok()?).ok()?),
        DocumentSortKey::Updated => OrderedBy::Updated(Timestamp::from_micros(key.parse().ok()?).ok()?),
        _ if key == NOT_ISSUED => OrderedBy::Nothing,
        DocumentSortKey::IssueDate | DocumentSortKey::DueDate => OrderedBy::Day(parse_date(key).ok()?),
        DocumentSortKey::Amount => {
            let (currency, minor) = key.split_once(':')?;
            OrderedBy::Amount(Money::from_minor(minor.parse().ok()?, Currency::from_code(currency).ok()?))
        }
    };
    Some(DocumentPosition { key, document_ref: DocumentRef::parse(document_ref).ok()? })
}

#[cfg(test)]
#[path = "documents_tests.rs"]
mod tests;
