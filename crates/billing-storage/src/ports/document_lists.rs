//! Filters and orders of document lists. Conditions are written as the indexes have them.

use billing_domain::document::{DocumentKind, DocumentState};
use billing_domain::ports::{
    DocumentFilter, DocumentOrder, DocumentPosition, DocumentSortKey, ListWindow, LocalDates, OrderedBy, PurposeKind,
};
use billing_domain::refs::{CustomerId, OrganizationId};

use crate::statement::Statement;
use crate::text_value::TextValue as _;

/// The amount that payments and credits settled.
const SETTLED: &str = "paid_minor + credits_minor";
/// Restricts to issued invoices and debits: a credit also has the column `due_date`, and a void document keeps it.
const HAS_DUE_DATE: &str = " AND amount_due_minor IS NOT NULL";

/// Creates the part of a statement from FROM on, for documents that match a filter. `customer_id` is the customer of
/// the filter or of its contract.
pub(super) fn narrowed<R>(
    organization: OrganizationId,
    filter: &DocumentFilter,
    customer_id: Option<CustomerId>,
) -> Statement<R> {
    let mut s = Statement::new(" FROM documents WHERE ");
    if customer_id.is_some() {
        // A customer has fewer documents than the organization. SQLite has no statistics for that, so `+` hides the
        // organization's index.
        s.on_sqlite("+");
    }
    s.sql("organization_id = ").id(organization.as_uuid());
    if let Some(customer_id) = customer_id {
        s.sql(" AND customer_id = ").id(customer_id.as_uuid());
    }
    if let Some(contract_ref) = filter.contract_ref {
        s.sql(" AND contract_id = ").id(contract_ref.as_uuid());
    }
    if let Some(entity_ref) = &filter.entity_ref {
        s.sql(" AND entity_ref = ").text(entity_ref.as_str());
    }
    if let Some(kind) = filter.kind {
        s.sql(" AND kind = ").text(kind.to_text());
        if kind != DocumentKind::Invoice {
            s.sql(" AND kind <> 'INVOICE'");
        }
    }
    if let Some(purpose) = filter.purpose {
        s.sql(match purpose {
            PurposeKind::Regular => " AND purpose = 'REGULAR'",
            PurposeKind::Usage => " AND purpose = 'USAGE' AND purpose <> 'REGULAR'",
            PurposeKind::Adjustment => " AND purpose = 'ADJUSTMENT' AND purpose <> 'REGULAR'",
        });
    }
    if let Some(currency) = filter.currency {
        s.sql(" AND currency = ").text(currency.code());
    }
    if let Some(number) = &filter.number {
        s.sql(" AND number_prefix = ").text(number.prefix.as_str()).sql(" AND kind = ").text(number.kind.to_text());
        s.sql(" AND sequence = ").number(i64::try_from(number.sequence).unwrap_or(i64::MAX));
    }
    if let Some(po_number) = &filter.po_number {
        s.sql(" AND po_number = ").text(po_number.as_str());
    }
    if filter.due_from.is_some() || filter.due_to.is_some() {
        s.sql(HAS_DUE_DATE);
    }
    for (column, from, to) in [
        ("period_start", filter.from, filter.to),
        ("issue_date", filter.issued_from, filter.issued_to),
        ("due_date", filter.due_from, filter.due_to),
    ] {
        if let Some(from) = from {
            s.sql(format!(" AND {column} >= ")).day(from);
        }
        if let Some(to) = to {
            s.sql(format!(" AND {column} <= ")).day(to);
        }
    }
    if let Some(since) = filter.updated_since {
        s.sql(" AND updated_at >= ").ts(since);
    }
    if let Some(has_amount_due) = filter.has_amount_due {
        s.sql(if has_amount_due { " AND amount_due_minor > 0" } else { " AND coalesce(amount_due_minor, 0) <= 0" });
    }
    if let Some((is_overdue, todays)) = &filter.overdue {
        if *is_overdue {
            s.sql(" AND amount_due_minor > 0 AND due_date < ").day(todays.latest()).sql(" AND due_date < ");
            push_today(&mut s, todays, false);
        } else {
            s.sql(" AND (coalesce(amount_due_minor, 0) <= 0 OR due_date >= ");
            push_today(&mut s, todays, false);
            s.sql(")");
        }
    }
    push_state(&mut s, filter);
    s
}

fn push_state<R>(s: &mut Statement<R>, filter: &DocumentFilter) {
    let Some(state) = filter.state else { return };
    // The amount due distinguishes paid, partly paid and issued documents, and the unapplied amount distinguishes
    // issued and settled credits. Only a credit has an unapplied amount, and only a document that is in force and not
    // written off has an amount due.
    let credits = |unapplied: &str| format!("kind = 'CREDIT' AND kind <> 'INVOICE' AND unapplied_minor {unapplied}");
    let owed = |settled: &str| format!("amount_due_minor > 0 AND {SETTLED} {settled}");
    // The redundant conditions match those of partial indexes.
    let condition = match state {
        DocumentState::Draft => "lifecycle = 'DRAFT' AND lifecycle <> 'ISSUED'".to_owned(),
        DocumentState::Void => "lifecycle = 'VOID' AND lifecycle <> 'ISSUED'".to_owned(),
        DocumentState::Uncollectible => {
            format!("lifecycle = 'UNCOLLECTIBLE' AND lifecycle <> 'ISSUED' AND kind <> 'CREDIT' AND total_minor > {SETTLED}")
        }
        DocumentState::Paid => {
            format!("lifecycle IN ('ISSUED', 'UNCOLLECTIBLE') AND kind <> 'CREDIT' AND total_minor <= {SETTLED}")
        }
        DocumentState::Settled => credits("= 0"),
        DocumentState::PartiallyPaid => owed("<> 0"),
        DocumentState::Issued => match filter.kind {
            Some(DocumentKind::Invoice | DocumentKind::Debit) => owed("= 0"),
            Some(DocumentKind::Credit) => credits("> 0"),
            None => format!("({} OR ({}))", owed("= 0"), credits("> 0")),
        },
    };
    s.sql(" AND ").sql(condition);
}

/// Writes today's date at the entity of a row.
pub(super) fn push_today<R>(s: &mut Statement<R>, todays: &LocalDates, some_have_none: bool) {
    // The most frequent date is the default.
    let most = todays.of_entities().max_by_key(|(_, entities)| entities.len()).map_or(todays.elsewhere(), |(day, _)| day);
    let elsewhere_differs = some_have_none && todays.elsewhere() != most;
    if todays.of_entities().len() <= 1 && !elsewhere_differs {
        s.day(most);
        return;
    }
    s.sql("CASE");
    if elsewhere_differs {
        s.sql(" WHEN entity_ref IS NULL THEN ").day(todays.elsewhere());
    }
    for (day, entities) in todays.of_entities().filter(|(day, _)| *day != most) {
        for (i, entity_ref) in entities.iter().enumerate() {
            s.sql(if i == 0 { " WHEN entity_ref IN (" } else { ", " }).text(entity_ref.as_str());
        }
        s.sql(") THEN ").day(day);
    }
    s.sql(" ELSE ").day(most).sql(" END");
}

/// A part of an ordered list that one index returns in order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Segment {
    /// The rows that have a sort key.
    Keyed,
    /// The rows without a sort key, by reference: never issued, or without a due date when ordered by it.
    Unkeyed,
}

/// Returns the segments of a list from a position on.
pub(super) fn segments(order: DocumentOrder, after: Option<&DocumentPosition>) -> &'static [Segment] {
    match (order.by, after) {
        (DocumentSortKey::Created | DocumentSortKey::Updated, _) => &[Segment::Keyed],
        (_, Some(DocumentPosition { key: OrderedBy::Nothing, .. })) => &[Segment::Unkeyed],
        _ => &[Segment::Keyed, Segment::Unkeyed],
    }
}

/// Restricts to a segment, and to the rows after a position in it.
pub(super) fn push_segment<R>(s: &mut Statement<R>, order: DocumentOrder, segment: Segment, after: Option<&DocumentPosition>) {
    let beyond = if order.descending { " < (" } else { " > (" };
    s.sql(match (segment, order.by) {
        (Segment::Keyed, DocumentSortKey::Created | DocumentSortKey::Updated) => "",
        (Segment::Keyed, DocumentSortKey::IssueDate) => " AND issue_date IS NOT NULL",
        (Segment::Keyed, DocumentSortKey::DueDate) => HAS_DUE_DATE,
        (Segment::Keyed, DocumentSortKey::Amount) => " AND total_minor IS NOT NULL",
        (Segment::Unkeyed, DocumentSortKey::DueDate) => " AND amount_due_minor IS NULL",
        (Segment::Unkeyed, _) => " AND issue_date IS NULL",
    });
    // A position in the previous segment does not limit this one.
    let Some(DocumentPosition { key, document_ref }) = after else { return };
    let columns = match (segment, key) {
        (Segment::Unkeyed, OrderedBy::Nothing) => {
            s.sql(if order.descending { " AND document_id < " } else { " AND document_id > " }).id(document_ref.as_uuid());
            return;
        }
        (Segment::Unkeyed, _) | (Segment::Keyed, OrderedBy::Nothing) => return,
        (Segment::Keyed, _) => columns_of(order.by),
    };
    s.sql(format!(" AND ({}) {beyond}", columns.join(", ")));
    match key {
        OrderedBy::Created(at) | OrderedBy::Updated(at) => s.ts(*at),
        OrderedBy::Day(day) => s.day(*day),
        OrderedBy::Amount(amount) => s.text(amount.currency().code()).sql(", ").number(amount.minor()),
        OrderedBy::Nothing => s,
    };
    s.sql(", ").id(document_ref.as_uuid()).sql(")");
}

/// Writes the order and the limit of a segment.
///
/// If at most one document matches, `+` keeps SQLite from scanning all documents in order.
pub(super) fn push_order<R>(
    s: &mut Statement<R>,
    filter: &DocumentFilter,
    order: DocumentOrder,
    segment: Segment,
    part: ListWindow,
) {
    let columns: &[&str] = match segment {
        Segment::Keyed => columns_of(order.by),
        Segment::Unkeyed => &["document_id"],
    };
    let direction = if order.descending { " DESC" } else { "" };
    for (i, column) in columns.iter().enumerate() {
        s.sql(if i == 0 { " ORDER BY " } else { ", " });
        if filter.number.is_some() {
            s.on_sqlite("+");
        }
        s.sql(*column).sql(direction);
    }
    s.sql(" LIMIT ").number(i64::from(part.limit));
    if part.skip > 0 {
        s.sql(" OFFSET ").number(i64::try_from(part.skip).unwrap_or(i64::MAX));
    }
}

const fn columns_of(by: DocumentSortKey) -> &'static [&'static str] {
    match by {
        DocumentSortKey::Created => &["created_at", "document_id"],
        DocumentSortKey::IssueDate => &["issue_date", "document_id"],
        DocumentSortKey::DueDate => &["due_date", "document_id"],
        DocumentSortKey::Amount => &["currency", "total_minor", "document_id"],
        DocumentSortKey::Updated => &["updated_at", "document_id"],
    }
}
