//! Prepaid credit: grants, and what documents took of them.

use std::collections::{BTreeMap, BTreeSet};

use billing_domain::calendar::Timestamp;
use billing_domain::credit::{CreditDraw, CreditGrant, CreditSale};
use billing_domain::document::DocumentState;
use billing_domain::document::numbering::DocumentNumber;
use billing_domain::money::{Currency, Money, MoneySum};
use billing_domain::page::{Page, PageRequest};
use billing_domain::ports::{Credits, DrawFilter, GrantFilter, NewDraw, StoreError, StoreResult, StoredDraw};
use billing_domain::receivables::AccountKey;
use billing_domain::refs::{ContractRef, CreditGrantRef, CustomerId, DocumentRef, OrganizationId};
use billing_domain::tax::TaxTreatment;
use chrono::NaiveDate;
use diesel::dsl::exists;
use diesel::prelude::*;
use uuid::Uuid;

use super::balances::{NumberColumns, key_of, number, summed};
use super::book_entries::rate_key;
use super::books::read_sums;
use super::document_rows::WithParts;
use super::ledger::{basis_text, read_basis};
use super::{counted, limits, owned, stored};
use crate::hand_written::{IsDue, IsUndrawn};
use crate::in_list::{also_one_of_ids, one_of_ids, unindexed};
use crate::nested_rows::SumsOfFamily;
use crate::row::{Cell, Row};
use crate::schema::{credit_draws, credit_grants, documents, write_offs};
use crate::sql_types::{Bound, JsonText};
use crate::tx::{Transaction, with_conn};
use crate::written_rows::{Columns, InsertRows, UpdateRows, checked_column, column};

#[derive(Queryable, Selectable)]
#[diesel(table_name = credit_grants)]
struct GrantRow {
    grant_id: Cell<Uuid>,
    customer_id: Cell<Uuid>,
    entity_ref: String,
    currency: String,
    amount_minor: i64,
    drawn_minor: i64,
    name: String,
    valid_from: Option<Cell<NaiveDate>>,
    valid_to: Option<Cell<NaiveDate>>,
    contract_id: Option<Cell<Uuid>>,
    source_document_id: Option<Cell<Uuid>>,
    source_net_minor: Option<i64>,
    source_tax_rate: Option<String>,
    source_tax_basis: Option<String>,
    notification_count: i64,
    created_at: Cell<Timestamp>,
    updated_at: Cell<Timestamp>,
}

/// What a grant shows of the invoice that sold it.
struct SaleDocument {
    number: DocumentNumber,
    state: DocumentState,
    family_net: Money,
}

impl GrantRow {
    fn row(&self) -> Row<Cell<Uuid>> {
        Row::new("credit_grants", self.grant_id.clone())
    }

    /// Returns the customer and the invoice that sold the credit.
    fn source(&self) -> StoreResult<Option<(Uuid, Uuid)>> {
        let row = self.row();
        let Some(document) = row.optional("source_document_id", self.source_document_id.clone())? else { return Ok(None) };
        Ok(Some((row.cell("customer_id", self.customer_id.clone())?, document)))
    }

    fn sale(&self, currency: Currency, sources: &BTreeMap<Uuid, SaleDocument>) -> StoreResult<Option<CreditSale>> {
        let (row, Some((_, document))) = (self.row(), self.source()?) else { return Ok(None) };
        let (Some(net), Some(rate), Some(basis)) = (self.source_net_minor, &self.source_tax_rate, &self.source_tax_basis) else {
            return Err(row.corrupt("source_document_id", "a sale without net amount or tax"));
        };
        let Some(source) = sources.get(&document) else {
            return Err(row.corrupt("source_document_id", format_args!("document {document} does not exist")));
        };
        Ok(Some(CreditSale {
            document_ref: DocumentRef::from_uuid(document),
            number: source.number.clone(),
            treatment: TaxTreatment { rate: row.leaf("source_tax_rate", rate)?, basis: read_basis(&row, basis)? },
            net: Money::from_minor(net, currency),
            state: source.state,
            family_net: source.family_net,
        }))
    }

    fn read(self, sources: &BTreeMap<Uuid, SaleDocument>) -> StoreResult<CreditGrant> {
        let row = self.row();
        let currency = row.leaf("currency", &self.currency)?;
        let sale = self.sale(currency, sources)?;
        Ok(CreditGrant {
            grant_ref: CreditGrantRef::from_uuid(row.cell("grant_id", self.grant_id)?),
            account: AccountKey {
                customer_id: CustomerId::from_uuid(row.cell("customer_id", self.customer_id)?),
                entity_ref: row.leaf("entity_ref", &self.entity_ref)?,
                currency,
            },
            amount: Money::from_minor(self.amount_minor, currency),
            name: row.leaf("name", &self.name)?,
            from: row.optional("valid_from", self.valid_from)?,
            to: row.optional("valid_to", self.valid_to)?,
            contract_ref: row.optional("contract_id", self.contract_id)?.map(ContractRef::from_uuid),
            sale,
            drawn: Money::from_minor(self.drawn_minor, currency),
            notifications: row.checked("notification_count", u64::try_from(self.notification_count))?,
            created_at: row.cell("created_at", self.created_at)?,
            updated_at: row.cell("updated_at", self.updated_at)?,
        })
    }
}

/// The columns that an edit changes.
#[derive(AsChangeset, Insertable)]
#[diesel(table_name = credit_grants, treat_none_as_null = true)]
struct GrantTerms {
    amount_minor: i64,
    name: String,
    valid_from: Option<Bound<NaiveDate>>,
    valid_to: Option<Bound<NaiveDate>>,
    notification_count: i64,
    updated_at: Bound<Timestamp>,
}

impl GrantTerms {
    fn of(grant: &CreditGrant) -> StoreResult<Self> {
        Ok(Self {
            amount_minor: grant.amount.minor(),
            name: grant.name.as_str().to_owned(),
            valid_from: grant.from.map(Bound),
            valid_to: grant.to.map(Bound),
            notification_count: stored(grant.notifications)?,
            updated_at: Bound(grant.updated_at),
        })
    }
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = credit_draws)]
struct DrawRow {
    document_id: Cell<Uuid>,
    customer_id: Cell<Uuid>,
    draw_no: i32,
    grant_id: Cell<Uuid>,
    tax_rate: String,
    tax_basis: String,
    amount_minor: i64,
    recorded_at: Cell<Timestamp>,
}

impl DrawRow {
    /// Returns the draw of a document with an entity, a currency and a number.
    fn read(self, (entity_ref, currency): (&str, &str), of_number: &NumberColumns) -> StoreResult<StoredDraw> {
        let row = Row::new("credit_draws", format!("{}/{}", self.document_id, self.draw_no));
        let id = row.cell("document_id", self.document_id)?;
        let document = Row::new("documents", id);
        let treatment = TaxTreatment { rate: row.leaf("tax_rate", &self.tax_rate)?, basis: read_basis(&row, &self.tax_basis)? };
        Ok(StoredDraw {
            customer_id: CustomerId::from_uuid(row.cell("customer_id", self.customer_id)?),
            entity_ref: document.leaf("entity_ref", entity_ref)?,
            draw: CreditDraw {
                document_ref: DocumentRef::from_uuid(id),
                grant_ref: CreditGrantRef::from_uuid(row.cell("grant_id", self.grant_id)?),
                treatment,
                amount: Money::from_minor(self.amount_minor, document.leaf("currency", currency)?),
            },
            document_number: number(&document, of_number)?,
            at: row.cell("recorded_at", self.recorded_at)?,
        })
    }
}

fn draw_columns(organization: OrganizationId, draws: &[NewDraw], at: Timestamp) -> StoreResult<Columns> {
    Ok(vec![
        ("document_id", column(draws, |new| new.draw.document_ref.as_uuid())),
        ("customer_id", column(draws, |new| new.customer_id.as_uuid())),
        ("draw_no", checked_column(draws, |new| stored::<i32, _>(new.draw_no))?),
        ("organization_id", column(draws, |_| organization.as_uuid())),
        ("grant_id", column(draws, |new| new.draw.grant_ref.as_uuid())),
        ("tax_rate", column(draws, |new| rate_key(new.draw.treatment.rate))),
        ("tax_basis", checked_column(draws, |new| basis_text(&new.draw.treatment.basis))?),
        ("amount_minor", column(draws, |new| new.draw.amount.minor())),
        ("recorded_at", column(draws, |_| at)),
    ])
}

/// Returns what draws take of each grant. Each grant is there once, because PostgreSQL updates a row once in a statement.
fn sums_by_grant(draws: &[NewDraw]) -> StoreResult<Vec<((CustomerId, CreditGrantRef), i64)>> {
    let mut sums: BTreeMap<(CustomerId, CreditGrantRef), i64> = BTreeMap::new();
    for NewDraw { customer_id, draw, .. } in draws {
        let sum = sums.entry((*customer_id, draw.grant_ref)).or_default();
        let Some(added) = sum.checked_add(draw.amount.minor()) else {
            return Err(StoreError::Corrupt(format!("credit_grants {}: a sum is out of range", draw.grant_ref)));
        };
        *sum = added;
    }
    Ok(sums.into_iter().collect())
}

fn uuids(customers: &[CustomerId]) -> impl Iterator<Item = Uuid> + Clone {
    customers.iter().map(|customer| customer.as_uuid())
}

/// The customer, the entity and the currency of an account.
type AccountColumns = (Cell<Uuid>, String, String);
/// An amount of an account, and the organization.
type AccountAmount = ((AccountColumns, i64), Cell<Uuid>);

/// The grant that the invoice of a document's family sold. It is looked up for each document, because a customer has fewer documents
/// that are due than sales.
macro_rules! sale_of_document {
    ($customers:expr) => {
        credit_grants::table
            .filter(credit_grants::source_document_id.eq(documents::family_document_id.nullable()))
            .filter(credit_grants::customer_id.eq(documents::customer_id))
            // A distributed database finds its nodes by constants.
            .filter(also_one_of_ids(credit_grants::customer_id, uuids($customers)))
    };
}

impl Transaction<'_> {
    /// Returns what grants show of the invoices that sold them, with one statement if there are any.
    fn sources_of(&mut self, grants: &[GrantRow]) -> StoreResult<BTreeMap<Uuid, SaleDocument>> {
        let (mut refs, mut customers) = (BTreeSet::new(), BTreeSet::new());
        for grant in grants {
            if let Some((customer, document)) = grant.source()? {
                customers.insert(customer);
                refs.insert(document);
            }
        }
        if refs.is_empty() {
            return Ok(BTreeMap::new());
        }
        let nodes = self.nodes_of(customers.iter().copied());
        let rows: Vec<(WithParts, Option<JsonText>)> = with_conn!(self, "documents", |conn| documents::table
            .filter(one_of_ids(documents::document_id, refs.iter().copied()))
            .filter(also_one_of_ids(documents::customer_id, customers.iter().copied()))
            .select((WithParts::columns(&nodes), SumsOfFamily::on(&nodes)))
            .load(conn))?;
        let read = |(document, sums): (WithParts, Option<JsonText>)| {
            let document = document.read_for_book()?;
            let head = &document.head;
            let row = Row::new("documents", head.document_ref);
            let sums = read_sums(head.document_ref, sums.as_ref())?;
            let source = SaleDocument {
                number: head.number.clone(),
                state: row.checked("total_minor", document.state())?,
                family_net: row.checked("sums", sums.net(head.currency))?,
            };
            Ok((head.document_ref.as_uuid(), source))
        };
        rows.into_iter().map(read).collect()
    }

    fn read_grants(&mut self, rows: Vec<GrantRow>) -> StoreResult<Vec<CreditGrant>> {
        let sources = self.sources_of(&rows)?;
        rows.into_iter().map(|row| row.read(&sources)).collect()
    }

    /// Adds amounts to what is drawn from grants.
    fn add_drawn(&mut self, organization: OrganizationId, added: &[((CustomerId, CreditGrantRef), i64)]) -> StoreResult<()> {
        let keys = vec![
            ("grant_id", column(added, |((_, grant_ref), _)| grant_ref.as_uuid())),
            ("customer_id", column(added, |((customer_id, _), _)| customer_id.as_uuid())),
            ("organization_id", column(added, |_| organization.as_uuid())),
        ];
        let update = UpdateRows::new("credit_grants", keys, Vec::new())
            .reading(vec![("added", column(added, |(_, minor)| *minor))])
            .also("drawn_minor = credit_grants.drawn_minor + {added}");
        if self.update_rows(update)? < added.len() {
            return self.refuse("credit_grants: a document draws from one that does not exist".to_owned());
        }
        Ok(())
    }

    /// Returns what is due of the documents in the families of sales.
    fn due_in_sold_families(&mut self, customers: &[CustomerId]) -> StoreResult<Vec<AccountAmount>> {
        let rows: Vec<(AccountColumns, Option<i64>, Cell<Uuid>)> = with_conn!(self, "documents", |conn| documents::table
            .filter(one_of_ids(documents::customer_id, uuids(customers)))
            .filter(IsDue)
            .filter(exists(sale_of_document!(customers)))
            // Without this order, SQLite reads all documents of the customers.
            .order((documents::customer_id, documents::entity_ref, documents::currency))
            .select((
                (documents::customer_id, documents::entity_ref, documents::currency),
                documents::amount_due_minor,
                documents::organization_id
            ))
            .load(conn))?;
        let amounts = rows.into_iter().map(|(account, minor, owner)| ((account, minor.unwrap_or(0)), owner));
        Ok(amounts.collect())
    }

    /// Returns what is written off of the documents in the families of sales.
    fn written_off_in_sold_families(&mut self, customers: &[CustomerId]) -> StoreResult<Vec<AccountAmount>> {
        with_conn!(self, "write_offs", |conn| write_offs::table
            .inner_join(
                documents::table.on(documents::document_id
                    .eq(write_offs::document_id)
                    .and(documents::customer_id.eq(write_offs::customer_id)))
            )
            .filter(one_of_ids(write_offs::customer_id, uuids(customers)).joining("documents.customer_id", self.is_spread))
            .filter(exists(sale_of_document!(customers)))
            .select((
                ((write_offs::customer_id, write_offs::entity_ref, write_offs::currency), write_offs::amount_minor),
                write_offs::organization_id
            ))
            .load(conn))
    }
}

impl Credits for Transaction<'_> {
    fn insert_grant(&mut self, organization: OrganizationId, grant: &CreditGrant) -> StoreResult<()> {
        let (sale, terms) = (grant.sale.as_ref(), GrantTerms::of(grant)?);
        let basis = sale.map(|sale| basis_text(&sale.treatment.basis)).transpose()?;
        with_conn!(self, "credit_grants", |conn| diesel::insert_into(credit_grants::table)
            .values((
                credit_grants::grant_id.eq(Bound(grant.grant_ref.as_uuid())),
                credit_grants::customer_id.eq(Bound(grant.account.customer_id.as_uuid())),
                credit_grants::organization_id.eq(Bound(organization.as_uuid())),
                credit_grants::entity_ref.eq(grant.account.entity_ref.as_str()),
                credit_grants::currency.eq(grant.account.currency.code()),
                credit_grants::drawn_minor.eq(0_i64),
                credit_grants::contract_id.eq(grant.contract_ref.map(|contract_ref| Bound(contract_ref.as_uuid()))),
                credit_grants::source_document_id.eq(sale.map(|sale| Bound(sale.document_ref.as_uuid()))),
                credit_grants::source_net_minor.eq(sale.map(|sale| sale.net.minor())),
                credit_grants::source_tax_rate.eq(sale.map(|sale| rate_key(sale.treatment.rate))),
                credit_grants::source_tax_basis.eq(basis),
                credit_grants::created_at.eq(Bound(grant.created_at)),
                terms,
            ))
            .execute(conn))?;
        Ok(())
    }

    fn update_grant(&mut self, organization: OrganizationId, grant: &CreditGrant) -> StoreResult<bool> {
        let id = (Bound(grant.grant_ref.as_uuid()), Bound(grant.account.customer_id.as_uuid()));
        let terms = GrantTerms::of(grant)?;
        let updated = with_conn!(self, "credit_grants", |conn| diesel::update(credit_grants::table.find(id))
            .filter(credit_grants::organization_id.eq(Bound(organization.as_uuid())))
            .set(terms)
            .execute(conn))?;
        Ok(updated == 1)
    }

    fn grant(&mut self, organization: OrganizationId, grant_ref: CreditGrantRef) -> StoreResult<Option<CreditGrant>> {
        let rows: Vec<GrantRow> = with_conn!(self, "credit_grants", |conn| credit_grants::table
            .filter(credit_grants::grant_id.eq(Bound(grant_ref.as_uuid())))
            .filter(credit_grants::organization_id.eq(Bound(organization.as_uuid())))
            .select(GrantRow::as_select())
            .load(conn))?;
        Ok(self.read_grants(rows)?.pop())
    }

    fn grants(
        &mut self,
        organization: OrganizationId,
        filter: &GrantFilter,
        page: PageRequest,
    ) -> StoreResult<Page<CreditGrant>> {
        let (limit, offset) = limits(page);
        let (rows, total): (Vec<GrantRow>, i64) = with_conn!(self, "credit_grants", |conn| {
            let narrowed = || {
                let mut query = credit_grants::table.into_boxed::<Db>();
                query = if filter.customer_id.is_none() && filter.source.is_none() {
                    query.filter(credit_grants::organization_id.eq(Bound(organization.as_uuid())))
                } else {
                    // SQLite could scan all grants of the organization.
                    query.filter(unindexed(credit_grants::organization_id).eq(Bound(organization.as_uuid())))
                };
                if let Some(customer_id) = filter.customer_id {
                    query = query.filter(credit_grants::customer_id.eq(Bound(customer_id.as_uuid())));
                }
                if let Some(entity_ref) = &filter.entity_ref {
                    query = query.filter(credit_grants::entity_ref.eq(entity_ref.as_str()));
                }
                if let Some(currency) = filter.currency {
                    query = query.filter(credit_grants::currency.eq(currency.code()));
                }
                if let Some(source) = filter.source {
                    query = query.filter(credit_grants::source_document_id.eq(Bound(source.as_uuid())));
                }
                query
            };
            let total = narrowed().count().get_result(conn)?;
            let ordered = if page.is_backward() {
                narrowed().order((credit_grants::created_at.desc(), credit_grants::grant_id.desc()))
            } else {
                narrowed().order((credit_grants::created_at, credit_grants::grant_id))
            };
            Ok((ordered.limit(limit).offset(offset).select(GrantRow::as_select()).load(conn)?, total))
        })?;
        Ok(Page { items: self.read_grants(rows)?, total: counted(total)? })
    }

    fn grants_of(
        &mut self,
        organization: OrganizationId,
        customers: &[CustomerId],
        named: &[CreditGrantRef],
        sales: &[DocumentRef],
    ) -> StoreResult<Vec<CreditGrant>> {
        let rows: Vec<(GrantRow, Cell<Uuid>)> = with_conn!(self, "credit_grants", |conn| {
            let open = one_of_ids(credit_grants::customer_id, uuids(customers)).and(IsUndrawn);
            let mut query = credit_grants::table.filter(open).into_boxed::<Db>();
            if !named.is_empty() {
                query = query.or_filter(one_of_ids(credit_grants::grant_id, named.iter().map(|named| named.as_uuid())));
            }
            if !sales.is_empty() {
                query = query.or_filter(one_of_ids(credit_grants::source_document_id, sales.iter().map(|sale| sale.as_uuid())));
            }
            // Each condition finds its grants by an index of its own.
            if !(named.is_empty() && sales.is_empty()) {
                query = query.filter(also_one_of_ids(credit_grants::customer_id, uuids(customers)));
            }
            query.select((GrantRow::as_select(), credit_grants::organization_id)).load(conn)
        })?;
        let own = owned("credit_grants", organization, rows)?;
        let mut grants = self.read_grants(own)?;
        grants.sort_by_key(|grant| grant.grant_ref);
        Ok(grants)
    }

    fn due_of_sales(
        &mut self,
        organization: OrganizationId,
        customers: &[CustomerId],
    ) -> StoreResult<Vec<(AccountKey, MoneySum)>> {
        let mut rows = self.due_in_sold_families(customers)?;
        rows.extend(self.written_off_in_sold_families(customers)?);
        let own = owned("documents", organization, rows)?;
        let sums = summed(own.into_iter().map(|((customer_id, entity_ref, currency), minor)| {
            let customer_id = CustomerId::from_uuid(Row::new("documents", "").cell("customer_id", customer_id)?);
            let key = key_of(customer_id, &entity_ref, &currency)?;
            let amount = Money::from_minor(minor, key.currency);
            Ok((key, amount))
        }))?;
        // A write-off can be taken back in part or as a whole.
        Ok(sums.into_iter().filter(|(_, sum)| sum.minor() != 0).collect())
    }

    fn add_draws(&mut self, organization: OrganizationId, draws: &[NewDraw], at: Timestamp) -> StoreResult<()> {
        if draws.is_empty() {
            return Ok(());
        }
        self.add_drawn(organization, &sums_by_grant(draws)?)?;
        if self.insert_rows(InsertRows::new("credit_draws", draw_columns(organization, draws, at)?))? < draws.len() {
            return self.refuse("credit_draws: there already".to_owned());
        }
        Ok(())
    }

    fn draws(&mut self, organization: OrganizationId, filter: &DrawFilter, page: PageRequest) -> StoreResult<Page<StoredDraw>> {
        let (limit, offset) = limits(page);
        let (rows, total): (Vec<(DrawRow, String, String, NumberColumns)>, i64) = with_conn!(self, "credit_draws", |conn| {
            macro_rules! narrowed {
                ($from:expr) => {{
                    let mut query = $from.into_boxed::<Db>();
                    query = if filter.customer_id.is_none() && filter.grant_ref.is_none() && filter.document_ref.is_none() {
                        query.filter(credit_draws::organization_id.eq(Bound(organization.as_uuid())))
                    } else {
                        // SQLite could scan all draws of the organization.
                        query.filter(unindexed(credit_draws::organization_id).eq(Bound(organization.as_uuid())))
                    };
                    if let Some(customer_id) = filter.customer_id {
                        query = query.filter(credit_draws::customer_id.eq(Bound(customer_id.as_uuid())));
                    }
                    if let Some(grant_ref) = filter.grant_ref {
                        query = query.filter(credit_draws::grant_id.eq(Bound(grant_ref.as_uuid())));
                    }
                    if let Some(document_ref) = filter.document_ref {
                        query = query.filter(credit_draws::document_id.eq(Bound(document_ref.as_uuid())));
                    }
                    query
                }};
            }
            let total = narrowed!(credit_draws::table).count().get_result(conn)?;
            let query = narrowed!(credit_draws::table.inner_join(documents::table.on(
                documents::document_id.eq(credit_draws::document_id).and(documents::customer_id.eq(credit_draws::customer_id))
            )));
            let ordered = if page.is_backward() {
                query.order((credit_draws::recorded_at.desc(), credit_draws::document_id.desc(), credit_draws::draw_no.desc()))
            } else {
                query.order((credit_draws::recorded_at, credit_draws::document_id, credit_draws::draw_no))
            };
            let number = (documents::number_prefix, documents::kind, documents::sequence);
            let columns = (DrawRow::as_select(), documents::entity_ref, documents::currency, number);
            let rows = ordered.limit(limit).offset(offset).select(columns).load(conn)?;
            Ok((rows, total))
        })?;
        let items = rows.into_iter().map(|(row, entity_ref, currency, of_number)| row.read((&entity_ref, &currency), &of_number));
        Ok(Page { items: items.collect::<StoreResult<_>>()?, total: counted(total)? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query_plans::{Plan, plans_of};

    const ORGANIZATION: OrganizationId = OrganizationId::from_uuid(Uuid::from_u128(1));

    fn customers(many: usize) -> Vec<CustomerId> {
        (0..).take(many).map(|id| CustomerId::from_uuid(Uuid::from_u128(100 + id))).collect()
    }

    /// Checks that a statement uses these indexes, and reads no table as a whole.
    fn searches(plan: &Plan, indexes: &[&str]) {
        let walks =
            |step: &String| step.starts_with("SCAN") && !step.contains("json_each") || step.contains("(organization_id=?)");
        assert!(!plan.steps.iter().any(walks), "{plan:?}");
        for index in indexes {
            assert!(plan.steps.iter().any(|step| step.contains(index)), "{index}: {plan:?}");
        }
    }

    #[test]
    fn grants_of_customers_are_found_by_one_statement_without_a_walk_through_others() {
        const OPEN: &str = "credit_grants_open (customer_id=?)";
        const NAMED: &str = "PRIMARY KEY (grant_id=?)";
        const SOLD: &str = "credit_grants_sold (source_document_id=?)";
        for (many, listed) in [(1, 1), (3, 1), (1, 3), (3, 3)] {
            let named: Vec<_> = (0..).take(listed).map(|id| CreditGrantRef::from_uuid(Uuid::from_u128(200 + id))).collect();
            let sales: Vec<_> = (0..).take(listed).map(|id| DocumentRef::from_uuid(Uuid::from_u128(300 + id))).collect();
            for (named, sales, indexes) in [
                (&[][..], &[][..], &[OPEN][..]),
                (&named, &[], &[OPEN, NAMED]),
                (&[], &sales, &[OPEN, SOLD]),
                (&named, &sales, &[OPEN, NAMED, SOLD]),
            ] {
                let plans = plans_of(|tx| {
                    let found = tx.grants_of(ORGANIZATION, &customers(many), named, sales).expect("a look-up");
                    assert!(found.is_empty());
                });
                assert_eq!(plans.len(), 1);
                searches(&plans[0], indexes);
            }
        }
    }

    #[test]
    fn what_sales_have_due_is_found_from_what_is_due_and_written_off() {
        for many in [1, 3] {
            let plans = plans_of(|tx| assert!(tx.due_of_sales(ORGANIZATION, &customers(many)).expect("a look-up").is_empty()));
            let sold = "credit_grants_sold (source_document_id=? AND customer_id=?)";
            assert_eq!(plans.len(), 2);
            searches(&plans[0], &["documents_due (customer_id=?)", sold]);
            searches(&plans[1], &["write_offs_of_account (customer_id=?)", sold]);
        }
    }

    #[test]
    fn lists_of_a_customer_a_grant_or_a_document_are_read_by_their_indexes() {
        let (customer_id, source) = (customers(1).pop(), Some(DocumentRef::from_uuid(Uuid::from_u128(2))));
        let grant_ref = Some(CreditGrantRef::from_uuid(Uuid::from_u128(3)));
        let of_grants = [
            (GrantFilter { customer_id, ..GrantFilter::default() }, "credit_grants_of_customer (customer_id=?)"),
            (GrantFilter { source, ..GrantFilter::default() }, "credit_grants_sold (source_document_id=?)"),
        ];
        let of_draws = [
            (DrawFilter { customer_id, ..DrawFilter::default() }, "credit_draws_of_customer (customer_id=?)"),
            (DrawFilter { grant_ref, ..DrawFilter::default() }, "credit_draws_of_grant (grant_id=?)"),
            (DrawFilter { document_ref: source, ..DrawFilter::default() }, "PRIMARY KEY (document_id=?)"),
        ];
        for (filter, index) in of_grants {
            let plans =
                plans_of(|tx| assert_eq!(tx.grants(ORGANIZATION, &filter, PageRequest::LARGEST).expect("a list").total, 0));
            plans.iter().for_each(|plan| searches(plan, &[index]));
        }
        for (filter, index) in of_draws {
            let plans =
                plans_of(|tx| assert_eq!(tx.draws(ORGANIZATION, &filter, PageRequest::LARGEST).expect("a list").total, 0));
            plans.iter().for_each(|plan| searches(plan, &[index]));
        }
    }
}
