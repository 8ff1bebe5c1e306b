//! What is owed: accounts, payments, applications, write-offs.

use std::collections::{BTreeMap, BTreeSet};

use billing_domain::account::{AccountKey, Application, Payment, PaymentKind, Source, StatementEntry, StatementKind, WriteOff};
use billing_domain::calendar::{Date, Timestamp};
use billing_domain::document::{BookDocument, Document, DocumentKind, Lifecycle, Standing};
use billing_domain::ledger::receive::AccountEntry;
use billing_domain::money::{Money, MoneySum};
use billing_domain::page::{Page, PageRequest};
use billing_domain::ports::{
    Accounts, ApplicationsOf, Balances, DocumentsOf, PaymentFilter, PaymentSortKey, Payments, PaymentsOf, StoreError, StoreResult,
};
use billing_domain::refs::{ApplicationRef, CustomerId, DocumentKey, DocumentRef, OrganizationId, PaymentRef};

use super::{MemoryTx, corrupt, page, sorted};

/// A row of an account.
#[derive(Clone, PartialEq)]
pub(super) struct OfAccount<T> {
    pub(super) key: AccountKey,
    pub(super) row: T,
}

/// An application, and whether it was taken back.
#[derive(Clone, PartialEq)]
pub(super) struct KeptApplication {
    pub(super) application: Application,
    pub(super) is_undone: bool,
}

impl Accounts for MemoryTx {
    fn hold_accounts(
        &mut self,
        organization: OrganizationId,
        keys: &BTreeSet<AccountKey>,
    ) -> StoreResult<BTreeMap<AccountKey, MoneySum>> {
        let mut held = BTreeMap::new();
        for key in keys {
            self.held.account(organization, key)?;
            let unapplied = self.state.accounts.entry((organization, key.clone())).or_insert(MoneySum::zero(key.currency));
            held.insert(key.clone(), *unapplied);
        }
        Ok(held)
    }

    fn account_documents<'a>(
        &mut self,
        organization: OrganizationId,
        key: &AccountKey,
        which: DocumentsOf<'a>,
    ) -> StoreResult<Vec<BookDocument>> {
        let mut documents = self.known_to_book(organization, |row| of_account(row, key));
        documents.sort_by_key(|document| (document.due_date, document.head.document_ref));
        let owed = |document: &BookDocument| document.owed().ok();
        match which {
            DocumentsOf::These(refs) => documents.retain(|document| refs.contains(&document.head.document_ref)),
            DocumentsOf::Families(families) => {
                documents.retain(|document| families.contains(&document.family) && document.standing.is_issued());
            }
            DocumentsOf::Unapplied => {
                documents.retain(|document| owed(document).and_then(|owed| owed.unapplied).is_some_and(|left| left.minor() > 0));
            }
            DocumentsOf::OpenUpTo(_) => documents.retain(|document| {
                document.standing.is_issued()
                    && owed(document).and_then(|owed| owed.amount_due).is_some_and(|due| due.minor() > 0)
            }),
            DocumentsOf::All => documents.retain(|document| document.standing.is_issued()),
        }
        Ok(documents)
    }

    fn account_payments<'a>(
        &mut self,
        organization: OrganizationId,
        key: &AccountKey,
        which: PaymentsOf<'a>,
    ) -> StoreResult<Vec<Payment>> {
        let payments = self.state.payments.of(organization).filter(|kept| kept.key == *key).map(|kept| &kept.row);
        let payments = payments.filter(|payment| match which {
            PaymentsOf::These(refs) => refs.contains(&payment.payment_ref),
            PaymentsOf::Document(document_ref) => payment.document_ref == document_ref,
            PaymentsOf::Unapplied => payment.unapplied().is_ok_and(|left| left.minor() > 0),
            PaymentsOf::All => true,
        });
        Ok(sorted(payments, |payment| payment.payment_ref))
    }

    fn account_applications<'a>(
        &mut self,
        organization: OrganizationId,
        key: &AccountKey,
        which: ApplicationsOf<'a>,
    ) -> StoreResult<Vec<Application>> {
        let applications = self.live(organization).filter(|kept| kept.key == *key).map(|kept| &kept.row.application);
        let applications = applications.filter(|application| match which {
            ApplicationsOf::These(refs) => refs.contains(&application.application_ref),
            ApplicationsOf::From(source) => application.from == source,
            ApplicationsOf::All => true,
        });
        Ok(sorted(applications, |application| application.application_ref))
    }

    fn put_account(
        &mut self,
        organization: OrganizationId,
        key: &AccountKey,
        entries: &[AccountEntry],
        unapplied: MoneySum,
        at: Timestamp,
    ) -> StoreResult<()> {
        self.held.need_account(organization, key)?;
        for entry in entries {
            self.put_entry(organization, key, entry, at)?;
        }
        self.state.accounts.insert((organization, key.clone()), unapplied);
        Ok(())
    }
}

impl Payments for MemoryTx {
    fn payment(&mut self, organization: OrganizationId, payment_ref: PaymentRef) -> StoreResult<Option<(AccountKey, Payment)>> {
        let mut payments = self.state.payments.of(organization);
        let found = payments.find(|kept| kept.row.payment_ref == payment_ref);
        Ok(found.map(|kept| (kept.key.clone(), kept.row.clone())))
    }

    fn application(
        &mut self,
        organization: OrganizationId,
        application_ref: ApplicationRef,
    ) -> StoreResult<Option<(AccountKey, Application)>> {
        let found = self.live(organization).find(|kept| kept.row.application.application_ref == application_ref);
        Ok(found.map(|kept| (kept.key.clone(), kept.row.application.clone())))
    }

    fn payments(
        &mut self,
        organization: OrganizationId,
        filter: &PaymentFilter,
        by: PaymentSortKey,
        request: PageRequest,
    ) -> StoreResult<Page<(AccountKey, Payment)>> {
        let passes = |kept: &&OfAccount<Payment>| {
            let payment = &kept.row;
            filter.customer_id.is_none_or(|wanted| wanted == kept.key.customer_id)
                && filter.document_ref.is_none_or(|wanted| wanted == payment.document_ref)
                && filter.reference.as_ref().is_none_or(|wanted| payment.reference.as_ref() == Some(wanted))
                && filter.from.is_none_or(|from| from <= payment.paid_date)
                && filter.to.is_none_or(|to| payment.paid_date <= to)
        };
        let of_account = |kept: &OfAccount<Payment>| (kept.key.clone(), kept.row.clone());
        let passed: Vec<(AccountKey, Payment)> = self.state.payments.of(organization).filter(passes).map(of_account).collect();
        Ok(match by {
            PaymentSortKey::Created => page(passed.iter(), request, |(_, payment)| by_recording(payment)),
            PaymentSortKey::PaidDate => page(passed.iter(), request, |(_, payment)| (payment.paid_date, payment.payment_ref)),
        })
    }

    fn payments_of_document(&mut self, key: DocumentKey) -> StoreResult<Vec<Payment>> {
        let payments = self.state.payments.of(key.organization).filter(|kept| kept.key.customer_id == key.customer);
        let payments = payments.map(|kept| &kept.row).filter(|payment| payment.document_ref == key.document);
        Ok(sorted(payments, by_recording))
    }

    fn applications_around(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        documents: &[DocumentRef],
        payments: &[PaymentRef],
    ) -> StoreResult<Vec<Application>> {
        let applications = self.live(organization).filter(|kept| kept.key.customer_id == customer_id);
        let applications = applications.map(|kept| &kept.row.application).filter(|application| {
            let is_from = match application.from {
                Source::Credit(credit) => documents.contains(&credit),
                Source::Payment(payment) => payments.contains(&payment),
            };
            is_from || documents.contains(&application.to)
        });
        Ok(sorted(applications, |application| application.application_ref))
    }

    fn write_offs_of(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        documents: &[DocumentRef],
    ) -> StoreResult<Vec<WriteOff>> {
        let write_offs = self.state.write_offs.of(organization).filter(|kept| kept.key.customer_id == customer_id);
        let write_offs = write_offs.map(|kept| &kept.row).filter(|write_off| documents.contains(&write_off.document_ref));
        Ok(sorted(write_offs, |write_off| (write_off.recorded_at, write_off.write_off_ref)))
    }
}

impl Balances for MemoryTx {
    fn accounts(
        &mut self,
        organization: OrganizationId,
        customer_id: Option<CustomerId>,
    ) -> StoreResult<Vec<(AccountKey, MoneySum)>> {
        let of_organization = self.state.accounts.iter().filter(|((owner, _), _)| *owner == organization);
        let accounts = of_organization.map(|((_, key), unapplied)| (key.clone(), *unapplied));
        Ok(accounts.filter(|(key, _)| customer_id.is_none_or(|wanted| wanted == key.customer_id)).collect())
    }

    fn due_by_day(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
    ) -> StoreResult<Vec<(AccountKey, Date, MoneySum)>> {
        let mut sums: BTreeMap<(AccountKey, Date), MoneySum> = BTreeMap::new();
        for document in self.known_to_book(organization, |row| row.head.customer_id == customer_id) {
            let due = document.owed().ok().and_then(|owed| owed.amount_due).filter(|due| due.minor() > 0);
            if let Some((amount, due_date)) = due.zip(document.due_date) {
                let sum = sums.entry((AccountKey::of(&document), due_date)).or_insert(MoneySum::zero(amount.currency()));
                *sum = added(*sum, amount)?;
            }
        }
        Ok(sums.into_iter().map(|((key, due_date), amount)| (key, due_date, amount)).collect())
    }

    fn written_off(&mut self, organization: OrganizationId, customer_id: CustomerId) -> StoreResult<Vec<(AccountKey, MoneySum)>> {
        let mut sums: BTreeMap<AccountKey, MoneySum> = BTreeMap::new();
        for kept in self.state.write_offs.of(organization).filter(|kept| kept.key.customer_id == customer_id) {
            let sum = sums.entry(kept.key.clone()).or_insert(MoneySum::zero(kept.key.currency));
            *sum = added(*sum, kept.row.amount)?;
        }
        Ok(sums.into_iter().collect())
    }

    fn statement_entries(
        &mut self,
        organization: OrganizationId,
        customer_id: CustomerId,
        to: Option<Date>,
    ) -> StoreResult<Vec<StatementEntry>> {
        let documents = self.known_to_book(organization, |row| row.head.customer_id == customer_id);
        let number = |document_ref: DocumentRef| {
            let found = documents.iter().find(|document| document.head.document_ref == document_ref);
            found.map(|document| document.head.number.clone()).ok_or_else(|| corrupt("a payment of no document"))
        };
        let mut entries: Vec<(Timestamp, StatementEntry)> = Vec::new();
        for document in &documents {
            let head = &document.head;
            let (Some(date), Some(total)) = (document.issue_date, document.total) else { continue };
            let (kind, amount) = match head.kind {
                DocumentKind::Invoice => (StatementKind::Invoice, total),
                DocumentKind::Debit => (StatementKind::Debit, total),
                DocumentKind::Credit => (StatementKind::Credit, negative(total)?),
            };
            let (document_ref, document_number) = (head.document_ref, head.number.clone());
            let entity_ref = head.entity_ref.clone();
            let entry = StatementEntry { entity_ref, date, kind, document_ref, document_number, payment_ref: None, amount };
            if let Some((at, on)) = self.state.voided.get(&head.document_ref) {
                let (kind, amount) = (StatementKind::Void, negative(amount)?);
                entries.push((*at, StatementEntry { date: *on, kind, amount, ..entry.clone() }));
            }
            entries.push((head.created_at, entry));
        }
        for OfAccount { key, row: payment } in
            self.state.payments.of(organization).filter(|kept| kept.key.customer_id == customer_id)
        {
            let (kind, amount) = match payment.kind {
                PaymentKind::Payment => (StatementKind::Payment, negative(payment.amount)?),
                PaymentKind::Refund(_) => (StatementKind::Refund, payment.amount),
            };
            let entry = StatementEntry {
                entity_ref: key.entity_ref.clone(),
                date: payment.paid_date,
                kind,
                document_ref: payment.document_ref,
                document_number: number(payment.document_ref)?,
                payment_ref: Some(payment.payment_ref),
                amount,
            };
            if let Some(reversal) = &payment.reversal {
                let (kind, amount) = (StatementKind::Reversal, negative(amount)?);
                entries.push((reversal.recorded_at, StatementEntry { date: reversal.date, kind, amount, ..entry.clone() }));
            }
            entries.push((payment.recorded_at, entry));
        }
        for OfAccount { key, row: write_off } in
            self.state.write_offs.of(organization).filter(|kept| kept.key.customer_id == customer_id)
        {
            let entry = StatementEntry {
                entity_ref: key.entity_ref.clone(),
                date: write_off.date,
                kind: StatementKind::WriteOff,
                document_ref: write_off.document_ref,
                document_number: number(write_off.document_ref)?,
                payment_ref: None,
                amount: negative(write_off.amount)?,
            };
            entries.push((write_off.recorded_at, entry));
        }
        entries.retain(|(_, entry)| to.is_none_or(|to| entry.date <= to));
        entries.sort_by_key(|(recorded_at, entry)| (*recorded_at, entry.kind, entry.document_ref, entry.payment_ref));
        Ok(entries.into_iter().map(|(_, entry)| entry).collect())
    }
}

impl MemoryTx {
    /// Applications that weren't taken back.
    fn live(&self, organization: OrganizationId) -> impl Iterator<Item = &OfAccount<KeptApplication>> {
        self.state.applications.of(organization).filter(|kept| !kept.row.is_undone)
    }

    fn kept_payment(&mut self, organization: OrganizationId, payment_ref: PaymentRef) -> StoreResult<&mut Payment> {
        let mut payments = self.state.payments.of_mut(organization).map(|kept| &mut kept.row);
        payments.find(|payment| payment.payment_ref == payment_ref).ok_or_else(|| missing(&payment_ref))
    }

    fn put_entry(
        &mut self,
        organization: OrganizationId,
        key: &AccountKey,
        entry: &AccountEntry,
        at: Timestamp,
    ) -> StoreResult<()> {
        match entry {
            AccountEntry::Recorded(payment) => {
                self.state.payments.push(organization, OfAccount { key: key.clone(), row: (**payment).clone() });
            }
            AccountEntry::Reversed { payment_ref, reversal } => {
                self.kept_payment(organization, *payment_ref)?.reversal = Some(reversal.clone());
            }
            AccountEntry::Used { payment_ref, used, .. } => self.kept_payment(organization, *payment_ref)?.used = *used,
            AccountEntry::Applied(application) => {
                let row = KeptApplication { application: application.clone(), is_undone: false };
                self.state.applications.push(organization, OfAccount { key: key.clone(), row });
            }
            AccountEntry::Unapplied { application_ref, .. } => {
                let mut applications = self.state.applications.of_mut(organization).map(|kept| &mut kept.row);
                let found = applications.find(|kept| kept.application.application_ref == *application_ref && !kept.is_undone);
                found.ok_or_else(|| missing(application_ref))?.is_undone = true;
            }
            AccountEntry::WrittenOff(write_off) => {
                let row: WriteOff = write_off.clone();
                self.state.write_offs.push(organization, OfAccount { key: key.clone(), row });
            }
            AccountEntry::Settled { document_ref, standing, settlement, .. } => {
                let is_it = |row: &&mut Document| row.head.document_ref == *document_ref && of_account(row, key);
                let document = self.state.documents.of_mut(organization).find(is_it);
                let document = document.ok_or_else(|| missing(document_ref))?;
                document.settlement = *settlement;
                document.lifecycle = match (std::mem::replace(&mut document.lifecycle, Lifecycle::Draft), standing) {
                    (Lifecycle::Issued(issued), Standing::Uncollectible) => Lifecycle::Uncollectible(issued),
                    (Lifecycle::Uncollectible(issued), Standing::Issued) => Lifecycle::Issued(issued),
                    (lifecycle, _) => lifecycle,
                };
                self.note_update(*document_ref, at);
            }
        }
        Ok(())
    }
}

fn of_account(row: &Document, key: &AccountKey) -> bool {
    let head = &row.head;
    head.customer_id == key.customer_id && head.entity_ref == key.entity_ref && head.currency == key.currency
}

fn by_recording(payment: &Payment) -> (Timestamp, PaymentRef) {
    (payment.recorded_at, payment.payment_ref)
}

fn missing(what: &impl std::fmt::Display) -> StoreError {
    corrupt(format!("{what} is not there to be settled"))
}

fn added(sum: MoneySum, amount: Money) -> StoreResult<MoneySum> {
    sum.checked_add(amount).map_err(|_| corrupt("a sum of amounts is out of range"))
}

fn negative(amount: Money) -> StoreResult<Money> {
    Money::zero(amount.currency()).checked_sub(amount).map_err(|_| corrupt("an amount is out of range"))
}
