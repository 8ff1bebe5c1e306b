//! Section 9.

use billing_application::UseCase;
use billing_application::balances::{balance, customer_statement};
use billing_application::documents::{
    DepositAccount, SourceRef, payments_of_document, record_deposit, refund, reverse_payment, write_off,
};
use billing_domain::contract::amendment::CancelAt;
use billing_domain::contract::schedule::{BillingCycle, CycleUnit};
use billing_domain::contract::terms::PaymentTime;
use billing_domain::ledger::receivables::NewPayment;
use billing_domain::metadata::Metadata;
use billing_domain::refs::{DocumentRef, PaymentRef};
use billing_testkit::fixtures::{self, fixed, per_unit, requested};

use crate::books::Books;
use crate::documented_examples::page::Page;
use crate::support::{read, run};

fn facts(amount: &str) -> NewPayment {
    NewPayment { amount: amount.to_owned(), paid_date: None, reference: None, method: None, metadata: Metadata::default() }
}

/// Returns the entries of the only account: day, kind, document, amount and balance.
fn statement(books: &Books) -> String {
    let acme = fixtures::customer_ref("acme");
    let statements = read(&books.bench.services, &books.bench.principal, UseCase::GetStatement, |cx| {
        customer_statement(cx, &acme, None, None)
    })
    .expect("a statement");
    let lines = statements.iter().flat_map(|statement| &statement.lines).map(|line| {
        let entry = &line.entry;
        let kind = format!("{:?}", entry.kind).to_uppercase();
        // An entry of a deposit has no document.
        let number = entry.document.as_ref().map(|(_, number)| format!("{number} ")).unwrap_or_default();
        let (amount, balance) = (entry.amount.to_decimal(), line.balance.to_decimal());
        format!("{} {kind} {number}{amount}, balance {balance}", entry.date)
    });
    lines.collect::<Vec<_>>().join("\n")
}

fn payment(books: &Books, document: DocumentRef) -> PaymentRef {
    let payments =
        read(&books.bench.services, &books.bench.principal, UseCase::ListPayments, |cx| payments_of_document(cx, document))
            .expect("payments");
    payments.first().expect("a payment").payment.payment_ref
}

pub(crate) fn example_9_1_a_credit_settles_the_debit_it_takes_back(page: &mut Page) {
    let books = Books::at("2026-01-20T12:00:00Z");
    let api = books.pricing("api", vec![fixed("fee", "49.00"), per_unit("calls", "0.01")]);
    books.contract(vec![requested(&api, "2026-01-01", "2026-12-31")]);
    books.bill("2026-02-01T02:00:00Z");
    books.clock("2026-02-05T12:00:00Z");
    let late = books.calls("2026-01-25T12:00:00Z", "60000");
    books.bill("2026-02-06T12:00:00Z");
    books.delete(late);
    books.bill("2026-02-07T12:00:00Z");
    page.shows(&books.documents());
    let acme = fixtures::customer_ref("acme");
    let owed =
        read(&books.bench.services, &books.bench.principal, UseCase::GetBalance, |cx| balance(cx, &acme)).expect("a balance");
    page.says(&format!("**{}** is due", owed[0].due.to_decimal()));
}

pub(crate) fn example_9_2_what_is_given_back_pays_what_comes_next(page: &mut Page) {
    let books = Books::at("2026-01-01T12:00:00Z");
    let (year, month) =
        (books.pricing("year", vec![fixed("fee", "1200.00")]), books.pricing("month", vec![fixed("fee", "150.00")]));
    let mut product = requested(&year, "2026-01-01", "2026-12-31");
    product.payment_time = Some(PaymentTime::BeforeUse);
    product.billing_cycle = Some(BillingCycle::new(CycleUnit::Yearly, 1).expect("a cycle"));
    let contract = books.contract(vec![product]);
    books.bill("2026-01-01T12:00:00Z");
    books.pay("UB-INV-1", "1200.00").expect("a payment");
    books.contract(vec![requested(&month, "2026-06-01", "2026-07-31")]);
    books.clock("2026-07-02T12:00:00Z");
    books.cancel(contract, CancelAt::Day(fixtures::date("2026-06-30")));
    books.bill("2026-07-02T12:00:00Z");
    page.shows(&books.documents());
    let credit = books.reference("UB-CRD-1");
    let source = SourceRef { document_ref: credit, payment_ref: PaymentRef::from_uuid(credit.as_uuid()) };
    run(&books.bench.services, &books.bench.principal, UseCase::Refund, |cx| refund(cx, source, &facts("454.93")))
        .expect("a refund");
    page.shows(&statement(&books));
}

pub(crate) fn example_9_3_a_payment_that_bounces_is_owed_again(page: &mut Page) {
    let books = Books::at("2026-01-20T12:00:00Z");
    let api = books.pricing("api", vec![fixed("fee", "49.00")]);
    books.contract(vec![requested(&api, "2026-01-01", "2026-01-31")]);
    books.bill("2026-02-01T02:00:00Z");
    books.pay("UB-INV-1", "49.00").expect("a payment");
    books.clock("2026-05-01T12:00:00Z");
    let paid = payment(&books, books.reference("UB-INV-1"));
    run(&books.bench.services, &books.bench.principal, UseCase::ReversePayment, |cx| reverse_payment(cx, paid, None, None))
        .expect("a reversal");
    page.shows(&books.documents());
    page.shows(&statement(&books));
}

pub(crate) fn example_9_4_what_was_given_up_on_is_paid_in_part(page: &mut Page) {
    let books = Books::at("2026-01-20T12:00:00Z");
    let api = books.pricing("api", vec![fixed("fee", "100.00")]);
    books.contract(vec![requested(&api, "2026-01-01", "2026-01-31")]);
    books.bill("2026-02-01T02:00:00Z");
    let (services, principal) = (&books.bench.services, &books.bench.principal);
    let invoice = books.reference("UB-INV-1");
    run(services, principal, UseCase::WriteOff, |cx| write_off(cx, invoice, None, false)).expect("a write-off");
    books.pay("UB-INV-1", "40.00").expect("a payment");
    page.shows(&books.documents());
    page.shows(&statement(&books));
}

pub(crate) fn example_9_5_a_deposit_pays_what_is_due_and_the_next_invoice(page: &mut Page) {
    let books = Books::at("2026-01-20T12:00:00Z");
    let api = books.pricing("api", vec![fixed("fee", "100.00")]);
    books.contract(vec![requested(&api, "2026-01-01", "2026-02-28")]);
    books.bill("2026-02-01T02:00:00Z");
    books.clock("2026-02-15T12:00:00Z");
    let (services, principal) = (&books.bench.services, &books.bench.principal);
    let (acme, account) = (fixtures::customer_ref("acme"), DepositAccount { entity_ref: None, currency: fixtures::eur() });
    run(services, principal, UseCase::RecordDeposit, |cx| record_deposit(cx, &acme, &account, &facts("250.00")))
        .expect("a deposit");
    books.bill("2026-03-01T02:00:00Z");
    page.shows(&books.documents());
    page.shows(&statement(&books));
}
