//! Receivables accounts: the data that money decisions read and write.

use std::collections::{BTreeMap, BTreeSet};

use billing_domain::calendar::Timestamp;
use billing_domain::document::{BookDocument, LifecycleStatus};
use billing_domain::ledger::receivables::AccountEntry;
use billing_domain::metadata::{Metadata, MetadataSubject};
use billing_domain::money::{Money, MoneySum};
use billing_domain::ports::{Accounts, ApplicationsOf, DocumentsOf, Lock, PaymentsOf, StoreResult};
use billing_domain::receivables::{AccountKey, Application, ApplicationSource, Payment, PaymentKind};
use billing_domain::refs::{CustomerId, OrganizationId};
use billing_domain::text::OneLine;
use diesel::prelude::*;
use diesel::sql_types::{BigInt, Nullable, Text};
use uuid::Uuid;

use super::balances::{key_of, unapplied_columns, unapplied_sum};
use super::document_rows::{ISSUED, UNCOLLECTIBLE, WithParts};
use super::payments::{ApplicationRow, PAYMENT, PaymentRow, REFUND, read_applications, read_payments};
use crate::column_values::ColumnValue;
use crate::hand_written::{IsDocumentUnapplied, IsDue, IsPaymentUnapplied};
use crate::in_list::{one_of_ids, unindexed};
use crate::row::{Cell, Row};
use crate::schema::{accounts, applications, documents, payments, write_offs};
use crate::sql_types::{Bound, Id, Json};
use crate::tx::{Transaction, load_held, with_conn};
use crate::written_rows::{InsertRows, column};

/// The maximum number of open documents read at a time.
const OPEN_AT_A_TIME: i64 = 500;

impl Accounts for Transaction<'_> {
    fn hold_accounts(
        &mut self,
        organization: OrganizationId,
        keys: &BTreeSet<AccountKey>,
    ) -> StoreResult<BTreeMap<AccountKey, MoneySum>> {
        let keys: Vec<&AccountKey> = keys.iter().collect();
        keys.iter().try_for_each(|key| self.note_account(key))?;
        // The statement locks a row by writing its current values.
        let columns = vec![
            ("customer_id", column(&keys, |key| key.customer_id.as_uuid())),
            ("entity_ref", column(&keys, |key| key.entity_ref.as_str())),
            ("currency", column(&keys, |key| key.currency.code())),
            ("organization_id", column(&keys, |_| organization.as_uuid())),
            ("unapplied_minor", column(&keys, |_| 0_i64)),
        ];
        let insert = InsertRows::new("accounts", columns).on_conflict(
            " ON CONFLICT (customer_id, entity_ref, currency) DO UPDATE SET unapplied_minor = accounts.unapplied_minor",
        );
        let columns = "accounts.customer_id, accounts.entity_ref, accounts.currency, accounts.unapplied_high, \
                       accounts.unapplied_minor";
        let held: Vec<AccountRow> = self.write_returning::<_, (Id, Text, Text, BigInt, BigInt), _>(insert, columns)?;
        held.into_iter().map(read_unapplied).collect()
    }

    fn lock_accounts_of(
        &mut self,
        organization: OrganizationId,
        customers: &[CustomerId],
    ) -> StoreResult<BTreeMap<AccountKey, MoneySum>> {
        let mut locked = BTreeMap::new();
        for customers in self.by_shard(customers.to_vec(), |customer| customer.as_uuid()) {
            let rows: Vec<AccountRow> = load_held!(
                self,
                "accounts",
                Some(Lock::Exclusive),
                accounts::table
                    .filter(one_of_ids(accounts::customer_id, customers.iter().map(|customer| customer.as_uuid())))
                    .filter(accounts::organization_id.eq(Bound(organization.as_uuid())))
                    .order((accounts::customer_id, accounts::entity_ref, accounts::currency))
                    .select((
                        accounts::customer_id,
                        accounts::entity_ref,
                        accounts::currency,
                        accounts::unapplied_high,
                        accounts::unapplied_minor,
                    ))
            )?;
            for account in rows {
                let (key, sum) = read_unapplied(account)?;
                locked.insert(key, sum);
            }
        }
        locked.keys().try_for_each(|key| self.note_account(key))?;
        Ok(locked)
    }

    fn account_documents<'a>(
        &mut self,
        organization: OrganizationId,
        key: &AccountKey,
        which: DocumentsOf<'a>,
    ) -> StoreResult<Vec<BookDocument>> {
        let (customer, owner) = (Bound(key.customer_id.as_uuid()), Bound(organization.as_uuid()));
        let nodes = self.nodes_of([key.customer_id.as_uuid()]);
        macro_rules! of_account {
            () => {
                documents::table
                    .filter(documents::customer_id.eq(customer))
                    .filter(documents::entity_ref.eq(key.entity_ref.as_str()))
                    .filter(documents::currency.eq(key.currency.code()))
                    .filter(unindexed(documents::organization_id).eq(owner))
                    .select(WithParts::columns(&nodes))
            };
        }
        macro_rules! in_force {
            () => {
                documents::lifecycle.eq(ISSUED).or(documents::lifecycle.eq(UNCOLLECTIBLE))
            };
        }
        let rows: Vec<WithParts> = match which {
            DocumentsOf::These(refs) => {
                let ids: Vec<_> = refs.iter().map(|document| document.as_uuid()).collect();
                with_conn!(self, "documents", |conn| of_account!()
                    .filter(one_of_ids(documents::document_id, ids.clone()))
                    .load(conn))?
            }
            DocumentsOf::Families(families) => {
                let ids: Vec<_> = families.iter().map(|family| family.as_uuid()).collect();
                with_conn!(self, "documents", |conn| of_account!()
                    .filter(one_of_ids(documents::family_document_id, ids.clone()))
                    .filter(in_force!())
                    .load(conn))?
            }
            DocumentsOf::Unapplied => with_conn!(self, "documents", |conn| of_account!().filter(IsDocumentUnapplied).load(conn))?,
            DocumentsOf::All => with_conn!(self, "documents", |conn| of_account!().filter(in_force!()).load(conn))?,
            DocumentsOf::OpenUpTo(amount) => {
                let (mut found, mut sum): (Vec<WithParts>, i128) = (Vec::new(), 0);
                loop {
                    let offset = i64::try_from(found.len()).unwrap_or(i64::MAX);
                    let rows: Vec<(WithParts, Option<i64>)> = with_conn!(self, "documents", |conn| documents::table
                        .filter(documents::customer_id.eq(customer))
                        .filter(documents::entity_ref.eq(key.entity_ref.as_str()))
                        .filter(documents::currency.eq(key.currency.code()))
                        .filter(unindexed(documents::organization_id).eq(owner))
                        .filter(IsDue)
                        .order((documents::due_date, documents::document_id))
                        .limit(OPEN_AT_A_TIME)
                        .offset(offset)
                        .select((WithParts::columns(&nodes), documents::amount_due_minor))
                        .load(conn))?;
                    let is_last = i64::try_from(rows.len()).is_ok_and(|read| read < OPEN_AT_A_TIME);
                    for (document, due) in rows {
                        sum += i128::from(due.unwrap_or(0));
                        found.push(document);
                    }
                    if is_last || sum >= amount.minor() {
                        break found;
                    }
                }
            }
        };
        let mut read = rows.into_iter().map(WithParts::read_for_book).collect::<StoreResult<Vec<_>>>()?;
        read.sort_by_key(|document| (document.due_date, document.head.document_ref));
        Ok(read)
    }

    fn account_payments<'a>(
        &mut self,
        organization: OrganizationId,
        key: &AccountKey,
        which: PaymentsOf<'a>,
    ) -> StoreResult<Vec<Payment>> {
        let (customer, owner) = (Bound(key.customer_id.as_uuid()), Bound(organization.as_uuid()));
        let rows: Vec<PaymentRow> = with_conn!(self, "payments", |conn| {
            let of_account = || {
                payments::table
                    .filter(payments::customer_id.eq(customer))
                    .filter(payments::entity_ref.eq(key.entity_ref.as_str()))
                    .filter(payments::currency.eq(key.currency.code()))
                    .filter(unindexed(payments::organization_id).eq(owner))
                    .order(payments::payment_id)
                    .select(PaymentRow::as_select())
            };
            match which {
                PaymentsOf::These(refs) => {
                    let ids: Vec<_> = refs.iter().map(|payment| payment.as_uuid()).collect();
                    of_account().filter(one_of_ids(payments::payment_id, ids)).load(conn)
                }
                PaymentsOf::Document(document) => {
                    of_account().filter(payments::document_id.eq(Bound(document.as_uuid()))).load(conn)
                }
                PaymentsOf::Unapplied => of_account().filter(IsPaymentUnapplied).load(conn),
                PaymentsOf::All => of_account().load(conn),
            }
        })?;
        read_payments(rows)
    }

    fn account_applications<'a>(
        &mut self,
        organization: OrganizationId,
        key: &AccountKey,
        which: ApplicationsOf<'a>,
    ) -> StoreResult<Vec<Application>> {
        let (customer, owner) = (Bound(key.customer_id.as_uuid()), Bound(organization.as_uuid()));
        let rows: Vec<ApplicationRow> = with_conn!(self, "applications", |conn| {
            let of_account = || {
                applications::table
                    .filter(applications::customer_id.eq(customer))
                    .filter(applications::entity_ref.eq(key.entity_ref.as_str()))
                    .filter(applications::currency.eq(key.currency.code()))
                    .filter(applications::organization_id.eq(owner))
                    .filter(applications::undone_at.is_null())
                    .select(ApplicationRow::as_select())
            };
            match which {
                ApplicationsOf::These(refs) => {
                    let ids: Vec<_> = refs.iter().map(|application| application.as_uuid()).collect();
                    of_account().filter(one_of_ids(applications::application_id, ids)).load(conn)
                }
                ApplicationsOf::From(ApplicationSource::Credit(credit)) => {
                    of_account().filter(applications::from_document_id.eq(Bound(credit.as_uuid()))).load(conn)
                }
                ApplicationsOf::From(ApplicationSource::Payment(payment)) => {
                    of_account().filter(applications::from_payment_id.eq(Bound(payment.as_uuid()))).load(conn)
                }
                ApplicationsOf::All => of_account().load(conn),
            }
        })?;
        read_applications(rows)
    }

    fn put_account(
        &mut self,
        organization: OrganizationId,
        key: &AccountKey,
        entries: &[AccountEntry],
        unapplied: MoneySum,
        at: Timestamp,
    ) -> StoreResult<()> {
        self.require_account(key)?;
        for entry in entries {
            self.put_entry(organization, key, entry, at)?;
        }
        let id = (Bound(key.customer_id.as_uuid()), key.entity_ref.as_str(), key.currency.code());
        let (high, low) = unapplied_columns(unapplied)?;
        let changed = with_conn!(self, "accounts", |conn| diesel::update(accounts::table.find(id))
            .filter(accounts::organization_id.eq(Bound(organization.as_uuid())))
            .set((accounts::unapplied_high.eq(high), accounts::unapplied_minor.eq(low)))
            .execute(conn))?;
        self.require_changed(changed, || format!("accounts {}/{}", key.customer_id, key.entity_ref))
    }
}

impl Transaction<'_> {
    #[expect(clippy::too_many_lines, reason = "one arm for each entry")]
    fn put_entry(
        &mut self,
        organization: OrganizationId,
        key: &AccountKey,
        entry: &AccountEntry,
        at: Timestamp,
    ) -> StoreResult<()> {
        let (customer, owner) = (Bound(key.customer_id.as_uuid()), Bound(organization.as_uuid()));
        let (entity_ref, currency) = (key.entity_ref.as_str(), key.currency.code());
        match entry {
            AccountEntry::Recorded(payment) => self.insert_payment(organization, key, payment),
            AccountEntry::Reversed { payment_ref, reversal } => {
                let id = (Bound(payment_ref.as_uuid()), customer);
                let changed = with_conn!(self, "payments", |conn| diesel::update(payments::table.find(id))
                    .filter(payments::organization_id.eq(owner))
                    .set((
                        payments::reversed_on.eq(Bound(reversal.date)),
                        payments::reversal_reason.eq(reversal.reason.as_ref().map(OneLine::as_str)),
                        payments::reversed_at.eq(Bound(reversal.recorded_at)),
                        payments::reversed_by.eq(reversal.recorded_by.to_string()),
                        payments::updated_at.eq(Bound(at)),
                    ))
                    .execute(conn))?;
                self.require_changed(changed, || format!("payments {payment_ref}"))
            }
            AccountEntry::Used { payment_ref, used, unapplied } => {
                let id = (Bound(payment_ref.as_uuid()), customer);
                let changed = with_conn!(self, "payments", |conn| diesel::update(payments::table.find(id))
                    .filter(payments::organization_id.eq(owner))
                    .set((
                        payments::used_minor.eq(used.minor()),
                        payments::unapplied_minor.eq(unapplied.minor()),
                        payments::updated_at.eq(Bound(at)),
                    ))
                    .execute(conn))?;
                self.require_changed(changed, || format!("payments {payment_ref}"))
            }
            AccountEntry::Applied(application) => {
                let (from_document, from_payment) = source_ids(application.from);
                with_conn!(self, "applications", |conn| diesel::insert_into(applications::table)
                    .values((
                        applications::application_id.eq(Bound(application.application_ref.as_uuid())),
                        applications::customer_id.eq(customer),
                        applications::organization_id.eq(owner),
                        applications::entity_ref.eq(entity_ref),
                        applications::currency.eq(currency),
                        applications::from_document_id.eq(from_document.map(Bound)),
                        applications::from_payment_id.eq(from_payment.map(Bound)),
                        applications::to_document_id.eq(Bound(application.to.as_uuid())),
                        applications::amount_minor.eq(application.amount.minor()),
                        applications::applied_on.eq(Bound(application.date)),
                        applications::recorded_at.eq(Bound(application.recorded_at)),
                        applications::recorded_by.eq(application.recorded_by.to_string()),
                    ))
                    .execute(conn))?;
                Ok(())
            }
            AccountEntry::Unapplied { application_ref, at, by } => {
                let id = (Bound(application_ref.as_uuid()), customer);
                let changed = with_conn!(self, "applications", |conn| diesel::update(applications::table.find(id))
                    .filter(applications::organization_id.eq(owner))
                    .filter(applications::undone_at.is_null())
                    .set((applications::undone_at.eq(Bound(*at)), applications::undone_by.eq(by.to_string())))
                    .execute(conn))?;
                self.require_changed(changed, || format!("applications {application_ref}"))
            }
            AccountEntry::WrittenOff(write_off) => {
                with_conn!(self, "write_offs", |conn| diesel::insert_into(write_offs::table)
                    .values((
                        write_offs::write_off_id.eq(Bound(write_off.write_off_ref.as_uuid())),
                        write_offs::customer_id.eq(customer),
                        write_offs::organization_id.eq(owner),
                        write_offs::entity_ref.eq(entity_ref),
                        write_offs::currency.eq(currency),
                        write_offs::document_id.eq(Bound(write_off.document_ref.as_uuid())),
                        write_offs::amount_minor.eq(write_off.amount.minor()),
                        write_offs::written_off_on.eq(Bound(write_off.date)),
                        write_offs::reason.eq(write_off.reason.as_ref().map(OneLine::as_str)),
                        write_offs::recorded_at.eq(Bound(write_off.recorded_at)),
                        write_offs::recorded_by.eq(write_off.recorded_by.to_string()),
                    ))
                    .execute(conn))?;
                Ok(())
            }
            AccountEntry::Settled { document_ref, status, settlement, owed, before: _ } => {
                let id = (Bound(document_ref.as_uuid()), customer);
                let notified = i64::from(entry.is_notified());
                let settled = (
                    documents::paid_minor.eq(settlement.paid.minor()),
                    documents::credits_minor.eq(settlement.credits.minor()),
                    documents::used_minor.eq(settlement.used.minor()),
                    documents::paid_date.eq(settlement.paid_date.map(Bound)),
                    documents::amount_due_minor.eq(owed.amount_due.map(Money::minor)),
                    documents::unapplied_minor.eq(owed.unapplied.map(Money::minor)),
                    documents::updated_at.eq(Bound(at)),
                    documents::notification_count.eq(documents::notification_count + notified),
                );
                let lifecycle = match status {
                    LifecycleStatus::Issued => Some(ISSUED),
                    LifecycleStatus::Uncollectible => Some(UNCOLLECTIBLE),
                    LifecycleStatus::Draft | LifecycleStatus::Void | LifecycleStatus::Discarded => None,
                };
                let changed = with_conn!(self, "documents", |conn| {
                    let row = diesel::update(documents::table.find(id)).filter(documents::organization_id.eq(owner));
                    match lifecycle {
                        Some(lifecycle) => row.set((settled, documents::lifecycle.eq(lifecycle))).execute(conn),
                        None => row.set(settled).execute(conn),
                    }
                })?;
                self.require_changed(changed, || format!("documents {document_ref}"))
            }
        }
    }

    fn insert_payment(&mut self, organization: OrganizationId, key: &AccountKey, payment: &Payment) -> StoreResult<()> {
        let (kind, (of_document, of_payment)) = match payment.kind {
            PaymentKind::Payment => (PAYMENT, (None, None)),
            PaymentKind::Refund(source) => (REFUND, source_ids(source)),
        };
        let metadata = <Nullable<Json> as ColumnValue<Metadata>>::keep(&payment.metadata)?;
        let unapplied = match payment.kind {
            PaymentKind::Payment => payment.amount.minor(),
            PaymentKind::Refund(_) => 0,
        };
        with_conn!(self, "payments", |conn| diesel::insert_into(payments::table)
            .values((
                payments::payment_id.eq(Bound(payment.payment_ref.as_uuid())),
                payments::customer_id.eq(Bound(key.customer_id.as_uuid())),
                payments::organization_id.eq(Bound(organization.as_uuid())),
                payments::entity_ref.eq(key.entity_ref.as_str()),
                payments::currency.eq(key.currency.code()),
                payments::document_id.eq(payment.document_ref.map(|document| Bound(document.as_uuid()))),
                payments::kind.eq(kind),
                payments::of_document_id.eq(of_document.map(Bound)),
                payments::of_payment_id.eq(of_payment.map(Bound)),
                payments::amount_minor.eq(payment.amount.minor()),
                payments::used_minor.eq(0),
                payments::unapplied_minor.eq(unapplied),
                payments::paid_date.eq(Bound(payment.paid_date)),
                payments::reference.eq(payment.reference.as_ref().map(OneLine::as_str)),
                payments::method.eq(payment.method.as_ref().map(OneLine::as_str)),
                payments::metadata.eq(&metadata),
                payments::recorded_at.eq(Bound(payment.recorded_at)),
                payments::recorded_by.eq(payment.recorded_by.to_string()),
                payments::updated_at.eq(Bound(payment.updated_at)),
            ))
            .execute(conn))?;
        let subject = MetadataSubject::Payment(key.customer_id, payment.payment_ref);
        self.write_metadata(organization, subject, &Metadata::default(), &payment.metadata)
    }

    fn require_changed(&mut self, changed: usize, what: impl FnOnce() -> String) -> StoreResult<()> {
        if changed == 0 { self.refuse(format!("{}: not there to be settled", what())) } else { Ok(()) }
    }
}

/// An account with the two parts of its unapplied sum.
pub(super) type AccountRow = (Cell<Uuid>, String, String, i64, i64);

/// Returns an account with its unapplied sum.
pub(super) fn read_unapplied((customer_id, entity_ref, currency, high, low): AccountRow) -> StoreResult<(AccountKey, MoneySum)> {
    let row = Row::new("accounts", customer_id.clone());
    let key = key_of(CustomerId::from_uuid(row.cell("customer_id", customer_id)?), &entity_ref, &currency)?;
    let sum = unapplied_sum(&row, key.currency, high, low)?;
    Ok((key, sum))
}

/// Returns the identifier of a credit or a payment, each in its own column.
fn source_ids(source: ApplicationSource) -> (Option<uuid::Uuid>, Option<uuid::Uuid>) {
    match source {
        ApplicationSource::Credit(credit) => (Some(credit.as_uuid()), None),
        ApplicationSource::Payment(payment) => (None, Some(payment.as_uuid())),
    }
}
