//! Examples of labels: sections 4 and 7.

use billing_domain::catalog::{Aggregation, LineItem, LineItemPrice, Selector};
use billing_domain::contract::amendment::EffectiveFrom;
use billing_domain::contract::terms::RequestedProduct;
use billing_domain::labels::Where;
use billing_testkit::fixtures::{self, fixed, line, requested};

use crate::books::{Books, code, repriced};
use crate::documented_examples::page::Page;

fn labels(key: &str, values: &[&str]) -> Where {
    Where::new([(key.to_owned(), values.iter().map(|value| (*value).to_owned()).collect())]).expect("a condition")
}

/// Returns a line item of calls with another selector.
fn selected(id: &str, price: &str, selector: Selector) -> LineItem {
    let mut item = LineItem { id: fixtures::line_item_id(id), name: line(id), ..fixtures::per_unit("calls", price) };
    if let LineItemPrice::Usage(charge) = &mut item.charge {
        charge.selector = selector;
    }
    item
}

fn requests() -> LineItem {
    let mut item = selected("requests", "0.01", Selector::Every);
    if let LineItemPrice::Usage(charge) = &mut item.charge {
        charge.aggregation = Some(Aggregation::Count);
    }
    item
}

pub(crate) fn example_4_5_prices_by_model(page: &mut Page) {
    let of = |kind: &str| Selector::Where(labels("tokens", &[kind]));
    let items = || vec![selected("in", "0.000002", of("gpt-5 input")), selected("out", "0.000008", of("gpt-5 output"))];
    let rest = selected("other", "0.00001", Selector::Rest);
    let report = |books: &Books| {
        books.labeled("2026-01-10T12:00:00Z", "1000000", ("tokens", "gpt-5 input")).expect("an accepted event");
        books.labeled("2026-01-10T12:00:00Z", "200000", ("tokens", "gpt-5 output")).expect("an accepted event");
        books.labeled("2026-01-10T12:00:00Z", "100000", ("tokens", "gpt-6 input"))
    };
    let books = Books::at("2026-01-20T12:00:00Z");
    let models = books.pricing("models", [items(), vec![rest, requests()]].concat());
    books.contract(vec![requested(&models, "2026-01-01", "2026-12-31")]);
    report(&books).expect("an accepted event");
    page.shows(&books.documents());
    let strict = Books::at("2026-01-20T12:00:00Z");
    let models = strict.pricing("models", items());
    strict.contract(vec![requested(&models, "2026-01-01", "2026-12-31")]);
    page.says(&code(report(&strict)));
}

pub(crate) fn example_4_6_two_subscriptions_of_one_pricing(page: &mut Page) {
    let books = Books::at("2026-01-20T12:00:00Z");
    let mut calls = fixtures::per_unit("calls", "0.10");
    if let LineItemPrice::Usage(charge) = &mut calls.charge {
        charge.included_quantity = fixtures::quantity("100");
    }
    let team = books.pricing("team", vec![fixed("fee", "50.00"), calls]);
    let of_workspace = |workspace: &str| RequestedProduct {
        condition: Some(labels("workspace", &[workspace])),
        ..requested(&team, "2026-01-01", "2026-12-31")
    };
    books.contract(vec![of_workspace("w1"), of_workspace("w2")]);
    books.labeled("2026-01-10T12:00:00Z", "90", ("workspace", "w1")).expect("an accepted event");
    books.labeled("2026-01-10T12:00:00Z", "111", ("workspace", "w2")).expect("an accepted event");
    page.says(&code(books.labeled("2026-01-10T12:00:00Z", "1", ("workspace", "w3"))));
    page.shows(&books.documents());
}

pub(crate) fn example_6_11_distinct_users(page: &mut Page) {
    let books = Books::at("2026-01-20T12:00:00Z");
    books.counting("calls", "user");
    let mut users = selected("users", "1.00", Selector::Every);
    if let LineItemPrice::Usage(charge) = &mut users.charge {
        charge.aggregation = Some(Aggregation::Unique);
    }
    let team = books.pricing("team", vec![users]);
    books.contract(vec![requested(&team, "2026-01-01", "2026-12-31")]);
    let call = |user: &str| books.labeled("2026-01-10T12:00:00Z", "1", ("user", user)).expect("an accepted event");
    let calls = ["u1", "u2", "u1", "u1"].map(call);
    books.delete(calls[0]);
    page.says(&code(books.labeled("2026-01-10T12:00:00Z", "1", ("team", "t1"))));
    page.shows(&books.documents());
    books.delete(calls[2]);
    books.delete(calls[3]);
    page.shows(&books.documents());
}

pub(crate) fn example_7_23_a_price_of_its_own_for_a_model(page: &mut Page) {
    let books = Books::at("2026-01-20T12:00:00Z");
    let rest = selected("other", "0.00001", Selector::Rest);
    let known = selected("g5", "0.000002", Selector::Where(labels("model", &["gpt-5"])));
    let models = books.pricing("models", vec![known.clone(), rest.clone()]);
    let contract = books.contract(vec![requested(&models, "2026-01-01", "2026-12-31")]);
    books.labeled("2026-01-10T12:00:00Z", "100000", ("model", "gpt-6")).expect("an accepted event");
    books.bill("2026-02-01T02:00:00Z");
    books.clock("2026-02-10T12:00:00Z");
    let own = selected("g6", "0.000004", Selector::Where(labels("model", &["gpt-6"])));
    books.reprice(&models, vec![known, own, rest]);
    let since = EffectiveFrom::Day(fixtures::date("2026-01-01"));
    books.edit(contract, vec![repriced(&models)], since).expect("an edit");
    page.shows(&books.documents());
}
