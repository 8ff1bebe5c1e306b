//! Scenarios of contracts, described with [`Simulation`]. All sums are computed by hand.

mod calculations;
mod cancels;
mod changed_structure;
mod charging;
mod corrections;
mod credit;
mod deposits;
mod due_upon_usage;
mod edits;
mod limits;
mod rates;
mod seats;
mod terms_over_time;
mod timing;

use billing_domain::simulate::{Bill, ProductEdit, SimulatedDocument, Simulation, Terms, graduated, item, product, terms};

/// The first days of the months from February 2026 to January 2027.
const FIRSTS: [&str; 12] = [
    "2026-02-01",
    "2026-03-01",
    "2026-04-01",
    "2026-05-01",
    "2026-06-01",
    "2026-07-01",
    "2026-08-01",
    "2026-09-01",
    "2026-10-01",
    "2026-11-01",
    "2026-12-01",
    "2027-01-01",
];

/// Returns terms of a pricing over 2026.
fn year(pricing: &str) -> Terms {
    terms("2026-01-01", "2026-12-31").pricing(pricing)
}

/// Returns terms of a fee over 2026.
fn fee(pricing: &str, amount: &str) -> Terms {
    year(pricing).fixed("fee", amount)
}

/// Returns an element that bills all of 2026.
fn all_year(pricing: &str) -> ProductEdit {
    product(pricing).billed("2026-01-01", "2026-12-31")
}

/// Returns a change of a fee.
fn fee_of(amount: &str) -> impl FnOnce(ProductEdit) -> ProductEdit {
    let fee = item("fee").price(amount);
    |product| product.line_item(fee)
}

/// Returns the bill at the end of a day.
#[track_caller]
fn bill(simulation: &Simulation, day: &str) -> Bill {
    simulation.until(day).unwrap_or_else(|refusal| panic!("{refusal}: {refusal:?}"))
}

/// Returns summaries of the documents at the end of a day.
#[track_caller]
fn overview(simulation: &Simulation, day: &str) -> Vec<String> {
    bill(simulation, day).overview()
}

/// Returns the sum of the totals at the end of a day.
#[track_caller]
fn total(simulation: &Simulation, day: &str) -> String {
    let [.., total] = bill(simulation, day).sums();
    total
}

/// Returns summaries of a preview's documents.
fn in_short(documents: &[SimulatedDocument]) -> Vec<String> {
    billing_domain::simulate::overview(documents)
}

/// Returns terms with 49.00 for the platform, and calls in the graduated tiers of billing rules 6.
fn api_plan(terms: Terms) -> Terms {
    let tiers = [(Some("100"), "0.10"), (Some("1000"), "0.05"), (None, "0.01")];
    terms.fixed("platform-fee", "49.00").usage("calls", graduated(tiers))
}
