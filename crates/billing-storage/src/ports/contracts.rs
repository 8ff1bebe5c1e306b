//! Contracts with all their versions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use billing_domain::access::Actor;
use billing_domain::calendar::Timestamp;
use billing_domain::contract::{Contract, ContractProduct, Segment, SegmentTerms};
use billing_domain::ledger::{ContractHeader, ContractNotifications};
use billing_domain::metadata::Metadata;
use billing_domain::page::{Page, PageRequest};
use billing_domain::ports::{BookReader as _, Contracts, Lock, StampGeneration, Stamps, StoreResult};
use billing_domain::refs::{
    ContractKey, ContractRef, CustomerId, CustomerRef, EntityRef, OrganizationId, ProductNo, UsageProductRef,
};
use billing_domain::text::OneLine;
use chrono::NaiveDate;
use diesel::prelude::*;
use diesel::sql_types::{Nullable, Text};
use serde::Deserialize;
use uuid::Uuid;

use super::document_rows::DRAFT;
use super::metering::load_metering;
use super::parties::CustomerRow;
use super::runs::BillingFailureJson;
use super::{MAX_BINDS, counted, limits, stored};
use crate::column_values::ColumnValue;
use crate::failure::StatementError;
use crate::in_list::{Value, one_of_ids, one_of_rows, unindexed};
use crate::json::{StoredTerms, StoredTermsRef};
use crate::lock_gate::{LockContracts, pass_gate};
use crate::nested_rows::{CustomerColumn, CustomerOfContract, SegmentsOfContract};
use crate::nodes::shards::Nodes;
use crate::row::{Cell, ColumnsOf, Row, columns_of, to_json};
use crate::schema::{contract_products, contract_usage_products, contract_versions, contracts, documents, organizations};
use crate::sql_types::{Bound, Id, Json, JsonText};
use crate::text_value::TextValue as _;
use crate::tx::{Connection, Transaction, load_contract, load_held, with_conn};

#[derive(Queryable, Selectable)]
#[diesel(table_name = contracts)]
pub(super) struct ContractRow {
    contract_id: Cell<Uuid>,
    number: i64,
    po_number: Option<String>,
    metadata: Option<JsonText>,
    version: i32,
    created_at: Cell<Timestamp>,
    updated_at: Cell<Timestamp>,
    cancelled_at: Option<Cell<Timestamp>>,
    next_due_at: Option<Cell<Timestamp>>,
    watched: bool,
}

/// The days that a contract's newest version bills, and the entity whose time zone determines its state.
#[derive(Insertable, AsChangeset)]
#[diesel(table_name = contracts, treat_none_as_null = true, treat_none_as_default_value = false)]
struct BilledDays<'a> {
    first_day: Option<Bound<NaiveDate>>,
    last_day: Option<Bound<NaiveDate>>,
    entity_ref: Option<&'a str>,
}

impl<'a> BilledDays<'a> {
    fn of(contract: &'a Contract) -> Self {
        Self {
            first_day: contract.starts_on().map(Bound),
            last_day: contract.effective_end_date().map(Bound),
            entity_ref: contract.stating_entity().map(EntityRef::as_str),
        }
    }
}

/// A [nested row](SegmentsOfContract) of a contract, or a row of the table.
#[derive(Deserialize, Queryable, Selectable)]
#[diesel(table_name = contract_products)]
struct SegmentRow {
    product_no: i32,
    in_force_from: Cell<NaiveDate>,
    version: i32,
    end_reason: Option<String>,
    terms: Option<JsonText>,
}

/// The maximum number of contracts that a new one is compared with.
const MAX_LIKE: i64 = 20;

#[derive(Insertable)]
#[diesel(table_name = contract_products, treat_none_as_default_value = false)]
struct NewSegment {
    contract_id: Bound<Uuid>,
    customer_id: Bound<Uuid>,
    product_no: i32,
    in_force_from: Bound<NaiveDate>,
    version: i32,
    end_reason: Option<String>,
    terms: Option<JsonText>,
}
const SEGMENT_COLUMNS: usize = 7;

#[derive(Insertable)]
#[diesel(table_name = contract_usage_products, treat_none_as_default_value = false)]
struct NewMetering<'a> {
    customer_id: Bound<Uuid>,
    usage_product_ref: &'a str,
    contract_id: Bound<Uuid>,
    product_no: i32,
}
const METERING_COLUMNS: usize = 4;

/// A contract with all its terms, and its customer.
#[derive(Queryable)]
pub(super) struct Found {
    contract: ContractRow,
    state: ContractStateRow,
    segments: Option<JsonText>,
    customer: Option<JsonText>,
}

/// What changes about a contract without a new version.
#[derive(Queryable, Selectable)]
#[diesel(table_name = contracts)]
pub(super) struct ContractStateRow {
    notification_count: i64,
    failures: Option<JsonText>,
    failure_told_at: Option<Cell<Timestamp>>,
}

/// The columns of [`Found`].
type FoundColumns = (ColumnsOf<ContractRow>, ColumnsOf<ContractStateRow>, SegmentsOfContract, CustomerOfContract);

impl Found {
    /// Returns the columns, for contracts on these nodes.
    pub(super) fn columns(nodes: &Nodes) -> FoundColumns {
        let (segments, customer) = (SegmentsOfContract::on(nodes), CustomerOfContract::on(nodes));
        (columns_of::<ContractRow>(), columns_of::<ContractStateRow>(), segments, customer)
    }
}

/// A contract without its terms, with the identifier of the terms.
#[derive(Queryable, Selectable)]
#[diesel(table_name = contracts)]
struct Outline {
    #[diesel(embed)]
    contract: ContractRow,
    customer_id: Cell<Uuid>,
    terms_id: Cell<Uuid>,
}

/// A contract with its customer's reference, and the identifiers of the contract and its terms.
struct Outlined {
    contract_id: Uuid,
    terms_id: Uuid,
    customer_id: CustomerId,
    customer_ref: CustomerRef,
    contract: ContractRow,
}

impl SegmentRow {
    fn read(self, row: &Row<Uuid>) -> StoreResult<(ProductNo, Segment)> {
        let agreed = match (self.terms, self.end_reason) {
            (Some(terms), None) => SegmentTerms::Billed(Box::new(row.json::<StoredTerms>("terms", &terms)?.0)),
            (None, Some(reason)) => SegmentTerms::Ended(row.leaf("end_reason", &reason)?),
            (Some(_), Some(_)) | (None, None) => return Err(row.corrupt("terms", "neither billed nor ended")),
        };
        let segment = Segment {
            version: row.checked("version", u32::try_from(self.version))?,
            in_force_from: row.cell("in_force_from", self.in_force_from)?,
            agreed,
        };
        Ok((ProductNo(row.checked("product_no", u16::try_from(self.product_no))?), segment))
    }
}

impl Found {
    pub(super) fn id(&self) -> StoreResult<Uuid> {
        Row::new("contracts", "").cell("contract_id", self.contract.contract_id.clone())
    }

    pub(super) fn read(self) -> StoreResult<ContractHeader> {
        let contract_id = self.id()?;
        let row = Row::new("contracts", contract_id);
        let Self { contract, state, segments, customer } = self;
        let ContractStateRow { notification_count, failures, failure_told_at } = state;
        let customer: Option<CustomerRow> = row.under("customer", customer.as_ref())?.pop();
        let customer = customer.ok_or_else(|| row.corrupt("customer_id", "the customer does not exist"))?.read()?;
        let products = products_of(contract_id, row.under("products", segments.as_ref())?)?;
        let next_due_at = row.optional("next_due_at", contract.next_due_at.clone())?;
        let contract = contract.read(contract_id, customer.id, customer.customer_ref.clone(), products)?;
        let notified_at = row.optional("failure_told_at", failure_told_at)?;
        let failures: Option<BillingFailureJson> = failures.map(|failures| row.json("failures", &failures)).transpose()?;
        let failure = failures.zip(notified_at).map(|(failures, notified_at)| failures.read(&row, notified_at)).transpose()?;
        let count = row.checked("notification_count", u64::try_from(notification_count))?;
        Ok(ContractHeader { contract, customer, next_due_at, notifications: ContractNotifications { count, failure } })
    }
}

impl ContractRow {
    fn read(
        self,
        contract_id: Uuid,
        customer_id: CustomerId,
        customer_ref: CustomerRef,
        products: Vec<ContractProduct>,
    ) -> StoreResult<Contract> {
        let row = Row::new("contracts", contract_id);
        Ok(Contract {
            contract_ref: ContractRef::from_uuid(contract_id),
            number: row.checked("number", u64::try_from(self.number))?,
            customer_id,
            customer_ref,
            po_number: row.optional_leaf("po_number", self.po_number.as_deref())?,
            metadata: <Nullable<Json> as ColumnValue<Metadata>>::read(&row, "metadata", &self.metadata)?,
            version: row.checked("version", u32::try_from(self.version))?,
            created_at: row.cell("created_at", self.created_at)?,
            updated_at: row.cell("updated_at", self.updated_at)?,
            cancelled_at: row.optional("cancelled_at", self.cancelled_at)?,
            is_watched: self.watched,
            products,
        })
    }
}

/// Returns a contract's products from its segments.
fn products_of(contract_id: Uuid, segments: impl IntoIterator<Item = SegmentRow>) -> StoreResult<Vec<ContractProduct>> {
    let row = Row::new("contract_products", contract_id);
    let mut segments = segments.into_iter().map(|segment| segment.read(&row)).collect::<StoreResult<Vec<_>>>()?;
    segments.sort_by_key(|(no, segment)| (*no, segment.version, segment.in_force_from));
    let mut products: Vec<ContractProduct> = Vec::new();
    for (no, segment) in segments {
        match products.last_mut() {
            Some(product) if product.no == no => product.segments.push(segment),
            Some(_) | None => products.push(ContractProduct { no, segments: vec![segment] }),
        }
    }
    Ok(products)
}

impl Outlined {
    fn of((Outline { contract, customer_id, terms_id }, customer_ref): (Outline, Option<String>)) -> StoreResult<Self> {
        let contract_id = Row::new("contracts", "").cell("contract_id", contract.contract_id.clone())?;
        let row = Row::new("contracts", contract_id);
        let customer_ref = customer_ref.ok_or_else(|| row.corrupt("customer_id", "the customer does not exist"))?;
        Ok(Self {
            contract_id,
            terms_id: row.cell("terms_id", terms_id)?,
            customer_id: CustomerId::from_uuid(row.cell("customer_id", customer_id)?),
            customer_ref: row.leaf("customer_ref", &customer_ref)?,
            contract,
        })
    }

    fn read(self, products: Vec<ContractProduct>) -> StoreResult<Contract> {
        self.contract.read(self.contract_id, self.customer_id, self.customer_ref, products)
    }
}

pub(super) fn read_contracts(found: Vec<Found>) -> StoreResult<Vec<Contract>> {
    found.into_iter().map(|found| Ok(found.read()?.contract)).collect()
}

/// An organization's contracts by reference, without their terms.
macro_rules! outlines {
    ($organization:expr, $nodes:expr) => {
        contracts::table
            .filter(contracts::organization_id.eq(Bound($organization.as_uuid())))
            .order(contracts::contract_id)
            .select((Outline::as_select(), CustomerColumn::<Text>::new("customer_ref", $nodes)))
    };
}

/// The stamps of an organization's contracts by reference: contract, customer, the stamps of both, and the catalog's.
macro_rules! stamps {
    ($organization:expr, $nodes:expr) => {
        contracts::table
            .filter(contracts::organization_id.eq(Bound($organization.as_uuid())))
            .order(contracts::contract_id)
            .select((
                contracts::contract_id,
                contracts::customer_id,
                contracts::stamp,
                CustomerColumn::<Id>::new("stamp", $nodes),
                organizations::table
                    .filter(organizations::organization_id.eq(contracts::organization_id))
                    .select(organizations::catalog_stamp)
                    .single_value(),
            ))
    };
}

/// A row of [`stamps`].
type StampsRow = (Cell<Uuid>, Cell<Uuid>, Cell<Uuid>, Option<Cell<Uuid>>, Option<Cell<Uuid>>);

/// Terms of products, in the order in which they are assembled.
macro_rules! segments {
    () => {
        contract_products::table.select((contract_products::contract_id, SegmentRow::as_select()))
    };
}

impl Transaction<'_> {
    /// Returns a locked contract, if it did not change since the locking statement began.
    pub(super) fn unchanged(&mut self, (found, before): (Found, Option<JsonText>)) -> StoreResult<ContractHeader> {
        let row = Row::new("contracts", found.id()?);
        let before: Option<(u32,)> = row.under("version", before.as_ref())?.pop();
        let agreement = found.read()?;
        if before.is_some_and(|(before,)| before != agreement.contract.version) {
            return Err(self.remember(StatementError::Contended));
        }
        Ok(agreement)
    }

    /// Gives contracts that were just locked exclusively a new stamp, so that no copy in memory counts as current afterwards. Every
    /// method that locks contracts to change them does this, and nothing else does. A contract has its and its customer's identifier.
    pub(super) fn renew_stamps(&mut self, locked: &[(Uuid, Uuid)]) -> StoreResult<()> {
        if locked.is_empty() {
            return Ok(());
        }
        let stamp = self.new_stamp();
        for (contract_id, customer_id) in locked {
            with_conn!(self, "contracts", |conn| diesel::update(
                contracts::table.find((Bound(*contract_id), Bound(*customer_id)))
            )
            .set(contracts::stamp.eq(Bound(stamp)))
            .execute(conn))?;
        }
        Ok(())
    }

    /// Returns contracts with their terms, cached or read now. Segments are only added, so those of a version stay valid.
    fn with_terms(&mut self, outlined: Vec<Outlined>) -> StoreResult<Vec<Contract>> {
        let known: Vec<Option<Arc<[ContractProduct]>>> =
            outlined.iter().map(|contract| self.terms.get(contract.terms_id)).collect();
        let unknown = outlined.iter().zip(&known).filter(|(_, known)| known.is_none());
        let unknown: Vec<(Uuid, Uuid)> =
            unknown.map(|(contract, _)| (contract.contract_id, contract.customer_id.as_uuid())).collect();
        let mut segments: BTreeMap<Uuid, Vec<SegmentRow>> = BTreeMap::new();
        let at_once = if self.is_sqlite() { 1 } else { MAX_BINDS / 2 };
        for contracts in unknown.chunks(at_once) {
            let rows: Vec<(Cell<Uuid>, SegmentRow)> = if let [(contract_id, customer_id)] = contracts {
                with_conn!(self, "contract_products", |conn| segments!()
                    .filter(contract_products::contract_id.eq(Bound(*contract_id)))
                    .filter(contract_products::customer_id.eq(Bound(*customer_id)))
                    .load(conn))?
            } else {
                let of_contract = |(contract, customer): &(Uuid, Uuid)| vec![Value::Id(*contract), Value::Id(*customer)];
                with_conn!(self, "contract_products", |conn| segments!()
                    .filter(one_of_rows("contract_id, customer_id", contracts.iter().map(of_contract)).on_nodes(self.is_spread))
                    .load(conn))?
            };
            for (contract_id, segment) in rows {
                let contract_id = Row::new("contract_products", "").cell("contract_id", contract_id)?;
                segments.entry(contract_id).or_default().push(segment);
            }
        }
        let mut contracts = Vec::with_capacity(outlined.len());
        for (contract, known) in outlined.into_iter().zip(known) {
            let products = if let Some(known) = known {
                known.to_vec()
            } else {
                let segments = segments.remove(&contract.contract_id).unwrap_or_default();
                let own = segments.into_iter().filter(|segment| segment.version <= contract.contract.version);
                let products = products_of(contract.contract_id, own)?;
                self.terms.keep(contract.terms_id, &products);
                products
            };
            contracts.push(contract.read(products)?);
        }
        Ok(contracts)
    }

    /// Inserts the segments that a version added, or all segments of the contract.
    pub(super) fn insert_segments(&mut self, contract: &Contract, brought_by: Option<u32>) -> StoreResult<()> {
        let (contract_id, customer_id) = (Bound(contract.contract_ref.as_uuid()), Bound(contract.customer_id.as_uuid()));
        let mut segments = Vec::new();
        let mut metered = BTreeSet::new();
        for product in &contract.products {
            metered.extend(product.terms().flat_map(|terms| terms.metered_products()).map(|metered| (product.no, metered)));
            for segment in product.segments.iter().filter(|segment| brought_by.is_none_or(|version| version == segment.version)) {
                let (terms, end_reason) = match &segment.agreed {
                    SegmentTerms::Billed(terms) => (Some(to_json(&StoredTermsRef(terms))?), None),
                    SegmentTerms::Ended(reason) => (None, Some(reason.to_text())),
                };
                segments.push(NewSegment {
                    contract_id,
                    customer_id,
                    product_no: i32::from(product.no.0),
                    in_force_from: Bound(segment.in_force_from),
                    version: stored(segment.version)?,
                    end_reason,
                    terms,
                });
            }
        }
        let metered: Vec<NewMetering<'_>> = metered
            .into_iter()
            .map(|(no, metered)| NewMetering {
                customer_id,
                usage_product_ref: metered.as_str(),
                contract_id,
                product_no: i32::from(no.0),
            })
            .collect();
        let mut segments = segments.into_iter().peekable();
        while segments.peek().is_some() {
            let rows: Vec<NewSegment> = segments.by_ref().take(MAX_BINDS / SEGMENT_COLUMNS).collect();
            with_conn!(self, "contract_products", |conn| diesel::insert_into(contract_products::table)
                .values(rows)
                .execute(conn))?;
        }
        for rows in metered.chunks(MAX_BINDS / METERING_COLUMNS) {
            with_conn!(self, "contract_usage_products", |conn| diesel::insert_into(contract_usage_products::table)
                .values(rows)
                .on_conflict_do_nothing()
                .execute(conn))?;
        }
        Ok(())
    }
}

impl Contracts for Transaction<'_> {
    fn insert_contract(
        &mut self,
        organization: OrganizationId,
        contract: &Contract,
        next_due_at: Option<Timestamp>,
    ) -> StoreResult<()> {
        let (contract_id, customer_id) = (contract.contract_ref.as_uuid(), contract.customer_id.as_uuid());
        let (number, version): (i64, i32) = (stored(contract.number)?, stored(contract.version)?);
        let po_number = contract.po_number.as_ref().map(OneLine::as_str);
        let metadata = <Nullable<Json> as ColumnValue<Metadata>>::keep(&contract.metadata)?;
        let billed = BilledDays::of(contract);
        with_conn!(self, "contracts", |conn| diesel::insert_into(contracts::table)
            .values((
                contracts::contract_id.eq(Bound(contract_id)),
                contracts::customer_id.eq(Bound(customer_id)),
                contracts::organization_id.eq(Bound(organization.as_uuid())),
                contracts::number.eq(number),
                contracts::po_number.eq(po_number),
                contracts::metadata.eq(&metadata),
                contracts::version.eq(version),
                contracts::created_at.eq(Bound(contract.created_at)),
                contracts::updated_at.eq(Bound(contract.updated_at)),
                contracts::cancelled_at.eq(contract.cancelled_at.map(Bound)),
                contracts::next_due_at.eq(next_due_at.map(Bound)),
                contracts::documents_opened.eq(0),
                contracts::notification_count.eq(1_i64),
                contracts::terms_id.eq(Bound(Uuid::now_v7())),
                contracts::watched.eq(contract.is_watched),
                billed,
            ))
            .execute(conn))?;
        with_conn!(self, "contract_versions", |conn| diesel::insert_into(contract_versions::table)
            .values((
                contract_versions::contract_id.eq(Bound(contract_id)),
                contract_versions::customer_id.eq(Bound(customer_id)),
                contract_versions::version.eq(version),
                contract_versions::created_at.eq(Bound(contract.created_at)),
                contract_versions::po_number.eq(po_number),
            ))
            .execute(conn))?;
        self.note_own_contract(contract.contract_ref);
        self.end_stamp_generation();
        self.insert_segments(contract, None)
    }

    fn contract_key(&mut self, organization: OrganizationId, contract_ref: ContractRef) -> StoreResult<Option<ContractKey>> {
        let found: Option<Cell<Uuid>> = with_conn!(self, "contracts", |conn| contracts::table
            .filter(contracts::contract_id.eq(Bound(contract_ref.as_uuid())))
            .filter(contracts::organization_id.eq(Bound(organization.as_uuid())))
            .select(contracts::customer_id)
            .first(conn)
            .optional())?;
        let customer = found.map(|id| Row::new("contracts", contract_ref).cell("customer_id", id)).transpose()?;
        Ok(customer.map(|id| ContractKey { organization, customer: CustomerId::from_uuid(id), contract: contract_ref }))
    }

    fn contract(&mut self, organization: OrganizationId, contract_ref: ContractRef) -> StoreResult<Option<Contract>> {
        Ok(self.agreement_of(organization, contract_ref)?.map(|agreement| agreement.contract))
    }

    fn contracts_of_customer(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        page: PageRequest,
    ) -> StoreResult<Page<Contract>> {
        let (limit, offset) = limits(page);
        let nodes = self.nodes_of([customer_id.as_uuid()]);
        let (found, total): (Vec<Found>, i64) = with_conn!(self, "contracts", |conn| {
            let of_customer = || {
                contracts::table
                    .filter(contracts::customer_id.eq(Bound(customer_id.as_uuid())))
                    .filter(unindexed(contracts::organization_id).eq(Bound(organization.as_uuid())))
            };
            let total = of_customer().count().get_result(conn)?;
            let found = of_customer()
                .order((contracts::created_at, contracts::contract_id))
                .limit(limit)
                .offset(offset)
                .select(Found::columns(&nodes))
                .load(conn)?;
            Ok((found, total))
        })?;
        Ok(Page { items: read_contracts(found)?, total: counted(total)? })
    }

    fn contracts_like(
        &mut self,
        organization: OrganizationId,
        contract: &Contract,
        since: Timestamp,
    ) -> StoreResult<Vec<Contract>> {
        let BilledDays { first_day: Some(first_day), last_day: Some(last_day), .. } = BilledDays::of(contract) else {
            return Ok(Vec::new());
        };
        let nodes = self.nodes_of([contract.customer_id.as_uuid()]);
        let found: Vec<Found> = with_conn!(self, "contracts", |conn| contracts::table
            .filter(contracts::customer_id.eq(Bound(contract.customer_id.as_uuid())))
            .filter(unindexed(contracts::organization_id).eq(Bound(organization.as_uuid())))
            .filter(contracts::created_at.ge(Bound(since)))
            .filter(contracts::cancelled_at.is_null())
            .filter(contracts::first_day.eq(first_day))
            .filter(contracts::last_day.eq(last_day))
            .order((contracts::created_at.desc(), contracts::contract_id.desc()))
            .limit(MAX_LIKE)
            .select(Found::columns(&nodes))
            .load(conn))?;
        read_contracts(found)
    }

    fn contracts_metering(
        &mut self,
        organization: OrganizationId,
        pairs: &[(CustomerId, UsageProductRef)],
        lock: Option<Lock>,
    ) -> StoreResult<Vec<Contract>> {
        let rows = load_metering!(self, pairs, lock, (Outline, Option<String>), outlines(organization));
        let mut found: BTreeMap<Uuid, Outlined> = BTreeMap::new();
        for row in rows {
            let outlined = Outlined::of(row)?;
            found.insert(outlined.contract_id, outlined);
        }
        if lock == Some(Lock::Exclusive) {
            let locked: Vec<(Uuid, Uuid)> =
                found.values().map(|contract| (contract.contract_id, contract.customer_id.as_uuid())).collect();
            self.renew_stamps(&locked)?;
        }
        let mut contracts = self.with_terms(found.into_values().collect())?;
        contracts.sort_by_key(|contract| (contract.created_at, contract.contract_ref));
        if let Some(lock) = lock {
            contracts.iter().try_for_each(|contract| self.note_contract(contract.contract_ref, lock))?;
        }
        Ok(contracts)
    }

    fn lock_stamps(
        &mut self,
        organization: OrganizationId,
        pairs: &[(CustomerId, UsageProductRef)],
    ) -> StoreResult<Vec<(ContractKey, Stamps)>> {
        let rows = load_metering!(self, pairs, Some(Lock::Shared), StampsRow, stamps(organization));
        let mut found: BTreeMap<ContractRef, (ContractKey, Stamps)> = BTreeMap::new();
        for (contract_id, customer_id, contract, customer, catalog) in rows {
            let contract_id = Row::new("contracts", "").cell("contract_id", contract_id)?;
            let row = Row::new("contracts", contract_id);
            let missing = |column: &str| row.corrupt(column, "the row that it names does not exist");
            let key = ContractKey {
                organization,
                customer: CustomerId::from_uuid(row.cell("customer_id", customer_id)?),
                contract: ContractRef::from_uuid(contract_id),
            };
            let stamps = Stamps {
                contract: row.cell("stamp", contract)?,
                customer: row.cell("customer_id", customer.ok_or_else(|| missing("customer_id"))?)?,
                catalog: row.cell("organization_id", catalog.ok_or_else(|| missing("organization_id"))?)?,
            };
            found.insert(key.contract, (key, stamps));
        }
        found.keys().try_for_each(|contract| self.note_contract(*contract, Lock::Shared))?;
        Ok(found.into_values().collect())
    }

    fn stamp_generation(&mut self) -> StoreResult<Option<StampGeneration>> {
        self.current_stamp_generation()
    }

    fn lock_contract(&mut self, key: ContractKey, lock: Lock) -> StoreResult<Option<u32>> {
        self.note_contract(key.contract, lock)?;
        let mut versions: Vec<i32> = load_contract!(
            self,
            Some(lock),
            contracts::table
                .find((Bound(key.contract.as_uuid()), Bound(key.customer.as_uuid())))
                .filter(contracts::organization_id.eq(Bound(key.organization.as_uuid()))),
            contracts::version
        )?;
        if lock == Lock::Exclusive && !versions.is_empty() {
            self.renew_stamps(&[(key.contract.as_uuid(), key.customer.as_uuid())])?;
        }
        versions.pop().map(stored).transpose()
    }

    fn hold_contracts(&mut self, contracts: &[(ContractKey, Lock)]) -> StoreResult<()> {
        contracts.iter().try_for_each(|(key, lock)| self.note_contract(key.contract, *lock))?;
        let is_first = !self.holds_contracts;
        self.holds_contracts |= !contracts.is_empty();
        if self.is_sqlite() {
            // The only writer already locks every row.
            let exclusive = contracts.iter().filter(|(_, lock)| *lock == Lock::Exclusive);
            let exclusive: BTreeSet<(Uuid, Uuid)> =
                exclusive.map(|(key, _)| (key.contract.as_uuid(), key.customer.as_uuid())).collect();
            return self.renew_stamps(&Vec::from_iter(exclusive));
        }
        for contracts in self.by_shard(contracts.to_vec(), |(key, _)| key.customer.as_uuid()) {
            let Connection::Postgres(connection) = &mut self.connection else { return Ok(()) };
            let held = LockContracts::new(&contracts, is_first).on_nodes(self.is_spread).execute(*connection);
            self.leaves_turnstiles |= held.is_err();
            held.map_err(|error| self.failed("contracts", &error))?;
        }
        Ok(())
    }

    fn append_contract_version(
        &mut self,
        organization: OrganizationId,
        contract: &Contract,
        at: Timestamp,
        by: Actor,
    ) -> StoreResult<()> {
        self.require_contract(contract.contract_ref, "append_contract_version")?;
        let (contract_id, customer_id) = (Bound(contract.contract_ref.as_uuid()), Bound(contract.customer_id.as_uuid()));
        let version: i32 = stored(contract.version)?;
        let po_number = contract.po_number.as_ref().map(OneLine::as_str);
        let metadata = <Nullable<Json> as ColumnValue<Metadata>>::keep(&contract.metadata)?;
        // The statement that replaces the version also checks the previous one.
        let changed = with_conn!(self, "contracts", |conn| {
            diesel::update(contracts::table.find((contract_id, customer_id)))
                .filter(contracts::organization_id.eq(Bound(organization.as_uuid())))
                .filter(contracts::version.eq(version - 1))
                .set((
                    contracts::version.eq(version),
                    contracts::terms_id.eq(Bound(Uuid::now_v7())),
                    contracts::po_number.eq(po_number),
                    contracts::metadata.eq(&metadata),
                    contracts::updated_at.eq(Bound(contract.updated_at)),
                    contracts::cancelled_at.eq(contract.cancelled_at.map(Bound)),
                    contracts::notification_count.eq(contracts::notification_count + 1_i64),
                    BilledDays::of(contract),
                ))
                .execute(conn)
        })?;
        with_conn!(self, "documents", |conn| diesel::update(documents::table)
            .filter(documents::customer_id.eq(customer_id))
            .filter(documents::contract_id.eq(contract_id))
            .filter(documents::lifecycle.eq(DRAFT))
            .set((documents::po_number.eq(po_number), documents::updated_at.eq(Bound(at))))
            .execute(conn))?;
        if changed == 0 {
            return self.refuse(format!("contracts {}: has no version before {version}", contract.contract_ref));
        }
        with_conn!(self, "contract_versions", |conn| diesel::insert_into(contract_versions::table)
            .values((
                contract_versions::contract_id.eq(contract_id),
                contract_versions::customer_id.eq(customer_id),
                contract_versions::version.eq(version),
                contract_versions::created_at.eq(Bound(at)),
                contract_versions::created_by.eq(by.to_string()),
                contract_versions::po_number.eq(po_number),
            ))
            .execute(conn))?;
        self.insert_segments(contract, Some(contract.version))
    }
}
