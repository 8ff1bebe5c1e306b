//! Limits, and the customers that have them.

use std::collections::{BTreeMap, BTreeSet};

use billing_domain::calendar::Timestamp;
use billing_domain::limit::{Limit, LimitLevels, LimitMetric, MetricKind, ReachedLevels};
use billing_domain::page::{Page, PageRequest};
use billing_domain::party::Customer;
use billing_domain::ports::{Contracts as _, Limits, Lock, StoreResult};
use billing_domain::receivables::AccountKey;
use billing_domain::refs::{ContractKey, ContractRef, CustomerId, LimitRef, LineItemId, OrganizationId, ProductNo};
use chrono::NaiveDate;
use diesel::prelude::*;
use rust_decimal::Decimal;
use uuid::Uuid;

use super::parties::CustomerRow;
use super::{MAX_BINDS, counted, owned, rows_of, stored};
use crate::hand_written::IsDraft;
use crate::in_list::{Value, one_of_ids, one_of_rows, unindexed};
use crate::row::{Cell, Row, to_json};
use crate::schema::{contracts, customers, documents, limits};
use crate::sql_types::{Bound, JsonText};
use crate::tx::{Transaction, load_held, with_conn};

/// Bound values per account.
const ACCOUNT_COLUMNS: usize = 3;

/// The customer and the contract of a draft, and the organization.
type DraftRow = ((Cell<Uuid>, Cell<Uuid>), Cell<Uuid>);

#[derive(Queryable, Selectable)]
#[diesel(table_name = limits)]
struct LimitRow {
    limit_id: Cell<Uuid>,
    customer_id: Cell<Uuid>,
    metric: String,
    entity_ref: Option<String>,
    currency: Option<String>,
    contract_id: Option<Cell<Uuid>>,
    product_no: Option<i32>,
    usage_product_ref: Option<String>,
    line_item_id: Option<String>,
    max: Option<Cell<Decimal>>,
    thresholds: JsonText,
    reached_in: Option<Cell<NaiveDate>>,
    reached: i32,
    max_reached_at: Option<Cell<Decimal>>,
    notification_count: i64,
    created_at: Cell<Timestamp>,
    updated_at: Cell<Timestamp>,
}

/// Returns the value of a column that the metric of a limit needs.
fn needed<T>(row: &Row<Cell<Uuid>>, column: &str, value: Option<T>) -> StoreResult<T> {
    value.ok_or_else(|| row.corrupt(column, "is missing"))
}

impl LimitRow {
    fn read(self) -> StoreResult<Limit> {
        let row = Row::new("limits", self.limit_id.clone());
        let product = || {
            let contract_id = row.optional("contract_id", self.contract_id.clone())?;
            let number = row.checked("product_no", u16::try_from(needed(&row, "product_no", self.product_no)?))?;
            StoreResult::Ok((ContractRef::from_uuid(needed(&row, "contract_id", contract_id)?), ProductNo(number)))
        };
        let currency = || needed(&row, "currency", row.optional_leaf("currency", self.currency.as_deref())?);
        let entity = || needed(&row, "entity_ref", row.optional_leaf("entity_ref", self.entity_ref.as_deref())?);
        let metric = if self.metric == MetricKind::Owed.word() {
            LimitMetric::Owed { entity_ref: entity()?, currency: currency()? }
        } else if self.metric == MetricKind::Prepaid.word() {
            LimitMetric::Prepaid { entity_ref: entity()?, currency: currency()? }
        } else if self.metric == MetricKind::Spend.word() {
            let (contract_ref, product_no) = product()?;
            LimitMetric::Spend { contract_ref, product_no, currency: currency()? }
        } else if self.metric == MetricKind::Quantity.word() {
            let (contract_ref, product_no) = product()?;
            let usage_product_ref = row.optional_leaf("usage_product_ref", self.usage_product_ref.as_deref())?;
            LimitMetric::Quantity {
                contract_ref,
                product_no,
                usage_product_ref: needed(&row, "usage_product_ref", usage_product_ref)?,
                line_item_id: row.optional_leaf("line_item_id", self.line_item_id.as_deref())?,
            }
        } else {
            return Err(row.corrupt("metric", format_args!("{:?} is not a metric", self.metric)));
        };
        let thresholds: Vec<Cell<Decimal>> = row.json("thresholds", &self.thresholds)?;
        let thresholds = thresholds.into_iter().map(|threshold| row.cell("thresholds", threshold));
        let levels =
            LimitLevels { max: row.optional("max", self.max)?, thresholds: thresholds.collect::<StoreResult<Vec<_>>>()? };
        Ok(Limit {
            limit_ref: LimitRef::from_uuid(row.cell("limit_id", self.limit_id)?),
            customer_id: CustomerId::from_uuid(row.cell("customer_id", self.customer_id)?),
            metric,
            levels,
            reached: ReachedLevels {
                window_start: row.optional("reached_in", self.reached_in)?,
                thresholds: row.checked("reached", usize::try_from(self.reached))?,
                max_at: row.optional("max_reached_at", self.max_reached_at)?,
            },
            notifications: row.checked("notification_count", u64::try_from(self.notification_count))?,
            created_at: row.cell("created_at", self.created_at)?,
            updated_at: row.cell("updated_at", self.updated_at)?,
        })
    }
}

/// The columns that change.
#[derive(AsChangeset, Insertable)]
#[diesel(table_name = limits, treat_none_as_null = true)]
struct LimitState {
    max: Option<Bound<Decimal>>,
    thresholds: JsonText,
    reached_in: Option<Bound<NaiveDate>>,
    reached: i32,
    max_reached_at: Option<Bound<Decimal>>,
    notification_count: i64,
    updated_at: Bound<Timestamp>,
}

impl LimitState {
    fn of(limit: &Limit) -> StoreResult<Self> {
        let Limit { levels, reached, .. } = limit;
        Ok(Self {
            max: levels.max.map(Bound),
            thresholds: to_json(&levels.thresholds.iter().map(Decimal::to_string).collect::<Vec<_>>())?,
            reached_in: reached.window_start.map(Bound),
            reached: stored(reached.thresholds)?,
            max_reached_at: reached.max_at.map(Bound),
            notification_count: stored(limit.notifications)?,
            updated_at: Bound(limit.updated_at),
        })
    }
}

fn read_limits(rows: Vec<LimitRow>) -> StoreResult<Vec<Limit>> {
    rows.into_iter().map(LimitRow::read).collect()
}

impl Limits for Transaction<'_> {
    fn insert_limit(&mut self, organization: OrganizationId, limit: &Limit) -> StoreResult<()> {
        let (mut entity, mut product, mut counted) = (None, None, (None, None));
        match &limit.metric {
            LimitMetric::Owed { entity_ref, .. } | LimitMetric::Prepaid { entity_ref, .. } => entity = Some(entity_ref.as_str()),
            LimitMetric::Spend { contract_ref, product_no, .. } => product = Some((*contract_ref, *product_no)),
            LimitMetric::Quantity { contract_ref, product_no, usage_product_ref, line_item_id } => {
                product = Some((*contract_ref, *product_no));
                counted = (Some(usage_product_ref.as_str()), line_item_id.as_ref().map(LineItemId::as_str));
            }
        }
        let state = LimitState::of(limit)?;
        with_conn!(self, "limits", |conn| diesel::insert_into(limits::table)
            .values((
                limits::limit_id.eq(Bound(limit.limit_ref.as_uuid())),
                limits::customer_id.eq(Bound(limit.customer_id.as_uuid())),
                limits::organization_id.eq(Bound(organization.as_uuid())),
                limits::metric.eq(limit.metric.kind().word()),
                limits::entity_ref.eq(entity),
                limits::currency.eq(limit.metric.currency().map(|currency| currency.code())),
                limits::contract_id.eq(product.map(|(contract_ref, _)| Bound(contract_ref.as_uuid()))),
                limits::product_no.eq(product.map(|(_, product_no)| i32::from(product_no.0))),
                limits::usage_product_ref.eq(counted.0),
                limits::line_item_id.eq(counted.1),
                limits::created_at.eq(Bound(limit.created_at)),
                state,
            ))
            .execute(conn))?;
        Ok(())
    }

    fn update_limit(&mut self, organization: OrganizationId, limit: &Limit) -> StoreResult<bool> {
        let id = (Bound(limit.limit_ref.as_uuid()), Bound(limit.customer_id.as_uuid()));
        let state = LimitState::of(limit)?;
        let updated = with_conn!(self, "limits", |conn| diesel::update(limits::table.find(id))
            .filter(limits::organization_id.eq(Bound(organization.as_uuid())))
            .set(state)
            .execute(conn))?;
        Ok(updated == 1)
    }

    fn delete_limit(&mut self, organization: OrganizationId, limit: &Limit) -> StoreResult<bool> {
        let id = (Bound(limit.limit_ref.as_uuid()), Bound(limit.customer_id.as_uuid()));
        let deleted = with_conn!(self, "limits", |conn| diesel::delete(limits::table.find(id))
            .filter(limits::organization_id.eq(Bound(organization.as_uuid())))
            .execute(conn))?;
        Ok(deleted == 1)
    }

    fn limit(&mut self, organization: OrganizationId, limit_ref: LimitRef) -> StoreResult<Option<Limit>> {
        let rows: Vec<LimitRow> = with_conn!(self, "limits", |conn| limits::table
            .filter(limits::limit_id.eq(Bound(limit_ref.as_uuid())))
            .filter(limits::organization_id.eq(Bound(organization.as_uuid())))
            .select(LimitRow::as_select())
            .load(conn))?;
        rows.into_iter().next().map(LimitRow::read).transpose()
    }

    fn limits_of(&mut self, organization: OrganizationId, customers: &[CustomerId]) -> StoreResult<Vec<Limit>> {
        let rows: Vec<(LimitRow, Cell<Uuid>)> = with_conn!(self, "limits", |conn| limits::table
            .filter(one_of_ids(limits::customer_id, customers.iter().map(|customer| customer.as_uuid())))
            .order(limits::limit_id)
            .select((LimitRow::as_select(), limits::organization_id))
            .load(conn))?;
        read_limits(owned("limits", organization, rows)?)
    }

    fn limits(
        &mut self,
        organization: OrganizationId,
        customer_id: Option<CustomerId>,
        page: PageRequest,
    ) -> StoreResult<Page<Limit>> {
        let (limit, offset) = super::limits(page);
        let (rows, total): (Vec<LimitRow>, i64) = with_conn!(self, "limits", |conn| {
            let narrowed = || rows_of!(limits, organization, customer_id);
            let total = narrowed().count().get_result(conn)?;
            let ordered = if page.is_backward() {
                narrowed().order((limits::created_at.desc(), limits::limit_id.desc()))
            } else {
                narrowed().order((limits::created_at, limits::limit_id))
            };
            Ok((ordered.limit(limit).offset(offset).select(LimitRow::as_select()).load(conn)?, total))
        })?;
        Ok(Page { items: read_limits(rows)?, total: counted(total)? })
    }

    fn watched_customer(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        lock: Option<Lock>,
    ) -> StoreResult<(Customer, bool)> {
        let mut rows: Vec<(CustomerRow, bool)> = load_held!(
            self,
            "customers",
            lock,
            customers::table
                .find(Bound(customer_id.as_uuid()))
                .filter(customers::organization_id.eq(Bound(organization.as_uuid())))
                .select((CustomerRow::as_select(), customers::watched))
        )?;
        match rows.pop() {
            Some((customer, is_watched)) => Ok((customer.read()?, is_watched)),
            None => self.refuse(format!("customers {customer_id}: it does not exist")),
        }
    }

    fn set_watched(&mut self, organization: OrganizationId, customer_id: CustomerId, is_watched: bool) -> StoreResult<()> {
        let (customer, owner) = (Bound(customer_id.as_uuid()), Bound(organization.as_uuid()));
        let stamp = self.new_stamp();
        let changed = with_conn!(self, "customers", |conn| diesel::update(customers::table.find(customer))
            .filter(customers::organization_id.eq(owner))
            .set((customers::watched.eq(is_watched), customers::stamp.eq(Bound(stamp))))
            .execute(conn))?;
        if changed == 0 {
            return self.refuse(format!("customers {customer_id}: not there to be watched"));
        }
        let found: Vec<Cell<Uuid>> = with_conn!(self, "contracts", |conn| contracts::table
            .filter(contracts::customer_id.eq(customer))
            .filter(unindexed(contracts::organization_id).eq(owner))
            .filter(contracts::watched.ne(is_watched))
            .select(contracts::contract_id)
            .load(conn))?;
        let row = Row::new("contracts", customer_id);
        let locked = found.into_iter().map(|id| {
            let contract = ContractRef::from_uuid(row.cell("contract_id", id)?);
            Ok((ContractKey { organization, customer: customer_id, contract }, Lock::Exclusive))
        });
        let locked: Vec<(ContractKey, Lock)> = locked.collect::<StoreResult<_>>()?;
        if locked.is_empty() {
            return Ok(());
        }
        // Transactions that read the other state finish first, and the new stamps tell the later ones.
        self.hold_contracts(&locked)?;
        with_conn!(self, "contracts", |conn| diesel::update(contracts::table)
            .filter(contracts::customer_id.eq(customer))
            .filter(unindexed(contracts::organization_id).eq(owner))
            .filter(contracts::watched.ne(is_watched))
            .set(contracts::watched.eq(is_watched))
            .execute(conn))?;
        Ok(())
    }

    fn contracts_with_drafts(
        &mut self,
        organization: OrganizationId,
        accounts: &BTreeSet<AccountKey>,
    ) -> StoreResult<BTreeMap<ContractKey, usize>> {
        // SQLite runs in the same process and cannot use an index for a list of accounts.
        let at_once = if self.is_sqlite() { 1 } else { MAX_BINDS / ACCOUNT_COLUMNS };
        let of_shards = self.by_shard(Vec::from_iter(accounts), |account| account.customer_id.as_uuid());
        let mut found = BTreeMap::new();
        for accounts in of_shards.iter().flat_map(|accounts| accounts.chunks(at_once)) {
            macro_rules! drafts {
                () => {
                    documents::table
                        .filter(IsDraft)
                        .select(((documents::customer_id, documents::contract_id), documents::organization_id))
                };
            }
            let rows: Vec<DraftRow> = if let [account] = accounts {
                with_conn!(self, "documents", |conn| drafts!()
                    .filter(documents::customer_id.eq(Bound(account.customer_id.as_uuid())))
                    .filter(documents::entity_ref.eq(account.entity_ref.as_str()))
                    .filter(documents::currency.eq(account.currency.code()))
                    .load(conn))?
            } else {
                let of_account = |account: &&AccountKey| {
                    vec![
                        Value::Id(account.customer_id.as_uuid()),
                        Value::Text(account.entity_ref.as_str().to_owned()),
                        Value::Text(account.currency.code().to_owned()),
                    ]
                };
                with_conn!(self, "documents", |conn| drafts!()
                    .filter(
                        one_of_rows(
                            "documents.customer_id, documents.entity_ref, documents.currency",
                            accounts.iter().map(of_account)
                        )
                        .on_nodes(self.is_spread)
                    )
                    .load(conn))?
            };
            for (customer, contract) in owned("documents", organization, rows)? {
                let row = Row::new("documents", "");
                let customer = CustomerId::from_uuid(row.cell("customer_id", customer)?);
                let contract = ContractRef::from_uuid(row.cell("contract_id", contract)?);
                *found.entry(ContractKey { organization, customer, contract }).or_insert(0) += 1;
            }
        }
        Ok(found)
    }
}
