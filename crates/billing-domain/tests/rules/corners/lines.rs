//! Tests of what a line says about its amount and about the documents that bill the rest of its price (billing rules 10).

use std::collections::BTreeMap;

use billing_domain::contract::terms::PaymentTime;
use billing_domain::document::calculation::LineCalculation;
use billing_domain::document::lines::{DocumentLedgerLine, DocumentLine, FamilySums};
use billing_domain::document::numbering::DocumentNumber;
use billing_domain::document::{BookDocument, DocumentHead, DocumentKind, LifecycleStatus, Purpose, Settlement};
use billing_domain::ledger::{BookRows, ContractBook, Extent, issue};
use billing_domain::money::Money;
use billing_domain::party::NetTerms;
use billing_domain::simulate::{Bill, Simulation, charge, flat, item, per_unit, pricing, terms};
use billing_testkit::{CountingIds, fixtures};
use fixtures::{cents, date, eur};
use uuid::Uuid;

use super::book::{at, code};

/// Returns the bill at the end of a day.
#[track_caller]
fn bill(simulation: &Simulation, day: &str) -> Bill {
    simulation.until(day).unwrap_or_else(|refusal| panic!("{refusal}: {refusal:?}"))
}

#[track_caller]
fn line_of(bill: &Bill, document: &str, line: &str) -> (DocumentKind, DocumentLine) {
    let document = bill.document(document);
    (document.kind(), document.line(line).details().clone())
}

/// Returns the amount and the printed steps of a line, whose factors must give the amount.
#[track_caller]
fn printed(bill: &Bill, document: &str, name: &str) -> (String, Vec<String>) {
    let (kind, line) = line_of(bill, document, name);
    line.check(kind).expect("the factors give the amount");
    let steps = line.calculation.as_deref().map(|of: &LineCalculation| of.steps(line.amount.currency())).unwrap_or_default();
    (line.amount.to_decimal().to_string(), steps.iter().map(|step| step.in_english("")).collect())
}

/// Returns a contract with calls at 1.00 for 2027. The 100 calls of January are invoiced on 1 February.
fn hundred_calls() -> Simulation {
    let contract = terms("2027-01-01", "2027-12-31").pricing("plan").usage("calls", per_unit("1"));
    Simulation::new().contract(contract).event("2027-01-10", "calls", 100).named("first")
}

/// The minimum of 80.00 is billed by a debit that isn't opened yet. The documents of the event make 20.00 − 10.00 − 10.00.
#[test]
fn a_line_names_only_documents_that_make_the_amount() {
    let contract = terms("2027-01-01", "2027-12-31")
        .usage("calls", per_unit("1").included(30).at_least("80"))
        .payment_time(PaymentTime::BeforeUse)
        .net_terms(NetTerms::DueUponUsage);
    let mut story = Simulation::new().contract(contract).event("2027-01-05", "calls", 50).named("event");
    for (day, quantity) in [("2027-01-06", 40), ("2027-01-07", 10), ("2027-01-08", 5)] {
        story = story.on(day).update_event("event", |event| event.quantity(quantity));
    }
    let bill = bill(&story, "2027-01-10");
    let expected = [
        "5, 30 included, 0 billed",
        "0 × 1 = 0",
        "minimum 80: 80.00",
        "now 80.00, billed on UB-INV-2, UB-CRD-1, UB-CRD-2 0.00, on documents not issued yet 80.00, difference 0.00",
    ];
    assert_eq!(printed(&bill, "UB-DBT-1", "calls"), ("0.00".to_owned(), expected.map(str::to_owned).to_vec()));
}

/// 100.00 are invoiced, an open credit has −40.00, and 110 calls now cost 220.00.
#[test]
fn an_issued_document_names_issued_documents_alone() {
    let open = hundred_calls().on("2027-02-10").update_event("first", |event| event.quantity(60)).on("2027-02-10").event(
        "2027-01-11",
        "calls",
        50,
    );
    let drafts = bill(&open, "2027-02-10");
    let now = |text: &str| printed(&drafts, text, "calls").1.pop().expect("a step");
    assert_eq!(
        now("UB-DBT-1"),
        "now 110.00, billed on UB-INV-1 100.00, on documents not issued yet (UB-CRD-1) -40.00, difference 50.00"
    );
    assert_eq!(
        now("UB-CRD-1"),
        "now 110.00, billed on UB-INV-1 100.00, on documents not issued yet (UB-DBT-1) 50.00, difference -40.00"
    );

    let doubled = open.on("2027-02-10").edit(|contract| {
        let plan = contract.effective_from("2027-01-01");
        plan.product("plan", |plan| plan.line_item(item("calls").price(per_unit("2"))))
    });
    let edited = bill(&doubled, "2027-02-10");
    let debit = (
        "160.00".to_owned(),
        vec![
            "110 × 2 = 220".to_owned(),
            "now 220.00, billed on UB-INV-1 100.00, on documents not issued yet -40.00, difference 160.00".to_owned(),
        ],
    );
    assert_eq!(printed(&edited, "UB-DBT-1", "calls"), debit);
    let later = bill(&doubled, "2027-02-12");
    assert_eq!(printed(&later, "UB-DBT-1", "calls"), debit, "the line stays as it was issued");
    let credit = "now 220.00, billed on UB-INV-1, UB-DBT-1 260.00, difference -40.00";
    assert_eq!(printed(&later, "UB-CRD-1", "calls"), ("40.00".to_owned(), vec!["110 × 2 = 220".to_owned(), credit.to_owned()]));
}

/// The invoice of the period lists the usage of its children, too.
#[test]
fn the_quantity_of_a_child_is_counted_once_when_its_invoice_is_issued() {
    let contract = terms("2027-01-01", "2027-12-31").usage("calls", per_unit("1")).net_terms(NetTerms::DueUponUsage);
    let story = Simulation::new().contract(contract).event("2027-01-10", "calls", 30).event("2027-01-12", "calls", 20);
    let story = story.named("last").late_event("2027-01-12", "calls", 5, "2027-02-10");
    let story = story.on("2027-02-11").update_event("last", |event| event.quantity(10));
    let billed = bill(&story, "2027-02-12");
    let quantity = |document: &str| {
        let (_, line) = line_of(&billed, document, "calls");
        let previously = line.calculation.and_then(|calculation| calculation.previously).expect("other documents");
        (previously.quantity.map(|quantity| quantity.to_string()), previously.amount.to_decimal().to_string())
    };
    assert_eq!(quantity("UB-INV-1"), (Some("50".to_owned()), "50.00".to_owned()));
    assert_eq!(quantity("UB-INV-4"), (Some("50".to_owned()), "50.00".to_owned()));
    assert_eq!(quantity("UB-CRD-1"), (Some("55".to_owned()), "55.00".to_owned()));
}

#[test]
fn a_line_of_usage_that_an_edit_corrects_has_its_usage_product() {
    let story = hundred_calls().on("2027-02-10").edit(|contract| {
        let plan = contract.effective_from("2027-01-01");
        plan.product("plan", |plan| plan.line_item(item("calls").price(per_unit("3"))))
    });
    let (_, line) = line_of(&bill(&story, "2027-02-10"), "UB-DBT-1", "calls");
    let usage = line.usage.expect("a line of usage");
    assert_eq!((usage.usage_product_ref.as_str(), usage.quantity.to_string().as_str()), ("calls", "0"));
    assert_eq!(
        line.calculation.and_then(|calculation| calculation.usage_quantity).map(|of| of.to_string()),
        Some("100".to_owned())
    );
}

/// A charge of 1 × −150.00 in an issued period.
#[test]
fn a_credit_prints_the_price_of_a_negative_charge_above_zero() {
    let contract = terms("2027-01-01", "2027-12-31").fixed("fee", "200").usage("calls", per_unit("1"));
    let story = Simulation::new()
        .contract(contract)
        .event("2027-01-10", "calls", 40)
        .named("calls")
        .on("2027-02-10")
        .charge(charge("back", "2027-01-20", "-150"));
    let credited = bill(&story, "2027-02-11");
    assert_eq!(printed(&credited, "UB-CRD-1", "charge:back"), ("150.00".to_owned(), vec!["1 × 150 = 150".to_owned()]));
    let (_, line) = line_of(&credited, "UB-CRD-1", "charge:back");
    let unit_price = line.calculation.and_then(|calculation| calculation.unit_price).map(|price| price.as_decimal().to_string());
    assert_eq!(unit_price.as_deref(), Some("150"));

    // Elsewhere it is below zero, and so is a difference to what a credit has given back.
    let on_invoice = story.clone().on("2027-02-12").charge(charge("more", "2027-02-12", "-50"));
    assert_eq!(printed(&bill(&on_invoice, "2027-03-02"), "UB-INV-2", "charge:more").1, ["1 × -50 = -50"]);
    let lessened = story.clone().on("2027-02-12").edit_charge("back", |charge| charge.unit_price("-100"));
    let expected = ["1 × -100 = -100", "now -100.00, billed on UB-CRD-1 -150.00, difference 50.00"];
    assert_eq!(printed(&bill(&lessened, "2027-02-13"), "UB-DBT-1", "charge:back").1, expected);
}

/// A charge below zero takes at most what its period costs: 100.00 of 150.00. A credit replaces the debit of the usage.
#[test]
fn a_credit_prints_the_cap_of_a_negative_charge_above_zero() {
    let contract = terms("2027-01-01", "2027-12-31").fixed("fee", "100").usage("calls", per_unit("1"));
    let story = Simulation::new()
        .contract(contract.payment_time(PaymentTime::BeforeUse))
        .event("2027-01-10", "calls", 50)
        .named("calls")
        .on("2027-01-20")
        .charge(charge("back", "2027-01-20", "-150"))
        .on("2027-01-21")
        .update_event("calls", |event| event.quantity(0));
    let credited = bill(&story, "2027-02-02");
    let expected = ("100.00".to_owned(), vec!["1 × 150 = 150".to_owned(), "maximum 100.00: 100.00".to_owned()]);
    assert_eq!(printed(&credited, "UB-CRD-1", "charge:back"), expected);
}

/// The lines of the period make 1,550.00 without the fee. The set-up and the charge don't count.
#[test]
fn a_minimum_fee_prints_what_it_does_not_count() {
    let plan = pricing("plan").fixed("base", "1300").fixed("set-up", flat("250").once()).minimum_fee("1900");
    let contract = terms("2027-01-03", "2027-12-31").pricing("plan");
    let story = Simulation::new().pricing(plan).contract(contract).on("2027-01-10").charge(charge("help", "2027-01-10", "50"));
    let billed = bill(&story, "2027-02-02");
    // 1,900.00 for 29 of 31 days are 1,777.42, and 1,300.00 are 1,216.13.
    let expected = "minimum fee 1900, 29 of 31 days − 1216.13 counted = 561.29, not counted: set-up 250.00, help 50.00";
    assert_eq!(printed(&billed, "UB-INV-1", "minimum fee"), ("561.29".to_owned(), vec![expected.to_owned()]));
    let sum = billed.document("UB-INV-1").content.sub_total.to_decimal().to_string();
    assert_eq!(sum, "2077.42", "1,216.13 + 250.00 + 50.00 + 561.29");
}

/// An open debit bills 10.00 of a fee of 100.00 that its invoice bills whole. No decision makes such a document.
#[test]
fn a_document_whose_lines_are_not_explained_waits_alone() {
    let ids = CountingIds::default();
    let (entity, customer) = (fixtures::entity("main"), fixtures::customer(&ids, "acme"));
    let plan = fixtures::pricing("plan", vec![fixtures::fixed("base", "100")]);
    let contract = fixtures::contract(&ids, &customer, vec![fixtures::agreed(&plan, "2027-01-01", "2027-12-31")]);
    let january = fixtures::period("2027-01-01", "2027-01-31");
    let invoice = fixtures::document_head(&ids, &contract, &entity, january);
    let debit = DocumentHead {
        number: DocumentNumber { kind: DocumentKind::Debit, ..invoice.number.clone() },
        kind: DocumentKind::Debit,
        purpose: Purpose::Adjustment,
        parent: Some(invoice.document_ref),
        number_in_contract: 2,
        ..fixtures::document_head(&ids, &contract, &entity, january)
    };
    let (invoice_ref, debit_ref) = (invoice.document_ref, debit.document_ref);
    let line = |head: &DocumentHead, minor| {
        let mut lines = fixtures::one_line_content(head, &contract, cents(minor)).ledger_lines();
        DocumentLedgerLine {
            document_ref: head.document_ref,
            family: invoice_ref,
            number: head.number.clone(),
            converted_tax: None,
            line: lines.pop().expect("a line"),
        }
    };
    let document = |head: DocumentHead, issued: Option<Money>| BookDocument {
        family: invoice_ref,
        status: if issued.is_some() { LifecycleStatus::Issued } else { LifecycleStatus::Draft },
        total: issued,
        issue_date: issued.map(|_| date("2027-02-01")),
        due_date: issued.map(|_| date("2027-02-01")),
        settlement: Settlement::none(eur()),
        updated_at: head.created_at,
        notifications: 1,
        head,
    };
    let mut sums = FamilySums::default();
    let content = fixtures::one_line_content(&invoice, &contract, cents(10_000));
    content.add_to(&mut sums, DocumentKind::Invoice, 1).expect("a small amount");
    let rows = BookRows {
        lines: vec![line(&invoice, 10_000), line(&debit, 1_000)],
        documents: vec![document(invoice, Some(cents(10_000))), document(debit, None)],
        sums: BTreeMap::from([(invoice_ref, sums)]),
        ..BookRows::default()
    };
    let book = ContractBook::new(contract, customer, vec![entity]).with_rows(Extent::Whole, rows).expect("small amounts");
    let (now, mut last) = (at("2027-03-02"), 1_000);
    let mut ids = || {
        last += 1;
        Uuid::from_u128(last)
    };
    let mut run = book.clone();
    let report = issue::issue_due(&mut run, now, usize::MAX, &mut ids).expect("a run");
    let failed: Vec<_> = report.failed.iter().map(|failed| (failed.document_ref, failed.refusal.conflict_code())).collect();
    assert_eq!(failed, [(Some(debit_ref), Some("calculation_mismatch"))]);
    assert_eq!(report.outcomes.len(), 1, "the invoice of February is issued");
    assert_eq!(run.document(debit_ref).map(|debit| debit.status), Some(LifecycleStatus::Draft));
    // Only issuing the document by hand is refused.
    let refused = issue::issue(&mut book.clone(), debit_ref, now, &mut ids).expect_err("a line that is not explained");
    assert_eq!(code(&refused), "calculation_mismatch");
    assert!(refused.to_string().contains("line base is wrong: it is of 10.00 EUR, but its factors give 0.00 EUR"), "{refused}");
    assert!(book.draft_content(debit_ref).is_ok(), "the draft can be read");
}
