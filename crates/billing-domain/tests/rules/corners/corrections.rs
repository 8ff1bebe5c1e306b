//! Tests of corrections of issued documents: credits, debits, previews, events that move (billing rules 5, 7).

use billing_domain::catalog::UsagePrice;
use billing_domain::contract::amendment::EffectiveFrom;
use billing_domain::contract::terms::{PaymentTime, Quantities, QuantityStep, RequestedLineItem, RequestedProduct};
use billing_domain::patch::Patch;
use billing_domain::tax::TaxBasis;
use billing_testkit::fixtures::{date, fixed, fixed_at, line_item_id, per_unit, price, pricing, quantity, with_charge};

use super::book::{Book, Setup, element};

/// Corrections (billing rules 5): p2's minimum of 50.00 is billed on a DEBIT of February's invoice. Then p2 ends on 10
/// January. p1: 100.00 + 100.00 + 5.00. p2: fee 10.00 × 10 ÷ 31 = 3.23, minimum 50.00 × 10 ÷ 31 = 16.13.
#[test]
fn a_minimum_of_a_product_left_out_is_prorated_where_it_was_billed() {
    let minimum = with_charge(per_unit("storage", "1"), |charge| charge.minimum_amount = Some(price("50")));
    let p2 = pricing("p2", vec![fixed("fee", "10"), minimum]);
    let during_use = |product: &mut billing_domain::contract::terms::RequestedProduct| {
        product.payment_time = Some(PaymentTime::DuringUse);
    };
    let mut book = Setup::new()
        .product(pricing("p1", vec![fixed("fee", "100"), per_unit("calls", "1")]), during_use)
        .product(p2, |product| {
            during_use(product);
            product.line_items = Some(vec![RequestedLineItem::plain(line_item_id("fee"))]);
        })
        .create("2027-01-01T00:00:00Z");
    book.run("2027-01-01").go_to("2027-01-10").event("2027-01-10", "5");
    book.issue("INV-2").expect("an issue by hand");
    assert_eq!(book.documents(), ["INV-1 110.00 ISSUED", "INV-2 115.00 ISSUED"]);
    let both = Patch::Set(vec![RequestedLineItem::plain(line_item_id("fee")), RequestedLineItem::plain(line_item_id("storage"))]);
    let metered = vec![element("p1", |_| {}), element("p2", |p2| p2.line_items = both)];
    book.edit(EffectiveFrom::CurrentPeriod, metered).expect("an edit");
    assert_eq!(book.documents().last().map(String::as_str), Some("DBT-1 50.00 ISSUED of INV-2"));
    book.edit(EffectiveFrom::CurrentPeriod, vec![element("p1", |_| {})]).expect("an edit");
    book.run("2027-01-11");
    assert_eq!(book.owed(), "224.36", "{}", book.dump());
    // The minimum and February's fee are credits of their invoice, and the DEBIT is settled first.
    assert_eq!(
        book.documents().iter().filter(|document| document.starts_with("CRD")).collect::<Vec<_>>(),
        ["CRD-1 6.77 ISSUED of INV-1", "CRD-2 43.87 ISSUED of INV-2"]
    );
    assert_eq!(book.due("DBT-1"), "6.13", "the credit settles the debit before the invoice");
    book.run("2027-02-01");
    assert_eq!(book.owed(), "224.36", "February is already billed");
}

/// Bills a fee of 90.00 in January and 5.00 from February on, at 19 %, with a charge of −90.00 in January.
fn february_below_zero() -> Book {
    let steps = [("2027-01-01", "18"), ("2027-02-01", "1")]
        .map(|(day, amount)| QuantityStep { from: date(day), quantity: quantity(amount) });
    let seats = fixed_at("fee", UsagePrice::PerUnit { unit_price: price("5") });
    let mut book = Setup::new()
        .customer_tax("19", TaxBasis::default())
        .product(pricing("plan", vec![seats]), |product| {
            product.payment_time = Some(PaymentTime::DuringUse);
            let mut fee = RequestedLineItem::plain(line_item_id("fee"));
            fee.quantities = Quantities::new(steps.to_vec()).ok();
            product.line_items = Some(vec![fee]);
        })
        .create("2027-01-01T00:00:00Z");
    book.run("2027-01-01").go_to("2027-01-20");
    book.charge("less", "2027-01-20", "-90", false).expect("a charge");
    book
}

/// Contracts (billing rules 7): the preview of an INVOICE of −101.15 shows the later documents: 5.95, and a CREDIT of
/// 107.10.
#[test]
fn a_preview_below_zero_shows_the_invoice_and_the_credit() {
    let mut book = february_below_zero();
    assert_eq!(book.preview_next().expect("a preview"), ["INV-2 5.95 DRAFT", "CREDIT 107.10"]);
    book.go_to("2027-02-01T00:00:00Z");
    assert_eq!(book.preview_current().expect("a preview"), ["INV-2 5.95 DRAFT", "CREDIT 107.10"]);
    book.run("2027-02-01");
    assert_eq!(book.documents()[1..], ["INV-2 5.95 ISSUED", "CRD-1 107.10 ISSUED of INV-2"]);
}

/// Issues January's invoice of 105.00. Then its event of 5.00 is deleted and reported again.
fn deleted_and_reported_again(again: &str) -> Book {
    let plan = pricing("plan", vec![fixed("fee", "100"), per_unit("calls", "1")]);
    let mut book = Setup::new().product(plan, |_| {}).create("2027-01-01");
    book.go_to("2027-01-10");
    let event = book.event("2027-01-10", "5");
    book.run("2027-02-01").go_to("2027-02-02");
    book.delete_event(event).expect("a deletion");
    let again = book.event("2027-01-10", again);
    assert_eq!(book.standing_of(again), "DBT-1");
    book.run("2027-02-03");
    book
}

/// Returns a book with an event that was moved out of an issued period and back.
fn moved_away_and_back() -> (Book, usize) {
    let plan = pricing("plan", vec![fixed("fee", "100"), per_unit("calls", "1")]);
    let mut book = Setup::new().product(plan, |_| {}).create("2027-01-01");
    book.go_to("2027-01-10");
    let event = book.event("2027-01-10", "5");
    book.run("2027-02-01").go_to("2027-02-02");
    book.update_event(event, Some("2027-02-01"), None).expect("a move");
    book.update_event(event, Some("2027-01-12"), None).expect("a move back");
    (book, event)
}

/// Rules 5: an event is moved out of an issued period and back, so its CREDIT and its DEBIT have the same lines and the same event.
/// Both become VOID, and the parent has the event.
#[test]
fn a_credit_and_a_debit_of_the_same_event_are_not_issued() {
    let (mut book, event) = moved_away_and_back();
    assert_eq!(book.standing_of(event), "DBT-1");
    book.run("2027-02-03");
    let expected = ["INV-1 105.00 ISSUED", "CRD-1 VOID of INV-1", "INV-2 100.00 DRAFT", "DBT-1 VOID of INV-1"];
    assert_eq!(book.documents(), expected);
    assert_eq!(book.standing_of(event), "INV-1");
}

/// Rules 5: the list of the issued invoice names the deleted event, not the one that was reported instead. So a CREDIT and a DEBIT
/// of different events are both issued, also with the same quantity.
#[test]
fn a_credit_and_a_debit_of_different_events_are_issued() {
    for (again, credit) in [("5", "5.00"), ("6", "6.00")] {
        let book = deleted_and_reported_again(again);
        let debit = format!("DBT-1 {credit} ISSUED of INV-1");
        assert_eq!(book.documents(), ["INV-1 105.00 ISSUED", "CRD-1 5.00 ISSUED of INV-1", debit.as_str()]);
        assert_eq!(book.standing_of(1), "DBT-1");
    }
}

/// Rules 5: an event without an effect on the price is on the DEBIT, too. The CREDIT doesn't have it, so both are issued, and a
/// document lists the event.
#[test]
fn a_debit_that_also_has_an_event_without_an_amount_is_issued() {
    let (mut book, event) = moved_away_and_back();
    let late = book.event("2027-01-20", "0");
    book.run("2027-02-03");
    let expected = ["INV-1 105.00 ISSUED", "CRD-1 5.00 ISSUED of INV-1", "INV-2 100.00 DRAFT", "DBT-1 5.00 ISSUED of INV-1"];
    assert_eq!(book.documents(), expected);
    assert_eq!([book.standing_of(event), book.standing_of(late)], ["DBT-1", "DBT-1"]);
}

/// Rules 5: two events move away, and one of them comes back with the quantity of both.
#[test]
fn a_credit_of_two_events_and_a_debit_of_one_are_issued() {
    let plan = pricing("plan", vec![per_unit("calls", "1")]);
    let mut book = Setup::new().product(plan, |_| {}).create("2027-01-01");
    book.go_to("2027-01-10");
    let events = [book.event("2027-01-10", "2"), book.event("2027-01-10", "3")];
    book.run("2027-02-01").go_to("2027-02-02");
    for event in events {
        book.update_event(event, Some("2027-02-01"), None).expect("a move");
    }
    book.update_event(events[0], Some("2027-01-10"), Some("5")).expect("a move back");
    book.run("2027-02-03");
    let expected = ["INV-1 5.00 ISSUED", "CRD-1 5.00 ISSUED of INV-1", "INV-2 3.00 DRAFT", "DBT-1 5.00 ISSUED of INV-1"];
    assert_eq!(book.documents(), expected);
}

/// Returns two products that meter calls at 1.00 and at 2.00. The second product is added after the event.
fn second_product_added() -> (Book, usize) {
    let mut book = Setup::new()
        .product(pricing("p1", vec![per_unit("calls", "1")]), |_| {})
        .pricing(pricing("p2", vec![per_unit("calls", "2")]))
        .create("2027-01-01");
    book.go_to("2027-01-20");
    let event = book.event("2027-01-15", "10");
    let p2 = element("p2", |p2| {
        p2.billing_start_date = Some(date("2027-01-10"));
        p2.billing_end_date = Some(date("2027-12-31"));
    });
    book.edit(EffectiveFrom::NextPeriod, vec![element("p1", |_| {}), p2]).expect("an edit");
    (book, event)
}

/// Corrections (billing rules 5): an event whose timestamp moves stays with its contract product while that product
/// meters it.
#[test]
fn an_event_that_moves_stays_with_its_product() {
    let (mut book, event) = second_product_added();
    book.update_event(event, Some("2027-01-15T12:00:01Z"), None).expect("an update");
    assert_eq!(book.billed(), "10.00");
    book.update_event(event, Some("2027-01-25"), None).expect("an update");
    assert_eq!(book.billed(), "10.00");
    book.go_to("2027-02-25").update_event(event, Some("2027-02-20"), None).expect("an update into another period");
    assert_eq!(book.billed(), "10.00");
    // A new event goes to the product that began last.
    book.event("2027-02-20", "10");
    assert_eq!(book.billed(), "30.00");
}

/// Corrections (billing rules 5): if the product no longer meters the event, the event is matched again.
#[test]
fn an_event_that_leaves_its_products_days_is_matched_anew() {
    let (mut book, event) = second_product_added();
    let short = element("p1", |p1| p1.billing_end_date = Some(date("2027-01-31")));
    book.edit(EffectiveFrom::CurrentPeriod, vec![short, element("p2", |_| {})]).expect("an edit");
    book.go_to("2027-02-10").update_event(event, Some("2027-02-05"), None).expect("an update");
    assert_eq!(book.billed(), "20.00");
}

/// Rules 5: the event matched the second product. It moves to a day that only the first product meters, and back: it costs what it
/// cost before.
#[test]
fn an_event_that_moves_away_and_back_returns_to_its_first_product() {
    let (mut book, _) = second_product_added();
    let event = book.event("2027-01-16", "10");
    assert_eq!(book.billed(), "30.00");
    book.update_event(event, Some("2027-01-06"), None).expect("a move");
    assert_eq!(book.billed(), "20.00");
    book.update_event(event, None, Some("20")).expect("an update of the quantity");
    assert_eq!(book.billed(), "30.00");
    book.update_event(event, Some("2027-01-16"), Some("10")).expect("a move back");
    assert_eq!(book.billed(), "30.00");
    book.update_event(event, Some("2027-01-07"), None).expect("a move");
    book.update_event(event, Some("2027-01-08"), None).expect("a move");
    assert_eq!(book.billed(), "20.00");
}

/// Rules 5, 7: a product that comes back bills a charge of its last period with the invoice that bills that period's usage. February's
/// invoice, which bills January's usage, is issued early; then the product ends with January and comes back.
#[test]
fn a_product_that_comes_back_bills_the_charges_of_its_last_period() {
    let during_use = |product: &mut RequestedProduct| product.payment_time = Some(PaymentTime::DuringUse);
    let mut book = Setup::new()
        .product(pricing("main", vec![fixed("fee", "10")]), during_use)
        .product(pricing("other", vec![fixed("fee", "1")]), |product| product.billing_start_date = date("2027-06-01"))
        .create("2027-01-01T00:00:00Z");
    book.run("2027-01-01");
    book.go_to("2027-01-10").charge("setup", "2027-01-12", "5", false).expect("a charge");
    book.delete_charge("setup").expect("a deletion");
    book.issue("INV-2").expect("an issue by hand");
    book.edit(EffectiveFrom::NextPeriod, vec![element("other", |_| {})]).expect("an edit that leaves a product out");
    book.charge("again", "2027-01-12", "7", false).expect("a charge");
    book.edit(EffectiveFrom::NextPeriod, vec![element("main", |_| {}), element("other", |_| {})]).expect("an edit");
    // 10.00 + 10.00 + 7.00
    assert_eq!(book.billed(), "27.00", "{}", book.dump());
}
