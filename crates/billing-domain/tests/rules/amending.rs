//! Tests of edits, cancels, resumes and quantity changes, which create a contract's next version (billing rules 7).

use std::collections::BTreeMap;

use billing_domain::catalog::{PriceModel, Pricing};
use billing_domain::contract::amendment::{
    Amendment, AmendmentContext, CancelAt, ContractEdit, EffectiveFrom, ProductPatch, QuantityChange, cancelled, edited, resumed,
    with_quantity,
};
use billing_domain::contract::resolve::Catalog;
use billing_domain::contract::schedule::{BillingCycle, BillingSchedule, CycleUnit};
use billing_domain::contract::terms::{PaymentTime, ProductTerms, Quantities, QuantityStep, RequestedLineItem, SelectedCharge};
use billing_domain::contract::{Contract, ContractProduct};
use billing_domain::patch::Patch;
use billing_domain::refs::ProductNo;
use billing_domain::refusal::Refusal;
use billing_testkit::{CountingIds, fixtures};
use proptest::prelude::*;

use fixtures::{at, date, entity_ref, fixed, line_item_id, per_unit, percent, price, pricing, pricing_ref, prose, quantity};

/// Returns two pricings: `api` costs 10 per month and 1 per call, `other` costs 5 per month.
fn pricings() -> Vec<Pricing> {
    vec![pricing("api", vec![fixed("base", "10"), per_unit("calls", "1")]), pricing("other", vec![fixed("base", "5")])]
}

fn catalog() -> Catalog {
    let pricings = pricings();
    Catalog {
        usage_products: pricings.iter().flat_map(fixtures::products_of).collect(),
        pricings,
        entities: vec![entity_ref("main"), entity_ref("elsewhere")],
        default_entity: Some(entity_ref("main")),
    }
}

fn terms(reference: &str, first: &str, last: &str) -> ProductTerms {
    let pricings = pricings();
    let pricing = pricings.iter().find(|pricing| pricing.pricing_ref.as_str() == reference).expect("a pricing");
    fixtures::agreed(pricing, first, last)
}

fn contract(products: Vec<ProductTerms>) -> Contract {
    let ids = CountingIds::new();
    fixtures::contract(&ids, &fixtures::customer(&ids, "acme"), products)
}

/// Returns a contract with one product of pricing `api`, billed monthly for a year.
fn year() -> Contract {
    contract(vec![terms("api", "2026-01-01", "2026-12-31")])
}

/// Runs a decision on a day. The products in `begun` have billed.
fn on<T>(today: &str, begun: &[u16], decide: impl FnOnce(&AmendmentContext<'_>) -> T) -> T {
    let (today, has_activity) = (date(today), |no: ProductNo| begun.contains(&no.0));
    decide(&AmendmentContext { today: &|_| today, has_activity: &has_activity })
}

fn edit(products: Vec<ProductPatch>, since: EffectiveFrom) -> ContractEdit {
    ContractEdit { po_number: Patch::Keep, metadata: Patch::Keep, products: Some(products), since, version: None }
}

fn from(day: &str) -> EffectiveFrom {
    EffectiveFrom::Day(date(day))
}

/// Returns a patch for a product of pricing `api`.
fn api(change: impl FnOnce(&mut ProductPatch)) -> ProductPatch {
    of("api", change)
}

fn of(reference: &str, change: impl FnOnce(&mut ProductPatch)) -> ProductPatch {
    let mut patch = ProductPatch::of(pricing_ref(reference));
    change(&mut patch);
    patch
}

/// Returns line items that change the price of `base`.
fn costs(amount: &str) -> Patch<Vec<RequestedLineItem>> {
    let base = RequestedLineItem {
        price: Patch::Set(PriceModel::Flat { amount: price(amount) }),
        ..RequestedLineItem::plain(line_item_id("base"))
    };
    Patch::Set(vec![base, RequestedLineItem::plain(line_item_id("calls"))])
}

/// Returns line items that change only the quantities of `base`.
fn seats(steps: &[(&str, &str)]) -> Patch<Vec<RequestedLineItem>> {
    let base = RequestedLineItem { quantities: Some(quantities(steps)), ..RequestedLineItem::plain(line_item_id("base")) };
    Patch::Set(vec![base, RequestedLineItem::plain(line_item_id("calls"))])
}

fn quantities(steps: &[(&str, &str)]) -> Quantities {
    let step = |(from, many): &(&str, &str)| QuantityStep { from: date(from), quantity: quantity(many) };
    Quantities::new(steps.iter().map(step).collect()).expect("rising dates")
}

fn amended(contract: &Contract, today: &str, edit: &ContractEdit) -> Amendment {
    on(today, &[], |now| edited(contract, edit, &catalog(), now)).expect("an amendment")
}

/// Edits a contract whose first two products have begun.
fn begun(contract: &Contract, today: &str, edit: &ContractEdit) -> Result<Amendment, Refusal> {
    on(today, &[0, 1], |now| edited(contract, edit, &catalog(), now))
}

/// Returns the contract after an edit on a day.
fn after(contract: &Contract, today: &str, edit: &ContractEdit) -> Contract {
    amended(contract, today, edit).contract
}

fn refused(contract: &Contract, today: &str, edit: &ContractEdit) -> Refusal {
    on(today, &[], |now| edited(contract, edit, &catalog(), now)).expect_err("a refusal")
}

/// Returns the code of a refusal, with the paths of the invalid fields.
fn code(refusal: &Refusal) -> Vec<String> {
    match refusal {
        Refusal::Invalid(violations) => violations.iter().map(|one| format!("{} {}", one.path.join("."), one.code)).collect(),
        Refusal::Conflict { code, .. } => vec![(*code).to_owned()],
        other => panic!("{other:?}"),
    }
}

fn base_amount(terms: &ProductTerms) -> String {
    let base = terms.line_item(&line_item_id("base")).map(|item| &item.charge);
    match base {
        Some(SelectedCharge::Fixed { price: billing_domain::catalog::FixedPrice::Flat { amount }, .. }) => {
            amount.as_decimal().normalize().to_string()
        }
        _ => "-".to_owned(),
    }
}

/// Describes the plan of a product: days, price, discount, and the reason for an early end.
fn shown(product: &ContractProduct) -> Vec<String> {
    let clip = |clip: &billing_domain::contract::TermsInterval<'_>| {
        let discount = clip.terms.discount.map(|percent| format!(" −{} %", percent.as_decimal())).unwrap_or_default();
        let cut = clip.cut.map(|reason| format!(" {reason:?}")).unwrap_or_default();
        format!("{} at {}{discount}{cut}", clip.days, base_amount(clip.terms))
    };
    product.plan().iter().map(clip).collect()
}

fn plan(contract: &Contract, no: u16) -> Vec<String> {
    shown(contract.product(ProductNo(no)).expect("the product"))
}

fn since(amendment: &Amendment) -> Vec<(u16, String)> {
    amendment.since.iter().map(|(no, day)| (no.0, day.to_string())).collect()
}

fn first_days(rows: &[(u16, &str)]) -> BTreeMap<ProductNo, chrono::NaiveDate> {
    rows.iter().map(|(no, day)| (ProductNo(*no), date(day))).collect()
}

fn steps_of(contract: &Contract, no: usize) -> Vec<Vec<String>> {
    let steps = |terms: &ProductTerms| match terms.line_item(&line_item_id("base")).map(|item| &item.charge) {
        Some(SelectedCharge::Fixed { quantities, .. }) => {
            quantities.as_slice().iter().map(|step| format!("{} from {}", step.quantity.as_decimal(), step.from)).collect()
        }
        _ => Vec::new(),
    };
    contract.products[no].plan().iter().map(|clip| steps(clip.terms)).collect()
}

#[test]
fn an_edit_of_another_version_than_the_newest_is_refused() {
    let contract =
        after(&year(), "2026-01-10", &edit(vec![api(|p| p.tax = Patch::Set(percent("7")))], EffectiveFrom::NextPeriod));
    assert_eq!(contract.version, 2);
    let edit = |version| ContractEdit {
        po_number: Patch::Keep,
        metadata: Patch::Keep,
        products: None,
        since: EffectiveFrom::default(),
        version,
    };
    let attempt = |version| on("2026-01-10", &[], |now| edited(&contract, &edit(version), &catalog(), now));
    for (version, expected) in [(1, vec!["version_conflict"]), (3, vec!["version out_of_range"]), (0, vec!["version_conflict"])] {
        assert_eq!(code(&attempt(Some(version)).expect_err("a refusal")), expected, "{version}");
    }
    for version in [None, Some(2)] {
        assert_eq!(attempt(version).expect("no change").contract, contract, "{version:?}");
    }
}

#[test]
fn an_edit_cannot_hold_from_before_the_contracts_first_day() {
    let change = || vec![api(|p| p.tax = Patch::Set(percent("7")))];
    assert_eq!(code(&refused(&year(), "2026-03-10", &edit(change(), from("2025-12-31")))), ["effective_from out_of_range"]);
    assert_eq!(since(&amended(&year(), "2026-03-10", &edit(change(), from("2026-01-01")))), [(0, "2026-01-01".to_owned())]);
}

#[test]
fn a_change_holds_from_the_period_that_is_asked_for() {
    let rows: [(&str, EffectiveFrom, &[&str]); 7] = [
        ("2026-03-10", EffectiveFrom::NextPeriod, &["2026-01-01…2026-03-31 at 10", "2026-04-01…2026-12-31 at 20"]),
        ("2026-03-10", EffectiveFrom::CurrentPeriod, &["2026-01-01…2026-02-28 at 10", "2026-03-01…2026-12-31 at 20"]),
        ("2026-03-10", from("2026-02-01"), &["2026-01-01…2026-01-31 at 10", "2026-02-01…2026-12-31 at 20"]),
        ("2026-03-10", from("2026-12-01"), &["2026-01-01…2026-11-30 at 10", "2026-12-01…2026-12-31 at 20"]),
        ("2026-03-10", from("2026-01-01"), &["2026-01-01…2026-12-31 at 20"]),
        // A product that has not started changes from its first day.
        ("2025-12-10", EffectiveFrom::NextPeriod, &["2026-01-01…2026-12-31 at 20"]),
        ("2025-12-10", EffectiveFrom::CurrentPeriod, &["2026-01-01…2026-12-31 at 20"]),
    ];
    for (today, since, expected) in rows {
        let amendment = amended(&year(), today, &edit(vec![api(|p| p.line_items = costs("20"))], since));
        assert_eq!(plan(&amendment.contract, 0), expected, "{since:?} on {today}");
        let changed = amendment.contract.products[0].plan().last().map(|clip| clip.days.start()).expect("a day");
        assert_eq!(amendment.since, BTreeMap::from([(ProductNo(0), changed)]), "{since:?} on {today}");
        assert_eq!((amendment.contract.version, amendment.restructured.len()), (2, 0));
    }
}

#[test]
fn a_change_from_within_a_period_is_refused_with_both_of_the_nearest_days() {
    let changes: [(&str, ProductPatch); 3] = [
        ("price", api(|p| p.line_items = costs("20"))),
        ("discount", api(|p| p.discount = Patch::Set(percent("10")))),
        ("payment time", api(|p| p.payment_time = Patch::Set(PaymentTime::BeforeUse))),
    ];
    for (what, patch) in changes {
        let refusal = refused(&year(), "2026-03-10", &edit(vec![patch], from("2026-03-15")));
        assert_eq!(code(&refusal), ["effective_from not_a_period_start"], "{what}");
        let Refusal::Invalid(violations) = &refusal else { panic!("{refusal:?}") };
        let detail = &violations.iter().next().expect("one").detail;
        assert!(detail.contains("2026-03-01") && detail.contains("2026-04-01"), "{what}: {detail}");
    }
}

#[test]
fn what_splits_no_period_holds_from_any_day() {
    let rows: [(&str, Vec<ProductPatch>, &[&str]); 4] = [
        ("note", vec![api(|p| p.note = Patch::Set(prose("hello")))], &["2026-01-01…2026-12-31 at 10"]),
        ("seats", vec![api(|p| p.line_items = seats(&[("2026-03-17", "3")]))], &["2026-01-01…2026-12-31 at 10"]),
        ("leaving", vec![], &["2026-01-01…2026-03-14 at 10 Removed"]),
        ("nothing", vec![api(|_| ())], &["2026-01-01…2026-12-31 at 10"]),
    ];
    for (what, patches, expected) in rows {
        assert_eq!(plan(&after(&year(), "2026-03-10", &edit(patches, from("2026-03-15"))), 0), expected, "{what}");
    }
}

/// Returns a patch with all agreed values, as a client sends back a GET response.
fn whole(terms: &ProductTerms) -> ProductPatch {
    let range = terms.schedule.range();
    let set = |amount| Patch::Set(amount);
    let items = terms.line_items.iter().map(|item| RequestedLineItem {
        quantities: match &item.charge {
            SelectedCharge::Fixed { quantities, .. } => Some(quantities.clone()),
            SelectedCharge::Usage(_) => None,
        },
        name: set(item.name.clone()),
        price: match &item.charge {
            SelectedCharge::Fixed { price: billing_domain::catalog::FixedPrice::Flat { amount }, .. } => {
                Patch::Set(PriceModel::Flat { amount: *amount })
            }
            SelectedCharge::Fixed { price: billing_domain::catalog::FixedPrice::Metered(price), .. } => {
                Patch::Set(PriceModel::Metered(price.clone()))
            }
            SelectedCharge::Usage(metered) => Patch::Set(PriceModel::Metered(metered.charge.price.clone())),
        },
        included_quantity: item.metered().map_or(Patch::Keep, |metered| Patch::Set(metered.charge.included_quantity)),
        prepaid_quantity: item.metered().map_or(Patch::Keep, |_| Patch::Clear),
        ..RequestedLineItem::plain(item.id.clone())
    });
    ProductPatch {
        billing_start_date: Some(range.start()),
        billing_end_date: Some(range.last_day()),
        line_items: Patch::Set(items.collect()),
        minimum_fee: terms.pricing.minimum_fee.map_or(Patch::Clear, Patch::Set),
        entity_ref: Patch::Set(terms.entity_ref.clone()),
        billing_cycle: Patch::Set(terms.schedule.cycle()),
        issue_day: terms.schedule.issue_day().map_or(Patch::Clear, Patch::Set),
        payment_time: Patch::Set(terms.payment_time),
        tax: terms.tax.map_or(Patch::Clear, Patch::Set),
        discount: terms.discount.map_or(Patch::Clear, Patch::Set),
        net_terms: terms.net_terms.map_or(Patch::Clear, Patch::Set),
        note: terms.note.clone().map_or(Patch::Clear, Patch::Set),
        bank_transfer: Patch::Clear,
        online: Patch::Clear,
        crypto: Patch::Clear,
        ..ProductPatch::of(terms.pricing.pricing_ref.clone())
    }
}

/// Returns a contract at 10 per month. From April on, it costs 20 with a discount of 25 %.
fn with_a_rise() -> Contract {
    let rise = api(|p| {
        p.line_items = costs("20");
        p.discount = Patch::Set(percent("25"));
    });
    after(&year(), "2026-01-10", &edit(vec![rise], from("2026-04-01")))
}

const RISE: [&str; 2] = ["2026-01-01…2026-03-31 at 10", "2026-04-01…2026-12-31 at 20 −25 %"];

#[test]
fn values_equal_to_the_newest_are_no_change() {
    let contract = with_a_rise();
    assert_eq!(plan(&contract, 0), RISE);
    let newest = || whole(contract.products[0].newest_terms().expect("terms"));
    let only_the_price = || api(|p| p.line_items = costs("20"));
    let rows = [
        ("all of it", newest(), EffectiveFrom::NextPeriod, None),
        ("all of it and a version", newest(), EffectiveFrom::NextPeriod, Some(2)),
        ("and a period", newest(), EffectiveFrom::CurrentPeriod, Some(2)),
        ("and a day", newest(), from("2026-02-01"), Some(2)),
        ("and a day within a period", newest(), from("2026-02-15"), Some(2)),
        ("one value", only_the_price(), EffectiveFrom::NextPeriod, None),
        ("one value, a day and a version", only_the_price(), from("2026-02-01"), Some(2)),
        ("nothing", api(|_| ()), from("2026-02-01"), None),
    ];
    for (what, patch, since, version) in rows {
        let amendment = amended(&contract, "2026-02-10", &ContractEdit { version, ..edit(vec![patch], since) });
        assert_eq!(
            amendment,
            Amendment { contract: contract.clone(), since: BTreeMap::new(), restructured: BTreeMap::new() },
            "{what}"
        );
    }
}

#[test]
fn with_a_day_and_no_version_a_value_equal_to_the_newest_holds_from_that_day() {
    let amendment = amended(&with_a_rise(), "2026-02-10", &edit(vec![api(|p| p.line_items = costs("20"))], from("2026-02-01")));
    let expected = ["2026-01-01…2026-01-31 at 10", "2026-02-01…2026-03-31 at 20", "2026-04-01…2026-12-31 at 20 −25 %"];
    assert_eq!(plan(&amendment.contract, 0), expected);
    assert_eq!(amendment.since, first_days(&[(0, "2026-02-01")]));
}

#[test]
fn what_an_edit_does_not_name_keeps_its_plan() {
    let rows: [(&str, ProductPatch, EffectiveFrom, &[&str]); 6] = [
        ("a note", api(|p| p.note = Patch::Set(prose("hello"))), EffectiveFrom::NextPeriod, &RISE),
        (
            "tax",
            api(|p| p.tax = Patch::Set(percent("7"))),
            EffectiveFrom::NextPeriod,
            &["2026-01-01…2026-02-28 at 10", "2026-03-01…2026-03-31 at 10", "2026-04-01…2026-12-31 at 20 −25 %"],
        ),
        (
            "the price",
            api(|p| p.line_items = costs("30")),
            from("2026-03-01"),
            &["2026-01-01…2026-02-28 at 10", "2026-03-01…2026-03-31 at 30", "2026-04-01…2026-12-31 at 30 −25 %"],
        ),
        (
            "the discount",
            api(|p| p.discount = Patch::Set(percent("50"))),
            from("2026-03-01"),
            &["2026-01-01…2026-02-28 at 10", "2026-03-01…2026-03-31 at 10 −50 %", "2026-04-01…2026-12-31 at 20 −50 %"],
        ),
        (
            "no discount",
            api(|p| p.discount = Patch::Clear),
            from("2026-06-01"),
            &["2026-01-01…2026-03-31 at 10", "2026-04-01…2026-05-31 at 20 −25 %", "2026-06-01…2026-12-31 at 20"],
        ),
        (
            "a later end",
            api(|p| p.billing_end_date = Some(date("2027-03-31"))),
            EffectiveFrom::NextPeriod,
            &["2026-01-01…2026-03-31 at 10", "2026-04-01…2027-03-31 at 20 −25 %"],
        ),
    ];
    for (what, patch, since, expected) in rows {
        assert_eq!(plan(&after(&with_a_rise(), "2026-02-10", &edit(vec![patch], since)), 0), expected, "{what}");
    }
}

#[test]
fn a_line_item_that_is_planned_to_go_stays_until_then_when_another_gets_seats_or_a_price() {
    let without_calls = Patch::Set(vec![RequestedLineItem::plain(line_item_id("base"))]);
    let planned = after(&year(), "2026-01-10", &edit(vec![api(|api| api.line_items = without_calls)], from("2026-07-01")));
    let ids = |contract: &Contract, day: &str| -> Vec<String> {
        let terms = contract.products[0].period_at(date(day)).expect("a period").terms;
        terms.line_items.iter().map(|item| item.id.as_str().to_owned()).collect()
    };
    let seats = RequestedLineItem {
        quantities: Some(quantities(&[("2026-03-01", "5")])),
        ..RequestedLineItem::plain(line_item_id("base"))
    };
    let dearer = RequestedLineItem {
        price: Patch::Set(PriceModel::Flat { amount: price("12") }),
        ..RequestedLineItem::plain(line_item_id("base"))
    };
    for change in [seats, dearer] {
        // As GET returns it, with one value changed.
        let mut posted = edit(vec![api(|api| api.line_items = Patch::Set(vec![change.clone()]))], from("2026-02-01"));
        posted.version = Some(planned.version);
        let changed = after(&planned, "2026-01-10", &posted);
        assert_ne!(changed.products, planned.products);
        assert_eq!(ids(&changed, "2026-03-15"), ["base", "calls"], "{change:?}");
        assert_eq!(ids(&changed, "2026-07-15"), ["base"], "{change:?}");
    }
}

#[test]
fn notes_hold_in_every_part_of_the_plan_at_once() {
    let contract =
        after(&with_a_rise(), "2026-02-10", &edit(vec![api(|p| p.note = Patch::Set(prose("hello")))], EffectiveFrom::NextPeriod));
    assert_eq!(contract.version, 3);
    let notes: Vec<Option<&str>> =
        contract.products[0].plan().iter().map(|clip| clip.terms.note.as_ref().map(|note| note.as_str())).collect();
    assert_eq!(notes, [Some("hello"), Some("hello")]);
}

#[test]
fn a_change_is_noted_from_the_first_day_that_bills_otherwise() {
    let priced_and = |seats: Patch<Vec<RequestedLineItem>>| {
        let (Patch::Set(mut priced), Patch::Set(seats)) = (costs("20"), seats) else { panic!("line items") };
        priced[0].quantities.clone_from(&seats[0].quantities);
        api(|p| p.line_items = Patch::Set(priced))
    };
    let rows = [
        ("seats", api(|p| p.line_items = seats(&[("2026-02-17", "3")])), from("2026-04-01"), "2026-02-17"),
        ("a price and earlier seats", priced_and(seats(&[("2026-02-17", "3")])), from("2026-04-01"), "2026-02-17"),
        ("a price and later seats", priced_and(seats(&[("2026-06-17", "3")])), from("2026-04-01"), "2026-04-01"),
        (
            "an end, whatever day is named",
            api(|p| {
                p.billing_end_date = Some(date("2026-08-20"));
                p.line_items = seats(&[("2026-10-01", "3")]);
            }),
            from("2026-03-01"),
            "2026-08-21",
        ),
    ];
    for (what, patch, from, expected) in rows {
        let amendment = begun(&year(), "2026-07-10", &edit(vec![patch], from)).expect("an amendment");
        assert_eq!(amendment.since, first_days(&[(0, expected)]), "{what}");
    }
}

#[test]
fn what_structures_documents_is_noted_apart() {
    type Change = fn(&mut ProductPatch);
    let rows: [(&str, Change, bool); 6] = [
        ("payment time", |p| p.payment_time = Patch::Set(PaymentTime::BeforeUse), true),
        ("entity", |p| p.entity_ref = Patch::Set(entity_ref("elsewhere")), true),
        ("issue day", |p| p.issue_day = Patch::Set(date("2026-01-15")), true),
        ("an end", |p| p.billing_end_date = Some(date("2028-01-20")), false),
        ("price", |p| p.line_items = costs("20"), false),
        ("tax", |p| p.tax = Patch::Set(percent("7")), false),
    ];
    for (what, change, is_structure) in rows {
        let amendment = begun(&year(), "2026-03-10", &edit(vec![api(change)], EffectiveFrom::NextPeriod)).expect("an amendment");
        let expected = if is_structure { first_days(&[(0, "2026-04-01")]) } else { BTreeMap::new() };
        assert_eq!(amendment.restructured, expected, "{what}");
    }
}

#[test]
fn an_end_structures_nothing_but_before_the_product_has_begun() {
    let with_day = fixtures::agreed_with(&pricings()[0], "2026-01-01", "2026-12-31", |r| r.issue_day = Some(date("2026-02-01")));
    let later = edit(vec![api(|p| p.billing_end_date = Some(date("2028-01-20")))], EffectiveFrom::NextPeriod);
    for contract in [contract(vec![with_day.clone()]), year()] {
        let amendment = begun(&contract, "2026-03-10", &later).expect("an amendment");
        assert_eq!((amendment.restructured.len(), amendment.since), (0, first_days(&[(0, "2027-01-01")])));
    }
    let amendment = amended(&year(), "2025-12-10", &later);
    let everywhere = first_days(&[(0, "2026-01-01")]);
    assert_eq!((amendment.restructured, amendment.since), (everywhere.clone(), everywhere));
    let amendment = amended(&contract(vec![with_day]), "2025-12-10", &later);
    assert_eq!((amendment.restructured.len(), amendment.since), (0, first_days(&[(0, "2027-01-01")])));
}

/// Returns a contract with the consecutive products 0 and 1 of pricing `api`, and product 2 of pricing `other`.
fn three() -> Contract {
    contract(vec![
        terms("api", "2026-01-01", "2026-06-30"),
        terms("api", "2026-07-01", "2026-12-31"),
        terms("other", "2026-01-01", "2026-12-31"),
    ])
}

fn permutations<T: Clone>(of: &[T]) -> Vec<Vec<T>> {
    if of.is_empty() {
        return vec![Vec::new()];
    }
    let with_first = |i: usize| {
        let rest: Vec<T> = of.iter().enumerate().filter(|(j, _)| *j != i).map(|(_, one)| one.clone()).collect();
        permutations(&rest).into_iter().map(move |mut rest| {
            rest.insert(0, of[i].clone());
            rest
        })
    };
    (0..of.len()).flat_map(with_first).collect()
}

#[test]
fn the_order_of_the_list_decides_nothing() {
    let discounted = |patch: ProductPatch, percent_of: &str| ProductPatch { discount: Patch::Set(percent(percent_of)), ..patch };
    let starting = |day: &str| api(|p| p.billing_start_date = Some(date(day)));
    type Row<'a> = (&'a str, Contract, Vec<ProductPatch>, &'a [(u16, &'a str)]);
    let rows: [Row<'_>; 5] = [
        (
            "by start",
            three(),
            vec![
                discounted(starting("2026-01-01"), "1"),
                discounted(starting("2026-07-01"), "2"),
                discounted(of("other", |_| ()), "3"),
            ],
            &[(0, "1"), (1, "2"), (2, "3")],
        ),
        (
            "the only one left",
            three(),
            vec![discounted(api(|_| ()), "1"), discounted(starting("2026-07-01"), "2"), discounted(of("other", |_| ()), "3")],
            &[(0, "1"), (1, "2"), (2, "3")],
        ),
        (
            "the only one left, with another start",
            three(),
            vec![
                discounted(starting("2026-01-01"), "1"),
                discounted(starting("2026-08-01"), "2"),
                discounted(of("other", |_| ()), "3"),
            ],
            &[(0, "1"), (1, "2"), (2, "3")],
        ),
        (
            "one without start before one that is added",
            contract(vec![terms("api", "2026-01-01", "2026-06-30")]),
            vec![
                discounted(api(|_| ()), "1"),
                discounted(ProductPatch { billing_end_date: Some(date("2026-12-31")), ..starting("2026-07-01") }, "2"),
            ],
            &[(0, "1"), (1, "2")],
        ),
        ("those left out end", three(), vec![discounted(starting("2026-01-01"), "1")], &[(0, "1")]),
    ];
    for (what, contract, patches, expected) in rows {
        for patches in permutations(&patches) {
            // No product has begun, so every change takes effect from the first day.
            let after = after(&contract, "2025-12-01", &edit(patches, EffectiveFrom::NextPeriod));
            let found: Vec<(u16, String)> = after
                .products
                .iter()
                .filter(|product| product.billed().is_some())
                .map(|product| {
                    let discount = product.newest_terms().and_then(|terms| terms.discount).expect("a discount");
                    (product.no.0, discount.as_decimal().to_string())
                })
                .collect();
            let expected: Vec<(u16, String)> = expected.iter().map(|(no, percent)| (*no, (*percent).to_owned())).collect();
            assert_eq!(found, expected, "{what}");
        }
    }
}

#[test]
fn an_element_that_may_mean_several_products_is_ambiguous() {
    let starting = |day: &str| api(|p| p.billing_start_date = Some(date(day)));
    let rows: [(Vec<ProductPatch>, &[&str]); 3] = [
        (vec![of("other", |_| ()), api(|_| ())], &["products.1.billing_start_date ambiguous_product"]),
        (vec![starting("2026-03-01")], &["products.0.billing_start_date ambiguous_product"]),
        (
            vec![starting("2026-07-01"), api(|_| ()), api(|_| ())],
            &["products.1.billing_start_date ambiguous_product", "products.2.billing_start_date ambiguous_product"],
        ),
    ];
    for (patches, expected) in rows {
        assert_eq!(code(&refused(&three(), "2026-02-10", &edit(patches, EffectiveFrom::NextPeriod))), expected);
    }
    // In August, the first product has ended, so only the second one matches.
    let discount = edit(vec![api(|p| p.discount = Patch::Set(percent("5")))], EffectiveFrom::NextPeriod);
    assert_eq!(plan(&after(&three(), "2026-08-10", &discount), 1)[1], "2026-09-01…2026-12-31 at 10 −5 %");
}

#[test]
fn a_product_that_is_left_out_ends() {
    let both = || contract(vec![terms("api", "2026-01-01", "2026-12-31"), terms("other", "2026-03-01", "2026-12-31")]);
    let rows: [(&str, EffectiveFrom, &[&str], Option<&str>); 6] = [
        ("2026-04-10", EffectiveFrom::NextPeriod, &["2026-03-01…2026-04-30 at 5 Removed"], Some("2026-05-01")),
        ("2026-04-10", EffectiveFrom::CurrentPeriod, &["2026-03-01…2026-04-10 at 5 Removed"], Some("2026-04-11")),
        ("2026-04-10", from("2026-03-17"), &["2026-03-01…2026-03-16 at 5 Removed"], Some("2026-03-17")),
        ("2026-04-10", from("2026-02-01"), &[], Some("2026-03-01")),
        ("2026-02-10", EffectiveFrom::NextPeriod, &[], Some("2026-03-01")),
        // Edits may omit an ended product, which does not change.
        ("2027-02-10", EffectiveFrom::NextPeriod, &["2026-03-01…2026-12-31 at 5"], None),
    ];
    for (today, since, expected, first) in rows {
        let patch = api(|p| p.billing_start_date = Some(date("2026-01-01")));
        let amendment = amended(&both(), today, &edit(vec![patch], since));
        assert_eq!(plan(&amendment.contract, 1), expected, "{since:?} on {today}");
        assert_eq!(amendment.since.get(&ProductNo(1)).copied(), first.map(date), "{since:?} on {today}");
        assert_eq!(plan(&amendment.contract, 0), ["2026-01-01…2026-12-31 at 10"]);
    }
}

/// Returns a contract whose product `other` is removed at the end of February.
fn without_other() -> Contract {
    let both = contract(vec![terms("api", "2026-01-01", "2026-12-31"), terms("other", "2026-01-01", "2026-12-31")]);
    let contract = after(&both, "2026-02-10", &edit(vec![api(|_| ())], EffectiveFrom::NextPeriod));
    assert_eq!(plan(&contract, 1), ["2026-01-01…2026-02-28 at 5 Removed"]);
    assert!(contract.products[1].is_removed());
    contract
}

fn back(change: impl FnOnce(&mut ProductPatch)) -> Vec<ProductPatch> {
    vec![api(|_| ()), of("other", change)]
}

#[test]
fn a_product_that_is_put_back_before_its_end_goes_on_as_if_nothing_was() {
    let discount = |p: &mut ProductPatch| p.discount = Patch::Set(percent("5"));
    let rows: [(&str, Vec<ProductPatch>, EffectiveFrom, &[&str]); 4] = [
        ("as it was", back(|_| ()), EffectiveFrom::NextPeriod, &["2026-01-01…2026-12-31 at 5"]),
        (
            "said in full",
            back(|p| {
                p.billing_start_date = Some(date("2026-01-01"));
                p.billing_end_date = Some(date("2026-12-31"));
            }),
            EffectiveFrom::NextPeriod,
            &["2026-01-01…2026-12-31 at 5"],
        ),
        (
            "with another discount",
            back(discount),
            EffectiveFrom::NextPeriod,
            &["2026-01-01…2026-02-28 at 5", "2026-03-01…2026-12-31 at 5 −5 %"],
        ),
        (
            "with a discount from May",
            back(discount),
            from("2026-05-01"),
            &["2026-01-01…2026-04-30 at 5", "2026-05-01…2026-12-31 at 5 −5 %"],
        ),
    ];
    for (what, patches, since, expected) in rows {
        let amendment = amended(&without_other(), "2026-02-28", &edit(patches, since));
        assert_eq!(plan(&amendment.contract, 1), expected, "{what}");
        assert_eq!(amendment.since, first_days(&[(1, "2026-03-01")]), "{what}");
        assert!(!amendment.contract.products[1].is_removed());
    }
}

#[test]
fn an_end_that_is_taken_back_to_before_later_terms_is_no_product_left_out() {
    let last = |contract: &Contract| contract.products[0].billed().expect("the product bills").last_day().to_string();
    let ends = |day: &str| edit(vec![api(|api| api.billing_end_date = Some(date(day)))], from("2027-01-01"));
    // An edit adds terms until June 2027. The next edit reverts it.
    let prolonged = after(&year(), "2026-01-20", &ends("2027-06-30"));
    assert_eq!(last(&prolonged), "2027-06-30");
    let shortened = edit(vec![api(|api| api.billing_end_date = Some(date("2026-12-31")))], from("2026-01-01"));
    let back = after(&prolonged, "2026-01-20", &shortened);
    assert_eq!(last(&back), "2026-12-31");
    assert_eq!(back.products[0].newest_terms().expect("terms").schedule.range().last_day(), date("2026-12-31"));
    // A later edit names only a discount.
    let discounted = edit(vec![api(|api| api.discount = Patch::Set(percent("10")))], from("2026-01-01"));
    assert_eq!(last(&after(&back, "2026-01-20", &discounted)), "2026-12-31");
    // A product that was left out can be restored on the same day.
    let left_out = after(&prolonged, "2026-01-20", &edit(vec![], from("2027-01-01")));
    assert_eq!(last(&left_out), "2026-12-31");
    assert_eq!(last(&after(&left_out, "2026-01-20", &edit(vec![api(|_| {})], EffectiveFrom::NextPeriod))), "2027-06-30");
}

#[test]
fn a_product_is_put_back_whatever_happened_since_it_was_left_out() {
    let other_of = |change: QuantityChange| QuantityChange { pricing_ref: pricing_ref("other"), ..change };
    let left_out_again = after(&without_other(), "2026-02-12", &edit(vec![api(|_| ())], from("2026-02-20")));
    let both = contract(vec![terms("api", "2026-01-01", "2026-12-31"), terms("other", "2026-01-01", "2026-12-31")]);
    let left_out_for_good = after(&both, "2026-02-12", &edit(vec![api(|_| ())], from("2026-01-01")));
    assert!(plan(&left_out_for_good, 1).is_empty());
    let resumed = resumed(&cancel(&without_other(), "2026-02-12", CancelAt::Today).expect("an amendment").contract).contract;
    // A product that is left out again keeps its planned end.
    assert_eq!(left_out_again, without_other());
    let rows = [("left out again", left_out_again), ("annulled", left_out_for_good), ("cancelled and resumed", resumed)];
    for (what, contract) in rows {
        assert!(contract.products[1].is_removed(), "{what}");
        let contract = after(
            &contract,
            "2026-02-14",
            &edit(back(|p| p.billing_start_date = Some(date("2026-01-01"))), EffectiveFrom::NextPeriod),
        );
        assert_eq!(plan(&contract, 1), ["2026-01-01…2026-12-31 at 5"], "{what}");
    }
    let seats = change_on(&without_other(), "2026-02-13", &other_of(change("base", "3", None))).expect("an amendment").contract;
    let contract = after(&seats, "2026-02-14", &edit(back(|_| ()), EffectiveFrom::NextPeriod));
    assert_eq!(plan(&contract, 1), ["2026-01-01…2026-12-31 at 5"]);
    assert_eq!(steps_of(&contract, 1), [["3 from 2026-02-13"]]);
}

#[test]
fn a_product_that_is_over_goes_on_only_from_a_day_that_is_said() {
    let until = |last: &str| {
        let last = date(last);
        back(move |p| {
            p.billing_start_date = Some(date("2026-01-01"));
            p.billing_end_date = Some(last);
        })
    };
    let contract = without_other();
    for since in [EffectiveFrom::NextPeriod, EffectiveFrom::CurrentPeriod] {
        assert_eq!(code(&refused(&contract, "2026-03-10", &edit(until("2026-12-31"), since))), ["product_over"], "{since:?}");
        // An edit that keeps the end changes nothing.
        for patches in [until("2026-02-28"), back(|p| p.billing_start_date = Some(date("2026-01-01")))] {
            assert_eq!(after(&contract, "2026-03-10", &edit(patches, since)), contract, "{since:?}");
        }
    }
    let rows: [(&str, &str, &[&str]); 4] = [
        // The days in between are not billed.
        ("2026-04-01", "2026-12-31", &["2026-01-01…2026-02-28 at 5", "2026-04-01…2026-12-31 at 5"]),
        ("2026-04-01", "2026-08-31", &["2026-01-01…2026-02-28 at 5", "2026-04-01…2026-08-31 at 5"]),
        ("2026-03-01", "2026-12-31", &["2026-01-01…2026-12-31 at 5"]),
        // The product can also continue from a billed day. The billed days stay unchanged.
        ("2026-02-01", "2026-08-31", &["2026-01-01…2026-08-31 at 5"]),
    ];
    for (day, last, expected) in rows {
        let amendment = begun(&contract, "2026-03-10", &edit(until(last), from(day))).expect("an amendment");
        assert_eq!(plan(&amendment.contract, 1), expected, "from {day} to {last}");
        assert_eq!(amendment.since, first_days(&[(1, day.max("2026-03-01"))]), "from {day} to {last}");
    }
}

#[test]
fn a_product_that_is_over_goes_on_to_the_end_it_once_had() {
    let patches = back(|p| {
        p.billing_start_date = Some(date("2026-01-01"));
        p.billing_end_date = Some(date("2026-12-31"));
    });
    let amendment = amended(&without_other(), "2026-03-10", &edit(patches, from("2026-02-01")));
    assert_eq!(plan(&amendment.contract, 1), ["2026-01-01…2026-12-31 at 5"]);
    // The billed days stay unchanged.
    assert_eq!(amendment.since, first_days(&[(1, "2026-03-01")]));
}

#[test]
fn a_contract_that_is_over_goes_on_by_a_later_end_and_a_day() {
    let later = |since| {
        edit(
            vec![api(|p| {
                p.billing_start_date = Some(date("2026-01-01"));
                p.billing_end_date = Some(date("2027-12-31"));
            })],
            since,
        )
    };
    assert_eq!(code(&refused(&year(), "2027-02-10", &later(EffectiveFrom::NextPeriod))), ["product_over"]);
    let amendment = begun(&year(), "2027-02-10", &later(from("2027-03-01"))).expect("an amendment");
    assert_eq!(plan(&amendment.contract, 0), ["2026-01-01…2026-12-31 at 10", "2027-03-01…2027-12-31 at 10"]);
    assert_eq!(amendment.since, first_days(&[(0, "2027-03-01")]));
}

#[test]
fn the_first_day_of_a_product_stands_once_it_has_begun() {
    let start = |day: &str| edit(vec![api(|p| p.billing_start_date = Some(date(day)))], EffectiveFrom::NextPeriod);
    for day in ["2025-12-01", "2026-02-01"] {
        let attempt = on("2026-03-10", &[0], |now| edited(&year(), &start(day), &catalog(), now));
        assert_eq!(code(&attempt.expect_err("a refusal")), ["already_started"], "{day}");
    }
    let same = on("2026-03-10", &[0], |now| edited(&year(), &start("2026-01-01"), &catalog(), now));
    assert_eq!(same.expect("no change").contract, year());
    for (day, expected, first) in
        [("2025-12-01", "2025-12-01…2026-12-31 at 10", "2025-12-01"), ("2026-02-01", "2026-02-01…2026-12-31 at 10", "2026-01-01")]
    {
        let amendment = amended(&year(), "2026-03-10", &start(day));
        assert_eq!(plan(&amendment.contract, 0), [expected]);
        assert_eq!(amendment.since, first_days(&[(0, first)]), "{day}");
    }
}

#[test]
fn an_element_that_matches_nothing_is_added() {
    let new = |first: Option<&str>, last: Option<&str>| {
        of("other", |p| {
            p.billing_start_date = first.map(date);
            p.billing_end_date = last.map(date);
        })
    };
    let rows: [(ProductPatch, Result<&str, &[&str]>); 4] = [
        (new(Some("2026-03-15"), Some("2026-05-31")), Ok("2026-03-15…2026-05-31 at 5")),
        (new(None, Some("2026-05-31")), Err(&["products.1.billing_start_date required"])),
        (new(None, None), Err(&["products.1.billing_start_date required", "products.1.billing_end_date required"])),
        (new(Some("2026-05-31"), Some("2026-05-30")), Err(&["products.1.billing_end_date out_of_range"])),
    ];
    for (patch, expected) in rows {
        // The product bills from its start, regardless of the effective date of the edit.
        let edit = edit(vec![api(|_| ()), patch], from("2026-03-17"));
        match expected {
            Ok(expected) => {
                let amendment = amended(&year(), "2026-03-10", &edit);
                assert_eq!(plan(&amendment.contract, 1), [expected]);
                assert_eq!(amendment.since, first_days(&[(1, "2026-03-15")]));
                assert_eq!(amendment.contract.products[1].segments[0].version, 2);
            }
            Err(expected) => assert_eq!(code(&refused(&year(), "2026-03-10", &edit)), expected),
        }
    }
}

#[test]
fn a_pricing_comes_once_over_the_same_days_ended_products_included() {
    let again = |first: &str| {
        vec![
            api(|p| p.billing_start_date = Some(date("2026-01-01"))),
            api(|p| {
                p.billing_start_date = Some(date(first));
                p.billing_end_date = Some(date("2027-06-30"));
            }),
        ]
    };
    for today in ["2026-12-10", "2027-01-10"] {
        let refusal = refused(&year(), today, &edit(again("2026-12-31"), EffectiveFrom::NextPeriod));
        assert_eq!(code(&refusal), ["products.1.product_pricing_ref duplicate_product"], "{today}");
        assert_eq!(after(&year(), today, &edit(again("2027-01-01"), EffectiveFrom::NextPeriod)).products.len(), 2, "{today}");
    }
}

#[test]
fn prices_are_what_was_agreed_until_they_are_asked_for_anew() {
    let mut now = catalog();
    now.pricings[0].content.line_items = vec![fixed("base", "99"), per_unit("calls", "1"), fixed("new", "7")];
    let plain = |id: &str| RequestedLineItem::plain(line_item_id(id));
    let cleared = RequestedLineItem { price: Patch::Clear, ..plain("base") };
    let rows: [(&str, ProductPatch, &str, &[&str]); 6] = [
        ("a tax", api(|p| p.tax = Patch::Set(percent("7"))), "10", &["base", "calls"]),
        ("repriced", api(|p| p.reprice = true), "99", &["base", "calls", "new"]),
        (
            "a line item it didn't have",
            api(|p| p.line_items = Patch::Set(vec![plain("base"), plain("new")])),
            "10",
            &["base", "new"],
        ),
        (
            "the price cleared",
            api(|p| p.line_items = Patch::Set(vec![cleared.clone(), plain("calls")])),
            "99",
            &["base", "calls"],
        ),
        (
            "repriced, and a price said",
            api(|p| {
                p.reprice = true;
                p.line_items = costs("50");
            }),
            "50",
            &["base", "calls"],
        ),
        ("all of the pricing's", api(|p| p.line_items = Patch::Clear), "10", &["base", "calls", "new"]),
    ];
    for (what, patch, amount, items) in rows {
        let amendment =
            on("2026-03-10", &[0], |situation| edited(&year(), &edit(vec![patch], from("2026-04-01")), &now, situation));
        let contract = amendment.expect("an amendment").contract;
        let newest = contract.products[0].newest_terms().expect("terms");
        let found: Vec<&str> = newest.line_items.iter().map(|item| item.id.as_str()).collect();
        assert_eq!((base_amount(newest).as_str(), found.as_slice()), (amount, items), "{what}");
        assert_eq!(plan(&contract, 0)[0], "2026-01-01…2026-03-31 at 10", "{what}");
    }
}

#[test]
fn everything_wrong_in_an_edit_is_found_at_once() {
    let patches = vec![
        api(|p| {
            p.entity_ref = Patch::Set(entity_ref("nowhere"));
            p.line_items = Patch::Set(vec![RequestedLineItem::plain(line_item_id("nothing"))]);
        }),
        of("unknown", |p| {
            p.billing_start_date = Some(date("2026-05-01"));
            p.billing_end_date = Some(date("2026-05-31"));
        }),
    ];
    let mut found = code(&refused(&year(), "2026-03-10", &edit(patches, EffectiveFrom::NextPeriod)));
    found.sort();
    let expected = [
        "products.0.entity_ref unknown_reference",
        "products.0.line_items.0.line_item_id unknown_line_item",
        "products.1.product_pricing_ref unknown_reference",
    ];
    assert_eq!(found, expected);
}

/// Returns the periods from the period of a day on, with their share of the whole period.
fn periods_from(product: &ContractProduct, day: &str) -> Vec<String> {
    let shown = |period: billing_domain::contract::ProductPeriod<'_>| {
        let share = period.period.share();
        format!("{} {}/{}", period.days(), share.days, share.of)
    };
    product.periods().filter(|period| period.days().last_day() >= date(day)).map(shown).collect()
}

fn ends_on(day: &str) -> Vec<ProductPatch> {
    let ends = api(|p| {
        p.product_no = Some(ProductNo(0));
        p.billing_end_date = Some(date(day));
    });
    vec![ends]
}

#[test]
fn an_end_takes_effect_on_its_own_day_for_each_operation() {
    let by = |patches, since| begun(&year(), "2026-06-10", &edit(patches, since)).expect("an amendment");
    let rows = [
        ("by a day", by(ends_on("2026-06-20"), from("2026-06-21"))),
        ("by an earlier day", by(ends_on("2026-06-20"), from("2026-06-05"))),
        ("by the current period", by(ends_on("2026-06-20"), EffectiveFrom::CurrentPeriod)),
        ("left out", by(vec![], from("2026-06-21"))),
        (
            "cancelled",
            on("2026-06-10", &[0], |now| cancelled(&year(), last("2026-06-20"), at(CANCELLED_AT), now)).expect("an amendment"),
        ),
    ];
    for (what, amendment) in rows {
        assert_eq!(periods_from(&amendment.contract.products[0], "2026-06-01"), ["2026-06-01…2026-06-20 20/30"], "{what}");
        assert_eq!((amendment.since, amendment.restructured.len()), (first_days(&[(0, "2026-06-21")]), 0), "{what}");
    }
}

#[test]
fn an_end_before_the_next_period_is_asked_for_with_a_day_or_the_current_period() {
    let attempt = |has_begun: &[u16], today: &str, last: &str, since| {
        on(today, has_begun, |now| edited(&year(), &edit(ends_on(last), since), &catalog(), now)).map(|_| ())
    };
    let rows = [
        (EffectiveFrom::NextPeriod, "2026-06-20", false),
        (EffectiveFrom::NextPeriod, "2026-05-20", false),
        (from("2026-06-22"), "2026-06-20", false),
        (from("2026-06-21"), "2026-06-20", true),
        (EffectiveFrom::CurrentPeriod, "2026-06-20", true),
        // With `NextPeriod`, the product may end with its current period or later.
        (EffectiveFrom::NextPeriod, "2026-06-30", true),
        (EffectiveFrom::NextPeriod, "2026-07-20", true),
        (EffectiveFrom::NextPeriod, "2028-01-20", true),
        (from("2026-12-01"), "2026-07-20", true),
    ];
    for (since, last, is_taken) in rows {
        let decided = attempt(&[0], "2026-06-10", last, since);
        assert_eq!(decided.is_ok(), is_taken, "{last} {since:?}");
        if let Err(refusal) = decided {
            assert_eq!(code(&refusal), ["products.0.billing_end_date ends_before_next_period"], "{last} {since:?}");
        }
    }
    // A product has begun on its first day, also without usage. The rule does not apply before that day.
    attempt(&[], "2026-06-10", "2026-06-20", EffectiveFrom::NextPeriod).expect_err("the first day has come");
    attempt(&[0], "2025-12-10", "2026-06-20", EffectiveFrom::NextPeriod).expect("the product has not started");
    // An ended product has no next period.
    let over = attempt(&[0], "2027-02-10", "2026-06-20", EffectiveFrom::NextPeriod).expect_err("a refusal");
    assert_eq!(code(&over), ["products.0.billing_end_date ends_before_next_period"]);
    attempt(&[0], "2027-02-10", "2026-06-20", from("2026-06-21")).expect("a past day is allowed");
}

#[test]
fn an_end_that_is_moved_back_restores_every_period() {
    let with_day = fixtures::agreed_with(&pricings()[0], "2026-01-01", "2026-12-31", |r| r.issue_day = Some(date("2026-03-15")));
    let quarterly = fixtures::agreed_with(&pricings()[0], "2026-01-10", "2026-12-09", |r| {
        r.billing_cycle = BillingCycle::new(CycleUnit::Quarterly, 1);
    });
    let rows = [
        ("by the month", year(), "2026-12-31"),
        ("with a rise", with_a_rise(), "2026-12-31"),
        ("with an issue day", contract(vec![with_day]), "2026-12-31"),
        ("by the quarter", contract(vec![quarterly]), "2026-12-09"),
    ];
    for (what, before, end) in rows {
        for moved in ["2026-02-20", "2026-03-31", "2026-07-20", "2028-01-20"] {
            let there = begun(&before, "2026-02-25", &edit(ends_on(moved), EffectiveFrom::CurrentPeriod)).expect("an amendment");
            assert_eq!(there.contract.products[0].billed().expect("the product bills").last_day(), date(moved), "{what} {moved}");
            assert!(there.restructured.is_empty(), "{what} {moved}");
            let first = date(moved).min(date(end)).succ_opt().expect("a day");
            let back = edit(ends_on(end), EffectiveFrom::Day(first));
            let back = begun(&there.contract, "2026-02-25", &back).expect("an amendment");
            assert_eq!(back.contract.products[0].plan(), before.products[0].plan(), "{what} {moved}");
            let days = there.since.values().chain(back.since.values()).copied().collect::<Vec<_>>();
            assert_eq!(days, [first; 2], "{what} {moved}");
        }
    }
}

#[test]
fn the_anchor_of_a_product_that_has_begun_moves_only_with_the_issue_day() {
    let later = |today: &str| {
        on(today, &[], |now| edited(&year(), &edit(ends_on("2027-01-20"), EffectiveFrom::NextPeriod), &catalog(), now))
            .expect("an amendment")
            .contract
    };
    let extended = later("2026-02-25");
    assert_eq!(extended.products[0].newest_terms().expect("terms").schedule.anchor(), date("2027-01-01"));
    assert_eq!(periods_from(&extended.products[0], "2026-12-31"), ["2026-12-01…2026-12-31 31/31", "2027-01-01…2027-01-20 20/31"]);
    let anew = later("2025-12-31");
    assert_eq!(anew.products[0].newest_terms().expect("terms").schedule.anchor(), date("2027-01-21"));
    assert_eq!(periods_from(&anew.products[0], "2027-01-01"), ["2026-12-21…2027-01-20 31/31"]);
    // A new cycle keeps the anchor. A new issue day moves it.
    let cycle = edit(
        vec![api(|p| p.billing_cycle = Patch::Set(BillingCycle::new(CycleUnit::Quarterly, 1).expect("a cycle")))],
        from("2026-07-01"),
    );
    let cycle = begun(&extended, "2026-02-25", &cycle).expect("an amendment").contract;
    assert_eq!(periods_from(&cycle.products[0], "2026-12-31"), ["2026-10-01…2026-12-31 92/92", "2027-01-01…2027-01-20 20/90"]);
    let issue_day = edit(vec![api(|p| p.issue_day = Patch::Set(date("2026-07-01")))], from("2026-07-01"));
    let issue_day = begun(&extended, "2026-02-25", &issue_day).expect("an amendment").contract;
    assert_eq!(issue_day.products[0].newest_terms().expect("terms").schedule.anchor(), date("2026-07-01"));
}

#[test]
fn an_end_before_the_issue_day_clips_the_grid() {
    let with_day = fixtures::agreed_with(&pricings()[0], "2026-01-01", "2026-12-31", |r| r.issue_day = Some(date("2026-03-15")));
    let contract = contract(vec![with_day]);
    let ended = edit(ends_on("2026-02-20"), EffectiveFrom::CurrentPeriod);
    let amendment = begun(&contract, "2026-02-10", &ended).expect("an amendment");
    let product = &amendment.contract.products[0];
    assert_eq!(
        periods_from(product, "2026-01-01"),
        ["2026-01-01…2026-01-14 14/31", "2026-01-15…2026-02-14 31/31", "2026-02-15…2026-02-20 6/28"]
    );
    // Before the product has begun, the issue day must lie in the range.
    assert_eq!(code(&refused(&contract, "2025-12-10", &ended)), ["products.0.issue_day out_of_range"]);
}

#[test]
fn a_one_time_product_that_has_begun_ends_no_later_than_it_did_first() {
    let once = fixtures::agreed_with(&pricings()[0], "2027-01-01", "2027-12-31", |r| {
        r.billing_cycle = BillingCycle::new(CycleUnit::OneTime, 1);
    });
    let contract = contract(vec![once]);
    let attempt = |contract: &Contract, last: &str, since| begun(contract, "2027-05-10", &edit(ends_on(last), since));
    let ended = attempt(&contract, "2027-06-30", EffectiveFrom::CurrentPeriod).expect("an amendment").contract;
    assert_eq!(periods_from(&ended.products[0], "2027-01-01"), ["2027-01-01…2027-06-30 181/365"]);
    let left_out = begun(&contract, "2027-05-10", &edit(vec![], from("2027-07-01"))).expect("an amendment").contract;
    assert_eq!(periods_from(&left_out.products[0], "2027-01-01"), ["2027-01-01…2027-06-30 181/365"]);
    let back = attempt(&ended, "2027-12-31", EffectiveFrom::CurrentPeriod).expect("an amendment").contract;
    assert_eq!(back.products[0].plan(), contract.products[0].plan());
    for (from, since) in [
        (&contract, EffectiveFrom::NextPeriod),
        (&contract, EffectiveFrom::CurrentPeriod),
        (&ended, EffectiveFrom::CurrentPeriod),
    ] {
        let refusal = attempt(from, "2028-12-31", since).expect_err("a refusal");
        assert_eq!(code(&refusal), ["products.0.billing_end_date not_retroactive"]);
    }
    let anew = after(&contract, "2026-12-10", &edit(ends_on("2028-12-31"), EffectiveFrom::NextPeriod));
    assert_eq!(periods_from(&anew.products[0], "2027-01-01"), ["2027-01-01…2028-12-31 731/731"]);
}

#[test]
fn a_product_that_is_left_out_again_keeps_its_end_and_a_named_end_takes_its_place() {
    for since in [EffectiveFrom::NextPeriod, EffectiveFrom::CurrentPeriod, from("2026-02-01")] {
        let again = amended(&without_other(), "2026-02-12", &edit(vec![api(|_| ())], since));
        assert_eq!(again.contract, without_other(), "{since:?}");
    }
    let earlier = edit(back(|p| p.billing_end_date = Some(date("2026-02-20"))), EffectiveFrom::CurrentPeriod);
    let contract = begun(&without_other(), "2026-02-12", &earlier).expect("an amendment").contract;
    assert_eq!(plan(&contract, 1), ["2026-01-01…2026-02-20 at 5"]);
}

#[test]
fn an_element_with_a_number_means_that_product() {
    let numbered = |no: u16, reference: &str, discount: &str| {
        of(reference, |p| {
            p.product_no = Some(ProductNo(no));
            p.discount = Patch::Set(percent(discount));
        })
    };
    for patches in permutations(&[numbered(0, "api", "1"), numbered(1, "api", "2"), numbered(2, "other", "3")]) {
        let contract = after(&three(), "2025-12-01", &edit(patches, EffectiveFrom::NextPeriod));
        let discounts: Vec<String> = contract.products.iter().map(|product| shown(product)[0].clone()).collect();
        assert!(
            discounts.iter().zip(["−1 %", "−2 %", "−3 %"]).all(|(shown, discount)| shown.ends_with(discount)),
            "{discounts:?}"
        );
    }
    // The product number takes precedence over the start, so the start moves.
    let moved = ProductPatch { billing_start_date: Some(date("2026-07-02")), ..numbered(1, "api", "2") };
    let contract = after(
        &three(),
        "2025-12-01",
        &edit(vec![numbered(0, "api", "1"), moved, of("other", |_| ())], EffectiveFrom::NextPeriod),
    );
    assert_eq!((plan(&contract, 1), contract.products.len()), (vec!["2026-07-02…2026-12-31 at 10 −2 %".to_owned()], 3));
    let rows = [
        (vec![numbered(3, "api", "1")], "products.0.product_no unknown_product"),
        (vec![numbered(2, "api", "1")], "products.0.product_pricing_ref pricing_mismatch"),
        (vec![numbered(1, "api", "1"), numbered(1, "api", "2")], "products.1.product_no ambiguous_product"),
    ];
    for (patches, expected) in rows {
        assert_eq!(code(&refused(&three(), "2026-02-10", &edit(patches, EffectiveFrom::NextPeriod))), [expected]);
    }
}

const CANCELLED_AT: &str = "2026-03-10T12:00:00Z";

fn cancel(contract: &Contract, today: &str, last_day: CancelAt) -> Result<Amendment, Refusal> {
    on(today, &[], |now| cancelled(contract, last_day, at(CANCELLED_AT), now))
}

fn last(day: &str) -> CancelAt {
    CancelAt::Day(date(day))
}

/// Returns a contract with `api` for the whole year and `other` for its second half.
fn two() -> Contract {
    contract(vec![terms("api", "2026-01-01", "2026-12-31"), terms("other", "2026-07-01", "2026-12-31")])
}

#[test]
fn a_cancelled_contract_bills_until_its_last_day() {
    type Row<'a> = (&'a str, CancelAt, Option<&'a str>, Option<&'a str>);
    let rows: [Row<'_>; 11] = [
        ("2026-03-10", CancelAt::PeriodEnd, Some("2026-01-01…2026-03-31 at 10 Cancelled"), None),
        ("2026-03-31", CancelAt::PeriodEnd, Some("2026-01-01…2026-03-31 at 10 Cancelled"), None),
        ("2026-03-10", CancelAt::Today, Some("2026-01-01…2026-03-10 at 10 Cancelled"), None),
        ("2026-03-10", last("2026-02-15"), Some("2026-01-01…2026-02-15 at 10 Cancelled"), None),
        ("2026-03-10", last("2026-01-01"), Some("2026-01-01…2026-01-01 at 10 Cancelled"), None),
        ("2026-03-10", last("2025-12-31"), None, None),
        (
            "2026-03-10",
            last("2026-08-15"),
            Some("2026-01-01…2026-08-15 at 10 Cancelled"),
            Some("2026-07-01…2026-08-15 at 5 Cancelled"),
        ),
        ("2026-03-10", last("2026-12-31"), Some("2026-01-01…2026-12-31 at 10"), Some("2026-07-01…2026-12-31 at 5")),
        // The contract has not begun, so nothing is ever billed.
        ("2025-12-10", CancelAt::PeriodEnd, None, None),
        ("2025-12-10", CancelAt::Today, None, None),
        ("2026-12-10", CancelAt::PeriodEnd, Some("2026-01-01…2026-12-31 at 10"), Some("2026-07-01…2026-12-31 at 5")),
    ];
    for (today, last_day, first, second) in rows {
        let amendment = cancel(&two(), today, last_day).expect("an amendment");
        let found = [plan(&amendment.contract, 0), plan(&amendment.contract, 1)];
        let expected = [first, second].map(|text| text.into_iter().map(str::to_owned).collect::<Vec<_>>());
        assert_eq!(found, expected, "{last_day:?} on {today}");
        assert_eq!((amendment.contract.version, amendment.contract.cancelled_at), (2, Some(at(CANCELLED_AT))));
        assert!(amendment.restructured.is_empty());
        for (no, product) in two().products.iter().enumerate() {
            let billed = amendment.contract.products[no].billed();
            let differs = billed.map_or(product.billed().map(|was| was.start()), |billed| Some(billed.end()));
            let differs = differs.filter(|_| billed != product.billed());
            assert_eq!(amendment.since.get(&product.no).copied(), differs, "{last_day:?} on {today}");
        }
    }
}

#[test]
fn a_last_day_outside_the_contract_is_refused() {
    for day in ["2025-12-30", "2027-01-01"] {
        assert_eq!(code(&cancel(&two(), "2026-03-10", last(day)).expect_err("a refusal")), ["last_day out_of_range"], "{day}");
    }
}

#[test]
fn a_cancelled_contract_is_cancelled_again_only_with_an_earlier_day() {
    let once = cancel(&two(), "2026-03-10", CancelAt::PeriodEnd).expect("an amendment").contract;
    let again = |last_day| on("2026-03-20", &[], |now| cancelled(&once, last_day, at("2026-03-20T12:00:00Z"), now));
    for last_day in [CancelAt::PeriodEnd, last("2026-03-31")] {
        assert_eq!(code(&again(last_day).expect_err("a refusal")), ["contract_over"], "{last_day:?}");
    }
    for (last_day, expected) in [(CancelAt::Today, "2026-03-20"), (last("2026-02-10"), "2026-02-10")] {
        let amendment = again(last_day).expect("an amendment");
        assert_eq!(plan(&amendment.contract, 0), [format!("2026-01-01…{expected} at 10 Cancelled")]);
        assert_eq!((amendment.contract.version, amendment.contract.cancelled_at), (3, Some(at(CANCELLED_AT))));
    }
}

#[test]
fn a_cancel_ends_what_was_planned_for_later() {
    let contract = with_a_rise();
    let rows: [(CancelAt, &[&str]); 3] = [
        (CancelAt::PeriodEnd, &["2026-01-01…2026-02-28 at 10 Cancelled"]),
        (last("2026-03-31"), &["2026-01-01…2026-03-31 at 10 Cancelled"]),
        (last("2026-05-15"), &["2026-01-01…2026-03-31 at 10", "2026-04-01…2026-05-15 at 20 −25 % Cancelled"]),
    ];
    for (last_day, expected) in rows {
        let amendment = cancel(&contract, "2026-02-10", last_day).expect("an amendment");
        assert_eq!(plan(&amendment.contract, 0), expected, "{last_day:?}");
        // A resume reverts the cancel and restores all planned terms.
        let back = resumed(&amendment.contract);
        assert_eq!(plan(&back.contract, 0), RISE, "{last_day:?}");
    }
}

#[test]
fn a_resumed_contract_goes_on_as_planned_before_the_cancel() {
    let without = |contract: &Contract| {
        let patches = vec![api(|_| ())];
        after(contract, "2026-01-10", &edit(patches, from("2026-10-01")))
    };
    type Row<'a> = (&'a str, Contract, Vec<CancelAt>, &'a [(u16, &'a str)]);
    let rows: [Row<'_>; 5] = [
        ("at the period's end", two(), vec![CancelAt::PeriodEnd], &[(0, "2026-04-01"), (1, "2026-07-01")]),
        ("today", two(), vec![CancelAt::Today], &[(0, "2026-03-11"), (1, "2026-07-01")]),
        ("twice", two(), vec![last("2026-08-15"), CancelAt::PeriodEnd], &[(0, "2026-04-01"), (1, "2026-07-01")]),
        ("on its last day", two(), vec![last("2026-12-31")], &[]),
        ("one that an edit left out", without(&two()), vec![CancelAt::PeriodEnd], &[(0, "2026-04-01"), (1, "2026-07-01")]),
    ];
    for (what, before, cancels, expected) in rows {
        let cancelled = cancels.iter().fold(before.clone(), |contract, last_day| {
            cancel(&contract, "2026-03-10", *last_day).expect("an amendment").contract
        });
        let amendment = resumed(&cancelled);
        for product in &before.products {
            assert_eq!(shown(amendment.contract.product(product.no).expect("a product")), shown(product), "{what}");
        }
        assert_eq!(amendment.since, first_days(expected), "{what}");
        assert_eq!((amendment.contract.cancelled_at, amendment.contract.version), (None, cancelled.version + 1), "{what}");
        let removed = |contract: &Contract| contract.products.iter().map(ContractProduct::is_removed).collect::<Vec<_>>();
        assert_eq!(removed(&amendment.contract), removed(&before), "{what}");
        // The contract can be cancelled and resumed again.
        let again = resumed(&cancel(&amendment.contract, "2026-03-10", CancelAt::Today).expect("an amendment").contract);
        for product in &before.products {
            assert_eq!(shown(again.contract.product(product.no).expect("a product")), shown(product), "{what}, again");
        }
    }
}

fn change(line_item: &str, many: &str, from: Option<&str>) -> QuantityChange {
    let of_item = QuantityChange::of(pricing_ref("api"), line_item_id(line_item), quantity(many));
    QuantityChange { from: from.map(date), ..of_item }
}

fn change_on(contract: &Contract, today: &str, change: &QuantityChange) -> Result<Amendment, Refusal> {
    on(today, &[], |now| with_quantity(contract, change, now))
}

#[test]
fn a_quantity_holds_from_its_day_or_from_the_next_period() {
    let rows = [
        ("2026-03-10", None, true, "2026-03-10"),
        ("2026-03-10", None, false, "2026-04-01"),
        ("2026-03-10", Some("2026-04-16"), true, "2026-04-16"),
        ("2026-03-10", Some("2026-04-16"), false, "2026-05-01"),
        ("2026-03-10", Some("2026-04-01"), false, "2026-04-01"),
        ("2026-03-10", Some("2026-02-16"), true, "2026-02-16"),
        ("2026-03-01", None, false, "2026-03-01"),
        // The contract has not begun: the quantity applies from the first day.
        ("2025-12-10", None, true, "2026-01-01"),
        ("2025-12-10", None, false, "2026-01-01"),
    ];
    for (today, from, prorate, expected) in rows {
        let amendment =
            change_on(&year(), today, &QuantityChange { prorate, ..change("base", "12", from) }).expect("an amendment");
        assert_eq!(steps_of(&amendment.contract, 0), [[format!("12 from {expected}")]], "{from:?} on {today}");
        assert_eq!(amendment.since, first_days(&[(0, expected)]), "{from:?} on {today}");
        assert_eq!((amendment.contract.version, amendment.restructured.len()), (2, 0));
        assert_eq!(plan(&amendment.contract, 0), ["2026-01-01…2026-12-31 at 10"], "a quantity splits no period");
    }
}

#[test]
fn a_quantity_is_one_more_step_in_every_part_of_the_plan() {
    let twelve = change_on(&with_a_rise(), "2026-03-10", &change("base", "12", None)).expect("an amendment").contract;
    assert_eq!(plan(&twelve, 0), RISE);
    assert_eq!(steps_of(&twelve, 0), vec![vec!["12 from 2026-03-10"]; 2]);
    let eight = change_on(&twelve, "2026-03-10", &change("base", "8", Some("2026-05-01"))).expect("an amendment");
    assert_eq!(steps_of(&eight.contract, 0), vec![vec!["12 from 2026-03-10", "8 from 2026-05-01"]; 2]);
    assert_eq!(eight.since, first_days(&[(0, "2026-05-01")]));
    let nine = change_on(&eight.contract, "2026-03-10", &change("base", "9", Some("2026-05-01"))).expect("an amendment");
    assert_eq!(steps_of(&nine.contract, 0), vec![vec!["12 from 2026-03-10", "9 from 2026-05-01"]; 2]);
    let same = change_on(&nine.contract, "2026-03-10", &change("base", "9", Some("2026-05-01"))).expect("an amendment");
    assert_eq!((same.contract, same.since.len()), (nine.contract, 0));
}

#[test]
fn a_quantity_needs_a_fixed_line_item_and_a_day_of_one_product() {
    let of_pricing = |reference: &str, change: QuantityChange| QuantityChange { pricing_ref: pricing_ref(reference), ..change };
    let starting = |day: &str, change: QuantityChange| QuantityChange { billing_start_date: Some(date(day)), ..change };
    let rows = [
        ("2026-03-10", change("base", "2", Some("2025-12-31")), "from out_of_range"),
        ("2026-03-10", change("base", "2", Some("2027-01-01")), "from out_of_range"),
        ("2026-12-10", QuantityChange { prorate: false, ..change("base", "2", None) }, "from out_of_range"),
        ("2026-03-10", change("calls", "2", None), "line_item_id unknown_line_item"),
        ("2026-03-10", change("nothing", "2", None), "line_item_id unknown_line_item"),
        ("2026-03-10", of_pricing("other", change("base", "2", None)), "product_pricing_ref unknown_product"),
        ("2026-03-10", starting("2026-02-01", change("base", "2", None)), "product_pricing_ref unknown_product"),
        ("2027-01-10", change("base", "2", None), "product_pricing_ref unknown_product"),
    ];
    for (today, change, expected) in rows {
        assert_eq!(code(&change_on(&year(), today, &change).expect_err("a refusal")), [expected], "{change:?}");
    }
}

#[test]
fn a_quantity_of_a_pricing_that_comes_twice_needs_the_products_start() {
    let attempt = |today: &str, start: Option<&str>| {
        change_on(&three(), today, &QuantityChange { billing_start_date: start.map(date), ..change("base", "2", None) })
    };
    assert_eq!(code(&attempt("2026-03-10", None).expect_err("a refusal")), ["billing_start_date ambiguous_product"]);
    let rows = [
        ("2026-03-10", Some("2026-01-01"), (0, "2026-03-10")),
        ("2026-03-10", Some("2026-07-01"), (1, "2026-07-01")),
        ("2026-08-10", None, (1, "2026-08-10")),
    ];
    for (today, start, expected) in rows {
        assert_eq!(attempt(today, start).expect("an amendment").since, first_days(&[expected]), "{start:?} on {today}");
    }
}

/// A random operation on a contract.
#[derive(Clone, Debug)]
enum Ask {
    Edit { patches: Vec<ProductPatch>, since: EffectiveFrom, versioned: bool },
    Cancel(CancelAt),
    Resume,
    Seats(QuantityChange),
}

fn any_day() -> impl Strategy<Value = String> {
    (1u32..13, 0usize..4).prop_map(|(month, day)| format!("2026-{month:02}-{}", ["01", "01", "15", "28"][day]))
}

fn any_patch(reference: &'static str) -> impl Strategy<Value = Option<ProductPatch>> {
    let change = || (0u8..9, any_day(), 1u32..40);
    (0u8..5, change(), change()).prop_map(move |(kept, first, second)| {
        let mut patch = ProductPatch::of(pricing_ref(reference));
        for (what, day, number) in [first, second] {
            let base = RequestedLineItem::plain(line_item_id("base"));
            let named = |base: RequestedLineItem| match reference {
                "api" => Patch::Set(vec![base, RequestedLineItem::plain(line_item_id("calls"))]),
                _ => Patch::Set(vec![base]),
            };
            match what {
                0 => {
                    let amount = Patch::Set(PriceModel::Flat { amount: price(&number.to_string()) });
                    patch.line_items = named(RequestedLineItem { price: amount, ..base });
                }
                1 => {
                    let steps = Some(quantities(&[(&day, &number.to_string())]));
                    patch.line_items = named(RequestedLineItem { quantities: steps, ..base });
                }
                2 => {
                    let amount = Patch::Set(PriceModel::Flat { amount: price(&number.to_string()) });
                    let steps = Some(quantities(&[(&day, &number.to_string())]));
                    patch.line_items = named(RequestedLineItem { price: amount, quantities: steps, ..base });
                }
                3 => patch.discount = Patch::Set(percent(&number.to_string())),
                4 => patch.note = Patch::Set(prose(&number.to_string())),
                5 => patch.billing_end_date = Some(date(&day)),
                6 => patch.payment_time = Patch::Set([PaymentTime::BeforeUse, PaymentTime::AfterUse][number as usize % 2]),
                7 => patch.billing_start_date = Some(date("2026-01-01")),
                _ => {}
            }
        }
        (kept > 0).then_some(patch)
    })
}

fn any_ask() -> impl Strategy<Value = Ask> {
    let since =
        prop_oneof![Just(EffectiveFrom::NextPeriod), Just(EffectiveFrom::CurrentPeriod), any_day().prop_map(|day| from(&day))];
    let edit = (any_patch("api"), any_patch("other"), since, any::<bool>()).prop_map(|(first, second, since, versioned)| {
        Ask::Edit { patches: [first, second].into_iter().flatten().collect(), since, versioned }
    });
    let last_day = prop_oneof![Just(CancelAt::PeriodEnd), Just(CancelAt::Today), any_day().prop_map(|day| last(&day))];
    let seats = (proptest::option::of(any_day()), 0u32..20, any::<bool>()).prop_map(|(from, many, prorate)| {
        Ask::Seats(QuantityChange { prorate, ..change("base", &many.to_string(), from.as_deref()) })
    });
    prop_oneof![6 => edit, 2 => last_day.prop_map(Ask::Cancel), 2 => Just(Ask::Resume), 2 => seats]
}

/// Returns the terms and the quantity that determine the cost of a day. The terms omit values that only apply to future
/// documents.
fn cost_of(product: &ContractProduct, day: chrono::NaiveDate) -> Option<(ProductTerms, billing_domain::quantity::Quantity)> {
    let plan = product.plan();
    let mut terms = plan.iter().find(|clip| clip.days.contains(day))?.terms.clone();
    let mut many = billing_domain::quantity::Quantity::ONE;
    for item in std::sync::Arc::make_mut(&mut terms.line_items) {
        if let SelectedCharge::Fixed { quantities, .. } = &mut item.charge {
            many = quantities.on(day);
            *quantities = Quantities::default();
        }
    }
    (terms.note, terms.net_terms, terms.payment) = (None, None, billing_domain::party::PaymentDetails::default());
    // An end takes effect on its own day, so only the whole period that contains the day counts.
    let nominal = terms.schedule.period_at(day)?.nominal();
    terms.schedule = BillingSchedule::anchored(
        (nominal.start(), nominal.last_day()),
        terms.schedule.cycle(),
        terms.schedule.issue_day(),
        nominal.end(),
    )
    .expect("a schedule");
    Some((terms, many))
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    /// Nothing changes before the recorded day. Every version keeps its plan. No stretch is empty or overlaps another.
    #[test]
    fn before_the_day_that_is_noted_every_day_costs_what_it_did(asks in prop::collection::vec((any_day(), any_ask()), 1..8)) {
        let mut contract = contract(vec![terms("api", "2026-01-01", "2026-12-31"), terms("other", "2026-03-01", "2026-10-31")]);
        let mut asks = asks;
        asks.sort_by(|(a, _), (b, _)| a.cmp(b));
        for (today, ask) in asks {
            let decided = on(&today, &[0, 1], |now| match &ask {
                Ask::Edit { .. } | Ask::Seats(_) if contract.cancelled_at.is_some() => None,
                Ask::Edit { patches, since, versioned } => {
                    let version = versioned.then_some(contract.version);
                    edited(&contract, &ContractEdit { version, ..edit(patches.clone(), *since) }, &catalog(), now).ok()
                }
                Ask::Cancel(last_day) => cancelled(&contract, *last_day, at(CANCELLED_AT), now).ok(),
                Ask::Resume => contract.cancelled_at.map(|_| resumed(&contract)),
                Ask::Seats(change) => with_quantity(&contract, change, now).ok(),
            });
            let Some(amendment) = decided else { continue };
            // An edit changes every field that it names, or is refused.
            if let Ask::Edit { patches, .. } = &ask {
                for patch in patches.iter().filter(|patch| matches!(patch.discount, Patch::Set(_))) {
                    let product = &amendment.contract.products[usize::from(patch.pricing_ref != pricing_ref("api"))];
                    let discount = product.newest_terms().and_then(|terms| terms.discount);
                    prop_assert_eq!(discount.map_or(Patch::Keep, Patch::Set), patch.discount.clone(), "{:?} on {}", ask, today);
                }
            }
            for before in &contract.products {
                let after = amendment.contract.product(before.no).expect("products are kept");
                let noted = amendment.since.get(&before.no).copied();
                for day in date("2025-12-25").iter_days().take(500).filter(|day| noted.is_none_or(|noted| *day < noted)) {
                    prop_assert_eq!(cost_of(after, day), cost_of(before, day), "{} of {} by {:?} on {}", day, before.no.0, ask, today);
                }
                prop_assert_eq!(after.plan_of(contract.version), before.plan());
                prop_assert!(after.plan().windows(2).all(|pair| pair[0].days.end() <= pair[1].days.start()));
                let periods: u32 = after.periods().map(|period| period.days().days()).sum();
                prop_assert_eq!(periods, after.plan().iter().map(|clip| clip.days.days()).sum::<u32>());
            }
            prop_assert!(amendment.contract.version == contract.version + 1 || amendment.contract == contract);
            contract = amendment.contract;
        }
    }
}
