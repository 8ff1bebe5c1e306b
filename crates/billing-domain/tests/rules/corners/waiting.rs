//! Tests of the failures that a run reports and the overdue documents that `verify` reports (billing rules 2).

use billing_domain::catalog::PriceModel;
use billing_domain::contract::terms::RequestedLineItem;
use billing_domain::party::EntityProfile;
use billing_domain::party::legal::{EInvoiceProfile, EInvoiceSettings, Strictness};
use billing_domain::patch::Patch;
use billing_testkit::fixtures::{currency, date, entity_ref, fixed, line_item_id, per_unit, price, pricing, prose};

use super::book::{Book, Setup, element, from};

fn polish() -> Book {
    Setup::new()
        .entity("main", |main| main.profile.paper.tax_currency = Some(currency("PLN")))
        .product(pricing("plan", vec![fixed("fee", "100")]), |_| {})
        .create("2027-01-01")
}

/// Timing of documents (billing rules 2): the run's `failed` lists each document that cannot be issued, with its period
/// and code.
#[test]
fn a_run_reports_what_it_cannot_issue() {
    let mut book = polish();
    let failed = book.run_failures("2027-03-02");
    assert_eq!(failed, ["2027-01-01 exchange_rate_missing", "2027-02-01 exchange_rate_missing"]);
    assert_eq!(book.run_failures("2027-03-03"), failed, "each run retries and reports the documents");
    book.post_exchange_rate("PLN", "2027-01-01", "4.30");
    assert_eq!(book.run_failures("2027-03-04"), [""; 0]);
}

/// Rules 2: a document of each kind waits with its reason, and its draft stays as it is.
#[test]
fn a_document_of_each_kind_waits() {
    let plan = pricing("plan", vec![fixed("fee", "100"), per_unit("calls", "1")]);
    let mut book = Setup::new().entity("main", |_| {}).product(plan, |_| {}).create("2027-01-01");
    let corrected = book.event("2027-01-10", "5");
    book.run("2027-02-01");
    // From here on, no document is complete.
    book.edit_entity("main", |main| main.paper.strictness = Strictness::Strict);
    book.go_to("2027-02-02");
    book.event("2027-01-11", "7");
    assert_eq!(book.run_failures("2027-02-20"), ["2027-01-01 paper_incomplete"], "a DEBIT");
    book.delete_event(corrected).expect("a deletion");
    let drafts = ["INV-1 105.00 ISSUED", "DBT-1 7.00 DRAFT of INV-1", "CRD-1 5.00 DRAFT of INV-1"];
    assert_eq!(book.documents(), drafts);
    let waiting = ["2027-01-01 paper_incomplete", "2027-01-01 paper_incomplete", "2027-02-01 paper_incomplete"];
    assert_eq!(book.run_failures("2027-03-01"), waiting, "a DEBIT, a CREDIT and an INVOICE");
    assert_eq!(book.documents()[..3], drafts);
}

/// Rules 2: each reason to wait lets the other documents go on.
#[test]
fn a_document_waits_for_each_reason() {
    let waits = |change: fn(&mut EntityProfile)| {
        let plan = pricing("plan", vec![fixed("fee", "100")]);
        let mut book = Setup::new().entity("main", |main| change(&mut main.profile)).product(plan, |_| {}).create("2027-01-01");
        let failed = book.run_failures("2027-02-02");
        assert_eq!(book.documents().iter().filter(|document| document.ends_with("ISSUED")).count(), 0, "{failed:?}");
        failed
    };
    assert_eq!(waits(|main| main.paper.strictness = Strictness::Strict), ["2027-01-01 paper_incomplete"]);
    assert_eq!(waits(|main| main.paper.tax_currency = Some(currency("PLN"))), ["2027-01-01 exchange_rate_missing"]);
    assert_eq!(
        waits(|main| main.paper.e_invoice = EInvoiceSettings { profile: EInvoiceProfile::Peppol, required: true }),
        ["2027-01-01 e_invoice_incomplete"]
    );
}

/// Timing of documents (billing rules 2): an unissued document that is due for more than 24 hours is reported with the
/// reason.
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

/// Rules 2: the 24 hours start with the version that first made a document due, if that is later.
#[test]
fn the_version_that_makes_a_document_due_begins_the_day() {
    let plan = pricing("plan", vec![fixed("fee", "100")]);
    let mut book = Setup::new().product(plan, |_| {}).create("2027-06-15");
    assert_eq!(book.overdue("2027-06-16T11:00:00Z"), [""; 0]);
    assert_eq!(book.overdue("2027-06-16T13:00:00Z").len(), 5);
}

/// Rules 2: versions that change nothing of a period, or not whether it is due, don't start its 24 hours again.
#[test]
fn later_versions_do_not_silence_what_is_overdue() {
    let mut book = polish();
    book.run("2027-02-01");
    for (day, price) in [("2027-02-02", "101"), ("2027-02-03", "102"), ("2027-02-04", "103")] {
        book.go_to(day);
        book.edit_metadata(day);
        book.edit(from("2027-01-01"), vec![element("plan", |plan| plan.note = Patch::Set(prose(day)))]).expect("a note");
        book.edit(from("2027-02-01"), vec![element("plan", |plan| plan.line_items = Patch::Set(vec![repriced_fee(price)]))])
            .expect("a price");
        assert_eq!(book.overdue(&format!("{day}T13:00:00Z")), ["2027-01-01 exchange_rate_missing"], "{day}");
    }
}

/// Rules 2: a version that gives a period its first amount makes it due, and one that adds a product.
#[test]
fn a_version_begins_the_day_of_the_periods_that_it_makes_due() {
    let free = pricing("plan", vec![fixed("fee", "0")]);
    let mut book = Setup::new()
        .entity("other", |_| {})
        .product(free, |_| {})
        .pricing(pricing("more", vec![fixed("fee", "5")]))
        .create("2027-01-01");
    book.go_to("2027-03-10");
    let more = element("more", |more| {
        more.billing_start_date = Some(date("2027-02-01"));
        more.billing_end_date = Some(date("2027-12-31"));
        more.entity_ref = Patch::Set(entity_ref("other"));
    });
    book.edit(from("2027-01-01"), vec![element("plan", |plan| plan.line_items = Patch::Set(vec![repriced_fee("100")])), more])
        .expect("an edit");
    assert_eq!(book.overdue("2027-03-11T11:00:00Z"), [""; 0]);
    assert_eq!(book.overdue("2027-03-11T13:00:00Z"), ["2027-01-01", "2027-02-01", "2027-02-01"]);
}

/// Rules 2: a version in another currency billed none of the charges that were recorded after it.
#[test]
fn what_is_overdue_is_known_after_the_currency_has_changed_twice() {
    let in_currency = |code| {
        let mut pricing = pricing("plan", vec![fixed("fee", "100")]);
        pricing.content.currency = currency(code);
        pricing
    };
    let mut book = Setup::new().product(in_currency("EUR"), |_| {}).create("2027-01-01");
    for code in ["JPY", "EUR"] {
        book.edit_pricing(in_currency(code));
        book.edit(from("2027-01-01"), vec![element("plan", |plan| plan.reprice = true)]).expect("another currency");
    }
    book.charge("goodwill", "2027-01-01", "-10", false).expect("a charge");
    book.run("2027-02-01").void("INV-1");
    assert_eq!(book.overdue("2027-02-02T13:00:00Z"), ["2027-01-01"]);
}

fn repriced_fee(amount: &str) -> RequestedLineItem {
    let flat = Patch::Set(PriceModel::Flat { amount: price(amount) });
    RequestedLineItem { price: flat, ..RequestedLineItem::plain(line_item_id("fee")) }
}
