//! Events as rows. A superseded revision has the same columns as the event that replaced it.

use std::fmt;

use billing_domain::calendar::{Period, Timestamp};
use billing_domain::labels::LabelDigest;
use billing_domain::ports::StoreResult;
use billing_domain::quantity::Quantity;
use billing_domain::refs::{ContractRef, CustomerId, DocumentRef, EventRef, ProductNo};
use billing_domain::usage::{FormattedSource, Placement, UsageEvent};
use chrono::NaiveDate;
use diesel::prelude::*;
use rust_decimal::Decimal;
use uuid::Uuid;

use super::stored;
use crate::json::{StoredReport, StoredReportRef, StoredValidations, StoredValidationsRef};
use crate::row::{Cell, Row, to_json};
use crate::schema::{usage_event_revisions, usage_events};
use crate::sql_types::JsonText;
use crate::written_rows::{Columns, checked_column, column};

/// Declares a row to read, for one of the two tables.
macro_rules! event_rows {
    ($table:ident, $row:ident $({ $matched:ident: $match_row:ident })?) => {
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
                $matched: $match_row,
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
                let (first_match, unique_digest) = (None, None);
                $(let (first_match, unique_digest) = self.$matched.read(&row, (first_match, unique_digest))?;)?
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
                    unique_digest,
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

event_rows!(usage_events, EventRow { matched: MatchRow });
event_rows!(usage_event_revisions, RevisionRow);

/// Returns the columns of events or revisions to write, after their key.
pub(super) fn columns_of(events: &[&UsageEvent]) -> StoreResult<Columns> {
    let report = |event: &&UsageEvent| event.report_data.as_ref().map(|data| to_json(&StoredReportRef(data))).transpose();
    let validations =
        |event: &&UsageEvent| event.validations.as_ref().map(|checks| to_json(&StoredValidationsRef(checks))).transpose();
    let version =
        |event: &&UsageEvent| event.formatted.as_ref().map(|source| stored::<i32, _>(source.format_version)).transpose();
    Ok(vec![
        ("contract_id", column(events, |event| event.placement.contract_ref.as_uuid())),
        ("product_no", column(events, |event| i32::from(event.placement.product_no.0))),
        ("usage_product_ref", column(events, |event| event.usage_product_ref.as_str())),
        ("service_start", column(events, |event| event.placement.service_period.start())),
        ("service_end", column(events, |event| event.placement.service_period.end())),
        ("document_id", column(events, |event| event.placement.document_ref.as_uuid())),
        ("occurred_at", column(events, |event| event.occurred_at)),
        ("service_date", column(events, |event| event.service_date)),
        ("quantity", column(events, |event| event.quantity.as_decimal())),
        ("report_data", checked_column(events, |event| Ok(report(event)?.map(|data| data.0)))?),
        ("validations", checked_column(events, validations)?),
        ("format_ref", column(events, |event| event.formatted.as_ref().map(|source| source.format_ref.as_str()))),
        ("format_version", checked_column(events, version)?),
        ("raw_event", column(events, |event| event.formatted.as_ref().map(|source| source.raw_event.as_str()))),
        ("recorded_at", column(events, |event| event.recorded_at)),
        ("revision", checked_column(events, |event| stored::<i32, _>(event.revision))?),
        ("revised_at", column(events, |event| event.revised_at)),
        ("revised_by", column(events, |event| event.revised_by.to_string())),
        ("deleted", column(events, |event| event.deleted)),
    ])
}

/// Returns the key of events or revisions.
pub(super) fn key_columns(events: &[&UsageEvent]) -> Columns {
    vec![
        ("event_id", column(events, |event| event.event_ref.as_uuid())),
        ("customer_id", column(events, |event| event.customer_id.as_uuid())),
    ]
}

/// The contract product that an event was first matched to, and the digest of its label that `UNIQUE` counts. New events write them
/// only if they have any.
#[derive(Queryable, Selectable)]
#[diesel(table_name = usage_events)]
pub(super) struct MatchRow {
    first_contract_id: Option<Cell<Uuid>>,
    first_product_no: Option<i32>,
    unique_digest: Option<Cell<Uuid>>,
}

/// The values of a [`MatchRow`].
type MatchValues = (Option<(ContractRef, ProductNo)>, Option<LabelDigest>);

impl MatchRow {
    /// Returns the values, or those of a table without these columns.
    fn read<K: fmt::Display>(self, row: &Row<K>, (first, digest): MatchValues) -> StoreResult<MatchValues> {
        let contract = row.optional("first_contract_id", self.first_contract_id)?.map(ContractRef::from_uuid);
        let no = self.first_product_no.map(|no| row.checked("first_product_no", u16::try_from(no))).transpose()?;
        let found = row.optional("unique_digest", self.unique_digest)?.map(LabelDigest::from_uuid);
        Ok((contract.zip(no.map(ProductNo)).or(first), found.or(digest)))
    }
}

/// Returns the columns of the first match.
pub(super) fn first_match_columns(events: &[&UsageEvent]) -> Columns {
    vec![
        ("first_contract_id", column(events, |event| event.first_match.map(|(contract, _)| contract.as_uuid()))),
        ("first_product_no", column(events, |event| event.first_match.map(|(_, no)| i32::from(no.0)))),
    ]
}

/// Returns the column of the label that `UNIQUE` counts.
pub(super) fn digest_column(events: &[&UsageEvent]) -> Columns {
    vec![("unique_digest", column(events, |event| event.unique_digest.map(LabelDigest::as_uuid)))]
}
