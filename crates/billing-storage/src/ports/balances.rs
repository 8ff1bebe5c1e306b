//! Customer balances.

use std::collections::BTreeMap;
use std::fmt::Display;

use billing_domain::calendar::Timestamp;
use billing_domain::document::DocumentKind;
use billing_domain::document::numbering::DocumentNumber;
use billing_domain::money::{Currency, Money, MoneySum};
use billing_domain::ports::{Balances, StoreError, StoreResult};
use billing_domain::receivables::{AccountKey, StatementEntry, StatementKind};
use billing_domain::refs::{CustomerId, DocumentRef, EntityRef, OrganizationId, PaymentRef};
use chrono::NaiveDate;
use diesel::prelude::*;
use uuid::Uuid;

use super::accounts::{AccountRow, read_unapplied};
use super::document_rows::DRAFT;
use super::payments::REFUND;
use crate::hand_written::IsDue;
use crate::in_list::{one_of_ids, unindexed};
use crate::row::{Cell, Row};
use crate::schema::{accounts, documents, payments, write_offs};
use crate::sql_types::Bound;
use crate::tx::{Transaction, with_conn};

/// A document's number, as columns.
pub(super) type NumberColumns = (String, String, i64);

/// The instant when an entry was recorded, and the entry. It orders the entries of one day.
type Dated = (Timestamp, StatementEntry);

pub(super) fn key_of(customer_id: CustomerId, entity_ref: &str, currency: &str) -> StoreResult<AccountKey> {
    let row = Row::new("accounts", customer_id);
    Ok(AccountKey { customer_id, entity_ref: row.leaf("entity_ref", entity_ref)?, currency: row.leaf("currency", currency)? })
}

/// The unit of the high column of an unapplied amount, in minor units.
const UNAPPLIED_HIGH: i128 = 1_000_000_000_000_000_000;

/// Returns an account's unapplied amount from its two columns.
pub(super) fn unapplied_sum(row: &Row<impl Display>, currency: Currency, high: i64, low: i64) -> StoreResult<MoneySum> {
    let minor = i128::from(high) * UNAPPLIED_HIGH + i128::from(low);
    row.checked("unapplied_high", MoneySum::from_minor(minor, currency))
}

/// Returns the two columns of an account's unapplied amount: high and low.
pub(super) fn unapplied_columns(unapplied: MoneySum) -> StoreResult<(i64, i64)> {
    let part = |minor: i128| i64::try_from(minor).map_err(|_| StoreError::Corrupt(format!("{unapplied} can't be stored")));
    Ok((part(unapplied.minor() / UNAPPLIED_HIGH)?, part(unapplied.minor() % UNAPPLIED_HIGH)?))
}

/// Sums amounts by key. SQL cannot do this alike: a sum of integers overflows in SQLite, and PostgreSQL's sum of a
/// BIGINT is a NUMERIC.
pub(super) fn summed<K: Ord>(amounts: impl IntoIterator<Item = StoreResult<(K, Money)>>) -> StoreResult<Vec<(K, MoneySum)>> {
    let mut sums: BTreeMap<K, MoneySum> = BTreeMap::new();
    for amount in amounts {
        let (key, amount) = amount?;
        let sum = sums.entry(key).or_insert(MoneySum::zero(amount.currency()));
        *sum = sum.checked_add(amount).map_err(|_| StoreError::Corrupt("a sum of amounts is out of range".to_owned()))?;
    }
    Ok(sums.into_iter().collect())
}

pub(super) fn number(row: &Row<Uuid>, (prefix, kind, sequence): &NumberColumns) -> StoreResult<DocumentNumber> {
    Ok(DocumentNumber {
        prefix: row.leaf("number_prefix", prefix)?,
        kind: row.leaf("kind", kind)?,
        sequence: row.checked("sequence", u64::try_from(*sequence))?,
    })
}

impl Balances for Transaction<'_> {
    fn accounts(
        &mut self,
        organization: OrganizationId,
        customers: Option<&[CustomerId]>,
    ) -> StoreResult<Vec<(AccountKey, MoneySum)>> {
        let rows: Vec<AccountRow> = with_conn!(self, "accounts", |conn| {
            let mut query =
                accounts::table.filter(accounts::organization_id.eq(Bound(organization.as_uuid()))).into_boxed::<Db>();
            if let Some(customers) = customers {
                query = query.filter(one_of_ids(accounts::customer_id, customers.iter().map(|customer| customer.as_uuid())));
            }
            query
                .order((accounts::customer_id, accounts::entity_ref, accounts::currency))
                .select((
                    accounts::customer_id,
                    accounts::entity_ref,
                    accounts::currency,
                    accounts::unapplied_high,
                    accounts::unapplied_minor,
                ))
                .load(conn)
        })?;
        rows.into_iter().map(read_unapplied).collect()
    }

    fn due_by_day(
        &mut self,
        organization: OrganizationId,
        customers: &[CustomerId],
    ) -> StoreResult<Vec<(AccountKey, NaiveDate, MoneySum)>> {
        type Found = (Cell<Uuid>, String, String, Option<Cell<NaiveDate>>, Option<i64>);
        let rows: Vec<Found> = with_conn!(self, "documents", |conn| documents::table
            .filter(one_of_ids(documents::customer_id, customers.iter().map(|id| id.as_uuid())))
            .filter(unindexed(documents::organization_id).eq(Bound(organization.as_uuid())))
            .filter(IsDue)
            // Without this order, SQLite reads all documents of the customers.
            .order((documents::customer_id, documents::entity_ref, documents::currency, documents::due_date))
            .select((
                documents::customer_id,
                documents::entity_ref,
                documents::currency,
                documents::due_date,
                documents::amount_due_minor,
            ))
            .load(conn))?;
        let read = |(customer_id, entity_ref, currency, due_date, minor): Found| {
            let customer_id = CustomerId::from_uuid(Row::new("documents", "").cell("customer_id", customer_id)?);
            let row = Row::new("documents", customer_id);
            let key = key_of(customer_id, &entity_ref, &currency)?;
            let due_date = row.optional("due_date", due_date)?;
            let due_date = due_date.ok_or_else(|| row.corrupt("due_date", "none of what is due"))?;
            let amount = Money::from_minor(minor.unwrap_or(0), key.currency);
            Ok(((key, due_date), amount))
        };
        let sums = summed(rows.into_iter().map(read))?;
        Ok(sums.into_iter().map(|((key, due_date), amount)| (key, due_date, amount)).collect())
    }

    fn written_off(
        &mut self,
        organization: OrganizationId,
        customers: &[CustomerId],
    ) -> StoreResult<Vec<(AccountKey, MoneySum)>> {
        type Found = (Cell<Uuid>, String, String, i64);
        let rows: Vec<Found> = with_conn!(self, "write_offs", |conn| write_offs::table
            .filter(one_of_ids(write_offs::customer_id, customers.iter().map(|id| id.as_uuid())))
            .filter(write_offs::organization_id.eq(Bound(organization.as_uuid())))
            .select((write_offs::customer_id, write_offs::entity_ref, write_offs::currency, write_offs::amount_minor))
            .load(conn))?;
        summed(rows.into_iter().map(|(customer_id, entity_ref, currency, minor)| {
            let customer_id = CustomerId::from_uuid(Row::new("write_offs", "").cell("customer_id", customer_id)?);
            let key = key_of(customer_id, &entity_ref, &currency)?;
            let amount = Money::from_minor(minor, key.currency);
            Ok((key, amount))
        }))
    }

    fn statement_entries(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        to: Option<NaiveDate>,
    ) -> StoreResult<Vec<StatementEntry>> {
        let mut entries = self.billed_entries(organization, customer_id, to)?;
        entries.extend(self.paid_entries(organization, customer_id, to)?);
        entries.extend(self.written_off_entries(organization, customer_id, to)?);
        // A reversal has its own date, so it is filtered separately.
        entries.retain(|(_, entry)| to.is_none_or(|to| entry.date <= to));
        entries.sort_by_key(|(recorded_at, entry)| {
            (*recorded_at, entry.kind, entry.document.as_ref().map(|(document_ref, _)| *document_ref), entry.payment_ref)
        });
        Ok(entries.into_iter().map(|(_, entry)| entry).collect())
    }
}

impl Transaction<'_> {
    fn billed_entries(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        to: Option<NaiveDate>,
    ) -> StoreResult<Vec<Dated>> {
        type Voided = (Option<Cell<Timestamp>>, Option<Cell<NaiveDate>>);
        type Found = (Cell<Uuid>, String, String, Option<Cell<NaiveDate>>, Option<i64>, Cell<Timestamp>, Voided, NumberColumns);
        let rows: Vec<Found> = with_conn!(self, "documents", |conn| {
            let mut query = documents::table
                .filter(documents::customer_id.eq(Bound(customer_id.as_uuid())))
                .filter(unindexed(documents::organization_id).eq(Bound(organization.as_uuid())))
                .filter(documents::lifecycle.ne(DRAFT))
                // A voided draft was never billed.
                .filter(documents::issue_date.is_not_null())
                .into_boxed::<Db>();
            if let Some(to) = to {
                query = query.filter(documents::issue_date.le(Bound(to)));
            }
            query
                .select((
                    documents::document_id,
                    documents::entity_ref,
                    documents::currency,
                    documents::issue_date,
                    documents::total_minor,
                    documents::created_at,
                    (documents::voided_at, documents::voided_on),
                    (documents::number_prefix, documents::kind, documents::sequence),
                ))
                .load(conn)
        })?;
        let mut entries = Vec::new();
        for (id, entity_ref, currency, issue_date, total, created_at, (voided_at, voided_on), of_number) in rows {
            let id = Row::new("documents", "").cell("document_id", id)?;
            let row = Row::new("documents", id);
            let entity_ref: EntityRef = row.leaf("entity_ref", &entity_ref)?;
            let currency: Currency = row.leaf("currency", &currency)?;
            let document_number = number(&row, &of_number)?;
            let issue_date = row.optional("issue_date", issue_date)?;
            let (Some(date), Some(total)) = (issue_date, total) else {
                return Err(row.corrupt("issue_date", "issued without a date or a total"));
            };
            let (kind, minor) = match document_number.kind {
                DocumentKind::Invoice => (StatementKind::Invoice, total),
                DocumentKind::Debit => (StatementKind::Debit, total),
                DocumentKind::Credit => (StatementKind::Credit, -total),
            };
            let entry = StatementEntry {
                entity_ref,
                date,
                kind,
                document: Some((DocumentRef::from_uuid(id), document_number)),
                payment_ref: None,
                reference: None,
                amount: Money::from_minor(minor, currency),
            };
            if let Some(at) = row.optional("voided_at", voided_at)? {
                let Some(date) = row.optional("voided_on", voided_on)? else {
                    return Err(row.corrupt("voided_on", "voided without a date"));
                };
                let amount = Money::from_minor(-minor, currency);
                entries.push((at, StatementEntry { date, kind: StatementKind::Void, amount, ..entry.clone() }));
            }
            entries.push((row.cell("created_at", created_at)?, entry));
        }
        Ok(entries)
    }

    /// Returns payments and refunds, and a second entry for each reversed one.
    fn paid_entries(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        to: Option<NaiveDate>,
    ) -> StoreResult<Vec<Dated>> {
        type Reversed = (Option<Cell<NaiveDate>>, Option<Cell<Timestamp>>);
        type Document = Option<(Cell<Uuid>, NumberColumns)>;
        type Found =
            (Cell<Uuid>, String, String, String, i64, Cell<NaiveDate>, Option<String>, Cell<Timestamp>, Reversed, Document);
        let rows: Vec<Found> = with_conn!(self, "payments", |conn| {
            let mut query = payments::table
                .left_join(
                    documents::table.on(documents::document_id
                        .nullable()
                        .eq(payments::document_id)
                        .and(documents::customer_id.eq(payments::customer_id))),
                )
                .filter(payments::customer_id.eq(Bound(customer_id.as_uuid())))
                .filter(unindexed(payments::organization_id).eq(Bound(organization.as_uuid())))
                .into_boxed::<Db>();
            if let Some(to) = to {
                query = query.filter(payments::paid_date.le(Bound(to)));
            }
            query
                .select((
                    payments::payment_id,
                    payments::entity_ref,
                    payments::currency,
                    payments::kind,
                    payments::amount_minor,
                    payments::paid_date,
                    payments::reference,
                    payments::recorded_at,
                    (payments::reversed_on, payments::reversed_at),
                    (documents::document_id, (documents::number_prefix, documents::kind, documents::sequence)).nullable(),
                ))
                .load(conn)
        })?;
        let mut entries = Vec::new();
        for found in rows {
            let (id, entity_ref, currency, kind, minor, paid_date, reference, recorded_at, reversed, document) = found;
            let id = Row::new("payments", "").cell("payment_id", id)?;
            let row = Row::new("payments", id);
            let currency: Currency = row.leaf("currency", &currency)?;
            let (kind, minor) = if kind == REFUND { (StatementKind::Refund, minor) } else { (StatementKind::Payment, -minor) };
            let document = match document {
                Some((id, columns)) => Some((DocumentRef::from_uuid(row.cell("document_id", id)?), number(&row, &columns)?)),
                None => None,
            };
            let entry = StatementEntry {
                entity_ref: row.leaf("entity_ref", &entity_ref)?,
                date: row.cell("paid_date", paid_date)?,
                kind,
                document,
                payment_ref: Some(PaymentRef::from_uuid(id)),
                reference: row.optional_leaf("reference", reference.as_deref())?,
                amount: Money::from_minor(minor, currency),
            };
            let (reversed_on, reversed_at) = reversed;
            let reversed_on = row.optional("reversed_on", reversed_on)?;
            if let Some((date, at)) = reversed_on.zip(row.optional("reversed_at", reversed_at)?) {
                let amount = Money::from_minor(-minor, currency);
                entries.push((at, StatementEntry { date, kind: StatementKind::Reversal, amount, ..entry.clone() }));
            }
            entries.push((row.cell("recorded_at", recorded_at)?, entry));
        }
        Ok(entries)
    }

    fn written_off_entries(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        to: Option<NaiveDate>,
    ) -> StoreResult<Vec<Dated>> {
        type Found = (Cell<Uuid>, Cell<Uuid>, String, String, i64, Cell<NaiveDate>, Cell<Timestamp>, NumberColumns);
        let rows: Vec<Found> = with_conn!(self, "write_offs", |conn| {
            let mut query = write_offs::table
                .inner_join(documents::table.on(
                    documents::document_id.eq(write_offs::document_id).and(documents::customer_id.eq(write_offs::customer_id)),
                ))
                .filter(write_offs::customer_id.eq(Bound(customer_id.as_uuid())))
                .filter(write_offs::organization_id.eq(Bound(organization.as_uuid())))
                .into_boxed::<Db>();
            if let Some(to) = to {
                query = query.filter(write_offs::written_off_on.le(Bound(to)));
            }
            query
                .select((
                    write_offs::write_off_id,
                    write_offs::document_id,
                    write_offs::entity_ref,
                    write_offs::currency,
                    write_offs::amount_minor,
                    write_offs::written_off_on,
                    write_offs::recorded_at,
                    (documents::number_prefix, documents::kind, documents::sequence),
                ))
                .load(conn)
        })?;
        let read = |(id, document, entity_ref, currency, minor, date, recorded_at, of_number): Found| {
            let id = Row::new("write_offs", "").cell("write_off_id", id)?;
            let row = Row::new("write_offs", id);
            let currency: Currency = row.leaf("currency", &currency)?;
            let entry = StatementEntry {
                entity_ref: row.leaf("entity_ref", &entity_ref)?,
                date: row.cell("written_off_on", date)?,
                kind: StatementKind::WriteOff,
                document: Some((DocumentRef::from_uuid(row.cell("document_id", document)?), number(&row, &of_number)?)),
                payment_ref: None,
                reference: None,
                // A write-off lowers the balance.
                amount: Money::from_minor(-minor, currency),
            };
            Ok((row.cell("recorded_at", recorded_at)?, entry))
        };
        rows.into_iter().map(read).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::query_plans::plans_of;

    #[test]
    fn what_is_due_of_a_customer_is_found_without_its_other_documents() {
        let id = Uuid::from_u128;
        let (organization, customer) = (OrganizationId::from_uuid(id(1)), CustomerId::from_uuid(id(2)));
        let plans = plans_of(|tx| assert!(tx.due_by_day(organization, &[customer]).expect("a look-up").is_empty()));
        assert_eq!(plans.len(), 1);
        assert_eq!(plans[0].steps, ["SEARCH documents USING INDEX documents_due (customer_id=?)"]);
    }
}
