//! Reads, lists and settles documents. [`book_entries`](super::book_entries) writes the decisions about them.

use std::collections::BTreeMap;

use billing_domain::document::lines::LedgerLine;
use billing_domain::document::{BookDocument, Document};
use billing_domain::page::{Page, PageRequest};
use billing_domain::ports::{DocumentFilter, DocumentOrder, Documents, ListQueries as _, StoreResult};
use billing_domain::refs::{CustomerId, DocumentKey, DocumentRef, OrganizationId};
use diesel::prelude::*;
use uuid::Uuid;

use super::books::by_creation;
use super::document_rows::WithParts;
use super::ledger::{LineRow, currency_of};
use super::owned;
use crate::in_list::{Value, also_one_of_ids, one_of_ids, one_of_rows, unindexed};
use crate::nodes::shards::Nodes;
use crate::row::{Cell, Row};
use crate::schema::{document_lines, documents};
use crate::sql_types::Bound;
use crate::tx::{Transaction, with_conn};

impl Documents for Transaction<'_> {
    fn document_key(&mut self, organization: OrganizationId, document_ref: DocumentRef) -> StoreResult<Option<DocumentKey>> {
        let found: Option<Cell<Uuid>> = with_conn!(self, "documents", |conn| documents::table
            .filter(documents::document_id.eq(Bound(document_ref.as_uuid())))
            .filter(unindexed(documents::organization_id).eq(Bound(organization.as_uuid())))
            .select(documents::customer_id)
            .first(conn)
            .optional())?;
        let customer = found.map(|id| Row::new("documents", document_ref).cell("customer_id", id)).transpose()?;
        Ok(customer.map(|id| DocumentKey { organization, customer: CustomerId::from_uuid(id), document: document_ref }))
    }

    fn document(&mut self, organization: OrganizationId, document_ref: DocumentRef) -> StoreResult<Option<Document>> {
        let rows: Vec<WithParts> = with_conn!(self, "documents", |conn| documents::table
            .filter(documents::document_id.eq(Bound(document_ref.as_uuid())))
            .filter(unindexed(documents::organization_id).eq(Bound(organization.as_uuid())))
            .select(WithParts::columns(&Nodes::default()))
            .load(conn))?;
        Ok(self.with_content(rows)?.pop())
    }

    fn documents_by_refs(
        &mut self,
        organization: OrganizationId,
        customers: &[CustomerId],
        refs: &[DocumentRef],
    ) -> StoreResult<Vec<Document>> {
        let own = self.own_documents(organization, customers, refs)?;
        self.with_content(own)
    }

    fn documents(
        &mut self,
        organization: OrganizationId,
        filter: &DocumentFilter,
        page: PageRequest,
    ) -> StoreResult<Page<Document>> {
        let total = self.document_sums(organization, filter)?.count;
        Ok(Page { items: self.listed_documents(organization, filter, DocumentOrder::default(), page.into())?, total })
    }

    fn documents_of_parents(
        &mut self,
        organization: OrganizationId,
        parents: &[(CustomerId, DocumentRef)],
    ) -> StoreResult<Vec<BookDocument>> {
        let nodes = self.nodes_of(parents.iter().map(|(customer, _)| customer.as_uuid()));
        let mut of_customer: BTreeMap<CustomerId, Vec<Uuid>> = BTreeMap::new();
        for (customer, parent) in parents {
            of_customer.entry(*customer).or_default().push(parent.as_uuid());
        }
        let mut rows: Vec<(WithParts, Cell<Uuid>)> = Vec::new();
        // SQLite runs in the same process and cannot use an index for a list of rows.
        if self.is_sqlite() || of_customer.len() <= 1 {
            for (customer, parents) in of_customer {
                let of_one: Vec<(WithParts, Cell<Uuid>)> = with_conn!(self, "documents", |conn| documents::table
                    .filter(documents::customer_id.eq(Bound(customer.as_uuid())))
                    .filter(one_of_ids(documents::parent_document_id, parents))
                    .select((WithParts::columns(&nodes), documents::organization_id))
                    .load(conn))?;
                rows.extend(of_one);
            }
        } else {
            let of_parent =
                |(customer, parent): &(CustomerId, DocumentRef)| vec![Value::Id(customer.as_uuid()), Value::Id(parent.as_uuid())];
            let of_all: Vec<(WithParts, Cell<Uuid>)> = with_conn!(self, "documents", |conn| documents::table
                .filter(
                    one_of_rows("documents.customer_id, documents.parent_document_id", parents.iter().map(of_parent))
                        .on_nodes(self.is_spread)
                )
                .select((WithParts::columns(&nodes), documents::organization_id))
                .load(conn))?;
            rows.extend(of_all);
        }
        by_creation(owned("documents", organization, rows)?)
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
    /// Returns the given customers' documents that belong to the organization.
    pub(super) fn own_documents(
        &mut self,
        organization: OrganizationId,
        customers: &[CustomerId],
        refs: &[DocumentRef],
    ) -> StoreResult<Vec<WithParts>> {
        let nodes = self.nodes_of(customers.iter().map(|customer| customer.as_uuid()));
        let found: Vec<(WithParts, Cell<Uuid>)> = with_conn!(self, "documents", |conn| documents::table
            .filter(one_of_ids(documents::document_id, refs.iter().map(|document| document.as_uuid())))
            .filter(also_one_of_ids(documents::customer_id, customers.iter().map(|customer| customer.as_uuid())))
            .select((WithParts::columns(&nodes), documents::organization_id))
            .load(conn))?;
        owned("documents", organization, found)
    }
}

#[cfg(test)]
mod tests {
    use billing_domain::ports::Documents as _;
    use billing_domain::refs::{CustomerId, DocumentRef, OrganizationId};
    use uuid::Uuid;

    use crate::query_plans::plans_of;

    #[test]
    fn documents_are_found_by_their_references_without_a_walk_through_the_organizations() {
        let plans = plans_of(|tx| {
            let refs = [DocumentRef::from_uuid(Uuid::from_u128(1))];
            let customers = [3, 4].map(|id| CustomerId::from_uuid(Uuid::from_u128(id)));
            let organization = OrganizationId::from_uuid(Uuid::from_u128(2));
            let found = tx.documents_by_refs(organization, &customers, &refs).expect("a look-up");
            assert!(found.is_empty());
        });
        assert!(plans[0].steps.iter().any(|step| step.starts_with("SEARCH documents USING PRIMARY KEY")), "{plans:?}");
    }
}
