//! Payments, applications and write-offs as rows, and payments as the API shows them.

use billing_domain::calendar::Timestamp;
use billing_domain::metadata::Metadata;
use billing_domain::money::{Currency, Money};
use billing_domain::page::{Page, PageRequest};
use billing_domain::ports::{PaymentFilter, PaymentSortKey, Payments, StoreResult};
use billing_domain::receivables::{AccountKey, Application, ApplicationSource, Payment, PaymentKind, Reversal, WriteOff};
use billing_domain::refs::{ApplicationRef, CustomerId, DocumentKey, DocumentRef, OrganizationId, PaymentRef, WriteOffRef};
use chrono::NaiveDate;
use diesel::prelude::*;
use diesel::sql_types::Nullable;
use uuid::Uuid;

use super::update_lists::{self, after_position};
use super::{counted, limits, rows_of};
use crate::column_values::ColumnValue;
use crate::in_list::one_of_ids;
use crate::row::{Cell, Row};
use crate::schema::{applications, metadata, payments, write_offs};
use crate::sql_types::{Bound, Json, JsonText};
use crate::tx::{Transaction, with_conn};

pub(super) const PAYMENT: &str = "PAYMENT";
pub(super) const REFUND: &str = "REFUND";

#[derive(Queryable, Selectable)]
#[diesel(table_name = payments)]
pub(super) struct PaymentRow {
    payment_id: Cell<Uuid>,
    customer_id: Cell<Uuid>,
    document_id: Option<Cell<Uuid>>,
    amount_minor: i64,
    paid_date: Cell<NaiveDate>,
    reference: Option<String>,
    metadata: Option<JsonText>,
    recorded_at: Cell<Timestamp>,
    recorded_by: String,
    updated_at: Cell<Timestamp>,
    entity_ref: String,
    currency: String,
    kind: String,
    of_document_id: Option<Cell<Uuid>>,
    of_payment_id: Option<Cell<Uuid>>,
    method: Option<String>,
    used_minor: i64,
    reversed_on: Option<Cell<NaiveDate>>,
    reversal_reason: Option<String>,
    reversed_at: Option<Cell<Timestamp>>,
    reversed_by: Option<String>,
}

impl PaymentRow {
    /// Returns a payment or a refund, with its account.
    pub(super) fn read(self) -> StoreResult<(AccountKey, Payment)> {
        let row = Row::new("payments", self.payment_id.clone());
        let currency: Currency = row.leaf("currency", &self.currency)?;
        let key = AccountKey {
            customer_id: CustomerId::from_uuid(row.cell("customer_id", self.customer_id)?),
            entity_ref: row.leaf("entity_ref", &self.entity_ref)?,
            currency,
        };
        let of_document = row.optional("of_document_id", self.of_document_id)?;
        let of_payment = row.optional("of_payment_id", self.of_payment_id)?;
        let kind = match (self.kind.as_str(), of_document, of_payment) {
            (PAYMENT, None, None) => PaymentKind::Payment,
            (REFUND, Some(credit), None) => PaymentKind::Refund(ApplicationSource::Credit(DocumentRef::from_uuid(credit))),
            (REFUND, None, Some(payment)) => PaymentKind::Refund(ApplicationSource::Payment(PaymentRef::from_uuid(payment))),
            (other, ..) => return Err(row.corrupt("kind", format_args!("{other:?} of what can't be"))),
        };
        let reversal = match (self.reversed_on, self.reversed_at, self.reversed_by) {
            (Some(date), Some(at), Some(by)) => Some(Reversal {
                date: row.cell("reversed_on", date)?,
                reason: row.optional_leaf("reversal_reason", self.reversal_reason.as_deref())?,
                recorded_at: row.cell("reversed_at", at)?,
                recorded_by: row.leaf("reversed_by", &by)?,
            }),
            (None, None, None) => None,
            _ => return Err(row.corrupt("reversed_on", "half a reversal")),
        };
        let payment = Payment {
            payment_ref: PaymentRef::from_uuid(row.cell("payment_id", self.payment_id.clone())?),
            kind,
            document_ref: row.optional("document_id", self.document_id)?.map(DocumentRef::from_uuid),
            amount: Money::from_minor(self.amount_minor, currency),
            paid_date: row.cell("paid_date", self.paid_date)?,
            reference: row.optional_leaf("reference", self.reference.as_deref())?,
            method: row.optional_leaf("method", self.method.as_deref())?,
            metadata: <Nullable<Json> as ColumnValue<Metadata>>::read(&row, "metadata", &self.metadata)?,
            used: Money::from_minor(self.used_minor, currency),
            reversal,
            recorded_at: row.cell("recorded_at", self.recorded_at)?,
            recorded_by: row.leaf("recorded_by", &self.recorded_by)?,
            updated_at: row.cell("updated_at", self.updated_at)?,
        };
        Ok((key, payment))
    }
}

/// Returns payments without their accounts.
pub(super) fn read_payments(rows: Vec<PaymentRow>) -> StoreResult<Vec<Payment>> {
    rows.into_iter().map(|row| Ok(row.read()?.1)).collect()
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = applications)]
pub(super) struct ApplicationRow {
    application_id: Cell<Uuid>,
    customer_id: Cell<Uuid>,
    entity_ref: String,
    currency: String,
    from_document_id: Option<Cell<Uuid>>,
    from_payment_id: Option<Cell<Uuid>>,
    to_document_id: Cell<Uuid>,
    amount_minor: i64,
    applied_on: Cell<NaiveDate>,
    recorded_at: Cell<Timestamp>,
    recorded_by: String,
}

impl ApplicationRow {
    /// Returns an application with its account.
    pub(super) fn read(self) -> StoreResult<(AccountKey, Application)> {
        let row = Row::new("applications", self.application_id.clone());
        let currency: Currency = row.leaf("currency", &self.currency)?;
        let key = AccountKey {
            customer_id: CustomerId::from_uuid(row.cell("customer_id", self.customer_id)?),
            entity_ref: row.leaf("entity_ref", &self.entity_ref)?,
            currency,
        };
        let from_document = row.optional("from_document_id", self.from_document_id)?;
        let from_payment = row.optional("from_payment_id", self.from_payment_id)?;
        let from = match (from_document, from_payment) {
            (Some(credit), None) => ApplicationSource::Credit(DocumentRef::from_uuid(credit)),
            (None, Some(payment)) => ApplicationSource::Payment(PaymentRef::from_uuid(payment)),
            _ => return Err(row.corrupt("from_document_id", "neither a credit nor a payment, or both")),
        };
        let application = Application {
            application_ref: ApplicationRef::from_uuid(row.cell("application_id", self.application_id.clone())?),
            from,
            to: DocumentRef::from_uuid(row.cell("to_document_id", self.to_document_id)?),
            amount: Money::from_minor(self.amount_minor, currency),
            date: row.cell("applied_on", self.applied_on)?,
            recorded_at: row.cell("recorded_at", self.recorded_at)?,
            recorded_by: row.leaf("recorded_by", &self.recorded_by)?,
        };
        Ok((key, application))
    }
}

/// Returns distinct applications without their accounts, by reference.
pub(super) fn read_applications(rows: Vec<ApplicationRow>) -> StoreResult<Vec<Application>> {
    let mut read: Vec<Application> = rows.into_iter().map(|row| Ok(row.read()?.1)).collect::<StoreResult<_>>()?;
    read.sort_by_key(|application| application.application_ref);
    read.dedup_by_key(|application| application.application_ref);
    Ok(read)
}

#[derive(Queryable, Selectable)]
#[diesel(table_name = write_offs)]
struct WriteOffRow {
    write_off_id: Cell<Uuid>,
    currency: String,
    document_id: Cell<Uuid>,
    amount_minor: i64,
    written_off_on: Cell<NaiveDate>,
    reason: Option<String>,
    recorded_at: Cell<Timestamp>,
    recorded_by: String,
}

impl WriteOffRow {
    fn read(self) -> StoreResult<WriteOff> {
        let row = Row::new("write_offs", self.write_off_id.clone());
        Ok(WriteOff {
            write_off_ref: WriteOffRef::from_uuid(row.cell("write_off_id", self.write_off_id.clone())?),
            document_ref: DocumentRef::from_uuid(row.cell("document_id", self.document_id)?),
            amount: Money::from_minor(self.amount_minor, row.leaf("currency", &self.currency)?),
            date: row.cell("written_off_on", self.written_off_on)?,
            reason: row.optional_leaf("reason", self.reason.as_deref())?,
            recorded_at: row.cell("recorded_at", self.recorded_at)?,
            recorded_by: row.leaf("recorded_by", &self.recorded_by)?,
        })
    }
}

impl Payments for Transaction<'_> {
    fn payment(&mut self, organization: OrganizationId, payment_ref: PaymentRef) -> StoreResult<Option<(AccountKey, Payment)>> {
        let found: Option<PaymentRow> = with_conn!(self, "payments", |conn| payments::table
            .filter(payments::payment_id.eq(Bound(payment_ref.as_uuid())))
            .filter(payments::organization_id.eq(Bound(organization.as_uuid())))
            .select(PaymentRow::as_select())
            .first(conn)
            .optional())?;
        found.map(PaymentRow::read).transpose()
    }

    fn application(
        &mut self,
        organization: OrganizationId,
        application_ref: ApplicationRef,
    ) -> StoreResult<Option<(AccountKey, Application)>> {
        let found: Option<ApplicationRow> = with_conn!(self, "applications", |conn| applications::table
            .filter(applications::application_id.eq(Bound(application_ref.as_uuid())))
            .filter(applications::organization_id.eq(Bound(organization.as_uuid())))
            .filter(applications::undone_at.is_null())
            .select(ApplicationRow::as_select())
            .first(conn)
            .optional())?;
        found.map(ApplicationRow::read).transpose()
    }

    fn payments(
        &mut self,
        organization: OrganizationId,
        filter: &PaymentFilter,
        by: PaymentSortKey,
        page: PageRequest,
    ) -> StoreResult<Page<(AccountKey, Payment)>> {
        let (limit, offset) = limits(page);
        let (after, backward) = (filter.updates.after.as_ref(), page.is_backward());
        let (rows, total): (Vec<PaymentRow>, i64) = with_conn!(self, "payments", |conn| {
            let narrowed = || {
                let mut query = rows_of!(payments, organization, filter.customer_id);
                if let Some(document_ref) = filter.document_ref {
                    query = query.filter(payments::document_id.eq(Bound(document_ref.as_uuid())));
                }
                if filter.deposits {
                    query = query.filter(payments::document_id.is_null());
                }
                if let Some(reference) = &filter.reference {
                    query = query.filter(payments::reference.eq(reference.as_str()));
                }
                if let Some(from) = filter.from {
                    query = query.filter(payments::paid_date.ge(Bound(from)));
                }
                if let Some(to) = filter.to {
                    query = query.filter(payments::paid_date.le(Bound(to)));
                }
                if let Some(since) = filter.updates.since {
                    query = query.filter(payments::updated_at.ge(Bound(since)));
                }
                for (key, value) in filter.metadata.entries() {
                    let found = metadata::table
                        .filter(metadata::organization_id.eq(Bound(organization.as_uuid())))
                        .filter(metadata::kind.eq(update_lists::PAYMENT))
                        .filter(metadata::key.eq(key))
                        .filter(metadata::value.eq(value))
                        .select(metadata::subject_id);
                    query = query.filter(payments::payment_id.eq_any(found));
                }
                query
            };
            let total = if after.is_some() { 0 } else { narrowed().count().get_result(conn)? };
            let query = after_position!(narrowed(), payments::updated_at, payments::payment_id, id, after, backward);
            let ordered = match (by, backward) {
                (PaymentSortKey::Created, false) => query.order((payments::recorded_at, payments::payment_id)),
                (PaymentSortKey::Created, true) => query.order((payments::recorded_at.desc(), payments::payment_id.desc())),
                (PaymentSortKey::PaidDate, false) => query.order((payments::paid_date, payments::payment_id)),
                (PaymentSortKey::PaidDate, true) => query.order((payments::paid_date.desc(), payments::payment_id.desc())),
                (PaymentSortKey::Updated, false) => query.order((payments::updated_at, payments::payment_id)),
                (PaymentSortKey::Updated, true) => query.order((payments::updated_at.desc(), payments::payment_id.desc())),
            };
            let ordered = ordered.limit(limit).offset(offset);
            Ok((ordered.select(PaymentRow::as_select()).load(conn)?, total))
        })?;
        let items = rows.into_iter().map(PaymentRow::read).collect::<StoreResult<_>>()?;
        Ok(Page { items, total: counted(total)? })
    }

    fn payments_of_document(&mut self, key: DocumentKey) -> StoreResult<Vec<Payment>> {
        let rows: Vec<PaymentRow> = with_conn!(self, "payments", |conn| payments::table
            .filter(payments::customer_id.eq(Bound(key.customer.as_uuid())))
            .filter(payments::document_id.eq(Bound(key.document.as_uuid())))
            .filter(payments::organization_id.eq(Bound(key.organization.as_uuid())))
            .order((payments::recorded_at, payments::payment_id))
            .select(PaymentRow::as_select())
            .load(conn))?;
        read_payments(rows)
    }

    fn applications_around(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        documents: &[DocumentRef],
        of_payments: &[PaymentRef],
    ) -> StoreResult<Vec<Application>> {
        let documents: Vec<Uuid> = documents.iter().map(|document| document.as_uuid()).collect();
        let of_payments: Vec<Uuid> = of_payments.iter().map(|payment| payment.as_uuid()).collect();
        let (customer, owner) = (Bound(customer_id.as_uuid()), Bound(organization.as_uuid()));
        let rows: Vec<ApplicationRow> = with_conn!(self, "applications", |conn| {
            let live = || {
                applications::table
                    .filter(applications::customer_id.eq(customer))
                    .filter(applications::organization_id.eq(owner))
                    .filter(applications::undone_at.is_null())
                    .select(ApplicationRow::as_select())
            };
            let mut rows: Vec<ApplicationRow> = Vec::new();
            if !documents.is_empty() {
                rows.extend(live().filter(one_of_ids(applications::to_document_id, documents.clone())).load(conn)?);
                rows.extend(
                    live()
                        .filter(applications::from_document_id.is_not_null())
                        .filter(one_of_ids(applications::from_document_id, documents.clone()))
                        .load(conn)?,
                );
            }
            if !of_payments.is_empty() {
                rows.extend(
                    live()
                        .filter(applications::from_payment_id.is_not_null())
                        .filter(one_of_ids(applications::from_payment_id, of_payments.clone()))
                        .load(conn)?,
                );
            }
            Ok(rows)
        })?;
        read_applications(rows)
    }

    fn write_offs_of(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        documents: &[DocumentRef],
    ) -> StoreResult<Vec<WriteOff>> {
        let documents: Vec<Uuid> = documents.iter().map(|document| document.as_uuid()).collect();
        let rows: Vec<WriteOffRow> = with_conn!(self, "write_offs", |conn| write_offs::table
            .filter(write_offs::customer_id.eq(Bound(customer_id.as_uuid())))
            .filter(write_offs::organization_id.eq(Bound(organization.as_uuid())))
            .filter(one_of_ids(write_offs::document_id, documents.clone()))
            .order((write_offs::recorded_at, write_offs::write_off_id))
            .select(WriteOffRow::as_select())
            .load(conn))?;
        rows.into_iter().map(WriteOffRow::read).collect()
    }
}
