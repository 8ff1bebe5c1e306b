//! Tests of what refusals say.

use billing_domain::party::NetTerms;
use billing_domain::patch::Patch;
use billing_domain::refusal::Refusal;
use billing_testkit::fixtures::{currency, entity_ref, per_unit, pricing};

use super::book::{Book, Setup, element, from};

/// Returns a contract due upon usage with an event of 15 January. Without a rate to PLN, its invoice waits.
fn with_an_event(is_complete: bool) -> Book {
    let setup = Setup::new().entity("main", |main| main.profile.paper.tax_currency = (!is_complete).then(|| currency("PLN")));
    let plan = pricing("plan", vec![per_unit("calls", "1")]);
    let setup = setup.entity("other", |_| {}).product(plan, |product| product.net_terms = Some(NetTerms::DueUponUsage));
    let mut book = setup.create("2027-01-01");
    book.go_to("2027-01-15").event("2027-01-15", "5");
    book
}

fn detail(refusal: Refusal) -> String {
    match refusal {
        Refusal::Invalid(violations) => violations.to_string(),
        other => format!("{other:?}"),
    }
}

/// Rules 7: the invoice of an event forbids another entity, also while it waits. The message tells which.
#[test]
fn a_waiting_invoice_of_an_event_is_said_to_wait() {
    for (is_complete, stated) in [(false, "waits to be issued and bills"), (true, "INV-2 bills")] {
        let mut book = with_an_event(is_complete);
        let moved = element("plan", |plan| plan.entity_ref = Patch::Set(entity_ref("other")));
        let refused = book.edit(from("2027-01-01"), vec![moved]).expect_err("the period has a document");
        let refused = detail(refused);
        assert!(refused.contains(stated) && refused.contains("the period from 2027-01-01"), "{refused}");
    }
}
