//! Documents, as they are shown: reading, listing, paying. What is decided about them is
//! [`book_entries`](super::book_entries)'.

use billing_domain::document::lines::LedgerLine;
use billing_domain::document::{BookDocument, Document, DocumentKind, DocumentState};
use billing_domain::page::{Page, PageRequest};
use billing_domain::ports::{DocumentFilter, Documents, StoreResult};
use billing_domain::refs::{CustomerId, DocumentKey, DocumentRef, OrganizationId};
use diesel::prelude::*;
use uuid::Uuid;

use super::books::by_creation;
use super::document_rows::{DRAFT, ISSUED, UNCOLLECTIBLE, VOID, WithParts};
use super::ledger::{LineRow, currency_of};
use super::{counted, limits};
use crate::leaf::Leaf as _;
use crate::one_of::one_of_ids;
use crate::row::{Cell, Row};
use crate::schema::{document_lines, documents};
use crate::sql_types::Bound;
use crate::tx::{Transaction, with_conn};

impl Documents for Transaction<'_> {
    fn document(&mut self, organization: OrganizationId, document_ref: DocumentRef) -> StoreResult<Option<Document>> {
        let rows: Vec<WithParts> = with_conn!(self, "documents", |conn| documents::table
            .filter(documents::document_id.eq(Bound(document_ref.as_uuid())))
            .filter(documents::organization_id.eq(Bound(organization.as_uuid())))
            .select(WithParts::as_select())
            .load(conn))?;
        Ok(self.with_content(rows)?.pop())
    }

    fn documents_by_refs(&mut self, organization: OrganizationId, refs: &[DocumentRef]) -> StoreResult<Vec<Document>> {
        let own = self.own_documents(organization, refs)?;
        self.with_content(own)
    }

    fn documents(
        &mut self,
        organization: OrganizationId,
        filter: &DocumentFilter,
        page: PageRequest,
    ) -> StoreResult<Page<Document>> {
        let (limit, offset) = limits(page);
        let (rows, total): (Vec<WithParts>, i64) = with_conn!(self, "documents", |conn| {
            let narrowed = || {
                let mut query =
                    documents::table.filter(documents::organization_id.eq(Bound(organization.as_uuid()))).into_boxed::<Db>();
                if let Some(customer_id) = filter.customer_id {
                    query = query.filter(documents::customer_id.eq(Bound(customer_id.as_uuid())));
                }
                if let Some(contract_ref) = filter.contract_ref {
                    query = query.filter(documents::contract_id.eq(Bound(contract_ref.as_uuid())));
                }
                if let Some(entity_ref) = &filter.entity_ref {
                    query = query.filter(documents::entity_ref.eq(entity_ref.as_str()));
                }
                if let Some(kind) = filter.kind {
                    query = query.filter(documents::kind.eq(kind.show()));
                }
                if let Some(from) = filter.from {
                    query = query.filter(documents::period_start.ge(Bound(from)));
                }
                if let Some(to) = filter.to {
                    query = query.filter(documents::period_start.le(Bound(to)));
                }
                // Paid, partly paid and issued differ by what is left to pay, issued and settled credits by what is unapplied.
                let is = |lifecycle: &'static str| documents::lifecycle.eq(lifecycle);
                let open = || documents::amount_due_minor.gt(0).or(documents::unapplied_minor.gt(0));
                let settled = documents::paid_minor + documents::credits_minor;
                match filter.state {
                    None => query,
                    Some(DocumentState::Draft) => query.filter(is(DRAFT)),
                    Some(DocumentState::Void) => query.filter(is(VOID)),
                    Some(DocumentState::Uncollectible) => {
                        query.filter(is(UNCOLLECTIBLE)).filter(documents::total_minor.gt(settled.nullable()))
                    }
                    Some(DocumentState::Paid) => query
                        .filter(is(ISSUED).or(is(UNCOLLECTIBLE)))
                        .filter(documents::kind.ne(DocumentKind::Credit.show()))
                        .filter(documents::total_minor.eq(settled.nullable())),
                    Some(DocumentState::Settled) => query.filter(is(ISSUED)).filter(documents::unapplied_minor.eq(0)),
                    Some(DocumentState::Issued) => query.filter(is(ISSUED)).filter(open()).filter(settled.eq(0)),
                    Some(DocumentState::PartiallyPaid) => {
                        query.filter(is(ISSUED)).filter(documents::amount_due_minor.gt(0)).filter(settled.ne(0))
                    }
                }
            };
            let total = narrowed().count().get_result(conn)?;
            let ordered = narrowed().order((documents::created_at, documents::document_id)).limit(limit).offset(offset);
            Ok((ordered.select(WithParts::as_select()).load(conn)?, total))
        })?;
        Ok(Page { items: self.with_content(rows)?, total: counted(total)? })
    }

    fn documents_of_parents(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        parents: &[DocumentRef],
    ) -> StoreResult<Vec<BookDocument>> {
        let parents: Vec<Uuid> = parents.iter().map(|parent| parent.as_uuid()).collect();
        let rows: Vec<(WithParts, Cell<Uuid>)> = with_conn!(self, "documents", |conn| documents::table
            .filter(documents::customer_id.eq(Bound(customer_id.as_uuid())))
            .filter(one_of_ids(documents::parent_document_id, parents))
            .select((WithParts::as_select(), documents::organization_id))
            .load(conn))?;
        by_creation(owned(organization, rows)?)
    }

    fn ledger_lines(&mut self, key: DocumentKey) -> StoreResult<Vec<LedgerLine>> {
        let rows: Vec<(LineRow, String)> = with_conn!(self, "document_lines", |conn| document_lines::table
            .inner_join(
                documents::table.on(documents::document_id
                    .eq(document_lines::document_id)
                    .and(documents::customer_id.eq(document_lines::customer_id)))
            )
            .filter(document_lines::document_id.eq(Bound(key.document.as_uuid())))
            .filter(document_lines::customer_id.eq(Bound(key.customer.as_uuid())))
            .filter(documents::organization_id.eq(Bound(key.organization.as_uuid())))
            .order(document_lines::ordinal)
            .select((LineRow::as_select(), documents::currency))
            .load(conn))?;
        rows.into_iter().map(|(row, currency)| Ok(row.read(currency_of(&currency)?)?.1)).collect()
    }
}

impl Transaction<'_> {
    /// Those of some documents that are an organization's.
    pub(super) fn own_documents(&mut self, organization: OrganizationId, refs: &[DocumentRef]) -> StoreResult<Vec<WithParts>> {
        let found: Vec<(WithParts, Cell<Uuid>)> = with_conn!(self, "documents", |conn| documents::table
            .filter(one_of_ids(documents::document_id, refs.iter().map(|document| document.as_uuid())))
            .select((WithParts::as_select(), documents::organization_id))
            .load(conn))?;
        owned(organization, found)
    }
}

/// Those of some documents that are an organization's, compared here: with the condition in the query SQLite walks through all
/// documents of the organization.
pub(super) fn owned(organization: OrganizationId, found: Vec<(WithParts, Cell<Uuid>)>) -> StoreResult<Vec<WithParts>> {
    let mut own = Vec::new();
    for (document, owner) in found {
        let row = Row::new("documents", document.id()?);
        if row.cell("organization_id", owner)? == organization.as_uuid() {
            own.push(document);
        }
    }
    Ok(own)
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, Mutex};

    use billing_domain::ports::Documents as _;
    use billing_domain::refs::{DocumentRef, OrganizationId};
    use diesel::connection::{Connection as _, InstrumentationEvent};
    use diesel::prelude::*;
    use diesel::sql_types::Text;
    use uuid::Uuid;

    use crate::database::{Pools, take};
    use crate::tx::{Connection, Transaction};
    use crate::{Database, DatabaseOptions, DatabaseUrl};

    #[derive(QueryableByName)]
    struct Step {
        #[diesel(sql_type = Text)]
        detail: String,
    }

    #[test]
    fn documents_are_found_by_their_references_without_a_walk_through_the_organizations() {
        let directory = tempfile::TempDir::new().expect("a directory");
        let url = format!("sqlite://{}/usage.sqlite3", directory.path().display());
        let url = DatabaseUrl::parse(&url).expect("an address");
        let database = Database::open(&url, DatabaseOptions::default()).expect("a database");
        database.migrate().expect("the tables are made");
        let Pools::Sqlite { writer, .. } = &database.pools else { panic!("a file") };
        let mut link = take(writer).expect("a connection");
        let asked = Arc::new(Mutex::new(Vec::new()));
        let log = Arc::clone(&asked);
        link.connection.set_instrumentation(move |event: InstrumentationEvent<'_>| {
            if let InstrumentationEvent::StartQuery { query, .. } = event {
                log.lock().expect("no thread has panicked").push(query.to_string());
            }
        });
        let mut tx = Transaction::new(Connection::Sqlite(&mut link.connection));
        let refs = [DocumentRef::from_uuid(Uuid::from_u128(1))];
        let found = tx.documents_by_refs(OrganizationId::from_uuid(Uuid::from_u128(2)), &refs).expect("a look-up");
        assert!(found.is_empty());
        let query = asked.lock().expect("no thread has panicked").first().cloned().expect("a query");
        let statement = query.split("-- binds").next().expect("the statement");
        let plan: Vec<Step> =
            diesel::sql_query(format!("EXPLAIN QUERY PLAN {statement}")).load(&mut link.connection).expect("a plan");
        let plan: Vec<String> = plan.into_iter().map(|step| step.detail).collect();
        assert!(plan.iter().any(|step| step.starts_with("SEARCH documents USING PRIMARY KEY")), "{plan:?}");
    }
}
