//! Tests of previews, cancels with a last day, resumes and void documents (billing rules 2, 5, 7).

use billing_domain::contract::ContractState;
use billing_domain::contract::schedule::CycleUnit;
use billing_domain::contract::terms::PaymentTime;
use billing_domain::document::DocumentKind;
use billing_domain::simulate::{Bill, Simulation, customer, entity, per_unit, terms};

use super::{bill, fee, in_short, overview, total, year};

/// Returns a contract with a fee of 31.00 per month in advance, and calls at 0.10.
fn in_advance() -> Simulation {
    let terms = fee("p", "31.00").usage("calls", per_unit("0.10")).payment_time(PaymentTime::BeforeUse);
    Simulation::new().contract(terms)
}

/// Asserts the current and the next period by their first days. Each period costs 100.00.
#[track_caller]
fn previews(bill: &Bill, current: Option<&str>, next: Option<&str>) {
    let shown = [bill.preview_current(), bill.preview_next()].map(|shown| in_short(&shown.expect("a preview")));
    let expected = [current, next].map(|start| start.iter().map(|start| format!("INVOICE {start} 100.00")).collect::<Vec<_>>());
    assert_eq!(shown, expected);
}

#[test]
fn a_gap_between_two_terms_shows_the_second_next() {
    let story = Simulation::new()
        .contract(terms("2026-01-01", "2026-02-28").pricing("p").fixed("fee", "100.00"))
        .contract(terms("2026-04-01", "2026-05-31").pricing("p"));
    for (day, current, next) in [
        ("2026-02-10", Some("2026-02-01"), Some("2026-04-01")),
        ("2026-03-10", None, Some("2026-04-01")),
        ("2026-04-10", Some("2026-04-01"), Some("2026-05-01")),
        ("2026-05-10", Some("2026-05-01"), None),
        ("2026-06-10", None, None),
    ] {
        previews(&bill(&story, day), current, next);
    }
    assert_eq!(overview(&story, "2026-06-10").len(), 4);
}

#[test]
fn a_gap_in_one_product_shows_what_follows_next() {
    let story = Simulation::new().contract(terms("2026-01-01", "2026-02-28").pricing("p").fixed("fee", "100.00"));
    previews(&bill(&story, "2026-03-10"), None, None);
    let story = story
        .on("2026-03-10")
        .edit(|contract| contract.effective_from("2026-04-01").product("p", |p| p.billed("2026-01-01", "2026-05-31")));
    previews(&bill(&story, "2026-03-10"), None, Some("2026-04-01"));
    previews(&bill(&story, "2026-04-10"), Some("2026-04-01"), Some("2026-05-01"));
}

#[test]
fn before_the_start_the_first_period_is_next() {
    let contract = terms("2026-03-01", "2026-12-31").pricing("p").fixed("fee", "100.00");
    previews(&bill(&Simulation::new().contract(contract).created("2026-01-10"), "2026-01-10"), None, Some("2026-03-01"));
}

#[test]
fn current_shows_what_contains_today_and_nothing_else() {
    let current = |story: &Simulation, day: &str| in_short(&bill(story, day).preview_current().expect("a preview"));
    let ended = Simulation::new()
        .contract(fee("year", "1200.00").billing_cycle(CycleUnit::Yearly, 1))
        .contract(terms("2026-01-01", "2026-01-31").pricing("month").fixed("fee", "100.00"));
    assert_eq!(current(&ended, "2026-02-01"), ["INVOICE 2026-01-01 1200.00"]);
    assert_eq!(current(&ended, "2026-03-20"), ["INVOICE 2026-01-01 1200.00"], "January's invoice is not current");
    // The periods of `short` are counted back from 11 March. The last period is 11 February to 10 March.
    let cut = Simulation::new()
        .contract(fee("month", "100.00"))
        .contract(terms("2026-01-01", "2026-03-10").pricing("short").fixed("fee", "20.00"));
    assert_eq!(current(&cut, "2026-03-01"), ["INVOICE 2026-02-11 20.00", "INVOICE 2026-03-01 100.00"]);
    assert_eq!(current(&cut, "2026-03-20"), ["INVOICE 2026-03-01 100.00"], "a period that ended on the 10th is not current");
}

#[test]
fn a_void_draft_stays_as_it_was() {
    let story = Simulation::new()
        .contract(year("p").usage("calls", per_unit("0.10")))
        .event("2026-01-05", "calls", 100)
        .named("gone")
        .on("2026-01-05")
        .delete_event("gone");
    let before = bill(&story, "2026-02-01");
    assert_eq!(before.overview(), ["UB-INV-1 2026-01-01 0.00 VOID"]);
    let after = story
        .on("2026-02-01")
        .edit_customer(customer().name("Acme & Sons").tax(19))
        .on("2026-02-01")
        .edit_entity(entity("default").with(|profile| profile.grace_hours = 3))
        .on("2026-02-01")
        .edit(|contract| {
            let terms = |p: billing_domain::simulate::ProductEdit| p.note("Another note").discount(10).tax(7);
            contract.po_number("PO-7").include_current_invoice().product("p", terms)
        })
        .late_event("2026-01-06", "calls", 10, "2026-02-01")
        .named("late");
    let after = bill(&after, "2026-02-01");
    assert_eq!(after.document_of_event("late").number.to_string(), "UB-INV-2");
    assert_eq!(after.document("UB-INV-1"), before.document("UB-INV-1"));
}

#[test]
fn a_credit_for_unused_days_names_those_days() {
    let cancelled = bill(&in_advance().on("2026-01-10").cancel_today(), "2026-01-10");
    let line = cancelled.document("UB-CRD-1").line("fee");
    assert_eq!((line.days().to_string().as_str(), line.amount().to_string().as_str()), ("2026-01-11…2026-01-31", "21.00 EUR"));
    assert_eq!(cancelled.overview().len(), 2);
}

#[test]
fn a_last_day_in_the_past_ends_the_contract_there() {
    let story = in_advance().on("2026-02-05").cancel_on("2026-01-10");
    let cancelled = bill(&story, "2026-02-05");
    assert_eq!(cancelled.state(), ContractState::Cancelled);
    assert_eq!(cancelled.contract().effective_end_date().map(|day| day.to_string()).as_deref(), Some("2026-01-10"));
    // Ten of January's 31 days are owed, nothing of February.
    assert_eq!(cancelled.sums()[3], "10.00");
    let mut credited: Vec<String> = cancelled
        .documents()
        .iter()
        .filter(|document| document.kind() == DocumentKind::Credit)
        .map(|credit| format!("{:?} {} {:?}", credit.parent(), credit.total(), credit.issue_date()))
        .collect();
    credited.sort();
    let expected = [r#"Some("UB-INV-1") 21.00 EUR Some(2026-02-05)"#, r#"Some("UB-INV-2") 31.00 EUR Some(2026-02-05)"#];
    assert_eq!(credited, expected);
    let story = story
        .late_event("2026-01-10", "calls", 100, "2026-02-05")
        .late_event("2026-01-11", "calls", 100, "2026-02-05")
        .refused("no_matching_contract");
    assert_eq!(total(&story, "2026-02-06"), "20.00", "usage up to the last day is still billed");
}

#[test]
fn a_last_day_ahead_bills_its_days_and_issues_nothing_early() {
    let story = Simulation::new().contract(fee("p", "28.00")).on("2026-01-10").cancel_on("2026-02-14");
    let cancelled = bill(&story, "2026-01-10");
    assert_eq!(cancelled.state(), ContractState::Cancelling);
    assert_eq!(cancelled.contract().effective_end_date().map(|day| day.to_string()).as_deref(), Some("2026-02-14"));
    assert_eq!(cancelled.overview(), [""; 0]);
    assert_eq!(in_short(&cancelled.preview_next().expect("a preview")), ["INVOICE 2026-02-01 14.00"]);
    assert_eq!(overview(&story, "2026-02-14"), ["UB-INV-1 2026-01-01 28.00"]);
    // 14 of February's 28 days.
    assert_eq!(overview(&story, "2026-02-15"), ["UB-INV-1 2026-01-01 28.00", "UB-INV-2 2026-02-01 14.00"]);
    assert_eq!(bill(&story, "2026-02-15").state(), ContractState::Cancelled);
}

#[test]
fn a_last_day_before_the_first_annuls_the_contract() {
    let story = in_advance()
        .on("2026-02-05")
        .cancel_on("2025-12-30")
        .refused("out_of_range")
        .on("2026-02-05")
        .cancel_on("2025-12-31")
        .late_event("2026-01-10", "calls", 1, "2026-02-05")
        .refused("no_matching_contract");
    let annulled = bill(&story, "2026-02-05");
    assert_eq!(annulled.sums()[3], "0.00");
    assert_eq!(annulled.overview().len(), 4, "a credit for each invoice");
    assert_eq!(annulled.state(), ContractState::Cancelled);
}

#[test]
fn a_last_day_before_usage_is_refused() {
    let story = in_advance()
        .late_event("2026-01-08", "calls", 10, "2026-01-10")
        .on("2026-01-10")
        .cancel_on("2026-01-07")
        .refused("usage_already_reported");
    assert_eq!(bill(&story, "2026-01-10").contract().version, 1);
    // Eight of 31 days, and the usage.
    assert_eq!(total(&story.on("2026-01-10").cancel_on("2026-01-08"), "2026-01-10"), "9.00");
}

#[test]
fn a_cancelled_contract_may_be_cancelled_earlier() {
    let story = in_advance().on("2026-01-10").cancel_on("2026-01-25");
    assert_eq!(total(&story, "2026-01-10"), "25.00");
    let story = story.on("2026-01-10").cancel_on("2026-01-20");
    assert_eq!(total(&story, "2026-01-10"), "20.00");
    for last_day in ["2026-01-20", "2026-01-25"] {
        bill(&story.clone().on("2026-01-10").cancel_on(last_day).refused("contract_over"), "2026-01-10");
    }
}

/// Returns a contract with a fee of 100.00, billed during use. February's invoice, with 10.00 of January's usage, is issued
/// by hand.
fn next_invoice_is_issued() -> Simulation {
    Simulation::new()
        .contract(fee("p", "100.00").usage("calls", per_unit("0.10")).payment_time(PaymentTime::DuringUse))
        .event("2026-01-05", "calls", 100)
        .on("2026-01-05")
        .issue("UB-INV-2")
}

#[test]
fn a_cancel_after_the_next_invoice_credits_the_next_period_alone() {
    let story = next_invoice_is_issued().on("2026-01-20").cancel();
    let papers = ["UB-CRD-1 2026-02-01 100.00", "UB-INV-1 2026-01-01 100.00", "UB-INV-2 2026-02-01 110.00"];
    assert_eq!(overview(&story, "2026-01-20"), papers, "January's usage stays on its invoice");
    assert_eq!(overview(&story, "2026-02-01"), papers, "January's usage is not billed again");
}

#[test]
fn a_cancel_now_after_the_next_invoice_bills_no_usage_again() {
    let billed = bill(&next_invoice_is_issued().on("2026-01-20").cancel_today(), "2026-02-01");
    // 20 of January's 31 days are 64.52, and 10.00 of usage.
    assert_eq!(billed.sums()[3], "74.52");
    let expected =
        ["UB-CRD-1 2026-01-21 35.48", "UB-CRD-2 2026-02-01 100.00", "UB-INV-1 2026-01-01 100.00", "UB-INV-2 2026-02-01 110.00"];
    assert_eq!(billed.overview(), expected, "no usage is credited and billed again");
    let parents = ["UB-CRD-1", "UB-CRD-2"].map(|credit| billed.document(credit).parent());
    assert_eq!(parents.each_ref().map(Option::as_deref), [Some("UB-INV-1"), Some("UB-INV-2")]);
}

#[test]
fn a_cancel_after_the_next_invoice_and_more_usage_bills_that_alone() {
    let story = next_invoice_is_issued().late_event("2026-01-19", "calls", 100, "2026-01-20").on("2026-01-20").cancel();
    let expected =
        ["UB-CRD-1 2026-02-01 100.00", "UB-DBT-1 2026-01-01 10.00", "UB-INV-1 2026-01-01 100.00", "UB-INV-2 2026-02-01 110.00"];
    assert_eq!(overview(&story, "2026-02-01"), expected);
}

#[test]
fn a_cancel_after_an_invoice_of_usage_alone_makes_no_document() {
    let story = Simulation::new()
        .contract(year("p").usage("calls", per_unit("0.10")).payment_time(PaymentTime::DuringUse))
        .event("2026-01-05", "calls", 100)
        .on("2026-01-05")
        .issue("UB-INV-1")
        .on("2026-01-20")
        .cancel_today();
    assert_eq!(overview(&story, "2026-02-01"), ["UB-INV-1 2026-02-01 10.00"]);
}

#[test]
fn a_cancel_after_an_invoice_of_a_minimum_fee_makes_no_document() {
    let story = Simulation::new()
        .contract(year("p").usage("calls", per_unit("0.10")).minimum_fee("50.00").payment_time(PaymentTime::DuringUse))
        .event("2026-01-05", "calls", 100)
        .on("2026-01-05")
        .issue("UB-INV-1");
    assert_eq!(overview(&story, "2026-01-05"), ["UB-INV-1 2026-02-01 50.00"]);
    assert_eq!(overview(&story.on("2026-01-20").cancel(), "2026-02-01"), ["UB-INV-1 2026-02-01 50.00"]);
}

/// Returns a contract with a fee of 31.00 and 10.00 of usage. The invoice is issued by hand in its period.
fn current_invoice_is_issued() -> Simulation {
    let story = Simulation::new()
        .contract(fee("p", "31.00").usage("calls", per_unit("0.10")))
        .event("2026-01-05", "calls", 100)
        .on("2026-01-05")
        .issue("UB-INV-1");
    assert_eq!(overview(&story, "2026-01-05"), ["UB-INV-1 2026-01-01 41.00"]);
    story
}

#[test]
fn a_cancel_now_after_the_current_invoice_credits_the_unused_days_alone() {
    let billed = bill(&current_invoice_is_issued().on("2026-01-20").cancel_today(), "2026-02-01");
    assert_eq!(billed.document("UB-CRD-1").amounts(), ["fee 11.00"]);
    assert_eq!(billed.overview().len(), 2, "{:?}", billed.overview());
}

#[test]
fn a_cancel_at_the_periods_end_after_the_current_invoice_makes_no_document() {
    let story = current_invoice_is_issued().on("2026-01-20").cancel();
    assert_eq!(overview(&story, "2026-02-01"), ["UB-INV-1 2026-01-01 41.00"]);
}

#[test]
fn a_cancel_of_a_later_term_bills_nothing_of_it() {
    let story = Simulation::new()
        .contract(fee("p", "31.00"))
        .contract(terms("2026-02-01", "2026-12-31").pricing("q").fixed("fee", "20.00"))
        .on("2026-01-10")
        .cancel();
    assert_eq!(overview(&story, "2026-03-01"), ["UB-INV-1 2026-01-01 31.00"], "q has not started and never starts");
}

#[test]
fn an_entity_that_moves_to_another_time_zone_lets_its_contracts_be_cancelled() {
    // The zone is 14 hours ahead of UTC: noon of 31 January in UTC is in February there.
    let story = Simulation::new()
        .entity(entity("default").time_zone("Pacific/Kiritimati"))
        .contract(year("p").usage("calls", per_unit("0.10")))
        .late_event("2026-01-31T11:00:00Z", "calls", 100, "2026-01-31T12:00:00Z")
        .on("2026-02-10T12:00:00Z")
        .edit_entity(entity("default").time_zone("UTC"))
        .on("2026-02-10T12:00:00Z")
        .cancel_today();
    let billed = overview(&story, "2026-02-10T12:00:00Z");
    assert_eq!(billed, ["UB-INV-1 2026-02-01 10.00"], "the service date was set on receipt");
}

#[test]
fn a_resume_within_the_last_day_gives_the_rest_back_as_a_debit() {
    let story = in_advance().on("2026-01-10").cancel_today();
    assert_eq!(total(&story, "2026-01-10"), "10.00");
    let story = story.on("2026-01-10T23:00:00Z").resume();
    let resumed = bill(&story, "2026-01-10");
    assert_eq!((resumed.state(), resumed.contract().cancelled_at), (ContractState::Active, None));
    assert_eq!(resumed.contract().effective_end_date().map(|day| day.to_string()).as_deref(), Some("2026-12-31"));
    let debit = resumed.document("UB-DBT-1");
    assert_eq!(debit.total().to_string(), "21.00 EUR");
    assert_eq!(debit.issue_date().map(|day| day.to_string()).as_deref(), Some("2026-01-10"));
    assert_eq!(debit.parent().as_deref(), Some("UB-INV-1"));
    assert_eq!(total(&story, "2026-02-01"), "62.00", "January and February");
}

#[test]
fn a_resume_of_a_cancel_at_the_periods_end_leaves_no_trace() {
    let story = Simulation::new().contract(fee("p", "100.00")).on("2026-01-10").cancel().on("2026-01-31").resume();
    let resumed = bill(&story, "2026-01-31");
    assert_eq!(resumed.overview(), [""; 0]);
    assert_eq!(in_short(&resumed.preview_next().expect("a preview")), ["INVOICE 2026-02-01 100.00"]);
    assert_eq!(overview(&story, "2026-03-01"), ["UB-INV-1 2026-01-01 100.00", "UB-INV-2 2026-02-01 100.00"]);
}

#[test]
fn a_resume_after_the_last_day_is_refused() {
    let story = in_advance().on("2026-01-10").cancel_today();
    let before = overview(&story, "2026-01-11");
    assert_eq!(overview(&story.on("2026-01-11").resume().refused("contract_over"), "2026-01-11"), before);
}

#[test]
fn a_replaced_invoice_bills_the_present_terms() {
    let story = in_advance()
        .on("2026-01-05")
        .void("UB-INV-1")
        .on("2026-01-05")
        .edit(|contract| contract.include_current_invoice().product("p", |p| p.discount(50)));
    let billed = bill(&story, "2026-01-05");
    assert_eq!(billed.overview(), ["UB-INV-1 2026-01-01 31.00 VOID", "UB-INV-2 2026-01-01 15.50"]);
    assert_eq!(billed.document("UB-INV-2").replaces().as_deref(), Some("UB-INV-1"));
}

#[test]
fn an_invoice_voided_twice_over_bills_its_period_once() {
    let story = in_advance().on("2026-01-01").void("UB-INV-1").on("2026-01-01T13:00:00Z").void("UB-INV-2");
    let expected = ["UB-INV-1 2026-01-01 31.00 VOID", "UB-INV-2 2026-01-01 31.00 VOID", "UB-INV-3 2026-01-01 31.00"];
    assert_eq!(overview(&story, "2026-01-01"), expected);
}
