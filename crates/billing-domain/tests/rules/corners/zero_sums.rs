//! Tests of periods whose documents in force sum to zero: something is issued all the same (billing rules 3, 7).

use billing_domain::catalog::Pricing;
use billing_domain::contract::amendment::ProductPatch;
use billing_domain::contract::schedule::{BillingCycle, CycleUnit};
use billing_domain::contract::terms::{PaymentTime, RequestedProduct};
use billing_domain::party::NetTerms;
use billing_domain::patch::Patch;
use billing_domain::refusal::Refusal;
use billing_testkit::fixtures::{currency, date, entity_ref, per_unit, percent, pricing};

use super::book::{Book, Setup, code, element, from};

type Change = fn(&mut ProductPatch);

fn plan(unit_price: &str) -> Pricing {
    pricing("plan", vec![per_unit("calls", unit_price)])
}

fn yearly_upon_usage(product: &mut RequestedProduct) {
    product.net_terms = Some(NetTerms::DueUponUsage);
    product.billing_cycle = BillingCycle::new(CycleUnit::Yearly, 1);
}

/// Returns a yearly contract with a child of 50.00 and its credit of 50.00.
fn credited_child() -> Book {
    let mut book = Setup::new().entity("b", |_| {}).product(plan("1"), yearly_upon_usage).create("2027-01-01");
    book.go_to("2027-01-10");
    let event = book.event("2027-01-10", "50");
    book.update_event(event, None, Some("0")).expect("an update");
    book.run("2027-01-11").go_to("2027-01-12");
    assert_eq!(book.documents()[1..], ["INV-2 50.00 ISSUED of INV-1", "CRD-1 50.00 ISSUED of INV-2"]);
    book
}

fn edit(book: &mut Book, change: impl FnOnce(&mut ProductPatch)) -> Result<(), Refusal> {
    book.edit(from("2027-01-01"), vec![element("plan", change)])
}

/// Rules 7: the structure of documents cannot change from a period in which documents are issued, although they sum to zero.
#[test]
fn documents_that_sum_to_zero_forbid_another_structure() {
    let changes: [(&str, Change); 4] = [
        ("entity", |plan| plan.entity_ref = Patch::Set(entity_ref("b"))),
        ("cycle", |plan| plan.billing_cycle = Patch::Set(BillingCycle::default())),
        ("payment time", |plan| plan.payment_time = Patch::Set(PaymentTime::DuringUse)),
        ("issue day", |plan| plan.issue_day = Patch::Set(date("2027-06-01"))),
    ];
    for (what, change) in changes {
        let refusal = edit(&mut credited_child(), change).expect_err(what);
        assert_eq!(code(&refusal), "not_retroactive", "{what}");
        assert!(refusal.to_string().contains("INV-2 bills the period from 2027-01-01 already"), "{what}: {refusal}");
    }
}

/// Rules 7: the same for another currency. Afterwards, the event can still change.
#[test]
fn documents_that_sum_to_zero_forbid_another_currency() {
    let mut book = credited_child();
    let mut in_yen = plan("1");
    in_yen.content.currency = currency("JPY");
    book.edit_pricing(in_yen);
    let refusal = edit(&mut book, |plan| plan.reprice = true).expect_err("another currency");
    assert_eq!(code(&refusal), "not_retroactive");
    book.update_event(0, None, Some("30")).expect("an update");
    assert_eq!(book.run("2027-01-13").owed(), "30.00");
}

/// Rules 7: the document of an event counts also while it waits to be issued. A deletion of its event makes it void, and
/// leaves nothing that counts.
#[test]
fn a_child_that_waits_forbids_another_structure() {
    let setup = Setup::new().entity("b", |_| {}).entity("main", |main| main.profile.paper.tax_currency = Some(currency("PLN")));
    let mut book = setup.product(plan("1"), yearly_upon_usage).create("2027-01-01");
    book.go_to("2027-01-10");
    let event = book.event("2027-01-10", "50");
    let to_b = |plan: &mut ProductPatch| plan.entity_ref = Patch::Set(entity_ref("b"));
    let refusal = edit(&mut book, to_b).expect_err("another entity");
    assert_eq!(code(&refusal), "not_retroactive");
    let reason = "INV-2 waits to be issued and bills the period from 2027-01-01 already";
    assert!(refusal.to_string().contains(reason), "{refusal}");
    book.delete_event(event).expect("a deletion");
    edit(&mut book, to_b).expect("another entity");
}

/// Rules 3, 7: 5,000 calls at 1.00 and 19 % are credited by an edit to a price of zero. The edit back bills them at once.
#[test]
fn an_edit_and_its_undo_correct_children_at_once() {
    let mut book = Setup::new()
        .product(plan("1"), |product| {
            yearly_upon_usage(product);
            product.tax = Some(percent("19"));
        })
        .create("2027-01-01");
    book.go_to("2027-01-10").event("2027-01-10", "5000");
    for unit_price in ["0", "1"] {
        book.edit_pricing(plan(unit_price));
        edit(&mut book, |plan| plan.reprice = true).expect("an edit");
    }
    let expected =
        ["INV-1 0.00 DRAFT", "INV-2 5950.00 ISSUED of INV-1", "CRD-1 5950.00 ISSUED of INV-1", "DBT-1 5950.00 ISSUED of INV-1"];
    assert_eq!(book.documents(), expected);
    assert_eq!(book.owed(), "5950.00");
}
