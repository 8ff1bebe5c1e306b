//! Tests of edits that move an end, a start or the period boundaries, together with other changes (billing rules 1, 7).

use billing_domain::contract::amendment::{EffectiveFrom, ProductPatch};
use billing_domain::contract::schedule::{BillingCycle, CycleUnit};
use billing_domain::contract::terms::{PaymentTime, RequestedProduct};
use billing_domain::patch::Patch;
use billing_domain::refs::ProductNo;
use billing_testkit::fixtures::{date, fixed, per_unit, percent, pricing};
use chrono::NaiveDate;

use super::book::{Book, Setup, code, element, from, repriced};

const NEXT: EffectiveFrom = EffectiveFrom::NextPeriod;
const CURRENT: EffectiveFrom = EffectiveFrom::CurrentPeriod;

fn plan(change: impl FnOnce(&mut ProductPatch)) -> Vec<ProductPatch> {
    let numbered = |plan: &mut ProductPatch| {
        plan.product_no = Some(ProductNo(0));
        change(plan);
    };
    vec![element("plan", numbered)]
}

fn ends(day: &str) -> Vec<ProductPatch> {
    plan(|plan| plan.billing_end_date = Some(date(day)))
}

fn discounted(rate: &str) -> Vec<ProductPatch> {
    plan(|plan| plan.discount = Patch::Set(percent(rate)))
}

fn over(product: &mut RequestedProduct, first: &str, last: &str) {
    (product.billing_start_date, product.billing_end_date) = (date(first), date(last));
}

/// Bills a fee of 30.00 in advance from June, and usage at 1.00. Ten calls are reported, and it is 10 June.
fn june() -> Book {
    let plan = pricing("plan", vec![fixed("fee", "30"), per_unit("calls", "1")]);
    let setup = Setup::new().product(plan, |product| {
        over(product, "2027-06-01", "2027-12-31");
        product.payment_time = Some(PaymentTime::BeforeUse);
    });
    let mut book = setup.create("2027-06-01T00:00:00Z");
    book.run("2027-06-01").go_to("2027-06-05").event("2027-06-05", "10");
    book.go_to("2027-06-10");
    assert_eq!(book.billed(), "40.00");
    book
}

/// An end in the past of the current period and a change of the current period hold together:
/// (30.00 × 8 ÷ 30 + 10.00) × 50 %.
#[test]
fn an_end_before_today_takes_the_other_fields_with_it() {
    let mut book = june();
    let both = plan(|plan| {
        plan.billing_end_date = Some(date("2027-06-08"));
        plan.discount = Patch::Set(percent("50"));
    });
    book.edit(CURRENT, both).expect("an edit");
    assert_eq!(book.billed(), "9.00", "{}", book.dump());
    // 8.00 + 10 × 0.30
    let mut book = june();
    let both = plan(|plan| {
        plan.billing_end_date = Some(date("2027-06-08"));
        let fee = billing_domain::contract::terms::RequestedLineItem::plain(billing_testkit::fixtures::line_item_id("fee"));
        plan.line_items = Patch::Set(vec![fee, repriced("calls", "0.30")]);
    });
    book.edit(CURRENT, both).expect("an edit");
    assert_eq!(book.billed(), "11.00", "{}", book.dump());
}

/// An edit changes every field that it names, or is refused: no period is left for the discount.
#[test]
fn a_change_that_no_period_would_have_is_refused() {
    let both = |last: &str| {
        plan(|plan| {
            plan.billing_end_date = Some(date(last));
            plan.discount = Patch::Set(percent("50"));
        })
    };
    let rows = [
        (NEXT, both("2027-06-30")),
        (CURRENT, both("2027-05-31")),
        (from("2027-06-09"), both("2027-06-08")),
        (from("2028-01-01"), discounted("50")),
    ];
    for (since, elements) in rows {
        let mut book = june();
        let shown = format!("{since:?} {elements:?}");
        // A last day before the first one is no range.
        let expected = if shown.contains("2027-05-31") { "out_of_range" } else { "product_over" };
        assert_eq!(code(&book.edit(since, elements).expect_err("a change without days")), expected, "{shown}");
        assert_eq!(book.billed(), "40.00", "{shown}");
    }
    // In the last period, nothing comes next. Values that are agreed already are no change.
    let mut book = june();
    book.go_to("2027-12-10");
    assert_eq!(code(&book.edit(NEXT, discounted("50")).expect_err("no next period")), "product_over");
    book.edit(from("2028-01-01"), plan(|plan| plan.payment_time = Patch::Set(PaymentTime::BeforeUse))).expect("no change");
    book.edit(CURRENT, discounted("50")).expect("the current period");
    // A product that is over keeps its terms.
    book.go_to("2028-01-10");
    assert_eq!(code(&book.edit(NEXT, discounted("10")).expect_err("the product is over")), "product_over");
}

/// Bills two products of 60.00 in advance. `q` ends with June.
fn two(cycle: CycleUnit) -> Book {
    let setup = Setup::new()
        .product(pricing("plan", vec![fixed("fee", "60")]), |product| {
            product.payment_time = Some(PaymentTime::BeforeUse);
            over(product, "2027-06-01", "2027-12-31");
        })
        .product(pricing("q", vec![fixed("fee", "60")]), |product| {
            product.payment_time = Some(PaymentTime::BeforeUse);
            product.billing_cycle = BillingCycle::new(cycle, 1);
            over(product, "2027-06-01", "2027-06-30");
        });
    let mut book = setup.create("2027-06-01T00:00:00Z");
    book.run("2027-06-01").go_to("2027-06-10");
    assert_eq!(book.owed(), "120.00");
    book
}

/// A product that is left out in its last period keeps its end when it is left out again.
#[test]
fn a_product_left_out_again_keeps_the_end_that_was_agreed() {
    for cycle in [CycleUnit::Monthly, CycleUnit::OneTime] {
        for since in [NEXT, from("2027-07-01"), from("2027-09-01")] {
            let mut book = two(cycle);
            book.edit(since, plan(|_| {})).expect("an edit");
            assert_eq!(book.go_to("2027-06-15").owed(), "120.00");
            book.edit(CURRENT, discounted("50")).expect("an edit");
            assert_eq!(book.owed(), "90.00", "{cycle:?} {since:?}: {}", book.dump());
        }
        // Left out once, with the flag: q ends today.
        let mut book = two(cycle);
        book.go_to("2027-06-15").edit(CURRENT, plan(|_| {})).expect("an edit");
        assert_eq!(book.owed(), "90.00");
        // Put back before its end, the product goes on as if nothing was.
        let mut book = two(cycle);
        book.edit(NEXT, plan(|_| {})).expect("an edit");
        book.edit(NEXT, vec![element("plan", |_| {}), element("q", |_| {})]).expect("an edit");
        book.edit(CURRENT, plan(|_| {})).expect("an edit");
        assert_eq!(book.owed(), "80.00", "left out for the first time again: 60.00 + 60.00 × 10 ÷ 30");
    }
}

/// Returns a quarterly product of 90.00 from 4 December 2026 to 3 June 2027 that has not started. A discount of 10 % is planned
/// for 4 March.
fn quarterly() -> Book {
    let setup = Setup::new().product(pricing("plan", vec![fixed("fee", "90")]), |product| {
        product.billing_cycle = BillingCycle::new(CycleUnit::Quarterly, 1);
        over(product, "2026-12-04", "2027-06-03");
    });
    let mut book = setup.create("2026-11-01");
    book.edit(from("2027-03-04"), discounted("10")).expect("a planned discount");
    book
}

fn period_days(book: &Book) -> Vec<String> {
    book.periods().into_iter().map(|(days, discount)| format!("{days} {discount}")).collect()
}

/// A moved end moves the boundaries of a product that has not begun, and planned changes move with them. Moved back, the end
/// restores the agreed dates.
#[test]
fn planned_changes_move_with_the_boundaries() {
    let mut book = quarterly();
    let as_agreed = ["2026-12-04…2027-03-03 0", "2027-03-04…2027-06-03 10"];
    assert_eq!(period_days(&book), as_agreed);
    book.edit(NEXT, ends("2027-07-04")).expect("another end");
    assert_eq!(period_days(&book), ["2026-12-04…2027-01-04 0", "2027-01-05…2027-04-04 0", "2027-04-05…2027-07-04 10"]);
    let mut moved_back = quarterly();
    moved_back.edit(NEXT, ends("2027-07-04")).expect("another end");
    moved_back.edit(NEXT, ends("2027-06-03")).expect("the end as agreed");
    assert_eq!(period_days(&moved_back), as_agreed);
    book.run_on(["2027-01-05", "2027-04-05", "2027-07-05"]);
    // 90.00 × 32 ÷ 92, 90.00 and 81.00
    assert_eq!(book.documents(), ["INV-1 31.30 ISSUED", "INV-2 90.00 ISSUED", "INV-3 81.00 ISSUED"]);
}

/// A new issue day, a new cycle and a moved start move planned changes, too.
#[test]
fn planned_changes_move_with_an_issue_day_a_cycle_and_a_start() {
    let mut book = quarterly();
    book.edit(NEXT, plan(|plan| plan.issue_day = Patch::Set(date("2027-01-15")))).expect("an issue day");
    assert_eq!(period_days(&book), ["2026-12-04…2027-01-14 0", "2027-01-15…2027-04-14 0", "2027-04-15…2027-06-03 10"]);
    book.edit(NEXT, plan(|plan| plan.issue_day = Patch::Clear)).expect("no issue day");
    assert_eq!(period_days(&book), ["2026-12-04…2027-03-03 0", "2027-03-04…2027-06-03 10"]);

    let mut book = quarterly();
    book.edit(NEXT, plan(|plan| plan.billing_cycle = BillingCycle::new(CycleUnit::Monthly, 2).map_or(Patch::Keep, Patch::Set)))
        .expect("a cycle");
    assert_eq!(period_days(&book), ["2026-12-04…2027-02-03 0", "2027-02-04…2027-04-03 0", "2027-04-04…2027-06-03 10"]);

    let mut book = quarterly();
    let starts = |day: &str| plan(|plan| plan.billing_start_date = Some(date(day)));
    book.edit(NEXT, starts("2027-04-01")).expect("a later start");
    assert_eq!(period_days(&book), ["2027-04-01…2027-06-03 10"]);
    book.edit(NEXT, starts("2026-12-04")).expect("the start as agreed");
    assert_eq!(period_days(&book), ["2026-12-04…2027-03-03 0", "2027-03-04…2027-06-03 10"]);
}

/// A date that is no longer the first day of a period is refused like any other, also where a change was planned for it.
#[test]
fn a_planned_date_within_a_period_is_no_period_start() {
    let mut book = quarterly();
    book.edit(NEXT, ends("2027-07-04")).expect("another end");
    assert_eq!(code(&book.edit(from("2027-03-04"), discounted("20")).expect_err("within a period")), "not_a_period_start");
    book.edit(from("2027-04-05"), discounted("20")).expect("the first day of a period");
    assert_eq!(period_days(&book)[2], "2027-04-05…2027-07-04 20");
}

/// A start and an end that move together with a discount hold together.
#[test]
fn a_start_an_end_and_a_discount_move_together() {
    let mut book = quarterly();
    let all = plan(|plan| {
        plan.billing_start_date = Some(date("2027-08-01"));
        plan.billing_end_date = Some(date("2028-01-31"));
        plan.discount = Patch::Set(percent("20"));
    });
    book.edit(NEXT, all).expect("an edit");
    assert_eq!(period_days(&book), ["2027-08-01…2027-10-31 20", "2027-11-01…2028-01-31 20"]);
    let mut book = quarterly();
    let later = plan(|plan| {
        plan.billing_start_date = Some(date("2026-12-10"));
        plan.discount = Patch::Set(percent("20"));
    });
    book.edit(from("2027-03-04"), later).expect("an edit");
    assert_eq!(period_days(&book), ["2026-12-10…2027-03-03 0", "2027-03-04…2027-06-03 20"], "the discount has its date");
}

/// The anchor is fixed once the first day has come, also without usage.
#[test]
fn an_end_moves_no_boundary_once_the_first_day_has_come() {
    let setup = || Setup::new().product(pricing("plan", vec![per_unit("calls", "1")]), |_| {});
    let mut book = setup().create("2027-01-01");
    book.go_to("2027-01-21").edit(CURRENT, ends("2028-01-20")).expect("another end");
    book.event("2027-01-21", "10");
    book.edit(NEXT, ends("2027-12-31")).expect("the end as agreed");
    let periods = period_days(&book);
    assert_eq!((periods.len(), periods[0].as_str()), (12, "2027-01-01…2027-01-31 0"));
    // On the first day, a mistyped end is put right by naming the issue day.
    let mut book = setup().create("2027-01-01");
    let right = plan(|plan| {
        plan.billing_end_date = Some(date("2028-01-20"));
        plan.issue_day = Patch::Set(date("2027-01-21"));
    });
    book.edit(CURRENT, right).expect("another end");
    assert_eq!(period_days(&book)[..2], ["2027-01-01…2027-01-20 0", "2027-01-21…2027-02-20 0"]);
    // The first day as the edit leaves it: a start that moves ahead frees the anchor, one that moves back fixes it.
    let moved = |created: &str, now: &str, start: &str| {
        let mut book = setup().create(created);
        let both = plan(|plan| {
            plan.billing_start_date = Some(date(start));
            plan.billing_end_date = Some(date("2028-01-20"));
        });
        book.go_to(now).edit(NEXT, both).expect("another start and end");
        period_days(&book).swap_remove(1)
    };
    assert_eq!(moved("2027-01-01", "2027-01-10", "2027-02-01"), "2027-02-21…2027-03-20 0");
    assert_eq!(moved("2026-12-01", "2026-12-20", "2026-12-10"), "2027-01-01…2027-01-31 0");
}

/// The period of a `ONE_TIME` product without usage is fixed by its first day, too.
#[test]
fn a_one_time_end_is_moved_back_without_usage() {
    let setup = Setup::new().product(pricing("plan", vec![fixed("fee", "365"), per_unit("calls", "1")]), |product| {
        product.billing_cycle = BillingCycle::new(CycleUnit::OneTime, 1);
    });
    let mut book = setup.create("2027-01-01");
    book.go_to("2027-01-10").edit(CURRENT, ends("2027-06-30")).expect("an earlier end");
    book.event("2027-01-10", "1");
    assert_eq!(book.billed(), "182.00", "365.00 × 181 ÷ 365 + 1.00");
    book.edit(CURRENT, ends("2027-12-31")).expect("the end as agreed");
    assert_eq!(book.billed(), "366.00");
    assert_eq!(code(&book.edit(CURRENT, ends("2028-01-31")).expect_err("a later end")), "not_retroactive");
}

/// A continued product needs a day of its own.
#[test]
fn a_product_that_is_over_goes_on_no_later_than_its_new_end() {
    let setup = Setup::new().product(pricing("plan", vec![fixed("fee", "30")]), |product| {
        over(product, "2027-01-01", "2027-01-31");
    });
    let mut book = setup.create("2027-01-01");
    book.run("2027-02-01").go_to("2027-02-10");
    let refusal = book.edit(from("2027-05-01"), ends("2027-03-31")).expect_err("no day is left");
    assert_eq!(code(&refusal), "out_of_range");
    book.edit(from("2027-03-01"), ends("2027-03-31")).expect("a month more");
    let last: NaiveDate = date("2027-03-31");
    assert_eq!(period_days(&book), ["2027-01-01…2027-01-31 0".to_owned(), format!("2027-03-01…{last} 0")]);
}

/// A product was left out, would have gone on in July, and is ended before July. A later end makes it go on from the effective
/// date, whatever was planned for July.
#[test]
fn a_product_whose_return_was_taken_back_goes_on_from_the_effective_date() {
    let fee = || vec![fixed("fee", "100")];
    let mut book =
        Setup::new().product(pricing("plan", fee()), |_| {}).product(pricing("other", fee()), |_| {}).create("2027-01-01");
    let until = |day: Option<&str>| {
        let named = |plan: &mut ProductPatch| {
            plan.billing_start_date = Some(date("2027-01-01"));
            plan.billing_end_date = day.map(date);
        };
        vec![element("plan", named), element("other", |_| {})]
    };
    book.go_to("2027-02-10").edit(from("2027-03-01"), until(None).split_off(1)).expect("an edit without the product");
    book.go_to("2027-03-10").edit(from("2027-07-01"), until(Some("2027-12-31"))).expect("a return in July");
    book.edit(from("2027-06-01"), until(Some("2027-05-31"))).expect("an end before the return");
    let days = |book: &Book| book.periods().into_iter().map(|(days, _)| days).collect::<Vec<_>>();
    assert_eq!(days(&book).len(), 2, "{:?}", days(&book));
    book.edit(from("2027-03-01"), until(Some("2027-04-30"))).expect("a return in March");
    assert_eq!(days(&book)[2..], ["2027-03-01…2027-03-31", "2027-04-01…2027-04-30"]);
}
