//! Receivables: accounts, payments, applications and write-offs.

use billing_domain::access::Actor;
use billing_domain::audit::AuditedKind;
use billing_domain::document::{DocumentHead, DocumentKind, IssuedDocument, LifecycleStatus, Settlement};
use billing_domain::ledger::receivables::AccountEntry;
use billing_domain::metadata::Metadata;
use billing_domain::money::MoneySum;
use billing_domain::page::PageRequest;
use billing_domain::ports::{
    ApplicationsOf, DocumentsOf, Lock, ObjectKey, PaymentFilter, PaymentSortKey, PaymentsOf, Store, StoreError,
};
use billing_domain::receivables::{
    AccountKey, Application, ApplicationSource, Payment, PaymentKind, Reversal, StatementKind, WriteOff,
};
use billing_domain::refs::{ApplicationRef, CustomerId, DocumentRef, PaymentRef, WriteOffRef};
use uuid::Uuid;

use super::corrections::{adjustment, void_issued};
use super::*;
use crate::FreshIds;
use crate::Singly as _;
use crate::fixtures::{self, cents, date, sum_of_cents};

pub(super) fn key(w: &World) -> AccountKey {
    AccountKey { customer_id: w.customer.id, entity_ref: w.entity.entity_ref.clone(), currency: fixtures::eur() }
}

pub(super) fn put(store: &dyn Store, w: &World, entries: &[AccountEntry]) {
    write(store, |tx| {
        let unapplied = tx.hold_account(w.org, &key(w))?;
        tx.put_account(w.org, &key(w), entries, unapplied, later(1))
    });
}

fn payment(on: &DocumentHead, minor: i64) -> Payment {
    Payment {
        payment_ref: PaymentRef::from_uuid(Uuid::now_v7()),
        kind: PaymentKind::Payment,
        document_ref: Some(on.document_ref),
        amount: cents(minor),
        paid_date: date("2026-02-01"),
        reference: (minor % 2 == 0).then(|| fixtures::line("Wire ✓")),
        method: (minor % 3 == 0).then(|| fixtures::line("SEPA")),
        metadata: if minor % 2 == 0 { fixtures::metadata(&[("line", "4711")]) } else { Metadata::default() },
        used: cents(0),
        reversal: None,
        recorded_at: later(minor),
        recorded_by: Actor::Service,
        updated_at: later(minor),
    }
}

fn recorded(payment: &Payment) -> AccountEntry {
    AccountEntry::Recorded(Box::new(payment.clone()))
}

fn application(from: ApplicationSource, to: &DocumentHead, minor: i64) -> Application {
    Application {
        application_ref: ApplicationRef::from_uuid(Uuid::now_v7()),
        from,
        to: to.document_ref,
        amount: cents(minor),
        date: date("2026-02-03"),
        recorded_at: later(minor),
        recorded_by: Actor::Service,
    }
}

pub(super) fn settled(head: &DocumentHead, total: i64, status: LifecycleStatus, settlement: Settlement) -> AccountEntry {
    let owed = settlement.owed(head.kind, status, cents(total)).expect("small amounts");
    AccountEntry::Settled { document_ref: head.document_ref, status, settlement, owed, before: owed }
}

pub(super) fn none() -> Settlement {
    Settlement::none(fixtures::eur())
}

/// Issues a draft with a due date.
fn issue_due(store: &dyn Store, w: &World, head: DocumentHead, minor: i64, due: &str) -> DocumentHead {
    let head = w.open(store, head);
    let issued = IssuedDocument { due_date: date(due), ..w.frozen(&head, cents(minor)) };
    assert!(write(store, |tx| {
        tx.lock_contract(head.contract_key(w.org), Lock::Exclusive)?;
        tx.issue_document(head.key(w.org), &issued)
    }));
    head
}

fn documents(store: &dyn Store, w: &World, which: DocumentsOf<'_>) -> Vec<DocumentRef> {
    let found = read(store, |tx| tx.account_documents(w.org, &key(w), which));
    found.into_iter().map(|document| document.head.document_ref).collect()
}

/// Returns a sum that exceeds every single amount and has no zero part.
fn large() -> MoneySum {
    sum_of_cents(12_345_678_901_234_567_890_123)
}

pub fn an_account_begins_with_nothing_and_keeps_what_is_unapplied(store: &dyn Store) {
    let w = world(store);
    assert_eq!(read(store, |tx| tx.accounts(w.org, None)), []);
    assert_eq!(write(store, |tx| tx.hold_account(w.org, &key(&w))), sum_of_cents(0));
    write(store, |tx| {
        tx.hold_account(w.org, &key(&w))?;
        tx.put_account(w.org, &key(&w), &[], large(), later(1))
    });
    assert_eq!(write(store, |tx| tx.hold_account(w.org, &key(&w))), large());
    undo(store, |tx| {
        tx.hold_account(w.org, &key(&w))?;
        tx.put_account(w.org, &key(&w), &[], sum_of_cents(7), later(1))
    });
    let yen = AccountKey { currency: fixtures::currency("JPY"), ..key(&w) };
    let nothing = MoneySum::zero(yen.currency);
    assert_eq!(write(store, |tx| tx.hold_account(w.org, &yen)), nothing);
    let expected = vec![(key(&w), large()), (yen, nothing)];
    assert_eq!(read(store, |tx| tx.accounts(w.org, Some(&[w.customer.id]))), expected);
    assert_eq!(read(store, |tx| tx.accounts(w.org, None)), expected);
    assert_eq!(read(store, |tx| tx.accounts(w.org, Some(&[CustomerId::from_uuid(Uuid::now_v7())]))), []);
}

pub fn documents_of_an_account_are_found_by_what_is_left_of_them(store: &dyn Store) {
    let w = world(store);
    let open = w.issue(store, w.head(1), cents(1000));
    let paid = w.issue(store, w.head(2), cents(1000));
    let given_up = w.issue(store, w.head(3), cents(1000));
    let draft = w.open(store, w.head(4));
    let void = w.issue(store, w.head(5), cents(5));
    assert!(void_issued(store, &w, &void));
    let credit = w.issue(store, adjustment(&w, DocumentKind::Credit, &open, 6), cents(300));
    let used = w.issue(store, adjustment(&w, DocumentKind::Credit, &open, 7), cents(200));
    put(
        store,
        &w,
        &[
            settled(&open, 1000, LifecycleStatus::Issued, Settlement { credits: cents(200), ..none() }),
            settled(
                &paid,
                1000,
                LifecycleStatus::Issued,
                Settlement { paid: cents(1000), paid_date: Some(date("2026-02-03")), ..none() },
            ),
            settled(&given_up, 1000, LifecycleStatus::Uncollectible, none()),
            settled(&used, 200, LifecycleStatus::Issued, Settlement { used: cents(200), ..none() }),
        ],
    );
    let sorted = |heads: &[&DocumentHead]| {
        let mut refs: Vec<DocumentRef> = heads.iter().map(|head| head.document_ref).collect();
        refs.sort();
        refs
    };
    let found = |which: DocumentsOf<'_>| {
        let mut found = documents(store, &w, which);
        found.sort();
        found
    };
    assert_eq!(found(DocumentsOf::All), sorted(&[&open, &paid, &given_up, &credit, &used]));
    assert_eq!(found(DocumentsOf::OpenUpTo(sum_of_cents(1_000_000))), sorted(&[&open]));
    assert_eq!(found(DocumentsOf::Unapplied), sorted(&[&credit]));
    assert_eq!(found(DocumentsOf::Families(&[open.document_ref])), sorted(&[&open, &credit, &used]));
    assert_eq!(found(DocumentsOf::These(&[draft.document_ref, void.document_ref])), sorted(&[&draft, &void]));
    let of_book = read(store, |tx| tx.account_documents(w.org, &key(&w), DocumentsOf::These(&[given_up.document_ref])));
    let [known] = of_book.as_slice() else { panic!("one document: {of_book:?}") };
    assert_eq!((known.status, known.total), (LifecycleStatus::Uncollectible, Some(cents(1000))));
    let issued = w.frozen(&given_up, cents(1000));
    assert_eq!((known.issue_date, known.due_date), (Some(issued.issue_date), Some(issued.due_date)));
    // The write-off is reversed, then the document is voided.
    put(store, &w, &[settled(&given_up, 1000, LifecycleStatus::Issued, none())]);
    assert_eq!(found(DocumentsOf::OpenUpTo(sum_of_cents(1_000_000))), sorted(&[&open, &given_up]));
    assert!(void_issued(store, &w, &given_up));
    assert_eq!(found(DocumentsOf::OpenUpTo(sum_of_cents(1_000_000))), sorted(&[&open]));
}

pub fn open_documents_come_earliest_due_date_first_until_they_are_enough(store: &dyn Store) {
    let w = world(store);
    let late = issue_due(store, &w, w.head(1), 100, "2026-05-01");
    let early = issue_due(store, &w, w.head(2), 100, "2026-03-01");
    let middle = issue_due(store, &w, w.head(3), 100, "2026-04-01");
    let all: Vec<DocumentRef> = [&early, &middle, &late].iter().map(|head| head.document_ref).collect();
    assert_eq!(documents(store, &w, DocumentsOf::OpenUpTo(sum_of_cents(1_000))), all);
    let few = documents(store, &w, DocumentsOf::OpenUpTo(sum_of_cents(150)));
    assert!(few.len() >= 2 && all.starts_with(&few), "{few:?}");
}

pub fn payments_and_refunds_come_back_with_every_field(store: &dyn Store) {
    let w = world(store);
    let invoice = w.issue(store, w.head(1), cents(1000));
    let credit = w.issue(store, adjustment(&w, DocumentKind::Credit, &invoice, 1), cents(5));
    let (plain, full) = (payment(&invoice, 1), payment(&invoice, 600));
    let of_credit = Payment { kind: PaymentKind::Refund(ApplicationSource::Credit(credit.document_ref)), ..payment(&credit, 5) };
    let of_payment = Payment { kind: PaymentKind::Refund(ApplicationSource::Payment(full.payment_ref)), ..payment(&invoice, 7) };
    let deposited = Payment { document_ref: None, ..payment(&invoice, 8) };
    let of_deposit =
        Payment { kind: PaymentKind::Refund(ApplicationSource::Payment(deposited.payment_ref)), ..deposited.clone() };
    let of_deposit = Payment { payment_ref: PaymentRef::from_uuid(Uuid::now_v7()), amount: cents(3), ..of_deposit };
    let all = [&plain, &full, &of_credit, &of_payment, &deposited, &of_deposit];
    put(store, &w, &all.map(recorded));
    for kept in all {
        assert_eq!(read(store, |tx| tx.payment(w.org, kept.payment_ref)), Some((key(&w), kept.clone())));
    }
    let names = [(&deposited, w.customer.profile.name.to_string()), (&plain, invoice.number.to_string())];
    for (kept, name) in names {
        let named: ObjectKey = (AuditedKind::Payment, kept.payment_ref.to_string());
        let found = read(store, |tx| tx.object_names(w.org, &[named.clone()].into()));
        assert_eq!((&found[&named].name, &found[&named].customer_ref), (&name, &Some(w.customer.customer_ref.clone())));
    }
    let of_invoice = vec![plain.clone(), of_payment.clone(), full.clone()];
    assert_eq!(read(store, |tx| tx.payments_of_document(invoice.key(w.org))), of_invoice);
    let reversal = Reversal {
        date: date("2026-02-09"),
        reason: Some(fixtures::line("bounced")),
        recorded_at: later(9),
        recorded_by: Actor::Service,
    };
    let (payment_ref, used) = (full.payment_ref, cents(400));
    let entries = [
        AccountEntry::Reversed { payment_ref, reversal: reversal.clone() },
        AccountEntry::Used { payment_ref, used, unapplied: cents(0) },
    ];
    put(store, &w, &entries);
    // `put` saves all entries at the same instant.
    let expected = Payment { reversal: Some(reversal), used, updated_at: later(1), ..full };
    assert_eq!(read(store, |tx| tx.payment(w.org, payment_ref)), Some((key(&w), expected)));
    assert_eq!(read(store, |tx| tx.payment(w.org, PaymentRef::from_uuid(Uuid::now_v7()))), None);
    let unknown = [AccountEntry::Used { payment_ref: PaymentRef::from_uuid(Uuid::now_v7()), used, unapplied: cents(0) }];
    let answer = transact_answer(store, |tx| {
        tx.hold_account(w.org, &key(&w))?;
        tx.put_account(w.org, &key(&w), &unknown, sum_of_cents(0), later(1))
    });
    assert!(matches!(answer, Err(StoreError::Corrupt(_))), "{answer:?}");
}

pub fn payments_are_found_by_what_is_left_of_them(store: &dyn Store) {
    let w = world(store);
    let (invoice, other) = (w.issue(store, w.head(1), cents(1000)), w.issue(store, w.head(2), cents(1000)));
    let (left, gone) = (payment(&invoice, 600), payment(&other, 100));
    put(store, &w, &[recorded(&left), recorded(&gone)]);
    let used = |payment: &Payment, used, unapplied| AccountEntry::Used {
        payment_ref: payment.payment_ref,
        used: cents(used),
        unapplied: cents(unapplied),
    };
    put(store, &w, &[used(&left, 599, 1), used(&gone, 100, 0)]);
    let found = |which: PaymentsOf<'_>| -> Vec<PaymentRef> {
        read(store, |tx| tx.account_payments(w.org, &key(&w), which)).iter().map(|payment| payment.payment_ref).collect()
    };
    let mut both = vec![left.payment_ref, gone.payment_ref];
    both.sort();
    assert_eq!(found(PaymentsOf::All), both);
    assert_eq!(found(PaymentsOf::Unapplied), [left.payment_ref]);
    assert_eq!(found(PaymentsOf::Document(other.document_ref)), [gone.payment_ref]);
    assert_eq!(found(PaymentsOf::These(&[gone.payment_ref])), [gone.payment_ref]);
}

pub fn applications_come_and_go(store: &dyn Store) {
    let w = world(store);
    let invoice = w.issue(store, w.head(1), cents(1000));
    let credit = w.issue(store, adjustment(&w, DocumentKind::Credit, &invoice, 1), cents(50));
    let paid = payment(&invoice, 600);
    let of_credit = application(ApplicationSource::Credit(credit.document_ref), &invoice, 50);
    let of_payment = application(ApplicationSource::Payment(paid.payment_ref), &invoice, 600);
    let entries = [recorded(&paid), AccountEntry::Applied(of_credit.clone()), AccountEntry::Applied(of_payment.clone())];
    put(store, &w, &entries);
    let mut both = vec![of_credit.clone(), of_payment.clone()];
    both.sort_by_key(|application| application.application_ref);
    let found = |which: ApplicationsOf<'_>| read(store, |tx| tx.account_applications(w.org, &key(&w), which));
    assert_eq!(found(ApplicationsOf::All), both);
    assert_eq!(found(ApplicationsOf::From(of_credit.from)), std::slice::from_ref(&of_credit));
    assert_eq!(found(ApplicationsOf::These(&[of_payment.application_ref])), std::slice::from_ref(&of_payment));
    let around = |documents: &[DocumentRef], payments: &[PaymentRef]| {
        read(store, |tx| tx.applications_around(w.org, w.customer.id, documents, payments))
    };
    assert_eq!(around(&[invoice.document_ref], &[]), both);
    assert_eq!(around(&[credit.document_ref], &[]), std::slice::from_ref(&of_credit));
    assert_eq!(around(&[], &[paid.payment_ref]), std::slice::from_ref(&of_payment));
    assert_eq!(around(&[invoice.document_ref, credit.document_ref], &[paid.payment_ref]), both);
    assert_eq!(around(&[], &[]), []);
    let one = read(store, |tx| tx.application(w.org, of_credit.application_ref));
    assert_eq!(one, Some((key(&w), of_credit.clone())));
    let undone = AccountEntry::Unapplied { application_ref: of_credit.application_ref, at: later(9), by: Actor::Service };
    put(store, &w, std::slice::from_ref(&undone));
    assert_eq!(found(ApplicationsOf::All), std::slice::from_ref(&of_payment));
    assert_eq!(read(store, |tx| tx.application(w.org, of_credit.application_ref)), None);
    let again = transact_answer(store, |tx| {
        tx.hold_account(w.org, &key(&w))?;
        tx.put_account(w.org, &key(&w), std::slice::from_ref(&undone), sum_of_cents(0), later(1))
    });
    assert!(matches!(again, Err(StoreError::Corrupt(_))), "{again:?}");
}

pub(super) fn write_off(on: &DocumentHead, minor: i64, day: &str) -> AccountEntry {
    AccountEntry::WrittenOff(WriteOff {
        write_off_ref: WriteOffRef::from_uuid(Uuid::now_v7()),
        document_ref: on.document_ref,
        amount: cents(minor),
        date: date(day),
        reason: (minor > 0).then(|| fixtures::line("gone")),
        recorded_at: later(100 + minor.clamp(-1_000, 1_000)),
        recorded_by: Actor::Service,
    })
}

pub fn what_is_written_off_adds_up(store: &dyn Store) {
    let w = world(store);
    let invoice = w.issue(store, w.head(1), cents(1000));
    assert_eq!(read(store, |tx| tx.written_off(w.org, &[w.customer.id])), []);
    put(store, &w, &[write_off(&invoice, 1000, "2026-03-01"), write_off(&invoice, -300, "2026-03-02")]);
    assert_eq!(read(store, |tx| tx.written_off(w.org, &[w.customer.id])), [(key(&w), sum_of_cents(700))]);
    let reported = read(store, |tx| tx.write_offs_of(w.org, w.customer.id, &[invoice.document_ref]));
    let reported: Vec<_> = reported
        .iter()
        .map(|reported| (reported.amount, reported.date, reported.reason.is_some(), reported.recorded_by))
        .collect();
    let lessened = (cents(-300), date("2026-03-02"), false, Actor::Service);
    assert_eq!(reported, [lessened, (cents(1000), date("2026-03-01"), true, Actor::Service)], "as they were recorded");
    assert_eq!(read(store, |tx| tx.write_offs_of(w.org, w.customer.id, &[w.head(2).document_ref])), []);
    let most = write_off(&invoice, i64::MAX, "2026-03-03");
    put(store, &w, &[most, write_off(&invoice, i64::MAX, "2026-03-04")]);
    assert_eq!(
        read(store, |tx| tx.written_off(w.org, &[w.customer.id])),
        [(key(&w), sum_of_cents(700 + 2 * i128::from(i64::MAX)))]
    );
}

pub fn what_is_due_is_summed_up_by_day(store: &dyn Store) {
    let w = world(store);
    for (number, minor, due) in [(1, 100, "2026-03-01"), (2, 20, "2026-03-01"), (3, 3, "2026-04-01")] {
        issue_due(store, &w, w.head(number), minor, due);
    }
    let paid = w.issue(store, w.head(4), cents(1000));
    put(store, &w, &[settled(&paid, 1000, LifecycleStatus::Issued, Settlement { paid: cents(1000), ..none() })]);
    let expected = [(key(&w), date("2026-03-01"), sum_of_cents(120)), (key(&w), date("2026-04-01"), sum_of_cents(3))];
    assert_eq!(read(store, |tx| tx.due_by_day(w.org, &[w.customer.id])), expected);
    let others = [CustomerId::from_uuid(Uuid::now_v7()), w.customer.id];
    assert_eq!(read(store, |tx| tx.due_by_day(w.org, &others)), expected);
    assert_eq!(read(store, |tx| tx.due_by_day(w.org, &[])), []);
    issue_due(store, &w, w.head(5), i64::MAX, "2026-04-01");
    issue_due(store, &w, w.head(6), i64::MAX, "2026-04-01");
    let large = (key(&w), date("2026-04-01"), sum_of_cents(3 + 2 * i128::from(i64::MAX)));
    assert_eq!(read(store, |tx| tx.due_by_day(w.org, &[w.customer.id])), [expected[0].clone(), large]);
}

pub fn a_statement_has_everything_that_changed_what_is_owed(store: &dyn Store) {
    let w = world(store);
    let invoice = w.issue(store, DocumentHead { created_at: later(1), ..w.head(1) }, cents(1000));
    let debit = DocumentHead { created_at: later(2), ..adjustment(&w, DocumentKind::Debit, &invoice, 2) };
    w.issue(store, debit, cents(20));
    let credit = DocumentHead { created_at: later(3), ..adjustment(&w, DocumentKind::Credit, &invoice, 3) };
    let credit = w.issue(store, credit, cents(5));
    w.open(store, w.head(4));
    let void = DocumentHead { created_at: later(4), ..adjustment(&w, DocumentKind::Debit, &invoice, 5) };
    let void = w.issue(store, void, cents(7));
    assert!(void_issued(store, &w, &void));
    let discarded = w.open(store, w.head(6));
    w.void(store, &discarded);
    let paid = Payment { recorded_at: later(40), ..payment(&invoice, 600) };
    let refund = Payment {
        kind: PaymentKind::Refund(ApplicationSource::Credit(credit.document_ref)),
        recorded_at: later(50),
        paid_date: date("2026-02-02"),
        ..payment(&credit, 5)
    };
    let reversal = Reversal { date: date("2026-02-09"), reason: None, recorded_at: later(60), recorded_by: Actor::Service };
    let reversed = |payment: &Payment| AccountEntry::Reversed { payment_ref: payment.payment_ref, reversal: reversal.clone() };
    let deposit = Payment { document_ref: None, recorded_at: later(55), ..payment(&invoice, 40) };
    let recorded = [recorded(&paid), recorded(&refund), recorded(&deposit)];
    let reversed = [reversed(&paid), reversed(&deposit)];
    put(store, &w, &[&recorded[..], &reversed, &[write_off(&invoice, 900, "2026-02-10")]].concat());
    let found = read(store, |tx| tx.statement_entries(w.org, w.customer.id, None));
    let of_deposit: Vec<_> = found.iter().filter(|entry| entry.payment_ref == Some(deposit.payment_ref)).collect();
    assert_eq!(of_deposit.len(), 2);
    assert!(of_deposit.iter().all(|entry| entry.document.is_none() && entry.reference == deposit.reference), "{of_deposit:?}");
    let others = found.iter().filter(|entry| entry.payment_ref != Some(deposit.payment_ref));
    assert!(others.clone().count() > 0 && others.clone().all(|entry| entry.document.is_some()));
    let entries = |to: Option<&str>| -> Vec<(StatementKind, i64)> {
        let found = read(store, |tx| tx.statement_entries(w.org, w.customer.id, to.map(date)));
        found.into_iter().map(|entry| (entry.kind, entry.amount.minor())).collect()
    };
    let all = [
        (StatementKind::Invoice, 1000),
        (StatementKind::Debit, 20),
        (StatementKind::Credit, -5),
        (StatementKind::Debit, 7),
        (StatementKind::Payment, -600),
        (StatementKind::Refund, 5),
        (StatementKind::Payment, -40),
        (StatementKind::Void, -7),
        (StatementKind::Reversal, 40),
        (StatementKind::Reversal, 600),
        (StatementKind::WriteOff, -900),
    ];
    assert_eq!(entries(None), all);
    assert_eq!(entries(Some("2026-02-08")), all[..7]);
    assert_eq!(entries(Some("2026-02-11")), [&all[..7], &all[8..]].concat(), "a void has a day of its own");
    assert_eq!(entries(Some("2026-01-01")), []);
}

pub fn payments_are_listed_as_they_were_recorded(store: &dyn Store) {
    let w = world(store);
    let (invoice, other) = (w.issue(store, w.head(1), cents(1000)), w.issue(store, w.head(2), cents(1000)));
    let later_one = Payment { paid_date: date("2026-01-31"), ..payment(&invoice, 9) };
    let (first, second) = (payment(&other, 2), payment(&invoice, 4));
    put(store, &w, &[recorded(&later_one), recorded(&second), recorded(&first)]);
    let list = |filter: PaymentFilter| -> Vec<PaymentRef> {
        let page = read(store, |tx| tx.payments(w.org, &filter, PaymentSortKey::Created, PageRequest::LARGEST));
        assert_eq!(page.total, page.items.len() as u64);
        page.items.into_iter().map(|(_, payment)| payment.payment_ref).collect()
    };
    let all = PaymentFilter::default;
    assert_eq!(list(all()), [first.payment_ref, second.payment_ref, later_one.payment_ref]);
    assert_eq!(list(PaymentFilter { customer_id: Some(w.customer.id), ..all() }).len(), 3);
    assert_eq!(list(PaymentFilter { customer_id: Some(CustomerId::from_uuid(Uuid::now_v7())), ..all() }), []);
    assert_eq!(list(PaymentFilter { document_ref: Some(other.document_ref), ..all() }), [first.payment_ref]);
    assert_eq!(list(PaymentFilter { from: Some(date("2026-02-01")), ..all() }), [first.payment_ref, second.payment_ref]);
    assert_eq!(list(PaymentFilter { to: Some(date("2026-01-31")), ..all() }), [later_one.payment_ref]);
    let by_reference = PaymentFilter { reference: Some(fixtures::line("Wire ✓")), ..all() };
    assert_eq!(list(by_reference), [first.payment_ref, second.payment_ref]);
    assert_eq!(list(PaymentFilter { deposits: true, ..all() }), []);
    let deposit = Payment { document_ref: None, ..payment(&invoice, 10) };
    let other_customer = write(store, |tx| {
        let customer = fixtures::customer(&FreshIds, "payer");
        done(tx.insert_customer(w.org, &customer))?;
        let key = AccountKey { customer_id: customer.id, ..key(&w) };
        tx.hold_account(w.org, &key)?;
        tx.put_account(w.org, &key, &[recorded(&deposit)], sum_of_cents(10), later(1))?;
        Ok(customer.id)
    });
    assert_eq!(list(PaymentFilter { deposits: true, ..all() }), [deposit.payment_ref]);
    assert_eq!(list(PaymentFilter { customer_id: Some(other_customer), ..all() }), [deposit.payment_ref]);
    let all = || PaymentFilter { customer_id: Some(w.customer.id), ..PaymentFilter::default() };
    let page = read(store, |tx| tx.payments(w.org, &all(), PaymentSortKey::Created, PageRequest::new(2, 1).expect("a page")));
    assert_eq!((page.total, page.items.len()), (3, 1));
    let by_date = read(store, |tx| tx.payments(w.org, &all(), PaymentSortKey::PaidDate, PageRequest::LARGEST));
    let refs = by_date.items.iter().map(|(_, payment)| payment.payment_ref);
    assert!(refs.eq([later_one.payment_ref, first.payment_ref, second.payment_ref]), "equals come by reference");
    for by in [PaymentSortKey::Created, PaymentSortKey::PaidDate] {
        reads_backward(|page| read(store, |tx| tx.payments(w.org, &all(), by, page)));
    }
}

pub fn another_organization_or_account_has_none_of_it(store: &dyn Store) {
    let (w, stranger) = (world(store), world(store));
    let invoice = w.issue(store, w.head(1), cents(1000));
    let paid = payment(&invoice, 600);
    let applied = application(ApplicationSource::Payment(paid.payment_ref), &invoice, 600);
    put(store, &w, &[recorded(&paid), AccountEntry::Applied(applied.clone()), write_off(&invoice, 1, "2026-03-01")]);
    let yen = AccountKey { currency: fixtures::currency("JPY"), ..key(&w) };
    let customer = w.customer.id;
    read(store, |tx| {
        for (org, key) in [(stranger.org, key(&w)), (w.org, yen.clone()), (w.org, key(&stranger))] {
            assert_eq!(tx.account_documents(org, &key, DocumentsOf::All)?, []);
            assert_eq!(tx.account_documents(org, &key, DocumentsOf::OpenUpTo(sum_of_cents(1)))?, []);
            assert_eq!(tx.account_documents(org, &key, DocumentsOf::These(&[invoice.document_ref]))?, []);
            assert_eq!(tx.account_payments(org, &key, PaymentsOf::All)?, []);
            assert_eq!(tx.account_applications(org, &key, ApplicationsOf::All)?, []);
        }
        assert_eq!(tx.payment(stranger.org, paid.payment_ref)?, None);
        assert_eq!(tx.application(stranger.org, applied.application_ref)?, None);
        assert_eq!(tx.payments_of_document(invoice.key(stranger.org))?, []);
        assert_eq!(tx.applications_around(stranger.org, customer, &[invoice.document_ref], &[paid.payment_ref])?, []);
        assert_eq!(
            tx.payments(stranger.org, &PaymentFilter::default(), PaymentSortKey::Created, PageRequest::LARGEST)?.items,
            []
        );
        assert_eq!(tx.write_offs_of(stranger.org, customer, &[invoice.document_ref])?, []);
        assert_eq!(tx.accounts(stranger.org, Some(&[customer]))?, []);
        assert_eq!(tx.due_by_day(stranger.org, &[customer])?, []);
        assert_eq!(tx.written_off(stranger.org, &[customer])?, []);
        assert_eq!(tx.statement_entries(stranger.org, customer, None)?, []);
        Ok(())
    });
    let used = AccountEntry::Used { payment_ref: paid.payment_ref, used: cents(1), unapplied: cents(0) };
    for entry in [used, settled(&invoice, 1000, LifecycleStatus::Issued, none())] {
        let answer = transact_answer(store, |tx| {
            tx.hold_account(stranger.org, &key(&stranger))?;
            tx.put_account(stranger.org, &key(&stranger), std::slice::from_ref(&entry), sum_of_cents(0), later(1))
        });
        assert!(matches!(answer, Err(StoreError::Corrupt(_))), "{answer:?}");
    }
}
