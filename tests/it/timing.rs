//! Documents in responses as time passes: events due upon usage, previews and void drafts. The domain's `scenarios::timing` test
//! when documents are created and their lines.

use acceptance::when::Day;
use acceptance::{Database, books, catalog, on_both_databases, on_sqlite};
use serde_json::{Value, json};

on_both_databases!(every_event_due_upon_usage_is_an_invoice_of_its_own);
on_sqlite!(what_is_previewed_is_what_is_issued, a_draft_on_which_nothing_stands_any_more_is_voided_with_its_number,);

fn per_unit() -> Value {
    json!({"model": "PER_UNIT", "unit_price": "0.10"})
}

fn ago(days: i64) -> Day {
    Day::today().plus_days(-days)
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
    // An event that changes no amount is added to the document that bills the period's usage, and has no parent.
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

fn what_is_previewed_is_what_is_issued(database: &Database) {
    let (_server, client) = catalog::stage(database);
    catalog::make_pricing(&client, "plan", &json!([catalog::fixed("base", "20.00"), catalog::calls(&per_unit())]));
    let content = |document: &Value| {
        let names =
            ["kind", "period_start", "period_end", "products", "taxes", "sub_total", "total_discount", "total_tax", "total"];
        books::fields(document, names)
    };
    for (payment_time, issued) in [("BEFORE_USE", 1), ("DURING_USE", 1), ("AFTER_USE", 0)] {
        // The first period is a part of a month, so its amount is prorated.
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
    // Usage with a total of zero is still usage, so the document is issued.
    let event = books::report(&client, &catalog::event_on("acme", ago(20), 0));
    assert_eq!(event["related_document_numbers"], "UB-INV-2");
    assert_eq!(books::run(&client).len(), 1);
}
