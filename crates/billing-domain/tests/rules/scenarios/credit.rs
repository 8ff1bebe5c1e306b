//! Prepaid credit: given and sold grants, taken before tax (billing rules 12).

use billing_domain::contract::schedule::CycleUnit;
use billing_domain::contract::terms::PaymentTime;
use billing_domain::party::NetTerms;
use billing_domain::simulate::{Bill, Simulation, Terms, charge, credit, overview as in_short, per_unit, terms};

use super::{bill, overview};

/// Returns a contract for usage at 0.00001 a token and 20 % of tax, from November 2026 on.
fn tokens() -> Simulation {
    let terms = terms("2026-11-01", "2027-10-31").pricing("ai").usage("tokens", per_unit("0.00001")).tax(20);
    Simulation::new().contract(terms)
}

/// Returns a product of 30 November that is billed in advance.
fn sale(pricing: &str, price: &str) -> Terms {
    let terms = terms("2026-11-30", "2026-11-30").pricing(pricing).fixed("credit", price).tax(20);
    terms.payment_time(PaymentTime::BeforeUse).billing_cycle(CycleUnit::OneTime, 1)
}

/// Sells credit of 100.00 on 30 November at 09:00, which isn't paid.
fn unpaid() -> Simulation {
    let sold = tokens().on("2026-11-30T09:00:00Z").edit(|contract| contract.add_product(sale("credit-100", "100.00")));
    sold.on("2026-11-30T09:00:10Z").grant(credit("G1", "100.00").sold_by("UB-INV-1"))
}

/// Sells credit of 100.00, which is paid.
fn paid() -> Simulation {
    unpaid().on("2026-11-30T09:00:20Z").pay("UB-INV-1", "120.00").named("payment")
}

/// Returns a contract for a fee of January 2026 at 20 %, with given credit of 100.00.
fn fee_with_credit(price: &str) -> Simulation {
    let fee = terms("2026-01-01", "2026-01-31").pricing("plan").fixed("fee", price).tax(20);
    Simulation::new().contract(fee).created("2026-01-05").on("2026-01-05").grant(credit("G1", "100.00"))
}

fn usable_drawn_covered_free(bill: &Bill, name: &str) -> [String; 4] {
    let balance = bill.credit(name).expect("small amounts");
    [balance.usable, balance.drawn, balance.covered, balance.free].map(|amount| amount.to_decimal().to_string())
}

#[track_caller]
fn free(bill: &Bill, name: &str) -> String {
    let [.., free] = usable_drawn_covered_free(bill, name);
    free
}

#[track_caller]
fn owed(bill: &Bill) -> String {
    bill.owed_with_drafts().expect("small amounts").to_decimal().to_string()
}

/// Returns net amount less credit, tax and total of a document.
#[track_caller]
fn taxed(bill: &Bill, number: &str) -> [String; 3] {
    let content = &bill.document(number).content;
    assert!(content.adds_up(), "{content:?}");
    [content.taxes[0].base, content.total_tax, content.total].map(|amount| amount.to_decimal().to_string())
}

#[test]
fn a_day_of_an_ai_vendor() {
    let at = |day: Simulation, until: &str| bill(&day, until);
    let day = paid();
    let sold = at(day.clone(), "2026-11-30T09:00:30Z");
    assert_eq!(
        (usable_drawn_covered_free(&sold, "G1"), owed(&sold)),
        (["100.00", "0.00", "0.00", "100.00"].map(str::to_owned), "0.00".to_owned())
    );
    // 51 agents of 200,000 tokens need more than the credit.
    let too_many = at(day.clone().event("2026-11-30T09:01:00Z", "tokens", 10_200_000), "2026-11-30T09:01:30Z");
    assert_eq!(owed(&too_many), "2.40");
    let day = day.event("2026-11-30T09:02:00Z", "tokens", 7_500_000);
    let covered = at(day.clone(), "2026-11-30T09:02:30Z");
    assert_eq!(covered.document("UB-INV-2").prepaid(), ["G1 75.00"]);
    assert_eq!((taxed(&covered, "UB-INV-2"), free(&covered, "G1")), (["0.00"; 3].map(str::to_owned), "25.00".to_owned()));
    let day = day.event("2026-11-30T09:04:00Z", "tokens", 1_920_000);
    assert_eq!(free(&at(day.clone(), "2026-11-30T09:04:30Z"), "G1"), "5.80");
    let day = day.event("2026-11-30T09:05:00Z", "tokens", 700_000).named("long run");
    let beyond = at(day.clone(), "2026-11-30T09:05:30Z");
    assert_eq!((taxed(&beyond, "UB-INV-2"), owed(&beyond)), (["1.20", "0.24", "1.44"].map(str::to_owned), "1.44".to_owned()));

    let day = day.on("2026-11-30T09:07:00Z").edit(|contract| contract.add_product(sale("credit-50", "50.00")));
    let day = day.on("2026-11-30T09:07:10Z").pay("UB-INV-3", "60.00");
    let day = day.on("2026-11-30T09:07:20Z").grant(credit("G2", "50.00").sold_by("UB-INV-3"));
    let topped_up = at(day.clone(), "2026-11-30T09:07:30Z");
    assert_eq!(topped_up.document("UB-INV-2").prepaid(), ["G1 100.00", "G2 1.20"]);
    assert_eq!((free(&topped_up, "G2"), owed(&topped_up)), ("48.80".to_owned(), "0.00".to_owned()));

    let issued = at(day.clone(), "2026-12-01T02:00:01Z");
    assert_eq!(format!("{:?}", issued.document("UB-INV-2").state()), "Ok(Paid)");
    assert_eq!(usable_drawn_covered_free(&issued, "G1"), ["100.00", "100.00", "0.00", "0.00"]);
    assert_eq!(usable_drawn_covered_free(&issued, "G2"), ["50.00", "1.20", "0.00", "48.80"]);

    let day = day.late_event("2026-11-30T12:00:00Z", "tokens", 100_000, "2026-12-01T09:00:00Z");
    let late = at(day.clone(), "2026-12-01T09:00:01Z");
    assert_eq!((taxed(&late, "UB-DBT-1"), free(&late, "G2")), (["0.00"; 3].map(str::to_owned), "47.80".to_owned()));
    let refund = charge("refund", "2026-11-30", "-40.00").pricing("credit-50").with_fixed_items().issued_at_once();
    let day = day.on("2026-12-01T10:00:00Z").charge(refund).on("2026-12-01T10:00:10Z").refund("UB-CRD-1", "48.00");
    let refunded = at(day.clone(), "2026-12-01T10:01:00Z");
    assert_eq!(taxed(&refunded, "UB-CRD-1"), ["40.00", "8.00", "48.00"]);
    assert_eq!(usable_drawn_covered_free(&refunded, "G2"), ["10.00", "1.20", "1.00", "7.80"]);

    let day = day.on("2026-12-02T12:00:00Z").delete_event("long run");
    let deleted = at(day.clone(), "2026-12-02T13:00:00Z");
    assert_eq!(
        (deleted.document("UB-CRD-2").prepaid(), free(&deleted, "G2")),
        (vec!["G2 2.20".to_owned(), "G1 4.80".to_owned()], "7.80".to_owned())
    );
    let returned = at(day, "2026-12-03");
    assert_eq!(taxed(&returned, "UB-CRD-2"), ["0.00"; 3]);
    assert_eq!([free(&returned, "G1"), free(&returned, "G2")], ["4.80", "10.00"]);
    assert_eq!(owed(&returned), "0.00");
}

#[test]
fn credit_lowers_the_base_of_tax_and_credit_notes_return_only_what_is_too_much() {
    let story = fee_with_credit("150.00");
    let issued = bill(&story, "2026-02-05");
    assert_eq!(taxed(&issued, "UB-INV-1"), ["50.00", "10.00", "60.00"]);
    let story = story.on("2026-02-05").charge(charge("one", "2026-01-10", "-30.00").issued_at_once());
    let first = bill(&story, "2026-02-05");
    assert_eq!(
        (taxed(&first, "UB-CRD-1"), first.document("UB-CRD-1").prepaid()),
        (["30.00", "6.00", "36.00"].map(str::to_owned), Vec::new())
    );
    let story = story.on("2026-02-06").charge(charge("two", "2026-01-11", "-40.00").issued_at_once());
    let second = bill(&story, "2026-02-06");
    assert_eq!(
        (taxed(&second, "UB-CRD-2"), second.document("UB-CRD-2").prepaid()),
        (["20.00", "4.00", "24.00"].map(str::to_owned), vec!["G1 20.00".to_owned()])
    );
    assert_eq!(usable_drawn_covered_free(&second, "G1"), ["100.00", "80.00", "0.00", "20.00"]);
}

#[test]
fn credit_covers_service_of_its_days_whenever_it_is_reported() {
    let usage = terms("2026-01-01", "2026-12-31").pricing("ai").usage("tokens", per_unit("1.00")).tax(20);
    let sale = terms("2026-01-02", "2026-01-02").pricing("credit").fixed("credit", "95.00").tax(20);
    let sale = sale.payment_time(PaymentTime::BeforeUse).billing_cycle(CycleUnit::OneTime, 1);
    let story = Simulation::new().contract(usage).contract(sale).created("2026-01-01").on("2026-01-03").pay("UB-INV-1", "114.00");
    let story = story.on("2026-01-03").grant(credit("sold", "95.00").sold_by("UB-INV-1"));
    let story = story.on("2026-01-03").grant(credit("given", "10.00").covers_until("2026-01-31"));
    let story = story.event("2026-01-20", "tokens", 15).event("2026-02-02", "tokens", 20);
    let issued = bill(&story, "2026-02-02");
    assert_eq!(issued.document("UB-INV-2").prepaid(), ["given 10.00", "sold 5.00"]);
    assert_eq!(issued.document("UB-INV-3").prepaid(), ["sold 20.00"]);
    // January's usage that is reported in February takes January's credit.
    let few = story.clone().on("2026-02-03").charge(charge("back", "2026-01-20", "-8.00").pricing("ai").issued_at_once());
    let late = few.late_event("2026-01-20", "tokens", 4, "2026-02-04");
    assert_eq!(bill(&late, "2026-02-04").document("UB-DBT-1").prepaid(), ["given 3.00", "sold 1.00"]);
    let renewed = story.on("2026-02-03").grant(credit("more", "3.00").covers_until("2026-01-31"));
    let late = renewed.late_event("2026-01-20", "tokens", 4, "2026-02-04");
    assert_eq!(bill(&late, "2026-02-04").document("UB-DBT-1").prepaid(), ["more 3.00", "sold 1.00"]);
}

#[test]
fn credit_is_usable_once_its_sale_is_paid() {
    let used = |sale: Simulation| sale.event("2026-11-30T09:02:00Z", "tokens", 3_000_000);
    let waiting = bill(&unpaid(), "2026-11-30T09:01:00Z");
    assert_eq!((usable_drawn_covered_free(&waiting, "G1"), owed(&waiting)), (["0.00"; 4].map(str::to_owned), "0.00".to_owned()));
    assert_eq!(owed(&bill(&used(unpaid()), "2026-11-30T10:00:00Z")), "36.00");
    assert_eq!(owed(&bill(&used(paid()), "2026-11-30T10:00:00Z")), "0.00");
}

#[test]
fn a_chargeback_of_the_sale_uncovers_drafts() {
    let story = paid().event("2026-11-30T09:02:00Z", "tokens", 3_000_000);
    let covered = bill(&story, "2026-11-30T10:00:00Z");
    assert_eq!(usable_drawn_covered_free(&covered, "G1"), ["100.00", "0.00", "30.00", "70.00"]);
    let story = story.on("2026-11-30T11:00:00Z").reverse("payment");
    let uncovered = bill(&story, "2026-11-30T12:00:00Z");
    assert_eq!(usable_drawn_covered_free(&uncovered, "G1"), ["0.00"; 4]);
    assert_eq!(
        (taxed(&uncovered, "UB-INV-2"), owed(&uncovered)),
        (["30.00", "6.00", "36.00"].map(str::to_owned), "36.00".to_owned())
    );
}

#[test]
fn what_was_drawn_stays_when_the_sale_is_taken_back() {
    let story = paid().event("2026-11-30T09:02:00Z", "tokens", 3_000_000).on("2026-12-05").reverse("payment");
    let bounced = bill(&story, "2026-12-05");
    assert_eq!(usable_drawn_covered_free(&bounced, "G1"), ["0.00", "30.00", "0.00", "0.00"]);
    assert_eq!(taxed(&bounced, "UB-INV-2"), ["0.00"; 3]);
    let void = bill(&story.on("2026-12-06").void("UB-INV-1"), "2026-12-06");
    assert_eq!(usable_drawn_covered_free(&void, "G1"), ["0.00", "30.00", "0.00", "0.00"]);
}

#[test]
fn an_invoice_sells_credit_once_and_takes_none() {
    let story =
        unpaid().on("2026-11-30T10:00:00Z").grant(credit("again", "10.00").sold_by("UB-INV-1")).refused("source_not_usable");
    let story = story.event("2026-11-30T10:00:00Z", "tokens", 100_000);
    let story = story.on("2026-11-30T11:00:00Z").grant(credit("draft", "10.00").sold_by("UB-INV-2")).refused("source_not_usable");
    // A debit of the sale takes no credit.
    let story = story.on("2026-11-30T11:00:00Z").grant(credit("given", "50.00"));
    let more = charge("more", "2026-11-30", "10.00").pricing("credit-100").with_fixed_items().issued_at_once();
    let sold = bill(&story.clone().on("2026-11-30T12:00:00Z").charge(more), "2026-11-30T12:00:00Z");
    assert_eq!(
        (taxed(&sold, "UB-DBT-1"), sold.document("UB-DBT-1").prepaid()),
        (["10.00", "2.00", "12.00"].map(str::to_owned), Vec::new())
    );
    assert_eq!(sold.document("UB-INV-2").prepaid(), ["given 1.00"]);
    // What is owed for the sale doesn't count, also while it is a draft.
    let draft = charge("more", "2026-11-30", "10.00").pricing("credit-100").with_fixed_items();
    let waiting = bill(&story.clone().on("2026-11-30T12:00:00Z").charge(draft), "2026-11-30T12:00:00Z");
    assert_eq!((waiting.document("UB-DBT-1").total().to_string(), owed(&waiting)), ("12.00 EUR".to_owned(), "0.00".to_owned()));
    // An invoice that took credit sells none.
    let story = story.on("2026-12-02").grant(credit("taken", "10.00").sold_by("UB-INV-2")).refused("source_not_usable");
    bill(&story, "2026-12-02");
}

#[test]
fn an_invoice_that_returned_all_its_credit_sells_none() {
    let story = fee_with_credit("60.00").on("2026-02-05").charge(charge("back", "2026-01-10", "-60.00").issued_at_once());
    let story = story.on("2026-02-06").grant(credit("again", "10.00").sold_by("UB-INV-1")).refused("source_not_usable");
    assert_eq!(usable_drawn_covered_free(&bill(&story, "2026-02-06"), "G1"), ["100.00", "0.00", "0.00", "100.00"]);
}

#[test]
fn a_run_that_issues_a_credit_note_of_the_sale_leaves_less_credit_for_its_other_documents() {
    let story =
        tokens().without_runs().on("2026-11-30T09:00:00Z").edit(|contract| contract.add_product(sale("credit-100", "100.00")));
    let story = story.on("2026-11-30T09:00:10Z").run().on("2026-11-30T09:00:20Z").pay("UB-INV-1", "120.00");
    let story = story.on("2026-11-30T09:00:30Z").grant(credit("G1", "100.00").sold_by("UB-INV-1"));
    let story = story.event("2026-11-30T09:02:00Z", "tokens", 7_500_000);
    let back = charge("back", "2026-11-30", "-40.00").pricing("credit-100").with_fixed_items();
    // One run issues the credit note and then the invoice.
    let story = story.on("2026-11-30T10:00:00Z").charge(back).on("2026-12-01").run();
    let issued = bill(&story, "2026-12-01");
    assert_eq!(
        overview(&story, "2026-12-01"),
        ["UB-CRD-1 2026-11-30 48.00", "UB-INV-1 2026-11-30 120.00", "UB-INV-2 2026-11-01 18.00"]
    );
    assert_eq!(usable_drawn_covered_free(&issued, "G1"), ["60.00", "60.00", "0.00", "0.00"]);
}

#[test]
fn a_void_gives_credit_back_and_the_replacement_takes_it_again() {
    let story = fee_with_credit("60.00").on("2026-02-05").grant(credit("G2", "5.00").covers_until("2026-01-31"));
    let story = story.on("2026-02-06").void("UB-INV-1");
    let voided = bill(&story, "2026-02-06");
    assert_eq!(voided.document("UB-INV-1").prepaid(), ["G1 60.00"]);
    assert_eq!(voided.document("UB-INV-2").prepaid(), ["G2 5.00", "G1 55.00"]);
    assert_eq!(usable_drawn_covered_free(&voided, "G1"), ["100.00", "55.00", "0.00", "45.00"]);
}

#[test]
fn a_document_is_not_voided_if_later_documents_returned_its_credit() {
    // The usage debit took credit that the family's credit note returned.
    let plan = terms("2026-01-01", "2026-01-31").pricing("plan").fixed("fee", "10.00").usage("calls", per_unit("1.00"));
    let plan = plan.tax(20).payment_time(PaymentTime::BeforeUse);
    let story = Simulation::new().contract(plan).created("2026-01-01").on("2026-01-02").grant(credit("G1", "50.00"));
    let story = story.event("2026-01-10", "calls", 40);
    let issued = bill(&story, "2026-02-05");
    assert_eq!(issued.document("UB-DBT-1").prepaid(), ["G1 40.00"]);
    let voided = bill(&story.clone().on("2026-02-05").void("UB-DBT-1"), "2026-02-05");
    assert_eq!(voided.document("UB-DBT-2").prepaid(), ["G1 40.00"]);
    let back = story.on("2026-02-05").charge(charge("back", "2026-01-10", "-20.00").with_fixed_items().issued_at_once());
    let back = back.on("2026-02-06").void("UB-DBT-1").refused("document_has_dependents");
    let back = bill(&back, "2026-02-06");
    assert_eq!(back.document("UB-CRD-1").prepaid(), ["G1 10.00"]);
    assert_eq!(usable_drawn_covered_free(&back, "G1"), ["50.00", "30.00", "0.00", "20.00"]);
}

#[test]
fn each_document_of_an_event_draws_at_its_issue() {
    let usage = terms("2026-01-01", "2026-01-31").pricing("ai").usage("tokens", per_unit("1.00")).tax(20);
    let story = Simulation::new().contract(usage.net_terms(NetTerms::DueUponUsage)).created("2026-01-01");
    let story = story.on("2026-01-02").grant(credit("G1", "10.00"));
    let story = story.event("2026-01-03", "tokens", 7).named("first").event("2026-01-04", "tokens", 7);
    let issued = bill(&story, "2026-01-04");
    assert_eq!(issued.document_of_event("first").prepaid(), ["G1 7.00"]);
    let children: Vec<String> = issued.documents().iter().flat_map(|document| document.prepaid()).collect();
    assert_eq!(children, ["G1 7.00", "G1 3.00"]);
    let deleted = bill(&story.on("2026-01-05").delete_event("first"), "2026-01-31");
    assert_eq!(usable_drawn_covered_free(&deleted, "G1"), ["10.00", "7.00", "0.00", "3.00"]);
}

#[test]
fn previews_show_the_credit_that_the_issue_takes() {
    let story = tokens().on("2026-11-02").grant(credit("G1", "10.00")).event("2026-11-10", "tokens", 700_000);
    let shown = bill(&story, "2026-11-10");
    let current = shown.preview_current().expect("small amounts");
    assert_eq!(in_short(&current), ["UB-INV-1 2026-11-01 0.00 DRAFT"]);
    assert_eq!(current[0].prepaid(), ["G1 7.00"]);
    assert_eq!(overview(&story, "2026-12-02"), ["UB-INV-1 2026-11-01 0.00"]);
}

#[test]
fn an_issue_by_hand_leaves_earlier_drafts_their_credit() {
    let usage = terms("2026-01-01", "2026-12-31").pricing("ai").usage("tokens", per_unit("1.00")).tax(20);
    let story =
        Simulation::new().contract(usage).created("2026-01-01").without_runs().on("2026-01-02").grant(credit("G1", "10.00"));
    let story = story.event("2026-01-10", "tokens", 6).event("2026-02-10", "tokens", 6).on("2026-02-11").issue("UB-INV-2");
    let issued = bill(&story, "2026-02-11");
    assert_eq!(issued.document("UB-INV-2").prepaid(), ["G1 4.00"]);
    assert_eq!(usable_drawn_covered_free(&issued, "G1"), ["10.00", "4.00", "6.00", "0.00"]);
}
