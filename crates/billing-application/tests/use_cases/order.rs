//! The order in which usage arrives does not change totals (billing rules 5). The same events produce the same totals per
//! line, regardless of billing runs between them and of the number of events per transaction.

use std::collections::BTreeMap;

use billing_application::UseCase;
use billing_application::catalog::edit_usage_product;
use billing_application::usage::Atomicity;
use billing_domain::catalog::{Aggregation, LineItem, UsageProductProfile};
use billing_domain::contract::terms::PaymentTime;
use billing_domain::document::{DocumentKind, DocumentState};
use billing_domain::party::NetTerms;
use billing_domain::patch::Changes;
use billing_testkit::fixtures::{self, fixed, graduated, package, percentage, requested, volume, with_charge};
use billing_testkit::random::Random;

use crate::books::{Books, THREE_TIERS, calls};
use crate::support::run;

/// The number of arrival orders over all cases. `ORDERS=n` overrides it.
const ORDERS: u64 = 108;

/// Usage of January and February. An effect of the order would be visible in tiers, steps and the latest value.
const EVENTS: [(&str, &str); 12] = [
    ("2026-01-01T00:00:00Z", "60"),
    ("2026-01-03T08:00:00Z", "0.5"),
    ("2026-01-11T08:00:00Z", "90"),
    ("2026-01-11T08:00:01Z", "0"),
    ("2026-01-20T23:59:59Z", "700"),
    ("2026-01-31T12:00:00Z", "12.25"),
    ("2026-01-31T23:59:59Z", "250"),
    ("2026-02-01T00:00:00Z", "99"),
    ("2026-02-02T10:00:00Z", "1"),
    ("2026-02-05T10:00:00Z", "0.001"),
    ("2026-02-08T10:00:00Z", "400"),
    ("2026-02-10T11:00:00Z", "33"),
];

struct Case {
    items: fn() -> Vec<LineItem>,
    aggregation: Aggregation,
    payment_time: PaymentTime,
    net_terms: NetTerms,
}

fn cases() -> Vec<Case> {
    let prices: [fn() -> Vec<LineItem>; 3] = [
        || vec![fixed("fee", "49.00"), graduated("calls", THREE_TIERS)],
        || vec![volume("calls", &[(Some("100"), "1.00", "3"), (Some("800"), "0.50", "0"), (None, "0.10", "0")])],
        || {
            let with_minimum = |item| with_charge(item, |charge| charge.minimum_amount = Some(fixtures::price("20.00")));
            let fee = percentage("calls", "1.5", "0.30");
            vec![with_minimum(package("calls", "250", "4.99")), LineItem { id: fixtures::line_item_id("fee"), ..fee }]
        },
    ];
    let mut cases = Vec::new();
    for items in prices {
        for payment_time in [PaymentTime::AfterUse, PaymentTime::DuringUse, PaymentTime::BeforeUse] {
            for net_terms in [NetTerms::Days(14), NetTerms::DueUponUsage] {
                for aggregation in [Aggregation::Sum, Aggregation::Max, Aggregation::Latest] {
                    cases.push(Case { items, aggregation, payment_time, net_terms });
                }
            }
        }
    }
    cases
}

/// Σ INVOICE + Σ DEBIT − Σ CREDIT per service period and line item, in cents.
type Totals = BTreeMap<(String, Option<String>), i64>;

/// Reports all events in an order and returns the totals. A billing run precedes some events. Some events share a
/// transaction with the previous ones.
fn totals(case: &Case, order: &[usize], mut runs: impl FnMut() -> bool, mut together: impl FnMut() -> bool) -> Totals {
    let books = Books::at("2026-02-10T12:00:00Z");
    let usage_product = fixtures::usage_product_ref("calls");
    let aggregation = case.aggregation;
    let aggregate = Changes::of(move |profile: &mut UsageProductProfile| profile.aggregation = aggregation);
    run(&books.bench.services, &books.bench.principal, UseCase::EditUsageProduct, |cx| {
        edit_usage_product(cx, &usage_product, &aggregate)
    })
    .expect("a usage product");
    let pricing = books.pricing_with("api", (case.items)(), |content| content.minimum_fee = Some(fixtures::price("55.55")));
    let mut product = requested(&pricing, "2026-01-01", "2026-02-28");
    (product.payment_time, product.net_terms) = (Some(case.payment_time), Some(case.net_terms));
    books.contract(vec![product]);
    let mut waiting = Vec::new();
    let refused = || calls("2026-03-01T00:00:00Z", "1");
    for (n, i) in order.iter().enumerate() {
        waiting.push(calls(EVENTS[*i].0, EVENTS[*i].1));
        if n + 1 < order.len() && together() {
            waiting.push(refused());
            continue;
        }
        if runs() {
            books.bill("2026-02-10T12:00:00Z");
        }
        for (event, outcome) in waiting.iter().zip(books.slice(&waiting, Atomicity::PerEvent)) {
            assert_eq!(outcome.is_err(), event.occurred_at == refused().occurred_at, "{outcome:?}");
        }
        waiting.clear();
    }
    books.bill("2026-03-01T02:00:00Z");
    books.bill("2026-03-02T02:00:00Z");
    let mut totals = Totals::new();
    for document in books.bench.documents().iter().filter(|document| document.state != DocumentState::Void) {
        assert_ne!(document.state, DocumentState::Draft, "all periods are over and must be issued");
        let sign = if document.kind == DocumentKind::Credit { -1 } else { 1 };
        for line in document.content.products.iter().flat_map(|product| &product.lines) {
            let id = line.line_item_id.as_ref().map(|id| id.as_str().to_owned());
            *totals.entry((line.service_period.to_string(), id)).or_insert(0) += sign * line.amount.minor();
        }
    }
    totals.retain(|_, minor| *minor != 0);
    totals
}

#[test]
fn the_same_usage_in_any_order_costs_the_same() {
    let cases = cases();
    let in_time: Vec<usize> = (0..EVENTS.len()).collect();
    let expected: Vec<Totals> = cases.iter().map(|case| totals(case, &in_time, || false, || false)).collect();
    let orders = std::env::var("ORDERS").map_or(ORDERS, |text| text.parse().expect("ORDERS must be a number"));
    for seed in 0..orders {
        let r = &mut Random::new(seed);
        let mut order = in_time.clone();
        for i in (1..order.len()).rev() {
            order.swap(i, usize::try_from(r.below(i as u64 + 1)).expect("an index"));
        }
        let mut runs = r.clone();
        let number = usize::try_from(seed).expect("an index") % cases.len();
        let found = totals(&cases[number], &order, || runs.percent(25), || r.percent(40));
        assert_eq!(found, expected[number], "case {number}, order {order:?} of seed {seed}");
    }
}

#[test]
fn worked_totals_of_one_case() {
    // January: 1,112.75 calls cost 10.00 + 45.00 + 1.1275, the fee 49.00; February: 533.001 cost 10.00 + 21.65.
    let case = &cases()[0];
    assert_eq!((case.aggregation, case.payment_time), (Aggregation::Sum, PaymentTime::AfterUse));
    let order: Vec<usize> = (0..EVENTS.len()).rev().collect();
    let found: Vec<(String, i64)> = totals(case, &order, || true, || false)
        .into_iter()
        .map(|((period, id), minor)| (format!("{period} {id:?}"), minor))
        .collect();
    let line = |period: &str, id: &str, minor| (format!("{period} Some({id:?})"), minor);
    let (january, february) = ("2026-01-01…2026-01-31", "2026-02-01…2026-02-28");
    let expected = [
        line(january, "calls", 5_613),
        line(january, "fee", 4_900),
        line(february, "calls", 3_165),
        line(february, "fee", 4_900),
    ];
    assert_eq!(found, expected);
}
