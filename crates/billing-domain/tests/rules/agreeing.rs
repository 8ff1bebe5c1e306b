//! Tests of agreeing on terms: selection, frozen values, refusals and defaults (billing rules 1, 2 and 7).

use billing_domain::catalog::{Aggregation, LineItem, Pricing};
use billing_domain::contract::terms::{PaymentTime, ProductTerms, RequestedLineItem, RequestedProduct};
use billing_domain::contract::{ContractProduct, check_products};
use billing_domain::ledger::ContractBook;
use billing_domain::party::{CryptoDetails, Customer, NetTerms, OnlinePaymentDetails, PaymentDetails};
use billing_domain::refs::ProductNo;
use billing_domain::tax::TaxTreatment;
use billing_domain::violation::Violations;
use billing_testkit::{CountingIds, fixtures};
use fixtures::{
    agreed, agreed_with, date, entity_ref, fixed, line_item_id, per_unit, percent, pricing, quantity, requested, taxed,
};

fn three_items() -> Pricing {
    let storage = fixtures::with_charge(per_unit("storage", "0.5"), |charge| charge.prepaid_quantity = Some(quantity("10")));
    pricing("api", vec![fixed("base", "10"), per_unit("calls", "0.01"), storage])
}

fn agree(request: RequestedProduct, pricing: &Pricing) -> Result<ProductTerms, Violations> {
    ProductTerms::agree(request, pricing, &fixtures::products_of(pricing), entity_ref("main"))
}

fn request(change: impl FnOnce(&mut RequestedProduct)) -> RequestedProduct {
    let mut request = requested(&three_items(), "2026-01-01", "2026-12-31");
    request.payment_time = Some(PaymentTime::BeforeUse);
    change(&mut request);
    request
}

fn ids(list: &[&str]) -> Option<Vec<RequestedLineItem>> {
    Some(list.iter().map(|id| RequestedLineItem::plain(line_item_id(id))).collect())
}

/// Returns the tax treatment of terms.
fn treatment(terms: &ProductTerms, customer: Customer) -> TaxTreatment {
    let contract = fixtures::contract(&CountingIds::new(), &customer, vec![]);
    ContractBook::new(contract, customer, vec![fixtures::entity("main")])
        .treatment_on(terms, date("2026-01-01"))
        .expect("an entity")
}

/// Checks the products of a contract. The edit lists them in this order.
fn checked(products: Vec<ProductTerms>) -> Result<(), Violations> {
    let products: Vec<ContractProduct> =
        (0..).zip(products).map(|(no, terms)| ContractProduct::new(ProductNo(no), terms)).collect();
    check_products(&products, |no| Some(usize::from(no.0)))
}

/// Returns the paths and codes of violations, in the order of detection.
fn shown(violations: &Violations) -> Vec<String> {
    violations.iter().map(|violation| format!("{} {}", violation.path.join("."), violation.code)).collect()
}

#[test]
fn line_items_are_all_when_omitted_and_otherwise_the_listed_ones() {
    let rows: [(Option<Vec<RequestedLineItem>>, &[&str]); 4] = [
        (None, &["base", "calls", "storage"]),
        (ids(&[]), &[]),
        (ids(&["calls"]), &["calls"]),
        (ids(&["storage", "base"]), &["storage", "base"]),
    ];
    for (line_items, expected) in rows {
        let terms = agree(request(|request| request.line_items = line_items), &three_items()).expect("terms");
        assert_eq!(terms.line_items.iter().map(|item| item.id.as_str()).collect::<Vec<_>>(), expected);
        for product in ["calls", "storage", "other"] {
            assert_eq!(
                terms.meters(&fixtures::usage_product_ref(product)),
                expected.contains(&product),
                "{product} in {expected:?}"
            );
        }
    }
}

#[test]
fn everything_wrong_is_found_at_once() {
    let rows: [(RequestedProduct, &[&str]); 7] = [
        (request(|r| r.line_items = ids(&["calls", "nothing"])), &["line_items.1.line_item_id unknown_line_item"]),
        (
            request(|r| r.line_items = ids(&["calls", "base", "calls", "calls"])),
            &["line_items.2.line_item_id duplicate", "line_items.3.line_item_id duplicate"],
        ),
        (request(|r| r.billing_end_date = date("2025-12-31")), &["billing_end_date out_of_range"]),
        (request(|r| r.issue_day = Some(date("2025-12-31"))), &["issue_day out_of_range"]),
        (request(|r| r.payment_time = None), &["payment_time prepaid_needs_before_use"]),
        (
            request(|r| {
                r.line_items = ids(&["nothing", "storage", "storage"]);
                r.issue_day = Some(date("2027-01-02"));
            }),
            &["line_items.0.line_item_id unknown_line_item", "line_items.2.line_item_id duplicate", "issue_day out_of_range"],
        ),
        (
            request(|r| {
                r.billing_end_date = date("2025-12-31");
                r.payment_time = Some(PaymentTime::DuringUse);
            }),
            &["billing_end_date out_of_range", "payment_time prepaid_needs_before_use"],
        ),
    ];
    for (request, expected) in rows {
        let violations = agree(request, &three_items()).expect_err("a refusal");
        let mut found = shown(&violations);
        let mut expected: Vec<String> = expected.iter().map(|text| (*text).to_owned()).collect();
        found.sort();
        expected.sort();
        assert_eq!(found, expected);
    }
}

#[test]
fn a_selected_prepaid_quantity_needs_before_use() {
    use PaymentTime::{AfterUse, BeforeUse, DuringUse};
    let rows = [
        (None, None, false),
        (None, Some(AfterUse), false),
        (None, Some(DuringUse), false),
        (None, Some(BeforeUse), true),
        (ids(&["storage"]), Some(AfterUse), false),
        (ids(&["base", "calls"]), None, true),
        (ids(&["base", "calls"]), Some(DuringUse), true),
        (ids(&[]), None, true),
    ];
    for (line_items, payment_time, fits) in rows {
        let request = request(|request| (request.line_items, request.payment_time) = (line_items.clone(), payment_time));
        assert_eq!(agree(request, &three_items()).is_ok(), fits, "{line_items:?} {payment_time:?}");
    }
}

#[test]
fn what_is_selected_is_frozen_with_its_usage_product() {
    let mut catalog = pricing("api", vec![per_unit("calls", "0.01")]);
    catalog.content.minimum_fee = Some(fixtures::price("5"));
    let mut calls = fixtures::usage_product("calls");
    calls.profile.unit = Some(fixtures::line("call"));
    calls.profile.aggregation = Aggregation::Max;
    let request = requested(&catalog, "2026-01-01", "2026-12-31");
    let terms = ProductTerms::agree(request, &catalog, &[calls.clone()], entity_ref("main")).expect("terms");
    // Later catalog changes do not affect the contract.
    catalog.content.line_items.push(fixed("later", "99"));
    catalog.content.minimum_fee = None;
    calls.profile.aggregation = Aggregation::Sum;
    let metered = terms.line_items[0].metered().expect("a usage line item");
    assert_eq!((metered.aggregation, metered.unit.as_ref().map(|unit| unit.as_str())), (Aggregation::Max, Some("call")));
    assert_eq!(terms.line_items.len(), 1);
    assert_eq!((terms.pricing.minimum_fee, terms.pricing.currency), (Some(fixtures::price("5")), fixtures::eur()));
}

#[test]
fn an_unknown_usage_product_is_refused_only_where_it_is_selected() {
    let catalog = pricing("api", vec![fixed("base", "1"), per_unit("calls", "0.01")]);
    let attempt = |line_items| {
        let mut request = requested(&catalog, "2026-01-01", "2026-12-31");
        request.line_items = line_items;
        ProductTerms::agree(request, &catalog, &[], entity_ref("main"))
    };
    assert_eq!(shown(&attempt(None).expect_err("a refusal")), ["product_pricing_ref unknown_usage_product"]);
    assert!(attempt(ids(&["base"])).is_ok());
}

#[test]
fn what_is_left_out_has_its_default() {
    let terms = agreed(&pricing("api", vec![]), "2026-01-15", "2026-04-30");
    assert_eq!((terms.payment_time, terms.schedule.issue_day()), (PaymentTime::AfterUse, None));
    assert_eq!(terms.schedule.periods().count(), 4, "monthly");
    assert_eq!((terms.stated_entity.clone(), terms.entity_ref.clone()), (None, entity_ref("main")));
    let (customer, entity) = (fixtures::customer(&CountingIds::new(), "acme"), fixtures::entity("main"));
    assert_eq!(terms.net_terms(&customer, &entity), NetTerms::DueUponReceipt);
    assert_eq!(terms.payment(&customer, &entity), PaymentDetails::default());
    assert_eq!((treatment(&terms, customer), terms.discount), (taxed("0"), None));
}

#[test]
fn net_terms_come_from_the_product_then_the_customer_then_the_entity() {
    let (product, customer, entity) = (Some(NetTerms::Days(1)), Some(NetTerms::Days(2)), Some(NetTerms::DueUponUsage));
    let rows = [
        (product, customer, entity, NetTerms::Days(1)),
        (product, None, None, NetTerms::Days(1)),
        (None, customer, entity, NetTerms::Days(2)),
        (None, customer, None, NetTerms::Days(2)),
        (None, None, entity, NetTerms::DueUponUsage),
        (Some(NetTerms::DueUponReceipt), customer, entity, NetTerms::DueUponReceipt),
        (None, None, None, NetTerms::DueUponReceipt),
    ];
    for (of_product, of_customer, of_entity, expected) in rows {
        let terms = agreed_with(&pricing("api", vec![]), "2026-01-01", "2026-12-31", |request| request.net_terms = of_product);
        let (mut customer, mut entity) = (fixtures::customer(&CountingIds::new(), "acme"), fixtures::entity("main"));
        (customer.profile.net_terms, entity.profile.net_terms) = (of_customer, of_entity);
        assert_eq!(terms.net_terms(&customer, &entity), expected, "{of_product:?} {of_customer:?} {of_entity:?}");
    }
}

#[test]
fn tax_comes_from_the_product_then_the_customer() {
    let rows = [(Some("0"), Some("19"), "0"), (Some("7"), None, "7"), (None, Some("19"), "19"), (None, None, "0")];
    for (of_product, of_customer, expected) in rows {
        let terms =
            agreed_with(&pricing("api", vec![]), "2026-01-01", "2026-12-31", |request| request.tax = of_product.map(percent));
        let mut customer = fixtures::customer(&CountingIds::new(), "acme");
        customer.profile.taxes = of_customer.map(fixtures::default_tax).unwrap_or_default();
        assert_eq!(treatment(&terms, customer), taxed(expected), "{of_product:?} {of_customer:?}");
    }
}

#[test]
fn each_kind_of_payment_details_comes_from_the_first_that_states_it() {
    let full = fixtures::full_payment();
    let automatic = OnlinePaymentDetails { auto_charge: Some(true), ..OnlinePaymentDetails::default() };
    let of_product = PaymentDetails { online: Some(automatic.clone()), ..PaymentDetails::default() };
    let of_customer = PaymentDetails { crypto: full.crypto.clone(), ..PaymentDetails::default() };
    let terms = agreed_with(&pricing("api", vec![]), "2026-01-01", "2026-12-31", |request| request.payment = of_product);
    let (mut customer, mut entity) = (fixtures::customer(&CountingIds::new(), "acme"), fixtures::entity("main"));
    customer.profile.payment = of_customer;
    entity.profile.payment = PaymentDetails { crypto: Some(CryptoDetails::default()), ..full.clone() };
    let resolved = terms.payment(&customer, &entity);
    assert_eq!(resolved, PaymentDetails { online: Some(automatic), crypto: full.crypto, bank_transfer: full.bank_transfer });
}

#[test]
fn the_same_pricing_twice_over_the_same_days_is_refused() {
    let of = |reference: &str, first: &str, last: &str| agreed(&pricing(reference, vec![]), first, last);
    let rows: [(Vec<ProductTerms>, &[&str]); 6] = [
        (vec![], &[]),
        (vec![of("a", "2026-01-01", "2026-06-30"), of("b", "2026-01-01", "2026-06-30")], &[]),
        (vec![of("a", "2026-01-01", "2026-06-30"), of("a", "2026-07-01", "2026-12-31")], &[]),
        (
            vec![of("a", "2026-01-01", "2026-06-30"), of("a", "2026-06-30", "2026-12-31")],
            &["products.1.product_pricing_ref duplicate_product"],
        ),
        (
            vec![of("a", "2026-02-01", "2026-02-28"), of("b", "2026-01-01", "2026-06-30"), of("a", "2026-01-01", "2026-12-31")],
            &["products.2.product_pricing_ref duplicate_product"],
        ),
        (
            vec![of("a", "2026-01-01", "2026-06-30"); 3],
            &["products.1.product_pricing_ref duplicate_product", "products.2.product_pricing_ref duplicate_product"],
        ),
    ];
    for (products, expected) in rows {
        let found = checked(products).err().unwrap_or_default();
        assert_eq!(shown(&found), expected);
    }
}

#[test]
fn a_contract_has_at_most_a_hundred_products() {
    let of = |n: usize| agreed(&pricing(&format!("p{n}"), Vec::<LineItem>::new()), "2026-01-01", "2026-12-31");
    let hundred: Vec<ProductTerms> = (0..100).map(of).collect();
    assert_eq!(checked(hundred), Ok(()));
    let more: Vec<ProductTerms> = (0..101).map(of).collect();
    assert_eq!(shown(&checked(more).expect_err("too many")), ["products too_many"]);
}
