//! Tests of documents that cannot be issued. They block nothing else (billing rules 2).

use billing_domain::contract::terms::PaymentTime;
use billing_domain::party::NetTerms;
use billing_domain::patch::Patch;
use billing_domain::tax::TaxCategory;
use billing_testkit::fixtures::{currency, fixed, per_unit, percent, pricing};

use super::book::{Book, Setup, code, element, from, treatment, treatment_patch};

/// Returns a setup whose entity `main` reports tax in PLN, without an exchange rate.
fn polish() -> Setup {
    Setup::new().entity("main", |main| main.profile.paper.tax_currency = Some(currency("PLN")))
}

fn plan() -> billing_domain::catalog::Pricing {
    pricing("plan", vec![fixed("fee", "100"), per_unit("calls", "1")])
}

fn upon_usage() -> Book {
    polish().product(plan(), |product| product.net_terms = Some(NetTerms::DueUponUsage)).create("2027-01-01")
}

/// Timing of documents (billing rules 2): a document that cannot be issued is not opened or numbered. It blocks no
/// other document of the contract.
#[test]
fn a_document_that_cannot_be_issued_stops_no_other() {
    let mut book = polish()
        .entity("other", |_| {})
        .product(pricing("blocked", vec![fixed("fee", "100")]), |_| {})
        .product(pricing("free", vec![fixed("fee", "50")]), |product| {
            product.entity_ref = Some(billing_testkit::fixtures::entity_ref("other"));
        })
        .create("2027-01-01");
    book.try_run("2027-04-02").expect("a run");
    let expected = ["OTHER-INV-1 50.00 ISSUED", "OTHER-INV-2 50.00 ISSUED", "OTHER-INV-3 50.00 ISSUED"];
    assert_eq!(book.documents(), expected);
    book.try_run("2027-04-03").expect("a run that tries again");
    assert_eq!(book.documents(), expected);
    book.post_exchange_rate("PLN", "2027-01-01", "4.30");
    book.run("2027-04-04");
    assert_eq!(book.documents()[3..], ["INV-1 100.00 ISSUED", "INV-2 100.00 ISSUED", "INV-3 100.00 ISSUED"]);
}

/// Timing of documents (billing rules 2): the child is opened and counted. It stays a draft until a run can issue it.
#[test]
fn an_event_due_upon_usage_is_taken_though_its_paper_waits() {
    let mut book = upon_usage();
    book.go_to("2027-01-10");
    book.try_event("calls", "2027-01-10", "3").expect("an event");
    assert_eq!(book.documents(), ["INV-1 100.00 DRAFT", "INV-2 3.00 DRAFT of INV-1"]);
    book.try_run("2027-01-11").expect("a run");
    assert_eq!(book.documents(), ["INV-1 100.00 DRAFT", "INV-2 3.00 DRAFT of INV-1"]);
    let refusal = book.issue("INV-2").expect_err("an issue by hand");
    assert_eq!(code(&refusal), "exchange_rate_missing");
    book.post_exchange_rate("PLN", "2027-01-01", "4.30");
    book.run("2027-01-12");
    assert_eq!(book.documents(), ["INV-1 100.00 DRAFT", "INV-2 3.00 ISSUED of INV-1"]);
}

/// Timing of documents (billing rules 2): a change of its event re-rates a draft child. A deletion makes the child
/// VOID, without a CREDIT.
#[test]
fn a_draft_child_follows_its_event() {
    let mut book = upon_usage();
    book.go_to("2027-01-10");
    let event = book.try_event("calls", "2027-01-10", "3").expect("an event");
    let other = book.try_event("calls", "2027-01-10", "4").expect("an event");
    book.update_event(event, None, Some("2")).expect("an update");
    assert_eq!(book.documents(), ["INV-1 100.00 DRAFT", "INV-2 2.00 DRAFT of INV-1", "INV-3 4.00 DRAFT of INV-1"]);
    book.delete_event(event).expect("a deletion");
    assert_eq!(book.documents(), ["INV-1 100.00 DRAFT", "INV-2 VOID of INV-1", "INV-3 4.00 DRAFT of INV-1"]);
    book.delete_event(other).expect("a deletion");
    book.post_exchange_rate("PLN", "2027-01-01", "4.30");
    book.run("2027-02-01");
    assert_eq!(book.documents(), ["INV-1 100.00 ISSUED", "INV-2 VOID of INV-1", "INV-3 VOID of INV-1"]);
}

/// Timing of documents (billing rules 2): a cancel, charge, edit or resume is not refused because a document lacks
/// information.
#[test]
fn no_change_of_a_contract_is_refused_for_a_paper() {
    let mut book = polish().product(plan(), |_| {}).create("2027-01-01");
    book.go_to("2027-04-02");
    book.charge("more", "2027-03-10", "10", true).expect("a charge");
    book.edit(from("2027-01-01"), vec![element("plan", |plan| plan.tax = Patch::Set(percent("10")))]).expect("an edit");
    book.cancel_on("2027-04-02").expect("a cancel");
    book.resume().expect("a resume");
    book.cancel_on("2027-03-31").expect("a cancel");
    book.try_run("2027-04-03").expect("a run");
    assert_eq!(book.owed(), "0.00", "{}", book.dump());
    book.post_exchange_rate("PLN", "2027-01-01", "4.30");
    book.run("2027-04-04");
    // (100.00 × 3 + 10.00) × 1.10
    assert_eq!(book.owed(), "341.00", "{}", book.dump());
}

/// Timing of documents (billing rules 2): corrections of an issued document are not refused either. They wait as
/// drafts.
#[test]
fn a_correction_whose_paper_lacks_something_waits() {
    let mut book = Setup::new()
        .product(plan(), |product| product.payment_time = Some(PaymentTime::DuringUse))
        .create("2027-01-01T00:00:00Z");
    book.run("2027-01-01").go_to("2027-01-10");
    book.edit_entity("main", |main| main.paper.tax_currency = Some(currency("PLN")));
    book.cancel_on("2027-01-15").expect("a cancel");
    // 100.00 × 16 ÷ 31 for the days after the last day.
    assert_eq!(book.documents(), ["INV-1 100.00 ISSUED", "CRD-1 51.61 DRAFT of INV-1"]);
    book.try_run("2027-01-16").expect("a run");
    assert_eq!(book.documents(), ["INV-1 100.00 ISSUED", "CRD-1 51.61 DRAFT of INV-1"]);
    book.post_exchange_rate("PLN", "2027-01-01", "4.30");
    book.run("2027-01-17");
    assert_eq!(book.documents(), ["INV-1 100.00 ISSUED", "CRD-1 51.61 ISSUED of INV-1"]);
}

/// Timing of documents (billing rules 2): a CREDIT and the DEBIT beside it wait for each other. The DEBIT has no
/// category at 0 %.
#[test]
fn a_credit_waits_for_the_debit_beside_it() {
    let mut book = Setup::new()
        .strict()
        .product(plan(), |product| {
            product.tax = Some(percent("0"));
            product.treatment = treatment(TaxCategory::Ae);
        })
        .create("2027-01-01");
    book.run("2027-02-01").go_to("2027-02-05");
    let none = billing_domain::contract::amendment::TaxTreatmentPatch {
        category: Patch::Clear,
        exemption_code: Patch::Clear,
        exemption_reason: Patch::Clear,
    };
    book.edit(from("2027-01-01"), vec![element("plan", |plan| plan.treatment = none)]).expect("an edit");
    book.try_run("2027-02-06").expect("a run");
    assert_eq!(book.owed(), "100.00");
    let drafts = ["CRD-1 100.00 DRAFT of INV-1", "DBT-1 100.00 DRAFT of INV-1"];
    assert_eq!(book.documents()[1..], drafts);
    let zero_rated = element("plan", |plan| plan.treatment = treatment_patch(TaxCategory::Z));
    book.edit(from("2027-01-01"), vec![zero_rated]).expect("an edit");
    book.try_run("2027-02-07").expect("a run");
    assert_eq!(book.owed(), "100.00", "{}", book.dump());
    assert!(!book.documents()[1..3].iter().any(|document| document.contains("DRAFT")), "{}", book.dump());
}

/// Rules 2: a child that waits is issued with the days of its period at its issue. The contract ends on 10 January.
#[test]
fn a_waiting_child_is_issued_with_the_period_in_force() {
    let mut book = polish()
        .product(pricing("plan", vec![per_unit("calls", "1")]), |product| product.net_terms = Some(NetTerms::DueUponUsage))
        .create("2027-01-01");
    book.go_to("2027-01-05").event("2027-01-05", "3");
    assert_eq!(book.days_of("INV-2"), ["2027-01-01…2027-01-31"; 2]);
    book.go_to("2027-01-10").cancel_on("2027-01-10").expect("a cancel");
    assert_eq!(book.days_of("INV-2"), ["2027-01-01…2027-01-10"; 2], "the draft shows it, too");
    book.go_to("2027-01-15").post_exchange_rate("PLN", "2027-01-01", "4.30");
    book.run("2027-01-16");
    assert_eq!(book.documents().last().map(String::as_str), Some("INV-2 3.00 ISSUED of INV-1"));
    assert_eq!(book.days_of("INV-2"), ["2027-01-01…2027-01-10"; 2]);
}
