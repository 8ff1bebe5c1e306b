//! Reads the contents of contract books, except the content of documents.

use std::collections::{BTreeMap, BTreeSet};

use billing_domain::document::BookDocument;
use billing_domain::document::lines::{BaseAndAmount, DiscountAndTax, FamilySums, SumKey};
use billing_domain::document::linking::{BillingSlot, SlotKind};
use billing_domain::document::totals::UsageTotals;
use billing_domain::ledger::{BookRows, ContractHeader};
use billing_domain::ports::{BookReader, Contracts as _, Lock, StoreResult};
use billing_domain::refs::{ContractKey, ContractRef, CustomerId, DocumentRef, OrganizationId, ProductNo};
use billing_domain::tax::TaxTreatment;
use chrono::NaiveDate;
use diesel::prelude::*;
use serde::Deserialize;
use uuid::Uuid;

use super::MAX_BINDS;
use super::charges::ChargeRow;
use super::contracts::Found;
use super::document_rows::{DRAFT, USAGE, WithParts};
use super::ledger::read_basis;
use super::running_totals::{TotalRow, read_totals};
use crate::in_list::{Value, also_one_of_ids, one_of_days, one_of_ids, one_of_numbers, one_of_rows};
use crate::nested_rows::{ChargesOfContract, DocumentsOfTotal, SumsOfFamily, VersionBefore};
use crate::nodes::shards::Nodes;
use crate::row::{Cell, Row};
use crate::schema::{contracts, document_parts, documents, usage_totals};
use crate::sql_types::{Bound, JsonText};
use crate::tx::{Transaction, load_contract, with_conn};

/// The product of a tax sum, because a key cannot contain NULL.
pub(super) const NO_PRODUCT: i32 = -1;
/// The discount of a tax sum.
pub(super) const NO_DISCOUNT: &str = "";
/// The product of a sum of prepaid credit. Its grant is in the column of the discount.
pub(super) const OF_CREDIT: i32 = -2;

/// Bound values per billing slot.
const PLACE_COLUMNS: usize = 4;

/// A [nested row](SumsOfFamily) of a document.
#[derive(Deserialize)]
struct SumRow {
    product_no: i32,
    discount_rate: String,
    tax_rate: String,
    tax_basis: String,
    base_minor: i64,
    amount_minor: i64,
}

impl SumRow {
    fn read(self, family: Uuid) -> StoreResult<(SumKey, BaseAndAmount)> {
        let row = Row::new("family_sums", family);
        let tax = TaxTreatment { rate: row.leaf("tax_rate", &self.tax_rate)?, basis: read_basis(&row, &self.tax_basis)? };
        let key = match self.product_no {
            NO_PRODUCT => SumKey::Tax(tax),
            OF_CREDIT => SumKey::Prepaid(tax, row.leaf("discount_rate", &self.discount_rate)?),
            product_no => {
                let product_no = ProductNo(row.checked("product_no", u16::try_from(product_no))?);
                SumKey::Discount(product_no, DiscountAndTax { discount: row.leaf("discount_rate", &self.discount_rate)?, tax })
            }
        };
        Ok((key, BaseAndAmount { base: self.base_minor, amount: self.amount_minor }))
    }
}

/// Parses the [sums](SumsOfFamily) below the root document of a family.
pub(super) fn read_sums(family: DocumentRef, sums: Option<&JsonText>) -> StoreResult<FamilySums> {
    let sums: Vec<SumRow> = Row::new("documents", family).under("sums", sums)?;
    let sums = sums.into_iter().map(|sum| sum.read(family.as_uuid()));
    Ok(FamilySums::new(sums.collect::<StoreResult<Vec<_>>>()?))
}

/// Loads the rows of an organization's contracts: with one statement on PostgreSQL, and with one per contract on
/// SQLite. SQLite runs in the same process and cannot use an index for a list of rows.
macro_rules! load_of_contracts {
    ($tx:expr, $table:literal, $contracts:expr, ($customer:expr, $contract:expr, $columns:literal), $query:expr) => {
        $crate::ports::books::load_of_contracts!($tx, $table, $contracts, ($customer, $contract, $columns), None, $query)
    };
    ($tx:expr, $table:literal, $contracts:expr, ($customer:expr, $contract:expr, $columns:literal), $joined:expr, $query:expr) => {{
        let mut found = Vec::new();
        if $tx.is_sqlite() || $contracts.len() == 1 {
            for key in $contracts {
                let rows: Vec<_> = with_conn!($tx, $table, |conn| $query
                    .filter($customer.eq(Bound(key.customer.as_uuid())))
                    .filter($contract.eq(Bound(key.contract.as_uuid())))
                    .load(conn))?;
                found.extend(rows);
            }
        } else {
            let of_contract = |key: &ContractKey| vec![Value::Id(key.customer.as_uuid()), Value::Id(key.contract.as_uuid())];
            let rows: Vec<_> = with_conn!($tx, $table, |conn| $query
                .filter(one_of_rows($columns, $contracts.iter().map(of_contract)).on_nodes($tx.is_spread).joining_if($joined))
                .load(conn))?;
            found.extend(rows);
        }
        found
    }};
}
pub(super) use load_of_contracts;

impl Transaction<'_> {
    /// Returns contracts' documents with their products and family sums, and contracts' charges.
    fn documents_of_books(
        &mut self,
        organization: OrganizationId,
        contracts: &[ContractKey],
        books: &mut BTreeMap<ContractKey, BookRows>,
    ) -> StoreResult<()> {
        type Found = (WithParts, Option<JsonText>, Option<JsonText>);
        let nodes = self.nodes_of(contracts.iter().map(|key| key.customer.as_uuid()));
        let rows: Vec<Found> = load_of_contracts!(
            self,
            "documents",
            contracts,
            (documents::customer_id, documents::contract_id, "documents.customer_id, documents.contract_id"),
            documents::table
                .filter(documents::organization_id.eq(Bound(organization.as_uuid())))
                .filter(documents::purpose.ne(USAGE).or(documents::lifecycle.eq(DRAFT)))
                .order((documents::created_at, documents::document_id))
                .select((WithParts::columns(&nodes), SumsOfFamily::on(&nodes), ChargesOfContract::on(&nodes)))
        );
        for (document, of_family, of_contract) in rows {
            let document = document.read_for_book()?;
            let document_ref = document.head.document_ref;
            let book = books.entry(document.head.contract_key(organization)).or_default();
            let of_family = read_sums(document_ref, of_family.as_ref())?;
            if !of_family.is_empty() {
                book.sums.insert(document_ref, of_family);
            }
            let of_contract: Vec<ChargeRow> = Row::new("documents", document_ref).under("charges", of_contract.as_ref())?;
            book.charges.extend(of_contract.into_iter().map(ChargeRow::read).collect::<StoreResult<Vec<_>>>()?);
            book.charges.sort_by(|a, b| a.charge_ref.cmp(&b.charge_ref));
            book.documents.push(document);
        }
        Ok(())
    }

    /// Returns contracts' running totals, with the drafts and void documents of their events.
    fn usage_of_books(
        &mut self,
        organization: OrganizationId,
        contracts: &[ContractKey],
        books: &mut BTreeMap<ContractKey, BookRows>,
    ) -> StoreResult<()> {
        type Found = (TotalRow, Cell<Uuid>, Option<JsonText>);
        let nodes = self.nodes_of(contracts.iter().map(|key| key.customer.as_uuid()));
        let rows: Vec<Found> = load_of_contracts!(
            self,
            "usage_totals",
            contracts,
            (usage_totals::customer_id, usage_totals::contract_id, "usage_totals.customer_id, usage_totals.contract_id"),
            usage_totals::table.filter(usage_totals::organization_id.eq(Bound(organization.as_uuid()))).select((
                TotalRow::as_select(),
                usage_totals::customer_id,
                DocumentsOfTotal::on(&nodes)
            ))
        );
        let mut totals: BTreeMap<ContractKey, Vec<TotalRow>> = BTreeMap::new();
        for (total, customer_id, documents) in rows {
            let row = Row::new("usage_totals", "");
            let contract = total.contract_ref()?;
            let customer = CustomerId::from_uuid(row.cell("customer_id", customer_id)?);
            let key = ContractKey { organization, customer, contract };
            let row = Row::new("usage_totals", contract);
            for (document_id,) in row.under::<(Cell<Uuid>,)>("documents", documents.as_ref())? {
                let document_ref = DocumentRef::from_uuid(row.cell("document_id", document_id)?);
                books.entry(key).or_default().with_events.insert(document_ref);
            }
            totals.entry(key).or_default().push(total);
        }
        for (key, totals) in totals {
            books.entry(key).or_default().usage = UsageTotals::new(read_totals(totals)?);
        }
        Ok(())
    }
}

/// Returns the value of a set that has exactly one.
fn only<T: Copy + Ord>(values: &BTreeSet<T>) -> Option<T> {
    if values.len() == 1 { values.first().copied() } else { None }
}

/// A document in force and the slot of one of its products: customer, contract, product, first day, slot, and the
/// organization.
type OccupiedSlotRow = (WithParts, Cell<Uuid>, Cell<Uuid>, i32, Cell<NaiveDate>, Option<String>, Cell<Uuid>);

/// The occupied slots of documents, as [`OccupiedSlotRow`].
macro_rules! occupied_slots {
    ($nodes:expr) => {
        document_parts::table
            .inner_join(
                documents::table.on(documents::document_id
                    .eq(document_parts::document_id)
                    .and(documents::customer_id.eq(document_parts::customer_id))),
            )
            // A bare column, because an equality with a value hides the partial index from a prepared plan.
            .filter(document_parts::active)
            .filter(document_parts::slot.is_not_null())
            .select((
                WithParts::columns($nodes),
                document_parts::customer_id,
                document_parts::contract_id,
                document_parts::product_no,
                document_parts::period_start,
                document_parts::slot,
                documents::organization_id,
            ))
    };
}

impl Transaction<'_> {
    /// Returns occupied slots at or near the given slots, for every organization. Only few rows are superfluous.
    fn parts_around(&mut self, places: &BTreeSet<(ContractKey, BillingSlot)>) -> StoreResult<Vec<OccupiedSlotRow>> {
        let nodes = self.nodes_of(places.iter().map(|(contract, _)| contract.customer.as_uuid()));
        let mut contracts: BTreeMap<ContractKey, Vec<BillingSlot>> = BTreeMap::new();
        for (contract, slot) in places {
            contracts.entry(*contract).or_default().push(*slot);
        }
        let mut found: Vec<OccupiedSlotRow> = Vec::new();
        // SQLite runs in the same process and cannot use an index for a list of rows.
        if self.is_sqlite() || contracts.len() == 1 {
            for (contract, places) in contracts {
                let products: BTreeSet<i32> = places.iter().map(|slot| i32::from(slot.product_no.0)).collect();
                let days: BTreeSet<NaiveDate> = places.iter().map(|slot| slot.period_start).collect();
                macro_rules! of_contract {
                    () => {
                        occupied_slots!(&nodes)
                            .filter(document_parts::customer_id.eq(Bound(contract.customer.as_uuid())))
                            .filter(document_parts::contract_id.eq(Bound(contract.contract.as_uuid())))
                    };
                }
                // Nearly always there is one product and one day. Equalities have a fixed text, which is not written
                // again for each contract, unlike that of lists.
                let rows: Vec<OccupiedSlotRow> = if let (Some(product), Some(day)) = (only(&products), only(&days)) {
                    with_conn!(self, "document_parts", |conn| of_contract!()
                        .filter(document_parts::product_no.eq(product))
                        .filter(document_parts::period_start.eq(Bound(day)))
                        .load(conn))?
                } else {
                    with_conn!(self, "document_parts", |conn| of_contract!()
                        .filter(one_of_numbers(document_parts::product_no, products))
                        .filter(one_of_days(document_parts::period_start, days))
                        .load(conn))?
                };
                found.extend(rows);
            }
            return Ok(found);
        }
        let all = Vec::from_iter(places);
        for places in all.chunks(MAX_BINDS / PLACE_COLUMNS) {
            let of_place = |(contract, slot): &&(ContractKey, BillingSlot)| {
                vec![
                    Value::Id(contract.customer.as_uuid()),
                    Value::Id(contract.contract.as_uuid()),
                    Value::Number(i32::from(slot.product_no.0)),
                    Value::Day(slot.period_start),
                ]
            };
            let rows: Vec<OccupiedSlotRow> = with_conn!(self, "document_parts", |conn| {
                occupied_slots!(&nodes)
                .filter(one_of_rows(
                    "document_parts.customer_id, document_parts.contract_id, document_parts.product_no, document_parts.period_start",
                    places.iter().map(of_place),
                ).on_nodes(self.is_spread).joining("documents.customer_id"))
                .load(conn)
            })?;
            found.extend(rows);
        }
        Ok(found)
    }
}

impl BookReader for Transaction<'_> {
    fn agreement(&mut self, key: ContractKey, lock: Option<Lock>) -> StoreResult<Option<ContractHeader>> {
        if let Some(lock) = lock {
            self.note_contract(key.contract, lock)?;
        }
        let mut lock = lock;
        if self.is_spread
            && let Some(wanted) = lock.take()
        {
            // A statement that locks a row cannot also read rows of other tables by that row's columns.
            self.lock_contract(key, wanted)?;
        }
        let nodes = self.nodes_of([key.customer.as_uuid()]);
        let found: Vec<(Found, Option<JsonText>)> = load_contract!(
            self,
            lock,
            contracts::table
                .find((Bound(key.contract.as_uuid()), Bound(key.customer.as_uuid())))
                .filter(contracts::organization_id.eq(Bound(key.organization.as_uuid()))),
            (Found::columns(&nodes), VersionBefore::on(&nodes))
        )?;
        if lock == Some(Lock::Exclusive) && !found.is_empty() {
            self.renew_stamps(&[(key.contract.as_uuid(), key.customer.as_uuid())])?;
        }
        found.into_iter().next().map(|found| self.unchanged(found)).transpose()
    }

    fn agreement_of(&mut self, organization: OrganizationId, contract_ref: ContractRef) -> StoreResult<Option<ContractHeader>> {
        let found: Vec<Found> = with_conn!(self, "contracts", |conn| contracts::table
            .filter(contracts::contract_id.eq(Bound(contract_ref.as_uuid())))
            .filter(contracts::organization_id.eq(Bound(organization.as_uuid())))
            .select(Found::columns(&Nodes::default()))
            .load(conn))?;
        found.into_iter().next().map(Found::read).transpose()
    }

    fn agreements(&mut self, contracts: &[ContractKey]) -> StoreResult<Vec<ContractHeader>> {
        let ids = contracts.iter().map(|key| key.contract.as_uuid());
        let customers: BTreeSet<Uuid> = contracts.iter().map(|key| key.customer.as_uuid()).collect();
        let wanted: BTreeSet<&ContractKey> = contracts.iter().collect();
        let nodes = self.nodes_of(customers.iter().copied());
        let found: Vec<(Found, Cell<Uuid>)> = with_conn!(self, "contracts", |conn| contracts::table
            .filter(one_of_ids(contracts::contract_id, ids.clone()))
            .filter(also_one_of_ids(contracts::customer_id, customers))
            .select((Found::columns(&nodes), contracts::organization_id))
            .load(conn))?;
        let mut agreements = Vec::with_capacity(found.len());
        for (found, owner) in found {
            let owner = Row::new("contracts", found.id()?).cell("organization_id", owner)?;
            let agreement = found.read()?;
            if wanted.contains(&agreement.contract.key(OrganizationId::from_uuid(owner))) {
                agreements.push(agreement);
            }
        }
        agreements.sort_by_key(|agreement| agreement.contract.contract_ref);
        Ok(agreements)
    }

    fn rows_of_books(&mut self, contracts: &[ContractKey]) -> StoreResult<BTreeMap<ContractKey, BookRows>> {
        let mut organizations: BTreeMap<OrganizationId, BTreeSet<ContractKey>> = BTreeMap::new();
        for key in contracts {
            organizations.entry(key.organization).or_default().insert(*key);
        }
        let mut books = BTreeMap::new();
        for (organization, contracts) in organizations {
            let contracts = Vec::from_iter(contracts);
            self.documents_of_books(organization, &contracts, &mut books)?;
            self.lines_in_force(organization, &contracts, &mut books)?;
            self.usage_of_books(organization, &contracts, &mut books)?;
        }
        Ok(books)
    }

    fn documents_in_places(&mut self, places: &[(ContractKey, BillingSlot)]) -> StoreResult<Vec<BookDocument>> {
        let wanted: BTreeSet<(ContractKey, BillingSlot)> = places.iter().copied().collect();
        let (mut seen, mut found) = (BTreeSet::new(), Vec::new());
        for (document, customer_id, contract_id, product_no, period_start, kind, owner) in self.parts_around(&wanted)? {
            let id = document.id()?;
            let row = Row::new("document_parts", id);
            let contract = ContractKey {
                organization: OrganizationId::from_uuid(row.cell("organization_id", owner)?),
                customer: CustomerId::from_uuid(row.cell("customer_id", customer_id)?),
                contract: ContractRef::from_uuid(row.cell("contract_id", contract_id)?),
            };
            let kind: Option<SlotKind> = row.optional_leaf("slot", kind.as_deref())?;
            let product_no = ProductNo(row.checked("product_no", u16::try_from(product_no))?);
            let period_start = row.cell("period_start", period_start)?;
            let is_wanted = kind.is_some_and(|kind| wanted.contains(&(contract, BillingSlot { product_no, period_start, kind })));
            // A document with several products occupies several slots.
            if is_wanted && seen.insert(id) {
                found.push(document);
            }
        }
        by_creation(found)
    }

    fn book_documents_by_refs(
        &mut self,
        organization: OrganizationId,
        customers: &[CustomerId],
        refs: &[DocumentRef],
    ) -> StoreResult<Vec<BookDocument>> {
        by_creation(self.own_documents(organization, customers, refs)?)
    }
}

/// Returns documents in list order. They are sorted here, because SQLite would scan all documents of the organization
/// to sort them.
pub(super) fn by_creation(rows: Vec<WithParts>) -> StoreResult<Vec<BookDocument>> {
    let mut documents = rows.into_iter().map(WithParts::read_for_book).collect::<StoreResult<Vec<_>>>()?;
    documents.sort_by_key(|document| (document.head.created_at, document.head.document_ref));
    Ok(documents)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query_plans::plans_of;

    #[test]
    fn the_slot_of_one_product_and_day_is_looked_up_by_its_index_without_a_list_on_sqlite() {
        let id = Uuid::from_u128;
        let contract = ContractKey {
            organization: OrganizationId::from_uuid(id(1)),
            customer: CustomerId::from_uuid(id(2)),
            contract: ContractRef::from_uuid(id(3)),
        };
        let slot = |no, kind| (contract, BillingSlot { product_no: ProductNo(no), period_start: NaiveDate::default(), kind });
        // Two slots of a period, and the same period of two products.
        let of_one = [slot(1, SlotKind::Period), slot(1, SlotKind::UsageDebit)];
        let of_two = [slot(1, SlotKind::Period), slot(2, SlotKind::Period)];
        for (places, has_list) in [(of_one, false), (of_two, true)] {
            let plans = plans_of(|tx| assert!(tx.documents_in_places(&places).expect("a look-up").is_empty()));
            let by_index = "document_parts_in_force (customer_id=? AND contract_id=? AND product_no=? AND period_start=?";
            assert!(plans[0].steps.iter().any(|step| step.contains(by_index)), "{plans:?}");
            assert_eq!(plans[0].statement.contains("json_each("), has_list, "{plans:?}");
        }
    }

    #[test]
    fn contracts_and_documents_are_found_by_their_references_without_a_walk_through_others() {
        let id = Uuid::from_u128;
        let (organization, customer) = (OrganizationId::from_uuid(id(1)), CustomerId::from_uuid(id(2)));
        let plans = plans_of(|tx| {
            assert_eq!(tx.agreement_of(organization, ContractRef::from_uuid(id(3))).expect("a look-up"), None);
            let refs = [DocumentRef::from_uuid(id(5)), DocumentRef::from_uuid(id(6))];
            assert!(tx.book_documents_by_refs(organization, &[customer], &refs).expect("a look-up").is_empty());
        });
        assert_eq!(plans.len(), 2);
        for (plan, found) in plans.iter().zip(["contract_id=?", "(document_id=?)"]) {
            let walks = |step: &String| step.starts_with("SCAN") && !step.contains("json_each");
            assert!(!plan.steps.iter().any(|step| walks(step) || step.contains("(organization_id=?)")), "{plan:?}");
            assert!(plan.steps.iter().any(|step| step.contains(found)), "{found}: {plan:?}");
        }
    }
}
