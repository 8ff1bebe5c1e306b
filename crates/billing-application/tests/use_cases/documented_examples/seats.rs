//! Section 6: agreed quantities.

use billing_domain::catalog::Pricing;
use billing_domain::contract::terms::{PaymentTime, Quantities, QuantityStep, RequestedLineItem};
use billing_domain::refs::ContractRef;
use billing_testkit::fixtures::{self, fixed, requested};

use crate::books::Books;
use crate::documented_examples::page::Page;

/// Returns a contract for seats at 30.00 a month from 1 April. The date is 1 April.
fn april(steps: &[(&str, &str)], payment_time: PaymentTime) -> (Books, Pricing, ContractRef) {
    let books = Books::at("2026-04-01T00:00:00Z");
    let pricing = books.pricing("seats", vec![fixed("seats", "30.00")]);
    let step =
        |(from, quantity): &(&str, &str)| QuantityStep { from: fixtures::date(from), quantity: fixtures::quantity(quantity) };
    let quantities = Quantities::new(steps.iter().map(step).collect()).expect("ascending dates");
    let mut product = requested(&pricing, "2026-04-01", "2026-12-31");
    product.payment_time = Some(payment_time);
    product.line_items = Some(vec![RequestedLineItem {
        quantities: Some(quantities),
        ..RequestedLineItem::plain(fixtures::line_item_id("seats"))
    }]);
    let contract = books.contract(vec![product]);
    (books, pricing, contract)
}

pub(crate) fn example_6_9_seats_are_billed_by_the_days_they_were_agreed(page: &mut Page) {
    let (books, _, _) = april(&[("2026-04-01", "10"), ("2026-04-16", "12")], PaymentTime::AfterUse);
    books.bill("2026-05-01T02:00:00Z");
    page.shows(&books.documents());
}

pub(crate) fn example_6_10_another_number_of_seats_in_a_month_that_is_issued(page: &mut Page) {
    for (quantity, adjustment) in [("12", "UB-DBT-1"), ("8", "UB-CRD-1")] {
        let (books, pricing, contract) = april(&[("2026-04-01", "10")], PaymentTime::BeforeUse);
        books.bill("2026-04-01T02:00:00Z");
        books.clock("2026-04-16T12:00:00Z");
        books.quantity(contract, &pricing, quantity, true);
        page.shows(&books.only(&["UB-INV-1", adjustment]));
    }
    let (books, pricing, contract) = april(&[("2026-04-01", "10")], PaymentTime::BeforeUse);
    books.bill("2026-04-01T02:00:00Z");
    books.clock("2026-04-16T12:00:00Z");
    books.quantity(contract, &pricing, "12", false);
    books.bill("2026-05-01T02:00:00Z");
    page.shows(&books.documents());
}
