//! Tests of the failures that a run reports and the overdue documents that `verify` reports (billing rules 2).

use billing_testkit::fixtures::{currency, fixed, pricing};

use super::book::{Book, Setup};

fn polish() -> Book {
    Setup::new()
        .entity("main", |main| main.profile.paper.tax_currency = Some(currency("PLN")))
        .product(pricing("plan", vec![fixed("fee", "100")]), |_| {})
        .create("2027-01-01")
}

/// Finding 4, rules 2: the run's `failed` lists each document that cannot be issued, with its period and code.
#[test]
fn a_run_reports_what_it_cannot_issue() {
    let mut book = polish();
    let failed = book.run_failures("2027-03-02");
    assert_eq!(failed, ["2027-01-01 exchange_rate_missing", "2027-02-01 exchange_rate_missing"]);
    assert_eq!(book.run_failures("2027-03-03"), failed, "each run retries and reports the documents");
    book.post_exchange_rate("PLN", "2027-01-01", "4.30");
    assert_eq!(book.run_failures("2027-03-04"), [""; 0]);
}

/// Finding 4, rules 2: an unissued document that is due for more than 24 hours is reported with the reason.
#[test]
fn overdue_documents_are_reported_after_a_day() {
    let mut book = polish();
    book.run("2027-02-01");
    assert_eq!(book.overdue("2027-02-01T23:00:00Z"), [""; 0]);
    assert_eq!(book.overdue("2027-02-02T01:00:00Z"), ["2027-01-01 exchange_rate_missing"]);
    assert_eq!(
        book.overdue("2027-04-02"),
        ["2027-01-01 exchange_rate_missing", "2027-02-01 exchange_rate_missing", "2027-03-01 exchange_rate_missing"]
    );
}

/// Finding 4, rules 2: the 24 hours start at the contract's newest version if that is later.
#[test]
fn a_new_version_begins_the_day_anew() {
    let plan = pricing("plan", vec![fixed("fee", "100")]);
    let mut book = Setup::new().product(plan, |_| {}).create("2027-06-15");
    assert_eq!(book.overdue("2027-06-16T11:00:00Z"), [""; 0]);
    assert_eq!(book.overdue("2027-06-16T13:00:00Z").len(), 5);
}
