//! What lists of documents are narrowed to, in which order they come, and where a list goes on.

use actix_web::HttpResponse;
use actix_web::http::header::LINK;
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
use billing_domain::text::OneLine;
use billing_report::ReportFormat;

use super::lists::possible;
use super::{
    AnyText, CURSOR, ContractNumber, DEFAULT_PAGE_SIZE, NUMBER, Paged, Query, SIZE, SearchRef, TOTAL, last_page,
    refuse_number_beside_cursor,
};
use crate::dto::declare::{Fieldset as _, params};
use crate::dto::documents::DocumentJson;
use crate::dto::enums::DocumentOrderWord;
use crate::dto::input::Fields;
use crate::problem::Problem;

const TOTALS: &str = "totals";
const FORMAT: &str = "format";
pub(crate) const TOTAL_AMOUNT: &str = "x-total-amount";
pub(crate) const TOTAL_AMOUNT_DUE: &str = "x-total-amount-due";

/// What is asked of the documents that pass a query.
#[derive(Clone, Copy, Debug)]
pub(crate) enum DocumentListRequest {
    /// A part of them, and the page it is, where it is one with a number.
    Part(DocumentPart, Option<PageRequest>),
    /// All of them, as a table in an order.
    Table(ReportFormat, DocumentOrder),
}

params! {
    /// Which documents.
    DocumentParams {
        /// This customer's.
        customer_ref: Option<SearchRef<CustomerRef>>,
        /// This contract's.
        contract_ref: Option<SearchRef<ContractRef>>,
        /// This entity's.
        entity_ref: Option<SearchRef<EntityRef>>,
        /// Of this kind.
        kind: Option<DocumentKind>,
        /// In this state.
        state: Option<DocumentState>,
        /// Whose period starts on this day or later.
        from: Option<Date>,
        /// Whose period starts on this day or earlier.
        to: Option<Date>,
        /// With this number.
        document_number: Option<SearchRef<DocumentNumber>>,
        /// Of the contract with this number.
        contract_number: Option<SearchRef<ContractNumber>>,
        /// With this purchase order number.
        po_number: Option<SearchRef<OneLine>>,
        /// That exist for this.
        purpose: Option<PurposeKind>,
        /// In this currency.
        currency: Option<Currency>,
        /// Issued on this day or later.
        issued_from: Option<Date>,
        /// Issued on this day or earlier.
        issued_to: Option<Date>,
        /// Due on this day or later.
        due_from: Option<Date>,
        /// Due on this day or earlier.
        due_to: Option<Date>,
        /// Opened, issued, put out of force, paid, credited, applied or written off at this instant or later: RFC 3339 with an offset.
        updated_since: Option<Timestamp>,
        /// Whether something is left to pay of an invoice or debit.
        has_amount_due: Option<bool>,
        /// Whether the due date has passed with something left to pay.
        overdue: Option<bool>,
    }
}

impl DocumentParams {
    /// What is looked for; `None` where nothing can be found.
    fn query(self) -> Option<DocumentQuery> {
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
    /// Which documents, in which order, from where on, and how they are written.
    DocumentListParams {
        @flat documents: DocumentParams,
        /// By when they were opened, when left out. What isn't issued has neither dates nor amount, what is never due has no due date,
        /// and comes last.
        order: DocumentOrderWord = DocumentOrder::default(),
        /// Where to go on: from the `next` link of the same list. Not with `pageNumber`.
        cursor: Option<AnyText>,
        /// Whether all documents are counted and summed up: `true` when left out, with `cursor` `false`.
        totals: Option<bool>,
        /// Writes every document as a row of a table, without pages.
        format: Option<ReportFormat>,
        @flat page: Paged<DEFAULT_PAGE_SIZE>,
    }
    with {
        fn check(fields: Fields<'_>) {
            if fields.has(FORMAT) {
                for name in [SIZE, NUMBER, CURSOR, TOTALS].into_iter().filter(|name| fields.has(name)) {
                    fields.refuse::<()>(name, "invalid_value", "can't be given with format: a table has every document");
                }
            } else {
                refuse_number_beside_cursor(fields);
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
                    let reason = "must be taken from the next link of the same list in the same order";
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
    /// Documents, and what is asked of them. No query for a reference or number that can't exist.
    pub(crate) fn documents(&self) -> Result<(Option<DocumentQuery>, DocumentListRequest), Problem> {
        self.read_as(|fields| {
            let asked = DocumentListParams::read_whole(fields)?;
            asked.asked(fields).map(|of| (asked.documents.query(), of))
        })
    }

    /// The answer with a part of the documents that were asked for: as of other lists, and with what all amount to by currency.
    pub(crate) fn answer_documents(&self, part: DocumentPart, page: Option<PageRequest>, list: &DocumentList) -> HttpResponse {
        let elements: Vec<DocumentJson> = list.items.iter().map(DocumentJson::from).collect();
        let mut response = HttpResponse::Ok();
        if let Some(sums) = &list.sums {
            response.insert_header((TOTAL, sums.count.to_string()));
            if !sums.amounts.is_empty() {
                response.insert_header((TOTAL_AMOUNT, shown(sums, |amounts| amounts.total)));
                response.insert_header((TOTAL_AMOUNT_DUE, shown(sums, |amounts| amounts.due)));
            }
        }
        response.insert_header((LINK, self.document_links(part, page, list)));
        response.json(elements)
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

/// `EUR 12.50, USD 0.00`.
fn shown(sums: &DocumentSums, amount: impl Fn(&DocumentAmounts) -> MoneySum) -> String {
    let shown = |amounts: &DocumentAmounts| format!("{} {}", amounts.currency().code(), amount(amounts).to_decimal());
    sums.amounts.iter().map(shown).collect::<Vec<_>>().join(", ")
}

/// A place in a list, as a caller gives it back: the order, what the document there is ordered by, and its reference.
fn cursor(order: DocumentOrder, position: &DocumentPosition) -> String {
    let key = match position.key {
        OrderedBy::Created(at) => at.as_micros().to_string(),
        OrderedBy::Day(day) => day.to_string(),
        OrderedBy::Amount(amount) => format!("{}:{}", amount.currency().code(), amount.minor()),
        OrderedBy::Nothing => NOT_ISSUED.to_owned(),
    };
    format!("{}~{key}~{}", DocumentOrderWord::word(order), position.document_ref)
}

/// What stands in a cursor behind everything that was issued.
const NOT_ISSUED: &str = "none";

/// Reads what [`cursor`] wrote for the same order.
fn read_cursor(order: DocumentOrder, text: &str) -> Option<DocumentPosition> {
    let mut parts = text.split('~');
    let (word, key, document_ref) = (parts.next()?, parts.next()?, parts.next()?);
    if parts.next().is_some() || word != DocumentOrderWord::word(order) {
        return None;
    }
    let key = match order.by {
        DocumentSortKey::Created => OrderedBy::Created(Timestamp::from_micros(key.parse().ok()?).ok()?),
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
