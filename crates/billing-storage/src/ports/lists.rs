//! Lists for finance. Each list first reads identifiers by an index, then the resources.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use billing_domain::calendar::first_of_month;
use billing_domain::contract::{Contract, ContractState};
use billing_domain::document::Document;
use billing_domain::metadata::{Metadata, MetadataSubject};
use billing_domain::money::{Currency, MoneySum};
use billing_domain::page::{Page, PageRequest};
use billing_domain::party::Customer;
use billing_domain::ports::{
    BilledMonth, ContractFilter, ContractSortKey, Contracts as _, CustomerFilter, CustomerSortKey, Customers as _,
    DocumentAmounts, DocumentFilter, DocumentOrder, DocumentSums, ListQueries, ListWindow, LocalDates, ObjectKey, ObjectName,
    SearchHit, SearchTerms, StoreResult,
};
use billing_domain::refs::{ContractRef, CustomerId, OrganizationId};
use chrono::NaiveDate;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Text};
use uuid::Uuid;

use super::contracts::{Found as FoundContract, read_contracts};
use super::document_lists::{Segment, narrowed, push_order, push_segment, push_today, segments};
use super::document_rows::WithParts;
use super::owned;
use super::update_lists::{CONTRACT, CUSTOMER, PositionColumn, push_metadata, push_updates};
use super::{counted, limits};
use crate::in_list::{also_one_of_ids, one_of_ids};
use crate::row::{Cell, Row};
use crate::schema::{contracts, documents};
use crate::sql_types::{Day, Id};
use crate::statement::Statement;
use crate::tx::{Transaction, with_conn};

/// A day and a currency with the number of documents, and the sums of invoices and debits and of credits, each in two parts.
type DayOfDocuments = (Cell<NaiveDate>, String, i64, i64, i64, i64, i64);

/// The number of documents issued in a month in a currency, and sums in minor units.
#[derive(Clone, Copy, Debug, Default)]
struct MonthOfDocuments {
    documents: u64,
    invoiced: i128,
    credited: i128,
    voided: i128,
}

impl Transaction<'_> {
    /// Returns the customer of a filter, if it names a customer or a contract. Returns `None` if the contract does not
    /// exist.
    fn customer_of(&mut self, organization: OrganizationId, filter: &DocumentFilter) -> StoreResult<Option<Option<CustomerId>>> {
        let (Some(contract_ref), None) = (filter.contract_ref, filter.customer_id) else { return Ok(Some(filter.customer_id)) };
        Ok(self.contract_key(organization, contract_ref)?.map(|key| Some(key.customer)))
    }

    /// Returns identifiers with their customers.
    fn keys(&mut self, statement: Statement<(Id, Id)>) -> StoreResult<Vec<(Uuid, Uuid)>> {
        let keys: Vec<(Cell<Uuid>, Cell<Uuid>)> = with_conn!(self, "lists", |conn| statement.load(conn))?;
        let row = Row::new("lists", "");
        keys.into_iter().map(|(id, customer)| Ok((row.cell("id", id)?, row.cell("customer_id", customer)?))).collect()
    }

    fn ids(&mut self, statement: Statement<Id>) -> StoreResult<Vec<Uuid>> {
        let ids: Vec<Cell<Uuid>> = with_conn!(self, "lists", |conn| statement.load(conn))?;
        ids.into_iter().map(|id| Row::new("lists", "").cell("id", id)).collect()
    }

    fn count(&mut self, statement: Statement<BigInt>) -> StoreResult<u64> {
        counted(with_conn!(self, "lists", |conn| statement.get_result(conn))?)
    }

    /// Sums documents that have a date in a column: by the first day of its month and currency, the number of documents, and the
    /// totals of invoices and debits and of credits.
    fn dated_sums(
        &mut self,
        organization: OrganizationId,
        documents: &Statement<()>,
        column: &'static str,
    ) -> StoreResult<Vec<MonthSums>> {
        // By day, because each database has its own functions for months. The index of each date has all columns.
        let mut s = documents.after::<(Day, Text, BigInt, BigInt, BigInt, BigInt, BigInt)>(format!(
            "SELECT {column}, currency, count(*), {}, {}",
            summed_in_parts("CASE WHEN kind = 'CREDIT' THEN 0 ELSE total_minor END"),
            summed_in_parts("CASE WHEN kind = 'CREDIT' THEN total_minor ELSE 0 END"),
        ));
        s.sql(format!(" AND {column} IS NOT NULL GROUP BY {column}, currency"));
        let rows: Vec<DayOfDocuments> = with_conn!(self, "documents", |conn| s.load(conn))?;
        let row = Row::new("documents", organization);
        let minor = |high: i64, low: i64| i128::from(high) * i128::from(SUM_PART) + i128::from(low);
        let read = |(day, currency, documents, invoiced_high, invoiced_low, credited_high, credited_low): DayOfDocuments| {
            let sums = [minor(invoiced_high, invoiced_low), minor(credited_high, credited_low)];
            Ok((first_of_month(row.cell(column, day)?), currency, counted(documents)?, sums))
        };
        rows.into_iter().map(read).collect()
    }
}

/// The first day of a month, a currency, the number of documents, and the totals of invoices and debits and of credits.
type MonthSums = (NaiveDate, String, u64, [i128; 2]);

/// The unit of the high part of a sum, in minor units.
const SUM_PART: i64 = 1_000_000_000;

/// Returns two columns that sum an expression in a high and a low part, because a sum of large integers overflows.
fn summed_in_parts(expression: &str) -> String {
    let part = |operator: &str| format!("CAST(coalesce(sum(({expression}) {operator} {SUM_PART}), 0) AS BIGINT)");
    format!("{}, {}", part("/"), part("%"))
}

/// Sorts resources in the order of the given identifiers.
fn in_order<T>(ids: &[Uuid], things: impl IntoIterator<Item = T>, id: impl Fn(&T) -> Uuid) -> Vec<T> {
    let mut by_id: HashMap<Uuid, T> = things.into_iter().map(|thing| (id(&thing), thing)).collect();
    ids.iter().filter_map(|id| by_id.remove(id)).collect()
}

impl ListQueries for Transaction<'_> {
    fn listed_documents(
        &mut self,
        organization: OrganizationId,
        filter: &DocumentFilter,
        order: DocumentOrder,
        part: ListWindow,
    ) -> StoreResult<Vec<Document>> {
        let Some(customer_id) = self.customer_of(organization, filter)? else { return Ok(Vec::new()) };
        let of_segment = |segment| {
            let mut s = narrowed::<Id>(organization, filter, customer_id);
            push_segment(&mut s, order, segment, part.after.as_ref());
            s
        };
        let (mut keys, mut skip) = (Vec::new(), part.skip);
        for segment in segments(order, part.after.as_ref()) {
            let left = part.limit.saturating_sub(u32::try_from(keys.len()).unwrap_or(u32::MAX));
            if left == 0 {
                break;
            }
            let mut s = of_segment(*segment).after("SELECT document_id, customer_id");
            push_order(&mut s, filter, order, *segment, ListWindow { skip, limit: left, ..part });
            let found = self.keys(s)?;
            if !found.is_empty() {
                skip = 0;
            } else if skip > 0 && *segment == Segment::Keyed {
                skip = skip.saturating_sub(self.count(of_segment(*segment).after("SELECT count(*)"))?);
            }
            keys.extend(found);
        }
        let (ids, customers): (Vec<Uuid>, BTreeSet<Uuid>) = keys.into_iter().unzip();
        let nodes = self.nodes_of(customers.iter().copied());
        let rows: Vec<(WithParts, Cell<Uuid>)> = with_conn!(self, "documents", |conn| documents::table
            .filter(one_of_ids(documents::document_id, ids.iter().copied()))
            .filter(also_one_of_ids(documents::customer_id, customers))
            .select((WithParts::columns(&nodes), documents::organization_id))
            .load(conn))?;
        let found = self.with_content(owned("documents", organization, rows)?)?;
        Ok(in_order(&ids, found, |document| document.head.document_ref.as_uuid()))
    }

    fn document_sums(&mut self, organization: OrganizationId, filter: &DocumentFilter) -> StoreResult<DocumentSums> {
        let Some(customer_id) = self.customer_of(organization, filter)? else { return Ok(DocumentSums::default()) };
        let mut s =
            narrowed::<()>(organization, filter, customer_id).after::<(Text, BigInt, BigInt, BigInt, BigInt, BigInt)>(format!(
                "SELECT currency, count(*), {}, {}",
                summed_in_parts(
                    "CASE WHEN lifecycle = 'VOID' THEN 0 WHEN kind = 'CREDIT' THEN -total_minor ELSE total_minor END"
                ),
                summed_in_parts("amount_due_minor"),
            ));
        s.sql(" GROUP BY currency ORDER BY currency");
        let rows: Vec<(String, i64, i64, i64, i64, i64)> = with_conn!(self, "documents", |conn| s.load(conn))?;
        let mut sums = DocumentSums::default();
        for (currency, count, total_high, total_low, due_high, due_low) in rows {
            let row = Row::new("documents", organization);
            let currency: Currency = row.leaf("currency", &currency)?;
            sums.count += counted(count)?;
            let sum = |high: i64, low: i64| {
                let minor = i128::from(high) * i128::from(SUM_PART) + i128::from(low);
                row.checked("total_minor", MoneySum::from_minor(minor, currency))
            };
            sums.amounts.push(DocumentAmounts { total: sum(total_high, total_low)?, due: sum(due_high, due_low)? });
        }
        Ok(sums)
    }

    fn billed_months(&mut self, organization: OrganizationId, filter: &DocumentFilter) -> StoreResult<Vec<BilledMonth>> {
        let Some(customer_id) = self.customer_of(organization, filter)? else { return Ok(Vec::new()) };
        let mut months: BTreeMap<(NaiveDate, String), MonthOfDocuments> = BTreeMap::new();
        let issued = narrowed::<()>(organization, filter, customer_id);
        for (first_day, currency, documents, [invoiced, credited]) in self.dated_sums(organization, &issued, "issue_date")? {
            let month = months.entry((first_day, currency)).or_default();
            month.documents += documents;
            month.invoiced += invoiced;
            month.credited += credited;
        }
        // The dates of the filter select voids by their own day.
        let of_any_day = DocumentFilter { issued_from: None, issued_to: None, ..filter.clone() };
        let mut voided = narrowed::<()>(organization, &of_any_day, customer_id);
        for (condition, day) in [(" AND voided_on >= ", filter.issued_from), (" AND voided_on <= ", filter.issued_to)] {
            if let Some(day) = day {
                voided.sql(condition).day(day);
            }
        }
        for (first_day, currency, _, [invoiced, credited]) in self.dated_sums(organization, &voided, "voided_on")? {
            months.entry((first_day, currency)).or_default().voided += invoiced - credited;
        }
        let row = Row::new("documents", organization);
        let mut billed = Vec::with_capacity(months.len());
        for ((first_day, currency), MonthOfDocuments { documents, invoiced, credited, voided }) in months {
            let currency: Currency = row.leaf("currency", &currency)?;
            let sum = |minor| row.checked("total_minor", MoneySum::from_minor(minor, currency));
            let difference = sum(invoiced - credited - voided)?;
            let (invoiced, credited, voided) = (sum(invoiced)?, sum(credited)?, sum(voided)?);
            billed.push(BilledMonth { first_day, documents, invoiced, credited, voided, billed: difference });
        }
        Ok(billed)
    }

    fn contract_numbers(
        &mut self,
        organization: OrganizationId,
        customers: &[CustomerId],
        refs: &[ContractRef],
    ) -> StoreResult<Vec<(ContractRef, u64)>> {
        // The organization is compared here: with this condition in the query, SQLite would scan all contracts of the
        // organization.
        let rows: Vec<(Cell<Uuid>, Cell<Uuid>, i64)> = with_conn!(self, "contracts", |conn| contracts::table
            .filter(one_of_ids(contracts::contract_id, refs.iter().map(|contract| contract.as_uuid())))
            .filter(also_one_of_ids(contracts::customer_id, customers.iter().map(|customer| customer.as_uuid())))
            .select((contracts::contract_id, contracts::organization_id, contracts::number))
            .load(conn))?;
        let mut numbers = Vec::new();
        for (id, owner, number) in rows {
            let row = Row::new("contracts", id.clone());
            if row.cell("organization_id", owner)? == organization.as_uuid() {
                numbers.push((ContractRef::from_uuid(row.cell("contract_id", id)?), counted(number)?));
            }
        }
        Ok(numbers)
    }

    fn contracts(
        &mut self,
        organization: OrganizationId,
        filter: &ContractFilter,
        by: ContractSortKey,
        page: PageRequest,
    ) -> StoreResult<Page<Contract>> {
        let mut narrowed: Statement<()> = Statement::new(" FROM contracts WHERE ");
        if filter.customer_id.is_some() || !filter.metadata.is_empty() {
            // As with documents, a customer has fewer contracts than the organization, and few contracts have a value.
            narrowed.on_sqlite("+");
        }
        narrowed.sql("organization_id = ").id(organization.as_uuid());
        if let Some(customer_id) = filter.customer_id {
            narrowed.sql(" AND customer_id = ").id(customer_id.as_uuid());
        }
        if let Some(number) = filter.number {
            narrowed.sql(" AND number = ").number(i64::try_from(number).unwrap_or(i64::MAX));
        }
        if let Some(po_number) = &filter.po_number {
            narrowed.sql(" AND po_number = ").text(po_number.as_str());
        }
        if let Some(day) = filter.ends_before {
            narrowed.sql(" AND last_day < ").day(day);
        }
        if let Some(pricing_ref) = &filter.pricing_ref {
            narrowed.sql(
                " AND EXISTS (SELECT 1 FROM contract_products p WHERE p.contract_id = contracts.contract_id \
                 AND p.customer_id = contracts.customer_id AND p.terms -> 'pricing' ->> 'pricing_ref' = ",
            );
            narrowed.text(pricing_ref.as_str()).sql(")");
        }
        if let Some(end) = filter.issues_before {
            narrowed.sql(" AND next_due_at < ").ts(end);
        }
        if let Some((state, todays)) = &filter.state {
            push_contract_state(&mut narrowed, *state, todays);
        }
        push_metadata(&mut narrowed, organization, &filter.metadata, (CONTRACT, "contract_id"));
        push_updates(&mut narrowed, &filter.updates, ("updated_at", PositionColumn::Id("contract_id")), page.is_backward());
        let total = if filter.updates.after.is_some() { 0 } else { self.count(narrowed.after("SELECT count(*)"))? };
        let (limit, offset) = limits(page);
        let mut of_page = narrowed.after("SELECT contract_id, customer_id");
        of_page.sql(" ORDER BY ");
        if filter.number.is_some() || !filter.metadata.is_empty() {
            // As with documents, at most one contract or few contracts match.
            of_page.on_sqlite("+");
        }
        of_page.sql(match (by, page.is_backward()) {
            (ContractSortKey::Updated, false) => "updated_at, contract_id",
            (ContractSortKey::Updated, true) => "updated_at DESC, contract_id DESC",
            (ContractSortKey::Created, false) => "created_at, contract_id",
            (ContractSortKey::Created, true) => "created_at DESC, contract_id DESC",
            (ContractSortKey::LastDay, false) => "last_day NULLS LAST, contract_id",
            (ContractSortKey::LastDay, true) => "last_day DESC NULLS FIRST, contract_id DESC",
        });
        of_page.sql(" LIMIT ").number(limit).sql(" OFFSET ").number(offset);
        let (ids, customers): (Vec<Uuid>, BTreeSet<Uuid>) = self.keys(of_page)?.into_iter().unzip();
        let nodes = self.nodes_of(customers.iter().copied());
        // The first statement selected only contracts of the organization.
        let rows: Vec<FoundContract> = with_conn!(self, "contracts", |conn| contracts::table
            .filter(one_of_ids(contracts::contract_id, ids.iter().copied()))
            .filter(also_one_of_ids(contracts::customer_id, customers))
            .select(FoundContract::columns(&nodes))
            .load(conn))?;
        Ok(Page { items: in_order(&ids, read_contracts(rows)?, |contract| contract.contract_ref.as_uuid()), total })
    }

    fn listed_customers(
        &mut self,
        organization: OrganizationId,
        filter: &CustomerFilter,
        by: CustomerSortKey,
        page: PageRequest,
    ) -> StoreResult<Page<Customer>> {
        let mut narrowed: Statement<()> = Statement::new(" FROM customers WHERE ");
        if !filter.metadata.is_empty() {
            // Few customers have a value.
            narrowed.on_sqlite("+");
        }
        narrowed.sql("organization_id = ").id(organization.as_uuid());
        if let Some(name) = &filter.name {
            narrowed.sql(" AND ");
            push_begins(&mut narrowed, "name", name);
        }
        if let Some(email) = &filter.email {
            narrowed.sql(" AND email IS NOT NULL AND lower(email").on_postgres(" COLLATE \"C\"").sql(") = ");
            narrowed.text(email.to_ascii_lowercase());
        }
        if let Some(tax_id) = &filter.tax_id {
            narrowed.sql(" AND tax_id = ").text(tax_id.as_str());
        }
        push_metadata(&mut narrowed, organization, &filter.metadata, (CUSTOMER, "customer_id"));
        push_updates(&mut narrowed, &filter.updates, ("updated_at", PositionColumn::Text("customer_ref")), page.is_backward());
        let total = if filter.updates.after.is_some() { 0 } else { self.count(narrowed.after("SELECT count(*)"))? };
        let (limit, offset) = limits(page);
        let mut of_page = narrowed.after("SELECT customer_id");
        of_page.sql(" ORDER BY ");
        let is_narrow = filter.name.is_some() || filter.email.is_some() || filter.tax_id.is_some() || !filter.metadata.is_empty();
        if is_narrow {
            // As with documents, few rows match.
            of_page.on_sqlite("+");
        }
        match by {
            CustomerSortKey::Updated => of_page.sql("updated_at"),
            CustomerSortKey::Created => of_page.sql("created_at"),
            CustomerSortKey::Name => of_page.sql("lower(name").on_postgres(" COLLATE \"C\"").sql(")"),
        };
        of_page.sql(if page.is_backward() { " DESC, customer_ref DESC" } else { ", customer_ref" });
        of_page.sql(" LIMIT ").number(limit).sql(" OFFSET ").number(offset);
        let ids = self.ids(of_page)?;
        let refs: Vec<CustomerId> = ids.iter().copied().map(CustomerId::from_uuid).collect();
        let found = self.customers_by_ids(organization, &refs)?;
        Ok(Page { items: in_order(&ids, found, |customer| customer.id.as_uuid()), total })
    }

    fn put_metadata(
        &mut self,
        organization: OrganizationId,
        subject: MetadataSubject,
        before: &Metadata,
        after: &Metadata,
    ) -> StoreResult<()> {
        self.write_metadata(organization, subject, before, after)
    }

    fn search(&mut self, organization: OrganizationId, sought: &SearchTerms, limit: u32) -> StoreResult<Vec<SearchHit>> {
        self.found(organization, sought, limit)
    }

    fn object_names(
        &mut self,
        organization: OrganizationId,
        objects: &BTreeSet<ObjectKey>,
    ) -> StoreResult<BTreeMap<ObjectKey, ObjectName>> {
        self.names_of(organization, objects)
    }
}

/// Restricts to rows whose column begins with a text, ignoring case for A to Z. The condition is a range of an index on
/// the lower-case column.
pub(super) fn push_begins<R>(s: &mut Statement<R>, column: &'static str, text: &str) {
    let text = text.to_ascii_lowercase();
    s.sql("lower(").sql(column).on_postgres(" COLLATE \"C\"").sql(") >= ").text(text.as_str());
    if let Some(end) = after_all_beginning(&text) {
        s.sql(" AND lower(").sql(column).on_postgres(" COLLATE \"C\"").sql(") < ").text(end);
    }
}

/// Returns the first text after all texts with a prefix, by code points, or `None` if no text follows.
pub(super) fn after_all_beginning(text: &str) -> Option<String> {
    let mut characters: Vec<char> = text.chars().collect();
    while let Some(last) = characters.pop() {
        // Surrogates are not characters, so the range skips them.
        let next = match u32::from(last) + 1 {
            0xD800 => Some('\u{E000}'),
            code => char::from_u32(code),
        };
        if let Some(next) = next {
            characters.push(next);
            return Some(characters.into_iter().collect());
        }
    }
    None
}

/// Writes the condition for a contract state, equivalent to [`Contract::state`].
fn push_contract_state<R>(s: &mut Statement<R>, state: ContractState, todays: &LocalDates) {
    let today = |s: &mut Statement<R>| push_today(s, todays, true);
    // A cancelled contract without billed days has ended; a contract that never had products has not.
    match state {
        ContractState::Pending => {
            s.sql(" AND cancelled_at IS NULL AND first_day > ").day(todays.earliest()).sql(" AND first_day > ");
            today(s);
        }
        ContractState::Active => {
            s.sql(" AND cancelled_at IS NULL AND (last_day IS NULL OR last_day >= ");
            today(s);
            s.sql(") AND (first_day IS NULL OR first_day <= ");
            today(s);
            s.sql(")");
        }
        ContractState::Completed => {
            s.sql(" AND cancelled_at IS NULL AND last_day < ").day(todays.latest()).sql(" AND last_day < ");
            today(s);
        }
        ContractState::Cancelling => {
            s.sql(" AND cancelled_at IS NOT NULL AND last_day >= ");
            today(s);
        }
        ContractState::Cancelled => {
            s.sql(" AND cancelled_at IS NOT NULL AND (last_day IS NULL OR last_day < ");
            today(s);
            s.sql(")");
        }
    }
}

#[cfg(test)]
mod tests {
    use billing_domain::calendar::Timestamp;
    use billing_domain::document::numbering::DocumentNumber;
    use billing_domain::document::{DocumentKind, DocumentState};
    use billing_domain::money::{Currency, Money};
    use billing_domain::page::{Direction, PageRequest, UpdateFilter, UpdatePosition};
    use billing_domain::party::NumberPrefix;
    use billing_domain::ports::{DocumentPosition, DocumentSortKey, OrderedBy, PurposeKind};
    use billing_domain::refs::{DocumentRef, EntityRef};
    use billing_domain::text::OneLine;

    use super::*;
    use crate::query_plans::plans_of;

    #[test]
    fn what_begins_with_a_text_ends_before_the_next_text() {
        for (text, end) in [
            ("acme", Some("acmf")),
            ("a\u{D7FF}", Some("a\u{E000}")),
            ("a\u{10FFFF}", Some("b")),
            ("\u{10FFFF}", None),
            ("", None),
        ] {
            assert_eq!(after_all_beginning(text).as_deref(), end, "{text:?}");
        }
    }

    /// Returns SQLite's plans for the statements that select identifiers.
    fn plans(ask: impl Fn(&mut Transaction<'_>)) -> Vec<String> {
        let begins = ["SELECT document_id", "SELECT contract_id", "SELECT customer_id"];
        let asks = |statement: &str| begins.iter().any(|begin| statement.starts_with(begin));
        plans_of(ask).into_iter().filter(|plan| asks(&plan.statement)).map(|plan| plan.steps.join("; ")).collect()
    }

    fn organization() -> OrganizationId {
        OrganizationId::from_uuid(Uuid::from_u128(1))
    }

    fn day() -> NaiveDate {
        NaiveDate::from_ymd_opt(2026, 1, 1).expect("a day")
    }

    #[test]
    fn each_filter_of_documents_has_its_index_on_sqlite() {
        let any = DocumentFilter::default;
        let number =
            DocumentNumber { prefix: NumberPrefix::parse("UB").expect("a prefix"), kind: DocumentKind::Invoice, sequence: 1 };
        let todays = LocalDates::at(Timestamp::from_micros(0).expect("an instant"), &[]);
        let id = Uuid::from_u128(7);
        for (filter, index) in [
            (any(), "documents_of_organization (organization_id=?)"),
            (DocumentFilter { customer_id: Some(CustomerId::from_uuid(id)), ..any() }, "documents_of_customer (customer_id=?)"),
            (
                DocumentFilter {
                    customer_id: Some(CustomerId::from_uuid(id)),
                    contract_ref: Some(ContractRef::from_uuid(id)),
                    ..any()
                },
                "documents_of_contract (customer_id=? AND contract_id=?)",
            ),
            (
                DocumentFilter { entity_ref: Some(EntityRef::parse("e").expect("a reference")), ..any() },
                "documents_of_entity (organization_id=? AND entity_ref=?)",
            ),
            (
                DocumentFilter { number: Some(number), ..any() },
                "documents_numbers (organization_id=? AND number_prefix=? AND kind=? AND sequence=?)",
            ),
            (
                DocumentFilter { po_number: Some(OneLine::parse("PO").expect("a line")), ..any() },
                "documents_by_po_number (organization_id=? AND po_number=?)",
            ),
            (
                DocumentFilter { kind: Some(DocumentKind::Credit), ..any() },
                "documents_no_invoices (organization_id=? AND kind=?)",
            ),
            (
                DocumentFilter { purpose: Some(PurposeKind::Usage), ..any() },
                "documents_not_regular (organization_id=? AND purpose=?)",
            ),
            (
                DocumentFilter { state: Some(DocumentState::Draft), ..any() },
                "documents_not_issued (organization_id=? AND lifecycle=?)",
            ),
            (
                DocumentFilter { state: Some(DocumentState::Settled), ..any() },
                "documents_no_invoices (organization_id=? AND kind=?)",
            ),
            (
                DocumentFilter { from: Some(day()), to: Some(day()), ..any() },
                "documents_by_period (organization_id=? AND period_start>? AND period_start<?)",
            ),
            (
                DocumentFilter { issued_from: Some(day()), ..any() },
                "documents_by_issue_date (organization_id=? AND issue_date>?)",
            ),
            (DocumentFilter { due_to: Some(day()), ..any() }, "documents_by_due_date (organization_id=? AND due_date<?)"),
            (
                DocumentFilter { updated_since: Some(Timestamp::from_micros(0).expect("an instant")), ..any() },
                "documents_by_update (organization_id=? AND updated_at>?)",
            ),
            (DocumentFilter { overdue: Some((true, todays)), ..any() }, "documents_owed (organization_id=? AND due_date<?)"),
        ] {
            let plans = plans(|tx| {
                let found = tx.listed_documents(organization(), &filter, DocumentOrder::default(), PageRequest::LARGEST.into());
                assert_eq!(found.expect("a look"), []);
            });
            assert!(plans.len() == 1 && plans[0].contains(index) && !plans[0].contains("SCAN"), "{filter:?}: {plans:?}");
        }
    }

    #[test]
    fn each_order_of_documents_has_its_index_on_sqlite_from_any_place() {
        let document_ref = DocumentRef::from_uuid(Uuid::from_u128(7));
        let euro = Money::from_minor(1, Currency::from_code("EUR").expect("a currency"));
        let at = Timestamp::from_micros(0).expect("an instant");
        for (by, key, index, is_bound) in [
            (DocumentSortKey::Created, OrderedBy::Created(at), "documents_of_organization", "(created_at,document_id)"),
            (DocumentSortKey::IssueDate, OrderedBy::Day(day()), "documents_by_issue_date", "(issue_date,document_id)"),
            (DocumentSortKey::DueDate, OrderedBy::Day(day()), "documents_by_due_date", "(due_date,document_id)"),
            (DocumentSortKey::Amount, OrderedBy::Amount(euro), "documents_by_amount", "(currency,total_minor"),
            (DocumentSortKey::Updated, OrderedBy::Updated(at), "documents_by_update", "(updated_at,document_id)"),
        ] {
            for descending in [false, true] {
                let plans = plans(|tx| {
                    let order = DocumentOrder { by, descending };
                    let part = ListWindow { after: Some(DocumentPosition { key, document_ref }), skip: 0, limit: 20 };
                    assert_eq!(tx.listed_documents(organization(), &DocumentFilter::default(), order, part).expect("a look"), []);
                });
                assert!(plans[0].contains(index) && plans[0].contains(is_bound), "{by:?}: {plans:?}");
                let sorts = plans.iter().any(|plan| plan.contains("TEMP B-TREE") || plan.contains("SCAN"));
                assert!(!sorts, "nothing is sorted: {by:?}, {plans:?}");
                if let Some(unkeyed) = plans.get(1) {
                    let index = match by {
                        DocumentSortKey::DueDate => "documents_without_due_date (organization_id=?)",
                        _ => "documents_by_issue_date (organization_id=? AND issue_date=?",
                    };
                    assert!(unkeyed.contains(index), "{unkeyed}");
                }
            }
        }
    }

    #[test]
    fn contracts_and_customers_are_found_by_their_indexes_on_sqlite() {
        let todays = LocalDates::at(Timestamp::from_micros(0).expect("an instant"), &[]);
        let in_state = |state| ContractFilter { state: Some((state, todays.clone())), ..ContractFilter::default() };
        for (filter, index) in [
            (ContractFilter::default(), "contracts_by_creation"),
            (
                ContractFilter { customer_id: Some(CustomerId::from_uuid(Uuid::from_u128(7))), ..ContractFilter::default() },
                "contracts_of_customer",
            ),
            (ContractFilter { number: Some(1), ..ContractFilter::default() }, "contracts_by_number"),
            (
                ContractFilter { po_number: Some(OneLine::parse("PO").expect("a line")), ..ContractFilter::default() },
                "contracts_by_po_number",
            ),
            (ContractFilter { ends_before: Some(day()), ..ContractFilter::default() }, "contracts_by_last_day"),
            (in_state(ContractState::Pending), "contracts_by_first_day"),
            (in_state(ContractState::Completed), "contracts_by_last_day"),
            (in_state(ContractState::Cancelled), "contracts_cancelled"),
        ] {
            let plans = plans(|tx| {
                assert_eq!(
                    tx.contracts(organization(), &filter, ContractSortKey::Created, PageRequest::LARGEST).expect("a look").total,
                    0
                )
            });
            assert!(plans.len() == 1 && plans[0].contains(index) && !plans[0].contains("SCAN"), "{filter:?}: {plans:?}");
        }
        for backward in [Direction::Forward, Direction::Backward] {
            let page = PageRequest::LARGEST.in_direction(backward);
            let by_last_day = plans(|tx| {
                let found = tx.contracts(organization(), &ContractFilter::default(), ContractSortKey::LastDay, page);
                assert_eq!(found.expect("a look").total, 0);
            });
            let by_name = plans(|tx| {
                let found = tx.listed_customers(organization(), &CustomerFilter::default(), CustomerSortKey::Name, page);
                assert_eq!(found.expect("a look").total, 0);
            });
            for (plans, index) in [(by_last_day, "contracts_by_last_day"), (by_name, "customers_by_lower_name")] {
                assert!(plans[0].contains(index) && !plans[0].contains("TEMP B-TREE"), "nothing is sorted: {plans:?}");
            }
        }
        let filter = |name: Option<&str>, email: Option<&str>, tax_id: Option<&str>| CustomerFilter {
            name: name.map(str::to_owned),
            email: email.map(str::to_owned),
            tax_id: tax_id.map(str::to_owned),
            ..CustomerFilter::default()
        };
        for (filter, index) in [
            (filter(None, None, None), "customers_by_creation"),
            (filter(Some("a"), None, None), "customers_by_lower_name"),
            (filter(None, Some("a"), None), "customers_by_email"),
            (filter(None, None, Some("a")), "customers_by_tax_id"),
        ] {
            let plans = plans(|tx| {
                assert_eq!(
                    tx.listed_customers(organization(), &filter, CustomerSortKey::Created, PageRequest::LARGEST)
                        .expect("a look")
                        .total,
                    0
                )
            });
            assert!(plans[0].contains(index) && !plans[0].contains("SCAN"), "{filter:?}: {plans:?}");
        }
    }

    #[test]
    fn changed_resources_and_those_with_metadata_are_found_by_indexes_on_sqlite() {
        let at = Timestamp::from_micros(5).expect("an instant");
        let since = UpdateFilter { since: Some(at), after: None };
        let key = Uuid::from_u128(7).to_string();
        let after = UpdateFilter { since: None, after: Some(UpdatePosition { updated_at: at, key }) };
        let metadata = Metadata::new([("crm".to_owned(), "42".to_owned())]).expect("metadata");
        for direction in [Direction::Forward, Direction::Backward] {
            let page = PageRequest::LARGEST.in_direction(direction);
            for updates in [&since, &after] {
                let filter = ContractFilter { updates: updates.clone(), ..ContractFilter::default() };
                let contracts = plans(|tx| {
                    let found = tx.contracts(organization(), &filter, ContractSortKey::Updated, page);
                    assert_eq!(found.expect("a look").total, 0);
                });
                let filter = CustomerFilter { updates: updates.clone(), ..CustomerFilter::default() };
                let customers = plans(|tx| {
                    let found = tx.listed_customers(organization(), &filter, CustomerSortKey::Updated, page);
                    assert_eq!(found.expect("a look").total, 0);
                });
                for (plans, index) in [(contracts, "contracts_by_update"), (customers, "customers_by_update")] {
                    let is_bound = plans[0].contains(index) && plans[0].contains("updated_at");
                    assert!(is_bound && !plans[0].contains("TEMP B-TREE"), "{updates:?}: {plans:?}");
                }
            }
        }
        let filter = ContractFilter { metadata: metadata.clone(), ..ContractFilter::default() };
        let contracts = plans(|tx| {
            let found = tx.contracts(organization(), &filter, ContractSortKey::Created, PageRequest::LARGEST);
            assert_eq!(found.expect("a look").total, 0);
        });
        let filter = CustomerFilter { metadata, ..CustomerFilter::default() };
        let customers = plans(|tx| {
            let found = tx.listed_customers(organization(), &filter, CustomerSortKey::Created, PageRequest::LARGEST);
            assert_eq!(found.expect("a look").total, 0);
        });
        for plans in [contracts, customers] {
            let is_found = plans[0].contains("(organization_id=? AND kind=? AND key=? AND value=?)");
            assert!(is_found && !plans[0].contains("SCAN"), "{plans:?}");
        }
    }
}
