//! Charges and their revisions.

use billing_domain::calendar::Timestamp;
use billing_domain::charge::Charge;
use billing_domain::page::{ListSortKey, Page, PageRequest};
use billing_domain::ports::{ChargeFilter, Charges, Insertion, StoreResult};
use billing_domain::quantity::Quantity;
use billing_domain::refs::{ChargeRef, ContractRef, CustomerId, OrganizationId, ProductNo};
use billing_domain::text::{OneLine, Prose};
use chrono::NaiveDate;
use diesel::prelude::*;
use rust_decimal::Decimal;
use serde::{Deserialize, Deserializer};
use uuid::Uuid;

use super::update_lists::after_position;
use super::{counted, limits, rows_of, stored};
use crate::failure::StatementError;
use crate::in_list::{also_one_of_ids, one_of_texts};
use crate::row::{Cell, Row};
use crate::schema::{charge_revisions, charges};
use crate::sql_types::Bound;
use crate::text_value::TextValue as _;
use crate::tx::{Transaction, with_conn};

/// Reads a boolean from JSON; SQLite writes numbers.
fn truth<'de, D: Deserializer<'de>>(deserializer: D) -> Result<bool, D::Error> {
    #[derive(Deserialize)]
    #[serde(untagged)]
    enum Truth {
        Word(bool),
        Number(u8),
    }
    Ok(match Truth::deserialize(deserializer)? {
        Truth::Word(word) => word,
        Truth::Number(number) => number != 0,
    })
}

/// Declares the rows of a table of charges: the latest revisions or the earlier ones.
macro_rules! charge_rows {
    ($table:ident, $(#[$row_meta:meta])* $row:ident, $new:ident) => {
        $(#[$row_meta])*
        #[derive(Queryable, Selectable, Deserialize)]
        #[diesel(table_name = $table)]
        pub(super) struct $row {
            charge_ref: String,
            customer_id: Cell<Uuid>,
            contract_id: Cell<Uuid>,
            product_no: i32,
            charged_on: Cell<NaiveDate>,
            name: String,
            quantity: Cell<Decimal>,
            unit_price: Cell<Decimal>,
            unit: Option<String>,
            currency: String,
            bill_with: String,
            #[serde(deserialize_with = "truth")]
            discountable: bool,
            #[serde(deserialize_with = "truth")]
            goods: bool,
            note: Option<String>,
            reason: Option<String>,
            recorded_at: Cell<Timestamp>,
            revision: i32,
            revised_at: Cell<Timestamp>,
            revised_by: String,
            #[serde(deserialize_with = "truth")]
            deleted: bool,
        }

        impl $row {
            pub(super) fn read(self) -> StoreResult<Charge> {
                let row = Row::new(stringify!($table), format!("{}/{}", self.charge_ref, self.revision));
                let unit_price: Decimal = row.cell("unit_price", self.unit_price)?;
                Ok(Charge {
                    charge_ref: row.leaf("charge_ref", &self.charge_ref)?,
                    customer_id: CustomerId::from_uuid(row.cell("customer_id", self.customer_id)?),
                    contract_ref: ContractRef::from_uuid(row.cell("contract_id", self.contract_id)?),
                    product_no: ProductNo(row.checked("product_no", u16::try_from(self.product_no))?),
                    date: row.cell("charged_on", self.charged_on)?,
                    name: row.leaf("name", &self.name)?,
                    quantity: row.checked("quantity", Quantity::new(row.cell("quantity", self.quantity)?))?,
                    unit_price: row.leaf("unit_price", &unit_price.to_string())?,
                    unit: row.optional_leaf("unit", self.unit.as_deref())?,
                    currency: row.leaf("currency", &self.currency)?,
                    bill_with: row.leaf("bill_with", &self.bill_with)?,
                    discountable: self.discountable,
                    goods: self.goods,
                    note: row.optional_leaf("note", self.note.as_deref())?,
                    reason: row.optional_leaf("reason", self.reason.as_deref())?,
                    recorded_at: row.cell("recorded_at", self.recorded_at)?,
                    revision: row.checked("revision", u32::try_from(self.revision))?,
                    revised_at: row.cell("revised_at", self.revised_at)?,
                    revised_by: row.leaf("revised_by", &self.revised_by)?,
                    deleted: self.deleted,
                })
            }
        }

        #[derive(Insertable, AsChangeset)]
        #[diesel(primary_key(customer_id, charge_ref))]
        #[diesel(table_name = $table, treat_none_as_null = true, treat_none_as_default_value = false)]
        struct $new<'a> {
            charge_ref: &'a str,
            customer_id: Bound<Uuid>,
            contract_id: Bound<Uuid>,
            product_no: i32,
            charged_on: Bound<NaiveDate>,
            name: &'a str,
            quantity: Bound<Decimal>,
            unit_price: Bound<Decimal>,
            unit: Option<&'a str>,
            currency: &'a str,
            bill_with: String,
            discountable: bool,
            goods: bool,
            note: Option<&'a str>,
            reason: Option<&'a str>,
            recorded_at: Bound<Timestamp>,
            revision: i32,
            revised_at: Bound<Timestamp>,
            revised_by: String,
            deleted: bool,
        }

        impl<'a> $new<'a> {
            fn of(charge: &'a Charge) -> StoreResult<Self> {
                Ok(Self {
                    charge_ref: charge.charge_ref.as_str(),
                    customer_id: Bound(charge.customer_id.as_uuid()),
                    contract_id: Bound(charge.contract_ref.as_uuid()),
                    product_no: i32::from(charge.product_no.0),
                    charged_on: Bound(charge.date),
                    name: charge.name.as_str(),
                    quantity: Bound(charge.quantity.as_decimal()),
                    unit_price: Bound(charge.unit_price.as_decimal()),
                    unit: charge.unit.as_ref().map(OneLine::as_str),
                    currency: charge.currency.code(),
                    bill_with: charge.bill_with.to_text(),
                    discountable: charge.discountable,
                    goods: charge.goods,
                    note: charge.note.as_ref().map(Prose::as_str),
                    reason: charge.reason.as_ref().map(Prose::as_str),
                    recorded_at: Bound(charge.recorded_at),
                    revision: stored(charge.revision)?,
                    revised_at: Bound(charge.revised_at),
                    revised_by: charge.revised_by.to_text(),
                    deleted: charge.deleted,
                })
            }
        }
    };
}

charge_rows!(
    charges,
    /// A charge's latest revision; also a [nested row](crate::nested_rows::ChargesOfContract) of a document.
    ChargeRow,
    NewCharge
);
charge_rows!(charge_revisions, RevisionRow, NewRevision);

impl Charges for Transaction<'_> {
    fn insert_charge(&mut self, organization: OrganizationId, charge: &Charge) -> StoreResult<Insertion> {
        self.require_contract(charge.contract_ref, "insert_charge")?;
        // No index is unique over the customers of several nodes.
        if self.is_spread && self.charge(organization, &charge.charge_ref)?.is_some() {
            return Ok(Insertion::Taken("charge_ref"));
        }
        let row = NewCharge::of(charge)?;
        let inserted = with_conn!(self, "charges", |conn| diesel::insert_into(charges::table)
            .values((charges::organization_id.eq(Bound(organization.as_uuid())), row))
            .on_conflict_do_nothing()
            .execute(conn))?;
        Ok(if inserted == 1 { Insertion::Done } else { Insertion::Taken("charge_ref") })
    }

    fn revise_charge(&mut self, organization: OrganizationId, superseded: &Charge, revised: &Charge) -> StoreResult<()> {
        self.require_contract(superseded.contract_ref, "revise_charge")?;
        let (row, kept) = (NewCharge::of(revised)?, NewRevision::of(superseded)?);
        let revision: i32 = stored(superseded.revision)?;
        // The statement that replaces the revision also checks it.
        let changed = with_conn!(self, "charges", |conn| diesel::update(charges::table)
            .filter(charges::customer_id.eq(Bound(superseded.customer_id.as_uuid())))
            .filter(charges::charge_ref.eq(superseded.charge_ref.as_str()))
            .filter(charges::organization_id.eq(Bound(organization.as_uuid())))
            .filter(charges::revision.eq(revision))
            .set(row)
            .execute(conn))?;
        if changed == 0 {
            return Err(self.remember(StatementError::Contended));
        }
        with_conn!(self, "charge_revisions", |conn| diesel::insert_into(charge_revisions::table)
            .values((charge_revisions::organization_id.eq(Bound(organization.as_uuid())), kept))
            .execute(conn))?;
        Ok(())
    }

    fn charge(&mut self, organization: OrganizationId, charge_ref: &ChargeRef) -> StoreResult<Option<Charge>> {
        let rows: Vec<ChargeRow> = with_conn!(self, "charges", |conn| charges::table
            .filter(charges::organization_id.eq(Bound(organization.as_uuid())))
            .filter(charges::charge_ref.eq(charge_ref.as_str()))
            .select(ChargeRow::as_select())
            .load(conn))?;
        rows.into_iter().next().map(ChargeRow::read).transpose()
    }

    fn superseded_charges(
        &mut self,
        organization: OrganizationId,
        customers: &[CustomerId],
        charges: &[ChargeRef],
    ) -> StoreResult<Vec<Charge>> {
        let rows: Vec<RevisionRow> = with_conn!(self, "charge_revisions", |conn| charge_revisions::table
            .filter(also_one_of_ids(charge_revisions::customer_id, customers.iter().map(|customer| customer.as_uuid())))
            .filter(charge_revisions::organization_id.eq(Bound(organization.as_uuid())))
            .filter(one_of_texts(charge_revisions::charge_ref, charges.iter().map(ChargeRef::as_str)))
            .order((charge_revisions::charge_ref, charge_revisions::revision))
            .select(RevisionRow::as_select())
            .load(conn))?;
        rows.into_iter().map(RevisionRow::read).collect()
    }

    fn listed_charges(
        &mut self,
        organization: OrganizationId,
        filter: &ChargeFilter,
        by: ListSortKey,
        page: PageRequest,
    ) -> StoreResult<Page<Charge>> {
        let (limit, offset) = limits(page);
        let (after, backward) = (filter.updates.after.as_ref(), page.is_backward());
        let (rows, total): (Vec<ChargeRow>, i64) = with_conn!(self, "charges", |conn| {
            let narrowed = || {
                let mut query = rows_of!(charges, organization, filter.customer_id).filter(charges::deleted.eq(false));
                if let Some(contract_ref) = filter.contract_ref {
                    query = query.filter(charges::contract_id.eq(Bound(contract_ref.as_uuid())));
                }
                if let Some(from) = filter.from {
                    query = query.filter(charges::charged_on.ge(Bound(from)));
                }
                if let Some(to) = filter.to {
                    query = query.filter(charges::charged_on.le(Bound(to)));
                }
                if let Some(since) = filter.updates.since {
                    query = query.filter(charges::revised_at.ge(Bound(since)));
                }
                query
            };
            let total = if after.is_some() { 0 } else { narrowed().count().get_result(conn)? };
            let query = after_position!(narrowed(), charges::revised_at, charges::charge_ref, text, after, backward);
            let ordered = match (by, backward) {
                (ListSortKey::Created, false) => query.order((charges::recorded_at, charges::charge_ref)),
                (ListSortKey::Created, true) => query.order((charges::recorded_at.desc(), charges::charge_ref.desc())),
                (ListSortKey::Updated, false) => query.order((charges::revised_at, charges::charge_ref)),
                (ListSortKey::Updated, true) => query.order((charges::revised_at.desc(), charges::charge_ref.desc())),
            };
            let ordered = ordered.limit(limit).offset(offset);
            Ok((ordered.select(ChargeRow::as_select()).load(conn)?, total))
        })?;
        let items = rows.into_iter().map(ChargeRow::read).collect::<StoreResult<_>>()?;
        Ok(Page { items, total: counted(total)? })
    }
}
