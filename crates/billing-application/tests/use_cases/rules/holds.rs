//! Holds (billing rules 11): limits reserve room for usage that is about to happen.

use billing_application::UseCase;
use billing_application::error::{UseCaseError, UseCaseResult};
use billing_application::limits::limits_left;
use billing_application::usage::{
    Atomicity, HeldUsage, HoldRequest, HoldView, NewUsageEvent, create_hold, forget_old_holds, get_hold, list_holds, release_hold,
};
use billing_domain::catalog::{Aggregation, LineItemPrice};
use billing_domain::hold::HoldState;
use billing_domain::limit::MetricKind;
use billing_domain::page::PageRequest;
use billing_domain::party::NetTerms;
use billing_domain::refs::HoldRef;
use billing_testkit::fixtures::{self, fixed, per_unit, requested};

use super::limits::{limit_of, owed, quantity, report, spend};
use crate::books::{Books, calls, code};
use crate::support::{read, run};

const DAY: &str = "2026-01-10T00:00:00Z";

fn hold_ref(text: &str) -> HoldRef {
    HoldRef::parse(text).expect(text)
}

fn request(reference: &str, quantities: &[&str]) -> HoldRequest {
    let held = |quantity: &&str| HeldUsage {
        usage_product_ref: fixtures::usage_product_ref("calls"),
        quantity: fixtures::quantity(quantity),
        report_data: None,
        validations: None,
    };
    HoldRequest {
        hold_ref: hold_ref(reference),
        customer_ref: fixtures::customer_ref("acme"),
        usage: quantities.iter().map(held).collect(),
        expires_in: 60,
    }
}

fn make(books: &Books, request: &HoldRequest) -> UseCaseResult<HoldView> {
    run(&books.bench.services, &books.bench.principal, UseCase::CreateHold, |cx| create_hold(cx, request))
}

/// Makes a hold of calls. Returns what is left of the first limit, or what the hold would need.
fn hold(books: &Books, reference: &str, quantities: &[&str]) -> Result<String, String> {
    match make(books, &request(reference, quantities)) {
        Ok(made) => Ok(made.limits.expect("a new hold")[0].left.expect("a maximum").to_string()),
        Err(UseCaseError::LimitReached(reached)) => Err(format!("{} + {} + {}", reached.value, reached.held, reached.needed)),
        Err(other) => panic!("{other:?}"),
    }
}

fn settling(reference: &str, quantity: &str) -> NewUsageEvent {
    NewUsageEvent { hold_ref: Some(hold_ref(reference)), ..calls(DAY, quantity) }
}

/// Reports an event that ends an entry of a hold.
fn settle(books: &Books, reference: &str, quantity: &str) {
    books.slice(&[settling(reference, quantity)], Atomicity::PerEvent).remove(0).expect("an accepted event");
}

/// Returns the number, the holds and what is left of the first limit.
fn numbers(books: &Books) -> [String; 3] {
    let customers = [fixtures::customer_ref("acme")];
    let left = read(&books.bench.services, &books.bench.principal, UseCase::GetLimitsLeft, |cx| limits_left(cx, &customers));
    let first = left.expect("limits").remove(0).of_limits.limits.remove(0);
    [first.value, first.held, first.left.expect("a maximum")].map(|number| number.to_string())
}

fn state(books: &Books, reference: &str) -> HoldState {
    let acme = fixtures::customer_ref("acme");
    let found =
        read(&books.bench.services, &books.bench.principal, UseCase::GetHold, |cx| get_hold(cx, &acme, &hold_ref(reference)));
    found.expect("a hold").state
}

/// Returns a customer with one contract of calls, each at 1.00.
fn priced() -> (Books, billing_domain::refs::ContractRef) {
    let books = Books::at("2026-01-10T12:00:00Z");
    let api = books.pricing("api", vec![per_unit("calls", "1.00")]);
    let contract = books.contract(vec![requested(&api, "2026-01-01", "2026-12-31")]);
    (books, contract)
}

#[test]
fn a_hold_reserves_room_and_its_event_is_billed_in_any_case() {
    let (books, contract) = priced();
    limit_of(&books, &quantity(contract, "1000"));
    assert_eq!(report(&books, "990", 1), (1, None));
    assert_eq!(hold(&books, "h", &["8"]), Ok("2".to_owned()));
    let Err(UseCaseError::LimitReached(reached)) = books.report(DAY, "3", None) else { panic!("accepted") };
    assert_eq!([reached.value, reached.held, reached.needed].map(|number| number.to_string()), ["990", "8", "3"]);
    assert_eq!(hold(&books, "other", &["3"]), Err("990 + 8 + 3".to_owned()));
    assert_eq!(report(&books, "2", 1), (1, None));
    // The hold's event reports more than was held.
    settle(&books, "h", "12");
    assert_eq!(numbers(&books), ["1004", "0", "0"]);
    assert_eq!(state(&books, "h"), HoldState::Settled);
}

#[test]
fn holds_open_no_document_and_count_what_they_would_add_to_the_bill() {
    let books = Books::at("2026-01-10T12:00:00Z");
    let api = books.pricing("api", vec![fixed("fee", "49.00"), per_unit("calls", "1.00")]);
    books.contract(vec![requested(&api, "2026-01-01", "2026-12-31")]);
    limit_of(&books, &owed("60"));
    // The usage would open the document of the period, with its fixed items.
    assert_eq!(hold(&books, "h", &["5"]), Ok("6.00".to_owned()));
    assert_eq!(books.documents(), "");
    assert_eq!(numbers(&books), ["0.00", "54.00", "6.00"]);
    assert_eq!(hold(&books, "i", &["7"]), Err("0.00 + 54.00 + 7.00".to_owned()));
    assert_eq!(report(&books, "6", 2), (1, Some(("55.00".to_owned(), "6.00".to_owned()))));
    assert_eq!(numbers(&books), ["55.00", "5.00", "0.00"]);
    // Late usage would open an adjustment.
    books.bill("2026-02-02T12:00:00Z");
    assert_eq!(numbers(&books), ["55.00", "0.00", "5.00"]);
}

#[test]
fn an_expired_or_released_hold_reserves_nothing() {
    let (books, contract) = priced();
    limit_of(&books, &spend(contract, "10"));
    assert_eq!(hold(&books, "h", &["4", "5"]), Ok("1.00".to_owned()));
    assert_eq!(report(&books, "2", 1), (0, Some(("0.00".to_owned(), "2.00".to_owned()))));
    books.bench.clock.set(fixtures::at("2026-01-10T12:01:00Z"));
    assert_eq!((numbers(&books), state(&books, "h")), (["0.00", "0.00", "10.00"].map(str::to_owned), HoldState::Expired));
    // Its event is accepted, above the limit, too.
    settle(&books, "h", "11");
    assert_eq!(numbers(&books), ["11.00", "0.00", "0.00"]);
    assert_eq!(state(&books, "h"), HoldState::Expired);

    let release = |reference: &str| {
        let acme = fixtures::customer_ref("acme");
        run(&books.bench.services, &books.bench.principal, UseCase::ReleaseHold, |cx| {
            release_hold(cx, &acme, &hold_ref(reference))
        })
    };
    books.bench.clock.set(fixtures::at("2026-02-10T12:00:00Z"));
    assert_eq!(hold(&books, "i", &["10"]), Ok("0.00".to_owned()));
    release("i").expect("a released hold");
    release("i").expect("a released hold");
    assert!(matches!(release("nothing"), Err(UseCaseError::Unknown(_))));
    assert_eq!((numbers(&books), state(&books, "i")), (["0.00", "0.00", "10.00"].map(str::to_owned), HoldState::Released));
    assert_eq!(forget_old_holds(&books.bench.services).expect("deleted holds"), 2);
    books.bench.clock.set(fixtures::at("2026-02-11T12:01:01Z"));
    assert_eq!(forget_old_holds(&books.bench.services).expect("deleted holds"), 1);
}

#[test]
fn each_event_ends_one_entry_and_the_entries_of_a_hold_get_room_together() {
    let (books, contract) = priced();
    limit_of(&books, &quantity(contract, "10"));
    assert_eq!(hold(&books, "h", &["6", "5"]), Err("0 + 0 + 11".to_owned()));
    assert_eq!(hold(&books, "h", &["6", "4"]), Ok("0".to_owned()));
    // A batch is judged with what its own events settle.
    let batch = [settling("h", "1"), calls(DAY, "5"), calls(DAY, "1"), settling("h", "2"), settling("h", "1"), calls(DAY, "1")];
    let accepted: Vec<bool> = books.slice(&batch, Atomicity::PerEvent).iter().map(Result::is_ok).collect();
    assert_eq!(accepted, [true, true, false, true, true, true]);
    assert_eq!(numbers(&books), ["10", "0", "0"]);
    // A repeated event ends nothing, and an event of another hold neither.
    assert_eq!(hold(&books, "i", &["0"]), Ok("0".to_owned()));
    settle(&books, "h", "1");
    assert_eq!((state(&books, "h"), state(&books, "i")), (HoldState::Settled, HoldState::Open));
}

#[test]
fn the_same_request_returns_the_hold_and_another_one_is_a_conflict() {
    let (books, contract) = priced();
    limit_of(&books, &quantity(contract, "10"));
    let first = make(&books, &request("h", &["6"])).expect("a hold");
    let again = make(&books, &request("h", &["6.0"])).expect("the same hold");
    assert_eq!((again.hold, again.limits), (first.hold, None));
    for other in [HoldRequest { expires_in: 61, ..request("h", &["6"]) }, request("h", &["6", "0"])] {
        assert!(matches!(make(&books, &other), Err(UseCaseError::AlreadyExists { field: "hold_ref", .. })));
    }
    assert_eq!(numbers(&books), ["0", "6", "4"]);
    let acme = fixtures::customer_ref("acme");
    let listed = |is_open| {
        let page = read(&books.bench.services, &books.bench.principal, UseCase::ListHolds, |cx| {
            list_holds(cx, &acme, is_open, PageRequest::LARGEST)
        });
        page.expect("a page").total
    };
    assert_eq!((listed(true), listed(false)), (1, 1));
    settle(&books, "h", "1");
    assert_eq!((listed(true), listed(false)), (0, 1));
}

#[test]
fn what_cannot_be_held_is_rejected_with_the_path_of_its_entry() {
    let (books, _) = priced();
    let mut other = request("h", &["1", "1"]);
    other.usage[1].usage_product_ref = fixtures::usage_product_ref("nothing");
    let Err(UseCaseError::Invalid(violations)) = make(&books, &other) else { panic!("accepted") };
    assert_eq!(violations.iter().next().expect("a violation").path, ["usage", "1", "usage_product_ref"]);
    assert_eq!(code(make(&books, &request("h", &[]))), "required");
    let gauge = Books::at("2026-01-10T12:00:00Z");
    let mut latest = per_unit("calls", "1.00");
    let LineItemPrice::Usage(charge) = &mut latest.charge else { panic!("a fixed item") };
    charge.aggregation = Some(Aggregation::Latest);
    let api = gauge.pricing("api", vec![latest]);
    gauge.contract(vec![requested(&api, "2026-01-01", "2026-12-31")]);
    assert_eq!(code(make(&gauge, &request("h", &["1"]))), "not_holdable");
    let none = Books::at("2026-01-10T12:00:00Z");
    assert_eq!(code(make(&none, &request("h", &["1"]))), "no_matching_contract");
}

#[test]
fn a_hold_of_a_customer_without_limits_counts_for_the_first_limit() {
    let (books, contract) = priced();
    let made = make(&books, &request("h", &["6"])).expect("a hold");
    assert!(made.limits.is_some_and(|limits| limits.is_empty()));
    limit_of(&books, &quantity(contract, "10"));
    assert_eq!(numbers(&books), ["0", "6", "4"]);
    // An event of a customer without limits ends its entry, too.
    let (books, _) = priced();
    make(&books, &request("h", &["6"])).expect("a hold");
    settle(&books, "h", "1");
    assert_eq!(state(&books, "h"), HoldState::Settled);
}

#[test]
fn usage_that_is_due_at_once_is_held_as_its_own_invoice() {
    let books = Books::at("2026-01-10T12:00:00Z");
    let api = books.pricing("api", vec![per_unit("calls", "1.00")]);
    let mut product = requested(&api, "2026-01-01", "2026-12-31");
    product.net_terms = Some(NetTerms::DueUponUsage);
    books.contract(vec![product]);
    limit_of(&books, &owed("10"));
    assert_eq!(hold(&books, "h", &["4"]), Ok("6.00".to_owned()));
    assert_eq!(hold(&books, "i", &["7"]), Err("0.00 + 4.00 + 7.00".to_owned()));
    settle(&books, "h", "4");
    assert_eq!(numbers(&books), ["4.00", "0.00", "6.00"]);
    assert_eq!(MetricKind::Owed.word(), "OWED");
}

#[test]
fn usage_goes_on_a_draft_while_a_hold_waits_in_a_period_that_is_issued() {
    let books = Books::at("2026-01-31T12:00:00Z");
    let api = books.pricing("api", vec![per_unit("calls", "1.00")]);
    books.contract(vec![requested(&api, "2026-01-01", "2026-12-31")]);
    limit_of(&books, &owed("20"));
    assert_eq!(report(&books, "1", 1), (1, None));
    let long = HoldRequest { expires_in: 86_400, ..request("h", &["4"]) };
    make(&books, &long).expect("a hold");
    books.bill("2026-02-01T11:00:00Z");
    let february =
        |quantity: &str| books.slice(&[calls("2026-02-01T10:00:00Z", quantity)], Atomicity::PerEvent).remove(0).map(drop);
    // The first event opens the draft of February, and the next ones go on it. The hold would open an adjustment of January.
    for _ in 0..3 {
        february("2").expect("an accepted event");
        assert_eq!(numbers(&books)[1], "4.00");
    }
    assert_eq!(numbers(&books), ["7.00", "4.00", "9.00"]);
    assert!(matches!(february("10"), Err(UseCaseError::LimitReached(_))));
    february("9").expect("an accepted event");
    settle(&books, "h", "4");
    assert_eq!(numbers(&books), ["20.00", "0.00", "0.00"]);
    // The event of the hold is late usage of January.
    assert!(books.documents().contains("UB-DBT-1"), "{}", books.documents());
}
