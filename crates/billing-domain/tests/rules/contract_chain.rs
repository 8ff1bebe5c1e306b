//! Tests of a contract's version chain: states by day, and periods across versions (billing rules 7).

use billing_domain::calendar::{Period, TimeZone, plus_days};
use billing_domain::contract::schedule::CycleUnit;
use billing_domain::contract::terms::ProductTerms;
use billing_domain::contract::{Contract, ContractProduct, ContractState, EndReason, ProductPeriod, Segment, SegmentTerms};
use billing_domain::refs::{ContractRef, ProductNo};
use billing_domain::warning::Warning;
use billing_testkit::{CountingIds, fixtures, strategies};
use chrono::NaiveDate;
use fixtures::{agreed, at, date};
use proptest::prelude::*;

fn terms(first: &str, last: &str) -> ProductTerms {
    agreed(&fixtures::pricing("api", vec![fixtures::fixed("base", "10")]), first, last)
}

fn billed(first: &str, last: &str) -> SegmentTerms {
    SegmentTerms::Billed(Box::new(terms(first, last)))
}

const REMOVED: SegmentTerms = SegmentTerms::Ended(EndReason::Removed);
const CANCELLED: SegmentTerms = SegmentTerms::Ended(EndReason::Cancelled);

fn chain(no: u16, segments: Vec<(&str, SegmentTerms)>) -> ContractProduct {
    let segment = |(version, (from, agreed)): (u32, (&str, SegmentTerms))| Segment { version, in_force_from: date(from), agreed };
    ContractProduct { no: ProductNo(no), segments: (1..).zip(segments).map(segment).collect() }
}

fn contract(products: Vec<ContractProduct>, cancelled: bool) -> Contract {
    let ids = CountingIds::new();
    let mut contract = fixtures::contract(&ids, &fixtures::customer(&ids, "acme"), vec![]);
    contract.products = products;
    contract.cancelled_at = cancelled.then(|| fixtures::at(fixtures::CREATED_AT));
    contract
}

fn assert_states(contract: &Contract, rows: &[(&str, ContractState)]) {
    for (day, expected) in rows {
        assert_eq!(contract.state(TimeZone::UTC, at(&format!("{day}T12:00:00Z"))), *expected, "{day}");
    }
}

#[test]
fn a_contract_is_pending_then_active_then_completed_by_time() {
    use ContractState::{Active, Completed, Pending};
    let products = vec![
        chain(0, vec![("2026-03-01", billed("2026-03-01", "2026-06-30"))]),
        chain(1, vec![("2026-02-01", billed("2026-02-01", "2026-03-31"))]),
    ];
    let contract = contract(products, false);
    assert_eq!(contract.effective_end_date(), Some(date("2026-06-30")));
    let rows = [
        ("0001-01-01", Pending),
        ("2026-01-31", Pending),
        ("2026-02-01", Active),
        ("2026-04-01", Active),
        ("2026-06-30", Active),
        ("2026-07-01", Completed),
        ("9999-12-31", Completed),
    ];
    assert_states(&contract, &rows);
}

#[test]
fn between_two_products_a_contract_is_active() {
    let products = vec![
        chain(0, vec![("2026-01-01", billed("2026-01-01", "2026-01-31"))]),
        chain(1, vec![("2026-03-01", billed("2026-03-01", "2026-03-31"))]),
    ];
    assert_states(&contract(products, false), &[("2026-02-14", ContractState::Active), ("2026-04-01", ContractState::Completed)]);
}

#[test]
fn a_cancelled_contract_is_cancelling_until_its_last_period_is_over() {
    use ContractState::{Cancelled, Cancelling};
    let products = vec![
        chain(0, vec![("2026-01-01", billed("2026-01-01", "2026-12-31")), ("2026-03-01", CANCELLED)]),
        chain(1, vec![("2026-01-15", billed("2026-01-15", "2026-12-31")), ("2026-04-01", CANCELLED)]),
    ];
    let contract = contract(products, true);
    assert_eq!(contract.effective_end_date(), Some(date("2026-03-31")));
    let rows = [("2026-02-10", Cancelling), ("2026-03-31", Cancelling), ("2026-04-01", Cancelled), ("2027-01-01", Cancelled)];
    assert_states(&contract, &rows);
}

#[test]
fn a_contract_cancelled_before_its_start_is_cancelled_and_bills_no_day() {
    let product = chain(0, vec![("2026-03-01", billed("2026-03-01", "2026-12-31")), ("2026-03-01", CANCELLED)]);
    assert_eq!((product.billed(), product.first_period(), product.periods().count()), (None, None, 0));
    let contract = contract(vec![product], true);
    assert_eq!(contract.effective_end_date(), None);
    let cancelled = ContractState::Cancelled;
    assert_states(&contract, &[("2026-02-01", cancelled), ("2026-03-01", cancelled), ("2027-01-01", cancelled)]);
}

#[test]
fn a_removed_product_ends_without_cancelling_the_contract() {
    use ContractState::{Active, Completed};
    let removed = || chain(0, vec![("2026-01-01", billed("2026-01-01", "2026-12-31")), ("2026-03-01", REMOVED)]);
    let kept = chain(1, vec![("2026-01-01", billed("2026-01-01", "2026-06-30"))]);
    assert_states(
        &contract(vec![removed(), kept], false),
        &[("2026-03-01", Active), ("2026-06-30", Active), ("2026-07-01", Completed)],
    );
    assert_states(&contract(vec![removed()], false), &[("2026-02-28", Active), ("2026-03-01", Completed)]);
}

#[test]
fn a_contract_without_products_is_active_until_it_is_cancelled() {
    for (cancelled, expected) in [(false, ContractState::Active), (true, ContractState::Cancelled)] {
        let contract = contract(vec![], cancelled);
        assert_eq!(contract.effective_end_date(), None);
        assert_states(&contract, &[("2026-01-01", expected), ("9999-12-31", expected)]);
    }
}

/// Returns whether a period is the first period of its product's contract with a line item.
fn is_first_with(period: &ProductPeriod<'_>, id: &str) -> bool {
    let contract = contract(vec![period.product.clone()], false);
    let first = contract.once_billed_in(&period.terms.pricing.pricing_ref, &fixtures::line_item_id(id));
    first == Some((period.start(), period.product_no))
}

/// Returns whether a period is the first with the line item that all versions have.
fn is_first(period: &ProductPeriod<'_>) -> bool {
    is_first_with(period, "base")
}

/// Formats a period as the billing rules do. The last day of the version's range identifies the terms.
fn shown(period: &ProductPeriod<'_>) -> String {
    let (share, of) = (period.period.share(), period.terms.schedule.range().last_day());
    let partial = if period.period.is_partial() { format!(" ({}/{})", share.days, share.of) } else { String::new() };
    let first = if is_first(period) { " first" } else { "" };
    format!("{}{partial} until {of}{first}", period.period.span())
}

fn shown_all(product: &ContractProduct) -> Vec<String> {
    product.periods().map(|period| shown(&period)).collect()
}

#[test]
fn periods_are_those_of_each_version_clipped_to_its_time_in_force() {
    let product = chain(
        0,
        vec![
            ("2026-01-15", billed("2026-01-15", "2026-12-31")),
            ("2026-03-10", billed("2026-01-15", "2026-05-09")),
            ("2026-05-01", REMOVED),
        ],
    );
    // The second version is agreed for a day in March, so it takes effect with April.
    let expected = [
        "2026-01-15…2026-01-31 (17/31) until 2026-12-31 first",
        "2026-02-01…2026-02-28 until 2026-12-31",
        "2026-03-01…2026-03-31 until 2026-12-31",
        "2026-04-01…2026-04-09 (9/31) until 2026-05-09",
        "2026-04-10…2026-04-30 (21/30) until 2026-05-09",
    ];
    assert_eq!(shown_all(&product), expected);
    assert_eq!(product.billed(), Period::inclusive(date("2026-01-15"), date("2026-04-30")));
    assert_eq!(product.newest_terms().map(|terms| terms.schedule.range().last_day()), Some(date("2026-05-09")));
}

#[test]
fn a_version_that_never_comes_into_force_bills_nothing() {
    let product = chain(
        0,
        vec![
            ("2026-01-01", billed("2026-01-01", "2026-12-31")),
            ("2026-02-01", billed("2026-01-01", "2026-11-30")),
            ("2026-02-01", billed("2026-01-01", "2026-03-31")),
        ],
    );
    let expected = [
        "2026-01-01…2026-01-31 until 2026-12-31 first",
        "2026-02-01…2026-02-28 until 2026-03-31",
        "2026-03-01…2026-03-31 until 2026-03-31",
    ];
    assert_eq!(shown_all(&product), expected);
}

#[test]
fn neighbours_are_found_over_versions_and_gaps() {
    let product = chain(
        0,
        vec![
            ("2026-01-01", billed("2026-01-01", "2026-12-31")),
            ("2026-02-10", REMOVED),
            ("2026-02-15", billed("2026-01-01", "2026-02-28")),
            ("2026-04-01", billed("2026-05-01", "2026-06-30")),
        ],
    );
    let starts: Vec<String> = product.periods().map(|period| period.period.span().start().to_string()).collect();
    assert_eq!(starts, ["2026-01-01", "2026-02-01", "2026-02-15", "2026-05-01", "2026-06-01"]);
    // `period_after` takes a period's exclusive end. `period_before` takes a period's first day.
    let after = [
        ("2026-01-01", Some("2026-01-01")),
        ("2026-02-01", Some("2026-02-01")),
        ("2026-02-15", Some("2026-02-15")),
        ("2026-03-01", Some("2026-05-01")),
        ("2026-06-01", Some("2026-06-01")),
        ("2026-07-01", None),
    ];
    for (end, expected) in after {
        let found = product.period_after(date(end)).map(|period| period.period.span().start());
        assert_eq!(found, expected.map(date), "after {end}");
    }
    let before = [
        ("2026-01-01", None),
        ("2026-02-01", Some("2026-01-01")),
        ("2026-02-15", Some("2026-02-01")),
        ("2026-03-01", Some("2026-02-15")),
        ("2026-05-01", Some("2026-02-15")),
        ("2026-06-01", Some("2026-05-01")),
        ("2026-07-01", Some("2026-06-01")),
    ];
    for (start, expected) in before {
        let found = product.period_before(date(start)).map(|period| period.period.span().start());
        assert_eq!(found, expected.map(date), "before {start}");
    }
    for (day, expected) in [("2025-12-31", None), ("2026-02-28", Some("2026-02-15")), ("2026-03-01", None), ("2026-04-30", None)]
    {
        assert_eq!(product.period_at(date(day)).map(|period| period.period.span().start()), expected.map(date), "at {day}");
    }
}

#[test]
fn only_the_first_billed_period_is_the_first() {
    // The first version ends before it bills a day. The second version's first period is the product's first period.
    let product =
        chain(0, vec![("2026-01-01", billed("2026-01-01", "2026-12-31")), ("2026-01-01", billed("2026-02-01", "2026-03-31"))]);
    assert_eq!(product.periods().map(|period| is_first(&period)).collect::<Vec<_>>(), [true, false]);
    assert_eq!(product.first_period().map(|period| period.period.span().start()), Some(date("2026-02-01")));
}

#[test]
fn a_later_version_takes_the_place_of_earlier_ones_also_where_it_begins_before_them() {
    // A removal is planned for April and a price rise for June. Then an edit takes effect from March or May.
    let rows: [(&str, SegmentTerms, &[&str]); 3] = [
        ("2026-03-01", billed("2026-01-01", "2026-04-30"), &["2026-01-01", "2026-02-01", "2026-03-01", "2026-04-01"]),
        ("2026-03-01", REMOVED, &["2026-01-01", "2026-02-01"]),
        (
            "2026-05-01",
            billed("2026-01-01", "2026-06-30"),
            &["2026-01-01", "2026-02-01", "2026-03-01", "2026-05-01", "2026-06-01"],
        ),
    ];
    for (from, agreed, expected) in rows {
        let segments = vec![
            ("2026-01-01", billed("2026-01-01", "2026-12-31")),
            ("2026-04-01", REMOVED),
            ("2026-06-01", billed("2026-01-01", "2026-12-31")),
            (from, agreed),
        ];
        let starts: Vec<String> = chain(0, segments).periods().map(|period| period.start().to_string()).collect();
        assert_eq!(starts, expected, "from {from}");
    }
}

#[test]
fn every_version_keeps_its_plan() {
    let product = chain(
        0,
        vec![
            ("2026-01-01", billed("2026-01-01", "2026-12-31")),
            ("2026-03-01", CANCELLED),
            ("2026-03-01", billed("2026-01-01", "2026-06-30")),
        ],
    );
    let shown = |version: u32| -> Vec<String> {
        let clip = |clip: &billing_domain::contract::TermsInterval<'_>| match clip.cut {
            Some(reason) => format!("{} {reason:?}", clip.days),
            None => clip.days.to_string(),
        };
        product.plan_of(version).iter().map(clip).collect()
    };
    let rows: [(u32, &[&str]); 5] = [
        (0, &[]),
        (1, &["2026-01-01…2026-12-31"]),
        (2, &["2026-01-01…2026-02-28 Cancelled"]),
        (3, &["2026-01-01…2026-02-28", "2026-03-01…2026-06-30"]),
        (u32::MAX, &["2026-01-01…2026-02-28", "2026-03-01…2026-06-30"]),
    ];
    for (version, expected) in rows {
        assert_eq!(shown(version), expected, "version {version}");
    }
}

#[test]
fn the_first_period_with_a_line_item_is_the_first_of_the_version_that_brings_it() {
    let catalog = fixtures::pricing("api", vec![fixtures::fixed("base", "10"), fixtures::once("setup", "99")]);
    let more = SegmentTerms::Billed(Box::new(agreed(&catalog, "2026-01-01", "2026-12-31")));
    let product = chain(0, vec![("2026-01-01", billed("2026-01-01", "2026-12-31")), ("2026-03-01", more)]);
    let first_with = |id: &str| -> Vec<String> {
        product.periods().filter(|period| is_first_with(period, id)).map(|period| period.start().to_string()).collect()
    };
    assert_eq!(first_with("base"), ["2026-01-01"]);
    assert_eq!(first_with("setup"), ["2026-03-01"]);
    assert!(first_with("other").is_empty());
}

#[test]
fn the_terms_on_a_day_without_any_are_the_next_ones_or_else_the_last() {
    let product = chain(
        0,
        vec![
            ("2026-01-01", billed("2026-01-01", "2026-01-31")),
            ("2026-03-01", billed("2026-03-01", "2026-03-31")),
            ("2026-05-01", billed("2026-05-01", "2026-05-31")),
        ],
    );
    let rows = [
        ("2025-06-01", "2026-01-01"),
        ("2026-01-31", "2026-01-01"),
        ("2026-02-01", "2026-03-01"),
        ("2026-04-30", "2026-05-01"),
        ("2026-06-01", "2026-05-01"),
    ];
    for (day, expected) in rows {
        let found = product.terms_on(date(day)).map(|terms| terms.schedule.range().start());
        assert_eq!(found, Some(date(expected)), "{day}");
    }
}

/// Generates up to three versions with random schedules from random days. Later versions may start before earlier ones.
fn any_chain() -> impl Strategy<Value = ContractProduct> {
    let versions = prop::collection::vec((strategies::schedule(), 0u32..1_500, 0u32..300, 0u32..8), 1..4);
    versions.prop_map(|versions| {
        let mut from: Option<NaiveDate> = None;
        let mut segments = Vec::new();
        for (version, (schedule, later, earlier, kind)) in (1..).zip(versions) {
            let moved = |before: NaiveDate| plus_days(before, later) - chrono::TimeDelta::days(i64::from(earlier));
            let in_force_from = from.map_or(schedule.range().start(), moved);
            from = Some(in_force_from);
            let mut terms = terms("2026-01-01", "2026-12-31");
            // The start is near the previous version, so that both versions bill some days.
            let start = plus_days(in_force_from, later % 60);
            let cycle = schedule.cycle();
            let last = plus_days(start, schedule.range().days() - 1);
            terms.schedule =
                billing_domain::contract::schedule::BillingSchedule::new(start, last, cycle, None).expect("a schedule");
            let agreed = if kind == 0 { REMOVED } else { SegmentTerms::Billed(Box::new(terms)) };
            segments.push(Segment { version, in_force_from, agreed });
        }
        ContractProduct { no: ProductNo(0), segments }
    })
}

/// Returns the terms in force that cover each day, by a slow search. Terms that follow other terms wait for a period.
fn covering(product: &ContractProduct, first: NaiveDate, days: u32) -> Vec<Option<&ProductTerms>> {
    let mut present: Option<&SegmentTerms> = None;
    let on = |day| {
        let agreed = product.segments.iter().rev().find(|segment| segment.in_force_from <= day).map(|segment| &segment.agreed);
        let before = present.and_then(SegmentTerms::terms).filter(|_| agreed.and_then(SegmentTerms::terms).is_some());
        let waits = before.and_then(|before| before.schedule.period_at(day)).is_some_and(|period| period.span().start() < day);
        if !waits {
            present = agreed;
        }
        present.and_then(SegmentTerms::terms).filter(|terms| terms.schedule.range().contains(day))
    };
    first.iter_days().take(days as usize).map(on).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1_000))]

    #[test]
    fn every_covered_day_is_in_exactly_one_period(product in any_chain()) {
        let periods: Vec<ProductPeriod<'_>> = product.periods().collect();
        prop_assert!(periods.windows(2).all(|pair| pair[0].period.span().end() <= pair[1].period.span().start()));
        let first = product.segments.iter().map(|segment| segment.in_force_from).min().expect("a version");
        for (day, terms) in first.iter_days().zip(covering(&product, first, 4_000)).step_by(7) {
            let holding: Vec<_> = periods.iter().filter(|period| period.period.span().contains(day)).collect();
            prop_assert_eq!(holding.len(), usize::from(terms.is_some()), "{}", day);
            prop_assert_eq!(holding.first().map(|period| period.terms), terms);
            prop_assert_eq!(product.period_at(day), holding.first().map(|period| **period));
        }
        prop_assert_eq!(periods.iter().filter(|period| is_first(period)).count(), usize::from(!periods.is_empty()));
    }

    #[test]
    fn each_period_is_its_neighbours_neighbour(product in any_chain()) {
        let periods: Vec<ProductPeriod<'_>> = product.periods().collect();
        for pair in periods.windows(2) {
            prop_assert_eq!(product.period_after(pair[0].period.span().end()), Some(pair[1]));
            prop_assert_eq!(product.period_before(pair[1].period.span().start()), Some(pair[0]));
        }
        prop_assert_eq!(periods.first().and_then(|first| product.period_before(first.period.span().start())), None);
        prop_assert_eq!(periods.last().and_then(|last| product.period_after(last.period.span().end())), None);
        prop_assert!(periods.iter().all(|period| period.period.share().days <= period.period.share().of));
        prop_assert!(periods.iter().all(|p| p.terms.schedule.cycle().unit() != CycleUnit::OneTime || p.period.nominal() == p.terms.schedule.range()));
    }
}

#[test]
fn a_contract_cancelled_at_once_is_cancelling_until_its_last_day_is_over() {
    let mut contract =
        contract(vec![chain(0, vec![("2026-01-01", billed("2026-01-01", "2026-12-31")), ("2026-03-11", CANCELLED)])], true);
    contract.cancelled_at = Some(at("2026-03-10T09:00:00Z"));
    assert_states(&contract, &[("2026-03-10", ContractState::Cancelling), ("2026-03-11", ContractState::Cancelled)]);
}

#[test]
fn a_contract_is_the_same_as_a_recent_one_with_equal_pricings_and_days() {
    let at_seconds = |seconds| fixtures::at(fixtures::CREATED_AT).plus_seconds(seconds);
    let year = || chain(0, vec![("2026-01-01", billed("2026-01-01", "2026-12-31"))]);
    let half = || chain(1, vec![("2026-01-01", billed("2026-01-01", "2026-06-30"))]);
    let made = |number: u64, seconds, products| {
        let created_at = at_seconds(seconds);
        let contract_ref = ContractRef::from_uuid(uuid::Uuid::from_u128(u128::from(number)));
        Contract { number, created_at, contract_ref, ..contract(products, false) }
    };
    let named = |created: &Contract, others: &[Contract]| {
        Warning::of_duplicate(created, others).map(|warning| match warning {
            Warning::SameAs { contract_number, .. } => contract_number,
            Warning::NoTaxCategory { .. } | Warning::OpenPeriods { .. } => panic!("{warning}"),
        })
    };
    let created = made(9, 300, vec![year(), half()]);
    let same = |number, seconds| made(number, seconds, vec![half(), year()]);
    let cancelled = Contract { cancelled_at: Some(at_seconds(20)), ..same(4, 10) };
    let of_other_pricing = {
        let terms = agreed(&fixtures::pricing("storage", vec![fixtures::fixed("base", "10")]), "2026-01-01", "2026-06-30");
        made(5, 10, vec![year(), chain(1, vec![("2026-01-01", SegmentTerms::Billed(Box::new(terms)))])])
    };
    let ended = chain(0, vec![("2026-01-01", billed("2026-01-01", "2026-12-31")), ("2026-07-01", REMOVED)]);
    for (others, expected) in [
        (vec![same(1, 0)], Some("C-1")),
        (vec![same(1, -1)], None),
        (vec![same(1, 0), same(2, 200), same(3, 100)], Some("C-2")),
        (vec![cancelled], None),
        (vec![of_other_pricing], None),
        (vec![made(6, 10, vec![year()])], None),
        (vec![made(6, 10, vec![year(), year()])], None),
        (vec![made(6, 10, vec![half(), ended])], None),
        (vec![created.clone()], None),
    ] {
        assert_eq!(named(&created, &others).as_deref(), expected, "{others:?}");
    }
    assert_eq!(named(&made(9, 300, Vec::new()), &[made(1, 100, Vec::new())]), None);
}
