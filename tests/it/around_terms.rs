//! What an edit, a cancel and a resume do to terms, from a past date on or a planned one, and to what they billed.

use std::time::{Duration, Instant};

use acceptance::scene::{each, fee_of, product, refused};
use acceptance::when::Day;
use acceptance::{Database, Scene, books, catalog, on_both_databases};
use serde_json::{Value, json};

on_both_databases!(
    a_product_put_back_in_its_month_goes_on_as_if_nothing_was,
    a_product_put_back_after_its_end_needs_a_date_and_bills_nothing_again,
    an_ended_product_that_is_extended_bills_no_gap_unasked,
    a_completed_contract_may_be_edited_to_go_on,
    the_order_of_products_decides_nothing,
    a_wrong_fee_is_put_right_from_january_by_one_edit,
    a_dry_run_of_an_edit_shows_its_documents_and_stores_nothing,
    a_changed_tax_from_a_past_date_is_a_credit_and_a_debit_of_each_month,
    late_usage_after_an_edit_from_a_past_date_stands_at_its_rates,
    an_edit_gives_what_lowers_on_a_credit_and_what_raises_on_a_debit,
    a_line_item_billed_once_is_billed_when_an_edit_adds_it,
    a_start_that_has_not_come_may_move,
    a_start_of_what_has_not_billed_may_move_into_the_past,
    a_start_that_has_billed_stays,
    a_product_added_from_the_past_shares_the_open_invoice_whether_usage_came_or_not,
    an_edit_that_names_a_product_keeps_the_prices_agreed,
    repricing_takes_the_present_prices,
    an_override_holds_and_null_takes_the_pricings_value,
    a_planned_price_rise_stays_in_april_when_a_note_is_edited,
    a_planned_change_of_tax_stays_when_a_note_is_edited_now,
    an_edited_product_that_is_not_left_alone_is_ambiguous,
    a_pricing_is_billed_once_on_a_day,
    edits_of_a_contract_without_end_stay_cheap,
);

fn with(product: Value, fields: Value) -> Value {
    catalog::with(product, &fields)
}

fn year(pricing: &str) -> Value {
    product(pricing, "2026-01-01", "2026-12-31")
}

const FIRSTS: [&str; 12] = [
    "2026-02-01",
    "2026-03-01",
    "2026-04-01",
    "2026-05-01",
    "2026-06-01",
    "2026-07-01",
    "2026-08-01",
    "2026-09-01",
    "2026-10-01",
    "2026-11-01",
    "2026-12-01",
    "2027-01-01",
];

/// p at 100.00 and q at 20.00 over 2026, issued until May; on 10 June q alone is left. Answers what was there before.
fn p_was_taken_out_in_june(database: &Database) -> (Scene, String, Value) {
    let mut scene = Scene::begin(database, "2026-01-01");
    scene.fee("p", "100.00");
    scene.fee("q", "20.00");
    let contract_ref = scene.sell(&[year("p"), year("q")]);
    scene.run_on_each(&FIRSTS[..5]);
    assert_eq!(scene.sums()[3], "600.00", "five months");
    scene.go_to("2026-06-10");
    let before = scene.contract(&contract_ref)["products"].clone();
    scene.edit(&contract_ref, &json!({"products": [{"product_pricing_ref": "q"}]}));
    (scene, contract_ref, before)
}

fn a_product_put_back_in_its_month_goes_on_as_if_nothing_was(database: &Database) {
    let (mut scene, contract_ref, before) = p_was_taken_out_in_june(database);

    scene.edit(&contract_ref, &json!({"products": before}));

    books::run(&scene.client);
    assert_eq!(scene.sums()[3], "600.00", "nothing again");
    scene.run_on_each(&FIRSTS[5..7]);
    assert_eq!(scene.sums()[3], "840.00", "seven months of 120.00");
}

fn a_product_put_back_after_its_end_needs_a_date_and_bills_nothing_again(database: &Database) {
    let (mut scene, contract_ref, before) = p_was_taken_out_in_june(database);
    scene.run_on("2026-07-01");
    assert_eq!(scene.sums()[3], "720.00");
    scene.go_to("2026-07-10");

    refused(&scene.try_edit(&contract_ref, &json!({"products": before})), 409, "product_over");

    books::run(&scene.client);
    assert_eq!(scene.sums()[3], "720.00");
    scene.edit(&contract_ref, &json!({"effective_from": "2026-08-01", "products": before}));
    scene.run_on("2026-08-01");
    assert_eq!(scene.sums()[3], "740.00", "July is q's alone");
    scene.run_on("2026-09-01");
    assert_eq!(scene.sums()[3], "860.00", "August is both's");
}

/// p for January alone, and q for the year, on 10 March.
fn p_is_over_in_march(database: &Database) -> (Scene, String) {
    let mut scene = Scene::begin(database, "2026-01-01");
    scene.fee("p", "100.00");
    scene.fee("q", "20.00");
    let contract_ref = scene.sell(&[product("p", "2026-01-01", "2026-01-31"), year("q")]);
    scene.run_on_each(&FIRSTS[..2]);
    assert_eq!(scene.sums()[3], "140.00");
    scene.go_to("2026-03-10");
    (scene, contract_ref)
}

fn an_ended_product_that_is_extended_bills_no_gap_unasked(database: &Database) {
    let (mut scene, contract_ref) = p_is_over_in_march(database);
    let extended = json!([year("p"), year("q")]);

    refused(&scene.try_edit(&contract_ref, &json!({"products": extended})), 409, "product_over");
    books::run(&scene.client);
    assert_eq!(scene.sums()[3], "140.00");

    let as_it_was = json!([product("p", "2026-01-01", "2026-01-31"), year("q")]);
    scene.edit(&contract_ref, &json!({"products": as_it_was}));
    scene.edit(&contract_ref, &json!({"effective_from": "2026-04-01", "products": extended}));
    scene.run_on("2026-04-01");
    assert_eq!(scene.sums()[3], "160.00", "February and March of p aren't billed");
    scene.run_on("2026-05-01");
    assert_eq!(scene.sums()[3], "280.00");
}

fn a_completed_contract_may_be_edited_to_go_on(database: &Database) {
    let mut scene = Scene::begin(database, "2026-01-01");
    scene.fee("p", "100.00");
    let contract_ref = scene.sell(&[product("p", "2026-01-01", "2026-01-31")]);
    scene.run_on("2026-02-01");
    scene.go_to("2026-02-10");
    assert_eq!(scene.contract(&contract_ref)["state"], "COMPLETED");

    let edited = scene.edit(&contract_ref, &json!({"effective_from": "2026-02-01", "products": [year("p")]}));

    assert_eq!(books::fields(&edited, ["state", "effective_end_date"]), ["ACTIVE", "2026-12-31"]);
    scene.run_on("2026-03-01");
    assert_eq!(scene.papers(), ["UB-INV-1 2026-01-01 100.00", "UB-INV-2 2026-02-01 100.00"]);
}

fn the_order_of_products_decides_nothing(database: &Database) {
    let mut scene = Scene::begin(database, "2026-01-01");
    scene.fee("p", "100.00");
    let this = with(year("p"), json!({"discount": 10}));
    let contracts = [0, 1].map(|_| scene.sell(std::slice::from_ref(&this)));
    scene.run_on_each(&FIRSTS[..10]);
    scene.go_to("2026-11-10");
    let (this, next) = (year("p"), product("p", "2027-01-01", "2027-12-31"));

    scene.edit(&contracts[0], &json!({"products": [this, next]}));
    scene.edit(&contracts[1], &json!({"products": [next, this]}));

    scene.run_on_each(&FIRSTS[10..]);
    scene.run_on("2027-02-01");
    for contract_ref in &contracts {
        // Twelve months of 90.00, and January of 2027.
        assert_eq!(scene.sums_of(contract_ref), ["1300.00", "120.00", "0.00", "1180.00"]);
    }
}

/// A fee of 1,000.00 instead of 100.00, issued for January and February, on 10 March.
fn a_wrong_fee(database: &Database) -> (Scene, String) {
    let mut scene = Scene::begin(database, "2026-01-01");
    scene.fee("p", "1000.00");
    let contract_ref = scene.sell(&[with(year("p"), json!({"tax": 19}))]);
    scene.run_on_each(&FIRSTS[..2]);
    assert_eq!(scene.papers(), ["UB-INV-1 2026-01-01 1190.00", "UB-INV-2 2026-02-01 1190.00"]);
    scene.go_to("2026-03-10");
    (scene, contract_ref)
}

fn the_right_fee() -> Value {
    let products = json!([{"product_pricing_ref": "p", "line_items": [fee_of("100.00")]}]);
    json!({"effective_from": "2026-01-01", "products": products})
}

fn a_wrong_fee_is_put_right_from_january_by_one_edit(database: &Database) {
    let (mut scene, contract_ref) = a_wrong_fee(database);
    let invoice = books::numbered(&scene.client, "UB-INV-1");

    scene.edit(&contract_ref, &the_right_fee());

    // A credit of 900.00 and its 19 % for each month, issued at once.
    for (credit, parent, start, end) in
        [("UB-CRD-1", "UB-INV-1", "2026-01-01", "2026-01-31"), ("UB-CRD-2", "UB-INV-2", "2026-02-01", "2026-02-28")]
    {
        let credit = books::numbered(&scene.client, credit);
        assert_eq!(books::totals(&credit)[..4], ["900.00", "0.00", "171.00", "1071.00"]);
        assert_eq!(
            books::fields(&credit, ["purpose", "issue_date", "parent_document_number", "period_start", "period_end"]),
            ["ADJUSTMENT", "2026-03-10", parent, start, end]
        );
    }
    assert_eq!(scene.papers().len(), 4);
    assert_eq!(books::frozen(&books::numbered(&scene.client, "UB-INV-1")), books::frozen(&invoice), "to the byte");
    let line = &scene.contract(&contract_ref)["products"][0]["line_items"][0];
    assert_eq!(line["price"]["amount"].to_string().trim_matches('"'), "100.00", "as agreed: {line}");

    scene.edit(&contract_ref, &the_right_fee());
    assert_eq!(scene.papers().len(), 4, "the same again is no change");
    scene.run_on("2026-04-01");
    // March at 119.00.
    assert_eq!(scene.sums(), ["300.00", "0.00", "57.00", "357.00"]);
}

fn a_dry_run_of_an_edit_shows_its_documents_and_stores_nothing(database: &Database) {
    let (scene, contract_ref) = a_wrong_fee(database);
    let before = (scene.contract(&contract_ref), catalog::documents(&scene.client));

    let shown = scene.edit(&contract_ref, &catalog::with(the_right_fee(), &json!({"dry_run": true})));

    assert_eq!(shown["dry_run"], true);
    let issued = shown["issued"].as_array().unwrap_or_else(|| panic!("{shown}"));
    let mut credits: Vec<[String; 4]> = issued
        .iter()
        .map(|document| books::fields(document, ["kind", "period_start", "sub_total", "parent_document_number"]))
        .collect();
    credits.sort();
    assert_eq!(
        credits,
        [["CREDIT", "2026-01-01", "900.00", "UB-INV-1"], ["CREDIT", "2026-02-01", "900.00", "UB-INV-2"]],
        "{shown}"
    );
    assert_eq!(books::amounts(&issued[0]), ["fee 900.00"], "whole documents");
    assert_eq!(shown["voided"], json!([]));
    assert_eq!((scene.contract(&contract_ref), catalog::documents(&scene.client)), before);
}

fn a_changed_tax_from_a_past_date_is_a_credit_and_a_debit_of_each_month(database: &Database) {
    let (scene, contract_ref) = a_wrong_fee(database);

    let products = json!([{"product_pricing_ref": "p", "tax": 7}]);
    scene.edit(&contract_ref, &json!({"effective_from": "2026-02-01", "products": products}));

    assert_eq!(
        scene.papers(),
        [
            "UB-CRD-1 2026-02-01 1190.00",
            "UB-DBT-1 2026-02-01 1070.00",
            "UB-INV-1 2026-01-01 1190.00",
            "UB-INV-2 2026-02-01 1190.00",
        ],
        "January keeps its 19 %"
    );
}

fn late_usage_after_an_edit_from_a_past_date_stands_at_its_rates(database: &Database) {
    let mut scene = Scene::begin(database, "2026-01-01");
    scene.pricing("p", &[each("0.10")]);
    let contract_ref = scene.sell(&[with(year("p"), json!({"tax": 19}))]);
    scene.go_to("2026-01-05");
    scene.calls("2026-01-05", 100);
    scene.run_on("2026-02-01");
    scene.go_to("2026-02-10");
    let products = json!([{"product_pricing_ref": "p", "tax": 7, "discount": 50}]);
    scene.edit(&contract_ref, &json!({"effective_from": "2026-01-01", "products": products}));
    // 10.00 and half of it off, at 7 % 0.35.
    assert_eq!(scene.sums(), ["10.00", "5.00", "0.35", "5.35"]);

    scene.calls("2026-01-06", 100);

    scene.run_on("2026-02-11");
    assert_eq!(scene.sums(), ["20.00", "10.00", "0.70", "10.70"]);
}

fn an_edit_gives_what_lowers_on_a_credit_and_what_raises_on_a_debit(database: &Database) {
    let mut scene = Scene::begin(database, "2026-01-01");
    scene.fee("p", "100.00");
    scene.fee("q", "20.00");
    let contract_ref = scene.sell(&[year("p"), year("q")]);
    scene.run_on("2026-02-01");
    scene.go_to("2026-02-10");

    let products = json!([
        {"product_pricing_ref": "p", "line_items": [fee_of("90.00")]},
        {"product_pricing_ref": "q", "line_items": [fee_of("25.00")]},
    ]);
    scene.edit(&contract_ref, &json!({"effective_from": "2026-01-01", "products": products}));

    assert_eq!(scene.papers(), ["UB-CRD-1 2026-01-01 10.00", "UB-DBT-1 2026-01-01 5.00", "UB-INV-1 2026-01-01 120.00"]);
}

fn a_line_item_billed_once_is_billed_when_an_edit_adds_it(database: &Database) {
    let mut scene = Scene::begin(database, "2026-01-01");
    let setup = with(catalog::fixed("setup", "50.00"), json!({"recurrence": "ONCE"}));
    scene.pricing("p", &[catalog::fixed("fee", "10.00"), setup]);
    let contract_ref = scene.sell(&[with(year("p"), json!({"line_items": [{"line_item_id": "fee"}]}))]);
    scene.go_to("2026-01-10");

    let both = json!([{"line_item_id": "fee"}, {"line_item_id": "setup"}]);
    scene.edit(&contract_ref, &json!({"products": [{"product_pricing_ref": "p", "line_items": both}]}));

    scene.run_on_each(&FIRSTS[..3]);
    assert_eq!(
        scene.papers(),
        ["UB-INV-1 2026-01-01 10.00", "UB-INV-2 2026-02-01 60.00", "UB-INV-3 2026-03-01 10.00"],
        "in February, the first month that has it, and never again"
    );
}

fn a_start_that_has_not_come_may_move(database: &Database) {
    let mut scene = Scene::begin(database, "2026-01-10");
    scene.fee("p", "100.00");
    let contract_ref = scene.sell(&[product("p", "2026-03-01", "2026-12-31")]);

    let edited = scene.edit(&contract_ref, &json!({"products": [product("p", "2026-02-01", "2026-12-31")]}));

    assert_eq!(edited["products"][0]["billing_start_date"], "2026-02-01");
    scene.run_on("2026-03-01");
    assert_eq!(scene.papers(), ["UB-INV-1 2026-02-01 100.00"]);
}

fn a_start_of_what_has_not_billed_may_move_into_the_past(database: &Database) {
    let mut scene = Scene::begin(database, "2026-01-10");
    scene.fee("p", "100.00");
    let contract_ref = scene.sell(&[year("p")]);

    let edited = scene.edit(&contract_ref, &json!({"products": [product("p", "2025-12-01", "2026-12-31")]}));

    assert_eq!(edited["products"][0]["billing_start_date"], "2025-12-01");
    books::run(&scene.client);
    assert_eq!(scene.papers(), ["UB-INV-1 2025-12-01 100.00"]);
    scene.run_on("2026-02-01");
    assert_eq!(scene.papers(), ["UB-INV-1 2025-12-01 100.00", "UB-INV-2 2026-01-01 100.00"]);
}

fn a_start_that_has_billed_stays(database: &Database) {
    let mut scene = Scene::begin(database, "2026-01-01");
    scene.fee("p", "100.00");
    let contract_ref = scene.sell(&[year("p")]);
    scene.run_on("2026-02-01");

    for start in ["2025-12-01", "2026-02-01", "2026-03-01"] {
        let moved = json!({"products": [product("p", start, "2026-12-31")]});
        refused(&scene.try_edit(&contract_ref, &moved), 409, "already_started");
    }

    assert_eq!(scene.contract(&contract_ref)["products"][0]["billing_start_date"], "2026-01-01");
    assert_eq!(scene.papers(), ["UB-INV-1 2026-01-01 100.00"]);
}

fn a_product_added_from_the_past_shares_the_open_invoice_whether_usage_came_or_not(database: &Database) {
    let mut scene = Scene::begin(database, "2026-01-01");
    scene.pricing("p", &[catalog::fixed("fee", "10.00"), each("0.10")]);
    scene.fee("quiet", "10.00");
    scene.fee("q", "20.00");
    let used = scene.sell(&[year("p")]);
    let quiet = scene.sell(&[year("quiet")]);
    scene.go_to("2026-01-05");
    scene.calls("2026-01-05", 10);
    scene.go_to("2026-01-10");

    for (contract_ref, first) in [(&used, "p"), (&quiet, "quiet")] {
        scene.edit(contract_ref, &json!({"products": [year(first), year("q")]}));
    }

    let current = scene.preview("current", &used);
    assert_eq!(current, ["UB-INV-1 2026-01-01 31.00 DRAFT"]);
    scene.run_on("2026-02-01");
    assert_eq!(scene.papers(), ["UB-INV-1 2026-01-01 31.00", "UB-INV-2 2026-01-01 30.00"], "one invoice of each contract");
}

fn an_edit_that_names_a_product_keeps_the_prices_agreed(database: &Database) {
    let mut scene = Scene::begin(database, "2026-01-01");
    scene.fee("p", "100.00");
    let contract_ref = scene.sell(&[year("p")]);
    scene.go_to("2026-01-10");
    scene.edit_pricing("p", &json!({"line_items": [catalog::fixed("fee", "150.00")]}));

    for element in [
        json!({"product_pricing_ref": "p", "note": "Thank you"}),
        json!({"product_pricing_ref": "p", "line_items": [{"line_item_id": "fee"}]}),
        with(year("p"), json!({"discount": 10})),
    ] {
        scene.edit(&contract_ref, &json!({"products": [element]}));
    }

    scene.run_on_each(&FIRSTS[..2]);
    assert_eq!(scene.papers(), ["UB-INV-1 2026-01-01 100.00", "UB-INV-2 2026-02-01 90.00"]);
}

fn repricing_takes_the_present_prices(database: &Database) {
    let mut scene = Scene::begin(database, "2026-01-01");
    scene.fee("p", "100.00");
    let contract_ref = scene.sell(&[year("p")]);
    scene.go_to("2026-01-10");
    let line_items = [catalog::fixed("fee", "150.00"), catalog::fixed("support", "5.00")];
    scene.edit_pricing("p", &json!({"line_items": line_items}));

    scene.edit(&contract_ref, &json!({"products": [{"product_pricing_ref": "p", "reprice": true}]}));

    scene.run_on_each(&FIRSTS[..2]);
    // All line items were taken, so all are taken again.
    assert_eq!(scene.papers(), ["UB-INV-1 2026-01-01 100.00", "UB-INV-2 2026-02-01 155.00"]);
}

fn an_override_holds_and_null_takes_the_pricings_value(database: &Database) {
    let mut scene = Scene::begin(database, "2026-01-01");
    scene.fee("p", "100.00");
    let contract_ref = scene.sell(&[with(year("p"), json!({"line_items": [fee_of("80.00")]}))]);
    scene.go_to("2026-01-10");
    scene.edit_pricing("p", &json!({"line_items": [catalog::fixed("fee", "150.00")]}));
    scene.edit(&contract_ref, &json!({"products": [{"product_pricing_ref": "p", "note": "Thank you"}]}));
    scene.run_on_each(&FIRSTS[..2]);
    assert_eq!(scene.papers(), ["UB-INV-1 2026-01-01 80.00", "UB-INV-2 2026-02-01 80.00"]);

    let element = json!({"line_item_id": "fee", "price": null});
    scene.edit(&contract_ref, &json!({"products": [{"product_pricing_ref": "p", "line_items": [element]}]}));

    scene.run_on_each(&FIRSTS[2..4]);
    assert_eq!(scene.papers()[2..], ["UB-INV-3 2026-03-01 80.00", "UB-INV-4 2026-04-01 150.00"]);
}

fn a_planned_price_rise_stays_in_april_when_a_note_is_edited(database: &Database) {
    let mut scene = Scene::begin(database, "2026-01-01");
    scene.fee("p", "100.00");
    let contract_ref = scene.sell(&[year("p")]);
    scene.go_to("2026-01-10");
    let rise = json!([{"product_pricing_ref": "p", "line_items": [fee_of("120.00")]}]);
    let edited = scene.edit(&contract_ref, &json!({"effective_from": "2026-04-01", "products": rise}));
    assert_eq!(edited["products"][0]["effective_from"], "2026-04-01");
    scene.run_on_each(&FIRSTS[..2]);
    scene.go_to("2026-03-10");

    let note = json!([{"product_pricing_ref": "p", "note": "Thank you"}]);
    scene.edit(&contract_ref, &json!({"include_current_invoice": true, "products": note}));

    scene.run_on_each(&FIRSTS[2..4]);
    assert_eq!(
        scene.papers(),
        ["UB-INV-1 2026-01-01 100.00", "UB-INV-2 2026-02-01 100.00", "UB-INV-3 2026-03-01 100.00", "UB-INV-4 2026-04-01 120.00"]
    );
    for (number, note) in [("UB-INV-3", json!("Thank you")), ("UB-INV-4", json!("Thank you"))] {
        assert_eq!(books::numbered(&scene.client, number)["note"], note, "{number}");
    }
}

fn a_planned_change_of_tax_stays_when_a_note_is_edited_now(database: &Database) {
    let mut scene = Scene::begin(database, "2026-01-01");
    scene.fee("p", "100.00");
    let contract_ref = scene.sell(&[with(year("p"), json!({"tax": 19}))]);
    scene.go_to("2026-01-10");
    scene.edit(&contract_ref, &json!({"products": [{"product_pricing_ref": "p", "tax": 7}]}));

    let note = json!([{"product_pricing_ref": "p", "note": "Thank you"}]);
    scene.edit(&contract_ref, &json!({"include_current_invoice": true, "products": note}));

    scene.run_on_each(&FIRSTS[..2]);
    assert_eq!(scene.papers(), ["UB-INV-1 2026-01-01 119.00", "UB-INV-2 2026-02-01 107.00"]);
    assert_eq!(books::numbered(&scene.client, "UB-INV-1")["note"], "Thank you");
}

fn an_edited_product_that_is_not_left_alone_is_ambiguous(database: &Database) {
    let scene = Scene::begin(database, "2026-01-01");
    scene.fee("p", "100.00");
    let (this, next) = (year("p"), product("p", "2027-01-01", "2027-12-31"));
    let contract_ref = scene.sell(&[this.clone(), next.clone()]);

    let edit = json!({"products": [{"product_pricing_ref": "p", "discount": 10}]});
    refused(&scene.try_edit(&contract_ref, &edit), 422, "ambiguous_product");

    scene.edit(&contract_ref, &json!({"products": [next, with(this, json!({"discount": 10}))]}));
}

fn a_pricing_is_billed_once_on_a_day(database: &Database) {
    let scene = Scene::begin(database, "2026-01-01");
    scene.fee("p", "100.00");
    let twice = [year("p"), product("p", "2026-06-01", "2027-05-31")];
    refused(&scene.try_sell(&twice, &json!({})), 422, "duplicate_product");
    let contract_ref = scene.sell(&[year("p")]);
    let edit = json!({"products": twice});
    refused(&scene.try_edit(&contract_ref, &edit), 422, "duplicate_product");
    assert_eq!(scene.contract(&contract_ref)["version"].to_string(), "1");
}

fn edits_of_a_contract_without_end_stay_cheap(database: &Database) {
    let mut scene = Scene::begin(database, "2026-01-10");
    scene.fee("p", "100.00");
    let endless = product("p", "2026-01-01", "9999-12-31");
    let contract_ref = scene.sell(&[with(endless, json!({"payment_time": "DURING_USE"}))]);
    // A month apart, so that each makes terms of its own.
    let mut took = Vec::new();
    for months in 0..40 {
        scene.run_on(&Day::new(2026, 1, 10).plus_months(months).to_string());
        let products = json!([{"product_pricing_ref": "p", "discount": months}]);
        let started = Instant::now();
        scene.edit(&contract_ref, &json!({"products": products}));
        took.push(started.elapsed());
    }

    let sum = |range: std::ops::Range<usize>| took[range].iter().sum::<Duration>();
    let (first, last) = (sum(0..8), sum(32..40));
    assert!(last < 3 * first + Duration::from_millis(500), "eight edits took {first:?}, and after thirty-two {last:?}");
}
