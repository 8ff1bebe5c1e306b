//! Limits of what a customer owes (billing rules 11): usage is judged by the money of the real documents.

use billing_application::UseCase;
use billing_application::catalog::create_usage_product;
use billing_application::error::{UseCaseError, UseCaseResult};
use billing_application::limits::{
    LimitEdit, LimitRequest, LimitView, create_limit, delete_limit, edit_limit, get_limit, limits_left,
};
use billing_application::usage::{Atomicity, NamedUsageProduct, NewUsageEvent, RefusedEvent, RefusedUsageCounts};
use billing_application::verify::verify;
use billing_domain::limit::{Limit, MetricKind, ReachedLevels};
use billing_domain::money::Percentage;
use billing_domain::notification::{Notification, Subject};
use billing_domain::party::NetTerms;
use billing_domain::patch::Patch;
use billing_domain::ports::{Access, transact};
use billing_domain::refs::{ContractRef, LimitRef, ProductNo};
use billing_testkit::fixtures::{self, default_tax, fixed, per_unit, requested};

use crate::books::{Books, calls};
use crate::support::{read, run};

const DAY: &str = "2026-01-10T00:00:00Z";

/// Returns a customer with one contract of January to December.
fn priced(unit_price: &str, max: Option<&str>) -> (Books, Option<LimitRef>) {
    let books = Books::at("2026-01-10T12:00:00Z");
    let api = books.pricing("api", vec![per_unit("calls", unit_price)]);
    books.contract(vec![requested(&api, "2026-01-01", "2026-12-31")]);
    let limit = max.map(|max| limit(&books, max));
    (books, limit)
}

/// A limit of the amount owed.
pub(super) fn owed(max: &str) -> LimitRequest {
    LimitRequest {
        metric: MetricKind::Owed,
        customer_ref: Some(fixtures::customer_ref("acme")),
        entity_ref: Some(fixtures::entity_ref("main")),
        currency: Some(fixtures::eur()),
        contract_ref: None,
        pricing_ref: None,
        product_no: None,
        usage_product_ref: None,
        line_item_id: None,
        max: Some(max.to_owned()),
        thresholds: Vec::new(),
    }
}

/// A limit of the price of a service period.
pub(super) fn spend(contract_ref: ContractRef, max: &str) -> LimitRequest {
    let contract_ref = Some(contract_ref);
    LimitRequest { metric: MetricKind::Spend, customer_ref: None, entity_ref: None, currency: None, contract_ref, ..owed(max) }
}

/// A limit of the calls of a service period.
pub(super) fn quantity(contract_ref: ContractRef, max: &str) -> LimitRequest {
    let usage_product_ref = Some(fixtures::usage_product_ref("calls"));
    LimitRequest { metric: MetricKind::Quantity, usage_product_ref, ..spend(contract_ref, max) }
}

fn create(books: &Books, request: &LimitRequest) -> UseCaseResult<LimitView> {
    run(&books.bench.services, &books.bench.principal, UseCase::CreateLimit, |cx| create_limit(cx, request))
}

pub(super) fn limit_of(books: &Books, request: &LimitRequest) -> LimitRef {
    create(books, request).expect("a limit").number.limit.limit_ref
}

fn limit(books: &Books, max: &str) -> LimitRef {
    limit_of(books, &owed(max))
}

/// Returns the number of a limit and what is left.
fn number(books: &Books, limit_ref: LimitRef) -> (String, String) {
    let view = read(&books.bench.services, &books.bench.principal, UseCase::GetLimit, |cx| get_limit(cx, limit_ref));
    let number = view.expect("a limit").number;
    let customers = [fixtures::customer_ref("acme")];
    let left = read(&books.bench.services, &books.bench.principal, UseCase::GetLimitsLeft, |cx| limits_left(cx, &customers));
    let left = left.expect("a customer").remove(0).of_limits.limits;
    assert!(left.contains(&number), "{left:?} {number:?}");
    (number.value.to_string(), number.left.expect("a maximum").to_string())
}

/// Reports calls one after another, and returns how many were accepted, and the numbers of the last rejection.
pub(super) fn report(books: &Books, quantity: &str, times: usize) -> (usize, Option<(String, String)>) {
    let (mut accepted, mut rejected) = (0, None);
    for _ in 0..times {
        match books.report(DAY, quantity, None) {
            Ok(_) => accepted += 1,
            Err(UseCaseError::LimitReached(reached)) => {
                rejected = Some((reached.value.to_string(), reached.needed.to_string()));
            }
            Err(other) => panic!("{other:?}"),
        }
    }
    (accepted, rejected)
}

/// Returns which events of a batch are accepted.
fn accepted(books: &Books, quantities: &[&str], atomicity: Atomicity) -> Vec<bool> {
    let events: Vec<NewUsageEvent> = quantities.iter().map(|quantity| calls(DAY, quantity)).collect();
    books.try_slice(&events, atomicity).map_or_else(|_| Vec::new(), |taken| taken.iter().map(Result::is_ok).collect())
}

#[test]
fn calls_are_accepted_up_to_the_balance_and_not_one_more() {
    let books = Books::with("2026-01-10T12:00:00Z", |_| {}, |acme| acme.profile.taxes = default_tax("20"));
    let api = books.pricing("api", vec![per_unit("calls", "0.05")]);
    books.contract(vec![requested(&api, "2026-01-01", "2026-12-31")]);
    let limit_ref = limit(&books, "100");
    assert_eq!(report(&books, "1000", 1), (1, None));
    assert_eq!(number(&books, limit_ref), ("60.00".to_owned(), "40.00".to_owned()));
    // 666 more calls are 33.30 + 6.66, and the next one is 0.05 + 0.01.
    assert_eq!(report(&books, "1", 700), (666, Some(("99.96".to_owned(), "0.06".to_owned()))));
    assert_eq!(number(&books, limit_ref), ("99.96".to_owned(), "0.04".to_owned()));
    assert!(books.documents().contains("total 99.96 EUR"), "{}", books.documents());
}

#[test]
fn a_batch_is_judged_as_a_whole_first_and_then_event_by_event() {
    let (books, limit_ref) = priced("1.00", Some("1000"));
    assert_eq!(accepted(&books, &["500", "490"], Atomicity::PerEvent), [true, true]);
    assert!(accepted(&books, &["5", "20", "5"], Atomicity::Atomic).is_empty());
    assert_eq!(accepted(&books, &["5", "20", "5"], Atomicity::PerEvent), [true, false, true]);
    assert_eq!(number(&books, limit_ref.expect("a limit")), ("1000.00".to_owned(), "0.00".to_owned()));
    assert_eq!(accepted(&books, &["1", "0"], Atomicity::PerEvent), [false, true]);
}

#[test]
fn a_discount_by_volume_is_judged_by_the_price_of_the_whole() {
    let books = Books::at("2026-01-10T12:00:00Z");
    let tiers = vec![fixtures::volume("calls", &[(Some("100"), "1.00", "0"), (None, "0.50", "0")])];
    let api = books.pricing("api", tiers);
    books.contract(vec![requested(&api, "2026-01-01", "2026-12-31")]);
    let limit_ref = limit(&books, "100");
    assert_eq!(accepted(&books, &["100"], Atomicity::PerEvent), [true]);
    // One more call costs less than 100 calls. The price of 200 is the limit.
    assert_eq!(accepted(&books, &["1"], Atomicity::PerEvent), [true]);
    assert_eq!(number(&books, limit_ref), ("50.50".to_owned(), "49.50".to_owned()));
    assert_eq!(accepted(&books, &["100", "99"], Atomicity::PerEvent), [false, true]);
}

#[test]
fn drafts_of_all_contracts_count_and_those_of_other_currencies_do_not() {
    let (books, limit_ref) = priced("0.60", Some("10"));
    let limit_ref = limit_ref.expect("a limit");
    assert_eq!(report(&books, "10", 1), (1, None));
    let other = books.pricing("fee", vec![fixed("fee", "3.00")]);
    let dollars =
        books.pricing_with("dollars", vec![fixed("fee", "70.00")], |content| content.currency = fixtures::currency("USD"));
    for pricing in [&other, &dollars] {
        let contract = books.contract(vec![requested(pricing, "2026-01-01", "2026-12-31")]);
        books.charge(contract, "2026-01-10", "opens the document", "0").expect("a charge");
    }
    assert_eq!(number(&books, limit_ref), ("9.00".to_owned(), "1.00".to_owned()));
    assert_eq!(report(&books, "1", 3), (1, Some(("9.60".to_owned(), "0.60".to_owned()))));
}

#[test]
fn the_first_event_of_a_period_needs_the_fixed_items_of_its_document() {
    let books = Books::at("2026-01-10T12:00:00Z");
    let api = books.pricing("api", vec![fixed("fee", "49.00"), per_unit("calls", "1.00")]);
    books.contract(vec![requested(&api, "2026-01-01", "2026-12-31")]);
    let limit_ref = limit(&books, "49");
    assert_eq!(report(&books, "1", 1), (0, Some(("0.00".to_owned(), "50.00".to_owned()))));
    assert_eq!(books.documents(), "");
    assert_eq!(report(&books, "0", 1), (1, None));
    assert_eq!(number(&books, limit_ref), ("49.00".to_owned(), "0.00".to_owned()));
}

#[test]
fn usage_that_has_already_happened_is_billed_above_the_limit() {
    let (books, limit_ref) = priced("1.00", Some("10"));
    let occurred = |quantity: &str| NewUsageEvent { occurred: true, ..calls(DAY, quantity) };
    let taken = books.slice(&[calls(DAY, "8"), occurred("9"), calls(DAY, "1")], Atomicity::PerEvent);
    assert_eq!(taken.iter().map(Result::is_ok).collect::<Vec<_>>(), [true, true, false]);
    let view =
        read(&books.bench.services, &books.bench.principal, UseCase::GetLimit, |cx| get_limit(cx, limit_ref.expect("a limit")));
    let number = view.expect("a limit").number;
    assert_eq!(
        (number.value.to_string(), number.left.expect("a maximum").to_string(), number.above.to_string()),
        ("17.00".into(), "0.00".into(), "7.00".into())
    );
}

#[test]
fn an_event_that_is_due_at_once_counts_as_its_own_invoice() {
    let books = Books::at("2026-01-10T12:00:00Z");
    let api = books.pricing("api", vec![per_unit("calls", "1.00")]);
    let mut product = requested(&api, "2026-01-01", "2026-12-31");
    product.net_terms = Some(NetTerms::DueUponUsage);
    books.contract(vec![product]);
    let limit_ref = limit(&books, "10");
    assert_eq!(accepted(&books, &["4", "4", "4", "2"], Atomicity::PerEvent), [true, true, false, true]);
    assert_eq!(number(&books, limit_ref), ("10.00".to_owned(), "0.00".to_owned()));
    books.pay("UB-INV-2", "4.00").expect("a payment");
    assert_eq!(number(&books, limit_ref), ("6.00".to_owned(), "4.00".to_owned()));
    assert_eq!(report(&books, "5", 1), (0, Some(("6.00".to_owned(), "5.00".to_owned()))));
    assert_eq!(report(&books, "4", 1), (1, None));
}

#[test]
fn an_issue_changes_no_number_and_a_payment_makes_room() {
    let (books, limit_ref) = priced("1.00", Some("500"));
    let limit_ref = limit_ref.expect("a limit");
    assert_eq!(report(&books, "480", 1), (1, None));
    books.bill("2026-02-02T12:00:00Z");
    assert_eq!(number(&books, limit_ref), ("480.00".to_owned(), "20.00".to_owned()));
    let february =
        |quantity: &str| books.slice(&[calls("2026-02-02T12:00:00Z", quantity)], Atomicity::PerEvent).remove(0).is_ok();
    assert!(!february("21") && february("20"));
    books.pay("UB-INV-1", "480.00").expect("a payment");
    assert_eq!(number(&books, limit_ref), ("20.00".to_owned(), "480.00".to_owned()));
    // Late usage counts, too, on the adjustment that it opens.
    assert_eq!(report(&books, "481", 1), (0, Some(("20.00".to_owned(), "481.00".to_owned()))));
    assert_eq!(report(&books, "480", 1), (1, None));
    assert_eq!(number(&books, limit_ref), ("500.00".to_owned(), "0.00".to_owned()));
}

#[test]
fn corrections_are_never_rejected_and_what_they_lower_can_be_used() {
    let (books, limit_ref) = priced("1.00", Some("10"));
    let limit_ref = limit_ref.expect("a limit");
    let event = books.calls(DAY, "10");
    books.update(event, None, Some("30"));
    assert_eq!(number(&books, limit_ref), ("30.00".to_owned(), "0.00".to_owned()));
    assert_eq!(accepted(&books, &["1", "0"], Atomicity::PerEvent), [false, true]);
    books.update(event, None, Some("4"));
    assert_eq!(accepted(&books, &["7", "6"], Atomicity::PerEvent), [false, true]);
    books.delete(event);
    assert_eq!(number(&books, limit_ref), ("6.00".to_owned(), "4.00".to_owned()));
}

#[test]
fn an_edit_of_a_limit_is_in_force_at_once_and_a_deleted_limit_rejects_nothing() {
    let (books, limit_ref) = priced("1.00", Some("10"));
    let limit_ref = limit_ref.expect("a limit");
    let edit = |max: &str| {
        let edit = LimitEdit { max: Patch::Set(max.to_owned()), thresholds: None };
        run(&books.bench.services, &books.bench.principal, UseCase::EditLimit, |cx| edit_limit(cx, limit_ref, &edit))
    };
    assert_eq!(report(&books, "11", 1), (0, Some(("0.00".to_owned(), "11.00".to_owned()))));
    assert_eq!(edit("11").expect("an edit").number.left.map(|left| left.to_string()), Some("11.00".to_owned()));
    assert_eq!(report(&books, "11", 1), (1, None));
    for (max, code) in [("0.001", "invalid_format"), ("-1", "out_of_range")] {
        assert_eq!(crate::books::code(edit(max)), code, "{max}");
    }
    assert_eq!(crate::books::code(create(&books, &owed("5"))), "limit_exists");
    let delete = || run(&books.bench.services, &books.bench.principal, UseCase::DeleteLimit, |cx| delete_limit(cx, limit_ref));
    delete().expect("a deletion");
    assert!(matches!(delete(), Err(UseCaseError::Unknown(_))));
    assert_eq!(report(&books, "100", 1), (1, None));
    assert_eq!(number(&books, limit(&books, "0")), ("111.00".to_owned(), "0.00".to_owned()));
}

#[test]
fn a_contract_that_is_created_after_the_limit_is_watched() {
    let (books, _) = priced("1.00", Some("10"));
    let product = fixtures::usage_product("mails");
    run(&books.bench.services, &books.bench.principal, UseCase::CreateUsageProduct, |cx| {
        create_usage_product(cx, Some(product.usage_product_ref.clone()), product.profile.clone())
    })
    .expect("a usage product");
    let mails = books.pricing("mails", vec![per_unit("mails", "1.00")]);
    books.contract(vec![requested(&mails, "2026-01-01", "2026-12-31")]);
    let mail = |quantity: &str| NewUsageEvent {
        usage_product: NamedUsageProduct::Ref(fixtures::usage_product_ref("mails")),
        ..calls(DAY, quantity)
    };
    assert_eq!(report(&books, "9", 1), (1, None));
    let taken = books.slice(&[mail("2"), mail("1"), calls(DAY, "1")], Atomicity::PerEvent);
    assert_eq!(taken.iter().map(Result::is_ok).collect::<Vec<_>>(), [false, true, false]);
}

#[test]
fn a_monthly_cap_counts_the_price_of_each_period_after_the_discount() {
    let books = Books::with("2026-01-10T12:00:00Z", |_| {}, |acme| acme.profile.taxes = default_tax("20"));
    let api = books.pricing("api", vec![fixed("fee", "25.00"), per_unit("calls", "1.00")]);
    let mut product = requested(&api, "2026-01-01", "2026-12-31");
    product.discount = Some(Percentage::parse("20").expect("a percentage"));
    let contract = books.contract(vec![product]);
    let limit_ref = limit_of(&books, &spend(contract, "100"));
    // The fixed item counts from the beginning of the period, whether or not it is on a document. Taxes don't count.
    assert_eq!(number(&books, limit_ref), ("20.00".to_owned(), "80.00".to_owned()));
    assert_eq!(report(&books, "101", 1), (0, Some(("20.00".to_owned(), "80.80".to_owned()))));
    assert_eq!(report(&books, "100", 1), (1, None));
    assert_eq!(number(&books, limit_ref), ("100.00".to_owned(), "0.00".to_owned()));
    // An issue changes no number, and the next period begins anew.
    books.bill("2026-02-02T12:00:00Z");
    assert_eq!(number(&books, limit_ref), ("20.00".to_owned(), "80.00".to_owned()));
    // Late usage is judged by the number of its own period.
    assert_eq!(report(&books, "1", 1), (0, Some(("100.00".to_owned(), "0.80".to_owned()))));
}

#[test]
fn a_quantity_is_capped_for_all_line_items_or_for_one() {
    let books = Books::at("2026-01-10T12:00:00Z");
    let api = books.pricing("api", vec![fixtures::volume("calls", &[(Some("100"), "1.00", "0"), (None, "0", "0")])]);
    let contract = books.contract(vec![requested(&api, "2026-01-01", "2026-12-31")]);
    let limit_ref = limit_of(&books, &quantity(contract, "1000"));
    assert_eq!(accepted(&books, &["990"], Atomicity::PerEvent), [true]);
    assert_eq!(accepted(&books, &["5", "20", "5"], Atomicity::PerEvent), [true, false, true]);
    assert_eq!(number(&books, limit_ref), ("1000".to_owned(), "0".to_owned()));
    // Also what costs nothing is counted.
    assert_eq!(report(&books, "0.000000001", 1), (0, Some(("1000".to_owned(), "0.000000001".to_owned()))));
    let of_item = LimitRequest { line_item_id: Some(fixtures::line_item_id("calls")), ..quantity(contract, "999.5") };
    let of_item = limit_of(&books, &of_item);
    assert_eq!(number(&books, of_item), ("1000".to_owned(), "0.0".to_owned()));
    assert_eq!(crate::books::code(create(&books, &quantity(contract, "7"))), "limit_exists");
}

#[test]
fn each_limit_has_the_fields_of_its_metric_and_names_one_product() {
    let books = Books::at("2026-01-10T12:00:00Z");
    let api = books.pricing("api", vec![per_unit("calls", "1.00")]);
    let fee = books.pricing("fee", vec![fixed("fee", "5.00")]);
    let product = |pricing| requested(pricing, "2026-01-01", "2026-12-31");
    let contract = books.contract(vec![product(&api), product(&fee)]);
    let codes: Vec<String> = [
        LimitRequest { customer_ref: None, ..owed("1") },
        LimitRequest { contract_ref: Some(contract), ..owed("1") },
        LimitRequest { max: None, ..owed("1") },
        LimitRequest { thresholds: vec!["5".to_owned(), "5.00".to_owned()], ..owed("1") },
        LimitRequest { thresholds: vec!["-0.001".to_owned()], ..owed("1") },
        spend(contract, "1"),
        LimitRequest { product_no: Some(ProductNo(7)), ..spend(contract, "1") },
        LimitRequest { pricing_ref: Some(fixtures::pricing_ref("other")), ..spend(contract, "1") },
        LimitRequest { contract_ref: None, ..spend(contract, "1") },
        LimitRequest { customer_ref: Some(fixtures::customer_ref("other")), ..spend(contract, "1") },
        LimitRequest { line_item_id: Some(fixtures::line_item_id("calls")), ..spend(contract, "1") },
        LimitRequest { thresholds: vec!["0".to_owned()], pricing_ref: Some(api.pricing_ref.clone()), ..spend(contract, "1") },
        LimitRequest { usage_product_ref: None, ..quantity(contract, "1") },
        LimitRequest { pricing_ref: Some(fee.pricing_ref.clone()), ..quantity(contract, "1") },
        LimitRequest { line_item_id: Some(fixtures::line_item_id("mails")), ..quantity(contract, "1") },
        LimitRequest { max: Some("0.0000000001".to_owned()), ..quantity(contract, "1") },
    ]
    .iter()
    .map(|request| crate::books::code(create(&books, request)))
    .collect();
    assert_eq!(
        codes,
        [
            "required",
            "not_allowed",
            "required",
            "duplicate",
            "invalid_format",
            "ambiguous_product",
            "unknown_product",
            "unknown_product",
            "required",
            "not_allowed",
            "not_allowed",
            "out_of_range",
            "required",
            "not_metered",
            "unknown_line_item",
            "invalid_format",
        ]
    );
    // Only one product meters calls, and the other one is named.
    limit_of(&books, &quantity(contract, "1"));
    let customer_ref = Some(fixtures::customer_ref("acme"));
    let of_fee = LimitRequest { customer_ref, pricing_ref: Some(fee.pricing_ref), ..spend(contract, "1") };
    let of_fee = limit_of(&books, &of_fee);
    assert_eq!(number(&books, of_fee), ("5.00".to_owned(), "0.00".to_owned()));
    limit_of(&books, &LimitRequest { thresholds: vec!["-20".to_owned()], max: None, ..owed("1") });
}

#[test]
fn the_verification_finds_limits_that_reject_nothing() {
    let (books, limit_ref) = priced("1.00", Some("10"));
    let findings = || -> Vec<String> {
        let verified = verify(&books.bench.services, false).expect("a verification");
        verified.into_iter().flat_map(|(_, found)| found.findings).map(|finding| finding.detail).collect()
    };
    assert_eq!(findings(), Vec::<String>::new());
    let organization = books.bench.principal.organization();
    let limit = books.bench.read(|tx| tx.limit(organization, limit_ref.expect("a limit"))).expect("a limit");
    transact(&*books.bench.services.store, Access::Write, |tx| {
        tx.set_watched(organization, limit.customer_id, false)?;
        let reached = ReachedLevels { thresholds: 1, ..limit.reached.clone() };
        tx.update_limit(organization, &Limit { reached, ..limit.clone() })
    })
    .expect("a change behind the service");
    let found = findings();
    assert!(found.iter().any(|detail| detail.contains("rejects nothing")), "{found:?}");
    assert!(found.iter().any(|detail| detail.contains("more thresholds")), "{found:?}");
    assert_eq!(found.len(), 2);
}

#[test]
fn a_limit_of_an_ended_contract_counts_nothing() {
    let books = Books::at("2026-01-10T12:00:00Z");
    let api = books.pricing("api", vec![per_unit("calls", "1.00")]);
    let contract = books.contract(vec![requested(&api, "2026-01-01", "2026-01-31")]);
    let limit_ref = limit_of(&books, &spend(contract, "10"));
    assert_eq!(report(&books, "9", 1), (1, None));
    books.bill("2026-02-02T12:00:00Z");
    assert_eq!(number(&books, limit_ref), ("0.00".to_owned(), "10.00".to_owned()));
    assert_eq!(report(&books, "2", 1), (0, Some(("9.00".to_owned(), "2.00".to_owned()))));
    assert_eq!(report(&books, "1", 1), (1, None));
}

/// Returns the notifications of limits since the last call: their types, numbers and levels.
fn notified(books: &Books, seen: &mut usize) -> Vec<String> {
    let organization = books.bench.principal.organization();
    let all = books.bench.read(|tx| tx.unnumbered_notifications(organization, 1_000));
    let all = all.into_iter().map(|one| books.bench.read(|tx| tx.notification(organization, one.notification_ref)));
    let mut all: Vec<Notification> = all.flatten().filter(|notified| matches!(notified.subject, Subject::Limit(_))).collect();
    all.sort_by_key(|notified| notified.sequence);
    let text = |notified: &Notification| {
        let (head, level) = notified.body.rsplit_once(" of ").expect("a level");
        let value = head.rsplit(' ').next().expect("a number");
        format!("{} at {value}: {level}", notified.kind)
    };
    let new = all.iter().skip(*seen).map(text).collect();
    *seen = all.len();
    new
}

#[test]
fn each_level_notifies_on_the_way_up_and_down_and_each_period_begins_anew() {
    let books = Books::at("2026-01-10T12:00:00Z");
    let api = books.pricing("api", vec![per_unit("calls", "1.00")]);
    let contract = books.contract(vec![requested(&api, "2026-01-01", "2026-12-31")]);
    let thresholds = ["80", "50", "100"].map(str::to_owned).to_vec();
    assert_eq!(report(&books, "45", 1), (1, None));
    limit_of(&books, &LimitRequest { thresholds, max: None, ..spend(contract, "") });
    let mut seen = 0;
    assert!(notified(&books, &mut seen).is_empty());
    let first = books.slice(&[calls(DAY, "15"), calls(DAY, "25")], Atomicity::PerEvent).remove(0).expect("an accepted event");
    assert_eq!(notified(&books, &mut seen), ["limit.reached at 85.00: 50.00", "limit.reached at 85.00: 80.00"]);
    books.delete(first.now().expect("a new event").event.event_ref);
    assert_eq!(notified(&books, &mut seen), ["limit.cleared at 70.00: 80.00"]);
    assert_eq!(report(&books, "20", 1), (1, None));
    assert_eq!(notified(&books, &mut seen), ["limit.reached at 90.00: 80.00"]);
    books.bill("2026-02-02T12:00:00Z");
    let february = |quantity: &str| books.slice(&[calls("2026-02-02T12:00:00Z", quantity)], Atomicity::PerEvent).len();
    february("49");
    // Late usage changes the number of a period that is over.
    assert_eq!(report(&books, "20", 1), (1, None));
    assert!(notified(&books, &mut seen).is_empty());
    february("1");
    assert_eq!(notified(&books, &mut seen), ["limit.reached at 50.00: 50.00"]);
}

#[test]
fn payments_edits_and_usage_above_the_maximum_notify() {
    let (books, _) = priced("1.00", None);
    let mut seen = 0;
    let limit_ref = limit_of(&books, &LimitRequest { thresholds: vec!["-20".to_owned()], ..owed("10") });
    // The balance is already above the threshold.
    assert_eq!(notified(&books, &mut seen), ["limit.reached at 0.00: -20.00"]);
    let occurred = NewUsageEvent { occurred: true, ..calls(DAY, "30") };
    books.slice(&[occurred], Atomicity::PerEvent);
    assert_eq!(notified(&books, &mut seen), ["limit.reached at 30.00: 10.00"]);
    books.bill("2026-02-02T12:00:00Z");
    assert!(notified(&books, &mut seen).is_empty());
    books.pay("UB-INV-1", "20.00").expect("a payment");
    assert_eq!(notified(&books, &mut seen), ["limit.cleared at 10.00: 10.00"]);
    let edit = LimitEdit { max: Patch::Set("5".to_owned()), thresholds: Some(vec!["11".to_owned()]) };
    run(&books.bench.services, &books.bench.principal, UseCase::EditLimit, |cx| edit_limit(cx, limit_ref, &edit))
        .expect("an edit");
    assert_eq!(notified(&books, &mut seen), ["limit.cleared at 10.00: -20.00", "limit.reached at 10.00: 5.00"]);
}

#[test]
fn a_rejection_is_notified_once_if_the_usage_would_still_be_rejected() {
    let (books, limit_ref) = priced("1.00", Some("10"));
    let limit_ref = limit_ref.expect("a limit");
    let (counts, mut seen) = (RefusedUsageCounts::default(), 0);
    let reject = |quantity: &str| {
        let Err(UseCaseError::LimitReached(reached)) = books.report(DAY, quantity, None) else { panic!("accepted") };
        counts.count(
            &books.bench.services,
            RefusedEvent {
                organization: books.bench.principal.organization(),
                code: "limit_reached",
                customer_ref: "acme",
                usage_product_ref: "calls",
                event: "{}",
                pointer: None,
                detail: "",
                request_id: None,
                limit: Some(&reached),
            },
        );
    };
    assert_eq!(report(&books, "8", 1), (1, None));
    reject("3");
    reject("5");
    counts.write(&books.bench.services).expect("written counts");
    assert_eq!(notified(&books, &mut seen), ["limit.reached at 8.00: 10.00"]);
    reject("3");
    counts.write(&books.bench.services).expect("written counts");
    assert!(notified(&books, &mut seen).is_empty());
    let event = books.calls(DAY, "2");
    books.delete(event);
    assert!(notified(&books, &mut seen).is_empty());
    // A payment, a deletion or an edit makes room, and what was rejected would fit.
    let edit = |max: &str| {
        let edit = LimitEdit { max: Patch::Set(max.to_owned()), thresholds: None };
        run(&books.bench.services, &books.bench.principal, UseCase::EditLimit, |cx| edit_limit(cx, limit_ref, &edit))
            .expect("an edit")
    };
    edit("11");
    assert_eq!(notified(&books, &mut seen), ["limit.cleared at 8.00: 10.00"]);
    reject("4");
    edit("12");
    counts.write(&books.bench.services).expect("written counts");
    assert!(notified(&books, &mut seen).is_empty());
}
