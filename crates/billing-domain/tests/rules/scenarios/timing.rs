//! Tests of when documents are created and what they bill: before, during and after use, upon usage, in any time zone
//! (billing rules 2, 3, 4).

use billing_domain::contract::terms::PaymentTime;
use billing_domain::document::Purpose;
use billing_domain::party::NetTerms;
use billing_domain::simulate::{Simulation, StepTime, Terms, customer, entity, per_unit, terms, volume};

use super::{api_plan, bill, in_short, overview};

/// Returns a simulation whose customer pays 19 % tax.
fn taxed() -> Simulation {
    Simulation::new().customer(customer().tax(19))
}

/// Returns terms with a base of 20.00 and calls at 0.10. 1000 calls are paid in advance.
fn prepaid(first: &str, last: &str) -> Terms {
    terms(first, last).fixed("base", "20.00").usage("calls", per_unit("0.10").prepaid(1000))
}

/// Returns terms with a base of 20.00 and calls at 0.10.
fn base_and_calls(first: &str, last: &str) -> Terms {
    terms(first, last).fixed("base", "20.00").usage("calls", per_unit("0.10"))
}

#[test]
fn before_use_bills_what_is_prepaid_and_a_debit_the_rest() {
    let refusal = taxed().contract(prepaid("2026-01-01", "2026-02-28")).until("2026-01-01").expect_err("a refusal");
    assert_eq!(refusal.codes(), ["prepaid_needs_before_use"]);
    let story = taxed().contract(prepaid("2026-01-01", "2026-02-28").payment_time(PaymentTime::BeforeUse));
    let issued = bill(&story, "2026-01-01");
    let invoice = issued.document("UB-INV-1");
    assert_eq!(invoice.amounts(), ["base 20.00", "calls 100.00"], "issued on its first day");
    assert_eq!(invoice.totals(), ["120.00", "0.00", "22.80", "142.80"]);

    let story = story.event("2026-01-10", "calls", 800);
    assert_eq!(bill(&story, "2026-01-10").document("UB-DBT-1").amounts(), ["calls 0.00"]);
    let story = story.event("2026-01-10", "calls", 700);
    let used = bill(&story, "2026-01-10");
    let debit = used.document("UB-DBT-1");
    assert_eq!(debit.to_string(), "UB-DBT-1 DRAFT 2026-01-01…2026-01-31: 59.50 EUR");
    assert!(matches!(debit.purpose(), Purpose::Regular(_)));
    assert_eq!(debit.parent().as_deref(), Some("UB-INV-1"));
    assert_eq!(bill(&story, "2026-01-31").documents().len(), 2, "the period is not over");

    let story = story.on("2026-01-10").issue("UB-DBT-1").event("2026-01-10", "calls", 10).named("late");
    let late = bill(&story, "2026-01-10");
    let adjustment = late.document_of_event("late");
    assert_eq!(adjustment.to_string(), "UB-DBT-2 DRAFT 2026-01-01…2026-01-31: 1.19 EUR");
    assert_eq!(adjustment.purpose(), Purpose::Adjustment);
    assert_eq!(adjustment.parent().as_deref(), Some("UB-INV-1"), "an adjustment's parent is always an invoice");
    assert!(late.document("UB-INV-1").says_the_same_as(invoice));
}

#[test]
fn a_debit_of_a_period_opens_the_invoice_it_belongs_to() {
    let story = taxed()
        .contract(prepaid("2026-01-01", "2026-01-31").payment_time(PaymentTime::BeforeUse))
        .created("2026-02-10")
        .late_event("2026-01-20", "calls", 1500, "2026-02-10")
        .named("event");
    let drafted = bill(&story, "2026-02-10T12:00:00Z");
    assert_eq!(drafted.document_of_event("event").number.to_string(), "UB-DBT-1");
    assert_eq!(drafted.overview(), ["UB-DBT-1 2026-01-01 59.50 DRAFT", "UB-INV-1 2026-01-01 142.80 DRAFT"]);
    assert_eq!(overview(&story, "2026-02-10"), ["UB-DBT-1 2026-01-01 59.50", "UB-INV-1 2026-01-01 142.80"]);
}

#[test]
fn during_use_bills_each_periods_usage_on_the_next_invoice_and_closes() {
    let story = taxed()
        .contract(base_and_calls("2026-01-01", "2026-02-28").payment_time(PaymentTime::DuringUse))
        .event("2026-01-01", "calls", 100)
        .named("first")
        .event("2026-02-01", "calls", 200)
        .named("second")
        .late_event("2026-01-01", "calls", 1, "2026-03-10")
        .named("late");
    let billed = bill(&story, "2026-03-10");
    assert_eq!(billed.document("UB-INV-1").amounts(), ["base 20.00"]);
    let invoice = billed.document_of_event("first");
    let mut lines: Vec<String> =
        invoice.lines().map(|line| format!("{} {} {}", line.name(), line.days(), line.amount())).collect();
    lines.sort();
    assert_eq!(lines, ["base 2026-02-01…2026-02-28 20.00 EUR", "calls 2026-01-01…2026-01-31 10.00 EUR"]);
    let closing = billed.document_of_event("second");
    assert_eq!((closing.amounts(), closing.period), (vec!["calls 20.00".to_owned()], invoice.period));
    assert!(matches!(closing.purpose(), Purpose::Regular(_)));

    let debit = billed.document_of_event("late");
    assert_eq!(debit.parent(), Some(invoice.number.to_string()), "the invoice that billed the usage");
    assert_eq!((debit.period.to_string().as_str(), debit.amounts()), ("2026-01-01…2026-01-31", vec!["calls 0.10".to_owned()]));
}

#[test]
fn the_last_period_of_during_use_shows_its_closing_invoice_next() {
    let story = Simulation::new()
        .contract(base_and_calls("2026-01-01", "2026-01-31").payment_time(PaymentTime::DuringUse))
        .without_runs();
    let next = bill(&story, "2026-01-10").preview_next().expect("a preview");
    assert_eq!((next[0].amounts(), in_short(&next)), (vec!["calls 0.00".to_owned()], vec!["INVOICE 2026-01-01 0.00".to_owned()]));
    let used = bill(&story.event("2026-01-10", "calls", 200), "2026-01-10");
    let next = used.preview_next().expect("a preview");
    assert_eq!((next[0].amounts(), in_short(&next)), (vec!["calls 20.00".to_owned()], used.overview()));
    let current = used.preview_current().expect("a preview");
    assert!(current.iter().any(|document| document.amounts() == ["base 20.00"]), "{current:?}");
}

#[test]
fn every_event_due_upon_usage_is_an_invoice_of_its_own() {
    let story = taxed()
        .contract(api_plan(terms("2026-01-01", "2026-02-28")).net_terms(NetTerms::DueUponUsage))
        .event("2026-01-10", "calls", 60)
        .named("first")
        .event("2026-01-10", "calls", 60)
        .named("second")
        .event("2026-01-10", "calls", 0)
        .named("unpriced");
    let used = bill(&story, "2026-01-10");
    // Tier by tier: 60 at 0.10; 40 at 0.10 and 20 at 0.05.
    for (event, number, amount) in [("first", "UB-INV-2", "6.00"), ("second", "UB-INV-3", "5.00")] {
        let child = used.document_of_event(event);
        assert_eq!((child.number.to_string().as_str(), child.totals()[0].as_str()), (number, amount));
        assert_eq!((child.purpose(), child.parent().as_deref()), (Purpose::Usage, Some("UB-INV-1")));
        let dates = [child.issue_date(), child.due_date()].map(|date| date.map(|date| date.to_string()));
        assert_eq!(dates, [Some("2026-01-10".to_owned()), Some("2026-01-10".to_owned())]);
    }
    // An event that changes no amount belongs to the document that bills the period's usage.
    let parent = used.document_of_event("unpriced");
    assert_eq!((parent.number.to_string().as_str(), parent.issue_date()), ("UB-INV-1", None));
    assert_eq!(parent.amounts(), ["platform-fee 49.00", "calls 0.00"]);
}

/// Returns a contract for January, agreed in February. All units have the price of the quantity's tier: 0.10 up to 100, then
/// 0.05.
fn by_volume() -> Simulation {
    let calls = volume([(Some("100"), "0.10"), (None, "0.05")]);
    taxed()
        .contract(terms("2026-01-01", "2026-01-31").usage("calls", calls).net_terms(NetTerms::DueUponUsage))
        .created("2026-02-10")
        .late_event("2026-01-20", "calls", 100, "2026-02-10")
        .named("event")
}

#[test]
fn an_event_that_lowers_the_price_is_credited_at_once() {
    // 101 at 0.05 instead of 100 at 0.10.
    let story = by_volume().late_event("2026-01-20", "calls", 1, "2026-02-10").named("one more");
    let billed = bill(&story, "2026-02-10");
    let credit = billed.document_of_event("one more");
    assert_eq!((credit.number.to_string().as_str(), credit.totals()[0].as_str()), ("UB-CRD-1", "4.95"));
    assert_eq!((credit.purpose(), credit.parent().as_deref()), (Purpose::Usage, Some("UB-INV-1")));
    assert!(credit.status.is_issued());
    assert_eq!(billed.document("UB-INV-1").to_string(), "UB-INV-1 ISSUED 2026-01-01…2026-01-31: 0.00 EUR", "it has children");
}

#[test]
fn an_event_due_upon_usage_is_corrected_by_a_document_of_its_own_invoice() {
    let child = bill(&by_volume(), "2026-02-10T12:00:00Z");
    let child = child.document_of_event("event");
    assert_eq!(child.to_string(), "UB-INV-2 ISSUED 2026-01-01…2026-01-31: 11.90 EUR");
    let corrected = bill(&by_volume().on("2026-02-10").update_event("event", |event| event.quantity(70)), "2026-02-10");
    let credit = corrected.document_of_event("event");
    assert_eq!((credit.number.to_string().as_str(), credit.amounts()), ("UB-CRD-1", vec!["calls 3.00".to_owned()]));
    assert_eq!((credit.purpose(), credit.parent().as_deref()), (Purpose::Adjustment, Some("UB-INV-2")));
    assert_eq!(corrected.document("UB-INV-1").amounts(), ["calls 0.00"], "its descendants bill the whole amount");
    assert!(corrected.document("UB-INV-2").says_the_same_as(child));
}

#[test]
fn products_that_agree_share_a_document() {
    let of = |name: &str| terms("2026-01-01", "2026-01-31").pricing(name).fixed(name, "10.00");
    let story = taxed()
        .contract(of("a").note("First").tax(7))
        .contract(of("b").net_terms(NetTerms::Days(30)))
        .contract(of("c").note("Second").discount(50));
    let previews = bill(&story, "2026-01-10").preview_current().expect("a preview");
    let amounts: Vec<Vec<String>> = previews.iter().map(|document| document.amounts()).collect();
    assert_eq!(amounts, [vec!["a 10.00", "c 10.00"], vec!["b 10.00"]]);
    // The tax is 0.70 on 10.00 at 7 %, and 0.95 on 5.00 at 19 %.
    assert_eq!(previews[0].totals(), ["20.00", "5.00", "1.65", "16.65"]);
    assert_eq!(previews[0].note(), Some("First\nSecond"));
}

#[test]
fn products_that_are_billed_alike_share_a_document_and_others_do_not() {
    let of = |name: &str| terms("2026-01-01", "2026-12-31").pricing(name).usage(name, per_unit("0.11")).tax(0);
    let mut story = Simulation::new()
        .entity(entity("second").prefix("SEC"))
        .contract(of("a"))
        .contract(of("b").discount(50).tax(19))
        .contract(of("c").entity("second"))
        .contract(of("d").currency("USD"))
        .contract(of("e").net_terms(NetTerms::Days(30)));
    for name in ["a", "b", "c", "d", "e"] {
        story = story.event("2026-01-10", name, 100).named(name);
    }
    let used = bill(&story, "2026-01-10");
    let numbers = ["a", "b", "c", "d", "e"].map(|name| used.document_of_event(name).number.to_string());
    assert_eq!(numbers, ["UB-INV-1", "UB-INV-1", "SEC-INV-1", "UB-INV-2", "UB-INV-3"]);
    assert_eq!(used.preview_current().expect("a preview").len(), 4);
    let shared = used.document("UB-INV-1");
    assert_eq!(shared.amounts(), ["a 11.00", "b 11.00"]);
    // 11.00 untaxed; 11.00 less 5.50, and 19 % of the rest: 1.045 rounded half up.
    assert_eq!(shared.totals(), ["22.00", "5.50", "1.05", "17.55"]);
    assert_eq!(shared.content.taxes.len(), 2);
}

#[test]
fn what_is_previewed_is_what_is_issued() {
    for (payment_time, issued) in [(PaymentTime::BeforeUse, 1), (PaymentTime::DuringUse, 1), (PaymentTime::AfterUse, 0)] {
        // The first period is part of a month, so its amount is prorated.
        let contract = base_and_calls("2026-01-11", "2026-03-03").payment_time(payment_time).discount(10).tax(19);
        let story = Simulation::new().contract(contract).created("2026-01-21").without_runs();
        let previews = bill(&story, "2026-01-21").preview_current().expect("a preview");
        let story = story.on("2026-01-21").run();
        let run = bill(&story, "2026-01-21");
        assert_eq!(run.documents().len(), issued, "{payment_time:?}");
        for document in run.documents() {
            let previewed = &previews[0];
            assert_eq!((document.kind(), document.period), (previewed.kind(), previewed.period), "{payment_time:?}");
            assert_eq!(document.content, previewed.content, "{payment_time:?}");
        }
        let cancelled = bill(&story.clone().on("2026-01-21").cancel(), "2026-01-21").preview_current().expect("a preview");
        let contents = |documents: &[billing_domain::simulate::SimulatedDocument]| {
            documents.iter().map(|document| document.content.clone()).collect::<Vec<_>>()
        };
        assert_eq!(contents(&cancelled), contents(&previews), "{payment_time:?}");

        let story = story.event("2026-01-21", "calls", 123).named("event");
        let drafted = bill(&story, "2026-01-21");
        let draft = drafted.document_of_event("event");
        let issued = bill(&story.on("2026-01-21").issue(&draft.number.to_string()), "2026-01-21");
        assert_eq!(issued.document_of_event("event").content, draft.content);
    }
}

#[test]
fn a_draft_on_which_nothing_stands_any_more_is_voided_with_its_number() {
    let story = Simulation::new()
        .contract(terms("2026-01-01", "2026-01-31").usage("calls", per_unit("0.10")))
        .event("2026-01-20", "calls", 5)
        .named("event")
        .on("2026-01-20")
        .delete_event("event");
    assert_eq!(overview(&story, "2026-02-01"), ["UB-INV-1 2026-01-01 0.00 VOID"]);
    // A document with usage is issued even at a total of zero.
    let story = story.late_event("2026-01-20", "calls", 0, "2026-02-10");
    assert_eq!(overview(&story, "2026-02-10"), ["UB-INV-1 2026-01-01 0.00 VOID", "UB-INV-2 2026-01-01 0.00"]);
}

#[test]
fn what_was_neither_used_nor_costs_anything_is_not_billed() {
    let idle = Simulation::new().contract(terms("2026-01-01", "2026-01-31").usage("calls", per_unit("0.10")));
    assert_eq!(overview(&idle, "2026-02-10"), [""; 0]);
    assert_eq!(bill(&idle, "2026-02-10").preview_current(), Ok(Vec::new()));
    let used = idle.event("2026-01-20", "calls", 0);
    assert_eq!(overview(&used, "2026-02-10"), ["UB-INV-1 2026-01-01 0.00"]);
    let due = bill(&used, "2026-02-10").document("UB-INV-1").amount_due();
    assert_eq!(due.map(|due| due.minor()), Some(0), "the invoice has no amount due");
}

#[test]
fn a_day_ends_in_the_entitys_time_zone_and_its_grace_passes_first() {
    for (zone, grace, issued_at) in [
        ("Pacific/Kiritimati", 0, "2026-01-31T10:00:00Z"),
        ("Pacific/Pago_Pago", 0, "2026-02-01T11:00:00Z"),
        ("UTC", 720, "2026-03-03T00:00:00Z"),
    ] {
        let story = Simulation::new()
            .entity(entity("default").time_zone(zone).grace_hours(grace))
            .contract(terms("2026-01-22", "2026-01-31").fixed("base", "10.00"));
        let StepTime::Instant(due) = billing_domain::simulate::SimulatedValue::read(issued_at).expect("an instant") else {
            panic!("{issued_at} is an instant");
        };
        assert_eq!(bill_at(&story, due.plus_seconds(-1)), None, "{zone}");
        let expected = if grace == 0 { "2026-02-01" } else { "2026-03-03" };
        assert_eq!(bill_at(&story, due).as_deref(), Some(expected), "{zone}");
    }
}

/// Returns the issue date of the first invoice at an instant.
fn bill_at(story: &Simulation, at: billing_domain::calendar::Timestamp) -> Option<String> {
    let bill = story.until(at).expect("a bill");
    bill.documents().first().and_then(|invoice| invoice.issue_date()).map(|date| date.to_string())
}

#[test]
fn a_day_begins_at_midnight_of_the_entity() {
    // The zone is 14 hours ahead of UTC all year.
    let story = Simulation::new()
        .entity(entity("first-of-all").prefix("KIR").time_zone("Pacific/Kiritimati"))
        .contract(api_plan(terms("2026-01-11", "2026-12-31")).entity("first-of-all"))
        .event("2026-01-10T09:59:59.999999Z", "calls", 1)
        .refused("no_matching_contract")
        .event("2026-01-10T10:00:00Z", "calls", 1)
        .named("first")
        .event("2026-01-11T00:00:00+14:00", "calls", 1)
        .named("second");
    let used = bill(&story, "2026-01-11");
    let numbers = ["first", "second"].map(|event| used.document_of_event(event).number.to_string());
    assert_eq!(numbers, ["KIR-INV-1", "KIR-INV-1"]);
}

#[test]
fn a_debit_below_zero_is_a_credit_that_is_issued_again_after_a_void() {
    // 20 calls cost 2.00, and 10.00 is paid in advance.
    let calls = volume([(Some("10"), "1.00"), (None, "0.10")]).prepaid(10);
    let story = Simulation::new()
        .contract(terms("2026-01-01", "2026-01-31").usage("calls", calls).payment_time(PaymentTime::BeforeUse))
        .event("2026-01-05", "calls", 20)
        .named("event");
    let billed = bill(&story, "2026-02-01");
    assert_eq!(billed.document_of_event("event").to_string(), "UB-CRD-1 ISSUED 2026-01-01…2026-01-31: 8.00 EUR");
    assert_eq!(billed.document("UB-INV-1").amount_due().map(|due| due.minor()), Some(200));
    let story = story.on("2026-02-01").void("UB-CRD-1");
    let again = bill(&story, "2026-02-02");
    assert_eq!(again.document_of_event("event").to_string(), "UB-CRD-2 ISSUED 2026-01-01…2026-01-31: 8.00 EUR");
}

#[test]
fn the_invoice_of_a_debit_is_issued_at_a_total_of_zero() {
    let contract = terms("2026-01-01", "2026-01-31").usage("calls", per_unit("0.10")).payment_time(PaymentTime::BeforeUse);
    let idle = Simulation::new().contract(contract);
    assert_eq!(overview(&idle, "2026-02-01"), [""; 0]);
    let used = idle.event("2026-01-10", "calls", 5);
    assert_eq!(overview(&used, "2026-02-01"), ["UB-DBT-1 2026-01-01 0.50", "UB-INV-1 2026-01-01 0.00"]);
}

#[test]
fn an_invoice_is_due_after_the_net_terms() {
    let rows =
        [(NetTerms::Days(30), "2026-03-03"), (NetTerms::DueUponReceipt, "2026-02-01"), (NetTerms::DueUponUsage, "2026-02-01")];
    for (net_terms, due) in rows {
        let contract = terms("2026-01-01", "2026-01-31").fixed("fee", "1.00").net_terms(net_terms);
        let billed = bill(&Simulation::new().contract(contract), "2026-02-01");
        assert_eq!(billed.document("UB-INV-1").due_date().map(|day| day.to_string()).as_deref(), Some(due));
    }
}

#[test]
fn a_draft_that_is_issued_early_leaves_later_usage_of_its_period_to_a_debit() {
    let story = Simulation::new()
        .contract(base_and_calls("2026-01-01", "2026-02-28"))
        .event("2026-01-15", "calls", 20)
        .on("2026-01-15")
        .issue("UB-INV-1")
        .event("2026-01-20", "calls", 5);
    assert_eq!(overview(&story, "2026-02-01"), ["UB-DBT-1 2026-01-01 0.50", "UB-INV-1 2026-01-01 22.00"]);
}
