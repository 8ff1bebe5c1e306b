//! Tests of matching events to contract products (billing rules 4).

use billing_domain::contract::terms::{ProductTerms, RequestedLineItem};
use billing_domain::contract::{Contract, ContractProduct, EndReason, Segment, SegmentTerms};
use billing_domain::matching::{EventFacts, match_changed_event, match_event};
use billing_domain::party::Entity;
use billing_domain::refs::{ProductNo, UsageProductRef};
use billing_domain::refusal::MatchRefusal;
use billing_domain::usage::Validations;
use billing_testkit::{CountingIds, fixtures};
use fixtures::{agreed, agreed_with, at, currency, date, entity_ref, fixed, per_unit, pricing};
use proptest::prelude::*;

/// Returns terms of pricing `api` that meter `calls`.
fn calls(first: &str, last: &str) -> ProductTerms {
    agreed(&pricing("api", vec![per_unit("calls", "0.01")]), first, last)
}

/// Returns the terms of [`calls`] with a currency and an entity.
fn calls_in(code: &str, entity: &str, first: &str, last: &str) -> ProductTerms {
    let mut pricing = pricing("api", vec![per_unit("calls", "0.01")]);
    pricing.content.currency = currency(code);
    agreed_with(&pricing, first, last, |request| request.entity_ref = Some(entity_ref(entity)))
}

/// Returns contracts of one customer, created one second apart and numbered from 1.
fn contracts(of: Vec<Vec<ProductTerms>>) -> Vec<Contract> {
    let ids = CountingIds::new();
    let customer = fixtures::customer(&ids, "acme");
    let contract = |(number, terms): (i64, Vec<ProductTerms>)| {
        let mut contract = fixtures::contract(&ids, &customer, terms);
        contract.number = u64::try_from(number).expect("a number from 1");
        contract.created_at = contract.created_at.plus_seconds(number);
        contract
    };
    (1..).zip(of).map(contract).collect()
}

/// Returns the entities `main` in UTC, `berlin`, and `apia`, which is 13 hours ahead of UTC.
fn entities() -> Vec<Entity> {
    let zoned = |reference: &str, zone: &str| {
        let mut entity = fixtures::entity(reference);
        entity.profile.time_zone = fixtures::zone(zone);
        entity
    };
    vec![zoned("main", "UTC"), zoned("berlin", "Europe/Berlin"), zoned("apia", "Pacific/Apia")]
}

/// Matches an event and formats the result as `contract number.product from the period's first day`.
fn landed(
    contracts: &[Contract],
    product: &str,
    occurred_at: &str,
    validations: Option<&Validations>,
) -> Result<String, MatchRefusal> {
    let usage_product_ref = UsageProductRef::parse(product).expect(product);
    let event = EventFacts { usage_product_ref: &usage_product_ref, occurred_at: at(occurred_at), labels: None, validations };
    let entities = entities();
    let found = match_event(event, contracts, &entities)?;
    assert_eq!(found.entity.entity_ref, found.period.terms.entity_ref);
    assert_eq!(found.service_date, found.entity.profile.time_zone.service_date(at(occurred_at)));
    assert!(found.period.days().contains(found.service_date));
    let (number, no) = (found.contract.number, found.period.product_no.0);
    Ok(format!("{number}.{no} from {}", found.period.period.span().start()))
}

const NOON: &str = "2026-03-10T12:00:00Z";

#[test]
fn the_rules_of_section_4_row_by_row() {
    let other = || agreed(&pricing("other", vec![per_unit("storage", "1")]), "2026-01-01", "2026-12-31");
    let fixed_only = || agreed(&pricing("fixed", vec![fixed("base", "1")]), "2026-01-01", "2026-12-31");
    let both = || pricing("both", vec![fixed("base", "1"), per_unit("calls", "1")]);
    let base = || vec![RequestedLineItem::plain(fixtures::line_item_id("base"))];
    let unselected = || agreed_with(&both(), "2026-01-01", "2026-12-31", |r| r.line_items = Some(base()));
    let none_selected = || agreed_with(&both(), "2026-01-01", "2026-12-31", |r| r.line_items = Some(vec![]));
    let year = || calls("2026-01-01", "2026-12-31");
    let refused = Err(MatchRefusal::NoMatchingContract);
    type Row<'a> = (&'a str, Vec<Vec<ProductTerms>>, Result<&'a str, MatchRefusal>);
    let rows: Vec<Row<'_>> = vec![
        ("no contract", vec![], refused.clone()),
        ("a contract without products", vec![vec![]], refused.clone()),
        ("other usage", vec![vec![other()]], refused.clone()),
        ("fixed items alone", vec![vec![fixed_only()]], refused.clone()),
        ("a line item that isn't selected", vec![vec![unselected()]], refused.clone()),
        ("no line item selected", vec![vec![none_selected()]], refused.clone()),
        ("over the day before", vec![vec![calls("2026-01-01", "2026-03-09")]], refused.clone()),
        ("beginning the day after", vec![vec![calls("2026-03-11", "2026-12-31")]], refused),
        ("the last day", vec![vec![calls("2026-01-01", "2026-03-10")]], Ok("1.0 from 2026-02-11")),
        ("the first day", vec![vec![calls("2026-03-10", "2027-03-09")]], Ok("1.0 from 2026-03-10")),
        ("the one that meters it", vec![vec![other(), fixed_only(), year()]], Ok("1.2 from 2026-03-01")),
        (
            "the latest start, of contracts",
            vec![vec![calls("2026-03-01", "2026-12-31")], vec![year()]],
            Ok("1.0 from 2026-03-01"),
        ),
        (
            "the latest start, of the younger",
            vec![vec![year()], vec![calls("2026-03-10", "2026-12-31")]],
            Ok("2.0 from 2026-03-10"),
        ),
        ("the latest start, of products", vec![vec![year(), calls("2026-02-01", "2026-12-31")]], Ok("1.1 from 2026-03-01")),
        ("then the oldest contract", vec![vec![fixed_only()], vec![year()], vec![year()]], Ok("2.0 from 2026-03-01")),
        ("then the place in the list", vec![vec![other(), year(), year()], vec![year()]], Ok("1.1 from 2026-03-01")),
        (
            "the start before the age",
            vec![vec![year(), calls("2026-01-02", "2026-12-31")], vec![year()]],
            Ok("1.1 from 2026-03-01"),
        ),
    ];
    for (what, products, expected) in rows {
        let found = landed(&contracts(products), "calls", NOON, None);
        assert_eq!(found, expected.map(str::to_owned), "{what}");
    }
}

#[test]
fn the_older_contract_goes_before_the_smaller_reference() {
    let mut made = contracts(vec![vec![calls("2026-01-01", "2026-12-31")]; 2]);
    made[1].created_at = made[0].created_at.plus_seconds(-1);
    assert!(made[0].contract_ref < made[1].contract_ref);
    assert_eq!(landed(&made, "calls", NOON, None), Ok("2.0 from 2026-03-01".to_owned()));
}

#[test]
fn of_contracts_made_at_once_the_smaller_reference_is_the_older() {
    let mut made = contracts(vec![vec![calls("2026-01-01", "2026-12-31")]; 2]);
    made[0].created_at = made[1].created_at;
    made.reverse();
    assert_eq!(landed(&made, "calls", NOON, None), Ok("1.0 from 2026-03-01".to_owned()));
}

#[test]
fn validations_prefer_a_candidate_that_satisfies_them() {
    let euros = || calls_in("EUR", "main", "2026-03-01", "2026-12-31");
    let dollars = || calls_in("USD", "main", "2026-02-01", "2026-12-31");
    let dollars_in_berlin = || calls_in("USD", "berlin", "2026-01-01", "2026-12-31");
    let made = contracts(vec![vec![euros()], vec![dollars()], vec![dollars_in_berlin()]]);
    let rows = [
        (None, None, "1.0"),
        (Some("EUR"), None, "1.0"),
        (Some("USD"), None, "2.0"),
        (None, Some("main"), "1.0"),
        (None, Some("berlin"), "3.0"),
        (Some("USD"), Some("berlin"), "3.0"),
        (Some("USD"), Some("main"), "2.0"),
    ];
    for (code, entity, expected) in rows {
        let validations = Validations { currency: code.map(currency), entity_ref: entity.map(entity_ref) };
        let found = landed(&made, "calls", NOON, Some(&validations)).expect("a match");
        assert_eq!(found.split(' ').next(), Some(expected), "{code:?} {entity:?}");
    }
}

#[test]
fn a_mismatch_names_what_was_expected_and_what_is() {
    // The reported mismatch is the mismatch of the best candidate without validations.
    let made = contracts(vec![vec![
        calls_in("EUR", "main", "2026-03-01", "2026-12-31"),
        calls_in("USD", "berlin", "2026-01-01", "2026-12-31"),
    ]]);
    let mismatch = |code: Option<&str>, entity: Option<&str>| {
        let validations = Validations { currency: code.map(currency), entity_ref: entity.map(entity_ref) };
        landed(&made, "calls", NOON, Some(&validations)).expect_err("a refusal")
    };
    let wrong_currency = MatchRefusal::CurrencyMismatch { expected: currency("JPY"), actual: currency("EUR") };
    assert_eq!(mismatch(Some("JPY"), None), wrong_currency);
    assert_eq!(mismatch(Some("JPY"), Some("berlin")), wrong_currency);
    let wrong_entity = MatchRefusal::EntityMismatch { expected: entity_ref("apia"), actual: entity_ref("main") };
    assert_eq!(mismatch(None, Some("apia")), wrong_entity);
    // Each validation is satisfied by one candidate. No candidate satisfies both.
    let crossed = MatchRefusal::EntityMismatch { expected: entity_ref("berlin"), actual: entity_ref("main") };
    assert_eq!(mismatch(Some("EUR"), Some("berlin")), crossed);
    assert_eq!(wrong_currency.to_string(), "the document's currency is EUR, not JPY");
    // Without a candidate there is nothing to validate.
    let validations = Validations { currency: Some(currency("EUR")), entity_ref: None };
    assert_eq!(landed(&made, "storage", NOON, Some(&validations)), Err(MatchRefusal::NoMatchingContract));
}

#[test]
fn the_service_date_is_the_billing_entitys_own() {
    let by = |entity: &str| contracts(vec![vec![calls_in("EUR", entity, "2026-04-01", "2026-06-30")]]);
    let rows = [
        ("main", "2026-03-31T23:59:59.999999Z", None),
        ("main", "2026-04-01T00:00:00Z", Some("2026-04-01")),
        ("main", "2026-04-30T23:59:59.999999Z", Some("2026-04-01")),
        ("main", "2026-05-01T00:00:00Z", Some("2026-05-01")),
        ("main", "2026-06-30T23:59:59.999999Z", Some("2026-06-01")),
        ("main", "2026-07-01T00:00:00Z", None),
        // In summer time, Berlin is two hours ahead of UTC.
        ("berlin", "2026-03-31T21:59:59.999999Z", None),
        ("berlin", "2026-03-31T22:00:00Z", Some("2026-04-01")),
        ("berlin", "2026-06-30T21:59:59.999999Z", Some("2026-06-01")),
        ("berlin", "2026-06-30T22:00:00Z", None),
        ("apia", "2026-03-31T10:59:59.999999Z", None),
        ("apia", "2026-03-31T11:00:00Z", Some("2026-04-01")),
        ("apia", "2026-06-30T11:00:00Z", None),
    ];
    for (entity, occurred_at, expected) in rows {
        let found = landed(&by(entity), "calls", occurred_at, None);
        let expected = expected.map(|start| format!("1.0 from {start}")).ok_or(MatchRefusal::NoMatchingContract);
        assert_eq!(found, expected, "{entity} {occurred_at}");
    }
}

/// The event was first matched to the first contract, which began earlier. A new event matches the second contract.
#[test]
fn a_changed_event_goes_to_the_product_that_it_was_first_matched_to() {
    let made =
        contracts(vec![vec![calls("2026-01-01", "2026-06-30")], vec![calls_in("EUR", "berlin", "2026-02-01", "2026-12-31")]]);
    let usage_product_ref = UsageProductRef::parse("calls").expect("a reference");
    let entities = entities();
    let moved = |occurred_at: &str, validations: Option<&Validations>| {
        let event = EventFacts { usage_product_ref: &usage_product_ref, occurred_at: at(occurred_at), labels: None, validations };
        let found = match_changed_event(event, (made[0].contract_ref, ProductNo(0)), None, &made, &entities)?;
        Ok((found.contract.number, found.service_date.to_string()))
    };
    let by_berlin = Validations { entity_ref: Some(entity_ref("berlin")), ..Validations::default() };
    let by_main = Validations { entity_ref: Some(entity_ref("main")), ..Validations::default() };
    let is = |number: u64, day: &str| Ok::<_, MatchRefusal>((number, day.to_owned()));
    assert_eq!(landed(&made, "calls", NOON, None), Ok("2.0 from 2026-03-01".to_owned()));
    assert_eq!(moved(NOON, None), is(1, "2026-03-10"));
    assert_eq!(moved(NOON, Some(&by_main)), is(1, "2026-03-10"));
    assert_eq!(moved(NOON, Some(&by_berlin)), is(2, "2026-03-10"), "the first product fails the validations");
    // Midnight is in the time zone of the entity.
    assert_eq!(moved("2026-06-30T23:30:00Z", None), is(1, "2026-06-30"));
    assert_eq!(moved("2026-07-01T00:00:00Z", None), is(2, "2026-07-01"), "the first product has ended");
    assert_eq!(moved("2027-03-10T12:00:00Z", None), Err(MatchRefusal::NoMatchingContract));
    // The recorded service date stays with an unchanged timestamp.
    let event = EventFacts {
        usage_product_ref: &usage_product_ref,
        occurred_at: at("2026-07-01T00:00:00Z"),
        labels: None,
        validations: None,
    };
    let found = match_changed_event(event, (made[0].contract_ref, ProductNo(0)), Some(date("2026-06-30")), &made, &entities);
    assert_eq!(found.map(|found| (found.contract.number, found.service_date)), Ok((1, date("2026-06-30"))));
}

/// Returns one contract whose only product has these versions, each from a day on.
fn versions(segments: Vec<(&str, SegmentTerms)>) -> Vec<Contract> {
    let mut made = contracts(vec![vec![]]);
    let segment = |(version, (from, agreed)): (u32, (&str, SegmentTerms))| Segment { version, in_force_from: date(from), agreed };
    made[0].products = vec![ContractProduct { no: ProductNo(0), segments: (1..).zip(segments).map(segment).collect() }];
    made
}

fn billed(terms: ProductTerms) -> SegmentTerms {
    SegmentTerms::Billed(Box::new(terms))
}

#[test]
fn the_terms_in_force_on_the_service_date_decide() {
    let storage = agreed(&pricing("api", vec![per_unit("storage", "1")]), "2026-01-01", "2026-12-31");
    let made = versions(vec![
        ("2026-01-01", billed(calls("2026-01-01", "2026-12-31"))),
        ("2026-03-01", billed(storage)),
        ("2026-06-01", SegmentTerms::Ended(EndReason::Cancelled)),
    ]);
    let rows = [
        ("calls", "2026-02-28T23:59:59Z", Some("2026-02-01")),
        ("calls", "2026-03-01T00:00:00Z", None),
        ("storage", "2026-02-28T23:59:59Z", None),
        ("storage", "2026-03-01T00:00:00Z", Some("2026-03-01")),
        ("storage", "2026-05-31T23:59:59Z", Some("2026-05-01")),
        ("storage", "2026-06-01T00:00:00Z", None),
    ];
    for (product, occurred_at, expected) in rows {
        let expected = expected.map(|start| format!("1.0 from {start}")).ok_or(MatchRefusal::NoMatchingContract);
        assert_eq!(landed(&made, product, occurred_at, None), expected, "{product} {occurred_at}");
    }
}

#[test]
fn where_versions_have_different_entities_each_instant_has_one_answer() {
    // The terms change from Berlin to UTC on 1 April. From 22:00 UTC on 31 March, it is April in Berlin but not in UTC.
    let made = versions(vec![
        ("2026-01-01", billed(calls_in("EUR", "berlin", "2026-01-01", "2026-12-31"))),
        ("2026-04-01", billed(calls_in("EUR", "main", "2026-01-01", "2026-12-31"))),
    ]);
    let rows = [
        ("2026-03-31T21:59:59Z", Ok("1.0 from 2026-03-01")),
        // The day in Berlin is over and the day in UTC has not begun. No terms cover these two hours.
        ("2026-03-31T22:00:00Z", Err(MatchRefusal::NoMatchingContract)),
        ("2026-04-01T00:00:00Z", Ok("1.0 from 2026-04-01")),
    ];
    for (occurred_at, expected) in rows {
        assert_eq!(landed(&made, "calls", occurred_at, None), expected.map(str::to_owned), "{occurred_at}");
    }
}

/// Generates terms with few distinct starts and ends, so that many candidates tie.
fn any_terms() -> impl Strategy<Value = ProductTerms> {
    let pick = |options: &'static [&'static str]| proptest::sample::select(options);
    let starts = pick(&["2026-01-01", "2026-02-01", "2026-03-05"]);
    let ends = pick(&["2026-03-09", "2026-03-10", "2026-12-31"]);
    (starts, ends, pick(&["EUR", "USD"]), pick(&["main", "berlin", "apia"]))
        .prop_map(|(first, last, code, entity)| calls_in(code, entity, first, last))
}

fn any_contracts() -> impl Strategy<Value = (Vec<Contract>, Vec<Contract>)> {
    prop::collection::vec(prop::collection::vec(any_terms(), 0..4), 0..6).prop_flat_map(|of| {
        let made = contracts(of);
        (Just(made.clone()), Just(made).prop_shuffle())
    })
}

proptest! {
    #[test]
    fn the_same_facts_give_the_same_answer_in_any_order(
        (made, shuffled) in any_contracts(),
        hour in 0i64..48,
        code in proptest::option::of(proptest::sample::select(vec!["EUR", "USD", "JPY"])),
        entity in proptest::option::of(proptest::sample::select(vec!["main", "berlin"])),
    ) {
        let occurred_at = at("2026-03-09T12:00:00Z").plus_seconds(hour * 3600).to_string();
        let validations = Validations { currency: code.map(currency), entity_ref: entity.map(entity_ref) };
        let found = landed(&made, "calls", &occurred_at, Some(&validations));
        prop_assert_eq!(&landed(&shuffled, "calls", &occurred_at, Some(&validations)), &found);
        // Validations choose among the candidates. They never add or remove a candidate.
        let without = landed(&made, "calls", &occurred_at, None);
        prop_assert_eq!(without == Err(MatchRefusal::NoMatchingContract), found == Err(MatchRefusal::NoMatchingContract));
    }
}
