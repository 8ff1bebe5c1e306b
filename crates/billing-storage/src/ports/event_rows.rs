//! Events as rows. A superseded revision has the same columns as the event that replaced it.

use std::fmt;

use billing_domain::calendar::{Period, Timestamp};
use billing_domain::ports::StoreResult;
use billing_domain::quantity::Quantity;
use billing_domain::refs::{ContractRef, CustomerId, DocumentRef, EventRef, ProductNo};
use billing_domain::usage::{FormattedSource, Placement, UsageEvent};
use chrono::NaiveDate;
use diesel::prelude::*;
use rust_decimal::Decimal;
use uuid::Uuid;

use super::stored;
use crate::arrays::{Column, column, optional_column};
use crate::json::{StoredReport, StoredReportRef, StoredValidations, StoredValidationsRef};
use crate::row::{Cell, Row, to_json};
use crate::schema::{usage_event_revisions, usage_events};
use crate::sql_types::{Bound, JsonText};

/// Declares a row to write and a row to read, for one of the two tables.
macro_rules! event_rows {
    ($table:ident, $(#[$meta:meta])* $new:ident, $row:ident $({ $first:ident: $first_row:ident })?) => {
        #[derive(Insertable)]
        $(#[$meta])*
        #[diesel(table_name = $table, treat_none_as_default_value = false)]
        pub(super) struct $new<'a> {
            pub(super) event_id: Bound<Uuid>,
            pub(super) customer_id: Bound<Uuid>,
            contract_id: Bound<Uuid>,
            product_no: i32,
            usage_product_ref: &'a str,
            service_start: Bound<NaiveDate>,
            service_end: Bound<NaiveDate>,
            pub(super) document_id: Bound<Uuid>,
            occurred_at: Bound<Timestamp>,
            service_date: Bound<NaiveDate>,
            quantity: Bound<Decimal>,
            report_data: Option<JsonText>,
            validations: Option<JsonText>,
            format_ref: Option<&'a str>,
            format_version: Option<i32>,
            raw_event: Option<JsonText>,
            recorded_at: Bound<Timestamp>,
            pub(super) revision: i32,
            revised_at: Bound<Timestamp>,
            revised_by: String,
            deleted: bool,
        }
        impl<'a> $new<'a> {
            pub(super) fn of(event: &'a UsageEvent) -> StoreResult<Self> {
                let formatted = event.formatted.as_ref();
                Ok(Self {
                    event_id: Bound(event.event_ref.as_uuid()),
                    customer_id: Bound(event.customer_id.as_uuid()),
                    contract_id: Bound(event.placement.contract_ref.as_uuid()),
                    product_no: i32::from(event.placement.product_no.0),
                    usage_product_ref: event.usage_product_ref.as_str(),
                    service_start: Bound(event.placement.service_period.start()),
                    service_end: Bound(event.placement.service_period.end()),
                    document_id: Bound(event.placement.document_ref.as_uuid()),
                    occurred_at: Bound(event.occurred_at),
                    service_date: Bound(event.service_date),
                    quantity: Bound(event.quantity.as_decimal()),
                    report_data: event.report_data.as_ref().map(|data| to_json(&StoredReportRef(data))).transpose()?,
                    validations: event.validations.as_ref().map(|checks| to_json(&StoredValidationsRef(checks))).transpose()?,
                    format_ref: formatted.map(|source| source.format_ref.as_str()),
                    format_version: formatted.map(|source| stored(source.format_version)).transpose()?,
                    raw_event: formatted.map(|source| JsonText(source.raw_event.clone())),
                    recorded_at: Bound(event.recorded_at),
                    revision: stored(event.revision)?,
                    revised_at: Bound(event.revised_at),
                    revised_by: event.revised_by.to_string(),
                    deleted: event.deleted,
                })
            }
        }

        impl $new<'_> {
            /// Returns the columns of the rows, one per field.
            pub(super) fn columns(rows: &[Self]) -> Vec<(&'static str, Column)> {
                vec![
                    ("event_id", column(rows, |row| row.event_id.0)),
                    ("customer_id", column(rows, |row| row.customer_id.0)),
                    ("contract_id", column(rows, |row| row.contract_id.0)),
                    ("product_no", column(rows, |row| row.product_no)),
                    ("usage_product_ref", column(rows, |row| row.usage_product_ref.to_owned())),
                    ("service_start", column(rows, |row| row.service_start.0)),
                    ("service_end", column(rows, |row| row.service_end.0)),
                    ("document_id", column(rows, |row| row.document_id.0)),
                    ("occurred_at", column(rows, |row| row.occurred_at.0)),
                    ("service_date", column(rows, |row| row.service_date.0)),
                    ("quantity", column(rows, |row| row.quantity.0)),
                    ("report_data", optional_column(rows, |row| row.report_data.as_ref().map(|data| data.0.clone()))),
                    ("validations", optional_column(rows, |row| row.validations.clone())),
                    ("format_ref", optional_column(rows, |row| row.format_ref.map(str::to_owned))),
                    ("format_version", optional_column(rows, |row| row.format_version)),
                    ("raw_event", optional_column(rows, |row| row.raw_event.as_ref().map(|raw| raw.0.clone()))),
                    ("recorded_at", column(rows, |row| row.recorded_at.0)),
                    ("revision", column(rows, |row| row.revision)),
                    ("revised_at", column(rows, |row| row.revised_at.0)),
                    ("revised_by", column(rows, |row| row.revised_by.clone())),
                    ("deleted", column(rows, |row| row.deleted)),
                ]
            }
        }

        #[derive(Queryable, Selectable)]
        #[diesel(table_name = $table)]
        pub(super) struct $row {
            event_id: Cell<Uuid>,
            customer_id: Cell<Uuid>,
            contract_id: Cell<Uuid>,
            product_no: i32,
            usage_product_ref: String,
            service_start: Cell<NaiveDate>,
            service_end: Cell<NaiveDate>,
            document_id: Cell<Uuid>,
            occurred_at: Cell<Timestamp>,
            service_date: Cell<NaiveDate>,
            quantity: Cell<Decimal>,
            report_data: Option<JsonText>,
            validations: Option<JsonText>,
            format_ref: Option<String>,
            format_version: Option<i32>,
            raw_event: Option<JsonText>,
            recorded_at: Cell<Timestamp>,
            revision: i32,
            revised_at: Cell<Timestamp>,
            revised_by: String,
            deleted: bool,
            $(
                #[diesel(embed)]
                $first: $first_row,
            )?
        }

        impl $row {
            pub(super) fn read(self) -> StoreResult<UsageEvent> {
                let row = Row::new(stringify!($table), self.event_id.clone());
                let report: Option<StoredReport> = self.report_data.as_ref().map(|data| row.json("report_data", data)).transpose()?;
                let checks: Option<StoredValidations> =
                    self.validations.as_ref().map(|checks| row.json("validations", checks)).transpose()?;
                let formatted = match (self.format_ref, self.format_version, self.raw_event) {
                    (Some(format_ref), Some(version), Some(raw)) => Some(FormattedSource {
                        format_ref: row.leaf("format_ref", &format_ref)?,
                        format_version: row.checked("format_version", u32::try_from(version))?,
                        raw_event: raw.0,
                    }),
                    (None, None, None) => None,
                    _ => return Err(row.corrupt("format_ref", "format, version and raw event don't come together")),
                };
                let (start, end) = (row.cell("service_start", self.service_start)?, row.cell("service_end", self.service_end)?);
                let first_match = None;
                $(let first_match = self.$first.read(&row)?.or(first_match);)?
                Ok(UsageEvent {
                    event_ref: EventRef::from_uuid(row.cell("event_id", self.event_id)?),
                    customer_id: CustomerId::from_uuid(row.cell("customer_id", self.customer_id)?),
                    usage_product_ref: row.leaf("usage_product_ref", &self.usage_product_ref)?,
                    occurred_at: row.cell("occurred_at", self.occurred_at)?,
                    service_date: row.cell("service_date", self.service_date)?,
                    quantity: row.checked("quantity", Quantity::new(row.cell("quantity", self.quantity)?))?,
                    report_data: report.map(|report| report.0),
                    validations: checks.map(|checks| checks.0),
                    placement: Placement {
                        contract_ref: ContractRef::from_uuid(row.cell("contract_id", self.contract_id)?),
                        product_no: ProductNo(row.checked("product_no", u16::try_from(self.product_no))?),
                        service_period: Period::new(start, end).ok_or_else(|| row.corrupt("service_end", "a period without a day"))?,
                        document_ref: DocumentRef::from_uuid(row.cell("document_id", self.document_id)?),
                    },
                    first_match,
                    formatted,
                    recorded_at: row.cell("recorded_at", self.recorded_at)?,
                    revision: row.checked("revision", u32::try_from(self.revision))?,
                    revised_at: row.cell("revised_at", self.revised_at)?,
                    revised_by: row.leaf("revised_by", &self.revised_by)?,
                    deleted: self.deleted,
                })
            }
        }
    };
}

event_rows!(
    usage_events,
    #[derive(AsChangeset)]
    #[diesel(primary_key(event_id, customer_id), treat_none_as_null = true)]
    NewEvent,
    EventRow { first_match: FirstMatchRow }
);
event_rows!(usage_event_revisions, NewRevision, RevisionRow);

/// The contract product that an event was first matched to. Stored when a change moves the event to another one, so that new events
/// don't write it.
#[derive(Queryable, Selectable)]
#[diesel(table_name = usage_events)]
pub(super) struct FirstMatchRow {
    first_contract_id: Option<Cell<Uuid>>,
    first_product_no: Option<i32>,
}

impl FirstMatchRow {
    fn read<K: fmt::Display>(self, row: &Row<K>) -> StoreResult<Option<(ContractRef, ProductNo)>> {
        let contract = row.optional("first_contract_id", self.first_contract_id)?.map(ContractRef::from_uuid);
        let no = self.first_product_no.map(|no| row.checked("first_product_no", u16::try_from(no))).transpose()?;
        Ok(contract.zip(no.map(ProductNo)))
    }
}

/// Returns the columns of [`FirstMatchRow`] for an event.
pub(super) fn first_match_columns(event: &UsageEvent) -> (Option<Uuid>, Option<i32>) {
    event.first_match.map(|(contract, no)| (contract.as_uuid(), i32::from(no.0))).unzip()
}
