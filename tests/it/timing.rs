//! When documents are made and what is on each: paid before, during and after use, upon usage, in any time zone.

use acceptance::when::Day;
use acceptance::{Client, Database, books, catalog, on_both_databases, when};
use serde_json::{Value, json};

on_both_databases!(
    before_use_bills_what_is_prepaid_and_a_debit_the_rest,
    a_debit_of_a_period_opens_the_invoice_it_belongs_to,
    during_use_bills_each_periods_usage_on_the_next_invoice_and_closes,
    the_last_period_of_during_use_shows_its_closing_invoice_next,
    every_event_due_upon_usage_is_an_invoice_of_its_own,
    an_event_that_lowers_the_price_is_credited_at_once,
    an_event_due_upon_usage_is_corrected_by_a_document_of_its_own_invoice,
    products_that_agree_share_a_document,
    what_is_previewed_is_what_is_issued,
    a_draft_on_which_nothing_stands_any_more_is_voided_with_its_number,
    a_day_ends_in_the_entitys_time_zone_and_its_grace_passes_first,
);

fn per_unit() -> Value {
    json!({"model": "PER_UNIT", "unit_price": "0.10"})
}

/// A base of 20.00, and calls at 0.10 of which 1000 are paid in advance.
fn make_prepaid(client: &Client) {
    let calls = catalog::with(catalog::calls(&per_unit()), &json!({"prepaid_quantity": 1000}));
    catalog::make_pricing(client, "prepaid", &json!([catalog::fixed("base", "20.00"), calls]));
}

fn ago(days: i64) -> Day {
    Day::today().plus_days(-days)
}

fn before_use_bills_what_is_prepaid_and_a_debit_the_rest(database: &Database) {
    let (_server, client) = catalog::stage(database);
    make_prepaid(&client);
    let refused =
        client.post("/api/contracts/", &json!({"customer_ref": "acme", "products": [catalog::months("prepaid", 0, 1)]}));
    assert_eq!((refused.status, refused.text_of("code").as_str()), (422, "prepaid_needs_before_use"));
    // A sample of the interface specification says BEFORE_PERIOD.
    let product = catalog::with(catalog::months("prepaid", 0, 1), &json!({"payment_time": "BEFORE_PERIOD"}));
    let contract_ref = catalog::sell(&client, &[product]);
    let contract = client.get(&format!("/api/contracts/{contract_ref}")).ok();
    assert_eq!(contract["products"][0]["payment_time"], "BEFORE_USE");

    assert_eq!(books::run(&client).len(), 1, "issued on its first day");
    let invoice = books::numbered(&client, "UB-INV-1");
    assert_eq!(books::amounts(&invoice), ["base 20.00", "calls 100.00"]);
    assert_eq!(books::totals(&invoice), ["120.00", "0.00", "22.80", "142.80", "142.80"]);

    for (quantity, amount) in [(800, "0.00"), (700, "50.00")] {
        let event = books::report(&client, &catalog::event("acme", quantity));
        assert_eq!(event["related_document_numbers"], "UB-DBT-1");
        assert_eq!(books::lines(&books::numbered(&client, "UB-DBT-1"))[0][3], amount);
    }
    let debit = books::numbered(&client, "UB-DBT-1");
    assert_eq!(books::shown(&debit), ["UB-DBT-1", "DEBIT", "REGULAR", "DRAFT", "59.50"]);
    assert_eq!((&debit["parent_document_number"], &debit["period_start"]), (&json!("UB-INV-1"), &invoice["period_start"]));
    assert_eq!(books::related(&books::numbered(&client, "UB-INV-1")), ["UB-DBT-1"]);
    assert_eq!(books::run(&client), Vec::<Value>::new(), "the period goes on");

    books::issue(&client, &debit["document_ref"]).ok();
    let late = books::report(&client, &catalog::event("acme", 10));
    let adjustment = books::document(&client, &late["related_document_ref"]);
    assert_eq!(books::shown(&adjustment), ["UB-DBT-2", "DEBIT", "ADJUSTMENT", "DRAFT", "1.19"]);
    assert_eq!(adjustment["parent_document_number"], "UB-INV-1", "an adjustment's parent is always an invoice");
    assert_eq!(books::frozen(&books::numbered(&client, "UB-INV-1")), books::frozen(&invoice), "to the byte");
}

fn a_debit_of_a_period_opens_the_invoice_it_belongs_to(database: &Database) {
    let (_server, client) = catalog::stage(database);
    make_prepaid(&client);
    catalog::sell(&client, &[catalog::with(catalog::ended("prepaid"), &json!({"payment_time": "BEFORE_USE"}))]);

    let event = books::report(&client, &catalog::event_on("acme", ago(20), 1500));

    assert_eq!(event["related_document_numbers"], "UB-DBT-1");
    assert_eq!(books::numbered(&client, "UB-INV-1")["state"], "DRAFT");
    let issued: Vec<[String; 2]> =
        books::run(&client).iter().map(|issued| books::fields(issued, ["document_number", "total"])).collect();
    assert_eq!(issued, [["UB-INV-1", "142.80"], ["UB-DBT-1", "59.50"]]);
}

fn during_use_bills_each_periods_usage_on_the_next_invoice_and_closes(database: &Database) {
    let (_server, client) = catalog::stage(database);
    catalog::make_pricing(&client, "plan", &json!([catalog::fixed("base", "20.00"), catalog::calls(&per_unit())]));
    let first = ago(10).plus_months(-2);
    let product = catalog::with(
        catalog::months("plan", 2, 0),
        &json!({"payment_time": "DURING_USE", "billing_end_date": ago(11).to_string()}),
    );
    catalog::sell(&client, &[product]);
    let second = first.plus_months(1);
    let in_first = books::report(&client, &catalog::event_on("acme", first, 100));
    let in_second = books::report(&client, &catalog::event_on("acme", second, 200));
    assert_eq!(books::run(&client).len(), 3);

    let documents = catalog::documents(&client);
    let with_first_line = |start: Day, line: &str| {
        let start = start.to_string();
        let found =
            documents.iter().find(|document| document["period_start"] == start.as_str() && books::lines(document)[0][0] == line);
        found.expect("an invoice").clone()
    };
    let (first, second) = (first.to_string(), second.to_string());
    let invoice = with_first_line(Day::parse(&first), "base");
    assert_eq!(books::lines(&invoice), [["base", &*first, "null", "20.00"]]);
    let invoice = with_first_line(Day::parse(&second), "base");
    let mut lines = books::lines(&invoice);
    lines.sort();
    assert_eq!(lines, [["base", &*second, "null", "20.00"], ["calls", &*first, "100", "10.00"]]);
    assert_eq!(in_first["related_document_ref"], invoice["document_ref"]);
    let closing = with_first_line(Day::parse(&second), "calls");
    assert_eq!(books::lines(&closing), [["calls", &*second, "200", "20.00"]]);
    assert_eq!(in_second["related_document_ref"], closing["document_ref"]);
    assert_eq!((&closing["kind"], &closing["purpose"]), (&json!("INVOICE"), &json!("REGULAR")));

    let late = books::report(&client, &catalog::event_on("acme", Day::parse(&first), 1));
    let debit = books::document(&client, &late["related_document_ref"]);
    assert_eq!(debit["parent_document_ref"], invoice["document_ref"], "the invoice that billed the usage");
    assert_eq!((&debit["period_start"], books::amounts(&debit)), (&json!(first), vec!["calls 0.10".to_owned()]));
}

fn the_last_period_of_during_use_shows_its_closing_invoice_next(database: &Database) {
    let (_server, client) = catalog::stage(database);
    catalog::make_pricing(&client, "plan", &json!([catalog::fixed("base", "20.00"), catalog::calls(&per_unit())]));
    let product = catalog::with(catalog::months("plan", 0, 0), &json!({"payment_time": "DURING_USE"}));
    let contract_ref = catalog::sell(&client, &[product]);
    let next = || catalog::only(Value::Array(books::preview(&client, "next", &contract_ref)));
    assert_eq!((books::amounts(&next()), &next()["document_number"]), (vec!["calls 0.00".to_owned()], &Value::Null));

    let event = books::report(&client, &catalog::event("acme", 200));

    let closing = next();
    assert_eq!(closing["document_ref"], event["related_document_ref"]);
    assert_eq!((books::amounts(&closing), &closing["document_number"]), (vec!["calls 20.00".to_owned()], &json!("UB-INV-1")));
    let current = books::preview(&client, "current", &contract_ref);
    assert!(current.iter().any(|document| books::amounts(document) == ["base 20.00"]), "{current:?}");
}

fn every_event_due_upon_usage_is_an_invoice_of_its_own(database: &Database) {
    let (_server, client) = catalog::stage(database);
    let product = catalog::with(catalog::months(catalog::API_PLAN, 0, 1), &json!({"net_terms": "DUE_UPON_USAGE"}));
    let contract_ref = catalog::sell(&client, &[product]);

    // Tier by tier: 60 at 0.10; 40 at 0.10 and 20 at 0.05.
    let children = [(60, "6.00"), (60, "5.00")].map(|(quantity, amount)| {
        let event = books::report(&client, &catalog::event("acme", quantity));
        let child = books::document(&client, &event["related_document_ref"]);
        assert_eq!(books::fields(&child, ["kind", "purpose", "sub_total"]), ["INVOICE", "USAGE", amount]);
        assert_eq!(
            (&child["issue_date"], &child["due_date"]),
            (&json!(Day::today().to_string()), &json!(Day::today().to_string()))
        );
        assert_eq!(child["parent_document_number"], "UB-INV-1");
        let event = books::event(&client, &event["event_ref"]);
        assert_eq!(
            (&event["related_parent_document_ref"], &event["related_parent_document_numbers"]),
            (&child["parent_document_ref"], &json!("UB-INV-1"))
        );
        child["document_number"].as_str().expect("a number").to_owned()
    });

    assert_eq!(children, ["UB-INV-2", "UB-INV-3"]);
    // What changes no amount lands on the document that bills the period's usage, and has no parent.
    let unpriced = books::report(&client, &catalog::event("acme", 0));
    assert_eq!(unpriced["related_document_numbers"], "UB-INV-1");
    assert_eq!(unpriced["related_parent_document_numbers"], Value::Null);
    let parent = books::numbered(&client, "UB-INV-1");
    assert_eq!(
        (parent["state"].as_str(), books::amounts(&parent)),
        (Some("DRAFT"), vec!["platform-fee 49.00".to_owned(), "calls 0.00".to_owned()])
    );
    assert_eq!(books::related(&parent), children);
    let current = books::preview(&client, "current", &contract_ref);
    assert_eq!(current.len(), 3, "the parent and its children");
}

/// All units at the price of the tier the quantity is in: 0.10 up to 100, then 0.05.
fn sell_by_volume(client: &Client) {
    let tiers = json!([{"up_to": 100, "unit_price": "0.10"}, {"unit_price": "0.05"}]);
    let calls = catalog::calls(&json!({"model": "VOLUME", "tiers": tiers}));
    catalog::make_pricing(client, "volume", &json!([calls]));
    catalog::sell(client, &[catalog::with(catalog::ended("volume"), &json!({"net_terms": "DUE_UPON_USAGE"}))]);
}

fn an_event_that_lowers_the_price_is_credited_at_once(database: &Database) {
    let (_server, client) = catalog::stage(database);
    sell_by_volume(&client);
    books::report(&client, &catalog::event_on("acme", ago(20), 100));

    // 101 at 0.05 instead of 100 at 0.10.
    let event = books::report(&client, &catalog::event_on("acme", ago(20), 1));

    assert_eq!(event["related_document_numbers"], "UB-CRD-1");
    let credit = books::numbered(&client, "UB-CRD-1");
    assert_eq!(books::fields(&credit, ["purpose", "sub_total", "parent_document_number"]), ["USAGE", "4.95", "UB-INV-1"]);
    assert_ne!(credit["state"], "DRAFT");
    let issued = books::run(&client);
    assert_eq!(
        books::fields(&catalog::only(Value::Array(issued)), ["document_number", "total"]),
        ["UB-INV-1", "0.00"],
        "it has children"
    );
}

fn an_event_due_upon_usage_is_corrected_by_a_document_of_its_own_invoice(database: &Database) {
    let (_server, client) = catalog::stage(database);
    sell_by_volume(&client);
    let event = books::report(&client, &catalog::event_on("acme", ago(20), 100));
    let child = books::document(&client, &event["related_document_ref"]);
    assert_eq!(books::shown(&child), ["UB-INV-2", "INVOICE", "USAGE", "ISSUED", "11.90"]);

    let updated = books::update(&client, &event["event_ref"], json!({"quantity": 70})).ok();

    assert_eq!(updated["related_document_numbers"], "UB-INV-2, UB-CRD-1");
    let credit = books::numbered(&client, "UB-CRD-1");
    assert_eq!((books::amounts(&credit), &credit["parent_document_number"]), (vec!["calls 3.00".to_owned()], &json!("UB-INV-2")));
    assert_eq!(credit["purpose"], "ADJUSTMENT");
    books::run(&client);
    assert_eq!(books::amounts(&books::numbered(&client, "UB-INV-1")), ["calls 0.00"], "its children and theirs bill it all");
    assert_eq!(books::frozen(&books::numbered(&client, "UB-INV-2")), books::frozen(&child), "to the byte");
}

fn products_that_agree_share_a_document(database: &Database) {
    let (_server, client) = catalog::stage(database);
    for name in ["a", "b", "c"] {
        catalog::make_pricing(&client, name, &json!([catalog::fixed(name, "10.00")]));
    }
    let products = [
        catalog::with(catalog::months("a", 0, 0), &json!({"note": "First", "tax": 7})),
        catalog::with(catalog::months("b", 0, 0), &json!({"net_terms": 30})),
        catalog::with(catalog::months("c", 0, 0), &json!({"note": "Second", "discount": 50})),
    ];
    let contract_ref = catalog::sell(&client, &products);

    let previews = books::preview(&client, "current", &contract_ref);

    let amounts: Vec<Vec<String>> = previews.iter().map(books::amounts).collect();
    assert_eq!(amounts, [vec!["a 10.00", "c 10.00"], vec!["b 10.00"]]);
    // 0.70 of 10.00 at 7 %, and 0.95 of 5.00 at 19 %.
    assert_eq!(books::totals(&previews[0]), ["20.00", "5.00", "1.65", "16.65", "16.65"]);
    assert_eq!(previews[0]["note"], "First\nSecond");
}

fn what_is_previewed_is_what_is_issued(database: &Database) {
    let (_server, client) = catalog::stage(database);
    catalog::make_pricing(&client, "plan", &json!([catalog::fixed("base", "20.00"), catalog::calls(&per_unit())]));
    let content = |document: &Value| {
        let names =
            ["kind", "period_start", "period_end", "products", "taxes", "sub_total", "total_discount", "total_tax", "total"];
        books::fields(document, names)
    };
    for (payment_time, issued) in [("BEFORE_USE", 1), ("DURING_USE", 1), ("AFTER_USE", 0)] {
        // The first period is part of a month: its amount is prorated.
        let start = ago(10).to_string();
        let product = catalog::with(
            catalog::months("plan", 0, 1),
            &json!({"payment_time": payment_time, "discount": 10, "billing_start_date": start, "issue_day": null}),
        );
        let end = Day::parse(product["billing_end_date"].as_str().expect("a date")).plus_days(-7);
        let product = catalog::with(product, &json!({"billing_end_date": end.to_string()}));
        let contract_ref = catalog::sell(&client, &[product]);
        let previews = books::preview(&client, "current", &contract_ref);

        let run = books::run(&client);

        assert_eq!(run.len(), issued, "{payment_time}");
        for document in run {
            assert_eq!(content(&books::document(&client, &document["document_ref"])), content(&previews[0]), "{payment_time}");
        }
        books::cancel(&client, &contract_ref, false).ok();
        assert_eq!(
            books::preview(&client, "current", &contract_ref).iter().map(content).collect::<Vec<_>>(),
            previews.iter().map(content).collect::<Vec<_>>(),
            "{payment_time}"
        );
    }
    let event = books::report(&client, &catalog::event("acme", 123));
    let draft = books::document(&client, &event["related_document_ref"]);
    let issued = books::issue(&client, &draft["document_ref"]).ok();
    assert_eq!(content(&issued), content(&draft));
}

fn a_draft_on_which_nothing_stands_any_more_is_voided_with_its_number(database: &Database) {
    let (_server, client) = catalog::stage(database);
    catalog::make_pricing(&client, "usage", &json!([catalog::calls(&per_unit())]));
    catalog::sell(&client, &[catalog::ended("usage")]);
    let event = books::report(&client, &catalog::event_on("acme", ago(20), 5));
    assert_eq!(books::delete(&client, &event["event_ref"]).status, 204);

    let report = client.post("/api/billing/run", &json!({})).ok();

    assert_eq!((&report["issued"], &report["failed"]), (&json!([]), &json!([])));
    assert_eq!(catalog::only(report["voided"].clone())["document_number"], "UB-INV-1");
    assert_eq!(books::numbered(&client, "UB-INV-1")["state"], "VOID");
    // Usage all the same, at a total of zero, is issued.
    let event = books::report(&client, &catalog::event_on("acme", ago(20), 0));
    assert_eq!(event["related_document_numbers"], "UB-INV-2");
    assert_eq!(books::run(&client).len(), 1);
}

fn a_day_ends_in_the_entitys_time_zone_and_its_grace_passes_first(database: &Database) {
    let (_server, client) = catalog::stage(database);
    catalog::make_pricing(&client, "base", &json!([catalog::fixed("base", "10.00")]));
    let mut expected = Vec::new();
    for (prefix, zone, offset, grace) in
        [("KIR", "Pacific/Kiritimati", 14, 0), ("PAGO", "Pacific/Pago_Pago", -11, 0), ("LATE", "UTC", 0, 720)]
    {
        let entity =
            json!({"entity_ref": prefix, "name": prefix, "number_prefix": prefix, "timezone": zone, "grace_hours": grace});
        client.post("/api/entities/", &entity).ok();
        let today = when::today_at(offset);
        // One ended yesterday there, one ends today.
        for end in [today.plus_days(-1), today] {
            let product = catalog::with(
                catalog::ended("base"),
                &json!({"entity_ref": prefix, "billing_start_date": end.plus_days(-9).to_string(), "billing_end_date": end.to_string()}),
            );
            catalog::sell(&client, &[product]);
        }
        if grace == 0 {
            expected.push((format!("{prefix}-INV-1"), today));
        }
    }

    assert_eq!(books::run(&client).len(), 2);

    for (number, today) in expected {
        let document = books::numbered(&client, &number);
        assert_eq!(
            (&document["issue_date"], &document["period_end"]),
            (&json!(today.to_string()), &json!(today.plus_days(-1).to_string()))
        );
    }
}
